//! From received text to the text that is read: forbidden characters, white space.
//!
//! Implements ENV-002 and ENV-003.

use crate::diagnostic::Sink;
use crate::registry::rule;

/// Reports every forbidden character.
pub(crate) fn report_forbidden(text: &str, sink: &mut Sink) {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let allowed = match c {
            '\t' | '\n' => true,
            '\r' => chars.peek().is_some_and(|(_, next)| *next == '\n'),
            '\u{2028}' | '\u{2029}' => false,
            _ => !c.is_control(),
        };
        if !allowed {
            let name = match c {
                '\r' => "a CR without LF".to_owned(),
                _ => format!("the control character U+{:04X}", u32::from(c)),
            };
            sink.error(
                &rule::FORBIDDEN_CHARACTER,
                at..at + c.len_utf8(),
                format!("{name} is not allowed"),
            );
        }
    }
}

/// The line without its CR and its trailing spaces and tabs.
#[inline(always)]
pub(crate) fn trim_line_bytes(line: &[u8]) -> &[u8] {
    if line.last().is_some_and(|b| *b > b' ') {
        return line;
    }
    let mut line = line.strip_suffix(b"\r").unwrap_or(line);
    while let [rest @ .., b' ' | b'\t'] = line {
        line = rest;
    }
    line
}

/// The same for a text.
#[inline(always)]
pub(crate) fn trim_line(line: &str) -> &str {
    let length = trim_line_bytes(line.as_bytes()).len();
    line.get(..length).unwrap_or(line)
}

/// The value without spaces and tabs around it.
pub(crate) fn trim(value: &str) -> &str {
    trim_end(trim_start(value))
}

/// The value without spaces and tabs in front.
pub(crate) fn trim_start(value: &str) -> &str {
    let mut bytes = value.as_bytes();
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    value.get(value.len() - bytes.len()..).unwrap_or("")
}

/// The value without spaces and tabs behind.
pub(crate) fn trim_end(value: &str) -> &str {
    let mut bytes = value.as_bytes();
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    value.get(..bytes.len()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden(text: &str) -> usize {
        let mut sink = Sink::default();
        report_forbidden(text, &mut sink);
        sink.into_findings().len()
    }

    #[test]
    fn every_control_character_is_found() {
        for c in (0..=0x9f_u32)
            .filter_map(char::from_u32)
            .filter(|c| c.is_control())
        {
            let expected = usize::from(!matches!(c, '\t' | '\n'));
            assert_eq!(forbidden(&format!("a{c}x")), expected, "{c:?}");
        }
        assert_eq!(forbidden("a\r\nb"), 0);
        assert_eq!(forbidden("\u{2028}\u{2029}"), 2);
    }

    #[test]
    fn white_space_is_spaces_and_tabs() {
        assert_eq!(trim(" \t a b\u{a0} \t"), "a b\u{a0}");
        assert_eq!(trim_line_bytes(b"a \t\r"), b"a");
        assert_eq!(trim("  "), "");
    }
}
