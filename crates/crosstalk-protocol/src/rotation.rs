//! A new key that the old one vouches for (TRU-010).
//!
//! The old key signs a statement of its own preamble; the new key signs the envelope that carries both.

use crosstalk_envelope::{Document, PrivateKey, PublicKey, Timestamp, base64, is_key_id};

/// The prefix of the statement of a rotation.
pub const PREAMBLE: &str = "ai-crosstalk-key-rotation-v1.1";

/// A new key in the place of an old one.
#[derive(Clone, Debug, PartialEq)]
pub struct Rotation {
    /// The id of the old key.
    pub old_id: String,
    /// The old key.
    pub old: PublicKey,
    /// The id of the new key; it may be the same one.
    pub new_id: String,
    /// The new key.
    pub new: PublicKey,
    /// Until when the old key may still sign.
    pub grace: Timestamp,
}

impl Rotation {
    /// The bytes that the old key signs.
    pub fn statement(&self) -> Vec<u8> {
        let (old, new, grace) = (self.old.record(), self.new.record(), self.grace.to_string());
        let lines = [
            PREAMBLE,
            self.old.algorithm().as_str(),
            &self.old_id,
            &old,
            &self.new_id,
            &new,
            &grace,
            "",
        ];
        lines.join("\n").into_bytes()
    }

    /// The signature of the old key.
    ///
    /// ```
    /// use crosstalk_envelope::{Algorithm, PrivateKey, Timestamp};
    /// use crosstalk_protocol::Rotation;
    /// let (old, new) = (PrivateKey::generate(Algorithm::Ed25519).unwrap(), PrivateKey::generate(Algorithm::Ed25519).unwrap());
    /// let rotation = Rotation {
    ///     old_id: "bob@keys/2025".into(), old: old.public(),
    ///     new_id: "bob@keys/2026".into(), new: new.public(),
    ///     grace: Timestamp::parse("2026-12-15").unwrap(),
    /// };
    /// let proof = rotation.prove(&old);
    /// assert!(rotation.is_proven_by(&proof));
    /// assert!(!rotation.is_proven_by(&rotation.prove(&new)));
    /// ```
    pub fn prove(&self, old: &PrivateKey) -> Vec<u8> {
        old.sign(&self.statement()).to_vec()
    }

    /// Whether the old key signed the statement.
    pub fn is_proven_by(&self, proof: &[u8]) -> bool {
        self.old.denied().is_none() && self.old.verifies(&self.statement(), proof)
    }

    /// The rotation that a signed head declares, if it declares one: nothing in it is proven unless this says so.
    ///
    /// # Errors
    /// If the block is incomplete, or the old key did not sign.
    pub fn of(document: &Document<'_>) -> Option<Result<Self, RotationUnproven>> {
        let block = document.envelope().key()?;
        let parts = [
            block.replaces,
            block.replaces_key,
            block.grace_until,
            block.proof,
        ];
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let read = || {
            let old_id = block.replaces?;
            let (new_id, grace) = (block.key_id?, Timestamp::parse(block.grace_until?)?);
            let rotation = Self {
                old_id: Some(old_id).filter(|id| is_key_id(id))?.to_owned(),
                old: PublicKey::parse_record(block.replaces_key?).ok()?,
                new_id: new_id.to_owned(),
                new: PublicKey::parse_record(block.public_key?).ok()?,
                grace,
            };
            let proof = base64::decode(block.proof?)?;
            // The statement has the time in its one form, and so has the block.
            let same_time = grace.to_string() == block.grace_until?;
            (same_time && rotation.is_proven_by(&proof)).then_some(rotation)
        };
        Some(read().ok_or(RotationUnproven))
    }
}

/// The old key did not vouch for the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotationUnproven;

/// The keys and values of `meta: key` for a key, and for the rotation that brought it.
pub fn key_block(
    id: &str,
    key: &PublicKey,
    rotation: Option<(&Rotation, &[u8])>,
) -> Vec<(&'static str, String)> {
    let mut fields = vec![("Key-ID", id.to_owned()), ("Public-Key", key.record())];
    if let Some((rotation, proof)) = rotation {
        fields.extend([
            ("Replaces", rotation.old_id.clone()),
            ("Replaces-Key", rotation.old.record()),
            ("Grace-Until", rotation.grace.to_string()),
            ("Proof", base64::encode(proof)),
        ]);
    }
    fields
}
