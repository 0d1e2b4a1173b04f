//! Tokens, capabilities of agents, and attachments.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::port::{BlobPart, StoredPart, Upload};
use crosstalk_protocol::relay::{Agent, BLOB_BYTES_LEAST, Role, TokenRecord};
use crosstalk_protocol::store::party;
use std::collections::BTreeSet;
use tokio_postgres::Row;

use super::fault::PgResult;
use super::sql::{Db, PgColumns as _, bytes, number, params, value};

/// The digest in the first column.
fn digest_at(row: &Row) -> PgResult<Digest> {
    row.digest("digest")
}

/// Several texts in one column, one a line.
fn lines(texts: &[String]) -> String {
    let lines: Vec<String> = texts.iter().map(|t| t.replace(['\n', '\r'], " ")).collect();
    lines.join("\n")
}

fn texts(lines: &str) -> Vec<String> {
    lines.lines().map(str::to_owned).collect()
}

pub(super) fn add_token(db: &Db, token: &TokenRecord) -> PgResult<bool> {
    let sql = "INSERT INTO token (name, hash, role, addresses, created_at, expires_at, \
        revoked_at, courier, last_used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON \
        CONFLICT DO NOTHING";
    let added = db.run(
        sql,
        params![
            token.name,
            bytes(&token.hash),
            token.role.as_str(),
            lines(&token.addresses),
            token.created_at.as_millis(),
            token.expires_at.map(|t| t.as_millis()),
            token.revoked_at.map(|t| t.as_millis()),
            lines(&token.courier),
            token.last_used_at.map(|t| t.as_millis()),
        ],
    )?;
    Ok(added > 0)
}

/// Puts a token in the place of the one with this hash; name, role and addresses stay.
pub(super) fn replace_token(db: &Db, hash: Digest, token: &TokenRecord) -> PgResult<()> {
    let sql = "UPDATE token SET hash = $2, created_at = $3, expires_at = $4 WHERE hash = $1";
    let values = params![
        bytes(&hash),
        bytes(&token.hash),
        token.created_at.as_millis(),
        token.expires_at.map(|t| t.as_millis()),
    ];
    db.run(sql, values).map(drop)
}

pub(super) fn tokens(db: &Db) -> PgResult<Vec<TokenRecord>> {
    let sql = "SELECT * FROM token ORDER BY name";
    db.all(sql, params![], |row| {
        let addresses: String = row.try_get("addresses")?;
        let courier: String = row.try_get("courier")?;
        Ok(TokenRecord {
            name: row.try_get("name")?,
            hash: row.digest("hash")?,
            role: row.word("role", Role::parse)?,
            addresses: texts(&addresses),
            courier: texts(&courier),
            created_at: row.time("created_at")?,
            expires_at: row.opt_time("expires_at")?,
            revoked_at: row.opt_time("revoked_at")?,
            last_used_at: row.opt_time("last_used_at")?,
        })
    })
}

/// Whether there is a token that is not revoked.
pub(super) fn is_active(db: &Db, name: &str) -> PgResult<bool> {
    let sql = "SELECT 1 FROM token WHERE name = $1 AND revoked_at IS NULL";
    db.has(sql, params![name])
}

pub(super) fn revoke_token(db: &Db, name: &str, at: Timestamp) -> PgResult<bool> {
    let sql = "UPDATE token SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL";
    let revoked = db.run(sql, params![name, at.as_millis()])?;
    Ok(revoked > 0)
}

/// Notes when tokens were last used. Only inside a transaction.
pub(super) fn note_token_uses(db: &Db, uses: &[(Digest, Timestamp)]) -> PgResult<()> {
    let sql =
        "UPDATE token SET last_used_at = $2 WHERE hash = $1 AND coalesce(last_used_at, 0) < $2";
    for (hash, at) in uses {
        db.run(sql, params![bytes(hash), at.as_millis()])?;
    }
    Ok(())
}

pub(super) fn declare(db: &Db, agent: &Agent, at: Timestamp) -> PgResult<()> {
    let sql = "INSERT INTO agent (party, address, capabilities, at) VALUES ($1, $2, $3, $4) ON \
        CONFLICT (party) DO UPDATE SET address = $2, capabilities = $3, at = $4";
    db.run(
        sql,
        params![
            party(&agent.address),
            agent.address,
            lines(&agent.capabilities),
            at.as_millis()
        ],
    )?;
    Ok(())
}

