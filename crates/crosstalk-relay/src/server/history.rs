//! The history that an ESCALATE or a HANDOFF brings to its recipient.

use crate::core::access::{Access, Handover};
use crosstalk_protocol::relay::port::{RecordQuery, RelayStore};
use crosstalk_protocol::store::{Record, StoreError};
use std::collections::{HashMap, VecDeque};

/// How many messages a history has at most, and how much text.
const MESSAGES: usize = 64;
const BYTES: usize = 1 << 20;
/// How many messages are looked at in one go, and at most before an ESCALATE or a HANDOFF: its thread may be long, and its
/// sender may have no part in most of it.
const PORTION: usize = 16;
const LOOKED_AT: usize = 1024;
/// How many threads are followed for one answer.
const TRAILS: usize = 16;

/// Threads, as far as those who passed them on have a part in them. An inbox goes from the oldest to the newest, so
/// that of each of them no message is read more than once.
#[derive(Default)]
pub(super) struct Trails(HashMap<(String, String), Trail>);

/// The newest messages before a place, the oldest first. Their texts are read when they are handed out.
#[derive(Default)]
struct Trail {
    /// The place. It is no part of the trail.
    before: u64,
    steps: VecDeque<TrailStep>,
    bytes: usize,
    /// Whether there is no room for older ones.
    is_full: bool,
}

/// A message of a trail: where it is, how long its text is, and how many messages of the thread come after it and before the place.
#[derive(Clone, Copy)]
struct TrailStep {
    seq: u64,
    bytes: usize,
    later: usize,
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
        if trail.before > record.seq {
            *trail = Trail::default();
        }
        trail.follow(record, store, access).await?;
        let places = trail.steps.iter().map(|step| step.seq).collect();
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
    /// Goes on to a later place: back from there, until it meets what it has, or has enough.
    async fn follow(
        &mut self,
        record: &Record,
        store: &dyn RelayStore,
        access: &Access,
    ) -> Result<(), StoreError> {
        let (mut found, mut later) = (Self::default(), 0);
        found.before = record.seq;
        let mut before = record.seq;
        while before > self.before && !found.is_full && later < LOOKED_AT {
            let portion = store.messages_before(&record.thread, before, PORTION);
            let mut portion = portion.await?;
            before = portion.last().map_or(0, |oldest| oldest.seq);
            portion.retain(|earlier| earlier.seq >= self.before);
            let ids = portion.iter().map(|r| r.id.clone()).collect();
            let deliveries = store.deliveries(ids).await?;
            for (earlier, deliveries) in portion.iter().zip(deliveries) {
                if access.took_part(&record.sender, earlier, deliveries) {
                    let (seq, bytes) = (earlier.seq, earlier.text.len());
                    found.add(TrailStep { seq, bytes, later });
                }
                later += 1;
            }
        }
        for step in self.steps.iter().rev() {
            let later = step.later + later;
            found.add(TrailStep { later, ..*step });
        }
        *self = found;
        Ok(())
    }

    /// Adds the next older message, if there is room for it.
    fn add(&mut self, step: TrailStep) {
        self.is_full |= self.steps.len() >= MESSAGES
            || self.bytes + step.bytes > BYTES
            || step.later >= LOOKED_AT;
        if !self.is_full {
            self.steps.push_front(step);
            self.bytes += step.bytes;
        }
    }
}
