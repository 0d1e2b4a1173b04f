//! The store of relays in a PostgreSQL database, behind the asynchronous port. Many relays may use one database.
//!
//! ```text
//! commands ──> queue ──> writer      one thread: everything that came meanwhile in one transaction, then a portion of the index
//! queries, ──> queue ──> readers     a few threads, each for one query at a time
//! leases                 follower    one thread: hears what other relays wrote
//! ```
//!
//! Everything that has an order (messages, the log, the index) is written by one relay at a time: it holds the row of the
//! table `turn` until its commit, so that numbers are committed in their order, and the facts of a plan hold. A turn is short:
//! the facts of a batch are one trip to the server, the changes with their commit another one. Queries and leases wait for
//! no turn ([decision 0060](../../../docs/decisions/0060-relays-on-one-database-take-turns.md)).

mod close;
mod delivery;
mod entry;
mod fault;
mod follower;
mod hold;
mod inbox;
mod index;
mod indexed;
mod intake;
mod keep;
mod ledger;
mod log;
mod place;
mod poll;
mod port;
mod quarantine;
mod query;
mod queue;
mod registry;
mod retire;
mod schema;
mod search;
mod session;
mod sql;
mod tile;
mod tls;
mod transfer;
mod trust;
mod writer;

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::port::{StoreContext, StoreEvent, StoreFuture, StoreStop};
use crosstalk_protocol::store::{StoreError, StoreFault};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio_postgres::config::SslMode;

pub use place::PostgresPlace;
pub(crate) use transfer::PgSide;
pub use trust::PostgresTrust;

use fault::PgResult;
use follower::PgFollower;
use session::{Door, PgSession};
use sql::{Db, params, value};
use writer::{PgChange, PgJob, PgRest, PgWriter, Unit};

/// How many commands wait for the writer at most, and how many queries for the readers.
const MAX_WAITING: usize = 16_384;
/// How many queries are answered at once.
const READERS: usize = 6;
/// A server that has not answered for so long can't be reached. The follower asks it every second.
const SILENCE: Duration = Duration::from_secs(5);

/// A PostgreSQL database as the store of a relay, which other relays use as well.
pub struct PostgresRelay {
    jobs: SyncSender<PgJob>,
    queries: SyncSender<ReaderTask>,
    shared: Arc<PgShared>,
    threads: Mutex<Option<PgThreads>>,
    is_closed: Arc<watch::Sender<bool>>,
    runtime: Option<Runtime>,
}

impl std::fmt::Debug for PostgresRelay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresRelay").finish_non_exhaustive()
    }
}

/// What the threads share.
struct PgShared {
    context: StoreContext,
    door: Door,
    /// The number of this relay among all that ever used the database.
    origin: i64,
    /// Whether leases go by the clock of the context.
    has_clock: bool,
    stopped: watch::Sender<Option<StoreStop>>,
    is_over: AtomicBool,
    /// Wakes the follower.
    follower: SyncSender<()>,
    /// Whether the other relays have to be told that something is new.
    has_news: AtomicBool,
    /// When the server last answered the follower; nothing if it failed to since.
    reached: Mutex<Option<Instant>>,
}

impl PgShared {
    fn notify(&self, event: StoreEvent<'_>) {
        self.context.events.notify(event);
    }

    /// Notes that the server answered the follower now, or failed to.
    fn note_reached(&self, is_reached: bool) {
        *lock(&self.reached) = is_reached.then(Instant::now);
    }

    fn is_reachable(&self) -> bool {
        lock(&self.reached).is_some_and(|at| at.elapsed() < SILENCE)
    }

    fn stop(&self, why: StoreStop) {
        self.is_over.store(true, Ordering::SeqCst);
        self.stopped.send_replace(Some(why.clone()));
        self.notify(StoreEvent::Stopped(why));
    }

    /// Lets the follower tell the other relays that something is new.
    fn tell_others(&self) {
        self.has_news.store(true, Ordering::SeqCst);
        // If it is full, it is woken already.
        let _ = self.follower.try_send(());
    }

    /// What a caller is told whose command or query nobody answers.
    fn gone(&self) -> StoreError {
        match &*self.stopped.borrow() {
            Some(StoreStop::Failed(error)) => error.clone(),
            _ => StoreError::new(StoreFault::Busy, "the relay is shutting down", ""),
        }
    }

    /// The time that leases go by.
    fn now(&self, db: &Db) -> PgResult<Timestamp> {
        if self.has_clock {
            return Ok((self.context.clock)());
        }
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let millis: i64 = db.one(sql, params![], value)?;
        Ok(Timestamp::from_millis(millis))
    }
}

/// A task of a reader.
enum ReaderTask {
    Answer(Box<dyn FnOnce(&mut PgSession) + Send>),
    Stop,
}

