//! Badges: what the relay found out about the signature of a message, in words for people.

use crosstalk_protocol::VerdictWord;

/// The badge that a page shows beside the sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignatureBadge {
    /// The class of its colour: `ok`, `note`, `warn` or `bad`.
    pub(crate) tone: &'static str,
    pub(crate) label: &'static str,
    /// Its meaning.
    pub(crate) meaning: &'static str,
    /// The advice for the reader.
    pub(crate) advice: &'static str,
}

impl SignatureBadge {
    /// The badge for a word of the API.
    pub(crate) fn of(word: Option<&str>) -> Self {
        let all = VerdictWord::ALL.iter();
        let found = all.copied().find(|v| Some(v.as_str()) == word);
        let (tone, label, meaning, advice) = match found {
            Some(VerdictWord::Verified) => (
                "ok",
                "verified",
                "The key of the sender signed exactly this text.",
                "You can rely on the sender and on every word.",
            ),
            Some(VerdictWord::FirstContact) => (
                "note",
                "first contact",
                "The text is exactly what its key signed, but the key came with the message and nobody vouches for it yet.",
                "Compare the fingerprint with the sender by voice, then pin the key.",
            ),
            Some(VerdictWord::Unbound) => (
                "warn",
                "unbound",
                "A domain vouches for the key, but nothing binds the key to this sender.",
                "Ask the sender over another channel whether the key is theirs.",
            ),
            Some(VerdictWord::Unsigned) => (
                "none",
                "not signed",
                "The relay checked the credential that handed it in. Outside of this relay, nobody can prove who wrote it.",
                "Ask for a signature if that matters.",
            ),
            Some(VerdictWord::UnknownKey) => (
                "warn",
                "unknown key",
                "It is signed, and this relay has no key to check the signature with.",
                "Ask the sender to sign with the key attached, or have their key pinned.",
            ),
            Some(VerdictWord::Damaged) => (
                "bad",
                "damaged",
                "The head is authentic, but the body is not what was signed: something changed it on the way.",
                "Don't act on it. Ask for the message again.",
            ),
            Some(VerdictWord::NotVerified) => (
                "bad",
                "not verified",
                "The signature is not that of the sender's key.",
                "Don't act on it. Ask the sender over another channel.",
            ),
            Some(VerdictWord::Revoked) => (
                "bad",
                "revoked key",
                "The key that signed it was revoked: somebody else may have used it.",
                "Don't act on it. Ask the sender for a new key.",
            ),
            None => (
                "none",
                "not checked",
                "The relay did not say what it found out about the signature.",
                "Treat the sender as a claim.",
            ),
        };
        Self {
            tone,
            label,
            meaning,
            advice,
        }
    }
}
