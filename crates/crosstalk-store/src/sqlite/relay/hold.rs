//! Messages that wait for a person: beside the intake, so that nothing that looks there finds them.
//!
//! A row stays when it is decided, without its text: the decision is on record, the id is taken, and the same message gets
//! the answer that it got first.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::audit::{Event, EventDetail, EventKind};
use crosstalk_protocol::consent::{Assurance, CoveredHeld, Proof, RevocationChanges};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, DisplacedMessage, HeldMessage, HoldChoice, HoldDecided, HoldDecision,
    HoldReason, NewMessage, Recipient, Ruling,
};
use crosstalk_protocol::store::{Arrival, Record, Side, StoreError, StoredMessage, Way};
use rusqlite::{Connection, Row, params};

use super::unindexed::UnindexedMessages;
use super::{delivery, intake, keep, queue};
use crate::sqlite::SqliteStore;
use crate::sqlite::fault::SqlResult;
use crate::sqlite::log;
use crate::sqlite::sql::{Columns as _, Sql as _, number, time, to_u64, value};
use crosstalk_protocol::VerdictWord;

impl SqliteStore {
    /// The held messages, the oldest first.
    pub(crate) fn waiting(&self, limit: usize) -> Result<Vec<HeldMessage>, StoreError> {
        self.read(|db| {
            let sql = format!(
                "{HELD} INDEXED BY held_waiting WHERE choice IS NULL ORDER BY at, seq LIMIT ?1"
            );
            db.all(&sql, params![number(limit)], message)
        })
    }

    /// The message with an id that is held or was, whatever was decided.
    pub(crate) fn held(&self, id: &str) -> Result<Option<HeldMessage>, StoreError> {
        self.read(|db| by_id(db, id))
    }

    /// The messages, decided or not, whose ids begin with a text.
    ///
    /// # Errors
    /// If the store can't be read.
    pub(crate) fn held_by_prefix(
        &self,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<HeldMessage>, StoreError> {
        self.read(|db| {
            let sql =
                format!("{HELD} WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY id LIMIT ?2");
            db.all(&sql, params![prefix, number(limit)], message)
        })
    }

    /// The latest of what waits for a decision and refers to an attachment so that it grants access.
    pub(crate) fn held_referring(
        &self,
        digest: Digest,
        limit: usize,
    ) -> Result<Vec<HeldMessage>, StoreError> {
        self.read(|db| {
            let sql = format!(
                "{HELD} WHERE choice IS NULL AND seq IN (SELECT seq FROM held_blob WHERE digest = ?1 AND grants = 1) \
                 ORDER BY seq DESC LIMIT ?2"
            );
            db.all(&sql, params![digest.0, number(limit)], message)
        })
    }

    /// Carries out a decision: one transaction records it and accepts the message, or queues the notice to its sender.
    ///
    /// # Errors
    /// If the store can't be written. Nothing was decided then.
    pub(crate) fn decide(&mut self, decision: &HoldDecision) -> Result<Ruling, StoreError> {
        self.accept_with(|db, unindexed| decide(db, decision, unindexed))
    }

    /// The held messages whose consent or deadline has expired.
    pub(crate) fn lapsed(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<HeldMessage>, StoreError> {
        self.read(|db| {
            let sql = format!(
                "{HELD} INDEXED BY held_ends WHERE choice IS NULL AND ends IS NOT NULL AND ends <= ?1 ORDER BY ends LIMIT ?2"
            );
            db.all(&sql, params![now.as_millis(), number(limit)], message)
        })
    }
}

/// Whether a message was held, and a person approved it.
pub(super) fn is_approved(db: &Connection, id: &str) -> SqlResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM held WHERE id = ?1 AND choice = ?2)";
    db.one(sql, params![id, HoldChoice::Approve.as_str()], value)
}

pub(super) fn next_lapse(db: &Connection) -> SqlResult<Option<Timestamp>> {
    let sql = "SELECT min(ends) FROM held INDEXED BY held_ends WHERE choice IS NULL AND ends IS \
        NOT NULL";
    let next = db.one(sql, [], value)?;
    Ok(time(next))
}

const HELD: &str = "SELECT * FROM held";

fn by_id(db: &Connection, id: &str) -> SqlResult<Option<HeldMessage>> {
    db.find(&format!("{HELD} WHERE id = ?1"), params![id], message)
}

/// What a row says.
fn message(row: &Row<'_>) -> SqlResult<HeldMessage> {
    let routes: String = row.get("routes")?;
    let recipient = |(address, by): (&str, _)| Recipient {
        address: address.to_owned(),
        by,
    };
    let recipients = delivery::read_recipients(&routes, "")?;
    let choice: Option<String> = row.get("choice")?;
    let decided = match choice {
        None => None,
        Some(_) => Some(HoldDecided {
            choice: row.word("choice", HoldChoice::parse)?,
            by: row.get("decided_by")?,
            at: row.time("decided_at")?,
            reason: row.get("reason")?,
        }),
    };
    Ok(HeldMessage {
        raw: row.digest("raw")?,
        recipients: recipients.into_iter().map(recipient).collect(),
        peer: row.get("peer")?,
        held: HoldReason {
            why: row.get("why")?,
            deciders: row.lines("deciders")?,
        },
        answer_by: row.opt_time("answer_by")?,
        decided,
        record: Record {
            sender: row.get("sender")?,
            receiver: row.get("receiver")?,
            digest: row.digest("digest")?,
            expires: row.opt_time("expires")?,
            ..Record::pending(arrival(row)?, row.seq("seq")?, row.get("thread")?)
        },
    })
}