struct PgThreads {
    writer: JoinHandle<()>,
    readers: Vec<JoinHandle<()>>,
    follower: JoinHandle<()>,
}

impl PgThreads {
    /// Ends all threads, the writer first.
    fn end(
        self,
        shared: &PgShared,
        jobs: &SyncSender<PgJob>,
        queries: &SyncSender<ReaderTask>,
        rest: PgRest,
    ) {
        // A full queue is waited for. If a thread is gone, there is nothing to stop.
        let _ = jobs.send(PgJob::Stop(rest));
        join(self.writer);
        for _ in &self.readers {
            let _ = queries.send(ReaderTask::Stop);
        }
        self.readers.into_iter().for_each(join);
        let _ = shared.follower.try_send(());
        join(self.follower);
    }
}

/// Waits for a thread, unless it is this one: a receiver of events may drop the last handle.
fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != std::thread::current().id() {
        // A panic was reported by the thread itself.
        let _ = thread.join();
    }
}

/// The way to a database, and the threads that it needs.
fn door(place: PostgresPlace, threads: usize) -> Result<(Door, Runtime), StoreError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(threads).enable_all();
    let runtime = builder.thread_name("postgres").build().map_err(|e| {
        let what = format!("the threads of the store could not be started: {e}");
        StoreError::new(StoreFault::Unavailable, what, "")
    })?;
    let tls = match place.config.get_ssl_mode() {
        SslMode::Disable => None,
        _ => Some(tls::PgTls::new(place.roots.as_deref()).map_err(|e| {
            let what = format!("the certificates for {place} can't be used: {e}");
            StoreError::new(
                StoreFault::Unavailable,
                what,
                "check sslrootcert in the URL of the store",
            )
        })?),
    };
    let door = Door {
        place: Arc::new(place),
        tls,
        runtime: runtime.handle().clone(),
        trips: Arc::new(AtomicU64::new(0)),
        chain: Arc::default(),
    };
    Ok((door, runtime))
}

impl PostgresRelay {
    /// Opens a store: makes its tables, or brings them to the present version.
    ///
    /// # Errors
    /// If the server can't be reached or does not let the relay in, or the tables are those of a newer program.
    pub fn open(place: PostgresPlace, context: StoreContext) -> Result<Arc<Self>, StoreError> {
        Self::open_as(place, context, false)
    }

