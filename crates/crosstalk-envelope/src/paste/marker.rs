//! The two markers of an envelope in every spelling that chats produce: the direction line and `[[END]]`.

use super::clean;
use crate::text::trim;
use std::ops::Range;

/// Signs around a marker or a name that mean nothing: Markdown emphasis and code.
pub(super) const NOISE: [char; 4] = ['*', '_', '`', '~'];

/// How the brackets of a marker are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brackets {
    Plain,
    /// With backslashes (PST-020).
    Escaped,
    /// Full width (PST-025).
    Wide,
}

/// The spellings of the brackets: opening, closing.
const BRACKETS: [(&str, &str, Brackets); 4] = [
    ("[[", "]]", Brackets::Plain),
    ("\\[\\[", "\\]\\]", Brackets::Escaped),
    ("\\[\\[", "]]", Brackets::Escaped),
    ("［［", "］］", Brackets::Wide),
];

/// The closing brackets.
const CLOSES: [&str; 3] = ["]]", "\\]\\]", "］］"];

/// A direction marker in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirectionMarker {
    /// Its range in the line, brackets included.
    pub(super) span: Range<usize>,
    /// The line as the grammar wants it: `[[S→R v1]]`.
    pub(super) written: String,
    /// It had another arrow than `→` or `->`.
    pub(super) other_arrow: bool,
    /// It had another spelling of the version.
    pub(super) other_version: bool,
    /// It had no version.
    pub(super) no_version: bool,
    pub(super) brackets: Brackets,
    pub(super) nbsp: bool,
    pub(super) zero_width: bool,
    pub(super) escapes: bool,
    /// Control characters were removed.
    pub(super) controls: bool,
}

impl DirectionMarker {
    /// Whether it stands as the grammar wants it.
    pub(super) fn is_plain(&self) -> bool {
        // Escapes are resolved only if the strict reading does not take the line as it is (PST-020).
        self.brackets == Brackets::Plain
            && !(self.other_arrow
                || self.other_version
                || self.no_version
                || self.nbsp
                || self.zero_width
                || self.controls)
    }
}

/// The first direction marker in a line.
pub(super) fn direction_in(line: &str) -> Option<DirectionMarker> {
    marker_in(line, read_inner)
}

/// The first direction marker in a line that lacks its version. Such a text may be something else: whether it is a marker
/// is told by what follows it.
pub(super) fn unversioned_in(line: &str) -> Option<DirectionMarker> {
    marker_in(line, read_unversioned)
}

fn marker_in(
    line: &str,
    read: impl Fn(&str) -> Option<DirectionMarker>,
) -> Option<DirectionMarker> {
    in_brackets(line, |inner, brackets, span| {
        let mut marker = read(inner)?;
        let raw = line.get(span.clone())?;
        if marker.escapes && brackets == Brackets::Plain && crate::grammar::is_direction(raw) {
            // It needs nothing to be resolved (PST-020).
            marker.escapes = false;
            raw.clone_into(&mut marker.written);
        }
        marker.span = span;
        marker.brackets = brackets;
        marker.escapes |= brackets == Brackets::Escaped;
        Some(marker)
    })
}

/// The first thing in brackets that `read` takes.
fn in_brackets<T>(
    line: &str,
    read: impl Fn(&str, Brackets, Range<usize>) -> Option<T>,
) -> Option<T> {
    BRACKETS.iter().find_map(|(open, close, brackets)| {
        let mut from = 0;
        for (at, _) in line.match_indices(close) {
            let before = line.get(from..at)?;
            if let Some(start) = before.rfind(open)
                && let Some(inner) = before.get(start + open.len()..)
                && let Some(found) = read(inner, *brackets, from + start..at + close.len())
            {
                return Some(found);
            }
            from = at + close.len();
        }
        None
    })
}

/// `S arrow R version` between the brackets.
fn read_inner(inner: &str) -> Option<DirectionMarker> {
    read_parties(inner, |text| {
        let (parties, version) = split_version(text)?;
        let lower = version.to_ascii_lowercase();
        if is_version_1(&lower) {
            return Some((parties, Some(version), "v1".to_owned()));
        }
        crate::grammar::looks_like_version(&lower).then_some((parties, Some(version), lower))
    })
}

