//! Messages without `[[END]]` that are complete all the same (PST-029).
//!
//! Models forget the last line more often than any other. A `sig:` line tells that the body is over; so do an end marker
//! with a bracket too few and the closing fence of the code block in which the message began. Everything else may be cut
//! off.

use super::body::is_rest_of_sig;
use super::fence::Fence;
use super::find::Finder;
use super::line::LineSpan;
use super::marker;
use super::name;
use super::region::Region;
use crate::grammar::Reserved;
use std::borrow::Cow;
use std::ops::Range;

/// Where a message without `[[END]]` is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// Behind its last line.
    pub(super) end: usize,
    /// Where the search goes on.
    pub(super) next: usize,
    /// The line that tells it.
    pub(super) by: Range<usize>,
    pub(super) is_signed_off: bool,
    /// How many lines below an end marker with a bracket too few belong to nothing.
    pub(super) left_out: usize,
}

/// A line below the body mark that is not blank.
struct BodyLine<'t> {
    place: LineSpan,
    text: Cow<'t, str>,
}

impl BodyLine<'_> {
    fn is_indented(&self) -> bool {
        self.text.starts_with("  ") || self.text.starts_with('\t')
    }

    fn is_fence(&self) -> bool {
        let text = self.text.as_ref();
        !self.is_indented() && (text.starts_with("```") || text.starts_with("~~~"))
    }
}

impl<'t> Finder<'t> {
    /// Where a message is over that has no `[[END]]` before `end`; nothing if it may be cut off. Where another message
    /// begins at `end`, a body whose lines are not indented may quote that one, and is never taken as complete.
    pub(super) fn ending(&self, region: &Region, end: usize, begins: bool) -> Option<Ending> {
        if region.after_open_body {
            // It may be quoted in a message that has lost its beginning.
            return None;
        }
        if region.collapsed {
            return self.collapsed_ending(region).filter(|_| !begins);
        }
        let (has_inline, lines) = self.body_lines(region, end);
        let fence = region.fence.clone();
        let fence = fence.and_then(|at| Fence::at(self.lines.text, at));
        let closes = |line: &BodyLine<'_>| {
            let is_closed = fence.as_ref().is_some_and(|f| f.is_closed_by(&line.text));
            line.is_fence() && is_closed
        };
        // A line at the prefix behind an indented body is not part of it. Without an indented line, the body may have lost its
        // indent.
        let first = end_of_indented(&lines)?;
        let behind = lines.get(first)?;
        let is_indented = first > 0 || (has_inline && !begins);
        if is_indented && name::is_sig(&behind.text) {
            let ending = signed_off(&lines, first);
            // Text between a signature and the end of its message is never passed over.
            let mut rest = lines.iter().filter(|l| l.place.start >= ending.end);
            let is_over = !is_signature(&behind.text) || rest.all(closes);
            return is_over.then_some(ending);
        }
        if is_indented && marker::is_broken_end(&behind.text) {
            return Some(marked(&lines, first, closes));
        }
        if is_indented && closes(behind) {
            return Some(closed(behind));
        }
        if begins {
            return None;
        }
        let sig = lines.iter().rposition(|l| name::is_sig(&l.text));
        let marker = lines.iter().position(|l| marker::is_broken_end(&l.text));
        // Where words stand between the marker and a sig: line, the body goes on with them.
        let goes_on = |marker: usize| sig.is_some_and(|sig| sig > marker + 1);
        if let Some(marker) = marker.filter(|m| !goes_on(*m)) {
            return Some(marked(&lines, marker, closes));
        }
        if let Some(at) = sig {
            let ending = signed_off(&lines, at);
            let mut rest = lines.iter().filter(|l| l.place.start >= ending.end);
            return rest.all(closes).then_some(ending);
        }
        // A second fence may belong to code in the body: then it is unclear which one ends the block.
        let mut fences = lines.iter().filter(|l| l.is_fence());
        match (fences.next(), fences.next()) {
            (Some(only), None) if closes(only) => Some(closed(only)),
            _ => None,
        }
    }

    /// The end of the indented body of a message that may be cut off, if words follow that are not indented: those are
    /// part of the chat. Without an indented line, that is unclear.
    pub(super) fn end_of_cut(&self, region: &Region, end: usize) -> Option<usize> {
        if region.collapsed {
            return None;
        }
        let (_, lines) = self.body_lines(region, end);
        let first = end_of_indented(&lines).filter(|first| *first > 0)?;
        let behind = lines.get(first)?.place.start;
        // A line that only lost its indent follows at once; the words of a chat stand apart.
        let last = lines.get(first - 1)?.place.next;
        let is_apart = self
            .lines
            .text
            .get(last..behind)
            .is_some_and(|gap| !gap.is_empty());
        let is_fence = lines.get(first).is_some_and(BodyLine::is_fence);
        (is_apart || is_fence).then_some(behind)
    }

    /// The lines below the body mark up to `end` that are not blank, without their prefix; whether text stands on the line of
    /// the mark.
    fn body_lines(&self, region: &Region, end: usize) -> (bool, Vec<BodyLine<'t>>) {
        let mut unwrap = region.frame.unwrap_lines();
        let (mut at, mut in_body, mut has_inline) = (region.below, false, false);
        let mut lines = Vec::new();
        while at < end {
            let place = self.lines.at(at);
            at = place.next;
            let Some(text) = unwrap.line(self.lines.get(place)) else {
                break;
            };
            if !in_body {
                let named = name::named(&text);
                let reserved = named.as_ref().and_then(|n| Reserved::named(n.name));
                in_body = matches!(reserved, Some((Reserved::Body(_), _)));
                let inline = named.filter(|_| in_body).map_or("", |n| n.value);
                has_inline = inline.contains(char::is_alphanumeric);
            } else if !text.trim().is_empty() {
                lines.push(BodyLine { place, text });
            }
        }
        (has_inline, lines)
    }

    /// A message without line ends is complete if `sig: none` or a signature are its last words.
    fn collapsed_ending(&self, region: &Region) -> Option<Ending> {
        let line = self.lines.at(region.span.start);
        let text = self.lines.get(line).trim_end();
        let (before, value) = text.rsplit_once([' ', '\t'])?;
        let name = before.trim_end().rsplit([' ', '\t']).next()?;
        let is_value = value.eq_ignore_ascii_case("none") || value.contains(":pkid=");
        (name::is_sig(&format!("{name} ")) && is_value).then(|| Ending {
            end: line.next,
            next: line.next,
            by: line.range(),
            is_signed_off: true,
            left_out: 0,
        })
    }
}

