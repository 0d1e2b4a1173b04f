//! A poll for people: a bar for each option, and who said what.

use crate::console::{BOLD, CYAN, Console, DIM, GREEN, YELLOW, styled};
use crate::screen::{cells, clip_cells};
use crate::view::{self, Look};
use crosstalk_envelope::Timestamp;
use serde_json::Value;
use std::fmt::Write as _;

/// The widest bar, in columns.
const WIDEST: usize = 40;
/// The widest name of an option or of a voter.
const NAME: usize = 32;

/// Draws a collation, from here or from a relay.
pub(crate) fn poll(console: &Console, poll: &Value) -> String {
    let look = Look::of(console);
    let mut out = String::new();
    let text = |key: &str| poll.get(key).and_then(Value::as_str);
    let asked = |key: &str| {
        poll.pointer(&format!("/poll/{key}"))
            .and_then(Value::as_str)
    };
    let question = view::first_line(asked("question").unwrap_or_default());
    // Writing to a String can't fail.
    let _ = writeln!(out, "{}", styled(BOLD, &clip_cells(&question, look.width)));
    let _ = writeln!(out, "{}", styled(DIM, &facts(poll)));
    let unit = match asked("type") {
        Some("ranked") => Some("First places:"),
        Some("score") => Some("Points:"),
        _ => None,
    };
    if let Some(unit) = unit.filter(|_| has_tally(poll)) {
        let _ = writeln!(out, "{}", styled(DIM, unit));
    }
    bars(&mut out, poll, look.width);
    pairs(&mut out, poll);
    let so_far = match text("state") {
        Some("open") => " so far",
        _ => "",
    };
    let _ = match (text("outcome"), text("reason")) {
        (Some(outcome), _) => {
            let label = format!("Outcome{so_far}:");
            writeln!(out, "{} {}", styled(GREEN, &label), view::line(outcome))
        }
        (None, Some(reason)) => {
            let label = format!("No outcome{so_far}:");
            writeln!(out, "{} {}", styled(YELLOW, &label), view::line(reason))
        }
        _ => writeln!(out, "{}", styled(YELLOW, "No outcome")),
    };
    if poll.get("past").and_then(Value::as_bool) == Some(true) {
        let _ = writeln!(
            out,
            "{}",
            styled(
                DIM,
                "Texts were erased since: this is the outcome that was sent."
            )
        );
    }
    voters(&mut out, poll);
    out
}

fn facts(poll: &Value) -> String {
    let number = |path: &str| poll.pointer(path).and_then(Value::as_u64);
    let asked = |key: &str| {
        poll.pointer(&format!("/poll/{key}"))
            .and_then(Value::as_str)
    };
    let invited = poll
        .pointer("/poll/invited")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    let mut facts = vec![view::line(asked("type").unwrap_or("poll"))];
    facts.push(format!(
        "{} of {invited} ballots",
        number("/quorum/counted").unwrap_or(0)
    ));
    let reached = poll
        .pointer("/quorum/reached")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    match number("/quorum/required") {
        Some(0) => {}
        Some(n) if reached => facts.push(format!("quorum of {n} reached")),
        Some(n) => facts.push(format!("quorum of {n} not reached")),
        None => facts.push("quorum unreadable".into()),
    }
    if let Some(state) = poll.get("state").and_then(Value::as_str) {
        facts.push(view::line(state));
    }
    if let Some(end) = asked("deadline") {
        facts.push(format!("deadline {}", view::line(end)));
    }
    if let Some(at) = poll.get("at").and_then(Value::as_str) {
        facts.push(format!("as of {}", view::line(at)));
    }
    facts.join(", ")
}

fn bars(out: &mut String, poll: &Value, width: usize) {
    let Some(tally) = poll
        .get("tally")
        .and_then(Value::as_object)
        .filter(|t| !t.is_empty())
    else {
        return;
    };
    // In the order of the poll, which JSON objects do not keep.
    let options = poll.pointer("/poll/options").and_then(Value::as_array);
    let options = options.map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<(String, u64)> = options
        .iter()
        .filter_map(Value::as_str)
        .map(|o| {
            (
                view::line(o),
                tally.get(o).and_then(Value::as_u64).unwrap_or(0),
            )
        })
        .collect();
    let most = rows.iter().map(|(_, n)| *n).max().unwrap_or(0).max(1);
    let names = rows
        .iter()
        .map(|(o, _)| cells(o).min(NAME))
        .max()
        .unwrap_or(0);
    let digits = most.to_string().len();
    let room = width.saturating_sub(names + digits + 6).clamp(8, WIDEST);
    let winner = poll.get("outcome").and_then(Value::as_str).map(view::line);
    for (option, votes) in rows {
        let name = clip_cells(&option, NAME);
        let gap = " ".repeat(names.saturating_sub(cells(&name)));
        let style = match winner.as_ref() == Some(&option) {
            true => GREEN,
            false => CYAN,
        };
        let length = bar(votes, most, room);
        let rest = " ".repeat(room.saturating_sub(length));
        let _ = writeln!(
            out,
            "  {name}{gap}  {}{rest}  {votes}",
            styled(style, &"█".repeat(length))
        );
    }
}

