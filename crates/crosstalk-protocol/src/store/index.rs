//! Indexing: which thread a message belongs to, what it settles, and who has to act next.
//!
//! ```text
//! IndexFacts ──> Index ── place, add, renew, judge, recount ──> finish ──> IndexChanges
//! what is kept    what is kept, with the changes of this batch              what to write
//! ```
//!
//! An adapter answers [`IndexFacts`] and writes [`IndexChanges`]; every decision is made here. Later messages of a batch see
//! what earlier ones changed. The result follows from the messages and their order alone, so that indexing them again gives the
//! same.

mod question;
mod thread;

pub use thread::{IndexedParty, IndexedThread};

use super::answer::{Answering, Asking};
use super::arrival::{Arrival, Side, ThreadHints, Wait, Way};
use super::party::{is_same_party, party};
use crate::verdict::VerdictWord;
use crosstalk_envelope::{Intent, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A message as it is indexed: what threads, questions and answers follow from.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedMessage {
    /// Its position.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// The thread that it is in.
    pub thread: String,
    /// The thread that its envelope names.
    pub names: Option<String>,
    /// The message that it answers.
    pub parent: Option<String>,
    /// Its v1.0 conversation.
    pub session: Option<String>,
    /// The left side of the direction line.
    pub sender: String,
    /// The right side of the direction line.
    pub receiver: String,
    /// Others who got it.
    pub targets: Vec<String>,
    /// The core intent that it means.
    pub meaning: Option<Intent>,
    /// When it came.
    pub at: Timestamp,
    /// The result of checking its signature.
    pub verdict: VerdictWord,
    /// [`Arrival::counts`].
    pub counts: bool,
    /// [`Arrival::settles`].
    pub settles: bool,
    /// [`Arrival::closes`].
    pub closes: bool,
    /// [`Arrival::reopens`].
    pub reopens: bool,
    /// [`Arrival::is_written_here`].
    pub is_mine: bool,
    /// [`Arrival::joins_alone`].
    pub joins: bool,
    /// [`Arrival::wait`].
    pub asks: Wait,
    /// [`Arrival::answers_needed`].
    pub needs: u64,
    /// Whether it waits for nobody because a person, or the result of a poll, says so.
    pub is_dismissed: bool,
    /// How many have answered it so that it counts.
    pub answered: u64,
    /// The party that has to act on it now.
    pub wait: Wait,
}

impl IndexedMessage {
    fn of(seq: u64, a: &Arrival, thread: String) -> Self {
        Self {
            seq,
            id: a.id().to_owned(),
            thread,
            names: a.thread.clone(),
            parent: a.answered().map(str::to_owned),
            session: a.session.clone(),
            sender: a.sender.clone(),
            receiver: a.receiver.clone(),
            targets: a.targets.clone(),
            meaning: a.meaning,
            at: a.at,
            verdict: a.verdict,
            counts: a.counts(),
            settles: a.settles(),
            closes: a.closes(),
            reopens: a.reopens(),
            is_mine: a.is_written_here(),
            joins: a.joins_alone(),
            asks: a.wait(),
            needs: u64::try_from(a.answers_needed()).unwrap_or(u64::MAX),
            is_dismissed: false,
            answered: 0,
            wait: Wait::Nobody,
        }
    }

    fn asking(&self) -> Asking<'_> {
        Asking {
            receiver: &self.receiver,
            targets: self.targets.iter().map(String::as_str).collect(),
            is_poll: self.meaning == Some(Intent::Poll),
            wait: self.asks,
            verdict: self.verdict,
        }
    }

    fn answering(&self) -> Answering<'_> {
        Answering {
            sender: &self.sender,
            is_mine: self.is_mine,
            verdict: self.verdict,
        }
    }

    fn is_verified(&self) -> bool {
        self.verdict == VerdictWord::Verified
    }
}

/// What a store has indexed, as far as indexing asks for it.
pub trait IndexFacts {
    /// Why the store can't tell.
    type Error;

    /// The message with an id.
    fn message(&self, id: &str) -> Result<Option<IndexedMessage>, Self::Error>;

    /// The thread with an id.
    fn thread(&self, id: &str) -> Result<Option<IndexedThread>, Self::Error>;

    /// All messages of a thread.
    fn messages_of(&self, thread: &str) -> Result<Vec<IndexedMessage>, Self::Error>;

    /// Messages of a thread that wait for somebody, at most so many.
    fn waiting_in(&self, thread: &str, limit: usize) -> Result<Vec<IndexedMessage>, Self::Error>;

