//! Questions: who has to act on a message next, what settles it, what opens it again, and which one an answer means.

use super::{Index, IndexFacts, IndexedMessage, has_party};
use crate::store::arrival::{Arrival, Wait};
use crate::store::party::party;
use crate::store::question::{CandidateQuestion, Lookup, Meant, NamedIds};
use crosstalk_envelope::Intent;

/// More waiting messages of a thread than these are not looked at: which of so many an answer means, nobody can tell.
const MAX_WAITING: usize = 64;
/// The same of all threads.
const MAX_WAITING_ANYWHERE: usize = 1000;

impl<F: IndexFacts> Index<F> {
    /// Whether the message with an id waits for somebody.
    ///
    /// # Errors
    /// The error of the store.
    pub fn waits(&mut self, id: Option<&str>) -> Result<bool, F::Error> {
        let Some(thread) = self.thread_of(id)? else {
            return Ok(false);
        };
        self.freshen(&thread)?;
        let message = self.message(id.unwrap_or_default())?;
        Ok(message.is_some_and(|m| m.wait != Wait::Nobody))
    }

    /// The position of a message that asks something.
    fn question(&mut self, id: &str) -> Result<Option<u64>, F::Error> {
        let asks = |m: &&IndexedMessage| m.asks != Wait::Nobody;
        Ok(self.message(id)?.filter(asks).map(|m| m.seq))
    }

    /// Counts one answer to a message. Others that came before are not looked at.
    pub(super) fn count(&mut self, id: &str, seq: u64, answer: &Arrival) -> Result<(), F::Error> {
        let Some(question) = self.question(id)?.filter(|q| *q != seq) else {
            return Ok(());
        };
        let counts = self
            .get(question)
            .is_some_and(|q| q.answered < q.needs && answer.settles_question(&q.asking()));
        if counts && self.note_answer(question, &answer.sender)? {
            self.refresh(question)?;
        }
        Ok(())
    }

    /// Records that somebody has answered. False if that was known.
    fn note_answer(&mut self, question: u64, sender: &str) -> Result<bool, F::Error> {
        if has_party(self.answered_by(question)?, sender) {
            return Ok(false);
        }
        if let Some(slot) = self.messages.get_mut(&question) {
            let (answered_by, _) = slot.answered_by.get_or_insert_default();
            answered_by.push(party(sender));
            slot.message.answered += 1;
            slot.is_changed = true;
        }
        Ok(true)
    }

    /// The parties whose answers to a message count.
    fn answered_by(&mut self, seq: u64) -> Result<&[String], F::Error> {
        let Some(slot) = self.messages.get_mut(&seq) else {
            return Ok(&[]);
        };
        let (answered_by, _) = match &mut slot.answered_by {
            Some(known) => known,
            unknown => {
                let known = self.facts.answered_by(seq)?;
                let count = known.len();
                unknown.insert((known, count))
            }
        };
        Ok(answered_by)
    }

    /// Ends the wait of a message that a person filed as the answer to another one, whatever its intent says.
    ///
    /// # Errors
    /// The error of the store.
    pub fn take_as_answer(&mut self, id: &str, seq: u64, answer: &Arrival) -> Result<(), F::Error> {
        let Some(question) = self.question(id)?.filter(|q| *q != seq) else {
            return Ok(());
        };
        let answers = |q: &IndexedMessage| answer.answers_instead_of_asking(&q.asking());
        if answer.wait() == Wait::Nobody || !self.get(question).is_some_and(answers) {
            return Ok(());
        }
        self.set_dismissed(seq, true)
    }

    /// Records whether a message waits for nobody because a person says so.
    ///
    /// # Errors
    /// The error of the store.
    pub fn set_dismissed(&mut self, seq: u64, is_dismissed: bool) -> Result<(), F::Error> {
        if let Some(slot) = self.messages.get_mut(&seq) {
            slot.message.is_dismissed = is_dismissed;
            (slot.is_changed, slot.changes_dismissal) = (true, true);
        }
        self.refresh(seq)
    }

    /// Ends the wait of a message without an answer. False if it does not wait.
    ///
    /// # Errors
    /// The error of the store.
    pub fn dismiss(&mut self, id: &str) -> Result<bool, F::Error> {
        let waits = self.waits(Some(id))?;
        if let Some(seq) = self.find(id)?.filter(|_| waits) {
            self.set_dismissed(seq, true)?;
        }
        Ok(waits)
    }

