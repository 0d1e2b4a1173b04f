//! The wrapping of pasted lines: quote marks, indents, line numbers, a box.
//!
//! Implements the prefixes of SCN-002, PST-002, PST-003, PST-023 and PST-024.

use super::clean::{self, is_nbsp, is_zero_width};
use std::borrow::Cow;

/// How the lines of a region are wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The prefix of each line but the first.
    prefix: Prefix,
    /// The right border of a box.
    border: Option<char>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Prefix {
    /// Nothing.
    None,
    /// Spaces, tabs and no-break spaces.
    Indent(String),
    /// Anything else that is the same in each line, such as `> `.
    Mark(String),
    /// A number that counts up, with what stands before and behind it.
    Number(String, u64, String),
    /// Several numbers, such as a time: what stands before, between and behind them.
    Stamp(Vec<String>),
}

/// A kind of wrapping that was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapping {
    Indent,
    Quote,
    Numbers,
    Box,
}

impl Frame {
    /// No wrapping at all.
    pub(super) const NONE: Self = Self {
        prefix: Prefix::None,
        border: None,
    };

    /// The frame of a region whose direction line begins with `before`, with `next` as its next line.
    pub(super) fn of(before: &str, direction: &str, next: &str) -> Self {
        // The byte order mark of a quoted file is in its first line only.
        let before = before.trim_end_matches(is_zero_width);
        let border = box_border(before)
            .filter(|b| [direction, next].iter().all(|l| l.trim_end().ends_with(*b)));
        let indent_of_next = indent(next);
        let number = numbered(before)
            .filter(|(lead, n, mark)| strip_number(next, lead, n + 1, mark).is_some());
        let stamp = stamp(before).filter(|pieces| strip_stamp(next, pieces).is_some());
        let prefix = if let Some((lead, number, mark)) = number {
            Prefix::Number(lead.to_owned(), number, mark.to_owned())
        } else if let Some(pieces) = stamp {
            Prefix::Stamp(pieces)
        } else if is_mark(before) && strip_mark(next, before).is_some() {
            Prefix::Mark(before.to_owned())
        } else if indent_of_next.is_empty() {
            Prefix::None
        } else {
            Prefix::Indent(indent_of_next.to_owned())
        };
        Self { prefix, border }
    }

    pub(super) fn is_trivial(&self) -> bool {
        self.prefix == Prefix::None && self.border.is_none()
    }

    /// Whether a line can fall out of the frame.
    pub(super) fn can_break(&self) -> bool {
        !matches!(self.prefix, Prefix::None | Prefix::Indent(_))
    }

    /// The prefix of each line. Of line numbers, only the text before them tells the depth.
    pub(super) fn prefix(&self) -> &str {
        match &self.prefix {
            Prefix::None | Prefix::Stamp(_) => "",
            Prefix::Indent(text) | Prefix::Mark(text) | Prefix::Number(text, ..) => text,
        }
    }

    /// Whether the prefix of the direction line is that of the other lines.
    pub(super) fn covers_direction(&self) -> bool {
        self.can_break()
    }

    pub(super) fn has_nbsp(&self) -> bool {
        self.prefix().contains(is_nbsp)
    }

    /// Everything that is removed from the lines.
    pub(super) fn wrappings(&self) -> impl Iterator<Item = Wrapping> {
        let prefix = match &self.prefix {
            Prefix::Mark(mark) if self.border.is_some() && box_border(mark).is_some() => {
                let is_quoted = mark.trim().chars().nth(1).is_some();
                is_quoted.then_some(Wrapping::Quote)
            }
            Prefix::None => None,
            Prefix::Indent(_) => Some(Wrapping::Indent),
            Prefix::Mark(_) => Some(Wrapping::Quote),
            Prefix::Number(..) | Prefix::Stamp(_) => Some(Wrapping::Numbers),
        };
        prefix.into_iter().chain(self.border.map(|_| Wrapping::Box))
    }

    /// Takes the wrapping off the lines below the direction line, one after the other.
    pub(super) fn unwrap_lines(&self) -> Unwrap<'_> {
        let number = match self.prefix {
            Prefix::Number(_, first, _) => first,
            _ => 0,
        };
        Unwrap {
            frame: self,
            number,
        }
    }
}

