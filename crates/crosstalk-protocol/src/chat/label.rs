//! The lines that say who speaks next.

use super::ChatFront;
use super::speaker::{Speaker, Word};
use crosstalk_envelope::Timestamp;
use std::ops::Range;

/// How a label is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `## User`
    Heading,
    /// `**User:**`
    Bold,
    /// `You said:`
    Said,
    /// `Human: …`
    Plain,
}

/// A line that says who speaks.
#[derive(Clone, Debug)]
pub(super) struct Label<'t> {
    pub(super) style: Style,
    /// How many `#`.
    pub(super) level: usize,
    word: Word,
    /// The name as it is written.
    written: &'t str,
    /// When, if the line says so.
    pub(super) at: Option<Timestamp>,
    /// Where the line stands.
    pub(super) line: Range<usize>,
    /// Where what is said begins.
    pub(super) after: usize,
}

impl Label<'_> {
    pub(super) fn is_person(&self) -> bool {
        self.word == Word::Person
    }

    pub(super) fn is_assistant(&self) -> bool {
        matches!(self.word, Word::Assistant | Word::Named(_))
    }

    pub(super) fn is_system(&self) -> bool {
        self.word == Word::System
    }

    /// Whether one exporter would write both: the same word, or two names of assistants.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let named = |l: &Self| matches!(l.word, Word::Named(_));
        (named(self) && named(other)) || self.written.eq_ignore_ascii_case(other.written)
    }

    pub(super) fn speaker(&self, front: &ChatFront) -> Speaker {
        match self.word {
            Word::Person => Speaker::Person,
            Word::System => Speaker::System,
            Word::Named(name) => Speaker::Assistant(name.into()),
            Word::Assistant => Speaker::Assistant(front.assistant.unwrap_or("ASSISTANT").into()),
        }
    }
}

/// Every line of a text that may be a label, outside code.
pub(super) fn labels(text: &str) -> Vec<Label<'_>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        lines.push((start, line));
        start += line.len();
    }
    let code = in_code(&lines);
    let outside = lines.iter().zip(code).filter(|(_, code)| !code);
    outside
        .filter_map(|((at, line), _)| label(*at, line))
        .collect()
}

/// For each line, whether it belongs to a code fence. A fence that nothing closes is none.
fn in_code(lines: &[(usize, &str)]) -> Vec<bool> {
    // The longest fence of each kind that closes something, from each line on.
    let mut closes = vec![(0, 0); lines.len() + 1];
    let mut longest = (0, 0);
    for ((_, line), slot) in lines.iter().zip(&mut closes).rev() {
        match fence(line) {
            Some(('`', run, true)) => longest.0 = run.max(longest.0),
            Some((_, run, true)) => longest.1 = run.max(longest.1),
            _ => {}
        }
        *slot = longest;
    }
    let mut open: Option<(char, usize)> = None;
    let mut code = Vec::with_capacity(lines.len());
    for (number, (_, line)) in lines.iter().enumerate() {
        let is_open = open.is_some();
        match (open, fence(line)) {
            (Some((mark, length)), Some((m, run, true))) if m == mark && run >= length => {
                open = None
            }
            (None, Some((mark, run, _))) => {
                let (ticks, waves) = closes.get(number + 1).copied().unwrap_or_default();
                let longest = if mark == '`' { ticks } else { waves };
                open = (longest >= run).then_some((mark, run));
            }
            _ => {}
        }
        code.push(is_open || open.is_some());
    }
    code
}

/// The fence that a line is: its character, how many of them, and whether it can close one.
fn fence(line: &str) -> Option<(char, usize, bool)> {
    let inner = line.trim_start_matches([' ', '>']);
    let mark = inner.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let run = inner.chars().take_while(|c| *c == mark).count();
    let rest = inner.trim_start_matches(mark);
    // Backticks behind backticks are code within a line.
    let is_inline = mark == '`' && rest.contains('`');
    (run >= 3 && !is_inline).then(|| (mark, run, rest.trim().is_empty()))
}

