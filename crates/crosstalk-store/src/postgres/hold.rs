//! Messages that wait for a person: beside the intake, so that nothing that looks there finds them.
//!
//! A row stays when it is decided, without its text: the decision is on record, the id is taken, and the same message gets
//! the answer that it got first.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::audit::{Event, EventDetail, EventKind};
use crosstalk_protocol::consent::{Assurance, CoveredHeld, Proof, RevocationChanges};
use crosstalk_protocol::relay::port::HeldQuery;
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, DisplacedMessage, HeldMessage, HoldChoice, HoldDecided, HoldDecision,
    HoldReason, NewMessage, Recipient, Ruling,
};
use crosstalk_protocol::store::{Arrival, Record, Side, StoredMessage, Way};
use tokio_postgres::Row;

use super::fault::PgResult;
use super::log;
use super::sql::{Db, PgColumns as _, bytes, millis, number, params, time, value};
use super::{delivery, intake, keep, queue};
use crosstalk_protocol::VerdictWord;

/// Messages that are or were held.
pub(super) fn held(db: &Db, query: &HeldQuery) -> PgResult<Vec<HeldMessage>> {
    match query {
        HeldQuery::Waiting { limit } => {
            let sql = format!("{HELD} WHERE choice IS NULL ORDER BY at, seq LIMIT $1");
            db.all(&sql, params![number(*limit)], message)
        }
        HeldQuery::Id(id) => Ok(by_id(db, id)?.into_iter().collect()),
        HeldQuery::Prefix { prefix, limit } => {
            let sql = format!("{HELD} WHERE id >= $1 AND starts_with(id, $1) ORDER BY id LIMIT $2");
            db.all(&sql, params![prefix, number(*limit)], message)
        }
        HeldQuery::Referring { digest, limit } => {
            let sql = format!(
                "{HELD} WHERE choice IS NULL AND seq IN (SELECT seq FROM held_blob WHERE digest = $1 AND grants) \
                 ORDER BY seq DESC LIMIT $2"
            );
            db.all(&sql, params![bytes(digest), number(*limit)], message)
        }
        HeldQuery::Lapsed { now, limit } => {
            let sql = format!(
                "{HELD} WHERE choice IS NULL AND ends IS NOT NULL AND ends <= $1 ORDER BY ends LIMIT $2"
            );
            db.all(&sql, params![now.as_millis(), number(*limit)], message)
        }
    }
}

/// Whether a message was held, and a person approved it.
pub(super) fn is_approved(db: &Db, id: &str) -> PgResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM held WHERE id = $1 AND choice = $2)";
    db.one(sql, params![id, HoldChoice::Approve.as_str()], value)
}

pub(super) fn next_lapse(db: &Db) -> PgResult<Option<Timestamp>> {
    let sql = "SELECT min(ends) FROM held WHERE choice IS NULL AND ends IS \
        NOT NULL";
    let next = db.one(sql, params![], value)?;
    Ok(time(next))
}

const HELD: &str = "SELECT * FROM held";

fn by_id(db: &Db, id: &str) -> PgResult<Option<HeldMessage>> {
    db.find(&format!("{HELD} WHERE id = $1"), params![id], message)
}

/// What a row says.
fn message(row: &Row) -> PgResult<HeldMessage> {
    let routes: String = row.try_get("routes")?;
    let recipient = |(address, by): (&str, _)| Recipient {
        address: address.to_owned(),
        by,
    };
    let recipients = delivery::read_recipients(&routes, "")?;
    let choice: Option<String> = row.try_get("choice")?;
    let decided = match choice {
        None => None,
        Some(_) => Some(HoldDecided {
            choice: row.word("choice", HoldChoice::parse)?,
            by: row.try_get("decided_by")?,
            at: row.time("decided_at")?,
            reason: row.try_get("reason")?,
        }),
    };
    Ok(HeldMessage {
        raw: row.digest("raw")?,
        recipients: recipients.into_iter().map(recipient).collect(),
        peer: row.try_get("peer")?,
        held: HoldReason {
            why: row.try_get("why")?,
            deciders: row.lines("deciders")?,
        },
        answer_by: row.opt_time("answer_by")?,
        decided,
        record: Record {
            sender: row.try_get("sender")?,
            receiver: row.try_get("receiver")?,
            digest: row.digest("digest")?,
            expires: row.opt_time("expires")?,
            ..Record::pending(arrival(row)?, row.seq("seq")?, row.try_get("thread")?)
        },
    })
}

fn arrival(row: &Row) -> PgResult<Arrival> {
    Ok(Arrival::recall(StoredMessage {
        text: row.try_get("text")?,
        received: None,
        truncated: false,
        verdict: row.word("verdict", VerdictWord::parse)?,
        pkid: row.opt_text("pkid")?,
        side: Side::Between,
        way: Way::Relayed,
        at: row.time("at")?,
        message: match row.try_get("carried")? {
            true => Some(row.try_get("id")?),
            false => None,
        },
        answers: None,
        generated: ReceivedIds {
            thread: row.try_get("spare_thread")?,
            message: row.try_get("spare_message")?,
        },
    }))
}

