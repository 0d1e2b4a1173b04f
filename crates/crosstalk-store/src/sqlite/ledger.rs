//! Consents on record: granted, relied on, revoked; and what a revocation takes with it.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::Rejection;
use crosstalk_protocol::consent::{
    Assurance, Claim, CoveredMessage, Grant, GrantFilter, Judge, Revocation, RevocationChanges,
    RevocationFacts, RevocationOrder, RevocationResult, Terms, grant_event, plan_cascade,
};
use crosstalk_protocol::relay::DeliveryState;
use crosstalk_protocol::store::{Arrival, KnownMessage, StoreError, StoreOutcome};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeSet;
use std::time::Duration;

use super::derive::{self, INTAKE_ROW, IntakeRow};
use super::fault::SqlResult;
use super::relay::{delivery, hold, index, keep, retire};
use super::search::SearchIndex;
use super::{SqliteStore, accept, log};
use crate::sqlite::sql::{Columns as _, Sql as _, number, tuple, value};

/// The progress of removing traces of erased texts: nothing to do, words to be written anew, the log to be emptied.
const CLEAN: i64 = 0;
const BEGIN: i64 = 1;
const MERGE: i64 = 2;
const LOG: i64 = 3;
/// The priority of what follows from a REVOKE, in its column: the first.
const URGENT: i64 = 0;

const GRANT: &str = "SELECT id, granter, pkid, assurance, text, scopes, receivers, jurisdictions, since, expires, \
                     message, digest, originals, revoked_at, revoked_by, revoked_message, reason FROM consent";

fn grant(row: &Row<'_>) -> SqlResult<Grant> {
    let revoked_at: Option<i64> = row.get("revoked_at")?;
    let revoked = match revoked_at {
        Some(at) => Some(Revocation {
            at: Timestamp::from_millis(at),
            by: row.get("revoked_by")?,
            message: row.get("revoked_message")?,
            reason: row.get("reason")?,
        }),
        None => None,
    };
    Ok(Grant {
        id: row.get("id")?,
        granter: row.get("granter")?,
        pkid: row.get("pkid")?,
        assurance: row.word("assurance", Assurance::parse)?,
        text: row.get("text")?,
        scopes: row.lines("scopes")?,
        to: row.lines("receivers")?,
        jurisdictions: row.lines("jurisdictions")?,
        since: row.time("since")?,
        expires: row.opt_time("expires")?,
        message: row.get("message")?,
        digest: row.digest("digest")?,
        originals: row.lines("originals")?,
        revoked,
    })
}

fn find(db: &Connection, id: &str) -> SqlResult<Option<Grant>> {
    db.find(&format!("{GRANT} WHERE id = ?1"), params![id], grant)
}

