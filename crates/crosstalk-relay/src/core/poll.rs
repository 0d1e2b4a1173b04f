//! Polls that callers handed in here: their list, their tally and their end.
//!
//! A relay counts the polls that came to it first, not those that another relay passed on. The stored result closes a poll: there is no
//! other state, and everybody who has the envelopes can count again.

use super::{Received, Relay};
use crosstalk_api::poll::{PollSummary, QuorumView};
use crosstalk_envelope::name::{SYSTEM, same_name};
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};
use crosstalk_protocol::poll::{
    Collation, Paper, PollCall, Proofs, VoterNames, collate_named, is_result, may_be_ballot,
};
use crosstalk_protocol::relay::port::{Arrived, DuePoll, NextTimes, PollState, SearchQuery};
use crosstalk_protocol::store::{Page, Record, Search, StoreError, StoreFault, party};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// How many messages of a thread are looked at in one go.
const PORTION: usize = 256;
/// How many answers of one who is asked are looked at; of all others together, as many.
const ANSWERS: usize = 1_000;

/// How many polls are remembered as they were counted last.
const SUMMARIES: usize = 1024;

/// Wakes watchers of a poll when a message comes to it. The store knows which polls have to be counted.
#[derive(Default)]
pub(super) struct PollSignals {
    /// Ids and threads of polls that are watched, and by how many.
    watched: Mutex<HashMap<String, usize>>,
    bell: Notify,
    changes: watch::Sender<u64>,
}

/// Results of earlier counts.
#[derive(Default)]
pub(super) struct PollCache {
    counted: Mutex<HashMap<String, Counted>>,
    /// Verdicts about answers, from one count to the next.
    proofs: Arc<Proofs>,
}

impl PollCache {
    fn counted(&self) -> MutexGuard<'_, HashMap<String, Counted>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A poll as it was counted, and the state of its thread then.
struct Counted {
    messages: u64,
    last: String,
    summary: PollSummary,
}

impl PollSignals {
    fn watched(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an accepted message that is a poll, or may be an answer to one.
    pub(super) fn came(&self, arrived: &Arrived<'_>) {
        let is_of_poll = |meaning: Intent| meaning == Intent::Poll || may_be_ballot(meaning);
        if !arrived.meaning.is_some_and(is_of_poll) {
            return;
        }
        self.bell.notify_one();
        let names = [arrived.answers, arrived.thread];
        let watched = self.watched();
        let is_watched = names.iter().flatten().any(|n| watched.contains_key(*n));
        drop(watched);
        if is_watched {
            self.ring();
        }
    }

    /// There may be something to do.
    pub(super) fn wake(&self) {
        self.bell.notify_one();
    }

    fn ring(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }
}

/// A watcher of a poll, until it is dropped.
pub(crate) struct PollWatch {
    relay: Relay,
    names: [String; 2],
    changes: watch::Receiver<u64>,
}

impl PollWatch {
    /// Marks all messages up to now as seen.
    pub(crate) fn mark_unchanged(&mut self) {
        self.changes.mark_unchanged();
    }

    /// Waits until something comes to a poll, perhaps to another one. False when nothing will come any more.
    pub(crate) async fn changed(&mut self) -> bool {
        self.changes.changed().await.is_ok()
    }
}

impl Drop for PollWatch {
    fn drop(&mut self) {
        let mut watched = self.relay.shared.signals.polls.watched();
        for name in &self.names {
            if let Some(count) = watched.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    watched.remove(name);
                }
            }
        }
    }
}

/// How a poll stands.
#[derive(Clone, Debug)]
pub struct PollStatus {
    /// The POLL.
    pub record: Record,
    /// The count so far, or at the time of the close.
    pub collation: Collation,
    /// Up to when answers counted, once it is closed.
    pub closed_at: Option<Timestamp>,
    /// When it is closed at the latest.
    pub ends_at: Option<Timestamp>,
    /// Whether the answers that came before it was closed are not those that its result was made of.
    is_outdated: bool,
    /// Whether texts were erased since it was closed: what came out is what was sent then.
    pub is_past: bool,
}

