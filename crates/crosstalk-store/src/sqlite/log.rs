//! The log of a relay: one row an entry, which nothing changes and nothing takes away.
//!
//! ```text
//! append ──> log ──> tile, 256 hashes each      written later, in the background
//!                └─> checkpoint                 what the relay signed
//! ```

pub(super) mod check;
mod entry;
mod tile;

use super::SqliteStore;
use super::fault::SqlResult;
use crate::sqlite::sql::{Columns as _, Sql as _, number, position, tuple, value};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{
    self, Event, EventDetail, EventKind, Hash, LogEntry, LogQuery, SignedCheckpoint,
};
use crosstalk_protocol::relay::LoggedFacts;
use crosstalk_protocol::relay::port::{LogHead, LogRoot};
use crosstalk_protocol::store::{Arrival, StoreError};
use rusqlite::{Connection, Row, params};
use tile::Tiles;

/// How many bytes of chance hide a detail.
const SALT: i64 = 16;

/// Writes an entry, as a part of the change that it is about. Its index. Only inside a transaction.
pub(in crate::sqlite) fn append(db: &Connection, event: &Event<'_>) -> SqlResult<u64> {
    write(db, event, None)
}

fn write(db: &Connection, event: &Event<'_>, seq: Option<i64>) -> SqlResult<u64> {
    let place = size(db)?;
    write_at(db, place, event, seq)?;
    Ok(place)
}

/// Writes the entry at the next place; `seq` is the message whose text it took.
pub(super) fn write_at(
    db: &Connection,
    place: u64,
    event: &Event<'_>,
    seq: Option<i64>,
) -> SqlResult<()> {
    let (mut salt, mut sealed) = (None, None);
    if let Some(detail) = &event.detail {
        let drawn: Vec<u8> = db.one("SELECT randomblob(?1)", params![SALT], value)?;
        sealed = Some(detail.digest(&drawn).0);
        salt = Some(drawn);
    }
    let sql = "INSERT INTO log (place, kind, at, id, canonical, raw, sealed, salt, detail, seq) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    db.run(
        sql,
        params![
            number(place),
            position(&EventKind::ALL, event.kind),
            event.at.as_millis(),
            event.id,
            event.canonical.map(|d| d.0),
            event.raw.map(|d| d.0),
            sealed,
            salt,
            event.detail.as_ref().map(ToString::to_string),
            seq,
        ],
    )?;
    Ok(())
}

/// The current log entry of a message; nothing if it is not in the log.
pub(super) fn logged(db: &Connection, seq: i64) -> SqlResult<Option<LoggedFacts>> {
    let sql = "SELECT i.digest, l.raw FROM intake i JOIN log l ON l.place = coalesce(i.renewed, \
        i.entry) WHERE i.seq = ?1";
    let found: Option<(Hash, Option<Hash>)> = db.find(sql, params![seq], tuple)?;
    Ok(found.map(|(canonical, raw)| LoggedFacts {
        canonical: Digest(canonical),
        raw: raw.map(Digest),
    }))
}

/// Something that happened to a message that was accepted: its id and its digests are looked up.
pub(in crate::sqlite) fn append_about(
    db: &Connection,
    seq: i64,
    event: Event<'_>,
) -> SqlResult<Option<u64>> {
    // What the person of this store accepted is none of the relay's.
    let Some(logged) = logged(db, seq)? else {
        return Ok(None);
    };
    let id: String = db.one("SELECT id FROM intake WHERE seq = ?1", params![seq], value)?;
    let event = Event {
        id: Some(&id),
        canonical: Some(logged.canonical),
        raw: logged.raw,
        kind: event.kind,
        at: event.at,
        detail: event.detail,
    };
    append(db, &event).map(Some)
}

/// Another text of a message is kept than the one that was accepted: that is an entry of its own. Its index, if the log has the
/// message.
pub(super) fn renewed(db: &Connection, seq: i64, arrival: &Arrival) -> SqlResult<Option<u64>> {
    let sql = "SELECT id, entry FROM intake WHERE seq = ?1";
    let (id, entry): (String, Option<i64>) = db.one(sql, params![seq], tuple)?;
    if entry.is_none() {
        return Ok(None);
    }
    let text = arrival.received.as_deref().unwrap_or(&arrival.text);
    let event = Event {
        id: Some(&id),
        canonical: Some(arrival.digest),
        raw: Some(Digest::of(text.as_bytes())),
        ..Event::new(EventKind::Accepted, arrival.at)
    };
    write(db, &event, Some(seq)).map(Some)
}

