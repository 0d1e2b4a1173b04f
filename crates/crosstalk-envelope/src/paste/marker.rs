//! The two markers of an envelope in every spelling that chats produce: the direction line and `[[END]]`.

use crate::text::trim;
use std::borrow::Cow;
use std::ops::Range;

/// What may stand around a marker or a name and means nothing: Markdown emphasis and code.
pub(super) const NOISE: [char; 4] = ['*', '_', '`', '~'];

/// Arrows that mean `→`, besides `→` and `->` themselves. Longer ones first.
const ARROWS: [&str; 16] = [
    "&#8594;",
    "&rarr;",
    "-&gt;",
    "=&gt;",
    "➡\u{fe0f}",
    "➡",
    "⇒",
    "⟶",
    "⟹",
    "➜",
    "➔",
    "➝",
    "–>",
    "—>",
    "=>",
    "⭢",
];

/// The spellings of the brackets: opening, closing.
const BRACKETS: [(&str, &str); 3] = [("[[", "]]"), ("\\[\\[", "\\]\\]"), ("［［", "］］")];

/// A direction marker in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirectionMarker {
    /// Where it stands in the line, brackets included.
    pub(super) span: Range<usize>,
    /// The line as the grammar wants it: `[[S→R v1]]`.
    pub(super) written: String,
    /// It had another arrow than `→` or `->`.
    pub(super) other_arrow: bool,
    /// It had other brackets, or another case of the version.
    pub(super) other_spelling: bool,
    /// Backslashes or entities show that the whole text was escaped.
    pub(super) escaped: bool,
}

/// The first direction marker in a line.
pub(super) fn direction_in(line: &str) -> Option<DirectionMarker> {
    BRACKETS.iter().find_map(|(open, close)| {
        let mut from = 0;
        for (at, _) in line.match_indices(close) {
            let before = line.get(from..at)?;
            if let Some(start) = before.rfind(open)
                && let Some(inner) = before.get(start + open.len()..)
                && let Some(mut marker) = read_inner(inner, *open != "[[")
            {
                marker.span = from + start..at + close.len();
                marker.other_spelling |= *open != "[[";
                marker.escaped |= *open == "\\[\\[";
                return Some(marker);
            }
            from = at + close.len();
        }
        None
    })
}

/// `S arrow R version` between the brackets.
fn read_inner(inner: &str, escaped: bool) -> Option<DirectionMarker> {
    // Longer than any line that the grammar takes: no marker.
    if inner.len() > crate::limit::LINE_BYTES {
        return None;
    }
    let inner = super::clean::head_line(inner, escaped).text;
    let body = trim(&inner);
    let (parties, version) = body.rsplit_once([' ', '\t'])?;
    let lower = version.to_ascii_lowercase();
    if !crate::grammar::looks_like_version(&lower) {
        return None;
    }
    let parties_escaped = parties.contains("&gt;") || parties.contains("&rarr;");
    let (parties, other_arrow) = unify_arrow(trim(parties))?;
    Some(DirectionMarker {
        span: 0..0,
        written: format!("[[{parties} {lower}]]"),
        other_arrow,
        other_spelling: lower != version,
        escaped: parties_escaped,
    })
}

/// The parties with `→` between them, if there is an arrow at all.
fn unify_arrow(parties: &str) -> Option<(Cow<'_, str>, bool)> {
    if crate::grammar::arrow_in(parties).is_some() {
        return Some((parties.into(), false));
    }
    let (at, arrow) = ARROWS
        .iter()
        .filter_map(|arrow| Some((parties.find(arrow)?, *arrow)))
        .min_by_key(|(at, arrow)| (*at, usize::MAX - arrow.len()))?;
    let (left, right) = (parties.get(..at)?, parties.get(at + arrow.len()..)?);
    Some((format!("{}→{}", trim(left), trim(right)).into(), true))
}

/// Whether a line is `[[END]]`, and if so, whether it is spelled exactly so.
pub(super) fn end_line(content: &str) -> Option<bool> {
    let trimmed = content.trim_end_matches([' ', '\t', '\r']);
    if trimmed == crate::grammar::END {
        return Some(true);
    }
    if trimmed.len() > 64 || trimmed.starts_with([' ', '\t']) {
        return None;
    }
    let bare = trim(trimmed.trim_matches(NOISE));
    (end_at(bare)? == (0..bare.len())).then_some(false)
}

/// Where the first `[[END]]` in any spelling stands in a text.
pub(super) fn end_at(text: &str) -> Option<Range<usize>> {
    let place = |(open, close): &(&str, &str)| {
        let mut from = 0;
        for (at, _) in text.match_indices(close) {
            let before = text.get(from..at)?;
            if let Some(start) = before.rfind(open)
                && before
                    .get(start + open.len()..)
                    .is_some_and(|w| w.trim().eq_ignore_ascii_case("end"))
            {
                return Some(from + start..at + close.len());
            }
            from = at + close.len();
        }
        None
    };
    BRACKETS.iter().filter_map(place).min_by_key(|r| r.start)
}

/// Whether a text has anything that could be a marker: a cheap look before a close one.
pub(super) fn next_close(text: &str, from: usize, escaped: bool) -> Option<usize> {
    let rest = text.get(from..)?.as_bytes();
    let plain = memchr::memmem::find(rest, b"]]");
    if !escaped {
        return plain.map(|i| from + i);
    }
    let others = BRACKETS
        .iter()
        .skip(1)
        .filter_map(|(_, close)| memchr::memmem::find(rest, close.as_bytes()));
    others.chain(plain).min().map(|i| from + i)
}

/// Whether a text has brackets in another spelling anywhere.
pub(super) fn has_escaped_brackets(text: &str) -> bool {
    BRACKETS
        .iter()
        .skip(1)
        .any(|(_, close)| memchr::memmem::find(text.as_bytes(), close.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_in_many_spellings() {
        for (line, written) in [
            ("[[A→B v1]]", "[[A→B v1]]"),
            ("[[A=>B v1]]", "[[A→B v1]]"),
            ("**[[ A ⇒ B V1 ]]**", "[[A→B v1]]"),
            ("\\[\\[A→B v1\\]\\]", "[[A→B v1]]"),
            ("see [[wiki]] and [[A-&gt;B v1]]", "[[A→B v1]]"),
            ("［［A→B v1］］", "[[A→B v1]]"),
            (
                "[[claude://session/a –> B v2]]",
                "[[claude://session/a→B v2]]",
            ),
        ] {
            assert_eq!(direction_in(line).unwrap().written, written, "{line}");
        }
        for line in [
            "[[A→B]]",
            "[[wiki link]]",
            "[A→B v1]",
            "[[A B v1]]",
            "[[END]]",
        ] {
            assert_eq!(direction_in(line), None, "{line}");
        }
    }

    #[test]
    fn ends_in_many_spellings() {
        assert_eq!(end_line("[[END]]  "), Some(true));
        for line in [
            "[[end]]",
            "**[[END]]**",
            "[[ END ]]",
            "\\[\\[END\\]\\]",
            "`[[END]]`",
        ] {
            assert_eq!(end_line(line), Some(false), "{line}");
        }
        for line in ["  [[END]]", "[[END]] of it", "[END]", "[[ENDE]]"] {
            assert_eq!(end_line(line), None, "{line}");
        }
    }
}
