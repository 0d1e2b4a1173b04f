//! What a store reports to the relay, and what it is given when it is opened.

use crate::relay::admit::Admission;
use crate::relay::delivery::Recipient;
use crate::store::StoreError;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::Intent;
use std::fmt;
use std::sync::Arc;

/// What an adapter is given when it is opened.
#[derive(Clone)]
pub struct StoreContext {
    /// Where it reports events.
    pub events: Arc<dyn StoreEvents>,
    /// The clock of the store, for an adapter that has none of its own.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl fmt::Debug for StoreContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreContext").finish_non_exhaustive()
    }
}

/// Receives the events of a store. It must not wait for anything: the adapter may call it between two transactions.
pub trait StoreEvents: Send + Sync {
    /// Something happened.
    fn notify(&self, event: StoreEvent<'_>);
}

/// Something that happened in a store, in this process or in another one. An event may be lost.
#[derive(Clone, Debug)]
pub enum StoreEvent<'e> {
    /// A message was accepted, or approved by a person.
    Arrived(Arrived<'e>),
    /// Messages were accepted together, in one transaction.
    Batch,
    /// There may be work for handlers: deliveries, or messages whose time may end.
    Work,
    /// Messages wait for their index, or were indexed.
    Indexed(IndexProgress),
    /// Every message up to a number can be searched for.
    Searchable(u64),
    /// Deliveries that a relay had leased when it was killed are due again: so many.
    Interrupted(u64),
    /// Something has to wait for the disk, and nothing is lost.
    Delayed {
        /// The delayed work.
        what: &'static str,
        /// Why.
        error: &'e StoreError,
    },
    /// Nothing is written any more.
    Stopped(StoreStop),
}

/// A message that was accepted: everything that tells who waits for it.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'e> {
    /// Its number, for [`RecordQuery::Seqs`](super::RecordQuery::Seqs).
    pub seq: u64,
    /// The recipients.
    pub recipients: &'e [Recipient],
    /// Its sender, by the address that the name stands for.
    pub speaker: &'e str,
    /// Its receiver.
    pub receiver: &'e str,
    /// What it means.
    pub meaning: Option<Intent>,
    /// The message that it answers.
    pub answers: Option<&'e str>,
    /// The thread that it names.
    pub thread: Option<&'e str>,
}

impl<'e> Arrived<'e> {
    /// The event of a message that was accepted under a number.
    pub fn of(seq: u64, admission: &'e Admission) -> Self {
        let arrival = &admission.arrival;
        Self {
            seq,
            recipients: &admission.recipients,
            speaker: &admission.speaker,
            receiver: &arrival.receiver,
            meaning: arrival.meaning,
            answers: arrival.answered(),
            thread: arrival.thread.as_deref(),
        }
    }
}

/// Why nothing is written any more.
#[derive(Clone, Debug)]
pub enum StoreStop {
    /// It was told to.
    Told,
    /// The store can't be relied on.
    Failed(StoreError),
}

/// How far indexing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexProgress {
    /// The place of the last message that is indexed.
    pub through: u64,
    /// How many are not, at most; nothing is left exactly if this is 0.
    pub left: u64,
    /// How many were indexed by this call.
    pub filed: usize,
    /// How many messages could not be indexed and are kept apart.
    pub quarantined: u64,
}
