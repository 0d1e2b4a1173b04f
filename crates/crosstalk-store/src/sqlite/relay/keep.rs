//! What a relay keeps besides messages: tokens, what agents can do, which attachments are there.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::{Agent, Role, TokenCounts, TokenRecord};
use crosstalk_protocol::store::party;
use rusqlite::{Connection, params};

use super::time;
use crate::sqlite::derive::word;
use crate::sqlite::fault::Step;

/// Several texts in one column, one a line.
fn lines(texts: &[String]) -> String {
    let lines: Vec<String> = texts.iter().map(|t| t.replace(['\n', '\r'], " ")).collect();
    lines.join("\n")
}

fn texts(lines: &str) -> Vec<String> {
    lines.lines().map(str::to_owned).collect()
}

pub(super) fn add_token(db: &Connection, token: &TokenRecord) -> Step<bool> {
    let added = db
        .prepare_cached(
            "INSERT INTO token (name, hash, role, addresses, created_at, expires_at, revoked_at, courier) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            token.name,
            token.hash.0,
            token.role.as_str(),
            lines(&token.addresses),
            token.created_at.as_millis(),
            token.expires_at.map(|t| t.as_millis()),
            token.revoked_at.map(|t| t.as_millis()),
            lines(&token.courier),
        ])?;
    Ok(added > 0)
}

pub(super) fn tokens(db: &Connection) -> Step<Vec<TokenRecord>> {
    let mut find = db.prepare_cached("SELECT * FROM token ORDER BY name")?;
    let rows = find.query_map([], |row| {
        let addresses: String = row.get("addresses")?;
        let courier: String = row.get("courier")?;
        Ok(TokenRecord {
            name: row.get("name")?,
            hash: Digest(row.get("hash")?),
            role: word(row, "role", Role::parse)?,
            addresses: texts(&addresses),
            courier: texts(&courier),
            created_at: Timestamp::from_millis(row.get("created_at")?),
            expires_at: time(row.get("expires_at")?),
            revoked_at: time(row.get("revoked_at")?),
        })
    })?;
    rows.collect()
}

pub(super) fn token_counts(db: &Connection) -> Step<TokenCounts> {
    let mut count = db.prepare_cached("SELECT count(*), count(revoked_at) FROM token")?;
    count.query_row([], |row| {
        Ok(TokenCounts {
            made: row.get::<_, i64>(0)?.unsigned_abs(),
            revoked: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })
}

pub(in crate::sqlite) fn revoke_token(db: &Connection, name: &str, at: Timestamp) -> Step<bool> {
    let revoked = db
        .prepare_cached("UPDATE token SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL")?
        .execute(params![name, at.as_millis()])?;
    Ok(revoked > 0)
}

pub(super) fn declare(db: &Connection, agent: &Agent, at: Timestamp) -> Step<()> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO agent (party, address, capabilities, at) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        party(&agent.address),
        agent.address,
        lines(&agent.capabilities),
        at.as_millis()
    ])?;
    Ok(())
}

pub(super) fn agents(db: &Connection) -> Step<Vec<Agent>> {
    let mut find = db.prepare_cached("SELECT address, capabilities FROM agent ORDER BY party")?;
    let rows = find.query_map([], |row| {
        let capabilities: String = row.get("capabilities")?;
        Ok(Agent {
            address: row.get("address")?,
            capabilities: texts(&capabilities),
        })
    })?;
    rows.collect()
}

/// Notes that an attachment is there, or came again: it is kept as long as one that came now.
pub(super) fn add_blob(db: &Connection, digest: Digest, size: u64, at: Timestamp) -> Step<bool> {
    let known = db
        .prepare_cached("UPDATE blob SET at = max(at, ?2) WHERE digest = ?1")?
        .execute(params![digest.0, at.as_millis()])?;
    if known > 0 {
        return Ok(false);
    }
    db.prepare_cached(
        "INSERT INTO blob (digest, size, at, uses) \
         VALUES (?1, ?2, ?3, (SELECT count(*) FROM blob_use WHERE digest = ?1) \
         + (SELECT count(*) FROM held_blob WHERE digest = ?1))",
    )?
    .execute(params![digest.0, super::number(size), at.as_millis()])?;
    Ok(true)
}

/// Notes that a message refers to an attachment, whether that has come or not.
pub(super) fn use_blob(db: &Connection, digest: Digest, seq: i64) -> Step<()> {
    let added = db
        .prepare_cached("INSERT OR IGNORE INTO blob_use (digest, seq) VALUES (?1, ?2)")?
        .execute(params![digest.0, seq])?;
    if added > 0 {
        db.prepare_cached("UPDATE blob SET uses = uses + 1 WHERE digest = ?1")?
            .execute(params![digest.0])?;
    }
    Ok(())
}