/// The parties, and the last word; of `v 1`, the last two.
fn split_version(text: &str) -> Option<(&str, &str)> {
    let (parties, version) = text.rsplit_once([' ', '\t'])?;
    let Some((before, "v" | "V")) = trim(parties).rsplit_once([' ', '\t']) else {
        return Some((parties, version));
    };
    let is_number = version.starts_with(|c: char| c.is_ascii_digit());
    match is_number {
        true => Some((before, text.get(before.len()..).map(trim)?)),
        false => Some((parties, version)),
    }
}

/// Whether a version in small letters means v1: a version of this protocol in another spelling, with or without the number of
/// its edition.
fn is_version_1(lower: &str) -> bool {
    let bare = lower.strip_suffix(':').unwrap_or(lower);
    let number = bare.strip_prefix('v').map_or(bare, trim);
    matches!(number, "1" | "1.0" | "1.1")
}

/// `S arrow R` between the brackets, with a name on both sides.
fn read_unversioned(inner: &str) -> Option<DirectionMarker> {
    // A version that is misspelled is not part of a name.
    let is_number = |word: &str| {
        let bare = word.strip_prefix(['v', 'V']).unwrap_or(word);
        !bare.contains(char::is_alphabetic)
    };
    let marker = read_parties(inner, |text| {
        let last = text.rsplit_once([' ', '\t']).map(|(_, last)| last);
        let parties = (text, None, "v1".to_owned());
        (!last.is_some_and(is_number)).then_some(parties)
    })?;
    crate::grammar::is_direction(&marker.written).then_some(marker)
}

/// A marker of the text between the brackets; `split` gives its parties, its version and how that is to be written.
fn read_parties(
    inner: &str,
    split: impl Fn(&str) -> Option<(&str, Option<&str>, String)>,
) -> Option<DirectionMarker> {
    // Longer than any line that the grammar takes: no marker.
    if inner.len() > crate::limit::LINE_BYTES {
        return None;
    }
    let plain = clean::without_controls(inner);
    let controls = plain.len() < inner.len();
    let cleaned = clean::head_line(&plain);
    let (parties, version, lower) = split(trim(&cleaned.text))?;
    let parties = trim(parties);
    let (written, other_arrow) = match arrow_between(parties) {
        Arrow::None => return None,
        Arrow::Plain => (format!("[[{parties} {lower}]]"), false),
        Arrow::Other(at) => {
            let left = trim(parties.get(..at.start)?);
            let right = trim(parties.get(at.end..)?);
            (format!("[[{left}→{right} {lower}]]"), true)
        }
    };
    Some(DirectionMarker {
        span: 0..0,
        written,
        other_arrow,
        other_version: version.is_some_and(|version| lower != version),
        no_version: version.is_none(),
        brackets: Brackets::Plain,
        nbsp: cleaned.nbsp.is_some(),
        zero_width: cleaned.zero_width.is_some(),
        escapes: cleaned.escape.is_some(),
        controls,
    })
}

/// Whether a character is an arrow by itself.
const fn is_arrow(c: char) -> bool {
    matches!(c, '⇒' | '⟶' | '⟹' | '➔' | '➜' | '➝' | '➞' | '➡')
}

/// The arrow between the two parties of a direction line (PST-007).
#[derive(Debug, PartialEq, Eq)]
enum Arrow {
    /// No arrow at all.
    None,
    /// For the grammar to read or to reject.
    Plain,
    /// The only arrow, and another one than the grammar's.
    Other(Range<usize>),
}

/// The arrow between the parties of a direction line.
fn arrow_between(parties: &str) -> Arrow {
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

/// An `[[END]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndMarker {
    /// Its range in the text, brackets included.
    pub(super) span: Range<usize>,
    /// It is in another case, or has white space inside.
    pub(super) other_spelling: bool,
    pub(super) brackets: Brackets,
}

