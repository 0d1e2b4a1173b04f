//! Findings: errors as data, with a rule, a place, a sentence and the way out.

use crate::registry::{ErrorCode, Rule};
use crate::words;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

words! {
    /// How much a finding weighs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// A remark on style or on something unusual.
        Note = "note",
        /// The paste reading changed something to read the text.
        Repair = "repair",
        /// Readable, but probably not what was meant.
        Warning = "warning",
        /// The envelope is rejected.
        Error = "error",
    }
}

/// One finding: a rule of `spec/`, a place, a sentence and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The rule that it is about.
    pub rule: &'static Rule,
    /// How much it weighs.
    pub severity: Severity,
    /// The bytes of the source that it is about.
    pub span: Range<usize>,
    /// The finding, as a sentence.
    pub message: Cow<'static, str>,
}

impl Diagnostic {
    /// A finding about a span of the source.
    pub fn new(
        rule: &'static Rule,
        severity: Severity,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            rule,
            severity,
            span,
            message: message.into(),
        }
    }

    /// A finding for which the envelope is rejected.
    pub fn error(
        rule: &'static Rule,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(rule, Severity::Error, span, message)
    }

    /// A change that the paste reading made.
    pub(crate) fn repair(
        rule: &'static Rule,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(rule, Severity::Repair, span, message)
    }

    /// The code of the taxonomy that goes with the rule.
    pub fn code(&self) -> Option<ErrorCode> {
        self.rule.code
    }

    /// The way out; empty if nothing needs to be done.
    pub fn help(&self) -> &'static str {
        self.rule.help
    }

    /// Whether the envelope is rejected because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The same finding in a text in which the source begins at `offset`.
    #[must_use]
    pub fn shifted(mut self, offset: usize) -> Self {
        self.span = self.span.start + offset..self.span.end + offset;
        self
    }

    /// Line and column (both from 1; columns count characters) in the text it was found in.
    pub fn position(&self, text: &str) -> Position {
        Position::of(text, self.span.start)
    }

    /// The finding with the line it is about and a caret under the place, in plain text.
    ///
    /// ```
    /// use crosstalk_envelope::{Document, Reading};
    /// let text = "[[A→B v2]]\n";
    /// let document = Document::parse(text, Reading::Strict);
    /// let finding = &document.diagnostics()[0];
    /// assert!(finding.render(text).contains("^^"));
    /// ```
    pub fn render(&self, text: &str) -> String {
        let position = self.position(text);
        let line = text
            .split('\n')
            .nth(position.line - 1)
            .unwrap_or("")
            .trim_end_matches('\r');
        let mut out = format!(
            "{self}\n --> line {}, column {}\n",
            position.line, position.column
        );
        let shown: String = line.chars().take(120).map(visible).collect();
        let width = text
            .get(self.span.clone())
            .and_then(|t| t.split('\n').next())
            .map_or(1, |t| t.chars().count())
            .clamp(1, 120);
        let indent = " ".repeat(position.column.saturating_sub(1).min(120));
        out.push_str(&format!("  | {shown}\n  | {indent}{}\n", "^".repeat(width)));
        if !self.help().is_empty() {
            out.push_str(&format!("  = help: {}\n", self.help()));
        }
        out
    }
}

/// One printable character for any character, so that carets stay under their place.
fn visible(c: char) -> char {
    if c == '\t' {
        ' '
    } else if c.is_control() || crate::unicode::is_hidden(c) {
        '\u{fffd}'
    } else {
        c
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}", self.severity.as_str(), self.rule.id)?;
        if let Some(code) = self.code() {
            write!(f, " {code}")?;
        }
        write!(f, "]: {}", self.message)
    }
}

/// A place in a text; both numbers begin at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, counted by LF.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Position {
    /// The place of a byte offset.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = text
            .get(..offset)
            .unwrap_or_else(|| text.get(..text.floor_char_boundary(offset)).unwrap_or(text));
        let line_start = memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |i| i + 1);
        Self {
            line: memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1,
            column: before.get(line_start..).map_or(0, |t| t.chars().count()) + 1,
        }
    }
}

/// Finds the places of many offsets in one text.
#[derive(Debug)]
pub struct LineIndex<'t> {
    text: &'t str,
    /// How many line ends there are before each block of [`LineIndex::BLOCK`] bytes.
    lines_before: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    const BLOCK: usize = 4096;

    /// Counts the lines of a text.
    pub fn new(text: &'t str) -> Self {
        let mut lines = 0;
        let count = |block: &[u8]| {
            let before = lines;
            lines += memchr::memchr_iter(b'\n', block).count();
            before
        };
        Self {
            text,
            lines_before: text.as_bytes().chunks(Self::BLOCK).map(count).collect(),
        }
    }

    /// The line of a byte offset, from 1. It takes no longer for a text without lines, as [`Self::position`] does.
    pub fn line(&self, offset: usize) -> usize {
        let offset = self.text.floor_char_boundary(offset);
        let block = offset / Self::BLOCK;
        let in_block = self.text.as_bytes().get(block * Self::BLOCK..offset);
        let whole = self.lines_before.get(block).or(self.lines_before.last());
        whole.copied().unwrap_or(0)
            + memchr::memchr_iter(b'\n', in_block.unwrap_or(&[])).count()
            + 1
    }

    /// The place of a byte offset.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let before = self.text.get(..offset).unwrap_or("");
        let line_start = memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |i| i + 1);
        Position {
            line: self.line(offset),
            column: before.get(line_start..).map_or(0, |t| t.chars().count()) + 1,
        }
    }
}

/// Collects the findings of one reading: [`crate::limit::DIAGNOSTICS`] of them, and as many errors again.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    findings: Vec<Diagnostic>,
    has_errors: bool,
}

impl Sink {
    pub(crate) fn report(
        &mut self,
        rule: &'static Rule,
        severity: Severity,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) {
        let is_error = severity == Severity::Error;
        self.has_errors |= is_error;
        // Remarks must not crowd out an error.
        let room = crate::limit::DIAGNOSTICS * if is_error { 2 } else { 1 };
        // Nor must anything crowd out that text was left out, which decides about a signature.
        let is_first_drop = rule.drops && !self.findings.iter().any(|f| f.rule.drops);
        if self.findings.len() < room || is_first_drop {
            self.findings
                .push(Diagnostic::new(rule, severity, span, message));
        }
    }

    pub(crate) fn error(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) {
        self.report(rule, Severity::Error, span, message);
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.has_errors
    }

    pub(crate) fn into_findings(self) -> Vec<Diagnostic> {
        self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_a_position_agree() {
        let text = "ä→b\n\nlong ".repeat(900) + "\nend";
        let index = LineIndex::new(&text);
        for offset in 0..=text.len() + 3 {
            assert_eq!(
                index.position(offset),
                Position::of(&text, offset),
                "{offset}"
            );
        }
    }
}