/// Notes that a message which is held refers to an attachment: it is not removed while it waits.
pub(super) fn hold_blob(db: &Connection, digest: Digest, seq: i64) -> Step<()> {
    let added = db
        .prepare_cached("INSERT OR IGNORE INTO held_blob (digest, seq) VALUES (?1, ?2)")?
        .execute(params![digest.0, seq])?;
    if added > 0 {
        db.prepare_cached("UPDATE blob SET uses = uses + 1 WHERE digest = ?1")?
            .execute(params![digest.0])?;
    }
    Ok(())
}

/// The attachments that a message which is held refers to.
pub(super) fn held_blobs(db: &Connection, seq: i64) -> Step<Vec<Digest>> {
    let mut find = db.prepare_cached("SELECT digest FROM held_blob WHERE seq = ?1")?;
    let rows = find.query_map(params![seq], |row| row.get(0).map(Digest))?;
    rows.collect()
}

/// A message is not held any more, and refers to nothing as such.
pub(super) fn release_held(db: &Connection, seq: i64) -> Step<()> {
    for sql in [
        "UPDATE blob SET at = 0 WHERE uses = 1 AND digest IN (SELECT digest FROM held_blob WHERE seq = ?1)",
        "UPDATE blob SET uses = uses - 1 WHERE digest IN (SELECT digest FROM held_blob WHERE seq = ?1)",
        "DELETE FROM held_blob WHERE seq = ?1",
    ] {
        db.prepare_cached(sql)?.execute(params![seq])?;
    }
    Ok(())
}

/// Nothing refers to attachments for a message any more; those that nothing else refers to are not kept any longer.
pub(super) fn release(db: &Connection, seq: i64) -> Step<()> {
    for sql in [
        "UPDATE blob SET at = 0 WHERE uses = 1 AND digest IN (SELECT digest FROM blob_use WHERE seq = ?1)",
        "UPDATE blob SET uses = uses - 1 WHERE digest IN (SELECT digest FROM blob_use WHERE seq = ?1)",
        "DELETE FROM blob_use WHERE seq = ?1",
    ] {
        db.prepare_cached(sql)?.execute(params![seq])?;
    }
    Ok(())
}

/// The same for a message whose consent has ended. Its attachments go with it, though others name them: what keeps one is
/// a message that came before, that was handed in with the same credential, or that its bytes came again since.
pub(in crate::sqlite) fn let_go(db: &Connection, seq: i64) -> Step<()> {
    let mut find = db.prepare_cached(
        "SELECT u.digest FROM blob_use u CROSS JOIN intake w ON w.seq = u.seq CROSS JOIN blob b ON b.digest = u.digest \
         WHERE u.seq = ?1 AND b.at <= w.at AND NOT EXISTS (SELECT 1 FROM blob_use o CROSS JOIN intake i ON i.seq = o.seq \
         WHERE o.digest = u.digest AND o.seq <> ?1 AND (o.seq < ?1 OR i.peer = w.peer))",
    )?;
    let rows = find.query_map(params![seq], |row| row.get(0).map(Digest))?;
    for digest in rows.collect::<Step<Vec<Digest>>>()? {
        for sql in [
            "DELETE FROM blob_use WHERE digest = ?1",
            "DELETE FROM held_blob WHERE digest = ?1",
            "UPDATE blob SET at = 0, uses = 0 WHERE digest = ?1",
        ] {
            db.prepare_cached(sql)?.execute(params![digest.0])?;
        }
    }
    release(db, seq)
}

/// Whether an attachment is there that no message refers to, and that came after the last one that did was erased.
pub(super) fn is_loose(db: &Connection, digest: Digest) -> Step<bool> {
    db.prepare_cached("SELECT 1 FROM blob WHERE digest = ?1 AND uses = 0 AND at > 0")?
        .exists(params![digest.0])
}

/// Where the messages are that refer to an attachment, the oldest first, after a place.
pub(super) fn referring(
    db: &Connection,
    digest: Digest,
    after: i64,
    most: usize,
) -> Step<Vec<u64>> {
    let mut find = db.prepare_cached(
        "SELECT seq FROM blob_use INDEXED BY blob_use_digest WHERE digest = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let asked = params![digest.0, after, super::number(most)];
    let rows = find.query_map(asked, |row| row.get(0).map(i64::unsigned_abs))?;
    rows.collect()
}

pub(super) fn drop_blobs(db: &Connection, before: Timestamp, most: usize) -> Step<Vec<Digest>> {
    let mut find = db.prepare_cached(
        "SELECT digest FROM blob INDEXED BY blob_loose WHERE uses = 0 AND at < ?1 ORDER BY at LIMIT ?2",
    )?;
    let asked = params![before.as_millis(), super::number(most)];
    let rows = find.query_map(asked, |row| row.get(0).map(Digest))?;
    let dropped = rows.collect::<Step<Vec<Digest>>>()?;
    for digest in &dropped {
        db.prepare_cached("DELETE FROM blob WHERE digest = ?1")?
            .execute(params![digest.0])?;
    }
    Ok(dropped)
}
