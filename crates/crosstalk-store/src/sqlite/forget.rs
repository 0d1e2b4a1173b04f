//! Forgetting, so that nothing is left, and putting aside.

use rusqlite::{Connection, params};
use std::collections::BTreeSet;

use super::derive::{self, FILED, Filed};
use super::fault::Step;
use super::relay::{hold, progress, retire};
use super::{log, settle};

/// Erases a thread. Only inside of a transaction.
pub(super) fn forget(db: &Connection, thread: &str) -> Step<u64> {
    progress::file_rest(db)?;
    let sql = format!("SELECT {FILED} FROM intake WHERE seq = ?1");
    let mut find = db.prepare_cached(
        "SELECT seq FROM message WHERE thread = ?1 UNION ALL \
         SELECT i.seq FROM quarantine CROSS JOIN intake i ON i.seq = quarantine.seq WHERE i.thread = ?1",
    )?;
    let rows = find.query_map(params![thread], |row| row.get(0))?;
    let (mut count, mut answered, now) = (0, BTreeSet::new(), log::now(db)?);
    for seq in rows.collect::<Step<Vec<i64>>>()? {
        let mut read = db.prepare_cached(&sql)?;
        let row: Filed = read.query_row(params![seq], derive::filed)?;
        derive::unindex(db, seq, &row.arrival)?;
        log::erased(db, seq, now, "forget")?;
        retire::clear(db, seq)?;
        db.prepare_cached("DELETE FROM intake WHERE seq = ?1")?
            .execute(params![seq])?;
        answered.extend(row.arrival.answered().map(str::to_owned));
        count += 1;
    }
    for table in ["party WHERE thread", "thread WHERE id"] {
        db.execute(&format!("DELETE FROM {table} = ?1"), params![thread])?;
    }
    // What waits for a person goes with them; what was decided stays on record, without its text.
    count += hold::forget(db, thread)?;
    // Words that begin a page of the index are its keys, and outlive what they were written for: all pages anew.
    db.execute("INSERT INTO words (words) VALUES ('optimize')", [])?;
    // What they settled elsewhere is open again.
    for id in answered {
        settle::judge(db, &id)?;
    }
    Ok(count)
}

/// Takes a message out of the inbox. Only inside of a transaction.
pub(super) fn dismiss(db: &Connection, id: &str) -> Step<bool> {
    let changed = db.execute(
        "UPDATE intake SET dismissed = 1 WHERE seq IN (SELECT seq FROM message WHERE id = ?1 AND wait IN (1, 2))",
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
