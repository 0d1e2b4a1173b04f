//! Brings a reflowed body back to the lines that were signed (SIG-016).
//!
//! The words are known, and two bytes of the digest of each line. Line by line, the search takes as many words as give
//! the mark; the digest of the whole decides. It is bounded: a body that does not come back is only reflowed.

use crate::meta::{Digest, Integrity, is_space};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::collections::HashSet;

/// How many readings of lines are tried at most.
const TRIALS: usize = 400_000;
/// Longer lines are not looked for.
const LONGEST: usize = 4096;
/// Indents that a line may have had.
const INDENTS: [&str; 12] = [
    "",
    "  ",
    "    ",
    "      ",
    "        ",
    "\t",
    "\t\t",
    " ",
    "   ",
    "          ",
    "            ",
    "\t\t\t",
];

/// A word, and what stood before it.
struct BodyWord<'w> {
    text: &'w str,
    /// White space on the same line.
    space: &'w str,
    /// It begins a line, with its white space as the indent.
    first: bool,
}

/// The body text with the declared digest, if the search finds it.
pub(super) fn restore(
    lines: &[Cow<'_, str>],
    declared: &Integrity,
    digest: &Digest,
) -> Option<String> {
    let marks = declared.marks.as_deref()?;
    let words = words(lines);
    let longest = declared.bytes?.min(LONGEST);
    let mut search = LineSearch {
        words: &words,
        marks,
        longest,
        trials: TRIALS,
        dead: HashSet::new(),
        found: Vec::new(),
        digest,
    };
    search.run()
}

fn words<'w>(lines: &'w [Cow<'_, str>]) -> Vec<BodyWord<'w>> {
    let mut words = Vec::new();
    for line in lines {
        let mut rest: &str = line;
        let mut first = true;
        while !rest.is_empty() {
            let at = rest.find(|c| !is_space(c)).unwrap_or(rest.len());
            let (space, behind) = rest.split_at_checked(at).unwrap_or(("", ""));
            let end = behind.find(is_space).unwrap_or(behind.len());
            let (text, tail) = behind.split_at_checked(end).unwrap_or(("", ""));
            if !text.is_empty() {
                words.push(BodyWord { text, space, first });
            }
            first = false;
            rest = tail;
        }
    }
    words
}

struct LineSearch<'w> {
    words: &'w [BodyWord<'w>],
    marks: &'w [[u8; 2]],
    longest: usize,
    trials: usize,
    /// Pairs of line and word from which no way leads to the end.
    dead: HashSet<(usize, usize)>,
    /// The lines so far, each with the word behind it and the ways that are left to try.
    found: Vec<SearchStep>,
    digest: &'w Digest,
}

/// A line of the way: where it begins, and the ways it can be read, the last of them taken.
struct SearchStep {
    from: usize,
    ways: Vec<(String, usize)>,
}

