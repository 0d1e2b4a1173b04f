//! The log of a relay: one row an entry, which nothing changes and nothing takes away.
//!
//! ```text
//! append ──> log ──> tile, 256 hashes each      written later, in the background
//!                └─> checkpoint                 what the relay signed
//! ```

pub(super) mod check;
mod checkpoint;
mod entry;
mod tile;

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{
    self, Detail, Event, EventKind, Hash, LogEntry, LogQuery, LogStore, Sealed,
};
use crosstalk_protocol::relay::Admission;
use crosstalk_protocol::store::{Arrival, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::SqliteStore;
use super::accept::Known;
use super::fault::Step;
use tile::Tiles;

/// How many bytes of chance hide a detail.
const SALT: i64 = 16;

/// The number of a kind in its column.
fn number(kind: EventKind) -> i64 {
    let place = EventKind::ALL.iter().position(|k| *k == kind);
    place.map_or(-1, |p| i64::try_from(p).unwrap_or(-1))
}

/// An index in its column.
fn signed(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

fn number_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Writes an entry, as a part of the change that it is about. Its index. Only inside of a transaction.
pub(in crate::sqlite) fn append(db: &Connection, event: &Event<'_>) -> Step<u64> {
    write(db, event, None)
}

fn write(db: &Connection, event: &Event<'_>, seq: Option<i64>) -> Step<u64> {
    let (mut salt, mut sealed) = (None, None);
    if let Some(detail) = &event.detail {
        let drawn: Vec<u8> = db
            .prepare_cached("SELECT randomblob(?1)")?
            .query_row(params![SALT], |row| row.get(0))?;
        sealed = Some(detail.digest(&drawn).0);
        salt = Some(drawn);
    }
    db.prepare_cached(
        "INSERT INTO log (place, kind, at, id, canonical, raw, sealed, salt, detail, seq) \
         VALUES ((SELECT coalesce(max(place), -1) + 1 FROM log), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
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
        seq,
    ])?;
    Ok(db.last_insert_rowid().unsigned_abs())
}

/// Something that happened to a message that was taken: its id and its digests are looked up.
pub(in crate::sqlite) fn append_about(
    db: &Connection,
    seq: i64,
    event: Event<'_>,
) -> Step<Option<u64>> {
    let message: Option<(String, Hash, Option<Hash>)> = db
        .prepare_cached(
            "SELECT i.id, i.digest, l.raw FROM intake i JOIN log l ON l.place = coalesce(i.renewed, i.entry) \
             WHERE i.seq = ?1",
        )?
        .query_row(params![seq], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    // What the person of this store took in is none of the relay's.
    let Some((id, canonical, raw)) = message else {
        return Ok(None);
    };
    let event = Event {
        id: Some(&id),
        canonical: Some(Digest(canonical)),
        raw: raw.map(Digest),
        kind: event.kind,
        at: event.at,
        detail: event.detail,
    };
    append(db, &event).map(Some)
}

/// Writes that a message was taken. It has no detail: everything about it is in its text. Its row names the next place of
/// the log already.
pub(super) fn accept(db: &Connection, seq: i64, admission: &Admission) -> Step<u64> {
    let arrival = &admission.arrival;
    write(
        db,
        &accepted(arrival.id(), arrival, admission.raw),
        Some(seq),
    )
}

/// That a message was taken, with the digest of its text.
pub(super) fn accepted<'e>(id: &'e str, arrival: &Arrival, raw: Digest) -> Event<'e> {
    Event {
        id: Some(id),
        canonical: Some(arrival.digest),
        raw: Some(raw),
        ..Event::new(EventKind::Accepted, arrival.at)
    }
}

