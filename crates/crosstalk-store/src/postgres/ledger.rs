//! Consents on record: granted, relied on, revoked; and what a revocation takes with it.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::consent::{
    Assurance, CoveredMessage, Grant, GrantFilter, Revocation, RevocationChanges, RevocationFacts,
    RevocationOrder, RevocationResult, plan_cascade,
};
use crosstalk_protocol::relay::DeliveryState;
use crosstalk_protocol::relay::port::GrantQuery;
use std::collections::BTreeSet;
use tokio_postgres::Row;

use super::fault::PgResult;
use super::intake::{INTAKE_ROW, PgIntakeRow, intake_row};
use super::sql::{Db, PgColumns as _, bytes, number, params, tuple, value};
use super::{delivery, hold, keep, log, registry, retire};

/// The priority of what follows from a REVOKE, in its column: the first.
const URGENT: i64 = 0;

const GRANT: &str = "SELECT id, granter, pkid, assurance, text, scopes, receivers, jurisdictions, since, expires, \
                     message, digest, originals, revoked_at, revoked_by, revoked_message, reason FROM consent";

pub(super) fn grant(row: &Row) -> PgResult<Grant> {
    let revoked_at: Option<i64> = row.try_get("revoked_at")?;
    let revoked = match revoked_at {
        Some(at) => Some(Revocation {
            at: Timestamp::from_millis(at),
            by: row.try_get("revoked_by")?,
            message: row.try_get("revoked_message")?,
            reason: row.try_get("reason")?,
        }),
        None => None,
    };
    Ok(Grant {
        id: row.try_get("id")?,
        granter: row.try_get("granter")?,
        pkid: row.try_get("pkid")?,
        assurance: row.word("assurance", Assurance::parse)?,
        text: row.try_get("text")?,
        scopes: row.lines("scopes")?,
        to: row.lines("receivers")?,
        jurisdictions: row.lines("jurisdictions")?,
        since: row.time("since")?,
        expires: row.opt_time("expires")?,
        message: row.try_get("message")?,
        digest: row.digest("digest")?,
        originals: row.lines("originals")?,
        revoked,
    })
}

fn find(db: &Db, id: &str) -> PgResult<Option<Grant>> {
    db.find(&format!("{GRANT} WHERE id = $1"), params![id], grant)
}

/// Asks for the consents with some names, and those that they go back to.
pub(super) fn named_sql() -> String {
    format!(
        "{GRANT} WHERE id = ANY ($1) OR id IN (SELECT original FROM consent_origin WHERE id = ANY ($1))"
    )
}

/// The consents with these names, and those that they go back to.
pub(super) fn named<'n>(db: &Db, names: impl Iterator<Item = &'n str>) -> PgResult<Vec<Grant>> {
    let mut found: Vec<Grant> = Vec::new();
    for name in names {
        let Some(grant) = find(db, name)? else {
            continue;
        };
        for original in &grant.originals {
            found.extend(find(db, original)?);
        }
        found.push(grant);
    }
    Ok(found)
}

/// Records the consents that a message is kept under.
pub(super) fn keep_under(db: &Db, seq: i64, under: &[String]) -> PgResult<()> {
    let sql = "INSERT INTO consent_use (consent, seq) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    for consent in under {
        db.run(sql, params![consent, seq])?;
    }
    Ok(())
}

pub(super) fn record(db: &Db, g: &Grant) -> PgResult<()> {
    let revoked = g.revoked.as_ref();
    let sql = "INSERT INTO consent (id, granter, pkid, assurance, text, scopes, \
        receivers, jurisdictions, since, expires, message, digest, originals, revoked_at, \
        revoked_by, revoked_message, reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
        $11, $12, $13, $14, $15, $16, $17) ON CONFLICT (id) DO UPDATE SET granter = $2, pkid = $3, \
        assurance = $4, text = $5, scopes = $6, receivers = $7, jurisdictions = $8, since = $9, \
        expires = $10, message = $11, digest = $12, originals = $13, revoked_at = $14, revoked_by = \
        $15, revoked_message = $16, reason = $17";
    db.run(
        sql,
        params![
            g.id,
            g.granter,
            g.pkid,
            g.assurance.as_str(),
            g.text,
            g.scopes.join("\n"),
            g.to.join("\n"),
            g.jurisdictions.join("\n"),
            g.since.as_millis(),
            g.expires.map(Timestamp::as_millis),
            g.message,
            bytes(&g.digest),
            g.originals.join("\n"),
            revoked.map(|r| r.at.as_millis()),
            revoked.map(|r| &r.by),
            revoked.map(|r| &r.message),
            revoked.and_then(|r| r.reason.as_ref()),
        ],
    )?;
    for original in &g.originals {
        let sql =
            "INSERT INTO consent_origin (original, id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        db.run(sql, params![original, g.id])?;
    }
    Ok(())
}