    /// The latest messages that wait for others than the person of this store, at most so many.
    fn waiting_anywhere(&self, limit: usize) -> Result<Vec<IndexedMessage>, Self::Error>;

    /// The messages that answer an id.
    fn answers_to(&self, id: &str) -> Result<Vec<IndexedMessage>, Self::Error>;

    /// The latest message of a session; messages that must not be acted on come last.
    fn latest_of_session(&self, session: &str) -> Result<Option<IndexedMessage>, Self::Error>;

    /// Whether something was asked in a thread.
    fn thread_asks(&self, thread: &str) -> Result<bool, Self::Error>;

    /// Whether something was asked in a session.
    fn session_asks(&self, session: &str) -> Result<bool, Self::Error>;

    /// The parties that have answered the message at a position so that it counts.
    fn answered_by(&self, seq: u64) -> Result<Vec<String>, Self::Error>;

    /// To whom a relay routed the message at a position.
    fn recipients(&self, seq: u64) -> Result<Vec<String>, Self::Error>;
}

/// Where a message belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedMessage {
    /// Its thread.
    pub thread: String,
    /// Questions that it may answer, where it does not say which.
    pub candidates: Vec<String>,
    /// Since when the thread is closed.
    pub closed: Option<Timestamp>,
    /// Whether it closes this thread, though it names another one.
    pub closes: bool,
}

/// The changes of a message by indexing.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedMessage {
    /// The message as it is now.
    pub message: IndexedMessage,
    /// Whether it is new, or what is known of it is.
    pub is_new: bool,
    /// Whether it is in another thread than before.
    pub is_moved: bool,
    /// Whether the answers that were counted before count no more.
    pub forgets_answers: bool,
    /// Parties that have answered it since.
    pub answered_by: Vec<String>,
    /// Whether [`IndexedMessage::is_dismissed`] changed.
    pub changes_dismissal: bool,
}

/// The changes of a thread by indexing.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedThread {
    /// Its id.
    pub id: String,
    /// The thread as it is now; nothing if no message is in it any more.
    pub thread: Option<IndexedThread>,
    /// Whether parties that it had before may be gone.
    pub forgets_parties: bool,
}

/// The changes that an adapter writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexChanges {
    /// Messages, by position.
    pub messages: Vec<ChangedMessage>,
    /// Threads, by id.
    pub threads: Vec<ChangedThread>,
    /// The positions of messages that were answered: nobody waits for them any more.
    pub settled: Vec<u64>,
}

#[derive(Debug)]
struct MessageSlot {
    message: IndexedMessage,
    is_changed: bool,
    is_new: bool,
    is_moved: bool,
    forgets_answers: bool,
    changes_dismissal: bool,
    /// The parties that have answered, once they were queried, and how many of them the store knows.
    answered_by: Option<(Vec<String>, usize)>,
}

impl MessageSlot {
    fn loaded(message: IndexedMessage) -> Self {
        Self {
            message,
            is_changed: false,
            is_new: false,
            is_moved: false,
            forgets_answers: false,
            changes_dismissal: false,
            answered_by: None,
        }
    }

    fn into_change(self) -> ChangedMessage {
        let (all, known) = self.answered_by.unwrap_or_default();
        ChangedMessage {
            message: self.message,
            is_new: self.is_new,
            is_moved: self.is_moved,
            forgets_answers: self.forgets_answers,
            answered_by: all.into_iter().skip(known).collect(),
            changes_dismissal: self.changes_dismissal,
        }
    }
}

/// What a store has indexed, with the changes of one batch.
#[derive(Debug)]
pub struct Index<F> {
    facts: F,
    messages: HashMap<u64, MessageSlot>,
    ids: HashMap<String, Option<u64>>,
    /// Messages in memory by thread; those that were moved away are still among them.
    members: HashMap<String, BTreeSet<u64>>,
    /// The answers to ids that were asked for.
    answers: HashMap<String, Vec<u64>>,
    /// The answers that are new.
    new_answers: HashMap<String, Vec<u64>>,
    /// Of the new messages of each session, the one whose thread counts.
    sessions: HashMap<String, (bool, u64)>,
    threads: BTreeMap<String, thread::ThreadSlot>,
    /// Threads that have to be counted again.
    stale: BTreeSet<String>,
    settled: Vec<u64>,
}

