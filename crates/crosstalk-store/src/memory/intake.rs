//! Accepting messages: the facts that the plan of a batch asks for, and what it changes.

use super::{Held, MemoryRelay, Message, State};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::consent::{
    CoveredHeld, CoveredMessage, RevocationChanges, RevocationFacts, RevocationOrder,
    RevocationResult, plan_cascade,
};
use crosstalk_protocol::relay::port::{
    Acceptance, Arrived, IndexProgress, Intake, StoreEvent, StoreFuture,
};
use crosstalk_protocol::relay::{
    AcceptChanges, AcceptFacts, AcceptNeeds, AcceptNumbers, AcceptOutcome, Admission,
    ConversationId, ConversationParties, Delivery, DeliveryFacts, DeliveryState, HeldFacts,
    HeldMessage, HoldChoice, HoldDecided, KnownFacts, NewMessage, ParentFacts, PendingParties,
    PollFacts, SessionFacts, plan_accept, report,
};
use crosstalk_protocol::store::{Arrival, KnownMessage, Record, StoredMessage, party};
use std::collections::BTreeMap;

impl Intake for MemoryRelay {
    fn accept(&self, admission: Box<Admission>) -> StoreFuture<'_, Acceptance> {
        Box::pin(async move {
            let outcome = self.with(|state| state.accept(&admission)).await?;
            if let AcceptOutcome::Accepted { seq, .. } = outcome {
                self.report(seq, &admission);
            }
            Ok(Acceptance { outcome, admission })
        })
    }

    fn caught_up(&self) -> StoreFuture<'_, ()> {
        self.with(|_| ())
    }
}

impl MemoryRelay {
    /// Tells the relay that a message came.
    pub(super) fn report(&self, seq: u64, admission: &Admission) {
        let progress = IndexProgress {
            through: seq,
            filed: 1,
            ..IndexProgress::default()
        };
        for event in [
            StoreEvent::Arrived(Arrived::of(seq, admission)),
            StoreEvent::Batch,
            StoreEvent::Indexed(progress),
            StoreEvent::Searchable(seq),
            StoreEvent::Work,
        ] {
            self.context.events.notify(event);
        }
    }
}

/// What a store keeps of a message that comes.
pub(super) fn stored(arrival: &Arrival, is_carried: bool, thread: &str) -> StoredMessage {
    StoredMessage {
        text: arrival.text.clone(),
        received: arrival.received.clone(),
        truncated: arrival.truncated,
        verdict: arrival.verdict,
        pkid: arrival.pkid.clone(),
        side: arrival.side,
        way: arrival.way,
        at: arrival.at,
        message: arrival.message.clone().filter(|_| is_carried),
        answers: arrival.answers.clone(),
        generated: ReceivedIds {
            thread: thread.to_owned(),
            message: arrival.generated.message.clone(),
        },
    }
}

impl State {
    fn accept(&mut self, admission: &Admission) -> AcceptOutcome {
        let batch = std::slice::from_ref(admission);
        self.accept_needing(admission, &AcceptNeeds::of(batch))
    }

    /// Accepts a message by the facts that it needs, and indexes it.
    pub(super) fn accept_needing(
        &mut self,
        admission: &Admission,
        needs: &AcceptNeeds<'_>,
    ) -> AcceptOutcome {
        let facts = self.load(needs);
        let mut plan = plan_accept(std::slice::from_ref(admission), &facts);
        let numbers = self.apply(&plan.changes);
        let withdrawn = plan.revocation.as_ref().map(|order| {
            let result = self.revoke(order, numbers.seqs.last().copied());
            self.enqueue_notices(report::revocation_notices(&admission.arrival, &result));
            result
        });
        for seq in &numbers.seqs {
            self.index(*seq);
        }
        match plan.outcomes.pop() {
            Some(outcome) => outcome.number(&numbers, withdrawn),
            // A plan has an outcome for the first message of its batch.
            None => AcceptOutcome::Rejected(crosstalk_protocol::relay::id_conflict(
                admission.arrival.id(),
            )),
        }
    }

