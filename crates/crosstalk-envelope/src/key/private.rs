//! Private keys: they sign, and are never shown.

use super::{Algorithm, KeyError, PublicKey, PublicKeyKind};
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes};
use ed25519_dalek::{SecretKey, Signer as _};
use std::fmt;

/// A key that signs. It is wiped from memory when it is dropped.
///
/// ```
/// use crosstalk_envelope::{Algorithm, PrivateKey};
/// let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
/// let signature = key.sign(b"words");
/// assert!(key.public().verifies(b"words", &signature));
/// assert!(!key.public().verifies(b"other words", &signature));
/// ```
pub struct PrivateKey(PrivateKeyKind);

enum PrivateKeyKind {
    Ed25519(ed25519_dalek::SigningKey),
    Secp256r1(p256::ecdsa::SigningKey),
}

impl PrivateKey {
    /// A new key, from the randomness of the operating system.
    ///
    /// # Errors
    /// If the operating system gives none.
    pub fn generate(algorithm: Algorithm) -> Result<Self, getrandom::Error> {
        loop {
            let mut seed = SecretKey::default();
            getrandom::fill(&mut seed)?;
            // Of all numbers of 32 bytes, one in four thousand million is no scalar of secp256r1.
            if let Ok(key) = Self::from_seed(algorithm, &seed) {
                return Ok(key);
            }
        }
    }

    /// The key of a seed: the private key of RFC 8032, or the scalar of secp256r1.
    ///
    /// # Errors
    /// If the number is no scalar of secp256r1.
    pub fn from_seed(algorithm: Algorithm, seed: &[u8; 32]) -> Result<Self, KeyError> {
        Ok(Self(match algorithm {
            Algorithm::Ed25519 => {
                PrivateKeyKind::Ed25519(ed25519_dalek::SigningKey::from_bytes(seed))
            }
            Algorithm::Secp256r1 => PrivateKeyKind::Secp256r1(
                p256::ecdsa::SigningKey::from_slice(seed)
                    .map_err(|_| KeyError::malformed("the number is no scalar of secp256r1"))?,
            ),
        }))
    }

    /// Reads the DER bytes of PKCS#8.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let ed25519 = ed25519_dalek::SigningKey::from_pkcs8_der(der).map(PrivateKeyKind::Ed25519);
        let key = ed25519.or_else(|_| {
            p256::ecdsa::SigningKey::from_pkcs8_der(der).map(PrivateKeyKind::Secp256r1)
        });
        key.map(Self)
            .map_err(|_| KeyError::malformed("there is no ed25519 or secp256r1 private key in it"))
    }

    /// The DER bytes of PKCS#8, without the public key: the form that every program reads.
    ///
    /// # Errors
    /// If the key can't be encoded.
    pub fn to_der(&self) -> Result<ed25519_dalek::pkcs8::SecretDocument, KeyError> {
        match &self.0 {
            PrivateKeyKind::Ed25519(key) => KeypairBytes {
                secret_key: key.to_bytes(),
                public_key: None,
            }
            .to_pkcs8_der(),
            PrivateKeyKind::Secp256r1(key) => key.to_pkcs8_der(),
        }
        .map_err(|_| KeyError::malformed("the key can't be encoded"))
    }

    /// Reads a PEM text of PKCS#8 that is not encrypted.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let ed25519 = ed25519_dalek::SigningKey::from_pkcs8_pem(pem).map(PrivateKeyKind::Ed25519);
        let key = ed25519.or_else(|_| {
            p256::ecdsa::SigningKey::from_pkcs8_pem(pem).map(PrivateKeyKind::Secp256r1)
        });
        key.map(Self).map_err(|_| {
            KeyError::malformed("there is no ed25519 or secp256r1 private key in the PEM text")
        })
    }

    /// The key as a PEM text of PKCS#8, which is the secret itself.
    ///
    /// # Errors
    /// If the key can't be encoded.
    pub fn to_pem(&self) -> Result<String, KeyError> {
        let pem = self.to_der()?.to_pem("PRIVATE KEY", LineEnding::LF);
        pem.map(|pem| pem.to_string())
            .map_err(|_| KeyError::malformed("the key can't be encoded"))
    }

    /// How it signs.
    pub const fn algorithm(&self) -> Algorithm {
        match self.0 {
            PrivateKeyKind::Ed25519(_) => Algorithm::Ed25519,
            PrivateKeyKind::Secp256r1(_) => Algorithm::Secp256r1,
        }
    }

    /// The key that verifies.
    pub fn public(&self) -> PublicKey {
        PublicKey(match &self.0 {
            PrivateKeyKind::Ed25519(key) => PublicKeyKind::Ed25519(key.verifying_key()),
            PrivateKeyKind::Secp256r1(key) => PublicKeyKind::Secp256r1(*key.verifying_key()),
        })
    }

    /// The signature over a message: always the same one for the same message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        match &self.0 {
            PrivateKeyKind::Ed25519(key) => key.sign(message).to_bytes(),
            PrivateKeyKind::Secp256r1(key) => {
                let signature: p256::ecdsa::Signature = key.sign(message);
                signature.to_bytes().into()
            }
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({:?})", self.public())
    }
}