fn label(start: usize, line: &str) -> Option<Label<'_>> {
    let content = line.trim_end();
    let indent = content.len() - content.trim_start_matches(' ').len();
    let inner = content.trim_start_matches(' ');
    if indent > 3 || inner.is_empty() {
        return None;
    }
    let hashes = inner.chars().take_while(|c| *c == '#').count();
    let after_hashes = inner.trim_start_matches('#');
    let is_heading = (1..=6).contains(&hashes) && after_hashes.starts_with([' ', '\t']);
    let (level, rest) = if is_heading {
        (hashes, after_hashes)
    } else {
        (0, inner)
    };
    let (before, rest) = timed_before(rest.trim_start());
    let (bold, rest) = unmarked(rest);
    let name = rest.trim_start_matches(is_decoration);
    let lower = name
        .get(..name.char_indices().nth(64).map_or(name.len(), |(at, _)| at))?
        .to_lowercase();
    let (word, length) = Word::read(&lower)?;
    let end = name
        .char_indices()
        .nth(length)
        .map_or(name.len(), |(at, _)| at);
    let (written, tail) = name.split_at_checked(end)?;
    let base = start + (content.len() - tail.len());
    let make = |style, at, skipped: usize| Label {
        style,
        level,
        word,
        written,
        at: before.or(at),
        line: start..start + line.len(),
        after: base + skipped,
    };
    let said = tail
        .trim_start()
        .strip_prefix("said:")
        .map(|r| tail.len() - r.len());
    if let Some(skipped) = said {
        return Some(make(Style::Said, None, skipped));
    }
    if is_heading {
        return is_aside(tail).then(|| make(Style::Heading, time_in(tail), tail.len()));
    }
    if bold {
        return bold_tail(tail).map(|(at, skipped)| make(Style::Bold, at, skipped));
    }
    let said = tail.strip_prefix(':')?;
    // A name that is no label has its colon elsewhere: `user:pass`, `model://`.
    let is_label = said.is_empty() || said.starts_with([' ', '\t']);
    let capital = written.chars().next().is_some_and(char::is_uppercase) && indent == 0;
    (is_label && capital).then(|| make(Style::Plain, None, 1))
}

/// A time in brackets in front of a name, and the rest.
fn timed_before(text: &str) -> (Option<Timestamp>, &str) {
    let inner = text.strip_prefix(['[', '(']);
    let Some((time, rest)) = inner.and_then(|i| i.split_once([']', ')'])) else {
        return (None, text);
    };
    let is_time = time.contains(|c: char| c.is_ascii_digit()) && is_aside(&format!(" {time}"));
    if is_time {
        (time_in(time), rest.trim_start())
    } else {
        (None, text)
    }
}

/// Strips decoration and marks of bold from the start of a text; returns whether it is bold, and the rest.
fn unmarked(text: &str) -> (bool, &str) {
    let text = text.trim_start().trim_start_matches(is_decoration);
    let marks = ["**", "__", "_**", "*__"];
    let inner = marks.iter().find_map(|m| text.strip_prefix(m));
    match inner {
        Some(inner) => (true, inner.trim_start_matches(['*', '_'])),
        None => (false, text),
    }
}

/// What follows a name in bold: a colon, the end of the bold, perhaps a time; then what is said.
fn bold_tail(tail: &str) -> Option<(Option<Timestamp>, usize)> {
    let (inside, outside) = tail.split_once("**").or_else(|| tail.split_once("__"))?;
    let outside = outside.trim_start_matches(['*', '_']);
    let has_colon = inside.trim_end().ends_with(':');
    if !is_aside(inside) {
        return None;
    }
    let at = time_in(inside);
    if has_colon {
        return Some((at, tail.len() - outside.len()));
    }
    if let Some(said) = outside.trim_start().strip_prefix(':') {
        return Some((at, tail.len() - said.len()));
    }
    is_aside(outside).then(|| (at.or_else(|| time_in(outside)), tail.len()))
}

