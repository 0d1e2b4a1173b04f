//! Characters that deceive: bidirectional controls, invisible characters, blanks.
//!
//! Implements LNT-006 and LNT-007.

mod normal;
mod table;

pub use normal::nfd;
use std::borrow::Cow;
use unicode_normalization::{IsNormalized, is_nfc_quick};

/// Controls that change the order in which text is shown.
pub const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Characters that show nothing: zero-width ones, fillers, tags.
pub const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{00ad}' | '\u{034f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}'
            | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{2800}' | '\u{fe00}'..='\u{fe0d}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0100}'..='\u{e01ef}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// Invisible tag characters (U+E0000 to U+E007F), which can carry text that only a model reads.
pub const fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Characters besides controls that must not reach a screen as they are.
pub const fn is_hidden(c: char) -> bool {
    is_bidi_control(c) || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The skeleton of a text (UTS 39): texts that look the same have the same one.
pub(crate) fn skeleton(text: &str) -> impl Iterator<Item = char> + use<> {
    let shown = nfd(text.chars())
        .into_iter()
        .filter(|c| !table::is_ignorable(*c));
    let prototypes = shown.flat_map(|c| {
        let others = table::prototype(c);
        let same = others.is_none().then_some(c);
        same.into_iter()
            .chain(others.unwrap_or_default().iter().copied())
    });
    nfd(prototypes).into_iter()
}

/// Whether one script has all characters of a text (UTS 39).
pub(crate) fn is_single_script(text: &str) -> bool {
    let mut sets = text.chars().filter_map(table::scripts);
    let Some(first) = sets.next() else {
        return true;
    };
    let mut common = first.to_vec();
    for set in sets {
        common.retain(|script| set.contains(script));
    }
    !common.is_empty()
}

/// The characters without a font, for one that has a font: full-width and mathematical ones, and all others that stand for ASCII
/// letters and digits.
///
/// ```
/// use crosstalk_envelope::unicode::without_font;
/// assert_eq!(without_font('𝐂'), Some(&['C'][..]));
/// assert_eq!(without_font('C'), None);
/// ```
pub fn without_font(c: char) -> Option<&'static [char]> {
    table::plain(c)
}

/// Whether a character is a mark on the one before it.
pub fn is_mark(c: char) -> bool {
    table::is_mark(c)
}

/// A text in NFC, the form in which envelopes are read.
pub fn nfc(text: &str) -> Cow<'_, str> {
    normalized(text).map_or(text.into(), Into::into)
}

/// The text in NFC, if it is not so already.
pub(crate) fn normalized(text: &str) -> Option<String> {
    if is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return None;
    }
    let composed = normal::composed(text.chars());
    (composed != text).then_some(composed)
}

/// The text with everything that could move the cursor, reorder or hide something written as `\u{…}`.
///
/// Line feeds and tabs stay. This is how every field is shown to people.
///
/// ```
/// use crosstalk_envelope::unicode::escape;
/// assert_eq!(escape("a\u{1b}[31mb\u{202e}c"), "a\\u{1b}[31mb\\u{202e}c");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_hidden(c);
    if !text.contains(harmful) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmful(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// The text without what is hidden: for text of others that goes into a message of one's own.
///
/// ```
/// use crosstalk_envelope::unicode::visible;
/// assert_eq!(visible("re\u{202e}lease\u{e0041}"), "release");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    match text.contains(is_hidden) {
        true => text.replace(is_hidden, "").into(),
        false => text.into(),
    }
}

/// Characters that no name or address has (ADR-009): people do not see them, or take them for a space.
pub const fn is_unseen_in_names(c: char) -> bool {
    matches!(
        c,
        '\u{0085}' | '\u{00a0}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200a}'
            | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_blank_but_the_space_stands_in_a_name() {
        for c in (0x80..=0x10_ffff).filter_map(char::from_u32) {
            assert!(!c.is_whitespace() || is_unseen_in_names(c), "{c:?}");
        }
        assert!("Jürgen Αθήνα 日本".chars().all(|c| !is_unseen_in_names(c)));
    }

    #[test]
    fn escape_keeps_what_is_harmless() {
        assert_eq!(escape("tab\tline\nend é → 日本"), "tab\tline\nend é → 日本");
        assert_eq!(escape("\u{e0041}"), "\\u{e0041}");
        assert_eq!(escape("\u{9b}"), "\\u{9b}");
    }
}
