//! The state of a thread: number of messages, first and last date, parties, whether it is closed.

use super::{Index, IndexFacts, IndexedMessage};
use crate::store::arrival::Wait;
use crate::store::party::party;
use crate::verdict::VerdictWord;
use crosstalk_envelope::Timestamp;
use std::collections::BTreeSet;

/// How many parties of a thread are kept: the first ones. A message costs no more than this, however many there are.
const MAX_PARTIES: usize = 64;

/// A thread as it is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedThread {
    /// How many messages are in it.
    pub messages: u64,
    /// How many of them wait for the person of this store.
    pub waiting: u64,
    /// How many of them wait for others.
    pub asked: u64,
    /// When its first message came, and the position of that.
    pub first: (Timestamp, u64),
    /// When its latest message came, and the position of that.
    pub last: (Timestamp, u64),
    /// Since when it is closed.
    pub closed_at: Option<Timestamp>,
    /// The latest message that closed it.
    pub closed_seq: Option<u64>,
    /// The latest message that closed it for verified messages as well.
    pub firm_seq: Option<u64>,
    /// Its parties, in the order in which they came.
    pub parties: Vec<IndexedParty>,
}

/// A party of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedParty {
    /// The form in which equal parties are equal.
    pub key: String,
    /// Its address, as it was first written.
    pub address: String,
    /// The message that named it first.
    pub first_seq: u64,
    /// Its place among the names of that message.
    pub place: u64,
    /// Whether it takes part: it began the thread, or was written to by somebody who does.
    pub counts: bool,
}

#[derive(Debug, Default)]
pub(super) struct ThreadSlot {
    pub(super) thread: Option<IndexedThread>,
    pub(super) is_changed: bool,
    pub(super) forgets_parties: bool,
}

impl IndexedThread {
    fn begin(message: &IndexedMessage) -> Self {
        Self {
            messages: 0,
            waiting: 0,
            asked: 0,
            first: (message.at, message.seq),
            last: (message.at, message.seq),
            closed_at: None,
            closed_seq: None,
            firm_seq: None,
            parties: Vec::new(),
        }
    }

    /// Whether somebody takes part in it.
    pub fn has(&self, name: &str) -> bool {
        let key = party(name);
        self.parties.iter().any(|p| p.counts && p.key == key)
    }

    /// Takes a message in, as the latest that came.
    fn follow(&mut self, message: &IndexedMessage) {
        let now = (message.at, message.seq);
        self.messages += 1;
        self.first = self.first.min(now);
        self.last = self.last.max(now);
        if message.closes && (message.is_mine || self.has(&message.sender)) {
            self.closed_at.get_or_insert(message.at);
            self.closed_seq = Some(message.seq);
            if message.is_mine || message.verdict == VerdictWord::Verified {
                self.firm_seq = Some(message.seq);
            }
        } else if message.reopens {
            self.closed_at = None;
        }
        self.add_parties(message);
    }

    /// Adds the sender, the receiver and the targets, as long as there is room.
    fn add_parties(&mut self, message: &IndexedMessage) {
        // The sender who begins a thread is in it, and so is one whom the person of the store verified; they bring in those
        // whom they write to. Nobody else joins by writing.
        let begins = !message.closes && !self.parties.iter().any(|p| p.counts);
        let brings = message.counts && (message.joins || begins || self.has(&message.sender));
        let names = [&message.sender, &message.receiver].into_iter();
        let mut seen = BTreeSet::new();
        let fresh = names.chain(&message.targets).filter_map(|name| {
            let key = party(name);
            seen.insert(key.clone()).then_some((key, name))
        });
        let mut room = MAX_PARTIES.saturating_sub(self.parties.len());
        for (place, (key, address)) in (0..).zip(fresh.take(MAX_PARTIES)) {
            if let Some(known) = self.parties.iter_mut().find(|p| p.key == key) {
                known.counts |= brings;
                continue;
            }
            if room > 0 {
                self.parties.push(IndexedParty {
                    key,
                    address: address.clone(),
                    first_seq: message.seq,
                    place,
                    counts: brings,
                });
            }
            room = room.saturating_sub(1);
        }
    }

