//! The audit log: what a store keeps of it, and what it proves from there.

use super::StoreFuture;
use crate::audit::{
    ChainId, Event, EventDetail, EventKind, Hash, LogEntry, LogQuery, SignedCheckpoint,
};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;

/// The log of a relay. Entries are written with what they are about, in its transaction; this is the rest.
///
/// Relays that share a store write a chain each, and read all of them. A chain that is not there has no entries.
/// Proofs are made from stored hashes, in a time that grows with the logarithm of the size.
pub trait AuditLog {
    /// Registers the relay that writes through this handle, and gives it the chain of its key. The relay does this before it
    /// writes anything.
    ///
    /// # Errors
    /// If relays of another name use the store, or it can't be written.
    fn join(&self, writer: LogWriter) -> StoreFuture<'_, JoinedChain>;

    /// All chains, in the order of their numbers.
    fn chains(&self) -> StoreFuture<'_, Vec<LogChain>>;

    /// How many entries a chain has, and its latest checkpoint.
    fn log_head(&self, chain: ChainId) -> StoreFuture<'_, LogHead>;

    /// Entries in their order.
    fn log_entries(&self, query: LogQuery) -> StoreFuture<'_, Vec<LogEntry>>;

    /// A proof; nothing if the chain has fewer entries.
    fn log_proof(&self, chain: ChainId, proof: LogProof) -> StoreFuture<'_, Option<Vec<Hash>>>;

    /// Stores the hashes of own entries that have none yet, and gives the root of the whole own chain. Others write meanwhile.
    fn hash_log(&self) -> StoreFuture<'_, LogRoot>;

    /// Keeps a checkpoint of the own chain, unless there is a later one. The latest.
    fn keep_checkpoint(&self, signed: SignedCheckpoint) -> StoreFuture<'_, SignedCheckpoint>;

    /// Writes entries that are about no change of the store into the own chain.
    fn log(&self, entries: Vec<NewLogEntry>) -> StoreFuture<'_, ()>;
}

/// A relay that writes into a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogWriter {
    /// The name of the relay, which all relays of the store share.
    pub name: String,
    /// The public key of its own, as text: name+hash+key of the relay's name; anything else that tells it from others if it
    /// can't sign checkpoints.
    pub key: String,
    /// The secret of this relay. The relays of a store use that of the first one.
    pub secret: Digest,
    /// The time.
    pub at: Timestamp,
}

/// What a relay writes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinedChain {
    /// Its chain.
    pub chain: ChainId,
    /// The secret that all relays of the store share.
    pub secret: Digest,
}

/// A chain that is registered in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogChain {
    /// Its number.
    pub id: ChainId,
    /// The public key of the relay that writes it, as that relay gave it.
    pub key: String,
    /// Since when it is there.
    pub since: Timestamp,
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
