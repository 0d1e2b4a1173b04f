//! The thread that writes: it accepts everything that came meanwhile in one transaction, and indexes a portion of what is
//! accepted after each.

use crosstalk_protocol::relay::port::{Acceptance, Arrived, StoreEvent};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, HandedOut, HoldDecision, IndexProgress, Ruling,
};
use crosstalk_protocol::store::{StoreError, StoreFault};
use rusqlite::Connection;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

use super::{SearchFiller, Shared, SqliteStore};
use crate::sqlite::fault::SqlResult;
use crate::sqlite::relay::command::GroupedChange;

/// How many jobs are done before the writer indexes again, and how many messages one transaction accepts at most.
const BATCH: usize = 512;
/// Under load, messages are indexed so many at a time, or after this time: threads and parties are written once for all of
/// them.
const INDEX_BATCH: usize = 512;
const INDEX_DELAY: Duration = Duration::from_millis(25);
/// A transaction that accepts so many messages says that there is load.
const LOADED_BATCH: usize = 8;
/// How long one portion of indexing takes while others come in, and while nothing else is to be done.
const INDEX_BUSY_TIME: Duration = Duration::from_millis(5);
const INDEX_IDLE_TIME: Duration = Duration::from_millis(25);
/// A portion of indexing has at least and at most so many messages.
const INDEX_PORTION: RangeInclusive<usize> = INDEX_BATCH..=4096;
/// With more messages that are not indexed, each turn indexes more than it accepts.
const LARGE_BACKLOG: u64 = 4096;
/// How long indexing rests after an error.
const INDEX_PAUSE: Duration = Duration::from_millis(50);
/// How long it goes on indexing when it is told to stop. The rest is indexed at the next start.
const STOP_TIME: Duration = Duration::from_secs(5);
/// Until somebody has something to do.
const FOREVER: Duration = Duration::from_secs(3600);
/// That messages were handed out is noted this long after at the latest while others come in.
const HANDED_OUT_DELAY: Duration = Duration::from_millis(20);

/// Where the caller of a command gets its answer.
type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A change of the store. Its caller has the answer; its error is one after which the store can't be relied on.
pub(super) type Change = Box<dyn FnOnce(&mut SqliteStore) -> Result<(), StoreError> + Send>;

/// A [`GroupedChange`] with its answer, once it was made, and its caller.
struct Grouped<T, F> {
    change: F,
    done: Option<T>,
    reply: Reply<T>,
}

/// A change that shares its transaction with others, and its caller.
pub(super) fn grouped<T: Send + 'static>(
    change: impl Fn(&Connection) -> SqlResult<T> + Send + 'static,
    reply: Reply<T>,
) -> Box<dyn GroupedChange> {
    Box::new(Grouped {
        change,
        done: None,
        reply,
    })
}

impl<T: Send, F: Fn(&Connection) -> SqlResult<T> + Send> GroupedChange for Grouped<T, F> {
    fn run(&mut self, db: &Connection) -> SqlResult<()> {
        self.done = Some((self.change)(db)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { done, reply, .. } = *self;
        // Without an answer, the caller learns that the writer ended.
        if let Some(answer) = committed.map(|()| done).transpose() {
            // The caller may be gone; the change is made anyway.
            let _ = reply.send(answer);
        }
    }
}

/// A task of the writer.
pub(super) enum Job {
    /// Accept a message.
    Accept(Box<Admission>, Reply<Acceptance>),
    /// Decide about a message that waits for a person.
    Decide(Box<HoldDecision>, Reply<Ruling>),
    /// Change something in a transaction that it may share.
    Grouped(Box<dyn GroupedChange>),
    /// Change something else.
    Change(Change),
    /// Change something once every message is indexed that was accepted before.
    ChangeIndexed(Change),
    /// Note that messages were handed out. No caller waits for it.
    HandedOut(HandedOut),
    /// Stop at once: a reader found that the store can't be relied on.
    Fail(StoreError),
    /// Stop when nothing is left to do.
    Stop(Rest),
}

/// What happens to messages that are not indexed when the writer stops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// They are indexed, as far as there is time.
    Index,
    /// They are indexed at the next start.
    Leave,
}

