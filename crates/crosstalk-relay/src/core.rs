//! The relay without its network: it accepts messages, stores them and hands them out.

pub(crate) mod access;
mod answer;
mod decide;
mod handle;
mod inbox;
mod notary;
mod notice;
pub(crate) mod poll;
mod receive;
mod rejection;
mod verification;

pub(crate) use access::Access;
pub use decide::Wish;
pub use handle::OpenStore;
pub use poll::PollStatus;
pub use receive::{Received, unread};

use crate::config::{Config, Reload};
use crate::delivery::lane::{self, Lanes};
use crate::metrics::Metrics;
use crate::port::{Keyring, Resolver};
use answer::Answers;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Intent, PrivateKey, Timestamp};
use crosstalk_protocol::Trust;
use crosstalk_protocol::relay::{
    Admission, Binding, Delivery, HopKey, IndexProgress, Recipient, RelayRules, RelayStore,
    add_logged_hop,
};
use crosstalk_protocol::store::{Record, StoreError, StoreFault};
use handle::{Change, Job, Readers};
use inbox::{InboxNotifier, ReadInboxes};
use rejection::RejectionLog;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, mpsc};
use std::thread::JoinHandle;
use tokio::sync::{Notify, oneshot, watch};
use verification::{TrustSnapshot, Verifier};

/// Tells the time.
pub type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// What a relay is made of.
pub struct Setup {
    /// What was configured.
    pub config: Config,
    /// The handle of the store that writes.
    pub writer: Box<dyn RelayStore + Send>,
    /// Makes handles that read.
    pub open: OpenStore,
    /// Looks up the DNS records of domains; without it, the relay asks no name server.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// Keeps the trust data.
    pub keyring: Box<dyn Keyring>,
    /// The key that hops are signed with; its id is the name of the relay.
    pub key: Option<PrivateKey>,
    /// What tells the time.
    pub clock: Clock,
    /// Writes commands for the operator, for hints in the log.
    pub command: CommandLine,
}

/// Makes a command line for the operator of this relay: `token list` becomes one that works when it is copied.
pub type CommandLine = Box<dyn Fn(&str) -> String + Send + Sync>;

/// A relay: a handle, which can be cloned.
#[derive(Clone)]
pub struct Relay {
    shared: Arc<Shared>,
    jobs: mpsc::SyncSender<Job>,
    writer: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// What every part of the relay sees.
pub(crate) struct Shared {
    config: RwLock<Arc<Config>>,
    rules: RwLock<Arc<RelayRules>>,
    trust_snapshot: Arc<TrustSnapshot>,
    verifier: Verifier,
    resolver: Option<Arc<dyn Resolver>>,
    key: Option<PrivateKey>,
    /// What only this relay knows: it stays the same from start to start where the relay has a key.
    secret: Digest,
    clock: Clock,
    command: CommandLine,
    metrics: Metrics,
    readers: Arc<Readers>,
    inbox_notifier: InboxNotifier,
    answers: Answers,
    polls: poll::Polls,
    inboxes: ReadInboxes,
    /// What waits for which destination, and which of them are left alone.
    lanes: Mutex<Lanes>,
    /// Rejections that are not in the log yet.
    rejections: RejectionLog,
    /// Rejections that have a line in the log of the program.
    logged: RejectionLog,
    /// Messages were indexed: there may be work for handlers.
    work: Notify,
    filing: watch::Sender<IndexProgress>,
    /// The last message that can be searched for.
    searchable: watch::Sender<u64>,
    /// Why the writer stopped, once it has.
    stopped: watch::Sender<Option<Stopped>>,
    /// A consent was revoked: there are traces to be erased.
    revocation: Notify,
    /// The relay has something to say by itself.
    notices: Notify,
}

/// Why nothing is written any more.
#[derive(Clone, Debug)]
pub enum Stopped {
    /// It was told to.
    Told,
    /// The store can't be relied on.
    Failed(StoreError),
}

impl Shared {
    fn config(&self) -> Arc<Config> {
        let config = self.config.read();
        Arc::clone(&config.unwrap_or_else(PoisonError::into_inner))
    }

