//! From received text to the text that is read: forbidden characters and NFC.
//!
//! Implements ENV-002 and ENV-003. A clean text is not copied.

use crate::diagnostic::Sink;
use crate::registry::rule;
use std::borrow::Cow;
use unicode_normalization::{
    IsNormalized, UnicodeNormalization as _, char::canonical_combining_class, is_nfc_quick,
};

/// What a quick look over the bytes tells.
struct Look {
    /// There may be characters that are not allowed.
    suspicious: bool,
    /// The text is in NFC for certain.
    nfc: bool,
}

/// Reports every forbidden character and gives the text in NFC.
pub(crate) fn prepare<'a>(text: &'a str, sink: &mut Sink) -> Cow<'a, str> {
    let look = look(text);
    if look.suspicious {
        report_forbidden(text, sink);
    }
    if look.nfc || unicode_normalization::is_nfc(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

fn look(text: &str) -> Look {
    let mut look = Look {
        suspicious: false,
        nfc: true,
    };
    let mut high = false;
    for byte in text.as_bytes() {
        // CR counts as suspicious here: whether an LF follows is checked only where there is one.
        look.suspicious |= (*byte < 0x20) & (*byte != b'\t') & (*byte != b'\n') | (*byte == 0x7f);
        high |= *byte >= 0x80;
    }
    if high {
        look_beyond_ascii(text, &mut look);
    }
    look
}

fn look_beyond_ascii(text: &str, look: &mut Look) {
    const CHUNK: usize = 32;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty()) {
        if let Some(chunk) = rest.get(..CHUNK)
            && chunk.iter().fold(0, |all, b| all | b) < 0x80
        {
            at += CHUNK;
            continue;
        }
        let Some(step) = rest.iter().position(|b| *b >= 0x80) else {
            return;
        };
        at += step;
        while let Some(c) = text
            .get(at..)
            .and_then(|t| t.chars().next())
            .filter(|c| !c.is_ascii())
        {
            at += c.len_utf8();
            look.suspicious |= matches!(c, '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
            look.nfc &= is_surely_nfc(c);
        }
    }
}

/// Whether a character leaves a text in NFC whatever stands around it.
fn is_surely_nfc(c: char) -> bool {
    c < '\u{300}'
        || c == '→'
        || (canonical_combining_class(c) == 0
            && is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes)
}

fn report_forbidden(text: &str, sink: &mut Sink) {
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
pub(crate) fn trim_line(line: &str) -> &str {
    line.strip_suffix('\r')
        .unwrap_or(line)
        .trim_end_matches([' ', '\t'])
}

/// The value without spaces and tabs around it.
pub(crate) fn trim(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden(text: &str) -> usize {
        let mut sink = Sink::default();
        prepare(text, &mut sink);
        sink.into_findings().len()
    }

    #[test]
    fn every_control_character_is_found() {
        for c in (0..=0x9f_u32)
            .filter_map(char::from_u32)
            .filter(|c| c.is_control())
        {
            let expected = usize::from(!matches!(c, '\t' | '\n'));
            assert_eq!(
                forbidden(&format!("{}{c}x", "a".repeat(70))),
                expected,
                "{c:?}"
            );
        }
        assert_eq!(forbidden("a\r\nb"), 0);
        assert_eq!(forbidden("\u{2028}\u{2029}"), 2);
    }

    #[test]
    fn nfc_is_exact() {
        let mut sink = Sink::default();
        assert!(matches!(
            prepare("Cafe\u{301} na\u{308}ive", &mut sink),
            Cow::Owned(_)
        ));
        assert!(matches!(
            prepare("Café → naïve 日本語 한글", &mut sink),
            Cow::Borrowed(_)
        ));
        for c in ('\u{80}'..='\u{2ffff}').filter(|c| is_surely_nfc(*c)) {
            let text: String = ['a', c].into_iter().collect();
            assert!(unicode_normalization::is_nfc(&text), "{c:?}");
        }
    }
}
