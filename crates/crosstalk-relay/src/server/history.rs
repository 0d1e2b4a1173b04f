//! The history that an ESCALATE or a HANDOFF brings to its recipient.

use crate::core::access::{Access, Handover};
use crosstalk_protocol::relay::port::{RecordQuery, RelayStore};
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

/// The newest messages before a place: where they are, and how long. Their texts are read when they are handed out.
#[derive(Default)]
struct Trail {
    after: Option<u64>,
    places: VecDeque<(u64, usize)>,
    bytes: usize,
}

/// The messages before a message.
pub(super) struct Before {
    /// The messages that go along, the oldest first.
    pub(super) records: Vec<Record>,
    /// How many do not.
    pub(super) withheld: usize,
}

impl Trails {
    /// Whether no more threads should be followed.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= TRAILS
    }

    /// The thread before an ESCALATE or a HANDOFF.
    pub(super) async fn before(
        &mut self,
        record: &Record,
        store: &dyn RelayStore,
        access: &Access,
    ) -> Result<Before, StoreError> {
        let key = (record.thread.clone(), record.sender.clone());
        if self.is_full() && !self.0.contains_key(&key) {
            self.0.clear();
        }
        let trail = self.0.entry(key).or_default();
        if trail.after >= Some(record.seq) {
            *trail = Trail::default();
        }
        trail.follow(record, store, access).await?;
        let places = trail.places.iter().map(|(place, _)| *place).collect();
        let handover = Handover::of(store, record).await?;
        let mut before = Before {
            records: Vec::new(),
            withheld: 0,
        };
        for earlier in store.records(RecordQuery::Seqs(places)).await? {
            match handover.brings(store, access.rules(), &earlier).await? {
                true => before.records.push(earlier),
                false => before.withheld += 1,
            }
        }
        Ok(before)
    }
}

impl Trail {
    async fn follow(
        &mut self,
        record: &Record,
        store: &dyn RelayStore,
        access: &Access,
    ) -> Result<(), StoreError> {
        loop {
            let page = store.messages(&record.thread, self.after, PORTION);
            let listing = page.await?;
            let more = listing.more && !listing.items.is_empty();
            let ids = listing.items.iter().map(|r| r.id.clone()).collect();
            let deliveries = store.deliveries(ids).await?;
            for (earlier, deliveries) in listing.items.iter().zip(deliveries) {
                if earlier.seq >= record.seq {
                    return Ok(());
                }
                self.after = Some(earlier.seq);
                if access.took_part(&record.sender, earlier, deliveries) {
                    self.add(earlier);
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn add(&mut self, record: &Record) {
        self.bytes += record.text.len();
        self.places.push_back((record.seq, record.text.len()));
        while self.places.len() > MESSAGES || self.bytes > BYTES {
            let Some((_, bytes)) = self.places.pop_front() else {
                return;
            };
            self.bytes -= bytes;
        }
    }
}
