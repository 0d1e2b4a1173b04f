//! The lossless document: the received bytes, and every part of the envelope as a span of them.
//!
//! Implements ENV-023 to ENV-026, ENV-033, ENV-043, ENV-051 and ENV-080.

use crate::diagnostic::{Diagnostic, Severity, Sink};
use crate::grammar::{self, BodyKind, CoreHeader, Direction, EntryKind, HeadEntry, Parts, Span};
use crate::lines::{LineEnds, LineIter};
use crate::name::unseen;
use crate::registry::{Namespace, Rule, ValueKind, rule};
use crate::signature::Signature;
use crate::text;
use crate::unicode::normalized;
use crate::{limit, paste};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The grammar and nothing else: a relay reads so, and a signature is checked on it.
    Strict,
    /// A text from a chat, a mail program or a model: repaired first, each repair reported.
    Paste,
}

/// One envelope as it was received.
///
/// ```
/// use crosstalk_envelope::{Document, Reading};
/// let text = "[[CLAUDE→CHATGPT v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\n\
///             context: auth\nintent: REQUEST\nbody: |\n  Should we use JWT?\nsig: none\n[[END]]\n";
/// let document = Document::parse(text, Reading::Strict);
/// assert!(document.is_accepted());
/// assert_eq!(document.to_string(), text);
/// assert_eq!(document.body_text(), "Should we use JWT?");
/// ```
#[derive(Clone, Debug)]
pub struct Document<'a> {
    source: Cow<'a, str>,
    /// Where the source begins in the text that it was found in.
    offset: usize,
    /// The text that the grammar read, if it differs from the source: in NFC, repaired.
    read: Option<String>,
    /// For each line of `read`, the part of the source it comes from.
    origin: Vec<Range<usize>>,
    parts: Parts,
    reading: Reading,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Document<'a> {
    /// Reads one envelope. Faults are collected, never returned early: see [`Document::diagnostics`].
    ///
    /// The paste reading takes the first envelope that it finds and rejects a second one; use
    /// [`crate::scan`] for a text with several.
    pub fn parse(text: &'a str, reading: Reading) -> Self {
        match reading {
            Reading::Strict => Self::read_strict(text, 0),
            Reading::Paste => paste::read_one(text),
        }
    }

    /// Reads `text`, found at `offset` of a larger text, as it is.
    pub(crate) fn read_strict(text: &'a str, offset: usize) -> Self {
        let mut ends = LineEnds::of(text);
        let mut sink = Sink::default();
        let parts = grammar::read(text, &mut ends, &mut sink);
        let within_limit = text.len() <= limit::ENVELOPE_BYTES;
        if within_limit {
            ends.finish();
        }
        if within_limit && (ends.suspicious || !ends.nfc) {
            return Self::read_unusual(text, offset);
        }
        let has_errors = sink.has_errors();
        let (reading, findings) = (Reading::Strict, sink.into_findings());
        let mut document = Self::assemble(text, offset, None, Vec::new(), parts, reading, findings);
        if !has_errors {
            document.check_requirements(ends.unseen);
        }
        document
    }

    /// Reads a text that may have forbidden characters, or may not be in NFC.
    #[inline(never)]
    fn read_unusual(text: &'a str, offset: usize) -> Self {
        let mut sink = Sink::default();
        text::report_forbidden(text, &mut sink);
        let normal = normalized(text);
        let origin = normal
            .as_ref()
            .map(|_| source_lines(text, &mut sink))
            .unwrap_or_default();
        let reading = Reading::Strict;
        Self::read_mapped(text, offset, normal, origin, reading, Sink::default(), sink)
    }

    /// Reads a repaired text; `source` is where it comes from, `repairs` what was done to it.
    pub(crate) fn read_repaired(source: &'a str, offset: usize, repaired: paste::Repaired) -> Self {
        let mut sink = Sink::default();
        let paste::Repaired {
            text,
            origin,
            repairs,
        } = repaired;
        for repair in repairs {
            sink.report(repair.rule, repair.severity, repair.span, repair.message);
        }
        let mut inner = Sink::default();
        text::report_forbidden(&text, &mut inner);
        let normal = normalized(&text).unwrap_or(text);
        let reading = Reading::Paste;
        Self::read_mapped(source, offset, Some(normal), origin, reading, inner, sink)
    }

    /// Reads the text of the grammar and maps its findings to the source. `inner` has findings about that text, `sink` about
    /// the source.
    fn read_mapped(
        source: &'a str,
        offset: usize,
        read: Option<String>,
        origin: Vec<Range<usize>>,
        reading: Reading,
        mut inner: Sink,
        mut sink: Sink,
    ) -> Self {
        let text = read.as_deref().unwrap_or(source);
        let mut ends = LineEnds::of(text);
        let parts = grammar::read(text, &mut ends, &mut inner);
        ends.finish();
        let has_unseen = ends.unseen;
        let has_errors = inner.has_errors();
        for finding in inner.into_findings() {
            let span = to_source(&finding.span, &origin, read.as_deref(), source.len());
            sink.report(finding.rule, finding.severity, span, finding.message);
        }
        let findings = sink.into_findings();
        let mut document = Self::assemble(source, offset, read, origin, parts, reading, findings);
        if !has_errors {
            document.check_requirements(has_unseen);
        }
        document
    }

    /// The same document, read strictly without any fault, as the result of the paste reading.
    pub(crate) fn into_clean_paste(mut self, repairs: Vec<Diagnostic>) -> Self {
        self.reading = Reading::Paste;
        for repair in repairs {
            self.report(repair);
        }
        self
    }

    fn assemble(
        source: &'a str,
        offset: usize,
        read: Option<String>,
        origin: Vec<Range<usize>>,
        parts: Parts,
        reading: Reading,
        mut diagnostics: Vec<Diagnostic>,
    ) -> Self {
        for finding in &mut diagnostics {
            finding.span = finding.span.start + offset..finding.span.end + offset;
        }
        Self {
            source: Cow::Borrowed(source),
            offset,
            read,
            origin,
            parts,
            reading,
            diagnostics,
        }
    }

    /// A document of which nothing could be read.
    pub(crate) fn unreadable(
        source: &'a str,
        reading: Reading,
        diagnostics: Vec<Diagnostic>,
    ) -> Self {
        let parts = Parts::default();
        Self::assemble(source, 0, None, Vec::new(), parts, reading, diagnostics)
    }

    /// The document with a copy of its text.
    pub fn into_owned(self) -> Document<'static> {
        Document {
            source: Cow::Owned(self.source.into_owned()),
            ..self
        }
    }

    /// Checks requirements that no single line shows: required headers, the form of `sig:`.
    ///
    /// Most texts have no character that names must not have: then no name is looked at.
    fn check_requirements(&mut self, has_unseen: bool) {
        let response = self.body_kind() == Some(BodyKind::Response);
        let direction = self.parts.direction.map_or(0..0, |d| d.line.range());
        if self.header(CoreHeader::Session).is_none() && self.header(CoreHeader::Thread).is_none() {
            self.require(
                &rule::SESSION_OR_THREAD,
                direction.clone(),
                "there is neither a session nor a thread".into(),
            );
        }
        for core in [CoreHeader::User, CoreHeader::Context, CoreHeader::Intent] {
            if !response && self.header(core).is_none() {
                let message = format!("the header `{}` is missing", core.as_str());
                self.require(&rule::HEADER_MISSING, direction.clone(), message.into());
            }
        }
        if has_unseen {
            self.check_names();
        }
        if let Some(span) = self.parts.sig
            && let Err(fault) = Signature::parse(span.of(self.text()))
        {
            self.report_fault(&rule::SIG_MALFORMED, span.range(), fault);
        }
    }

    /// Sender, receiver and the addresses of META have no character that people do not see (ADR-009).
    fn check_names(&mut self) {
        let text = self.text();
        let mut found = Vec::new();
        let direction = self.parts.direction;
        for side in direction.into_iter().flat_map(|d| [d.sender, d.receiver]) {
            found.extend(unseen(side.of(text)).map(|c| (side, c)));
        }
        let mut namespace = "";
        for entry in &self.parts.entries {
            let value = entry.value.of(text);
            match (entry.kind, unseen(value)) {
                (EntryKind::Meta, _) => namespace = value,
                (EntryKind::Key, Some(c)) if holds_addresses(namespace, entry.name.of(text)) => {
                    found.push((entry.value, c));
                }
                _ => {}
            }
        }
        for (span, c) in found {
            let message = format!(
                "a name or an address has U+{:04X} in it, which people do not see or take for a space",
                u32::from(c)
            );
            self.report_fault(&rule::ADDRESS_UNSEEN, span.range(), message);
        }
    }

    /// A required header: an error in the strict reading, reported and tolerated in a paste.
    fn require(&mut self, rule: &'static Rule, span: Range<usize>, message: Cow<'static, str>) {
        let rule = match self.reading {
            Reading::Strict => rule,
            Reading::Paste => &rule::HEADERS_LACKING,
        };
        self.report_fault(rule, span, message);
    }

    /// Reports a fault that a person can live with in a paste.
    pub(crate) fn report_fault(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) {
        let severity = match self.reading {
            Reading::Strict => Severity::Error,
            Reading::Paste => Severity::Warning,
        };
        let span = self.in_source(span);
        self.report(Diagnostic::new(rule, severity, span, message));
    }

    pub(crate) fn report(&mut self, finding: Diagnostic) {
        let has_room = self.diagnostics.len() < limit::DIAGNOSTICS;
        let is_first_drop = || finding.rule.drops && !self.diagnostics.iter().any(|d| d.rule.drops);
        if has_room || finding.is_error() || is_first_drop() {
            self.diagnostics.push(finding);
        }
    }

    /// A span of [`Document::text`] as one of the text that the document was found in; exact to the line where the
    /// two differ.
    pub fn in_source(&self, span: Range<usize>) -> Range<usize> {
        let inner = to_source(&span, &self.origin, self.read.as_deref(), self.source.len());
        inner.start + self.offset..inner.end + self.offset
    }

    /// The text that the grammar read: the source, or the source in NFC and repaired.
    pub fn text(&self) -> &str {
        self.read.as_deref().unwrap_or(&self.source)
    }

    /// The received bytes.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The range of the source in the text that it was found in.
    pub fn span(&self) -> Range<usize> {
        self.offset..self.offset + self.source.len()
    }

    /// How it was read.
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// Everything that was found, in the order of the reading; places are in the whole text.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether its text may be cut off: it has no `[[END]]`, and a person took it all the same.
    pub fn is_truncated(&self) -> bool {
        let is_cut = |d: &Diagnostic| d.rule.id == rule::END_MISSING.id;
        self.diagnostics.iter().any(is_cut)
    }

    /// Whether nothing speaks against it.
    pub fn is_accepted(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// The parts as the grammar found them.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    fn in_direction(&self, part: impl Fn(Direction) -> Span) -> &str {
        let direction = self.parts.direction;
        direction.map_or("", |d| part(d).of(self.text()))
    }

    /// The left side of the direction line; empty if it could not be read.
    pub fn sender(&self) -> &str {
        self.in_direction(|d| d.sender)
    }

    /// The right side of the direction line; empty if it could not be read.
    pub fn receiver(&self) -> &str {
        self.in_direction(|d| d.receiver)
    }

    /// The version of the direction line; empty if it could not be read.
    pub fn version(&self) -> &str {
        self.in_direction(|d| d.version)
    }

    /// The value of a core header.
    pub fn header(&self, core: CoreHeader) -> Option<&str> {
        self.parts
            .core(core)
            .map(|e| e.value.of(self.text()))
            .filter(|v| !v.is_empty())
    }

    /// Every header above the META blocks, core and unknown, in the order of the text.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = self.text();
        self.parts
            .entries
            .iter()
            .take_while(|e| e.kind == EntryKind::Header)
            .map(move |e| (e.name.of(text), e.value.of(text)))
    }

    /// The headers that the format does not know, in the order of the text.
    pub(crate) fn unknown_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers()
            .filter(|(name, _)| CoreHeader::from_name(name).is_none())
    }

    /// The META blocks in the order of the text.
    pub fn blocks(&self) -> impl Iterator<Item = MetaBlock<'_>> {
        let entries = &self.parts.entries;
        entries
            .iter()
            .enumerate()
            .filter(|(_, e)| e.kind == EntryKind::Meta)
            .map(|(index, _)| MetaBlock {
                document: self,
                index,
            })
    }

    /// The first META block of a namespace.
    pub fn block(&self, namespace: &str) -> Option<MetaBlock<'_>> {
        let text = self.text();
        let opens = |e: &HeadEntry| {
            e.kind == EntryKind::Meta && e.value.bytes(text) == namespace.as_bytes()
        };
        let index = self.parts.entries.iter().position(opens)?;
        Some(MetaBlock {
            document: self,
            index,
        })
    }

    /// A value of META: the key in the first block of the namespace.
    pub fn meta(&self, namespace: &str, key: &str) -> Option<&str> {
        self.block(namespace)?.get(key)
    }

    /// Whether the text stands under `body:` or `response:`.
    pub fn body_kind(&self) -> Option<BodyKind> {
        self.parts.body.map(|b| b.kind)
    }

    /// The lines of the body as they are written, without trailing blanks and empty lines.
    fn body_content(&self) -> &str {
        let content = self.parts.body.map_or("", |b| b.content.of(self.text()));
        let mut bytes = content.as_bytes();
        while let [rest @ .., b'\n' | b'\r' | b' ' | b'\t'] = bytes {
            bytes = rest;
        }
        content.get(..bytes.len()).unwrap_or(content)
    }

    /// The lines of the body text: without the indent, without trailing empty lines.
    pub fn body_lines(&self) -> impl Iterator<Item = &str> {
        LineIter::of(self.body_content()).map(unindented)
    }

    /// Gives the body text in pieces, with an LF after each line. Most lines are a piece, with their LF.
    pub(crate) fn body_pieces(&self, mut take: impl FnMut(&str)) {
        let content = self.body_content();
        let mut lines = LineIter::of(content);
        while let Some((start, end)) = lines.next_span() {
            let line = content.as_bytes().get(start..end).unwrap_or(&[]);
            match line {
                [b' ', b' ', .., last] if *last > b' ' && end < content.len() => {
                    take(content.get(start + 2..=end).unwrap_or(""));
                }
                _ => {
                    take(unindented(content.get(start..end).unwrap_or("")));
                    take("\n");
                }
            }
        }
    }

    /// The body text: its lines, joined by LF.
    pub fn body_text(&self) -> String {
        let mut out = String::with_capacity(self.parts.body.map_or(0, |b| b.content.len()));
        self.body_pieces(|piece| out.push_str(piece));
        out.pop();
        out
    }

    /// The value of the `sig:` line.
    pub fn sig(&self) -> Option<&str> {
        self.parts.sig.map(|s| s.of(self.text()))
    }
}

