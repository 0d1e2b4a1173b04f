//! The events of the store: they wake whoever waits for something, and are counted. An event may be lost: everybody who waits
//! for one looks into the store by itself from time to time.

use super::CommandLine;
use super::answer::Answers;
use super::inbox::InboxNotifier;
use super::poll::PollSignals;
use crate::metrics::Metrics;
use crosstalk_envelope::Intent;
use crosstalk_protocol::relay::Recipient;
use crosstalk_protocol::relay::port::{Arrived, IndexProgress, StoreEvent, StoreEvents, StoreStop};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How long somebody waits for an event of the store before looking into it: other processes may have written there, and events
/// may be lost.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What the events of the store change. It is there before the store is.
pub(super) struct Signals {
    pub(super) metrics: Metrics,
    pub(super) inboxes: InboxNotifier,
    pub(super) answers: Answers,
    pub(super) polls: PollSignals,
    /// There may be work for handlers.
    pub(super) work: Notify,
    pub(super) indexed: watch::Sender<IndexProgress>,
    /// The last message that can be searched for.
    pub(super) searchable: watch::Sender<u64>,
    /// Why nothing is written any more, once that is so.
    pub(super) stopped: watch::Sender<Option<StoreStop>>,
    command: CommandLine,
}

impl Signals {
    pub(super) fn new(command: CommandLine) -> Self {
        Self {
            metrics: Metrics::default(),
            inboxes: InboxNotifier::default(),
            answers: Answers::default(),
            polls: PollSignals::default(),
            work: Notify::new(),
            indexed: watch::Sender::default(),
            searchable: watch::Sender::default(),
            stopped: watch::Sender::default(),
            command,
        }
    }

    /// A message was accepted: readers and senders that wait for it are woken.
    fn arrived(&self, arrived: &Arrived<'_>) {
        Metrics::count(&self.metrics.accepted);
        for Recipient { address, .. } in arrived.recipients {
            self.inboxes.notify(address);
        }
        self.polls.came(arrived);
        // An ACK says that the question came; the answer follows.
        let is_reply = |meaning: Intent| meaning.answers() && meaning != Intent::Ack;
        if arrived.meaning.is_some_and(is_reply) {
            self.answers.came(arrived);
        }
    }

    fn indexed(&self, progress: IndexProgress) {
        let metrics = &self.metrics;
        let filed = u64::try_from(progress.filed).unwrap_or(0);
        metrics.indexed.fetch_add(filed, Ordering::Relaxed);
        metrics.backlog.store(progress.left, Ordering::Relaxed);
        let before = metrics
            .quarantined
            .swap(progress.quarantined, Ordering::Relaxed);
        if before < progress.quarantined {
            tracing::error!(
                quarantined = progress.quarantined,
                "messages can't be indexed and are quarantined; `{}` lists them",
                (self.command)("fsck")
            );
        }
        self.indexed.send_replace(progress);
        if progress.filed > 0 {
            self.work.notify_one();
        }
    }

    fn stopped(&self, why: StoreStop) {
        if let StoreStop::Failed(error) = &why {
            tracing::error!(reason = %error, "the store can't be relied on any more");
        }
        self.stopped.send_replace(Some(why));
        self.inboxes.notify_all();
    }
}

impl StoreEvents for Signals {
    fn notify(&self, event: StoreEvent<'_>) {
        match event {
            StoreEvent::Arrived(arrived) => self.arrived(&arrived),
            StoreEvent::Batch => Metrics::count(&self.metrics.batches),
            StoreEvent::Work => self.work.notify_one(),
            StoreEvent::Indexed(progress) => self.indexed(progress),
            StoreEvent::Searchable(through) => drop(self.searchable.send_replace(through)),
            StoreEvent::Interrupted(count) => {
                tracing::info!(count, "interrupted deliveries are tried again");
            }
            StoreEvent::Delayed { what, error } => {
                tracing::warn!(reason = %error, "{what} has to wait");
            }
            StoreEvent::Stopped(why) => self.stopped(why),
        }
    }
}