/// The consents with these names, and those that they go back to.
pub(super) fn named<'n>(
    db: &Connection,
    names: impl Iterator<Item = &'n str>,
) -> SqlResult<Vec<Grant>> {
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

/// Records what follows from the message at a position. Only inside a transaction.
fn keep(db: &Connection, found: &KnownMessage, terms: &Terms) -> SqlResult<()> {
    for grant in &terms.grants {
        record(db, grant)?;
        log::append(db, &grant_event(grant, &grant.message, found.since))?;
    }
    keep_under(db, number(found.seq), &terms.under)
}

/// Records the consents that a message is kept under.
pub(super) fn keep_under(db: &Connection, seq: i64, under: &[String]) -> SqlResult<()> {
    let sql = "INSERT OR IGNORE INTO consent_use (consent, seq) VALUES (?1, ?2)";
    for consent in under {
        db.run(sql, params![consent, seq])?;
    }
    Ok(())
}

/// Records what follows from a message of the person of this store. What it revoked. Only inside a transaction.
fn follow(db: &Connection, outcome: &StoreOutcome, terms: &Terms) -> SqlResult<RevocationResult> {
    let nothing = Ok(RevocationResult::default());
    let (id, is_new) = match outcome {
        StoreOutcome::Filed { id, .. } => (id, true),
        StoreOutcome::Known { id, .. } => (id, false),
        StoreOutcome::Conflict { .. } => return nothing,
    };
    let Some(found) = accept::by_id(db, id)? else {
        return nothing;
    };
    let seq = number(found.seq);
    // A recorded consent stays as it is: else a copy would bring a revoked consent back.
    if !is_new && is_on_record(db, seq, terms)? {
        return nothing;
    }
    if let Some(end) = terms.expires {
        let sql = "UPDATE intake SET expires = ?2 WHERE seq = ?1";
        db.run(sql, params![seq, end.as_millis()])?;
    }
    keep(db, &found, terms)?;
    match &terms.withdrawal {
        Some(what) => revoke(db, Some(seq), what),
        None => nothing,
    }
}

/// Whether everything that follows from the message at a position was written down before.
fn is_on_record(db: &Connection, seq: i64, terms: &Terms) -> SqlResult<bool> {
    if let Some(what) = &terms.withdrawal {
        for id in &what.consents {
            if find(db, id)?.is_none_or(|grant| grant.revoked.is_none()) {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let sql = "SELECT 1 FROM consent_use WHERE consent = ?1 AND seq = ?2";
    for consent in &terms.under {
        if !db.has(sql, params![consent, seq])? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn record(db: &Connection, g: &Grant) -> SqlResult<()> {
    let revoked = g.revoked.as_ref();
    let sql = "INSERT OR REPLACE INTO consent (id, granter, pkid, assurance, text, scopes, \
        receivers, jurisdictions, since, expires, message, digest, originals, revoked_at, \
        revoked_by, revoked_message, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
        ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
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
            g.digest.0,
            g.originals.join("\n"),
            revoked.map(|r| r.at.as_millis()),
            revoked.map(|r| &r.by),
            revoked.map(|r| &r.message),
            revoked.and_then(|r| r.reason.as_ref()),
        ],
    )?;
    for original in &g.originals {
        let sql = "INSERT OR IGNORE INTO consent_origin (original, id) VALUES (?1, ?2)";
        db.run(sql, params![original, g.id])?;
    }
    Ok(())
}

/// Ends consents and tokens, as [`plan_cascade`] says; the REVOKE is at this place, if it is here. Only inside a transaction.
pub(super) fn revoke(
    db: &Connection,
    seq: Option<i64>,
    order: &RevocationOrder,
) -> SqlResult<RevocationResult> {
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
        let sql = "UPDATE consent SET revoked_at = ?2, revoked_by = ?3, revoked_message = ?4, \
            reason = ?5 WHERE id = ?1";
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
        let mut queuer = delivery::DeliveryQueuer::new(db)?;
        for (to, by) in &plan.told {
            queuer.queue((revoke, at), to, *by, URGENT)?;
        }
    }
    let erased: Vec<i64> = plan.erased.iter().copied().map(number).collect();
    for seq in &erased {
        db.run("DELETE FROM expectation WHERE seq = ?1", params![seq])?;
        keep::let_go(db, *seq)?;
    }
    retire::erase_texts(db, &erased)?;
    for seq in &plan.lapsed {
        hold::lapse_revoked(db, *seq, at)?;
    }
    if !plan.result.erased.is_empty() {
        index::set_progress(db, index::SCRUBBED, BEGIN)?;
    }
    if let Some(name) = &plan.token {
        keep::revoke_token(db, name, at)?;
    }
    for event in &plan.events {
        log::append(db, event)?;
    }
    Ok(plan.result)
}

/// The messages under consents, and under all consents that derive from them.
fn revocation_facts(db: &Connection, order: &RevocationOrder) -> SqlResult<RevocationFacts> {
    let mut facts = RevocationFacts::default();
    let (mut places, mut held) = (BTreeSet::new(), BTreeSet::new());
    let mut left: Vec<String> = order.consents.clone();
    while let Some(id) = left.pop() {
        if facts.derived.contains_key(&id) {
            continue;
        }
        let sql = "SELECT id FROM consent_origin WHERE original = ?1";
        let derived = db.all(sql, params![id], value::<String>)?;
        left.extend(derived.iter().cloned());
        if let Some(grant) = find(db, &id)? {
            facts.on_record.insert(id.clone(), grant.revoked.is_some());
        }
        // Texts that are erased already are skipped.
        let sql = "SELECT u.seq FROM consent_use u JOIN intake i ON i.seq = u.seq WHERE \
            u.consent = ?1 AND i.text <> ''";
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

fn covered(db: &Connection, seq: i64) -> SqlResult<CoveredMessage> {
    let sql = format!("SELECT {INTAKE_ROW}, digest FROM intake WHERE seq = ?1");
    let (row, digest): (IntakeRow, Digest) = db.one(&sql, params![seq], |row| {
        Ok((derive::intake_row(row)?, row.digest("digest")?))
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

impl SqliteStore {
    /// The consent with a name.
    pub fn grant(&self, id: &str) -> Result<Option<Grant>, StoreError> {
        self.read(|db| find(db, id))
    }

    /// Consents, the latest first.
    pub fn grants(&self, filter: &GrantFilter) -> Result<Vec<Grant>, StoreError> {
        self.read(|db| {
            let sql = format!(
                "{GRANT} WHERE (?1 IS NULL OR granter = ?1) AND (?2 IS NULL OR (revoked_at IS NULL \
                 AND (expires IS NULL OR expires > ?2))) ORDER BY since DESC, id LIMIT ?3"
            );
            let limit = match filter.limit {
                0 => -1,
                limit => i64::try_from(limit).unwrap_or(-1),
            };
            let at = filter.holding_at.map(Timestamp::as_millis);
            db.all(&sql, params![filter.granter, at, limit], grant)
        })
    }

    /// The ids of the messages that are or were kept under a consent, with whether their text is still there, the oldest
    /// first.
    pub fn under(&self, id: &str) -> Result<Vec<(String, bool)>, StoreError> {
        self.read(|db| {
            let sql = "SELECT i.id, i.text <> '' FROM consent_use u JOIN intake i ON i.seq = \
                u.seq WHERE u.consent = ?1 ORDER BY u.seq";
            db.all(sql, params![id], tuple)
        })
    }

    /// The consents that a message with this id names, and those that these go back to.
    pub fn known(&self, claim: &Claim, message: &str) -> Result<Vec<Grant>, StoreError> {
        self.read(|db| named(db, claim.names(message)))
    }

    /// Keeps a message of the person of this store and writes down what follows from it, if `judge` lets it pass by the consents
    /// that its claim names. In one transaction: nothing is kept under a consent that is revoked meanwhile.
    ///
    /// # Errors
    /// If the store can't be written. Nothing was kept then.
    pub fn accept_ruled(
        &mut self,
        arrival: &Arrival,
        claim: &Claim,
        judge: &Judge<'_>,
    ) -> Result<Result<(StoreOutcome, RevocationResult), Rejection>, StoreError> {
        self.write(|db| {
            let terms = match judge(&named(db, claim.names(arrival.id()))?) {
                Ok(terms) => terms,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let mut outcomes = accept::accept_all(db, std::slice::from_ref(arrival))?;
            let outcome = outcomes.pop().ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            let withdrawn = follow(db, &outcome, &terms)?;
            Ok(Ok((outcome, withdrawn)))
        })
    }

    /// Removes the rest of erased texts from the files of the store, as far as no reader holds an older state. Returns true
    /// if nothing is left.
    pub fn scrub(&mut self) -> Result<bool, StoreError> {
        let stage = self.read(|db| index::progress(db, index::SCRUBBED))?;
        let next = match stage {
            CLEAN => return Ok(true),
            BEGIN => {
                self.with_search_file(SearchIndex::begin_rewrite)?;
                MERGE
            }
            MERGE => match self.with_search_file(SearchIndex::go_on_rewriting)? {
                Some(false) => MERGE,
                Some(true) | None => LOG,
            },
            _ => {
                // Whoever reads an older state is not waited for: it is tried again.
                let patience = self.patience;
                self.set_patience(Duration::ZERO)?;
                let emptied = self.empty_logs();
                self.set_patience(patience)?;
                match emptied? {
                    true => CLEAN,
                    false => return Ok(false),
                }
            }
        };
        self.write(|db| index::set_progress(db, index::SCRUBBED, next))?;
        Ok(next == CLEAN)
    }
}

impl SqliteStore {
    /// The consents with these names, and those that they go back to.
    pub(super) fn named_grants(&self, names: &[String]) -> Result<Vec<Grant>, StoreError> {
        self.read(|db| named(db, names.iter().map(String::as_str)))
    }

    /// Revokes a consent that another state of the same store says was revoked, as it says: the text of the REVOKE may be
    /// erased there. Everything under the consent is erased here. A consent that is revoked already gets the time and the
    /// REVOKE of the other state. Returns the result, or nothing if the consent is not on record here.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub fn adopt_revocation(
        &mut self,
        id: &str,
        revocation: &Revocation,
        now: Timestamp,
    ) -> Result<Option<RevocationResult>, StoreError> {
        self.write(|db| {
            let Some(grant) = find(db, id)? else {
                return Ok(None);
            };
            let withdrawn = match grant.revoked {
                Some(_) => RevocationResult::default(),
                // The log says when it was done here.
                None => revoke(
                    db,
                    None,
                    &RevocationOrder {
                        consents: vec![id.to_owned()],
                        token: None,
                        revocation: Revocation {
                            at: now,
                            ..revocation.clone()
                        },
                    },
                )?,
            };
            let Revocation {
                at,
                by,
                message,
                reason,
            } = revocation;
            let sql = "UPDATE consent SET revoked_at = ?2, revoked_by = ?3, revoked_message = ?4, \
                reason = coalesce(?5, reason) WHERE id = ?1";
            db.run(sql, params![id, at.as_millis(), by, message, reason])?;
            Ok(Some(withdrawn))
        })
    }
}
