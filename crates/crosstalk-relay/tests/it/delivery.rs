//! What is brought to where agents are: with real sockets, processes and folders.

mod circuit;
mod client;
mod dead_letter;
mod email;
pub mod endpoint;
mod exec;
mod federation;
mod file;
mod http;
mod loop_with_person;
mod mcp;
mod outbound;
mod passing_on;
mod poll;
mod rogue;
mod watch;

use crate::dns::Domains;
use crate::house::{MemoryKeyring, START, patient, setup, start as start_relay};
use crosstalk_api::outbound::{Outbound, Roots};
use crosstalk_email::ReplyKey;
use crosstalk_envelope::{Builder, Document, PrivateKey, Reading, Timestamp};
use crosstalk_protocol::Trust;
use crosstalk_protocol::relay::port::{DeadLetter, InboxEntry};
use crosstalk_protocol::relay::{Delivery as Way, DeliveryState, Peer};
use crosstalk_relay::config::Config;
use crosstalk_relay::core::{Received, Relay, Setup as Parts};
use crosstalk_relay::delivery::{DeliverySetup, DeliveryTask};
use crosstalk_relay::port::Resolver;
use crosstalk_testing::wait::{LIMIT, PAUSE};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A relay that delivers. Its clock stands still until it is set.
struct Post {
    relay: Relay,
    clock: Arc<AtomicI64>,
    delivery: Mutex<Option<DeliveryTask>>,
    folder: TempDir,
}

/// Attempts that follow each other at once.
const QUICK: &str =
    "[retry]\nfirst_seconds = 0\nlongest_seconds = 0\nattempts = 3\nfailures = 100\n";

impl Post {
    fn start(config: &str) -> Self {
        Self::with(config, None)
    }

    fn with(config: &str, names: Option<Arc<Domains>>) -> Self {
        Self::open(config, names, tempfile::tempdir().unwrap(), None, START)
    }

    /// One that trusts keys.
    fn trusting(config: &str, trust: Trust) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::made(config, None, folder, START, |parts| Parts {
            keyring: Box::new(MemoryKeyring::new(trust)),
            ..parts
        })
    }

    /// One in a folder, with a key for its hops, at a time.
    fn open(
        config: &str,
        names: Option<Arc<Domains>>,
        folder: TempDir,
        key: Option<PrivateKey>,
        start: i64,
    ) -> Self {
        Self::made(config, names, folder, start, |parts| Parts { key, ..parts })
    }

    fn made(
        config: &str,
        names: Option<Arc<Domains>>,
        folder: TempDir,
        start: i64,
        change: impl FnOnce(Parts) -> Parts,
    ) -> Self {
        let config = config.replace("FOLDER", folder.path().to_str().unwrap());
        let config = patient(Config::parse(&config).unwrap());
        let clock = Arc::new(AtomicI64::new(start));
        let hand = Arc::clone(&clock);
        let resolver = names.map(|n| n as Arc<dyn Resolver>);
        let now = move || Timestamp::from_millis(hand.load(Ordering::SeqCst));
        let relay = start_relay(change(Parts {
            resolver: resolver.clone(),
            reply_key: Some(ReplyKey::new([9; 32])),
            ..setup(folder.path(), config, now)
        }));
        let post = Self {
            relay,
            clock,
            delivery: Mutex::default(),
            folder,
        };
        let delivery = DeliverySetup {
            work: post.path("work"),
            data: post.folder.path().to_owned(),
            outbound: Outbound::new(resolver, Roots::system()),
        };
        *post.delivery.lock().unwrap() = Some(DeliveryTask::start(&post.relay, delivery));
        post
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The time goes on.
    fn later(&self, seconds: i64) {
        self.clock.fetch_add(seconds * 1000, Ordering::SeqCst);
        self.relay.wake();
    }

    /// Sends a message, which has to be taken.
    async fn send(&self, text: &str) {
        let received = self.relay.take_in(text, &Peer::local()).await;
        assert!(
            matches!(received, Received::Accepted { .. }),
            "{}",
            received.answer()
        );
    }

    /// Sends messages at the same time, each of which has to be taken.
    async fn send_all(&self, texts: impl Iterator<Item = String>) {
        let send = |text: String| async move { self.send(&text).await };
        futures_util::future::join_all(texts.map(send)).await;
    }

    /// The way of a message to its only recipient.
    async fn way(&self, id: &str) -> Option<Way> {
        let ways = self.relay.store().deliveries_of(id).await.unwrap();
        ways.into_iter().next()
    }

    /// Waits until the delivery of a message is in a state.
    async fn is(&self, id: &str, state: DeliveryState) -> Way {
        let find = async || self.way(id).await.filter(|w| w.state == state);
        eventually(&format!("{id} is {state:?}"), find).await
    }

    /// Waits until a delivery was tried so often.
    async fn tried(&self, id: &str, attempts: u32) -> Way {
        let find = async || self.way(id).await.filter(|w| w.attempts >= attempts);
        eventually(&format!("{id} was tried {attempts} times"), find).await
    }

    async fn inbox(&self, address: &str) -> Vec<InboxEntry> {
        self.relay.inbox(address, None, 500).await.unwrap()
    }

    /// Waits until an address has so many messages.
    async fn gets(&self, address: &str, count: usize) -> Vec<InboxEntry> {
        eventually(&format!("{count} messages for {address}"), async || {
            let inbox = self.inbox(address).await;
            (inbox.len() >= count).then_some(inbox)
        })
        .await
    }

    /// When the next delivery is due.
    async fn next_due(&self) -> Option<Timestamp> {
        let next = self.relay.store().next_times(None).await.unwrap();
        next.delivery
    }

    async fn dead(&self) -> Vec<DeadLetter> {
        self.relay.store().dead_letters(100).await.unwrap()
    }

    /// How many messages there are.
    async fn count(&self) -> u64 {
        self.relay.store().caught_up().await.unwrap();
        self.relay.indexing().borrow().through
    }

    /// Stops everything. What it leaves behind, for another one to open.
    async fn end(self) -> TempDir {
        self.stop(LIMIT).await;
        self.relay.stop().await;
        self.folder
    }

    async fn stop(&self, grace: Duration) {
        let delivery = self.delivery.lock().unwrap().take();
        if let Some(delivery) = delivery {
            delivery.stop(grace).await;
        }
    }
}

/// Waits until something is there: [`crosstalk_testing::wait::wait_for`] without blocking the runtime.
async fn eventually<T>(what: &str, find: impl AsyncFn() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        let is_last = Instant::now() >= end;
        if let Some(found) = find().await {
            return found;
        }
        assert!(!is_last, "it did not come to this within {LIMIT:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// A question from ANN.
fn request(id: &str, to: &str) -> String {
    message(id, "ANN", to, "REQUEST").build().unwrap()
}

fn message(id: &str, from: &str, to: &str, intent: &str) -> Builder {
    Builder::new(from, to)
        .user("ann")
        .thread(format!("T-{id}"))
        .message(id)
        .context("ports")
        .intent(intent)
        .body("Which port?")
}

/// What a key of an envelope says.
fn meta(text: &str, namespace: &str, key: &str) -> Option<String> {
    let document = Document::parse(text, Reading::Strict);
    assert!(document.is_accepted(), "{text}");
    document.meta(namespace, key).map(str::to_owned)
}

fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
