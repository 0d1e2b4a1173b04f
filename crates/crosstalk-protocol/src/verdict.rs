//! The verdict about an envelope: one word, the state of the body, the key, and a sentence for people (TRU-001).

mod report;
mod sentence;

pub use report::{KeyChange, VerdictReport};

use crate::dns::Dnssec;
use crosstalk_envelope::registry::Rule;
use crosstalk_envelope::words;
use crosstalk_envelope::{
    Authentic, Diagnosis, ErrorCode, Fingerprint, PublicKey, Timestamp, Verified,
};

words! {
    /// The verdicts, from the best to the worst.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum VerdictWord {
        /// Head and body are what a trusted key signed.
        Verified = "verified",
        /// Head and body are what a key signed that nobody vouches for.
        FirstContact = "first-contact",
        /// Head and body are what a key of a domain signed, and neither the domain nor a pin binds this key to the sender.
        Unbound = "unbound",
        /// The message is not signed.
        Unsigned = "unsigned",
        /// There is no key to check with.
        UnknownKey = "unknown-key",
        /// The head is authentic, and the body is not what was signed.
        Damaged = "damaged",
        /// It is not what it says, or nobody who counts says it.
        NotVerified = "not-verified",
        /// The key was revoked.
        Revoked = "revoked",
    }
}

impl VerdictWord {
    /// The exit code of a command that comes to this verdict.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Verified => 0,
            Self::FirstContact => 20,
            Self::Unsigned => 21,
            Self::UnknownKey => 22,
            Self::Damaged => 23,
            Self::NotVerified => 24,
            Self::Revoked => 25,
            Self::Unbound => 26,
        }
    }

    /// Whether head and body are what some key signed, whoever vouches for the key.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::Verified | Self::FirstContact | Self::Unbound)
    }
}

/// The authority that vouches for the key.
#[derive(Clone, Debug, PartialEq)]
pub enum Trusted {
    /// The domain of the key id.
    Dns {
        /// The domain.
        domain: String,
        /// The DNSSEC status.
        dnssec: Dnssec,
    },
    /// A pin.
    Pinned {
        /// Since when.
        since: Timestamp,
        /// The pinned key vouches for this new one: the id of the pinned one.
        rotated_from: Option<String>,
    },
    /// The key id is the key.
    Did,
    /// The caller gave the key.
    Given,
    /// Nobody: the key came with the message.
    FirstContact,
    /// There is no signature.
    Unsigned,
    /// There is no key.
    UnknownKey,
    /// No key fits.
    Nobody,
}

impl Trusted {
    /// The word for it; none where no key fits.
    pub const fn as_str(&self) -> Option<&'static str> {
        Some(match self {
            Self::Dns { .. } => "dns",
            Self::Pinned { .. } => "pinned",
            Self::Did => "did",
            Self::Given => "given",
            Self::FirstContact => "first-contact",
            Self::Unsigned => "unsigned",
            Self::UnknownKey => "unknown-key",
            Self::Nobody => return None,
        })
    }
}

/// Why an envelope is not verified, where more than a rule has to be said.
#[derive(Clone, Debug, PartialEq)]
pub enum VerdictDetail {
    /// Nothing more.
    None,
    /// A sentence of its own.
    Text(String),
    /// The key id has another key: the one that is known and the one that was used.
    KeyChanged {
        /// The fingerprint of the known key.
        known: Fingerprint,
        /// The fingerprint of the key that was used.
        offered: Fingerprint,
    },
    /// The sender is known under these key ids.
    SenderChanged(Vec<String>),
    /// The sender looks like this one, who is known under other key ids.
    LooksLike(String),
    /// The key was replaced: by which id, and until when it could sign.
    Replaced(String, Timestamp),
    /// The key was revoked: when and why.
    Revoked(Timestamp, Option<String>),
    /// Ask the domain again.
    Expired(String),
}

/// The verdict about an envelope. Only [`crate::verify`] makes one.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub(crate) word: VerdictWord,
    pub(crate) trusted: Trusted,
    pub(crate) rule: Option<&'static Rule>,
    pub(crate) detail: VerdictDetail,
    pub(crate) retry: bool,
    pub(crate) pkid: Option<String>,
    pub(crate) algorithm: Option<String>,
    /// The key that fits.
    pub(crate) key: Option<PublicKey>,
    pub(crate) body: Option<Diagnosis>,
    pub(crate) authentic: Option<Authentic>,
    pub(crate) dnssec: Option<Dnssec>,
    /// The id of the key that the message revokes.
    pub(crate) revokes: Option<String>,
    /// It says that it was signed at a time that is still to come.
    pub(crate) ahead: bool,
    /// Of the authentic head where there is one, else as it was received.
    pub(crate) head: Head,
}

/// What a head says about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) sender: String,
    pub(crate) receiver: String,
    pub(crate) message: Option<String>,
    pub(crate) signed_at: Option<Timestamp>,
}

impl Verdict {
    /// The verdict in a word.
    pub const fn word(&self) -> VerdictWord {
        self.word
    }

    /// The authority that vouches for the key.
    pub const fn trusted(&self) -> &Trusted {
        &self.trusted
    }

    /// The rule that decided against it.
    pub const fn rule(&self) -> Option<&'static Rule> {
        self.rule
    }

    /// The code of that rule.
    pub fn code(&self) -> Option<ErrorCode> {
        self.rule.and_then(|r| r.code)
    }

    /// What else there is to say about why.
    pub const fn detail(&self) -> &VerdictDetail {
        &self.detail
    }

    /// Whether another try later may end otherwise.
    pub const fn retry(&self) -> bool {
        self.retry
    }

    /// The id of the key.
    pub fn pkid(&self) -> Option<&str> {
        self.pkid.as_deref()
    }

    /// What people compare, if there is a key that the signature was checked with.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.key.map(|k| k.fingerprint())
    }

    /// The state of the body, where the envelope says what it was.
    pub const fn body(&self) -> Option<&Diagnosis> {
        self.body.as_ref()
    }

    /// The envelope that some key signed, as it was signed: the only text to show as such.
    pub fn verified(&self) -> Option<Verified<'_>> {
        match self.word.is_signed() {
            true => self.authentic.as_ref()?.verified(),
            false => None,
        }
    }

    /// The body as it was signed, where a search among reflowed words found it.
    pub fn restored(&self) -> Option<&str> {
        self.authentic.as_ref()?.restored()
    }

    /// The sender: of the authentic head where there is one. It is a claim, whoever signed.
    pub fn sender(&self) -> &str {
        &self.head.sender
    }
}
