//! Entries as they are asked for.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::{
    EventDetail, EventKind, Hash, Leaf, LogEntry, LogQuery, leaf_hash,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::PgResult;
use super::sql::{Db, PgColumns as _, member, number, params, position, tuple, unknown, value};

const ENTRY: &str = "l.place, l.kind, l.at, l.id, l.canonical, l.raw, l.sealed, l.salt, l.detail";

/// The entries about the messages that are `wanted`: where they were accepted, and what happened to them.
const PLACES: &str = "SELECT i.chain, i.entry FROM wanted JOIN intake i ON i.seq = wanted.seq UNION ALL \
    SELECT r.chain, r.place FROM wanted JOIN renewal r ON r.seq = wanted.seq UNION ALL SELECT e.chain, e.place \
    FROM wanted JOIN intake i ON i.seq = wanted.seq JOIN chain_entry e ON \
    e.kind <> 0 AND e.id = i.id";

/// The messages of a thread: indexed, erased, quarantined, and those that are not indexed yet.
const THREAD_MESSAGES: &str = "SELECT seq FROM message WHERE thread = ? UNION ALL SELECT seq FROM \
    intake WHERE thread = ? AND text = '' UNION ALL SELECT i.seq FROM quarantine JOIN intake i \
    ON i.seq = quarantine.seq WHERE i.thread = ? UNION ALL SELECT seq FROM intake WHERE thread = ? \
    AND seq > (SELECT seq FROM progress WHERE name = 'indexed')";

pub(super) fn leaf(row: &Row) -> PgResult<Leaf> {
    Ok(Leaf {
        kind: member("kind of entry", &EventKind::ALL, row.try_get("kind")?)?,
        at: row.time("at")?,
        canonical: row.opt_digest("canonical")?,
        raw: row.opt_digest("raw")?,
        detail: row.opt_digest("sealed")?,
        id: row.try_get("id")?,
    })
}

fn entry(row: &Row) -> PgResult<LogEntry> {
    let place: i64 = row.try_get("place")?;
    let salt: Option<Vec<u8>> = row.try_get("salt")?;
    let detail: Option<String> = row.try_get("detail")?;
    let detail = match detail {
        Some(text) => Some(EventDetail::parse(&text).ok_or_else(|| unknown("detail", &text))?),
        None => None,
    };
    Ok(LogEntry {
        index: place.unsigned_abs(),
        leaf: leaf(row)?,
        detail: salt.zip(detail),
        text: None,
        parties: None,
    })
}

/// The hashes of entries of a chain from a position on.
pub(super) fn hashes(db: &Db, chain: i64, from: u64, limit: u64) -> PgResult<Vec<Hash>> {
    let sql = format!(
        "SELECT {ENTRY} FROM chain_entry l WHERE chain = $1 AND place >= $2 AND place < $3 ORDER BY place"
    );
    let asked = params![chain, number(from), number(from.saturating_add(limit))];
    db.all(&sql, asked, |row| {
        Ok(leaf_hash(leaf(row)?.to_string().as_bytes()))
    })
}

pub(super) fn entries(db: &Db, asked: &LogQuery) -> PgResult<Vec<LogEntry>> {
    let chain = number(asked.chain.0);
    let mut given: Vec<Box<dyn ToSql + Sync>> = vec![Box::new(chain), Box::new(number(asked.from))];
    let mut wanted = vec!["l.chain = $1 AND l.place >= $2".to_owned()];
    let mut want = |text: &str, value: Box<dyn ToSql + Sync>| {
        given.push(value);
        wanted.push(text.replace('?', &format!("${}", given.len())));
    };
    if let Some(to) = asked.to {
        want("l.place < ?", Box::new(number(to)));
    }
    if let Some(since) = asked.since {
        want("l.at >= ?", Box::new(since.as_millis()));
    }
    if let Some(until) = asked.until {
        want("l.at <= ?", Box::new(until.as_millis()));
    }
    if let Some(id) = &asked.id {
        want(
            &format!(
                "(l.chain, l.place) IN (WITH wanted (seq) AS (SELECT seq FROM intake WHERE id = ?) {PLACES} UNION ALL \
                 SELECT chain, place FROM chain_entry WHERE kind <> 0 AND id = ?)"
            ),
            Box::new(id.clone()),
        );
    }
    if let Some(thread) = &asked.thread {
        want(
            &format!("(l.chain, l.place) IN (WITH wanted (seq) AS ({THREAD_MESSAGES}) {PLACES})"),
            Box::new(thread.clone()),
        );
    }
    if !asked.kinds.is_empty() {
        let kinds: Vec<String> = asked
            .kinds
            .iter()
            .map(|k| position(&EventKind::ALL, *k).to_string())
            .collect();
        wanted.push(format!("l.kind IN ({})", kinds.join(", ")));
    }
    let order = if asked.newest { "DESC" } else { "ASC" };
    let limit = number(asked.limit);
    let sql = format!(
        "SELECT {ENTRY} FROM chain_entry l WHERE {} ORDER BY l.place {order} LIMIT {limit}",
        wanted.join(" AND ")
    );
    let given: Vec<&(dyn ToSql + Sync)> = given.iter().map(AsRef::as_ref).collect();
    let mut entries = db.all(&sql, &given, entry)?;
    if asked.newest {
        entries.reverse();
    }
    for entry in &mut entries {
        if entry.leaf.kind == EventKind::Accepted {
            entry.parties = parties(db, chain, entry.index)?;
            if let Some(now) = asked.texts {
                entry.text = text(db, chain, entry.index, now)?;
            }
        }
    }
    Ok(entries)
}

/// Who sent the message that an entry took, and to whom, if its text is kept.
fn parties(db: &Db, chain: i64, index: u64) -> PgResult<Option<(String, String)>> {
    let sql = "SELECT m.sender, m.receiver FROM chain_entry l JOIN message m ON m.seq = l.seq WHERE \
        l.chain = $1 AND l.place = $2";
    db.find(sql, params![chain, number(index)], tuple)
}

/// The text of the message that an entry took, if it is kept and its time is not over.
fn text(db: &Db, chain: i64, index: u64, now: Timestamp) -> PgResult<Option<String>> {
    let sql = "SELECT coalesce(i.received, i.text) FROM chain_entry l JOIN intake i ON i.seq = l.seq \
        WHERE l.chain = $1 AND l.place = $2 AND i.text <> '' AND coalesce(i.renewed, i.entry) = l.place AND \
        l.chain = CASE WHEN i.renewed IS NULL THEN i.chain ELSE i.renewed_chain END AND \
        (i.expires IS NULL OR i.expires > $3)";
    db.find(sql, params![chain, number(index), now.as_millis()], value)
}
