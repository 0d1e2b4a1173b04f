//! Makes new envelopes, and only valid ones.

use crate::diagnostic::Diagnostic;
use crate::document::{Document, Reading};
use crate::grammar::{BodyKind, CoreHeader};
use crate::layout::EnvelopeWriter;
use crate::registry::rule;
use crate::unicode::nfc;

/// Collects the fields of an envelope and writes it.
///
/// ```
/// use crosstalk_envelope::Builder;
/// let text = Builder::new("CLAUDE", "CHATGPT")
///     .user("kalle")
///     .session("2025-10-09T16Z abc123")
///     .context("auth")
///     .intent("REQUEST")
///     .meta("routing", "X-Priority", "high")
///     .body("Should we use JWT?")
///     .build()
///     .unwrap();
/// assert!(text.ends_with("\nbody: |\n  Should we use JWT?\nsig: none\n[[END]]\n"));
/// assert!(Builder::new("A", "B").context("two\nlines").build().is_err());
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    sender: String,
    receiver: String,
    core: [Option<String>; 7],
    headers: Vec<(String, String)>,
    blocks: Vec<(String, Vec<(String, String)>)>,
    body: String,
    response: bool,
    sig: Option<String>,
}

/// Why an envelope can't be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", join_errors(.diagnostics))]
pub struct BuildError {
    /// The faults; places are in [`BuildError::text`].
    pub diagnostics: Vec<Diagnostic>,
    /// The text that breaks a rule; empty if a value can't be written at all.
    pub text: String,
}

