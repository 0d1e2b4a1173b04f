//! Mailboxes, and the queue of deliveries.

use super::{MemoryRelay, State};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::Event;
use crosstalk_protocol::relay::port::{
    AttemptResult, CourierQuery, Cursor, DeadLetter, DeliveryQueue, DueDelivery, Errand, HandedOut,
    InboxEntry, InboxQuery, Lease, LeasedDelivery, Mailbox, MailboxAction, MailboxChange,
    StoreFuture,
};
use crosstalk_protocol::relay::{Delivery, DeliveryState, Handler, HeldMessage};
use crosstalk_protocol::store::party;
use std::cmp::Reverse;
use std::time::Duration;

/// How many of the latest threads of a name are looked at for what was handed out.
const RECENT_THREADS: usize = 64;

impl Mailbox for MemoryRelay {
    fn inbox(&self, query: InboxQuery) -> StoreFuture<'_, Vec<InboxEntry>> {
        self.with(move |state| {
            let Some(after) = query.after.as_ref().map_or(Some(0), position) else {
                return Vec::new();
            };
            let party = party(&query.address);
            let later = state.messages.range(after.saturating_add(1)..);
            let entries = later.filter_map(|(seq, message)| {
                let delivery = message.deliveries.get(&party).filter(|d| d.is_in_inbox())?;
                state.entry(*seq, delivery)
            });
            entries.take(query.limit).collect()
        })
    }

    fn has_cursor(&self, cursor: &Cursor) -> StoreFuture<'_, bool> {
        let cursor = cursor.clone();
        self.with(move |state| {
            let last = state.messages.keys().next_back().copied();
            position(&cursor).is_some_and(|seq| seq <= last.unwrap_or_default())
        })
    }

    fn hand_out(&self, handed: HandedOut) {
        let mut state = self.lock();
        if !state.is_stopped {
            let delivered = DeliveryState::Delivered;
            state.mark(&handed.address, &handed.ids, delivered, handed.at);
        }
    }

    fn change_mailbox(&self, change: MailboxChange) -> StoreFuture<'_, Vec<String>> {
        self.with(move |state| {
            let (address, ids, at) = (&change.address, &change.ids, change.at);
            let changed = match change.action {
                MailboxAction::Reach(reached) => state.mark(address, ids, reached, at),
                MailboxAction::NoteFailure { is_final } => {
                    state.note_failure(address, ids, is_final, at)
                }
            };
            state.enqueue_notices(change.notices);
            for notice in change.settled {
                state.mark(
                    &notice.address,
                    &[notice.id],
                    DeliveryState::Acknowledged,
                    at,
                );
            }
            changed
        })
    }

    fn was_handed_out(&self, address: &str, names: &[&str]) -> StoreFuture<'_, bool> {
        let address = party(address);
        let names: Vec<String> = names.iter().map(|name| party(name)).collect();
        self.with(move |state| {
            names.iter().any(|name| {
                let has = |id: &String| {
                    let thread = state.threads.get(id);
                    thread.is_some_and(|t| t.parties.iter().any(|p| p.key == *name))
                };
                let threads = state.latest_threads().into_iter().filter(has);
                let threads: Vec<String> = threads.take(RECENT_THREADS).collect();
                let indexed = state.indexed.values();
                let mut seqs = indexed
                    .filter(|m| threads.contains(&m.thread))
                    .map(|m| m.seq);
                seqs.any(|seq| {
                    let message = state.messages.get(&seq);
                    let delivery = message.and_then(|m| m.deliveries.get(&address));
                    delivery.is_some_and(|d| d.delivered_at.is_some())
                })
            })
        })
    }
}

/// The number that a cursor stands for.
fn position(cursor: &Cursor) -> Option<u64> {
    let text = cursor.as_str();
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let seq: i64 = text.parse().ok().filter(|_| is_plain)?;
    u64::try_from(seq).ok()
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_add(wait))
}