    /// A message was accepted: readers and senders that wait for it are woken.
    fn notify_waiting(&self, seq: u64, admission: &Admission) {
        Metrics::count(&self.metrics.accepted);
        for Recipient { address, .. } in &admission.recipients {
            self.inbox_notifier.notify(address);
        }
        let arrival = &admission.arrival;
        self.polls.came(arrival);
        // An ACK says that the question came; the answer follows.
        let is_reply = |meaning: Intent| meaning.answers() && meaning != Intent::Ack;
        let is_reply = arrival.meaning.is_some_and(is_reply);
        if let Some(id) = arrival.answered().filter(|_| is_reply) {
            self.answers.came(id, admission, seq);
        }
    }

    fn note_indexed(&self, filing: &IndexProgress) {
        let filed = u64::try_from(filing.filed).unwrap_or(0);
        self.metrics.indexed.fetch_add(filed, Ordering::Relaxed);
        self.metrics.backlog.store(filing.left, Ordering::Relaxed);
        let quarantined = &self.metrics.quarantined;
        if quarantined.swap(filing.quarantined, Ordering::Relaxed) < filing.quarantined {
            tracing::error!(
                quarantined = filing.quarantined,
                "messages can't be indexed and are quarantined; `{}` lists them",
                (self.command)("fsck")
            );
        }
        self.filing.send_replace(*filing);
        if filing.filed > 0 {
            self.work.notify_one();
        }
    }
}

/// What only a relay knows. Its key signs nothing else that begins like this, and the signature is not shown to anyone.
fn secret_of(key: Option<&PrivateKey>) -> Digest {
    match key {
        Some(key) => Digest::of(&key.sign(b"crosstalk ids of answers\n")),
        None => {
            let mut random = [0; 32];
            // Without random numbers the ids can be guessed, and stay unique.
            let _ = getrandom::fill(&mut random);
            Digest(random)
        }
    }
}

/// The rules of a relay: its configuration, with the agents and tokens of the store and the keys that it trusts.
fn rules_of(
    config: &Config,
    store: &dyn RelayStore,
    trust: &Trust,
) -> Result<RelayRules, StoreError> {
    let mut rules = config.rules();
    for agent in store.agents()? {
        rules.directory.declare(agent);
    }
    let tokens = store.tokens()?;
    rules.listed.set_pins(trust);
    rules.listed.set_tokens(&tokens);
    rules.routes.bindings = Binding::of(&tokens);
    Ok(rules)
}

impl Relay {
    /// Starts the writer. Messages that were accepted before and are not indexed are indexed in the background; readers see them
    /// already.
    ///
    /// # Errors
    /// If the store or the trust data can't be read.
    pub fn start(setup: Setup) -> Result<Self, StoreError> {
        let trust_snapshot = TrustSnapshot::open(setup.keyring)
            .map_err(|what| StoreError::new(StoreFault::Unavailable, what, ""))?;
        let rules = rules_of(&setup.config, setup.writer.as_ref(), &trust_snapshot.now())?;
        let filing = setup.writer.index_progress()?;
        let lanes = Lanes::new(&setup.config.retry);
        let shared = Arc::new(Shared {
            rules: RwLock::new(Arc::new(rules)),
            config: RwLock::new(Arc::new(setup.config)),
            trust_snapshot: Arc::new(trust_snapshot),
            verifier: Verifier::default(),
            resolver: setup.resolver,
            secret: secret_of(setup.key.as_ref()),
            key: setup.key,
            clock: setup.clock,
            command: setup.command,
            metrics: Metrics::default(),
            readers: Arc::new(Readers::new(setup.open)),
            inbox_notifier: InboxNotifier::default(),
            answers: Answers::default(),
            polls: poll::Polls::default(),
            inboxes: ReadInboxes::default(),
            lanes: Mutex::new(lanes),
            rejections: RejectionLog::default(),
            logged: RejectionLog::default(),
            work: Notify::new(),
            filing: watch::Sender::new(filing),
            searchable: watch::Sender::new(0),
            stopped: watch::Sender::new(None),
            revocation: Notify::new(),
            notices: Notify::new(),
        });
        shared.note_indexed(&filing);
        let (jobs, todo) = mpsc::sync_channel(handle::MAX_JOBS);
        let (store, seen) = (setup.writer, Arc::clone(&shared));
        let write = move || {
            let shared = Arc::clone(&seen);
            let run = move || handle::run(store, shared, todo);
            // Nothing of the writer is used after a panic: its transaction is rolled back with its store.
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            let end = match ran.unwrap_or_else(|_| Err(handle::panicked())) {
                Ok(()) => Stopped::Told,
                Err(error) => {
                    tracing::error!(reason = %error, "the store can't be relied on any more");
                    Stopped::Failed(error)
                }
            };
            seen.stopped.send_replace(Some(end));
            seen.inbox_notifier.notify_all();
        };
        let writer = std::thread::Builder::new()
            .name("writer".into())
            .spawn(write)
            .map_err(|e| {
                let what = format!("the writer could not be started: {e}");
                StoreError::new(StoreFault::Unavailable, what, "")
            })?;
        Ok(Self {
            shared,
            jobs,
            writer: Arc::new(Mutex::new(Some(writer))),
        })
    }

