//! Where the envelopes of a paste begin (SCN-001 to SCN-006).
//!
//! One pass, forward only: what lies between a direction line and its `[[END]]` is never looked at again
//! as the place of another message.

use super::clean;
use super::close::mentions_sig;
use super::doubt::DoubtfulRegions;
use super::fence::Fences;
use super::frame::Frame;
use super::line::{LineSpan, PasteLines};
use super::marker::{self, Closes, NOISE};
use super::name;
use super::region::Region;
use crate::diagnostic::{Diagnostic, Severity};
use crate::grammar::Reserved;
use crate::registry::rule;
use std::borrow::Cow;
use std::ops::Range;

/// An envelope, or why there is none.
pub(super) type RegionResult = Result<Region, RegionRejection>;

/// Why there is no envelope.
#[derive(Debug)]
pub(super) struct RegionRejection {
    pub(super) findings: Vec<Diagnostic>,
    /// The part of the envelope that is there, if it may be cut off.
    pub(super) cut: Option<Box<Region>>,
    /// It was cut off where another one begins: nothing of it goes on there.
    pub(super) before_another: bool,
}

impl From<Vec<Diagnostic>> for RegionRejection {
    fn from(findings: Vec<Diagnostic>) -> Self {
        Self {
            findings,
            cut: None,
            before_another: false,
        }
    }
}
/// The function that is called for each of them.
pub(super) type Each<'e> = &'e mut dyn FnMut(RegionResult);

/// Calls `each` for every envelope of a text, in order, and for what belongs to none.
pub(super) fn regions(text: &str, each: Each<'_>) {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut finder = Finder::new(text);
    let mut fences = Fences::default();
    let mut waiting = DoubtfulRegions::new(finder.lines, each);
    let mut gap = start;
    let mut at = start;
    while let Some(line) = finder.next_marked(at, start) {
        at = line.next;
        if let Some(mut region) = finder.opening(line) {
            region.fence = fences.open_at(text, line.start);
            let before = gap..line.start + region.marker.span.start;
            let open_body = finder.open_body(before, region.frame.prefix());
            region.after_open_body = open_body.is_some();
            let is_quoted = open_body.is_some_and(|depth| depth < region.frame.prefix().len());
            let (mut outcome, next) = finder.close(region);
            // Where an envelope broke off, its body may go on.
            let broke_off = matches!(&outcome, Err(r) if !r.before_another
                && r.findings.iter().any(|f| f.rule.id == rule::END_MISSING.id));
            if let Err(refusal) = &mut outcome {
                // A part of another message is not what a person means to take.
                refusal.cut = refusal.cut.take().filter(|r| !r.after_open_body);
            }
            gap = if broke_off { line.start } else { next };
            if let Ok(region) = &mut outcome {
                region.after_open_body |= finder.sig_follows(next);
                if is_quoted {
                    outcome = Err(vec![inside_error(&finder.lines, region.span.start)].into());
                }
            }
            waiting.push(outcome);
            at = next;
            fences.skip_to(next);
        } else if let Some(prefix) = stray_end(finder.lines.get(line)) {
            waiting.stray_end(prefix);
            let stray = Diagnostic::new(
                &rule::STRAY_END,
                Severity::Warning,
                line.range(),
                "there is an [[END]] without the beginning of its message",
            );
            waiting.push(Err(vec![stray].into()));
            gap = line.next;
        }
        if at >= text.len() {
            break;
        }
    }
    waiting.settle();
}

/// The prefix of an `[[END]]` that is alone on its line, or behind the `sig:` of a collapsed text.
fn stray_end(line: &str) -> Option<String> {
    let line = clean::without_controls(line);
    let line = line.trim_start_matches(clean::is_zero_width);
    let end = marker::end_in(line)?;
    let before = line.get(..end.span.start)?;
    let after = line.get(end.span.end..)?;
    if has_word(before) {
        let words = before.trim_start_matches(|c: char| !c.is_alphanumeric());
        let prefix = line.get(..before.len() - words.len());
        return prefix.filter(|_| mentions_sig(line)).map(str::to_owned);
    }
    (!has_word(after)).then(|| before.trim_end_matches(NOISE).to_owned())
}

fn has_word(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// The error of an envelope inside another message, or around another one.
pub(super) fn inside_error(lines: &PasteLines<'_>, start: usize) -> Diagnostic {
    Diagnostic::error(
        &rule::DIRECTION_INSIDE,
        lines.at(start).range(),
        "one message begins before the [[END]] of another: neither can be read safely",
    )
}

pub(super) struct Finder<'t> {
    pub(super) lines: PasteLines<'t>,
    pub(super) closes: Closes<'t>,
    /// How many bytes may still be read ahead because of declared line counts: keeps the search linear.
    pub(super) lookahead: usize,
}

