//! Indexing: deriving threads and waits from accepted messages, and how far that is. Each message is indexed
//! exactly once: the position moves in the transaction that indexes.

use super::{close, delivery};
use crate::sqlite::derive::{IntakeRow, recipient_addresses};
use crate::sqlite::fault::SqlResult;
use crate::sqlite::indexed::Batch;
use crate::sqlite::sql::{Sql as _, number, value};
use crate::sqlite::{accept, quarantine};
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::relay::{Admission, ConversationId, IndexProgress};
use crosstalk_protocol::store::Arrival;
use rusqlite::{Connection, params};
use std::collections::VecDeque;
use std::sync::Arc;

/// Indexes the oldest that are not indexed. If one of them can't be, this fails, unless each is guarded: then that one is
/// quarantined. Only inside a transaction.
pub(super) fn index_oldest(
    db: &Connection,
    limit: usize,
    is_guarded: bool,
    accepted: &mut AcceptedMessages,
) -> SqlResult<IndexProgress> {
    index_some(db, i64::MAX, limit, (is_guarded, accepted))
}

/// Messages that this handle accepted and has not indexed: they need not be read again. The file says what became of them
/// since, and counts.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct AcceptedMessages(VecDeque<AcceptedMessage>);

/// One of them. Its text is that of the caller, who is gone when it is indexed.
#[derive(Debug)]
struct AcceptedMessage {
    seq: i64,
    arrival: Arc<Arrival>,
    generated_thread: String,
    routes: String,
}

impl AcceptedMessage {
    fn thread(&self) -> &str {
        let named = self.arrival.thread.as_deref();
        named.unwrap_or(&self.generated_thread)
    }

    fn into_row(self) -> IntakeRow {
        let thread = self.thread().to_owned();
        let mut arrival = Arc::unwrap_or_clone(self.arrival);
        arrival.add_recipients(recipient_addresses(&self.routes));
        arrival.generated.thread = self.generated_thread;
        IntakeRow {
            seq: self.seq,
            thread,
            arrival,
        }
    }
}

/// How many accepted messages are kept in memory. The others are read from the file.
const MAX_ACCEPTED: usize = 4096;

impl AcceptedMessages {
    pub(super) fn add(&mut self, seq: u64, admission: &Admission, ids: &ReceivedIds) {
        if self.0.len() >= MAX_ACCEPTED {
            return;
        }
        self.0.push_back(AcceptedMessage {
            seq: number(seq),
            arrival: Arc::clone(&admission.arrival),
            generated_thread: ids.thread.clone(),
            routes: delivery::write_recipients(admission),
        });
    }

    pub(super) fn drop_through(&mut self, through: u64) {
        while self
            .0
            .pop_front_if(|row| row.seq <= number(through))
            .is_some()
        {}
    }

    /// A message as it was accepted, if the row says the same. It is not kept any longer: if it is not indexed after all, it is
    /// read from the file. Only in the order of the positions.
    fn take(&mut self, row: &UnindexedRow) -> Option<IntakeRow> {
        while self.0.pop_front_if(|a| a.seq < row.seq).is_some() {}
        let found = self.0.pop_front_if(|a| a.seq == row.seq)?;
        let is_same = found.arrival.id() == row.id
            && found.thread() == row.thread
            && found.arrival.verdict.as_str() == row.verdict;
        is_same.then(|| found.into_row())
    }
}

/// What the file says about a message that is to be indexed.
struct UnindexedRow {
    seq: i64,
    id: String,
    thread: String,
    verdict: String,
}

/// Which of them go alone, and what is known without reading it.
type HowToIndex<'a> = (bool, &'a mut AcceptedMessages);

/// Indexes everything up to a position.
pub(super) fn index_through(db: &Connection, place: i64) -> SqlResult<()> {
    let mut through = progress(db, INDEXED)?;
    while through < place {
        let before = through;
        index_some(db, place, ROWS, (true, &mut AcceptedMessages::default()))?;
        through = progress(db, INDEXED)?;
        if through == before {
            break;
        }
    }
    Ok(())
}

fn index_some(
    db: &Connection,
    place: i64,
    limit: usize,
    (is_guarded, accepted): HowToIndex<'_>,
) -> SqlResult<IndexProgress> {
    let through = progress(db, INDEXED)?;
    // Messages that were erased before they were indexed have nothing to index.
    let sql = "SELECT seq, peer IS NOT NULL AND octet_length(text) > 0, id, thread, verdict FROM \
        intake WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3";
    let asked = params![through, place, number(limit)];
    let rows = db.all(sql, asked, |row| {
        let unindexed = UnindexedRow {
            seq: row.get(0)?,
            id: row.get(2)?,
            thread: row.get(3)?,
            verdict: row.get(4)?,
        };
        Ok((row.get(1)?, unindexed))
    })?;
    let Some(last) = rows.last().map(|(_, row)| row.seq) else {
        return indexing(db, 0);
    };
    let rows = rows.into_iter().filter(|(is_there, _)| *is_there);
    let rows: Vec<UnindexedRow> = rows.map(|(_, row)| row).collect();
    let mut read = |row: &UnindexedRow| match accepted.take(row) {
        Some(known) => Ok(known),
        None => accept::row(db, row.seq),
    };
    match is_guarded {
        true => {
            for row in &rows {
                quarantine::alone(db, row.seq, || index_together(db, [read(row)]))?;
            }
        }
        false => index_together(db, rows.iter().map(read))?,
    }
    set_progress(db, INDEXED, last)?;
    indexing(db, rows.len())
}

