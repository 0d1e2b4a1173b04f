//! Polls, deadlines, erasure, notices and gauges.

use super::{MemoryRelay, State};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::{Event, EventDetail, EventKind};
use crosstalk_protocol::relay::port::{
    DuePoll, MAX_COUNTED, Maintenance, MaintenanceResult, MaintenanceTask, NextTimes, PollQueue,
    PollState, QueueDepth, Retention, StoreFuture, StoreGauges,
};
use crosstalk_protocol::relay::{DeliveryState, Handler, HoldDecision, Quarantined, report};
use crosstalk_protocol::store::Wait;
use std::collections::BTreeSet;

/// A poll that has to be counted, or may have to be.
#[derive(Clone, Debug)]
pub(super) struct Poll {
    pub(super) thread: String,
    pub(super) at: Timestamp,
    pub(super) ends: Option<Timestamp>,
    /// The latest message that came to it since it was counted.
    pub(super) touched: Option<u64>,
    pub(super) closed: Option<Timestamp>,
}

impl Poll {
    /// When it ends, if it is open.
    fn end(&self, within: Option<i64>) -> Option<Timestamp> {
        let later = |within| Timestamp::from_millis(self.at.as_millis().saturating_add(within));
        let end = self.ends.or_else(|| within.map(later));
        end.filter(|_| self.closed.is_none())
    }
}

impl PollQueue for MemoryRelay {
    fn due_polls(
        &self,
        now: Timestamp,
        within: Option<i64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<DuePoll>> {
        self.with(move |state| {
            let mut due: Vec<((u8, i64, u64), DuePoll)> = Vec::new();
            for (seq, poll) in &state.polls {
                let is_over = poll.end(within).is_some_and(|end| end <= now);
                let order = match (poll.touched, poll.ends) {
                    (Some(touched), _) => (0, i64::try_from(touched).unwrap_or(i64::MAX)),
                    (None, Some(ends)) if is_over => (1, ends.as_millis()),
                    (None, None) if is_over => (2, poll.at.as_millis()),
                    (None, _) => continue,
                };
                let Some(message) = state.messages.get(seq) else {
                    continue;
                };
                let poll = DuePoll {
                    id: message.id().to_owned(),
                    touched: poll.touched,
                };
                due.push(((order.0, order.1, *seq), poll));
            }
            due.sort_by_key(|(order, _)| *order);
            due.into_iter().take(limit).map(|(_, poll)| poll).collect()
        })
    }

    fn count_poll(&self, poll: DuePoll, counted: PollState) -> StoreFuture<'_, ()> {
        self.with(move |state| {
            let Some(seq) = state.seq_of(&poll.id) else {
                return;
            };
            let Some(known) = state.polls.get_mut(&seq) else {
                return;
            };
            // A message that came while it was counted is counted the next time.
            known
                .touched
                .take_if(|touched| Some(*touched) == poll.touched);
            match counted {
                PollState::Open(ends) => known.ends = ends,
                PollState::Closed(at) => known.closed = Some(at),
                PollState::Elsewhere => {
                    state.polls.remove(&seq);
                }
            }
        })
    }
}

