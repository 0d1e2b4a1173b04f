//! Holding messages for the decision of a person: which messages are held, and what a decision does (CON-060 and up).
//!
//! ```text
//! admit ──> Admission { held } ──> take ──> held, on disk, seen by its sender and by those who decide
//!                                            │
//!            Decision, bound to the digests ─┼─ Approve ──> taken, as if it came now
//!                                            ├─ Refuse ───> an ERROR to the sender
//!                                            └─ Lapse ────> the same: its consent or its deadline ended first
//! ```
//!
//! A held message is not among those that were accepted: nothing that a relay hands out, files or does comes to it. When
//! it is approved it goes the way of every other message, from the beginning.

use super::admit::Admission;
use super::delivery::{Delivery, DeliveryState, Handler, Recipient};
use super::pattern::Pattern;
use super::peer::{Peer, is_human};
use super::route::Routes;
use crate::audit::{Event, EventDetail, EventKind};
use crate::consent::{Claim, Pii, RevocationChanges, is_same_scope, is_sensitive, legible, scopes};
use crate::store::Record;
use crate::verdict::VerdictWord;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::name::same_name;
use crosstalk_envelope::registry::{ErrorCode, Intent};
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Envelope, Timestamp, words};

/// The scope of every word that the registry does not have.
const CUSTOM: &str = "custom";

/// Which messages wait for a person. Everything that is said has to fit; what is left empty fits everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// Why, in a few words, as those who decide read it.
    pub why: String,
    /// With one of these intents. A REVOKE is held only where it is named here: what is revoked does not wait.
    pub intents: Vec<Intent>,
    /// From one of these addresses.
    pub from: Vec<Pattern>,
    /// To one of these addresses.
    pub to: Vec<Pattern>,
    /// By one of these ways.
    pub by: Vec<Handler>,
    /// With one of these scopes, under any name of it.
    pub scopes: Vec<String>,
    /// Only with an attachment.
    pub attachments: bool,
    /// With one of these verdicts about the signature.
    pub verdicts: Vec<VerdictWord>,
    /// Also what people send themselves.
    pub people: bool,
    /// The addresses of those who decide; any person, if there are none.
    pub deciders: Vec<String>,
}

/// Why a message waits, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldReason {
    /// Why.
    pub why: String,
    /// The addresses of those who decide; any person, if there are none.
    pub deciders: Vec<String>,
}

/// The parts of a message that decide whether it is held.
pub(super) struct Looked<'l> {
    pub(super) envelope: &'l Envelope<'l>,
    pub(super) claim: Option<&'l Claim>,
    pub(super) verdict: VerdictWord,
    pub(super) peer: &'l Peer,
    /// The caller on whose behalf the relay sends it.
    pub(super) behalf: Option<&'l str>,
    pub(super) recipients: &'l [Recipient],
    pub(super) routes: &'l Routes,
}

impl<'l> Looked<'l> {
    /// Whose words it brings.
    fn sender(&self) -> &'l str {
        self.behalf.unwrap_or(self.envelope.sender.as_str())
    }
}

/// Whether a message is held: by the first rule that fits. What the relay itself says never is, unless somebody had it
/// say that to others.
pub(super) fn held(holds: &[Hold], looked: &Looked<'_>) -> Option<HoldReason> {
    let is_itself = looked.peer.is_itself();
    if holds.is_empty() || (is_itself && looked.behalf.is_none()) {
        return None;
    }
    let is_own_word =
        !is_itself && looked.peer.is_person() && is_human(looked.routes.named(looked.sender()));
    let mut fitting = holds.iter().filter(|hold| hold.people || !is_own_word);
    fitting
        .find(|hold| hold.fits(looked))
        .map(|hold| HoldReason {
            why: hold.why.clone(),
            deciders: hold.deciders.clone(),
        })
}

impl Looked<'_> {
    /// Whether a message has a scope: under this name or another of the same, `pii` also by `PII: present`, `custom` also by
    /// a word that is not known. An unreadable value counts as every sensitive scope.
    fn says(&self, scope: &str) -> bool {
        let Some(claim) = self.claim else {
            return false;
        };
        let written = self.envelope.privacy().scope;
        let is_unclear = written.is_some_and(|w| legible(w).is_none());
        let is_custom = |said: &str| !scopes().contains(&said);
        let is_meant = |said: &String| {
            is_same_scope(said, scope) || (scope.eq_ignore_ascii_case(CUSTOM) && is_custom(said))
        };
        claim.scopes.iter().any(is_meant)
            || (scope.eq_ignore_ascii_case("pii") && claim.pii == Some(Pii::Present))
            || (is_sensitive(scope) && is_unclear)
    }
}

