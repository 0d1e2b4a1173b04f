//! The grammar, once for both readings: lines in, parts out, every fault to the sink.
//!
//! Implements ENV-004, ENV-010 to ENV-027, ENV-030 to ENV-032, ENV-040 to ENV-042, ENV-050 to ENV-062.
//! The text it reads is in NFC and holds no forbidden characters; the paste reading has repaired it first.

mod direction;
mod part;

pub(crate) use direction::{arrow_in, looks_like_version};
pub(crate) use part::{Body, Entry, EntryKind, Parts, Span};
pub use part::{BodyKind, CoreHeader};

use crate::diagnostic::Sink;
use crate::limit;
use crate::registry::{Namespace, rule};
use crate::text::{trim, trim_line};
pub(crate) use part::{Reserved, is_name_byte};

/// The line that ends an envelope.
pub(crate) const END: &str = "[[END]]";

/// Where in the envelope a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Head,
    Body,
    AfterSig,
    AfterEnd,
}

struct Reader<'t, 's> {
    text: &'t str,
    sink: &'s mut Sink,
    parts: Parts,
    place: Place,
    /// Index of the first key of the open META block, if one is open.
    block: Option<usize>,
    overfull: bool,
}

/// Reads the lines of one envelope.
pub(crate) fn read(text: &str, sink: &mut Sink) -> Parts {
    if text.len() > limit::ENVELOPE_BYTES {
        sink.error(
            &rule::ENVELOPE_TOO_LARGE,
            0..0,
            format!(
                "the envelope has {} bytes, more than {}",
                text.len(),
                limit::ENVELOPE_BYTES
            ),
        );
        return Parts::default();
    }
    let mut reader = Reader {
        text,
        sink,
        parts: Parts::with_room(),
        place: Place::Start,
        block: None,
        overfull: false,
    };
    let mut start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
        if !reader.line(start, end) {
            return reader.parts;
        }
        start = end + 1;
    }
    if start < text.len() {
        reader.line(start, text.len());
    }
    reader.finish();
    reader.parts
}

impl Reader<'_, '_> {
    /// Reads one line; false ends the reading.
    fn line(&mut self, start: usize, end: usize) -> bool {
        let line = trim_line(self.text.get(start..end).unwrap_or(""));
        if end - start > limit::LINE_BYTES {
            self.check_length(start, end);
        }
        if line.is_empty() {
            return true;
        }
        match self.place {
            Place::Head => self.head_line(start, line),
            Place::Body => self.body_line(start, line),
            Place::Start => return self.first_line(start, line),
            Place::AfterSig => self.line_after_sig(start, line),
            Place::AfterEnd => {
                let span = start..start + line.len();
                if line.starts_with("[[") && line != END {
                    self.sink
                        .error(&rule::ONE_PER_REQUEST, span, "a second envelope follows");
                } else {
                    self.sink
                        .error(&rule::TEXT_AFTER_END, span, "there is text after [[END]]");
                }
                return false;
            }
        }
        true
    }

    fn check_length(&mut self, start: usize, end: usize) {
        let line = self.text.get(start..end).unwrap_or("");
        let length = line.strip_suffix('\r').unwrap_or(line).len();
        if length > limit::LINE_BYTES {
            self.sink.error(
                &rule::LINE_TOO_LONG,
                start..start,
                format!(
                    "the line has {length} bytes, more than {}",
                    limit::LINE_BYTES
                ),
            );
        }
    }

    fn first_line(&mut self, start: usize, line: &str) -> bool {
        self.parts.direction = direction::read(line, start, self.sink);
        self.place = Place::Head;
        // What does not even look like a direction line is no envelope: one error is enough.
        line.starts_with("[[")
    }

