//! Acceptance of admitted messages: the rules that depend on earlier messages (known ids, closed threads, parties, consents).
//!
//! ```text
//! Admission, … ── AcceptNeeds::of ──> what to look up
//!      │                                    │
//!      └────────────┬────────── AcceptFacts ┘
//!                   └── plan_accept ──> PlannedOutcome, …  AcceptChanges ──> the store numbers and writes
//!                                       RevocationOrder ── plan_cascade      what a REVOKE takes with it
//! ```

mod changes;
mod facts;
mod plan;

pub use changes::{
    AcceptChanges, AcceptNumbers, AcceptPlan, DisplacedMessage, ImprovedMessage, NewMessage,
    PlannedEvent, PlannedOutcome, PlannedPlace, ReportedDelivery,
};
pub use facts::{
    AcceptFacts, AcceptNeeds, ConversationParties, DeliveryFacts, HeldFacts, KnownFacts,
    LoggedFacts, ParentFacts, ParentNeeds, PendingParties, PollFacts, SessionFacts,
};
pub use plan::plan_accept;

use super::admit::Admission;
use crate::audit::LogPlace;
use crate::consent::{self, Grant, Party, RevocationResult, Terms};
use crate::store::is_same_party;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::{ErrorCode, Intent};
use crosstalk_envelope::reply::{ReceivedIds, Rejection};

/// The outcome for a message that was submitted.
#[derive(Clone, Debug, PartialEq)]
pub enum AcceptOutcome {
    /// It is on disk.
    Accepted {
        /// Its place among the messages.
        seq: u64,
        /// Its entry in the log.
        entry: LogPlace,
        /// The ids that it is kept under.
        ids: ReceivedIds,
        /// What it revoked, if it is a REVOKE of a consent or a permission.
        withdrawn: Option<Box<RevocationResult>>,
    },
    /// It was there already: the same id and the same content.
    Known {
        /// Its place among the messages.
        seq: u64,
        /// Its entry in the log.
        entry: LogPlace,
        /// Since when.
        since: Timestamp,
        /// The ids that it is kept under.
        ids: ReceivedIds,
    },
    /// It is on disk and waits for a person, or did before somebody decided.
    Held {
        /// Its entry in the log: that it is held.
        entry: LogPlace,
        /// Since when.
        since: Timestamp,
        /// Whether it just came.
        is_new: bool,
        /// The ids that it is kept under.
        ids: ReceivedIds,
    },
    /// It was not taken.
    Rejected(Rejection),
}

/// What a store knows about the surroundings of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Since when the thread that it names, or its session, is closed.
    pub closed: Option<Timestamp>,
    /// Whether its sender is a party of the conversation; of a HANDOFF, also if it begins one.
    pub is_party: bool,
    /// What the message that it answers means.
    pub answered: Option<Intent>,
    /// Of a HANDOFF: who the thread was handed to before.
    pub steward: Option<String>,
    /// The consents that it names, and those that these go back to.
    pub grants: Vec<Grant>,
}

/// Whether a message with this intent is accepted in a conversation that was closed, and whatever came before it.
pub const fn is_accepted_after_close(meaning: Intent) -> bool {
    matches!(meaning, Intent::Ack | Intent::Error | Intent::Revoke)
}

impl Admission {
    /// Whether a message may be accepted, by what came before it, and what follows from it for the ledger of consents. Whether
    /// it is known already is decided first.
    pub fn rule(&self, facts: &Surroundings) -> Result<Terms, Rejection> {
        let meaning = self.arrival.meaning;
        if let Some(since) = facts.closed
            && !meaning.is_some_and(is_accepted_after_close)
        {
            return Err(perm(
                format!("This conversation was closed at {since}."),
                "begin a new thread. A closed thread accepts only ACK, ERROR and REVOKE.",
            ));
        }
        let does = match meaning {
            Some(Intent::Close) => Some("close"),
            Some(Intent::Handoff) => Some("hand over"),
            _ => None,
        };
        if let Some(does) = does.filter(|_| !facts.is_party) {
            return Err(perm(
                format!(
                    "{} takes no part in the conversation that it wants to {does}.",
                    shown(&self.arrival.sender)
                ),
                "let one of its parties do it.",
            ));
        }
        if meaning == Some(Intent::Respond) && facts.answered == Some(Intent::Broadcast) {
            return Err(perm(
                "The message that this one answers is a BROADCAST, which accepts no answers.",
                "send a REQUEST of your own.",
            ));
        }
        if meaning == Some(Intent::Handoff)
            && let Some(steward) = &facts.steward
            && !is_same_party(steward, &self.speaker)
            && !super::is_human(&self.arrival.sender)
        {
            return Err(perm(
                format!(
                    "The thread was handed to {} before. Only they, or a person of the conversation, can pass it on.",
                    shown(steward)
                ),
                "ask them to, or send it as a human:// address that takes part.",
            ));
        }
        let Some(claim) = &self.claim else {
            return Ok(Terms::default());
        };
        let to: Vec<String> = self.recipients.iter().map(|r| r.address.clone()).collect();
        let party = Party {
            sender: &self.arrival.sender,
            speaker: &self.speaker,
            is_pasted: false,
            pkid: self.arrival.pkid.as_deref(),
            proof: self.proof,
            to: &to,
            receiver: self.sole_receiver(),
            is_escalation: meaning == Some(Intent::Escalate),
            backing: self.backing.as_ref(),
            message: self.arrival.id(),
            digest: self.arrival.digest,
            at: self.arrival.at,
        };
        let withdrawal = consent::plan_revocation(claim, &party, &facts.grants, self.is_authority)?;
        match withdrawal {
            Some(_) => Ok(Terms {
                expires: claim.expires,
                withdrawal,
                ..Terms::default()
            }),
            None => consent::judge(claim, &party, &facts.grants),
        }
    }

    /// The receiver as the message names it, if that decides alone who gets it.
    fn sole_receiver(&self) -> Option<&str> {
        let is_chosen = matches!(
            self.arrival.meaning,
            Some(Intent::Escalate | Intent::Handoff | Intent::Poll | Intent::Broadcast)
        );
        (!is_chosen).then_some(self.arrival.receiver.as_str())
    }
}

/// The refusal of a message whose id another message has.
pub fn id_conflict(id: &str) -> Rejection {
    perm(
        format!("The id {} belongs to another message.", shown(id)),
        "send it under a new id; a sent message can't be changed.",
    )
}

fn perm(what: impl Into<String>, help: &str) -> Rejection {
    Rejection::new(ErrorCode::Perm, what, help)
}

pub(super) fn shown(address: &str) -> String {
    crosstalk_envelope::unicode::escape(address).into_owned()
}

/// The conversation that a CLOSE ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConversationId {
    /// A thread.
    Thread(String),
    /// A session, where no thread is named.
    Session(String),
}
