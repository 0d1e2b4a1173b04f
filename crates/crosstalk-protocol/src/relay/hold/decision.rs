//! What a person decides about a message that is held: once, about exactly this message, and on record.

use super::super::admit::Admission;
use super::super::delivery::{Delivery, Recipient, State};
use super::super::peer::Peer;
use super::Held;
use crate::store::Record;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::{ReceivedIds, Refusal};
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::words;

words! {
    /// What becomes of a message that is held.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Choice {
        /// It is taken.
        Approve = "approved",
        /// It is not.
        Refuse = "refused",
        /// Nobody decided until its consent or its deadline ended.
        Lapse = "lapsed",
    }
}

/// A decision that wants to be carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The message.
    pub id: String,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// The digest of its text, byte for byte, as whoever decides has seen it.
    pub raw: Digest,
    /// What becomes of it.
    pub choice: Choice,
    /// Why, in one line.
    pub reason: Option<String>,
    /// The credential of whoever decides.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// What the sender is told ([`report::declined`](super::super::report::declined)), unless it is approved.
    pub report: Option<String>,
}

/// A decision on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// What it was.
    pub choice: Choice,
    /// By which credential.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why, in one line.
    pub reason: Option<String>,
}

/// What became of a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It is on record and carried out: the message is taken, at this place, or what its sender is told is owed.
    Done(Option<(u64, Box<Admission>)>),
    /// Somebody decided before.
    Before(Decided),
    /// It was about another text than the one that is held.
    Other,
    /// It can't be approved any more, or not be lapsed yet; nothing was changed.
    Not(Refusal),
    /// No such message is held.
    Unknown,
}

/// A message that is or was held.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldMessage {
    /// The message; its place is the one among those that were held. Once it is decided, it has no text.
    pub record: Record,
    /// The ids that it gets where it has none.
    pub spare: ReceivedIds,
    /// The digest of its text, byte for byte.
    pub raw: Digest,
    /// Who gets it, if it is approved.
    pub recipients: Vec<Recipient>,
    /// Who handed it in.
    pub peer: String,
    /// Why it is held.
    pub held: Held,
    /// When its consent ends.
    pub expires: Option<Timestamp>,
    /// Until when it should be answered.
    pub answer_by: Option<Timestamp>,
    /// What was decided.
    pub decided: Option<Decided>,
}

impl HeldMessage {
    /// Whether it waits for a decision.
    pub fn is_waiting(&self) -> bool {
        self.decided.is_none()
    }

    /// What may be shown of it: its text, while it waits and its consent holds (CON-005).
    pub fn text(&self, now: Timestamp) -> Option<&str> {
        let is_shown = self.is_waiting() && !self.record.has_run_out(now);
        is_shown.then_some(self.record.text.as_str())
    }

    /// Whether it was approved: then it is taken, and what is known about it is known elsewhere.
    pub fn is_approved(&self) -> bool {
        let decided = self.decided.as_ref();
        decided.is_some_and(|d| d.choice == Choice::Approve)
    }

    /// Why it can't be approved any more (CON-067).
    pub fn ended(&self, at: Timestamp) -> Option<Refusal> {
        ended(self.expires, self.answer_by, at)
    }

    /// Whether a peer may decide about it, by its credential. Who wrote it, signed it or handed it in may not: `own` has the
    /// addresses of these people. The person at a machine without credentials is the only one there.
    pub fn may_be_decided_by(&self, peer: &Peer, own: &[String]) -> Result<(), Refusal> {
        let perm = |what: String, help: &str| Err(Refusal::new(ErrorCode::Perm, what, help));
        if !peer.is_person() {
            return perm(
                format!(
                    "The credential `{}` is that of an agent, and only people decide about messages.",
                    escape(&peer.name)
                ),
                "let a person do it, with a credential of their own.",
            );
        }
        let is_own = self.peer == peer.name || own.iter().any(|a| peer.speaks_for(a));
        if is_own && !peer.is_local {
            return perm(
                format!(
                    "The message was handed in with the credential `{}`, or was written, signed or handed in by a \
                     person whom it speaks for, and nobody decides about a message of their own.",
                    escape(&peer.name)
                ),
                "let another person do it.",
            );
        }
        let is_named = || self.held.deciders.iter().any(|a| peer.speaks_for(a));
        if self.held.deciders.is_empty() || peer.is_admin() || is_named() {
            return Ok(());
        }
        let deciders = self.held.deciders.join(", ");
        perm(
            format!(
                "The message waits for {}, for whom the credential `{}` does not speak.",
                escape(&deciders),
                escape(&peer.name)
            ),
            "let them decide.",
        )
    }

    /// How far it is with its recipients, as its sender sees it: it is not on its way to any of them.
    pub fn deliveries(&self) -> Vec<Delivery> {
        let failed = self.decided.as_ref();
        let state = match failed {
            None => State::Held,
            Some(_) => State::Failed,
        };
        let reason = match failed {
            None => format!("it waits for a person: {}", self.held.why),
            Some(decided) => match &decided.reason {
                Some(reason) => format!("{}: {reason}", decided.choice.as_str()),
                None => decided.choice.as_str().to_owned(),
            },
        };
        let one = |r: &Recipient| Delivery {
            to: r.address.clone(),
            by: r.by,
            state,
            attempts: 0,
            queued_at: self.record.at,
            delivered_at: None,
            read_at: None,
            acknowledged_at: None,
            failed_at: failed.map(|d| d.at),
            reason: Some(reason.clone()),
            next_at: None,
            leased_at: None,
        };
        self.recipients.iter().map(one).collect()
    }
}

/// Why a message can't be approved any more: its consent or its deadline has ended (CON-067).
///
/// ```
/// use crosstalk_envelope::Timestamp;
/// use crosstalk_protocol::relay::ended;
/// let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
/// assert_eq!(ended(Some(at(10)), None, at(9)), None);
/// assert_eq!(ended(Some(at(10)), None, at(10)).unwrap().code.as_str(), "E-CONSENT");
/// assert_eq!(ended(None, Some(at(10)), at(11)).unwrap().code.as_str(), "E-TIMEOUT");
/// ```
pub fn ended(
    expires: Option<Timestamp>,
    answer_by: Option<Timestamp>,
    at: Timestamp,
) -> Option<Refusal> {
    if let Some(end) = expires.filter(|end| *end <= at) {
        let (what, help) = (
            format!("The consent of this message ended at {end}, while it waited for a person."),
            "ask for it again.",
        );
        return Some(Refusal::new(ErrorCode::Consent, what, help));
    }
    let end = answer_by.filter(|end| *end <= at)?;
    let (what, help) = (
        format!("The deadline of this message, {end}, passed while it waited for a person."),
        "send it again with a later one.",
    );
    Some(Refusal::new(ErrorCode::Timeout, what, help))
}
