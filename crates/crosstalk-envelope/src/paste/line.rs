//! The lines of a paste: they end with LF, CRLF or a lone CR (PST-022).

use super::clean;
use std::borrow::Cow;
use std::ops::Range;

/// A text as lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct PasteLines<'t> {
    pub(super) text: &'t str,
    lone_cr: bool,
}

/// Where a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineSpan {
    pub(super) start: usize,
    /// Its end, without the line end.
    pub(super) end: usize,
    /// Where the next line begins.
    pub(super) next: usize,
}

impl LineSpan {
    pub(super) const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

impl<'t> PasteLines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        Self {
            text,
            lone_cr: memchr::memchr_iter(b'\r', bytes).any(|i| bytes.get(i + 1) != Some(&b'\n')),
        }
    }

    /// The line that begins at `start`.
    pub(super) fn at(&self, start: usize) -> LineSpan {
        let rest = self.text.as_bytes().get(start..).unwrap_or(&[]);
        let end = if self.lone_cr {
            memchr::memchr2(b'\n', b'\r', rest)
        } else {
            memchr::memchr(b'\n', rest)
        };
        let Some(end) = end.map(|i| start + i) else {
            let end = self.text.len().max(start);
            return LineSpan {
                start,
                end,
                next: end,
            };
        };
        let bytes = self.text.as_bytes();
        if bytes.get(end) == Some(&b'\r') {
            let next = end + 1 + usize::from(bytes.get(end + 1) == Some(&b'\n'));
            return LineSpan { start, end, next };
        }
        let has_cr = end > start && bytes.get(end - 1) == Some(&b'\r');
        LineSpan {
            start,
            end: end - usize::from(has_cr),
            next: end + 1,
        }
    }

    /// The line that contains `at`; it begins at `floor` or after it.
    pub(super) fn around(&self, at: usize, floor: usize) -> LineSpan {
        let before = self.text.as_bytes().get(floor..at).unwrap_or(&[]);
        let start = if self.lone_cr {
            memchr::memrchr2(b'\n', b'\r', before)
        } else {
            memchr::memrchr(b'\n', before)
        };
        self.at(start.map_or(floor, |i| floor + i + 1))
    }

    /// The next line that is not blank, or the last one.
    pub(super) fn next_filled(&self, mut at: usize) -> LineSpan {
        loop {
            let line = self.at(at);
            if line.next >= self.text.len() || !self.get(line).trim().is_empty() {
                return line;
            }
            at = line.next;
        }
    }

    pub(super) fn get(&self, line: LineSpan) -> &'t str {
        self.text.get(line.range()).unwrap_or("")
    }

    /// Whether a line ends with a CR alone.
    pub(super) fn ends_with_cr(&self, line: LineSpan) -> bool {
        self.lone_cr && self.text.get(line.end..line.next) == Some("\r")
    }
}

/// A line of an envelope without its wrapping.
#[derive(Clone, Debug)]
pub(super) struct PasteLine<'t> {
    pub(super) text: Cow<'t, str>,
    /// Its range in the source of the region.
    pub(super) span: Range<usize>,
}

impl<'t> PasteLine<'t> {
    /// The place of a part of the line in the source; of the whole line where the line was cleaned.
    pub(super) fn place(&self, part: &str) -> Range<usize> {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let is_exact = self.text.len() == self.span.len()
            && self
                .text
                .get(offset..)
                .is_some_and(|t| t.len() >= part.len());
        if is_exact {
            let start = self.span.start + offset;
            start..start + part.len()
        } else {
            self.span.clone()
        }
    }

    /// The place of the byte at an offset of the line.
    pub(super) fn byte(&self, offset: usize) -> Range<usize> {
        let start = (self.span.start + offset).min(self.span.end);
        start..(start + 1).min(self.span.end)
    }

    /// A part of the line as a line of its own, trimmed.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        let is_blank = |c: char| c.is_whitespace() && !clean::is_separator(c);
        let part = self.text.get(range).unwrap_or("").trim_matches(is_blank);
        let span = self.place(part);
        Self {
            text: self.part(part),
            span,
        }
    }

    fn part(&self, part: &str) -> Cow<'t, str> {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        match &self.text {
            Cow::Borrowed(text) => Cow::Borrowed(
                text.get(offset..offset.saturating_add(part.len()))
                    .unwrap_or(""),
            ),
            Cow::Owned(_) => Cow::Owned(part.to_owned()),
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_three_ways() {
        for text in [
            "a\nbc\n\nd",
            "a\r\nbc\r\n\r\nd",
            "a\rbc\r\rd",
            "a\rbc\r\n\nd",
        ] {
            let lines = PasteLines::new(text);
            let mut at = 0;
            let mut found = Vec::new();
            while at < text.len() {
                let line = lines.at(at);
                found.push(lines.get(line));
                assert_eq!(lines.around(line.end, 0), line, "{text:?}");
                at = line.next;
            }
            assert_eq!(found, ["a", "bc", "", "d"], "{text:?}");
        }
    }

    #[test]
    fn places_are_exact() {
        let line = PasteLine {
            text: "user: kalle".into(),
            span: 10..21,
        };
        let value = line.text.get(6..).unwrap();
        assert_eq!(line.place(value), 16..21);
        assert_eq!(line.slice(5..11).span, 16..21);
        assert_eq!(line.place("another text"), 10..21);
    }
}
