//! Handles of the store. One thread writes: it accepts everything that came meanwhile in one transaction, and indexes a
//! portion of what is accepted after each. Another one makes the indexed messages searchable. A few handles read, each for one
//! request at a time.

use super::Shared;
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, HandedOut, HoldDecision, RelayStore, Ruling,
};
use crosstalk_protocol::store::{StoreError, StoreFault};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// How many jobs wait for the writer at most. A sender that finds so many is told to try again.
pub(super) const MAX_JOBS: usize = 16_384;
/// How many jobs are done before the writer indexes again, and how many messages one transaction accepts at most.
const BATCH: usize = 512;
/// How long one portion of indexing takes while others come in, and while nothing else is to be done.
const INDEX_BUSY_TIME: Duration = Duration::from_millis(3);
const INDEX_IDLE_TIME: Duration = Duration::from_millis(25);
/// A portion of indexing has at least and at most so many messages.
const INDEX_PORTION: RangeInclusive<usize> = 16..=4096;
/// With more messages that are not indexed, each turn indexes more than it accepts.
const LARGE_BACKLOG: u64 = 4096;
/// How long indexing rests after an error.
const INDEX_PAUSE: Duration = Duration::from_millis(50);
/// How long it goes on indexing during shutdown. The rest is indexed at the next start.
const SHUTDOWN_TIME: Duration = Duration::from_secs(5);
/// Until somebody has something to do.
const FOREVER: Duration = Duration::from_secs(3600);
/// That messages were handed out is recorded this long after at the latest while others come in.
const HANDED_OUT_DELAY: Duration = Duration::from_millis(20);
/// How many messages become searchable in one transaction of the search file. Erasures wait for it.
const FILL_LIMIT: usize = 1000;
/// Under load, messages of this time become searchable together.
const FILL_PAUSE: Duration = Duration::from_millis(200);
/// How long other writers of the search file get between two transactions of a large backlog.
const FILL_BREATH: Duration = Duration::from_millis(10);
/// How long it takes at most until the search index is looked at again, though nothing was indexed.
const FILL_LOOK: Duration = Duration::from_secs(2);

/// The result of accepting a message.
pub(super) struct AcceptReply {
    pub(super) taken: Result<AcceptOutcome, StoreError>,
    pub(super) admission: Box<Admission>,
}

/// A change of the store.
pub(super) type Change = Box<dyn FnOnce(&mut dyn RelayStore) + Send>;

/// What the writer has to do.
pub(super) enum Job {
    /// Accept a message.
    Accept(Box<Admission>, oneshot::Sender<AcceptReply>),
    /// Decide about a message that waits for a person.
    Decide(
        Box<HoldDecision>,
        oneshot::Sender<Result<Ruling, StoreError>>,
    ),
    /// Change something else.
    Change(Change),
    /// Change something once every message is indexed that was accepted before. A caller waits for it.
    ChangeIndexed(Change),
    /// Record that messages were handed out. No caller waits for it.
    HandedOut(HandedOut),
    /// Stop at once: a reader found that the store can't be relied on.
    Fail(StoreError),
    /// Index the rest, as far as there is time, and stop.
    Stop,
}

/// Makes indexed messages searchable, on a thread with a handle of its own, until it is dropped.
struct SearchFiller {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SearchFiller {
    fn start(shared: &Arc<Shared>) -> Result<Self, StoreError> {
        let (wake, woken) = sync_channel(1);
        let (store, shared) = (shared.readers.open()?, Arc::clone(shared));
        let thread = std::thread::Builder::new()
            .name("search".into())
            .spawn(move || fill_search(store, &shared, &woken))
            .map_err(|e| {
                let what =
                    format!("the thread that fills the search index could not be started: {e}");
                StoreError::new(StoreFault::Unavailable, what, "")
            })?;
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
        })
    }

    /// Messages were indexed.
    fn wake(&self) {
        // If it is full, it is woken already.
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }
}

