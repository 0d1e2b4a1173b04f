//! The Store port: what is kept of messages, and what can be asked of it.
//!
//! ```text
//! Document ─┐
//! Verdict ──┼── Arrival::new ──> Store::accept ──> Outcome        one transaction for a batch
//! Receipt ──┘                          │
//!                                      └──> Record, Thread        message, inbox, search, threads
//! ```
//!
//! An adapter keeps and finds; which thread a message belongs to, what it settles and who has to act next is decided
//! here ([`Arrival::choose_thread`], [`Arrival::wait`], [`Arrival::settles_question`]), so that every adapter decides alike.
//!
//! Ids are compared as bytes. Times are milliseconds. What [`Store::accept`] has answered for is on disk.

mod answer;
mod arrival;
mod index;
mod known;
mod party;
mod question;
mod record;
mod relocation;
mod search;

pub use answer::{Answering, Asking};
pub use arrival::{
    Arrival, ArrivalContext, Side, StoredMessage, ThreadHints, Wait, Way, carried_id,
};
pub use index::{
    ChangedMessage, ChangedThread, Index, IndexChanges, IndexFacts, IndexedMessage, IndexedParty,
    IndexedThread, PlacedMessage,
};
pub use known::KnownMessage;
pub use party::{Mine, is_placeholder, is_same_party, may_answer, party};
pub use question::{CandidateQuestion, Lookup, Meant, NamedIds};
pub use record::{
    AnsweredQuestion, AskedMessage, FailedAnswer, Listing, OpenQuestion, Page, Record,
    ReferenceMatch, StoreOutcome, Thread, ThreadFilter, ThreadPosition, ThreadState, rounds,
};
pub use relocation::{Link, Moved, Placement, Relocation, plan_relocation};
pub use search::{Field, Search, SearchError, Term, searchable, searched_texts};

/// Where messages are kept.
///
/// Several processes may use one store at the same time. Each method is one transaction; it fails if the store can't be read
/// or written, and has changed nothing then.
pub trait Store {
    /// Keeps messages: all of them or, on an error, none. One outcome for each, in their order. When this returns, they
    /// are on disk. Within a batch, later messages see earlier ones.
    fn accept(&mut self, batch: &[Arrival]) -> Result<Vec<StoreOutcome>, StoreError>;

    /// What an id or the beginning of one means. A thread comes before its own messages.
    fn find(&self, reference: &str) -> Result<ReferenceMatch, StoreError>;

    /// The message with this id. There is one at most: what comes under the id of another message is refused, or, if it
    /// is verified and the other one is not, takes the id, and the other one gets an id of its own.
    fn message(&self, id: &str) -> Result<Option<Record>, StoreError>;

    /// The thread with this id.
    fn thread(&self, id: &str) -> Result<Option<Thread>, StoreError>;

    /// The messages of a thread in the order in which they came; `after` is the `seq` of the last one seen.
    fn messages(
        &self,
        thread: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Listing<Record>, StoreError>;

    /// The threads, the one with the latest message first.
    fn threads(&self, filter: &ThreadFilter, page: Page) -> Result<Listing<Thread>, StoreError>;

    /// The messages that wait for the person of this store ([`Wait::Me`], [`Wait::Carry`]), the latest first.
    fn inbox(&self, page: Page) -> Result<Listing<Record>, StoreError>;

    /// The messages that wait for others ([`Wait::Them`]), those of the thread with the latest message first.
    fn asked(&self, page: Page) -> Result<Listing<AskedMessage>, StoreError>;

    /// The messages that a search finds, the latest first.
    fn search(&self, search: &Search, page: Page) -> Result<Listing<Record>, StoreError>;

    /// Whether anything was ever exchanged with an address (as sender or receiver, simple names in any case), among the parties
    /// that are kept of threads.
    fn knows(&self, address: &str) -> Result<bool, StoreError>;

    /// How many characters of an id are enough to name it here, at least eight of them.
    fn shortest(&self, id: &str) -> Result<usize, StoreError>;

    /// Ends the wait of a message without an answer: nobody has to act on it any more. False if it did not wait.
    fn dismiss(&mut self, id: &str) -> Result<bool, StoreError>;

    /// Files a message with another one, and what answers it with it; without one, where it was filed first. What the
    /// envelopes say stays as it is.
    fn relocate(&mut self, id: &str, answers: Option<&str>) -> Result<Moved, StoreError>;

    /// The thread that a message was filed in before somebody moved it; nothing if nobody did.
    fn first_thread(&self, id: &str) -> Result<Option<String>, StoreError>;

    /// Erases a thread with all its messages, from the index too, so that nothing of it is left in the store's files.
    /// How many messages there were.
    fn forget(&mut self, thread: &str) -> Result<u64, StoreError>;

    /// Erases one message, from the index too, so that nothing of it is left in the store's files. The rest of its thread stays:
    /// what it answered is open again, and answers to it stand without it. False if it was not there.
    fn forget_message(&mut self, id: &str) -> Result<bool, StoreError>;
}

use crosstalk_envelope::Explanation;

/// Why a store did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{explanation}")]
pub struct StoreError {
    /// What kind of trouble it is.
    pub fault: StoreFault,
    /// What happened, where, and what to do.
    pub explanation: Explanation,
}

impl StoreError {
    /// What happened and what to do, as two facts; no help is an empty text.
    pub fn new(fault: StoreFault, what: impl Into<String>, help: impl Into<String>) -> Self {
        let explanation = Explanation::new(what, help);
        Self { fault, explanation }
    }
}

/// The kinds of trouble with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// There is no room left. Nothing was written.
    Full,
    /// Somebody else has used it for too long. Nothing was written.
    Busy,
    /// It was made by a newer program.
    Newer,
    /// A message breaks a rule of the store, and the store itself is sound. Nothing was written.
    Invalid,
    /// It is not what a store has to be.
    Damaged,
    /// It can't be reached, read or written.
    Unavailable,
}
