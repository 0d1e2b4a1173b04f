//! The audit log: what a store keeps of it, and what it proves from there.

use super::StoreFuture;
use crate::audit::{Event, EventDetail, EventKind, Hash, LogEntry, LogQuery, SignedCheckpoint};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;

/// The log of a relay. Entries are written with what they are about, in its transaction; this is the rest.
///
/// Proofs are made from stored hashes, in a time that grows with the logarithm of the size.
pub trait AuditLog {
    /// How many entries there are, and the latest checkpoint.
    fn log_head(&self) -> StoreFuture<'_, LogHead>;

    /// Entries in their order.
    fn log_entries(&self, query: LogQuery) -> StoreFuture<'_, Vec<LogEntry>>;

    /// A proof; nothing if the log has fewer entries.
    fn log_proof(&self, proof: LogProof) -> StoreFuture<'_, Option<Vec<Hash>>>;

    /// Stores the hashes of entries that have none yet, and gives the root of the whole log. Others write meanwhile.
    fn hash_log(&self) -> StoreFuture<'_, LogRoot>;

    /// Keeps a checkpoint, unless there is a later one. The latest.
    fn keep_checkpoint(&self, signed: SignedCheckpoint) -> StoreFuture<'_, SignedCheckpoint>;

    /// Writes entries that are about no change of the store.
    fn log(&self, entries: Vec<NewLogEntry>) -> StoreFuture<'_, ()>;
}

/// The end of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogHead {
    /// How many entries there are.
    pub size: u64,
    /// The latest checkpoint that is kept.
    pub checkpoint: Option<SignedCheckpoint>,
}

/// A log of some size, in one hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRoot {
    /// How many entries it has.
    pub size: u64,
    /// The hash.
    pub root: Hash,
}

/// The statement of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogProof {
    /// An entry is among the first entries.
    Inclusion {
        /// The entry.
        index: u64,
        /// How many the first entries are.
        size: u64,
    },
    /// A log is the beginning of a larger one.
    Consistency {
        /// How many entries the smaller one has.
        from: u64,
        /// How many the larger one has.
        to: u64,
    },
}

/// An entry to be written: an [`Event`] that owns its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLogEntry {
    /// The kind of the event.
    pub kind: EventKind,
    /// When.
    pub at: Timestamp,
    /// The message that it happened to, where there is one.
    pub id: Option<String>,
    /// The digest of its canonical form.
    pub canonical: Option<Digest>,
    /// The SHA-256 of the exact text.
    pub raw: Option<Digest>,
    /// To whom, by whom, why.
    pub detail: Option<EventDetail>,
}

impl NewLogEntry {
    /// The event to log.
    pub fn event(&self) -> Event<'_> {
        Event {
            id: self.id.as_deref(),
            canonical: self.canonical,
            raw: self.raw,
            detail: self.detail.clone(),
            ..Event::new(self.kind, self.at)
        }
    }
}
