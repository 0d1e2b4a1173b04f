//! The relay without its network: it accepts messages, stores them and hands them out.

pub(crate) mod access;
mod answer;
mod decide;
mod inbox;
mod notary;
mod notice;
pub(crate) mod poll;
mod receive;
pub(crate) mod registry;
mod rejection;
mod signal;
mod verification;

pub(crate) use access::Access;
pub use decide::Wish;
pub(crate) use inbox::InboxWatch;
pub use poll::PollStatus;
pub(crate) use receive::Prepared;
pub use receive::{Received, unread};

use crate::config::{Config, Reload};
use crate::delivery::lane::{self, Lanes};
use crate::metrics::Metrics;
use crate::port::{Keyring, Resolver};
use crosstalk_email::ReplyKey;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, PrivateKey, Reading, Timestamp};
use crosstalk_protocol::Trust;
use crosstalk_protocol::audit::{ChainId, NoteKey};
use crosstalk_protocol::relay::port::{
    IndexProgress, JoinedChain, LogWriter, RelayStore, StoreContext, StoreFuture, StoreStop,
};
use crosstalk_protocol::relay::{Delivery, HopKey, RelayRules, add_logged_hop};
use crosstalk_protocol::store::{Record, StoreError, StoreFault, is_same_party};
use inbox::ReadInboxes;
use rejection::RejectionLog;
use signal::Signals;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio::sync::{Notify, watch};
use verification::{TrustSnapshot, Verifier};

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Opens the store of a relay.
pub type OpenStore =
    Box<dyn FnOnce(StoreContext) -> StoreFuture<'static, Arc<dyn RelayStore>> + Send>;

/// What a relay is made of.
pub struct Setup {
    /// The configuration.
    pub config: Config,
    /// Opens the store, which reports to the relay from then on.
    pub open: OpenStore,
    /// Looks up the DNS records of domains; without it, the relay asks no name server.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// Keeps the trust data.
    pub keyring: Box<dyn Keyring>,
    /// The key that hops are signed with; its id is the name of the relay.
    pub key: Option<PrivateKey>,
    /// The key of the reply tokens in mails; without it, the relay has no bridge to mail.
    pub reply_key: Option<ReplyKey>,
    /// What tells the time.
    pub clock: Clock,
    /// Writes commands for the operator, for hints in the log.
    pub command: CommandLine,
}

/// Makes a command line for the operator of this relay: `token list` becomes one that works when it is copied.
pub type CommandLine = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A relay: a handle, which can be cloned.
#[derive(Clone)]
pub struct Relay {
    shared: Arc<RelayState>,
}

/// What every part of the relay sees.
pub(crate) struct RelayState {
    store: Arc<dyn RelayStore>,
    /// What the events of the store change.
    signals: Arc<Signals>,
    config: RwLock<Arc<Config>>,
    rules: RwLock<Arc<RelayRules>>,
    registry: registry::RegistryCache,
    trust_snapshot: Arc<TrustSnapshot>,
    verifier: Verifier,
    resolver: Option<Arc<dyn Resolver>>,
    key: Option<PrivateKey>,
    /// The chain of the log that this relay writes.
    chain: ChainId,
    reply_key: Option<ReplyKey>,
    /// What only the relays of this store know: it stays the same from start to start where the relay has a key.
    secret: Digest,
    clock: Clock,
    command: CommandLine,
    polls: poll::PollCache,
    inboxes: ReadInboxes,
    /// What waits for which destination, and which of them are left alone.
    lanes: Mutex<Lanes>,
    /// Rejections that are not in the log yet.
    rejections: RejectionLog,
    /// Rejections that have a line in the log of the program.
    logged: RejectionLog,
    /// A consent was revoked: there are traces to be erased.
    revocation: Notify,
    /// The relay has something to say by itself.
    notices: Notify,
    /// One sends notices at a time.
    notice_turn: tokio::sync::Mutex<()>,
}