/// Ends consents and tokens, as [`plan_cascade`] says; the REVOKE is at this place, if it is here. Only inside a transaction.
pub(super) fn revoke(
    db: &Db,
    seq: Option<i64>,
    order: &RevocationOrder,
) -> PgResult<RevocationResult> {
    lock(db, &order.consents)?;
    let facts = revocation_facts(db, order)?;
    let revoke = seq.map(i64::unsigned_abs);
    let plan = plan_cascade(order, &order.revocation.message, &facts, revoke);
    let at = plan.revocation.at;
    for id in &plan.ended {
        let Revocation {
            by,
            message,
            reason,
            ..
        } = &plan.revocation;
        let sql = "UPDATE consent SET revoked_at = $2, revoked_by = $3, revoked_message = $4, \
            reason = $5 WHERE id = $1";
        db.run(sql, params![id, at.as_millis(), by, message, reason])?;
    }
    for grant in &plan.unseen {
        record(db, grant)?;
    }
    for (seq, party) in &plan.cancelled {
        let to = (number(*seq), *party);
        let reason = Some(RevocationChanges::CANCELLED);
        delivery::set_state(db, to, DeliveryState::Failed, at, reason)?;
    }
    if let Some(revoke) = seq {
        for (to, by) in &plan.told {
            delivery::queue(db, (revoke, at), to, *by, URGENT)?;
        }
    }
    let erased: Vec<i64> = plan.erased.iter().copied().map(number).collect();
    for seq in &erased {
        db.run("DELETE FROM expectation WHERE seq = $1", params![seq])?;
        keep::let_go(db, *seq)?;
    }
    retire::erase_texts(db, &erased)?;
    for seq in &plan.lapsed {
        hold::lapse_revoked(db, *seq, at)?;
    }
    if let Some(name) = &plan.token {
        keep::revoke_token(db, name, at)?;
        registry::renew(db)?;
    }
    for event in &plan.events {
        log::append(db, event)?;
    }
    Ok(plan.result)
}

/// Locks consents against hand-outs until the commit.
fn lock(db: &Db, consents: &[String]) -> PgResult<()> {
    let sql = "WITH RECURSIVE ended (id) AS (SELECT unnest($1::text[]) COLLATE \"C\" UNION SELECT o.id FROM ended e \
        JOIN consent_origin o ON o.original = e.id) SELECT c.id FROM consent c WHERE c.id IN \
        (SELECT id FROM ended) ORDER BY c.id FOR UPDATE";
    db.has(sql, params![consents]).map(drop)
}

/// The messages under consents, and under all consents that derive from them.
fn revocation_facts(db: &Db, order: &RevocationOrder) -> PgResult<RevocationFacts> {
    let mut facts = RevocationFacts::default();
    let (mut places, mut held) = (BTreeSet::new(), BTreeSet::new());
    let mut left: Vec<String> = order.consents.clone();
    while let Some(id) = left.pop() {
        if facts.derived.contains_key(&id) {
            continue;
        }
        let sql = "SELECT id FROM consent_origin WHERE original = $1";
        let derived = db.all(sql, params![id], value::<String>)?;
        left.extend(derived.iter().cloned());
        if let Some(grant) = find(db, &id)? {
            facts.on_record.insert(id.clone(), grant.revoked.is_some());
        }
        // Texts that are erased already are skipped.
        let sql = "SELECT u.seq FROM consent_use u JOIN intake i ON i.seq = u.seq WHERE \
            u.consent = $1 AND i.text <> ''";
        places.extend(db.all(sql, params![id], value::<i64>)?);
        let waiting = hold::waiting_under(db, &id)?;
        let new = waiting.into_iter().filter(|h| held.insert(h.seq));
        facts.held.extend(new);
        facts.derived.insert(id, derived);
    }
    facts.held.sort_unstable_by_key(|h| h.seq);
    for seq in places {
        facts.messages.push(covered(db, seq)?);
    }
    if let Some(name) = &order.token {
        facts.is_token_active = keep::is_active(db, name)?;
    }
    Ok(facts)
}

fn covered(db: &Db, seq: i64) -> PgResult<CoveredMessage> {
    let sql = format!("SELECT {INTAKE_ROW}, digest FROM intake WHERE seq = $1");
    let (row, digest): (PgIntakeRow, _) = db.one(&sql, params![seq], |row| {
        Ok((intake_row(row)?, row.digest("digest")?))
    })?;
    Ok(CoveredMessage {
        seq: seq.unsigned_abs(),
        id: row.arrival.id().to_owned(),
        digest,
        sender: row.arrival.sender,
        thread: row.thread,
        deliveries: delivery::deliveries_of(db, seq)?,
        logged: log::logged(db, seq)?,
    })
}

/// Consents on record.
pub(super) fn grants(db: &Db, query: &GrantQuery) -> PgResult<Vec<Grant>> {
    match query {
        GrantQuery::Named(names) => named(db, names.iter().map(String::as_str)),
        GrantQuery::Filtered(filter) => filtered(db, filter),
    }
}

/// Consents, the latest first.
fn filtered(db: &Db, filter: &GrantFilter) -> PgResult<Vec<Grant>> {
    let sql = format!(
        "{GRANT} WHERE ($1::text IS NULL OR granter = $1) AND ($2::bigint IS NULL OR (revoked_at IS NULL \
         AND (expires IS NULL OR expires > $2))) ORDER BY since DESC, id LIMIT $3"
    );
    let limit = match filter.limit {
        0 => i64::MAX,
        limit => number(limit),
    };
    let at = filter.holding_at.map(Timestamp::as_millis);
    db.all(&sql, params![filter.granter, at, limit], grant)
}

/// The ids of the messages that are or were kept under a consent, with whether their text is still there, the oldest first.
pub(super) fn under(db: &Db, consent: &str) -> PgResult<Vec<(String, bool)>> {
    let sql = "SELECT i.id, i.text <> '' FROM consent_use u JOIN intake i ON i.seq = u.seq WHERE \
        u.consent = $1 ORDER BY u.seq";
    db.all(sql, params![consent], tuple)
}

/// Locks the consents that a message is kept under, so that a revocation that is about to be committed is waited for.
pub(super) fn lock_for_hand_out(db: &Db, id: &str) -> PgResult<()> {
    let sql = "SELECT c.id FROM consent c WHERE c.id IN (SELECT u.consent FROM consent_use u JOIN \
        intake i ON i.seq = u.seq WHERE i.id = $1) ORDER BY c.id FOR SHARE";
    db.has(sql, params![id]).map(drop)
}
