//! Writes the text of a region as the strict grammar wants it, and says what it changed.

use super::clean;
use super::find::Region;
use super::head::{self, Head};
use super::marker::{self, NOISE};
use super::repaired;
use crate::diagnostic::Diagnostic;
use crate::registry::{Rule, rule};
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

    pub(super) fn note(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) {
        if self.repairs.len() < crate::limit::DIAGNOSTICS {
            self.repairs.push(repaired(rule, span, message));
        }
    }

    /// Reports a repair that runs through the text only where it begins.
    pub(super) fn note_once(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        message: &'static str,
    ) {
        if !self.repairs.iter().any(|r| r.rule.id == rule.id) {
            self.note(rule, span, message);
        }
    }
}

/// A line of the region without its wrapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    /// Where it begins in the source of the region.
    pub(super) at: usize,
}

impl Line<'_> {
    pub(super) fn span(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }
}

/// Repairs a region; all places are relative to its source.
pub(super) fn repair(source: &str, region: &Region<'_>) -> Repaired {
    let mut out = Repaired::default();
    for mut note in region.repairs() {
        let start = region.span.start;
        note.span = note.span.start.saturating_sub(start)..note.span.end.saturating_sub(start);
        out.repairs.push(note);
    }
    direction(source, region, &mut out);
    let lines = lines_of(source, region, &mut out);
    let (mut head, body) = Head::split(&lines, region, &mut out);
    let lines_declared = head.declared_lines();
    head.emit(&mut out);
    match body {
        Some(opener) => body_and_sig(&opener, lines_declared, &mut out),
        None => {
            let end = source.trim_end().len();
            end_marker(&mut out, end..end);
        }
    }
    out
}

fn direction(source: &str, region: &Region<'_>, out: &mut Repaired) {
    let marker = &region.marker;
    let line_end = source.find('\n').unwrap_or(source.len());
    let line = source.get(..line_end).unwrap_or("");
    if marker.other_arrow {
        out.note(
            &rule::ARROW,
            marker.span.clone(),
            "the arrow of the direction line was read as →",
        );
    }
    if marker.other_spelling {
        out.note(
            &rule::MARKER_SPELLING,
            marker.span.clone(),
            "the direction line was read in another spelling",
        );
    }
    if marker.escaped {
        out.note(
            &rule::ESCAPES,
            marker.span.clone(),
            "escapes outside the body were resolved",
        );
    }
    if let Some(prose) = &region.prose {
        let span = prose.start - region.span.start..prose.end - region.span.start;
        let is_markdown = line
            .get(span.clone())
            .is_some_and(|t| !t.chars().any(char::is_alphanumeric));
        if is_markdown {
            out.note(
                &rule::MARKDOWN,
                span,
                "Markdown before the direction line was removed",
            );
        } else {
            out.note(
                &rule::TEXT_AROUND,
                span,
                "the text before the direction line was left out",
            );
        }
    } else if line
        .get(..marker.span.start)
        .is_some_and(|b| b.ends_with(NOISE))
    {
        out.note(
            &rule::MARKDOWN,
            marker.span.clone(),
            "Markdown around the direction line was removed",
        );
    }
    out.emit(&marker.written, marker.span.clone());
}

/// The lines behind the direction marker, up to `[[END]]`, without their wrapping.
fn lines_of<'t>(source: &'t str, region: &Region<'_>, out: &mut Repaired) -> Vec<Line<'t>> {
    let mut lines = Vec::new();
    let mut at = region.marker.span.end;
    if !region.collapsed {
        at = source
            .get(at..)
            .and_then(|t| t.find('\n'))
            .map_or(source.len(), |i| at + i + 1);
    }
    while at < source.len() {
        let raw = source
            .get(at..)
            .and_then(|t| t.split('\n').next())
            .unwrap_or("");
        let inner = if lines.is_empty() && region.collapsed {
            raw
        } else {
            region.frame.strip(raw).unwrap_or("")
        };
        let inner = inner.strip_suffix('\r').unwrap_or(inner);
        let start = at
            + (inner.as_ptr() as usize)
                .saturating_sub(raw.as_ptr() as usize)
                .min(raw.len());
        at += raw.len() + 1;
        split_at_lone_cr(
            Line {
                text: inner,
                at: start,
            },
            &mut lines,
            out,
        );
    }
    cut_end_marker(&mut lines, out);
    if lines.iter().any(|l| l.text.ends_with([' ', '\t'])) {
        let first = lines
            .iter()
            .find(|l| l.text.ends_with([' ', '\t']))
            .map_or(0..0, Line::span);
        out.note(
            &rule::PADDING,
            first,
            "spaces at the ends of lines were removed",
        );
    }
    lines
}

/// A lone CR ends a line, too.
fn split_at_lone_cr<'t>(line: Line<'t>, lines: &mut Vec<Line<'t>>, out: &mut Repaired) {
    if !line.text.contains('\r') {
        lines.push(line);
        return;
    }
    out.note_once(
        &rule::LINE_SEPARATORS,
        line.span(),
        "a CR was read as the end of a line",
    );
    let mut at = line.at;
    for part in line.text.split('\r') {
        lines.push(Line { text: part, at });
        at += part.len() + 1;
    }
}