impl DeliveryQueue for MemoryRelay {
    fn lease(&self, duration: Duration, limit: usize) -> StoreFuture<'_, Vec<DueDelivery>> {
        self.with(move |state| {
            let now = (self.context.clock)();
            let mut due = Vec::new();
            for (seq, message) in &state.messages {
                for (party, d) in message.deliveries.iter().filter(|(_, d)| d.is_due(now)) {
                    due.push((message.priority, d.next_at, *seq, party.clone()));
                }
            }
            due.sort_unstable();
            due.truncate(limit);
            let mut leased = Vec::new();
            for (priority, _, seq, party) in due {
                let kept = state.messages.get(&seq).filter(|m| !m.is_gone());
                let id = kept.map(|m| m.id().to_owned());
                let delivery = state.delivery(seq, &party);
                let Some((delivery, id)) = delivery.zip(id) else {
                    continue;
                };
                leased.push(DueDelivery {
                    lease: Lease {
                        id,
                        to: delivery.to.clone(),
                        at: delivery.lease(now, after(now, duration)),
                    },
                    by: delivery.by,
                    attempts: delivery.attempts,
                    priority,
                    seq,
                });
            }
            leased
        })
    }

    fn leased(&self, lease: &Lease) -> StoreFuture<'_, Option<LeasedDelivery>> {
        let lease = lease.clone();
        self.with(move |state| {
            let seq = state.seq_of(&lease.id)?;
            let mut deliveries = state.messages.get(&seq)?.deliveries.values();
            let delivery = deliveries.find(|d| lease.holds(d))?.clone();
            let record = state.record(seq);
            Some(LeasedDelivery { delivery, record })
        })
    }

    fn renew(&self, leases: Vec<Lease>, duration: Duration) -> StoreFuture<'_, u64> {
        self.with(move |state| {
            let until = after((self.context.clock)(), duration);
            state.change_leases(&leases, |delivery| delivery.next_at = Some(until))
        })
    }

    fn release(&self, leases: Vec<Lease>, wait: Duration) -> StoreFuture<'_, u64> {
        self.with(move |state| {
            let at = after((self.context.clock)(), wait);
            state.change_leases(&leases, |delivery| delivery.release(at))
        })
    }

    fn finish(&self, result: AttemptResult) -> StoreFuture<'_, bool> {
        self.with(move |state| {
            let Some(seq) = state.seq_of(&result.id) else {
                return false;
            };
            let delivery = state.delivery(seq, &party(&result.to));
            let Some(delivery) = delivery.filter(|d| d.counts_attempt(result.leased_at)) else {
                return false;
            };
            let event = delivery.finish(&result.attempt, result.at);
            state.append_about(seq, event);
            state.enqueue_notices(result.notices);
            true
        })
    }

    fn courier(&self, query: CourierQuery) -> StoreFuture<'_, Vec<InboxEntry>> {
        self.with(move |state| {
            let mut waiting = Vec::new();
            for (seq, message) in &state.messages {
                let is_carried =
                    |d: &&Delivery| d.state == DeliveryState::Queued && d.by == Handler::CopyPaste;
                for delivery in message.deliveries.values().filter(is_carried) {
                    waiting.push((message.priority, *seq, delivery));
                }
            }
            waiting.sort_by_key(|(priority, seq, _)| (*priority, *seq));
            let offered = waiting.into_iter().filter_map(|(_, seq, delivery)| {
                let errand = state.errand(seq, delivery)?;
                let is_offered = query.rules.offers_errand(&query.caller, &errand);
                is_offered.then(|| state.entry(seq, delivery))?
            });
            offered.take(query.limit).collect()
        })
    }

    fn deliveries(&self, ids: Vec<String>) -> StoreFuture<'_, Vec<Vec<Delivery>>> {
        self.with(move |state| {
            let of = |id: &String| {
                let deliveries = state.by_id(id).into_iter();
                deliveries
                    .flat_map(|m| m.deliveries.values().cloned())
                    .collect()
            };
            ids.iter().map(of).collect()
        })
    }

    fn dead_letters(&self, limit: usize) -> StoreFuture<'_, Vec<DeadLetter>> {
        self.with(move |state| {
            let mut dead = state.dead();
            dead.sort_by_key(|(seq, delivery)| Reverse((delivery.failed_at, *seq)));
            dead.truncate(limit);
            let letter = |(seq, delivery): (u64, Delivery)| {
                let sender = state.indexed.get(&seq).map(|m| m.sender.clone());
                Some(DeadLetter {
                    id: state.messages.get(&seq)?.id().to_owned(),
                    from: sender.unwrap_or_default(),
                    delivery,
                })
            };
            dead.into_iter().filter_map(letter).collect()
        })
    }

    fn requeue(&self, id: &str, at: Timestamp) -> StoreFuture<'_, u64> {
        let id = id.to_owned();
        self.with(move |state| {
            let seq = state.seq_of(&id);
            let message = seq.and_then(|seq| state.messages.get_mut(&seq));
            let Some(message) = message.filter(|m| !m.is_gone()) else {
                return 0;
            };
            let deliveries = message.deliveries.values_mut();
            let requeued = deliveries.map(|d| u64::from(d.requeue(at)));
            requeued.sum()
        })
    }
}