fn arrival(row: &Row<'_>) -> SqlResult<Arrival> {
    Ok(Arrival::recall(StoredMessage {
        text: row.get("text")?,
        received: None,
        truncated: false,
        verdict: row.word("verdict", VerdictWord::parse)?,
        pkid: row.opt_text("pkid")?,
        side: Side::Between,
        way: Way::Relayed,
        at: row.time("at")?,
        message: match row.get("carried")? {
            true => Some(row.get("id")?),
            false => None,
        },
        answers: None,
        generated: ReceivedIds {
            thread: row.get("spare_thread")?,
            message: row.get("spare_message")?,
        },
    }))
}

/// Gives a message that is held the id that was generated for it.
pub(super) fn displace(db: &Connection, displaced: &DisplacedMessage) -> SqlResult<()> {
    let sql = "UPDATE held SET id = ?2, carried = 0 WHERE seq = ?1";
    db.run(sql, params![number(displaced.seq), displaced.id])?;
    Ok(())
}

/// Holds a message, whose entry in the log is at a place.
pub(super) fn insert(db: &Connection, held: &NewMessage<'_>, entry: u64) -> SqlResult<()> {
    let (admission, a) = (held.admission, &held.admission.arrival);
    let why = admission.held.clone().unwrap_or_default();
    let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    let sql = "INSERT INTO held (id, carried, pkid, digest, raw, at, verdict, spare_thread, \
        spare_message, thread, sender, receiver, text, peer, routes, answer_by, expires, ends, \
        assurance, why, deciders, entry, firm, authority) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, \
        ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)";
    db.run(
        sql,
        params![
            held.id,
            held.is_carried,
            a.pkid.as_deref().unwrap_or_default(),
            a.digest.0,
            admission.raw.0,
            a.at.as_millis(),
            a.verdict.as_str(),
            held.generated_thread,
            a.generated.message,
            a.thread.as_deref().unwrap_or(&held.generated_thread),
            a.sender,
            a.receiver,
            a.text,
            admission.peer,
            delivery::recipient_lines(&admission.recipients),
            millis(admission.answer_by),
            millis(held.expires),
            millis(held.ends()),
            admission.proof.assurance.as_str(),
            why.why,
            why.deciders.join("\n"),
            number(entry),
            admission.proof.is_firm,
            admission.is_authority,
        ],
    )?;
    let seq = db.last_insert_rowid();
    keep::hold_blobs(db, &held.blobs, seq)?;
    for consent in &held.under {
        let sql = "INSERT OR IGNORE INTO held_consent (consent, seq) VALUES (?1, ?2)";
        db.run(sql, params![consent, seq])?;
    }
    Ok(())
}

/// Carries a decision out. Only inside a transaction.
fn decide(
    db: &Connection,
    decision: &HoldDecision,
    unindexed: &mut UnindexedMessages,
) -> SqlResult<Ruling> {
    let Some(found) = by_id(db, &decision.id)? else {
        return Ok(Ruling::Unknown);
    };
    if let Err(ruling) = found.rule(decision) {
        return Ok(ruling);
    }
    if decision.choice != HoldChoice::Approve {
        settle(db, &found, decision)?;
        queue::enqueue_notices(db, decision.report.clone())?;
        return Ok(Ruling::Done(None));
    }
    let admission = Box::new(released(db, &found)?);
    db.execute_batch("SAVEPOINT decision")?;
    settle(db, &found, decision)?;
    let taken = match intake::accept_approved(db, &admission, unindexed)? {
        AcceptOutcome::Accepted { seq, .. } => Some((seq, admission)),
        AcceptOutcome::Rejected(refusal) => {
            db.execute_batch("ROLLBACK TO decision; RELEASE decision")?;
            return Ok(Ruling::NotAllowed(refusal));
        }
        AcceptOutcome::Known { .. } | AcceptOutcome::Held { .. } => None,
    };
    db.execute_batch("RELEASE decision")?;
    Ok(Ruling::Done(taken))
}

/// Lapses messages without a decision, with a reason and no report: those of a condition, in `held` as `h`. Only inside a
/// transaction.
pub(in crate::sqlite) fn lapse_where(
    db: &Connection,
    which: &str,
    value: &dyn rusqlite::ToSql,
    (reason, at): (&str, Timestamp),
) -> SqlResult<Vec<HeldMessage>> {
    let sql = format!("SELECT h.* FROM held h WHERE h.choice IS NULL AND {which}");
    let chosen = db.all(&sql, [value], message)?;
    for found in &chosen {
        let lapse = HoldDecision {
            id: found.record.id.clone(),
            digest: found.record.digest,
            raw: found.raw,
            choice: HoldChoice::Lapse,
            reason: Some(reason.to_owned()),
            by: RevocationChanges::LAPSED_BY.to_owned(),
            at,
            report: None,
        };
        settle(db, found, &lapse)?;
    }
    Ok(chosen)
}

