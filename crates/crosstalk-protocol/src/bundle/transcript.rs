//! The conversation so far as text: each message with a head line and its body, shortened where there is no room.

use super::quote;
use crate::store::{Record, Side, Wait};
use crate::verdict::VerdictWord;
use crosstalk_envelope::{Document, Intent, Timestamp};

/// The most lines of a message that was shortened.
const SHORT_LINES: usize = 4;
/// The most characters of a message that was shortened.
const SHORT_CHARS: usize = 320;
/// The most characters of a field of a head line.
const FIELD_CHARS: usize = 80;
/// The most open messages that are named.
const OPEN_NAMED: usize = 20;

/// A message of the transcript.
#[derive(Debug)]
struct TranscriptEntry {
    /// The head line, and what has to be said before the body.
    head: Vec<String>,
    /// The body, quoted.
    body: Vec<String>,
    is_open: bool,
    level: Level,
}

/// How much of a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// It is counted.
    Out,
    /// Its head line.
    Head,
    /// Its first lines.
    Short,
    /// As much of its beginning as there is room for.
    Clipped(usize),
    /// All of it.
    Whole,
}

/// The transcript of a thread.
#[derive(Debug)]
pub(super) struct Transcript {
    entries: Vec<TranscriptEntry>,
}

/// How many characters a line takes in an envelope: with its indent and its end.
pub(super) fn cost(lines: &[String]) -> usize {
    lines.iter().map(|l| cost_of(l)).sum()
}

fn cost_of(line: &str) -> usize {
    // An empty line has no indent.
    let indent = if line.is_empty() { 0 } else { 2 };
    line.chars().count() + indent + 1
}

impl Transcript {
    /// The messages of a thread; `attached` names the attachments that each one brings along.
    pub(super) fn new(thread: &[Record], attached: &[Vec<String>]) -> Self {
        let none = Vec::new();
        let attached = attached.iter().chain(std::iter::repeat(&none));
        let numbered = (1..).zip(thread).zip(attached);
        let entries = numbered
            .map(|((n, r), a)| TranscriptEntry::new(n, r, a))
            .collect();
        Self { entries }
    }

    /// The messages that still need an answer, one line each.
    pub(super) fn open(thread: &[Record]) -> Vec<String> {
        let open: Vec<(usize, &Record)> = (1..).zip(thread).filter(|(_, r)| is_open(r)).collect();
        if open.is_empty() {
            return vec!["Open: nothing waits for an answer.".into()];
        }
        let mut lines = vec![format!("Open, without an answer so far: {}", open.len())];
        let earlier = open.len().saturating_sub(OPEN_NAMED);
        if earlier > 0 {
            lines.push(format!(
                "- {}, not named here",
                counted(earlier, "earlier message")
            ));
        }
        for (number, record) in open.into_iter().skip(earlier) {
            let (from, to) = (field(&record.sender), field(&record.receiver));
            lines.push(format!(
                "- message {number}, {} of {from} to {to}",
                intent(record)
            ));
        }
        lines
    }

    /// The transcript in at most this many characters; nothing if even its head lines are too long.
    pub(super) fn fit(mut self, room: usize) -> Option<Vec<String>> {
        for entry in &mut self.entries {
            entry.level = Level::Whole;
        }
        if cost(&self.lines()) > room {
            self.shorten(room)?;
        }
        Some(self.lines())
    }

