//! Messages as their recipients ask for them, indexed or not.

use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::relay::port::{InboxEntry, InboxQuery};
use crosstalk_protocol::relay::{DeliveryState, Handler};
use crosstalk_protocol::store::{Record, party};
use rusqlite::{Connection, Row, params};

use super::{command, hold};
use crate::sqlite::derive::{self, INTAKE_ROW};
use crate::sqlite::fault::SqlResult;
use crate::sqlite::query::{self, RECORD};
use crate::sqlite::sql::{Columns as _, Sql as _, number, position, value};

pub(super) fn inbox_of(db: &Connection, inbox: &InboxQuery) -> SqlResult<Vec<InboxEntry>> {
    let sql = "SELECT d.seq, d.address, d.handler, d.state, d.attempts FROM delivery d INDEXED BY delivery_inbox \
        CROSS JOIN intake i ON i.seq = d.seq WHERE d.party = ?1 AND d.state < 3 AND d.seq > ?2 AND \
        (d.handler NOT IN (?4, ?5) OR d.state = 0) AND octet_length(i.text) > 0 AND d.seq NOT IN (SELECT seq \
        FROM quarantine) ORDER BY d.seq LIMIT ?3";
    let after = inbox.after.as_ref();
    let Some(after) = after.map_or(Some(0), command::position) else {
        return Ok(Vec::new());
    };
    let asked = params![
        party(&inbox.address),
        number(after),
        number(inbox.limit),
        // A program or a tool can't acknowledge. What it has processed would come again to anyone who listens later.
        position(&Handler::ALL, Handler::Exec),
        position(&Handler::ALL, Handler::Mcp)
    ];
    let rows = db.all(sql, asked, |row| {
        let by = row.member("handler", &Handler::ALL)?;
        let state = row.member("state", &DeliveryState::ALL)?;
        let attempts = row.get("attempts")?;
        Ok((row.get("seq")?, row.get("address")?, by, state, attempts))
    })?;
    let mut entries = Vec::with_capacity(rows.len());
    for (seq, to, by, state, attempts) in rows {
        if let Some(record) = at(db, seq)? {
            entries.push(InboxEntry {
                to,
                by,
                state,
                attempts,
                is_approved: hold::is_approved(db, &record.id)?,
                cursor: command::cursor(&record),
                record,
            });
        }
    }
    Ok(entries)
}

pub(super) fn taken(db: &Connection, places: &[u64]) -> SqlResult<Vec<Record>> {
    let mut records = Vec::with_capacity(places.len());
    for place in places {
        records.extend(at(db, number(*place))?);
    }
    Ok(records)
}

pub(super) fn taken_as(db: &Connection, id: &str) -> SqlResult<Option<Record>> {
    let seq: Option<i64> = db.find("SELECT seq FROM intake WHERE id = ?1", params![id], value)?;
    match seq {
        Some(seq) => at(db, seq),
        None => Ok(None),
    }
}

/// The ESCALATEs and HANDOFFs of a thread after a position, and who gets each: its receiver, and to whom it was routed.
pub(super) fn handovers(
    db: &Connection,
    thread: &str,
    after: i64,
    limit: usize,
) -> SqlResult<Vec<(u64, Vec<String>)>> {
    let mut find = db.prepare_cached(
        "SELECT seq, receiver FROM message INDEXED BY message_handover \
         WHERE thread = ?1 AND seq > ?2 AND meaning IN ('ESCALATE', 'HANDOFF') ORDER BY seq LIMIT ?3",
    )?;
    let mut routed = db.prepare_cached("SELECT address FROM delivery WHERE seq = ?1")?;
    let asked = params![thread, after, number(limit)];
    let rows = find.query_map(asked, |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.map(|row| {
        let (seq, receiver): (i64, String) = row?;
        let mut to = vec![receiver];
        for address in routed.query_map(params![seq], |row| row.get(0))? {
            to.push(address?);
        }
        Ok((seq.unsigned_abs(), to))
    })
    .collect()
}

/// The message at a position.
pub(super) fn at(db: &Connection, seq: i64) -> SqlResult<Option<Record>> {
    let sql =
        format!("{RECORD} FROM message m CROSS JOIN intake i ON i.seq = m.seq WHERE m.seq = ?1");
    let filed = db.find(&sql, params![seq], query::record)?;
    if filed.is_some() {
        return Ok(filed);
    }
    let sql = format!(
        "SELECT {INTAKE_ROW}, digest, expires, entry FROM intake WHERE seq = ?1 AND text <> ''"
    );
    db.find(&sql, params![seq], pending)
}

/// A message that is not indexed yet: what its text says.
fn pending(row: &Row<'_>) -> SqlResult<Record> {
    let filed = derive::intake_row(row)?;
    Ok(Record {
        expires: row.opt_time("expires")?,
        entry: row.opt_seq("entry")?.map(LogPlace::first),
        digest: row.digest("digest")?,
        ..Record::pending(filed.arrival, filed.seq.unsigned_abs(), filed.thread)
    })
}
