//! Style and caution: what is allowed, and yet worth a remark (LNT, and the remarks of ENV, INT and MET).

use crate::address::{Address, Schemes};
use crate::diagnostic::{Diagnostic, Severity};
use crate::document::Document;
use crate::flow::Flow;
use crate::grammar::{CoreHeader, EntryKind, is_key_style};
use crate::id::IdForm;
use crate::meta::{Attachment, AttachmentError, is_well_typed};
use crate::registry::{DENIED_KEYS, Intent, Namespace, Rule, ValueKind, rule};
use crate::unicode;
use std::borrow::Cow;
use std::ops::Range;

/// Everything that is worth a remark, in the order of the text.
///
/// ```
/// use crosstalk_envelope::{Document, Reading, lint};
/// let text = "[[A→B v1]]\nuser: u\nsession: s\nthread: t1\ncontext: c\nintent: NOTE\nbody: |\n  x\nsig: none\n[[END]]";
/// let document = Document::parse(text, Reading::Strict);
/// let ids: Vec<_> = lint(&document).iter().map(|d| d.rule.id).collect();
/// assert_eq!(ids, ["ENV-028", "LNT-001", "INT-002"]);
/// ```
pub fn lint(document: &Document<'_>) -> Vec<Diagnostic> {
    let mut lint = Linter {
        document,
        found: Vec::new(),
    };
    lint.direction();
    lint.headers();
    lint.meta();
    lint.intent();
    lint.hidden_characters();
    crate::sort_by_number(&mut lint.found, |d| d.span.start);
    lint.found.truncate(crate::limit::DIAGNOSTICS);
    lint.found
}

struct Linter<'d> {
    document: &'d Document<'d>,
    found: Vec<Diagnostic>,
}