    /// What is configured now.
    pub fn config(&self) -> Arc<Config> {
        self.shared.config()
    }

    /// Goes by another configuration from now on, but for settings that need a restart.
    ///
    /// # Errors
    /// If the store can't be read: everything stays as it was.
    pub fn reload(&self, new: Config) -> Result<Reload, StoreError> {
        let store = self.open_store()?;
        // The lock keeps others from changing the rules: tokens that another thread has seen are not forgotten again.
        let rules = self.shared.rules.write();
        let mut rules = rules.unwrap_or_else(PoisonError::into_inner);
        let reload = self.config().reload(new);
        *rules = Arc::new(rules_of(&reload.config, store.as_ref(), &self.trust())?);
        let config = self.shared.config.write();
        *config.unwrap_or_else(PoisonError::into_inner) = Arc::new(reload.config.clone());
        Ok(reload)
    }

    /// What the relay goes by now.
    pub fn rules(&self) -> Arc<RelayRules> {
        let rules = self.shared.rules.read();
        Arc::clone(&rules.unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes what the relay goes by.
    pub fn change_rules(&self, change: impl FnOnce(&mut RelayRules)) {
        let rules = self.shared.rules.write();
        let mut rules = rules.unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut rules));
    }

    /// What waits for which destination.
    pub(crate) fn lanes(&self) -> MutexGuard<'_, Lanes> {
        let lanes = self.shared.lanes.lock();
        lanes.unwrap_or_else(PoisonError::into_inner)
    }

    /// When a delivery is tried next.
    pub(crate) fn next_attempt(&self, id: &str, delivery: &Delivery) -> Option<Timestamp> {
        let lane = lane::name(&self.config(), &delivery.to, delivery.by);
        self.lanes().next_attempt(&lane, id, delivery)
    }

    /// Since when an attempt to deliver runs, if one does.
    pub(crate) fn running_since(&self, id: &str, to: &str) -> Option<Timestamp> {
        self.lanes().running_since(id, to)
    }

    /// A text under a secret of this relay: others can't compute a digest of it.
    pub(crate) fn keyed(&self, text: &str) -> String {
        format!("{}\n{text}", self.shared.secret)
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Looks up the DNS records of domains.
    pub fn resolver(&self) -> Option<&Arc<dyn Resolver>> {
        self.shared.resolver.as_ref()
    }

    /// A command for the operator of this relay, for hints in the log.
    pub(crate) fn command(&self, words: &str) -> String {
        (self.shared.command)(words)
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.shared.clock)()
    }

    /// Reloads the trust data, which others may have changed.
    pub fn reload_keys(&self) {
        match self.shared.trust_snapshot.reload() {
            Ok(()) => self.shared.list_pins(),
            Err(reason) => tracing::warn!(reason, "the trusted keys can't be read"),
        }
    }

    /// The trust data now.
    pub(crate) fn trust(&self) -> Arc<Trust> {
        self.shared.trust_snapshot.now()
    }

    /// How far filing is; changes can be waited for.
    pub fn indexing(&self) -> watch::Receiver<IndexProgress> {
        self.shared.filing.subscribe()
    }

    /// The last message that can be searched for; changes can be waited for.
    pub(crate) fn searchable(&self) -> watch::Receiver<u64> {
        self.shared.searchable.subscribe()
    }

    /// Why nothing is written any more; changes can be waited for.
    pub fn stopped(&self) -> watch::Receiver<Option<Stopped>> {
        self.shared.stopped.subscribe()
    }

    /// Waits until messages were indexed since the last call: there may be work for handlers.
    pub async fn work(&self) {
        self.shared.work.notified().await;
    }

