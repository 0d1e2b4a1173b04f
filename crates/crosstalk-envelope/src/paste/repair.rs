//! Writes the text of a region as the strict grammar wants it, and says what it changed.

use super::line::{PasteLine, PasteLines};
use super::region::Region;
use super::{body, clean, collapsed, head::PasteHead, marker};
use crate::diagnostic::Diagnostic;
use crate::limit;
use crate::registry::{Rule, rule};
use marker::Brackets;
use std::borrow::Cow;
use std::ops::Range;

/// A text for the grammar; for each of its lines the place it comes from; and what was done.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    pub(crate) text: String,
    pub(crate) origin: Vec<Range<usize>>,
    pub(crate) repairs: Vec<Diagnostic>,
}

impl Repaired {
    pub(super) fn emit(&mut self, line: &str, origin: Range<usize>) {
        self.text.push_str(line);
        self.text.push('\n');
        self.origin.push(origin);
    }

    pub(super) fn emit_indented(&mut self, line: &str, origin: Range<usize>) {
        self.text.push_str("  ");
        self.emit(line, origin);
    }

    pub(super) fn note(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) {
        // Room is left for what the grammar finds. That text was left out is told in any case: it decides about a
        // signature.
        let is_told = || self.repairs.iter().any(|r| r.rule.drops);
        if self.repairs.len() < limit::DIAGNOSTICS / 2 || (rule.drops && !is_told()) {
            self.repairs.push(Diagnostic::repair(rule, span, message));
        }
    }

    /// Says why the envelope can't be read.
    pub(super) fn reject(&mut self, rule: &'static Rule, span: Range<usize>, message: String) {
        self.repairs.push(Diagnostic::error(rule, span, message));
    }

    /// Reports a repair that runs through the text only where it begins.
    pub(super) fn note_once(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        message: &'static str,
    ) {
        if !self.repairs.iter().any(|r| std::ptr::eq(r.rule, rule)) {
            self.note(rule, span, message);
        }
    }

    fn reject_line(&mut self, at: usize, length: usize) {
        let most = limit::LINE_BYTES;
        let message = format!("the line has {length} bytes, more than {most}");
        self.reject(&rule::LINE_TOO_LONG, at..at, message);
    }
}

/// Takes away what stands around the lines of a region, and nothing else.
pub(super) fn unwrap(source: &str, region: &Region) -> Repaired {
    let mut out = Repaired::default();
    out.emit(&region.marker.written, region.marker.span.clone());
    for line in lines_of(source, region, &mut out) {
        out.emit(&line.text, line.span.clone());
    }
    if region.lacks_end() {
        out.emit(crate::grammar::END, source.len()..source.len());
    }
    out
}

/// Repairs a region; all places are relative to its source.
pub(super) fn repair(source: &str, region: &Region) -> Repaired {
    let mut out = Repaired::default();
    out.emit(&region.marker.written, region.marker.span.clone());
    let mut lines = lines_of(source, region, &mut out);
    let end = cut_end_marker(&mut lines, region.collapsed, source.len(), &mut out);
    let mut head = PasteHead::default();
    let mut rest = lines.into_iter();
    let opened = if region.collapsed {
        collapsed_head(&mut head, &mut rest, &mut out)
    } else {
        rest.by_ref().find_map(|line| head.take(&line, &mut out))
    };
    let declared = head.declared_lines();
    head.emit(&mut out);
    if let Some(mut opener) = opened {
        let mut lines: Vec<PasteLine<'_>> = opener.inline.take().into_iter().collect();
        if let Some(inline) = lines.first() {
            if !region.collapsed {
                let what = format!(
                    "text on the line of `{}:` was read as the body",
                    opener.name
                );
                out.note(&rule::INLINE_BODY, inline.span.clone(), what);
            }
            opener.inline = Some(inline.clone());
        }
        lines.extend(rest);
        if region.collapsed {
            collapsed::split_sig(&mut lines);
        }
        let declared = declared.filter(|_| !region.collapsed);
        body::emit(&opener, &lines, declared, end.clone(), &mut out);
    }
    out.emit(crate::grammar::END, end);
    out
}

/// The head of a text without line ends.
fn collapsed_head<'t>(
    head: &mut PasteHead,
    lines: &mut impl Iterator<Item = PasteLine<'t>>,
    out: &mut Repaired,
) -> Option<body::Opener<'t>> {
    lines.find_map(|line| {
        let pieces = collapsed::pieces(&line, head.namespace.as_deref());
        pieces.iter().find_map(|piece| head.take(piece, out))
    })
}