impl Hold {
    fn fits(&self, looked: &Looked<'_>) -> bool {
        let envelope = looked.envelope;
        let meaning = envelope.meaning();
        let is_asked = match (meaning, self.intents.is_empty()) {
            (Some(Intent::Revoke), true) => false,
            (_, true) => true,
            (Some(meaning), false) => self.intents.contains(&meaning),
            (None, false) => false,
        };
        let any = |patterns: &[Pattern], address: &str| {
            let named = looked.routes.named(address);
            let fits = |p: &Pattern| p.matches(address) || p.matches(named);
            patterns.is_empty() || patterns.iter().any(fits)
        };
        let receiver = envelope.receiver.as_str();
        let goes = |r: &Recipient| {
            let is_named =
                same_name(looked.routes.named(receiver), &r.address) && any(&self.to, receiver);
            (is_named || any(&self.to, &r.address))
                && (self.by.is_empty() || self.by.contains(&r.by))
        };
        let says = || self.scopes.is_empty() || self.scopes.iter().any(|s| looked.says(s));
        is_asked
            && (self.verdicts.is_empty() || self.verdicts.contains(&looked.verdict))
            && any(&self.from, looked.sender())
            && looked.recipients.iter().any(goes)
            && says()
            && (!self.attachments || envelope.attachments().next().is_some())
    }
}

words! {
    /// The decision about a held message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum HoldChoice {
        /// The message is accepted.
        Approve = "approved",
        /// The message is rejected.
        Refuse = "refused",
        /// Its consent or its deadline expired before a person decided.
        Lapse = "lapsed",
    }
}

/// A decision that wants to be carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldDecision {
    /// The message.
    pub id: String,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// The digest of its text, byte for byte, as whoever decides has seen it.
    pub raw: Digest,
    /// What becomes of it.
    pub choice: HoldChoice,
    /// Why, in one line.
    pub reason: Option<String>,
    /// The credential of whoever decides.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// What the sender is told ([`report::declined`](super::report::declined)), unless it is approved.
    pub report: Option<String>,
}

/// A decision on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldDecided {
    /// What it was.
    pub choice: HoldChoice,
    /// By which credential.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why, in one line.
    pub reason: Option<String>,
}

/// The result of a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It is on record and carried out: the message is accepted at this seq, or a notice to its sender is queued.
    Done(Option<(u64, Box<Admission>)>),
    /// The message was decided before.
    AlreadyDecided(HoldDecided),
    /// It was about another text than the one that is held.
    DigestMismatch,
    /// It can't be approved any more, or not be lapsed yet; nothing was changed.
    NotAllowed(Rejection),
    /// No such message is held.
    Unknown,
}

/// A message that is or was held.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldMessage {
    /// The message; its place is the one among those that were held. Once it is decided, it has no text.
    pub record: Record,
    /// The digest of its text, byte for byte.
    pub raw: Digest,
    /// The recipients, if it is approved.
    pub recipients: Vec<Recipient>,
    /// The caller that submitted it.
    pub peer: String,
    /// Why it is held.
    pub held: HoldReason,
    /// Until when it should be answered.
    pub answer_by: Option<Timestamp>,
    /// The decision, once there is one.
    pub decided: Option<HoldDecided>,
}

impl HoldDecision {
    /// Why a message lapses that waited for as long as messages are kept.
    pub const TOO_OLD: &'static str = "nobody decided for as long as messages are kept";

    /// A message that waits lapses by itself, and its sender is not told.
    pub fn lapse(held: &HeldMessage, reason: &str, at: Timestamp) -> Self {
        Self {
            id: held.record.id.clone(),
            digest: held.record.digest,
            raw: held.raw,
            choice: HoldChoice::Lapse,
            reason: Some(reason.to_owned()),
            by: RevocationChanges::LAPSED_BY.to_owned(),
            at,
            report: None,
        }
    }

