//! Assurance: how well it is verified who gave or revoked a consent.

use crate::relay::Peer;
use crate::trust::{Origin, Trust};
use crate::verdict::{Trusted, Verdict, VerdictWord};
use crosstalk_envelope::words;
use crosstalk_envelope::{Address, Document};

words! {
    /// How well a message was verified, from the least.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Assurance {
        /// The message has no signature that counts.
        #[default]
        Unsigned = "unsigned",
        /// With a key that nobody vouches for.
        FirstContact = "first-contact",
        /// With a key that is pinned.
        Pinned = "pinned",
        /// With a key that a domain vouches for.
        Dns = "dns",
    }
}

impl Assurance {
    /// Whether somebody vouches for the key.
    pub fn is_trusted(self) -> bool {
        self >= Self::Pinned
    }
}

/// How sure it is who a message is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// How well it was verified.
    pub assurance: Assurance,
    /// Whether it is surely from its sender: signed with a key of the sender that more than a first contact vouches for, for
    /// a receiver that is a URL, with an id and a time. Only then it revokes something.
    pub is_firm: bool,
    /// Whether it is surely signed with the same key as every other message under its key id, whoever its sender is: then it
    /// revokes what the same sender granted with that key.
    pub is_same_key: bool,
}

impl Proof {
    /// What a verdict and the trusted keys prove about a message. The person who runs a relay on this machine vouches for
    /// the keys of what they hand in.
    pub fn of(document: &Document<'_>, verdict: &Verdict, trust: &Trust, peer: &Peer) -> Self {
        let assurance = match (verdict.word(), verdict.trusted()) {
            (VerdictWord::Verified, Trusted::Dns { .. }) => Assurance::Dns,
            (VerdictWord::Verified, Trusted::Did)
            | (VerdictWord::FirstContact | VerdictWord::Unbound, _) => Assurance::FirstContact,
            (VerdictWord::Verified, _) => Assurance::Pinned,
            _ => Assurance::Unsigned,
        };
        if assurance == Assurance::Unsigned {
            return Self::default();
        }
        // Else a copy of it would be good at any time and for anybody.
        let is_bound = verdict.head.message.is_some()
            && verdict.head.signed_at.is_some()
            && !Address::split(document.receiver()).is_name();
        if !is_bound {
            return Self::default();
        }
        let id = verdict.pkid().unwrap_or_default();
        let known = verdict.key.and_then(|key| trust.entry(id, &key));
        let is_compared = peer.is_local
            || assurance == Assurance::Dns
            || *verdict.trusted() == Trusted::Given
            || known.is_some_and(|key| key.how != Origin::FirstContact);
        let is_senders = Peer::signer(verdict, trust, document.sender()).is_some();
        Self {
            assurance,
            is_firm: is_senders && is_compared && assurance.is_trusted(),
            is_same_key: peer.is_local,
        }
    }

    /// What a signature with a key of one's own proves in one's own store: it is the person's, and for each of their
    /// addresses that is sure.
    pub fn own(verdict: &Verdict, is_own_address: bool) -> Self {
        match verdict.word() == VerdictWord::Verified {
            true => Self {
                assurance: Assurance::Pinned,
                is_firm: is_own_address,
                is_same_key: true,
            },
            false => Self::default(),
        }
    }
}