pub(super) struct Writer {
    store: SqliteStore,
    shared: Arc<Shared>,
    last_accepted: u64,
    /// How far indexing is; `left` counts what was accepted since.
    progress: IndexProgress,
    /// How long it takes to index a message, by the last portions.
    index_cost: Duration,
    /// How many messages the last transaction accepted; none if nothing came since.
    last_batch: usize,
    /// Since when messages wait to be indexed.
    unindexed_since: Instant,
    /// Changes that wait until the message with a seq is indexed, in the order of the seqs.
    later: VecDeque<(u64, Change)>,
    handed_out: Vec<HandedOut>,
    /// Since when something was handed out that is not noted.
    handed_out_since: Option<Instant>,
    search: SearchFiller,
    /// Until when it goes on, once it was told to stop.
    end: Option<Instant>,
    /// Whether it indexes only when somebody waits for it.
    is_lazy: bool,
}

impl Writer {
    pub(super) fn new(
        store: SqliteStore,
        shared: Arc<Shared>,
        search: SearchFiller,
        is_lazy: bool,
    ) -> Result<Self, StoreError> {
        let progress = store.index_progress()?;
        shared.notify(StoreEvent::Indexed(progress));
        Ok(Self {
            store,
            search,
            shared,
            last_accepted: progress.through + progress.left,
            progress,
            index_cost: INDEX_BUSY_TIME / 64,
            last_batch: 0,
            unindexed_since: Instant::now(),
            later: VecDeque::new(),
            handed_out: Vec::new(),
            handed_out_since: None,
            end: None,
            is_lazy,
        })
    }

    /// Does what is to be done next. False when there is nothing more.
    pub(super) fn turn(&mut self, jobs: &Receiver<Job>) -> Result<bool, StoreError> {
        let mut next = match jobs.recv_timeout(self.patience()) {
            Ok(job) => Some(job),
            Err(end) => {
                if end == RecvTimeoutError::Disconnected {
                    self.stop(Rest::Leave);
                }
                None
            }
        };
        if next.is_none()
            && let Some(end) = self.end
            && (self.progress.left == 0 || Instant::now() >= end)
        {
            self.note_handed_out()?;
            return Ok(false);
        }
        let (mut batch, mut replies, mut grouped) = (Vec::new(), Vec::new(), Vec::new());
        let is_idle = next.is_none();
        if is_idle {
            self.last_batch = 0;
        }
        for _ in 0..BATCH {
            let Some(job) = next.take().or_else(|| jobs.try_recv().ok()) else {
                break;
            };
            match job {
                Job::Accept(admission, reply) => {
                    batch.push(*admission);
                    replies.push(reply);
                }
                Job::HandedOut(handed) => {
                    self.handed_out.push(handed);
                    self.handed_out_since.get_or_insert_with(Instant::now);
                }
                Job::Fail(error) => return Err(error),
                Job::Stop(rest) => self.stop(rest),
                Job::Grouped(change) => grouped.push(change),
                Job::Decide(decision, reply) => {
                    self.accept(&mut batch, &mut replies)?;
                    self.change_together(&mut grouped)?;
                    self.decide(&decision, reply)?;
                }
                Job::Change(change) => {
                    self.accept(&mut batch, &mut replies)?;
                    self.change_together(&mut grouped)?;
                    self.note_handed_out()?;
                    change(&mut self.store)?;
                }
                Job::ChangeIndexed(change) => {
                    self.accept(&mut batch, &mut replies)?;
                    self.later.push_back((self.last_accepted, change));
                }
            }
        }
        self.accept(&mut batch, &mut replies)?;
        self.change_together(&mut grouped)?;
        let is_late = |since: Instant| since.elapsed() >= HANDED_OUT_DELAY;
        if is_idle || self.end.is_some() || self.handed_out_since.is_some_and(is_late) {
            self.note_handed_out()?;
        }
        if self.has_to_index() && self.index_delay().is_zero() {
            self.index(is_idle)?;
        }
        self.change_indexed()?;
        Ok(true)
    }