/// Indexes messages.
fn index_together(
    db: &Connection,
    rows: impl IntoIterator<Item = SqlResult<IntakeRow>>,
) -> SqlResult<()> {
    let (mut batch, mut closed) = (Batch::new(db), Vec::new());
    for row in rows {
        let IntakeRow {
            seq,
            thread,
            mut arrival,
        } = row?;
        let placed = batch.index.place(&mut arrival)?;
        if placed.thread != thread || arrival.answers.is_some() {
            let sql = "UPDATE intake SET thread = ?2, inferred = ?3 WHERE seq = ?1";
            db.run(sql, params![seq, placed.thread, arrival.answers])?;
        }
        if placed.closes {
            let thread = ConversationId::Thread(placed.thread.clone());
            closed.push((thread, arrival.at, seq));
        }
        batch.add(seq.unsigned_abs(), arrival, placed.thread)?;
    }
    batch.write()?;
    for (thread, at, seq) in closed {
        close::close(db, &thread, at, seq)?;
    }
    Ok(())
}

/// Tries messages again that could not be indexed.
pub(in crate::sqlite) fn retry_quarantined(db: &Connection) -> SqlResult<()> {
    for quarantined in quarantine::list(db)? {
        let seq = number(quarantined.seq);
        quarantine::alone(db, seq, || {
            quarantine::release(db, seq)?;
            index_together(db, [accept::row(db, seq)])
        })?;
    }
    Ok(())
}

/// How many messages are in memory at once where all that are left are indexed.
pub(super) const ROWS: usize = 512;

pub(in crate::sqlite) const INDEXED: &str = "filed";
pub(super) const RETIRED: &str = "retired";
pub(in crate::sqlite) const SCRUBBED: &str = "scrubbed";

/// The position of the last message that something was done with.
pub(in crate::sqlite) fn progress(db: &Connection, name: &str) -> SqlResult<i64> {
    let sql = "SELECT seq FROM progress WHERE name = ?1";
    db.one(sql, params![name], value)
}

pub(in crate::sqlite) fn set_progress(db: &Connection, name: &str, seq: i64) -> SqlResult<()> {
    let sql = "UPDATE progress SET seq = ?2 WHERE name = ?1";
    db.run(sql, params![name, seq])?;
    Ok(())
}

/// The position that was given last, in SQL, also if its message was forgotten.
pub(in crate::sqlite) const LAST_GIVEN: &str = "max(coalesce((SELECT max(seq) FROM intake), 0), \
    (SELECT seq FROM progress WHERE name = 'given'))";

/// The position that the next message gets.
pub(in crate::sqlite) fn next_seq(db: &Connection) -> SqlResult<i64> {
    db.one(&format!("SELECT {LAST_GIVEN} + 1"), [], value)
}

/// Notes that a position was given, before its message is forgotten.
pub(in crate::sqlite) fn keep_given(db: &Connection, seq: i64) -> SqlResult<()> {
    let sql = "UPDATE progress SET seq = max(seq, ?1) WHERE name = 'given'";
    db.run(sql, params![seq])?;
    Ok(())
}

/// The position of the last message that came.
pub(super) fn last_seq(db: &Connection) -> SqlResult<i64> {
    db.one("SELECT coalesce(max(seq), 0) FROM intake", [], value)
}

pub(super) fn indexing(db: &Connection, filed: usize) -> SqlResult<IndexProgress> {
    let through = progress(db, INDEXED)?;
    let left = last_seq(db)?.saturating_sub(through).max(0);
    Ok(IndexProgress {
        through: through.unsigned_abs(),
        left: left.unsigned_abs(),
        filed,
        quarantined: quarantine::count(db)?,
    })
}

/// Indexes everything that is left.
pub(in crate::sqlite) fn index_rest(db: &Connection) -> SqlResult<()> {
    index_through(db, last_seq(db)?)
}

/// Marks messages as indexed that did not come through the relay: the store indexed those at once.
pub(in crate::sqlite) fn skip_indexed(db: &Connection) -> SqlResult<()> {
    let last = last_seq(db)?;
    if last > progress(db, INDEXED)? {
        set_progress(db, INDEXED, last)?;
    }
    Ok(())
}