impl Linter<'_> {
    /// Reports a finding at a span of the text that was read.
    fn report(
        &mut self,
        rule: &'static Rule,
        severity: Severity,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) {
        if self.found.len() < 4 * crate::limit::DIAGNOSTICS {
            let span = self.document.in_source(span);
            self.found
                .push(Diagnostic::new(rule, severity, span, message));
        }
    }

    fn note(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) {
        self.report(rule, Severity::Note, span, message);
    }

    fn warn(
        &mut self,
        rule: &'static Rule,
        span: Range<usize>,
        message: impl Into<Cow<'static, str>>,
    ) {
        self.report(rule, Severity::Warning, span, message);
    }

    fn direction(&mut self) {
        let Some(direction) = self.document.parts().direction else {
            return;
        };
        for (side, span) in [
            ("sender", direction.sender),
            ("receiver", direction.receiver),
        ] {
            let text = span.of(self.document.text());
            self.name(side, text, span.range());
            self.address(text, span.range());
        }
    }

    fn name(&mut self, side: &str, text: &str, span: Range<usize>) {
        if crate::name::is_deceptive(text) {
            self.warn(
                &rule::LOOK_ALIKE,
                span,
                format!("the {side} has letters that look like those of another alphabet"),
            );
        }
    }

    fn address(&mut self, text: &str, span: Range<usize>) {
        if let Err(fault) = Address::parse(text) {
            // The reading reports this one itself.
            if *fault.rule == rule::ADDRESS_UNSEEN {
                return;
            }
            self.warn(fault.rule, span, fault.message);
        } else if let Some(scheme) = Address::split(text).scheme()
            && Schemes::default().find(scheme).is_none()
        {
            let message = format!("the scheme `{scheme}` is not in the registry");
            self.note(&rule::SCHEME_UNKNOWN, span, message);
        }
    }

    fn headers(&mut self) {
        let (parts, text) = (self.document.parts(), self.document.text());
        if let Some(entry) = parts.core(CoreHeader::User) {
            self.name("user", entry.value.of(text), entry.value.range());
        }
        if let Some(session) = self.document.envelope().session
            && !session.is_usual()
            && let Some(entry) = parts.core(CoreHeader::Session)
        {
            self.note(
                &rule::SESSION_SPELLING,
                entry.value.range(),
                "the session is not a time and a word",
            );
        }
        for core in [CoreHeader::Thread, CoreHeader::Parent, CoreHeader::Message] {
            let Some(entry) = parts.core(core) else {
                continue;
            };
            if IdForm::of(entry.value.of(text)) == IdForm::Opaque {
                let message = format!("the {} id is neither a ULID nor a UUIDv7", core.as_str());
                self.note(&rule::ID_FORM, entry.value.range(), message);
            }
        }
    }

    fn meta(&mut self) {
        let (parts, text) = (self.document.parts(), self.document.text());
        let mut namespace: Option<&'static Namespace> = None;
        for entry in &parts.entries {
            let (name, value) = (entry.name.of(text), entry.value.of(text));
            match entry.kind {
                EntryKind::Header => {}
                EntryKind::Meta => {
                    namespace = Namespace::find(value);
                    if namespace.is_none() && !value.starts_with("custom-") {
                        let message = format!("the namespace `{value}` is not in the registry");
                        self.note(&rule::NAMESPACE_UNKNOWN, entry.value.range(), message);
                    }
                }
                EntryKind::Key => {
                    self.key(namespace, name, entry.name.range());
                    self.value(namespace, name, value, entry.value.range());
                }
            }
        }
    }

    fn key(&mut self, namespace: Option<&Namespace>, name: &str, span: Range<usize>) {
        let known = namespace.is_some_and(|n| n.kind_of(name).is_some());
        if !known && !is_key_style(name) {
            let message = format!("the key `{name}` is neither PascalCase nor begins with X-");
            self.note(&rule::KEY_STYLE, span.clone(), message);
        }
        if let Some(namespace) = namespace
            && !known
            && !name.starts_with("X-")
        {
            let message = format!("`meta: {}` has no key `{name}`", namespace.name);
            self.note(&rule::KEY_UNKNOWN, span, message);
        }
    }

    fn value(&mut self, namespace: Option<&Namespace>, key: &str, value: &str, span: Range<usize>) {
        if let Some((_, why)) = DENIED_KEYS.iter().find(|(denied, _)| *denied == value) {
            let message = format!("this key vouches for nobody: it was {why}");
            self.warn(&rule::META_KEY, span.clone(), message);
        }
        let known = namespace.and_then(|n| n.kind_of(key));
        let is_text = known.is_some_and(|(kind, _)| kind == ValueKind::Text);
        if let Some(fault) = (Flow::is_meant(value) && !is_text)
            .then(|| Flow::parse(value).err())
            .flatten()
        {
            self.warn(&rule::FLOW_MALFORMED, span, fault.as_str());
            return;
        }
        let Some((kind, known)) = known else {
            return;
        };
        if kind == ValueKind::Attachment {
            self.attachment(value, span);
        } else if !is_well_typed(kind, known, value) {
            let expected = if known.is_empty() {
                String::new()
            } else {
                format!(" ({})", known.join(", "))
            };
            let message = format!("the value of `{key}` is not what the registry says{expected}");
            self.warn(&rule::VALUE_TYPE, span, message);
        }
    }

    fn attachment(&mut self, value: &str, span: Range<usize>) {
        match Attachment::parse(value) {
            Err(fault) => {
                self.warn(&rule::META_ATTACHMENTS, span, fault.to_string());
            }
            Ok(attachment) if !attachment.has_sound_digest() => {
                let fault = AttachmentError::Digest.to_string();
                self.warn(&rule::META_ATTACHMENTS, span, fault);
            }
            Ok(attachment) => {
                if let Err(fault) = attachment.check_embedded() {
                    self.warn(&rule::ATTACHMENT_DIGEST, span, fault.to_string());
                }
            }
        }
    }

    fn intent(&mut self) {
        let envelope = self.document.envelope();
        let (Some(intent), Some(entry)) = (
            envelope.intent,
            self.document.parts().core(CoreHeader::Intent),
        ) else {
            return;
        };
        let span = entry.value.range();
        if intent.is_legacy() {
            let message = format!(
                "`{}` is a legacy intent and means {}",
                intent.written,
                intent.meaning_str()
            );
            self.note(&rule::INTENT_LEGACY, span.clone(), message);
        }
        match intent.meaning {
            None => {
                let message = format!(
                    "the intent `{}` is not in the registry",
                    unicode::escape(intent.written)
                );
                self.note(&rule::INTENT_UNKNOWN, span, message);
            }
            Some(Intent::Broadcast) if envelope.routing().reply_to.is_some() => {
                let message = "a BROADCAST expects no answer, but there is an X-Reply-To";
                self.note(&rule::BROADCAST_WANTS_ANSWER, span, message);
            }
            Some(Intent::Request) if self.document.body_lines().next().is_none() => {
                self.warn(&rule::REQUEST_EMPTY, span, "the REQUEST has an empty body");
            }
            Some(_) => {}
        }
    }

    /// One remark a kind: where the first one stands, and how many there are.
    fn hidden_characters(&mut self) {
        let text = self.document.text();
        for (rule, is_one, what) in [
            (
                &rule::BIDI_CONTROL,
                unicode::is_bidi_control as fn(char) -> bool,
                "bidirectional control",
            ),
            (
                &rule::INVISIBLE,
                unicode::is_invisible,
                "invisible character",
            ),
        ] {
            let mut places =
                beyond_ascii(text).filter(|(at, c)| is_one(*c) && !joins_emoji(text, *at, *c));
            let Some((at, c)) = places.next() else {
                continue;
            };
            let count = 1 + places.count();
            let first = u32::from(c);
            let message = match count {
                1 => format!("there is one {what}, U+{first:04X}"),
                _ => format!("there are {count} {what}s; the first is U+{first:04X}"),
            };
            self.warn(rule, at..at + c.len_utf8(), message);
        }
    }
}

