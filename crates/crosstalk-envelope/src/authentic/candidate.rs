//! Forms that a head and a body may have had before a chat or a mail program changed them (SIG-013, SIG-014).
//!
//! A candidate proves nothing: the signature judges heads, the authenticated digest judges bodies.

use crate::document::Document;
use crate::meta::{Integrity, MAX_MARKS, mark};
use crate::paste::clean;
use crate::registry::rule;
use std::borrow::Cow;

/// How many repaired heads are tried.
const HEADS: usize = 16;

type BodyLines<'l> = Vec<Cow<'l, str>>;
type Repair = fn(&str) -> Cow<'_, str>;

/// Repairs of characters, one after the other and together.
const REPAIRS: [Repair; 11] = [
    clean::with_plain_spaces,
    clean::without_zero_width,
    clean::without_entities,
    clean::cleaned,
    |text| ascii(text, "-", "-"),
    |text| ascii(text, "-", "--"),
    |text| ascii(text, "--", "---"),
    |text| both(text, "-", "-"),
    |text| both(text, "-", "--"),
    |text| leading_tabs(text, 4),
    |text| leading_tabs(text, 8),
];

/// Other forms of the canonical head, none of them twice.
pub(super) fn heads<'a>(
    document: &'a Document<'_>,
    canonical: &'a str,
) -> impl Iterator<Item = String> + use<'a> {
    let mut seen: Vec<String> = vec![canonical.to_owned()];
    let unwrapped = unwrapped(document, canonical);
    let repaired = REPAIRS.iter().map(move |repair| {
        let lines: Vec<Cow<'_, str>> = canonical.split('\n').map(repair).collect();
        lines.join("\n")
    });
    unwrapped
        .into_iter()
        .chain(repaired)
        .filter(move |head| {
            let is_new = !seen.contains(head);
            if is_new {
                seen.push(head.clone());
            }
            is_new
        })
        .take(HEADS)
}

/// Wrapped values were joined with a space: without it, all of them, then one at a time.
fn unwrapped(document: &Document<'_>, canonical: &str) -> Vec<String> {
    let start = document.span().start;
    let wrapped = document
        .diagnostics()
        .iter()
        .filter(|d| *d.rule == rule::WRAPPED);
    let rests: Vec<&str> = wrapped
        .filter_map(|d| {
            let place = d.span.start.checked_sub(start)?..d.span.end.checked_sub(start)?;
            Some(document.source().get(place)?.trim())
        })
        .filter(|rest| !rest.is_empty())
        .collect();
    let without = |text: String, rest: &str| text.replacen(&format!(" {rest}"), rest, 1);
    let all = rests
        .iter()
        .fold(canonical.to_owned(), |text, rest| without(text, rest));
    let single = rests
        .iter()
        .take(4)
        .map(|rest| without(canonical.to_owned(), rest));
    std::iter::once(all).chain(single).collect()
}

/// A form that the body may have had.
pub(super) struct BodyCandidate<'l> {
    pub(super) lines: BodyLines<'l>,
    /// Its words are those of a form before it.
    pub(super) same_words: bool,
}

/// Other forms of the body, the received one first.
pub(super) fn bodies<'l>(
    lines: &'l [&'l str],
    declared: &'l Integrity,
) -> impl Iterator<Item = BodyCandidate<'l>> {
    let form = |lines, same_words| BodyCandidate { lines, same_words };
    let shifts = shifts(lines);
    // In a body of very many lines, each way costs as much as all the rest.
    let combined = if lines.len() <= MAX_MARKS {
        REPAIRS.len()
    } else {
        0
    };
    let received = lines
        .iter()
        .map(|l| Cow::Borrowed(*l))
        .collect::<BodyLines<'l>>();
    let repaired = |repair: &Repair| {
        let lines: BodyLines<'l> = lines.iter().map(|l| repair(l)).collect();
        let changed = lines.iter().any(|l| matches!(l, Cow::Owned(_)));
        changed.then_some(lines)
    };
    let shifted = shifts.clone().into_iter().map(move |shift| {
        lines
            .iter()
            .map(|l| shift.apply(l))
            .collect::<BodyLines<'l>>()
    });
    let both = REPAIRS
        .iter()
        .take(combined)
        .filter_map(repaired)
        .flat_map(move |lines| {
            shifts.clone().into_iter().map(move |shift| {
                let shifted = lines
                    .iter()
                    .map(|l| Cow::Owned(shift.apply(l).into_owned()));
                shifted.collect::<BodyLines<'l>>()
            })
        });
    std::iter::once(form(received, false))
        .chain(
            REPAIRS
                .iter()
                .filter_map(repaired)
                .map(move |l| form(l, false)),
        )
        .chain(shifted.chain(both).map(move |l| form(l, true)))
        .chain(by_marks(lines, declared, shifts_of_one()).map(|l| form(l, false)))
}

