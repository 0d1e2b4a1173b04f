//! Messages as their recipients ask for them, indexed or not.

use crosstalk_protocol::relay::port::{Cursor, InboxEntry, InboxQuery};
use crosstalk_protocol::relay::{DeliveryState, Handler};
use crosstalk_protocol::store::{Record, party};
use tokio_postgres::Row;

use super::delivery::attempts;
use super::fault::PgResult;
use super::hold;
use super::intake::{INTAKE_ROW, intake_row};
use super::query::{self, RECORD};
use super::sql::{Db, PgColumns as _, number, params, position, tuple, value};

pub(super) fn inbox_of(db: &Db, inbox: &InboxQuery) -> PgResult<Vec<InboxEntry>> {
    let sql = "SELECT d.seq, d.address, d.handler, d.state, d.attempts FROM delivery d JOIN intake i ON i.seq = d.seq WHERE d.party = $1 AND d.state < 3 AND d.seq > $2 AND \
        (d.handler NOT IN ($4, $5) OR d.state = 0) AND i.text <> '' AND d.seq NOT IN (SELECT seq \
        FROM quarantine) ORDER BY d.seq LIMIT $3";
    let after = inbox.after.as_ref();
    let Some(after) = after.map_or(Some(0), position_of) else {
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
        let attempts = attempts(row)?;
        Ok((
            row.try_get("seq")?,
            row.try_get("address")?,
            by,
            state,
            attempts,
        ))
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
                cursor: cursor(&record),
                record,
            });
        }
    }
    Ok(entries)
}

pub(super) fn taken(db: &Db, places: &[u64]) -> PgResult<Vec<Record>> {
    let mut records = Vec::with_capacity(places.len());
    for place in places {
        records.extend(at(db, number(*place))?);
    }
    Ok(records)
}

pub(super) fn taken_as(db: &Db, id: &str) -> PgResult<Option<Record>> {
    let seq: Option<i64> = db.find("SELECT seq FROM intake WHERE id = $1", params![id], value)?;
    match seq {
        Some(seq) => at(db, seq),
        None => Ok(None),
    }
}

/// The ESCALATEs and HANDOFFs of a thread after a position, and who gets each: its receiver, and to whom it was routed.
pub(super) fn handovers(
    db: &Db,
    thread: &str,
    after: i64,
    limit: usize,
) -> PgResult<Vec<(u64, Vec<String>)>> {
    let sql = "SELECT m.seq, m.receiver, coalesce(string_agg(d.address, chr(10) ORDER BY d.party), '') FROM message m \
        LEFT JOIN delivery d ON d.seq = m.seq WHERE m.thread = $1 AND m.seq > $2 AND m.meaning IN \
        ('ESCALATE', 'HANDOFF') GROUP BY m.seq ORDER BY m.seq LIMIT $3";
    db.all(sql, params![thread, after, number(limit)], |row| {
        let (seq, receiver, routed): (i64, String, String) = tuple(row)?;
        let mut to = vec![receiver];
        to.extend(routed.lines().map(str::to_owned));
        Ok((seq.unsigned_abs(), to))
    })
}

/// The message at a position.
pub(super) fn at(db: &Db, seq: i64) -> PgResult<Option<Record>> {
    let sql = format!("{RECORD} FROM message m JOIN intake i ON i.seq = m.seq WHERE m.seq = $1");
    let filed = db.find(&sql, params![seq], query::record)?;
    if filed.is_some() {
        return Ok(filed);
    }
    let sql = format!(
        "SELECT {INTAKE_ROW}, digest, expires, chain, entry FROM intake WHERE seq = $1 AND text <> ''"
    );
    db.find(&sql, params![seq], pending)
}

/// A message that is not indexed yet: what its text says.
fn pending(row: &Row) -> PgResult<Record> {
    let filed = intake_row(row)?;
    Ok(Record {
        expires: row.opt_time("expires")?,
        entry: row.log_place()?,
        digest: row.digest("digest")?,
        ..Record::pending(filed.arrival, filed.seq.unsigned_abs(), filed.thread)
    })
}

/// The position of a message in mailboxes. One relay writes at a time, so that messages are committed in the order of their
/// numbers.
pub(super) fn cursor(record: &Record) -> Cursor {
    Cursor::new(record.seq.to_string())
}

/// The number of the message at a position; nothing if this store did not give it out.
pub(super) fn position_of(cursor: &Cursor) -> Option<u64> {
    let text = cursor.as_str();
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let seq: i64 = text.parse().ok().filter(|_| is_plain)?;
    Some(seq.unsigned_abs())
}

/// Whether there was ever a message at the position that a cursor stands for.
pub(super) fn has_cursor(db: &Db, cursor: &Cursor) -> PgResult<bool> {
    let Some(seq) = position_of(cursor) else {
        return Ok(false);
    };
    let sql = "SELECT seq FROM turn";
    let last: i64 = db.one(sql, params![], value)?;
    Ok(seq <= last.unsigned_abs())
}
