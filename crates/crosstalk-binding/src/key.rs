//! Keys: new ones, and public ones of others.

use crate::error::CrosstalkError;
use crosstalk_envelope::{Algorithm, ErrorCode, PrivateKey, PublicKey};
use serde::Serialize;

/// A new key in the forms that programs exchange.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GeneratedKey {
    /// The secret: PKCS#8 in PEM, not encrypted.
    pub private_key_pem: String,
    /// The public key in PEM.
    pub public_key_pem: String,
    /// The public key as in a DNS record, `ed25519:pk=…`.
    pub record: String,
    /// The public key as a key id, `did:key:…`.
    pub did: String,
}

/// Makes a new key, `ed25519` unless another algorithm is given.
///
/// # Errors
/// If the algorithm is unknown, or the platform gives no randomness.
pub fn generate_key(algorithm: Option<&str>) -> Result<GeneratedKey, CrosstalkError> {
    let algorithm = match algorithm {
        None => Algorithm::Ed25519,
        Some(word) => Algorithm::parse(word).ok_or_else(|| {
            CrosstalkError::usage(format!("the algorithm `{word}` is unknown"))
                .help("use ed25519 or secp256r1")
        })?,
    };
    let key = PrivateKey::generate(algorithm).map_err(|fault| {
        CrosstalkError::usage(format!("the system gives no random numbers: {fault}"))
    })?;
    let public = key.public();
    Ok(GeneratedKey {
        private_key_pem: key.to_pem()?,
        public_key_pem: public.to_pem(),
        record: public.record(),
        did: public.to_did(),
    })
}

/// Reads a public key: its record, or PEM.
///
/// # Errors
/// If there is no public key in the text, or a private one.
pub fn public_key(text: &str) -> Result<PublicKey, CrosstalkError> {
    let text = text.trim();
    if text.contains("PRIVATE KEY-----") {
        let error = CrosstalkError::new(ErrorCode::Perm, "this is a private key");
        return Err(error.help("ask for the public one, and tell its owner"));
    }
    let key = match text.contains(":pk=") {
        true => PublicKey::parse_record(text),
        false => PublicKey::from_pem(text),
    };
    Ok(key?)
}
