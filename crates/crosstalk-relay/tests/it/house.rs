//! A relay that runs: on a real disk, on a port of its own, gone with the value.

use crate::http::{Answer, Ask, Line};
use crate::storage::{self, Storage};
use crosstalk_email::ReplyKey;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Builder, Document, PrivateKey, Reading, Timestamp};
use crosstalk_protocol::relay::{Role, TokenRecord};
use crosstalk_protocol::{KeyStanding, KnownKey, Origin, Trust};
use crosstalk_relay::config::{Config, Limits};
use crosstalk_relay::core::{Relay, Setup};
use crosstalk_relay::port::{Keyring, Resolver};
use crosstalk_relay::server::{ServeError, ServerOptions, ServerTls, serve};
use crosstalk_testing::wait::{LIMIT, wait_until};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use tempfile::TempDir;
use tokio::sync::oneshot;

/// The time at which every relay starts.
pub const START: i64 = 1_790_000_000_000;

/// A running relay.
pub struct House {
    pub addr: SocketAddr,
    pub relay: Relay,
    pub data: TempDir,
    clock: Arc<AtomicI64>,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<Result<(), ServeError>>>,
}

/// What it is built with.
#[derive(Default)]
pub struct Plan {
    config: String,
    tokens: Vec<TokenRecord>,
    trust: Trust,
    resolver: Option<Arc<dyn Resolver>>,
    tls: Option<ServerTls>,
    listen: Option<String>,
    key: Option<PrivateKey>,
    keyring: Option<Box<dyn Keyring>>,
    tick: i64,
    on_clock: Option<Box<dyn Fn() + Send + Sync>>,
    database: Option<String>,
}

/// Trust data in memory.
#[derive(Default)]
pub struct MemoryKeyring(Mutex<Trust>);

impl MemoryKeyring {
    pub fn new(trust: Trust) -> Self {
        Self(Mutex::new(trust))
    }
}

impl Keyring for MemoryKeyring {
    fn read(&self) -> Result<Trust, String> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String> {
        let mut trust = self.0.lock().unwrap();
        change(&mut trust);
        Ok(trust.clone())
    }
}

/// The parts of a relay with the store of a folder, trust data in memory, no resolver and no key.
pub fn setup(
    folder: &Path,
    config: Config,
    clock: impl Fn() -> Timestamp + Send + Sync + 'static,
) -> Setup {
    Setup {
        config,
        open: storage::opener(folder),
        resolver: None,
        keyring: Box::new(MemoryKeyring::default()),
        key: None,
        reply_key: None,
        command: Arc::new(|words: &str| format!("crosstalk {words}")),
        clock: Arc::new(clock),
    }
}

/// Adds a token to the store of a relay in a folder, as its operator does.
pub fn add_token(folder: &Path, token: &TokenRecord) {
    let mut store = Storage::open(folder);
    assert!(store.add_token(token, "operator").unwrap());
}

/// Starts a relay, also for a caller that is a task already.
pub fn start(setup: Setup) -> Relay {
    let start = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(Relay::start(setup)).unwrap()
    };
    std::thread::spawn(start).join().unwrap()
}

/// The secret of the token with a name.
pub fn secret(name: &str) -> String {
    format!("xt_{name}")
}

/// A token.
pub fn token(name: &str, role: Role, addresses: &[&str]) -> TokenRecord {
    TokenRecord {
        name: name.into(),
        hash: Digest::of(secret(name).as_bytes()),
        role,
        addresses: addresses.iter().map(|a| (*a).to_owned()).collect(),
        created_at: Timestamp::from_millis(START),
        expires_at: None,
        courier: Vec::new(),
        revoked_at: None,
        last_used_at: None,
    }
}

impl Plan {
    pub fn config(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self.config.push('\n');
        self
    }

    pub fn token(self, name: &str, role: Role, addresses: &[&str]) -> Self {
        self.record(token(name, role, addresses))
    }

    /// A person who also carries messages of others to some addresses.
    pub fn courier(self, name: &str, addresses: &[&str], to: &[&str]) -> Self {
        self.record(TokenRecord {
            courier: to.iter().map(|a| (*a).to_owned()).collect(),
            ..token(name, Role::Person, addresses)
        })
    }

    pub fn record(mut self, token: TokenRecord) -> Self {
        self.tokens.push(token);
        self
    }

    /// The key that it signs hops and checkpoints with.
    pub fn key(mut self, key: PrivateKey) -> Self {
        self.key = Some(key);
        self
    }

    /// The clock moves on by so many milliseconds whenever somebody looks at it.
    pub fn ticking(mut self, millis: i64) -> Self {
        self.tick = millis;
        self
    }

