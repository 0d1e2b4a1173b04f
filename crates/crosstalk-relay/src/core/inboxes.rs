//! Which inboxes somebody reads: the sender of a message to another one may have mistyped its address.

use super::Relay;
use crosstalk_protocol::nearest_address;
use crosstalk_protocol::relay::{Delivery, Handler, Pattern, Peer, RelayStore, State};
use crosstalk_protocol::store::{Record, StoreError, party};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

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

    /// Whether a message waits in an inbox that nobody has ever read.
    pub(crate) fn is_never_read(
        &self,
        store: &dyn RelayStore,
        record: &Record,
        delivery: &Delivery,
    ) -> Result<bool, StoreError> {
        if delivery.by != Handler::Inbox || delivery.state != State::Queued {
            return Ok(false);
        }
        let to = delivery.to.as_str();
        if self.shared.inboxes.has(to) || store.was_handed_out(to, to)? {
            return Ok(false);
        }
        Ok(!store.was_handed_out(to, &record.receiver)?)
    }

    /// The address that somebody may have meant by another one. Only among those that this caller knows of: the directory,
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
}