/// Removes the `[[END]]` and what stands around it on its line.
fn cut_end_marker(lines: &mut Vec<Line<'_>>, out: &mut Repaired) {
    while lines.last().is_some_and(|l| l.text.trim().is_empty()) {
        lines.pop();
    }
    let Some(last) = lines.pop() else { return };
    match marker::end_line(last.text) {
        Some(true) => {}
        Some(false) => out.note(
            &rule::MARKER_SPELLING,
            last.span(),
            "the end marker was read in another spelling",
        ),
        None => {
            let Some(end) = marker::end_at(last.text) else {
                lines.push(last);
                return;
            };
            if !last
                .text
                .get(end.end..)
                .unwrap_or("")
                .trim_matches(NOISE)
                .trim()
                .is_empty()
            {
                out.note(
                    &rule::TEXT_AROUND,
                    last.at + end.end..last.span().end,
                    "the text behind [[END]] was left out",
                );
            }
            out.note_once(
                &rule::COLLAPSED,
                last.span(),
                "[[END]] was not on a line of its own",
            );
            let before = last.text.get(..end.start).unwrap_or("").trim_end();
            if !before.is_empty() {
                lines.push(Line {
                    text: before,
                    at: last.at,
                });
            }
        }
    }
}

/// Where the body begins, and its lines.
#[derive(Debug)]
pub(super) struct BodyOpener<'t> {
    /// `body` or `response`.
    pub(super) name: &'static str,
    pub(super) origin: Range<usize>,
    /// Text on the line of the name.
    pub(super) inline: Option<Line<'t>>,
    pub(super) lines: Vec<Line<'t>>,
}

fn body_and_sig(opener: &BodyOpener<'_>, declared: Option<usize>, out: &mut Repaired) {
    out.emit(&format!("{}: |", opener.name), opener.origin.clone());
    let mut lines: Vec<Line<'_>> = opener.inline.into_iter().collect();
    let has_inline = !lines.is_empty();
    lines.extend(&opener.lines);
    let sig = head::find_sig(&lines, declared);
    let body = lines.get(..sig.unwrap_or(lines.len())).unwrap_or(&[]);
    body_lines(body, has_inline, out);
    let end = lines.last().map_or(opener.origin.end, |l| l.span().end);
    match sig.and_then(|at| lines.get(at..)) {
        Some(sig) => head::emit_sig(sig, out),
        None if opener.name == "response" => {}
        None => {
            out.note(
                &rule::SIG_ADDED,
                end..end,
                "there is no sig: line; the message counts as unsigned",
            );
            out.emit("sig: none", end..end);
        }
    }
    end_marker(out, end..end);
}

fn end_marker(out: &mut Repaired, origin: Range<usize>) {
    out.emit(crate::grammar::END, origin);
}

fn body_lines(body: &[Line<'_>], has_inline: bool, out: &mut Repaired) {
    let first = body.iter().find(|l| !l.text.trim().is_empty());
    let indented = !has_inline && first.is_none_or(|l| indent_of(l.text).is_some());
    for (number, line) in body.iter().enumerate() {
        let cleaned = clean::without_controls(line.text);
        if cleaned.controls {
            out.note_once(
                &rule::CONTROLS,
                line.span(),
                "terminal escapes and control characters were removed",
            );
        }
        let is_separator = |c: char| matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}');
        if cleaned.text.contains(is_separator) {
            out.note_once(
                &rule::LINE_SEPARATORS,
                line.span(),
                "a line separator was read as the end of a line",
            );
        }
        for part in cleaned.text.split(is_separator) {
            let inline = has_inline && number == 0;
            body_line(part, line.span(), indented, inline, out);
        }
    }
}

fn body_line(text: &str, origin: Range<usize>, indented: bool, inline: bool, out: &mut Repaired) {
    let text = text.trim_end_matches([' ', '\t']);
    if text.is_empty() {
        return out.emit("", origin);
    }
    match indent_of(text).filter(|_| indented) {
        Some((width, exact)) => {
            if !exact {
                out.note_once(
                    &rule::NBSP,
                    origin.clone(),
                    "no-break spaces in the indent were read as spaces",
                );
            }
            out.emit(&format!("  {}", text.get(width..).unwrap_or("")), origin);
        }
        None => {
            if !inline {
                out.note_once(
                    &rule::BODY_UNINDENTED,
                    origin.clone(),
                    "a body line was not indented",
                );
            }
            out.emit(&format!("  {text}"), origin);
        }
    }
}

/// The bytes of the indent of a body line, and whether it is one of the grammar's.
fn indent_of(line: &str) -> Option<(usize, bool)> {
    if line.starts_with("  ") {
        return Some((2, true));
    }
    if line.starts_with('\t') {
        return Some((1, true));
    }
    let mut chars = line.chars();
    let blank = |c: &char| matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2007}');
    let (first, second) = (chars.next().filter(blank)?, chars.next().filter(blank)?);
    Some((first.len_utf8() + second.len_utf8(), false))
}
