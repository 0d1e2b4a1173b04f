//! Arrows in the direction line, besides `→` and `->` themselves (PST-007).

use std::ops::Range;

/// Whether a character is an arrow by itself.
const fn is_arrow(c: char) -> bool {
    matches!(c, '⇒' | '⟶' | '⟹' | '➔' | '➜' | '➝' | '➞' | '➡')
}

/// What stands between the two parties.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrow {
    /// No arrow at all.
    None,
    /// For the grammar to read, or to refuse.
    Plain,
    /// The only arrow, and another one than the grammar's.
    Other(Range<usize>),
}

/// The arrow between the parties of a direction line.
pub(super) fn find(parties: &str) -> Arrow {
    if parties.contains('→') {
        return Arrow::Plain;
    }
    let mut found = Arrow::None;
    let mut chars = parties.char_indices().peekable();
    let mut shaft: Option<usize> = None;
    while let Some((at, c)) = chars.next() {
        let start = match c {
            '-' | '=' | '–' | '—' => {
                shaft.get_or_insert(at);
                continue;
            }
            '>' => shaft.take(),
            _ if is_arrow(c) => Some(at),
            _ => None,
        };
        shaft = None;
        let Some(start) = start else { continue };
        let mut end = at + c.len_utf8();
        if let Some((at, selector)) = chars.next_if(|(_, c)| *c == '\u{fe0f}') {
            end = at + selector.len_utf8();
        }
        let is_plain = parties.get(start..end) == Some("->");
        found = match found {
            Arrow::None if !is_plain => Arrow::Other(start..end),
            _ => Arrow::Plain,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_arrow_is_found_once() {
        for arrow in [
            "=>",
            "-->",
            "==>",
            "–>",
            "—>",
            "⇒",
            "⟶",
            "⟹",
            "➔",
            "➜",
            "➝",
            "➞",
            "➡",
            "➡\u{fe0f}",
        ] {
            let parties = format!("A {arrow} B");
            assert_eq!(find(&parties), Arrow::Other(2..2 + arrow.len()), "{arrow}");
        }
        for parties in ["A→B", "A->B", "A=>B=>C", "A->B=>C", "A→B⇒C"] {
            assert_eq!(find(parties), Arrow::Plain, "{parties}");
        }
        for parties in ["A B", "A-B", "A > B", "", "A - > B"] {
            assert_eq!(find(parties), Arrow::None, "{parties}");
        }
    }
}