/// The messages that wait under a consent.
pub(in crate::sqlite) fn waiting_under(
    db: &Connection,
    consent: &str,
) -> SqlResult<Vec<CoveredHeld>> {
    let sql = "SELECT h.* FROM held h WHERE h.choice IS NULL AND h.seq IN (SELECT seq FROM \
        held_consent WHERE consent = ?1)";
    db.all(sql, params![consent], |row| {
        let found = message(row)?;
        Ok(CoveredHeld {
            seq: found.record.seq,
            id: found.record.id,
            digest: found.record.digest,
            raw: found.raw,
            sender: found.record.sender,
            thread: found.record.thread,
            recipients: found.recipients.into_iter().map(|r| r.address).collect(),
        })
    })
}

/// Lapses a message because its consent was revoked.
pub(in crate::sqlite) fn lapse_revoked(db: &Connection, seq: u64, at: Timestamp) -> SqlResult<()> {
    let decided = HoldDecided {
        choice: HoldChoice::Lapse,
        by: RevocationChanges::LAPSED_BY.to_owned(),
        at,
        reason: Some(RevocationChanges::LAPSED.to_owned()),
    };
    record(db, number(seq), &decided)
}

/// Forgets the held messages of a thread. Decisions stay on record.
pub(in crate::sqlite) fn forget(db: &Connection, thread: &str) -> SqlResult<u64> {
    let chosen = db.all(
        "SELECT seq FROM held WHERE thread = ?1 AND choice IS NULL",
        params![thread],
        value::<i64>,
    )?;
    for seq in &chosen {
        keep::drop_held(db, *seq)?;
        for sql in [
            "DELETE FROM held_consent WHERE seq = ?1",
            "DELETE FROM held WHERE seq = ?1",
        ] {
            db.run(sql, params![seq])?;
        }
    }
    Ok(to_u64(chosen.len()))
}

/// Puts a decision on record and into the log; the text is not kept.
fn settle(db: &Connection, found: &HeldMessage, decision: &HoldDecision) -> SqlResult<()> {
    let reason = decision.reason.as_deref();
    let detail = EventDetail::default().with("by", &decision.by);
    let event = Event {
        kind: match decision.choice {
            HoldChoice::Approve => EventKind::Approved,
            HoldChoice::Refuse => EventKind::Declined,
            HoldChoice::Lapse => EventKind::Failed,
        },
        at: decision.at,
        id: Some(&decision.id),
        canonical: Some(found.record.digest),
        raw: Some(found.raw),
        detail: Some(match reason {
            Some(reason) => detail.with("why", reason),
            None => detail,
        }),
    };
    log::append(db, &event)?;
    let decided = HoldDecided {
        choice: decision.choice,
        by: decision.by.clone(),
        at: decision.at,
        reason: decision.reason.clone(),
    };
    record(db, number(found.record.seq), &decided)
}

/// Puts a decision on record; the text is not kept.
fn record(db: &Connection, seq: i64, decided: &HoldDecided) -> SqlResult<()> {
    match decided.choice {
        // The accepted message refers to them from now on.
        HoldChoice::Approve => keep::release_held(db, seq)?,
        HoldChoice::Refuse | HoldChoice::Lapse => keep::drop_held(db, seq)?,
    }
    let sql = "UPDATE held SET choice = ?2, decided_by = ?3, decided_at = ?4, reason = ?5, text \
        = '', ends = NULL WHERE seq = ?1";
    db.run(
        sql,
        params![
            seq,
            decided.choice.as_str(),
            decided.by,
            decided.at.as_millis(),
            decided.reason
        ],
    )?;
    Ok(())
}

/// The message as the store accepts it after approval.
fn released(db: &Connection, found: &HeldMessage) -> SqlResult<Admission> {
    let seq = number(found.record.seq);
    let sql = format!("{HELD} WHERE seq = ?1");
    let (arrival, proof, is_authority) = db.one(&sql, params![seq], |row| {
        let proof = Proof {
            assurance: row.word("assurance", Assurance::parse)?,
            is_firm: row.get("firm")?,
            ..Proof::default()
        };
        Ok((arrival(row)?, proof, row.get("authority")?))
    })?;
    let recipients = found.recipients.clone();
    let blobs = keep::held_blobs(db, seq)?;
    Ok(Admission {
        proof,
        is_authority,
        answer_by: found.answer_by,
        expires: found.record.expires,
        readable: blobs.iter().filter(|b| b.1).map(|b| b.0).collect(),
        blobs: blobs.into_iter().map(|(digest, _)| digest).collect(),
        ..Admission::recall(arrival, found.peer.clone(), recipients)
    })
}
