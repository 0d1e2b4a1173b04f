//! Deriving from the intake: its rows as messages, and deriving everything again.

use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Arrival, Side, StoredMessage, Way};
use rusqlite::{Connection, Row, params};

use super::fault::SqlResult;
use super::relay::index;
use super::{indexed, quarantine, schema, words};
use crate::sqlite::sql::{Columns as _, Sql as _, tuple};

/// How many rows of the intake are in memory at once while everything is derived again.
const ROWS: i64 = 256;

/// A row of the intake as an arrival, and the way that it was indexed.
#[derive(Clone, Debug)]
pub(super) struct IntakeRow {
    pub(super) seq: i64,
    pub(super) thread: String,
    pub(super) arrival: Arrival,
}

pub(super) const INTAKE_ROW: &str = "seq, id, thread, inferred, carried, text, received, verdict, pkid, side, way, at, \
                                spare_thread, spare_message, routes, truncated";

/// Reads the columns of [`INTAKE_ROW`].
pub(super) fn intake_row(row: &Row<'_>) -> SqlResult<IntakeRow> {
    let routes: String = row.get("routes")?;
    let mut filed = IntakeRow {
        seq: row.get("seq")?,
        thread: row.get("thread")?,
        arrival: Arrival::recall(StoredMessage {
            text: row.get("text")?,
            received: row.get("received")?,
            truncated: row.get("truncated")?,
            verdict: row.word("verdict", VerdictWord::parse)?,
            pkid: row.opt_text("pkid")?,
            side: row.word("side", Side::parse)?,
            way: row.word("way", Way::parse)?,
            at: row.time("at")?,
            message: match row.get("carried")? {
                true => Some(row.get("id")?),
                false => None,
            },
            answers: row.get("inferred")?,
            generated: ReceivedIds {
                thread: row.get("spare_thread")?,
                message: row.get("spare_message")?,
            },
        }),
    };
    filed.arrival.add_recipients(recipient_addresses(&routes));
    Ok(filed)
}

/// The addresses of the recipients in a column.
pub(super) fn recipient_addresses(routes: &str) -> impl Iterator<Item = &str> {
    let lines = routes.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(_, address)| address)
}

/// Whether a message is indexed: not if it still waits for that, or is quarantined.
pub(super) fn is_indexed(db: &Connection, seq: i64) -> SqlResult<bool> {
    db.has("SELECT 1 FROM message WHERE seq = ?1", params![seq])
}

/// Removes a message from the columns and the words, or out of quarantine; its thread and parties are left as they are.
pub(super) fn unindex(db: &Connection, seq: i64) -> SqlResult<()> {
    if quarantine::release(db, seq)? || !is_indexed(db, seq)? {
        return Ok(());
    }
    words::touch(db, seq)?;
    remove_columns(db, seq)
}

/// Removes a message from the columns.
pub(super) fn remove_columns(db: &Connection, seq: i64) -> SqlResult<()> {
    for sql in [
        "DELETE FROM answer WHERE question = ?1",
        "DELETE FROM message WHERE seq = ?1",
    ] {
        db.run(sql, params![seq])?;
    }
    Ok(())
}

/// Empties everything that is derived, and derives it again for what was indexed: not for messages that still wait for that,
/// or are quarantined.
pub(super) fn rebuild(db: &Connection) -> SqlResult<()> {
    db.execute_batch(schema::EMPTY)?;
    // A message of the person of this store has no deliveries: it is indexed here or nowhere.
    db.execute_batch(
        "DELETE FROM quarantine WHERE seq IN (SELECT seq FROM intake WHERE peer IS NULL)",
    )?;
    let mut find = db.prepare(
        "SELECT seq FROM intake i WHERE seq > ?1 AND seq <= ?2 AND text <> '' \
         AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.seq = i.seq) ORDER BY seq LIMIT ?3",
    )?;
    let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = ?1");
    let (mut after, last) = (0, index::progress(db, index::INDEXED)?);
    loop {
        let rows = find.query_map(params![after, last, ROWS], |row| row.get(0))?;
        let rows = rows.collect::<SqlResult<Vec<i64>>>()?;
        for seq in &rows {
            quarantine::alone(db, *seq, || {
                let row = db.one(&sql, params![seq], intake_row)?;
                indexed::restore(db, row)
            })?;
        }
        let Some(last) = rows.last() else { break };
        after = *last;
    }
    let mut after = 0;
    let sql = "SELECT seq, id FROM message WHERE seq > ?1 AND asks <> 0 ORDER BY seq LIMIT 1";
    while let Some((seq, id)) = db.find(sql, params![after], tuple::<(i64, String)>)? {
        indexed::change(db, |index| index.judge(&id))?;
        after = seq;
    }
    Ok(())
}