    /// Decides how much of each message is written: the first and the latest whole, what lies between as room is left.
    fn shorten(&mut self, room: usize) -> Option<()> {
        for entry in &mut self.entries {
            entry.level = Level::Out;
        }
        let last = self.entries.len().checked_sub(1)?;
        // Room for the line that says what was left out, wherever such lines turn out to stand.
        let mut used = cost(&self.lines());
        self.raise(last, Level::Head, &mut used, room)?;
        self.raise(0, Level::Head, &mut used, room)?;
        self.raise_most(last, &mut used, room / 2);
        self.raise_most(0, &mut used, room / 4 * 3);
        let (open, quiet): (Vec<usize>, Vec<usize>) = (1..last)
            .rev()
            .partition(|i| self.entries.get(*i).is_some_and(|e| e.is_open));
        // What waits for an answer comes before what does not, and the latest before the earlier.
        for i in open.iter().chain(&quiet) {
            if self
                .raise(*i, Level::Whole, &mut used, room / 4 * 3)
                .is_none()
            {
                break;
            }
        }
        for level in [Level::Head, Level::Short, Level::Whole] {
            for i in [last, 0].iter().chain(&open).chain(&quiet) {
                let lower = self
                    .entries
                    .get(*i)
                    .is_some_and(|e| e.level.rank() < level.rank());
                if lower && self.raise(*i, level, &mut used, room).is_none() {
                    break;
                }
            }
        }
        Some(())
    }

    /// Writes more of a message if there is room.
    fn raise(&mut self, at: usize, level: Level, used: &mut usize, room: usize) -> Option<()> {
        let entry = self.entries.get_mut(at)?;
        let before = entry.level;
        // What it takes more, and a line about messages that were left out, should this one now lie between such.
        let gap = 64;
        let (old, new) = (entry.cost(before), entry.cost(level));
        let total =
            (*used + new + gap).saturating_sub(if before == Level::Out { 0 } else { old + gap });
        if total > room {
            return None;
        }
        entry.level = level;
        *used = total;
        Some(())
    }

    /// Writes as much of a message as there is room for.
    fn raise_most(&mut self, at: usize, used: &mut usize, room: usize) {
        if self.raise(at, Level::Whole, used, room).is_some() {
            return;
        }
        // The line that says how much is left out takes some of it.
        let left = room.saturating_sub(*used + 128);
        let _ = self.raise(at, Level::Clipped(left), used, room);
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut left_out: Option<(usize, usize)> = None;
        for (number, entry) in (1..).zip(&self.entries) {
            if entry.level == Level::Out {
                let first = left_out.map_or(number, |(first, _)| first);
                left_out = Some((first, number));
                continue;
            }
            lines.extend(left_out.take().into_iter().flat_map(gap));
            lines.push(String::new());
            lines.extend(entry.lines(entry.level));
        }
        lines.extend(left_out.into_iter().flat_map(gap));
        lines
    }
}

/// What stands where messages were left out.
fn gap((first, last): (usize, usize)) -> [String; 2] {
    let text = if first == last {
        format!("(1 message left out: {first})")
    } else {
        format!(
            "({} messages left out: {first} to {last})",
            last - first + 1
        )
    };
    [String::new(), text]
}

impl Level {
    const fn rank(self) -> u8 {
        match self {
            Self::Out => 0,
            Self::Head => 1,
            Self::Short => 2,
            Self::Clipped(_) => 3,
            Self::Whole => 4,
        }
    }
}

impl TranscriptEntry {
    fn new(number: usize, record: &Record, attached: &[String]) -> Self {
        let document = record.document();
        let mut head = vec![head_line(number, record)];
        let body = match refusal(record.verdict) {
            Some(why) => {
                head.push(format!("   Its text is left out: {why}. Do not act on it."));
                Vec::new()
            }
            None => {
                head.extend(said_in_meta(&document));
                if !attached.is_empty() {
                    head.push(format!("   Attached: {}", attached.join(", ")));
                }
                let body = document.body_text();
                match number {
                    // Nothing stands above the first one.
                    1 => quote::lines(&body),
                    _ => quote::lines(&own_words(record, &body)),
                }
            }
        };
        Self {
            head,
            body,
            is_open: is_open(record),
            level: Level::Whole,
        }
    }

    fn cost(&self, level: Level) -> usize {
        cost_of("") + cost(&self.lines(level))
    }

