//! Consents on record: granted, relied on, withdrawn; and what a withdrawal takes with it.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::Refusal;
use crosstalk_protocol::audit::{Detail, Event, EventKind};
use crosstalk_protocol::consent::{
    Assurance, Cancelled, Claim, Erased, Grant, GrantFilter, Judge, LedgerStore, Revocation, Terms,
    Withdrawal, Withdrawn,
};
use crosstalk_protocol::relay::{Handler, State};
use crosstalk_protocol::store::{Arrival, Outcome, StoreError, party};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::derive::{self, FILED, Filed};
use super::fault::Step;
use super::relay::{delivery, hold, keep, progress, retire, route};
use super::{PATIENCE, SqliteStore, accept, fault, forget, log};

/// How far traces of erased texts are taken out: nothing to do, words to be written anew, the log to be emptied.
const CLEAN: i64 = 0;
const BEGIN: i64 = 1;
const MERGE: i64 = 2;
const LOG: i64 = 3;
/// Why a text was erased, in the log.
const WITHDRAWN: &str = "the consent was withdrawn";
/// How many pages of words are written anew in one step.
const PAGES: i64 = 2000;

const GRANT: &str = "SELECT id, granter, pkid, assurance, text, scopes, receivers, jurisdictions, since, expires, \
                     message, digest, originals, revoked_at, revoked_by, revoked_message, reason FROM consent";

fn grant(row: &Row<'_>) -> Step<Grant> {
    let revoked_at: Option<i64> = row.get("revoked_at")?;
    let lines = |column: &str| Ok::<_, rusqlite::Error>(texts(&row.get::<_, String>(column)?));
    let revoked = match revoked_at {
        Some(at) => Some(Revocation {
            at: Timestamp::from_millis(at),
            by: row.get("revoked_by")?,
            message: row.get("revoked_message")?,
            reason: row.get("reason")?,
        }),
        None => None,
    };
    let expires: Option<i64> = row.get("expires")?;
    Ok(Grant {
        id: row.get("id")?,
        granter: row.get("granter")?,
        pkid: row.get("pkid")?,
        assurance: derive::word(row, "assurance", Assurance::parse)?,
        text: row.get("text")?,
        scopes: lines("scopes")?,
        to: lines("receivers")?,
        jurisdictions: lines("jurisdictions")?,
        since: Timestamp::from_millis(row.get("since")?),
        expires: expires.map(Timestamp::from_millis),
        message: row.get("message")?,
        digest: Digest(row.get("digest")?),
        originals: lines("originals")?,
        revoked,
    })
}

fn texts(lines: &str) -> Vec<String> {
    lines.lines().map(str::to_owned).collect()
}

fn find(db: &Connection, id: &str) -> Step<Option<Grant>> {
    db.prepare_cached(&format!("{GRANT} WHERE id = ?1"))?
        .query_row(params![id], grant)
        .optional()
}

