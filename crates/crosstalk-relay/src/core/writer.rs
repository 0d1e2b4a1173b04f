//! The one who writes: a thread that takes everything that came meanwhile in one transaction, and files it after.

use super::Shared;
use crosstalk_protocol::relay::{Admission, RelayStore, Taken};
use crosstalk_protocol::store::{StoreError, StoreFault};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

/// How many messages one transaction takes at most.
const BATCH: usize = 512;
/// How many messages are filed at once while others wait.
const SLICE: usize = 128;
/// How many are filed at once while nothing else is to be done.
const PORTION: usize = 512;
/// Under load, filing begins again this long after it ended, and gets a tenth of the time.
const RHYTHM: Duration = Duration::from_millis(50);
const SHARE: u32 = 9;
/// With more than these, it gets half of the time.
const PILE: u64 = 200_000;

/// What a sender is told.
pub(super) struct Answer {
    pub(super) taken: Result<Taken, StoreError>,
    pub(super) admission: Box<Admission>,
}

/// A change of the store.
pub(super) type Change = Box<dyn FnOnce(&mut dyn RelayStore) + Send>;

/// What the writer has to do.
pub(super) enum Job {
    /// Take a message in.
    Take(Box<Admission>, oneshot::Sender<Answer>),
    /// Change something else.
    Change(Change),
    /// Change something once everything is filed that was taken before.
    ChangeFiled(Change),
    /// File what is left, and stop.
    Stop,
}

struct Writer {
    store: Box<dyn RelayStore + Send>,
    shared: Arc<Shared>,
    jobs: mpsc::UnboundedReceiver<Job>,
    last_taken: u64,
    filed: u64,
    left: u64,
    file_again: Instant,
    /// What waits until the message at a place is filed.
    later: Vec<(u64, Change)>,
    stopping: bool,
}

/// Writes until it is told to stop, or nobody can tell it any more.
pub(super) fn run(
    store: Box<dyn RelayStore + Send>,
    shared: Arc<Shared>,
    jobs: mpsc::UnboundedReceiver<Job>,
) -> Result<(), StoreError> {
    let filing = store.filing()?;
    let mut writer = Writer {
        store,
        shared,
        jobs,
        last_taken: filing.through + filing.left,
        filed: filing.through,
        left: filing.left,
        file_again: Instant::now(),
        later: Vec::new(),
        stopping: false,
    };
    while writer.turn()? {}
    Ok(())
}

impl Writer {
    /// Does what is to be done next. False when there is nothing more.
    fn turn(&mut self) -> Result<bool, StoreError> {
        let first = match self.left {
            0 if self.stopping => return Ok(false),
            0 => self.jobs.blocking_recv(),
            _ => match self.jobs.try_recv() {
                Ok(job) => Some(job),
                Err(TryRecvError::Empty) => {
                    self.file(PORTION)?;
                    return Ok(true);
                }
                Err(TryRecvError::Disconnected) => None,
            },
        };
        let Some(first) = first else {
            self.stopping = true;
            self.file(PORTION)?;
            return Ok(self.left > 0);
        };
        let (mut batch, mut answers) = (Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(job) = next.take() {
            match job {
                Job::Take(admission, answer) => {
                    batch.push(*admission);
                    answers.push(answer);
                    if batch.len() < BATCH {
                        next = self.jobs.try_recv().ok();
                    }
                }
                other => {
                    self.take(&mut batch, &mut answers)?;
                    self.change(other);
                }
            }
        }
        self.take(&mut batch, &mut answers)?;
        if self.left > 0 && (!self.later.is_empty() || Instant::now() >= self.file_again) {
            self.file(SLICE)?;
        }
        Ok(true)
    }

    fn change(&mut self, job: Job) {
        match job {
            Job::Change(change) => change(self.store.as_mut()),
            Job::ChangeFiled(change) if self.left == 0 => change(self.store.as_mut()),
            Job::ChangeFiled(change) => self.later.push((self.last_taken, change)),
            Job::Stop => self.stopping = true,
            Job::Take(..) => {}
        }
    }

    /// One transaction, then the answers.
    fn take(
        &mut self,
        batch: &mut Vec<Admission>,
        answers: &mut Vec<oneshot::Sender<Answer>>,
    ) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        #[cfg(debug_assertions)]
        super::fault::answer_early(batch, answers, self.last_taken);
        let taken = self.store.take(batch);
        let shared = &self.shared;
        shared.metrics.batches.fetch_add(1, Ordering::Relaxed);
        let fatal = taken.as_ref().err().filter(|e| is_fatal(e)).cloned();
        match taken {
            Ok(taken) => {
                let new = || {
                    let pairs = batch.iter().zip(&taken);
                    pairs.filter_map(|(admission, taken)| match taken {
                        Taken::New { seq } => Some((*seq, admission)),
                        Taken::Known { .. } | Taken::Refused(_) => None,
                    })
                };
                let addressed = new().flat_map(|(seq, admission)| {
                    admission
                        .recipients
                        .iter()
                        .map(move |r| (seq, r.address.as_str()))
                });
                shared.pending.add(addressed);
                for (seq, admission) in new() {
                    self.last_taken = self.last_taken.max(seq);
                    self.left += 1;
                    shared.tell(seq, admission);
                }
                shared.metrics.backlog.store(self.left, Ordering::Relaxed);
                let outcomes = batch.drain(..).zip(taken);
                for ((admission, taken), answer) in outcomes.zip(answers.drain(..)) {
                    // A sender who is gone asks again, and gets the same answer.
                    let _ = answer.send(Answer {
                        taken: Ok(taken),
                        admission: Box::new(admission),
                    });
                }
            }
            Err(error) => {
                for (admission, answer) in batch.drain(..).zip(answers.drain(..)) {
                    let _ = answer.send(Answer {
                        taken: Err(error.clone()),
                        admission: Box::new(admission),
                    });
                }
            }
        }
        fatal.map_or(Ok(()), Err)
    }

    fn file(&mut self, most: usize) -> Result<(), StoreError> {
        let began = Instant::now();
        match self.store.file(most) {
            Ok(filing) => {
                (self.filed, self.left) = (filing.through, filing.left);
                self.shared.filed(&filing);
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => {
                // Nothing is lost: it is on disk, and filed when there is room again.
                tracing::warn!(reason = %error, "filing has to wait");
                std::thread::sleep(RHYTHM);
            }
        }
        let share = if self.left > PILE { 1 } else { SHARE };
        self.file_again = Instant::now() + (began.elapsed() * share).max(RHYTHM);
        let (now, later): (Vec<_>, Vec<_>) = self
            .later
            .drain(..)
            .partition(|(place, _)| *place <= self.filed);
        self.later = later;
        for (_, change) in now {
            change(self.store.as_mut());
        }
        Ok(())
    }
}

/// Whether nothing can be relied on after this: what was said to be on disk may not be.
fn is_fatal(error: &StoreError) -> bool {
    matches!(
        error.fault,
        StoreFault::Unavailable | StoreFault::Damaged | StoreFault::Newer
    )
}