/// Takes the wrapping off line after line; line numbers are counted.
#[derive(Clone, Debug)]
pub(super) struct Unwrap<'f> {
    frame: &'f Frame,
    /// The number of the line before.
    number: u64,
}

impl Unwrap<'_> {
    /// The line without its wrapping and without control characters (then it is owned); nothing if it
    /// stands outside the frame.
    pub(super) fn line<'l>(&mut self, raw: &'l str) -> Option<Cow<'l, str>> {
        match clean::without_controls(raw) {
            Cow::Borrowed(line) => self.strip(line).map(Cow::Borrowed),
            Cow::Owned(line) => self.strip(&line).map(|l| Cow::Owned(l.to_owned())),
        }
    }

    fn strip<'l>(&mut self, line: &'l str) -> Option<&'l str> {
        let inner = match &self.frame.prefix {
            Prefix::None => line,
            Prefix::Indent(indent) => strip_indent(
                line.trim_start_matches(is_zero_width),
                indent.chars().count(),
            ),
            Prefix::Mark(mark) => strip_mark(line, mark)?,
            Prefix::Number(lead, _, mark) => {
                let (inner, counted) = strip_number(line, lead, self.number + 1, mark)?;
                self.number += u64::from(counted);
                inner
            }
            Prefix::Stamp(pieces) => strip_stamp(line, pieces)?,
        };
        let Some(border) = self.frame.border else {
            return Some(inner);
        };
        let open = inner.trim_end();
        Some(open.strip_suffix(border).unwrap_or(open).trim_end())
    }
}

const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t') || is_nbsp(c)
}

/// Whether a text can stand before every line of an envelope: it has no words.
fn is_mark(before: &str) -> bool {
    !before.chars().all(is_blank) && !before.chars().any(char::is_alphanumeric)
}

/// The white space in front of a line.
fn indent(line: &str) -> &str {
    let text = line.trim_start_matches(is_blank);
    line.get(..line.len() - text.len()).unwrap_or("")
}

/// At most `width` characters of white space less; a line that has lost some of its indent keeps the rest.
fn strip_indent(line: &str, width: usize) -> &str {
    let blanks = line.chars().take(width).take_while(|c| is_blank(*c));
    line.get(blanks.map(char::len_utf8).sum()..).unwrap_or("")
}

/// The line behind a mark such as `> `; a blank line may have lost the mark, or the spaces behind it.
fn strip_mark<'l>(line: &'l str, mark: &str) -> Option<&'l str> {
    let bare = mark.trim_end_matches(is_blank);
    if line.chars().all(is_blank) {
        return Some("");
    }
    let rest = line.trim_start_matches(is_zero_width).strip_prefix(bare)?;
    // A deeper mark, such as >> for >, is part of the line.
    let width = mark.chars().count() - bare.chars().count();
    Some(strip_indent(rest, width))
}

/// The number at the start of a line such as `12: ` or `> 3 | `, with what stands before and behind it.
fn numbered(before: &str) -> Option<(&str, u64, &str)> {
    let text = before.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mark = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text.get(..text.len() - mark.len())?.parse().ok()?;
    let lead = before.get(..before.len() - text.len())?;
    let is_mark = !mark.is_empty() && !mark.chars().any(char::is_alphanumeric);
    (number < u64::MAX && is_mark).then_some((lead, number, mark))
}

/// The line behind its number, which must be the expected one, and whether it has one: a blank line need not.
fn strip_number<'l>(line: &'l str, lead: &str, number: u64, mark: &str) -> Option<(&'l str, bool)> {
    let text = strip_mark(line, lead)?.trim_start_matches(is_blank);
    if text.is_empty() {
        return Some(("", false));
    }
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.get(..text.len() - rest.len())?;
    if digits.parse() != Ok(number) {
        return None;
    }
    strip_mark(rest, mark).map(|inner| (inner, true))
}

