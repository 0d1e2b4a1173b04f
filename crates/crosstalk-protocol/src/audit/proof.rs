//! A receipt (AUD-030): the entry of a message, the way from it to the root, and the signed checkpoint with that
//! root. The form is that of C2SP's tlog-proof; the leaf is its extra data.
//!
//! A receipt is checked against the message, never against what it says about itself: the leaf in it must be the one that
//! the message has.

use super::event::{EventKind, Leaf};
use super::note::{Checkpoint, Note, NoteError, NoteKey};
use super::tree::{Hash, is_included, leaf_hash};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Reading, base64};
use std::fmt;

const HEADER: &str = "c2sp.org/tlog-proof@v1";
/// More than these no tree has.
const LONGEST: usize = 64;

/// That an entry is in a log.
///
/// ```
/// use crosstalk_envelope::{Algorithm, PrivateKey, Timestamp};
/// use crosstalk_protocol::audit::{Checkpoint, Event, EventKind, NoteKey, LogReceipt, Tree, leaf_hash};
/// let leaf = Event::new(EventKind::Accepted, Timestamp::from_millis(0)).leaf(&[]);
/// let tree = Tree::of([leaf_hash(leaf.to_string().as_bytes()), [1; 32]]);
/// let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
/// let checkpoint = Checkpoint { origin: "relay.example".into(), size: 2, root: tree.root(2).unwrap() };
/// let receipt = LogReceipt { leaf, index: 0, path: tree.inclusion(0, 2), note: checkpoint.sign(&key).unwrap() };
/// let text = receipt.to_string();
/// let key = NoteKey::new("relay.example", key.public()).unwrap();
/// assert_eq!(LogReceipt::parse(&text).unwrap().open(&key), Ok(checkpoint));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogReceipt {
    /// The entry.
    pub leaf: Leaf,
    /// Where it is.
    pub index: u64,
    /// Its siblings on the way to the root.
    pub path: Vec<Hash>,
    /// The signed checkpoint.
    pub note: String,
}

/// Why a receipt does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// The text is no receipt.
    #[error("this is no receipt")]
    Form,
    /// The checkpoint in it does not hold.
    #[error("its checkpoint: {0}")]
    Note(NoteError),
    /// The entry is not where it says, or not in the log.
    #[error("its proof does not lead to the root of the checkpoint")]
    Path,
    /// It is not about the taking of a message.
    #[error("it does not say that a message was taken")]
    Kind,
    /// The text is no message that could be compared.
    #[error("the message can't be read")]
    Unreadable,
    /// It is about another message.
    #[error("it is the receipt of another message")]
    Message,
    /// It is about the same message in another text: the canonical form is the same, the bytes are not.
    #[error("the message is the same, but not its exact text")]
    Text,
}

impl fmt::Display for LogReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaf = base64::encode(self.leaf.to_string().as_bytes());
        writeln!(f, "{HEADER}\nextra {leaf}\nindex {}", self.index)?;
        write_hashes(f, &self.path)?;
        write!(f, "\n{}", self.note)
    }
}

/// Hashes, a line each.
pub(super) fn write_hashes(f: &mut impl fmt::Write, hashes: &[Hash]) -> fmt::Result {
    hashes
        .iter()
        .try_for_each(|h| writeln!(f, "{}", base64::encode(h)))
}

/// A hash in a line.
pub(super) fn read_hash(line: &str) -> Option<Hash> {
    base64::decode(line)?.try_into().ok()
}

impl LogReceipt {
    /// Reads a receipt.
    pub fn parse(text: &str) -> Result<Self, ReceiptError> {
        Self::read(text).ok_or(ReceiptError::Form)
    }

    fn read(text: &str) -> Option<Self> {
        let (head, note) = text.split_once("\n\n")?;
        let mut lines = head.split('\n');
        if lines.next()? != HEADER {
            return None;
        }
        let leaf = base64::decode(lines.next()?.strip_prefix("extra ")?)?;
        let leaf = Leaf::parse(std::str::from_utf8(&leaf).ok()?).ok()?;
        let written = lines.next()?.strip_prefix("index ")?;
        let index: u64 = written.parse().ok()?;
        let path = lines.map(read_hash).collect::<Option<Vec<Hash>>>()?;
        let is_right = index.to_string() == written && path.len() <= LONGEST;
        is_right.then(|| Self {
            leaf,
            index,
            path,
            note: note.to_owned(),
        })
    }

    /// The checkpoint, if it is signed by a key and the entry is in the log that it is about.
    pub fn open(&self, key: &NoteKey) -> Result<Checkpoint, ReceiptError> {
        let note = Note::parse(&self.note).map_err(ReceiptError::Note)?;
        let checkpoint = note.open(key).map_err(ReceiptError::Note)?;
        let leaf = leaf_hash(self.leaf.to_string().as_bytes());
        let Checkpoint { size, root, .. } = &checkpoint;
        match is_included(&leaf, self.index, *size, &self.path, root) {
            true => Ok(checkpoint),
            false => Err(ReceiptError::Path),
        }
    }

    /// Whether it is the receipt of a message, by the digests of the message itself.
    pub fn is_of(&self, text: &str) -> Result<(), ReceiptError> {
        if self.leaf.kind != EventKind::Accepted {
            return Err(ReceiptError::Kind);
        }
        let document = Document::parse(text, Reading::Strict);
        let canonical = document.digest().map_err(|_| ReceiptError::Unreadable)?;
        if self.leaf.canonical != Some(canonical) {
            return Err(ReceiptError::Message);
        }
        match self.leaf.raw == Some(Digest::of(text.as_bytes())) {
            true => Ok(()),
            false => Err(ReceiptError::Text),
        }
    }
}