impl<F: IndexFacts> Index<F> {
    /// Begins with what is indexed.
    pub fn new(facts: F) -> Self {
        Self {
            facts,
            messages: HashMap::new(),
            ids: HashMap::new(),
            members: HashMap::new(),
            answers: HashMap::new(),
            new_answers: HashMap::new(),
            sessions: HashMap::new(),
            threads: BTreeMap::new(),
            stale: BTreeSet::new(),
            settled: Vec::new(),
        }
    }

    /// Finds where a message belongs. What it says about threads and questions may be corrected: an id names one thing.
    ///
    /// # Errors
    /// The error of the store.
    pub fn place(&mut self, arrival: &mut Arrival) -> Result<PlacedMessage, F::Error> {
        let (mut candidates, named) = self.infer_question(arrival)?;
        // No thread is named after a message of another one, and no message after another thread.
        if self.names_a_message(arrival)? {
            arrival.thread = None;
        }
        let hints = self.hints(arrival)?;
        let thread = match named {
            Some(thread) if hints.of_parent.is_none() => thread,
            _ => arrival.choose_thread(&hints),
        };
        let closed = self.thread(&thread)?.and_then(|t| t.closed_at);
        let closes = arrival.meaning == Some(Intent::Close)
            && arrival.thread.as_deref() != Some(&thread)
            && self.is_in(&thread, &arrival.sender)?;
        let parent_is_known = hints.of_parent.is_some();
        candidates.extend(self.find_question(arrival, &thread, parent_is_known)?);
        Ok(PlacedMessage {
            thread,
            candidates,
            closed,
            closes,
        })
    }

    /// Indexes a message in its thread, as the latest that came. The message that it settles.
    ///
    /// # Errors
    /// The error of the store.
    pub fn add(
        &mut self,
        seq: u64,
        arrival: &Arrival,
        thread: String,
    ) -> Result<Option<String>, F::Error> {
        let message = IndexedMessage::of(seq, arrival, thread);
        self.follow(&message)?;
        self.keep_new(message, false);
        self.apply_effects(seq, arrival)
    }

    /// Indexes a message again of which more is known now. The message that it settles.
    ///
    /// # Errors
    /// The error of the store.
    pub fn renew(
        &mut self,
        seq: u64,
        arrival: &Arrival,
        thread: String,
    ) -> Result<Option<String>, F::Error> {
        self.find(arrival.id())?;
        let is_dismissed = self.get(seq).is_some_and(|m| m.is_dismissed);
        self.stale.insert(thread.clone());
        let mut message = IndexedMessage::of(seq, arrival, thread);
        message.is_dismissed = is_dismissed;
        self.keep_new(message, true);
        self.apply_effects(seq, arrival)
    }

    /// Indexes a message as it was indexed before, in the order of the positions. What it settles, and what settles it, is left
    /// for [`judge`](Self::judge).
    ///
    /// # Errors
    /// The error of the store.
    pub fn restore(&mut self, seq: u64, arrival: &Arrival, thread: String) -> Result<(), F::Error> {
        let message = IndexedMessage::of(seq, arrival, thread);
        self.follow(&message)?;
        self.keep_new(message, false);
        Ok(())
    }

    /// Returns the changes to write.
    ///
    /// # Errors
    /// The error of the store.
    pub fn finish(mut self) -> Result<IndexChanges, F::Error> {
        self.freshen_all()?;
        let mut messages: Vec<ChangedMessage> = self
            .messages
            .into_values()
            .filter(|slot| slot.is_changed)
            .map(MessageSlot::into_change)
            .collect();
        messages.sort_unstable_by_key(|change| change.message.seq);
        let changed = self.threads.into_iter().filter(|(_, slot)| slot.is_changed);
        let threads = changed.map(|(id, slot)| ChangedThread {
            id,
            thread: slot.thread,
            forgets_parties: slot.forgets_parties,
        });
        Ok(IndexChanges {
            messages,
            threads: threads.collect(),
            settled: self.settled,
        })
    }

    /// Keeps a message that is new, or known better; `forgets_answers` if the store has answers to it.
    fn keep_new(&mut self, message: IndexedMessage, forgets_answers: bool) {
        let seq = message.seq;
        if let Some(parent) = &message.parent {
            let answers = self.new_answers.entry(parent.clone()).or_default();
            answers.push(seq);
        }
        if let Some(session) = &message.session {
            let best = self.sessions.entry(session.clone()).or_default();
            *best = (*best).max((message.counts, seq));
        }
        self.ids.insert(message.id.clone(), Some(seq));
        let members = self.members.entry(message.thread.clone()).or_default();
        members.insert(seq);
        let slot = MessageSlot {
            is_changed: true,
            is_new: true,
            forgets_answers,
            answered_by: Some((Vec::new(), 0)),
            ..MessageSlot::loaded(message)
        };
        self.messages.insert(seq, slot);
    }

