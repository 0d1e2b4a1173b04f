//! Consents on record: granted, relied on, revoked; and what a revocation takes with it.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::Rejection;
use crosstalk_protocol::audit::{Event, EventDetail, EventKind};
use crosstalk_protocol::consent::{
    Assurance, Cancelled, Claim, Erased, Grant, GrantFilter, Judge, LedgerStore, Revocation,
    RevocationOrder, RevocationResult, Terms,
};
use crosstalk_protocol::relay::DeliveryState;
use crosstalk_protocol::store::{Arrival, StoreError, StoreOutcome, party};
use rusqlite::{Connection, Row, params};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::derive::{self, INTAKE_ROW, IntakeRow};
use super::fault::SqlResult;
use super::relay::{delivery, hold, index, keep, retire};
use super::search::SearchIndex;
use super::{SqliteStore, accept, log};
use crate::sqlite::sql::{Columns as _, Sql as _, tuple, value};

/// How far traces of erased texts are taken out: nothing to do, words to be written anew, the log to be emptied.
const CLEAN: i64 = 0;
const BEGIN: i64 = 1;
const MERGE: i64 = 2;
const LOG: i64 = 3;
/// Why a text was erased, in the log.
const WITHDRAWN: &str = "the consent was withdrawn";
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
pub(super) fn keep(db: &Connection, (seq, at): (i64, Timestamp), terms: &Terms) -> SqlResult<()> {
    for grant in &terms.grants {
        record(db, grant)?;
        let kind = match grant.originals.is_empty() {
            true => EventKind::Granted,
            false => EventKind::Transferred,
        };
        let detail = EventDetail::default()
            .with("consent", &grant.id)
            .with("by", &grant.granter)
            .with("how", grant.assurance.as_str());
        log::append(
            db,
            &Event {
                id: Some(&grant.message),
                canonical: Some(grant.digest),
                detail: Some(detail),
                ..Event::new(kind, at)
            },
        )?;
    }
    for consent in &terms.under {
        let sql = "INSERT OR IGNORE INTO consent_use (consent, seq) VALUES (?1, ?2)";
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
    // What is known and on record stays as it is: else a copy would bring a revoked consent back.
    if !is_new && is_on_record(db, found.seq, terms)? {
        return nothing;
    }
    if let Some(end) = terms.expires {
        let sql = "UPDATE intake SET expires = ?2 WHERE seq = ?1";
        db.run(sql, params![found.seq, end.as_millis()])?;
    }
    keep(db, (found.seq, found.since), terms)?;
    match &terms.withdrawal {
        Some(what) => revoke(db, Some(found.seq), what),
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

fn record(db: &Connection, g: &Grant) -> SqlResult<()> {
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

/// Ends consents and tokens: everything under them is erased, what is on its way cancelled, and the REVOKE at this place,
/// if it is here, goes to everybody who got some of it. Only inside a transaction.
pub(super) fn revoke(
    db: &Connection,
    seq: Option<i64>,
    what: &RevocationOrder,
) -> SqlResult<RevocationResult> {
    let mut withdrawn = RevocationResult {
        consents: chain(db, &what.consents)?,
        ..RevocationResult::default()
    };
    let mut places = BTreeSet::new();
    for id in &withdrawn.consents {
        end(db, id, what)?;
        note(db, what, "consent", id)?;
        // What is erased already is not erased again.
        let sql = "SELECT u.seq FROM consent_use u JOIN intake i ON i.seq = u.seq WHERE \
            u.consent = ?1 AND i.text <> ''";
        places.extend(db.all(sql, params![id], value::<i64>)?);
    }
    if let Some(seq) = seq {
        places.remove(&seq);
    }
    for place in &places {
        release(db, (*place, seq), what.revocation.at, &mut withdrawn)?;
    }
    let places: Vec<i64> = places.into_iter().collect();
    retire::erase_texts(db, &places)?;
    for id in &withdrawn.consents.clone() {
        for held in hold::revoke(db, id, what.revocation.at)? {
            let (id, digest) = (held.record.id, held.record.digest);
            erased(db, &id, digest, what.revocation.at)?;
            for recipient in held.recipients {
                withdrawn.cancelled.push(Cancelled {
                    id: id.clone(),
                    from: held.record.sender.clone(),
                    to: recipient.address,
                    thread: held.record.thread.clone(),
                });
            }
            withdrawn.erased.push(Erased { id, digest });
        }
    }
    if !withdrawn.erased.is_empty() {
        index::set_progress(db, index::SCRUBBED, BEGIN)?;
    }
    if let Some(name) = &what.token
        && keep::revoke_token(db, name, what.revocation.at)?
    {
        note(db, what, "token", name)?;
        withdrawn.tokens.push(name.clone());
    }
    withdrawn.told.sort();
    withdrawn.told.dedup();
    Ok(withdrawn)
}

/// That something was revoked.
fn note(db: &Connection, what: &RevocationOrder, kind: &'static str, name: &str) -> SqlResult<()> {
    let Revocation {
        at, by, message, ..
    } = &what.revocation;
    let detail = EventDetail::default().with(kind, name).with("by", by);
    let event = Event {
        id: Some(message),
        detail: Some(detail),
        ..Event::new(EventKind::Revoked, *at)
    };
    log::append(db, &event).map(|_| ())
}

/// Consents, and all that go back to them, those that are named first.
fn chain(db: &Connection, ids: &[String]) -> SqlResult<Vec<String>> {
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    let mut left: VecDeque<String> = ids.iter().cloned().collect();
    while let Some(id) = left.pop_front() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let sql = "SELECT id FROM consent_origin WHERE original = ?1";
        left.extend(db.all(sql, params![id], value::<String>)?);
        all.push(id);
    }
    Ok(all)
}

/// Ends a consent; one that nobody has seen yet is ended before it is.
fn end(db: &Connection, id: &str, what: &RevocationOrder) -> SqlResult<()> {
    let Revocation {
        at,
        by,
        message,
        reason,
    } = &what.revocation;
    let sql = "UPDATE consent SET revoked_at = ?2, revoked_by = ?3, revoked_message = ?4, reason \
        = ?5 WHERE id = ?1 AND revoked_at IS NULL";
    let ended = db.run(sql, params![id, at.as_millis(), by, message, reason])?;
    if ended == 0 && find(db, id)?.is_none() {
        record(db, &Grant::unseen(id, &what.revocation))?;
    }
    Ok(())
}

/// Cancels what is on its way of a message, notes who has to be told, and lets go of its attachments.
fn release(
    db: &Connection,
    (seq, revoke): (i64, Option<i64>),
    at: Timestamp,
    withdrawn: &mut RevocationResult,
) -> SqlResult<()> {
    let sql = format!("SELECT {INTAKE_ROW}, digest FROM intake WHERE seq = ?1 AND text <> ''");
    let kept = db.find(&sql, params![seq], |row| {
        Ok((
            derive::intake_row(row)?,
            row.get("id")?,
            row.digest("digest")?,
        ))
    })?;
    let Some((filed, id, digest)): Option<(IntakeRow, String, Digest)> = kept else {
        return Ok(());
    };
    for delivery in delivery::deliveries(db, &id)? {
        match delivery.state {
            DeliveryState::Failed => {}
            DeliveryState::Delivered | DeliveryState::Read | DeliveryState::Acknowledged => {
                // The REVOKE goes the way that the message went.
                if let Some(revoke) = revoke {
                    delivery::queue(db, (revoke, at), &delivery.to, delivery.by, URGENT)?;
                }
                withdrawn.told.push(delivery.to);
            }
            DeliveryState::Queued | DeliveryState::Held | DeliveryState::Quarantined => {
                let to = party(&delivery.to);
                delivery::cancel(db, seq, &to, at, "E-CONSENT: the consent was withdrawn")?;
                withdrawn
                    .cancelled
                    .push(cancelled(&id, &filed, delivery.to));
            }
        }
    }
    db.run("DELETE FROM expectation WHERE seq = ?1", params![seq])?;
    keep::let_go(db, seq)?;
    log::erased(db, seq, at, WITHDRAWN)?;
    withdrawn.erased.push(Erased { id, digest });
    Ok(())
}

/// That the text of a message was erased.
fn erased(db: &Connection, id: &str, digest: Digest, at: Timestamp) -> SqlResult<()> {
    let event = Event {
        id: Some(id),
        canonical: Some(digest),
        ..Event::new(EventKind::Erased, at)
    };
    log::append(db, &event).map(|_| ())
}

fn cancelled(id: &str, filed: &IntakeRow, to: String) -> Cancelled {
    Cancelled {
        id: id.to_owned(),
        from: filed.arrival.sender.clone(),
        to,
        thread: filed.thread.clone(),
    }
}

impl LedgerStore for SqliteStore {
    fn grant(&self, id: &str) -> Result<Option<Grant>, StoreError> {
        self.read(|db| find(db, id))
    }

    fn grants(&self, filter: &GrantFilter) -> Result<Vec<Grant>, StoreError> {
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

    fn under(&self, id: &str) -> Result<Vec<(String, bool)>, StoreError> {
        self.read(|db| {
            let sql = "SELECT i.id, i.text <> '' FROM consent_use u JOIN intake i ON i.seq = \
                u.seq WHERE u.consent = ?1 ORDER BY u.seq";
            db.all(sql, params![id], tuple)
        })
    }

    fn known(&self, claim: &Claim, message: &str) -> Result<Vec<Grant>, StoreError> {
        self.read(|db| named(db, claim.names(message)))
    }

    fn accept_ruled(
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

    fn scrub(&mut self) -> Result<bool, StoreError> {
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
    /// Revokes a consent that another state of the same store says was revoked, as it says: the text of the REVOKE may be
    /// erased there. Everything under the consent is erased here. What was revoked before gets the time and the REVOKE of the
    /// other state. What became of it; nothing if the consent is not on record here.
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
