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
pub(super) mod unindexed;

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::port::{InboxEntry, InboxQuery, MaintenanceResult, PAIRED, Upload};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, Agent, Attempt, DeadLetter, Delivery, DeliveryState, DueDelivery,
    DuePoll, Errand, FilledSearch, HandedOut, IndexProgress, Lease, PollState, Retention,
    StoreGauges, TokenRecord,
};
use crosstalk_protocol::store::{Page, Record, Search, StoreError, StoreFault};

use super::migrate::{folder_of, label_of, on_disk};
use super::{SqliteStore, fault, room};
use crate::disk::Lock;
use crate::sqlite::fault::SqlResult;
use crate::sqlite::sql::number;
use log::WalMover;
use rusqlite::Connection;
use unindexed::UnindexedMessages;

/// How far the search index is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchProgress {
    /// The place of the last message whose words are in it.
    pub through: u64,
    /// How many indexed messages are not, at most; nothing is left exactly if this is 0.
    pub left: u64,
}

/// How much of the search file the handle that writes keeps in memory.
const OWNER_SEARCH_CACHE_KB: i64 = 2000;

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
        let larger = "PRAGMA cache_size = -24000; PRAGMA wal_autocheckpoint = 0;";
        self.db.execute_batch(larger).map_err(failed)?;
        // It only takes words out.
        self.search_cache_kb = OWNER_SEARCH_CACHE_KB;
        let log = WalMover::start(&mut self.db, &self.path).map_err(failed)?;
        Ok(Owned {
            _log: log,
            _lock: lock,
        })
    }
}