impl Drop for SearchFiller {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn fill_search(mut store: Handle, shared: &Shared, woken: &Receiver<()>) {
    let mut wait = Duration::ZERO;
    loop {
        if woken.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        let began = Instant::now();
        wait = match store.fill_search(FILL_LIMIT) {
            Ok(progress) => {
                shared.searchable.send_replace(progress.through);
                if progress.left == 0 {
                    FILL_LOOK
                } else {
                    FILL_BREATH
                }
            }
            Err(error) => {
                // Nothing is lost: searches say how far the index is, and it is filled when there is room again.
                tracing::warn!(reason = %error, "the search index has to wait");
                FILL_LOOK
            }
        };
        if wait == FILL_LOOK {
            std::thread::sleep(FILL_PAUSE.saturating_sub(began.elapsed()));
        }
    }
}

struct Writer {
    store: Box<dyn RelayStore + Send>,
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
    last_accepted: u64,
    indexed: u64,
    left: u64,
    /// How long it takes to index a message, by the last portions.
    index_cost: Duration,
    /// Changes that wait until the message with a seq is indexed, in the order of the seqs.
    later: VecDeque<(u64, Change)>,
    handed_out: Vec<HandedOut>,
    /// Since when something was handed out that is not recorded.
    handed_out_since: Option<Instant>,
    search: SearchFiller,
    /// Until when it goes on, once it was told to stop.
    end: Option<Instant>,
}

/// Writes until shutdown, or until no handle of the relay is left.
pub(super) fn run(
    store: Box<dyn RelayStore + Send>,
    shared: Arc<Shared>,
    jobs: Receiver<Job>,
) -> Result<(), StoreError> {
    let filing = store.index_progress()?;
    let mut writer = Writer {
        store,
        search: SearchFiller::start(&shared)?,
        shared,
        jobs,
        last_accepted: filing.through + filing.left,
        indexed: filing.through,
        left: filing.left,
        index_cost: INDEX_BUSY_TIME / 64,
        later: VecDeque::new(),
        handed_out: Vec::new(),
        handed_out_since: None,
        end: None,
    };
    while writer.turn()? {}
    Ok(())
}

/// The error of a writer that panicked: a defect of the program, after which nothing is written any more.
pub(super) fn panicked() -> StoreError {
    StoreError::new(
        StoreFault::Unavailable,
        "the thread that writes to the store panicked",
        "restart the relay and report the panic message of its log as a defect",
    )
}

impl Writer {
    /// Does what is to be done next. False when there is nothing more.
    fn turn(&mut self) -> Result<bool, StoreError> {
        let mut next = match self.jobs.recv_timeout(self.patience()) {
            Ok(job) => Some(job),
            Err(end) => {
                if end == RecvTimeoutError::Disconnected {
                    self.stop();
                }
                None
            }
        };
        if next.is_none()
            && let Some(end) = self.end
            && (self.left == 0 || Instant::now() >= end)
        {
            return Ok(false);
        }
        let (mut batch, mut answers) = (Vec::new(), Vec::new());
        let (is_idle, before) = (next.is_none(), self.last_accepted);
        for _ in 0..BATCH {
            let Some(job) = next.take().or_else(|| self.jobs.try_recv().ok()) else {
                break;
            };
            match job {
                Job::Accept(admission, answer) => {
                    batch.push(*admission);
                    answers.push(answer);
                }
                Job::HandedOut(handed) => {
                    self.handed_out.push(handed);
                    self.handed_out_since.get_or_insert_with(Instant::now);
                }
                Job::Fail(error) => return Err(error),
                Job::Stop => self.stop(),
                Job::Decide(decision, answer) => {
                    self.accept(&mut batch, &mut answers)?;
                    self.decide(&decision, answer)?;
                }
                Job::Change(change) => {
                    self.accept(&mut batch, &mut answers)?;
                    self.record_handed_out();
                    change(self.store.as_mut());
                }
                Job::ChangeIndexed(change) => {
                    self.accept(&mut batch, &mut answers)?;
                    self.later.push_back((self.last_accepted, change));
                }
            }
        }
        self.accept(&mut batch, &mut answers)?;
        let is_late = |since: Instant| since.elapsed() >= HANDED_OUT_DELAY;
        if is_idle || self.end.is_some() || self.handed_out_since.is_some_and(is_late) {
            self.record_handed_out();
        }
        if self.left > 0 {
            self.index(is_idle, self.last_accepted - before)?;
        }
        self.change_indexed();
        Ok(true)
    }

    /// How long to wait for the next job: not at all while messages are to be indexed.
    fn patience(&self) -> Duration {
        match self.handed_out_since {
            _ if self.left > 0 || self.end.is_some() => Duration::ZERO,
            Some(since) => HANDED_OUT_DELAY.saturating_sub(since.elapsed()),
            None => FOREVER,
        }
    }

