//! Signed notes and checkpoints as C2SP defines them (AUD-020, AUD-021).
//!
//! ```text
//! relay.acme.example                            the origin: the name of the relay
//! 20852163                                      how many entries
//! CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=  the root
//!
//! — relay.acme.example Az3grlgtzPICa5OS8npVmf…  four bytes of the key's hash, and the signature
//! ```

use super::tree::Hash;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Algorithm, PrivateKey, PublicKey, base64};
use std::fmt;

/// The number of Ed25519 among the kinds of signatures.
const ED25519: u8 = 1;
/// The prefix of a line with a signature: an em dash and a space.
const DASH: &str = "— ";
/// More lines of signatures than these are not read.
const SIGNATURES: usize = 100;

/// The public key of a log: its name and an ed25519 key, written `name+hash+key`.
///
/// ```
/// use crosstalk_protocol::audit::NoteKey;
/// let text = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
/// assert_eq!(NoteKey::parse(text).unwrap().to_string(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteKey {
    name: String,
    key: PublicKey,
}

/// A fault of a note or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// A name with a space, a plus sign or nothing in it.
    #[error("the name of a log has no spaces and no `+`")]
    Name,
    /// Notes are signed with ed25519.
    #[error("checkpoints are signed with ed25519 keys only")]
    Algorithm,
    /// The text of a key is none.
    #[error("this is no public key of a log (name+hash+key)")]
    Key,
    /// The text of a note is none.
    #[error("this is no signed note")]
    Form,
    /// The text of a checkpoint is none.
    #[error("this is no checkpoint: an origin, a size and a root")]
    Checkpoint,
    /// The key in question has not signed it.
    #[error("the note is not signed by this key")]
    Unsigned,
    /// The signature does not fit the text.
    #[error("the signature does not fit the note")]
    Signature,
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('+') && !name.contains(char::is_whitespace)
}

impl NoteKey {
    /// The key of a log.
    ///
    /// # Errors
    /// If the name can't be one, or the key is not an ed25519 key.
    pub fn new(name: &str, key: PublicKey) -> Result<Self, NoteError> {
        if !is_name(name) {
            return Err(NoteError::Name);
        }
        if key.algorithm() != Algorithm::Ed25519 {
            return Err(NoteError::Algorithm);
        }
        Ok(Self {
            name: name.to_owned(),
            key,
        })
    }

    /// The log that it belongs to: the origin of its checkpoints.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key itself.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The algorithm and the key, as the hash and the text have them.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![ED25519];
        bytes.extend(self.key.to_bytes());
        bytes
    }

    /// The four bytes that a signature names it by.
    fn hash(&self) -> [u8; 4] {
        let mut bytes = self.name.clone().into_bytes();
        bytes.push(b'\n');
        bytes.extend(self.bytes());
        let Digest([a, b, c, d, ..]) = Digest::of(&bytes);
        [a, b, c, d]
    }

    /// Reads the text of a key.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let mut parts = text.splitn(3, '+');
        let mut next = || parts.next().ok_or(NoteError::Key);
        let (name, _, key) = (next()?, next()?, next()?);
        let bytes = base64::decode(key).ok_or(NoteError::Key)?;
        let Some((&ED25519, key)) = bytes.split_first() else {
            return Err(NoteError::Key);
        };
        let key = PublicKey::from_bytes(Algorithm::Ed25519, key).map_err(|_| NoteError::Key)?;
        let key = Self::new(name, key)?;
        match key.to_string() == text {
            true => Ok(key),
            false => Err(NoteError::Key),
        }
    }
}

impl fmt::Display for NoteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = u32::from_be_bytes(self.hash());
        let key = base64::encode(&self.bytes());
        write!(f, "{}+{hash:08x}+{key}", self.name)
    }
}

/// What a log is at a time: so many entries, and the root of the tree over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The origin of the log.
    pub origin: String,
    /// How many entries.
    pub size: u64,
    /// The root of the tree.
    pub root: Hash,
}

impl Checkpoint {
    fn text(&self) -> String {
        let root = base64::encode(&self.root);
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }

    fn parse(text: &str) -> Result<Self, NoteError> {
        let mut lines = text.split('\n');
        let mut next = || lines.next().ok_or(NoteError::Checkpoint);
        let (origin, size, root) = (next()?, next()?, next()?);
        let number: u64 = size.parse().map_err(|_| NoteError::Checkpoint)?;
        let root = base64::decode(root).and_then(|r| r.try_into().ok());
        let rest: Vec<&str> = lines.collect();
        let ends = rest.split_last() == Some((&"", &[]));
        if origin.is_empty() || number.to_string() != size || !ends {
            return Err(NoteError::Checkpoint);
        }
        Ok(Self {
            origin: origin.to_owned(),
            size: number,
            root: root.ok_or(NoteError::Checkpoint)?,
        })
    }

    /// Signs it: the note that others can check.
    ///
    /// ```
    /// use crosstalk_envelope::{Algorithm, PrivateKey};
    /// use crosstalk_protocol::audit::{Checkpoint, Note, NoteKey};
    /// let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
    /// let checkpoint = Checkpoint { origin: "relay.example".into(), size: 3, root: [9; 32] };
    /// let note = checkpoint.sign(&key).unwrap();
    /// let public = NoteKey::new("relay.example", key.public()).unwrap();
    /// assert_eq!(Note::parse(&note).unwrap().open(&public), Ok(checkpoint));
    /// ```
    ///
    /// # Errors
    /// If the key is not an ed25519 key, or the origin can't be the name of one.
    pub fn sign(&self, key: &PrivateKey) -> Result<String, NoteError> {
        let public = NoteKey::new(&self.origin, key.public())?;
        let text = self.text();
        let mut signature = public.hash().to_vec();
        signature.extend(key.sign(text.as_bytes()));
        let signature = base64::encode(&signature);
        Ok(format!("{text}\n{DASH}{} {signature}\n", self.origin))
    }
}

/// A signed note, as it was read: nothing of it is believed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'n> {
    text: &'n str,
    signatures: &'n str,
}

impl<'n> Note<'n> {
    /// Reads a note.
    pub fn parse(note: &'n str) -> Result<Self, NoteError> {
        let (text, signatures) = note.rsplit_once("\n\n").ok_or(NoteError::Form)?;
        let text = note.get(..=text.len()).ok_or(NoteError::Form)?;
        let is_plain = |c: char| c == '\n' || !c.is_control();
        let lines = signatures.strip_suffix('\n').ok_or(NoteError::Form)?;
        let mut lines = lines.split('\n');
        let are_signatures = lines.all(|l| signature(l).is_some());
        match note.chars().all(is_plain) && are_signatures {
            true => Ok(Self { text, signatures }),
            false => Err(NoteError::Form),
        }
    }

    /// What it claims, whoever signed it.
    ///
    /// # Errors
    /// If it is no checkpoint.
    pub fn claim(&self) -> Result<Checkpoint, NoteError> {
        Checkpoint::parse(self.text)
    }

    /// The checkpoint, if a key has signed it and it is that of its log.
    pub fn open(&self, key: &NoteKey) -> Result<Checkpoint, NoteError> {
        let lines = self.signatures.lines().take(SIGNATURES);
        let own = lines.filter_map(signature).filter_map(|(name, bytes)| {
            let (hash, signed) = bytes.split_first_chunk::<4>()?;
            let is_own = name == key.name && *hash == key.hash();
            is_own.then(|| signed.to_vec())
        });
        let mut found = false;
        for signed in own {
            found = true;
            if !key.key.verifies(self.text.as_bytes(), &signed) {
                return Err(NoteError::Signature);
            }
        }
        if !found {
            return Err(NoteError::Unsigned);
        }
        let checkpoint = self.claim()?;
        match checkpoint.origin == key.name {
            true => Ok(checkpoint),
            false => Err(NoteError::Unsigned),
        }
    }
}

