//! The tables of a relay.
//!
//! ```text
//! take ──> intake ──> file ──> message, thread, …             indexed as the messages of a person are
//!            │          └────> delivery, expectation         the way to each recipient, the deadline
//!            └────> closing, steward, blob_use                at once: the next messages depend on them
//! ```

pub(super) mod check;
pub(super) mod close;
pub(super) mod command;
pub(super) mod delivery;
pub(super) mod hold;
mod inbox;
pub(super) mod index;
pub(super) mod intake;
pub(super) mod keep;
mod log;
mod poll;
mod queue;
pub(super) mod retire;

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, Agent, Attempt, ConversationId, DeadLetter, Delivery, DeliveryState,
    DueDelivery, DuePoll, Errand, FilledSearch, HandedOut, InboxEntry, InboxQuery, IndexProgress,
    Lease, PollState, RelayStore, Retention, RetiredCount, SearchProgress, StoreGauges,
    TokenCounts, TokenRecord, Upload,
};
use crosstalk_protocol::store::{Page, Record, Search, StoreError, StoreFault};
use std::collections::BTreeSet;

use super::migrate::{folder_of, label_of, on_disk};
use super::{SqliteStore, fault, room};
use crate::disk::Lock;
use crate::sqlite::sql::number;
use log::WalMover;

/// The right to be the relay of a store, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Owned {
    // In this order: nobody else is the relay before the log is left alone.
    _log: WalMover,
    _lock: Lock,
}

impl SqliteStore {
    /// Makes this process the relay of the store, and this handle the one that writes: with more memory, and with a
    /// log that is moved into the file beside it. Others can read it, and people can use it; no other process can be its relay.
    ///
    /// ```
    /// use crosstalk_store::SqliteStore;
    /// # let folder = tempfile::tempdir()?;
    /// let mut store = SqliteStore::open(folder.path().join("relay.db"))?;
    /// let owned = store.own()?;
    /// assert!(store.own().is_err());
    /// drop(owned);
    /// assert!(store.own().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If another one is, or the folder can't be written.
    pub fn own(&mut self) -> Result<Owned, StoreError> {
        let label = format!("{}.relay", label_of(&self.path));
        let lock = Lock::at_once(folder_of(&self.path), &label).map_err(on_disk)?;
        let busy = || {
            let what = format!(
                "another relay uses `{}`; nothing was changed",
                self.path.display()
            );
            let help = "stop that one, or give this one a folder of its own";
            StoreError::new(StoreFault::Busy, what, help)
        };
        let lock = lock.ok_or_else(busy)?;
        self.check_search_position()?;
        let failed = |e| fault::at(&self.path, &e);
        let larger = "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 0;";
        self.db.execute_batch(larger).map_err(failed)?;
        let log = WalMover::start(&mut self.db, &self.path).map_err(failed)?;
        Ok(Owned {
            _log: log,
            _lock: lock,
        })
    }
}