impl Maintenance for MemoryRelay {
    fn next_times(&self, poll_within: Option<i64>) -> StoreFuture<'_, NextTimes> {
        self.with(move |state| {
            let deliveries = state.messages.values().flat_map(|m| m.deliveries.values());
            let scheduled = deliveries.filter(|d| d.is_scheduled());
            NextTimes {
                delivery: scheduled.filter_map(|d| d.next_at).min(),
                deadline: state.expectations.values().min().copied(),
                lapse: state.held.values().filter_map(|h| h.ends).min(),
                poll_end: state
                    .polls
                    .values()
                    .filter_map(|p| p.end(poll_within))
                    .min(),
            }
        })
    }

    fn maintain(&self, task: MaintenanceTask) -> StoreFuture<'_, MaintenanceResult> {
        self.with(move |state| match task {
            MaintenanceTask::SettleOverdue { now, limit } => state.settle_overdue(now, limit),
            MaintenanceTask::Erase(retention) => state.erase(&retention),
            MaintenanceTask::ForgetBlobs { before, limit } => {
                let blobs = state.forget_blobs(before, limit);
                MaintenanceResult {
                    count: super::audit::number(blobs.len()),
                    more: blobs.len() >= limit,
                    blobs,
                }
            }
            // There are no files.
            MaintenanceTask::Scrub => MaintenanceResult::default(),
        })
    }

    fn notices(&self, limit: usize) -> StoreFuture<'_, Vec<(u64, String)>> {
        self.with(move |state| {
            let notices = state.notices.iter().take(limit);
            notices
                .map(|(number, text)| (*number, text.clone()))
                .collect()
        })
    }

    fn drop_notices(&self, sent: Vec<u64>) -> StoreFuture<'_, ()> {
        self.with(move |state| {
            for number in sent {
                state.notices.remove(&number);
            }
        })
    }

    fn gauges(&self) -> StoreFuture<'_, StoreGauges> {
        self.with(|state| state.gauges())
    }

    fn quarantine(&self, _: usize) -> StoreFuture<'_, Vec<Quarantined>> {
        // A message in memory can always be indexed.
        self.with(|_| Vec::new())
    }

    fn retry_quarantine(&self) -> StoreFuture<'_, u64> {
        self.with(|_| 0)
    }

    fn stop(&self) -> StoreFuture<'_, ()> {
        self.close()
    }
}

fn depth(since: impl Iterator<Item = Timestamp>) -> QueueDepth {
    let since: Vec<Timestamp> = since.collect();
    QueueDepth {
        count: super::audit::number(since.len()).min(MAX_COUNTED),
        oldest: since.into_iter().min(),
    }
}

impl State {
    fn gauges(&self) -> StoreGauges {
        let queued = |handler: Handler| {
            let deliveries = self.messages.values().flat_map(|m| m.deliveries.values());
            let queued = deliveries.filter(move |d| d.by == handler);
            let queued = queued.filter(|d| d.state == DeliveryState::Queued);
            depth(queued.map(|d| d.queued_at))
        };
        let handlers = Handler::ALL.into_iter().filter(|h| *h != Handler::Inbox);
        let held = self.held.values().filter(|h| h.message.is_waiting());
        let texts = self.messages.values().map(|m| m.stored.text.len());
        StoreGauges {
            deliveries: handlers.map(|h| (h, queued(h))).collect(),
            held: depth(held.map(|h| h.message.record.at)),
            dead_letters: super::audit::number(self.dead().len()).min(MAX_COUNTED),
            bytes: super::audit::number(texts.sum()),
        }
    }

    /// Settles questions whose time has passed.
    fn settle_overdue(&mut self, now: Timestamp, limit: usize) -> MaintenanceResult {
        let mut done = MaintenanceResult::default();
        let overdue = self.expectations.iter().filter(|(_, due)| **due <= now);
        let mut overdue: Vec<(Timestamp, u64)> = overdue.map(|(seq, due)| (*due, *seq)).collect();
        overdue.sort_unstable();
        done.more = overdue.len() > limit;
        for (due, seq) in overdue.into_iter().take(limit) {
            self.expectations.remove(&seq);
            let indexed = self.indexed.get(&seq);
            let waits = indexed.is_some_and(|m| m.wait != Wait::Nobody);
            let record = self.record(seq).filter(|_| waits);
            if let Some(text) = record.and_then(|record| report::unanswered(&record, due)) {
                self.enqueue_notices([text]);
                done.count += 1;
            }
        }
        done
    }

