//! The thread that writes: everything that came meanwhile in one transaction and one commit, and then a portion of the index.

use crosstalk_protocol::relay::port::{Acceptance, Arrived, StoreEvent};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, DeliveryState, HandedOut, HoldDecision, IndexProgress, Ruling,
};
use crosstalk_protocol::store::{StoreError, StoreFault};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

use super::fault::{PgResult, SqlError};
use super::intake::{self, Then};
use super::session::PgSession;
use super::sql::Db;
use super::{PgShared, delivery, hold, index};

/// How many jobs one transaction does at most.
const BATCH: usize = 512;
/// Under load, jobs of this time go together: relays wait for each other's turns, and for the standby.
const GROUP: Duration = Duration::from_millis(3);
/// A transaction with so many jobs says that there is load.
const LOADED: usize = 8;
/// Under load, messages are indexed together after this time, or as soon as they are a portion.
const INDEX_DELAY: Duration = Duration::from_millis(25);
/// How long indexing rests after an error.
const INDEX_PAUSE: Duration = Duration::from_millis(200);
/// How long it goes on indexing when it is told to stop. The rest is indexed by others, or at the next start.
const STOP_TIME: Duration = Duration::from_secs(5);
/// Until somebody has something to do.
const FOREVER: Duration = Duration::from_secs(3600);
/// That messages were handed out is noted this long after at the latest while others come in.
const HANDED_OUT_DELAY: Duration = Duration::from_millis(20);

/// Takes the turn: nobody else writes in order before the commit. It writes something, so that the commit waits for the
/// standby even where nothing else is new: what an answer says is then as safe as the message that it is about.
const TURN: &str = "UPDATE turn SET number = number + 1";

/// Where the caller of a command gets its answer.
type ReplySender<T> = oneshot::Sender<Result<T, StoreError>>;

/// A change of the store in a transaction with others.
pub(super) trait Unit: Send {
    /// Makes the change. It may be made again, if the transaction is.
    fn run(&mut self, db: &Db) -> PgResult<()>;
    /// The transaction is committed, or nothing was changed: answers the caller, who may be gone.
    fn done(self: Box<Self>, committed: Result<(), StoreError>);
}

/// A change with an answer.
pub(super) struct PgChange<T, F> {
    change: F,
    value: Option<T>,
    reply: ReplySender<T>,
}

impl<T, F: FnMut(&Db) -> PgResult<T>> PgChange<T, F> {
    pub(super) fn new(change: F, reply: ReplySender<T>) -> Self {
        Self {
            change,
            value: None,
            reply,
        }
    }
}

impl<T: Send, F: FnMut(&Db) -> PgResult<T> + Send> Unit for PgChange<T, F> {
    fn run(&mut self, db: &Db) -> PgResult<()> {
        self.value = Some((self.change)(db)?);
        Ok(())
    }

    fn done(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { value, reply, .. } = *self;
        let lost = || StoreError::new(StoreFault::Busy, "the change was not made", "try again");
        let _ = reply.send(committed.and_then(|()| value.ok_or_else(lost)));
    }
}

/// A task of the writer.
pub(super) enum PgJob {
    /// Accept a message.
    Accept(Box<Admission>, ReplySender<Acceptance>),
    /// Decide about a message that waits for a person.
    Decide(Box<HoldDecision>, ReplySender<Ruling>),
    /// Change something else.
    PgChange(Box<dyn Unit>),
    /// Note that messages were handed out. No caller waits for it.
    HandedOut(HandedOut),
    /// Index what another relay accepted and did not index.
    Index,
    /// Stop when nothing is left to do.
    Stop(PgRest),
}

/// What happens to messages that are not indexed when the writer stops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PgRest {
    /// They are indexed, as far as there is time.
    Index,
    /// They are indexed by others, or at the next start.
    Leave,
}

/// A part of a transaction, with what became of it.
enum TransactionPart {
    Accept {
        batch: Vec<Admission>,
        replies: Vec<ReplySender<Acceptance>>,
        outcomes: Result<Vec<AcceptOutcome>, StoreError>,
    },
    Decide {
        decision: Box<HoldDecision>,
        reply: ReplySender<Ruling>,
        ruling: Option<Result<Ruling, StoreError>>,
    },
    PgChange {
        unit: Box<dyn Unit>,
        done: Result<(), StoreError>,
    },
    HandedOut(Vec<HandedOut>),
}

