//! A thread as a tree: each message below the one that it answers.

use super::message::{badge, caution, lines, warning};
use super::{Look, intent, parties, party, sides, time_of};
use crate::age::age;
use crate::console::{BOLD, DIM, RED, YELLOW, styled};
use crate::desk::why_gone;
use crate::paragraph::count;
use crate::screen::{cells, clip_cells};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::store::{Record, Thread};
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
    for (record, depth) in order(records) {
        out.push('\n');
        let indent = 2 * depth.min(DEEPEST);
        node(&mut out, record, &short(&record.id), indent, look);
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
    let names: Vec<String> = thread.parties.iter().map(|p| party(p)).collect();
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

/// The messages in the order of the tree, each with its depth. What answers nothing that is here stands at the top;
/// answers that go in a circle do, too.
fn order(records: &[Record]) -> Vec<(&Record, usize)> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, record) in records.iter().enumerate() {
        places.entry(&record.id).or_insert(place);
    }
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut roots = Vec::new();
    for (place, record) in records.iter().enumerate() {
        let parent = record.parent.as_deref().and_then(|p| places.get(p));
        match parent {
            Some(parent) if *parent != place => children.entry(*parent).or_default().push(place),
            _ => roots.push(place),
        }
    }
    let mut seen = vec![false; records.len()];
    let mut out = Vec::with_capacity(records.len());
    let rest = 0..records.len();
    for root in roots.into_iter().chain(rest) {
        let mut stack = vec![(root, 0)];
        while let Some((place, depth)) = stack.pop() {
            let Some(seen) = seen.get_mut(place).filter(|s| !**s) else {
                continue;
            };
            *seen = true;
            out.extend(records.get(place).map(|r| (r, depth)));
            let below = children.get(&place).into_iter().flatten();
            stack.extend(below.rev().map(|c| (*c, depth + 1)));
        }
    }
    out
}

fn node(out: &mut String, record: &Record, id: &str, indent: usize, look: &Look) {
    let document = record.document();
    let (intent, color) = intent(record, &document);
    let who = parties(record);
    let (pad, mark) = (" ".repeat(indent), if indent == 0 { "" } else { "└ " });
    let left = format!(
        "{pad}{}{}  {}",
        styled(DIM, mark),
        styled(BOLD, &who),
        styled(color, &intent)
    );
    let used = indent + cells(mark) + cells(&who) + 2 + cells(&intent);
    let (badge, plain) = badge(record);
    let tail = format!("· {} · {id}", age(time_of(record), look.now));
    let right = format!("{badge} {}", styled(DIM, &tail));
    let width = cells(&plain) + 1 + cells(&tail);
    out.push_str(&sides((&left, used), (&right, width), look.width));
    let indent = indent + cells(mark);
    let pad = " ".repeat(indent);
    if let Some(sentence) = caution(record.verdict) {
        out.push_str(&format!("{pad}{}\n", styled(RED, sentence)));
    }
    if let Some(why) = why_gone(record) {
        let why = format!("The text is not here any more: {why}.");
        out.push_str(&format!("{pad}{}\n", styled(YELLOW, &why)));
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
}