    /// Erases messages that are too old or have expired.
    fn erase(&mut self, what: &Retention) -> MaintenanceResult {
        let mut chosen = self.expired(what.now);
        let mut more = chosen.len() > what.limit;
        chosen.truncate(what.limit);
        for seq in &chosen {
            self.let_go(*seq);
        }
        if let Some(before) = what.brief_before {
            let room = what.limit.saturating_sub(chosen.len());
            chosen.extend(self.brief(before, what.now).into_iter().take(room));
            more |= chosen.len() >= what.limit;
        }
        if let Some(before) = what.before {
            if !more {
                let room = what.limit.saturating_sub(chosen.len());
                more = self.aged(before, room, &mut chosen);
            }
            self.lapse_old(before, what.now);
        }
        let chosen: BTreeSet<u64> = chosen.into_iter().collect();
        for seq in &chosen {
            let detail = EventDetail::default().with("why", "retention");
            let event = Event {
                detail: Some(detail),
                ..Event::new(EventKind::Erased, what.now)
            };
            self.append_about(*seq, Some(event));
            self.clear(*seq);
        }
        let chosen: Vec<u64> = chosen.into_iter().collect();
        self.erase_texts(&chosen);
        MaintenanceResult {
            count: super::audit::number(chosen.len()),
            more,
            ..MaintenanceResult::default()
        }
    }

    /// Messages whose time is over.
    fn expired(&self, now: Timestamp) -> Vec<u64> {
        let over = self.messages.iter();
        let over = over.filter(|(_, m)| m.expires.is_some_and(|end| end <= now));
        let mut over: Vec<_> = over.map(|(seq, m)| (m.expires, *seq)).collect();
        over.sort_unstable();
        over.into_iter().map(|(_, seq)| seq).collect()
    }

    /// Sensitive messages that came before a time, and that nobody is to get any more.
    fn brief(&self, before: Timestamp, now: Timestamp) -> Vec<u64> {
        let is_done = |state| matches!(state, DeliveryState::Acknowledged | DeliveryState::Failed);
        let chosen = self.messages.iter().filter(|(_, m)| {
            let mut grants = m.under.iter().filter_map(|id| self.grants.get(id));
            m.is_brief
                && m.stored.at < before
                && m.deliveries.values().all(|d| is_done(d.state))
                && !grants.any(|grant| grant.is_proved_by(m.id(), now))
        });
        let mut chosen: Vec<_> = chosen.map(|(seq, m)| (m.stored.at, *seq)).collect();
        chosen.sort_unstable();
        chosen.into_iter().map(|(_, seq)| seq).collect()
    }

    /// Messages that came before a time, in the order in which they came, up to the first that did not; whether there are
    /// more.
    fn aged(&mut self, before: Timestamp, room: usize, chosen: &mut Vec<u64>) -> bool {
        let mut found = 0;
        for (seq, message) in self.messages.range(self.retired.saturating_add(1)..) {
            if message.stored.at >= before {
                break;
            }
            if !message.is_gone() {
                if found == room {
                    return true;
                }
                chosen.push(*seq);
                found += 1;
            }
            self.retired = *seq;
        }
        false
    }

    /// Messages that were held before a time wait no longer.
    fn lapse_old(&mut self, before: Timestamp, now: Timestamp) {
        let waiting = self.held.iter().filter(|(_, h)| h.message.is_waiting());
        let old = waiting.filter(|(_, h)| h.message.record.at < before);
        let reason = HoldDecision::TOO_OLD;
        let old = old.map(|(seq, h)| (*seq, HoldDecision::lapse(&h.message, reason, now)));
        let old: Vec<(u64, HoldDecision)> = old.collect();
        for (seq, decision) in old {
            self.append(&decision.event(), None);
            self.settle(seq, decision.decided());
        }
    }

    /// Removes everything that is kept about a message besides itself.
    fn clear(&mut self, seq: u64) {
        self.release(seq);
        self.expectations.remove(&seq);
        self.polls.remove(&seq);
        if let Some(message) = self.messages.get_mut(&seq) {
            message.deliveries.clear();
            message.under.clear();
        }
    }
}
