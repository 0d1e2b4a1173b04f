//! From v1.0 to v1.1 without loss (ENV-090, ENV-091, ENV-093).

use crate::builder::{BuildError, Builder};
use crate::document::{Document, Reading};
use crate::grammar::CoreHeader;
use crate::id;
use crate::registry::Intent;
use std::collections::HashMap;

/// Values for a v1.1 envelope that a v1.0 one does not have.
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

/// The result of a migration.
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
            return Ok(Migration::Signed(untouched(document)));
        }
        let has_ids = envelope
            .thread
            .or(envelope.parent)
            .or(envelope.message)
            .is_some();
        if has_ids || document.blocks().next().is_some() {
            return Ok(Migration::Current(untouched(document)));
        }
        let legacy = envelope.intent.filter(|i| i.is_legacy());
        // An answer gets no message id: with one, it would have to name its parent (INT-010).
        let needs_parent = envelope.meaning().is_some_and(Intent::needs_parent);
        let message = (!needs_parent).then(id::new_ulid);
        let written = envelope.intent.map(|i| i.written);
        let mut builder = Builder::new(document.sender(), document.receiver())
            .user(envelope.user.unwrap_or(&self.defaults.user))
            .core_if(CoreHeader::Session, document.header(CoreHeader::Session))
            .thread(self.thread_of(envelope.session.map(|s| s.text)))
            .core_if(CoreHeader::Message, message.as_deref())
            .context(envelope.context.unwrap_or(&self.defaults.context))
            .core_if(
                CoreHeader::Intent,
                envelope.meaning().map(Intent::as_str).or(written),
            )
            .body(document.body_text());
        for (name, value) in document.unknown_headers() {
            builder = builder.header(name, value);
        }
        if let Some(legacy) = legacy {
            builder = builder.meta("custom-v10", "Original-Intent", legacy.written);
        }
        builder.build().map(Migration::Migrated)
    }

    fn thread_of(&mut self, session: Option<&str>) -> String {
        match session {
            Some(session) => {
                let thread = self.threads.entry(session.to_owned());
                thread.or_insert_with(id::new_ulid).clone()
            }
            None => id::new_ulid(),
        }
    }
}

/// The envelope as it came, or, if it had to be repaired, as it was read.
fn untouched(document: &Document<'_>) -> String {
    match document.reading() {
        Reading::Paste if document.text() != document.source() => document.to_well_formed(),
        _ => document.to_string(),
    }
}
