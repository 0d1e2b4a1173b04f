//! Messages and threads as a store keeps them, and the rules by which it does.
//!
//! ```text
//! Document ─┐
//! Verdict ──┼── Arrival::new ──> SqliteStore::accept ──> StoreOutcome  one transaction for a batch
//! Receipt ──┘                          │
//!                                      └──> Record, Thread        message, inbox, search, threads
//! ```
//!
//! An adapter keeps and finds; which thread a message belongs to, what it settles and who has to act next is decided
//! here ([`Arrival::choose_thread`], [`Arrival::wait`], [`Arrival::settles_question`]), so that every adapter decides alike.
//!
//! Ids are compared as bytes. Times are milliseconds. What `accept` has answered for is on disk.

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

use crosstalk_envelope::Explanation;

/// Why a store did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{explanation}")]
pub struct StoreError {
    /// The kind of fault.
    pub fault: StoreFault,
    /// The explanation for people: what happened, where, and what to do.
    pub explanation: Explanation,
}

impl StoreError {
    /// Makes an error from what happened and what to do; an empty `help` means that there is none.
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
