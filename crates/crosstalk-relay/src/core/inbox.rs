//! Inboxes: their messages; which of them are read; readers that wait for the next message.

use super::Relay;
use super::signal::LOOK_AGAIN;
use crosstalk_protocol::nearest_address;
use crosstalk_protocol::poll::is_correction;
use crosstalk_protocol::relay::port::{Cursor, HandedOut, InboxEntry, InboxQuery};
use crosstalk_protocol::relay::{Delivery, DeliveryState, Handler, Pattern, Peer};
use crosstalk_protocol::store::{Record, StoreError, party};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How many inboxes are remembered. With more, some look as if they were not read until something was handed out there.
const MAX_INBOXES: usize = 10_000;

/// The inboxes that were read since the start, by the form in which equal parties are equal.
#[derive(Default)]
pub(super) struct ReadInboxes {
    read: Mutex<HashMap<String, String>>,
}

impl ReadInboxes {
    fn note(&self, address: &str) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let key = party(address);
        if read.len() < MAX_INBOXES || read.contains_key(&key) {
            read.insert(key, address.to_owned());
        }
    }

    fn has(&self, address: &str) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.contains_key(&party(address))
    }

    fn all(&self) -> Vec<String> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.values().cloned().collect()
    }
}

impl Relay {
    /// Notes that an address reads its inbox. Others who look into it do not count.
    pub(crate) fn note_reader(&self, peer: &Peer, address: &str) {
        let rules = self.rules();
        let address = rules.routes.named(address);
        if peer.speaks_for(address) {
            self.shared.inboxes.note(address);
        }
    }

    /// Whether an address has read its inbox since the start.
    pub(crate) fn has_reader(&self, address: &str) -> bool {
        self.shared.inboxes.has(address)
    }

    /// Whether a message waits in an inbox that was never read.
    pub(crate) async fn is_never_read(
        &self,
        record: &Record,
        delivery: &Delivery,
    ) -> Result<bool, StoreError> {
        if delivery.by != Handler::Inbox || delivery.state != DeliveryState::Queued {
            return Ok(false);
        }
        // A correction is addressed to the electorate of a poll, which reads no inbox.
        if is_correction(&record.document()) {
            return Ok(false);
        }
        let to = delivery.to.as_str();
        if self.shared.inboxes.has(to) {
            return Ok(false);
        }
        let names = [to, record.receiver.as_str()];
        Ok(!self.store().was_handed_out(to, &names).await?)
    }

    /// The address that a caller may have mistyped. Only among those that this caller knows of: the directory,
    /// which every credential sees, and what the caller may read for.
    pub(crate) fn similar_address(&self, peer: &Peer, address: &str) -> Option<String> {
        let rules = self.rules();
        let exact = |p: Pattern| p.is_exact().then(|| p.as_str().to_owned());
        let config = self.config();
        let routes = config.routes.iter().filter_map(|r| exact(r.pattern()?));
        let own = self.shared.inboxes.all().into_iter().chain(routes);
        let own = own.filter(|a| rules.lets_read(peer, a));
        let known: Vec<String> = rules
            .directory
            .agents()
            .map(|a| a.address)
            .chain(own)
            .collect();
        nearest_address(address, known.iter().map(String::as_str)).map(str::to_owned)
    }

    /// The messages that an address has not acknowledged, the oldest first.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn inbox(
        &self,
        address: &str,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Vec<InboxEntry>, StoreError> {
        let query = InboxQuery {
            address: self.rules().routes.named(address).to_owned(),
            after: after.cloned(),
            limit,
        };
        self.store().inbox(query).await
    }

    /// What an address has got after a position; if nothing, waits for the next message until a time.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn next(
        &self,
        address: &str,
        after: Option<&Cursor>,
        most: usize,
        until: Instant,
    ) -> Result<Vec<InboxEntry>, StoreError> {
        let address = self.rules().routes.named(address).to_owned();
        let mut watch = self.watch_inbox(&address);
        loop {
            let entries = self.inbox(&address, after, most).await?;
            let left = until.saturating_duration_since(Instant::now());
            if !entries.is_empty() || left.is_zero() || self.is_stopping() {
                return Ok(entries);
            }
            watch.changed(left).await;
        }
    }

    /// Notices from now on when an address gets a message.
    pub(crate) fn watch_inbox(&self, address: &str) -> InboxWatch {
        let rules = self.rules();
        let inboxes = &self.shared.signals.inboxes;
        InboxWatch(inboxes.watch(rules.routes.named(address)))
    }

    /// Records that messages were handed out to an address. No caller waits for it: if it is lost, they are handed out again.
    pub fn handed_out(&self, address: &str, ids: Vec<String>) {
        self.store().hand_out(HandedOut {
            address: address.to_owned(),
            ids,
            at: self.now(),
        });
    }
}

/// How many signals there are; addresses share them.
const SIGNALS: usize = 256;

/// Notices messages for an address.
pub(crate) struct InboxWatch(watch::Receiver<()>);

impl InboxWatch {
    /// Returns when a message may have come since this was made or last returned, when it is time to look, or after `within`.
    pub(crate) async fn changed(&mut self, within: Duration) {
        // The notifier lives as long as the relay.
        let _ = tokio::time::timeout(within.min(LOOK_AGAIN), self.0.changed()).await;
    }
}

/// Wakes readers that wait for a message. Addresses share signals: a reader that is woken looks whether it was meant.
pub(super) struct InboxNotifier {
    signals: Vec<watch::Sender<()>>,
    /// The signal of the last place.
    last: watch::Sender<()>,
    hasher: RandomState,
}

impl Default for InboxNotifier {
    fn default() -> Self {
        Self {
            signals: (1..SIGNALS).map(|_| watch::Sender::default()).collect(),
            last: watch::Sender::default(),
            hasher: RandomState::new(),
        }
    }
}

impl InboxNotifier {
    fn signal_of(&self, address: &str) -> &watch::Sender<()> {
        let hash = self.hasher.hash_one(party(address));
        let place = usize::try_from(hash % (SIGNALS as u64)).unwrap_or(0);
        self.signals.get(place).unwrap_or(&self.last)
    }

    fn watch(&self, address: &str) -> watch::Receiver<()> {
        self.signal_of(address).subscribe()
    }

    /// Wakes the readers of an address.
    pub(super) fn notify(&self, address: &str) {
        self.signal_of(address).send_replace(());
    }

    /// Wakes all readers.
    pub(super) fn notify_all(&self) {
        for signal in self.signals.iter().chain([&self.last]) {
            signal.send_replace(());
        }
    }
}