    fn stop(&mut self) {
        self.end
            .get_or_insert_with(|| Instant::now() + SHUTDOWN_TIME);
    }

    /// Records which messages were handed out. If that fails, they are handed out again.
    fn record_handed_out(&mut self) {
        self.handed_out_since = None;
        let handed = std::mem::take(&mut self.handed_out);
        if let Err(error) = self.store.hand_out(&handed) {
            tracing::warn!(reason = %error, "that messages were handed out is not noted");
        }
    }

    /// Does the changes that had to wait until messages were indexed.
    fn change_indexed(&mut self) {
        let indexed = if self.left == 0 {
            u64::MAX
        } else {
            self.indexed
        };
        while let Some((_, change)) = self.later.pop_front_if(|(seq, _)| *seq <= indexed) {
            self.record_handed_out();
            change(self.store.as_mut());
        }
    }

    /// One transaction, then the answers.
    fn accept(
        &mut self,
        batch: &mut Vec<Admission>,
        answers: &mut Vec<oneshot::Sender<AcceptReply>>,
    ) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        #[cfg(debug_assertions)]
        early_reply::answer_early(batch, answers, self.last_accepted);
        let taken = self.store.accept_batch(batch);
        let is_invalid = |e: &StoreError| e.fault == StoreFault::Invalid;
        if batch.len() > 1 && taken.as_ref().is_err_and(is_invalid) {
            // One of them breaks a rule of the store: each goes alone, and the others are accepted.
            for (admission, answer) in std::mem::take(batch).into_iter().zip(answers.drain(..)) {
                self.accept(&mut vec![admission], &mut vec![answer])?;
            }
            return Ok(());
        }
        let shared = &self.shared;
        shared.metrics.batches.fetch_add(1, Ordering::Relaxed);
        let fatal = taken.as_ref().err().filter(|e| is_fatal(e)).cloned();
        match taken {
            Ok(taken) => {
                if taken
                    .iter()
                    .any(|t| matches!(t, AcceptOutcome::Held { .. }))
                {
                    // It may end before anything else does.
                    shared.work.notify_one();
                }
                let pairs = batch.iter().zip(&taken);
                let new = pairs.filter_map(|(admission, taken)| match taken {
                    AcceptOutcome::Accepted { seq, .. } => Some((*seq, admission)),
                    AcceptOutcome::Known { .. }
                    | AcceptOutcome::Held { .. }
                    | AcceptOutcome::Rejected(_) => None,
                });
                self.announce(new);
                let outcomes = batch.drain(..).zip(taken);
                for ((admission, taken), answer) in outcomes.zip(answers.drain(..)) {
                    // A sender who is gone asks again, and gets the same answer.
                    let _ = answer.send(AcceptReply {
                        taken: Ok(taken),
                        admission: Box::new(admission),
                    });
                }
            }
            Err(error) => {
                for (admission, answer) in batch.drain(..).zip(answers.drain(..)) {
                    let _ = answer.send(AcceptReply {
                        taken: Err(error.clone()),
                        admission: Box::new(admission),
                    });
                }
            }
        }
        fatal.map_or(Ok(()), Err)
    }

