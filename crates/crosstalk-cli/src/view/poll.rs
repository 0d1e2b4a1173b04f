//! A poll for people: a bar for each option, and who said what.

use crate::console::{BOLD, CYAN, Console, DIM, GREEN, YELLOW, styled};
use crate::report::{CountedReport, NotCountedReport, PollReport};
use crate::screen::{cells, clip_cells};
use crate::view::{self, Look};
use crosstalk_envelope::Timestamp;
use std::fmt::Write as _;

/// The widest bar, in columns.
const WIDEST: usize = 40;
/// The widest name of an option or of a voter.
const NAME: usize = 32;

/// Draws a collation, from here or from a relay.
pub(crate) fn poll(console: &Console, poll: &PollReport) -> String {
    let look = Look::of(console);
    let mut out = String::new();
    let question = view::first_line(&poll.poll.question);
    // Writing to a String can't fail.
    let _ = writeln!(out, "{}", styled(BOLD, &clip_cells(&question, look.width)));
    let _ = writeln!(out, "{}", styled(DIM, &facts(poll)));
    let unit = match poll.poll.r#type.as_str() {
        "ranked" => Some("First places:"),
        "score" => Some("Points:"),
        _ => None,
    };
    if let Some(unit) = unit.filter(|_| !poll.tally.is_empty()) {
        let _ = writeln!(out, "{}", styled(DIM, unit));
    }
    bars(&mut out, poll, look.width);
    pairs(&mut out, poll);
    let so_far = match poll.state.as_deref() {
        Some("open") => " so far",
        _ => "",
    };
    let (style, label, said) = match (&poll.outcome, &poll.reason) {
        (Some(outcome), _) => (GREEN, format!("Outcome{so_far}:"), view::line(outcome)),
        (None, Some(reason)) => (YELLOW, format!("No outcome{so_far}:"), view::line(reason)),
        (None, None) => (YELLOW, "No outcome".to_owned(), String::new()),
    };
    let line = format!("{} {said}", styled(style, &label));
    let _ = writeln!(out, "{}", line.trim_end());
    if poll.past {
        let text = "Texts were erased since: this is the outcome that was sent.";
        let _ = writeln!(out, "{}", styled(DIM, text));
    }
    voters(&mut out, poll);
    out
}