    pub fn listen(mut self, address: &str) -> Self {
        self.listen = Some(address.to_owned());
        self
    }

    pub fn resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.resolver = Some(resolver);
        self
    }

    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// What keeps the keys, instead of the memory; pins are for the memory only.
    pub fn keyring(mut self, keyring: Box<dyn Keyring>) -> Self {
        self.keyring = Some(keyring);
        self
    }

    /// A key that is pinned for a sender.
    pub fn pin(self, id: &str, key: &PrivateKey, sender: &str) -> Self {
        self.pin_as(Origin::Manual, id, key, sender)
    }

    /// A key that is pinned for a sender, and came in a way.
    pub fn pin_as(mut self, how: Origin, id: &str, key: &PrivateKey, sender: &str) -> Self {
        let pin = KnownKey {
            how,
            ..pinned(id, key, sender)
        };
        self.trust.pin(pin).unwrap();
        self
    }

    /// Keeps its data in a database that other relays use as well, whatever store the others of this run have.
    pub fn database(mut self, url: &str) -> Self {
        self.database = Some(url.to_owned());
        self
    }

    pub fn without_tokens(mut self) -> Self {
        self.tokens.clear();
        self
    }

    /// Does something whenever somebody looks at the clock.
    pub fn on_clock(mut self, look: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_clock = Some(Box::new(look));
        self
    }

    pub fn open(self) -> House {
        House::open(self, tempfile::tempdir().unwrap()).unwrap()
    }

    /// The relay alone: nobody listens, delivers or tidies up.
    pub fn start(self, data: &Path, clock: &Arc<AtomicI64>) -> Relay {
        let listen = self.listen.as_deref().unwrap_or("127.0.0.1:0");
        let config = format!("listen = \"{listen}\"\n{}", self.config);
        let config = patient(Config::parse(&config).unwrap());
        let (hand, tick) = (Arc::clone(clock), self.tick);
        let on_clock = self.on_clock;
        let now = move || {
            on_clock.iter().for_each(|look| look());
            Timestamp::from_millis(hand.fetch_add(tick, Ordering::Relaxed))
        };
        let mut setup = Setup {
            resolver: self.resolver,
            key: self.key,
            reply_key: Some(ReplyKey::new([9; 32])),
            ..setup(data, config, now)
        };
        if let Some(url) = &self.database {
            setup.open = storage::shared_opener(url.clone());
        }
        setup.keyring = self
            .keyring
            .unwrap_or_else(|| Box::new(MemoryKeyring(Mutex::new(self.trust))));
        if !self.tokens.is_empty() {
            let mut store = match &self.database {
                Some(url) => Storage::at(url),
                None => Storage::open(data),
            };
            for token in &self.tokens {
                assert!(store.add_token(token, "operator").unwrap());
            }
        }
        start(setup)
    }
}

impl House {
    /// One without credentials, on this machine.
    pub fn local() -> Self {
        Plan::default().open()
    }

    pub fn open(plan: Plan, data: TempDir) -> Result<Self, ServeError> {
        Self::open_at(plan, data, 0)
    }

