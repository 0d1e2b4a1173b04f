//! Checkpoints that the relay signed: the latest, and one for each hour before.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::Sealed;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::signed;
use crate::sqlite::fault::Step;

const HOUR: i64 = 3_600_000;

fn sealed(row: &Row<'_>) -> Step<Sealed> {
    let size: i64 = row.get("size")?;
    Ok(Sealed {
        size: size.unsigned_abs(),
        at: Timestamp::from_millis(row.get("at")?),
        root: row.get("root")?,
        note: row.get("note")?,
    })
}

pub(super) fn latest(db: &Connection) -> Step<Option<Sealed>> {
    db.prepare_cached("SELECT size, at, root, note FROM checkpoint ORDER BY size DESC LIMIT 1")?
        .query_row([], sealed)
        .optional()
}

pub(super) fn all(db: &Connection) -> Step<Vec<Sealed>> {
    let mut find = db.prepare("SELECT size, at, root, note FROM checkpoint ORDER BY size")?;
    let rows = find.query_map([], sealed)?;
    rows.collect()
}

/// Keeps a checkpoint. The one before goes, unless it is the first of its hour. Only inside of a transaction.
pub(super) fn keep(db: &Connection, new: &Sealed) -> Step<()> {
    let mut find =
        db.prepare_cached("SELECT size, at FROM checkpoint ORDER BY size DESC LIMIT 2")?;
    let rows = find.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let last = rows.collect::<Step<Vec<(i64, i64)>>>()?;
    if let [(size, at), (_, before)] = last.as_slice()
        && at.div_euclid(HOUR) == before.div_euclid(HOUR)
    {
        db.prepare_cached("DELETE FROM checkpoint WHERE size = ?1")?
            .execute(params![size])?;
    }
    db.prepare_cached(
        "INSERT OR IGNORE INTO checkpoint (size, at, root, note) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        signed(new.size),
        new.at.as_millis(),
        new.root,
        new.note
    ])?;
    Ok(())
}