    /// Counts all answers to the message of an id again.
    ///
    /// # Errors
    /// The error of the store.
    pub fn judge(&mut self, id: &str) -> Result<(), F::Error> {
        let Some(question) = self.question(id)? else {
            return Ok(());
        };
        if let Some(slot) = self.messages.get_mut(&question) {
            slot.message.answered = 0;
            slot.answered_by = Some((Vec::new(), 0));
            (slot.is_changed, slot.forgets_answers) = (true, true);
        }
        for seq in self.answers_to(id)? {
            let (Some(asked), Some(answer)) = (self.get(question), self.get(seq)) else {
                continue;
            };
            if asked.answered >= asked.needs {
                break;
            }
            let settles = answer.settles && answer.answering().settles(&asked.asking());
            if settles && seq != question {
                let sender = answer.sender.clone();
                self.note_answer(question, &sender)?;
            }
        }
        self.refresh(question)
    }

    /// Decides again who has to act on the message with an id, after it was changed.
    ///
    /// # Errors
    /// The error of the store.
    pub fn reconsider(&mut self, id: &str) -> Result<(), F::Error> {
        match self.find(id)? {
            Some(seq) => self.refresh(seq),
            None => Ok(()),
        }
    }

    /// Decides again who has to act on a message, by what was counted.
    pub(super) fn refresh(&mut self, seq: u64) -> Result<(), F::Error> {
        let Some(message) = self.get(seq) else {
            return Ok(());
        };
        let (thread, verdict) = (message.thread.clone(), message.verdict);
        let closed = self.thread(&thread)?;
        let closed = closed.map_or(0, |t| t.closed_through(verdict));
        let Some(slot) = self.messages.get_mut(&seq) else {
            return Ok(());
        };
        let m = &mut slot.message;
        let is_open = !m.is_dismissed && m.answered < m.needs && closed < m.seq;
        let (before, after) = (m.wait, if is_open { m.asks } else { Wait::Nobody });
        if before == after {
            return Ok(());
        }
        m.wait = after;
        slot.is_changed = true;
        self.change_thread(&thread, |thread| thread.count_wait(before, after))
    }

    /// Ends the wait of a poll whose result is here.
    ///
    /// # Errors
    /// The error of the store.
    pub fn end_poll(&mut self, id: &str) -> Result<(), F::Error> {
        let is_open =
            |m: &IndexedMessage| m.meaning == Some(Intent::Poll) && m.wait != Wait::Nobody;
        match self.message(id)?.is_some_and(is_open) {
            true => self.dismiss(id).map(drop),
            false => Ok(()),
        }
    }

    /// Clears the waits of a thread up to the message that closed it; those of verified messages up to one that is firm.
    /// Nothing if that message closed nothing.
    pub(super) fn close(&mut self, seq: u64) -> Result<(), F::Error> {
        let Some(thread) = self.get(seq).map(|m| m.thread.clone()) else {
            return Ok(());
        };
        let closed = self.thread(&thread)?.and_then(|t| t.closed_seq);
        if closed != Some(seq) {
            return Ok(());
        }
        for waiting in self.waiting_in(&thread, usize::MAX)? {
            if waiting < seq {
                self.refresh(waiting)?;
            }
        }
        Ok(())
    }

    /// The positions of the messages of a thread that wait for somebody, in their order; a few more than the limit at most.
    fn waiting_in(&mut self, thread: &str, limit: usize) -> Result<Vec<u64>, F::Error> {
        self.freshen(thread)?;
        for found in self.facts.waiting_in(thread, limit)? {
            self.load(found);
        }
        let mut waiting = self.members_of(thread);
        waiting.retain(|seq| self.get(*seq).is_some_and(|m| m.wait != Wait::Nobody));
        Ok(waiting)
    }

    /// The messages that wait for others, of all threads.
    fn waiting_anywhere(&mut self) -> Result<Vec<u64>, F::Error> {
        for found in self.facts.waiting_anywhere(MAX_WAITING_ANYWHERE + 1)? {
            self.load(found);
        }
        let waits = |m: &IndexedMessage| matches!(m.wait, Wait::Carry | Wait::Them);
        let slots = self.messages.values().map(|slot| &slot.message);
        let mut waiting: Vec<u64> = slots.filter(|m| waits(m)).map(|m| m.seq).collect();
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        Ok(waiting)
    }

    /// The messages that wait for a sender: those of a thread, or without one the latest of all threads. None if there are
    /// more than can be looked through.
    fn open_to(
        &mut self,
        thread: Option<&str>,
        sender: &str,
    ) -> Result<Vec<CandidateQuestion>, F::Error> {
        let (waiting, limit) = match thread {
            Some(thread) => (self.waiting_in(thread, MAX_WAITING + 1)?, MAX_WAITING),
            None => (self.waiting_anywhere()?, MAX_WAITING_ANYWHERE),
        };
        let mut open = Vec::new();
        if waiting.len() > limit {
            return Ok(open);
        }
        for seq in waiting {
            let answered_by = self.answered_by(seq)?.to_vec();
            let waits = |m: &&IndexedMessage| m.asking().waits_for(sender, &answered_by);
            open.extend(self.get(seq).filter(waits).map(|m| CandidateQuestion {
                id: m.id.clone(),
                sender: m.sender.clone(),
            }));
        }
        Ok(open)
    }