/// The characters beyond ASCII with their places. Most of a text is ASCII, so that is skipped a chunk at a time.
fn beyond_ascii(text: &str) -> impl Iterator<Item = (usize, char)> {
    const CHUNK_BYTES: usize = 64;
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?.as_bytes();
        let chunks = rest.chunks(CHUNK_BYTES).take_while(|c| c.is_ascii());
        let ascii = chunks.count() * CHUNK_BYTES;
        let place = at + ascii + rest.get(ascii..)?.iter().position(|b| !b.is_ascii())?;
        let c = text.get(place..)?.chars().next()?;
        at = place + c.len_utf8();
        Some((place, c))
    })
}

/// A zero-width joiner or non-joiner between two characters beyond ASCII belongs to the writing.
fn joins_emoji(text: &str, at: usize, c: char) -> bool {
    let before = text.get(..at).and_then(|t| t.chars().next_back());
    let after = text.get(at + c.len_utf8()..).and_then(|t| t.chars().next());
    matches!(c, '\u{200c}' | '\u{200d}')
        && before.is_some_and(|b| !b.is_ascii())
        && after.is_some_and(|a| !a.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_beyond_ascii_is_found_wherever_it_stands() {
        for before in [0, 1, 63, 64, 65, 127, 128, 200] {
            for (between, after) in [(0, 0), (1, 64), (64, 63), (130, 1)] {
                let a = |count: usize| "a".repeat(count);
                let text = format!("{}→{}\u{200b}é{}", a(before), a(between), a(after));
                let all = text.char_indices().filter(|(_, c)| !c.is_ascii());
                assert!(beyond_ascii(&text).eq(all), "{before} {between} {after}");
            }
        }
        assert_eq!(beyond_ascii(&"a".repeat(200)).next(), None);
        assert_eq!(beyond_ascii("").next(), None);
    }
}
