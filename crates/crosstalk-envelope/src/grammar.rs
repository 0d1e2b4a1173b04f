//! The grammar, once for both readings: lines in, parts out, every fault to the sink.
//!
//! Implements ENV-004, ENV-010 to ENV-027, ENV-030 to ENV-032, ENV-040 to ENV-042, ENV-050 to ENV-062.
//! The text it reads is in NFC and holds no forbidden characters; the paste reading has repaired it first.

mod direction;
mod part;

pub(crate) use direction::{arrow_in, is_direction, looks_like_version};
pub use part::{BodyKind, CoreHeader};
pub(crate) use part::{BodyPart, Direction, EntryKind, HeadEntry, Parts, Span};

use crate::diagnostic::Sink;
use crate::limit;
use crate::lines::LineEnds;
use crate::registry::{Namespace, Rule, rule};
use crate::text::trim_line_bytes;
use part::name_of;
pub(crate) use part::{Reserved, is_key_style, is_name, is_name_byte};

/// The line that ends an envelope.
pub(crate) const END: &str = "[[END]]";

/// A line without its CR and trailing blanks, and where it begins. It is never empty.
#[derive(Clone, Copy)]
struct TextLine<'t> {
    start: usize,
    bytes: &'t [u8],
}

impl TextLine<'_> {
    fn span(self) -> Span {
        Span::new(self.start, self.bytes.len())
    }
}

/// The part of the envelope that follows a line of the head.
enum Below {
    Head,
    Body,
    Nothing,
}

struct EnvelopeReader<'t, 's> {
    text: &'t str,
    ends: &'s mut LineEnds<'t>,
    /// Where the next line begins.
    start: usize,
    sink: &'s mut Sink,
    parts: Parts,
    /// Index of the first key of the open META block; 0 where none is open.
    block: usize,
}

/// Reads the lines of one envelope; `ends` are those of `text`.
pub(crate) fn read<'t>(text: &'t str, ends: &mut LineEnds<'t>, sink: &mut Sink) -> Parts {
    if text.len() > limit::ENVELOPE_BYTES {
        let (is, most) = (text.len(), limit::ENVELOPE_BYTES);
        let message = format!("the envelope has {is} bytes, more than {most}");
        sink.error(&rule::ENVELOPE_TOO_LARGE, 0..0, message);
        return Parts::default();
    }
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut reader = EnvelopeReader {
        text,
        ends,
        start,
        sink,
        parts: Parts::with_room(),
        block: 0,
    };
    reader.envelope();
    reader.parts
}

