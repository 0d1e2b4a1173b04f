//! Where lines end, found 64 bytes at a time, and what the same look tells about the characters.
//!
//! Implements ENV-002 and ENV-003. A text in NFC without suspicious bytes is read without a second pass.

use crate::unicode::is_unseen_in_names;
use unicode_normalization::{IsNormalized, char::canonical_combining_class, is_nfc_quick};
use wide::i8x16;

const BLOCK: usize = 64;

/// The ends of the lines of a text, one after the other.
pub(crate) struct LineEnds<'t> {
    text: &'t str,
    /// Where the block begins that `newlines` is about, and where the next one does.
    block: usize,
    next_block: usize,
    /// One bit for each LF of the block that was not given yet.
    newlines: u64,
    /// There may be characters that are not allowed.
    pub(crate) suspicious: bool,
    /// The text is in NFC for certain, as far as it was looked at.
    pub(crate) nfc: bool,
    /// There are characters that no name or address has (ADR-009).
    pub(crate) unseen: bool,
}

impl<'t> LineEnds<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self {
            text,
            block: 0,
            next_block: 0,
            newlines: 0,
            suspicious: false,
            nfc: true,
            unseen: false,
        }
    }

    /// Looks at what is left of the text.
    pub(crate) fn finish(&mut self) {
        while self.advance() {}
    }

    /// Looks at the next block, if there is one.
    fn advance(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let Some(rest) = bytes.get(self.next_block..).filter(|r| !r.is_empty()) else {
            return false;
        };
        self.block = self.next_block;
        self.next_block += BLOCK;
        match rest.first_chunk::<BLOCK>() {
            Some(block) => self.look(block),
            None => {
                self.look(&padded(rest));
            }
        }
        true
    }

    #[inline(always)]
    fn look(&mut self, block: &[u8; BLOCK]) {
        let newlines = mask(block, |bytes| bytes.simd_eq(i8x16::splat(b'\n' as i8)));
        // One more makes DEL and everything beyond ASCII negative: then all but plain text is below '!'.
        let special = mask(block, |bytes| {
            (bytes + i8x16::splat(1)).simd_lt(i8x16::splat(b'!' as i8))
        });
        self.newlines = newlines;
        if special != newlines {
            self.look_closer(block, special & !newlines);
        }
    }

    /// Looks at the bytes of the block that are neither plain text nor LF.
    #[inline(never)]
    fn look_closer(&mut self, block: &[u8; BLOCK], special: u64) {
        let tabs = mask(block, |bytes| bytes.simd_eq(i8x16::splat(b'\t' as i8)));
        let beyond_ascii = mask(block, |bytes| bytes.simd_lt(i8x16::splat(0)));
        // CR counts as suspicious: whether an LF follows is checked only where there is one.
        self.suspicious |= special & !(tabs | beyond_ascii) != 0;
        if beyond_ascii != 0 {
            self.look_beyond_ascii(block);
        }
    }

    /// Looks at the characters beyond ASCII that begin in the block.
    #[inline(never)]
    fn look_beyond_ascii(&mut self, block: &[u8; BLOCK]) {
        // First bytes of characters are 0xc0 and above: -64 to -1.
        let mut leads = mask(block, |bytes| {
            bytes.simd_lt(i8x16::splat(0)) & bytes.simd_gt(i8x16::splat(-65))
        });
        while leads != 0 {
            let at = self.block + leads.trailing_zeros() as usize;
            leads &= leads - 1;
            let Some(c) = self.text.get(at..).and_then(|t| t.chars().next()) else {
                continue;
            };
            self.suspicious |= matches!(c, '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
            self.nfc &= is_surely_nfc(c);
            self.unseen |= is_unseen_in_names(c);
        }
    }
}

/// The rest of a text as a block, with spaces behind it.
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [b' '; BLOCK];
    if let Some(begin) = block.get_mut(..rest.len()) {
        begin.copy_from_slice(rest);
    }
    block
}

/// One bit for each byte of a block for which `is` gives all ones.
#[inline(always)]
fn mask(block: &[u8; BLOCK], is: impl Fn(i8x16) -> i8x16) -> u64 {
    let (quarters, _) = block.as_chunks::<16>();
    let shifted = [0, 16, 32, 48].into_iter().zip(quarters);
    shifted.fold(0, |mask, (shift, quarter)| {
        let bytes = i8x16::new(quarter.map(|b| b as i8));
        mask | u64::from(is(bytes).to_bitmask()) << shift
    })
}

