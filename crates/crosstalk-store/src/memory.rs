//! A relay's store in memory: the model of what every adapter does.
//!
//! Plain maps behind one mutex, searched from end to end. Every rule is a function of the protocol crate; this module keeps
//! rows, answers [`AcceptFacts`](crosstalk_protocol::relay::AcceptFacts) and
//! [`IndexFacts`](crosstalk_protocol::store::IndexFacts) from them, and writes the changes. Nothing is durable.

mod attachment;
mod audit;
mod delivery;
mod hold;
mod index;
mod intake;
mod maintenance;
mod registry;
mod view;

use crate::chain::SoleChain;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{LogPlace, SignedCheckpoint};
use crosstalk_protocol::consent::Grant;
use crosstalk_protocol::relay::port::{
    StoreContext, StoreEvent, StoreFuture, StoreStop, TokenRecord,
};
use crosstalk_protocol::relay::{
    Agent, ConversationId, Delivery, HeldMessage, LoggedFacts, Priority, Recipient,
};
use crosstalk_protocol::store::{
    Arrival, IndexedMessage, IndexedThread, Record, StoreError, StoreFault, StoredMessage,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A relay's store in memory, for tests and as a model of the port. A message is indexed, and can be searched for, as soon as
/// it is accepted.
///
/// ```
/// use crosstalk_protocol::audit::ChainId;
/// use crosstalk_protocol::relay::port::{AuditLog as _, StoreContext, StoreEvent, StoreEvents};
/// use crosstalk_store::MemoryRelay;
/// use std::sync::Arc;
///
/// struct Ignored;
/// impl StoreEvents for Ignored {
///     fn notify(&self, _: StoreEvent<'_>) {}
/// }
/// let now = crosstalk_envelope::Timestamp::from_millis(0);
/// let store = MemoryRelay::new(StoreContext { events: Arc::new(Ignored), clock: Arc::new(move || now) });
/// let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// assert_eq!(runtime.block_on(store.log_head(ChainId::FIRST)).unwrap().size, 0);
/// ```
#[derive(Debug)]
pub struct MemoryRelay {
    context: StoreContext,
    chain: SoleChain,
    state: Mutex<State>,
}

/// Everything that is kept.
#[derive(Clone, Debug, Default)]
struct State {
    /// Accepted messages by number.
    messages: BTreeMap<u64, Message>,
    /// Messages that are or were held, by number.
    held: BTreeMap<u64, Held>,
    /// The index that is derived from accepted messages: by seq, by seq, by id.
    indexed: BTreeMap<u64, IndexedMessage>,
    answered_by: BTreeMap<u64, Vec<String>>,
    threads: BTreeMap<String, IndexedThread>,
    closings: BTreeMap<ConversationId, Timestamp>,
    stewards: BTreeMap<ConversationId, String>,
    grants: BTreeMap<String, Grant>,
    log: Vec<audit::Entry>,
    checkpoint: Option<SignedCheckpoint>,
    tokens: BTreeMap<String, TokenRecord>,
    /// Agents by party.
    agents: BTreeMap<String, Agent>,
    /// How often tokens and agents changed.
    registry_changes: u64,
    /// When attachments came.
    blobs: BTreeMap<Digest, Timestamp>,
    /// The sizes of attachments by credential.
    uploads: BTreeMap<(String, Digest), u64>,
    polls: BTreeMap<u64, maintenance::Poll>,
    /// Until when messages are to be answered.
    expectations: BTreeMap<u64, Timestamp>,
    notices: BTreeMap<u64, String>,
    last_notice: u64,
    /// The last message that was looked at for its age.
    retired: u64,
    is_stopped: bool,
}

/// An accepted message.
#[derive(Clone, Debug)]
struct Message {
    /// Its text and what was found out about it. The text is empty once it was erased.
    stored: StoredMessage,
    digest: Digest,
    meaning: Option<crosstalk_envelope::registry::Intent>,
    thread: String,
    /// The session by which others find its thread.
    session: Option<String>,
    peer: String,
    recipients: Vec<Recipient>,
    priority: Priority,
    expires: Option<Timestamp>,
    is_brief: bool,
    /// Its entries in the log, one for each text that was kept.
    entries: Vec<u64>,
    /// By party.
    deliveries: BTreeMap<String, Delivery>,
    blobs: BTreeMap<Digest, bool>,
    under: BTreeSet<String>,
}

impl Message {
    fn arrival(&self) -> Arrival {
        let mut arrival = Arrival::recall(self.stored.clone());
        arrival.add_recipients(self.recipients.iter().map(|r| r.address.as_str()));
        arrival
    }

    fn id(&self) -> &str {
        let own = self.stored.message.as_ref();
        own.unwrap_or(&self.stored.generated.message)
    }

    fn is_gone(&self) -> bool {
        self.stored.text.is_empty()
    }
}

/// A message that is or was held.
#[derive(Clone, Debug)]
struct Held {
    message: HeldMessage,
    stored: StoredMessage,
    proof: crosstalk_protocol::consent::Proof,
    is_authority: bool,
    entry: u64,
    ends: Option<Timestamp>,
    blobs: BTreeMap<Digest, bool>,
    under: BTreeSet<String>,
}

impl State {
    fn seq_of(&self, id: &str) -> Option<u64> {
        let mut messages = self.messages.iter();
        messages.find(|(_, m)| m.id() == id).map(|(seq, _)| *seq)
    }

    fn by_id(&self, id: &str) -> Option<&Message> {
        self.messages.values().find(|m| m.id() == id)
    }

    /// A message as readers see it, unless its text was erased.
    fn record(&self, seq: u64) -> Option<Record> {
        let message = self.messages.get(&seq).filter(|m| !m.is_gone())?;
        let indexed = self.indexed.get(&seq);
        let record = Record {
            expires: message.expires,
            entry: message.entries.first().copied().map(LogPlace::first),
            digest: message.digest,
            ..Record::pending(message.arrival(), seq, message.thread.clone())
        };
        Some(match indexed {
            Some(indexed) => Record {
                parent: indexed.parent.clone(),
                wait: indexed.wait,
                ..record
            },
            None => record,
        })
    }

    /// The log entry of a message.
    fn logged(&self, message: &Message) -> Option<LoggedFacts> {
        let place = usize::try_from(*message.entries.last()?).ok()?;
        Some(LoggedFacts {
            canonical: message.digest,
            raw: self.log.get(place)?.leaf.raw,
        })
    }

    fn enqueue_notices(&mut self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            self.last_notice += 1;
            self.notices.insert(self.last_notice, text);
        }
    }
}

impl MemoryRelay {
    /// An empty store.
    pub fn new(context: StoreContext) -> Self {
        Self {
            context,
            chain: SoleChain::default(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with what is kept, once somebody waits for it.
    fn with<'s, T: Send + 's>(
        &'s self,
        act: impl FnOnce(&mut State) -> T + Send + 's,
    ) -> StoreFuture<'s, T> {
        Box::pin(async move {
            let mut state = self.lock();
            if state.is_stopped {
                let what = "the relay is shutting down";
                return Err(StoreError::new(StoreFault::Busy, what, ""));
            }
            Ok(act(&mut state))
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let was_stopped = std::mem::replace(&mut self.lock().is_stopped, true);
            if !was_stopped {
                let event = StoreEvent::Stopped(StoreStop::Told);
                self.context.events.notify(event);
            }
            Ok(())
        })
    }
}

/// The first so many; whether there are more.
fn page<T>(
    items: impl Iterator<Item = T>,
    page: crosstalk_protocol::store::Page,
) -> crosstalk_protocol::store::Listing<T> {
    let mut items = items.skip(page.skip);
    crosstalk_protocol::store::Listing {
        items: items.by_ref().take(page.limit).collect(),
        more: items.next().is_some(),
    }
}