impl PollStatus {
    /// When it has to be closed, if that time has come: the deadline has passed, or everybody has answered.
    fn closes(&self, now: Timestamp) -> Option<Timestamp> {
        if self.closed_at.is_some() {
            return self.closed_at.filter(|_| self.is_outdated);
        }
        let is_over = self.ends_at.filter(|end| *end <= now);
        let is_full = self.collation.is_complete();
        is_over.or_else(|| self.collation.after_last().filter(|_| is_full))
    }

    /// The part of the count that may be shown now.
    pub fn shown(&self) -> Collation {
        match self.closed_at {
            Some(_) => self.collation.clone(),
            None => self.collation.clone().while_open(),
        }
    }

    /// `open` or `closed`.
    pub fn state(&self) -> &'static str {
        match self.closed_at {
            Some(_) => "closed",
            None => "open",
        }
    }
}

impl Relay {
    /// How long a poll without a deadline is open, in milliseconds.
    fn poll_within(&self) -> Option<i64> {
        let within = self.rules().answer_within?;
        i64::try_from(within.as_millis()).ok()
    }

    /// How a poll stands; nothing if there is none with this id that this relay counts.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn poll(&self, id: &str) -> Result<Option<PollStatus>, StoreError> {
        self.poll_at(id, None).await
    }

    async fn poll_at(
        &self,
        id: &str,
        at: Option<Timestamp>,
    ) -> Result<Option<PollStatus>, StoreError> {
        // Messages that were accepted before count, indexed or not.
        self.store().caught_up().await?;
        let poll = self.store().record(id).await?;
        let Some(poll) = poll.filter(|r| r.meaning == Some(Intent::Poll)) else {
            return Ok(None);
        };
        let (rules, within) = (self.rules(), self.poll_within());
        let names = rules.routes.names.clone();
        let Some(call) = call_of(&poll, &names) else {
            return Ok(None);
        };
        let said = self.said_to(&poll, &call).await?;
        let proofs = Arc::clone(&self.shared.polls.proofs);
        // Signatures are checked: not on a thread that serves requests.
        let counted = tokio::task::spawn_blocking(move || {
            standing(poll, said, at, (within, &names, &proofs))
        });
        counted.await.map_err(|_| self.gone())
    }

    /// Everything of the thread of a poll, as whoever counts from its files has it: an answer to another question is none to
    /// the poll. Nobody keeps the answers of others from being counted by sending many.
    async fn said_to(&self, poll: &Record, call: &PollCall) -> Result<Vec<Record>, StoreError> {
        let mut said = Vec::new();
        let (mut after, mut heard) = (None, HashMap::<String, usize>::new());
        loop {
            let listing = self.store().messages(&poll.thread, after, PORTION).await?;
            after = listing.items.last().map(|r| r.seq);
            for answer in listing.items.into_iter().filter(|r| r.id != poll.id) {
                let speaker = match call.heeds(&answer.sender) {
                    true => party(&answer.sender),
                    false => String::new(),
                };
                let is_told = same_name(&answer.sender, SYSTEM);
                let number = heard.entry(speaker).or_default();
                *number += usize::from(!is_told);
                if *number <= ANSWERS || is_told {
                    said.push(answer);
                }
            }
            if !listing.more || after.is_none() {
                return Ok(said);
            }
        }
    }

    /// Closes a poll if its time has come: its result is sent, once. How it stands then.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn settle_poll(&self, id: &str) -> Result<Option<PollStatus>, StoreError> {
        let Some(standing) = self.poll(id).await? else {
            return Ok(None);
        };
        match standing.closes(self.now()) {
            Some(at) => self.close_poll(id, at).await,
            None => Ok(Some(standing)),
        }
    }

    /// Closes a poll now: what came before a time counts, and the result is sent.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn close_poll(
        &self,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<PollStatus>, StoreError> {
        let Some(mut standing) = self.poll_at(id, Some(at)).await? else {
            return Ok(None);
        };
        standing.closed_at = Some(at);
        let thread = standing.record.thread.as_str();
        match standing.collation.to_envelopes(Some(thread)) {
            Ok(texts) => {
                for text in texts {
                    match self.say(&text).await {
                        Received::Accepted { .. } => {}
                        // Trouble that passes.
                        Received::Rejected {
                            refusal,
                            status: 503,
                            ..
                        } => {
                            return Err(StoreError::new(
                                StoreFault::Busy,
                                refusal.what,
                                refusal.help,
                            ));
                        }
                        Received::Rejected { refusal, .. } => {
                            tracing::warn!(
                                id,
                                code = refusal.code.as_str(),
                                "the result of a poll could not be sent"
                            );
                        }
                    }
                }
            }
            Err(error) => {
                tracing::warn!(id, reason = %error, "the result of a poll could not be written")
            }
        }
        let closed = DuePoll {
            id: id.to_owned(),
            touched: None,
        };
        let state = PollState::Closed(at);
        self.store().count_poll(closed, state).await?;
        self.shared.signals.polls.ring();
        Ok(Some(standing))
    }

    /// The ids of indexed polls, the latest first, in parts.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn polls(&self, page: Page) -> Result<(Vec<Record>, bool), StoreError> {
        let Ok(search) = Search::parse("intent:poll") else {
            return Ok((Vec::new(), false));
        };
        let query = SearchQuery {
            search,
            page,
            is_complete: true,
        };
        let mut listing = self.store().search(query).await?.found;
        listing.items.retain(|r| r.meaning == Some(Intent::Poll));
        Ok((listing.items, listing.more))
    }

    /// A poll in a list. It is counted only if its thread has changed since it was counted last; nothing if this relay does
    /// not count it.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn poll_summary(&self, record: &Record) -> Result<Option<PollSummary>, StoreError> {
        let thread = self.store().thread(&record.thread).await?;
        let (messages, last) = thread.map_or((0, String::new()), |t| (t.messages, t.last));
        let polls = &self.shared.polls;
        let is_same = |c: &&Counted| c.messages == messages && c.last == last;
        if let Some(known) = polls.counted().get(&record.id).filter(is_same) {
            return Ok(Some(known.summary.clone()));
        }
        let Some(standing) = self.poll(&record.id).await? else {
            return Ok(None);
        };
        let (invited, quorum) = (&standing.collation.poll.invited, standing.collation.quorum);
        let summary = PollSummary {
            message: record.id.clone(),
            thread: record.thread.clone(),
            from: record.sender.clone(),
            context: record.context.clone(),
            state: standing.state().to_owned(),
            ends_at: standing.ends_at.map(|t| t.to_string()),
            closed_at: standing.closed_at.map(|t| t.to_string()),
            invited: u64::try_from(invited.len()).unwrap_or(u64::MAX),
            quorum: QuorumView {
                required: quorum.required,
                counted: quorum.counted,
                reached: quorum.reached,
            },
            outcome: standing.shown().outcome,
        };
        let counted = Counted {
            messages,
            last,
            summary: summary.clone(),
        };
        let mut known = polls.counted();
        if known.len() >= SUMMARIES {
            known.clear();
        }
        known.insert(record.id.clone(), counted);
        Ok(Some(summary))
    }

    /// Counts the polls that have to be counted, at most so many, and closes those whose time has come. How many there
    /// were.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn settle_polls(&self, most: usize) -> Result<usize, StoreError> {
        let (now, within) = (self.now(), self.poll_within());
        let due = self.store().due_polls(now, within, most).await?;
        let (count, mut trouble) = (due.len(), None);
        for poll in due {
            // One that can't be counted does not keep the others waiting.
            if let Err(error) = self.count_poll(&poll).await {
                tracing::warn!(id = poll.id, reason = %error, "a poll could not be counted");
                trouble = Some(error);
            }
        }
        trouble.map_or(Ok(count), Err)
    }

    async fn count_poll(&self, poll: &DuePoll) -> Result<(), StoreError> {
        let state = match self.settle_poll(&poll.id).await? {
            None => PollState::Elsewhere,
            Some(standing) => match standing.closed_at {
                Some(at) => PollState::Closed(at),
                None => PollState::Open(standing.ends_at),
            },
        };
        self.store().count_poll(poll.clone(), state).await
    }

    /// When something has to be done next.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn next_times(&self) -> Result<NextTimes, StoreError> {
        self.store().next_times(self.poll_within()).await
    }

    /// Waits until something comes to a poll.
    pub(crate) async fn poll_signal(&self) {
        self.shared.signals.polls.bell.notified().await;
    }

    /// Watches a poll: for what comes to it, and for its end.
    pub(crate) fn watch_poll(&self, standing: &PollStatus) -> PollWatch {
        let record = &standing.record;
        let names = [record.id.clone(), record.thread.clone()];
        let mut watched = self.shared.signals.polls.watched();
        for name in &names {
            *watched.entry(name.clone()).or_default() += 1;
        }
        drop(watched);
        PollWatch {
            changes: self.shared.signals.polls.changes.subscribe(),
            relay: self.clone(),
            names,
        }
    }
}