    /// Wakes the handlers, though nothing was indexed: a dead letter was queued again, or the clock was set.
    pub fn wake(&self) {
        self.shared.work.notify_one();
        self.shared.polls.wake();
    }

    /// Asks the store something.
    ///
    /// # Errors
    /// What the store says.
    pub async fn read<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn RelayStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answer = self.shared.readers.ask(ask).await;
        self.stop_if_fatal(&answer);
        answer
    }

    /// Stops the relay after an answer of a reader that says that the store can't be relied on. The writer alone would
    /// not notice as long as no request comes as far as to it.
    pub(crate) fn stop_if_fatal<T>(&self, answer: &Result<T, StoreError>) {
        if let Err(error) = answer
            && handle::is_fatal(error)
        {
            // A writer with too much to do finds out by itself.
            let _ = self.jobs.try_send(Job::Fail(error.clone()));
        }
    }

    /// A handle of the store for a reader that reads often and little, without a turn.
    ///
    /// # Errors
    /// What the store says.
    pub(crate) fn open_store(&self) -> Result<Box<dyn RelayStore + Send>, StoreError> {
        self.shared.readers.open()
    }

    /// Changes something in the store, on the thread that writes.
    ///
    /// # Errors
    /// What the store says.
    pub async fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut dyn RelayStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(change, Job::Change).await
    }

    /// The same, after every message is indexed that was accepted before.
    ///
    /// # Errors
    /// What the store says.
    pub async fn write_indexed<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut dyn RelayStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(change, Job::ChangeIndexed).await
    }

    async fn submit<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut dyn RelayStore) -> Result<T, StoreError> + Send + 'static,
        job: fn(Change) -> Job,
    ) -> Result<T, StoreError> {
        let (tell, told) = oneshot::channel();
        let job = job(Box::new(move |store| {
            // The caller may be gone; the change is made anyway.
            let _ = tell.send(change(store));
        }));
        self.enqueue(job)?;
        told.await.map_err(|_| self.gone())?
    }

    /// Gives the writer something to do. A writer that is too far behind gets nothing more: the caller tries again later.
    fn enqueue(&self, job: Job) -> Result<(), StoreError> {
        self.jobs.try_send(job).map_err(|refused| match refused {
            mpsc::TrySendError::Disconnected(_) => self.gone(),
            mpsc::TrySendError::Full(_) => StoreError::new(
                StoreFault::Busy,
                "the relay has too much to write",
                "try again later",
            ),
        })
    }

    fn gone(&self) -> StoreError {
        match &*self.shared.stopped.borrow() {
            Some(Stopped::Failed(error)) => error.clone(),
            _ => StoreError::new(StoreFault::Busy, "the relay is shutting down", ""),
        }
    }

    /// Whether nothing is written any more.
    pub fn is_stopping(&self) -> bool {
        self.shared.stopped.borrow().is_some()
    }

    /// A message as it leaves this relay: with the trace that it was here. Nothing from its end on (CON-005): whoever
    /// hands a text out asks here.
    pub fn leaving(&self, record: &Record) -> Option<String> {
        if record.is_expired(self.now()) {
            return None;
        }
        let config = self.config();
        let name = config.name.as_str();
        let key = self.shared.key.as_ref();
        let key = key.map(|key| HopKey { key, pkid: name });
        let chain = record.entry.map(|entry| format!("{name}#{entry}"));
        let left = add_logged_hop(&record.text, record.at, name, key, chain.as_deref());
        Some(left.unwrap_or_else(|fault| {
            tracing::warn!(id = %record.id, reason = %fault.message, "a message left without its hop");
            record.text.clone()
        }))
    }

    /// Stops. Accepted messages, which are on disk already, are indexed for a few seconds more. Returns when the store is closed.
    pub async fn stop(&self) {
        // What is not signed now is signed at the next start.
        if let Err(error) = self.tend_log().await {
            tracing::warn!(reason = %error, "the log ends without a checkpoint");
        }
        let jobs = self.jobs.clone();
        // A full queue is waited for. If the writer is gone, there is nothing to stop.
        let _ = tokio::task::spawn_blocking(move || jobs.send(Job::Stop)).await;
        let mut stopped = self.stopped();
        // The sender lives as long as this handle.
        let _ = stopped.wait_for(Option::is_some).await;
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(writer) = writer {
            // It has said that it ended; what is left is to close the store.
            let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        }
    }
}
