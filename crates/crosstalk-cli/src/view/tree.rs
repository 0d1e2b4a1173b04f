//! A thread as a tree: each message below the one that it answers. A question to several parties is shown once,
//! with all their answers below it.

use super::message::{CUT_OFF, announce_text, badge, lines, warning};
use super::{Look, intent, names, parties, party, sides, time_of};
use crate::clock::age;
use crate::console::{BOLD, DIM, YELLOW, styled};
use crate::paragraph::count;
use crate::screen::{cells, clip_cells};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::store::{Record, Thread, Wait, rounds};
use std::collections::HashMap;

/// Deeper answers stand below each other.
const DEEPEST: usize = 12;
/// The lines of a text that are shown unless all are asked for.
const LINES: usize = 6;

/// A thread, rendered with styles. `short` gives the short form of an id.
pub(crate) fn tree(
    thread: &Thread,
    records: &[Record],
    short: impl Fn(&str) -> String,
    look: &Look,
) -> String {
    let mut out = head(thread, &short(&thread.id), look);
    for (asked, depth) in order(records) {
        out.push('\n');
        let indent = 2 * depth.min(DEEPEST);
        node(&mut out, &asked, &short, indent, look);
    }
    out
}

/// The messages before a message, each with as much of its text as a tree shows.
pub(crate) fn before(earlier: &[Record], short: impl Fn(&str) -> String, look: &Look) -> String {
    let mut out = String::new();
    for record in earlier {
        out.push('\n');
        node(&mut out, &[record], &short, 0, look);
    }
    out
}

fn head(thread: &Thread, id: &str, look: &Look) -> String {
    let title = escape(thread.context.as_deref().unwrap_or("(no context)")).into_owned();
    let right = format!("thread {id}");
    let mut out = sides(
        (&styled(BOLD, &title), cells(&title)),
        (&styled(DIM, &right), cells(&right)),
        look.width,
    );
    let names: Vec<String> = thread.people().into_iter().map(party).collect();
    let number = usize::try_from(thread.messages).unwrap_or(usize::MAX);
    let facts = format!(
        "{} · {} · {}",
        count(number, "message"),
        names.join(", "),
        super::list::state(thread)
    );
    out.push_str(&format!("{}\n", clip_cells(&facts, look.width.max(40))));
    out.push_str(&format!("{}\n", styled(DIM, &"─".repeat(look.width))));
    out
}

/// The messages in the order of the tree, each with its depth; those that put one question to several together. A
/// message whose parent is unknown is at the top, and so are answers that form a circle.
fn order(records: &[Record]) -> Vec<(Vec<&Record>, usize)> {
    // The position of a message is that of the first one of its round.
    let mut stands: Vec<usize> = (0..records.len()).collect();
    let mut together: HashMap<usize, Vec<usize>> = HashMap::new();
    for round in rounds(records) {
        let Some(first) = round.first().copied() else {
            continue;
        };
        for place in &round {
            if let Some(stands) = stands.get_mut(*place) {
                *stands = first;
            }
        }
        together.insert(first, round);
    }
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (record, stands) in records.iter().zip(&stands) {
        places.entry(&record.id).or_insert(*stands);
    }
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut roots = Vec::new();
    for (place, record) in records.iter().enumerate() {
        if stands.get(place) != Some(&place) {
            continue;
        }
        let parent = record.parent.as_deref().and_then(|p| places.get(p));
        match parent {
            Some(parent) if *parent != place => children.entry(*parent).or_default().push(place),
            _ => roots.push(place),
        }
    }
    let mut seen: Vec<bool> = stands.iter().enumerate().map(|(p, s)| p != *s).collect();
    let mut out = Vec::with_capacity(records.len());
    let rest = 0..records.len();
    for root in roots.into_iter().chain(rest) {
        let mut stack = vec![(root, 0)];
        while let Some((place, depth)) = stack.pop() {
            let Some(seen) = seen.get_mut(place).filter(|s| !**s) else {
                continue;
            };
            *seen = true;
            let alone = [place];
            let asked = together.get(&place).map_or(&alone[..], Vec::as_slice);
            let asked = asked.iter().filter_map(|p| records.get(*p));
            out.push((asked.collect(), depth));
            let below = children.get(&place).into_iter().flatten();
            stack.extend(below.rev().map(|c| (*c, depth + 1)));
        }
    }
    out
}

/// A message, or several that put one question to a receiver each.
fn node(
    out: &mut String,
    asked: &[&Record],
    short: &impl Fn(&str) -> String,
    indent: usize,
    look: &Look,
) {
    let [record, others @ ..] = asked else {
        return;
    };
    let id = &short(&record.id);
    let document = record.document();
    let (intent, color) = intent(record, &document);
    let others_shown = others
        .iter()
        .map(|other| format!(", {}", party(&other.receiver)));
    let who = others_shown.fold(parties(record), |who, other| who + &other);
    let (pad, mark) = (" ".repeat(indent), if indent == 0 { "" } else { "└ " });
    let left = format!(
        "{pad}{}{}  {}",
        styled(DIM, mark),
        styled(BOLD, &who),
        styled(color, &intent)
    );
    let used = indent + cells(mark) + cells(&who) + 2 + cells(&intent);
    let (badge, plain) = badge(record);
    let more = match others.len() {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    let tail = format!("· {} · {id}{more}", age(time_of(record), look.now));
    let right = format!("{badge} {}", styled(DIM, &tail));
    let width = cells(&plain) + 1 + cells(&tail);
    out.push_str(&sides((&left, used), (&right, width), look.width));
    let indent = indent + cells(mark);
    let pad = " ".repeat(indent);
    for other in others {
        let line = format!("{pad}{} to {}", short(&other.id), party(&other.receiver));
        out.push_str(&format!(
            "{}\n",
            styled(DIM, &clip_cells(&line, look.width))
        ));
    }
    if !announce_text(out, record, &pad) {
        return;
    }
    if let Some(warning) = warning(&document)
        && !look.unfold
    {
        let word = styled(YELLOW, "Content warning:");
        out.push_str(&format!("{pad}{word} {}", escape(&warning)));
        out.push_str(&format!(
            "{}\n",
            styled(DIM, " (folded; --unfold shows it)")
        ));
        return;
    }
    let most = if look.full { usize::MAX } else { LINES };
    let rest = lines(out, &document, look, most, indent);
    if rest > 0 {
        let more = format!("{pad}… {}; crosstalk show {id}\n", count(rest, "more line"));
        out.push_str(&styled(DIM, &more));
    }
    let silent = asked.iter().filter(|r| r.wait == Wait::Them);
    let silent: Vec<&str> = silent.map(|r| r.receiver.as_str()).collect();
    if !others.is_empty() && !silent.is_empty() {
        let line = format!("{pad}no answer yet from {}", names(&silent));
        out.push_str(&format!(
            "{}\n",
            styled(DIM, &clip_cells(&line, look.width))
        ));
    }
    if record.truncated {
        out.push_str(&format!("{pad}{}\n", styled(YELLOW, CUT_OFF)));
    }
}
