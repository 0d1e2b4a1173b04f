//! Messages that could not be indexed. They are kept, and those behind them go on; `fsck --repair` tries them again.

use crosstalk_protocol::relay::Quarantined;

use super::fault::PgResult;
use super::sql::{Db, number, params};

/// Does something with one message in a savepoint of its own. If the message can't be indexed, nothing of that stays, and
/// the message is quarantined.
pub(super) fn alone<T>(
    db: &Db,
    seq: i64,
    step: impl FnOnce() -> PgResult<T>,
) -> PgResult<Option<T>> {
    db.batch("SAVEPOINT message")?;
    match step() {
        Ok(done) => {
            db.batch("RELEASE message")?;
            Ok(Some(done))
        }
        Err(error) if error.is_about_message() => {
            db.batch("ROLLBACK TO message; RELEASE message")?;
            let sql = "INSERT INTO quarantine (seq, reason) VALUES ($1, $2) ON CONFLICT (seq) DO UPDATE SET \
                reason = excluded.reason";
            db.run(sql, params![seq, error.to_string()])?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Removes a message from quarantine. False if it was not quarantined.
pub(super) fn release(db: &Db, seq: i64) -> PgResult<bool> {
    let released = db.run("DELETE FROM quarantine WHERE seq = $1", params![seq])?;
    Ok(released > 0)
}

/// The first messages that are quarantined, in their order.
pub(super) fn list(db: &Db, limit: usize) -> PgResult<Vec<Quarantined>> {
    let sql = "SELECT i.id, q.seq, q.reason FROM quarantine q JOIN intake i ON i.seq = q.seq \
        ORDER BY q.seq LIMIT $1";
    db.all(sql, params![number(limit)], |row| {
        Ok(Quarantined {
            id: row.try_get(0)?,
            seq: row.try_get::<_, i64>(1)?.unsigned_abs(),
            reason: row.try_get(2)?,
        })
    })
}

/// Whether the message with an id is quarantined.
pub(super) fn has(db: &Db, id: &str) -> PgResult<bool> {
    let sql = "SELECT 1 FROM quarantine WHERE seq = (SELECT seq FROM intake WHERE id = $1)";
    db.has(sql, params![id])
}