impl SqliteStore {
    /// Accepts messages: all that are not rejected are on disk when this returns, with one fsync. One answer for each,
    /// in their order; later ones see earlier ones.
    ///
    /// # Errors
    /// If the store can't be written. Nothing of the batch was accepted then.
    pub fn accept_batch(&mut self, batch: &[Admission]) -> Result<Vec<AcceptOutcome>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        self.need_room(batch.iter().map(|a| a.arrival.text.len()).sum())?;
        let outcomes =
            self.accept_with(|db, unindexed| intake::accept_all(db, batch, unindexed))?;
        for (admission, outcome) in batch.iter().zip(&outcomes) {
            if let AcceptOutcome::Accepted { seq, ids, .. } = outcome {
                self.accepted.add(*seq, admission, ids);
            }
        }
        Ok(outcomes)
    }

    /// Runs a change that accepts messages in one transaction, with those that are not indexed at hand.
    fn accept_with<T>(
        &mut self,
        change: impl FnOnce(&Connection, &mut UnindexedMessages) -> SqlResult<T>,
    ) -> Result<T, StoreError> {
        let mut unindexed = std::mem::take(&mut self.unindexed);
        let before = unindexed.last();
        let answer = self.write(|db| change(db, &mut unindexed));
        if answer.is_err() {
            unindexed.drop_after(before);
        }
        self.unindexed = unindexed;
        answer
    }

    /// Indexes what was accepted and is not indexed yet, the oldest first, at most so many.
    ///
    /// # Errors
    /// If the store can't be written. Nothing of this call was indexed then.
    pub fn index(&mut self, limit: usize) -> Result<IndexProgress, StoreError> {
        // Without work to do, this takes no write lock from others.
        let now = self.index_progress()?;
        self.accepted.drop_through(now.through);
        self.unindexed.drop_through(number(now.through));
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
        let mut accepted = std::mem::take(&mut self.accepted);
        let indexed = match self.derive(|db| index::index_oldest(db, limit, false, &mut accepted)) {
            // One of them can't be indexed: each goes alone, so that it is the only one.
            Err(e) if e.fault == StoreFault::Invalid => {
                self.derive(|db| index::index_oldest(db, limit, true, &mut accepted))
            }
            done => done,
        };
        self.accepted = accepted;
        indexed
    }

    /// How far indexing is, and how much is left.
    pub fn index_progress(&self) -> Result<IndexProgress, StoreError> {
        self.read(|db| index::indexing(db, 0))
    }

    /// Adds the words of indexed messages to the search index, the oldest first, at most so many messages. Other handles of the
    /// store can write meanwhile, but for a change that erases messages: it waits for this call.
    ///
    /// # Errors
    /// If the search index can't be written. The messages stay as they are, and the next call goes on from there.
    pub fn fill_search(&mut self, limit: usize) -> Result<SearchProgress, StoreError> {
        let filled = self.fill_words(limit)?;
        Ok(SearchProgress {
            through: filled.through.unsigned_abs(),
            left: filled.left.unsigned_abs(),
        })
    }

    /// The messages that a search finds among those in the search index, the latest first. [`search`](Self::search) fills the index
    /// first, and may take long.
    pub fn search_filled(&self, search: &Search, page: Page) -> Result<FilledSearch, StoreError> {
        let (found, through) = self.search_words(search, page)?;
        Ok(FilledSearch {
            found,
            through: through.unsigned_abs(),
        })
    }

    /// What an address has got and not acknowledged, the oldest first, indexed or not.
    pub fn inbox_of(&self, inbox: &InboxQuery) -> Result<Vec<InboxEntry>, StoreError> {
        self.read(|db| inbox::inbox_of(db, inbox))
    }

    /// The message with an id, indexed or not.
    pub fn record(&self, id: &str) -> Result<Option<Record>, StoreError> {
        self.read(|db| inbox::taken_as(db, id))
    }

    /// Brings the deliveries of messages to an address into a state, where that may follow their present one. Returns the ids
    /// that are on their way to this address, changed or not.
    pub fn mark(
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

    /// Notes that messages were handed out: their deliveries are [`DeliveryState::Delivered`], where that may follow.
    pub(crate) fn hand_out(&mut self, handed: &[HandedOut]) -> Result<(), StoreError> {
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

    /// The deliveries of a message.
    pub fn deliveries(&self, id: &str) -> Result<Vec<Delivery>, StoreError> {
        self.read(|db| delivery::deliveries(db, id))
    }

    /// Leases queued deliveries of active handlers whose time has come, the most urgent first, then those that are due
    /// longest, then in the order in which they came. Nobody else gets one of them before the lease ends.
    pub fn due(
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

    /// When the next delivery of an active handler is due.
    pub(crate) fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(queue::next_due)
    }

    /// Records the outcome of an attempt. `leased_at` names the lease that it was made under; a person who carries a message
    /// has none. False if the delivery is not queued any more, or is leased otherwise: nothing changes then.
    pub fn attempted(
        &mut self,
        id: &str,
        to: &str,
        leased_at: Option<Timestamp>,
        attempt: &Attempt,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write(|db| delivery::attempted(db, (id, to, leased_at), attempt, at))
    }

    /// Whether anything was ever handed out to an address, in the latest conversations that name it so.
    pub(crate) fn was_handed_out(&self, address: &str, name: &str) -> Result<bool, StoreError> {
        self.read(|db| delivery::was_handed_out(db, address, name))
    }

    /// Moves the end of leases. Those that somebody else holds by now, or that are over, stay as they are. How many were
    /// renewed.
    pub(crate) fn renew(&mut self, leases: &[Lease], until: Timestamp) -> Result<u64, StoreError> {
        self.write(|db| delivery::renew(db, leases, until))
    }

    /// Gives leased deliveries back, to be given out again at a time; that counts as no attempt. Those that somebody else
    /// holds by now, or that are over, stay as they are. How many were given back.
    pub(crate) fn release(&mut self, leases: &[Lease], at: Timestamp) -> Result<u64, StoreError> {
        self.write(|db| delivery::release(db, leases, at))
    }

    /// Gives all deliveries back that are leased, to be given out again at a time. For a relay that starts, and has the store
    /// to itself: those that had leased them are gone. How many they are.
    ///
    /// # Errors
    /// If the store can't be written.
    pub(crate) fn release_leases(&mut self, at: Timestamp) -> Result<u64, StoreError> {
        self.write(|db| queue::release_leases(db, at))
    }

    /// The messages that wait for a person to carry them and that `lets_carry` permits, the most urgent first, then the
    /// oldest.
    pub(crate) fn courier(
        &self,
        lets_carry: &dyn Fn(&Errand) -> bool,
        limit: usize,
    ) -> Result<Vec<InboxEntry>, StoreError> {
        self.read(|db| queue::courier(db, lets_carry, limit))
    }

    /// Dead letters, the latest first.
    pub fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError> {
        self.read(|db| delivery::dead(db, limit))
    }

    /// Queues the deliveries of a message that are dead letters again. How many.
    pub fn requeue(&mut self, id: &str, at: Timestamp) -> Result<u64, StoreError> {
        self.write(|db| delivery::requeue(db, id, at))
    }

    /// Settles questions whose time has passed without an answer, at most so many: what their senders are told
    /// ([`report::unanswered`](crosstalk_protocol::relay::report::unanswered)) is owed. How many are told.
    pub(crate) fn overdue(&mut self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let is_any = |next: Timestamp| next <= now;
        if !self.next_deadline()?.is_some_and(is_any) {
            return Ok(0);
        }
        self.write(|db| queue::overdue(db, now, limit))
    }

    /// The notices that the relay has to send, the oldest first: a number and a text each. After a REVOKE that is everything of
    /// [`report::revocation_notices`](crosstalk_protocol::relay::report::revocation_notices).
    pub fn notices(&self, limit: usize) -> Result<Vec<(u64, String)>, StoreError> {
        self.read(|db| queue::notices(db, limit))
    }

    /// Removes notices that were sent.
    pub(crate) fn drop_notices(&mut self, owed: &[u64]) -> Result<(), StoreError> {
        self.write(|db| queue::drop_notices(db, owed))
    }

    /// When the next question is overdue; one that was settled by other than an answer may be among them.
    pub(crate) fn next_deadline(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(queue::next_deadline)
    }

    /// Keeps a token that somebody created, and writes it into the log (AUD-003). False if there is one of this name, even
    /// a revoked one, or with this secret; nothing is changed then.
    pub fn add_token(&mut self, token: &TokenRecord, by: &str) -> Result<bool, StoreError> {
        self.write(|db| {
            let is_new = keep::add_token(db, token)?;
            if is_new {
                super::log::append(db, &token.created(by))?;
            }
            Ok(is_new)
        })
    }

    /// All tokens, by name.
    pub fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        self.read(keep::tokens)
    }

    /// Gives the token that waits under the hash of a pairing code its secret, and writes it into the log. False if there is
    /// none, or it was revoked or has expired; nothing is changed then.
    pub(crate) fn pair_token(
        &mut self,
        code: Digest,
        secret: Digest,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write(|db| {
            let mut tokens = keep::tokens(db)?.into_iter();
            let Some(token) = tokens.find(|t| t.hash == code && t.can_pair(at)) else {
                return Ok(false);
            };
            let token = token.paired(secret, at);
            keep::replace_token(db, code, &token)?;
            super::log::append(db, &token.created(PAIRED))?;
            Ok(true)
        })
    }

    /// Revokes a token, and writes into the log (AUD-003) who did. False if there is none of this name, or it was revoked
    /// before; nothing is changed then.
    pub fn revoke_token(
        &mut self,
        name: &str,
        by: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write(|db| {
            let was_active = keep::revoke_token(db, name, at)?;
            if was_active {
                super::log::append(db, &TokenRecord::revoked(name, by, at))?;
            }
            Ok(was_active)
        })
    }

    /// Notes when tokens were last used, by the hash of their secret. An earlier time changes nothing.
    pub(crate) fn note_token_uses(
        &mut self,
        uses: &[(Digest, Timestamp)],
    ) -> Result<(), StoreError> {
        if uses.is_empty() {
            return Ok(());
        }
        self.write(|db| keep::note_token_uses(db, uses))
    }

    /// What waits, and how large the store is, for monitoring. It counts up to [`MAX_COUNTED`](crosstalk_protocol::relay::MAX_COUNTED) of each kind,
    /// so that it costs little however much waits.
    pub fn gauges(&self) -> Result<StoreGauges, StoreError> {
        let bytes = room::bytes_of(&self.path);
        self.read(|db| queue::gauges(db, bytes))
    }

    /// Keeps what an agent says it can do, in place of what it said before.
    pub(crate) fn declare(&mut self, agent: &Agent, at: Timestamp) -> Result<(), StoreError> {
        self.write(|db| keep::declare(db, agent, at))
    }

    /// The capabilities that agents declared, by address.
    pub fn agents(&self) -> Result<Vec<Agent>, StoreError> {
        self.read(keep::agents)
    }

    /// Notes that a credential uploaded an attachment, or did again. References in messages that the same credential
    /// handed in before grant access to it from now on.
    pub(crate) fn add_blob(&mut self, upload: &Upload, at: Timestamp) -> Result<(), StoreError> {
        self.write(|db| keep::add_blob(db, upload, at))
    }

    /// How many bytes of attachments a credential has at the relay, besides one: each counts at least
    /// [`BLOB_BYTES_LEAST`](crosstalk_protocol::relay::BLOB_BYTES_LEAST).
    pub(crate) fn uploaded_bytes(&self, by: &str, besides: Digest) -> Result<u64, StoreError> {
        self.read(|db| keep::uploaded_bytes(db, by, besides))
    }

    /// The latest messages whose reference to an attachment grants access, indexed or not, the newest first.
    pub fn referring(&self, digest: Digest, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.read(|db| {
            let places = keep::referring(db, digest, limit)?;
            inbox::taken(db, &places)
        })
    }

    /// Attachments that came before a time and that no message refers to. They are forgotten; their bytes are the
    /// caller's to remove.
    pub(crate) fn drop_blobs(
        &mut self,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<Digest>, StoreError> {
        self.write(|db| keep::drop_blobs(db, before, limit))
    }

    /// The ESCALATEs and HANDOFFs of a thread after a place, the oldest first: where each is, and who gets it. The thread
    /// is not read for it.
    pub(crate) fn handovers(
        &self,
        thread: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Vec<String>)>, StoreError> {
        self.read(|db| inbox::handovers(db, thread, number(after), limit))
    }

    /// Polls that have to be counted, at most so many: something came to them since they were counted, or they have
    /// ended. One without an end of its own ends `within` so many milliseconds.
    pub fn due_polls(
        &self,
        now: Timestamp,
        within: Option<i64>,
        limit: usize,
    ) -> Result<Vec<DuePoll>, StoreError> {
        self.read(|db| poll::due(db, now, within, limit))
    }

    /// Records the state of a poll. Ballots that came after it was due remain to be counted.
    pub fn count_poll(&mut self, poll: &DuePoll, state: PollState) -> Result<(), StoreError> {
        self.write(|db| poll::count(db, poll, state))
    }

    /// Erases messages that a relay accepted and that are too old or have expired, as far as they are indexed: text and everything
    /// derived from it. The id and the digest stay, so that the same message does not come again as a new one.
    pub fn retire(&mut self, what: &Retention) -> Result<MaintenanceResult, StoreError> {
        let retired = self.write(|db| retire::retire(db, what))?;
        if retired.count > 0 && !retired.more {
            // If somebody still reads an older state, the log is emptied when it is next written from its start.
            self.empty_logs()?;
        }
        Ok(retired)
    }
}
