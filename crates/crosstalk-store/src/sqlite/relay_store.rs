//! The store of a relay in a SQLite file, behind the asynchronous port.
//!
//! ```text
//! commands ──> queue ──> writer     one thread: accepts all that came meanwhile in one transaction, then indexes a portion
//! queries ───> queue ──> readers    a few threads, each for one query at a time
//!                        search     one thread: makes indexed messages searchable
//! ```
//!
//! The queues are bounded: a caller that finds one full is told to try again later. A command is answered when its
//! transaction is durable.

mod port;
mod search;
mod writer;

use super::relay::keep::TokenCounts;
use crosstalk_protocol::relay::port::{StoreContext, StoreEvent, StoreFuture, StoreStop};
use crosstalk_protocol::store::{StoreError, StoreFault};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};

use super::fault::SqlResult;
use super::{SqliteStore, fault};
use crate::chain::SoleChain;
use rusqlite::Connection;
use search::SearchFiller;
use writer::{Change, Job, Writer};

/// How many commands wait for the writer at most, and how many queries for the readers.
const MAX_WAITING: usize = 16_384;
/// How many queries are answered at once.
const READERS: usize = 4;
/// How much of the file each handle that does not write keeps in memory.
const READER_CACHE_KB: i64 = 2000;
/// The same of the search index for the thread that fills it.
const FILLER_CACHE_KB: i64 = 6000;

/// A SQLite file as the store of a relay.
///
/// ```
/// use crosstalk_envelope::Timestamp;
/// use crosstalk_protocol::relay::port::{Maintenance as _, StoreContext, StoreEvent, StoreEvents};
/// use crosstalk_store::SqliteRelay;
/// use std::sync::Arc;
///
/// struct Ignore;
/// impl StoreEvents for Ignore {
///     fn notify(&self, _: StoreEvent<'_>) {}
/// }
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("relay.db");
/// let clock = Arc::new(|| Timestamp::from_millis(0));
/// let context = StoreContext { events: Arc::new(Ignore), clock };
/// let store = SqliteRelay::open(&path, context.clone())?;
/// assert!(SqliteRelay::open(&path, context.clone()).is_err());
/// drop(store);
/// assert!(SqliteRelay::open(&path, context).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SqliteRelay {
    jobs: SyncSender<Job>,
    queries: SyncSender<ReaderJob>,
    shared: Arc<Shared>,
    chain: SoleChain,
    /// Asked with every request, so without a turn at the readers; nothing once the store is closed.
    registry: Mutex<Option<RegistryReader>>,
    threads: Mutex<Option<Threads>>,
    is_closed: Arc<watch::Sender<bool>>,
}

impl std::fmt::Debug for SqliteRelay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteRelay").finish_non_exhaustive()
    }
}

/// The state that the threads share.
struct Shared {
    context: StoreContext,
    /// Why nothing is written any more, once that is so.
    stopped: watch::Sender<Option<StoreStop>>,
    /// How often this process has written what an agent says it can do.
    declarations: AtomicU64,
}

impl Shared {
    fn notify(&self, event: StoreEvent<'_>) {
        self.context.events.notify(event);
    }

    fn stop(&self, why: StoreStop) {
        self.stopped.send_replace(Some(why.clone()));
        self.notify(StoreEvent::Stopped(why));
    }

    /// What a caller is told whose command or query nobody answers.
    fn gone(&self) -> StoreError {
        match &*self.stopped.borrow() {
            Some(StoreStop::Failed(error)) => error.clone(),
            _ => StoreError::new(StoreFault::Busy, "the relay is shutting down", ""),
        }
    }
}

/// A task of a reader.
enum ReaderJob {
    Answer(Box<dyn FnOnce(&SqliteStore) + Send>),
    Stop,
}

/// Reads the registry, and knows which version of it was read last.
struct RegistryReader {
    store: SqliteStore,
    /// The counts of tokens, and how often agents were declared.
    state: Option<(TokenCounts, u64)>,
    version: u64,
}

