//! Keys: what signs and what verifies, and how both are written (SIG-002 to SIG-005, SIG-020 to SIG-024).
//!
//! A public key is written as its record, `ed25519:pk=…`: the same text in `meta: key`, in a DNS record and in a trust
//! file. Nothing here says whose key it is.

mod did;
mod private;

pub use private::PrivateKey;

use crate::base64;
use crate::registry::{DENIED_KEYS, Rule, rule};
use crate::words;
use ed25519_dalek::pkcs8::spki::DecodePublicKey as _;
use ed25519_dalek::pkcs8::spki::EncodePublicKey as _;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use p256::ecdsa::signature::Verifier as _;
use sha2::{Digest as _, Sha256};
use std::fmt;

words! {
    /// How a signature is made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Algorithm {
        /// Ed25519, verified strictly.
        Ed25519 = "ed25519",
        /// ECDSA on P-256 with SHA-256; the signature is r and s, 32 bytes each.
        Secp256r1 = "secp256r1",
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is no key that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KeyError {
    /// The rule that it breaks.
    pub rule: &'static Rule,
    /// The fault, as a sentence.
    pub message: &'static str,
}

impl KeyError {
    const fn malformed(message: &'static str) -> Self {
        Self {
            rule: &rule::KEY_MALFORMED,
            message,
        }
    }

    const fn weak(message: &'static str) -> Self {
        Self {
            rule: &rule::KEY_WEAK,
            message,
        }
    }
}

/// A key that verifies. It is never weak, and there is one text for it.
///
/// ```
/// use crosstalk_envelope::PublicKey;
/// let record = "ed25519:pk=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
/// let key = PublicKey::parse_record(record).unwrap();
/// assert_eq!(key.record(), record);
/// assert_eq!(PublicKey::from_pem(&key.to_pem()).unwrap(), key);
/// assert!(PublicKey::parse_record("ed25519:pk=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(PublicKeyKind);

#[derive(Clone, Copy, PartialEq, Eq)]
enum PublicKeyKind {
    Ed25519(ed25519_dalek::VerifyingKey),
    Secp256r1(p256::ecdsa::VerifyingKey),
}

impl PublicKey {
    /// Reads a record.
    ///
    /// # Errors
    /// The fault of the record: SIG-002, SIG-020 or SIG-021.
    pub fn parse_record(text: &str) -> Result<Self, KeyError> {
        let (algorithm, key) = text.split_once(":pk=").ok_or(KeyError::malformed(
            "a public key is written as `ed25519:pk=` and base64",
        ))?;
        let algorithm = Algorithm::parse(algorithm).ok_or(KeyError {
            rule: &rule::ALGORITHM_UNKNOWN,
            message: "the algorithm of the key is neither ed25519 nor secp256r1",
        })?;
        let bytes = base64::decode(key).ok_or(KeyError::malformed(
            "the public key is not canonical, padded base64",
        ))?;
        Self::from_bytes(algorithm, &bytes)
    }

    /// Takes the bytes of a key: 32 for ed25519, the 33 of a compressed point for secp256r1.
    ///
    /// # Errors
    /// The fault of the bytes: SIG-020 or SIG-021.
    pub fn from_bytes(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, KeyError> {
        let inner = match algorithm {
            Algorithm::Ed25519 => {
                let bytes: &[u8; 32] = bytes.try_into().map_err(|_| {
                    KeyError::malformed("the public key does not have the 32 bytes of ed25519")
                })?;
                let key = ed25519_dalek::VerifyingKey::from_bytes(bytes)
                    .map_err(|_| KeyError::weak("the public key is no point of ed25519"))?;
                Self::require_strong(&key)?;
                PublicKeyKind::Ed25519(key)
            }
            Algorithm::Secp256r1 => {
                if bytes.len() != 33 {
                    return Err(KeyError::malformed(
                        "the public key does not have the 33 bytes of a compressed secp256r1 point",
                    ));
                }
                let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(bytes)
                    .map_err(|_| KeyError::weak("the public key is no point of secp256r1"))?;
                PublicKeyKind::Secp256r1(key)
            }
        };
        Ok(Self(inner))
    }

    fn require_strong(key: &ed25519_dalek::VerifyingKey) -> Result<(), KeyError> {
        if key.is_weak() {
            return Err(KeyError::weak(
                "the public key is weak: everybody can sign with it",
            ));
        }
        if key.to_edwards().compress().as_bytes() != key.as_bytes() {
            return Err(KeyError::weak(
                "the public key is not encoded in its one way",
            ));
        }
        Ok(())
    }

    /// Reads a PEM file with a public key (SubjectPublicKeyInfo).
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        if let Ok(key) = ed25519_dalek::VerifyingKey::from_public_key_pem(pem) {
            Self::require_strong(&key)?;
            return Ok(Self(PublicKeyKind::Ed25519(key)));
        }
        p256::ecdsa::VerifyingKey::from_public_key_pem(pem)
            .map(|key| Self(PublicKeyKind::Secp256r1(key)))
            .map_err(|_| {
                KeyError::malformed("there is no ed25519 or secp256r1 public key in the PEM text")
            })
    }

    /// The key as a PEM file.
    pub fn to_pem(&self) -> String {
        match &self.0 {
            PublicKeyKind::Ed25519(key) => key.to_public_key_pem(LineEnding::LF),
            PublicKeyKind::Secp256r1(key) => key.to_public_key_pem(LineEnding::LF),
        }
        .unwrap_or_default()
    }

    /// The bytes of the key.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            PublicKeyKind::Ed25519(key) => key.as_bytes().to_vec(),
            PublicKeyKind::Secp256r1(key) => key.to_sec1_point(true).as_bytes().to_vec(),
        }
    }

    /// How it signs.
    pub const fn algorithm(&self) -> Algorithm {
        match self.0 {
            PublicKeyKind::Ed25519(_) => Algorithm::Ed25519,
            PublicKeyKind::Secp256r1(_) => Algorithm::Secp256r1,
        }
    }

    /// The record: the algorithm, `:pk=` and the key in base64.
    pub fn record(&self) -> String {
        format!(
            "{}:pk={}",
            self.algorithm(),
            base64::encode(&self.to_bytes())
        )
    }

    /// The short form that people compare.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.record())
    }

    /// Why the key is on the deny list, if it is there.
    pub fn denied(&self) -> Option<&'static str> {
        let record = self.record();
        let mut denied = DENIED_KEYS.iter();
        denied
            .find(|(key, _)| *key == record)
            .map(|(_, reason)| *reason)
    }

    /// Whether a signature over a message fits. ed25519 is verified strictly.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            PublicKeyKind::Ed25519(key) => ed25519_dalek::Signature::from_slice(signature)
                .is_ok_and(|s| !has_small_order(s.r_bytes()) && key.verify(message, &s).is_ok()),
            PublicKeyKind::Secp256r1(key) => p256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|s| key.verify(message, &s).is_ok()),
        }
    }
}

