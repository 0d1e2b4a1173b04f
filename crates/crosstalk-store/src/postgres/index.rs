//! Indexing: deriving threads and waits from accepted messages, and how far that is. Each message is indexed exactly once,
//! by whichever relay has the turn: the position moves in the transaction that indexes.

use crosstalk_protocol::relay::{ConversationId, IndexProgress};
use crosstalk_protocol::store::Arrival;

use super::fault::PgResult;
use super::indexed::PgBatch;
use super::intake::{INTAKE_ROW, PgIntakeRow, intake_row};
use super::sql::{Db, number, params, tuple, value};
use super::{close, quarantine, search};

/// How many messages are in memory at once.
pub(super) const PORTION: usize = 256;

pub(super) const INDEXED: &str = "indexed";
pub(super) const RETIRED: &str = "retired";

/// Indexes the oldest messages that are not indexed, at most so many. One that can't be indexed is quarantined. How many were
/// looked at. Only inside a transaction that has the turn.
pub(super) fn index_some(db: &Db, limit: usize) -> PgResult<usize> {
    let sql = format!(
        "SELECT {INTAKE_ROW} FROM intake WHERE seq > (SELECT seq FROM progress WHERE name = 'indexed') ORDER BY seq LIMIT $1"
    );
    let rows = db.all(&sql, params![number(limit)], intake_row)?;
    let Some(last) = rows.last().map(|row| row.seq) else {
        return Ok(0);
    };
    let count = rows.len();
    // Messages that were erased before they were indexed have nothing to index.
    let rows: Vec<PgIntakeRow> = rows
        .into_iter()
        .filter(|row| !row.arrival.text.is_empty())
        .collect();
    db.batch("SAVEPOINT portion")?;
    match index_together(db, &rows) {
        Ok(()) => db.batch("RELEASE portion")?,
        // One of them can't be indexed: each goes alone, so that it is the only one.
        Err(error) if error.is_about_message() => {
            db.batch("ROLLBACK TO portion; RELEASE portion")?;
            for row in &rows {
                quarantine::alone(db, row.seq, || {
                    index_together(db, std::slice::from_ref(row))
                })?;
            }
        }
        Err(error) => return Err(error),
    }
    set_progress(db, INDEXED, last)?;
    db.add_indexed(rows.len());
    Ok(count)
}

/// Indexes messages again that could not be indexed. How many are indexed now. Only inside a transaction that has the turn.
pub(super) fn retry_quarantined(db: &Db) -> PgResult<u64> {
    let mut count = 0;
    for quarantined in quarantine::list(db, usize::MAX)? {
        let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = $1");
        let seq = number(quarantined.seq);
        let row = db.one(&sql, params![seq], intake_row)?;
        let indexed = quarantine::alone(db, seq, || {
            quarantine::release(db, seq)?;
            index_together(db, std::slice::from_ref(&row))
        })?;
        count += u64::from(indexed.is_some());
    }
    Ok(count)
}

/// Indexes messages.
fn index_together(db: &Db, rows: &[PgIntakeRow]) -> PgResult<()> {
    let (mut batch, mut closed) = (PgBatch::new(db, rows)?, Vec::new());
    let words: Vec<(i64, &Arrival)> = rows.iter().map(|row| (row.seq, &row.arrival)).collect();
    search::fill(db, &words)?;
    for PgIntakeRow {
        seq,
        thread,
        arrival,
    } in rows
    {
        let mut arrival = arrival.clone();
        let placed = batch.index.place(&mut arrival)?;
        if placed.thread != *thread || arrival.answers.is_some() {
            let sql = "UPDATE intake SET thread = $2, inferred = $3 WHERE seq = $1";
            db.run(sql, params![seq, placed.thread, arrival.answers])?;
        }
        if placed.closes {
            let thread = ConversationId::Thread(placed.thread.clone());
            closed.push((thread, arrival.at, *seq));
        }
        batch.add(seq.unsigned_abs(), arrival, placed.thread)?;
    }
    batch.write()?;
    for (thread, at, seq) in closed {
        close::close(db, &thread, at, seq)?;
    }
    Ok(())
}

/// Indexes everything that is left. Only inside a transaction that has the turn.
pub(super) fn index_rest(db: &Db) -> PgResult<()> {
    while index_some(db, PORTION)? > 0 {}
    Ok(())
}

/// The position of the last message that something was done with.
pub(super) fn progress(db: &Db, name: &str) -> PgResult<i64> {
    let sql = "SELECT seq FROM progress WHERE name = $1";
    db.one(sql, params![name], value)
}

pub(super) fn set_progress(db: &Db, name: &str, seq: i64) -> PgResult<()> {
    let sql = "UPDATE progress SET seq = $2 WHERE name = $1";
    db.run(sql, params![name, seq])?;
    Ok(())
}

/// How far indexing is, and how much is left.
pub(super) fn indexing(db: &Db, filed: usize) -> PgResult<IndexProgress> {
    let sql = "SELECT (SELECT seq FROM progress WHERE name = 'indexed'), (SELECT coalesce(max(seq), 0) FROM intake), \
        (SELECT count(*) FROM (SELECT 1 FROM quarantine LIMIT 1000) q)";
    let (through, last, quarantined): (i64, i64, i64) = db.one(sql, params![], tuple)?;
    Ok(IndexProgress {
        through: through.unsigned_abs(),
        left: last.saturating_sub(through).max(0).unsigned_abs(),
        filed,
        quarantined: quarantined.unsigned_abs(),
    })
}