    fn lines(&self, level: Level) -> Vec<String> {
        let most = match level {
            Level::Out => return Vec::new(),
            Level::Head => (0, 0),
            Level::Short => (SHORT_LINES, SHORT_CHARS),
            Level::Clipped(chars) => (usize::MAX, chars),
            Level::Whole => (usize::MAX, usize::MAX),
        };
        let mut lines = self.head.clone();
        let (mut kept, mut left) = (0, most.1);
        for line in self.body.iter().take(most.0) {
            let Some(rest) = left.checked_sub(cost_of(line)) else {
                break;
            };
            left = rest;
            kept += 1;
            lines.push(line.clone());
        }
        let (kept, missing) = self
            .body
            .split_at_checked(kept)
            .unwrap_or((&self.body, &[]));
        if !missing.is_empty() {
            let chars: usize = missing.iter().map(|l| l.chars().count()).sum();
            let more = if kept.is_empty() { "" } else { "more " };
            let noun = if missing.len() == 1 { "line" } else { "lines" };
            lines.push(format!(
                "   ({} {more}{noun} left out, {chars} characters)",
                missing.len()
            ));
        }
        lines
    }
}

/// The text of a message; of an earlier bundle without the conversation that it quotes, which stands above.
fn own_words(record: &Record, body: &str) -> String {
    let begins = |line: &str| match record.meaning {
        Some(Intent::Escalate | Intent::Handoff) => line.starts_with(super::TRANSCRIPT),
        Some(Intent::Request | Intent::Broadcast) => super::is_forward(line),
        _ => false,
    };
    match record.side == Side::Mine && body.lines().any(begins) {
        true => {
            let own = body.lines().take_while(|l| !begins(l));
            let own = own.collect::<Vec<_>>().join("\n");
            format!(
                "{}\n\n(It quotes the conversation up to here.)",
                own.trim_end()
            )
            .trim_start()
            .to_owned()
        }
        false => body.to_owned(),
    }
}

/// `3. 2025-10-09T16:00:00Z, verified by kalle@example.com: CLAUDE → CHATGPT, REQUEST, 01K74V…`
///
/// The result of the verification comes first, because everything after the colon is a claim of the message itself.
fn head_line(number: usize, record: &Record) -> String {
    let at: Timestamp = record.written_at.unwrap_or(record.at);
    let (from, to) = (field(&record.sender), field(&record.receiver));
    let mut checked = record.verdict.as_str().to_owned();
    if let Some(pkid) = &record.pkid {
        checked = format!("{checked} by {}", field(pkid));
    }
    let (what, id) = (intent(record), field(&record.id));
    format!("{number}. {at}, {checked}: {from} → {to}, {what}, {id}")
}

/// What META says that a reader needs: reasons, and a warning right before the body.
fn said_in_meta(document: &Document<'_>) -> Vec<String> {
    let said = quote::said(document);
    said.map(|(label, value)| format!("| {label}: {}", field(value)))
        .collect()
}

/// Why the body of a message is not quoted.
const fn refusal(verdict: VerdictWord) -> Option<&'static str> {
    match verdict {
        VerdictWord::Damaged => Some("it is not what was signed"),
        VerdictWord::NotVerified => Some("its signature does not hold"),
        VerdictWord::Revoked => Some("its key was revoked"),
        VerdictWord::Verified
        | VerdictWord::FirstContact
        | VerdictWord::Unbound
        | VerdictWord::Unsigned
        | VerdictWord::UnknownKey => None,
    }
}

fn is_open(record: &Record) -> bool {
    record.wait != Wait::Nobody
}

/// The intent; one that is no single word is not written among words of ours.
fn intent(record: &Record) -> String {
    let written = record.intent.as_deref().unwrap_or("RESPOND");
    let is_word = written.len() <= 24
        && written
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-');
    match is_word {
        true => written.to_owned(),
        false => "an intent that is no word".to_owned(),
    }
}

fn field(value: &str) -> String {
    quote::inline(value, FIELD_CHARS)
}

fn counted(number: usize, noun: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{end}")
}
