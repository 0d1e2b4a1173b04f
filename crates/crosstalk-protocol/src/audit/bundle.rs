//! A bundle (AUD-040 to AUD-042): what an outsider needs to check a log, or a part of it, without the relay.
//!
//! ```text
//! key            the public key of the log                       name+hash+key
//! checkpoint     the signed note
//! entries        crosstalk-entries-v1 all 3                      or `some 3 1`, with proofs
//!                0 crosstalk-log-v1 accepted …
//! details        2 <salt> to=agent://x by=http                   or `2 -`, where it is withheld or erased
//! proofs         0 <hash> <hash> …                               of `some` only
//! consistency    <size> <root> <hash> …                          of `some` only: from older checkpoints
//! messages/0.aict
//! ```
//!
//! The log of relays that share a store has several chains (AUD-061). The files above are the first chain; each other one is a
//! bundle in a folder of its own, and the file `chains` lists all of them.
//!
//! ```text
//! chains         0 relay.example+…                               number and key, a line each
//! chain-1/…      key, checkpoint, entries, details, …
//! ```
//!
//! Of `all`, the root is computed from the entries: that shows that none is missing. Of `some`, each entry has its proof.

mod check;
mod write;

pub use check::{Against, BundleReport, MessageKey, Progress, check};
pub use write::{BundleContents, write, write_chains};

use super::chain::ChainId;
use super::note::Fork;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The public key.
pub const KEY: &str = "key";
/// The signed checkpoint.
pub const CHECKPOINT: &str = "checkpoint";
/// The leaves.
pub const ENTRIES: &str = "entries";
/// The file with the salts and details of the leaves.
pub const DETAILS: &str = "details";
/// Proofs of inclusion.
pub const PROOFS: &str = "proofs";
/// Proofs of consistency.
pub const CONSISTENCY: &str = "consistency";
/// The chains, where there are several.
pub const CHAINS: &str = "chains";
/// The first line of the list of entries.
const HEADER: &str = "crosstalk-entries-v1";

/// The name of the file with the message that an entry took.
pub fn message_name(index: u64) -> String {
    format!("messages/{index}.aict")
}

/// The beginning of the names of the files of a chain: of the first one, nothing.
pub fn chain_folder(chain: ChainId) -> String {
    match chain {
        ChainId::FIRST => String::new(),
        chain => format!("chain-{chain}/"),
    }
}

/// The files of a bundle, wherever they are.
pub trait BundleFiles {
    /// The names of all files.
    fn names(&self) -> Vec<String>;

    /// Reads a file; returns nothing if there is no such file.
    fn read(&self, name: &str) -> Result<Option<Cow<'_, [u8]>>, String>;
}

impl BundleFiles for BTreeMap<String, Vec<u8>> {
    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }

    fn read(&self, name: &str) -> Result<Option<Cow<'_, [u8]>>, String> {
        Ok(self.get(name).map(|bytes| Cow::Borrowed(bytes.as_slice())))
    }
}

/// The kind of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleFault {
    /// A file can't be read from where it is.
    Unread,
    /// A file is missing, is too much, or is not written as it has to be.
    Form,
    /// The signature, a hash or a digest does not fit.
    Broken,
    /// The log is not what it was when an older checkpoint was signed.
    Fork(Box<Fork>),
    /// An older checkpoint can't be compared with this bundle.
    Apart,
}

/// The first thing that is wrong: what, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}", .line.map_or_else(String::new, |l| format!(":{l}")))]
pub struct Wrong {
    /// The kind of fault.
    pub trouble: BundleFault,
    /// In which file.
    pub file: String,
    /// In which line, from 1.
    pub line: Option<u64>,
    /// The fault, as a sentence.
    pub what: String,
    /// What to do.
    pub help: &'static str,
}
