//! What was taken and is not filed yet: for whom, and where it is in the log.

use crosstalk_protocol::relay::RelayStore;
use crosstalk_protocol::store::{StoreError, party};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many messages are looked at in one go at the start.
const PORTION: usize = 512;

/// The places of messages that no table lists yet, by recipient.
#[derive(Debug, Default)]
pub(super) struct Pending {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    order: VecDeque<(u64, Arc<str>)>,
    of: HashMap<Arc<str>, VecDeque<u64>>,
}

impl Pending {
    /// What is left in a store from an earlier time.
    pub(super) fn left(store: &dyn RelayStore) -> Result<Self, StoreError> {
        let (pending, mut after) = (Self::default(), 0);
        loop {
            let part = store.unfiled(after, PORTION)?;
            let Some((last, _)) = part.last() else {
                return Ok(pending);
            };
            after = *last;
            let places = part
                .iter()
                .flat_map(|(seq, to)| to.iter().map(|a| (*seq, a.as_str())));
            pending.add(places);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds messages, in the order of their places.
    pub(super) fn add<'a>(&self, taken: impl Iterator<Item = (u64, &'a str)>) {
        let mut inner = self.lock();
        for (seq, address) in taken {
            let key = party(address);
            let key = match inner.of.get_key_value(key.as_str()) {
                Some((key, _)) => Arc::clone(key),
                None => Arc::from(key),
            };
            inner.order.push_back((seq, Arc::clone(&key)));
            inner.of.entry(key).or_default().push_back(seq);
        }
    }

    /// Forgets what is filed.
    pub(super) fn filed(&self, through: u64) {
        let mut inner = self.lock();
        while let Some((seq, key)) = inner.order.pop_front() {
            if seq > through {
                inner.order.push_front((seq, key));
                break;
            }
            let mut is_empty = false;
            if let Some(places) = inner.of.get_mut(&key) {
                places.pop_front();
                is_empty = places.is_empty();
            }
            if is_empty {
                inner.of.remove(&key);
            }
        }
        if inner.order.is_empty() {
            inner.order.shrink_to(1024);
            inner.of.shrink_to(1024);
        }
    }

    /// The places of what an address got after a place, the oldest first.
    pub(super) fn of(&self, address: &str, after: u64, most: usize) -> Vec<u64> {
        let inner = self.lock();
        let places = inner.of.get(party(address).as_str());
        let places = places.into_iter().flatten().copied();
        places.filter(|seq| *seq > after).take(most).collect()
    }
}
