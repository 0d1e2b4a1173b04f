//! What a revocation takes with it, as a function: facts in, changes out (CON-030 to CON-034).

use super::ledger::{Cancelled, Erased, Grant, Revocation, RevocationOrder, RevocationResult};
use crate::audit::{Event, EventDetail, EventKind};
use crate::relay::{DeliveryFacts, DeliveryState, Handler, LoggedFacts};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Why texts are erased and held messages lapse, in the log.
const REVOKED: &str = "the consent was revoked";
/// By whom, where no person decides.
const ITSELF: &str = "relay";

/// What a store knows of consents that are revoked. Everything covers those that go back to them, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevocationFacts {
    /// Which consents go back directly to which.
    pub derived: BTreeMap<String, Vec<String>>,
    /// The consents that are on record, and whether they were revoked before.
    pub on_record: BTreeMap<String, bool>,
    /// The messages under them that have a text, by position.
    pub messages: Vec<CoveredMessage>,
    /// The messages under them that wait for a person.
    pub held: Vec<CoveredHeld>,
    /// Whether there is the token that is revoked, and it was not revoked before.
    pub is_token_active: bool,
}

/// A message that is kept under a consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredMessage {
    /// Its position.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// Its sender.
    pub sender: String,
    /// Its thread.
    pub thread: String,
    /// Its deliveries.
    pub deliveries: Vec<DeliveryFacts>,
    /// Its entry in the log; nothing if it is not in the log.
    pub logged: Option<LoggedFacts>,
}

/// A message that waits for a person under a consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredHeld {
    /// Its position among those that were held.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// The digest of its text, byte for byte.
    pub raw: Digest,
    /// Its sender.
    pub sender: String,
    /// Its thread.
    pub thread: String,
    /// Its recipients.
    pub recipients: Vec<String>,
}

/// The changes of a revocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationChanges<'f> {
    /// Consents on record that end, by name.
    pub ended: Vec<String>,
    /// Consents that nobody has seen yet: they are ended before they are.
    pub unseen: Vec<Grant>,
    /// Deliveries that are cancelled: the position of the message, and the party.
    pub cancelled: Vec<(u64, &'f str)>,
    /// The parties that get the REVOKE, because they got the revoked messages, and the same way of delivery.
    pub told: Vec<(&'f str, Handler)>,
    /// The positions of messages whose text and deadline are erased, and which let go of their attachments.
    pub erased: Vec<u64>,
    /// Held messages that lapse, by their position among those.
    pub lapsed: Vec<u64>,
    /// The token that ends.
    pub token: Option<String>,
    /// Entries of the log, in their order.
    pub events: Vec<Event<'f>>,
    /// By whom, when, why.
    pub revocation: Revocation,
    /// The result for the sender of the REVOKE.
    pub result: RevocationResult,
}

impl RevocationChanges<'_> {
    /// Why deliveries are cancelled.
    pub const CANCELLED: &'static str = "E-CONSENT: the consent was revoked";
    /// Why messages lapse that are held.
    pub const LAPSED: &'static str = REVOKED;
    /// Who lets them lapse.
    pub const LAPSED_BY: &'static str = ITSELF;
}

/// Decides what a revocation does: everything under the consents is erased, what is on its way cancelled, and the REVOKE, with
/// this id, goes to everybody who got some of it. The REVOKE itself is at position `besides`, if it is kept.
pub fn plan_cascade<'f>(
    order: &RevocationOrder,
    message: &'f str,
    facts: &'f RevocationFacts,
    besides: Option<u64>,
) -> RevocationChanges<'f> {
    let at = order.revocation.at;
    let mut plan = RevocationChanges {
        ended: Vec::new(),
        unseen: Vec::new(),
        cancelled: Vec::new(),
        told: Vec::new(),
        erased: Vec::new(),
        lapsed: Vec::new(),
        token: None,
        events: Vec::new(),
        revocation: order.revocation.clone(),
        result: RevocationResult {
            consents: chain(&order.consents, &facts.derived),
            ..RevocationResult::default()
        },
    };
    for id in plan.result.consents.clone() {
        plan.note_revoked(message, "consent", &id);
        match facts.on_record.get(&id) {
            Some(true) => {}
            Some(false) => plan.ended.push(id),
            None => plan.unseen.push(Grant::unseen(&id, &order.revocation)),
        }
    }
    let messages = facts.messages.iter().filter(|m| Some(m.seq) != besides);
    for covered in messages {
        plan.erase(covered, at);
    }
    for held in &facts.held {
        plan.lapse(held, at);
    }
    if let Some(name) = order.token.as_ref().filter(|_| facts.is_token_active) {
        plan.note_revoked(message, "token", name);
        plan.token = Some(name.clone());
        plan.result.tokens.push(name.clone());
    }
    plan.result.told.sort();
    plan.result.told.dedup();
    plan
}

