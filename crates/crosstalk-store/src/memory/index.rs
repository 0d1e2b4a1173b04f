//! Indexing: the facts that the rules ask for, the changes that they make, and the removal of entries.

use super::State;
use crosstalk_protocol::relay::ConversationId;
use crosstalk_protocol::store::{
    Index, IndexChanges, IndexFacts, IndexedMessage, IndexedThread, Wait,
};
use std::collections::BTreeSet;
use std::convert::Infallible;

impl IndexFacts for &State {
    type Error = Infallible;

    fn message(&self, id: &str) -> Result<Option<IndexedMessage>, Infallible> {
        Ok(self.indexed.values().find(|m| m.id == id).cloned())
    }

    fn thread(&self, id: &str) -> Result<Option<IndexedThread>, Infallible> {
        Ok(self.threads.get(id).cloned())
    }

    fn messages_of(&self, thread: &str) -> Result<Vec<IndexedMessage>, Infallible> {
        Ok(self.all(|m| m.thread == thread))
    }

    fn waiting_in(&self, thread: &str, limit: usize) -> Result<Vec<IndexedMessage>, Infallible> {
        let mut found = self.all(|m| m.thread == thread && m.wait != Wait::Nobody);
        found.truncate(limit);
        Ok(found)
    }

    fn waiting_anywhere(&self, limit: usize) -> Result<Vec<IndexedMessage>, Infallible> {
        let mut found = self.all(|m| matches!(m.wait, Wait::Carry | Wait::Them));
        found.reverse();
        found.truncate(limit);
        Ok(found)
    }

    fn answers_to(&self, id: &str) -> Result<Vec<IndexedMessage>, Infallible> {
        Ok(self.all(|m| m.parent.as_deref() == Some(id)))
    }

    fn latest_of_session(&self, session: &str) -> Result<Option<IndexedMessage>, Infallible> {
        let of_session = self.all(|m| m.session.as_deref() == Some(session));
        Ok(of_session.into_iter().max_by_key(|m| (m.counts, m.seq)))
    }

    fn thread_asks(&self, thread: &str) -> Result<bool, Infallible> {
        let asks = |m: &IndexedMessage| m.thread == thread && m.asks != Wait::Nobody;
        Ok(self.indexed.values().any(asks))
    }

    fn session_asks(&self, session: &str) -> Result<bool, Infallible> {
        let is_in = |m: &IndexedMessage| m.session.as_deref() == Some(session);
        let asks = |m: &IndexedMessage| is_in(m) && m.asks != Wait::Nobody;
        Ok(self.indexed.values().any(asks))
    }

    fn answered_by(&self, seq: u64) -> Result<Vec<String>, Infallible> {
        Ok(self.answered_by.get(&seq).cloned().unwrap_or_default())
    }

    fn recipients(&self, seq: u64) -> Result<Vec<String>, Infallible> {
        let message = self.messages.get(&seq).into_iter();
        let deliveries = message.flat_map(|m| m.deliveries.values());
        Ok(deliveries.map(|d| d.to.clone()).collect())
    }
}

impl State {
    fn all(&self, is_it: impl Fn(&IndexedMessage) -> bool) -> Vec<IndexedMessage> {
        let found = self.indexed.values().filter(|m| is_it(m));
        found.cloned().collect()
    }

    /// The thread of the latest message of a session.
    pub(super) fn thread_of_session(&self, session: &str) -> Option<String> {
        let Ok(latest) = (&self).latest_of_session(session);
        latest.map(|m| m.thread)
    }

    /// Indexes an accepted message.
    pub(super) fn index(&mut self, seq: u64) {
        let Some(message) = self.messages.get(&seq).filter(|m| !m.is_gone()) else {
            return;
        };
        let mut arrival = message.arrival();
        let (placed, changes) = {
            let mut index = Index::new(&*self);
            let Ok(placed) = index.place(&mut arrival);
            let Ok(_) = index.add(seq, &arrival, placed.thread.clone());
            let Ok(changes) = index.finish();
            (placed, changes)
        };
        if let Some(message) = self.messages.get_mut(&seq) {
            message.thread.clone_from(&placed.thread);
            message.stored.answers.clone_from(&arrival.answers);
        }
        self.write(changes);
        if placed.closes {
            let thread = ConversationId::Thread(placed.thread);
            self.closings.entry(thread).or_insert(arrival.at);
        }
    }

    /// Changes what is indexed by the rules.
    pub(super) fn change_index(
        &mut self,
        decide: impl FnOnce(&mut Index<&Self>) -> Result<(), Infallible>,
    ) {
        let changes = {
            let mut index = Index::new(&*self);
            let Ok(()) = decide(&mut index);
            let Ok(changes) = index.finish();
            changes
        };
        self.write(changes);
    }

    fn write(&mut self, changes: IndexChanges) {
        for change in changes.messages {
            let message = change.message;
            let answered_by = self.answered_by.entry(message.seq).or_default();
            if change.forgets_answers {
                answered_by.clear();
            }
            answered_by.extend(change.answered_by);
            if let Some(kept) = self.messages.get_mut(&message.seq) {
                kept.thread.clone_from(&message.thread);
            }
            self.indexed.insert(message.seq, message);
        }
        for change in changes.threads {
            match change.thread {
                Some(thread) => self.threads.insert(change.id, thread),
                None => self.threads.remove(&change.id),
            };
        }
        for seq in changes.settled {
            self.expectations.remove(&seq);
        }
    }

    /// Erases the texts of messages, and everything that is derived from them. Ids and digests stay.
    pub(super) fn erase_texts(&mut self, chosen: &[u64]) {
        let (mut threads, mut answered) = (BTreeSet::new(), BTreeSet::new());
        for seq in chosen {
            let Some(message) = self.messages.get_mut(seq).filter(|m| !m.is_gone()) else {
                continue;
            };
            let arrival = message.arrival();
            message.stored.text.clear();
            message.stored.received = None;
            message.stored.answers = None;
            message.recipients.clear();
            (message.expires, message.session, message.is_brief) = (None, None, false);
            if self.indexed.remove(seq).is_some() {
                answered.extend(arrival.answered().map(str::to_owned));
                threads.insert(message.thread.clone());
            }
            self.answered_by.remove(seq);
        }
        self.change_index(|index| {
            for thread in &threads {
                index.recount(thread)?;
            }
            // Questions that they settled elsewhere are open again.
            answered.iter().try_for_each(|id| index.judge(id))
        });
    }
}