impl RelayStore for SqliteStore {
    fn accept_batch(&mut self, batch: &[Admission]) -> Result<Vec<AcceptOutcome>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        self.need_room(batch.iter().map(|a| a.arrival.text.len()).sum())?;
        let outcomes = self.write(|db| intake::accept_all(db, batch))?;
        for (admission, outcome) in batch.iter().zip(&outcomes) {
            if let AcceptOutcome::Accepted { seq, ids, .. } = outcome {
                self.accepted.add(*seq, admission, ids);
            }
        }
        Ok(outcomes)
    }

    fn index(&mut self, limit: usize) -> Result<IndexProgress, StoreError> {
        // Who has nothing to do does not keep others from writing.
        let now = self.index_progress()?;
        self.accepted.drop_through(now.through);
        if now.left == 0 {
            return Ok(now);
        }
        // Where room is short, a few at a time take less of it.
        let index = |count: usize| count.saturating_mul(room::INDEX_BYTES);
        let few = limit.min(room::FEW_MESSAGES);
        let limit = match self.need_room(index(limit)) {
            Ok(()) => limit,
            Err(e) if e.fault == StoreFault::Full => self.need_room(index(few)).map(|()| few)?,
            Err(e) => return Err(e),
        };
        let accepted = std::mem::take(&mut self.accepted);
        let indexed = match self.derive(|db| index::index_oldest(db, limit, false, &accepted)) {
            // One of them can't be indexed: each goes alone, so that it is the only one.
            Err(e) if e.fault == StoreFault::Invalid => {
                self.derive(|db| index::index_oldest(db, limit, true, &accepted))
            }
            done => done,
        };
        self.accepted = accepted;
        indexed
    }

    fn index_progress(&self) -> Result<IndexProgress, StoreError> {
        self.read(|db| index::indexing(db, 0))
    }

    fn fill_search(&mut self, limit: usize) -> Result<SearchProgress, StoreError> {
        let filled = self.fill_words(limit)?;
        Ok(SearchProgress {
            through: filled.through.unsigned_abs(),
            left: filled.left.unsigned_abs(),
        })
    }

    fn search_filled(&self, search: &Search, page: Page) -> Result<FilledSearch, StoreError> {
        let (found, through) = self.search_words(search, page)?;
        Ok(FilledSearch {
            found,
            through: through.unsigned_abs(),
        })
    }

    fn inbox_of(&self, inbox: &InboxQuery<'_>) -> Result<Vec<InboxEntry>, StoreError> {
        self.read(|db| inbox::inbox_of(db, inbox))
    }

    fn records_at(&self, places: &[u64]) -> Result<Vec<Record>, StoreError> {
        self.read(|db| inbox::taken(db, places))
    }

    fn record(&self, id: &str) -> Result<Option<Record>, StoreError> {
        self.read(|db| inbox::taken_as(db, id))
    }

    fn is_party(&self, closing: &ConversationId, address: &str) -> Result<bool, StoreError> {
        self.read(|db| close::is_party(db, closing, address))
    }

    fn mark(
        &mut self,
        address: &str,
        ids: &[String],
        state: DeliveryState,
        at: Timestamp,
    ) -> Result<Vec<String>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.write(|db| delivery::mark(db, address, ids, state, at))
    }

    fn hand_out(&mut self, handed: &[HandedOut]) -> Result<(), StoreError> {
        if handed.is_empty() {
            return Ok(());
        }
        self.write(|db| {
            for HandedOut { address, ids, at } in handed {
                delivery::mark(db, address, ids, DeliveryState::Delivered, *at)?;
            }
            Ok(())
        })
    }

    fn deliveries(&self, id: &str) -> Result<Vec<Delivery>, StoreError> {
        self.read(|db| delivery::deliveries(db, id))
    }

    fn due(
        &mut self,
        now: Timestamp,
        lease: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        let is_any = |next: Timestamp| next <= now;
        if !self.next_due()?.is_some_and(is_any) {
            return Ok(Vec::new());
        }
        self.write(|db| queue::due(db, now, lease, limit))
    }

    fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(queue::next_due)
    }

    fn attempted(
        &mut self,
        id: &str,
        to: &str,
        leased_at: Option<Timestamp>,
        attempt: &Attempt,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write(|db| delivery::attempted(db, (id, to, leased_at), attempt, at))
    }

    fn note_failure(
        &mut self,
        address: &str,
        ids: &[String],
        is_final: bool,
        at: Timestamp,
    ) -> Result<Vec<String>, StoreError> {
        self.write(|db| delivery::note_failure(db, address, ids, is_final, at))
    }

    fn was_handed_out(&self, address: &str, name: &str) -> Result<bool, StoreError> {
        self.read(|db| delivery::was_handed_out(db, address, name))
    }

    fn renew(&mut self, leases: &[Lease], until: Timestamp) -> Result<u64, StoreError> {
        self.write(|db| delivery::renew(db, leases, until))
    }

    fn release(&mut self, leases: &[Lease], at: Timestamp) -> Result<u64, StoreError> {
        self.write(|db| delivery::release(db, leases, at))
    }

    fn release_leases(&mut self, at: Timestamp) -> Result<u64, StoreError> {
        self.write(|db| queue::release_leases(db, at))
    }

    fn courier(
        &self,
        lets_carry: &dyn Fn(&Errand) -> bool,
        limit: usize,
    ) -> Result<Vec<InboxEntry>, StoreError> {
        self.read(|db| queue::courier(db, lets_carry, limit))
    }

    fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError> {
        self.read(|db| delivery::dead(db, limit))
    }

    fn requeue(&mut self, id: &str, at: Timestamp) -> Result<u64, StoreError> {
        self.write(|db| delivery::requeue(db, id, at))
    }

    fn overdue(&mut self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let is_any = |next: Timestamp| next <= now;
        if !self.next_deadline()?.is_some_and(is_any) {
            return Ok(0);
        }
        self.write(|db| queue::overdue(db, now, limit))
    }

    fn notices(&self, limit: usize) -> Result<Vec<(u64, String)>, StoreError> {
        self.read(|db| queue::notices(db, limit))
    }

    fn enqueue_notices(&mut self, texts: &[String]) -> Result<(), StoreError> {
        self.write(|db| queue::enqueue_notices(db, texts.iter().cloned()))
    }

    fn drop_notices(&mut self, owed: &[u64]) -> Result<(), StoreError> {
        self.write(|db| queue::drop_notices(db, owed))
    }

    fn next_deadline(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(queue::next_deadline)
    }

    fn add_token(&mut self, token: &TokenRecord, by: &str) -> Result<bool, StoreError> {
        self.write(|db| {
            let is_new = keep::add_token(db, token)?;
            if is_new {
                super::log::append(db, &token.created(by))?;
            }
            Ok(is_new)
        })
    }

    fn token_counts(&self) -> Result<TokenCounts, StoreError> {
        self.read(keep::token_counts)
    }

    fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        self.read(keep::tokens)
    }

    fn revoke_token(&mut self, name: &str, by: &str, at: Timestamp) -> Result<bool, StoreError> {
        self.write(|db| {
            let was_active = keep::revoke_token(db, name, at)?;
            if was_active {
                super::log::append(db, &TokenRecord::revoked(name, by, at))?;
            }
            Ok(was_active)
        })
    }

    fn note_token_uses(&mut self, uses: &[(Digest, Timestamp)]) -> Result<(), StoreError> {
        if uses.is_empty() {
            return Ok(());
        }
        self.write(|db| keep::note_token_uses(db, uses))
    }

    fn gauges(&self) -> Result<StoreGauges, StoreError> {
        let bytes = room::bytes_of(&self.path);
        self.read(|db| queue::gauges(db, bytes))
    }

    fn declare(&mut self, agent: &Agent, at: Timestamp) -> Result<(), StoreError> {
        self.write(|db| keep::declare(db, agent, at))
    }

    fn agents(&self) -> Result<Vec<Agent>, StoreError> {
        self.read(keep::agents)
    }

    fn add_blob(&mut self, upload: &Upload<'_>, at: Timestamp) -> Result<(), StoreError> {
        self.write(|db| keep::add_blob(db, upload, at))
    }

    fn uploaded_bytes(&self, by: &str, besides: Digest) -> Result<u64, StoreError> {
        self.read(|db| keep::uploaded_bytes(db, by, besides))
    }

    fn is_unused(&self, digest: Digest, by: Option<&str>) -> Result<bool, StoreError> {
        self.read(|db| keep::is_unused(db, digest, by))
    }

    fn referring(&self, digest: Digest, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.read(|db| {
            let places = keep::referring(db, digest, limit)?;
            inbox::taken(db, &places)
        })
    }

    fn referring_parties(
        &self,
        digest: Digest,
        now: Timestamp,
        limit: usize,
    ) -> Result<BTreeSet<String>, StoreError> {
        self.read(|db| keep::referring_parties(db, digest, now, limit))
    }

    fn drop_blobs(&mut self, before: Timestamp, limit: usize) -> Result<Vec<Digest>, StoreError> {
        self.write(|db| keep::drop_blobs(db, before, limit))
    }

    fn handovers(
        &self,
        thread: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<String>)>, StoreError> {
        self.read(|db| inbox::handovers(db, thread, number(after), limit))
    }

    fn due_polls(
        &self,
        now: Timestamp,
        within: Option<i64>,
        limit: usize,
    ) -> Result<Vec<DuePoll>, StoreError> {
        self.read(|db| poll::due(db, now, within, limit))
    }

    fn next_poll_end(&self, within: Option<i64>) -> Result<Option<Timestamp>, StoreError> {
        self.read(|db| poll::next_end(db, within))
    }

    fn count_poll(&mut self, poll: &DuePoll, state: PollState) -> Result<(), StoreError> {
        self.write(|db| poll::count(db, poll, state))
    }

    fn retire(&mut self, what: &Retention) -> Result<RetiredCount, StoreError> {
        let retired = self.write(|db| retire::retire(db, what))?;
        if retired.messages > 0 && !retired.more {
            // If somebody still reads an older state, the log is emptied when it is next written from its start.
            self.empty_logs()?;
        }
        Ok(retired)
    }
}