impl State {
    pub(super) fn delivery(&mut self, seq: u64, party: &str) -> Option<&mut Delivery> {
        self.messages.get_mut(&seq)?.deliveries.get_mut(party)
    }

    /// Dead letters. A message whose text was erased can't be queued again, and is none of them.
    pub(super) fn dead(&self) -> Vec<(u64, Delivery)> {
        let mut dead = Vec::new();
        for (seq, message) in self.messages.iter().filter(|(_, m)| !m.is_gone()) {
            let deliveries = message.deliveries.values();
            let failed = deliveries.filter(|d| d.state == DeliveryState::Failed);
            dead.extend(failed.map(|d| (*seq, d.clone())));
        }
        dead
    }

    fn entry(&self, seq: u64, delivery: &Delivery) -> Option<InboxEntry> {
        let record = self.record(seq)?;
        let mut held = self.held.values().map(|h| &h.message);
        let held = held.find(|message| message.record.id == record.id);
        Some(InboxEntry {
            to: delivery.to.clone(),
            by: delivery.by,
            state: delivery.state,
            attempts: delivery.attempts,
            is_approved: held.is_some_and(HeldMessage::is_approved),
            cursor: Cursor::new(seq.to_string()),
            record,
        })
    }

    fn errand(&self, seq: u64, delivery: &Delivery) -> Option<Errand> {
        let message = self.indexed.get(&seq)?;
        let by_id = |id: &Option<String>| {
            let id = id.as_ref()?;
            self.indexed.values().find(|m| m.id == *id)
        };
        let asked = by_id(&message.parent);
        let before = asked.and_then(|asked| by_id(&asked.parent));
        let before = before.and_then(|m| self.messages.get(&m.seq));
        let before = before.and_then(|m| m.deliveries.get(&party(&delivery.to)));
        Some(Errand {
            sender: message.sender.clone(),
            to: delivery.to.clone(),
            asker: asked.map(|m| m.sender.clone()),
            asker_is_carried: before.is_some_and(|d| d.by == Handler::CopyPaste),
        })
    }

    /// Writes what happened to a message into the log.
    pub(super) fn append_about(&mut self, seq: u64, event: Option<Event<'static>>) {
        let message = self.messages.get(&seq);
        let logged = message.and_then(|m| Some((m.id().to_owned(), self.logged(m)?)));
        if let Some((event, (id, logged))) = event.zip(logged) {
            let event = Event {
                id: Some(&id),
                canonical: Some(logged.canonical),
                raw: logged.raw,
                kind: event.kind,
                at: event.at,
                detail: event.detail,
            };
            self.append(&event, None);
        }
    }

    fn mark(
        &mut self,
        address: &str,
        ids: &[String],
        state: DeliveryState,
        at: Timestamp,
    ) -> Vec<String> {
        let party = party(address);
        let mut found = Vec::new();
        for id in ids {
            let Some(seq) = self.seq_of(id) else { continue };
            let Some(delivery) = self.delivery(seq, &party) else {
                continue;
            };
            let event = delivery.reach(state, at, None);
            self.append_about(seq, event);
            found.push(id.clone());
        }
        found
    }

    fn note_failure(
        &mut self,
        address: &str,
        ids: &[String],
        is_final: bool,
        at: Timestamp,
    ) -> Vec<String> {
        let party = party(address);
        let mut changed = Vec::new();
        for id in ids {
            let Some(seq) = self.seq_of(id) else { continue };
            let delivery = self.delivery(seq, &party);
            let Some(delivery) = delivery.filter(|d| d.is_in_hand()) else {
                continue;
            };
            let event = delivery.note_failure(is_final, at);
            self.append_about(seq, event);
            changed.push(id.clone());
        }
        changed
    }

    /// Changes deliveries as long as their leases hold. How many.
    fn change_leases(&mut self, leases: &[Lease], change: impl Fn(&mut Delivery)) -> u64 {
        let mut changed = 0;
        for lease in leases {
            let Some(seq) = self.seq_of(&lease.id) else {
                continue;
            };
            let delivery = self.delivery(seq, &party(&lease.to));
            if let Some(delivery) = delivery.filter(|d| d.is_leased(lease.at)) {
                change(delivery);
                changed += 1;
            }
        }
        changed
    }
}
