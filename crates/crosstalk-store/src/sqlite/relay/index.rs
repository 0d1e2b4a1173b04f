//! Indexing: deriving threads, waits and words from accepted messages, and how far that is. Each message is indexed
//! exactly once: the position moves in the transaction that indexes.

use super::close;
use crate::sqlite::derive::IntakeRow;
use crate::sqlite::fault::SqlResult;
use crate::sqlite::indexed::Batch;
use crate::sqlite::sql::{Sql as _, number, tuple, value};
use crate::sqlite::{accept, derive, quarantine};
use crosstalk_protocol::relay::{ConversationId, IndexProgress};
use rusqlite::{Connection, params};

/// Indexes the oldest that are not indexed. If one of them can't be, this fails, unless each is guarded: then that one is
/// quarantined. Only inside a transaction.
pub(super) fn index_oldest(
    db: &Connection,
    limit: usize,
    is_guarded: bool,
) -> SqlResult<IndexProgress> {
    index_some(db, i64::MAX, limit, is_guarded)
}

/// Indexes everything up to a position.
pub(super) fn index_through(db: &Connection, place: i64) -> SqlResult<()> {
    let mut through = progress(db, INDEXED)?;
    while through < place {
        let before = through;
        index_some(db, place, ROWS, true)?;
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
    is_guarded: bool,
) -> SqlResult<IndexProgress> {
    let through = progress(db, INDEXED)?;
    // Messages that were erased before they were indexed have nothing to index.
    let sql = "SELECT seq, peer IS NOT NULL AND text <> '' FROM intake WHERE seq > ?1 AND \
        seq <= ?2 ORDER BY seq LIMIT ?3";
    let asked = params![through, place, number(limit)];
    let rows = db.all(sql, asked, tuple::<(i64, bool)>)?;
    let Some(last) = rows.last().map(|(seq, _)| *seq) else {
        return indexing(db, 0);
    };
    let seqs: Vec<i64> = rows
        .into_iter()
        .filter_map(|(seq, is)| is.then_some(seq))
        .collect();
    match is_guarded {
        true => {
            for seq in &seqs {
                quarantine::alone(db, *seq, || index_together(db, &[*seq]))?;
            }
        }
        false => index_together(db, &seqs)?,
    }
    set_progress(db, INDEXED, last)?;
    indexing(db, seqs.len())
}

/// Indexes messages.
fn index_together(db: &Connection, seqs: &[i64]) -> SqlResult<()> {
    let (mut batch, mut closed) = (Batch::new(db), Vec::new());
    for seq in seqs {
        let IntakeRow {
            thread,
            mut arrival,
            ..
        } = accept::row(db, *seq)?;
        let placed = batch.index.place(&mut arrival)?;
        if placed.thread != thread || arrival.answers.is_some() {
            let sql = "UPDATE intake SET thread = ?2, inferred = ?3 WHERE seq = ?1";
            db.run(sql, params![seq, placed.thread, arrival.answers])?;
        }
        if placed.closes {
            let thread = ConversationId::Thread(placed.thread.clone());
            closed.push((thread, arrival.at, *seq));
        }
        derive::add_words(db, *seq, &arrival)?;
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
            index_together(db, &[seq])
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

/// What came by another way was indexed at once.
pub(in crate::sqlite) fn skip_indexed(db: &Connection) -> SqlResult<()> {
    let last = last_seq(db)?;
    if last > progress(db, INDEXED)? {
        set_progress(db, INDEXED, last)?;
    }
    Ok(())
}