impl fmt::Display for Document<'_> {
    /// The received text, byte for byte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// A META block of a document.
#[derive(Clone, Copy, Debug)]
pub struct MetaBlock<'d> {
    document: &'d Document<'d>,
    /// The entry of its `meta:` line.
    index: usize,
}

impl<'d> MetaBlock<'d> {
    /// Its namespace.
    pub fn namespace(&self) -> &'d str {
        self.document
            .parts
            .entries
            .get(self.index)
            .map_or("", |e| e.value.of(self.document.text()))
    }

    /// Its keys and values in the order of the text.
    pub fn fields(&self) -> impl Iterator<Item = (&'d str, &'d str)> + use<'d> {
        let text = self.document.text();
        let entries = self
            .document
            .parts
            .entries
            .get(self.index + 1..)
            .unwrap_or(&[]);
        entries
            .iter()
            .take_while(|e| e.kind == EntryKind::Key)
            .map(move |e| (e.name.of(text), e.value.of(text)))
    }

    /// The value of a key; keys are case-sensitive (ENV-034).
    pub fn get(&self, key: &str) -> Option<&'d str> {
        self.fields()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }
}

/// A line of the body without its indent and trailing blanks.
fn unindented(line: &str) -> &str {
    let line = text::trim_line(line);
    let indent = match line.as_bytes() {
        [b' ', b' ', ..] => 2,
        [b'\t', ..] => 1,
        _ => 0,
    };
    line.get(indent..).unwrap_or("")
}