fn has_tally(poll: &Value) -> bool {
    let tally = poll.get("tally").and_then(Value::as_object);
    tally.is_some_and(|t| !t.is_empty())
}

/// Of a ranked poll, how often each option is preferred to each other one: what decides.
fn pairs(out: &mut String, poll: &Value) {
    let Some(pairs) = poll.get("pairwise").and_then(Value::as_object) else {
        return;
    };
    let options = poll.pointer("/poll/options").and_then(Value::as_array);
    let options = options.map(Vec::as_slice).unwrap_or_default();
    let options: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
    let _ = writeln!(
        out,
        "{}",
        styled(DIM, "Preferred to another option, in ballots:")
    );
    for option in &options {
        let number = |other: &str| {
            let row = pairs.get(*option).and_then(|row| row.get(other));
            row.and_then(Value::as_u64).unwrap_or(0)
        };
        let others = options.iter().filter(|other| *other != option);
        let row: Vec<String> = others
            .map(|other| {
                format!(
                    "to {} {}",
                    clip_cells(&view::line(other), NAME),
                    number(other)
                )
            })
            .collect();
        let name = clip_cells(&view::line(option), NAME);
        let _ = writeln!(out, "  {name}: {}", row.join(", "));
    }
}

/// The length of a bar; whatever has a vote is seen.
fn bar(votes: u64, most: u64, room: usize) -> usize {
    let room = u64::try_from(room).unwrap_or(0);
    let length = votes.saturating_mul(room) / most.max(1);
    usize::try_from(length.max(u64::from(votes > 0))).unwrap_or(0)
}

fn voters(out: &mut String, poll: &Value) {
    let list = |key: &str| {
        poll.get(key)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).map(view::line);
    let is_veiled = poll.get("veiled").and_then(Value::as_bool).unwrap_or(false);
    for ballot in list("counted") {
        let from = text(ballot, "from").unwrap_or_default();
        let said = match ballot.get("choice").and_then(Value::as_str) {
            _ if is_veiled => "has answered".to_owned(),
            Some(choice) => view::first_line(choice),
            None => "abstains".to_owned(),
        };
        let mut notes = Vec::new();
        match text(ballot, "read_from").as_deref() {
            Some("first-line") if !is_veiled => notes.push("read from the first line".to_owned()),
            Some("correction") => {
                let by = ballot.pointer("/corrected/by").and_then(Value::as_str);
                notes.push(format!(
                    "read so by {}",
                    view::line(by.unwrap_or("a person"))
                ));
            }
            _ => {}
        }
        if ballot.get("undated").and_then(Value::as_bool) == Some(true) {
            notes.push("nobody can say when it was written".to_owned());
        }
        if text(ballot, "signature").as_deref() == Some("holds") {
            notes.push(format!(
                "signed by {}",
                text(ballot, "pkid").unwrap_or_default()
            ));
        }
        let notes = match notes.is_empty() {
            true => String::new(),
            false => styled(DIM, &format!(" ({})", notes.join("; "))),
        };
        let _ = writeln!(out, "  {from}: {said}{notes}");
    }
    for other in list("not_counted") {
        let from = text(other, "from").unwrap_or_default();
        let why = text(other, "why").unwrap_or_default();
        let detail = text(other, "detail").filter(|d| !d.is_empty());
        let detail = detail.map_or_else(String::new, |d| format!(", {d}"));
        let _ = writeln!(
            out,
            "  {from}: {} {why}{detail}",
            styled(YELLOW, "not counted:")
        );
        // An answer that a person can correct.
        let name = text(other, "message").or_else(|| text(other, "digest"));
        let name =
            name.filter(|n| !n.is_empty() && matches!(why.as_str(), "unreadable" | "other-parent"));
        // A result that was made stays as it is.
        let is_closed = poll.pointer("/state").and_then(Value::as_str) == Some("closed")
            && poll.pointer("/at").is_some_and(Value::is_string);
        if let Some(name) = name.filter(|_| !is_closed) {
            let advice = format!("    to say what it means: crosstalk poll count {name} --as …");
            let _ = writeln!(out, "{}", styled(DIM, &advice));
        }
    }
    let silence = match is_over(poll) {
        true => "no answer (E-TIMEOUT)",
        false => "no answer",
    };
    for address in list("missing").iter().filter_map(Value::as_str) {
        let _ = writeln!(out, "  {}: {}", view::line(address), styled(DIM, silence));
    }
}

/// Whether nothing more is waited for: it is closed, or counted up to its deadline.
fn is_over(poll: &Value) -> bool {
    let text = |path: &str| poll.pointer(path).and_then(Value::as_str);
    let (at, deadline) = (text("/at"), text("/poll/deadline"));
    let (at, deadline) = (
        at.and_then(Timestamp::parse),
        deadline.and_then(Timestamp::parse),
    );
    text("/state") == Some("closed") || at.zip(deadline).is_some_and(|(at, end)| at >= end)
}
