//! Messages and threads as readers see them.

use super::StoreFuture;
use crate::store::{Listing, Page, Record, Search, Thread, ThreadFilter};
use crosstalk_envelope::meta::Digest;

/// Answers questions about messages and threads. Each answer is one state of the store.
pub trait MessageViews {
    /// Messages that were accepted, indexed or not; those that are gone are left out.
    fn records(&self, query: RecordQuery) -> StoreFuture<'_, Vec<Record>>;

    /// The thread with an id.
    fn thread(&self, id: &str) -> StoreFuture<'_, Option<Thread>>;

    /// The threads, the one with the latest message first.
    fn threads(&self, filter: ThreadFilter, page: Page) -> StoreFuture<'_, Listing<Thread>>;

    /// The messages of a thread in the order in which they came; `after` is the `seq` of the last one seen.
    fn messages(
        &self,
        thread: &str,
        after: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Listing<Record>>;

    /// The messages of a thread before a number, the newest first.
    fn messages_before(
        &self,
        thread: &str,
        before: u64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Record>>;

    /// The messages that a search finds, the latest first.
    fn search(&self, query: SearchQuery) -> StoreFuture<'_, FilledSearch>;

    /// The ESCALATEs and HANDOFFs of a thread after a number, the oldest first: the number of each, and who gets it. The
    /// thread is not read for it.
    fn handovers(
        &self,
        thread: &str,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(u64, Vec<String>)>>;
}

/// Which messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordQuery {
    /// Those with these ids, in this order.
    Ids(Vec<String>),
    /// Those with these numbers, in this order.
    Seqs(Vec<u64>),
    /// The latest whose reference to an attachment grants access, the newest first.
    Referring {
        /// The attachment.
        digest: Digest,
        /// How many at most.
        limit: usize,
    },
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    /// The search.
    pub search: Search,
    /// Which part of what it finds.
    pub page: Page,
    /// Whether messages that are not searchable yet are made so first. That may take long.
    pub is_complete: bool,
}

/// The hits of a search in the search index.
#[derive(Clone, Debug, PartialEq)]
pub struct FilledSearch {
    /// The messages.
    pub found: Listing<Record>,
    /// The place of the last message whose words are in the index.
    pub through: u64,
}