impl LineSearch<'_> {
    /// Depth first, without recursion: a body has up to 4,096 lines.
    fn run(&mut self) -> Option<String> {
        let mut from = 0;
        loop {
            let line = self.found.len();
            if line == self.marks.len() {
                if from == self.words.len() && self.is_it() {
                    return Some(self.text());
                }
            } else if !self.dead.contains(&(line, from)) {
                let ways = self.ways(line, from);
                if !ways.is_empty() {
                    self.found.push(SearchStep { from, ways });
                    from = self.next()?;
                    continue;
                }
                self.dead.insert((line, from));
            }
            from = self.back()?;
        }
    }

    /// Where the line behind the last step begins.
    fn next(&self) -> Option<usize> {
        self.found.last()?.ways.last().map(|(_, next)| *next)
    }

    /// Gives up the last way that was taken; none is left if this gives nothing.
    fn back(&mut self) -> Option<usize> {
        if self.trials == 0 {
            return None;
        }
        loop {
            let line = self.found.len().checked_sub(1)?;
            let step = self.found.last_mut()?;
            step.ways.pop();
            if let Some((_, next)) = step.ways.last() {
                return Some(*next);
            }
            let from = step.from;
            self.found.pop();
            self.dead.insert((line, from));
        }
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        let taken = self.found.iter().filter_map(|step| step.ways.last());
        taken.map(|(line, _)| line.as_str())
    }

    fn is_it(&self) -> bool {
        Digest::of_lines(self.lines()) == *self.digest
    }

    fn text(&self) -> String {
        self.lines().collect::<Vec<_>>().join("\n")
    }

    /// Every reading of a line from a word on that has its mark, the likeliest last.
    fn ways(&mut self, line: usize, from: usize) -> Vec<(String, usize)> {
        let mut ways = Vec::new();
        let Some(wanted) = self.marks.get(line).copied() else {
            return ways;
        };
        if GrowingLine::default().mark() == wanted {
            ways.push((String::new(), from));
        }
        let received = self.words.get(from).filter(|w| w.first).map(|w| w.space);
        let others = INDENTS.into_iter().filter(|i| Some(*i) != received);
        for indent in received.into_iter().chain(others) {
            self.extend(indent, from, wanted, &mut ways);
        }
        ways.reverse();
        ways
    }

    /// The readings of a line with this indent.
    fn extend(
        &mut self,
        indent: &str,
        from: usize,
        wanted: [u8; 2],
        ways: &mut Vec<(String, usize)>,
    ) {
        let mut lines = vec![GrowingLine::default().with(indent)];
        for (at, word) in self.words.iter().enumerate().skip(from) {
            if at > from {
                lines = glued(lines, word);
            }
            lines = lines.into_iter().map(|l| l.with(word.text)).collect();
            lines.retain(|l| l.text.len() <= self.longest);
            self.trials = self.trials.saturating_sub(lines.len());
            if lines.is_empty() || self.trials == 0 {
                return;
            }
            let fitting = lines.iter().filter(|l| l.mark() == wanted);
            ways.extend(fitting.map(|l| (l.text.clone(), at + 1)));
        }
    }
}

/// A line that grows, hashed on the way.
#[derive(Clone, Default)]
struct GrowingLine {
    text: String,
    hash: Sha256,
}

impl GrowingLine {
    fn with(mut self, more: &str) -> Self {
        self.text.push_str(more);
        self.hash.update(more.as_bytes());
        self
    }

    fn mark(&self) -> [u8; 2] {
        let digest: [u8; 32] = self.hash.clone().finalize().into();
        [digest[0], digest[1]]
    }
}

/// Adds the white space before the next word. At a line break there was a space or nothing.
fn glued(lines: Vec<GrowingLine>, word: &BodyWord<'_>) -> Vec<GrowingLine> {
    /// With more breaks of unclear kind, a line is not worth all the ways it could be read in.
    const UNCLEAR: usize = 4;
    let mut out = Vec::with_capacity(lines.len());
    let number = lines.len();
    for line in lines {
        if !word.first {
            out.push(line.with(word.space));
            continue;
        }
        if number < UNCLEAR {
            out.push(line.clone());
        }
        out.push(line.with(" "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(original: &[&str], received: &[&str]) -> Option<String> {
        let declared = Integrity::measure(original.iter().copied());
        let lines: Vec<Cow<'_, str>> = received.iter().map(|l| (*l).into()).collect();
        restore(&lines, &declared, &declared.digest.unwrap())
    }

    #[test]
    fn words_find_their_lines_again() {
        let original = [
            "The relay holds three queues, and each of them has one owner who may drain it:",
            "",
            "    fn drain(queue: &mut Queue) {",
            "        queue.clear();",
            "    }",
            "",
            "- the well-known one",
            "- another",
        ];
        let whole = original.join("\n");
        let collapsed = original.join(" ");
        let collapsed = collapsed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(restored(&original, &[&collapsed]).as_deref(), Some(&*whole));
        let wrapped = [
            "The relay holds three queues, and each",
            "of them has one owner who may drain it:",
            "",
            "    fn drain(queue: &mut",
            "    Queue) {",
            "        queue.clear();",
            "    }",
            "- the well-",
            "known one",
            "- another",
        ];
        assert_eq!(restored(&original, &wrapped).as_deref(), Some(&*whole));
        assert_eq!(restored(&original, &["other words"]), None);
        assert_eq!(restored(&original, &[]), None);
    }
}
