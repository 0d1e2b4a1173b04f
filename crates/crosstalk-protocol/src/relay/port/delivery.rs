//! The queue of deliveries that handlers and couriers carry out.

use super::StoreFuture;
use super::mailbox::InboxEntry;
use crate::relay::admit::RelayRules;
use crate::relay::delivery::{Attempt, Delivery, DeliveryState, Handler};
use crate::relay::peer::Peer;
use crate::store::Record;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::name::same_name;
use crosstalk_envelope::registry::Priority;
use std::sync::Arc;
use std::time::Duration;

/// Deliveries, and the leases under which they are carried out. Leases go by the clock of the store.
pub trait DeliveryQueue {
    /// Leases queued deliveries of active handlers whose time has come, the most urgent first, then those that are due
    /// longest, then in the order in which they came. Nobody else gets one of them before the lease ends.
    fn lease(&self, duration: Duration, limit: usize) -> StoreFuture<'_, Vec<DueDelivery>>;

    /// The delivery and the message of a lease, to be handed out now: nothing if the lease does not hold any more, because
    /// the delivery was cancelled, its consent was revoked, or somebody else leased it.
    fn leased(&self, lease: &Lease) -> StoreFuture<'_, Option<LeasedDelivery>>;

    /// Lets leases end later. Those that somebody else holds by now, or that are over, stay as they are. How many were renewed.
    fn renew(&self, leases: Vec<Lease>, duration: Duration) -> StoreFuture<'_, u64>;

    /// Gives leased deliveries back, to be leased again after a time; that counts as no attempt. Those that somebody else
    /// holds by now, or that are over, stay as they are. How many were given back.
    fn release(&self, leases: Vec<Lease>, after: Duration) -> StoreFuture<'_, u64>;

    /// Records the result of an attempt. False if the delivery is not queued any more, or is leased otherwise: nothing
    /// changes then.
    fn finish(&self, result: AttemptResult) -> StoreFuture<'_, bool>;

    /// The messages that wait for a caller to carry them, the most urgent first, then the oldest.
    fn courier(&self, query: CourierQuery) -> StoreFuture<'_, Vec<InboxEntry>>;

    /// The deliveries of messages: a list for each id, in the order of the ids.
    fn deliveries(&self, ids: Vec<String>) -> StoreFuture<'_, Vec<Vec<Delivery>>>;

    /// Dead letters, the latest first.
    fn dead_letters(&self, limit: usize) -> StoreFuture<'_, Vec<DeadLetter>>;

    /// Queues the deliveries of a message that are dead letters again. How many.
    fn requeue(&self, id: &str, at: Timestamp) -> StoreFuture<'_, u64>;
}

/// A lease of a delivery: whoever holds it may end or renew it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The id of the message.
    pub id: String,
    /// To whom.
    pub to: String,
    /// Since when it is leased: the time tells the lease from the ones before.
    pub at: Timestamp,
}

impl Lease {
    /// Whether a delivery of its message is the one that is leased, and still under this lease.
    pub fn holds(&self, delivery: &Delivery) -> bool {
        delivery.state == DeliveryState::Queued
            && delivery.leased_at == Some(self.at)
            && same_name(&delivery.to, &self.to)
    }
}

/// A delivery under a lease that holds.
#[derive(Clone, Debug, PartialEq)]
pub struct LeasedDelivery {
    /// The delivery.
    pub delivery: Delivery,
    /// The message, unless it is gone.
    pub record: Option<Record>,
}

/// The result of an attempt to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptResult {
    /// The id of the message.
    pub id: String,
    /// To whom.
    pub to: String,
    /// The lease that it was made under; a person who carries a message has none.
    pub leased_at: Option<Timestamp>,
    /// The outcome.
    pub attempt: Attempt,
    /// When.
    pub at: Timestamp,
    /// Notices that the relay has to send because of it. They are enqueued if the result counts.
    pub notices: Vec<String>,
}

/// Which messages a caller may carry: [`RelayRules::offers_errand`] decides.
#[derive(Clone, Debug)]
pub struct CourierQuery {
    /// The rules of the relay.
    pub rules: Arc<RelayRules>,
    /// The caller.
    pub caller: Arc<Peer>,
    /// How many at most.
    pub limit: usize,
}

/// A delivery that a handler has to carry out. Its message is read under the lease when it is its turn
/// ([`DeliveryQueue::leased`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// The lease: which message, and to whom.
    pub lease: Lease,
    /// How.
    pub by: Handler,
    /// How often it was tried before.
    pub attempts: u32,
    /// How urgent it is.
    pub priority: Priority,
    /// The position of the message.
    pub seq: u64,
}

/// A message that waits for a person to carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    /// From whom.
    pub sender: String,
    /// Where to.
    pub to: String,
    /// The sender of the message that it answers.
    pub asker: Option<String>,
    /// Whether that message answers one that was carried to the same destination: the chat there asked back.
    pub asker_is_carried: bool,
}

/// A delivery that is a dead letter.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// The message.
    pub id: String,
    /// From whom.
    pub from: String,
    /// The delivery.
    pub delivery: Delivery,
}