/// The points of small order by their canonical encodings, without the bit of the sign.
const SMALL_ORDER: [[u8; 32]; 5] = [
    // y = 1, y = -1 and y = 0: orders 1, 2 and 4.
    [
        1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0,
    ],
    [
        0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0x7f,
    ],
    [0; 32],
    // Order 8.
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
];

/// Whether the first half of a signature is a point of small order (SIG-003).
///
/// `verify_strict` of `ed25519-dalek` decompresses the first half to find that out, which takes an eighth of its time. Its `verify`
/// compares the first half with the canonical encoding of the point that the equation asks for, so that only canonical
/// encodings fit, and those of small order are these. A weak key never becomes a [`PublicKey`].
fn has_small_order(first_half: &[u8; 32]) -> bool {
    let mut encoded = *first_half;
    if let Some(last) = encoded.last_mut() {
        *last &= 0x7f;
    }
    SMALL_ORDER.contains(&encoded)
}

impl std::hash::Hash for PublicKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match &self.0 {
            PublicKeyKind::Ed25519(key) => key.as_bytes().hash(state),
            PublicKeyKind::Secp256r1(key) => key.to_sec1_point(true).as_bytes().hash(state),
        }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.record())
    }
}

/// The short form of a key that people compare (SIG-023): eight groups of five digits, about 133 bits of the SHA-256 of a key's record.
///
/// ```
/// use crosstalk_envelope::PublicKey;
/// let key = PublicKey::parse_record("ed25519:pk=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=").unwrap();
/// assert_eq!(key.fingerprint().to_string().len(), 8 * 5 + 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u32; 8]);

impl Fingerprint {
    fn of(record: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(record.as_bytes()).into();
        let mut groups = [0; 8];
        for (group, bytes) in groups.iter_mut().zip(digest.as_chunks::<4>().0) {
            *group = u32::from_be_bytes(*bytes) % 100_000;
        }
        Self(groups)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, group) in self.0.iter().enumerate() {
            let space = if number == 0 { "" } else { " " };
            write!(f, "{space}{group:05}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_small_order_are_the_eight_of_the_curve() {
        let signs = [0, 0x80];
        let both = SMALL_ORDER.into_iter().flat_map(|y| {
            signs.map(|sign| {
                let mut encoded = y;
                encoded[31] |= sign;
                encoded
            })
        });
        // The points with y = 1 and y = -1 have no negative.
        let points = both.filter_map(|encoded| {
            assert!(has_small_order(&encoded));
            let point = ed25519_dalek::VerifyingKey::from_bytes(&encoded).ok()?;
            assert!(point.is_weak(), "{encoded:?}");
            let is_canonical = point.to_edwards().compress().as_bytes() == &encoded;
            is_canonical.then_some(encoded)
        });
        assert_eq!(points.count(), 8);
        let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
        let signature = key.sign(b"words");
        assert!(!has_small_order(signature.first_chunk().unwrap()));
        assert!(key.public().verifies(b"words", &signature));
    }
}
