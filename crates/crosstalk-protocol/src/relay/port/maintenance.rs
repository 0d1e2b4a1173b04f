//! Work that a relay does from time to time: polls, notices, deadlines, erasure; and what it measures.

use super::StoreFuture;
use crate::relay::delivery::{Handler, Quarantined};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;

/// Polls that have to be counted.
pub trait PollQueue {
    /// Polls that have to be counted, at most so many: something came to them since they were counted, or they have
    /// ended. One without an end of its own ends `within` so many milliseconds.
    fn due_polls(
        &self,
        now: Timestamp,
        within: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<DuePoll>>;

    /// Records the state of a poll. Ballots that came after it was due remain to be counted.
    fn count_poll(&self, poll: DuePoll, state: PollState) -> StoreFuture<'_, ()>;
}

/// Keeps the store in order.
pub trait Maintenance {
    /// When something has to be done next. A poll without an end of its own ends `poll_within` so many milliseconds.
    fn next_times(&self, poll_within: Option<i64>) -> StoreFuture<'_, NextTimes>;

    /// Does a part of a task. Where several processes share a store, one of them does a task at a time; for the others there
    /// is nothing to do.
    fn maintain(&self, task: MaintenanceTask) -> StoreFuture<'_, MaintenanceResult>;

    /// The notices that the relay has to send, the oldest first: a number and a text each. The relay sends each until it is
    /// dropped, again after a crash. After a REVOKE that is everything of
    /// [`report::revocation_notices`](crate::relay::report::revocation_notices).
    fn notices(&self, limit: usize) -> StoreFuture<'_, Vec<(u64, String)>>;

    /// Removes notices that were sent.
    fn drop_notices(&self, sent: Vec<u64>) -> StoreFuture<'_, ()>;

    /// What waits, and how large the store is, for monitoring. It counts up to [`MAX_COUNTED`] of each kind,
    /// so that it costs little however much waits.
    fn gauges(&self) -> StoreFuture<'_, StoreGauges>;

    /// Whether the store answered lately. It says so at once: nothing is waited for. A store in the process itself always does.
    fn is_reachable(&self) -> bool {
        true
    }

    /// Messages that were accepted and could not be indexed, at most so many, in the order in which they came.
    fn quarantine(&self, limit: usize) -> StoreFuture<'_, Vec<Quarantined>>;

    /// Indexes messages again that could not be indexed. How many are indexed now.
    fn retry_quarantine(&self) -> StoreFuture<'_, u64>;

    /// Stops. Accepted messages, which are durable already, are indexed for a few seconds more. The store is closed when
    /// this is done.
    fn stop(&self) -> StoreFuture<'_, ()>;
}

/// When something has to be done next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextTimes {
    /// When the next delivery of an active handler is due.
    pub delivery: Option<Timestamp>,
    /// When the next question is overdue; one that was settled by other than an answer may be among them.
    pub deadline: Option<Timestamp>,
    /// When the consent or the deadline of the next held message ends.
    pub lapse: Option<Timestamp>,
    /// When the next open poll ends.
    pub poll_end: Option<Timestamp>,
}

/// A periodic task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceTask {
    /// Settles questions whose time has passed without an answer, after everything is indexed that was accepted before: a
    /// notice to each sender ([`report::unanswered`](crate::relay::report::unanswered)) is enqueued. Counts the notices.
    SettleOverdue {
        /// The time.
        now: Timestamp,
        /// How many questions at most.
        limit: usize,
    },
    /// Erases messages that are too old or have expired, as far as they are indexed: text and everything derived from it. The
    /// id and the digest stay, so that the same message does not come again as a new one. Counts the messages.
    Erase(Retention),
    /// Forgets attachments that came before a time and that no message refers to; their bytes are the caller's to remove.
    ForgetBlobs {
        /// The time.
        before: Timestamp,
        /// How many at most.
        limit: usize,
    },
    /// Takes what is left of erased texts out of the files of the store, as far as nobody reads older states.
    Scrub,
}

/// The result of a part of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceResult {
    /// How many were dealt with.
    pub count: u64,
    /// Whether there is more to do.
    pub more: bool,
    /// The attachments that were forgotten.
    pub blobs: Vec<Digest>,
}

/// A poll that has to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuePoll {
    /// Its id.
    pub id: String,
    /// The place of the last message to it that was not counted.
    pub touched: Option<u64>,
}

/// How a poll stands after it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollState {
    /// It is open, until this time if it ends by itself.
    Open(Option<Timestamp>),
    /// It was closed: answers before this time counted.
    Closed(Timestamp),
    /// This relay does not count it.
    Elsewhere,
}

/// How many of one kind [`Maintenance::gauges`] counts at most.
pub const MAX_COUNTED: u64 = 100_000;

/// A queue: how many wait in it, and since when the oldest does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// How many wait, up to [`MAX_COUNTED`].
    pub count: u64,
    /// Since when the oldest waits.
    pub oldest: Option<Timestamp>,
}

/// The queues in the store of a relay, and the size of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreGauges {
    /// Deliveries that are queued, for each handler but the inbox.
    pub deliveries: Vec<(Handler, QueueDepth)>,
    /// Messages that wait for a person's decision.
    pub held: QueueDepth,
    /// Dead letters, up to [`MAX_COUNTED`].
    pub dead_letters: u64,
    /// The size of the files of the store.
    pub bytes: u64,
}

/// Which messages are too old to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Messages that came before this time; none if nothing is said.
    pub before: Option<Timestamp>,
    /// Messages whose `Expires` is not after this time.
    pub now: Timestamp,
    /// Sensitive messages that may not be kept for long: those that came before this time and that everybody has.
    pub brief_before: Option<Timestamp>,
    /// How many at most.
    pub limit: usize,
}
