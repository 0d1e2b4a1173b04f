//! Erasing messages and threads without a trace, and dismissing messages.

use rusqlite::{Connection, params};
use std::collections::BTreeSet;

use super::derive::{self, INTAKE_ROW, IntakeRow};
use super::fault::SqlResult;
use super::relay::{hold, index, retire};
use super::words::{self, Rewrite};
use super::{indexed, log};
use crate::sqlite::sql::{Sql as _, value};

/// Erases a thread. Only inside a transaction.
pub(super) fn forget(db: &Connection, thread: &str) -> SqlResult<u64> {
    index::index_rest(db)?;
    let mut find = db.prepare_cached(
        "SELECT seq FROM message WHERE thread = ?1 UNION ALL \
         SELECT i.seq FROM quarantine CROSS JOIN intake i ON i.seq = quarantine.seq WHERE i.thread = ?1",
    )?;
    let rows = find.query_map(params![thread], |row| row.get(0))?;
    let (mut count, mut answered) = (0, BTreeSet::new());
    for seq in rows.collect::<SqlResult<Vec<i64>>>()? {
        answered.extend(erase(db, seq)?.arrival.answered().map(str::to_owned));
        count += 1;
    }
    for table in ["party WHERE thread", "thread WHERE id"] {
        db.execute(&format!("DELETE FROM {table} = ?1"), params![thread])?;
    }
    // What waits for a person goes with them; what was decided stays on record, without its text.
    count += hold::forget(db, thread)?;
    words::ask_to_rewrite(db, Rewrite::All)?;
    // Questions that they settled elsewhere are open again.
    indexed::change(db, |index| {
        answered.iter().try_for_each(|id| index.judge(id))
    })?;
    Ok(count)
}

/// Erases one message and leaves the rest of its thread as if it had never come. Only inside a transaction. False if it is
/// not there.
pub(super) fn forget_message(db: &Connection, id: &str) -> SqlResult<bool> {
    index::index_rest(db)?;
    let sql = "SELECT seq FROM intake i WHERE id = ?1 AND (EXISTS (SELECT 1 FROM message m WHERE \
        m.seq = i.seq) OR EXISTS (SELECT 1 FROM quarantine q WHERE q.seq = i.seq))";
    let found = db.find(sql, params![id], value)?;
    let Some(seq) = found else {
        return Ok(false);
    };
    let erased = erase(db, seq)?;
    words::ask_to_rewrite(db, Rewrite::All)?;
    indexed::change(db, |index| {
        index.recount(&erased.thread)?;
        let answered = erased.arrival.answered();
        answered.map_or(Ok(()), |question| index.judge(question))
    })?;
    Ok(true)
}

/// Removes a message from every table but those of its thread.
fn erase(db: &Connection, seq: i64) -> SqlResult<IntakeRow> {
    let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = ?1");
    let row: IntakeRow = db.one(&sql, params![seq], derive::intake_row)?;
    derive::unindex(db, seq)?;
    log::erased(db, seq, log::now(db)?, "forget")?;
    retire::clear(db, seq)?;
    index::keep_given(db, seq)?;
    db.run("DELETE FROM intake WHERE seq = ?1", params![seq])?;
    Ok(row)
}

/// Ends the wait of a message without an answer. Only inside a transaction.
pub(super) fn dismiss(db: &Connection, id: &str) -> SqlResult<bool> {
    indexed::change(db, |index| index.dismiss(id))
}

/// Moves everything from the log into the file and empties the log, so that what was erased is in neither. False if
/// somebody still reads an older state.
pub(super) fn empty_log(db: &Connection) -> SqlResult<bool> {
    let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(busy == 0)
}
