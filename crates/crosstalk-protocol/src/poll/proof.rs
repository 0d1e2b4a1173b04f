//! The verdicts about envelopes by their own keys: each signature is checked once, however often a poll is counted.

use crate::trust::Trust;
use crate::verdict::VerdictWord;
use crate::verify::{VerifyContext, verify};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, PublicKey, Reading, Signature, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The number of verdicts that are kept; then all of them are dropped.
const MAX_VERDICTS: usize = 65_536;

/// A text, how it was read, and the key that it was checked with; without one, the key that it carries or that its id is.
type CheckedText = (Digest, bool, Option<String>);

/// The verdicts about the envelopes of polls. A message of an unknown key is checked again once, when another message brings
/// the key.
#[derive(Debug, Default)]
pub struct Proofs {
    verdicts: Mutex<HashMap<CheckedText, VerdictWord>>,
}

impl Proofs {
    /// The verdict about an envelope with a key, or with the key that it carries.
    pub(super) fn word(&self, document: &Document<'_>, key: Option<&PublicKey>) -> VerdictWord {
        let is_paste = document.reading() == Reading::Paste;
        let text = Digest::of(document.source().as_bytes());
        let checked = (text, is_paste, key.map(PublicKey::record));
        if let Some(word) = self.lock().get(&checked) {
            return *word;
        }
        let question = VerifyContext {
            key,
            ..VerifyContext::at(Timestamp::from_millis(0))
        };
        let word = verify(document, &Trust::default(), &question).word();
        let mut verdicts = self.lock();
        if verdicts.len() >= MAX_VERDICTS {
            verdicts.clear();
        }
        verdicts.insert(checked, word);
        word
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<CheckedText, VerdictWord>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key id that an envelope names.
pub(super) fn pkid_of(document: &Document<'_>) -> Option<String> {
    match Signature::parse(document.sig()?) {
        Ok(Signature::Signed { pkid, .. }) => Some(pkid.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_envelope::signing::Signer;
    use crosstalk_envelope::{Algorithm, PrivateKey};

    #[test]
    fn each_signature_is_checked_once_and_once_more_for_a_learned_key() {
        let text = "[[A→B v1]]\nuser: u\nthread: T\nmessage: M\ncontext: c\nintent: NOTE\nbody: |\n  x\nsig: none\n[[END]]\n";
        let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
        let signer = Signer {
            key: &key,
            pkid: "a",
            at: Timestamp::from_millis(0),
            key_block: &[],
        };
        let signed = signer
            .sign(&Document::parse(text, Reading::Strict))
            .unwrap();
        let document = Document::parse(&signed, Reading::Strict);
        let proofs = Proofs::default();
        for _ in 0..3 {
            assert_eq!(proofs.word(&document, None), VerdictWord::UnknownKey);
            assert_eq!(
                proofs.word(&document, Some(&key.public())),
                VerdictWord::Verified
            );
            assert_eq!(proofs.lock().len(), 2);
        }
        // A kept verdict is used as it is.
        proofs
            .lock()
            .values_mut()
            .for_each(|word| *word = VerdictWord::Revoked);
        assert_eq!(proofs.word(&document, None), VerdictWord::Revoked);
    }
}