/// The lines of a source that was brought to NFC, which keeps the number of lines. Those that are too long
/// only before NFC are reported here; the grammar sees the rest.
fn source_lines(text: &str, sink: &mut Sink) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let length = line.strip_suffix('\r').unwrap_or(line).len();
        if length > limit::LINE_BYTES {
            sink.error(
                &rule::LINE_TOO_LONG,
                start..start,
                format!(
                    "the line has {length} bytes, more than {}",
                    limit::LINE_BYTES
                ),
            );
        }
        lines.push(start..start + line.len());
        start += line.len() + 1;
    }
    lines
}

/// Maps a span of the read text to the source, line by line.
fn to_source(
    span: &Range<usize>,
    origin: &[Range<usize>],
    read: Option<&str>,
    len: usize,
) -> Range<usize> {
    let Some(read) = read else {
        return span.clone();
    };
    let place = |offset: usize| -> Option<usize> {
        let before = read.as_bytes().get(..offset.min(read.len()))?;
        let line = memchr::memchr_iter(b'\n', before).count();
        let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
        let source = origin.get(line)?;
        Some((source.start + column).min(source.end))
    };
    let start = place(span.start).unwrap_or(len);
    let end = place(span.end).unwrap_or(len).max(start);
    start..end
}

/// Whether the values of a key are addresses, by the registry.
fn holds_addresses(namespace: &str, key: &str) -> bool {
    let kind = Namespace::find(namespace).and_then(|n| n.kind_of(key));
    kind.is_some_and(|(kind, _)| {
        matches!(
            kind,
            ValueKind::Address | ValueKind::Addresses | ValueKind::Route
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_characters_in_names_are_found_wherever_they_stand() {
        let text = |sender: &str, route: &str, body: &str| {
            format!(
                "[[{sender}→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: NOTE\n\nmeta: routing\n\
                 X-Reply-To: {route}\n\nbody: |\n  {body}\nsig: none\n[[END]]\n"
            )
        };
        let padding = "x".repeat(70);
        // The second body is not in NFC: the text is read in another way.
        for body in ["plain", "Cafe\u{301}", "a\u{3000}b"] {
            for reading in [Reading::Strict, Reading::Paste] {
                for (sender, route, is_fine) in [
                    ("A", "claude://a", true),
                    ("A\u{3000}", "claude://a", false),
                    ("A", "claude://a\u{fe0f}", false),
                    (&*format!("{padding}\u{2800}"), "claude://a", false),
                ] {
                    let text = text(sender, route, body);
                    let document = Document::parse(&text, reading);
                    let found = document.diagnostics().iter();
                    let is_found = found.into_iter().any(|d| *d.rule == rule::ADDRESS_UNSEEN);
                    assert_eq!(is_found, !is_fine, "{reading:?} {text}");
                }
            }
        }
    }
}