fn facts(poll: &PollReport) -> String {
    let (call, quorum) = (&poll.poll, &poll.quorum);
    let ballots = format!("{} of {} ballots", quorum.counted, call.invited.len());
    let mut facts = vec![view::line(&call.r#type), ballots];
    match quorum.required {
        Some(0) => {}
        Some(n) if quorum.reached => facts.push(format!("quorum of {n} reached")),
        Some(n) => facts.push(format!("quorum of {n} not reached")),
        None => facts.push("quorum unreadable".into()),
    }
    facts.extend(poll.state.as_deref().map(view::line));
    if let Some(end) = &call.deadline {
        facts.push(format!("deadline {}", view::line(end)));
    }
    if let Some(at) = &poll.at {
        facts.push(format!("as of {}", view::line(at)));
    }
    facts.join(", ")
}

fn bars(out: &mut String, poll: &PollReport, width: usize) {
    if poll.tally.is_empty() {
        return;
    }
    let votes = |option: &String| poll.tally.get(option).copied().unwrap_or(0);
    let rows = poll.poll.options.iter().map(|o| (view::line(o), votes(o)));
    let rows: Vec<(String, u64)> = rows.collect();
    let most = rows.iter().map(|(_, n)| *n).max().unwrap_or(0).max(1);
    let names = rows.iter().map(|(o, _)| cells(o).min(NAME));
    let names = names.max().unwrap_or(0);
    let digits = most.to_string().len();
    let room = width.saturating_sub(names + digits + 6).clamp(8, WIDEST);
    let winner = poll.outcome.as_deref().map(view::line);
    for (option, votes) in rows {
        let name = clip_cells(&option, NAME);
        let gap = " ".repeat(names.saturating_sub(cells(&name)));
        let style = match winner.as_ref() == Some(&option) {
            true => GREEN,
            false => CYAN,
        };
        let length = bar(votes, most, room);
        let rest = " ".repeat(room.saturating_sub(length));
        let bar = styled(style, &"█".repeat(length));
        let _ = writeln!(out, "  {name}{gap}  {bar}{rest}  {votes}");
    }
}

/// Of a ranked poll, how often each option is preferred to each other one: what decides.
fn pairs(out: &mut String, poll: &PollReport) {
    let Some(pairs) = &poll.pairwise else {
        return;
    };
    let title = "Preferred to another option, in ballots:";
    let _ = writeln!(out, "{}", styled(DIM, title));
    let name = |option: &str| clip_cells(&view::line(option), NAME);
    for option in &poll.poll.options {
        let others = poll.poll.options.iter().filter(|other| *other != option);
        let row = others.map(|other| {
            let ballots = pairs.get(option).and_then(|row| row.get(other));
            format!("to {} {}", name(other), ballots.copied().unwrap_or(0))
        });
        let row: Vec<String> = row.collect();
        let _ = writeln!(out, "  {}: {}", name(option), row.join(", "));
    }
}

/// The length of a bar; whatever has a vote is seen.
fn bar(votes: u64, most: u64, room: usize) -> usize {
    let room = u64::try_from(room).unwrap_or(0);
    let length = votes.saturating_mul(room) / most.max(1);
    usize::try_from(length.max(u64::from(votes > 0))).unwrap_or(0)
}

fn voters(out: &mut String, poll: &PollReport) {
    for ballot in &poll.counted {
        counted(out, ballot, poll.veiled);
    }
    // A result that was made stays as it is.
    let can_correct = poll.state.as_deref() != Some("closed") || poll.at.is_none();
    for other in &poll.not_counted {
        not_counted(out, other, can_correct);
    }
    let silence = match is_over(poll) {
        true => "no answer (E-TIMEOUT)",
        false => "no answer",
    };
    for address in &poll.missing {
        let _ = writeln!(out, "  {}: {}", view::line(address), styled(DIM, silence));
    }
}

fn counted(out: &mut String, ballot: &CountedReport, is_veiled: bool) {
    let said = match &ballot.choice {
        _ if is_veiled => "has answered".to_owned(),
        Some(choice) => view::first_line(choice),
        None => "abstains".to_owned(),
    };
    let mut notes = Vec::new();
    match ballot.read_from.as_str() {
        "first-line" if !is_veiled => notes.push("read from the first line".to_owned()),
        "correction" => {
            let by = ballot.corrected.as_ref().map_or("a person", |c| &c.by);
            notes.push(format!("counted by {}", view::line(by)));
        }
        _ => {}
    }
    if ballot.undated {
        notes.push("the time of writing is unknown".to_owned());
    }
    if ballot.signature == "holds" {
        let pkid = ballot.pkid.as_deref().unwrap_or_default();
        notes.push(format!("signed by {}", view::line(pkid)));
    }
    let notes = match notes.is_empty() {
        true => String::new(),
        false => styled(DIM, &format!(" ({})", notes.join("; "))),
    };
    let _ = writeln!(out, "  {}: {said}{notes}", view::line(&ballot.from));
}

fn not_counted(out: &mut String, answer: &NotCountedReport, can_correct: bool) {
    let (from, why) = (view::line(&answer.from), view::line(&answer.why));
    let detail = match answer.detail.as_str() {
        "" => String::new(),
        detail => format!(", {}", view::line(detail)),
    };
    let label = styled(YELLOW, "not counted:");
    let _ = writeln!(out, "  {from}: {label} {why}{detail}");
    if can_correct && matches!(why.as_str(), "unreadable" | "other-parent") {
        let name = view::line(answer.message.as_ref().unwrap_or(&answer.digest));
        let advice = format!("    to count it: crosstalk poll count {name} --as …");
        let _ = writeln!(out, "{}", styled(DIM, &advice));
    }
}

/// Whether nothing more is waited for: it is closed, or counted up to its deadline.
fn is_over(poll: &PollReport) -> bool {
    let time = |text: &Option<String>| text.as_deref().and_then(Timestamp::parse);
    let times = time(&poll.at).zip(time(&poll.poll.deadline));
    poll.state.as_deref() == Some("closed") || times.is_some_and(|(at, end)| at >= end)
}
