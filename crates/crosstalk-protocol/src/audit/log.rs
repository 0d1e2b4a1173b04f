//! A log as a store keeps it.

use super::chain::ChainId;
use super::event::{EventDetail, EventKind, Leaf};
use super::tree::Hash;
use crosstalk_envelope::Timestamp;

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
    /// The salt and the detail, unless the event has none or it was erased.
    pub detail: Option<(Vec<u8>, EventDetail)>,
    /// The text of the message, where it was asked for and this entry is about its taking and it is still kept.
    pub text: Option<String>,
    /// Who sent the message and to whom, where this entry is about its taking and its text is still kept.
    pub parties: Option<(String, String)>,
}

/// Which entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Of this chain.
    pub chain: ChainId,
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