/// The question of a poll that this relay counts.
fn call_of(poll: &Record, names: &VoterNames) -> Option<PollCall> {
    let document = Document::parse(&poll.text, Reading::Strict);
    let is_own = poll.carries_id && document.envelope().hops().next().is_none();
    is_own.then(|| PollCall::read(&document, &poll.id, Some(names)))
}

/// How a poll stands, or stood at a time, by what was said to it.
fn standing(
    record: Record,
    said: Vec<Record>,
    at: Option<Timestamp>,
    (within, names, proofs): (Option<i64>, &VoterNames, &Proofs),
) -> Option<PollStatus> {
    let id = record.id.as_str();
    let poll = Document::parse(&record.text, Reading::Strict);
    let (mut records, mut results) = (Vec::new(), Vec::new());
    for answer in &said {
        let document = Document::parse(&answer.text, Reading::Strict);
        match own_result(&document, answer, id) {
            true => results.push(Told::of(&document, &answer.id)),
            false => records.push((document, answer.at)),
        }
    }
    // The latest result is the one that counts: an earlier one was made before everything was known.
    let told = results.iter().rev().find(|r| r.at.is_some());
    let closed_at = told.and_then(|r| r.at);
    let mut papers = vec![Paper::of(&poll)];
    papers.extend(records.iter().map(|(document, at)| Paper {
        // The hop of this relay, when it leaves.
        hop: Some(*at),
        ..Paper::of(document)
    }));
    let counted = collate_named(&papers, Some(id), at.or(closed_at), Some(names), proofs);
    let mut collation = counted.ok()?;
    let deadline = collation.call().deadline;
    let ends_at = deadline.or_else(|| {
        let millis = record.at.as_millis().saturating_add(within?);
        Some(Timestamp::from_millis(millis))
    });
    let texts = closed_at.and_then(|_| collation.to_envelopes(Some(&record.thread)).ok());
    let mut unsent = texts.iter().flatten().map(|text| {
        let result = Document::parse(text, Reading::Strict);
        let id = result.envelope().message;
        !results.iter().any(|known| Some(known.id.as_str()) == id)
    });
    // The first one goes to the party that asked; another one may wait for a person.
    let is_other = unsent.next() == Some(true);
    let lacks_one = is_other || unsent.any(|is_unsent| is_unsent);
    // Erased ballots can't be counted again: the earlier result stays, unless more answers are known now.
    let known = told.and_then(|r| r.answers).unwrap_or(usize::MAX);
    let is_past = is_other && collation.answers <= known;
    if let Some(told) = told.filter(|_| is_past) {
        (collation.outcome, collation.reason) = (told.outcome.clone(), told.reason.clone());
    }
    Some(PollStatus {
        collation,
        closed_at,
        ends_at,
        is_outdated: lacks_one && !is_past,
        is_past,
        record,
    })
}

/// A result that was sent.
struct Told {
    id: String,
    at: Option<Timestamp>,
    outcome: Option<String>,
    reason: Option<String>,
    /// How many answers it was made of.
    answers: Option<usize>,
}

impl Told {
    fn of(document: &Document<'_>, id: &str) -> Self {
        let meta = |key| document.meta("collation", key);
        Self {
            id: id.to_owned(),
            at: meta("At").and_then(Timestamp::parse),
            outcome: meta("Outcome").map(str::to_owned),
            reason: meta("Reason").map(str::to_owned),
            answers: meta("Answers").and_then(|n| n.parse().ok()),
        }
    }
}

/// Whether a message is the result of a poll by this relay: nobody else speaks in this name, and what another relay
/// passes on has a hop.
fn own_result(document: &Document<'_>, record: &Record, poll: &str) -> bool {
    is_result(document)
        && same_name(&record.sender, SYSTEM)
        && record.parent.as_deref() == Some(poll)
        && document.envelope().hops().next().is_none()
}

/// The party that may close a poll besides the operator.
pub(crate) fn initiator(standing: &PollStatus) -> &str {
    let call: &PollCall = standing.collation.call();
    &call.initiator
}
