//! The port of a relay's store: asynchronous, with commands and answers as data.
//!
//! ```text
//! Relay ── commands, queries ──> RelayStore      every method is one transaction of the adapter
//!   ▲                                │
//!   └──────── StoreEvents ───────────┘           something came, was indexed, became searchable; the store stopped
//! ```
//!
//! A message takes two steps. [`Intake::accept`] accepts it: the message and its deliveries are durable, its sender gets an
//! answer, and its recipients can fetch it. The adapter then indexes it by itself: it derives threads and waits, exactly once,
//! and makes the words searchable some time later. Readers do not see whether a message is indexed: mailboxes, deliveries and
//! single messages are answered from both. What needs the index, such as the messages of a thread, is complete after
//! [`Intake::caught_up`].
//!
//! Several relay processes may share one store. So nothing here orders messages by their numbers, leases and what is due go by
//! the clock of the store, the result of an attempt counts only under the lease that it was made with, and
//! [`StoreEvents`] may be lost: a relay polls as well. A future does nothing before it is polled, and may be dropped at any
//! time; a command that was begun may be carried out all the same.

mod audit;
mod delivery;
mod event;
mod ledger;
mod mailbox;
mod maintenance;
mod registry;
mod view;

pub use audit::{
    AuditLog, JoinedChain, LogChain, LogHead, LogProof, LogRoot, LogWriter, NewLogEntry,
};
pub use delivery::{
    AttemptResult, CourierQuery, DeadLetter, DeliveryQueue, DueDelivery, Errand, Lease,
    LeasedDelivery,
};
pub use event::{Arrived, IndexProgress, StoreContext, StoreEvent, StoreEvents, StoreStop};
pub use ledger::{ConsentLedger, GrantQuery};
pub use mailbox::{
    Cursor, HandedOut, InboxEntry, InboxQuery, Mailbox, MailboxAction, MailboxChange, SettledNotice,
};
pub use maintenance::{
    DuePoll, MAX_COUNTED, Maintenance, MaintenanceResult, MaintenanceTask, NextTimes, PollQueue,
    PollState, QueueDepth, Retention, StoreGauges,
};
pub use registry::{
    BLOB_BYTES_LEAST, BLOB_PART_BYTES, BlobIndex, BlobPart, BlobQuery, BlobUse, PAIRED, Registry,
    RegistryChange, RegistrySnapshot, RegistryVersion, StoredPart, TokenRecord, Upload,
};
pub use view::{FilledSearch, MessageViews, RecordQuery, SearchQuery};

use super::accept::AcceptOutcome;
use super::admit::Admission;
use super::delivery::Delivery;
use super::hold::{HeldMessage, HoldDecision, Ruling};
use crate::consent::Grant;
use crate::store::{Record, StoreError};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use std::pin::Pin;

/// What a method of the port gives: an answer of the store, later.
pub type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// Everything that a relay keeps. An adapter implements the parts.
pub trait RelayStore:
    Intake
    + Holds
    + Mailbox
    + DeliveryQueue
    + MessageViews
    + ConsentLedger
    + AuditLog
    + Registry
    + BlobIndex
    + PollQueue
    + Maintenance
    + Send
    + Sync
{
}

impl<S> RelayStore for S where
    S: Intake
        + Holds
        + Mailbox
        + DeliveryQueue
        + MessageViews
        + ConsentLedger
        + AuditLog
        + Registry
        + BlobIndex
        + PollQueue
        + Maintenance
        + Send
        + Sync
{
}

/// Shortcuts for a single item.
impl dyn RelayStore + '_ {
    /// The message with an id, indexed or not.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn record(&self, id: &str) -> Result<Option<Record>, StoreError> {
        let ids = RecordQuery::Ids(vec![id.to_owned()]);
        Ok(self.records(ids).await?.pop())
    }

    /// The deliveries of a message.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn deliveries_of(&self, id: &str) -> Result<Vec<Delivery>, StoreError> {
        let of_each = self.deliveries(vec![id.to_owned()]).await?;
        Ok(of_each.into_iter().flatten().collect())
    }

    /// The message with an id that is or was held.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn held_message(&self, id: &str) -> Result<Option<HeldMessage>, StoreError> {
        Ok(self.held(HeldQuery::Id(id.to_owned())).await?.pop())
    }

    /// The consent with a name.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn grant(&self, name: &str) -> Result<Option<Grant>, StoreError> {
        let names = GrantQuery::Named(vec![name.to_owned()]);
        let mut named = self.grants(names).await?.into_iter();
        Ok(named.find(|grant| grant.id == name))
    }
}

/// Accepts messages.
pub trait Intake {
    /// Accepts a message: when the outcome is there, the message is durable, unless it was rejected. The adapter writes
    /// messages that come at the same time together.
    ///
    /// # Errors
    /// If the store can't be written. The message was not accepted then.
    fn accept(&self, admission: Box<Admission>) -> StoreFuture<'_, Acceptance>;

    /// Waits until every message is indexed that was accepted before this call, and everything is noted that
    /// [`Mailbox::hand_out`] was told before.
    fn caught_up(&self) -> StoreFuture<'_, ()>;
}

/// A message that was handed in, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Acceptance {
    /// The outcome.
    pub outcome: AcceptOutcome,
    /// The message.
    pub admission: Box<Admission>,
}

/// Messages that wait for the decision of a person. [`Intake::accept`] holds them.
pub trait Holds {
    /// Carries a decision out: in one transaction it is on record, and the message is accepted or the notice to its sender is
    /// enqueued.
    ///
    /// # Errors
    /// If the store can't be written. Nothing was decided then.
    fn decide(&self, decision: Box<HoldDecision>) -> StoreFuture<'_, Ruling>;

    /// Messages that are or were held.
    fn held(&self, query: HeldQuery) -> StoreFuture<'_, Vec<HeldMessage>>;
}

/// Which messages that are or were held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldQuery {
    /// Those that wait for a decision, the oldest first.
    Waiting {
        /// How many at most.
        limit: usize,
    },
    /// The one with an id, whatever was decided.
    Id(String),
    /// Those whose ids begin with a text, whatever was decided.
    Prefix {
        /// The text.
        prefix: String,
        /// How many at most.
        limit: usize,
    },
    /// The latest that wait and refer to an attachment so that it grants access.
    Referring {
        /// The attachment.
        digest: Digest,
        /// How many at most.
        limit: usize,
    },
    /// Those that wait though their consent or their deadline has ended.
    Lapsed {
        /// The time.
        now: Timestamp,
        /// How many at most.
        limit: usize,
    },
}