    /// The thread of a question that does not wait for somebody: they have answered it so that it counts, or it asks others.
    /// A poll that asks them is left out: a voter may vote again.
    fn not_waiting_in(&mut self, id: &str, sender: &str) -> Result<Option<String>, F::Error> {
        let Some(seq) = self.question(id)? else {
            return Ok(None);
        };
        let answered_by = self.answered_by(seq)?.to_vec();
        let is_done = |m: &&IndexedMessage| {
            let asking = m.asking();
            let may_answer_again = asking.is_poll && asking.asks(sender);
            !may_answer_again && !asking.waits_for(sender, &answered_by)
        };
        let question = self.get(seq).filter(is_done);
        Ok(question.map(|m| m.thread.clone()))
    }

    /// Looks up the ids that a message carries.
    fn named_ids(&mut self, arrival: &Arrival) -> Result<NamedIds, F::Error> {
        let (thread, parent) = (arrival.thread.as_deref(), arrival.parent.as_deref());
        let mut named = NamedIds {
            parent_is_message: self.thread_of(parent)?.is_some(),
            ..NamedIds::default()
        };
        if let Some(parent) = parent {
            named.parent_is_thread = self.thread(parent)?.is_some();
            named.not_waiting = self.not_waiting_in(parent, &arrival.sender)?;
        }
        if let Some(thread) = thread {
            let asks = |m: &IndexedMessage| m.thread == thread && m.asks != Wait::Nobody;
            named.thread_asks = self.any(asks) || self.facts.thread_asks(thread)?;
            if self.thread(thread)?.is_none() {
                named.of_thread_as_message = self.thread_of(Some(thread))?;
            }
        }
        if let Some(session) = arrival.session.as_deref() {
            let is_in = |m: &IndexedMessage| m.session.as_deref() == Some(session);
            named.session_asks = self.any(|m| is_in(m) && m.asks != Wait::Nobody)
                || self.facts.session_asks(session)?;
        }
        Ok(named)
    }

    fn any(&self, is_it: impl Fn(&IndexedMessage) -> bool) -> bool {
        self.messages.values().any(|slot| is_it(&slot.message))
    }

    /// Finds the message that an answer means whose ids are unknown or in the wrong place: the only one that waits for its
    /// sender, or those that it may be. The thread that it named in the wrong place comes with them.
    ///
    /// # Errors
    /// The error of the store.
    pub fn infer_question(
        &mut self,
        arrival: &mut Arrival,
    ) -> Result<(Vec<String>, Option<String>), F::Error> {
        if !arrival.may_make_up() {
            return Ok((Vec::new(), None));
        }
        let named = self.named_ids(arrival)?;
        let (open, named) = match arrival.look_for_question(&named) {
            Lookup::None | Lookup::Here => return Ok((Vec::new(), None)),
            Lookup::Thread(thread) => (self.open_to(Some(&thread), &arrival.sender)?, Some(thread)),
            Lookup::Everywhere => {
                self.freshen_all()?;
                (self.open_to(None, &arrival.sender)?, None)
            }
            Lookup::Next(thread) => {
                let open = self.open_to(Some(&thread), &arrival.sender)?;
                if let Meant::One(id) = arrival.choose_next(&open) {
                    arrival.answers = Some(id);
                }
                return Ok((Vec::new(), None));
            }
        };
        match arrival.choose_question(&open) {
            Meant::None => Ok((Vec::new(), named)),
            Meant::Several(candidates) => Ok((candidates, named)),
            Meant::One(id) => {
                arrival.answers = Some(id);
                Ok((Vec::new(), None))
            }
        }
    }

    /// Finds the message of its thread that an answer means that names none, or those that it may mean.
    pub(super) fn find_question(
        &mut self,
        arrival: &mut Arrival,
        thread: &str,
        parent_is_known: bool,
    ) -> Result<Vec<String>, F::Error> {
        let mut candidates = Vec::new();
        if arrival.answers_unnamed(parent_is_known) {
            let open = self.open_to(Some(thread), &arrival.sender)?;
            match arrival.choose_question(&open) {
                Meant::None => {}
                Meant::One(id) => arrival.answers = Some(id),
                Meant::Several(several) => candidates = several,
            }
        }
        Ok(candidates)
    }
}
