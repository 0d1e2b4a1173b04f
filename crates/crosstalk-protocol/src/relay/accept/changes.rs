//! What accepting a batch changes: rows to write, in terms of the batch. The store numbers them.

use super::super::admit::Admission;
use super::super::delivery::{DeliveryState, Handler};
use super::AcceptOutcome;
use super::ConversationId;
use crate::audit::{Event, LogPlace};
use crate::consent::{Grant, RevocationOrder, RevocationResult};
use crate::store::Arrival;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::reply::{ReceivedIds, Rejection};

/// What becomes of a batch, or of the first messages of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcceptPlan<'b> {
    /// What became of each message, in their order. There may be fewer than in the batch: the rest is planned by the facts
    /// that hold when these changes are made.
    pub outcomes: Vec<PlannedOutcome>,
    /// What to write.
    pub changes: AcceptChanges<'b>,
    /// What the last of these messages revokes, once the changes are made ([`consent::plan_cascade`](crate::consent::plan_cascade)).
    pub revocation: Option<RevocationOrder>,
}

/// A message or an entry of the log: one that is there, by its number, or a new one, by its place among those of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlannedPlace<P = u64> {
    /// It is there.
    Kept(P),
    /// It is new.
    New(usize),
}

impl<P: Copy + Default> PlannedPlace<P> {
    /// Its number; `new` are those of the new ones.
    pub fn number(self, new: &[P]) -> P {
        match self {
            Self::Kept(number) => number,
            Self::New(place) => new.get(place).copied().unwrap_or_default(),
        }
    }
}

/// What becomes of a message: [`AcceptOutcome`] before its numbers are known.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedOutcome {
    /// It is new.
    Accepted {
        /// Its place in [`AcceptChanges::messages`].
        message: usize,
        /// Its place in [`AcceptChanges::events`].
        entry: usize,
        /// The ids that it is kept under.
        ids: ReceivedIds,
    },
    /// It was there already.
    Known {
        /// The message.
        message: PlannedPlace,
        /// Its entry in the log.
        entry: PlannedPlace<LogPlace>,
        /// Since when.
        since: Timestamp,
        /// The ids that it is kept under.
        ids: ReceivedIds,
    },
    /// It waits for a person.
    Held {
        /// Its entry in the log.
        entry: PlannedPlace<LogPlace>,
        /// Since when.
        since: Timestamp,
        /// Whether it just came.
        is_new: bool,
        /// The ids that it is kept under.
        ids: ReceivedIds,
    },
    /// It is not accepted.
    Rejected(Rejection),
}

/// The numbers that a store gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptNumbers {
    /// The positions of [`AcceptChanges::messages`].
    pub seqs: Vec<u64>,
    /// The places of [`AcceptChanges::events`] in the log.
    pub entries: Vec<LogPlace>,
}

impl PlannedOutcome {
    /// The outcome with its numbers; `withdrawn` is what the message revoked.
    pub fn number(
        self,
        numbers: &AcceptNumbers,
        withdrawn: Option<RevocationResult>,
    ) -> AcceptOutcome {
        let entry = |place: PlannedPlace<LogPlace>| place.number(&numbers.entries);
        match self {
            Self::Accepted {
                message,
                entry: planned,
                ids,
            } => AcceptOutcome::Accepted {
                seq: PlannedPlace::New(message).number(&numbers.seqs),
                entry: entry(PlannedPlace::New(planned)),
                ids,
                withdrawn: withdrawn.map(Box::new),
            },
            Self::Known {
                message,
                entry: planned,
                since,
                ids,
            } => AcceptOutcome::Known {
                seq: message.number(&numbers.seqs),
                entry: entry(planned),
                since,
                ids,
            },
            Self::Held {
                entry: planned,
                since,
                is_new,
                ids,
            } => AcceptOutcome::Held {
                entry: entry(planned),
                since,
                is_new,
                ids,
            },
            Self::Rejected(rejection) => AcceptOutcome::Rejected(rejection),
        }
    }
}