/// Emoji, bullets and the like, which stand around names.
fn is_decoration(c: char) -> bool {
    let is_symbol = !c.is_ascii() && !c.is_alphanumeric();
    is_symbol || matches!(c, ' ' | '\t' | '[' | '(' | '<')
}

/// Words that occur in dates and times beside digits; months and days by their first three letters or whole.
const TIME_WORDS: [&str; 13] = [
    "am", "pm", "utc", "gmt", "cet", "cest", "est", "edt", "pst", "pdt", "at", "on", "sept",
];
const MONTHS_AND_DAYS: [&str; 19] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Whether what follows a name adds nothing to it but a time or decoration.
fn is_aside(tail: &str) -> bool {
    let lower = without_tags(tail).to_lowercase();
    if lower.chars().count() > 80 || lower.starts_with(|c: char| c.is_alphanumeric()) {
        return false;
    }
    let has_digit = lower.chars().any(|c| c.is_ascii_digit());
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty());
    words.all(|word| is_time_word(word, has_digit))
}

/// A text without tags of HTML, such as those of `<time …>`.
fn without_tags(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        let Some((_, after)) = tag.split_once('>') else {
            break;
        };
        out.push_str(before);
        out.push(' ');
        rest = after;
    }
    out.push_str(rest);
    out
}

fn is_time_word(word: &str, beside_digits: bool) -> bool {
    if matches!(word, "today" | "yesterday" | "edited") {
        return true;
    }
    let letters = word.trim_matches(|c: char| c.is_ascii_digit());
    let has_own = letters.len() < word.len();
    // `9th`, `2025-10-09T16`, `00Z`
    let joined = has_own && matches!(letters, "st" | "nd" | "rd" | "th" | "t" | "z");
    let named = |full: &&str| letters == *full || (letters.len() == 3 && full.starts_with(letters));
    let known = TIME_WORDS.contains(&letters) || MONTHS_AND_DAYS.iter().any(named);
    letters.is_empty() || joined || (known && beside_digits)
}

/// The time in a text, if it is written as a date that can't be mistaken; without a zone it is UTC.
pub(super) fn time_in(text: &str) -> Option<Timestamp> {
    let is_start = |(at, _): &(usize, char)| {
        let piece = text.get(*at..).unwrap_or("");
        let date: Vec<u8> = piece.bytes().take(10).collect();
        matches!(
            date.as_slice(),
            [
                b'0'..=b'9',
                b'0'..=b'9',
                b'0'..=b'9',
                b'0'..=b'9',
                b'-',
                _,
                _,
                b'-',
                _,
                _
            ]
        )
    };
    let (start, _) = text.char_indices().find(is_start)?;
    let piece = text.get(start..)?;
    let is_time =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | '.' | '+' | 'T' | 'Z' | ' ' | ',');
    let length = piece.find(|c| !is_time(c)).unwrap_or(piece.len());
    let written = piece.get(..length)?.replace(", ", " ");
    let written = written
        .trim_end_matches([' ', '.', ',', '-', ':'])
        .replace("  ", " ");
    let spaced = written.replacen(" +", "+", 1);
    let candidates = [
        spaced.replace(" Z", "Z"),
        format!("{spaced}Z"),
        written.get(..10).unwrap_or("").to_owned(),
    ];
    candidates.iter().find_map(|c| Timestamp::parse(c))
}

/// Splits a leading line that holds only a time off the text of a turn; returns the rest and that time.
pub(super) fn timed(said: &str) -> (&str, Option<Timestamp>) {
    let rest = said.trim_start_matches(['\r', '\n']);
    let (first, tail) = rest.split_once('\n').unwrap_or((rest, ""));
    let line = first.trim().trim_matches(['*', '_', '(', ')', '[', ']']);
    let digits = line.chars().filter(char::is_ascii_digit).count();
    let is_time =
        digits >= 6 && line.contains(['-', '/', '.', ':']) && is_aside(&format!(" {line}"));
    if is_time && !tail.trim().is_empty() {
        (tail, time_in(line))
    } else {
        (said, None)
    }
}