    fn load(&mut self, found: IndexedMessage) -> u64 {
        let seq = found.seq;
        if !self.messages.contains_key(&seq) {
            self.ids.insert(found.id.clone(), Some(seq));
            let members = self.members.entry(found.thread.clone()).or_default();
            members.insert(seq);
            self.messages.insert(seq, MessageSlot::loaded(found));
        }
        seq
    }

    fn get(&self, seq: u64) -> Option<&IndexedMessage> {
        self.messages.get(&seq).map(|slot| &slot.message)
    }

    fn find(&mut self, id: &str) -> Result<Option<u64>, F::Error> {
        if let Some(known) = self.ids.get(id) {
            return Ok(*known);
        }
        let found = self.facts.message(id)?.map(|found| self.load(found));
        self.ids.insert(id.to_owned(), found);
        Ok(found)
    }

    fn message(&mut self, id: &str) -> Result<Option<&IndexedMessage>, F::Error> {
        let seq = self.find(id)?;
        Ok(seq.and_then(|seq| self.get(seq)))
    }

    fn thread_of(&mut self, id: Option<&str>) -> Result<Option<String>, F::Error> {
        let Some(id) = id else { return Ok(None) };
        Ok(self.message(id)?.map(|m| m.thread.clone()))
    }

    /// The positions of the messages that answer an id, in their order.
    fn answers_to(&mut self, id: &str) -> Result<Vec<u64>, F::Error> {
        if !self.answers.contains_key(id) {
            let found = self.facts.answers_to(id)?;
            let seqs = found.into_iter().map(|m| self.load(m)).collect();
            self.answers.insert(id.to_owned(), seqs);
        }
        let known = self.answers.get(id).into_iter().flatten();
        let new = self.new_answers.get(id).into_iter().flatten();
        let mut all: Vec<u64> = known.chain(new).copied().collect();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// The messages of a thread that are in memory, in their order.
    fn members_of(&self, thread: &str) -> Vec<u64> {
        let members = self.members.get(thread).into_iter().flatten().copied();
        let is_in = |seq: &u64| self.get(*seq).is_some_and(|m| m.thread == thread);
        members.filter(is_in).collect()
    }

    fn move_to(&mut self, seq: u64, thread: &str) {
        if let Some(slot) = self.messages.get_mut(&seq) {
            thread.clone_into(&mut slot.message.thread);
            (slot.is_changed, slot.is_moved) = (true, true);
            let members = self.members.entry(thread.to_owned()).or_default();
            members.insert(seq);
        }
    }

    /// Whether the thread that a message names is another message.
    fn names_a_message(&mut self, arrival: &Arrival) -> Result<bool, F::Error> {
        let Some(named) = arrival.thread.as_deref().filter(|t| *t != arrival.id()) else {
            return Ok(false);
        };
        Ok(self.message(named)?.is_some_and(|m| m.thread != named))
    }

    /// Where it may belong. Messages that must not be acted on come last.
    fn hints(&mut self, arrival: &Arrival) -> Result<ThreadHints, F::Error> {
        let of_parent = match arrival.way {
            Way::Relayed if arrival.side == Side::Between => self.thread_of_parent(arrival)?,
            _ => self.thread_of(arrival.answered())?,
        };
        let named_is_known = match arrival.thread.as_deref() {
            Some(named) => self.thread(named)?.is_some(),
            None => false,
        };
        // A message that nobody signed leads nothing that is verified into its thread.
        let needs_verified = arrival.verdict == VerdictWord::Verified;
        let answers = self.answers_to(arrival.id())?;
        let leads = |m: &&IndexedMessage| {
            m.names.as_ref() != Some(&m.thread) && (m.is_verified() || !needs_verified)
        };
        let leading = answers.iter().filter_map(|seq| self.get(*seq));
        let of_answer = leading.filter(leads).map(|m| m.thread.clone()).min();
        // A thread that is surely the right one needs no look at the session.
        let is_sure = of_parent.is_some() || (arrival.thread.is_some() && !arrival.may_make_up());
        let session = arrival.session.as_deref().filter(|_| !is_sure);
        Ok(ThreadHints {
            of_parent,
            named_is_known,
            of_session: match session {
                Some(session) => self.thread_of_session(session)?,
                None => None,
            },
            of_answer,
        })
    }

    fn thread_of_session(&mut self, session: &str) -> Result<Option<String>, F::Error> {
        let known = self.facts.latest_of_session(session)?;
        let known = known.map(|m| (m.counts, self.load(m)));
        let best = known.max(self.sessions.get(session).copied());
        Ok(best.and_then(|(_, seq)| self.get(seq).map(|m| m.thread.clone())))
    }

    /// The thread of the message that a relayed message answers, if the sender has a part in that: others do not write to it.
    fn thread_of_parent(&mut self, arrival: &Arrival) -> Result<Option<String>, F::Error> {
        let Some(answered) = arrival.answered() else {
            return Ok(None);
        };
        let Some(parent) = self.message(answered)? else {
            return Ok(None);
        };
        let (seq, thread) = (parent.seq, parent.thread.clone());
        let is_sender = |name: &str| is_same_party(name, &arrival.sender);
        let names = [&parent.sender, &parent.receiver].into_iter();
        let is_named = names.chain(&parent.targets).any(|name| is_sender(name));
        let has_part = is_named
            || arrival.thread.as_ref() == Some(&thread)
            || self.is_in(&thread, &arrival.sender)?
            || self.facts.recipients(seq)?.iter().any(|to| is_sender(to));
        Ok(has_part.then_some(thread))
    }

    /// What a message changes about others, and others about it. The message that it settles.
    fn apply_effects(&mut self, seq: u64, arrival: &Arrival) -> Result<Option<String>, F::Error> {
        if !arrival.counts() {
            return Ok(None);
        }
        let answered = arrival.answered().filter(|_| arrival.settles());
        let waited = self.waits(answered)?;
        if !self.answers_to(arrival.id())?.is_empty() {
            self.gather(seq)?;
            self.judge(arrival.id())?;
        } else if arrival.wait() != Wait::Nobody {
            self.refresh(seq)?;
        }
        if let Some(id) = answered {
            self.count(id, seq, arrival)?;
            self.take_as_answer(id, seq, arrival)?;
        }
        if let Some(poll) = answered.filter(|_| arrival.ends_poll()) {
            self.end_poll(poll)?;
        }
        if arrival.closes() {
            self.close(seq)?;
        }
        let is_settled = waited && !self.waits(answered)?;
        let settled = answered.filter(|_| is_settled);
        if let Some(id) = settled {
            let seq = self.find(id)?;
            self.settled.extend(seq);
        }
        Ok(settled.map(str::to_owned))
    }

    /// Brings answers that came before their message into its thread, with what answers them, unless they named a thread of
    /// their own. A verified one follows a verified one alone.
    fn gather(&mut self, seq: u64) -> Result<(), F::Error> {
        let Some(message) = self.get(seq) else {
            return Ok(());
        };
        let (thread, id, is_verified) = (
            message.thread.clone(),
            message.id.clone(),
            message.is_verified(),
        );
        let mut moved: Vec<(u64, String)> = Vec::new();
        let mut next: Vec<u64> = self.answers_to(&id)?;
        next.retain(|seq| {
            self.get(*seq).is_some_and(|m| {
                let is_free = m.names.as_ref() != Some(&m.thread) && m.thread != thread;
                is_free && (!m.is_verified() || is_verified)
            })
        });
        while let Some(seq) = next.pop() {
            let Some(parent) = self.get(seq) else {
                continue;
            };
            if moved.iter().any(|(known, _)| *known == seq) {
                continue;
            }
            let (id, from, is_verified) = (
                parent.id.clone(),
                parent.thread.clone(),
                parent.is_verified(),
            );
            for seq in self.answers_to(&id)? {
                let goes_along = self
                    .get(seq)
                    .is_some_and(|m| m.thread == from && (!m.is_verified() || is_verified));
                if goes_along {
                    next.push(seq);
                }
            }
            moved.push((seq, from));
        }
        if !moved.is_empty() {
            self.stale.insert(thread.clone());
        }
        for (seq, from) in moved {
            self.move_to(seq, &thread);
            self.stale.insert(from);
        }
        Ok(())
    }
}

/// Whether a party is among some, by the form in which equal parties are equal.
fn has_party(parties: &[String], name: &str) -> bool {
    let key = party(name);
    parties.contains(&key)
}
