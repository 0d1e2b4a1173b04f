//! Messages and threads as readers see them.

use super::{MemoryRelay, State, page};
use crosstalk_envelope::registry::Intent;
use crosstalk_protocol::relay::port::{
    FilledSearch, MessageViews, RecordQuery, SearchQuery, StoreFuture,
};
use crosstalk_protocol::store::{
    AnsweredQuestion, FailedAnswer, IndexedMessage, Listing, OpenQuestion, Page, Record, Thread,
    ThreadFilter, ThreadPosition, Wait, is_same_party, party,
};
use std::cmp::Reverse;

/// How many parties and questions of a thread are named.
const NAMED: usize = 16;

impl MessageViews for MemoryRelay {
    fn records(&self, query: RecordQuery) -> StoreFuture<'_, Vec<Record>> {
        self.with(move |state| {
            let seqs: Vec<u64> = match query {
                RecordQuery::Ids(ids) => ids.iter().filter_map(|id| state.seq_of(id)).collect(),
                RecordQuery::Seqs(seqs) => seqs,
                RecordQuery::Referring { digest, limit } => {
                    let messages = state.messages.iter().rev();
                    let referring = messages.filter(|(_, m)| m.blobs.get(&digest) == Some(&true));
                    referring.map(|(seq, _)| *seq).take(limit).collect()
                }
            };
            let records = seqs.into_iter().filter_map(|seq| state.record(seq));
            records.collect()
        })
    }

    fn thread(&self, id: &str) -> StoreFuture<'_, Option<Thread>> {
        let id = id.to_owned();
        self.with(move |state| state.thread_view(&id))
    }

    fn threads(&self, filter: ThreadFilter, wanted: Page) -> StoreFuture<'_, Listing<Thread>> {
        self.with(move |state| {
            let with = filter.with.as_deref().map(party);
            let is_wanted = |id: &String| {
                state.threads.get(id).is_some_and(|t| {
                    let position = ThreadPosition {
                        at: t.last.0,
                        seq: t.last.1,
                    };
                    let has = |party: &String| t.parties.iter().any(|p| p.key == *party);
                    (!filter.open || t.closed_at.is_none())
                        && (!filter.waiting || t.waiting > 0)
                        && with.as_ref().is_none_or(has)
                        && filter.after.is_none_or(|after| position < after)
                })
            };
            let ids = state.latest_threads().into_iter().filter(is_wanted);
            page(ids.filter_map(|id| state.thread_view(&id)), wanted)
        })
    }

    fn messages(
        &self,
        thread: &str,
        after: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Listing<Record>> {
        let thread = thread.to_owned();
        self.with(move |state| {
            let is_later = |m: &&IndexedMessage| after.is_none_or(|after| m.seq > after);
            let messages = state.indexed.values().filter(|m| m.thread == thread);
            let records = messages
                .filter(is_later)
                .filter_map(|m| state.record(m.seq));
            page(records, Page::first(limit))
        })
    }

    fn messages_before(
        &self,
        thread: &str,
        before: u64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Record>> {
        let thread = thread.to_owned();
        self.with(move |state| {
            let messages = state.indexed.values().rev().filter(|m| m.thread == thread);
            let earlier = messages.filter(|m| m.seq < before);
            let records = earlier.filter_map(|m| state.record(m.seq));
            records.take(limit).collect()
        })
    }

    fn search(&self, query: SearchQuery) -> StoreFuture<'_, FilledSearch> {
        self.with(move |state| {
            let finds = |seq: &&u64| {
                let message = state.messages.get(seq);
                message.is_some_and(|m| query.search.finds(&m.arrival()))
            };
            let found = state.indexed.keys().rev().filter(finds);
            let last = state.messages.keys().next_back().copied();
            FilledSearch {
                found: page(found.filter_map(|seq| state.record(*seq)), query.page),
                through: last.unwrap_or_default(),
            }
        })
    }

    fn handovers(
        &self,
        thread: &str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(u64, Vec<String>)>> {
        let thread = thread.to_owned();
        self.with(move |state| {
            let hands_over = |m: &&IndexedMessage| {
                let is_it = matches!(m.meaning, Some(Intent::Escalate | Intent::Handoff));
                is_it && m.thread == thread && m.seq > after
            };
            let found = state.indexed.values().filter(hands_over).take(limit);
            let to = |m: &IndexedMessage| {
                let message = state.messages.get(&m.seq).into_iter();
                let routed = message.flat_map(|m| m.deliveries.values());
                let routed = routed.map(|d| d.to.clone());
                (
                    m.seq,
                    std::iter::once(m.receiver.clone()).chain(routed).collect(),
                )
            };
            found.map(to).collect()
        })
    }
}

impl State {
    /// The ids of the threads, the one with the latest message first.
    pub(super) fn latest_threads(&self) -> Vec<String> {
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.sort_by_key(|(_, thread)| Reverse(thread.last));
        threads.into_iter().map(|(id, _)| id.clone()).collect()
    }

    fn thread_view(&self, id: &str) -> Option<Thread> {
        let thread = self.threads.get(id)?;
        let first = self.record(thread.first.1)?;
        let last = self.indexed.get(&thread.last.1)?;
        let messages = || self.indexed.values().filter(|m| m.thread == id);
        let mut open: Vec<_> = messages().filter(|m| m.wait != Wait::Nobody).collect();
        open.sort_by_key(|m| Wait::ALL.iter().position(|w| *w == m.wait));
        let open = open.into_iter().take(NAMED).map(|m| {
            let targets: Vec<&str> = m.targets.iter().map(String::as_str).collect();
            let answered = self.answered_by.get(&m.seq).cloned().unwrap_or_default();
            OpenQuestion::new(m.wait, &m.receiver, &targets, &answered)
        });
        let mut electorates: Vec<String> = Vec::new();
        let polls = messages().filter(|m| m.meaning == Some(Intent::Poll));
        for poll in polls.filter(|m| !m.targets.is_empty()).take(NAMED) {
            let mut targets = poll.targets.iter();
            let is_voter = targets.any(|t| is_same_party(t, &poll.receiver));
            if !is_voter && !electorates.contains(&poll.receiver) {
                electorates.push(poll.receiver.clone());
            }
        }
        let answers = messages().filter(|m| m.settles && !m.is_mine).map(|m| {
            let mut all = self.indexed.values();
            let question = all.find(|q| Some(&q.id) == m.parent.as_ref());
            let question = question.map(|q| (q.meaning, q.receiver.as_str()));
            let message = self.messages.get(&m.seq);
            let text = message.map_or("", |kept| kept.stored.text.as_str());
            AnsweredQuestion::of(question, (&m.sender, m.meaning), text)
        });
        Some(Thread {
            id: id.to_owned(),
            context: first.context,
            session: first.session,
            parties: {
                let mut parties = thread.parties.clone();
                parties.sort_by_key(|p| (p.first_seq, p.place));
                let parties = parties.into_iter().take(NAMED);
                parties.map(|p| p.address).collect()
            },
            messages: thread.messages,
            waiting: thread.waiting,
            asked: thread.asked,
            first_at: thread.first.0,
            last_at: thread.last.0,
            last: last.id.clone(),
            last_seq: last.seq,
            closed_at: thread.closed_at,
            open: open.collect(),
            has_answer: messages().any(|m| m.settles),
            failed: FailedAnswer::remaining(answers.collect()),
            electorates,
        })
    }
}
