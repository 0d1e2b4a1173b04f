//! The log of a relay: one row an entry, which nothing changes and nothing takes away.
//!
//! ```text
//! append ──> log ──> tile, 256 hashes each      written later, in the background
//!                └─> checkpoint                 what the relay signed
//! ```

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{Event, EventKind};
use crosstalk_protocol::store::Arrival;
use rusqlite::{Connection, params};

use super::accept::Known;
use super::fault::Step;

/// How many bytes of chance hide a detail.
const SALT: i64 = 16;

/// The number of a kind in its column.
fn number(kind: EventKind) -> i64 {
    let place = EventKind::ALL.iter().position(|k| *k == kind);
    place.map_or(-1, |p| i64::try_from(p).unwrap_or(-1))
}

/// Writes an entry, as a part of the change that it is about. Its index. Only inside of a transaction.
pub(in crate::sqlite) fn append(db: &Connection, event: &Event<'_>) -> Step<u64> {
    let (mut salt, mut sealed) = (None, None);
    if let Some(detail) = &event.detail {
        let drawn: Vec<u8> = db
            .prepare_cached("SELECT randomblob(?1)")?
            .query_row(params![SALT], |row| row.get(0))?;
        sealed = Some(detail.digest(&drawn).0);
        salt = Some(drawn);
    }
    db.prepare_cached(
        "INSERT INTO log (place, kind, at, id, canonical, raw, sealed, salt, detail) \
         VALUES ((SELECT coalesce(max(place), -1) + 1 FROM log), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        number(event.kind),
        event.at.as_millis(),
        event.id,
        event.canonical.map(|d| d.0),
        event.raw.map(|d| d.0),
        sealed,
        salt,
        event.detail.as_ref().map(ToString::to_string),
    ])?;
    Ok(db.last_insert_rowid().unsigned_abs())
}

/// That a message was taken. It has no detail: everything about it is in its text.
pub(super) fn accepted(arrival: &Arrival) -> Event<'_> {
    let text = arrival.received.as_deref().unwrap_or(&arrival.text);
    Event {
        id: Some(arrival.id()),
        canonical: Some(arrival.digest),
        raw: Some(Digest::of(text.as_bytes())),
        ..Event::new(EventKind::Accepted, arrival.at)
    }
}

/// Where a message that came again is in the log. What the person of this store took in before is taken by the relay now.
pub(super) fn known(db: &Connection, found: &Known, arrival: &Arrival) -> Step<u64> {
    let entry: Option<i64> = db
        .prepare_cached("SELECT entry FROM intake WHERE seq = ?1")?
        .query_row(params![found.seq], |row| row.get(0))?;
    if let Some(entry) = entry {
        return Ok(entry.unsigned_abs());
    }
    let event = Event {
        id: Some(&found.id),
        ..accepted(arrival)
    };
    let index = append(db, &event)?;
    db.prepare_cached("UPDATE intake SET entry = ?2 WHERE seq = ?1")?
        .execute(params![found.seq, index.cast_signed()])?;
    Ok(index)
}

/// Another text of a message is kept than the one that was taken: that is an entry of its own.
pub(super) fn renewed(db: &Connection, seq: i64, arrival: &Arrival) -> Step<()> {
    let (id, entry): (String, Option<i64>) = db
        .prepare_cached("SELECT id, entry FROM intake WHERE seq = ?1")?
        .query_row(params![seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if entry.is_none() {
        return Ok(());
    }
    let event = Event {
        id: Some(&id),
        ..accepted(arrival)
    };
    let index = append(db, &event)?;
    db.prepare_cached("UPDATE intake SET renewed = ?2 WHERE seq = ?1")?
        .execute(params![seq, index.cast_signed()])?;
    Ok(())
}

/// Gives the messages that a relay took before there was a log their entries, in the order in which they came.
pub(super) fn adopt(db: &Connection) -> Step<()> {
    let mut find = db.prepare(
        "SELECT seq, id, at, digest, coalesce(received, text) AS text FROM intake WHERE peer IS NOT NULL ORDER BY seq",
    )?;
    let mut rows = find.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get("id")?;
        let text: String = row.get("text")?;
        let event = Event {
            id: Some(&id),
            canonical: Some(Digest(row.get("digest")?)),
            raw: (!text.is_empty()).then(|| Digest::of(text.as_bytes())),
            ..Event::new(EventKind::Accepted, Timestamp::from_millis(row.get("at")?))
        };
        let entry = append(db, &event)?;
        db.prepare_cached("UPDATE intake SET entry = ?2 WHERE seq = ?1")?
            .execute(params![row.get::<_, i64>("seq")?, entry.cast_signed()])?;
    }
    Ok(())
}