    /// Makes changes in one transaction, then answers them. If one of them breaks a rule of the store, each goes alone.
    fn change_together(
        &mut self,
        changes: &mut Vec<Box<dyn GroupedChange>>,
    ) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.note_handed_out()?;
        let made = self.store.change_together(changes);
        let is_invalid = |error: &StoreError| error.fault == StoreFault::Invalid;
        if made.as_ref().is_err_and(is_invalid) && changes.len() > 1 {
            for change in changes.drain(..) {
                self.change_together(&mut vec![change])?;
            }
            return Ok(());
        }
        for change in changes.drain(..) {
            change.answer(made.clone());
        }
        made.or_else(|error| if_fatal(&error))
    }

    /// How long to wait for the next job: not at all while messages are to be indexed.
    fn patience(&self) -> Duration {
        let noting = match self.handed_out_since {
            _ if self.end.is_some() => Duration::ZERO,
            Some(since) => HANDED_OUT_DELAY.saturating_sub(since.elapsed()),
            None => FOREVER,
        };
        match self.has_to_index() {
            true => noting.min(self.index_delay()),
            false => noting,
        }
    }

    /// How long indexing can wait for more messages.
    fn index_delay(&self) -> Duration {
        let is_awaited = !self.later.is_empty() || self.end.is_some();
        let is_enough = self.progress.left >= u64::try_from(INDEX_BATCH).unwrap_or(u64::MAX);
        match is_awaited || is_enough || self.last_batch < LOADED_BATCH {
            true => Duration::ZERO,
            false => INDEX_DELAY.saturating_sub(self.unindexed_since.elapsed()),
        }
    }

    fn has_to_index(&self) -> bool {
        let is_awaited = !self.later.is_empty() || self.end.is_some();
        let is_over = self.end.is_some_and(|end| Instant::now() >= end);
        self.progress.left > 0 && !is_over && (is_awaited || !self.is_lazy)
    }

    fn stop(&mut self, rest: Rest) {
        let now = Instant::now();
        self.end.get_or_insert(match rest {
            Rest::Index => now + STOP_TIME,
            Rest::Leave => now,
        });
    }

    /// Notes which messages were handed out. If that fails, they are handed out again.
    fn note_handed_out(&mut self) -> Result<(), StoreError> {
        self.handed_out_since = None;
        let handed = std::mem::take(&mut self.handed_out);
        if let Err(error) = self.store.hand_out(&handed) {
            if_fatal(&error)?;
            let what = "the note that messages were handed out";
            let error = &error;
            self.shared.notify(StoreEvent::Delayed { what, error });
        }
        Ok(())
    }

    /// Does the changes that had to wait until messages were indexed.
    fn change_indexed(&mut self) -> Result<(), StoreError> {
        let indexed = match self.progress.left {
            0 => u64::MAX,
            _ => self.progress.through,
        };
        while let Some((_, change)) = self.later.pop_front_if(|(seq, _)| *seq <= indexed) {
            self.note_handed_out()?;
            change(&mut self.store)?;
        }
        Ok(())
    }

    /// One transaction, then the answers.
    fn accept(
        &mut self,
        batch: &mut Vec<Admission>,
        replies: &mut Vec<Reply<Acceptance>>,
    ) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.last_batch = batch.len();
        #[cfg(debug_assertions)]
        early_reply::answer_early(batch, replies, self.last_accepted);
        let outcomes = match self.store.accept_batch(batch) {
            Ok(outcomes) => outcomes,
            Err(error) if batch.len() > 1 && error.fault == StoreFault::Invalid => {
                // One of them breaks a rule of the store: each goes alone, and the others are accepted.
                for (admission, reply) in std::mem::take(batch).into_iter().zip(replies.drain(..)) {
                    self.accept(&mut vec![admission], &mut vec![reply])?;
                }
                return Ok(());
            }
            Err(error) => {
                batch.clear();
                for reply in replies.drain(..) {
                    let _ = reply.send(Err(error.clone()));
                }
                return if_fatal(&error);
            }
        };
        self.shared.notify(StoreEvent::Batch);
        if outcomes
            .iter()
            .any(|o| matches!(o, AcceptOutcome::Held { .. }))
        {
            // It may end before anything else does.
            self.shared.notify(StoreEvent::Work);
        }
        let pairs = batch.iter().zip(&outcomes);
        let new = pairs.filter_map(|(admission, outcome)| match outcome {
            AcceptOutcome::Accepted { seq, .. } => Some((*seq, admission)),
            AcceptOutcome::Known { .. }
            | AcceptOutcome::Held { .. }
            | AcceptOutcome::Rejected(_) => None,
        });
        self.announce(new);
        let accepted = batch.drain(..).zip(outcomes);
        for ((admission, outcome), reply) in accepted.zip(replies.drain(..)) {
            // A sender who is gone asks again, and gets the same answer.
            let _ = reply.send(Ok(Acceptance {
                outcome,
                admission: Box::new(admission),
            }));
        }
        Ok(())
    }

    /// Counts accepted messages that are to be indexed, and reports them.
    fn announce<'a>(&mut self, new: impl Iterator<Item = (u64, &'a Admission)>) {
        let before = self.progress.left;
        if before == 0 {
            self.unindexed_since = Instant::now();
        }
        for (seq, admission) in new {
            self.last_accepted = self.last_accepted.max(seq);
            self.progress.left += 1;
            let arrived = Arrived::of(seq, admission);
            self.shared.notify(StoreEvent::Arrived(arrived));
        }
        if self.progress.left > before {
            self.progress.filed = 0;
            self.shared.notify(StoreEvent::Indexed(self.progress));
            self.shared.notify(StoreEvent::Work);
        }
    }

    /// Carries a decision out, in a transaction of its own.
    fn decide(&mut self, decision: &HoldDecision, reply: Reply<Ruling>) -> Result<(), StoreError> {
        let ruling = self.store.decide(decision);
        if let Ok(Ruling::Done(Some((seq, admission)))) = &ruling {
            self.announce(std::iter::once((*seq, admission.as_ref())));
        }
        // The caller may be gone; the decision is made anyway.
        answer(reply, ruling)
    }

    /// Indexes a portion of what is left.
    fn index(&mut self, is_idle: bool) -> Result<(), StoreError> {
        let time = match is_idle {
            true => INDEX_IDLE_TIME,
            false => INDEX_BUSY_TIME,
        };
        let portion = time.as_nanos() / self.index_cost.as_nanos().max(1);
        let portion = usize::try_from(portion).unwrap_or(usize::MAX);
        let least = match self.progress.left > LARGE_BACKLOG {
            true => 2 * BATCH,
            false => 0,
        };
        let portion = portion
            .max(least)
            .clamp(*INDEX_PORTION.start(), *INDEX_PORTION.end());
        let began = Instant::now();
        match self.store.index(portion) {
            Ok(progress) => {
                self.progress = progress;
                self.unindexed_since = Instant::now();
                if let Some(cost) = u32::try_from(progress.filed)
                    .ok()
                    .and_then(|filed| began.elapsed().checked_div(filed))
                {
                    self.index_cost = (self.index_cost * 3 + cost) / 4;
                }
                self.shared.notify(StoreEvent::Indexed(progress));
                self.search.wake();
            }
            Err(error) => {
                if_fatal(&error)?;
                // Nothing is lost: the messages are on disk, and indexed when there is room again.
                let (what, error) = ("indexing", &error);
                self.shared.notify(StoreEvent::Delayed { what, error });
                std::thread::sleep(INDEX_PAUSE);
            }
        }
        Ok(())
    }
}