pub(super) fn agents(db: &Db) -> PgResult<Vec<Agent>> {
    let sql = "SELECT address, capabilities FROM agent ORDER BY party";
    db.all(sql, params![], |row| {
        let capabilities: String = row.try_get("capabilities")?;
        Ok(Agent {
            address: row.try_get("address")?,
            capabilities: texts(&capabilities),
        })
    })
}

/// Notes that a credential uploaded an attachment, or did again: it is kept as long as one that came now.
pub(super) fn add_blob(db: &Db, upload: &Upload, at: Timestamp) -> PgResult<()> {
    let (digest, size) = (bytes(&upload.digest), number(upload.size));
    let known = db.run(
        "UPDATE blob SET at = greatest(at, $2) WHERE digest = $1",
        params![digest, at.as_millis()],
    )?;
    if known > 0 {
        let sql = "UPDATE blob SET parts = $2 WHERE digest = $1 AND parts IS NULL";
        if upload.parts.is_some() && db.run(sql, params![digest, upload.parts])? == 0 {
            // Its bytes are here already.
            let sql = "DELETE FROM blob_part WHERE upload = $1";
            db.run(sql, params![upload.parts])?;
        }
    } else {
        db.run(
            "INSERT INTO blob (digest, size, at, parts, uses) \
             VALUES ($1, $2, $3, $4, (SELECT count(*) FROM blob_use WHERE digest = $1) \
             + (SELECT count(*) FROM held_blob WHERE digest = $1))",
            params![digest, size, at.as_millis(), upload.parts],
        )?;
    }
    db.run(
        "INSERT INTO upload (peer, digest, size, at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (peer, digest) DO UPDATE SET at = greatest(upload.at, excluded.at)",
        params![upload.by, digest, size, at.as_millis()],
    )?;
    for sql in [
        "UPDATE blob_use SET grants = TRUE WHERE digest = $1 AND NOT grants \
         AND (SELECT peer FROM intake i WHERE i.seq = blob_use.seq) = $2",
        "UPDATE held_blob SET grants = TRUE WHERE digest = $1 AND NOT grants \
         AND (SELECT peer FROM held h WHERE h.seq = held_blob.seq) = $2",
    ] {
        db.run(sql, params![digest, upload.by])?;
    }
    Ok(())
}

pub(super) fn uploaded_bytes(db: &Db, by: &str, besides: Digest) -> PgResult<u64> {
    let sql = "SELECT coalesce(sum(greatest(size, $3)), 0)::bigint FROM upload WHERE peer = $1 AND digest <> \
        $2";
    db.one(
        sql,
        params![by, bytes(&besides), number(BLOB_BYTES_LEAST)],
        |row| value::<i64>(row).map(i64::unsigned_abs),
    )
}

/// Whether a credential, or any, uploaded an attachment and handed in no message that refers to it.
pub(super) fn is_unused(db: &Db, digest: Digest, by: Option<&str>) -> PgResult<bool> {
    let sql = "SELECT 1 FROM upload u WHERE u.digest = $1 AND ($2::text IS NULL OR u.peer = $2) AND \
        NOT EXISTS (SELECT 1 FROM blob_use o JOIN intake i ON i.seq = o.seq WHERE o.digest \
        = u.digest AND i.peer = u.peer) AND NOT EXISTS (SELECT 1 FROM held_blob o JOIN \
        held h ON h.seq = o.seq WHERE o.digest = u.digest AND h.peer = u.peer)";
    db.has(sql, params![bytes(&digest), by])
}

/// Notes which attachments a message refers to, whether they have come or not, and whether that grants access to them.
pub(super) fn use_blobs(db: &Db, blobs: &[(Digest, bool)], seq: i64) -> PgResult<()> {
    let sql =
        "INSERT INTO blob_use (digest, seq, grants) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    refer(db, blobs, seq, sql)
}

/// Notes which attachments a message which is held refers to: they are not removed while it waits.
pub(super) fn hold_blobs(db: &Db, blobs: &[(Digest, bool)], seq: i64) -> PgResult<()> {
    let sql =
        "INSERT INTO held_blob (digest, seq, grants) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    refer(db, blobs, seq, sql)
}

