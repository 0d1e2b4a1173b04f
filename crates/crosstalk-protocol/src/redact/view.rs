//! The text as the scanners see it: look-alikes folded, invisible characters left out, each symbol with its place
//! (RED-003).

use crosstalk_envelope::registry::PiiKind;
use crosstalk_envelope::unicode::{is_bidi_control, is_invisible, is_mark, nfd, without_font};
use std::ops::Range;

/// What stands for a placeholder, and for what was found before: nothing is part of it, nothing goes across it.
pub(super) const BARRIER: char = '\u{fffc}';

/// What stands before the first and behind the last symbol.
const OUTSIDE: char = '\n';

/// The first digits of the decimal systems that Unicode has besides ASCII; each goes on for ten characters.
const ZEROS: [char; 36] = [
    '\u{660}', '\u{6f0}', '\u{7c0}', '\u{966}', '\u{9e6}', '\u{a66}', '\u{ae6}', '\u{b66}',
    '\u{be6}', '\u{c66}', '\u{ce6}', '\u{d66}', '\u{de6}', '\u{e50}', '\u{ed0}', '\u{f20}',
    '\u{1040}', '\u{1090}', '\u{17e0}', '\u{1810}', '\u{1946}', '\u{19d0}', '\u{1a80}', '\u{1a90}',
    '\u{1b50}', '\u{1bb0}', '\u{1c40}', '\u{1c50}', '\u{a620}', '\u{a8d0}', '\u{a900}', '\u{a9d0}',
    '\u{a9f0}', '\u{aa50}', '\u{abf0}', '\u{ff10}',
];

/// One symbol and the bytes of the text that it comes from.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    /// In lower case.
    c: char,
    upper: bool,
    len: u8,
    start: u32,
}

/// A text, folded.
#[derive(Debug)]
pub(super) struct View {
    symbols: Vec<Symbol>,
}

impl View {
    /// Folds a text; the parts that were found before are barriers. They are in order and don't overlap.
    pub(super) fn of<'f>(text: &str, found: impl Iterator<Item = &'f Range<usize>>) -> Self {
        let mut view = Self {
            symbols: Vec::with_capacity(text.len()),
        };
        let mut found = found.peekable();
        let mut at = 0;
        while let Some(rest) = text.get(at..) {
            let Some(c) = rest.chars().next() else {
                break;
            };
            let len = if let Some(span) = found.next_if(|span| span.start == at) {
                view.push(BARRIER, false, at, 0);
                span.len()
            } else if let Some(len) = opaque(rest, view.follows_word(view.len())) {
                view.push(BARRIER, false, at, 0);
                len
            } else {
                view.fold(c, at);
                c.len_utf8()
            };
            at += len.max(1);
        }
        view
    }

    fn push(&mut self, c: char, upper: bool, start: usize, len: usize) {
        self.symbols.push(Symbol {
            c,
            upper,
            // A character has four bytes at most, and a part of a text less than 4 GiB.
            len: len as u8,
            start: start as u32,
        });
    }

    fn fold(&mut self, c: char, at: usize) {
        if c.is_ascii() {
            let c = if c == '\t' { ' ' } else { c };
            return self.push(c.to_ascii_lowercase(), c.is_ascii_uppercase(), at, 1);
        }
        if is_invisible(c) || is_bidi_control(c) || matches!(c, '\u{fe0e}' | '\u{fe0f}') {
            return;
        }
        let len = c.len_utf8();
        if let Some(digit) = digit(c) {
            return self.push(digit, false, at, len);
        }
        let folded = match c {
            '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{30fb}' => '-',
            '\u{2024}' | '\u{3002}' | '\u{ff61}' | '\u{fe52}' => '.',
            '\u{fe6b}' => '@',
            '\u{2019}' | '\u{2bc}' => '\'',
            '\u{2028}' | '\u{2029}' | '\u{85}' => '\n',
            c if c.is_whitespace() => ' ',
            c => c,
        };
        if folded != c {
            return self.push(folded, false, at, len);
        }
        let upper = c.is_uppercase();
        let each = |part: char| {
            for lower in part.to_lowercase() {
                self.push(lower, upper, at, len);
            }
        };
        let has_font = matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}');
        match without_font(c).filter(|_| has_font) {
            Some(plain) => plain.iter().copied().for_each(each),
            None => nfd(std::iter::once(c)).into_iter().for_each(each),
        }
    }

    /// How many symbols there are.
    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// The symbol at a place; beyond the ends it is a line end.
    pub(super) fn at(&self, index: usize) -> char {
        self.symbols.get(index).map_or(OUTSIDE, |s| s.c)
    }

    /// The symbol before a place.
    pub(super) fn before(&self, index: usize) -> char {
        index.checked_sub(1).map_or(OUTSIDE, |i| self.at(i))
    }

    /// The value of the digit at a place.
    pub(super) fn digit(&self, index: usize) -> Option<u8> {
        u8::try_from(self.at(index).to_digit(10)?).ok()
    }

    pub(super) fn is_digit(&self, index: usize) -> bool {
        self.at(index).is_ascii_digit()
    }

    pub(super) fn is_upper(&self, index: usize) -> bool {
        self.symbols.get(index).is_some_and(|s| s.upper)
    }

    /// Whether a word could go on at this place: a letter, a digit, or a mark on one.
    pub(super) fn is_word(&self, index: usize) -> bool {
        is_word(self.at(index))
    }

    /// Whether the symbol before is part of a word.
    pub(super) fn follows_word(&self, index: usize) -> bool {
        is_word(self.before(index))
    }

    /// Whether the symbols on both sides of a place come from one character.
    pub(super) fn splits_character(&self, index: usize) -> bool {
        let start = |i: usize| self.symbols.get(i).map(|s| s.start);
        let before = index.checked_sub(1).and_then(start);
        before.is_some() && before == start(index)
    }

    /// The bytes of the text that some symbols come from.
    pub(super) fn span(&self, symbols: Range<usize>) -> Range<usize> {
        let first = self.symbols.get(symbols.start);
        let last = symbols.end.checked_sub(1).and_then(|i| self.symbols.get(i));
        match (first, last) {
            (Some(first), Some(last)) => {
                first.start as usize..last.start as usize + usize::from(last.len)
            }
            _ => 0..0,
        }
    }

    /// The end of the digits from a place on.
    pub(super) fn digits_end(&self, from: usize) -> usize {
        let mut to = from;
        while self.is_digit(to) {
            to += 1;
        }
        to
    }
}

