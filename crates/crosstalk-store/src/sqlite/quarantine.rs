//! Messages that could not be indexed. They are kept, and those behind them go on; `fsck --repair` tries them again.

use crosstalk_protocol::relay::Quarantined;
use rusqlite::{Connection, params};

use super::fault::{self, SqlResult};
use crate::sqlite::sql::Sql as _;

/// Does something with one message in a savepoint of its own. If the message can't be indexed, nothing of that stays, and
/// the message is quarantined.
pub(super) fn alone<T>(
    db: &Connection,
    seq: i64,
    step: impl FnOnce() -> SqlResult<T>,
) -> SqlResult<Option<T>> {
    db.execute_batch("SAVEPOINT message")?;
    match step() {
        Ok(done) => {
            db.execute_batch("RELEASE message")?;
            Ok(Some(done))
        }
        Err(error) if fault::is_about_message(&error) => {
            db.execute_batch("ROLLBACK TO message; RELEASE message")?;
            let sql = "INSERT OR REPLACE INTO quarantine (seq, reason) VALUES (?1, ?2)";
            db.run(sql, params![seq, error.to_string()])?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Removes a message from quarantine. False if it was not quarantined.
pub(super) fn release(db: &Connection, seq: i64) -> SqlResult<bool> {
    let released = db.run("DELETE FROM quarantine WHERE seq = ?1", params![seq])?;
    Ok(released > 0)
}

/// All messages that are quarantined, in their order.
pub(super) fn list(db: &Connection) -> SqlResult<Vec<Quarantined>> {
    let sql = "SELECT i.id, q.seq, q.reason FROM quarantine q JOIN intake i ON i.seq = q.seq \
        ORDER BY q.seq";
    db.all(sql, [], |row| {
        Ok(Quarantined {
            id: row.get(0)?,
            seq: row.get::<_, i64>(1)?.unsigned_abs(),
            reason: row.get(2)?,
        })
    })
}

/// Whether the message with an id is quarantined.
pub(super) fn has(db: &Connection, id: &str) -> SqlResult<bool> {
    let sql = "SELECT 1 FROM quarantine WHERE seq = (SELECT seq FROM intake WHERE id = ?1)";
    db.has(sql, params![id])
}

/// How many messages are quarantined, up to a thousand.
pub(super) fn count(db: &Connection) -> SqlResult<u64> {
    let mut find = db.prepare_cached("SELECT seq FROM quarantine LIMIT 1000")?;
    let (mut rows, mut count) = (find.query([])?, 0);
    while rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}
