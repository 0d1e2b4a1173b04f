//! Deriving from the intake: columns here, words in [`super::words`], threads and parties in [`super::course`], who has to act
//! next in [`super::settle`].
//!
//! Everything here follows from the rows of the intake alone, in whatever order they are looked at, so that
//! [`rebuild`] gives what the steps of [`super::accept`] gave.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Arrival, Side, StoredMessage, Wait, Way};
use rusqlite::{Connection, Row, params};

use super::course::{self, ThreadTurn};
use super::fault::SqlResult;
use super::relay::index;
use super::{quarantine, schema, settle, words};
use crate::sqlite::sql::{Columns as _, Sql as _, number, position, tuple};

/// How many rows of the intake are in memory at once while everything is derived again.
const ROWS: i64 = 256;

/// A row of the intake as an arrival, and how it was filed.
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
    let recipients = routes.lines().filter_map(|line| line.split_once(' '));
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
    let addresses = recipients.map(|(_, address)| address);
    filed.arrival.add_recipients(addresses);
    Ok(filed)
}

/// Addresses in one column, one a line.
pub(super) fn joined(addresses: &[String]) -> Option<String> {
    (!addresses.is_empty()).then(|| addresses.join("\n"))
}

/// Indexes a row of the intake in every table, as the latest of its thread, without a look at what it settles or what
/// settles it.
pub(super) fn index(db: &Connection, seq: i64, filed: &IntakeRow) -> SqlResult<()> {
    columns(db, seq, filed)?;
    course::follow(db, &filed.thread, &ThreadTurn::of(seq, &filed.arrival))
}

/// What the text says, in columns.
pub(super) fn columns(db: &Connection, seq: i64, filed: &IntakeRow) -> SqlResult<()> {
    let IntakeRow {
        arrival: a, thread, ..
    } = filed;
    let sql = "INSERT INTO message (seq, id, thread, names, parent, session, sender, receiver, \
        targets, user, context, intent, meaning, at, written_at, trust, counts, settles, closes, \
        reopens, mine, asks, needs, answered, wait) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
        ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, 0, 0)";
    db.run(
        sql,
        params![
            seq,
            a.id(),
            thread,
            a.thread,
            a.answered(),
            a.session,
            a.sender,
            a.receiver,
            joined(&a.targets),
            a.user,
            a.context,
            a.intent,
            a.meaning.map(|m| m.as_str()),
            a.at.as_millis(),
            a.written_at.map(Timestamp::as_millis),
            position(&VerdictWord::ALL, a.verdict),
            a.counts(),
            a.settles(),
            a.closes(),
            a.reopens(),
            a.is_written_here(),
            position(&Wait::ALL, a.wait()),
            number(a.answers_needed()),
        ],
    )?;
    Ok(())
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
                index(db, *seq, &row)
            })?;
        }
        let Some(last) = rows.last() else { break };
        after = *last;
    }
    db.execute_batch(schema::DATED)?;
    let mut after = 0;
    let sql = "SELECT seq, id FROM message WHERE seq > ?1 AND asks <> 0 ORDER BY seq LIMIT 1";
    while let Some((seq, id)) = db.find(sql, params![after], tuple::<(i64, String)>)? {
        settle::judge(db, &id)?;
        after = seq;
    }
    Ok(())
}