/// Writes that the text of a message is erased, before it is. Only inside a transaction.
pub(super) fn erased(db: &Connection, seq: i64, at: Timestamp, why: &str) -> SqlResult<()> {
    let event = Event {
        detail: Some(EventDetail::default().with("why", why)),
        ..Event::new(EventKind::Erased, at)
    };
    append_about(db, seq, event)?;
    Ok(())
}

/// The time, where nobody else tells it.
pub(super) fn now(db: &Connection) -> SqlResult<Timestamp> {
    let sql = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";
    let millis = db.one(sql, [], value)?;
    Ok(Timestamp::from_millis(millis))
}

/// Gives the messages that a relay took before there was a log their entries, in the order in which they came.
pub(super) fn adopt(db: &Connection) -> SqlResult<()> {
    let mut find = db.prepare(
        "SELECT seq, id, at, digest, coalesce(received, text) AS text FROM intake WHERE peer IS NOT NULL ORDER BY seq",
    )?;
    let mut rows = find.query([])?;
    while let Some(row) = rows.next()? {
        let (seq, id, text): (i64, String, String) =
            (row.get("seq")?, row.get("id")?, row.get("text")?);
        let event = Event {
            id: Some(&id),
            canonical: Some(row.digest("digest")?),
            raw: (!text.is_empty()).then(|| Digest::of(text.as_bytes())),
            ..Event::new(EventKind::Accepted, row.time("at")?)
        };
        let entry = write(db, &event, Some(seq))?;
        let sql = "UPDATE intake SET entry = ?2 WHERE seq = ?1";
        db.run(sql, params![seq, number(entry)])?;
    }
    Ok(())
}

/// How many entries there are.
pub(super) fn size(db: &Connection) -> SqlResult<u64> {
    let last: Option<i64> = db.one("SELECT max(place) FROM log", [], value)?;
    Ok(last.map_or(0, |place| place.unsigned_abs() + 1))
}

impl SqliteStore {
    /// How many entries there are.
    pub fn log_size(&self) -> Result<u64, StoreError> {
        self.read(size)
    }

    /// The root of the first so many entries; nothing if there are fewer.
    pub fn log_root(&self, wanted: u64) -> Result<Option<Hash>, StoreError> {
        self.read(|db| match wanted <= size(db)? {
            true => audit::root(&mut Tiles::new(db), wanted).map(Some),
            false => Ok(None),
        })
    }

    /// The proof that an entry is among the first so many; nothing if it is not.
    pub fn log_inclusion(&self, index: u64, wanted: u64) -> Result<Option<Vec<Hash>>, StoreError> {
        self.read(|db| match index < wanted && wanted <= size(db)? {
            true => audit::inclusion(&mut Tiles::new(db), index, wanted).map(Some),
            false => Ok(None),
        })
    }

    /// The proof that the first so many entries are the beginning of more; nothing if there are fewer.
    pub fn log_consistency(&self, from: u64, to: u64) -> Result<Option<Vec<Hash>>, StoreError> {
        self.read(|db| match from <= to && to <= size(db)? {
            true => audit::consistency(&mut Tiles::new(db), from, to).map(Some),
            false => Ok(None),
        })
    }

    /// Entries in their order.
    pub fn log_entries(&self, asked: &LogQuery) -> Result<Vec<LogEntry>, StoreError> {
        self.read(|db| entry::entries(db, asked))
    }

    /// The index of the entry with which a message was accepted.
    pub fn log_index(&self, id: &str) -> Result<Option<u64>, StoreError> {
        self.read(|db| {
            let sql = "SELECT coalesce(renewed, entry) FROM intake WHERE id = ?1";
            let entry: Option<Option<i64>> = db.find(sql, params![id], value)?;
            Ok(entry.flatten().map(i64::unsigned_abs))
        })
    }