    /// One that starts so many seconds later.
    pub fn open_at(mut plan: Plan, data: TempDir, seconds: i64) -> Result<Self, ServeError> {
        let clock = Arc::new(AtomicI64::new(START + seconds * 1000));
        let tls = plan.tls.take();
        let relay = plan.start(data.path(), &clock);
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let (served, folder) = (relay.clone(), data.path().to_owned());
        let server = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind(served.config().listen)
                    .await
                    .unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let shutdown = async { drop(stopped.await) };
                let options = ServerOptions {
                    data: folder,
                    tls,
                    shutdown,
                };
                serve(served, listener, options).await
            })
        });
        let addr = told.recv().unwrap();
        Ok(Self {
            addr,
            relay,
            data,
            clock,
            stop: Some(stop),
            server: Some(server),
        })
    }

    pub fn ask(&self, ask: &Ask) -> Answer {
        ask.on(&mut self.line())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&Ask::get(path))
    }

    pub fn line(&self) -> Line {
        Line::to(self.addr)
    }

    /// Sends a message, which has to be taken.
    pub fn take(&self, text: &str) -> Answer {
        let answer = self.ask(&Ask::send(text));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer
    }

    /// Sends a message with a token, which has to be taken.
    pub fn take_as(&self, name: &str, text: &str) {
        let answer = self.ask(&Ask::send(text).token(&secret(name)));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// The ids in an inbox, read with a token.
    pub fn inbox_as(&self, name: &str, address: &str) -> Vec<String> {
        let path = format!("/crosstalk/inbox?for={address}");
        let ask = Ask::get(&path).accept("application/json");
        ids(&self.ask(&ask.token(&secret(name))).json()["messages"])
    }

    /// The ids in an inbox.
    pub fn inbox(&self, address: &str) -> Vec<String> {
        let path = format!("/crosstalk/inbox?for={address}");
        ids(&self.ask(&Ask::get(&path).accept("application/json")).json()["messages"])
    }

    /// The time goes on.
    pub fn later(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    /// How many messages were accepted.
    pub fn store_count(&self) -> u64 {
        self.relay.metrics().accepted.load(Ordering::Relaxed)
    }

    /// Sets the clock to so many milliseconds after the start.
    pub fn set_clock(&self, millis: i64) {
        self.clock.store(START + millis, Ordering::Relaxed);
    }

    /// Another handle of the store, as another process has it.
    pub fn store(&self) -> Storage {
        Storage::open(self.data.path())
    }

    /// Waits until everything that was accepted is indexed.
    pub fn settle(&self) {
        let store = self.store();
        wait_until("everything is indexed", || store.has_indexed_all());
    }

    /// Changes rows of the store behind the back of the relay. How many.
    pub fn execute(&self, sql: &str) -> usize {
        storage::execute(self.data.path(), sql)
    }

    /// Tells it to stop.
    pub fn begin_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits for its end.
    pub fn end(&mut self) -> Result<(), ServeError> {
        self.begin_stop();
        let server = self.server.take().unwrap();
        server.join().unwrap()
    }

    /// Takes away what the store keeps messages in.
    pub fn break_store(&self) {
        storage::break_store(self.data.path());
    }

    /// Waits for an end that nobody asked for.
    pub fn wait(&mut self) -> Result<(), ServeError> {
        let server = self.server.take().unwrap();
        server.join().unwrap()
    }

    /// Ends it, and gives its folder.
    pub fn close(mut self) -> TempDir {
        self.end().unwrap();
        std::mem::replace(&mut self.data, tempfile::tempdir().unwrap())
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if self.server.is_some() {
            let ended = self.end();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

/// The ids of messages in JSON.
pub fn ids(messages: &serde_json::Value) -> Vec<String> {
    let messages = messages.as_array().unwrap().iter();
    messages
        .map(|m| m["id"].as_str().unwrap().to_owned())
        .collect()
}

/// A configuration with as much time for everything as a busy machine may take, where the test does not say how much.
pub fn patient(mut config: Config) -> Config {
    let (limits, usual) = (&mut config.limits, Limits::default());
    for (seconds, usual) in [
        (&mut limits.head_seconds, usual.head_seconds),
        (&mut limits.body_seconds, usual.body_seconds),
        (&mut limits.idle_seconds, usual.idle_seconds),
    ] {
        if *seconds == usual {
            *seconds = LIMIT.as_secs();
        }
    }
    for route in &mut config.routes {
        route.timeout_seconds.get_or_insert(LIMIT.as_secs());
    }
    config
}

/// A message.
pub fn letter(from: &str, to: &str, id: &str) -> Builder {
    Builder::new(from, to)
        .user("kalle")
        .thread("T1")
        .message(id)
        .context("plums")
        .intent("REQUEST")
        .body("Are they ripe?")
}

/// Its text.
pub fn text(from: &str, to: &str, id: &str) -> String {
    letter(from, to, id).build().unwrap()
}

/// A key that an operator pinned for a sender.
pub fn pinned(id: &str, key: &PrivateKey, sender: &str) -> KnownKey {
    KnownKey {
        id: id.into(),
        key: key.public(),
        since: Timestamp::from_millis(START),
        how: Origin::Manual,
        by: None,
        senders: vec![sender.into()],
        standing: KeyStanding::Active,
        credential: None,
    }
}

/// A key.
pub fn key() -> PrivateKey {
    PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap()
}

/// A message with a signature.
pub fn signed(text: &str, key: &PrivateKey, pkid: &str) -> String {
    let document = Document::parse(text, Reading::Strict);
    let at = Timestamp::from_millis(START);
    let signer = Signer {
        key,
        pkid,
        at,
        key_block: &[],
    };
    signer.sign(&document).unwrap()
}

/// Whether there is a file under a folder whose name begins so.
pub fn has_file(folder: &Path, start: &str) -> bool {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.into_iter().any(|e| {
        let name = e.file_name().to_string_lossy().into_owned();
        name.starts_with(start) || (e.path().is_dir() && has_file(&e.path(), start))
    })
}
