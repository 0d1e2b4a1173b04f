//! Indexing: deriving threads, waits and words from accepted messages, and how far that is. Each message is indexed
//! exactly once: the position moves in the transaction that indexes.

use super::{close, intake};
use crate::sqlite::derive::IntakeRow;
use crate::sqlite::fault::SqlResult;
use crate::sqlite::sql::{Sql as _, number, tuple, value};
use crate::sqlite::{accept, derive, fault, quarantine};
use crosstalk_protocol::relay::{ConversationId, IndexProgress};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

/// Indexes the oldest that are not indexed. Only inside a transaction.
pub(super) fn index_oldest(db: &Connection, limit: usize) -> SqlResult<IndexProgress> {
    index_some(db, i64::MAX, limit)
}

/// Indexes everything up to a position.
pub(super) fn index_through(db: &Connection, place: i64) -> SqlResult<()> {
    let mut through = progress(db, INDEXED)?;
    while through < place {
        let before = through;
        index_some(db, place, ROWS)?;
        through = progress(db, INDEXED)?;
        if through == before {
            break;
        }
    }
    Ok(())
}

fn index_some(db: &Connection, place: i64, limit: usize) -> SqlResult<IndexProgress> {
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
    db.execute_batch("SAVEPOINT batch")?;
    match index_together(db, &seqs) {
        Err(error) if fault::is_about_message(&error) => {
            // One of them can't be indexed: each goes alone, so that it is the only one.
            db.execute_batch("ROLLBACK TO batch")?;
            for seq in &seqs {
                quarantine::alone(db, *seq, || index_together(db, &[*seq]))?;
            }
        }
        result => result?,
    }
    db.execute_batch("RELEASE batch")?;
    set_progress(db, INDEXED, last)?;
    indexing(db, seqs.len())
}

/// Indexes messages. Their threads are counted once for all of them.
fn index_together(db: &Connection, seqs: &[i64]) -> SqlResult<()> {
    let (mut stale, mut threads) = (BTreeSet::new(), Vec::with_capacity(seqs.len()));
    for seq in seqs {
        let mut filed = accept::row(db, *seq)?;
        index_one(db, &mut filed, &mut stale)?;
        threads.push(filed.thread);
    }
    accept::update_threads(db, threads.iter().map(String::as_str), &stale)
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

fn index_one(
    db: &Connection,
    filed: &mut IntakeRow,
    stale: &mut BTreeSet<String>,
) -> SqlResult<()> {
    let (seq, before) = (filed.seq, filed.thread.clone());
    let of_parent = accept::choose_thread(db, filed)?;
    let closes = intake::closes_thread(db, &filed.arrival, &filed.thread)?;
    accept::find_question(db, filed, of_parent.is_some(), stale)?;
    if filed.thread != before || filed.arrival.answers.is_some() {
        let sql = "UPDATE intake SET thread = ?2, inferred = ?3 WHERE seq = ?1";
        db.run(sql, params![seq, filed.thread, filed.arrival.answers])?;
    }
    derive::index(db, seq, filed)?;
    let settled = accept::apply_effects(db, seq, filed, stale)?;
    if closes {
        let thread = ConversationId::Thread(filed.thread.clone());
        close::close(db, &thread, filed.arrival.at, seq)?;
    }
    if let Some(id) = settled {
        let sql = "DELETE FROM expectation WHERE seq = (SELECT seq FROM message WHERE id = ?1)";
        db.run(sql, params![id])?;
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