    /// Counts that a message waits for somebody else now.
    pub(super) fn count_wait(&mut self, before: Wait, after: Wait) {
        for (number, is_counted) in [
            (&mut self.waiting, is_mine as fn(Wait) -> bool),
            (&mut self.asked, is_theirs),
        ] {
            *number = number.saturating_add(u64::from(is_counted(after)));
            *number = number.saturating_sub(u64::from(is_counted(before)));
        }
    }

    /// The position up to which the messages of a verdict wait for nobody, because the thread was closed.
    pub(super) fn closed_through(&self, verdict: VerdictWord) -> u64 {
        let closed = match verdict {
            VerdictWord::Verified => self.firm_seq,
            _ => self.closed_seq,
        };
        closed.unwrap_or(0)
    }
}

const fn is_mine(wait: Wait) -> bool {
    matches!(wait, Wait::Me | Wait::Carry)
}

const fn is_theirs(wait: Wait) -> bool {
    matches!(wait, Wait::Them)
}

impl<F: IndexFacts> Index<F> {
    fn slot(&mut self, id: &str) -> Result<&mut ThreadSlot, F::Error> {
        if !self.threads.contains_key(id) {
            let slot = ThreadSlot {
                thread: self.facts.thread(id)?,
                ..ThreadSlot::default()
            };
            self.threads.insert(id.to_owned(), slot);
        }
        Ok(self.threads.entry(id.to_owned()).or_default())
    }

    /// The thread with an id.
    ///
    /// # Errors
    /// The error of the store.
    pub fn thread(&mut self, id: &str) -> Result<Option<&IndexedThread>, F::Error> {
        self.freshen(id)?;
        Ok(self.slot(id)?.thread.as_ref())
    }

    pub(super) fn is_in(&mut self, thread: &str, name: &str) -> Result<bool, F::Error> {
        Ok(self.thread(thread)?.is_some_and(|t| t.has(name)))
    }

    /// Changes a thread that is there.
    pub(super) fn change_thread(
        &mut self,
        id: &str,
        change: impl FnOnce(&mut IndexedThread),
    ) -> Result<(), F::Error> {
        let slot = self.slot(id)?;
        if let Some(thread) = &mut slot.thread {
            change(thread);
            slot.is_changed = true;
        }
        Ok(())
    }

    /// Takes a message into its thread.
    pub(super) fn follow(&mut self, message: &IndexedMessage) -> Result<(), F::Error> {
        let slot = self.slot(&message.thread)?;
        slot.is_changed = true;
        let begin = || IndexedThread::begin(message);
        slot.thread.get_or_insert_with(begin).follow(message);
        Ok(())
    }

    /// Counts a thread again now if that is due: what is decided by it must not depend on the size of a batch.
    pub(super) fn freshen(&mut self, thread: &str) -> Result<(), F::Error> {
        match self.stale.contains(thread) {
            true => self.recount(thread),
            false => Ok(()),
        }
    }

    pub(super) fn freshen_all(&mut self) -> Result<(), F::Error> {
        for thread in self.stale.clone() {
            self.recount(&thread)?;
        }
        Ok(())
    }

    /// Goes through a thread again after messages have left it, come to it from another one, or changed.
    ///
    /// # Errors
    /// The error of the store.
    pub fn recount(&mut self, id: &str) -> Result<(), F::Error> {
        self.stale.remove(id);
        for found in self.facts.messages_of(id)? {
            self.load(found);
        }
        let members = self.members_of(id);
        let messages = members.iter().filter_map(|seq| self.get(*seq));
        let mut thread: Option<IndexedThread> = None;
        let mut asking = Vec::new();
        for message in messages {
            let counted = thread.get_or_insert_with(|| IndexedThread::begin(message));
            counted.follow(message);
            counted.count_wait(Wait::Nobody, message.wait);
            if message.asks != Wait::Nobody {
                asking.push(message.seq);
            }
        }
        let slot = self.slot(id)?;
        *slot = ThreadSlot {
            thread,
            is_changed: true,
            forgets_parties: true,
        };
        asking.into_iter().try_for_each(|seq| self.refresh(seq))
    }
}