/// Whether a character belongs to a word.
pub(super) fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    c.is_alphanumeric() || is_mark(c)
}

/// The ASCII digit for a decimal digit of another system.
fn digit(c: char) -> Option<char> {
    let code = u32::from(c);
    let value = match c {
        '\u{1d7ce}'..='\u{1d7ff}' => (code - 0x1d7ce) % 10,
        _ => {
            let zero = ZEROS.iter().rfind(|zero| **zero <= c)?;
            code - u32::from(*zero)
        }
    };
    char::from_digit(value, 10).filter(|_| value < 10)
}

/// The length of the placeholder or UUID at the start of a text; neither is searched.
fn opaque(text: &str, in_word: bool) -> Option<usize> {
    match text.as_bytes().first()? {
        b'[' => placeholder(text),
        b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' if !in_word => uuid(text.as_bytes()),
        _ => None,
    }
}

/// The length of the UUID at the start of a text: digits alone would look like other numbers.
fn uuid(text: &[u8]) -> Option<usize> {
    const FORM: &[u8] = b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    let fits = |(form, c): (&u8, &u8)| match form {
        b'x' => c.is_ascii_hexdigit(),
        sign => sign == c,
    };
    let ends = text
        .get(FORM.len())
        .is_none_or(|c| !c.is_ascii_alphanumeric());
    let whole = text.len() >= FORM.len() && ends;
    (whole && FORM.iter().zip(text).all(fits)).then_some(FORM.len())
}

/// The length of the placeholder at the start of a text.
fn placeholder(text: &str) -> Option<usize> {
    let fits = |form: &str| {
        let fits = |(f, c): (u8, u8)| {
            if f == b'#' {
                c.is_ascii_digit()
            } else {
                f == c
            }
        };
        text.len() >= form.len() && form.bytes().zip(text.bytes()).all(fits)
    };
    let forms = PiiKind::ALL.iter().map(|kind| kind.placeholder());
    forms.into_iter().find(|form| fits(form)).map(str::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let view = View::of(text, [].iter());
        (0..view.len()).map(|i| view.at(i)).collect()
    }

    #[test]
    fn look_alikes_become_ascii() {
        assert_eq!(folded("Ａb１２３＠ｘ．ｃｏｍ"), "ab123@x.com");
        assert_eq!(folded("٠١٢٣٤٥٦٧٨٩ ०९ 𝟎𝟗 𝐀"), "0123456789 09 09 a");
        assert_eq!(folded("1\u{200b}2\u{ad}3\u{2060}4\u{202e}"), "1234");
        assert_eq!(folded("1–2—3−4\u{a0}5\u{3000}6"), "1-2-3-4 5 6");
        assert_eq!(folded("José"), folded("Jose\u{301}"));
        assert_eq!(folded("x² ½ ①"), "x² ½ ①");
    }

    #[test]
    fn every_system_has_ten_digits() {
        for zero in ZEROS {
            let ten: String = (0..10)
                .filter_map(|n| char::from_u32(u32::from(zero) + n))
                .collect();
            assert_eq!(folded(&ten), "0123456789", "{zero:?}");
            assert!(ten.chars().all(char::is_numeric), "{zero:?}");
        }
        assert_eq!(digit('\u{66a}'), None);
        assert_eq!(digit('a'), None);
    }

    #[test]
    fn placeholders_are_not_looked_into() {
        let text = "a [EMAIL][CARD-XXXX-1234] [CARD-XXXX-12] [NOTE]";
        let barred = folded(text).replace(BARRIER, "#");
        assert_eq!(barred, "a ## [card-xxxx-12] [note]");
    }

    #[test]
    fn spans_are_those_of_the_text() {
        let text = "é１\u{200b}2x";
        let view = View::of(text, [].iter());
        // e, the accent, 1, 2, x
        assert_eq!(view.len(), 5);
        assert_eq!(text.get(view.span(2..4)), Some("１\u{200b}2"));
        assert!(view.splits_character(1) && !view.splits_character(2));
    }
}