/// Gives a message that is held the id that was generated for it.
pub(super) fn displace(db: &Db, displaced: &DisplacedMessage) -> PgResult<()> {
    let sql = "UPDATE held SET id = $2, carried = FALSE WHERE seq = $1";
    db.run(sql, params![number(displaced.seq), displaced.id])?;
    Ok(())
}

/// Holds a message, whose entry in the log is at a place.
pub(super) fn insert(db: &Db, held: &NewMessage<'_>, entry: u64) -> PgResult<()> {
    let (admission, a) = (held.admission, &held.admission.arrival);
    let why = admission.held.clone().unwrap_or_default();
    let sql = "INSERT INTO held (id, carried, pkid, digest, raw, at, verdict, spare_thread, \
        spare_message, thread, sender, receiver, text, peer, routes, answer_by, expires, ends, \
        assurance, why, deciders, entry, firm, authority, chain) VALUES ($1, $2, $3, $4, $5, $6, $7, \
        $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25) \
        RETURNING seq";
    let seq: i64 = db.one(
        sql,
        params![
            held.id,
            held.is_carried,
            a.pkid.as_deref().unwrap_or_default(),
            bytes(&a.digest),
            bytes(&admission.raw),
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
            db.chain(),
        ],
        value,
    )?;
    keep::hold_blobs(db, &held.blobs, seq)?;
    for consent in &held.under {
        let sql = "INSERT INTO held_consent (consent, seq) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        db.run(sql, params![consent, seq])?;
    }
    Ok(())
}

/// Carries a decision out. Only inside a transaction.
pub(super) fn decide(db: &Db, origin: i64, decision: &HoldDecision) -> PgResult<Ruling> {
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
    db.batch("SAVEPOINT decision")?;
    settle(db, &found, decision)?;
    let taken = match intake::accept_approved(db, origin, &admission)? {
        AcceptOutcome::Accepted { seq, .. } => Some((seq, admission)),
        AcceptOutcome::Rejected(refusal) => {
            db.batch("ROLLBACK TO decision; RELEASE decision")?;
            return Ok(Ruling::NotAllowed(refusal));
        }
        AcceptOutcome::Known { .. } | AcceptOutcome::Held { .. } => None,
    };
    db.batch("RELEASE decision")?;
    Ok(Ruling::Done(taken))
}

/// Lapses messages that came before a time, without a decision, with a reason and no report. Only inside a transaction.
pub(super) fn lapse_before(
    db: &Db,
    before: Timestamp,
    (reason, at): (&str, Timestamp),
) -> PgResult<Vec<HeldMessage>> {
    let sql = format!("{HELD} WHERE choice IS NULL AND at < $1");
    let chosen = db.all(&sql, params![before.as_millis()], message)?;
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
pub(super) fn waiting_under(db: &Db, consent: &str) -> PgResult<Vec<CoveredHeld>> {
    let sql = "SELECT h.* FROM held h WHERE h.choice IS NULL AND h.seq IN (SELECT seq FROM \
        held_consent WHERE consent = $1)";
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
pub(super) fn lapse_revoked(db: &Db, seq: u64, at: Timestamp) -> PgResult<()> {
    let decided = HoldDecided {
        choice: HoldChoice::Lapse,
        by: RevocationChanges::LAPSED_BY.to_owned(),
        at,
        reason: Some(RevocationChanges::LAPSED.to_owned()),
    };
    record(db, number(seq), &decided)
}

/// Puts a decision on record and into the log; the text is not kept.
fn settle(db: &Db, found: &HeldMessage, decision: &HoldDecision) -> PgResult<()> {
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
fn record(db: &Db, seq: i64, decided: &HoldDecided) -> PgResult<()> {
    match decided.choice {
        // The accepted message refers to them from now on.
        HoldChoice::Approve => keep::release_held(db, seq)?,
        HoldChoice::Refuse | HoldChoice::Lapse => keep::drop_held(db, seq)?,
    }
    let sql = "UPDATE held SET choice = $2, decided_by = $3, decided_at = $4, reason = $5, text \
        = '', ends = NULL WHERE seq = $1";
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
fn released(db: &Db, found: &HeldMessage) -> PgResult<Admission> {
    let seq = number(found.record.seq);
    let sql = format!("{HELD} WHERE seq = $1");
    let (arrival, proof, is_authority) = db.one(&sql, params![seq], |row| {
        let proof = Proof {
            assurance: row.word("assurance", Assurance::parse)?,
            is_firm: row.try_get("firm")?,
            ..Proof::default()
        };
        Ok((arrival(row)?, proof, row.try_get("authority")?))
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
