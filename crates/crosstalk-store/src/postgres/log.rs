//! The logs of the relays: one row an entry, which nothing changes and nothing takes away. Each relay writes the chain of its
//! key, and reads all of them.
//!
//! ```text
//! append ──> chain_entry ──> chain_tile, 256 hashes each      written later, in the background
//!                        └─> chain_checkpoint                 what the relay signed
//! ```

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::{
    self, ChainId, Event, EventDetail, EventKind, Hash, SignedCheckpoint,
};
use crosstalk_protocol::relay::LoggedFacts;
use crosstalk_protocol::relay::port::{
    JoinedChain, LogChain, LogHead, LogProof, LogRoot, LogWriter,
};
use tokio_postgres::Row;

use super::fault::{PgResult, SqlError};
use super::schema::VERSION;
use super::sql::{Db, PgColumns as _, bytes, number, params, position, tuple, value};
use super::tile::{self, PgTiles};

/// How many bytes of chance hide a detail.
const SALT_BYTES: usize = 16;

/// Registers a relay, unless it is known, and gives it the chain of its key. Only with the turn: the number of a new chain is
/// the next one. The name under which the relays of the database are known, and what this relay writes with.
pub(super) fn join(db: &Db, writer: &LogWriter) -> PgResult<(String, JoinedChain)> {
    let sql = "INSERT INTO relay_identity AS i (one, name, secret) VALUES (TRUE, $1, $2) ON CONFLICT (one) DO UPDATE \
        SET secret = coalesce(i.secret, excluded.secret) WHERE i.name = excluded.name";
    db.run(sql, params![writer.name, bytes(&writer.secret)])?;
    let sql = "SELECT name, secret FROM relay_identity";
    let (name, secret) = db.one(sql, params![], |row| {
        Ok((row.try_get::<_, String>("name")?, row.opt_digest("secret")?))
    })?;
    let (chain, secret) = match secret.filter(|_| name == writer.name) {
        Some(secret) => (ChainId(register(db, writer)?), secret),
        None => (ChainId::FIRST, writer.secret),
    };
    Ok((name, JoinedChain { chain, secret }))
}

fn register(db: &Db, writer: &LogWriter) -> PgResult<u64> {
    let sql = "INSERT INTO chain (number, key, since) SELECT coalesce(max(number) + 1, 0), $1, $2 FROM chain \
        ON CONFLICT (key) DO NOTHING";
    let is_new = db.run(sql, params![writer.key, writer.at.as_millis()])? > 0;
    let sql = "SELECT number FROM chain WHERE key = $1";
    let number: i64 = db.one(sql, params![writer.key], value)?;
    // Programs of the version before know one chain, and its key.
    match number {
        _ if !is_new => {}
        0 => {
            let sql = "INSERT INTO log_key (one, key) VALUES (TRUE, $1) ON CONFLICT DO NOTHING";
            db.run(sql, params![writer.key])?;
        }
        _ => {
            let sql = "UPDATE crosstalk_version SET oldest = $1";
            db.run(sql, params![VERSION])?;
        }
    }
    Ok(number.unsigned_abs())
}

/// All chains that are registered.
pub(super) fn chains(db: &Db) -> PgResult<Vec<LogChain>> {
    let sql = "SELECT number, key, since FROM chain ORDER BY number";
    db.all(sql, params![], |row| {
        Ok(LogChain {
            id: ChainId(row.seq("number")?),
            key: row.try_get("key")?,
            since: row.time("since")?,
        })
    })
}

/// Writes an entry, as a part of the change that it is about. Its index. Only inside a transaction.
pub(super) fn append(db: &Db, event: &Event<'_>) -> PgResult<u64> {
    write(db, event, None)
}

fn write(db: &Db, event: &Event<'_>, seq: Option<i64>) -> PgResult<u64> {
    let place = size(db, db.chain())?;
    write_at(db, place, event, seq)?;
    Ok(place)
}

/// Writes the entry at the next place; `seq` is the message whose text it took.
pub(super) fn write_at(db: &Db, place: u64, event: &Event<'_>, seq: Option<i64>) -> PgResult<()> {
    write_all(db, place, &[(event, seq)])
}

