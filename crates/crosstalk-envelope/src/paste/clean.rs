//! Characters that a chat, a terminal or a mail program puts where they mean nothing.

use std::borrow::Cow;

/// A cleaned line, and what had to be done.
#[derive(Debug, Default)]
pub(super) struct Cleaned<'t> {
    pub(super) text: Cow<'t, str>,
    /// No-break spaces became spaces.
    pub(super) nbsp: bool,
    /// Zero-width characters were removed.
    pub(super) zero_width: bool,
    /// Backslash escapes or HTML entities were resolved.
    pub(super) escapes: bool,
    /// Terminal escapes or control characters were removed.
    pub(super) controls: bool,
}

const fn is_nbsp(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{202f}' | '\u{2007}')
}

const fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
}

/// A joiner beside ASCII joins nothing.
fn is_stray_joiner(c: char, before: Option<char>, after: Option<char>) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
        && (before.is_none_or(|b| b.is_ascii()) || after.is_none_or(|a| a.is_ascii()))
}

/// Whether a head has characters that the paste reading removes and the grammar keeps.
pub(super) fn needs_cleaning(head: &str) -> bool {
    !head.is_ascii()
        && head
            .chars()
            .any(|c| is_nbsp(c) || is_zero_width(c) || matches!(c, '\u{200c}' | '\u{200d}'))
}

/// A line outside the body; backslash escapes and entities are resolved where the text has been `escaped`.
pub(super) fn head_line(line: &str, escaped: bool) -> Cleaned<'_> {
    let untouched = line
        .bytes()
        .all(|b| (0x20..0x7f).contains(&b) && !(escaped && matches!(b, b'\\' | b'&')));
    if untouched {
        return Cleaned {
            text: line.into(),
            ..Cleaned::default()
        };
    }
    let mut cleaned = without_controls(line);
    let mut out = String::with_capacity(cleaned.text.len());
    let mut rest = cleaned.text.as_ref();
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or("");
        let mut width = c.len_utf8();
        match c {
            _ if is_nbsp(c) => {
                cleaned.nbsp = true;
                out.push(' ');
            }
            _ if is_zero_width(c)
                || is_stray_joiner(c, out.chars().next_back(), after.chars().next()) =>
            {
                cleaned.zero_width = true;
            }
            '\\' if escaped && after.starts_with(is_markdown_special) => cleaned.escapes = true,
            '&' if escaped => match entity(rest) {
                Some((meant, length)) => {
                    cleaned.escapes = true;
                    out.push(meant);
                    width = length;
                }
                None => out.push(c),
            },
            _ => out.push(c),
        }
        rest = rest.get(width..).unwrap_or("");
    }
    cleaned.text = Cow::Owned(out);
    cleaned
}

/// A line without ANSI sequences and control characters; TAB stays, and so do U+0085, U+2028 and U+2029.
pub(super) fn without_controls(line: &str) -> Cleaned<'_> {
    let is_stray = |c: char| c.is_control() && c != '\t' && c != '\u{85}';
    if !line.contains(is_stray) {
        return Cleaned {
            text: line.into(),
            ..Cleaned::default()
        };
    }
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.peek() {
                Some('[') => {
                    chars.next();
                    skip_csi(&mut chars);
                }
                // Title and link sequences end with BEL or ESC \.
                Some(']') => {
                    while let Some(c) = chars.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\u{9b}' => skip_csi(&mut chars),
            _ if is_stray(c) => {}
            _ => out.push(c),
        }
    }
    Cleaned {
        text: Cow::Owned(out),
        controls: true,
        ..Cleaned::default()
    }
}

/// Skips parameters and the final letter of a control sequence.
fn skip_csi(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while chars
        .next_if(|c| matches!(c, '0'..='?' | ' '..='/'))
        .is_some()
    {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

fn is_markdown_special(c: char) -> bool {
    matches!(
        c,
        '[' | ']' | '_' | '*' | '#' | '>' | '|' | '`' | '-' | '~' | '.' | '(' | ')'
    )
}

/// The character of an HTML entity at the start of a text, and its length there.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(10).position(|b| b == b';')?;
    let name = text.get(1..end)?;
    let meant = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" | "#39" | "#x27" => '\'',
        "nbsp" | "#160" => ' ',
        "rarr" | "#8594" | "#x2192" => '→',
        _ => return None,
    };
    Some((meant, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_goes() {
        let cleaned = head_line("user:\u{a0}kal\u{200b}le \u{1b}[31m&gt; X\\_Y", true);
        assert_eq!(cleaned.text, "user: kalle > X_Y");
        assert!(cleaned.nbsp && cleaned.zero_width && cleaned.escapes && cleaned.controls);
    }

    #[test]
    fn what_means_something_stays() {
        for line in [
            "context: 👨\u{200d}👩\u{200d}👧",
            "context: می\u{200c}خواهم",
            "path: C:\\dir",
            "a & b",
        ] {
            assert_eq!(head_line(line, true).text, line);
        }
    }
}
