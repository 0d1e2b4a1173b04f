//! The typed views of META blocks: each field as it was written or in its type.
//!
//! Implements MET-010 and MET-014 to MET-023.

use super::value::{Digest, list, options, route, words};
use crate::address::Address;
use crate::document::{Document, MetaBlock};
use crate::registry::{ErrorCode, Priority};
use crate::time::Timestamp;
use std::borrow::Cow;

/// Routing hints and delivery preferences: `meta: routing`.
#[derive(Clone, Debug, Default)]
pub struct Routing<'d> {
    /// `X-Route`: the way so far, as it was written. It is unsigned: hops write it.
    pub route: Option<&'d str>,
    /// `X-Reply-To`: the address for answers.
    pub reply_to: Option<Address<'d>>,
    /// `X-Priority`.
    pub priority: Priority,
    /// `X-Delivery`: how to deliver, as it was written.
    pub delivery: Option<&'d str>,
    /// `X-Policy`, as it was written.
    pub policy: Option<&'d str>,
    /// `X-Capabilities-Required`, as it was written.
    pub capabilities: Option<&'d str>,
    /// `X-Deadline`, as it was written.
    pub deadline: Option<&'d str>,
    /// `Targets`, as it was written.
    pub targets: Option<&'d str>,
}

impl<'d> Routing<'d> {
    pub(super) fn of(document: &'d Document<'d>) -> Self {
        let mut routing = Self::default();
        let Some(block) = document.block("routing") else {
            return routing;
        };
        for (key, value) in block.fields() {
            match key {
                "X-Route" => routing.route = Some(value),
                "X-Reply-To" => routing.reply_to = Some(Address::split(value)),
                "X-Priority" => routing.priority = Priority::parse(Some(value)),
                "X-Delivery" => routing.delivery = Some(value),
                "X-Policy" => routing.policy = Some(value),
                "X-Capabilities-Required" => routing.capabilities = Some(value),
                "X-Deadline" => routing.deadline = Some(value),
                "Targets" => routing.targets = Some(value),
                _ => {}
            }
        }
        routing
    }

    /// The stations of `X-Route`.
    pub fn stations(&self) -> impl Iterator<Item = Address<'d>> + use<'d> {
        self.route
            .into_iter()
            .flat_map(route)
            .filter(|s| !s.is_empty())
            .map(Address::split)
    }

    /// The addresses of `Targets`.
    pub fn target_list(&self) -> Vec<Cow<'d, str>> {
        self.targets.map(list).unwrap_or_default()
    }

    /// The words of `X-Policy`.
    pub fn policies(&self) -> Vec<Cow<'d, str>> {
        self.policy.map(words).unwrap_or_default()
    }

    /// The capabilities that are required.
    pub fn capability_list(&self) -> Vec<Cow<'d, str>> {
        self.capabilities.map(list).unwrap_or_default()
    }
}

/// Declares the view of a block: for each field the key, and how its value is read if not as text.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $key:literal $(=> $read:expr)?,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<'d> {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        impl<'d> $name<'d> {
            pub(super) fn of(block: MetaBlock<'d>) -> Self {
                Self {
                    $($field: view!(@read block.get($key) $(, $read)?),)+
                }
            }
        }
    };
    (@read $value:expr) => { $value };
    (@read $value:expr, $read:expr) => { $read($value) };
}

fn time(value: Option<&str>) -> Option<Timestamp> {
    value.and_then(Timestamp::parse)
}

fn digest(value: Option<&str>) -> Option<Digest> {
    value.and_then(Digest::parse)
}

view! {
    /// `meta: error`: what an ERROR reports.
    ErrorReport {
        /// The code, where it is one of the taxonomy.
        code: Option<ErrorCode> = "Code" => |v: Option<&str>| v.and_then(ErrorCode::from_wire),
        /// The code as it was written.
        code_text: Option<&'d str> = "Code",
        /// The reason.
        reason: Option<&'d str> = "Reason",
        /// The intent of the message that failed, as it was written there.
        original_intent: Option<&'d str> = "Original-Intent",
    }
}

view! {
    /// `meta: audit`: one hop.
    HopBlock {
        /// Its number, from 1.
        number: Option<u64> = "Hop" => |v: Option<&str>| v?.parse().ok(),
        /// When the hop received the message.
        received_at: Option<Timestamp> = "Received-At" => time,
        /// The name of the hop.
        received_by: Option<&'d str> = "Received-By",
        /// The hop before, or the sender.
        previous_hop: Option<&'d str> = "Previous-Hop",
        /// The position of the message in the log of the hop.
        chain: Option<&'d str> = "Chain",
        /// The digest of the hop before.
        previous: Option<Digest> = "Previous-Digest" => digest,
        /// The digest of this hop.
        digest: Option<Digest> = "Hop-Digest" => digest,
        /// The hop's signature.
        signature: Option<&'d str> = "Hop-Signature",
    }
}

view! {
    /// `meta: safety`.
    SafetyBlock {
        /// A warning for readers.
        content_warning: Option<&'d str> = "Content-Warning",
        /// The uses of the content that are allowed.
        allowed_use: Vec<Cow<'d, str>> = "Allowed-Use" => |v: Option<&'d str>| v.map(list).unwrap_or_default(),
    }
}

view! {
    /// `meta: poll`.
    PollBlock {
        /// How the votes are counted.
        kind: Option<&'d str> = "Type",
        /// The options to choose from.
        options: Vec<Cow<'d, str>> = "Options" => |v: Option<&'d str>| v.map(options).unwrap_or_default(),
        /// How many must answer, as it was written.
        quorum: Option<&'d str> = "Quorum",
        /// The deadline for answers.
        deadline: Option<Timestamp> = "Deadline" => time,
    }
}

view! {
    /// `meta: vote`.
    VoteBlock {
        /// The choice, as it was written.
        choice: Option<&'d str> = "Choice",
        /// Whether it is an abstention.
        abstains: bool = "Abstain" => |v| matches!(v, Some("yes" | "true")),
        /// How sure the voter is, as it was written.
        confidence: Option<&'d str> = "Confidence",
    }
}

view! {
    /// `meta: revocation`: what a REVOKE revokes.
    RevocationBlock {
        /// A consent.
        consent_id: Option<&'d str> = "Consent-ID",
        /// A key.
        key_id: Option<&'d str> = "Key-ID",
        /// A permission.
        permission: Option<&'d str> = "Permission",
        /// The reason.
        reason: Option<&'d str> = "Reason",
    }
}

view! {
    /// `meta: key`.
    KeyBlock {
        /// The id of the key.
        key_id: Option<&'d str> = "Key-ID",
        /// The key itself, as in a DNS record: `ed25519:pk=…`.
        public_key: Option<&'d str> = "Public-Key",
        /// The id of the key that it replaces.
        replaces: Option<&'d str> = "Replaces",
        /// The key that it replaces.
        replaces_key: Option<&'d str> = "Replaces-Key",
        /// Until when the old key may still sign, as it was written.
        grace_until: Option<&'d str> = "Grace-Until",
        /// The signature of the old key over the rotation.
        proof: Option<&'d str> = "Proof",
    }
}