/// The first `[[END]]` in any spelling.
pub(super) fn end_in(text: &str) -> Option<EndMarker> {
    in_brackets(text, |inner, brackets, span| {
        // Longer than any spelling of it.
        if inner.len() > 64 {
            return None;
        }
        let word: String = inner
            .chars()
            .filter(|c| !clean::is_zero_width(*c))
            .collect();
        word.trim().eq_ignore_ascii_case("end").then(|| EndMarker {
            span,
            other_spelling: inner != "END",
            brackets,
        })
    })
}

/// The `[[END]]` that a line is, if it is nothing else but Markdown.
pub(super) fn end_line(line: &str) -> Option<EndMarker> {
    if line == crate::grammar::END {
        return Some(EndMarker {
            span: 0..line.len(),
            other_spelling: false,
            brackets: Brackets::Plain,
        });
    }
    if line.len() > 128 {
        return None;
    }
    let end = end_in(line)?;
    let is_nothing = |c: char| NOISE.contains(&c) || clean::is_zero_width(c);
    let before = line.get(..end.span.start)?.trim_matches(is_nothing);
    let after = line
        .get(end.span.end..)?
        .trim_matches(|c: char| is_nothing(c) || c.is_whitespace());
    (before.is_empty() && after.is_empty()).then_some(end)
}

/// The word of an end marker as models translate it.
const TRANSLATED_ENDS: [&str; 11] = [
    "[[ENDE]]",
    "[[FIN]]",
    "[[FINE]]",
    "[[FIM]]",
    "[[EINDE]]",
    "[[SLUT]]",
    "[[SLUTT]]",
    "[[LOPPU]]",
    "[[KONIEC]]",
    "[[KONEC]]",
    "[[КОНЕЦ]]",
];

/// Whether a line is an end marker that has a bracket too few, `[END]`, `[[END]` or `[[END`, or whose word was translated.
pub(super) fn is_broken_end(line: &str) -> bool {
    if line.len() > 64 {
        return false;
    }
    let is_nothing = |c: char| NOISE.contains(&c) || clean::is_zero_width(c) || c.is_whitespace();
    let bare = match line.starts_with([' ', '\t']) {
        true => return false,
        false => line.trim_matches(is_nothing).replace('\\', ""),
    };
    ["[END]", "[[END]", "[[END"]
        .iter()
        .chain(&TRANSLATED_ENDS)
        .any(|broken| bare.eq_ignore_ascii_case(broken))
}

/// Whether a line has a closing bracket of a marker.
pub(super) fn has_close(line: &str) -> bool {
    CLOSES
        .iter()
        .any(|close| memchr::memmem::find(line.as_bytes(), close.as_bytes()).is_some())
}

/// Walks from one closing bracket of a marker to the next.
#[derive(Debug)]
pub(super) struct Closes<'t> {
    text: &'t str,
    /// The next place of each spelling, from where the search stands.
    next: [Option<usize>; CLOSES.len()],
    /// The furthest place that was searched from.
    reached: usize,
}

