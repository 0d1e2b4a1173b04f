//! Messages that wait for a person: beside the intake, so that nothing that looks there finds them.
//!
//! A row stays when it is decided, without its text: the decision is on record, the id is taken, and the same message gets
//! the answer that it got first.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::{ReceivedIds, Refusal};
use crosstalk_protocol::audit::{Detail, Event, EventKind};
use crosstalk_protocol::consent::{Assurance, Proof, Terms};
use crosstalk_protocol::relay::{
    Admission, Choice, Decided, Decision, Held, HeldMessage, HoldStore, Recipient, Ruling, Taken,
    ended,
};
use crosstalk_protocol::store::{Arrival, Kept, Record, Side, StoreError, Way, is_same_party};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::collections::BTreeSet;

use super::{keep, owed, route, take};
use crate::sqlite::SqliteStore;
use crate::sqlite::accept;
use crate::sqlite::course;
use crate::sqlite::derive::{verdict_of, word};
use crate::sqlite::fault::Step;
use crate::sqlite::log;

impl HoldStore for SqliteStore {
    fn waiting(&self, most: usize) -> Result<Vec<HeldMessage>, StoreError> {
        self.read(|db| {
            let sql = format!(
                "{HELD} INDEXED BY held_waiting WHERE choice IS NULL ORDER BY at, seq LIMIT ?1"
            );
            let mut find = db.prepare_cached(&sql)?;
            let rows = find.query_map(params![super::number(most)], message)?;
            rows.collect()
        })
    }

    fn held(&self, id: &str) -> Result<Option<HeldMessage>, StoreError> {
        self.read(|db| by_id(db, id))
    }

    fn held_referring(&self, digest: Digest, most: usize) -> Result<Vec<HeldMessage>, StoreError> {
        self.read(|db| {
            let sql = format!(
                "{HELD} WHERE choice IS NULL AND seq IN (SELECT seq FROM held_blob WHERE digest = ?1 AND grants = 1) \
                 ORDER BY seq DESC LIMIT ?2"
            );
            let mut find = db.prepare_cached(&sql)?;
            let rows = find.query_map(params![digest.0, super::number(most)], message)?;
            rows.collect()
        })
    }

    fn decide(&mut self, decision: &Decision) -> Result<Ruling, StoreError> {
        self.write(|db| decide(db, decision))
    }

    fn lapsed(&self, now: Timestamp, most: usize) -> Result<Vec<HeldMessage>, StoreError> {
        self.read(|db| {
            let sql = format!(
                "{HELD} INDEXED BY held_ends WHERE choice IS NULL AND ends IS NOT NULL AND ends <= ?1 ORDER BY ends LIMIT ?2"
            );
            let mut find = db.prepare_cached(&sql)?;
            let rows = find.query_map(params![now.as_millis(), super::number(most)], message)?;
            rows.collect()
        })
    }

    fn next_lapse(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|db| {
            let next = db
                .prepare_cached(
                    "SELECT min(ends) FROM held INDEXED BY held_ends WHERE choice IS NULL AND ends IS NOT NULL",
                )?
                .query_row([], |row| row.get(0))?;
            Ok(super::time(next))
        })
    }
}

/// Who gives up what nobody decided about.
const ITSELF: &str = "relay";

const HELD: &str = "SELECT * FROM held";

fn by_id(db: &Connection, id: &str) -> Step<Option<HeldMessage>> {
    let mut find = db.prepare_cached(&format!("{HELD} WHERE id = ?1"))?;
    find.query_row(params![id], message).optional()
}

/// What a row says.
fn message(row: &Row<'_>) -> Step<HeldMessage> {
    let routes: String = row.get("routes")?;
    let deciders: String = row.get("deciders")?;
    let recipient = |(address, by): (&str, _)| Recipient {
        address: address.to_owned(),
        by,
    };
    let recipients = route::read(&routes, "")?;
    let choice: Option<String> = row.get("choice")?;
    let decided = match choice {
        None => None,
        Some(_) => Some(Decided {
            choice: word(row, "choice", Choice::parse)?,
            by: row.get("decided_by")?,
            at: Timestamp::from_millis(row.get("decided_at")?),
            reason: row.get("reason")?,
        }),
    };
    let arrival = arrival(row)?;
    Ok(HeldMessage {
        spare: arrival.spare.clone(),
        raw: Digest(row.get("raw")?),
        recipients: recipients.into_iter().map(recipient).collect(),
        peer: row.get("peer")?,
        held: Held {
            why: row.get("why")?,
            deciders: deciders.lines().map(str::to_owned).collect(),
        },
        expires: super::time(row.get("expires")?),
        answer_by: super::time(row.get("answer_by")?),
        decided,
        record: Record {
            entry: None,
            seq: row.get::<_, i64>("seq")?.unsigned_abs(),
            id: row.get("id")?,
            carries_id: row.get("carried")?,
            thread: row.get("thread")?,
            parent: arrival.answered().map(str::to_owned),
            wait: arrival.wait(),
            session: arrival.session,
            sender: row.get("sender")?,
            receiver: row.get("receiver")?,
            user: arrival.user,
            context: arrival.context,
            intent: arrival.intent,
            meaning: arrival.meaning,
            at: arrival.at,
            written_at: arrival.written_at,
            verdict: arrival.verdict,
            pkid: arrival.pkid,
            side: arrival.side,
            way: arrival.way,
            digest: Digest(row.get("digest")?),
            expires: super::time(row.get("expires")?),
            text: arrival.text,
            received: None,
            truncated: false,
        },
    })
}

