//! `did:key`: key ids that are the key (SIG-024).

use super::{Algorithm, KeyError, PublicKey};
use crate::registry::rule;

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const PREFIX: &str = "did:key:";
/// The multicodec prefixes of the two kinds of key.
const ED25519: [u8; 2] = [0xed, 0x01];
const SECP256R1: [u8; 2] = [0x80, 0x24];

impl PublicKey {
    /// The key that a `did:key` id is; nothing if the id is of another kind.
    ///
    /// ```
    /// use crosstalk_envelope::PublicKey;
    /// let id = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp";
    /// let key = PublicKey::from_did(id).unwrap().unwrap();
    /// assert_eq!(key.to_did(), id);
    /// assert!(PublicKey::from_did("alice@example.com").is_none());
    /// ```
    pub fn from_did(id: &str) -> Option<Result<Self, KeyError>> {
        Some(Self::from_multibase(id.strip_prefix(PREFIX)?))
    }

    fn from_multibase(text: &str) -> Result<Self, KeyError> {
        let fault = |message| KeyError {
            rule: &rule::DID_KEY,
            message,
        };
        let (text, fragment) = text.split_once('#').unwrap_or((text, text));
        if text != fragment {
            return Err(fault("the fragment of the did:key id is not its key"));
        }
        let bytes = text.strip_prefix('z').and_then(decode);
        let bytes = bytes.ok_or(fault("the did:key id is not `z` and base58"))?;
        let (codec, key) = bytes.split_first_chunk().unwrap_or((&[0; 2], &[]));
        let algorithm = match *codec {
            ED25519 => Algorithm::Ed25519,
            SECP256R1 => Algorithm::Secp256r1,
            _ => return Err(fault("the did:key id is no ed25519 or P-256 key")),
        };
        Self::from_bytes(algorithm, key).map_err(|why| match why.rule {
            malformed if *malformed == rule::KEY_MALFORMED => fault(why.message),
            _ => why,
        })
    }

    /// The `did:key` id of the key.
    pub fn to_did(&self) -> String {
        let codec = match self.algorithm() {
            Algorithm::Ed25519 => ED25519,
            Algorithm::Secp256r1 => SECP256R1,
        };
        let bytes = [codec.as_slice(), &self.to_bytes()].concat();
        format!("{PREFIX}z{}", encode(&bytes))
    }
}

/// Base58 of bytes whose first one is not zero.
fn encode(bytes: &[u8]) -> String {
    // Digits of base 58, the smallest first.
    let mut digits: Vec<u32> = Vec::new();
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += *digit << 8;
            *digit = carry % 58;
            carry /= 58;
        }
        while carry > 0 {
            digits.push(carry % 58);
            carry /= 58;
        }
    }
    let letter = |d: &u32| ALPHABET.get(*d as usize).copied().unwrap_or(b'1');
    digits.iter().rev().map(|d| char::from(letter(d))).collect()
}

/// The bytes of a base58 text that does not begin with a zero.
fn decode(text: &str) -> Option<Vec<u8>> {
    // A key has 35 bytes with its prefix: longer texts are not worth the square of their length.
    if text.is_empty() || text.len() > 64 || text.starts_with('1') {
        return None;
    }
    let mut bytes: Vec<u8> = Vec::new();
    for letter in text.bytes() {
        let mut carry = u32::try_from(ALPHABET.iter().position(|a| *a == letter)?).ok()?;
        for byte in &mut bytes {
            carry += u32::from(*byte) * 58;
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        while carry > 0 {
            bytes.push((carry & 0xff) as u8);
            carry >>= 8;
        }
    }
    bytes.reverse();
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_in_one_way_only() {
        let id = "z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp";
        let read = |id: &str| PublicKey::from_did(&format!("did:key:{id}")).unwrap();
        assert!(read(&format!("{id}#{id}")).is_ok());
        for wrong in [
            "",
            "z",
            "z1",
            &id.replace('M', "0"),
            &id.replacen('6', "16", 1),
            &format!("{id}#other"),
            &format!("{id}#"),
            &format!("{id}A"),
            id.trim_start_matches('z'),
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let p256 = "did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169";
        assert_eq!(PublicKey::from_did(p256).unwrap().unwrap().to_did(), p256);
    }
}