/// Whether a `sig:` line has a value other than `none`.
fn is_signature(line: &str) -> bool {
    let (_, value) = line.split_once([':', '：']).unwrap_or(("", ""));
    let value = value.trim().trim_matches(marker::NOISE).trim();
    !value.is_empty() && !value.eq_ignore_ascii_case("none")
}

/// Over with the `sig:` line at an index, and what it was wrapped to.
fn signed_off(lines: &[BodyLine<'_>], at: usize) -> Ending {
    let sig = lines.get(at);
    let may_go_on = sig.is_some_and(|l| l.text.contains(":pkid="));
    let rest = lines.iter().skip(at + 1);
    let rest = rest.take_while(|l| may_go_on && !l.is_indented() && is_rest_of_sig(&l.text));
    let last = rest.last().or(sig).map_or(0, |l| l.place.next);
    Ending {
        end: last,
        next: last,
        by: sig.map_or(0..0, |l| l.place.range()),
        is_signed_off: true,
        left_out: 0,
    }
}

/// The first line that is not indented. An end marker with a bracket too few is one of the body where the body goes on below
/// it.
fn end_of_indented(lines: &[BodyLine<'_>]) -> Option<usize> {
    let is_inside = |at: usize, line: &BodyLine<'_>| {
        let goes_on = lines.get(at + 1).is_some_and(BodyLine::is_indented);
        line.is_indented() || (at > 0 && goes_on && marker::is_broken_end(&line.text))
    };
    let mut lines = lines.iter().enumerate();
    lines.find_map(|(at, line)| (!is_inside(at, line)).then_some(at))
}

/// Over before an end marker that has a bracket too few. The lines below it are counted, but for the closing fence.
fn marked(lines: &[BodyLine<'_>], at: usize, closes: impl Fn(&BodyLine<'_>) -> bool) -> Ending {
    let place = lines.get(at).map(|l| l.place);
    let below = lines.iter().skip(at + 1);
    Ending {
        end: place.map_or(0, |p| p.start),
        next: place.map_or(0, |p| p.next),
        by: place.map_or(0..0, |p| p.range()),
        is_signed_off: false,
        left_out: below.filter(|l| !closes(l)).count(),
    }
}

/// Over before the closing fence of its block.
fn closed(line: &BodyLine<'_>) -> Ending {
    Ending {
        end: line.place.start,
        next: line.place.start,
        by: line.place.range(),
        is_signed_off: false,
        left_out: 0,
    }
}
