//! What came before an ESCALATE or a HANDOFF, for who has to go on with it.

use super::sight::Sight;
use crosstalk_protocol::relay::RelayStore;
use crosstalk_protocol::store::{Record, StoreError};
use std::collections::{HashMap, VecDeque};

/// How many messages a history has at most, and how much text.
const MESSAGES: usize = 64;
const BYTES: usize = 1 << 20;
/// How many messages are looked at in one go.
const PORTION: usize = 16;
/// How many threads are followed for one answer.
const TRAILS: usize = 16;

/// Threads, as far as those who passed them on have a part in them. An inbox goes from the oldest to the newest, so
/// that no thread is read from its beginning more than once for each of them.
#[derive(Default)]
pub(super) struct Trails(HashMap<(String, String), Trail>);

/// The newest messages before a place.
#[derive(Default)]
struct Trail {
    after: Option<u64>,
    records: VecDeque<Record>,
    bytes: usize,
}

impl Trails {
    /// Whether no more threads should be followed.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= TRAILS
    }

    /// The thread before an ESCALATE or a HANDOFF, the oldest first.
    pub(super) fn before(
        &mut self,
        record: &Record,
        store: &dyn RelayStore,
        sight: &Sight,
    ) -> Result<Vec<Record>, StoreError> {
        let key = (record.thread.clone(), record.sender.clone());
        if self.is_full() && !self.0.contains_key(&key) {
            self.0.clear();
        }
        let trail = self.0.entry(key).or_default();
        if trail.after >= Some(record.seq) {
            *trail = Trail::default();
        }
        trail.follow(record, store, sight)?;
        Ok(trail.records.iter().cloned().collect())
    }
}

impl Trail {
    fn follow(
        &mut self,
        record: &Record,
        store: &dyn RelayStore,
        sight: &Sight,
    ) -> Result<(), StoreError> {
        loop {
            let listing = store.messages(&record.thread, self.after, PORTION)?;
            let more = listing.more && !listing.items.is_empty();
            for earlier in listing.items {
                if earlier.seq >= record.seq {
                    return Ok(());
                }
                self.after = Some(earlier.seq);
                if sight.has_part(store, &record.sender, &earlier)? {
                    self.add(earlier);
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn add(&mut self, record: Record) {
        self.bytes += record.text.len();
        self.records.push_back(record);
        while self.records.len() > MESSAGES || self.bytes > BYTES {
            let Some(oldest) = self.records.pop_front() else {
                return;
            };
            self.bytes -= oldest.text.len();
        }
    }
}
