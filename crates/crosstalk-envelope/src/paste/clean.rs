//! Characters that a chat, a terminal or a mail program puts where they mean nothing.
//!
//! Implements PST-004, PST-005, PST-006, PST-020 and PST-021.

use std::borrow::Cow;

/// A cleaned line, and where in the line each kind of dirt was first seen.
#[derive(Debug, Default)]
pub(super) struct Cleaned<'t> {
    pub(super) text: Cow<'t, str>,
    /// A no-break space became a space.
    pub(super) nbsp: Option<usize>,
    /// A zero-width character was removed.
    pub(super) zero_width: Option<usize>,
    /// A backslash escape or an HTML entity was resolved.
    pub(super) escape: Option<usize>,
}

pub(super) const fn is_nbsp(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{202f}' | '\u{2007}')
}

pub(super) const fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
}

/// White space that means nothing at the end of a line.
pub(super) const fn is_padding(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// A joiner beside ASCII joins nothing.
fn is_stray_joiner(c: char, before: Option<char>, after: Option<char>) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
        && (before.is_none_or(|b| b.is_ascii()) || after.is_none_or(|a| a.is_ascii()))
}

/// Whether a head that the grammar takes has characters that show nothing or look like a space. Its backslashes
/// and ampersands are what was written (PST-020).
pub(super) fn needs_cleaning(head: &str) -> bool {
    let special = |b: &u8| *b >= 0x80;
    // The arrow of the direction line and names beyond ASCII are no reason yet: look closely, line by line.
    head.as_bytes().iter().any(special)
        && head.split('\n').any(|line| {
            line.as_bytes().iter().any(special)
                && matches!(head_line(line), c if c.nbsp.or(c.zero_width).is_some())
        })
}

/// A character that some readers take for a line end.
pub(super) const fn is_separator(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A line outside the body.
pub(super) fn head_line(line: &str) -> Cleaned<'_> {
    let may_need = |b: &u8| matches!(b, b'\\' | b'&' | 0xc2 | 0xe2 | 0xef);
    let mut cleaned = Cleaned {
        text: line.into(),
        ..Cleaned::default()
    };
    if !line.as_bytes().iter().any(may_need) {
        return cleaned;
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let at = line.len() - rest.len();
        let after = rest.get(c.len_utf8()..).unwrap_or("");
        let (meant, width) = match c {
            '\\' if after.starts_with(is_escapable) => {
                cleaned.escape.get_or_insert(at);
                (after.chars().next(), 2)
            }
            '&' => match entity(rest) {
                Some((meant, width)) => {
                    cleaned.escape.get_or_insert(at);
                    (Some(meant).filter(|c| !is_zero_width(*c)), width)
                }
                None => (Some(c), 1),
            },
            _ if is_nbsp(c) => {
                cleaned.nbsp.get_or_insert(at);
                (Some(' '), c.len_utf8())
            }
            _ if is_zero_width(c)
                || is_stray_joiner(c, out.chars().next_back(), after.chars().next()) =>
            {
                cleaned.zero_width.get_or_insert(at);
                (None, c.len_utf8())
            }
            _ => (Some(c), c.len_utf8()),
        };
        out.extend(meant.map(|c| if is_nbsp(c) { ' ' } else { c }));
        rest = rest.get(width..).unwrap_or("");
    }
    if cleaned
        .nbsp
        .or(cleaned.zero_width)
        .or(cleaned.escape)
        .is_some()
    {
        cleaned.text = Cow::Owned(out);
    }
    cleaned
}

/// The text with every no-break space as a space.
pub(crate) fn with_plain_spaces(text: &str) -> Cow<'_, str> {
    if !text.contains(is_nbsp) {
        return text.into();
    }
    let plain = |c| if is_nbsp(c) { ' ' } else { c };
    text.chars().map(plain).collect::<String>().into()
}

/// The text without zero-width characters and soft hyphens.
pub(crate) fn without_zero_width(text: &str) -> Cow<'_, str> {
    if !text.contains(is_zero_width) {
        return text.into();
    }
    text.replace(is_zero_width, "").into()
}