fn arrival(row: &Row<'_>) -> Step<Arrival> {
    let pkid: String = row.get("pkid")?;
    Ok(Arrival::recall(Kept {
        text: row.get("text")?,
        received: None,
        truncated: false,
        verdict: word(row, "verdict", verdict_of)?,
        pkid: (!pkid.is_empty()).then_some(pkid),
        side: Side::Between,
        way: Way::Relayed,
        at: Timestamp::from_millis(row.get("at")?),
        message: match row.get("carried")? {
            true => Some(row.get("id")?),
            false => None,
        },
        answers: None,
        spare: ReceivedIds {
            thread: row.get("spare_thread")?,
            message: row.get("spare_message")?,
        },
    }))
}

/// Whether a message ever waited here.
pub(super) fn is_any(db: &Connection) -> Step<bool> {
    db.prepare_cached("SELECT max(seq) IS NOT NULL FROM held")?
        .query_row([], |row| row.get(0))
}

/// What a message gets for an answer that is or was held, or whose id belongs to one. Nothing if none has to do with it.
pub(super) fn again(db: &Connection, admission: &Admission) -> Step<Option<Taken>> {
    let arrival = &admission.arrival;
    let sql = match arrival.message {
        Some(_) => {
            "SELECT seq, id, entry, digest, at, sender, verdict, spare_thread, spare_message FROM held WHERE id = ?1"
        }
        None => {
            "SELECT seq, id, entry, digest, at, sender, verdict, spare_thread, spare_message FROM held \
             WHERE carried = 0 AND digest = ?2"
        }
    };
    let mut find = db.prepare_cached(sql)?;
    let mut rows = match arrival.message {
        Some(_) => find.query(params![arrival.id()])?,
        None => find.query(params![rusqlite::types::Null, arrival.digest.0])?,
    };
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let digest: [u8; 32] = row.get("digest")?;
    if digest == arrival.digest.0 {
        let since = Timestamp::from_millis(row.get("at")?);
        return Ok(Some(Taken::Held {
            index: row.get::<_, i64>("entry")?.unsigned_abs(),
            since,
            is_new: false,
            ids: ReceivedIds {
                thread: row.get("spare_thread")?,
                message: row.get("id")?,
            },
        }));
    }
    let sender: String = row.get("sender")?;
    let spare: String = row.get("spare_message")?;
    let verdict = word(row, "verdict", verdict_of)?;
    let is_own = is_same_party(&sender, &arrival.sender);
    if is_own && arrival.displaces(verdict, Side::Between) && by_id(db, &spare)?.is_none() {
        let seq: i64 = row.get("seq")?;
        db.prepare_cached("UPDATE held SET id = ?2, carried = 0 WHERE seq = ?1")?
            .execute(params![seq, spare])?;
        return Ok(None);
    }
    Ok(Some(Taken::Refused(take::conflict(arrival.id()))))
}