    /// Exactly what is asked for.
    fn load(&self, needs: &AcceptNeeds<'_>) -> AcceptFacts {
        let mut facts = AcceptFacts::default();
        for (id, _) in &needs.ids {
            let known = self.seq_of(id).and_then(|seq| self.known(seq));
            facts.ids.extend(known.map(|k| ((*id).to_owned(), k)));
        }
        for digest in &needs.contents {
            let is_it = |m: &Message| m.stored.message.is_none() && m.digest == *digest;
            let found = self.messages.iter().find(|(_, m)| is_it(m));
            let known = found.and_then(|(seq, _)| self.known(*seq));
            facts.contents.extend(known.map(|k| (*digest, k)));
        }
        for id in &needs.held_ids {
            let held = self.held.iter().find(|(_, h)| h.message.record.id == *id);
            let held = held.map(|(seq, h)| ((*id).to_owned(), self.held_facts(*seq, h)));
            facts.held_ids.extend(held);
        }
        for digest in &needs.held_contents {
            let is_it = |h: &Held| h.stored.message.is_none() && h.message.record.digest == *digest;
            let held = self.held.iter().find(|(_, h)| is_it(h));
            let held = held.map(|(seq, h)| (*digest, self.held_facts(*seq, h)));
            facts.held_contents.extend(held);
        }
        for what in &needs.stewards {
            let to = self.stewards.get(what).cloned();
            facts.stewards.extend(to.map(|to| (what.clone(), to)));
        }
        let mut conversations: Vec<ConversationId> = Vec::new();
        conversations.extend(needs.closings.iter().chain(&needs.parties).cloned());
        for (session, is_deep) in &needs.sessions {
            let known = SessionFacts {
                indexed: self.thread_of_session(session),
                pending: None,
            };
            let thread = known.indexed.clone().filter(|_| *is_deep);
            conversations.extend(thread.map(ConversationId::Thread));
            facts.sessions.insert((*session).to_owned(), known);
        }
        for (id, asked) in &needs.parents {
            let Some((seq, m)) = self.messages.iter().find(|(_, m)| m.id() == *id) else {
                continue;
            };
            conversations.push(ConversationId::Thread(m.thread.clone()));
            let arrival = m.arrival();
            let got = m.recipients.iter().map(|r| r.address.clone());
            let named = [arrival.sender, arrival.receiver].into_iter();
            let reporting = |d: &DeliveryFacts| asked.reporters.contains(&d.party);
            let parent = ParentFacts {
                seq: *seq,
                thread: m.thread.clone(),
                meaning: m.meaning,
                parts: named.chain(arrival.targets).chain(got).collect(),
                deliveries: delivery_facts(m).into_iter().filter(reporting).collect(),
                logged: self.logged(m),
                poll: self.poll_facts(*seq),
            };
            facts.parents.insert((*id).to_owned(), parent);
        }
        for what in conversations {
            let at = self.closings.get(&what).copied();
            facts.closings.extend(at.map(|at| (what.clone(), at)));
            facts.parties.insert(what.clone(), self.parties(&what));
        }
        for thread in &needs.polls {
            let polls = self.polls.iter().filter(|(_, poll)| poll.thread == *thread);
            let polls = polls.filter_map(|(seq, _)| self.poll_facts(*seq)).collect();
            facts.polls.insert((*thread).to_owned(), polls);
        }
        let grants = self.named_grants(needs.consents.iter().copied());
        facts.grants = grants.into_iter().map(|g| (g.id.clone(), g)).collect();
        for (peer, digest) in &needs.uploads {
            let upload = ((*peer).to_owned(), *digest);
            if self.uploads.contains_key(&upload) {
                facts.uploads.insert(upload);
            }
        }
        facts
    }

    fn poll_facts(&self, seq: u64) -> Option<PollFacts> {
        let closed = self.polls.get(&seq)?.closed;
        Some(PollFacts { seq, closed })
    }