/// The consents with these names, and those that they go back to.
pub(super) fn named<'n>(db: &Connection, names: impl Iterator<Item = &'n str>) -> Step<Vec<Grant>> {
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

/// Writes down what follows from the message at a place. Only inside of a transaction.
pub(super) fn keep(db: &Connection, (seq, at): (i64, Timestamp), terms: &Terms) -> Step<()> {
    for grant in &terms.grants {
        record(db, grant)?;
        let kind = match grant.originals.is_empty() {
            true => EventKind::Granted,
            false => EventKind::Transferred,
        };
        let detail = Detail::default()
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
        db.prepare_cached("INSERT OR IGNORE INTO consent_use (consent, seq) VALUES (?1, ?2)")?
            .execute(params![consent, seq])?;
    }
    Ok(())
}

/// Writes down what follows from a message of the person of this store. What it withdrew. Only inside of a transaction.
fn follow(db: &Connection, outcome: &Outcome, terms: &Terms) -> Step<Withdrawn> {
    let nothing = Ok(Withdrawn::default());
    let (id, is_new) = match outcome {
        Outcome::Filed { id, .. } => (id, true),
        Outcome::Known { id, .. } => (id, false),
        Outcome::Conflict { .. } => return nothing,
    };
    let Some(found) = accept::by_id(db, id)? else {
        return nothing;
    };
    // What is known and on record stays as it is: else a copy would bring a withdrawn consent back.
    if !is_new && is_on_record(db, found.seq, terms)? {
        return nothing;
    }
    if let Some(end) = terms.expires {
        db.prepare_cached("UPDATE intake SET expires = ?2 WHERE seq = ?1")?
            .execute(params![found.seq, end.as_millis()])?;
    }
    keep(db, (found.seq, found.since), terms)?;
    match &terms.withdrawal {
        Some(what) => withdraw(db, Some(found.seq), what),
        None => nothing,
    }
}

/// Whether everything that follows from the message at a place was written down before.
fn is_on_record(db: &Connection, seq: i64, terms: &Terms) -> Step<bool> {
    if let Some(what) = &terms.withdrawal {
        for id in &what.consents {
            if find(db, id)?.is_none_or(|grant| grant.revoked.is_none()) {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let mut used =
        db.prepare_cached("SELECT 1 FROM consent_use WHERE consent = ?1 AND seq = ?2")?;
    for consent in &terms.under {
        if !used.exists(params![consent, seq])? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn record(db: &Connection, g: &Grant) -> Step<()> {
    let revoked = g.revoked.as_ref();
    db.prepare_cached(
        "INSERT OR REPLACE INTO consent (id, granter, pkid, assurance, text, scopes, receivers, jurisdictions, since, \
         expires, message, digest, originals, revoked_at, revoked_by, revoked_message, reason) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?
    .execute(params![
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
    ])?;
    for original in &g.originals {
        db.prepare_cached("INSERT OR IGNORE INTO consent_origin (original, id) VALUES (?1, ?2)")?
            .execute(params![original, g.id])?;
    }
    Ok(())
}

/// Ends consents and tokens: everything under them is erased, what is on its way cancelled, and the REVOKE at this place,
/// if it is here, goes to everybody who got some of it. Only inside of a transaction.
pub(super) fn withdraw(db: &Connection, seq: Option<i64>, what: &Withdrawal) -> Step<Withdrawn> {
    let mut withdrawn = Withdrawn {
        consents: chain(db, &what.consents)?,
        ..Withdrawn::default()
    };
    let mut places = BTreeSet::new();
    for id in &withdrawn.consents {
        end(db, id, what)?;
        note(db, what, "consent", id)?;
        // What is erased already is not erased again.
        let mut find = db.prepare_cached(
            "SELECT u.seq FROM consent_use u JOIN intake i ON i.seq = u.seq WHERE u.consent = ?1 AND i.text <> ''",
        )?;
        for place in find.query_map(params![id], |row| row.get::<_, i64>(0))? {
            places.insert(place?);
        }
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
        for held in hold::withdraw(db, id, what.revocation.at)? {
            erased(db, &held.id, held.digest, what.revocation.at)?;
            withdrawn.erased.push(Erased {
                id: held.id.clone(),
                digest: held.digest,
            });
            withdrawn
                .cancelled
                .extend(held.to.into_iter().map(|to| Cancelled {
                    id: held.id.clone(),
                    from: held.from.clone(),
                    to,
                    thread: held.thread.clone(),
                }));
        }
    }
    if !withdrawn.erased.is_empty() {
        progress::set(db, progress::SCRUBBED, BEGIN)?;
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

/// That something was withdrawn.
fn note(db: &Connection, what: &Withdrawal, kind: &'static str, name: &str) -> Step<()> {
    let Revocation {
        at, by, message, ..
    } = &what.revocation;
    let detail = Detail::default().with(kind, name).with("by", by);
    let event = Event {
        id: Some(message),
        detail: Some(detail),
        ..Event::new(EventKind::Revoked, *at)
    };
    log::append(db, &event).map(|_| ())
}

/// Consents, and all that go back to them, those that are named first.
fn chain(db: &Connection, ids: &[String]) -> Step<Vec<String>> {
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    let mut left: VecDeque<String> = ids.iter().cloned().collect();
    while let Some(id) = left.pop_front() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let mut find = db.prepare_cached("SELECT id FROM consent_origin WHERE original = ?1")?;
        for next in find.query_map(params![id], |row| row.get(0))? {
            left.push_back(next?);
        }
        all.push(id);
    }
    Ok(all)
}

/// Ends a consent; one that nobody has seen yet is ended before it is.
fn end(db: &Connection, id: &str, what: &Withdrawal) -> Step<()> {
    let Revocation {
        at,
        by,
        message,
        reason,
    } = &what.revocation;
    let ended = db
        .prepare_cached(
            "UPDATE consent SET revoked_at = ?2, revoked_by = ?3, revoked_message = ?4, reason = ?5 \
             WHERE id = ?1 AND revoked_at IS NULL",
        )?
        .execute(params![id, at.as_millis(), by, message, reason])?;
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
    withdrawn: &mut Withdrawn,
) -> Step<()> {
    let sql = format!("SELECT {FILED}, digest FROM intake WHERE seq = ?1 AND text <> ''");
    let kept = db
        .prepare_cached(&sql)?
        .query_row(params![seq], |row| {
            Ok((
                derive::filed(row)?,
                row.get("id")?,
                Digest(row.get("digest")?),
            ))
        })
        .optional()?;
    let Some((filed, id, digest)): Option<(Filed, String, Digest)> = kept else {
        return Ok(());
    };
    let is_filed = seq <= progress::place(db, progress::FILED)?;
    if !is_filed {
        // Its deliveries are not written yet, and will not be.
        let routes: String = db
            .prepare_cached("SELECT routes FROM intake WHERE seq = ?1")?
            .query_row(params![seq], |row| row.get(0))?;
        for (address, handler) in route::read(&routes, &filed.arrival.receiver)? {
            queue(db, (seq, filed.arrival.at), address, handler)?;
        }
    }
    for delivery in delivery::deliveries(db, &id)? {
        match delivery.state {
            State::Failed => {}
            State::Delivered | State::Read | State::Acknowledged => {
                // The REVOKE goes the way that the message went.
                if let Some(revoke) = revoke {
                    queue(db, (revoke, at), &delivery.to, delivery.by)?;
                }
                withdrawn.told.push(delivery.to);
            }
            State::Queued | State::Held | State::Quarantined => {
                let to = party(&delivery.to);
                delivery::cancel(db, seq, &to, at, "E-CONSENT: the consent was withdrawn")?;
                withdrawn
                    .cancelled
                    .push(cancelled(&id, &filed, delivery.to));
            }
        }
    }
    db.prepare_cached("DELETE FROM expectation WHERE seq = ?1")?
        .execute(params![seq])?;
    keep::let_go(db, seq)?;
    log::erased(db, seq, at, WITHDRAWN)?;
    withdrawn.erased.push(Erased { id, digest });
    Ok(())
}

/// That the text of a message was erased.
fn erased(db: &Connection, id: &str, digest: Digest, at: Timestamp) -> Step<()> {
    let event = Event {
        id: Some(id),
        canonical: Some(digest),
        ..Event::new(EventKind::Erased, at)
    };
    log::append(db, &event).map(|_| ())
}

fn cancelled(id: &str, filed: &Filed, to: String) -> Cancelled {
    Cancelled {
        id: id.to_owned(),
        from: filed.arrival.sender.clone(),
        to,
        thread: filed.thread.clone(),
    }
}

/// Queues a delivery.
fn queue(db: &Connection, (seq, at): (i64, Timestamp), to: &str, by: Handler) -> Step<()> {
    db.prepare_cached(
        "INSERT OR IGNORE INTO delivery (seq, party, address, handler, state, priority, attempts, next_at, queued_at) \
         VALUES (?1, ?2, ?3, ?4, 0, 0, 0, iif(?4 > 1, ?5, NULL), ?5)",
    )?
    .execute(params![
        seq,
        party(to),
        to,
        route::handler_number(by),
        at.as_millis()
    ])?;
    Ok(())
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
            let most = match filter.most {
                0 => -1,
                most => i64::try_from(most).unwrap_or(-1),
            };
            let at = filter.holding_at.map(Timestamp::as_millis);
            let mut find = db.prepare_cached(&sql)?;
            let rows = find.query_map(params![filter.granter, at, most], grant)?;
            rows.collect()
        })
    }

    fn under(&self, id: &str) -> Result<Vec<(String, bool)>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT i.id, i.text <> '' FROM consent_use u JOIN intake i ON i.seq = u.seq WHERE u.consent = ?1 \
                 ORDER BY u.seq",
            )?;
            let rows = find.query_map(params![id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
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
    ) -> Result<Result<(Outcome, Withdrawn), Refusal>, StoreError> {
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
        let stage = self.read(|db| progress::place(db, progress::SCRUBBED))?;
        let next = match stage {
            CLEAN => return Ok(true),
            BEGIN => self.write(|db| merge(db, -PAGES).map(|_| MERGE))?,
            MERGE => self.write(|db| {
                let is_done = merge(db, PAGES)? < 2;
                Ok(if is_done { LOG } else { MERGE })
            })?,
            _ => {
                let failed = |e| fault::at(&self.path, &e);
                // Whoever reads an older state is not waited for: it is tried again.
                self.db.busy_timeout(Duration::ZERO).map_err(failed)?;
                let emptied = forget::empty_log(&self.db);
                self.db.busy_timeout(PATIENCE).map_err(failed)?;
                match emptied.map_err(failed)? {
                    true => CLEAN,
                    false => return Ok(false),
                }
            }
        };
        self.write(|db| progress::set(db, progress::SCRUBBED, next))?;
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
    ) -> Result<Option<Withdrawn>, StoreError> {
        self.write(|db| {
            let Some(grant) = find(db, id)? else {
                return Ok(None);
            };
            let withdrawn = match grant.revoked {
                Some(_) => Withdrawn::default(),
                // The log says when it was done here.
                None => withdraw(
                    db,
                    None,
                    &Withdrawal {
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
            db.prepare_cached(
                "UPDATE consent SET revoked_at = ?2, revoked_by = ?3, revoked_message = ?4, reason = coalesce(?5, reason) \
                 WHERE id = ?1",
            )?
            .execute(params![id, at.as_millis(), by, message, reason])?;
            Ok(Some(withdrawn))
        })
    }
}

/// Writes pages of words anew. How many changes that made.
fn merge(db: &Connection, pages: i64) -> Step<u64> {
    let before = db.total_changes();
    db.prepare_cached("INSERT INTO words (words, rank) VALUES ('merge', ?1)")?
        .execute(params![pages])?;
    Ok(db.total_changes().saturating_sub(before))
}
