//! Code fences around envelopes (PST-001). They count only between envelopes, never inside one.

use std::ops::Range;

/// Follows the code fences of the text between envelopes.
#[derive(Debug, Default)]
pub(super) struct Fences {
    /// How far the text was looked at.
    at: usize,
    open: Option<Fence>,
}

/// The opening line of a code block.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    place: Range<usize>,
    mark: char,
    length: usize,
}

impl Fence {
    /// The fence at a place of a text.
    pub(super) fn at(text: &str, place: Range<usize>) -> Option<Self> {
        let line = text.get(place.clone())?;
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.len() - line.trim_start_matches(mark).len();
        Some(Self {
            place,
            mark,
            length,
        })
    }

    /// Whether a line that begins with its marks closes it.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let info = line.trim_start_matches(self.mark);
        line.len() - info.len() >= self.length && info.trim().is_empty()
    }
}

impl Fences {
    /// The fence that is open at the line start `to`.
    pub(super) fn open_at(&mut self, text: &str, to: usize) -> Option<Range<usize>> {
        let gap = text.get(self.at..to).unwrap_or("");
        if memchr::memmem::find(gap.as_bytes(), b"```")
            .or_else(|| memchr::memmem::find(gap.as_bytes(), b"~~~"))
            .is_some()
        {
            let mut at = self.at;
            for line in gap.split_inclusive('\n') {
                self.line(line.trim_end(), at);
                at += line.len();
            }
        }
        self.at = to;
        self.open.as_ref().map(|f| f.place.clone())
    }

    /// Goes on behind an envelope.
    pub(super) fn skip_to(&mut self, at: usize) {
        self.at = at;
    }

    fn line(&mut self, line: &str, at: usize) {
        // A fence may be inside a quote or a list.
        let bare = line.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`' && c != '~');
        let Some(mark) = bare.chars().next().filter(|c| matches!(c, '`' | '~')) else {
            return;
        };
        let info = bare.trim_start_matches(mark);
        let length = bare.len() - info.len();
        match &self.open {
            Some(open) if open.is_closed_by(bare) => self.open = None,
            None if length >= 3 && !info.contains('`') => {
                self.open = Some(Fence {
                    place: at + line.len() - bare.len()..at + line.len(),
                    mark,
                    length,
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_open_and_close() {
        for (text, open) in [
            ("```\n", Some(0..3)),
            ("text\n> ~~~~ text\n", Some(7..16)),
            ("```sh\nls\n```\n", None),
            ("````\n```\n", Some(0..4)),
            ("```inline``` code\n", None),
            ("plain\n", None),
        ] {
            let mut fences = Fences::default();
            assert_eq!(fences.open_at(text, text.len()), open, "{text}");
        }
    }
}
