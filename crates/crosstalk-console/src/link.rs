//! One-time links: a person who may read the data folder of the relay signs in without typing a token. The link proves this by a
//! key in the folder, says whom it signs in, and is valid once and for ten minutes.

use crate::host::ConsoleCredential;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use crosstalk_envelope::Timestamp;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How long a link can be used.
pub const LINK_SECONDS: i64 = 600;
/// The length of the key.
const KEY_BYTES: usize = 32;
/// The length of a block of SHA-256.
const BLOCK_BYTES: usize = 64;
/// The length of the proof in a link.
const PROOF_BYTES: usize = 16;
const NONCE_BYTES: usize = 8;
/// The purpose of the proof, so that it proves nothing else.
const PURPOSE: &[u8] = b"crosstalk console link v1\0";

/// The key of the one-time links of a relay.
#[derive(Clone)]
pub struct LinkKey([u8; KEY_BYTES]);

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey")
    }
}

impl LinkKey {
    /// A key of random bytes.
    pub const fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The key in a file.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0) + "\n"
    }

    /// The code of a link that signs somebody in.
    pub fn make(
        &self,
        credential: ConsoleCredential,
        nonce: [u8; NONCE_BYTES],
        now: Timestamp,
    ) -> String {
        let expires = now
            .as_millis()
            .div_euclid(1000)
            .saturating_add(LINK_SECONDS);
        let mut code = expires.to_be_bytes().to_vec();
        code.extend(nonce);
        if let ConsoleCredential::Token(hash) = credential {
            code.extend(hash);
        }
        let proof = self.proof(&code);
        code.extend(proof);
        URL_SAFE_NO_PAD.encode(code)
    }

    /// Reads a code that this key made and that has not expired.
    fn read(&self, code: &str, now: Timestamp) -> Option<ReadLink> {
        let bytes = URL_SAFE_NO_PAD.decode(code.trim()).ok()?;
        let (text, proof) = bytes.split_at_checked(bytes.len().checked_sub(PROOF_BYTES)?)?;
        let mut mac = self.mac();
        mac.update(text);
        mac.verify_truncated_left(proof).ok()?;
        let (expires, rest) = text.split_first_chunk::<8>()?;
        let (nonce, hash) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let expires = i64::from_be_bytes(*expires);
        let credential = match hash {
            [] => ConsoleCredential::Local,
            hash => ConsoleCredential::Token(hash.try_into().ok()?),
        };
        (now.as_millis().div_euclid(1000) < expires).then_some(ReadLink {
            expires,
            nonce: *nonce,
            credential,
        })
    }

    fn proof(&self, text: &[u8]) -> Vec<u8> {
        let mut mac = self.mac();
        mac.update(text);
        let whole = mac.finalize().into_bytes();
        whole.iter().copied().take(PROOF_BYTES).collect()
    }

    fn mac(&self) -> Hmac<Sha256> {
        // A key that is shorter than a block is filled up with zeros.
        let mut block = [0; BLOCK_BYTES];
        for (to, from) in block.iter_mut().zip(self.0) {
            *to = from;
        }
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(PURPOSE);
        mac
    }
}

struct ReadLink {
    expires: i64,
    nonce: [u8; NONCE_BYTES],
    credential: ConsoleCredential,
}

/// The links that were used: until they expire, their codes count no more.
#[derive(Default)]
pub(crate) struct UsedLinks(Mutex<HashMap<[u8; NONCE_BYTES], i64>>);

impl UsedLinks {
    /// Whether a link could be used now.
    pub(crate) fn is_open(&self, key: &LinkKey, code: &str, now: Timestamp) -> bool {
        let used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        key.read(code, now)
            .is_some_and(|l| !used.contains_key(&l.nonce))
    }

    /// Uses a link up.
    pub(crate) fn take(
        &self,
        key: &LinkKey,
        code: &str,
        now: Timestamp,
    ) -> Option<ConsoleCredential> {
        let link = key.read(code, now)?;
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = now.as_millis().div_euclid(1000);
        used.retain(|_, expires| *expires > seconds);
        let is_new = used.insert(link.nonce, link.expires).is_none();
        is_new.then_some(link.credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn a_link_works_once_and_for_ten_minutes() {
        let (key, used) = (LinkKey::new([7; 32]), UsedLinks::default());
        for credential in [ConsoleCredential::Local, ConsoleCredential::Token([3; 32])] {
            let nonce = [u8::from(credential == ConsoleCredential::Local); 8];
            let code = key.make(credential, nonce, at(1000));
            assert!(used.is_open(&key, &code, at(1001)));
            assert_eq!(used.take(&key, &code, at(1001)), Some(credential));
            assert!(!used.is_open(&key, &code, at(1002)));
            assert_eq!(used.take(&key, &code, at(1002)), None);
        }
        let late = key.make(ConsoleCredential::Local, [9; 8], at(1000));
        assert_eq!(used.take(&key, &late, at(1000 + LINK_SECONDS)), None);
        assert!(
            used.take(&key, &late, at(1000 + LINK_SECONDS - 1))
                .is_some()
        );
    }

    #[test]
    fn only_the_key_of_the_relay_makes_links() {
        let (key, used) = (LinkKey::new([7; 32]), UsedLinks::default());
        let other = LinkKey::new([8; 32]).make(ConsoleCredential::Local, [1; 8], at(0));
        assert_eq!(used.take(&key, &other, at(0)), None);
        let code = key.make(ConsoleCredential::Token([3; 32]), [1; 8], at(0));
        let bytes = URL_SAFE_NO_PAD.decode(&code).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            let changed = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(used.take(&key, &changed, at(0)), None, "byte {place}");
        }
        // Without its last part, the link of a token is not one of the local person.
        let cut = URL_SAFE_NO_PAD.encode(&bytes[..bytes.len() - 32]);
        assert_eq!(used.take(&key, &cut, at(0)), None);
        assert_eq!(used.take(&key, "", at(0)), None);
        assert_eq!(LinkKey::parse(&key.to_text()).unwrap().0, key.0);
    }
}