    /// Who takes part in a conversation. Everything is indexed but what is to be indexed next.
    fn parties(&self, what: &ConversationId) -> ConversationParties {
        let thread = match what {
            ConversationId::Thread(id) => Some(id.clone()),
            ConversationId::Session(name) => self.thread_of_session(name),
        };
        let thread = thread.and_then(|id| self.threads.get(&id));
        let parties = thread.into_iter().flat_map(|t| &t.parties);
        let pending: Vec<PendingParties> = Vec::new();
        ConversationParties {
            indexed: parties
                .filter(|p| p.counts)
                .map(|p| p.key.clone())
                .collect(),
            pending,
        }
    }

    fn known(&self, seq: u64) -> Option<KnownFacts> {
        let m = self.messages.get(&seq)?;
        let text = m.stored.received.as_ref().unwrap_or(&m.stored.text);
        Some(KnownFacts {
            message: KnownMessage {
                seq,
                id: m.id().to_owned(),
                generated: m.stored.generated.clone(),
                digest: m.digest,
                verdict: m.stored.verdict,
                side: m.stored.side,
                thread: m.thread.clone(),
                since: m.stored.at,
                is_gone: m.is_gone(),
                is_truncated: m.stored.truncated,
            },
            entry: m.entries.first().copied().map(LogPlace::first),
            raw: Some(Digest::of(text.as_bytes())),
            sender: (!m.is_gone()).then(|| m.arrival().sender),
            is_spare_taken: self.by_id(&m.stored.generated.message).is_some(),
        })
    }

    fn held_facts(&self, seq: u64, held: &Held) -> HeldFacts {
        let spare = &held.stored.generated.message;
        let record = &held.message.record;
        HeldFacts {
            seq,
            id: record.id.clone(),
            generated: held.stored.generated.clone(),
            digest: record.digest,
            verdict: held.stored.verdict,
            sender: record.sender.clone(),
            since: record.at,
            entry: LogPlace::first(held.entry),
            is_spare_taken: self.held.values().any(|h| h.message.record.id == *spare),
        }
    }

    fn apply(&mut self, changes: &AcceptChanges<'_>) -> AcceptNumbers {
        let first = super::audit::number(self.log.len());
        let entries: Vec<u64> = (first..).take(changes.events.len()).collect();
        let entry = |place: usize| entries.get(place).copied().unwrap_or_default();
        if let Some(displaced) = &changes.displaced {
            self.displace(displaced.seq);
        }
        if let Some(displaced) = &changes.displaced_held
            && let Some(held) = self.held.get_mut(&displaced.seq)
        {
            held.stored.message = None;
            held.message.record.carries_id = false;
            held.message.record.id.clone_from(&displaced.id);
        }
        let seqs: Vec<u64> = changes
            .messages
            .iter()
            .map(|message| self.insert(message, entry(message.entry)))
            .collect();
        for held in &changes.held {
            self.hold(held, entry(held.entry));
        }
        for improved in &changes.improved {
            let seq = improved.message.number(&seqs);
            self.improve(seq, improved.arrival, improved.entry.map(entry));
        }
        for (seq, place) in &changes.logged {
            if let Some(message) = self.messages.get_mut(seq) {
                message.entries.push(entry(*place));
            }
        }
        for reported in &changes.reported {
            let seq = reported.message.number(&seqs);
            if let Some(delivery) = self.delivery(seq, &reported.party) {
                delivery.set_state(reported.state, reported.at, reported.reason.as_deref());
            }
        }
        for (poll, message) in &changes.counted {
            if let Some(poll) = self.polls.get_mut(&poll.number(&seqs)) {
                poll.touched = seqs.get(*message).copied();
            }
        }
        for grant in &changes.grants {
            self.grants.insert(grant.id.clone(), grant.clone());
        }
        for planned in &changes.events {
            let takes = planned.takes.map(|place| place.number(&seqs));
            self.append(&planned.event, takes);
        }
        let entries = entries.into_iter().map(LogPlace::first).collect();
        AcceptNumbers { seqs, entries }
    }