fn refer(db: &Db, blobs: &[(Digest, bool)], seq: i64, insert: &str) -> PgResult<()> {
    for (digest, grants) in blobs {
        let added = db.run(insert, params![bytes(digest), seq, grants])?;
        if added > 0 {
            let sql = "UPDATE blob SET uses = uses + 1 WHERE digest = $1";
            db.run(sql, params![bytes(digest)])?;
        }
    }
    Ok(())
}

/// The attachments that a message which is held refers to, and whether that grants access to them.
pub(super) fn held_blobs(db: &Db, seq: i64) -> PgResult<Vec<(Digest, bool)>> {
    let sql = "SELECT digest, grants FROM held_blob WHERE seq = $1";
    db.all(sql, params![seq], |row| {
        Ok((digest_at(row)?, row.try_get(1)?))
    })
}

/// The tables of the messages that refer to attachments: those of references, and of messages.
const ACCEPTED: (&str, &str) = ("blob_use", "intake");
const HELD: (&str, &str) = ("held_blob", "held");

/// A message is not held any more, and refers to nothing as such.
pub(super) fn release_held(db: &Db, seq: i64) -> PgResult<()> {
    remove_references(db, HELD, seq)
}

/// The same for one that is rejected: what was uploaded for it is not kept any longer.
pub(super) fn drop_held(db: &Db, seq: i64) -> PgResult<()> {
    drop_references(db, HELD, seq)
}

/// An accepted message refers to nothing any more.
pub(super) fn release(db: &Db, seq: i64) -> PgResult<()> {
    drop_references(db, ACCEPTED, seq)
}

fn remove_references(db: &Db, (uses, _): (&str, &str), seq: i64) -> PgResult<()> {
    for sql in [
        format!(
            "UPDATE blob SET uses = uses - 1 WHERE digest IN (SELECT digest FROM {uses} WHERE seq = $1)"
        ),
        format!("DELETE FROM {uses} WHERE seq = $1"),
    ] {
        db.run(&sql, params![seq])?;
    }
    Ok(())
}

/// Removes the references of a message. Attachments that nothing else refers to and nobody else uploaded are not kept.
fn drop_references(db: &Db, tables: (&str, &str), seq: i64) -> PgResult<()> {
    let (uses, messages) = tables;
    let sql = format!(
        "SELECT o.digest, m.peer FROM {uses} o JOIN {messages} m ON m.seq = o.seq WHERE o.seq = $1"
    );
    let used = db.all(&sql, params![seq], |row| {
        Ok((digest_at(row)?, row.try_get(1)?))
    })?;
    remove_references(db, tables, seq)?;
    end_uploads(db, &used)
}

/// Ends the uploads of credentials that refer to them in no message any more. What nobody uploaded is not kept.
fn end_uploads(db: &Db, used: &[(Digest, String)]) -> PgResult<()> {
    for (digest, peer) in used {
        let sql = "DELETE FROM upload WHERE peer = $2 AND digest = $1 AND NOT EXISTS (SELECT 1 \
            FROM blob_use o JOIN intake i ON i.seq = o.seq WHERE o.digest = $1 AND i.peer \
            = $2) AND NOT EXISTS (SELECT 1 FROM held_blob o JOIN held h ON h.seq = o.seq \
            WHERE o.digest = $1 AND h.peer = $2)";
        db.run(sql, params![bytes(digest), peer])?;
        let sql = "UPDATE blob SET at = 0 WHERE digest = $1 AND uses = 0 AND NOT EXISTS (SELECT \
            1 FROM upload u WHERE u.digest = $1)";
        db.run(sql, params![bytes(digest)])?;
    }
    Ok(())
}