/// Holds a message. Nothing if its id is taken.
pub(super) fn insert(
    db: &Connection,
    admission: &Admission,
    held: &Held,
    terms: &Terms,
) -> Step<Option<Taken>> {
    let a = &admission.arrival;
    if accept::by_id(db, a.id())?.is_some() {
        return Ok(None);
    }
    let generated = take::generated_thread(db, a)?;
    let index = log::append(
        db,
        &Event {
            kind: EventKind::Held,
            detail: Some(Detail::default().with("why", &held.why)),
            ..log::accepted(a.id(), a, admission.raw)
        },
    )?;
    let expires = terms.expires.or(admission.expires);
    let ends = [expires, admission.answer_by];
    let ends = ends.into_iter().flatten().min();
    let millis = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    db.prepare_cached(
        "INSERT INTO held (id, carried, pkid, digest, raw, at, verdict, spare_thread, spare_message, thread, sender, \
         receiver, text, peer, routes, answer_by, expires, ends, assurance, why, deciders, entry, firm, authority) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, \
         ?24)",
    )?
    .execute(params![
        a.id(),
        a.message.is_some(),
        a.pkid.as_deref().unwrap_or_default(),
        a.digest.0,
        admission.raw.0,
        a.at.as_millis(),
        a.verdict.as_str(),
        generated,
        a.spare.message,
        a.thread.as_deref().unwrap_or(&generated),
        a.sender,
        a.receiver,
        a.text,
        admission.peer,
        route::lines(&admission.recipients),
        millis(admission.answer_by),
        millis(expires),
        millis(ends),
        admission.proof.assurance.as_str(),
        held.why,
        held.deciders.join("\n"),
        index.cast_signed(),
        admission.proof.is_firm,
        admission.is_authority,
    ])?;
    let seq = db.last_insert_rowid();
    keep::hold_blobs(db, admission, seq)?;
    for consent in &terms.under {
        db.prepare_cached("INSERT OR IGNORE INTO held_consent (consent, seq) VALUES (?1, ?2)")?
            .execute(params![consent, seq])?;
    }
    Ok(Some(Taken::Held {
        index,
        since: a.at,
        is_new: true,
        ids: ReceivedIds {
            thread: generated,
            message: a.id().to_owned(),
        },
    }))
}

/// Carries a decision out. Only inside of a transaction.
fn decide(db: &Connection, decision: &Decision) -> Step<Ruling> {
    let Some(found) = by_id(db, &decision.id)? else {
        return Ok(Ruling::Unknown);
    };
    if let Some(decided) = found.decided {
        return Ok(Ruling::Before(decided));
    }
    if found.record.digest != decision.digest || found.raw != decision.raw {
        return Ok(Ruling::Other);
    }
    let end = ended(found.expires, found.answer_by, decision.at);
    let admission = match (decision.choice, end) {
        (Choice::Approve, Some(refusal)) => return Ok(Ruling::Not(refusal)),
        (Choice::Approve, None) => Box::new(released(db, &found)?),
        (Choice::Lapse, None) => return Ok(Ruling::Not(not_yet())),
        (Choice::Refuse | Choice::Lapse, _) => {
            settle(db, &found, decision)?;
            owed::owe(db, decision.report.clone())?;
            return Ok(Ruling::Done(None));
        }
    };
    db.execute_batch("SAVEPOINT decision")?;
    settle(db, &found, decision)?;
    let mut stale = BTreeSet::new();
    let taken = match take::admitted(db, &admission, &mut stale)? {
        Taken::New { seq, .. } => Some((seq, admission)),
        Taken::Refused(refusal) => {
            db.execute_batch("ROLLBACK TO decision; RELEASE decision")?;
            return Ok(Ruling::Not(refusal));
        }
        Taken::Known { .. } | Taken::Held { .. } => None,
    };
    for thread in &stale {
        course::recount(db, thread)?;
    }
    db.execute_batch("RELEASE decision")?;
    Ok(Ruling::Done(taken))
}

/// Gives messages up that nobody decided about, with a reason and no report: those of a condition, in `held` as `h`.
pub(in crate::sqlite) fn give_up(
    db: &Connection,
    which: &str,
    value: &dyn rusqlite::ToSql,
    (reason, at): (&str, Timestamp),
) -> Step<u64> {
    let sql = format!("SELECT h.* FROM held h WHERE h.choice IS NULL AND {which}");
    let mut find = db.prepare_cached(&sql)?;
    let rows = find.query_map([value], message)?;
    let chosen = rows.collect::<Step<Vec<HeldMessage>>>()?;
    for found in &chosen {
        let lapse = Decision {
            id: found.record.id.clone(),
            digest: found.record.digest,
            raw: found.raw,
            choice: Choice::Lapse,
            reason: Some(reason.to_owned()),
            by: ITSELF.to_owned(),
            at,
            report: None,
        };
        settle(db, found, &lapse)?;
    }
    Ok(u64::try_from(chosen.len()).unwrap_or(u64::MAX))
}

/// A message that was held under a consent which was withdrawn.
pub(in crate::sqlite) struct Withdrawn {
    pub(in crate::sqlite) id: String,
    pub(in crate::sqlite) digest: Digest,
    pub(in crate::sqlite) from: String,
    pub(in crate::sqlite) to: Vec<String>,
    pub(in crate::sqlite) thread: String,
}