/// Whether the store can't be relied on after this error: acknowledged messages may not be on disk.
pub(super) fn is_fatal(error: &StoreError) -> bool {
    matches!(
        error.fault,
        StoreFault::Unavailable | StoreFault::Damaged | StoreFault::Newer
    )
}

/// Answers a caller, who may be gone. The error, if the store can't be relied on after it.
pub(super) fn answer<T>(reply: Reply<T>, answer: Result<T, StoreError>) -> Result<(), StoreError> {
    let fatal = answer.as_ref().err().map_or(Ok(()), if_fatal);
    let _ = reply.send(answer);
    fatal
}

/// The error, if the store can't be relied on after it.
fn if_fatal(error: &StoreError) -> Result<(), StoreError> {
    match is_fatal(error) {
        true => Err(error.clone()),
        false => Ok(()),
    }
}

/// A defect that tests need to see: the answer goes out before anything is written. Only builds for tests have it.
#[cfg(debug_assertions)]
mod early_reply {
    use super::{AcceptOutcome, Acceptance, Admission, Duration, Reply};

    /// How much earlier the answers are than what is written.
    const HEAD_START: Duration = Duration::from_millis(50);

    /// Answers for messages that are not on disk, if the environment wants it.
    pub(super) fn answer_early(
        batch: &[Admission],
        replies: &mut Vec<Reply<Acceptance>>,
        last: u64,
    ) {
        if std::env::var_os("CROSSTALK_TEST_DURABILITY").is_none_or(|fault| fault != "early") {
            return;
        }
        for ((admission, reply), seq) in batch.iter().zip(replies.drain(..)).zip(last + 1..) {
            let _ = reply.send(Ok(Acceptance {
                outcome: AcceptOutcome::Accepted {
                    seq,
                    entry: crosstalk_protocol::audit::LogPlace::first(seq),
                    ids: admission.arrival.ids(),
                    withdrawn: None,
                },
                admission: Box::new(admission.clone()),
            }));
        }
        // Until the answers are out, also on a busy machine.
        std::thread::sleep(HEAD_START);
    }
}