pub(super) struct PgWriter {
    session: PgSession,
    shared: Arc<PgShared>,
    progress: IndexProgress,
    /// How many jobs the last transaction had.
    last_batch: usize,
    /// Since when messages wait to be indexed.
    unindexed_since: Instant,
    handed_out: Vec<HandedOut>,
    /// Since when something was handed out that is not noted.
    handed_out_since: Option<Instant>,
    /// Until when it goes on, once it was told to stop.
    end: Option<Instant>,
}

impl PgWriter {
    pub(super) fn new(mut session: PgSession, shared: Arc<PgShared>) -> Result<Self, StoreError> {
        let progress = session.read(|db| index::indexing(db, 0))?;
        shared.notify(StoreEvent::Indexed(progress));
        Ok(Self {
            session,
            shared,
            progress,
            last_batch: 0,
            unindexed_since: Instant::now(),
            handed_out: Vec::new(),
            handed_out_since: None,
            end: None,
        })
    }

    /// Does what is to be done next. False when there is nothing more.
    pub(super) fn turn(&mut self, jobs: &Receiver<PgJob>) -> bool {
        let first = match jobs.recv_timeout(self.patience()) {
            Ok(job) => Some(job),
            Err(end) => {
                if end == RecvTimeoutError::Disconnected {
                    self.stop(PgRest::Leave);
                }
                None
            }
        };
        let is_idle = first.is_none();
        if is_idle
            && self
                .end
                .is_some_and(|end| self.progress.left == 0 || Instant::now() >= end)
        {
            let parts = self.noted_parts();
            self.commit(parts);
            return false;
        }
        let (mut parts, mut count) = (Vec::new(), 0);
        if let Some(first) = first {
            count = self.collect(first, jobs, &mut parts);
        }
        let is_late = |since: Instant| since.elapsed() >= HANDED_OUT_DELAY;
        if is_idle || self.end.is_some() || self.handed_out_since.is_some_and(is_late) {
            parts.extend(self.noted_parts());
        }
        self.last_batch = count;
        self.commit(parts);
        if self.has_to_index() && self.index_delay().is_zero() {
            self.index();
        }
        true
    }

    /// Takes the jobs that go together. How many there are.
    fn collect(
        &mut self,
        first: PgJob,
        jobs: &Receiver<PgJob>,
        parts: &mut Vec<TransactionPart>,
    ) -> usize {
        let end = match self.last_batch >= LOADED {
            true => Instant::now() + GROUP,
            false => Instant::now(),
        };
        let (mut next, mut count) = (Some(first), 0);
        while count < BATCH {
            let left = end.saturating_duration_since(Instant::now());
            let waited = || match left.is_zero() {
                true => jobs.try_recv().ok(),
                false => jobs.recv_timeout(left).ok(),
            };
            let Some(job) = next.take().or_else(waited) else {
                break;
            };
            count += 1;
            match job {
                PgJob::Accept(admission, reply) => match parts.last_mut() {
                    Some(TransactionPart::Accept { batch, replies, .. }) => {
                        batch.push(*admission);
                        replies.push(reply);
                    }
                    _ => parts.push(TransactionPart::Accept {
                        batch: vec![*admission],
                        replies: vec![reply],
                        outcomes: Ok(Vec::new()),
                    }),
                },
                PgJob::Decide(decision, reply) => parts.push(TransactionPart::Decide {
                    decision,
                    reply,
                    ruling: None,
                }),
                PgJob::PgChange(unit) => {
                    parts.extend(self.noted_parts());
                    parts.push(TransactionPart::PgChange { unit, done: Ok(()) });
                }
                PgJob::HandedOut(handed) => {
                    self.handed_out.push(handed);
                    self.handed_out_since.get_or_insert_with(Instant::now);
                }
                PgJob::Index => self.progress.left = self.progress.left.max(1),
                PgJob::Stop(rest) => self.stop(rest),
            }
        }
        count
    }

