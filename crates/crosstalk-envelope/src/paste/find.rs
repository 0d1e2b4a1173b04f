//! Where the envelopes of a paste begin and end (SCN-001 to SCN-006).
//!
//! One pass, forward only: what lies between a direction line and its `[[END]]` is never looked at again
//! as the place of another message.

use super::frame::{Frame, Wrapping};
use super::marker::{self, DirectionMarker, NOISE};
use super::repaired;
use crate::diagnostic::{Diagnostic, Severity};
use crate::grammar::Reserved;
use crate::registry::rule;
use std::ops::Range;

/// An envelope in a paste.
#[derive(Debug)]
pub(super) struct Region<'t> {
    /// From the start of its direction line to the end of its last line.
    pub(super) span: Range<usize>,
    pub(super) frame: Frame<'t>,
    pub(super) marker: DirectionMarker,
    /// Headers follow on the direction line: newlines were lost.
    pub(super) collapsed: bool,
    /// The opening code fence before it.
    fence: Option<Range<usize>>,
    /// What stands before the direction marker on its line, and is no prefix of the other lines.
    pub(super) prose: Option<Range<usize>>,
}

impl Region<'_> {
    /// Whether the text between the markers needs no unwrapping.
    pub(super) fn is_plain(&self) -> bool {
        let marker = &self.marker;
        self.frame.is_trivial()
            && !self.collapsed
            && marker.span.start == 0
            && !marker.other_arrow
            && !marker.other_spelling
    }

    /// What was done to the region as a whole.
    pub(super) fn repairs(&self) -> impl Iterator<Item = Diagnostic> {
        let start = self.span.start;
        let wrapping = self.frame.wrapping().map(|wrapping| match wrapping {
            Wrapping::Indent => (&rule::EXTRA_INDENT, "an extra indent was removed"),
            Wrapping::Quote => (
                &rule::QUOTE_PREFIX,
                "the prefix before each line was removed",
            ),
            Wrapping::Numbers => (&rule::LINE_NUMBERS, "the line numbers were removed"),
            Wrapping::Box => (&rule::BOX, "the frame around the lines was removed"),
        });
        let fence = self
            .fence
            .clone()
            .map(|at| repaired(&rule::CODE_FENCE, at, "the code fence was removed"));
        let wrapping = wrapping
            .map(|(rule, what)| repaired(rule, start..start + self.marker.span.start, what));
        fence.into_iter().chain(wrapping)
    }
}

type Outcome<'t> = Result<Region<'t>, Vec<Diagnostic>>;

/// Calls `each` for every envelope of a text, in order, and for what belongs to none.
pub(super) fn regions<'t>(text: &'t str, each: &mut dyn FnMut(Outcome<'t>)) {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut finder = Finder {
        text,
        escaped: marker::has_escaped_brackets(text),
        lookahead: text.len(),
    };
    let mut at = start;
    while let Some(line) = finder.next_marked_line(at, start) {
        at = match finder.opening(&line) {
            Some(region) => finder.close(region, each),
            None => {
                let content = text.get(line.clone()).unwrap_or("");
                if marker::end_line(content).is_some() {
                    each(Err(vec![stray_end(line.clone())]));
                }
                line.end + 1
            }
        };
    }
}

fn stray_end(line: Range<usize>) -> Diagnostic {
    Diagnostic {
        rule: &rule::STRAY_END,
        severity: Severity::Warning,
        span: line,
        message: "there is an [[END]] without the beginning of its message".into(),
    }
}

struct Finder<'t> {
    text: &'t str,
    escaped: bool,
    /// How many bytes may still be read ahead because of declared line counts: keeps the search linear.
    lookahead: usize,
}

impl<'t> Finder<'t> {
    fn line_at(&self, start: usize) -> Range<usize> {
        let rest = self.text.as_bytes().get(start..).unwrap_or(&[]);
        start..memchr::memchr(b'\n', rest).map_or(self.text.len(), |i| start + i)
    }

