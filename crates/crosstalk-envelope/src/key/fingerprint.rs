//! Fingerprints: what two people read to each other to compare a key (SIG-023).

use sha2::{Digest as _, Sha256};
use std::fmt;

/// Eight groups of five digits, about 133 bits of the SHA-256 of a key's record.
///
/// ```
/// use crosstalk_envelope::PublicKey;
/// let key = PublicKey::parse_record("ed25519:pk=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=").unwrap();
/// assert_eq!(key.fingerprint().to_string().len(), 8 * 5 + 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u32; 8]);

impl Fingerprint {
    pub(super) fn of(record: &str) -> Self {
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