    fn noted_parts(&mut self) -> Vec<TransactionPart> {
        self.handed_out_since = None;
        match self.handed_out.is_empty() {
            true => Vec::new(),
            false => vec![TransactionPart::HandedOut(std::mem::take(
                &mut self.handed_out,
            ))],
        }
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

    fn index_delay(&self) -> Duration {
        let is_enough = self.progress.left >= u64::try_from(index::PORTION).unwrap_or(u64::MAX);
        match self.end.is_some() || is_enough || self.last_batch < LOADED {
            true => Duration::ZERO,
            false => INDEX_DELAY.saturating_sub(self.unindexed_since.elapsed()),
        }
    }

    fn has_to_index(&self) -> bool {
        let is_over = self.end.is_some_and(|end| Instant::now() >= end);
        self.progress.left > 0 && !is_over
    }

    fn stop(&mut self, rest: PgRest) {
        let now = Instant::now();
        self.end.get_or_insert(match rest {
            PgRest::Index => now + STOP_TIME,
            PgRest::Leave => now,
        });
    }

    /// Does parts in one transaction, and answers their callers.
    fn commit(&mut self, mut parts: Vec<TransactionPart>) {
        if parts.is_empty() {
            return;
        }
        let (origin, label) = (self.shared.origin, self.shared.door.place.to_string());
        let mut filed = 0;
        let committed = self.session.patiently(
            &mut |db| {
                db.take_indexed();
                let done = run(db, origin, &label, &mut parts);
                if done.is_err() {
                    db.roll_back();
                }
                filed = db.take_indexed();
                done
            },
            SqlError::can_be_tried_again,
        );
        match committed {
            Ok(()) => {
                for part in parts {
                    self.answer(part);
                }
                if filed > 0 {
                    self.report_progress(filed);
                }
                self.shared.tell_others();
            }
            Err(error) if error.fault == StoreFault::Invalid => self.commit_alone(parts, &error),
            Err(error) => {
                for part in parts {
                    part.fail(&error);
                }
            }
        }
    }

    /// One message of a batch breaks a rule of the store: each goes alone, and the others are accepted.
    fn commit_alone(&mut self, parts: Vec<TransactionPart>, error: &StoreError) {
        for part in parts {
            match part {
                TransactionPart::Accept { batch, replies, .. } if batch.len() > 1 => {
                    for (admission, reply) in batch.into_iter().zip(replies) {
                        self.commit(vec![TransactionPart::Accept {
                            batch: vec![admission],
                            replies: vec![reply],
                            outcomes: Ok(Vec::new()),
                        }]);
                    }
                }
                part => part.fail(error),
            }
        }
    }

    /// Answers the callers of a part that is committed.
    fn answer(&mut self, part: TransactionPart) {
        match part {
            TransactionPart::Accept {
                batch,
                replies,
                outcomes: Ok(outcomes),
            } => {
                self.shared.notify(StoreEvent::Batch);
                let is_held = |o: &AcceptOutcome| matches!(o, AcceptOutcome::Held { .. });
                if outcomes.iter().any(is_held) {
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
                let accepted = batch.into_iter().zip(outcomes);
                for ((admission, outcome), reply) in accepted.zip(replies) {
                    // A sender who is gone asks again, and gets the same answer.
                    let _ = reply.send(Ok(Acceptance {
                        outcome,
                        admission: Box::new(admission),
                    }));
                }
            }
            TransactionPart::Accept {
                replies,
                outcomes: Err(error),
                ..
            } => {
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
            TransactionPart::Decide { reply, ruling, .. } => {
                if let Some(Ok(Ruling::Done(Some((seq, admission))))) = &ruling {
                    self.announce(std::iter::once((*seq, admission.as_ref())));
                }
                let gone = || Err(self.shared.gone());
                let _ = reply.send(ruling.unwrap_or_else(gone));
            }
            TransactionPart::PgChange { unit, done } => unit.done(done),
            TransactionPart::HandedOut(_) => {}
        }
    }

    /// Counts accepted messages that are to be indexed, and reports them.
    fn announce<'a>(&mut self, new: impl Iterator<Item = (u64, &'a Admission)>) {
        let before = self.progress.left;
        if before == 0 {
            self.unindexed_since = Instant::now();
        }
        for (seq, admission) in new {
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

    /// Reads how far indexing is, and reports it.
    fn report_progress(&mut self, filed: usize) {
        match self.session.read(|db| index::indexing(db, filed)) {
            Ok(progress) => {
                self.progress = progress;
                self.unindexed_since = Instant::now();
                self.shared.notify(StoreEvent::Indexed(progress));
                let through = progress.through;
                self.shared.notify(StoreEvent::Searchable(through));
            }
            Err(error) => self.delay("indexing", &error),
        }
    }

    /// Says that something has to wait, and waits a moment. Nothing is lost.
    fn delay(&self, what: &'static str, error: &StoreError) {
        self.shared.notify(StoreEvent::Delayed { what, error });
        std::thread::sleep(INDEX_PAUSE);
    }

    /// Indexes a portion of what is left.
    fn index(&mut self) {
        let indexed = self.session.patiently(
            &mut |db| {
                db.take_indexed();
                in_turn(db, &mut |db| index::index_some(db, index::PORTION))?;
                Ok(db.take_indexed())
            },
            SqlError::can_be_tried_again,
        );
        match indexed {
            Ok(filed) => {
                self.report_progress(filed);
                self.shared.tell_others();
            }
            Err(error) => self.delay("indexing", &error),
        }
    }
}

/// Does something with the turn, and commits it.
fn in_turn<T>(db: &Db, act: &mut dyn FnMut(&Db) -> PgResult<T>) -> PgResult<T> {
    db.put_off("BEGIN");
    db.put_off(TURN);
    let done = act(db).and_then(|done| db.commit().map(|()| done));
    if done.is_err() {
        db.roll_back();
    }
    done
}

/// Does parts in a transaction, and commits it.
fn run(db: &Db, origin: i64, label: &str, parts: &mut [TransactionPart]) -> PgResult<()> {
    db.put_off("BEGIN");
    db.put_off(TURN);
    if let [
        TransactionPart::Accept {
            batch, outcomes, ..
        },
    ] = parts
    {
        let (accepted, is_committed) = intake::accept_all(db, origin, batch, Then::Commit)?;
        *outcomes = Ok(accepted);
        return match is_committed {
            true => Ok(()),
            false => db.commit(),
        };
    }
    let is_alone = parts.len() == 1;
    for part in parts {
        if !is_alone {
            db.batch("SAVEPOINT part")?;
        }
        match part.run(db, origin) {
            Ok(()) if is_alone => {}
            Ok(()) => db.batch("RELEASE part")?,
            // The others of the transaction go on.
            Err(error) if !is_alone && !error.can_be_tried_again() && !error.ends_session() => {
                db.batch("ROLLBACK TO part; RELEASE part")?;
                part.note(error.at(label));
            }
            Err(error) => return Err(error),
        }
    }
    db.commit()
}

impl TransactionPart {
    fn run(&mut self, db: &Db, origin: i64) -> PgResult<()> {
        match self {
            Self::Accept {
                batch, outcomes, ..
            } => {
                let (accepted, _) = intake::accept_all(db, origin, batch, Then::GoOn)?;
                *outcomes = Ok(accepted);
            }
            Self::Decide {
                decision, ruling, ..
            } => *ruling = Some(Ok(hold::decide(db, origin, decision)?)),
            Self::PgChange { unit, done } => {
                unit.run(db)?;
                *done = Ok(());
            }
            Self::HandedOut(all) => {
                for HandedOut { address, ids, at } in all {
                    delivery::mark(db, address, ids, DeliveryState::Delivered, *at)?;
                }
            }
        }
        Ok(())
    }

    /// Notes that nothing of this part stays, though the others do.
    fn note(&mut self, error: StoreError) {
        match self {
            Self::Accept { outcomes, .. } => *outcomes = Err(error),
            Self::Decide { ruling, .. } => *ruling = Some(Err(error)),
            Self::PgChange { done, .. } => *done = Err(error),
            Self::HandedOut(_) => {}
        }
    }

    /// Tells the callers that nothing was written.
    fn fail(self, error: &StoreError) {
        match self {
            Self::Accept { replies, .. } => {
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
            Self::Decide { reply, .. } => {
                let _ = reply.send(Err(error.clone()));
            }
            Self::PgChange { unit, .. } => unit.done(Err(error.clone())),
            // They are handed out again.
            Self::HandedOut(_) => {}
        }
    }
}