/// A line with a signature: whose, and its bytes.
fn signature(line: &str) -> Option<(&str, Vec<u8>)> {
    let (name, encoded) = line.strip_prefix(DASH)?.split_once(' ')?;
    let bytes = base64::decode(encoded)?;
    (is_name(name) && bytes.len() > 4).then_some((name, bytes))
}

/// Two checkpoints of one log that can't both be true: the relay has shown different pasts, or somebody who has its key.
/// Both notes are the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The one that was there first.
    pub held: String,
    /// The one that does not extend it.
    pub shown: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> PrivateKey {
        PrivateKey::from_seed(Algorithm::Ed25519, &[seed; 32]).unwrap()
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            origin: "relay.example".into(),
            size: 1234,
            root: [3; 32],
        }
    }

    /// The example of the Go package that the format comes from.
    #[test]
    fn a_published_note_is_read() {
        let key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        let key = NoteKey::parse(key).unwrap();
        let text = "If you think cryptography is the answer to your problem,\n\
                    then you don't know what your problem is.\n";
        let note = format!(
            "{text}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
        );
        let read = Note::parse(&note).unwrap();
        assert_eq!(read.text, text);
        // The signature fits; it is no checkpoint.
        assert_eq!(read.open(&key), Err(NoteError::Checkpoint));
        let bent = note.replace("answer", "Answer");
        assert_eq!(
            Note::parse(&bent).unwrap().open(&key),
            Err(NoteError::Signature)
        );
    }

    #[test]
    fn every_bit_and_every_cut_of_a_checkpoint_counts() {
        let note = checkpoint().sign(&key(1)).unwrap();
        let public = NoteKey::new("relay.example", key(1).public()).unwrap();
        let open = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).ok()?;
            Note::parse(text).ok()?.open(&public).ok()
        };
        assert_eq!(open(note.as_bytes()), Some(checkpoint()));
        for place in 0..note.len() {
            assert_eq!(open(&note.as_bytes()[..place]), None, "cut at {place}");
            for bit in 0..8 {
                let mut bytes = note.clone().into_bytes();
                bytes[place] ^= 1 << bit;
                assert_eq!(open(&bytes), None, "bit {bit} of {place}");
            }
        }
    }

    #[test]
    fn other_keys_and_other_lines() {
        let note = checkpoint().sign(&key(1)).unwrap();
        let of = |name: &str, seed| NoteKey::new(name, key(seed).public()).unwrap();
        let open = |note: &str, k: &NoteKey| Note::parse(note).unwrap().open(k);
        assert_eq!(
            open(&note, &of("relay.example", 2)),
            Err(NoteError::Unsigned)
        );
        assert_eq!(
            open(&note, &of("other.example", 1)),
            Err(NoteError::Unsigned)
        );
        // Signatures of other keys are ignored.
        let cosigned = format!("{note}— witness.example {}\n", base64::encode(&[5; 76]));
        assert_eq!(open(&cosigned, &of("relay.example", 1)), Ok(checkpoint()));
        let secp = PrivateKey::from_seed(Algorithm::Secp256r1, &[1; 32]).unwrap();
        assert_eq!(checkpoint().sign(&secp), Err(NoteError::Algorithm));
        for name in ["", "a b", "a+b", "a\u{a0}b"] {
            assert_eq!(NoteKey::new(name, key(1).public()), Err(NoteError::Name));
        }
        for size in ["01", "+1", "-1", "", "18446744073709551616"] {
            let text = format!("o\n{size}\n{}\n", base64::encode(&[0; 32]));
            assert_eq!(
                Checkpoint::parse(&text),
                Err(NoteError::Checkpoint),
                "{size}"
            );
        }
    }

    #[test]
    fn the_text_of_a_key_is_read_as_it_is_written() {
        let text = NoteKey::new("relay.example", key(1).public())
            .unwrap()
            .to_string();
        for place in 0..text.len() {
            assert!(NoteKey::parse(text.get(..place).unwrap()).is_err());
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[place] ^= 1 << bit;
                let read = String::from_utf8(bytes).ok();
                let read = read.and_then(|t| NoteKey::parse(&t).ok());
                assert_eq!(read, None, "bit {bit} of {place}");
            }
        }
    }
}