struct Threads {
    writer: JoinHandle<()>,
    readers: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Ends all threads, the writer first. The store is closed after it.
    fn end(self, jobs: &SyncSender<Job>, queries: &SyncSender<ReaderJob>, stop: Job) {
        // A full queue is waited for. If a thread is gone, there is nothing to stop.
        let _ = jobs.send(stop);
        join(self.writer);
        for _ in &self.readers {
            let _ = queries.send(ReaderJob::Stop);
        }
        self.readers.into_iter().for_each(join);
    }
}

/// Waits for a thread, unless it is this one: a receiver of events may drop the last handle.
fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != std::thread::current().id() {
        // A panic was reported by the thread itself.
        let _ = thread.join();
    }
}

impl SqliteRelay {
    /// Opens a store, or makes one, and makes this process its relay until
    /// [`stop`](crosstalk_protocol::relay::port::Maintenance::stop) is done or the last handle is dropped. People can use the
    /// file meanwhile; no other process can be its relay. Deliveries that a relay had leased when it was killed are due again.
    ///
    /// # Errors
    /// If it can't be opened or made, or another relay uses it.
    pub fn open(path: impl Into<PathBuf>, context: StoreContext) -> Result<Arc<Self>, StoreError> {
        Self::open_as(path.into(), context, false)
    }

    /// The same, but messages are indexed only when somebody waits for it: for tests of what holds before.
    ///
    /// # Errors
    /// If it can't be opened or made, or another relay uses it.
    #[doc(hidden)]
    pub fn open_lazy(
        path: impl Into<PathBuf>,
        context: StoreContext,
    ) -> Result<Arc<Self>, StoreError> {
        Self::open_as(path.into(), context, true)
    }

    fn open_as(
        path: PathBuf,
        context: StoreContext,
        is_lazy: bool,
    ) -> Result<Arc<Self>, StoreError> {
        let mut store = SqliteStore::open(&path)?;
        let owned = store.own()?;
        let interrupted = store.release_leases((context.clock)())?;
        let shared = Arc::new(Shared {
            context,
            stopped: watch::Sender::new(None),
            declarations: AtomicU64::new(0),
        });
        let registry = RegistryReader {
            store: open_small(&path)?,
            state: None,
            version: 0,
        };
        let (queries, readers) = start_readers(&path)?;
        let mut filling = open_small(&path)?;
        filling.search_cache_kb = FILLER_CACHE_KB;
        let filler = SearchFiller::start(filling, Arc::clone(&shared))?;
        let (jobs, todo) = sync_channel(MAX_WAITING);
        let writer = Writer::new(store, Arc::clone(&shared), filler, is_lazy)?;
        if interrupted > 0 {
            shared.notify(StoreEvent::Interrupted(interrupted));
        }
        let told = Arc::clone(&shared);
        let write = move || {
            // Nothing of the writer is used after a panic: its transaction is rolled back with its store.
            let run = AssertUnwindSafe(|| {
                // Nobody else is the relay before the store is closed.
                let _owned = owned;
                let mut writer = writer;
                while writer.turn(&todo)? {}
                Ok(())
            });
            let ran = catch_unwind(run).unwrap_or_else(|_| Err(panicked()));
            told.stop(ran.map_or_else(StoreStop::Failed, |()| StoreStop::Told));
            // Callers that wait learn why it stopped.
            drop(todo);
        };
        Ok(Arc::new(Self {
            jobs,
            queries,
            shared,
            chain: SoleChain::default(),
            registry: Mutex::new(Some(registry)),
            threads: Mutex::new(Some(Threads {
                writer: spawn("writer", write)?,
                readers,
            })),
            is_closed: Arc::new(watch::Sender::new(false)),
        }))
    }