/// The signs around the numbers of a stamp such as `[12:01:33] `: there are two numbers at least, and no words.
fn stamp(before: &str) -> Option<Vec<String>> {
    let pieces: Vec<String> = before
        .split(|c: char| c.is_ascii_digit())
        .map(str::to_owned)
        .collect();
    let is_stamp = !before.chars().any(char::is_alphabetic);
    // Digits of one number have nothing between them.
    let (first, rest) = pieces.split_first()?;
    let (last, between) = rest.split_last()?;
    let mut kept = vec![first.clone()];
    kept.extend(between.iter().filter(|p| !p.is_empty()).cloned());
    kept.push(last.clone());
    (is_stamp && kept.len() >= 3 && !last.is_empty()).then_some(kept)
}

fn strip_stamp<'l>(line: &'l str, pieces: &[String]) -> Option<&'l str> {
    if line.chars().all(is_blank) {
        return Some("");
    }
    let (first, rest) = pieces.split_first()?;
    let mut text = strip_mark(line, first)?;
    for piece in rest {
        let number = text.trim_start_matches(is_blank);
        let behind = number.trim_start_matches(|c: char| c.is_ascii_digit());
        if behind.len() == number.len() {
            return None;
        }
        text = strip_mark(behind, piece)?;
    }
    Some(text)
}

/// The border of a box whose left side a text ends with.
fn box_border(before: &str) -> Option<char> {
    before
        .trim_end()
        .chars()
        .next_back()
        .filter(|c| matches!(c, '│' | '┃' | '║' | '|'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(frame: &Frame, line: &str) -> Option<String> {
        frame.unwrap_lines().line(line).map(Cow::into_owned)
    }

    #[test]
    fn each_wrapping_is_removed() {
        for (before, next, line, inner) in [
            ("> ", "> user: k", ">", ""),
            ("> ", "> user: k", ">   text", "  text"),
            (">", ">user: k", ">  text", "  text"),
            ("> > ", "> > user: k", "> >   text", "  text"),
            ("> ", ">\u{a0}user: k", ">\u{a0}  text", "  text"),
            (
                "+",
                "+user: k",
                "\u{1b}[32m+\u{1b}[m\u{1b}[32m  text\u{1b}[m",
                "  text",
            ),
            ("    ", "    user: k", "      text", "  text"),
            ("  1 | ", "  2 | user: k", "  2 |   text", "  text"),
            ("3:", "4:user: k", "4:  text", "  text"),
            ("9. ", "10. user: k", "10.   text", "  text"),
            ("     1\t", "     2\tuser: k", "     2\t  text", "  text"),
            (">   1: ", ">   2: user: k", ">   2:   text", "  text"),
            ("1: > ", "2: > user: k", "2: >   text", "  text"),
            (
                "[12:01:59] ",
                "[12:02:00] user: k",
                "[12:02:00]   text",
                "  text",
            ),
            (
                "  1:   1: ",
                "  2:   2: user: k",
                " 10:  10:   text",
                "  text",
            ),
            ("- ", "  user: k", "    text", "  text"),
            ("// ", "// user: k", "//   text", "  text"),
            ("", "user: k", "  text", "  text"),
        ] {
            let frame = Frame::of(before, "[[A→B v1]]", next);
            assert_eq!(strip(&frame, line).as_deref(), Some(inner), "{before:?}");
        }
        let frame = Frame::of("│ ", "│ [[A→B v1]]   │", "│ user: k      │");
        assert_eq!(strip(&frame, "│   text       │").as_deref(), Some("  text"));
        assert_eq!(frame.wrappings().collect::<Vec<_>>(), [Wrapping::Box]);
    }

    #[test]
    fn a_line_without_the_mark_is_outside() {
        let frame = Frame::of("> ", "> [[A→B v1]]", "> user: k");
        assert_eq!(strip(&frame, "My answer:"), None);
        assert_eq!(strip(&frame, "").as_deref(), Some(""));
    }

    #[test]
    fn line_numbers_count_up() {
        let frame = Frame::of("8 ", "8 [[A→B v1]]", "9 user: k");
        let mut lines = frame.unwrap_lines();
        for (line, inner) in [
            ("9 user: k", Some("user: k")),
            ("  ", Some("")),
            ("10", Some("")),
            ("12 lost", None),
        ] {
            assert_eq!(lines.line(line).as_deref(), inner, "{line}");
        }
    }
}
