//! Commands and queries of a relay that are more than one statement: everything of each is in one transaction.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::port::{
    AttemptResult, BlobQuery, BlobUse, Cursor, LeasedDelivery, MailboxAction, MailboxChange,
    NextTimes, RecordQuery, SearchQuery,
};
use crosstalk_protocol::relay::{Agent, Delivery, DeliveryState, FilledSearch, Lease, TokenRecord};
use crosstalk_protocol::store::{Record, StoreError};
use rusqlite::Connection;

use super::keep::{self, TokenCounts};
use super::{delivery, hold, inbox, index, poll, queue};
use crate::sqlite::SqliteStore;
use crate::sqlite::fault::SqlResult;

/// Everything of the registry.
pub(in crate::sqlite) type TokensAndAgents = (Vec<TokenRecord>, Vec<Agent>);

impl SqliteStore {
    /// Whether there was ever a message at the position that a cursor stands for.
    pub(in crate::sqlite) fn has_cursor(&self, cursor: &Cursor) -> Result<bool, StoreError> {
        let Some(seq) = position(cursor) else {
            return Ok(false);
        };
        let next = self.read(index::next_seq)?;
        Ok(seq < next.unsigned_abs())
    }

    /// Runs changes in one transaction, in their order: all of them or, on an error, none.
    pub(in crate::sqlite) fn change_together(
        &mut self,
        changes: &mut [Box<dyn GroupedChange>],
    ) -> Result<(), StoreError> {
        self.write(|db| changes.iter_mut().try_for_each(|change| change.run(db)))
    }

    pub(in crate::sqlite) fn leased(
        &self,
        lease: &Lease,
    ) -> Result<Option<LeasedDelivery>, StoreError> {
        self.read(|db| {
            let deliveries = delivery::deliveries(db, &lease.id)?.into_iter();
            let Some(delivery) = deliveries.into_iter().find(|d| lease.holds(d)) else {
                return Ok(None);
            };
            let record = inbox::taken_as(db, &lease.id)?;
            Ok(Some(LeasedDelivery { delivery, record }))
        })
    }

    pub(in crate::sqlite) fn all_deliveries(
        &self,
        ids: &[String],
    ) -> Result<Vec<Vec<Delivery>>, StoreError> {
        self.read(|db| ids.iter().map(|id| delivery::deliveries(db, id)).collect())
    }

    pub(in crate::sqlite) fn records(
        &self,
        query: &RecordQuery,
    ) -> Result<Vec<Record>, StoreError> {
        self.read(|db| match query {
            RecordQuery::Ids(ids) => {
                let found = ids.iter().map(|id| inbox::taken_as(db, id));
                found.filter_map(Result::transpose).collect()
            }
            RecordQuery::Seqs(seqs) => inbox::taken(db, seqs),
            RecordQuery::Referring { digest, limit } => {
                inbox::taken(db, &keep::referring(db, *digest, *limit)?)
            }
        })
    }

    pub(in crate::sqlite) fn find_words(
        &self,
        query: &SearchQuery,
    ) -> Result<FilledSearch, StoreError> {
        let (found, through) = match query.is_complete {
            true => self.search_all(&query.search, query.page)?,
            false => self.search_words(&query.search, query.page)?,
        };
        Ok(FilledSearch {
            found,
            through: through.unsigned_abs(),
        })
    }

    pub(in crate::sqlite) fn blob_use(&self, query: &BlobQuery) -> Result<BlobUse, StoreError> {
        let digest = query.digest;
        self.read(|db| {
            Ok(BlobUse {
                is_unused: keep::is_unused(db, digest, query.by.as_deref())?,
                parties: keep::referring_parties(db, digest, query.now, query.limit)?,
            })
        })
    }

    /// The tokens and agents, unless the tokens have these counts.
    pub(in crate::sqlite) fn registry_unless(
        &self,
        known: Option<TokenCounts>,
    ) -> Result<Option<TokensAndAgents>, StoreError> {
        self.read(|db| {
            if known.is_some() && known == Some(keep::token_counts(db)?) {
                return Ok(None);
            }
            Ok(Some((keep::tokens(db)?, keep::agents(db)?)))
        })
    }

    pub(in crate::sqlite) fn next_times(
        &self,
        poll_within: Option<i64>,
    ) -> Result<NextTimes, StoreError> {
        self.read(|db| {
            Ok(NextTimes {
                delivery: queue::next_due(db)?,
                deadline: queue::next_deadline(db)?,
                lapse: hold::next_lapse(db)?,
                poll_end: poll::next_end(db, poll_within)?,
            })
        })
    }

    /// Settles questions that are overdue, so many at most. How many senders are told, and whether there are more.
    pub(in crate::sqlite) fn settle_overdue(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Result<(u64, bool), StoreError> {
        let told = self.overdue(now, limit)?;
        let next = self.next_deadline()?;
        Ok((told, next.is_some_and(|next| next <= now)))
    }
}

/// A change that shares its transaction with others.
pub(in crate::sqlite) trait GroupedChange: Send {
    /// Does it. Again, if the transaction was rolled back.
    fn run(&mut self, db: &Connection) -> SqlResult<()>;
    /// Tells the caller what became of it, once the transaction is over.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

/// Changes mailboxes. Only inside a transaction.
pub(in crate::sqlite) fn change_mailbox(
    db: &Connection,
    change: &MailboxChange,
) -> SqlResult<Vec<String>> {
    let (address, ids, at) = (change.address.as_str(), change.ids.as_slice(), change.at);
    let changed = match change.action {
        MailboxAction::Reach(state) => delivery::mark(db, address, ids, state, at)?,
        MailboxAction::NoteFailure { is_final } => {
            delivery::note_failure(db, address, ids, is_final, at)?
        }
    };
    queue::enqueue_notices(db, change.notices.iter().cloned())?;
    for notice in &change.settled {
        let ids = std::slice::from_ref(&notice.id);
        let state = DeliveryState::Acknowledged;
        delivery::mark(db, &notice.address, ids, state, at)?;
    }
    Ok(changed)
}

/// Records the result of an attempt, with the notices that follow from it. Only inside a transaction.
pub(in crate::sqlite) fn finish(db: &Connection, result: &AttemptResult) -> SqlResult<bool> {
    let lease = (result.id.as_str(), result.to.as_str(), result.leased_at);
    let counts = delivery::attempted(db, lease, &result.attempt, result.at)?;
    if counts {
        queue::enqueue_notices(db, result.notices.iter().cloned())?;
    }
    Ok(counts)
}

/// The position of a message in mailboxes.
pub(super) fn cursor(record: &Record) -> Cursor {
    Cursor::new(record.seq.to_string())
}

/// The number of the message at a position; nothing if this store did not give it out.
pub(in crate::sqlite) fn position(cursor: &Cursor) -> Option<u64> {
    let text = cursor.as_str();
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let seq: i64 = text.parse().ok().filter(|_| is_plain)?;
    Some(seq.unsigned_abs())
}