/// The lines behind the direction marker, without their wrapping.
fn lines_of<'t>(source: &'t str, region: &Region, out: &mut Repaired) -> Vec<PasteLine<'t>> {
    let lines = PasteLines::new(source);
    let mut found = Vec::new();
    let mut unwrap = region.frame.unwrap_lines();
    let first = lines.at(0);
    check_line(&lines, first, out);
    if region.collapsed && region.behind.is_none() {
        let behind = region.marker.span.end..first.end;
        let text = clean::without_controls(source.get(behind.clone()).unwrap_or(""));
        push(text, behind, out, &mut found);
    }
    let mut at = first.next;
    while at < source.len() {
        let place = lines.at(at);
        check_line(&lines, place, out);
        let raw = lines.get(place);
        let inner = unwrap.line(raw).unwrap_or_default();
        let offset = match &inner {
            Cow::Borrowed(inner) => (inner.as_ptr() as usize)
                .wrapping_sub(raw.as_ptr() as usize)
                .min(raw.len()),
            Cow::Owned(_) => 0,
        };
        let start = place.start + offset;
        let end = match &inner {
            Cow::Borrowed(inner) => start + inner.len(),
            Cow::Owned(_) => place.end,
        };
        push(inner, start..end.min(place.end), out, &mut found);
        at = place.next;
    }
    found
}

fn check_line(lines: &PasteLines<'_>, place: super::line::LineSpan, out: &mut Repaired) {
    let length = place.end - place.start;
    if length > limit::LINE_BYTES {
        out.reject_line(place.start, length);
    }
    if lines.ends_with_cr(place) {
        let what = "a CR was read as the end of a line";
        out.note_once(&rule::LINE_SEPARATORS, place.end..place.end + 1, what);
    }
}

/// Takes a line without the padding at its end.
fn push<'t>(
    text: Cow<'t, str>,
    span: Range<usize>,
    out: &mut Repaired,
    lines: &mut Vec<PasteLine<'t>>,
) {
    if matches!(text, Cow::Owned(_)) {
        let what = "terminal escapes and control characters were removed";
        out.note_once(&rule::CONTROLS, span.clone(), what);
    }
    let length = text.trim_end_matches(clean::is_padding).len();
    let (text, span) = if length == text.len() {
        (text, span)
    } else {
        let padding = span.end.saturating_sub(text.len() - length).max(span.start)..span.end;
        // Spaces and tabs there are none of the line (ENV-002): without them nothing is repaired.
        if !text.get(length..).unwrap_or("").is_ascii() {
            let what = "spaces at the ends of lines were removed";
            out.note_once(&rule::PADDING, padding.clone(), what);
        }
        let text = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.get(..length).unwrap_or("")),
            Cow::Owned(mut text) => {
                text.truncate(length);
                Cow::Owned(text)
            }
        };
        (text, span.start..padding.start)
    };
    lines.push(PasteLine { text, span });
}

/// Removes the `[[END]]` and what stands around it on its line; gives its place.
fn cut_end_marker(
    lines: &mut Vec<PasteLine<'_>>,
    collapsed: bool,
    length: usize,
    out: &mut Repaired,
) -> Range<usize> {
    while lines.last().is_some_and(PasteLine::is_blank) {
        lines.pop();
    }
    let Some(last) = lines.pop() else {
        return length..length;
    };
    let Some(end) = marker::end_in(&last.text) else {
        lines.push(last);
        return length..length;
    };
    let place = last.place(last.text.get(end.span.clone()).unwrap_or(""));
    if end.other_spelling || end.brackets == Brackets::Wide {
        let what = "the end marker was read in another spelling";
        out.note(&rule::MARKER_SPELLING, place.clone(), what);
    }
    if end.brackets == Brackets::Escaped {
        let what = "escapes outside the body were resolved";
        out.note_once(&rule::ESCAPES, place.clone(), what);
    }
    note_around_end(&last, &end.span, collapsed, out);
    let before = last.slice(0..end.span.start);
    if before.text.chars().any(char::is_alphanumeric) {
        lines.push(before);
    }
    place
}

/// Reports what stands on the line of the `[[END]]`.
fn note_around_end(line: &PasteLine<'_>, end: &Range<usize>, collapsed: bool, out: &mut Repaired) {
    let before = line.text.get(..end.start).unwrap_or("").trim();
    let after = line.text.get(end.end..).unwrap_or("").trim();
    if (before.to_owned() + after).contains(clean::is_zero_width) {
        let what = "zero-width characters were removed";
        out.note_once(&rule::ZERO_WIDTH, line.span.clone(), what);
    }
    let is_word = |t: &str| t.chars().any(char::is_alphanumeric);
    if is_word(after) {
        let what = "the text behind [[END]] was left out";
        out.note(&rule::TEXT_AROUND, line.place(after), what);
    } else if after.starts_with("```") || after.starts_with("~~~") {
        out.note_once(
            &rule::CODE_FENCE,
            line.place(after),
            "the code fence was left out",
        );
    } else if after.contains(marker::NOISE) {
        out.note_once(
            &rule::MARKDOWN,
            line.place(after),
            "Markdown around [[END]] was removed",
        );
    }
    if is_word(before) && !collapsed {
        let what = "[[END]] was not on a line of its own";
        out.note(&rule::COLLAPSED, line.span.clone(), what);
    }
}