    /// Asks the store something.
    fn read<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&SqliteStore) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let answer = move |store: &SqliteStore| {
                // If the caller is gone, nobody wants to know.
                if !tell.is_closed() {
                    let _ = tell.send(ask(store));
                }
            };
            self.enqueue(&self.queries, ReaderJob::Answer(Box::new(answer)))?;
            let answer = told.await.map_err(|_| self.shared.gone())?;
            self.stop_if_fatal(&answer);
            answer
        })
    }

    /// Stops the writer after an answer of a reader that says that the store can't be relied on. The writer alone would not notice
    /// as long as it accepts nothing.
    fn stop_if_fatal<T>(&self, answer: &Result<T, StoreError>) {
        if let Err(error) = answer
            && writer::is_fatal(error)
        {
            // A writer with too much to do finds out by itself.
            let _ = self.jobs.try_send(Job::Fail(error.clone()));
        }
    }

    /// Changes something, on the thread that writes.
    fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut SqliteStore) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.submit(change, Job::Change)
    }

    /// The same in a transaction that other changes may share.
    fn write_grouped<T: Send + 'static>(
        &self,
        change: impl Fn(&Connection) -> SqlResult<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.ask_writer(move |tell| Job::Grouped(writer::grouped(change, tell)))
    }

    /// The same, after every message is indexed that was accepted before.
    fn write_indexed<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut SqliteStore) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.submit(change, Job::ChangeIndexed)
    }

    fn submit<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut SqliteStore) -> Result<T, StoreError> + Send + 'static,
        job: fn(Change) -> Job,
    ) -> StoreFuture<'_, T> {
        self.ask_writer(move |tell| {
            // The caller may be gone; the change is made anyway.
            job(Box::new(move |store| writer::answer(tell, change(store))))
        })
    }

    fn ask_writer<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job + Send + 'static,
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

    fn registry_reader(&self) -> MutexGuard<'_, Option<RegistryReader>> {
        lock(&self.registry)
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            if let Some(threads) = lock(&self.threads).take() {
                self.registry_reader().take();
                let (jobs, queries) = (self.jobs.clone(), self.queries.clone());
                let is_closed = Arc::clone(&self.is_closed);
                spawn("closing", move || {
                    threads.end(&jobs, &queries, Job::Stop(writer::Rest::Index));
                    is_closed.send_replace(true);
                })?;
            }
            // The sender lives as long as this handle.
            let _ = self.is_closed.subscribe().wait_for(|closed| *closed).await;
            Ok(())
        })
    }
}

impl Drop for SqliteRelay {
    fn drop(&mut self) {
        if let Some(threads) = lock(&self.threads).take() {
            let stop = Job::Stop(writer::Rest::Leave);
            threads.end(&self.jobs, &self.queries, stop);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(run).map_err(|e| {
        let what = format!("the thread `{name}` of the store could not be started: {e}");
        fault::unavailable(what, "")
    })
}

/// The error of a writer that panicked: a defect of the program, after which nothing is written any more.
fn panicked() -> StoreError {
    fault::unavailable(
        "the thread that writes to the store panicked",
        "restart the relay and report the panic message of its log as a defect",
    )
}

/// Opens a handle beside the one that writes. There are several, and the system keeps the pages of the file in memory, too.
fn open_small(path: &std::path::Path) -> Result<SqliteStore, StoreError> {
    let mut store = SqliteStore::open(path)?;
    store.search_cache_kb = READER_CACHE_KB;
    let set = store.db.pragma_update(None, "cache_size", -READER_CACHE_KB);
    set.map_err(|e| fault::at(path, &e)).map(|()| store)
}

fn start_readers(
    path: &std::path::Path,
) -> Result<(SyncSender<ReaderJob>, Vec<JoinHandle<()>>), StoreError> {
    let (queries, waiting) = sync_channel(MAX_WAITING);
    let waiting = Arc::new(Mutex::new(waiting));
    let mut readers = Vec::with_capacity(READERS);
    for _ in 0..READERS {
        let (store, waiting) = (open_small(path)?, Arc::clone(&waiting));
        readers.push(spawn("reader", move || answer(&store, &waiting))?);
    }
    Ok((queries, readers))
}

/// Answers queries until it is told to stop.
fn answer(store: &SqliteStore, waiting: &Mutex<Receiver<ReaderJob>>) {
    loop {
        // One reader waits for the next query, the others wait for their turn to do so.
        let next = lock(waiting).recv();
        let Ok(ReaderJob::Answer(answer)) = next else {
            return;
        };
        // The caller of a query that panics gets an error. Its transaction has ended, and the next query begins its own.
        let _ = catch_unwind(AssertUnwindSafe(|| answer(store)));
    }
}
