//! Words of others, quoted so that nothing in them can pass for a line of ours or for a message.

use crosstalk_envelope::{Document, unicode};

/// What stands before each line that is quoted.
pub(super) const LINE: &str = "| ";
/// What stands before each further piece of a line that is too long for one.
pub(super) const CONTINUED: &str = "|+ ";
/// The most characters of one quoted line.
pub(super) const LINE_CHARS: usize = 4_000;

/// The lines of a text, quoted.
pub(super) fn lines(text: &str) -> Vec<String> {
    text.lines().flat_map(line).collect()
}

fn line(text: &str) -> Vec<String> {
    let text = visible(text);
    let mut rest = text.as_str();
    let mut pieces = Vec::new();
    loop {
        let end = rest
            .char_indices()
            .nth(LINE_CHARS)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let mark = if pieces.is_empty() { LINE } else { CONTINUED };
        // A piece that ends in blanks would lose them, as every line of a body does.
        pieces.push(format!("{mark}{piece}").trim_end().to_owned());
        rest = tail;
        if rest.is_empty() {
            return pieces;
        }
    }
}

/// A text in one line of at most this many characters, for a line of ours.
pub(super) fn inline(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = visible(&words.join(" "));
    clip(&text, most)
}

/// The beginning of a text, with `…` where something was left out.
fn clip(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(most.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// What META says that a reader of a message needs, and what to call it; a warning stands last, right before the body.
pub(crate) fn said<'d>(
    document: &'d Document<'_>,
) -> impl Iterator<Item = (&'static str, &'d str)> {
    let keys = [
        ("error", "Code", "Code"),
        ("error", "Reason", "Reason"),
        ("refusal", "Reason", "Reason"),
        ("escalation", "Reason", "Reason"),
        ("closure", "Reason", "Reason"),
        ("closure", "Outcome", "Outcome"),
        ("vote", "Choice", "Vote"),
        ("routing", "X-Deadline", "Deadline"),
        ("safety", "Content-Warning", "Content warning"),
    ];
    keys.into_iter().filter_map(|(namespace, key, label)| {
        let value = document.meta(namespace, key).filter(|v| !v.is_empty())?;
        Some((label, value))
    })
}

/// The text with what is hidden made visible, and with no marker of an envelope in it.
pub(crate) fn visible(text: &str) -> String {
    defused(&shown(text))
}

/// As [`unicode::escape`] shows it, except for the joiners that scripts and emoji are written with.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        let joins = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_bracket(c));
        let is_joiner = matches!(c, '\u{200c}' | '\u{200d}');
        if is_joiner && joins(before) && joins(chars.peek().copied()) {
            out.push(c);
        } else {
            let mut buffer = [0; 4];
            out.push_str(&unicode::escape(c.encode_utf8(&mut buffer)));
        }
        before = Some(c);
    }
    out
}

const fn is_bracket(c: char) -> bool {
    matches!(c, '［' | '］')
}

/// How the brackets of a marker may be written: one of the two that open it, how the first of them is written here,
/// and the two that close it.
const BRACKETS: [(&str, &str, &str); 4] = [
    ("[", "\\u{5b}", "]]"),
    ("\\[", "\\u{5b}", "\\]\\]"),
    ("\\[", "\\u{5b}", "]]"),
    ("［", "\\u{ff3b}", "］］"),
];

/// The text without anything that reads as `[[A→B v1]]` or `[[END]]`: there the first bracket is written as a number.
fn defused(text: &str) -> String {
    let mut text = text.to_owned();
    for (bracket, written, close) in BRACKETS {
        let open = bracket.repeat(2);
        if !text.contains(&open) || !text.contains(close) {
            continue;
        }
        let mut out = String::with_capacity(text.len() + 8);
        let mut rest = text.as_str();
        while let Some((before, tail)) = rest.split_once(close) {
            // A marker begins at the last opening brackets before its end.
            match before.rsplit_once(&open) {
                Some((_, inner)) if may_be_marker(inner) => {
                    // All of them: what is left of an outer one would begin the marker then.
                    out.push_str(&before.replace(&open, &format!("{written}{bracket}")));
                }
                _ => out.push_str(before),
            }
            out.push_str(close);
            rest = tail;
        }
        out.push_str(rest);
        text = out;
    }
    text
}

/// Whether what stands between brackets may be a direction or the end; code such as `[[ -n $x ]]` is neither.
fn may_be_marker(inner: &str) -> bool {
    let lower = inner.to_lowercase();
    let has_arrow = lower.contains(['>', '&']) || !lower.is_ascii();
    lower.contains("end") || (has_arrow && lower.contains('v'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_written_otherwise_and_code_is_not() {
        for (text, shown) in [
            ("[[A→B v1]]", "\\u{5b}[A→B v1]]"),
            ("[[end]]", "\\u{5b}[end]]"),
            ("[[[END]]]", "\\u{5b}[[END]]]"),
            ("[[ [[A→B v1]]", "\\u{5b}[ \\u{5b}[A→B v1]]"),
            ("［［END］］", "\\u{ff3b}［END］］"),
            ("\\[\\[A =&gt; B v1\\]\\]", "\\u{5b}\\[A =&gt; B v1\\]\\]"),
            ("if [[ -n $HOME ]]; then", "if [[ -n $HOME ]]; then"),
            ("m[[1]] [[2]]", "m[[1]] [[2]]"),
            ("[\u{200b}[END]]", "[\\u{200b}[END]]"),
            ("[\u{200d}[END]]", "[\\u{200d}[END]]"),
            ("［\u{200d}［END］］", "［\\u{200d}［END］］"),
            (
                "👩\u{200d}🚀 می\u{200c}خواهم",
                "👩\u{200d}🚀 می\u{200c}خواهم",
            ),
            ("a\u{202e}b", "a\\u{202e}b"),
        ] {
            assert_eq!(visible(text), shown, "{text}");
        }
    }

    #[test]
    fn long_lines_go_on_in_the_next() {
        let exact = "x".repeat(LINE_CHARS);
        assert_eq!(lines(&exact), [format!("| {exact}")]);
        assert_eq!(
            lines(&format!("{exact}yz")),
            [format!("| {exact}"), "|+ yz".to_owned()]
        );
        assert_eq!(lines("a\n\nb"), ["| a", "|", "| b"]);
        assert_eq!(inline("two\nlines", 9), "two lines");
        assert_eq!(inline("two\nlines", 8), "two lin…");
    }
}
