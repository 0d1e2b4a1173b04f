//! How far filing is. What a relay took is filed exactly once: the place moves in the transaction that files.

use crosstalk_protocol::relay::Filing;
use rusqlite::{Connection, params};

use super::file;
use crate::sqlite::fault::Step;
use crate::sqlite::quarantine;

/// How many messages are in memory at once where all that are left are filed.
pub(super) const ROWS: usize = 512;

pub(in crate::sqlite) const FILED: &str = "filed";
pub(super) const RETIRED: &str = "retired";
pub(in crate::sqlite) const SCRUBBED: &str = "scrubbed";

/// The place of the last message that something was done with.
pub(in crate::sqlite) fn place(db: &Connection, name: &str) -> Step<i64> {
    db.prepare_cached("SELECT seq FROM progress WHERE name = ?1")?
        .query_row(params![name], |row| row.get(0))
}

pub(in crate::sqlite) fn set(db: &Connection, name: &str, seq: i64) -> Step<()> {
    db.prepare_cached("UPDATE progress SET seq = ?2 WHERE name = ?1")?
        .execute(params![name, seq])?;
    Ok(())
}

/// The place of the last message that came.
pub(super) fn last(db: &Connection) -> Step<i64> {
    db.prepare_cached("SELECT coalesce(max(seq), 0) FROM intake")?
        .query_row([], |row| row.get(0))
}

pub(super) fn filing(db: &Connection, filed: usize) -> Step<Filing> {
    let through = place(db, FILED)?;
    let left = last(db)?.saturating_sub(through).max(0);
    Ok(Filing {
        through: through.unsigned_abs(),
        left: left.unsigned_abs(),
        filed,
        quarantined: quarantine::count(db)?,
    })
}

/// Files everything that is left.
pub(in crate::sqlite) fn file_rest(db: &Connection) -> Step<()> {
    file::file_through(db, last(db)?)
}

/// What came by another way was filed at once.
pub(in crate::sqlite) fn skip(db: &Connection) -> Step<()> {
    let last = last(db)?;
    if last > place(db, FILED)? {
        set(db, FILED, last)?;
    }
    Ok(())
}