    /// The event to log.
    pub fn event(&self) -> Event<'_> {
        let detail = EventDetail::default().with("by", &self.by);
        Event {
            kind: match self.choice {
                HoldChoice::Approve => EventKind::Approved,
                HoldChoice::Refuse => EventKind::Declined,
                HoldChoice::Lapse => EventKind::Failed,
            },
            at: self.at,
            id: Some(&self.id),
            canonical: Some(self.digest),
            raw: Some(self.raw),
            detail: Some(match &self.reason {
                Some(reason) => detail.with("why", reason),
                None => detail,
            }),
        }
    }

    /// What stays on record.
    pub fn decided(&self) -> HoldDecided {
        HoldDecided {
            choice: self.choice,
            by: self.by.clone(),
            at: self.at,
            reason: self.reason.clone(),
        }
    }
}

impl HeldMessage {
    /// Whether it waits for a decision.
    pub fn is_waiting(&self) -> bool {
        self.decided.is_none()
    }

    /// Its text, as long as it is held and its consent is valid (CON-005).
    pub fn text(&self, now: Timestamp) -> Option<&str> {
        let is_shown = self.is_waiting() && !self.record.is_expired(now);
        is_shown.then_some(self.record.text.as_str())
    }

    /// Whether it was approved: then it is accepted, and its record holds all facts about it.
    pub fn is_approved(&self) -> bool {
        let decided = self.decided.as_ref();
        decided.is_some_and(|d| d.choice == HoldChoice::Approve)
    }

    /// Whether a decision may be carried out: about exactly this message, once, and not after its end.
    ///
    /// # Errors
    /// What becomes of the decision instead.
    pub fn rule(&self, decision: &HoldDecision) -> Result<(), Ruling> {
        if let Some(decided) = &self.decided {
            return Err(Ruling::AlreadyDecided(decided.clone()));
        }
        if self.record.digest != decision.digest || self.raw != decision.raw {
            return Err(Ruling::DigestMismatch);
        }
        match (decision.choice, self.ended(decision.at)) {
            (HoldChoice::Approve, Some(refusal)) => Err(Ruling::NotAllowed(refusal)),
            (HoldChoice::Lapse, None) => Err(Ruling::NotAllowed(Rejection::new(
                ErrorCode::Perm,
                "Neither its consent has expired nor its deadline passed.",
                "let a person decide.",
            ))),
            _ => Ok(()),
        }
    }

    /// When it can't be approved any more.
    pub fn ends(&self) -> Option<Timestamp> {
        [self.record.expires, self.answer_by]
            .into_iter()
            .flatten()
            .min()
    }

    /// Why it can't be approved any more (CON-067).
    pub fn ended(&self, at: Timestamp) -> Option<Rejection> {
        ended(self.record.expires, self.answer_by, at)
    }

    /// Whether a peer may decide about it, by its credential. Who wrote it, signed it or handed it in may not: `own` has the
    /// addresses of these people. The person at a machine without credentials is the only one there.
    pub fn may_be_decided_by(&self, peer: &Peer, own: &[String]) -> Result<(), Rejection> {
        let perm = |what: String, help: &str| Err(Rejection::new(ErrorCode::Perm, what, help));
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
            None => DeliveryState::Held,
            Some(_) => DeliveryState::Failed,
        };
        let reason = match failed {
            None => format!("it waits for a person: {}", self.held.why),
            Some(decided) => match &decided.reason {
                Some(reason) => format!("{}: {reason}", decided.choice.as_str()),
                None => decided.choice.as_str().to_owned(),
            },
        };
        let one = |r: &Recipient| Delivery {
            state,
            failed_at: failed.map(|d| d.at),
            reason: Some(reason.clone()),
            next_at: None,
            ..Delivery::queued(&r.address, r.by, self.record.at)
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
) -> Option<Rejection> {
    if let Some(end) = expires.filter(|end| *end <= at) {
        let (what, help) = (
            format!("The consent of this message expired at {end}, while it waited for a person."),
            "ask for it again.",
        );
        return Some(Rejection::new(ErrorCode::Consent, what, help));
    }
    let end = answer_by.filter(|end| *end <= at)?;
    let (what, help) = (
        format!("The deadline of this message, {end}, passed while it waited for a person."),
        "send it again with a later one.",
    );
    Some(Rejection::new(ErrorCode::Timeout, what, help))
}
