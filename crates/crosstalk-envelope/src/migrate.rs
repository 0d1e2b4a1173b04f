//! From v1.0 to v1.1 without loss (ENV-090, ENV-091, ENV-093).

use crate::builder::{BuildError, Builder};
use crate::document::Document;
use crate::grammar::{BodyKind, CoreHeader};
use crate::id;
use crate::registry::Intent;
use std::collections::HashMap;

/// What stands in a v1.1 envelope where a v1.0 one has nothing.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// `user` of a response that has none.
    pub user: String,
    /// `context` of a response that has none.
    pub context: String,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            user: "unknown".into(),
            context: "unknown".into(),
        }
    }
}

/// What became of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Migration {
    /// It was written anew.
    Migrated(String),
    /// It is v1.1 already.
    Current(String),
    /// It is signed: another text would not carry the signature.
    Signed(String),
}

impl Migration {
    /// The envelope's text.
    pub fn text(&self) -> &str {
        match self {
            Self::Migrated(text) | Self::Current(text) | Self::Signed(text) => text,
        }
    }
}

/// Migrates the envelopes of one archive: messages of one session join one thread.
///
/// ```
/// use crosstalk_envelope::{Document, Migrator, Reading};
/// let v10 = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: QUESTION\nbody: |\n  x\nsig: none\n[[END]]\n";
/// let document = Document::parse(v10, Reading::Strict);
/// let mut migrator = Migrator::default();
/// let text = migrator.migrate(&document).unwrap().text().to_owned();
/// assert!(text.contains("\nthread: ") && text.contains("\nintent: REQUEST\n"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Migrator {
    defaults: Defaults,
    threads: HashMap<String, String>,
}

impl Migrator {
    /// A migrator with other defaults.
    pub fn new(defaults: Defaults) -> Self {
        Self {
            defaults,
            threads: HashMap::new(),
        }
    }

    /// Migrates one envelope.
    ///
    /// # Errors
    /// A [`BuildError`] if the envelope lacks what v1.1 needs and no default stands for it.
    pub fn migrate(&mut self, document: &Document<'_>) -> Result<Migration, BuildError> {
        let envelope = document.envelope();
        if envelope.signature.is_some_and(|s| s.is_signed()) {
            return Ok(Migration::Signed(document.to_well_formed()));
        }
        let response = document.body_kind() == Some(BodyKind::Response);
        let legacy = envelope.intent.filter(|i| i.is_legacy());
        let has_ids = envelope.thread.is_some() && envelope.message.is_some();
        if has_ids && !response && legacy.is_none() {
            return Ok(Migration::Current(document.to_well_formed()));
        }
        let thread = self.thread_of(envelope.thread, envelope.session.map(|s| s.text));
        // An answer that names no parent gets no message id: with one, it would have to name it (INT-010).
        let may_have_id = envelope.parent.is_some() || !answers(envelope.meaning());
        let message = envelope
            .message
            .map(str::to_owned)
            .or_else(|| may_have_id.then(id::new_ulid));
        let intent = envelope
            .meaning()
            .map(Intent::as_str)
            .or(envelope.intent.map(|i| i.written));
        let mut builder = Builder::new(document.sender(), document.receiver())
            .user(envelope.user.unwrap_or(&self.defaults.user))
            .core_if(CoreHeader::Session, document.header(CoreHeader::Session))
            .thread(thread)
            .core_if(CoreHeader::Parent, envelope.parent)
            .core_if(CoreHeader::Message, message.as_deref())
            .context(envelope.context.unwrap_or(&self.defaults.context))
            .core_if(CoreHeader::Intent, intent)
            .body(document.body_text());
        for (name, value) in document
            .headers()
            .filter(|(n, _)| CoreHeader::from_name(n).is_none())
        {
            builder = builder.header(name, value);
        }
        for block in document.blocks() {
            builder = block
                .fields()
                .fold(builder.block(block.namespace()), |b, (k, v)| {
                    b.meta(block.namespace(), k, v)
                });
        }
        if let Some(legacy) = legacy {
            builder = builder.meta("custom-v10", "Original-Intent", legacy.written);
        }
        builder.build().map(Migration::Migrated)
    }

    fn thread_of(&mut self, thread: Option<&str>, session: Option<&str>) -> String {
        match (thread, session) {
            (Some(thread), _) => thread.to_owned(),
            (None, Some(session)) => self
                .threads
                .entry(session.to_owned())
                .or_insert_with(id::new_ulid)
                .clone(),
            (None, None) => id::new_ulid(),
        }
    }
}

fn answers(intent: Option<Intent>) -> bool {
    matches!(intent, Some(Intent::Respond | Intent::Ack | Intent::Nack))
}
