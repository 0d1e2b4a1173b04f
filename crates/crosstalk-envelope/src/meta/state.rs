//! The smaller META views: one struct a namespace, each field as it was written or in its type.
//!
//! Implements MET-014 to MET-023.

use super::value::{Digest, list, options};
use crate::document::Block;
use crate::registry::ErrorCode;
use crate::time::Timestamp;
use std::borrow::Cow;

/// `meta: error`: what an ERROR reports.
#[derive(Clone, Debug)]
pub struct ErrorReport<'d> {
    /// The code, where it is one of the taxonomy.
    pub code: Option<ErrorCode>,
    /// The code as it was written.
    pub code_text: Option<&'d str>,
    /// Why.
    pub reason: Option<&'d str>,
    /// The intent of the message that failed, as it was written there.
    pub original_intent: Option<&'d str>,
}

impl<'d> ErrorReport<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        let code_text = block.get("Code");
        Self {
            code: code_text.and_then(ErrorCode::from_wire),
            code_text,
            reason: block.get("Reason"),
            original_intent: block.get("Original-Intent"),
        }
    }
}

/// `meta: audit`: one hop.
#[derive(Clone, Debug)]
pub struct Hop<'d> {
    /// Its number, from 1.
    pub number: Option<u64>,
    /// When the hop received the message.
    pub received_at: Option<Timestamp>,
    /// Which hop it is.
    pub received_by: Option<&'d str>,
    /// From whom the message came: the hop before, or the sender.
    pub previous_hop: Option<&'d str>,
    /// Where the message is in the log of the hop.
    pub chain: Option<&'d str>,
    /// The digest of the hop before.
    pub previous: Option<Digest>,
    /// The digest of this hop.
    pub digest: Option<Digest>,
    /// The hop's signature.
    pub signature: Option<&'d str>,
}

impl<'d> Hop<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        Self {
            number: block.get("Hop").and_then(|v| v.parse().ok()),
            received_at: block.get("Received-At").and_then(Timestamp::parse),
            received_by: block.get("Received-By"),
            previous_hop: block.get("Previous-Hop"),
            chain: block.get("Chain"),
            previous: block.get("Previous-Digest").and_then(Digest::parse),
            digest: block.get("Hop-Digest").and_then(Digest::parse),
            signature: block.get("Hop-Signature"),
        }
    }
}

/// `meta: email`: what a mail gateway added.
#[derive(Clone, Debug)]
pub struct MailTrace<'d> {
    /// The mail's own id.
    pub message_id: Option<&'d str>,
    /// The mail that it answers.
    pub in_reply_to: Option<&'d str>,
}

impl<'d> MailTrace<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        Self {
            message_id: block.get("Message-ID"),
            in_reply_to: block.get("In-Reply-To"),
        }
    }
}

/// `meta: safety`.
#[derive(Clone, Debug)]
pub struct Safety<'d> {
    /// What a reader should know before reading.
    pub content_warning: Option<&'d str>,
    /// What the content may be used for.
    pub allowed_use: Vec<Cow<'d, str>>,
}

impl<'d> Safety<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        Self {
            content_warning: block.get("Content-Warning"),
            allowed_use: block.get("Allowed-Use").map(list).unwrap_or_default(),
        }
    }
}

/// `meta: payment`.
#[derive(Clone, Debug)]
pub struct Payment<'d> {
    /// How much.
    pub amount: Option<&'d str>,
    /// In which currency.
    pub currency: Option<&'d str>,
    /// For which invoice.
    pub invoice: Option<&'d str>,
    /// Until when.
    pub due: Option<Timestamp>,
}

impl<'d> Payment<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        Self {
            amount: block.get("Amount"),
            currency: block.get("Currency"),
            invoice: block.get("Invoice"),
            due: block.get("Due").and_then(Timestamp::parse),
        }
    }
}

/// `meta: poll`.
#[derive(Clone, Debug)]
pub struct Poll<'d> {
    /// How the votes are counted.
    pub kind: Option<&'d str>,
    /// What can be chosen.
    pub options: Vec<Cow<'d, str>>,
    /// How many must answer, as it was written.
    pub quorum: Option<&'d str>,
    /// Until when.
    pub deadline: Option<Timestamp>,
}

impl<'d> Poll<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        Self {
            kind: block.get("Type"),
            options: block.get("Options").map(options).unwrap_or_default(),
            quorum: block.get("Quorum"),
            deadline: block.get("Deadline").and_then(Timestamp::parse),
        }
    }
}

/// `meta: vote`.
#[derive(Clone, Debug)]
pub struct Vote<'d> {
    /// What was chosen, as it was written.
    pub choice: Option<&'d str>,
    /// Whether it is an abstention.
    pub abstains: bool,
    /// How sure the voter is, as it was written.
    pub confidence: Option<&'d str>,
}

impl<'d> Vote<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        Self {
            choice: block.get("Choice"),
            abstains: matches!(block.get("Abstain"), Some("yes" | "true")),
            confidence: block.get("Confidence"),
        }
    }
}

/// `meta: revocation`: what a REVOKE withdraws.
#[derive(Clone, Debug)]
pub struct Revocation<'d> {
    /// A consent.
    pub consent_id: Option<&'d str>,
    /// A key.
    pub key_id: Option<&'d str>,
    /// A permission.
    pub permission: Option<&'d str>,
    /// Why.
    pub reason: Option<&'d str>,
}

impl<'d> Revocation<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        Self {
            consent_id: block.get("Consent-ID"),
            key_id: block.get("Key-ID"),
            permission: block.get("Permission"),
            reason: block.get("Reason"),
        }
    }
}

/// `meta: refusal`, `meta: closure` or `meta: escalation`.
#[derive(Clone, Debug)]
pub struct Reason<'d> {
    /// Why.
    pub reason: Option<&'d str>,
}

impl<'d> Reason<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        Self {
            reason: block.get("Reason").filter(|r| !r.is_empty()),
        }
    }
}

/// `meta: key`.
#[derive(Clone, Debug)]
pub struct KeyBlock<'d> {
    /// The id of the key.
    pub key_id: Option<&'d str>,
    /// The key itself, as in a DNS record: `ed25519:pk=…`.
    pub public_key: Option<&'d str>,
    /// The id of the key that it replaces.
    pub replaces: Option<&'d str>,
    /// The key that it replaces.
    pub replaces_key: Option<&'d str>,
    /// Until when the old key may still sign, as it was written.
    pub grace_until: Option<&'d str>,
    /// The signature of the old key over the rotation.
    pub proof: Option<&'d str>,
}

impl<'d> KeyBlock<'d> {
    pub(super) fn of(block: Block<'d>) -> Self {
        Self {
            key_id: block.get("Key-ID"),
            public_key: block.get("Public-Key"),
            replaces: block.get("Replaces"),
            replaces_key: block.get("Replaces-Key"),
            grace_until: block.get("Grace-Until"),
            proof: block.get("Proof"),
        }
    }
}

/// `meta: custom-…`: an organisation's own block.
#[derive(Clone, Debug)]
pub struct Custom<'d> {
    /// What stands behind `custom-`.
    pub organisation: &'d str,
    /// Keys and values, in the order of the text.
    pub fields: Vec<(&'d str, &'d str)>,
}

impl<'d> Custom<'d> {
    pub(super) fn of(block: Block<'d>) -> Option<Self> {
        let organisation = block
            .namespace()
            .strip_prefix("custom-")
            .filter(|o| !o.is_empty())?;
        Some(Self {
            organisation,
            fields: block.fields().collect(),
        })
    }
}