    /// Counts accepted messages that are to be indexed, and wakes readers, handlers and senders that wait for them.
    fn announce<'a>(&mut self, new: impl Iterator<Item = (u64, &'a Admission)>) {
        let shared = &self.shared;
        let before = self.left;
        for (seq, admission) in new {
            self.last_accepted = self.last_accepted.max(seq);
            self.left += 1;
            shared.notify_waiting(seq, admission);
        }
        if self.left > before {
            shared.work.notify_one();
        }
        shared.metrics.backlog.store(self.left, Ordering::Relaxed);
    }

    /// Carries a decision out, in a transaction of its own.
    fn decide(
        &mut self,
        decision: &HoldDecision,
        answer: oneshot::Sender<Result<Ruling, StoreError>>,
    ) -> Result<(), StoreError> {
        let outcome = self.store.decide(decision);
        if let Ok(Ruling::Done(Some((seq, admission)))) = &outcome {
            self.announce(std::iter::once((*seq, admission.as_ref())));
        }
        let fatal = outcome.as_ref().err().filter(|e| is_fatal(e)).cloned();
        // The caller may be gone; the decision is made anyway.
        let _ = answer.send(outcome);
        fatal.map_or(Ok(()), Err)
    }

    /// Indexes a portion of what is left. `accepted` messages came in this turn.
    fn index(&mut self, is_idle: bool, accepted: u64) -> Result<(), StoreError> {
        let time = match is_idle {
            true => INDEX_IDLE_TIME,
            false => INDEX_BUSY_TIME,
        };
        let portion = time.as_nanos() / self.index_cost.as_nanos().max(1);
        let portion = usize::try_from(portion).unwrap_or(usize::MAX);
        let least = match self.left > LARGE_BACKLOG {
            true => usize::try_from(accepted.saturating_mul(2)).unwrap_or(usize::MAX),
            false => 0,
        };
        let portion = portion
            .max(least)
            .clamp(*INDEX_PORTION.start(), *INDEX_PORTION.end());
        let began = Instant::now();
        match self.store.index(portion) {
            Ok(filing) => {
                (self.indexed, self.left) = (filing.through, filing.left);
                if let Some(cost) = u32::try_from(filing.filed)
                    .ok()
                    .and_then(|filed| began.elapsed().checked_div(filed))
                {
                    self.index_cost = (self.index_cost * 3 + cost) / 4;
                }
                self.shared.note_indexed(&filing);
                self.search.wake();
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => {
                // Nothing is lost: the messages are on disk, and indexed when there is room again.
                tracing::warn!(reason = %error, "indexing has to wait");
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

/// A defect that tests need to see: the reply goes out before anything is written. Only builds for tests have it.
#[cfg(debug_assertions)]
mod early_reply {
    use super::{AcceptOutcome, AcceptReply, Admission, Duration, oneshot};

    /// How much earlier the answers are than what is written.
    const HEAD_START: Duration = Duration::from_millis(50);

    /// AcceptReplys for messages that are not on disk, if the environment wants it.
    pub(super) fn answer_early(
        batch: &[Admission],
        answers: &mut Vec<oneshot::Sender<AcceptReply>>,
        last: u64,
    ) {
        if std::env::var_os("CROSSTALK_TEST_DURABILITY").is_none_or(|fault| fault != "early") {
            return;
        }
        for ((admission, answer), seq) in batch.iter().zip(answers.drain(..)).zip(last + 1..) {
            let _ = answer.send(AcceptReply {
                taken: Ok(AcceptOutcome::Accepted {
                    seq,
                    index: seq,
                    ids: admission.arrival.ids(),
                    withdrawn: None,
                }),
                admission: Box::new(admission.clone()),
            });
        }
        // Until the answers are out, also on a busy machine.
        std::thread::sleep(HEAD_START);
    }
}

/// How many read at once.
const READERS: usize = 4;

type Handle = Box<dyn RelayStore + Send>;

/// Makes another handle of the store.
pub type OpenStore = Box<dyn Fn() -> Result<Handle, StoreError> + Send + Sync>;

pub(super) struct Readers {
    open: OpenStore,
    idle: Mutex<Vec<Handle>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(open: OpenStore) -> Self {
        Self {
            open,
            idle: Mutex::default(),
            turns: Arc::new(Semaphore::new(READERS)),
        }
    }

    /// Another handle of the store.
    pub(super) fn open(&self) -> Result<Handle, StoreError> {
        (self.open)()
    }

    /// Asks the store something, on a thread that may wait for the disk.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        ask: impl FnOnce(&dyn RelayStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = |_| StoreError::new(StoreFault::Busy, "the relay is shutting down", "");
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|e| gone(e.to_string()))?;
        let readers = Arc::clone(self);
        let work = move || {
            // The caller may be gone before the work is done: the permit belongs to the work.
            let _turn = turn;
            let idle = readers.lock().pop();
            let handle = match idle {
                Some(handle) => handle,
                // What is open goes on: there may be too many open files.
                None => (readers.open)().map_err(|e| StoreError {
                    fault: StoreFault::Busy,
                    ..e
                })?,
            };
            let answer = ask(handle.as_ref());
            readers.lock().push(handle);
            answer
        };
        let work = tokio::task::spawn_blocking(work).await;
        work.map_err(|e| gone(e.to_string()))?
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