/// The lines of a text that was looked at before, without their LF. Behind the last LF there is a line if there is
/// anything.
pub(crate) struct LineIter<'t> {
    text: &'t str,
    start: usize,
    block: usize,
    next_block: usize,
    newlines: u64,
}

impl<'t> LineIter<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self {
            text,
            start: 0,
            block: 0,
            next_block: 0,
            newlines: 0,
        }
    }

    /// The newlines of the next block; nothing behind the last one.
    #[inline(always)]
    fn advance(&mut self) -> Option<()> {
        let rest = self.text.as_bytes().get(self.next_block..);
        let rest = rest.unwrap_or(&[]);
        let is_newline = |bytes: i8x16| bytes.simd_eq(i8x16::splat(b'\n' as i8));
        self.newlines = match rest.first_chunk::<BLOCK>() {
            Some(block) => mask(block, is_newline),
            None if rest.is_empty() => return None,
            None => mask(&padded(rest), is_newline),
        };
        self.block = self.next_block;
        self.next_block += BLOCK;
        Some(())
    }

    /// Where the next line is, without its LF.
    #[inline(always)]
    pub(crate) fn next_span(&mut self) -> Option<(usize, usize)> {
        let start = self.start;
        while self.newlines == 0 {
            if self.advance().is_none() {
                // The text after the last LF.
                self.start = self.text.len();
                return (start < self.start).then_some((start, self.start));
            }
        }
        let end = self.block + self.newlines.trailing_zeros() as usize;
        self.newlines &= self.newlines - 1;
        self.start = end + 1;
        Some((start, end))
    }
}

impl<'t> Iterator for LineIter<'t> {
    type Item = &'t str;

    #[inline(always)]
    fn next(&mut self) -> Option<&'t str> {
        let (start, end) = self.next_span()?;
        self.text.get(start..end)
    }
}

impl Iterator for LineEnds<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.newlines == 0 {
            if !self.advance() {
                return None;
            }
        }
        let bit = self.newlines.trailing_zeros() as usize;
        self.newlines &= self.newlines - 1;
        Some(self.block + bit)
    }
}

/// Whether a character leaves a text in NFC whatever stands around it.
fn is_surely_nfc(c: char) -> bool {
    c < '\u{300}'
        || c == '→'
        || (canonical_combining_class(c) == 0
            && is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_end_is_found() {
        for len in 0..300 {
            let text: String = (0..len)
                .map(|i| if i % 7 == 3 || i % 64 > 61 { '\n' } else { 'a' })
                .collect();
            let expected: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
            assert_eq!(LineEnds::of(&text).collect::<Vec<_>>(), expected, "{len}");
        }
    }

    #[test]
    fn every_line_is_given() {
        for len in 0..300 {
            let text: String = (0..len)
                .map(|i| if i % 9 == 3 || i % 64 > 61 { '\n' } else { 'a' })
                .collect();
            let mut expected: Vec<&str> = text.split('\n').collect();
            expected.pop_if(|last| last.is_empty());
            assert_eq!(LineIter::of(&text).collect::<Vec<_>>(), expected, "{len}");
        }
    }

    #[test]
    fn suspicious_characters_are_seen_wherever_they_stand() {
        for c in (0..=0x2029_u32).filter_map(char::from_u32) {
            let bad = (c.is_control() && !matches!(c, '\t' | '\n'))
                || matches!(c, '\u{2028}' | '\u{2029}');
            for before in [0, 15, 62, 63, 64] {
                let text = format!("{}{c}x", "a".repeat(before));
                let mut ends = LineEnds::of(&text);
                ends.finish();
                assert_eq!(ends.suspicious, bad, "{c:?} at {before}");
            }
        }
    }

    #[test]
    fn characters_that_are_surely_in_nfc_are() {
        for c in ('\u{80}'..='\u{2ffff}').filter(|c| is_surely_nfc(*c)) {
            let text: String = ['a', c].into_iter().collect();
            assert!(unicode_normalization::is_nfc(&text), "{c:?}");
        }
        let mut ends = LineEnds::of("Cafe\u{301}");
        ends.finish();
        assert!(!ends.nfc);
    }
}