/// Writes entries from the next place on, in one statement.
pub(super) fn write_all(
    db: &Db,
    first: u64,
    entries: &[(&Event<'_>, Option<i64>)],
) -> PgResult<()> {
    let rows = LogRows::new(db.chain(), first, entries)?;
    db.run(LogRows::INSERT, &rows.given())?;
    Ok(())
}

/// Entries of the log in columns.
pub(super) struct LogRows<'e> {
    chain: i64,
    places: Vec<i64>,
    kinds: Vec<i64>,
    times: Vec<i64>,
    ids: Vec<Option<&'e str>>,
    canonicals: Vec<Option<&'e [u8]>>,
    raws: Vec<Option<&'e [u8]>>,
    sealed: Vec<Option<Vec<u8>>>,
    salts: Vec<Option<Vec<u8>>>,
    details: Vec<Option<String>>,
    seqs: Vec<Option<i64>>,
}

impl<'e> LogRows<'e> {
    pub(super) const INSERT: &'static str = "INSERT INTO chain_entry (chain, place, kind, at, id, canonical, raw, sealed, salt, \
        detail, seq) SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[], \
        $7::bytea[], $8::bytea[], $9::bytea[], $10::text[], $11::bigint[])";

    pub(super) fn new(
        chain: i64,
        first: u64,
        entries: &[(&'e Event<'_>, Option<i64>)],
    ) -> PgResult<Self> {
        let mut rows = Self {
            chain,
            places: Vec::new(),
            kinds: Vec::new(),
            times: Vec::new(),
            ids: Vec::new(),
            canonicals: Vec::new(),
            raws: Vec::new(),
            sealed: Vec::new(),
            salts: Vec::new(),
            details: Vec::new(),
            seqs: Vec::new(),
        };
        for (place, (event, seq)) in (first..).zip(entries) {
            let (mut salt, mut sealed) = (None, None);
            if let Some(detail) = &event.detail {
                let mut drawn = vec![0; SALT_BYTES];
                let filled = getrandom::fill(&mut drawn);
                filled.map_err(|e| SqlError::Row(format!("there are no random numbers: {e}")))?;
                sealed = Some(detail.digest(&drawn).0.to_vec());
                salt = Some(drawn);
            }
            rows.places.push(number(place));
            rows.kinds.push(position(&EventKind::ALL, event.kind));
            rows.times.push(event.at.as_millis());
            rows.ids.push(event.id);
            rows.canonicals.push(event.canonical.as_ref().map(bytes));
            rows.raws.push(event.raw.as_ref().map(bytes));
            rows.sealed.push(sealed);
            rows.salts.push(salt);
            let detail = event.detail.as_ref().map(ToString::to_string);
            rows.details.push(detail);
            rows.seqs.push(*seq);
        }
        Ok(rows)
    }

    pub(super) fn given(&self) -> [&(dyn tokio_postgres::types::ToSql + Sync); 11] {
        [
            &self.chain,
            &self.places,
            &self.kinds,
            &self.times,
            &self.ids,
            &self.canonicals,
            &self.raws,
            &self.sealed,
            &self.salts,
            &self.details,
            &self.seqs,
        ]
    }
}

/// The current log entry of a message; nothing if it is not in the log.
pub(super) fn logged(db: &Db, seq: i64) -> PgResult<Option<LoggedFacts>> {
    let sql = "SELECT i.digest, l.raw FROM intake i JOIN chain_entry l ON l.place = coalesce(i.renewed, \
        i.entry) AND l.chain = CASE WHEN i.renewed IS NULL THEN i.chain ELSE i.renewed_chain END WHERE i.seq = $1";
    db.find(sql, params![seq], |row| {
        Ok(LoggedFacts {
            canonical: row.digest("digest")?,
            raw: row.opt_digest("raw")?,
        })
    })
}

/// Something that happened to a message that was accepted: its id and its digests are looked up.
pub(super) fn append_about(db: &Db, seq: i64, event: Event<'_>) -> PgResult<Option<u64>> {
    // What the person of this store accepted is none of the relay's.
    let Some(logged) = logged(db, seq)? else {
        return Ok(None);
    };
    let id: String = db.one("SELECT id FROM intake WHERE seq = $1", params![seq], value)?;
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

/// Writes that the text of a message is erased, before it is. Only inside a transaction.
pub(super) fn erased(db: &Db, seq: i64, at: Timestamp, why: &str) -> PgResult<()> {
    let event = Event {
        detail: Some(EventDetail::default().with("why", why)),
        ..Event::new(EventKind::Erased, at)
    };
    append_about(db, seq, event)?;
    Ok(())
}

/// How many entries a chain has.
fn size(db: &Db, chain: i64) -> PgResult<u64> {
    let sql = "SELECT max(place) FROM chain_entry WHERE chain = $1";
    let last: Option<i64> = db.one(sql, params![chain], value)?;
    Ok(last.map_or(0, |place| place.unsigned_abs() + 1))
}

/// A proof; nothing if the chain has fewer entries.
pub(super) fn proof(db: &Db, chain: ChainId, proof: LogProof) -> PgResult<Option<Vec<Hash>>> {
    let chain = number(chain.0);
    let entries = size(db, chain)?;
    match proof {
        LogProof::Inclusion { index, size } if index < size && size <= entries => {
            audit::inclusion(&mut PgTiles::new(db, chain), index, size).map(Some)
        }
        LogProof::Consistency { from, to } if from <= to && to <= entries => {
            audit::consistency(&mut PgTiles::new(db, chain), from, to).map(Some)
        }
        LogProof::Inclusion { .. } | LogProof::Consistency { .. } => Ok(None),
    }
}

/// Writes entries that are about no change of the store.
pub(super) fn append_all(db: &Db, events: &[Event<'_>]) -> PgResult<()> {
    let entries: Vec<(&Event<'_>, Option<i64>)> = events.iter().map(|e| (e, None)).collect();
    write_all(db, size(db, db.chain())?, &entries)
}

/// Stores hashes of own entries that have none yet, so many groups of 256 at most. Whether there are more. Only inside a
/// transaction.
pub(super) fn store_hashes(db: &Db, limit: usize) -> PgResult<bool> {
    tile::store(db, size(db, db.chain())?, limit)
}

/// Keeps a checkpoint, unless there is a later one. The latest.
pub(super) fn keep_latest_checkpoint(
    db: &Db,
    new: &SignedCheckpoint,
) -> PgResult<SignedCheckpoint> {
    match latest_checkpoint(db, db.chain())? {
        Some(latest) if latest.size >= new.size => Ok(latest),
        _ => keep_checkpoint(db, new).map(|()| new.clone()),
    }
}

/// How many entries a chain has, and its latest checkpoint.
pub(super) fn head(db: &Db, chain: ChainId) -> PgResult<LogHead> {
    let chain = number(chain.0);
    Ok(LogHead {
        size: size(db, chain)?,
        checkpoint: latest_checkpoint(db, chain)?,
    })
}

/// The root of the whole own chain.
pub(super) fn whole_root(db: &Db) -> PgResult<LogRoot> {
    let chain = db.chain();
    let size = size(db, chain)?;
    let root = audit::root(&mut PgTiles::new(db, chain), size)?;
    Ok(LogRoot { size, root })
}

const HOUR_MILLIS: i64 = 3_600_000;

fn sealed(row: &Row) -> PgResult<SignedCheckpoint> {
    let size: i64 = row.try_get("size")?;
    Ok(SignedCheckpoint {
        size: size.unsigned_abs(),
        at: row.time("at")?,
        root: row.hash("root")?,
        note: row.try_get("note")?,
    })
}

fn latest_checkpoint(db: &Db, chain: i64) -> PgResult<Option<SignedCheckpoint>> {
    let sql = "SELECT size, at, root, note FROM chain_checkpoint WHERE chain = $1 ORDER BY size DESC LIMIT 1";
    db.find(sql, params![chain], sealed)
}

/// Keeps a checkpoint that is the latest. The one before goes, unless it is the first of its hour. Only inside a transaction.
fn keep_checkpoint(db: &Db, new: &SignedCheckpoint) -> PgResult<()> {
    let chain = db.chain();
    let sql = "SELECT size, at FROM chain_checkpoint WHERE chain = $1 ORDER BY size DESC LIMIT 2";
    let last = db.all(sql, params![chain], tuple::<(i64, i64)>)?;
    if let [(size, at), (_, before)] = last.as_slice()
        && at.div_euclid(HOUR_MILLIS) == before.div_euclid(HOUR_MILLIS)
    {
        let sql = "DELETE FROM chain_checkpoint WHERE chain = $1 AND size = $2";
        db.run(sql, params![chain, size])?;
    }
    let sql =
        "INSERT INTO chain_checkpoint (chain, size, at, root, note) VALUES ($1, $2, $3, $4, $5)";
    db.run(
        sql,
        params![
            chain,
            number(new.size),
            new.at.as_millis(),
            new.root.as_slice(),
            new.note
        ],
    )?;
    Ok(())
}