/// Gives up what is held under a consent. Only inside of a transaction.
pub(in crate::sqlite) fn withdraw(
    db: &Connection,
    consent: &str,
    at: Timestamp,
) -> Step<Vec<Withdrawn>> {
    let which = "h.seq IN (SELECT seq FROM held_consent WHERE consent = ?1)";
    let sql = format!("SELECT h.* FROM held h WHERE h.choice IS NULL AND {which}");
    let mut find = db.prepare_cached(&sql)?;
    let rows = find.query_map(params![consent], message)?;
    let found = rows.collect::<Step<Vec<HeldMessage>>>()?;
    give_up(db, which, &consent, ("the consent was withdrawn", at))?;
    let withdrawn = |held: HeldMessage| Withdrawn {
        id: held.record.id,
        digest: held.record.digest,
        from: held.record.sender,
        to: held.recipients.into_iter().map(|r| r.address).collect(),
        thread: held.record.thread,
    };
    Ok(found.into_iter().map(withdrawn).collect())
}

/// Forgets what waits of a thread. What was decided stays on record.
pub(in crate::sqlite) fn forget(db: &Connection, thread: &str) -> Step<u64> {
    let mut find =
        db.prepare_cached("SELECT seq FROM held WHERE thread = ?1 AND choice IS NULL")?;
    let rows = find.query_map(params![thread], |row| row.get(0))?;
    let chosen = rows.collect::<Step<Vec<i64>>>()?;
    for seq in &chosen {
        keep::drop_held(db, *seq)?;
        for sql in [
            "DELETE FROM held_consent WHERE seq = ?1",
            "DELETE FROM held WHERE seq = ?1",
        ] {
            db.prepare_cached(sql)?.execute(params![seq])?;
        }
    }
    Ok(u64::try_from(chosen.len()).unwrap_or(u64::MAX))
}

/// Puts a decision on record and into the log; the text is not kept.
fn settle(db: &Connection, found: &HeldMessage, decision: &Decision) -> Step<()> {
    let reason = decision.reason.as_deref();
    let detail = Detail::default().with("by", &decision.by);
    let event = Event {
        kind: match decision.choice {
            Choice::Approve => EventKind::Approved,
            Choice::Refuse => EventKind::Declined,
            Choice::Lapse => EventKind::Failed,
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
    let seq = super::number(found.record.seq);
    match decision.choice {
        // The message that is taken refers to them from now on.
        Choice::Approve => keep::release_held(db, seq)?,
        Choice::Refuse | Choice::Lapse => keep::drop_held(db, seq)?,
    }
    db.prepare_cached(
        "UPDATE held SET choice = ?2, decided_by = ?3, decided_at = ?4, reason = ?5, text = '', ends = NULL \
         WHERE seq = ?1",
    )?
    .execute(params![
        seq,
        decision.choice.as_str(),
        decision.by,
        decision.at.as_millis(),
        reason
    ])?;
    Ok(())
}

fn not_yet() -> Refusal {
    let (what, help) = (
        "Neither its consent nor its deadline has ended.",
        "let a person decide.",
    );
    Refusal::new(crosstalk_envelope::registry::ErrorCode::Perm, what, help)
}

/// The message as it is taken when it is approved.
fn released(db: &Connection, found: &HeldMessage) -> Step<Admission> {
    let record = &found.record;
    let arrival = Arrival::recall(Kept {
        text: record.text.clone(),
        received: None,
        truncated: false,
        verdict: record.verdict,
        pkid: record.pkid.clone(),
        side: record.side,
        way: record.way,
        at: record.at,
        message: record.carries_id.then(|| record.id.clone()),
        answers: None,
        spare: found.spare.clone(),
    });
    let recipients = found.recipients.clone();
    let blobs = keep::held_blobs(db, super::number(record.seq))?;
    let (proof, is_authority) = db
        .prepare_cached("SELECT assurance, firm, authority FROM held WHERE seq = ?1")?
        .query_row(params![super::number(record.seq)], |row| {
            let proof = Proof {
                assurance: word(row, "assurance", Assurance::parse)?,
                is_firm: row.get("firm")?,
                ..Proof::default()
            };
            Ok((proof, row.get("authority")?))
        })?;
    Ok(Admission {
        proof,
        is_authority,
        answer_by: found.answer_by,
        expires: found.expires,
        readable: blobs.iter().filter(|b| b.1).map(|b| b.0).collect(),
        blobs: blobs.into_iter().map(|(digest, _)| digest).collect(),
        ..Admission::recall(arrival, found.peer.clone(), recipients)
    })
}