    fn head_line(&mut self, start: usize, line: &str) {
        let bytes = line.as_bytes();
        let name_len = bytes.iter().take_while(|b| is_name_byte(**b)).count();
        let starts_well = bytes.first().is_some_and(u8::is_ascii_alphanumeric);
        if !starts_well || bytes.get(name_len) != Some(&b':') {
            self.not_a_header(start, line);
            return;
        }
        let name = line.get(..name_len).unwrap_or("");
        let raw = line.get(name_len + 1..).unwrap_or("");
        let value = trim(raw);
        let value_start =
            start + name_len + 1 + (raw.len() - raw.trim_start_matches([' ', '\t']).len());
        let entry = Entry {
            kind: EntryKind::Header,
            name: Span::new(start, name_len),
            value: Span::new(value_start, value.len()),
        };
        match Reserved::of(name) {
            None if self.block.is_some() => self.key(
                Entry {
                    kind: EntryKind::Key,
                    ..entry
                },
                name,
            ),
            None => self.unknown_header(entry, name),
            Some((reserved, exact)) => {
                if !exact {
                    self.sink.error(
                        &rule::RESERVED_CASE,
                        entry.name.range(),
                        format!("`{name}` is a name of the format in another case"),
                    );
                }
                self.reserved(reserved, entry, name, value);
            }
        }
    }

    fn reserved(&mut self, reserved: Reserved, entry: Entry, name: &str, value: &str) {
        match reserved {
            Reserved::Core(core) => self.core_header(core, entry, name),
            Reserved::Meta => self.open_block(
                Entry {
                    kind: EntryKind::Meta,
                    ..entry
                },
                value,
            ),
            Reserved::Body(kind) => {
                if value != "|" {
                    self.sink.error(
                        &rule::BODY_MARK,
                        entry.value.range(),
                        format!("`{name}:` is not followed by `|`"),
                    );
                }
                let after = self.next_line_after(entry.value.end());
                self.parts.body = Some(Body {
                    kind,
                    mark: entry.name,
                    content: Span::new(after, 0),
                });
                self.place = Place::Body;
            }
            Reserved::Sig => {
                self.sink.error(
                    &rule::HEADER_MALFORMED,
                    entry.name.range(),
                    "`sig:` stands before the body",
                );
            }
        }
    }

    fn core_header(&mut self, core: CoreHeader, entry: Entry, name: &str) {
        if self.block.is_some() {
            self.sink.error(
                &rule::CORE_IN_BLOCK,
                entry.name.range(),
                format!("the header `{name}` stands inside a META block"),
            );
            return;
        }
        if self.parts.core(core).is_some() {
            self.duplicate_header(entry, name);
            return;
        }
        if entry.value.is_empty() {
            self.sink.error(
                &rule::HEADER_EMPTY,
                entry.name.range(),
                format!("`{name}` is empty"),
            );
        }
        if let Some(index) = self.push(entry) {
            self.parts.set_core(core, index);
        }
    }

    fn unknown_header(&mut self, entry: Entry, name: &str) {
        if self.stands_in(0, name) {
            self.duplicate_header(entry, name);
        } else {
            self.push(entry);
        }
    }

    fn duplicate_header(&mut self, entry: Entry, name: &str) {
        self.sink.error(
            &rule::HEADER_DUPLICATE,
            entry.name.range(),
            format!("the header `{name}` stands twice"),
        );
    }

    fn key(&mut self, entry: Entry, name: &str) {
        if self.stands_in(self.block.unwrap_or(0), name) {
            self.sink.error(
                &rule::KEY_DUPLICATE,
                entry.name.range(),
                format!("the key `{name}` stands twice in its block"),
            );
        } else {
            self.push(entry);
        }
    }

    fn open_block(&mut self, entry: Entry, namespace: &str) {
        let well_formed = namespace
            .bytes()
            .all(|b| is_name_byte(b) && !b.is_ascii_uppercase())
            && namespace
                .bytes()
                .next()
                .is_some_and(|b| b.is_ascii_alphanumeric());
        if !well_formed {
            self.sink.error(
                &rule::NAMESPACE_MALFORMED,
                entry.value.range(),
                if namespace.is_empty() {
                    "`meta:` names no namespace".to_owned()
                } else {
                    "the namespace is not a lower-case word".to_owned()
                },
            );
        }
        let repeated = self
            .parts
            .entries
            .iter()
            .any(|e| e.kind == EntryKind::Meta && e.value.of(self.text) == namespace);
        if repeated && !Namespace::find(namespace).is_some_and(|n| n.repeats) {
            self.sink.error(
                &rule::NAMESPACE_DUPLICATE,
                entry.value.range(),
                format!("`meta: {namespace}` stands twice"),
            );
        }
        self.push(entry);
        self.block = Some(self.parts.entries.len());
    }

