//! The LogStore port: what a store keeps of a log, and what it proves from there.

use super::event::{Event, EventDetail, EventKind, Leaf};
use super::tree::Hash;
use crate::store::StoreError;
use crosstalk_envelope::Timestamp;

/// The log of a relay. Entries are written with what they are about, in its transaction; this is the rest.
///
/// Proofs are made from stored hashes, in a time that grows with the logarithm of the size.
pub trait LogStore {
    /// How many entries there are.
    fn log_size(&self) -> Result<u64, StoreError>;

    /// The root of the first so many entries; nothing if there are fewer.
    fn log_root(&self, size: u64) -> Result<Option<Hash>, StoreError>;

    /// The proof that an entry is among the first so many; nothing if it is not.
    fn log_inclusion(&self, index: u64, size: u64) -> Result<Option<Vec<Hash>>, StoreError>;

    /// The proof that the first so many entries are the beginning of more; nothing if there are fewer.
    fn log_consistency(&self, from: u64, to: u64) -> Result<Option<Vec<Hash>>, StoreError>;

    /// Entries in their order.
    fn log_entries(&self, asked: &LogQuery) -> Result<Vec<LogEntry>, StoreError>;

    /// The index of the entry with which a message was accepted.
    fn log_index(&self, id: &str) -> Result<Option<u64>, StoreError>;

    /// The latest checkpoint that was kept.
    fn checkpoint(&self) -> Result<Option<SignedCheckpoint>, StoreError>;

    /// Every checkpoint that is kept, the oldest first: the latest, and one for each hour before.
    fn checkpoints(&self) -> Result<Vec<SignedCheckpoint>, StoreError>;

    /// Keeps a checkpoint.
    fn keep_checkpoint(&mut self, sealed: &SignedCheckpoint) -> Result<(), StoreError>;

    /// Writes entries that are about no change of the store.
    fn log(&mut self, events: &[Event<'_>]) -> Result<(), StoreError>;

    /// Stores hashes of entries that have none yet, so many groups of 256 at most. Whether there are more.
    fn store_hashes(&mut self, limit: usize) -> Result<bool, StoreError>;
}

/// A checkpoint as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    /// How many entries it covers.
    pub size: u64,
    /// When it was signed.
    pub at: Timestamp,
    /// The root.
    pub root: Hash,
    /// The signed note.
    pub note: String,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its index, from 0.
    pub index: u64,
    /// What the tree covers.
    pub leaf: Leaf,
    /// What is kept beside: the salt and the detail, unless there is none or it was erased.
    pub detail: Option<(Vec<u8>, EventDetail)>,
    /// The text of the message, where it was asked for and this entry is about its taking and it is still kept.
    pub text: Option<String>,
    /// Who sent the message and to whom, where this entry is about its taking and its text is still kept.
    pub parties: Option<(String, String)>,
}

/// Which entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// From this index on.
    pub from: u64,
    /// Up to this index, which is not among them.
    pub to: Option<u64>,
    /// Only these kinds; all if none is named.
    pub kinds: Vec<EventKind>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Not after.
    pub until: Option<Timestamp>,
    /// Only of this message.
    pub id: Option<String>,
    /// Only of messages of this thread.
    pub thread: Option<String>,
    /// How many at most.
    pub limit: usize,
    /// With the texts of messages, but for those whose time is over at this time.
    pub texts: Option<Timestamp>,
    /// The last ones instead of the first ones; they are still in their order.
    pub newest: bool,
}