    fn insert(&mut self, new: &NewMessage<'_>, entry: u64) -> u64 {
        let (admission, arrival) = (new.admission, new.arrival());
        let seq = self.messages.keys().next_back().map_or(1, |last| last + 1);
        if let Some(what) = &new.closes {
            self.closings.entry(what.clone()).or_insert(arrival.at);
        }
        if let Some((what, to)) = &new.hands_over {
            self.stewards.insert(what.clone(), (*to).to_owned());
        }
        if let Some(due) = admission.answer_by {
            self.expectations.insert(seq, due);
        }
        if new.is_poll() {
            let poll = super::maintenance::Poll {
                thread: new.thread().to_owned(),
                at: arrival.at,
                ends: admission.answer_by,
                touched: Some(seq),
                closed: None,
            };
            self.polls.insert(seq, poll);
        }
        let deliveries = new.deliveries.iter();
        let deliveries = deliveries.map(|(to, by)| Delivery::queued(*to, *by, arrival.at));
        let message = Message {
            stored: stored(arrival, new.is_carried, &new.generated_thread),
            digest: arrival.digest,
            meaning: arrival.meaning,
            thread: new.thread().to_owned(),
            session: new.session().map(str::to_owned),
            peer: admission.peer.clone(),
            recipients: admission.recipients.clone(),
            priority: admission.priority,
            expires: new.expires,
            is_brief: admission.is_brief,
            entries: vec![entry],
            deliveries: deliveries.map(|d| (party(&d.to), d)).collect(),
            blobs: new.blobs.iter().copied().collect(),
            under: new.under.iter().cloned().collect(),
        };
        self.messages.insert(seq, message);
        seq
    }

    fn hold(&mut self, new: &NewMessage<'_>, entry: u64) {
        let (admission, arrival) = (new.admission, &new.admission.arrival);
        let seq = self.held.keys().next_back().map_or(1, |last| last + 1);
        let stored = StoredMessage {
            received: None,
            truncated: false,
            ..stored(arrival, new.is_carried, &new.generated_thread)
        };
        let thread = arrival.thread.as_ref().unwrap_or(&new.generated_thread);
        let message = HeldMessage {
            record: Record {
                digest: arrival.digest,
                expires: new.expires,
                ..Record::pending(Arrival::recall(stored.clone()), seq, thread.clone())
            },
            raw: admission.raw,
            recipients: admission.recipients.clone(),
            peer: admission.peer.clone(),
            held: admission.held.clone().unwrap_or_default(),
            answer_by: admission.answer_by,
            decided: None,
        };
        let held = Held {
            message,
            stored,
            proof: admission.proof,
            is_authority: admission.is_authority,
            entry,
            ends: new.ends(),
            blobs: new.blobs.iter().copied().collect(),
            under: new.under.iter().cloned().collect(),
        };
        self.held.insert(seq, held);
    }

    fn displace(&mut self, seq: u64) {
        let Some(message) = self.messages.get_mut(&seq) else {
            return;
        };
        message.stored.message = None;
        let id = message.id().to_owned();
        if let Some(indexed) = self.indexed.get_mut(&seq) {
            indexed.id.clone_from(&id);
        }
        self.change_index(|index| index.judge(&id));
    }

    fn improve(&mut self, seq: u64, arrival: &Arrival, entry: Option<u64>) {
        let Some(message) = self.messages.get_mut(&seq) else {
            return;
        };
        message.stored.pkid.clone_from(&arrival.pkid);
        message.stored.verdict = arrival.verdict;
        message.stored.text.clone_from(&arrival.text);
        message.stored.received.clone_from(&arrival.received);
        message.stored.truncated = arrival.truncated;
        message.entries.extend(entry);
        let (now, thread) = (message.arrival(), message.thread.clone());
        if self.indexed.contains_key(&seq) {
            self.change_index(|index| index.renew(seq, &now, thread).map(drop));
        }
    }