    /// Whether a name stands among the entries from `first` on, without regard to case.
    fn stands_in(&self, first: usize, name: &str) -> bool {
        self.parts
            .entries
            .iter()
            .skip(first)
            .any(|e| e.name.len() == name.len() && e.name.of(self.text).eq_ignore_ascii_case(name))
    }

    fn push(&mut self, entry: Entry) -> Option<usize> {
        let count = self.parts.entries.len();
        if count < limit::HEADERS {
            self.parts.entries.push(entry);
            return Some(count);
        }
        if !self.overfull {
            self.overfull = true;
            self.sink.error(
                &rule::TOO_MANY_HEADERS,
                entry.name.range(),
                format!("there are more than {} headers and keys", limit::HEADERS),
            );
        }
        None
    }

    fn not_a_header(&mut self, start: usize, line: &str) {
        let span = Span::new(start, line.len());
        if line == END {
            self.missing_body(span);
            self.missing_sig(span);
            self.end(span);
            return;
        }
        let what = if line.starts_with([' ', '\t']) {
            "the line is indented, but it is not in the body"
        } else {
            "the line is not `Name: value`"
        };
        self.sink.error(&rule::HEADER_MALFORMED, span.range(), what);
    }

    fn body_line(&mut self, start: usize, line: &str) {
        if line.starts_with("  ") || line.starts_with('\t') {
            return;
        }
        let span = Span::new(start, line.len());
        if line == END {
            self.close_body(start);
            self.missing_sig(span);
            self.end(span);
        } else if let Some(raw) = line.strip_prefix("sig:") {
            self.close_body(start);
            let value = trim(raw);
            let gap = raw.len() - raw.trim_start_matches([' ', '\t']).len();
            self.sig(Entry {
                kind: EntryKind::Header,
                name: Span::new(start, 3),
                value: Span::new(start + 4 + gap, value.len()),
            });
        } else {
            self.sink.error(
                &rule::BODY_INDENT,
                span.range(),
                "the body line is not indented by two spaces or a tab",
            );
        }
    }

    fn close_body(&mut self, end: usize) {
        if let Some(body) = &mut self.parts.body {
            body.content = Span::between(body.content.start(), end);
        }
    }

    fn sig(&mut self, entry: Entry) {
        self.parts.sig = Some(entry.value);
        self.place = Place::AfterSig;
    }

    fn line_after_sig(&mut self, start: usize, line: &str) {
        let span = Span::new(start, line.len());
        if line == END {
            self.end(span);
        } else {
            self.sink.error(
                &rule::TEXT_AFTER_END,
                span.range(),
                "between sig: and [[END]] there is another line",
            );
        }
    }

    fn end(&mut self, span: Span) {
        self.parts.end = Some(span);
        self.place = Place::AfterEnd;
    }

    fn missing_body(&mut self, at: Span) {
        self.sink
            .error(&rule::BODY_MISSING, at.range(), "the envelope has no body");
    }

    fn missing_sig(&mut self, at: Span) {
        if !self
            .parts
            .body
            .as_ref()
            .is_some_and(|b| b.kind == BodyKind::Response)
        {
            self.sink
                .error(&rule::SIG_MISSING, at.range(), "there is no sig: line");
        }
    }

    fn next_line_after(&self, at: usize) -> usize {
        let rest = self.text.as_bytes().get(at..).unwrap_or(&[]);
        memchr::memchr(b'\n', rest).map_or(self.text.len(), |i| at + i + 1)
    }

    fn finish(&mut self) {
        let end = self.text.len();
        match self.place {
            Place::AfterEnd => {}
            Place::Start => {
                self.sink
                    .error(&rule::DIRECTION_MALFORMED, 0..0, "the text is empty");
            }
            _ => {
                if self.place == Place::Body {
                    self.close_body(end);
                }
                let last = self.text.trim_end().len();
                let cut = self
                    .text
                    .get(..last)
                    .map_or(0, |t| t.rfind('\n').map_or(0, |i| i + 1));
                self.sink.error(
                    &rule::END_MISSING,
                    cut..last,
                    "the text stops before [[END]]: it was probably cut off after this line",
                );
            }
        }
    }
}