/// The same for a message whose consent has ended. What it gave access to goes with it, though others pass it on: what keeps
/// an attachment is another reference that grants access and came before, or with the same credential, and that its bytes
/// came with another credential, or came again since.
pub(super) fn let_go(db: &Db, seq: i64) -> PgResult<()> {
    for digest in db.all("SELECT u.digest FROM blob_use u JOIN intake w ON w.seq = u.seq JOIN blob b ON b.digest = u.digest \
         WHERE u.seq = $1 AND u.grants AND b.at <= w.at \
         AND NOT EXISTS (SELECT 1 FROM upload p WHERE p.digest = u.digest AND p.peer IS DISTINCT FROM w.peer) \
         AND NOT EXISTS (SELECT 1 FROM blob_use o JOIN intake i ON i.seq = o.seq \
         WHERE o.digest = u.digest AND o.grants AND o.seq <> $1 AND (o.seq < $1 OR i.peer = w.peer)) \
         AND NOT EXISTS (SELECT 1 FROM held_blob o JOIN held h ON h.seq = o.seq \
         WHERE o.digest = u.digest AND o.grants AND (h.at < w.at OR h.peer = w.peer))", params![seq], digest_at)? {
        for sql in [
            "DELETE FROM blob_use WHERE digest = $1",
            "DELETE FROM held_blob WHERE digest = $1",
            "DELETE FROM upload WHERE digest = $1",
            "UPDATE blob SET at = 0, uses = 0 WHERE digest = $1",
        ] {
            db.run(sql, params![bytes(&digest)])?;
        }
    }
    release(db, seq)
}

/// Where the latest messages are whose reference to an attachment grants access, the newest first.
pub(super) fn referring(db: &Db, digest: Digest, limit: usize) -> PgResult<Vec<u64>> {
    let asked = params![bytes(&digest), number(limit)];
    let sql = "SELECT seq FROM blob_use WHERE digest = $1 AND grants ORDER BY seq DESC LIMIT $2";
    db.all(sql, asked, |row| value::<i64>(row).map(i64::unsigned_abs))
}

/// Who sent and who got them, as far as their time is not over.
pub(super) fn referring_parties(
    db: &Db,
    digest: Digest,
    now: Timestamp,
    limit: usize,
) -> PgResult<BTreeSet<String>> {
    let mut parties = BTreeSet::new();
    for (address, table) in [
        ("sender", "message"),
        ("receiver", "message"),
        ("address", "delivery"),
    ] {
        let sql = format!(
            "SELECT p.{address} FROM blob_use u JOIN intake i ON i.seq = u.seq \
             JOIN {table} p ON p.seq = u.seq WHERE u.digest = $1 AND u.grants \
             AND (i.expires IS NULL OR i.expires > $2) ORDER BY u.seq DESC LIMIT $3"
        );
        let asked = params![bytes(&digest), now.as_millis(), number(limit)];
        parties.extend(db.all(&sql, asked, value::<String>)?);
    }
    Ok(parties)
}

pub(super) fn drop_blobs(db: &Db, before: Timestamp, limit: usize) -> PgResult<Vec<Digest>> {
    let asked = params![before.as_millis(), number(limit)];
    let dropped = db.all(
        "SELECT digest FROM blob WHERE uses = 0 AND at < $1 ORDER BY at LIMIT $2",
        asked,
        digest_at,
    )?;
    for digest in &dropped {
        for sql in [
            "DELETE FROM blob_part WHERE upload IN (SELECT parts FROM blob WHERE digest = $1)",
            "DELETE FROM blob WHERE digest = $1",
            "DELETE FROM upload WHERE digest = $1",
        ] {
            db.run(sql, params![bytes(digest)])?;
        }
    }
    // Some at a time: other relays wait for their turn meanwhile.
    let sql = "DELETE FROM blob_part WHERE (upload, number) IN (SELECT p.upload, p.number FROM blob_part p WHERE p.at < $1 \
        AND NOT EXISTS (SELECT 1 FROM blob b WHERE b.parts = p.upload) LIMIT $2)";
    db.run(sql, asked)?;
    Ok(dropped)
}

/// Keeps a part of the bytes of an upload. It may come again.
pub(super) fn add_part(db: &Db, part: &BlobPart, at: Timestamp) -> PgResult<()> {
    let sql = "INSERT INTO blob_part (upload, number, at, bytes) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let number = number(part.number);
    db.run(
        sql,
        params![part.upload, number, at.as_millis(), part.bytes],
    )?;
    Ok(())
}

/// A part of the bytes of an attachment.
pub(super) fn read_part(db: &Db, digest: Digest, place: u64) -> PgResult<Option<StoredPart>> {
    let sql = "SELECT p.bytes, b.size FROM blob b JOIN blob_part p ON p.upload = b.parts WHERE b.digest = $1 AND p.number = $2";
    db.find(sql, params![bytes(&digest), number(place)], |row| {
        Ok(StoredPart {
            bytes: row.try_get("bytes")?,
            size: row.seq("size")?,
        })
    })
}
