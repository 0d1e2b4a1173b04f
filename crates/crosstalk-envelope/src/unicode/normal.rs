//! NFC and NFD. Classes and compositions are those of `unicode-normalization`; its iterators would bring the compatibility
//! forms with them, 60 KB that nobody reads.

use super::table;
use unicode_normalization::char::{canonical_combining_class, compose};

/// The characters in NFD.
///
/// ```
/// use crosstalk_envelope::unicode::nfd;
/// assert_eq!(nfd("é".chars()), ['e', '\u{301}']);
/// ```
pub fn nfd(chars: impl Iterator<Item = char>) -> Vec<char> {
    let parts = decomposed(chars);
    parts.into_iter().map(|(_, c)| c).collect()
}

/// The decomposed characters in canonical order, each with its combining class.
fn decomposed(chars: impl Iterator<Item = char>) -> Vec<(u8, char)> {
    let mut parts = Vec::with_capacity(chars.size_hint().0);
    for c in chars {
        let mut push = |part| parts.push((canonical_combining_class(part), part));
        match c {
            '\0'..'\u{c0}' => push(c),
            '\u{ac00}'..='\u{d7a3}' => hangul(c).for_each(push),
            _ => match table::decomposition(c) {
                Some(parts) => parts.iter().copied().for_each(push),
                None => push(c),
            },
        }
    }
    for run in parts.chunk_by_mut(|_, (class, _)| *class != 0) {
        if !run.is_sorted_by_key(|(class, _)| *class) {
            let mut sorted = run.to_vec();
            crate::sort_by_number(&mut sorted, |(class, _)| usize::from(*class));
            run.copy_from_slice(&sorted);
        }
    }
    parts
}

/// The two or three letters of a syllable of Hangul.
fn hangul(syllable: char) -> impl Iterator<Item = char> {
    let index = u32::from(syllable) - 0xac00;
    let (first, second, third) = (index / 588, index / 28 % 21, index % 28);
    let third = (third != 0).then_some(0x11a7 + third);
    let letters = [0x1100 + first, 0x1161 + second].into_iter().chain(third);
    letters.filter_map(char::from_u32)
}

/// The characters in NFC.
pub(crate) fn composed(chars: impl Iterator<Item = char>) -> String {
    let mut out = String::with_capacity(chars.size_hint().0);
    let mut starter = None;
    // The marks behind the starter that it was not composed with, and the class of the last of them.
    let (mut marks, mut last) = (Vec::new(), 0);
    for (class, c) in decomposed(chars) {
        let is_blocked = !marks.is_empty() && last >= class;
        let joined = starter.filter(|_| !is_blocked);
        if let Some(joined) = joined.and_then(|before| compose(before, c)) {
            starter = Some(joined);
        } else if class == 0 {
            out.extend(starter.replace(c).into_iter().chain(marks.drain(..)));
        } else {
            marks.push(c);
            last = class;
        }
    }
    out.extend(starter.into_iter().chain(marks));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::UnicodeNormalization as _;

    #[test]
    fn texts_become_what_the_iterators_of_the_crate_make_of_them() {
        let around = [
            ("", ""),
            ("a", "\u{301}"),
            ("e\u{323}", "\u{302}\u{301}"),
            ("\u{301}", "\u{327}x"),
            ("\u{1100}", "\u{1161}\u{11a8}"),
            ("\u{ac00}", "\u{11a8}"),
            ("\u{9c7}", "\u{9be}\u{345}\u{5b0}"),
            ("क", "\u{93c}"),
        ];
        for c in '\0'..=char::MAX {
            for (before, behind) in around {
                let text = format!("{before}{c}{behind}");
                assert!(text.nfd().eq(nfd(text.chars())), "{text:?}");
                assert!(text.nfc().eq(composed(text.chars()).chars()), "{text:?}");
            }
        }
    }

    #[test]
    fn sequences_of_letters_and_marks_become_what_the_crate_makes_of_them() {
        // Starters that compose, marks of several classes, one that is never composed, a singleton, and Hangul.
        let tricky: Vec<char> = "aeA\u{300}\u{301}\u{302}\u{323}\u{327}\u{338}\u{345}\u{340}\u{212b}\u{1100}\u{1161}\u{11a8}\u{ac00}\u{9c7}\u{9be}\u{5b0}\u{1d15e}"
            .chars()
            .collect();
        let count = tricky.len();
        for number in 0..count.pow(4) {
            let digits = [1, count, count.pow(2), count.pow(3)];
            let text: String = digits.map(|d| tricky[number / d % count]).iter().collect();
            assert!(text.nfd().eq(nfd(text.chars())), "{text:?}");
            assert!(text.nfc().eq(composed(text.chars()).chars()), "{text:?}");
        }
    }
}
