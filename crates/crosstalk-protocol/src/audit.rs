//! The audit log of a relay: it only grows, the relay signs checkpoints of it, and anyone can check the proofs.
//!
//! ```text
//! Event ── leaf ──> log ── tree ──> root ── Checkpoint ── sign ──> note          what the relay says
//!                     │      └────> inclusion, consistency                       what proves it
//!                     └── Bundle ── verify ──> Findings                          what an outsider checks, offline
//! ```
//!
//! The tree is that of RFC 6962, checkpoints are the signed notes of C2SP. Nothing here reads a disk or a clock: hashes that
//! are stored are asked for through a closure, times and salts are arguments.

pub mod bundle;

mod chain;
mod event;
mod log;
mod note;
mod proof;
mod tree;

pub use chain::{ChainId, LogPlace};
pub use event::{Event, EventDetail, EventKind, Leaf, LeafError};
pub use log::{LogEntry, LogQuery, SignedCheckpoint};
pub use note::{Checkpoint, Fork, Note, NoteError, NoteKey};
pub use proof::{LogReceipt, ReceiptError};
pub use tree::{
    Hash, Hashes, Tree, consistency, extends, inclusion, is_included, leaf_hash, node_hash, root,
};