/// Each line in the form that has its mark, if every line has one.
fn by_marks<'l>(
    lines: &[&'l str],
    declared: &Integrity,
    shifts: Vec<Shift>,
) -> Option<BodyLines<'l>> {
    let marks = declared.marks.as_ref().filter(|m| m.len() == lines.len())?;
    let fitting = |(line, wanted): (&&'l str, &[u8; 2])| {
        let line: &'l str = line;
        let fits = |l: &Cow<'_, str>| mark(l) == *wanted;
        let forms = std::iter::once(Cow::Borrowed(line)).chain(REPAIRS.iter().map(|r| r(line)));
        forms
            .flat_map(|form| {
                let shifted: Vec<Cow<'l, str>> = shifts
                    .iter()
                    .map(|s| Cow::Owned(s.apply(&form).into_owned()))
                    .collect();
                std::iter::once(form).chain(shifted)
            })
            .find(fits)
    };
    lines.iter().zip(marks).map(fitting).collect()
}

/// A move of all lines to the left or to the right.
#[derive(Clone, Copy)]
enum Shift {
    Left(usize),
    Right(&'static str),
}

impl Shift {
    fn apply<'l>(self, line: &'l str) -> Cow<'l, str> {
        match self {
            Self::Left(width) => line.get(width..).unwrap_or("").into(),
            Self::Right(_) if line.is_empty() => line.into(),
            Self::Right(indent) => format!("{indent}{line}").into(),
        }
    }
}

/// To the least indent, and to the right by what an indent usually is.
fn shifts(lines: &[&str]) -> Vec<Shift> {
    let indent = |l: &&str| l.len() - l.trim_start_matches([' ', '\t']).len();
    let filled = lines.iter().filter(|l| !l.is_empty());
    let least = filled.map(indent).min().unwrap_or(0);
    let left = (least > 0).then_some(Shift::Left(least));
    left.into_iter()
        .chain([Shift::Right("  "), Shift::Right("    "), Shift::Right("\t")])
        .collect()
}

/// The moves of a single line.
fn shifts_of_one() -> Vec<Shift> {
    vec![
        Shift::Right(" "),
        Shift::Right("  "),
        Shift::Right("    "),
        Shift::Right("\t"),
    ]
}

/// Typographic quotes, dashes and dots as ASCII.
fn ascii<'t>(text: &'t str, en: &str, em: &str) -> Cow<'t, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{2018}'..='\u{201b}' | '\u{2032}' => out.push('\''),
            '\u{201c}'..='\u{201f}' | '\u{2033}' => out.push('"'),
            '\u{2010}'..='\u{2012}' | '\u{2212}' => out.push('-'),
            '\u{2013}' => out.push_str(en),
            '\u{2014}' | '\u{2015}' => out.push_str(em),
            '\u{2026}' => out.push_str("..."),
            _ => out.push(c),
        }
    }
    if out == text { text.into() } else { out.into() }
}

/// Cleaned, then as ASCII.
fn both<'t>(text: &'t str, en: &str, em: &str) -> Cow<'t, str> {
    match clean::cleaned(text) {
        Cow::Borrowed(text) => ascii(text, en, em),
        Cow::Owned(text) => Cow::Owned(ascii(&text, en, em).into_owned()),
    }
}

/// Spaces at the start of a line as the tabs that they may have been.
fn leading_tabs(text: &str, width: usize) -> Cow<'_, str> {
    let spaces = text.len() - text.trim_start_matches(' ').len();
    let tabs = spaces / width;
    match text.get(tabs * width..) {
        Some(rest) if tabs > 0 => ("\t".repeat(tabs) + rest).into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_chat_are_undone() {
        assert_eq!(
            ascii("“don’t” – or — …", "-", "--"),
            "\"don't\" - or -- ..."
        );
        assert_eq!(leading_tabs("         x", 4), "\t\t x");
        assert!(matches!(ascii("plain é", "-", "-"), Cow::Borrowed(_)));
    }

    #[test]
    fn bodies_are_few() {
        let lines = ["  “one”", "\u{a0} two &amp; three\u{200b}"];
        let declared = Integrity::measure(["other"]);
        assert!(bodies(&lines, &declared).count() <= 64);
    }
}