impl<'f> RevocationChanges<'f> {
    /// Cancels what is on its way of a message, notes who has to be told, and erases it.
    fn erase(&mut self, covered: &'f CoveredMessage, at: Timestamp) {
        for delivery in &covered.deliveries {
            match delivery.state {
                DeliveryState::Failed => {}
                DeliveryState::Delivered | DeliveryState::Read | DeliveryState::Acknowledged => {
                    self.told.push((&delivery.address, delivery.by));
                    self.result.told.push(delivery.address.clone());
                }
                DeliveryState::Queued | DeliveryState::Held | DeliveryState::Quarantined => {
                    self.cancelled.push((covered.seq, &delivery.party));
                    let detail = EventDetail::default()
                        .with("to", &delivery.address)
                        .with("by", delivery.by.as_str());
                    self.note(covered, EventKind::Failed, at, detail);
                    self.result.cancelled.push(Cancelled {
                        id: covered.id.clone(),
                        from: covered.sender.clone(),
                        to: delivery.address.clone(),
                        thread: covered.thread.clone(),
                    });
                }
            }
        }
        let why = EventDetail::default().with("why", REVOKED);
        self.note(covered, EventKind::Erased, at, why);
        self.erased.push(covered.seq);
        self.result.erased.push(Erased {
            id: covered.id.clone(),
            digest: covered.digest,
        });
    }

    /// Lets a message lapse that is held, and erases it.
    fn lapse(&mut self, held: &'f CoveredHeld, at: Timestamp) {
        let why = EventDetail::default()
            .with("by", ITSELF)
            .with("why", REVOKED);
        let failed = Event {
            id: Some(&held.id),
            canonical: Some(held.digest),
            raw: Some(held.raw),
            detail: Some(why),
            ..Event::new(EventKind::Failed, at)
        };
        let erased = Event {
            id: Some(&held.id),
            canonical: Some(held.digest),
            ..Event::new(EventKind::Erased, at)
        };
        self.events.extend([failed, erased]);
        self.lapsed.push(held.seq);
        let cancelled = held.recipients.iter().map(|to| Cancelled {
            id: held.id.clone(),
            from: held.sender.clone(),
            to: to.clone(),
            thread: held.thread.clone(),
        });
        self.result.cancelled.extend(cancelled);
        self.result.erased.push(Erased {
            id: held.id.clone(),
            digest: held.digest,
        });
    }

    /// Something that happened to a message; what the person of the store accepted is none of the relay's.
    fn note(
        &mut self,
        covered: &'f CoveredMessage,
        kind: EventKind,
        at: Timestamp,
        detail: EventDetail,
    ) {
        self.events.extend(covered.logged.map(|logged| Event {
            id: Some(&covered.id),
            canonical: Some(logged.canonical),
            raw: logged.raw,
            detail: Some(detail),
            ..Event::new(kind, at)
        }));
    }

    fn note_revoked(&mut self, message: &'f str, kind: &'static str, name: &str) {
        let detail = EventDetail::default()
            .with(kind, name)
            .with("by", &self.revocation.by);
        self.events.push(Event {
            id: Some(message),
            detail: Some(detail),
            ..Event::new(EventKind::Revoked, self.revocation.at)
        });
    }
}

/// Consents, and all that go back to them, those that are named first.
fn chain(ids: &[String], derived: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    let mut left: VecDeque<&String> = ids.iter().collect();
    while let Some(id) = left.pop_front() {
        if seen.insert(id) {
            left.extend(derived.get(id).into_iter().flatten());
            all.push(id.clone());
        }
    }
    all
}

/// That a consent was given or passed on, by the message with this id.
pub fn grant_event<'e>(grant: &Grant, message: &'e str, at: Timestamp) -> Event<'e> {
    let kind = match grant.originals.is_empty() {
        true => EventKind::Granted,
        false => EventKind::Transferred,
    };
    let detail = EventDetail::default()
        .with("consent", &grant.id)
        .with("by", &grant.granter)
        .with("how", grant.assurance.as_str());
    Event {
        id: Some(message),
        canonical: Some(grant.digest),
        detail: Some(detail),
        ..Event::new(kind, at)
    }
}
