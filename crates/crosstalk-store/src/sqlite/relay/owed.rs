//! What the relay has to say by itself: written with the change that it follows from, and kept until it is said.

use rusqlite::{Connection, params};

use crate::sqlite::fault::Step;

/// Only inside of a transaction.
pub(super) fn owe(db: &Connection, texts: impl IntoIterator<Item = String>) -> Step<()> {
    let mut add = db.prepare_cached("INSERT INTO owed (text) VALUES (?1)")?;
    texts
        .into_iter()
        .try_for_each(|text| add.execute(params![text]).map(drop))
}

pub(super) fn owed(db: &Connection, most: usize) -> Step<Vec<(u64, String)>> {
    let mut find = db.prepare_cached("SELECT place, text FROM owed ORDER BY place LIMIT ?1")?;
    let rows = find.query_map(params![super::number(most)], |row| {
        Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
    })?;
    rows.collect()
}

/// Only inside of a transaction.
pub(super) fn settle(db: &Connection, owed: &[u64]) -> Step<()> {
    let mut remove = db.prepare_cached("DELETE FROM owed WHERE place = ?1")?;
    owed.iter()
        .try_for_each(|place| remove.execute(params![super::number(*place)]).map(drop))
}
