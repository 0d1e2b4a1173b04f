//! Forgetting, so that nothing is left, and putting aside.

use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::BTreeSet;

use super::derive::{self, FILED, Filed};
use super::fault::Step;
use super::relay::{hold, progress, retire};
use super::{course, log, settle};

/// Erases a thread. Only inside of a transaction.
pub(super) fn forget(db: &Connection, thread: &str) -> Step<u64> {
    progress::file_rest(db)?;
    let mut find = db.prepare_cached(
        "SELECT seq FROM message WHERE thread = ?1 UNION ALL \
         SELECT i.seq FROM quarantine CROSS JOIN intake i ON i.seq = quarantine.seq WHERE i.thread = ?1",
    )?;
    let rows = find.query_map(params![thread], |row| row.get(0))?;
    let (mut count, mut answered) = (0, BTreeSet::new());
    for seq in rows.collect::<Step<Vec<i64>>>()? {
        answered.extend(erase(db, seq)?.arrival.answered().map(str::to_owned));
        count += 1;
    }
    for table in ["party WHERE thread", "thread WHERE id"] {
        db.execute(&format!("DELETE FROM {table} = ?1"), params![thread])?;
    }
    // What waits for a person goes with them; what was decided stays on record, without its text.
    count += hold::forget(db, thread)?;
    rewrite_words(db)?;
    // What they settled elsewhere is open again.
    for id in answered {
        settle::judge(db, &id)?;
    }
    Ok(count)
}

/// Erases one message and leaves the rest of its thread as if it had never come. Only inside of a transaction. False if it is
/// not there.
pub(super) fn forget_message(db: &Connection, id: &str) -> Step<bool> {
    progress::file_rest(db)?;
    let mut find = db.prepare_cached(
        "SELECT seq FROM intake i WHERE id = ?1 AND (EXISTS (SELECT 1 FROM message m WHERE m.seq = i.seq) \
         OR EXISTS (SELECT 1 FROM quarantine q WHERE q.seq = i.seq))",
    )?;
    let found = find.query_row(params![id], |row| row.get(0)).optional()?;
    let Some(seq) = found else {
        return Ok(false);
    };
    let erased = erase(db, seq)?;
    course::recount(db, &erased.thread)?;
    rewrite_words(db)?;
    if let Some(question) = erased.arrival.answered() {
        settle::judge(db, question)?;
    }
    Ok(true)
}

/// Takes a message out of every table but those of its thread.
fn erase(db: &Connection, seq: i64) -> Step<Filed> {
    let sql = format!("SELECT {FILED} FROM intake WHERE seq = ?1");
    let row: Filed = db
        .prepare_cached(&sql)?
        .query_row(params![seq], derive::filed)?;
    derive::unindex(db, seq, &row.arrival)?;
    log::erased(db, seq, log::now(db)?, "forget")?;
    retire::clear(db, seq)?;
    db.prepare_cached("DELETE FROM intake WHERE seq = ?1")?
        .execute(params![seq])?;
    Ok(row)
}

/// Writes all pages of the index of words anew: words that begin a page are its keys, and outlive what they were written for.
fn rewrite_words(db: &Connection) -> Step<()> {
    db.execute("INSERT INTO words (words) VALUES ('optimize')", [])?;
    Ok(())
}

/// Ends the wait of a message without an answer. Only inside of a transaction.
pub(super) fn dismiss(db: &Connection, id: &str) -> Step<bool> {
    let changed = db.execute(
        "UPDATE intake SET dismissed = 1 WHERE seq IN (SELECT seq FROM message WHERE id = ?1 AND wait <> 0)",
        params![id],
    )?;
    if changed > 0 {
        settle::judge(db, id)?;
    }
    Ok(changed > 0)
}

/// Moves everything from the log into the file and empties the log, so that what was erased is in neither. False if
/// somebody still reads an older state.
pub(super) fn empty_log(db: &Connection) -> Step<bool> {
    let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(busy == 0)
}