/// What to write to accept a batch, in this order where the order matters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcceptChanges<'b> {
    /// A kept message gets the id that was generated for it.
    pub displaced: Option<DisplacedMessage>,
    /// A message that is held gets the id that was generated for it.
    pub displaced_held: Option<DisplacedMessage>,
    /// Messages that are accepted.
    pub messages: Vec<NewMessage<'b>>,
    /// Messages that wait for a person.
    pub held: Vec<NewMessage<'b>>,
    /// Messages of which more is known now.
    pub improved: Vec<ImprovedMessage<'b>>,
    /// Kept messages that get an entry in the log, with its place in `events`.
    pub logged: Vec<(u64, usize)>,
    /// Deliveries that go on, because their recipients say so.
    pub reported: Vec<ReportedDelivery>,
    /// Polls that have to be counted again, with the message that is the reason, by its place in `messages`.
    pub counted: Vec<(PlannedPlace, usize)>,
    /// Consents to put on record, in place of those with the same name.
    pub grants: Vec<Grant>,
    /// Entries of the log, in their order.
    pub events: Vec<PlannedEvent<'b>>,
}

/// A message that gives its id to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplacedMessage {
    /// Its position.
    pub seq: u64,
    /// The id that it gets.
    pub id: String,
}

/// A message that is accepted or held, with what the next ones are judged by. One that is held has no deliveries, closes no
/// conversation and hands none over: that comes when it is approved.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage<'b> {
    /// The message.
    pub admission: &'b Admission,
    /// The id that it is kept under.
    pub id: &'b str,
    /// Whether that is the id that its envelope carries.
    pub is_carried: bool,
    /// The thread that it gets if it names none.
    pub generated_thread: String,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// The place of its entry in [`AcceptChanges::events`].
    pub entry: usize,
    /// The recipients, each party once, and the way of delivery.
    pub deliveries: Vec<(&'b str, Handler)>,
    /// The attachments that it refers to, and whether that grants access to them.
    pub blobs: Vec<(Digest, bool)>,
    /// The consents that it is kept under.
    pub under: Vec<String>,
    /// The conversation that it closes.
    pub closes: Option<ConversationId>,
    /// The conversation that it hands over, and to whom.
    pub hands_over: Option<(ConversationId, &'b str)>,
}

impl<'b> NewMessage<'b> {
    /// The record of the message.
    pub fn arrival(&self) -> &'b Arrival {
        &self.admission.arrival
    }

    /// Its thread.
    pub fn thread(&self) -> &str {
        let named = self.admission.arrival.thread.as_deref();
        named.unwrap_or(&self.generated_thread)
    }

    /// The session by which others find its thread.
    pub fn session(&self) -> Option<&'b str> {
        let arrival = self.arrival();
        let session = arrival.session.as_deref();
        session.filter(|_| arrival.thread.is_none())
    }

    /// When it can't be approved any more, if it is held.
    pub fn ends(&self) -> Option<Timestamp> {
        let ends = [self.expires, self.admission.answer_by];
        ends.into_iter().flatten().min()
    }

    /// Whether it is a poll.
    pub fn is_poll(&self) -> bool {
        self.arrival().meaning == Some(Intent::Poll)
    }
}

/// A message of which more is known now.
#[derive(Clone, Debug, PartialEq)]
pub struct ImprovedMessage<'b> {
    /// The message.
    pub message: PlannedPlace,
    /// Its verdict, with the text that shows it.
    pub arrival: &'b Arrival,
    /// The place of its new entry in [`AcceptChanges::events`], if the log has the message.
    pub entry: Option<usize>,
}

/// A delivery that its recipient reports about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedDelivery {
    /// The message.
    pub message: PlannedPlace,
    /// The party.
    pub party: String,
    /// The state that it gets.
    pub state: DeliveryState,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent<'b> {
    /// The event.
    pub event: Event<'b>,
    /// The message whose text it took.
    pub takes: Option<PlannedPlace>,
}
