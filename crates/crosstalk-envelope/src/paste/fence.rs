//! Code fences around envelopes (PST-001). They count only between envelopes, never inside one.

use std::ops::Range;

/// Follows the code fences of the text between envelopes.
#[derive(Debug, Default)]
pub(super) struct Fences {
    /// How far the text was looked at.
    at: usize,
    open: Option<Fence>,
}

#[derive(Clone, Debug)]
struct Fence {
    place: Range<usize>,
    mark: char,
    length: usize,
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
        // A fence may stand in a quote or a list.
        let bare = line.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`' && c != '~');
        let Some(mark) = bare.chars().next().filter(|c| matches!(c, '`' | '~')) else {
            return;
        };
        let info = bare.trim_start_matches(mark);
        let length = bare.len() - info.len();
        match &self.open {
            Some(open) if open.mark == mark && length >= open.length && info.is_empty() => {
                self.open = None;
            }
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