    fn get(&self, line: Range<usize>) -> &'t str {
        self.text.get(line).unwrap_or("")
    }

    /// The next line that has a closing bracket of a marker, from the line start `at` on.
    fn next_marked_line(&self, at: usize, floor: usize) -> Option<Range<usize>> {
        let close = marker::next_close(self.text, at, self.escaped)?;
        let before = self.text.as_bytes().get(floor..close).unwrap_or(&[]);
        let start = memchr::memrchr(b'\n', before).map_or(floor, |i| floor + i + 1);
        Some(self.line_at(start))
    }

    /// The next line that is not blank.
    fn next_line(&self, mut at: usize) -> Range<usize> {
        loop {
            let line = self.line_at(at);
            if line.end >= self.text.len() || !self.get(line.clone()).trim().is_empty() {
                return line;
            }
            at = line.end + 1;
        }
    }

    /// Whether a message begins in this line.
    fn opening(&self, line: &Range<usize>) -> Option<Region<'t>> {
        let content = self.get(line.clone());
        let marker = marker::direction_in(content)?;
        let before = content.get(..marker.span.start).unwrap_or("");
        let after = content.get(marker.span.end..).unwrap_or("");
        let rest = after
            .trim()
            .trim_matches(NOISE)
            .trim_matches(['│', '┃', '║', '|'])
            .trim();
        let collapsed = !rest.is_empty();
        if collapsed && !begins_with_header(rest) {
            return None;
        }
        let next = self.next_line((line.end + 1).min(self.text.len()));
        let next = self.get(next);
        let quoted = before.trim_end_matches(NOISE);
        let frame = Frame::of(quoted, content, if collapsed { "" } else { next });
        let is_prose = quoted.chars().any(char::is_alphanumeric) && frame.is_trivial();
        if is_prose && !collapsed && !begins_with_header(next.trim_start()) {
            return None;
        }
        let leftover = frame.is_trivial() && !before.trim_matches(NOISE).trim().is_empty();
        Some(Region {
            span: line.clone(),
            marker,
            frame,
            collapsed,
            fence: self.fence_before(line.start),
            prose: leftover.then(|| line.start..line.start + before.len()),
        })
    }

    /// The line before, if it opens a code fence.
    fn fence_before(&self, start: usize) -> Option<Range<usize>> {
        let before = self.get(0..start).trim_end();
        let from = before.rfind('\n').map_or(0, |i| i + 1);
        let line = before.get(from..)?;
        let bare = line.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`' && c != '~');
        (bare.starts_with("```") || bare.starts_with("~~~")).then_some(from..before.len())
    }

    /// Finds the end of a region and reports it; gives the place where the search goes on.
    fn close(&mut self, mut region: Region<'t>, each: &mut dyn FnMut(Outcome<'t>)) -> usize {
        if region.collapsed {
            return self.close_collapsed(region, each);
        }
        let start = region.span.start;
        let mut others: Vec<Range<usize>> = Vec::new();
        let mut at = region.span.end + 1;
        loop {
            let Some(line) = self.next_marked_line(at, at.min(self.text.len())) else {
                let end = self
                    .breaks_between(&region.frame, at, self.text.len())
                    .unwrap_or(self.text.len());
                return self.refuse_cut(start..end, &others, each);
            };
            if let Some(outside) = self.breaks_between(&region.frame, at, line.end) {
                return self.refuse_cut(start..outside, &others, each);
            }
            let content = region.frame.strip(self.get(line.clone())).unwrap_or("");
            let ends = marker::end_line(content).is_some() || ends_behind_sig(content);
            if ends && let Some(further) = self.declared_end(&region, line.start) {
                at = further;
                continue;
            }
            at = (line.end + 1).min(self.text.len());
            if ends {
                let end = at;
                if others.is_empty() {
                    region.span.end = end;
                    each(Ok(region));
                } else {
                    each(Err(self.mixed_up(start, &others)));
                }
                return end;
            }
            if begins_here(content) {
                others.push(line);
            }
            if at == self.text.len() {
                return self.refuse_cut(start..at, &others, each);
            }
        }
    }

    /// Everything up to the only `[[END]]`; with two of anything, nothing can be told apart.
    fn close_collapsed(
        &mut self,
        mut region: Region<'t>,
        each: &mut dyn FnMut(Outcome<'t>),
    ) -> usize {
        let start = region.span.start;
        let mut from = start + region.marker.span.end;
        let mut at = start;
        while at < self.text.len() {
            let line = self.line_at(at);
            let content = self.get(from..line.end);
            let next = (line.end + 1).min(self.text.len());
            let other =
                marker::direction_in(content).map(|m| from + m.span.start..from + m.span.end);
            let end = marker::end_at(content);
            let second = end
                .as_ref()
                .and_then(|e| marker::end_at(content.get(e.end..).unwrap_or("")));
            if other.is_some() || second.is_some() {
                let others = other.into_iter().collect::<Vec<_>>();
                each(Err(self.mixed_up(start, &others)));
                return next;
            }
            if end.is_some() {
                region.span.end = next;
                each(Ok(region));
                return next;
            }
            at = next;
            from = next;
        }
        self.refuse_cut(start..self.text.len(), &[], each)
    }

    /// The first line from `from` on that stands outside the frame, before `to`.
    fn breaks_between(&self, frame: &Frame<'_>, from: usize, to: usize) -> Option<usize> {
        if !frame.can_break() {
            return None;
        }
        let mut at = from;
        while at < to {
            let line = self.line_at(at);
            if frame.strip(self.get(line.clone())).is_none() {
                return Some(at);
            }
            at = line.end + 1;
        }
        None
    }

    /// Where the body's last line ends, if the head declares more lines than there are before `end`, and a
    /// `sig:` line stands right behind them (SCN-004).
    fn declared_end(&mut self, region: &Region<'_>, end: usize) -> Option<usize> {
        let head = self.get(region.span.start..end);
        memchr::memmem::find(head.as_bytes(), b"Lines:")?;
        let mut lines = None;
        let mut at = region.span.end + 1;
        let mut in_integrity = false;
        let body = loop {
            if at >= end {
                return None;
            }
            let line = self.line_at(at);
            let content = region.frame.strip(self.get(line.clone()))?.trim_end();
            at = line.end + 1;
            if let Some(namespace) = content.strip_prefix("meta:") {
                in_integrity = namespace.trim() == "integrity";
            } else if let Some(count) = content.strip_prefix("Lines:").filter(|_| in_integrity) {
                lines = count.trim().parse::<usize>().ok();
            } else if content.starts_with("body:") || content.starts_with("response:") {
                break at;
            }
        };
        let mut at = body;
        for _ in 0..lines? {
            let line = self.line_at(at);
            self.lookahead = self.lookahead.checked_sub(line.len())?;
            region.frame.strip(self.get(line.clone()))?;
            at = line.end + 1;
            if at >= self.text.len() {
                return None;
            }
        }
        let sig = self.next_line(at);
        let is_sig = region
            .frame
            .strip(self.get(sig.clone()))?
            .starts_with("sig:");
        (is_sig && at > end).then_some(sig.start)
    }

    /// The text stopped before the `[[END]]`, or the frame did.
    fn refuse_cut(
        &self,
        span: Range<usize>,
        others: &[Range<usize>],
        each: &mut dyn FnMut(Outcome<'t>),
    ) -> usize {
        if !others.is_empty() {
            each(Err(self.mixed_up(span.start, others)));
            return span.end;
        }
        let text = self.get(span.clone()).trim_end();
        let last = span.start + text.rfind('\n').map_or(0, |i| i + 1);
        each(Err(vec![Diagnostic {
            rule: &rule::END_MISSING,
            severity: Severity::Error,
            span: last..span.start + text.len(),
            message: "the message has no [[END]]: it was probably cut off after this line".into(),
        }]));
        span.end
    }

    /// A message began before another one ended: an error for each of them (SCN-003).
    fn mixed_up(&self, start: usize, others: &[Range<usize>]) -> Vec<Diagnostic> {
        let first = self.line_at(start);
        let places = std::iter::once(first).chain(others.iter().cloned());
        places
            .map(|span| Diagnostic {
                rule: &rule::DIRECTION_INSIDE,
                severity: Severity::Error,
                span,
                message:
                    "one message begins before the [[END]] of another: neither can be read safely"
                        .into(),
            })
            .collect()
    }
}

/// Whether a direction marker stands at the start of a line of the same frame.
fn begins_here(content: &str) -> bool {
    marker::direction_in(content).is_some_and(|m| {
        let before = content.get(..m.span.start).unwrap_or("");
        let after = content
            .get(m.span.end..)
            .unwrap_or("")
            .trim()
            .trim_matches(NOISE)
            .trim();
        before.trim_matches(NOISE).is_empty() && (after.is_empty() || begins_with_header(after))
    })
}

/// `sig: none [[END]]` on one line.
fn ends_behind_sig(content: &str) -> bool {
    content.starts_with("sig:")
        && marker::end_at(content).is_some_and(|e| e.end == content.trim_end().len())
}

/// Whether a text begins with a name of the format and a colon, in any case, with or without Markdown.
fn begins_with_header(text: &str) -> bool {
    let bare = text
        .trim_start_matches(NOISE)
        .trim_start_matches(['-', '•', ' ', '>', '|'])
        .trim_start_matches(NOISE);
    let Some((name, _)) = bare.split_at_checked(bare.find([':', '：']).unwrap_or(0)) else {
        return false;
    };
    Reserved::named(name.trim_end_matches(NOISE).trim()).is_some()
}