impl<'t> EnvelopeReader<'t, '_> {
    /// Direction, head, body, signature, end: in this order.
    fn envelope(&mut self) {
        let Some(first) = self.next_line() else {
            self.sink
                .error(&rule::DIRECTION_MALFORMED, 0..0, "the text is empty");
            return;
        };
        self.parts.direction = direction::read(first.span().of(self.text), first.start, self.sink);
        if self.parts.direction.is_none() && !first.bytes.starts_with(b"[[") {
            // A text that does not even look like a direction line is no envelope: one error is enough.
            return;
        }
        match self.head() {
            Below::Nothing => {}
            Below::Head => return self.cut_off(),
            Below::Body if !self.body() => return self.cut_off(),
            Below::Body => {}
        }
        if let Some(further) = self.next_line() {
            self.text_after_end(further);
        }
    }

    /// The next line that is not blank.
    #[inline(always)]
    fn next_line(&mut self) -> Option<TextLine<'t>> {
        loop {
            let start = self.start;
            let bytes = trim_line_bytes(self.next_raw_line()?);
            if !bytes.is_empty() {
                return Some(TextLine { start, bytes });
            }
        }
    }

    /// The next line as it is, without its LF.
    #[inline(always)]
    fn next_raw_line(&mut self) -> Option<&'t [u8]> {
        let start = self.start;
        let end = match self.ends.next() {
            Some(end) => end,
            None if start < self.text.len() => self.text.len(),
            None => return None,
        };
        self.start = end + 1;
        let line = self.text.as_bytes().get(start..end)?;
        if line.len() > limit::LINE_BYTES {
            self.long_line(start, line);
        }
        Some(line)
    }

    #[cold]
    fn long_line(&mut self, start: usize, line: &[u8]) {
        let (is, most) = (
            line.strip_suffix(b"\r").unwrap_or(line).len(),
            limit::LINE_BYTES,
        );
        if is > most {
            let message = format!("the line has {is} bytes, more than {most}");
            self.sink.error(&rule::LINE_TOO_LONG, start..start, message);
        }
    }

    /// Headers and META blocks, up to the line that opens the body.
    fn head(&mut self) -> Below {
        while let Some(line) = self.next_line() {
            match self.head_line(line) {
                Below::Head => {}
                below => return below,
            }
        }
        Below::Head
    }

    #[inline(always)]
    fn head_line(&mut self, line: TextLine<'t>) -> Below {
        let Some((length, reserved)) = name_of(line.bytes) else {
            return self.not_a_header(line);
        };
        let mut value = line.bytes.get(length + 1..).unwrap_or(&[]);
        while let [b' ' | b'\t', rest @ ..] = value {
            value = rest;
            if rest.first().is_some_and(|b| *b > b' ') {
                break;
            }
        }
        let entry = HeadEntry {
            kind: if self.block == 0 {
                EntryKind::Header
            } else {
                EntryKind::Key
            },
            name: Span::new(line.start, length),
            value: Span::new(line.start + line.bytes.len() - value.len(), value.len()),
        };
        match reserved {
            Some((Reserved::Core(core), true)) => self.core_header(core, entry),
            None => self.other_name(entry),
            Some((reserved, exact)) => return self.reserved(reserved, exact, entry),
        }
        Below::Head
    }

    fn reserved(&mut self, reserved: Reserved, exact: bool, entry: HeadEntry) -> Below {
        if !exact {
            self.fault(
                &rule::RESERVED_CASE,
                entry.name,
                "is a name of the format in another case",
            );
        }
        match reserved {
            Reserved::Core(core) => self.core_header(core, entry),
            Reserved::Meta => self.open_block(HeadEntry {
                kind: EntryKind::Meta,
                ..entry
            }),
            Reserved::Sig => {
                self.fault(&rule::HEADER_MALFORMED, entry.name, "comes before the body");
            }
            Reserved::Body(kind) => {
                if entry.value.bytes(self.text) != b"|" {
                    self.fault(&rule::BODY_MARK, entry.name, "is not followed by `|`");
                }
                let content = Span::new(self.start.min(self.text.len()), 0);
                self.parts.body = Some(BodyPart {
                    kind,
                    mark: entry.name,
                    content,
                });
                return Below::Body;
            }
        }
        Below::Head
    }

    #[inline(always)]
    fn core_header(&mut self, core: CoreHeader, entry: HeadEntry) {
        let index = self.parts.entries.len();
        if self.block == 0 && !entry.value.is_empty() && self.parts.core(core).is_none() {
            if self.push(entry) {
                self.parts.set_core(core, index);
            }
        } else {
            self.misplaced_core_header(core, entry);
        }
    }

    #[cold]
    fn misplaced_core_header(&mut self, core: CoreHeader, entry: HeadEntry) {
        if self.block > 0 {
            self.fault(
                &rule::CORE_IN_BLOCK,
                entry.name,
                "is a core header inside a META block",
            );
        } else if self.parts.core(core).is_some() {
            self.fault(&rule::HEADER_DUPLICATE, entry.name, "appears twice");
        } else {
            self.fault(&rule::HEADER_EMPTY, entry.name, "is empty");
            let index = self.parts.entries.len();
            if self.push(entry) {
                self.parts.set_core(core, index);
            }
        }
    }

    /// An unknown header, or a key of the open block.
    #[inline(always)]
    fn other_name(&mut self, entry: HeadEntry) {
        let name = entry.name.bytes(self.text);
        let block = self.parts.entries.get(self.block..).unwrap_or(&[]);
        let is_same = |e: &HeadEntry| {
            e.name.len() == name.len() && e.name.bytes(self.text).eq_ignore_ascii_case(name)
        };
        if !block.iter().any(is_same) {
            self.push(entry);
        } else if self.block > 0 {
            self.fault(
                &rule::KEY_DUPLICATE,
                entry.name,
                "appears twice in its block",
            );
        } else {
            self.fault(&rule::HEADER_DUPLICATE, entry.name, "appears twice");
        }
    }

    fn open_block(&mut self, entry: HeadEntry) {
        let namespace = entry.value.bytes(self.text);
        let well_formed = namespace.first().is_some_and(u8::is_ascii_alphanumeric)
            && namespace
                .iter()
                .all(|b| is_name_byte(*b) && !b.is_ascii_uppercase());
        if !well_formed {
            self.fault(
                &rule::NAMESPACE_MALFORMED,
                entry.name,
                "is not followed by a lower-case namespace",
            );
        }
        let mut entries = self.parts.entries.iter();
        if entries.any(|e| e.kind == EntryKind::Meta && e.value.bytes(self.text) == namespace) {
            self.repeated_block(entry.value);
        }
        self.push(entry);
        self.block = self.parts.entries.len();
    }

    #[cold]
    fn repeated_block(&mut self, namespace: Span) {
        if !Namespace::find(namespace.of(self.text)).is_some_and(|n| n.repeats) {
            self.fault(
                &rule::NAMESPACE_DUPLICATE,
                namespace,
                "is the namespace of an earlier block",
            );
        }
    }

    /// Keeps an entry, if there is room for it.
    #[inline(always)]
    fn push(&mut self, entry: HeadEntry) -> bool {
        let fits = self.parts.entries.len() < limit::HEADERS;
        if fits {
            self.parts.entries.push(entry);
        } else {
            self.too_many(entry.name);
        }
        fits
    }

    #[cold]
    fn too_many(&mut self, place: Span) {
        if !self.parts.overfull {
            self.parts.overfull = true;
            let message = format!("there are more than {} headers and keys", limit::HEADERS);
            self.sink
                .error(&rule::TOO_MANY_HEADERS, place.range(), message);
        }
    }

    #[cold]
    fn not_a_header(&mut self, line: TextLine<'_>) -> Below {
        if line.bytes == END.as_bytes() {
            self.sink.error(
                &rule::BODY_MISSING,
                line.span().range(),
                "the envelope has no body",
            );
            self.parts.end = Some(line.span());
            return Below::Nothing;
        }
        let what = if line.bytes.starts_with(b" ") || line.bytes.starts_with(b"\t") {
            "the line is indented, but it is not in the body"
        } else {
            "the line is not `Name: value`"
        };
        self.sink
            .error(&rule::HEADER_MALFORMED, line.span().range(), what);
        Below::Head
    }

    /// The body, the signature and the end; false if the text stops before the end.
    fn body(&mut self) -> bool {
        loop {
            let start = self.start;
            let Some(raw) = self.next_raw_line() else {
                self.close_body(self.text.len());
                return false;
            };
            if matches!(raw, [b' ', b' ', ..] | [b'\t', ..]) {
                continue;
            }
            let line = TextLine {
                start,
                bytes: trim_line_bytes(raw),
            };
            if line.bytes.is_empty() {
                continue;
            }
            if line.bytes == END.as_bytes() {
                self.close_body(start);
                self.end_without_sig(line);
                return true;
            }
            if let Some(value) = line.bytes.strip_prefix(b"sig:") {
                self.close_body(start);
                let value = value.trim_ascii_start();
                self.parts.sig = Some(Span::new(
                    start + line.bytes.len() - value.len(),
                    value.len(),
                ));
                return self.end();
            }
            let what = "the body line is not indented by two spaces or a tab";
            self.sink
                .error(&rule::BODY_INDENT, line.span().range(), what);
        }
    }

    fn close_body(&mut self, end: usize) {
        if let Some(body) = &mut self.parts.body {
            body.content = Span::between(body.content.start().min(end), end);
        }
    }

    fn end_without_sig(&mut self, line: TextLine<'_>) {
        self.parts.end = Some(line.span());
        if !self
            .parts
            .body
            .is_some_and(|b| b.kind == BodyKind::Response)
        {
            self.sink.error(
                &rule::SIG_MISSING,
                line.span().range(),
                "there is no sig: line",
            );
        }
    }

    /// The end below the signature; false if the text stops before it.
    fn end(&mut self) -> bool {
        while let Some(line) = self.next_line() {
            if line.bytes == END.as_bytes() {
                self.parts.end = Some(line.span());
                return true;
            }
            let what = "between sig: and [[END]] there is another line";
            self.sink
                .error(&rule::TEXT_AFTER_END, line.span().range(), what);
        }
        false
    }

    #[cold]
    fn text_after_end(&mut self, line: TextLine<'_>) {
        let span = line.span().range();
        if line.bytes.starts_with(b"[[") && line.bytes != END.as_bytes() {
            self.sink
                .error(&rule::ONE_PER_REQUEST, span, "a second envelope follows");
        } else {
            self.sink
                .error(&rule::TEXT_AFTER_END, span, "there is text after [[END]]");
        }
    }

    #[cold]
    fn cut_off(&mut self) {
        let last = self.text.trim_end().len();
        let line = self
            .text
            .get(..last)
            .and_then(|t| t.rfind('\n'))
            .map_or(0, |i| i + 1);
        let message = "the text stops before [[END]]: it was probably cut off after this line";
        self.sink.error(&rule::END_MISSING, line..last, message);
    }

    /// Reports a fault about the name at `place`.
    #[cold]
    fn fault(&mut self, rule: &'static Rule, place: Span, what: &str) {
        let message = format!("`{}` {what}", place.of(self.text));
        self.sink.error(rule, place.range(), message);
    }
}