    /// Ends consents and tokens, with everything that is under them.
    fn revoke(&mut self, order: &RevocationOrder, revoke: Option<u64>) -> RevocationResult {
        let facts = self.revocation_facts(order);
        let plan = plan_cascade(order, &order.revocation.message, &facts, revoke);
        let at = plan.revocation.at;
        for id in &plan.ended {
            if let Some(grant) = self.grants.get_mut(id) {
                grant.revoked = Some(plan.revocation.clone());
            }
        }
        for grant in &plan.unseen {
            self.grants.insert(grant.id.clone(), grant.clone());
        }
        for (seq, party) in &plan.cancelled {
            if let Some(delivery) = self.delivery(*seq, party) {
                let reason = Some(RevocationChanges::CANCELLED);
                delivery.set_state(DeliveryState::Failed, at, reason);
            }
        }
        if let Some(message) = revoke.and_then(|seq| self.messages.get_mut(&seq)) {
            for (to, by) in &plan.told {
                let queued = || Delivery::queued(*to, *by, at);
                message.deliveries.entry(party(to)).or_insert_with(queued);
            }
        }
        for seq in &plan.erased {
            self.expectations.remove(seq);
            self.let_go(*seq);
        }
        self.erase_texts(&plan.erased);
        for seq in &plan.lapsed {
            let decided = HoldDecided {
                choice: HoldChoice::Lapse,
                by: RevocationChanges::LAPSED_BY.to_owned(),
                at,
                reason: Some(RevocationChanges::LAPSED.to_owned()),
            };
            self.settle(*seq, decided);
        }
        if let Some(name) = &plan.token {
            self.revoke_token(name, at);
        }
        for event in &plan.events {
            self.append(event, None);
        }
        plan.result
    }

    fn revocation_facts(&self, order: &RevocationOrder) -> RevocationFacts {
        let mut facts = RevocationFacts::default();
        let mut left = order.consents.clone();
        while let Some(id) = left.pop() {
            if facts.derived.contains_key(&id) {
                continue;
            }
            let derived = self.grants.values().filter(|g| g.originals.contains(&id));
            let derived: Vec<String> = derived.map(|g| g.id.clone()).collect();
            if let Some(grant) = self.grants.get(&id) {
                facts.on_record.insert(id.clone(), grant.revoked.is_some());
            }
            left.extend(derived.iter().cloned());
            facts.derived.insert(id, derived);
        }
        let is_under = |mut under: std::collections::btree_set::Iter<'_, String>| {
            under.any(|id| facts.derived.contains_key(id))
        };
        let messages = self.messages.iter();
        let messages = messages.filter(|(_, m)| !m.is_gone() && is_under(m.under.iter()));
        let messages = messages.map(|(seq, m)| CoveredMessage {
            seq: *seq,
            id: m.id().to_owned(),
            digest: m.digest,
            sender: m.arrival().sender,
            thread: m.thread.clone(),
            deliveries: delivery_facts(m),
            logged: self.logged(m),
        });
        let messages = messages.collect();
        let held = self.held.values();
        let held = held.filter(|h| h.message.is_waiting() && is_under(h.under.iter()));
        let held = held.map(|h| h.message.clone()).map(|h| CoveredHeld {
            seq: h.record.seq,
            id: h.record.id,
            digest: h.record.digest,
            raw: h.raw,
            sender: h.record.sender,
            thread: h.record.thread,
            recipients: h.recipients.into_iter().map(|r| r.address).collect(),
        });
        (facts.held, facts.messages) = (held.collect(), messages);
        let token = order.token.as_ref().and_then(|name| self.tokens.get(name));
        facts.is_token_active = token.is_some_and(|token| token.revoked_at.is_none());
        facts
    }
}

/// The deliveries of a message, by party.
fn delivery_facts(message: &Message) -> Vec<DeliveryFacts> {
    let all: &BTreeMap<String, Delivery> = &message.deliveries;
    let facts = all.iter().map(|(party, delivery)| DeliveryFacts {
        party: party.clone(),
        address: delivery.to.clone(),
        by: delivery.by,
        state: delivery.state,
    });
    facts.collect()
}