    /// The latest checkpoint that was kept.
    pub fn checkpoint(&self) -> Result<Option<SignedCheckpoint>, StoreError> {
        self.read(latest_checkpoint)
    }

    /// Every checkpoint that is kept, the oldest first: the latest, and one for each hour before.
    pub fn checkpoints(&self) -> Result<Vec<SignedCheckpoint>, StoreError> {
        self.read(all_checkpoints)
    }

    /// Keeps a checkpoint.
    pub fn keep_checkpoint(&mut self, sealed: &SignedCheckpoint) -> Result<(), StoreError> {
        self.keep_latest_checkpoint(sealed).map(drop)
    }

    /// Writes entries that are about no change of the store.
    pub fn log(&mut self, events: &[Event<'_>]) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        self.write(|db| events.iter().try_for_each(|e| append(db, e).map(drop)))
    }

    /// Stores hashes of entries that have none yet, so many groups of 256 at most. Whether there are more.
    pub fn store_hashes(&mut self, limit: usize) -> Result<bool, StoreError> {
        // Without work to do, this takes no write lock from others.
        match self.read(|db| tile::is_behind(db, size(db)?))? {
            true => self.write(|db| tile::store(db, size(db)?, limit)),
            false => Ok(false),
        }
    }
}

impl SqliteStore {
    /// Keeps a checkpoint, unless there is a later one. The latest.
    pub(super) fn keep_latest_checkpoint(
        &mut self,
        new: &SignedCheckpoint,
    ) -> Result<SignedCheckpoint, StoreError> {
        self.write(|db| match latest_checkpoint(db)? {
            Some(latest) if latest.size >= new.size => Ok(latest),
            _ => keep_checkpoint(db, new).map(|()| new.clone()),
        })
    }

    /// How many entries the log has, and the latest checkpoint.
    pub(super) fn log_head(&self) -> Result<LogHead, StoreError> {
        self.read(|db| {
            Ok(LogHead {
                size: size(db)?,
                checkpoint: latest_checkpoint(db)?,
            })
        })
    }

    /// The root of the whole log.
    pub(super) fn whole_root(&self) -> Result<LogRoot, StoreError> {
        self.read(|db| {
            let size = size(db)?;
            let root = audit::root(&mut Tiles::new(db), size)?;
            Ok(LogRoot { size, root })
        })
    }
}

const HOUR_MILLIS: i64 = 3_600_000;

fn sealed(row: &Row<'_>) -> SqlResult<SignedCheckpoint> {
    let size: i64 = row.get("size")?;
    Ok(SignedCheckpoint {
        size: size.unsigned_abs(),
        at: row.time("at")?,
        root: row.get("root")?,
        note: row.get("note")?,
    })
}

fn latest_checkpoint(db: &Connection) -> SqlResult<Option<SignedCheckpoint>> {
    let sql = "SELECT size, at, root, note FROM checkpoint ORDER BY size DESC LIMIT 1";
    db.find(sql, [], sealed)
}

pub(super) fn all_checkpoints(db: &Connection) -> SqlResult<Vec<SignedCheckpoint>> {
    let mut find = db.prepare("SELECT size, at, root, note FROM checkpoint ORDER BY size")?;
    let rows = find.query_map([], sealed)?;
    rows.collect()
}

/// Keeps a checkpoint that is the latest. The one before goes, unless it is the first of its hour. Only inside a transaction.
fn keep_checkpoint(db: &Connection, new: &SignedCheckpoint) -> SqlResult<()> {
    let sql = "SELECT size, at FROM checkpoint ORDER BY size DESC LIMIT 2";
    let last = db.all(sql, [], tuple::<(i64, i64)>)?;
    if let [(size, at), (_, before)] = last.as_slice()
        && at.div_euclid(HOUR_MILLIS) == before.div_euclid(HOUR_MILLIS)
    {
        db.run("DELETE FROM checkpoint WHERE size = ?1", params![size])?;
    }
    let sql = "INSERT INTO checkpoint (size, at, root, note) VALUES (?1, ?2, ?3, ?4)";
    db.run(
        sql,
        params![number(new.size), new.at.as_millis(), new.root, new.note],
    )?;
    Ok(())
}
