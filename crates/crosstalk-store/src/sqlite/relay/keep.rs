//! What a relay keeps besides messages: tokens, what agents can do, which attachments are there.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::{
    Admission, Agent, BLOB_BYTES_LEAST, Role, TokenCounts, TokenRecord, Upload,
};
use crosstalk_protocol::store::party;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

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
            "INSERT INTO token (name, hash, role, addresses, created_at, expires_at, revoked_at, courier, \
             last_used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING",
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
            token.last_used_at.map(|t| t.as_millis()),
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
            last_used_at: time(row.get("last_used_at")?),
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

/// Notes when tokens were last used. Only inside of a transaction.
pub(super) fn note_token_uses(db: &Connection, uses: &[(Digest, Timestamp)]) -> Step<()> {
    let mut note = db.prepare_cached(
        "UPDATE token SET last_used_at = ?2 WHERE hash = ?1 AND coalesce(last_used_at, 0) < ?2",
    )?;
    for (hash, at) in uses {
        note.execute(params![hash.0, at.as_millis()])?;
    }
    Ok(())
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

/// Notes that a credential uploaded an attachment, or did again: it is kept as long as one that came now.
pub(super) fn add_blob(db: &Connection, upload: &Upload<'_>, at: Timestamp) -> Step<()> {
    let (digest, size) = (upload.digest.0, super::number(upload.size));
    let known = db
        .prepare_cached("UPDATE blob SET at = max(at, ?2) WHERE digest = ?1")?
        .execute(params![digest, at.as_millis()])?;
    if known == 0 {
        db.prepare_cached(
            "INSERT INTO blob (digest, size, at, uses) \
             VALUES (?1, ?2, ?3, (SELECT count(*) FROM blob_use WHERE digest = ?1) \
             + (SELECT count(*) FROM held_blob WHERE digest = ?1))",
        )?
        .execute(params![digest, size, at.as_millis()])?;
    }
    db.prepare_cached(
        "INSERT INTO upload (peer, digest, size, at) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (peer, digest) DO UPDATE SET at = max(at, excluded.at)",
    )?
    .execute(params![upload.by, digest, size, at.as_millis()])?;
    for sql in [
        "UPDATE blob_use SET grants = 1 WHERE digest = ?1 AND grants = 0 \
         AND (SELECT peer FROM intake i WHERE i.seq = blob_use.seq) = ?2",
        "UPDATE held_blob SET grants = 1 WHERE digest = ?1 AND grants = 0 \
         AND (SELECT peer FROM held h WHERE h.seq = held_blob.seq) = ?2",
    ] {
        db.prepare_cached(sql)?
            .execute(params![digest, upload.by])?;
    }
    Ok(())
}

pub(super) fn uploaded_bytes(db: &Connection, by: &str, besides: Digest) -> Step<u64> {
    db.prepare_cached(
        "SELECT coalesce(sum(max(size, ?3)), 0) FROM upload WHERE peer = ?1 AND digest <> ?2",
    )?
    .query_row(
        params![by, besides.0, super::number(BLOB_BYTES_LEAST)],
        |row| row.get(0).map(i64::unsigned_abs),
    )
}

/// Whether a credential, or any, uploaded an attachment and handed in no message that refers to it.
pub(super) fn is_unused(db: &Connection, digest: Digest, by: Option<&str>) -> Step<bool> {
    db.prepare_cached(
        "SELECT 1 FROM upload u WHERE u.digest = ?1 AND (?2 IS NULL OR u.peer = ?2) \
         AND NOT EXISTS (SELECT 1 FROM blob_use o CROSS JOIN intake i ON i.seq = o.seq \
         WHERE o.digest = u.digest AND i.peer = u.peer) \
         AND NOT EXISTS (SELECT 1 FROM held_blob o CROSS JOIN held h ON h.seq = o.seq \
         WHERE o.digest = u.digest AND h.peer = u.peer)",
    )?
    .exists(params![digest.0, by])
}

/// Whether a reference in a message grants access to an attachment: whoever handed it in can read it, or uploaded it.
fn grants(db: &Connection, admission: &Admission, digest: Digest) -> Step<bool> {
    if admission.readable.contains(&digest) {
        return Ok(true);
    }
    db.prepare_cached("SELECT 1 FROM upload WHERE peer = ?1 AND digest = ?2")?
        .exists(params![admission.peer, digest.0])
}

/// Notes which attachments a message refers to, whether they have come or not.
pub(super) fn use_blobs(db: &Connection, admission: &Admission, seq: i64) -> Step<()> {
    let sql = "INSERT OR IGNORE INTO blob_use (digest, seq, grants) VALUES (?1, ?2, ?3)";
    refer(db, admission, seq, sql)
}

/// Notes which attachments a message which is held refers to: they are not removed while it waits.
pub(super) fn hold_blobs(db: &Connection, admission: &Admission, seq: i64) -> Step<()> {
    let sql = "INSERT OR IGNORE INTO held_blob (digest, seq, grants) VALUES (?1, ?2, ?3)";
    refer(db, admission, seq, sql)
}

fn refer(db: &Connection, admission: &Admission, seq: i64, insert: &str) -> Step<()> {
    for digest in &admission.blobs {
        let grants = grants(db, admission, *digest)?;
        let added = db
            .prepare_cached(insert)?
            .execute(params![digest.0, seq, grants])?;
        if added > 0 {
            db.prepare_cached("UPDATE blob SET uses = uses + 1 WHERE digest = ?1")?
                .execute(params![digest.0])?;
        }
    }
    Ok(())
}

/// The attachments that a message which is held refers to, and whether that grants access to them.
pub(super) fn held_blobs(db: &Connection, seq: i64) -> Step<Vec<(Digest, bool)>> {
    let mut find = db.prepare_cached("SELECT digest, grants FROM held_blob WHERE seq = ?1")?;
    let rows = find.query_map(params![seq], |row| Ok((Digest(row.get(0)?), row.get(1)?)))?;
    rows.collect()
}

/// A message is not held any more, and refers to nothing as such.
pub(super) fn release_held(db: &Connection, seq: i64) -> Step<()> {
    for sql in [
        "UPDATE blob SET uses = uses - 1 WHERE digest IN (SELECT digest FROM held_blob WHERE seq = ?1)",
        "DELETE FROM held_blob WHERE seq = ?1",
    ] {
        db.prepare_cached(sql)?.execute(params![seq])?;
    }
    Ok(())
}

/// The same for one that is not taken: what was uploaded for it is not kept any longer.
pub(super) fn drop_held(db: &Connection, seq: i64) -> Step<()> {
    let sql = "SELECT o.digest, h.peer FROM held_blob o CROSS JOIN held h ON h.seq = o.seq WHERE o.seq = ?1";
    let used = used(db, sql, seq)?;
    release_held(db, seq)?;
    end_uploads(db, &used)
}

/// Nothing refers to attachments for a message any more; those that nothing else refers to, and nobody else uploaded, are
/// not kept any longer.
pub(super) fn release(db: &Connection, seq: i64) -> Step<()> {
    let sql = "SELECT o.digest, i.peer FROM blob_use o CROSS JOIN intake i ON i.seq = o.seq WHERE o.seq = ?1";
    let used = used(db, sql, seq)?;
    for sql in [
        "UPDATE blob SET uses = uses - 1 WHERE digest IN (SELECT digest FROM blob_use WHERE seq = ?1)",
        "DELETE FROM blob_use WHERE seq = ?1",
    ] {
        db.prepare_cached(sql)?.execute(params![seq])?;
    }
    end_uploads(db, &used)
}

/// The attachments that a message refers to, with the credential that handed it in.
fn used(db: &Connection, sql: &str, seq: i64) -> Step<Vec<(Digest, Option<String>)>> {
    let mut find = db.prepare_cached(sql)?;
    let rows = find.query_map(params![seq], |row| Ok((Digest(row.get(0)?), row.get(1)?)))?;
    rows.collect()
}

/// Ends the uploads of credentials that refer to them in no message any more. What nobody uploaded is not kept.
fn end_uploads(db: &Connection, used: &[(Digest, Option<String>)]) -> Step<()> {
    for (digest, peer) in used {
        db.prepare_cached(
            "DELETE FROM upload WHERE peer = ?2 AND digest = ?1 \
             AND NOT EXISTS (SELECT 1 FROM blob_use o CROSS JOIN intake i ON i.seq = o.seq \
             WHERE o.digest = ?1 AND i.peer = ?2) \
             AND NOT EXISTS (SELECT 1 FROM held_blob o CROSS JOIN held h ON h.seq = o.seq \
             WHERE o.digest = ?1 AND h.peer = ?2)",
        )?
        .execute(params![digest.0, peer])?;
        db.prepare_cached(
            "UPDATE blob SET at = 0 WHERE digest = ?1 AND uses = 0 \
             AND NOT EXISTS (SELECT 1 FROM upload u WHERE u.digest = ?1)",
        )?
        .execute(params![digest.0])?;
    }
    Ok(())
}

/// The same for a message whose consent has ended. What it gave access to goes with it, though others pass it on: what keeps
/// an attachment is another reference that grants access and came before, or with the same credential, and that its bytes
/// came with another credential, or came again since.
pub(in crate::sqlite) fn let_go(db: &Connection, seq: i64) -> Step<()> {
    let mut find = db.prepare_cached(
        "SELECT u.digest FROM blob_use u CROSS JOIN intake w ON w.seq = u.seq CROSS JOIN blob b ON b.digest = u.digest \
         WHERE u.seq = ?1 AND u.grants = 1 AND b.at <= w.at \
         AND NOT EXISTS (SELECT 1 FROM upload p WHERE p.digest = u.digest AND p.peer IS NOT w.peer) \
         AND NOT EXISTS (SELECT 1 FROM blob_use o CROSS JOIN intake i ON i.seq = o.seq \
         WHERE o.digest = u.digest AND o.grants = 1 AND o.seq <> ?1 AND (o.seq < ?1 OR i.peer = w.peer)) \
         AND NOT EXISTS (SELECT 1 FROM held_blob o CROSS JOIN held h ON h.seq = o.seq \
         WHERE o.digest = u.digest AND o.grants = 1 AND (h.at < w.at OR h.peer = w.peer))",
    )?;
    let rows = find.query_map(params![seq], |row| row.get(0).map(Digest))?;
    for digest in rows.collect::<Step<Vec<Digest>>>()? {
        for sql in [
            "DELETE FROM blob_use WHERE digest = ?1",
            "DELETE FROM held_blob WHERE digest = ?1",
            "DELETE FROM upload WHERE digest = ?1",
            "UPDATE blob SET at = 0, uses = 0 WHERE digest = ?1",
        ] {
            db.prepare_cached(sql)?.execute(params![digest.0])?;
        }
    }
    release(db, seq)
}

/// Where the latest messages are whose reference to an attachment grants access, the newest first.
pub(super) fn referring(db: &Connection, digest: Digest, most: usize) -> Step<Vec<u64>> {
    let mut find = db.prepare_cached(
        "SELECT seq FROM blob_use INDEXED BY blob_use_digest WHERE digest = ?1 AND grants = 1 \
         ORDER BY seq DESC LIMIT ?2",
    )?;
    let asked = params![digest.0, super::number(most)];
    let rows = find.query_map(asked, |row| row.get(0).map(i64::unsigned_abs))?;
    rows.collect()
}

/// Who sent and who got them, as far as their time is not over.
pub(super) fn referring_parties(
    db: &Connection,
    digest: Digest,
    now: Timestamp,
    most: usize,
) -> Step<BTreeSet<String>> {
    let mut parties = BTreeSet::new();
    for (address, table) in [
        ("sender", "message"),
        ("receiver", "message"),
        ("address", "delivery"),
    ] {
        let sql = format!(
            "SELECT p.{address} FROM blob_use u INDEXED BY blob_use_digest CROSS JOIN intake i ON i.seq = u.seq \
             CROSS JOIN {table} p ON p.seq = u.seq WHERE u.digest = ?1 AND u.grants = 1 \
             AND (i.expires IS NULL OR i.expires > ?2) ORDER BY u.seq DESC LIMIT ?3"
        );
        let mut find = db.prepare_cached(&sql)?;
        let asked = params![digest.0, now.as_millis(), super::number(most)];
        for address in find.query_map(asked, |row| row.get(0))? {
            parties.insert(address?);
        }
    }
    Ok(parties)
}

pub(super) fn drop_blobs(db: &Connection, before: Timestamp, most: usize) -> Step<Vec<Digest>> {
    let mut find = db.prepare_cached(
        "SELECT digest FROM blob INDEXED BY blob_loose WHERE uses = 0 AND at < ?1 ORDER BY at LIMIT ?2",
    )?;
    let asked = params![before.as_millis(), super::number(most)];
    let rows = find.query_map(asked, |row| row.get(0).map(Digest))?;
    let dropped = rows.collect::<Step<Vec<Digest>>>()?;
    for digest in &dropped {
        for sql in [
            "DELETE FROM blob WHERE digest = ?1",
            "DELETE FROM upload WHERE digest = ?1",
        ] {
            db.prepare_cached(sql)?.execute(params![digest.0])?;
        }
    }
    Ok(dropped)
}