impl<'t> Finder<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            lines: PasteLines::new(text),
            closes: Closes::new(text),
            lookahead: text.len(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.text.len()
    }

    /// The next line that has a closing bracket of a marker, from the line start `at` on.
    pub(super) fn next_marked(&mut self, at: usize, floor: usize) -> Option<LineSpan> {
        let close = self.closes.after(at)?;
        Some(self.lines.around(close, floor.max(at)))
    }

    /// Whether a message begins in this line.
    fn opening(&self, line: LineSpan) -> Option<Region> {
        let content = self.lines.get(line);
        let mut marker =
            marker::direction_in(content).or_else(|| marker::unversioned_in(content))?;
        let before = clean::without_controls(content.get(..marker.span.start)?);
        let after = content.get(marker.span.end..)?;
        let plain = clean::without_controls(after);
        let rest = strip_behind(&plain).to_owned();
        let left = content.get(..marker.span.start)?;
        marker.controls |= plain.len() < after.len() || before.len() < left.len();
        marker.zero_width |= plain.contains(clean::is_zero_width);
        let markdown_behind = rest.is_empty() && plain.contains(NOISE);
        let next = self.lines.get(self.lines.next_filled(line.next));
        let next = clean::without_controls(next);
        let next = next.trim_start_matches(clean::is_zero_width);
        let on_line = begins_with_header(&rest);
        let quoted = before.trim_end_matches(NOISE);
        let quoted = quoted.trim_start_matches(clean::is_zero_width);
        let framed = clean::without_controls(content);
        let frame = match on_line {
            true if quoted.is_empty() || has_word(quoted) => Frame::NONE,
            true => Frame::of(quoted, &framed, ""),
            false => Frame::of(quoted, &framed, next),
        };
        let below = frame.unwrap_lines().line(next).unwrap_or(Cow::Borrowed(""));
        let has_prose = !frame.covers_direction() && has_word(quoted);
        let is_doubtful = has_prose || !rest.is_empty() || marker.no_version;
        if is_doubtful && !on_line && !begins_with_header(&below) {
            return None;
        }
        let behind = line.start + marker.span.end..line.end;
        Some(Region {
            span: line.start..line.next,
            below: line.next,
            collapsed: on_line || name::holds_head(&below),
            behind: (!on_line && !rest.is_empty()).then_some(behind),
            markdown_behind,
            marker,
            frame,
            fence: None,
            quoted: None,
            counted: false,
            signed_off: false,
            after_open_body: false,
            ended_by: None,
            left_out: 0,
            is_cut: false,
        })
    }

    /// Whether a line inside a message begins with a direction marker. One without a version counts only where
    /// headers follow.
    pub(super) fn begins_here(&self, line: LineSpan, content: &str) -> bool {
        let stands_alone = |m: &marker::DirectionMarker| {
            let before = content.get(..m.span.start).unwrap_or("");
            let after = strip_behind(content.get(m.span.end..).unwrap_or(""));
            let is_nothing = |c: char| NOISE.contains(&c) || clean::is_zero_width(c);
            before.trim_matches(is_nothing).is_empty()
                && (after.is_empty() || begins_with_header(after))
        };
        if let Some(marker) = marker::direction_in(content) {
            return stands_alone(&marker);
        }
        marker::unversioned_in(content).is_some_and(|marker| {
            let after = content.get(marker.span.end..).unwrap_or("");
            let below = || {
                let next = self.lines.get(self.lines.next_filled(line.next));
                let bare = clean::without_controls(next);
                begins_with_header(bare.trim_start_matches(|c: char| !c.is_alphanumeric()))
            };
            stands_alone(&marker) && (begins_with_header(strip_behind(after)) || below())
        })
    }

    /// Whether the next line that is not blank is the `sig:` of another message.
    fn sig_follows(&self, at: usize) -> bool {
        let line = self.lines.get(self.lines.next_filled(at));
        let near = line.get(..line.floor_char_boundary(64)).unwrap_or("");
        let bare = clean::without_controls(near);
        name::is_sig(bare.trim_start_matches(|c: char| !c.is_alphanumeric()))
    }

    /// The least depth of the lines that open a body in a text without whole envelope, at a prefix that
    /// begins like that of the envelope behind it.
    fn open_body(&self, gap: Range<usize>, prefix: &str) -> Option<usize> {
        let text = self.lines.text.get(gap).unwrap_or("");
        memchr::memmem::find(text.as_bytes(), b"|")?;
        let lines = text.split(['\n', '\r']);
        let depths = lines.filter_map(|line| {
            let line = clean::without_controls(line);
            let line = line.trim_start_matches(clean::is_zero_width);
            let mark = line.trim_start_matches(|c: char| !c.is_alphanumeric());
            let before = line.get(..line.len() - mark.len())?;
            let value = ["body:", "response:"]
                .iter()
                .find_map(|n| mark.strip_prefix(n))?;
            (value.trim_start().starts_with('|') && prefix.starts_with(before))
                .then_some(before.len())
        });
        depths.min()
    }
}

/// The text behind a direction marker, without Markdown and the border of a box.
fn strip_behind(after: &str) -> &str {
    after
        .trim()
        .trim_matches(NOISE)
        .trim_matches(['│', '┃', '║', '|'])
        .trim_matches(|c: char| c.is_whitespace() || clean::is_zero_width(c))
}

/// Whether a text begins with a name of the format and a colon, in any case, with or without Markdown.
pub(super) fn begins_with_header(text: &str) -> bool {
    name::named(text).is_some_and(|n| Reserved::named(n.name).is_some())
}