impl<'t> Closes<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let find = |close: &str| memchr::memmem::find(text.as_bytes(), close.as_bytes());
        Self {
            text,
            next: CLOSES.map(find),
            reached: 0,
        }
    }

    /// Goes back to a place that it has passed. Only what it has passed is searched again: going back must not cost more than
    /// going there.
    pub(super) fn rewind(&mut self, to: usize) {
        for (next, close) in self.next.iter_mut().zip(CLOSES) {
            let end = (self.reached + close.len()).min(self.text.len());
            let passed = self.text.as_bytes().get(to..end).unwrap_or(&[]);
            let found = memchr::memmem::find(passed, close.as_bytes());
            *next = found.map(|i| to + i).or(*next);
        }
    }

    /// The first closing bracket from `from` on.
    pub(super) fn after(&mut self, from: usize) -> Option<usize> {
        self.reached = self.reached.max(from);
        for (next, close) in self.next.iter_mut().zip(CLOSES) {
            if next.is_some_and(|at| at < from) {
                let rest = self.text.as_bytes().get(from..).unwrap_or(&[]);
                *next = memchr::memmem::find(rest, close.as_bytes()).map(|i| from + i);
            }
        }
        self.next.iter().flatten().min().copied()
    }
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
            ("\\[\\[A→B v1]]", "[[A→B v1]]"),
            ("see [[wiki]] and [[A-&gt;B v1]]", "[[A->B v1]]"),
            ("［［A→B v1］］", "[[A→B v1]]"),
            ("[[A → B\u{a0}v1]]", "[[A → B v1]]"),
            ("[[A→B v1.0]]", "[[A→B v1]]"),
            ("[[A→B V1.1]]", "[[A→B v1]]"),
            ("[[A→B v 1]]", "[[A→B v1]]"),
            ("[[A→B 1]]", "[[A→B v1]]"),
            ("[[A→B v1:]]", "[[A→B v1]]"),
            ("[[A→B v1.2]]", "[[A→B v1.2]]"),
            ("[[A→B v2]]", "[[A→B v2]]"),
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
    fn a_direction_without_a_version_is_told_apart() {
        for (line, written) in [
            ("[[CHATGPT→YOU]]", "[[CHATGPT→YOU v1]]"),
            ("**[[ A => B ]]**", "[[A→B v1]]"),
            ("\\[\\[A-&gt;B\\]\\]", "[[A->B v1]]"),
        ] {
            let marker = unversioned_in(line).unwrap();
            assert_eq!(marker.written, written, "{line}");
            assert!(marker.no_version && !marker.is_plain(), "{line}");
        }
        for line in [
            "[[wiki]]",
            "[[→B]]",
            "[[A→]]",
            "[[A→B→C]]",
            "[[A→B v1]]",
            "[[A→B v 1]]",
            "[A→B]",
            "[[END]]",
        ] {
            assert_eq!(unversioned_in(line), None, "{line}");
        }
    }

    #[test]
    fn ends_in_many_spellings() {
        assert!(!end_line("[[END]]").unwrap().other_spelling);
        for line in ["[[end]]", "[[ END ]]", "**[[End]]**"] {
            assert!(end_line(line).unwrap().other_spelling, "{line}");
        }
        for line in [
            "\\[\\[END\\]\\]",
            "`[[END]]`",
            "\u{feff}[[END]]",
            "[[END]]\u{a0}",
        ] {
            assert!(!end_line(line).unwrap().other_spelling, "{line}");
        }
        for line in [
            "  [[END]]",
            "[[END]] of it",
            "[END]",
            "[[ENDE]]",
            "> [[END]]",
        ] {
            assert_eq!(end_line(line), None, "{line}");
        }
    }

    #[test]
    fn ends_with_a_bracket_too_few_or_in_another_language() {
        for line in [
            "[END]",
            "[[END",
            "[[END]",
            "**[end]**",
            "\\[\\[END",
            "[END]  ",
            "[[ENDE]]",
            "[[Fin]]",
        ] {
            assert!(is_broken_end(line), "{line}");
        }
        for line in ["[[END]]", "  [END]", "END", "[[EN", "[END] of it", "[ENDE]"] {
            assert!(!is_broken_end(line), "{line}");
        }
    }

    #[test]
    fn closes_come_in_order() {
        let text = "a]] b\\]\\] c］］ d]]";
        let mut closes = Closes::new(text);
        let mut at = 0;
        let mut found = Vec::new();
        while let Some(next) = closes.after(at) {
            found.push(next);
            at = next + 1;
        }
        assert_eq!(found, [1, 5, 11, 19]);
    }

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
            assert_eq!(
                arrow_between(&parties),
                Arrow::Other(2..2 + arrow.len()),
                "{arrow}"
            );
        }
        for parties in ["A→B", "A->B", "A=>B=>C", "A->B=>C", "A→B⇒C"] {
            assert_eq!(arrow_between(parties), Arrow::Plain, "{parties}");
        }
        for parties in ["A B", "A-B", "A > B", "", "A - > B"] {
            assert_eq!(arrow_between(parties), Arrow::None, "{parties}");
        }
    }
}