    /// The same, but leases go by the clock of the context: for tests that set it.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_with_clock(
        place: PostgresPlace,
        context: StoreContext,
    ) -> Result<Arc<Self>, StoreError> {
        Self::open_as(place, context, true)
    }

    fn open_as(
        place: PostgresPlace,
        context: StoreContext,
        has_clock: bool,
    ) -> Result<Arc<Self>, StoreError> {
        // It waits for the server, which a thread of an asynchronous program must not do.
        let opening = spawn("opening", move || {
            Self::open_here(place, context, has_clock)
        })?;
        opening.join().unwrap_or_else(|_| Err(panicked()))
    }

    fn open_here(
        place: PostgresPlace,
        context: StoreContext,
        has_clock: bool,
    ) -> Result<Arc<Self>, StoreError> {
        let (door, runtime) = door(place, 2)?;
        let mut session = PgSession::new(door.clone());
        session.read(schema::migrate)?;
        transfer::require_whole(&mut session, &door.place.to_string())?;
        let origin = session.read(|db| {
            let sql = "SELECT nextval('origin_seq')";
            db.one(sql, params![], value::<i64>)
        })?;
        let (wake, woken) = sync_channel(1);
        let shared = Arc::new(PgShared {
            context,
            door: door.clone(),
            origin,
            has_clock,
            stopped: watch::Sender::new(None),
            is_over: AtomicBool::new(false),
            follower: wake.clone(),
            has_news: AtomicBool::new(false),
            reached: Mutex::new(Some(Instant::now())),
        });
        let (jobs, todo) = sync_channel(MAX_WAITING);
        let listening = PgSession::listening(door.clone(), (origin, wake));
        let follower = PgFollower::new(listening, Arc::clone(&shared), jobs.clone())?;
        let writer = PgWriter::new(session, Arc::clone(&shared))?;
        let (queries, readers) = start_readers(&door)?;
        let told = Arc::clone(&shared);
        let write = move || {
            // Nothing of the writer is used after a panic: its transaction is rolled back with its session.
            let run = AssertUnwindSafe(|| {
                let mut writer = writer;
                while writer.turn(&todo) {}
            });
            told.stop(match catch_unwind(run) {
                Ok(()) => StoreStop::Told,
                Err(_) => StoreStop::Failed(panicked()),
            });
            // Callers that wait learn why it stopped.
            drop(todo);
        };
        Ok(Arc::new(Self {
            jobs,
            queries,
            shared,
            threads: Mutex::new(Some(PgThreads {
                writer: spawn("writer", write)?,
                readers,
                follower: spawn("follower", move || follower.follow(&woken))?,
            })),
            is_closed: Arc::new(watch::Sender::new(false)),
            runtime: Some(runtime),
        }))
    }

    /// How often the server was asked and waited for.
    pub fn trips(&self) -> u64 {
        self.shared.door.trips.load(Ordering::Relaxed)
    }

    /// Asks the store something, on a thread that reads.
    fn with_session<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut PgSession) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let answer = move |session: &mut PgSession| {
                // If the caller is gone, nobody wants to know.
                if !tell.is_closed() {
                    let _ = tell.send(ask(session));
                }
            };
            self.enqueue(&self.queries, ReaderTask::Answer(Box::new(answer)))?;
            told.await.map_err(|_| self.shared.gone())?
        })
    }

    /// Asks the store something that is one statement, or does not depend on one state.
    fn read<T: Send + 'static>(
        &self,
        ask: impl FnMut(&Db) -> PgResult<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.with_session(move |session| session.read(ask))
    }

    /// Asks the store something about one state of it.
    fn read_state<T: Send + 'static>(
        &self,
        ask: impl FnMut(&Db) -> PgResult<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.with_session(move |session| session.read_state(ask))
    }

    /// Changes rows that are locked, without a turn.
    fn change<T: Send + 'static>(
        &self,
        change: impl FnMut(&Db) -> PgResult<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.with_session(move |session| session.change(change))
    }

    /// Changes something, with the turn.
    fn write<T: Send + 'static>(
        &self,
        change: impl FnMut(&Db) -> PgResult<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.ask_writer(move |tell| {
            PgJob::PgChange(Box::new(PgChange::new(change, tell)) as Box<dyn Unit>)
        })
    }

    fn ask_writer<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> PgJob + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            self.enqueue(&self.jobs, job(tell))?;
            match told.await {
                Ok(answer) => answer,
                Err(_) => {
                    // The writer ends, and is about to say why. The sender lives as long as this handle.
                    let mut stopped = self.shared.stopped.subscribe();
                    let _ = stopped.wait_for(Option::is_some).await;
                    Err(self.shared.gone())
                }
            }
        })
    }

    fn enqueue<J>(&self, queue: &SyncSender<J>, job: J) -> Result<(), StoreError> {
        queue.try_send(job).map_err(|error| match error {
            TrySendError::Disconnected(_) => self.shared.gone(),
            TrySendError::Full(_) => StoreError::new(
                StoreFault::Busy,
                "the relay has too much to do",
                "try again later",
            ),
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            if let Some(threads) = lock(&self.threads).take() {
                let (jobs, queries) = (self.jobs.clone(), self.queries.clone());
                let shared = Arc::clone(&self.shared);
                let is_closed = Arc::clone(&self.is_closed);
                spawn("closing", move || {
                    threads.end(&shared, &jobs, &queries, PgRest::Index);
                    is_closed.send_replace(true);
                })?;
            }
            // The sender lives as long as this handle.
            let _ = self.is_closed.subscribe().wait_for(|closed| *closed).await;
            Ok(())
        })
    }
}

impl Drop for PostgresRelay {
    fn drop(&mut self) {
        if let Some(threads) = lock(&self.threads).take() {
            threads.end(&self.shared, &self.jobs, &self.queries, PgRest::Leave);
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StoreError> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(run).map_err(|e| {
        let what = format!("the thread `{name}` of the store could not be started: {e}");
        StoreError::new(StoreFault::Unavailable, what, "")
    })
}

/// The error of a thread that panicked: a defect of the program, after which nothing is written any more.
fn panicked() -> StoreError {
    StoreError::new(
        StoreFault::Unavailable,
        "the thread that writes to the store panicked",
        "restart the relay and report the panic message of its log as a defect",
    )
}

fn start_readers(door: &Door) -> Result<(SyncSender<ReaderTask>, Vec<JoinHandle<()>>), StoreError> {
    let (queries, waiting) = sync_channel(MAX_WAITING);
    let waiting = Arc::new(Mutex::new(waiting));
    let mut readers = Vec::with_capacity(READERS);
    for _ in 0..READERS {
        let (session, waiting) = (PgSession::new(door.clone()), Arc::clone(&waiting));
        readers.push(spawn("reader", move || answer(session, &waiting))?);
    }
    Ok((queries, readers))
}

/// Answers queries until it is told to stop.
fn answer(mut session: PgSession, waiting: &Mutex<Receiver<ReaderTask>>) {
    loop {
        // One reader waits for the next query, the others wait for their turn to do so.
        let next = lock(waiting).recv();
        let Ok(ReaderTask::Answer(answer)) = next else {
            return;
        };
        // The caller of a query that panics gets an error. Its session is not used again.
        if catch_unwind(AssertUnwindSafe(|| answer(&mut session))).is_err() {
            session.reset();
        }
    }
}