/// Where a message that came again is in the log. What the person of this store took in before is taken by the relay now.
pub(super) fn known(db: &Connection, found: &Known, arrival: &Arrival) -> Step<u64> {
    let (entry, text): (Option<i64>, String) = db
        .prepare_cached("SELECT entry, coalesce(received, text) FROM intake WHERE seq = ?1")?
        .query_row(params![found.seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if let Some(entry) = entry {
        return Ok(entry.unsigned_abs());
    }
    let event = accepted(&found.id, arrival, Digest::of(text.as_bytes()));
    let index = write(db, &event, Some(found.seq))?;
    db.prepare_cached("UPDATE intake SET entry = ?2 WHERE seq = ?1")?
        .execute(params![found.seq, signed(index)])?;
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
    let text = arrival.received.as_deref().unwrap_or(&arrival.text);
    let event = accepted(&id, arrival, Digest::of(text.as_bytes()));
    let index = write(db, &event, Some(seq))?;
    db.prepare_cached("UPDATE intake SET renewed = ?2 WHERE seq = ?1")?
        .execute(params![seq, signed(index)])?;
    Ok(())
}

/// Writes that the text of a message is erased, before it is. Only inside of a transaction.
pub(super) fn erased(db: &Connection, seq: i64, at: Timestamp, why: &str) -> Step<()> {
    let event = Event {
        detail: Some(Detail::default().with("why", why)),
        ..Event::new(EventKind::Erased, at)
    };
    append_about(db, seq, event)?;
    Ok(())
}

/// The time, where nobody else tells it.
pub(super) fn now(db: &Connection) -> Step<Timestamp> {
    let millis = db
        .prepare_cached("SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)")?
        .query_row([], |row| row.get(0))?;
    Ok(Timestamp::from_millis(millis))
}

/// Gives the messages that a relay took before there was a log their entries, in the order in which they came.
pub(super) fn adopt(db: &Connection) -> Step<()> {
    let mut find = db.prepare(
        "SELECT seq, id, at, digest, coalesce(received, text) AS text FROM intake WHERE peer IS NOT NULL ORDER BY seq",
    )?;
    let mut rows = find.query([])?;
    while let Some(row) = rows.next()? {
        let (seq, id, text): (i64, String, String) =
            (row.get("seq")?, row.get("id")?, row.get("text")?);
        let event = Event {
            id: Some(&id),
            canonical: Some(Digest(row.get("digest")?)),
            raw: (!text.is_empty()).then(|| Digest::of(text.as_bytes())),
            ..Event::new(EventKind::Accepted, Timestamp::from_millis(row.get("at")?))
        };
        let entry = write(db, &event, Some(seq))?;
        db.prepare_cached("UPDATE intake SET entry = ?2 WHERE seq = ?1")?
            .execute(params![seq, signed(entry)])?;
    }
    Ok(())
}

/// How many entries there are.
fn size(db: &Connection) -> Step<u64> {
    let last: Option<i64> = db
        .prepare_cached("SELECT max(place) FROM log")?
        .query_row([], |row| row.get(0))?;
    Ok(last.map_or(0, |place| place.unsigned_abs() + 1))
}

impl LogStore for SqliteStore {
    fn log_size(&self) -> Result<u64, StoreError> {
        self.read(size)
    }

    fn log_root(&self, wanted: u64) -> Result<Option<Hash>, StoreError> {
        self.read(|db| match wanted <= size(db)? {
            true => audit::root(&mut Tiles::new(db), wanted).map(Some),
            false => Ok(None),
        })
    }

    fn log_inclusion(&self, index: u64, wanted: u64) -> Result<Option<Vec<Hash>>, StoreError> {
        self.read(|db| match index < wanted && wanted <= size(db)? {
            true => audit::inclusion(&mut Tiles::new(db), index, wanted).map(Some),
            false => Ok(None),
        })
    }

    fn log_consistency(&self, from: u64, to: u64) -> Result<Option<Vec<Hash>>, StoreError> {
        self.read(|db| match from <= to && to <= size(db)? {
            true => audit::consistency(&mut Tiles::new(db), from, to).map(Some),
            false => Ok(None),
        })
    }

    fn log_entries(&self, asked: &LogQuery) -> Result<Vec<LogEntry>, StoreError> {
        self.read(|db| entry::entries(db, asked))
    }

    fn log_index(&self, id: &str) -> Result<Option<u64>, StoreError> {
        self.read(|db| {
            let entry: Option<Option<i64>> = db
                .prepare_cached("SELECT coalesce(renewed, entry) FROM intake WHERE id = ?1")?
                .query_row(params![id], |row| row.get(0))
                .optional()?;
            Ok(entry.flatten().map(i64::unsigned_abs))
        })
    }

    fn checkpoint(&self) -> Result<Option<Sealed>, StoreError> {
        self.read(checkpoint::latest)
    }

    fn checkpoints(&self) -> Result<Vec<Sealed>, StoreError> {
        self.read(checkpoint::all)
    }

    fn keep_checkpoint(&mut self, sealed: &Sealed) -> Result<(), StoreError> {
        self.write(|db| checkpoint::keep(db, sealed))
    }

    fn log(&mut self, events: &[Event<'_>]) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        self.write(|db| events.iter().try_for_each(|e| append(db, e).map(drop)))
    }

    fn store_hashes(&mut self, most: usize) -> Result<bool, StoreError> {
        // Who has nothing to do does not keep others from writing.
        match self.read(|db| tile::is_behind(db, size(db)?))? {
            true => self.write(|db| tile::store(db, size(db)?, most)),
            false => Ok(false),
        }
    }
}