/// The text with HTML entities resolved, and nothing else.
pub(crate) fn without_entities(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (meant, width) = entity(rest)
            .filter(|_| c == '&')
            .unwrap_or((c, c.len_utf8()));
        out.push(meant);
        rest = rest.get(width..).unwrap_or("");
    }
    if out == text { text.into() } else { out.into() }
}

/// The text with all of this, and without Markdown's backslashes.
pub(crate) fn cleaned(text: &str) -> Cow<'_, str> {
    head_line(text).text
}

/// Punctuation that Markdown escapes; `"`, `/` and `\` are left to JSON and to paths.
fn is_escapable(c: char) -> bool {
    c.is_ascii_punctuation() && !matches!(c, '"' | '/' | '\\')
}

/// The character of an HTML entity at the start of a text, and its length there.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(12).position(|b| b == b';')?;
    let name = text.get(1..end)?;
    let meant = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "rarr" => '→',
        _ => numbered(name.strip_prefix('#')?)?,
    };
    Some((meant, end + 1))
}

/// The character of a numeric reference, unless it would end a line or is not allowed at all.
fn numbered(reference: &str) -> Option<char> {
    let number = match reference.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => reference.parse(),
    };
    let forbidden = |c: char| (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}');
    char::from_u32(number.ok()?).filter(|c| !forbidden(*c))
}

/// A line without ANSI sequences and control characters: owned if there were any. TAB stays, and so does
/// U+0085, which ends a line of a body.
pub(super) fn without_controls(line: &str) -> Cow<'_, str> {
    let is_stray = |c: char| c.is_control() && c != '\t' && c != '\u{85}';
    let may_be = |b: &u8| matches!(b, 0..=8 | 10..=0x1f | 0x7f | 0xc2);
    if !line.as_bytes().iter().any(may_be) || !line.contains(is_stray) {
        return line.into();
    }
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            _ if is_stray(c) => {}
            _ => out.push(c),
        }
    }
    out.into()
}

type Chars<'l> = std::iter::Peekable<std::str::Chars<'l>>;

/// Skips what belongs to an ESC.
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.next_if(|c| matches!(c, ' '..='~')) {
        Some('[') => skip_csi(chars),
        // Titles and links end with BEL or ESC \.
        Some(']') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        // ESC ( B and the like have one more character.
        Some('(' | ')') => {
            chars.next_if(|c| c.is_ascii_alphanumeric());
        }
        _ => {}
    }
}

/// Skips parameters and the final letter of a control sequence.
fn skip_csi(chars: &mut Chars<'_>) {
    while chars
        .next_if(|c| matches!(c, '0'..='?' | ' '..='/'))
        .is_some()
    {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_removed() {
        let cleaned =
            head_line("user:\u{a0}kal\u{200b}le &gt; X\\_Y &#x2192; &#8203;&nbsp;&amp;lt;");
        assert_eq!(cleaned.text, "user: kalle > X_Y →  &lt;");
        assert_eq!(
            (cleaned.nbsp, cleaned.zero_width, cleaned.escape),
            (Some(5), Some(10), Some(16))
        );
        for (line, text) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]8;;https://x\u{7}link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}(Bplain\u{0}\u{7f}\u{9b}2K", "plain"),
        ] {
            assert_eq!(without_controls(line), text);
        }
    }

    #[test]
    fn meaning_is_kept() {
        for line in [
            "context: 👨\u{200d}👩\u{200d}👧",
            "context: می\u{200c}خواهم",
            "path: C:\\dir \\\\server\\share",
            "a & b &unknown; &#10; &#x2028; &#xd800; &;",
            "Targets: [\"a\\\"b\"]",
        ] {
            assert_eq!(head_line(line).text, line);
            assert!(!needs_cleaning(line));
        }
        assert!(!needs_cleaning("user: k\ncontext: a\\_b"));
        assert!(needs_cleaning("user: k\ncontext: a\u{a0}b"));
        assert_eq!(
            without_controls("tab\tand\u{85}nel é"),
            "tab\tand\u{85}nel é"
        );
    }
}
