//! Conversations for people: a message, a tree of them, lists of threads and messages.
//!
//! Everything from outside is escaped. On a terminal, lines are broken at its width, so that nothing in a body can
//! leave its place behind the bar.

mod compare;
mod list;
mod message;
mod poll;
mod tree;

pub(crate) use compare::{Compared, compare};
pub(crate) use list::{asked, messages, threads};
pub(crate) use message::message;
pub(crate) use poll::poll;
pub(crate) use tree::{before, tree};

use crate::console::{Console, DIM};
use crate::{clock, render, screen};
use anstyle::Style;
use crosstalk_envelope::id::IdForm;
use crosstalk_envelope::name::is_deceptive;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, Timestamp};
use crosstalk_protocol::relay::report::speaker;
use crosstalk_protocol::store::{Record, Search, StoreError, Way};
use crosstalk_store::SqliteStore;

/// How things are to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The columns that there are.
    pub(crate) width: usize,
    /// Whether long lines are broken: where the columns are known.
    pub(crate) breaks: bool,
    /// The time that ages are counted from.
    pub(crate) now: Timestamp,
    /// Whether texts with a content warning are shown.
    pub(crate) unfold: bool,
    /// Whether every header and every line is shown.
    pub(crate) full: bool,
}

impl Look {
    /// As the terminal is, or 80 columns without breaking lines.
    pub(crate) fn of(console: &Console) -> Self {
        let columns = console.columns();
        Self {
            width: columns.unwrap_or(80),
            breaks: columns.is_some(),
            now: clock::now(),
            unfold: false,
            full: false,
        }
    }

    /// One line of text, broken between words to fit behind `taken` columns.
    fn rows(&self, line: &str, taken: usize) -> Vec<String> {
        match self.breaks {
            true => screen::wrap_words(line, self.width.saturating_sub(taken).max(10)),
            false => vec![line.to_owned()],
        }
    }
}

/// Ids that take more room than this are none that a program makes.
const LONGEST: usize = 40;

/// The beginning of an id that is enough to name it, with nothing that a terminal would act on.
pub(crate) fn short(store: &SqliteStore, id: &str) -> Result<String, StoreError> {
    // The time to the millisecond: what is enough today still is tomorrow.
    let time = match IdForm::of(id) {
        IdForm::UuidV7 => 14,
        _ => 10,
    };
    let enough = store.shortest(id)?.max(time);
    let short: String = id.chars().take(enough).collect();
    Ok(screen::clip_cells(&escape(&short), LONGEST))
}

/// The intent of a message; of one without a text, as it was when it came.
fn intent(record: &Record, document: &Document<'_>) -> (String, Style) {
    match (record.text.is_empty(), &record.intent) {
        (true, Some(intent)) => (format!("[{}]", escape(intent)), DIM),
        _ => render::intent(&document.envelope()),
    }
}

/// The two sides of a message; of a poll, the voters. A name that looks like another one is marked.
pub(crate) fn parties(record: &Record) -> String {
    // A message that a relay handed out has the hop of that relay as its last.
    let own = usize::from(record.way == Way::Relayed);
    let sender = speaker(&record.sender, &record.text, own);
    let to: Vec<String> = record.recipients().iter().map(|to| party(to)).collect();
    format!("{} → {}", party(&sender), to.join(", "))
}

/// A name or an address, with a mark if its letters deceive.
pub(crate) fn party(name: &str) -> String {
    let shown = escape(name);
    match is_deceptive(name) {
        true => format!("{shown} (look-alike letters!)"),
        false => shown.into_owned(),
    }
}

/// Names in a sentence: `CHATGPT, CLAUDE and GEMINI`.
pub(crate) fn names<S: AsRef<str>>(names: &[S]) -> String {
    let shown: Vec<String> = names.iter().map(|n| party(&line(n.as_ref()))).collect();
    match shown.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// When a message is from: one of an archive by its own words, else when it came.
fn time_of(record: &Record) -> Timestamp {
    let told = record
        .written_at
        .filter(|t| t.as_millis() > 0 && *t <= record.at);
    match record.way {
        Way::Imported => told.unwrap_or(record.at),
        Way::Sent | Way::Pasted | Way::Filed | Way::Relayed => record.at,
    }
}

/// Left and right on one line; the right side below, if there is no room.
fn sides(left: (&str, usize), right: (&str, usize), width: usize) -> String {
    match width.saturating_sub(left.1 + right.1) {
        0 | 1 => {
            let pad = " ".repeat(width.saturating_sub(right.1));
            format!("{}\n{pad}{}\n", left.0, right.0)
        }
        free => format!("{}{}{}\n", left.0, " ".repeat(free), right.0),
    }
}

/// Shortens ids for showing; one that can't be looked up stays whole.
pub(crate) fn shortener(store: &SqliteStore) -> impl Fn(&str) -> String {
    |id| short(store, id).unwrap_or_else(|_| escape(id).into_owned())
}

/// A field that others wrote, on one line: what could begin another line is written as `\u{…}`, too.
pub(crate) fn line(text: &str) -> String {
    escape(text).replace('\n', "\\u{a}").replace('\t', "\\u{9}")
}

/// The first line of a text that says something, for one line of a list.
pub(crate) fn first_line(body: &str) -> String {
    let line = body.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
    escape(line.trim()).into_owned()
}

/// The text around the first word of a search that is in it, for one line of a list.
pub(crate) fn around(body: &str, search: &Search, width: usize) -> String {
    let flat: String = body.split_whitespace().collect::<Vec<_>>().join(" ");
    let low = flat.to_lowercase();
    let words = search.terms.iter().flat_map(|t| &t.words);
    let found = words.filter_map(|w| low.find(&w.to_lowercase())).min();
    // Lower case may be longer: count characters, not bytes.
    let before = found
        .and_then(|at| low.get(..at))
        .map_or(0, |t| t.chars().count());
    let skip = before.saturating_sub(width / 4);
    let text: String = flat.chars().skip(skip).take(width * 2).collect();
    let dots = if skip > 0 { "…" } else { "" };
    format!("{dots}{}", escape(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_in_a_sentence() {
        assert_eq!(names::<&str>(&[]), "");
        assert_eq!(names(&["CHATGPT"]), "CHATGPT");
        assert_eq!(names(&["CHATGPT", "CLAUDE"]), "CHATGPT and CLAUDE");
        let three = ["CHATGPT", "CLAUDE", "a\nb"];
        assert_eq!(names(&three), "CHATGPT, CLAUDE and a\\u{a}b");
    }

    #[test]
    fn a_field_stays_on_its_line() {
        let faked = line("01K\nacknowledged\tto KALLE\u{1b}[2J");
        assert_eq!(faked, "01K\\u{a}acknowledged\\u{9}to KALLE\\u{1b}[2J");
    }
}