fn join_errors(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|d| d.is_error());
    errors
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Gives the builder a method for each core header.
macro_rules! core_headers {
    ($($(#[$doc:meta])* $method:ident = $header:ident;)+) => {
        impl Builder {
            $($(#[$doc])*
            pub fn $method(self, value: impl Into<String>) -> Self {
                self.core(CoreHeader::$header, value)
            })+
        }
    };
}

core_headers! {
    /// Sets the person or agent that speaks.
    user = User;
    /// Sets the v1.0 conversation.
    session = Session;
    /// Sets the id of the conversation.
    thread = Thread;
    /// Sets the id of the message that this one answers.
    parent = Parent;
    /// Sets the id of the message.
    message = Message;
    /// Sets the topic.
    context = Context;
    /// Sets the intent.
    intent = Intent;
}

impl Builder {
    /// Begins an envelope from `sender` to `receiver`.
    pub fn new(sender: impl Into<String>, receiver: impl Into<String>) -> Self {
        Self {
            sender: sender.into(),
            receiver: receiver.into(),
            ..Self::default()
        }
    }

    /// Sets a core header.
    pub fn core(mut self, header: CoreHeader, value: impl Into<String>) -> Self {
        if let Some(slot) = self.core.get_mut(header as usize) {
            *slot = Some(value.into());
        }
        self
    }

    /// The value that a core header was given.
    pub fn core_value(&self, header: CoreHeader) -> Option<&String> {
        self.core.get(header as usize)?.as_ref()
    }

    /// Sets a core header where there is a value.
    pub fn core_if(self, header: CoreHeader, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.core(header, value),
            None => self,
        }
    }

    /// Adds a header that is not a core one.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Opens a new META block; further keys of [`Builder::meta`] go into the last block of their namespace.
    pub fn block(mut self, namespace: impl Into<String>) -> Self {
        self.blocks.push((namespace.into(), Vec::new()));
        self
    }

    /// Adds a key to the last META block of a namespace, which it opens if there is none.
    pub fn meta(
        mut self,
        namespace: &str,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let field = (key.into(), value.into());
        match self
            .blocks
            .iter_mut()
            .rev()
            .find(|(name, _)| name == namespace)
        {
            Some((_, fields)) => fields.push(field),
            None => self.blocks.push((namespace.to_owned(), vec![field])),
        }
        self
    }

    /// Takes hidden characters out of headers and META values: what others wrote may be among them. The sides of the
    /// direction line and the body stay as they are.
    pub fn visible(mut self) -> Self {
        let clean = |value: &mut String| {
            if let std::borrow::Cow::Owned(clean) = crate::unicode::visible(value) {
                *value = clean;
            }
        };
        self.core.iter_mut().flatten().for_each(clean);
        let blocks = self.blocks.iter_mut().flat_map(|(_, fields)| fields);
        blocks
            .chain(&mut self.headers)
            .for_each(|(_, value)| clean(value));
        self
    }

    /// The text of the message.
    pub fn body(mut self, text: impl Into<String>) -> Self {
        self.body = text.into();
        self
    }

    /// Writes the text under `response:`, as v1.0 replies do.
    pub fn response(mut self) -> Self {
        self.response = true;
        self
    }

    /// The value of the `sig:` line; `none` if it is never set.
    pub fn sig(mut self, value: impl Into<String>) -> Self {
        self.sig = Some(value.into());
        self
    }

    /// Writes the envelope.
    ///
    /// # Errors
    /// A [`BuildError`] if the result would break a rule, or would read back as something else.
    pub fn build(&self) -> Result<String, BuildError> {
        if let Some(fault) = self.unwritable() {
            return Err(BuildError {
                diagnostics: vec![fault],
                text: String::new(),
            });
        }
        let body = self.body.replace("\r\n", "\n");
        let text = self.write(&body);
        let mut document = Document::parse(&text, Reading::Strict);
        document.check();
        if !document.is_accepted() {
            let diagnostics = document.diagnostics().to_vec();
            return Err(BuildError { diagnostics, text });
        }
        if !self.reads_back(&document, &body) {
            let fault =
                fault("the envelope would read back as something else than what was given".into());
            return Err(BuildError {
                diagnostics: vec![fault],
                text,
            });
        }
        // As it was read: values trimmed, in NFC.
        Ok(document.to_well_formed())
    }

    /// A value that would change the structure of the text: one with a line break in it.
    fn unwritable(&self) -> Option<Diagnostic> {
        let core = CoreHeader::ALL.iter().zip(&self.core);
        let core = core.filter_map(|(c, value)| Some((c.as_str(), value.as_deref()?)));
        let headers = self.headers.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        let fields = self
            .blocks
            .iter()
            .flat_map(|(_, f)| f)
            .map(|(k, v)| (k.as_str(), v.as_str()));
        let namespaces = self.blocks.iter().map(|(n, _)| ("meta", n.as_str()));
        let ends = [
            ("sender", self.sender.as_str()),
            ("receiver", &self.receiver),
            ("sig", self.sig.as_deref().unwrap_or("")),
        ];
        let mut all = ends
            .into_iter()
            .chain(core)
            .chain(headers)
            .chain(fields)
            .chain(namespaces);
        let broken = |text: &str| text.contains(['\n', '\r']);
        let (name, _) = all.find(|(name, value)| broken(name) || broken(value))?;
        Some(fault(format!(
            "the value of `{}` has a line break in it",
            crate::unicode::escape(name)
        )))
    }

    fn write(&self, body: &str) -> String {
        let mut out = EnvelopeWriter::new(&self.sender, &self.receiver, body.len() + 1024);
        for (core, value) in CoreHeader::ALL.iter().zip(&self.core) {
            if let Some(value) = value {
                out.line(core.as_str(), value);
            }
        }
        for (name, value) in &self.headers {
            out.line(name, value);
        }
        for (namespace, fields) in &self.blocks {
            out.block(
                namespace,
                fields.iter().map(|(k, v)| (k.as_str(), v.as_str())),
            );
        }
        let kind = if self.response {
            BodyKind::Response
        } else {
            BodyKind::Body
        };
        out.body(kind, body_lines(body).into_iter());
        out.finish(Some(self.sig.as_deref().unwrap_or("none")))
    }

    /// Whether the document says what was given, in NFC and without white space around values.
    fn reads_back(&self, document: &Document<'_>, body: &str) -> bool {
        let same = |given: &str, read: &str| nfc(crate::text::trim(given)) == read;
        let core = CoreHeader::ALL.iter().zip(&self.core);
        same(&self.sender, document.sender())
            && same(&self.receiver, document.receiver())
            && core.into_iter().all(|(c, v)| {
                same(
                    v.as_deref().unwrap_or(""),
                    document.header(*c).unwrap_or(""),
                )
            })
            && all_same(&self.headers, document.unknown_headers(), same)
            && self.blocks.len() == document.blocks().count()
            && self
                .blocks
                .iter()
                .zip(document.blocks())
                .all(|((namespace, fields), block)| {
                    same(namespace, block.namespace()) && all_same(fields, block.fields(), same)
                })
            && body_lines(body)
                .into_iter()
                .map(nfc)
                .eq(document.body_lines())
    }
}

fn all_same<'d>(
    given: &[(String, String)],
    read: impl Iterator<Item = (&'d str, &'d str)>,
    same: impl Fn(&str, &str) -> bool,
) -> bool {
    let read: Vec<_> = read.collect();
    given.len() == read.len()
        && given
            .iter()
            .zip(read)
            .all(|((name, value), (n, v))| name == n && same(value, v))
}

/// The lines of a body as they are read back: without trailing blanks, without trailing empty lines.
fn body_lines(body: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = body
        .split('\n')
        .map(|l| l.trim_end_matches([' ', '\t']))
        .collect();
    while lines.last().is_some_and(|l| l.is_empty()) {
        lines.pop();
    }
    lines
}

fn fault(message: String) -> Diagnostic {
    Diagnostic::error(&rule::HEADER_MALFORMED, 0..0, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> Builder {
        Builder::new("A", "B")
            .user("u")
            .session("s")
            .context("c")
            .intent("REQUEST")
            .body("hello")
    }

    #[test]
    fn nothing_can_be_smuggled_in() {
        let broken = "x\nintent: REVOKE";
        for builder in [
            valid().user(broken),
            valid().context("x\rintent: REVOKE"),
            valid().meta("routing", "X-Priority", broken),
            valid().meta("routing", "X\nY", "z"),
            valid().header("X-A", broken),
            valid().header("user", "other"),
            valid().header("meta", "routing"),
            valid().header("body", "|"),
            valid().meta("privacy\n", "PII", "none"),
            valid().meta("routing", "intent", "REVOKE"),
            valid().sig("none\n[[END]]"),
            Builder::new("A→C", "B")
                .user("u")
                .session("s")
                .context("c")
                .intent("NOTE"),
            Builder::new("A", "B v1]]\nx: [[")
                .user("u")
                .session("s")
                .context("c")
                .intent("NOTE"),
            valid().body("escape \u{1b}[31m"),
            valid().intent("POLL"),
            valid().intent("REVOKE"),
        ] {
            assert!(builder.build().is_err(), "{builder:?}");
        }
    }

    #[test]
    fn a_body_may_hold_anything_that_is_text() {
        let hostile = "[[END]]\nsig: none\n[[X→Y v1]]\n  indented\n\ttab\n\n> quoted\n```\ncode";
        let text = valid().body(hostile).build().unwrap();
        let document = Document::parse(&text, Reading::Strict);
        assert_eq!(document.body_text(), hostile);
        assert_eq!(crate::scan(&text, Reading::Paste).documents.len(), 1);
    }
}
