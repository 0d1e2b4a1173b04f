//! Messages as their recipients ask for them, filed or not.

use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::{Entry, Inbox};
use crosstalk_protocol::store::{Record, party};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{delivery, route};
use crate::sqlite::derive::{self, FILED, Filed};
use crate::sqlite::fault::Step;
use crate::sqlite::query::{self, RECORD};

/// What waits for an address. A message that a program, an endpoint, a folder or another relay has got (handlers from 2 on) does
/// not wait any more: a reader would get it a second time.
pub(super) fn inbox_of(db: &Connection, inbox: &Inbox<'_>) -> Step<Vec<Entry>> {
    let sql = format!(
        "{RECORD}, d.address, d.handler, d.state FROM delivery d INDEXED BY delivery_inbox \
         CROSS JOIN message m ON m.seq = d.seq CROSS JOIN intake i ON i.seq = d.seq \
         WHERE d.party = ?1 AND d.state < 3 AND d.seq > ?2 AND (d.handler < 2 OR d.state = 0) ORDER BY d.seq LIMIT ?3"
    );
    let asked = params![
        party(inbox.address),
        inbox.after.map_or(0, super::number),
        super::number(inbox.most)
    ];
    let mut find = db.prepare_cached(&sql)?;
    let rows = find.query_map(asked, |row| {
        Ok(Entry {
            to: row.get("address")?,
            by: route::handler_of(row.get("handler")?)?,
            state: delivery::state_of(row.get("state")?)?,
            record: query::record(row)?,
        })
    })?;
    rows.collect()
}

pub(super) fn taken(db: &Connection, places: &[u64]) -> Step<Vec<Record>> {
    let mut records = Vec::with_capacity(places.len());
    for place in places {
        records.extend(at(db, super::number(*place))?);
    }
    Ok(records)
}

pub(super) fn taken_as(db: &Connection, id: &str) -> Step<Option<Record>> {
    let seq: Option<i64> = db
        .prepare_cached("SELECT seq FROM intake WHERE id = ?1")?
        .query_row(params![id], |row| row.get(0))
        .optional()?;
    match seq {
        Some(seq) => at(db, seq),
        None => Ok(None),
    }
}

/// The ESCALATEs and HANDOFFs of a thread after a place, and who gets each: its receiver, and to whom it was routed.
pub(super) fn handovers(
    db: &Connection,
    thread: &str,
    after: i64,
    most: usize,
) -> Step<Vec<(u64, Vec<String>)>> {
    let mut find = db.prepare_cached(
        "SELECT seq, receiver FROM message INDEXED BY message_handover \
         WHERE thread = ?1 AND seq > ?2 AND meaning IN ('ESCALATE', 'HANDOFF') ORDER BY seq LIMIT ?3",
    )?;
    let mut routed = db.prepare_cached("SELECT address FROM delivery WHERE seq = ?1")?;
    let asked = params![thread, after, super::number(most)];
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

/// The message at a place.
pub(super) fn at(db: &Connection, seq: i64) -> Step<Option<Record>> {
    let sql =
        format!("{RECORD} FROM message m CROSS JOIN intake i ON i.seq = m.seq WHERE m.seq = ?1");
    let filed = db
        .prepare_cached(&sql)?
        .query_row(params![seq], query::record)
        .optional()?;
    if filed.is_some() {
        return Ok(filed);
    }
    let sql =
        format!("SELECT {FILED}, digest, expires, entry FROM intake WHERE seq = ?1 AND text <> ''");
    db.prepare_cached(&sql)?
        .query_row(params![seq], unfiled)
        .optional()
}

/// A message that is not filed yet: what its text says.
fn unfiled(row: &Row<'_>) -> Step<Record> {
    let Filed {
        seq,
        thread,
        arrival: a,
    } = derive::filed(row)?;
    Ok(Record {
        expires: super::time(row.get("expires")?),
        seq: seq.unsigned_abs(),
        entry: row.get::<_, Option<i64>>("entry")?.map(i64::unsigned_abs),
        id: row.get("id")?,
        carries_id: row.get("carried")?,
        thread,
        parent: a.answered().map(str::to_owned),
        wait: a.wait(),
        session: a.session,
        sender: a.sender,
        receiver: a.receiver,
        user: a.user,
        context: a.context,
        intent: a.intent,
        meaning: a.meaning,
        at: a.at,
        written_at: a.written_at,
        verdict: a.verdict,
        pkid: a.pkid,
        side: a.side,
        way: a.way,
        digest: Digest(row.get("digest")?),
        text: a.text,
        received: a.received,
        truncated: a.truncated,
    })
}