impl RelayState {
    fn config(&self) -> Arc<Config> {
        let config = self.config.read();
        Arc::clone(&config.unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes what the relay goes by.
    fn change_rules(&self, change: impl FnOnce(&mut RelayRules)) {
        let rules = self.rules.write();
        let mut rules = rules.unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut rules));
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

/// The key of a relay as its store registers it. A key that can't sign the log has no text as one of a log.
fn writer_key(name: &str, key: Option<&PrivateKey>) -> String {
    let Some(key) = key else {
        return name.to_owned();
    };
    match NoteKey::new(name, key.public()) {
        Ok(key) => key.to_string(),
        Err(_) => format!("{name} {}", key.public().fingerprint()),
    }
}

impl Relay {
    /// Starts a relay on its store. Messages that were accepted before and are not indexed are indexed in the background; readers
    /// see them already.
    ///
    /// # Errors
    /// If the store or the trust data can't be read.
    pub async fn start(setup: Setup) -> Result<Self, StoreError> {
        let trust_snapshot = TrustSnapshot::open(setup.keyring)
            .map_err(|what| StoreError::new(StoreFault::Unavailable, what, ""))?;
        let signals = Arc::new(Signals::new(Arc::clone(&setup.command)));
        let context = StoreContext {
            events: Arc::clone(&signals) as _,
            clock: Arc::clone(&setup.clock),
        };
        let store = (setup.open)(context).await?;
        let writer = LogWriter {
            name: setup.config.name.clone(),
            key: writer_key(&setup.config.name, setup.key.as_ref()),
            secret: secret_of(setup.key.as_ref()),
            at: (setup.clock)(),
        };
        let JoinedChain { chain, secret } = store.join(writer).await?;
        let snapshot = registry::read_registry(store.as_ref()).await?;
        let rules = registry::rules_of(&setup.config, &snapshot, &trust_snapshot.now());
        let lanes = Lanes::new(&setup.config.retry);
        let shared = RelayState {
            store,
            signals,
            rules: RwLock::new(Arc::new(rules)),
            registry: registry::RegistryCache::new(&snapshot),
            config: RwLock::new(Arc::new(setup.config)),
            trust_snapshot: Arc::new(trust_snapshot),
            verifier: Verifier::default(),
            resolver: setup.resolver,
            secret,
            key: setup.key,
            chain,
            reply_key: setup.reply_key,
            clock: setup.clock,
            command: setup.command,
            polls: poll::PollCache::default(),
            inboxes: ReadInboxes::default(),
            lanes: Mutex::new(lanes),
            rejections: RejectionLog::default(),
            logged: RejectionLog::default(),
            revocation: Notify::new(),
            notices: Notify::new(),
            notice_turn: tokio::sync::Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// What the relay keeps.
    pub fn store(&self) -> &dyn RelayStore {
        self.shared.store.as_ref()
    }

    /// The current configuration.
    pub fn config(&self) -> Arc<Config> {
        self.shared.config()
    }

    /// Goes by another configuration from now on, but for settings that need a restart.
    ///
    /// # Errors
    /// If the store can't be read: everything stays as it was.
    pub async fn reload(&self, new: Config) -> Result<Reload, StoreError> {
        // Tokens that another caller has seen are not forgotten again.
        let _turn = self.shared.registry.turn().await;
        let snapshot = self.read_registry().await?;
        let rules = self.shared.rules.write();
        let mut rules = rules.unwrap_or_else(PoisonError::into_inner);
        let reload = self.config().reload(new);
        *rules = Arc::new(registry::rules_of(&reload.config, &snapshot, &self.trust()));
        let config = self.shared.config.write();
        *config.unwrap_or_else(PoisonError::into_inner) = Arc::new(reload.config.clone());
        self.shared.set_registry(&snapshot);
        Ok(reload)
    }

    /// The current rules of the relay.
    pub fn rules(&self) -> Arc<RelayRules> {
        let rules = self.shared.rules.read();
        Arc::clone(&rules.unwrap_or_else(PoisonError::into_inner))
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

    /// The counters.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.signals.metrics
    }

    /// Looks up the DNS records of domains.
    pub fn resolver(&self) -> Option<&Arc<dyn Resolver>> {
        self.shared.resolver.as_ref()
    }

    /// The key of the reply tokens in mails and of the codes in text messages; none where the relay has no such bridge.
    pub fn reply_key(&self) -> Option<&ReplyKey> {
        self.shared.reply_key.as_ref()
    }

    /// The name under which a recipient of a message answers it: as the message addresses it, or, if it was sent to several, as it
    /// names the one.
    pub fn name_of_recipient(&self, record: &Record, recipient: &str) -> String {
        let rules = self.rules();
        let is_it = |name: &str| is_same_party(rules.routes.named(name), recipient);
        if is_it(&record.receiver) {
            return record.receiver.clone();
        }
        let document = Document::parse(&record.text, Reading::Strict);
        let targets = document.envelope().routing().target_list();
        let named = targets.into_iter().find(|target| is_it(target));
        named.map_or_else(|| recipient.to_owned(), |name| name.to_string())
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
    pub fn trust(&self) -> Arc<Trust> {
        self.shared.trust_snapshot.now()
    }

    /// Changes the trust data because the operator says so, and goes by it from now on.
    ///
    /// # Errors
    /// Why it could not be stored.
    pub(crate) async fn change_trust<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Trust) -> T + Send + 'static,
    ) -> Result<T, String> {
        let changed = self.shared.trust_snapshot.update(change).await;
        self.shared.list_pins();
        changed
    }

    /// How far indexing is; changes can be waited for.
    pub fn indexing(&self) -> watch::Receiver<IndexProgress> {
        self.shared.signals.indexed.subscribe()
    }

    /// The last message that can be searched for; changes can be waited for.
    pub(crate) fn searchable(&self) -> watch::Receiver<u64> {
        self.shared.signals.searchable.subscribe()
    }

    /// Why nothing is written any more; changes can be waited for.
    pub fn stopped(&self) -> watch::Receiver<Option<StoreStop>> {
        self.shared.signals.stopped.subscribe()
    }

    /// Waits until there may be work for handlers that came since the last call.
    pub async fn work(&self) {
        self.shared.signals.work.notified().await;
    }

    /// Wakes the handlers, though nothing came: a dead letter was queued again, or the clock was set.
    pub fn wake(&self) {
        self.shared.signals.work.notify_one();
        self.shared.signals.polls.wake();
    }

    fn gone(&self) -> StoreError {
        match &*self.shared.signals.stopped.borrow() {
            Some(StoreStop::Failed(error)) => error.clone(),
            _ => StoreError::new(StoreFault::Busy, "the relay is shutting down", ""),
        }
    }

    /// Whether nothing is written any more.
    pub fn is_stopping(&self) -> bool {
        self.shared.signals.stopped.borrow().is_some()
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
        let chain = record.entry.map(|entry| entry.at(name));
        let left = add_logged_hop(&record.text, record.at, name, key, chain.as_deref());
        Some(left.unwrap_or_else(|fault| {
            tracing::warn!(id = %record.id, reason = %fault.message, "a message left without its hop");
            record.text.clone()
        }))
    }

    /// Stops. Accepted messages, which are on disk already, are indexed for a few seconds more. Returns when the store is closed.
    pub async fn stop(&self) {
        // Entries that stay unsigned now are signed at the next start.
        if let Err(error) = self.tend_log().await {
            tracing::warn!(reason = %error, "the log ends without a checkpoint");
        }
        if let Err(error) = self.store().stop().await {
            tracing::warn!(reason = %error, "the store was not closed");
        }
    }
}
