//! Intake of a relay: a message is known, rejected, held, or accepted on disk.
//!
//! This is what a sender waits for. For most messages it is three statements: whether the conversation is closed, the
//! new row, and its entry in the log.

use crosstalk_envelope::registry::Intent;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::consent::Terms;
use crosstalk_protocol::relay::{
    AcceptFacts, AcceptOutcome, Admission, ConversationId, Priority, id_conflict,
    is_accepted_after_close, report,
};
use crosstalk_protocol::store::{Arrival, is_same_party};
use rusqlite::{Connection, params};

use super::{close, delivery, hold, keep, poll, queue};
use crate::sqlite::accept::{self, KnownMessage};
use crate::sqlite::derive::{self, INTAKE_ROW};
use crate::sqlite::fault::SqlResult;
use crate::sqlite::ledger;
use crate::sqlite::log;
use crate::sqlite::sql::{Sql as _, position, tuple, value};

/// Accepts messages. Only inside a transaction.
pub(super) fn accept_all(db: &Connection, batch: &[Admission]) -> SqlResult<Vec<AcceptOutcome>> {
    let is_any_held = batch.iter().any(|a| a.held.is_some()) || hold::is_any(db)?;
    let taken = batch.iter().map(|admission| {
        let held = match is_any_held {
            true => hold::again(db, admission)?,
            false => None,
        };
        match held {
            Some(held) => Ok(held),
            None => accept_one(db, admission),
        }
    });
    taken.collect()
}

/// Accepts a message that no message which is held stands in the way of.
pub(super) fn accept_one(db: &Connection, admission: &Admission) -> SqlResult<AcceptOutcome> {
    let arrival = &admission.arrival;
    if arrival.message.is_none()
        && let Some(found) = accept::by_content(db, arrival)?
    {
        return again(db, &found, arrival);
    }
    let ruled = admission.rule(&facts(db, admission)?);
    if let Ok(terms) = &ruled
        && let Some(taken) = keep(db, admission, terms)?
    {
        return Ok(taken);
    }
    // There is one with its id, or it is refused: what is known is known, whatever has happened since.
    let found = accept::by_id(db, arrival.id())?;
    if let Some(found) = found.as_ref().filter(|f| f.digest == arrival.digest.0) {
        return again(db, found, arrival);
    }
    let terms = match ruled {
        Ok(terms) => terms,
        Err(refusal) => return Ok(AcceptOutcome::Rejected(refusal)),
    };
    let Some(found) = found else {
        return Err(rusqlite::Error::QueryReturnedNoRows);
    };
    let displaces = arrival.displaces(found.verdict, found.side);
    // Nobody takes the id of a message of somebody else.
    let is_own = accept::sender(db, found.seq)?.is_none_or(|s| is_same_party(&s, &arrival.sender));
    if displaces && is_own && accept::by_id(db, &found.spare)?.is_none() {
        accept::displace(db, &found)?;
        let taken = keep(db, admission, &terms)?;
        return taken.ok_or(rusqlite::Error::QueryReturnedNoRows);
    }
    Ok(AcceptOutcome::Rejected(id_conflict(arrival.id())))
}

/// A message that is there: kept is what is known better now.
fn again(db: &Connection, found: &KnownMessage, arrival: &Arrival) -> SqlResult<AcceptOutcome> {
    if arrival.improves(found.verdict) && !found.is_gone {
        accept::improve(db, found, arrival)?;
    }
    Ok(AcceptOutcome::Known {
        seq: found.seq.unsigned_abs(),
        index: log::known(db, found, arrival)?,
        since: found.since,
        ids: ReceivedIds {
            thread: found.spare_thread.clone(),
            message: found.id.clone(),
        },
    })
}

/// The thread of the message that a message answers, if the sender has a part in that: the thread is not told to others,
/// and they do not write to it.
fn thread_of_parent(db: &Connection, arrival: &Arrival) -> SqlResult<Option<String>> {
    let Some(answered) = arrival.answered() else {
        return Ok(None);
    };
    let sql = "SELECT seq, thread FROM intake WHERE id = ?1";
    let found = db.find(sql, params![answered], tuple::<(i64, String)>)?;
    let Some((seq, thread)) = found else {
        return Ok(None);
    };
    if arrival.thread.as_ref() == Some(&thread) {
        return Ok(Some(thread));
    }
    let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = ?1");
    let (parent, routes) = db.one(&sql, params![seq], |row| {
        Ok((derive::intake_row(row)?, row.get::<_, String>("routes")?))
    })?;
    let got = delivery::read_recipients(&routes, &parent.arrival.receiver)?;
    let got: Vec<&str> = got.into_iter().map(|(address, _)| address).collect();
    let conversation = ConversationId::Thread(thread.clone());
    let has_part = arrival.has_part_in(&parent.arrival, &got)
        || close::is_party(db, &conversation, &arrival.sender)?;
    Ok(has_part.then_some(thread))
}

/// The thread of a message that names none: that of the message it answers, else that of its session, else a new one.
pub(super) fn generated_thread(db: &Connection, arrival: &Arrival) -> SqlResult<String> {
    let ask = |sql: &str, name: Option<&str>| -> SqlResult<Option<String>> {
        let Some(name) = name else { return Ok(None) };
        db.find(sql, params![name], value)
    };
    if arrival.thread.is_some() {
        return Ok(arrival.generated.thread.clone());
    }
    if let Some(thread) = thread_of_parent(db, arrival)? {
        return Ok(thread);
    }
    let session = arrival.session.as_deref();
    let of_session = match ask(accept::THREAD_OF_SESSION, session)? {
        Some(thread) => Some(thread),
        // Those that are not indexed yet.
        None => ask(
            "SELECT thread FROM intake WHERE session = ?1 ORDER BY seq DESC LIMIT 1",
            session,
        )?,
    };
    Ok(of_session.unwrap_or_else(|| arrival.generated.thread.clone()))
}

/// What the rules ask about what came before.
fn facts(db: &Connection, admission: &Admission) -> SqlResult<AcceptFacts> {
    let arrival = &admission.arrival;
    let mut facts = AcceptFacts::default();
    if let Some(claim) = &admission.claim {
        facts.grants = ledger::named(db, claim.names(arrival.id()))?;
    }
    if arrival.meaning.is_some_and(is_accepted_after_close) {
        return Ok(facts);
    }
    let conversation = admission.conversation();
    if let Some(conversation) = &conversation {
        facts.closed = close::closed_conversation(db, conversation)?;
    }
    if let Some(answered) = arrival.answered() {
        if let Some(meaning) = meaning(db, answered)? {
            facts.answered = Intent::ALL.iter().copied().find(|i| i.as_str() == meaning);
        }
        // It will be in the thread of its parent, whatever it names.
        if facts.closed.is_none()
            && let Some(thread) = thread_of_parent(db, arrival)?
        {
            facts.closed = close::closed(db, 0, &thread)?;
        }
    }
    let sender = &arrival.sender;
    match (&conversation, arrival.meaning) {
        (Some(known), Some(Intent::Close)) => facts.is_party = close::is_party(db, known, sender)?,
        (Some(known), Some(Intent::Handoff)) => {
            facts.is_party = close::may_hand_over(db, known, sender)?;
            facts.steward = close::steward(db, known)?;
        }
        _ => facts.is_party = true,
    }
    Ok(facts)
}

/// What a message means.
fn meaning(db: &Connection, id: &str) -> SqlResult<Option<String>> {
    let sql = "SELECT coalesce(i.meaning, m.meaning) FROM intake i LEFT JOIN message m ON m.seq \
        = i.seq WHERE i.id = ?1";
    db.find(sql, params![id], value).map(Option::flatten)
}

/// Keeps a message, or holds it. Nothing if another message has its id.
fn keep(db: &Connection, admission: &Admission, terms: &Terms) -> SqlResult<Option<AcceptOutcome>> {
    match &admission.held {
        Some(held) => hold::insert(db, admission, held, terms),
        None => insert(db, admission, terms),
    }
}

/// Keeps a message, with what the next ones are judged by. Nothing if another message has its id.
fn insert(
    db: &Connection,
    admission: &Admission,
    terms: &Terms,
) -> SqlResult<Option<AcceptOutcome>> {
    let a = &admission.arrival;
    let generated = generated_thread(db, a)?;
    let routes = delivery::write_recipients(admission);
    let priority = position(&Priority::ALL, admission.priority);
    let sql = "INSERT INTO intake (id, carried, pkid, digest, at, way, side, verdict, \
        spare_thread, spare_message, thread, inferred, text, received, peer, routes, priority, \
        answer_by, expires, meaning, session, brief, entry) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, \
        ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, (SELECT \
        coalesce(max(place), -1) + 1 FROM log)) ON CONFLICT (id) DO NOTHING";
    let added = db.run(
        sql,
        params![
            a.id(),
            a.message.is_some(),
            a.pkid.as_deref().unwrap_or_default(),
            a.digest.0,
            a.at.as_millis(),
            a.way.as_str(),
            a.side.as_str(),
            a.verdict.as_str(),
            generated,
            a.generated.message,
            a.thread.as_deref().unwrap_or(&generated),
            a.answers,
            a.text,
            a.received,
            admission.peer,
            routes,
            priority,
            admission.answer_by.map(|t| t.as_millis()),
            terms.expires.or(admission.expires).map(|t| t.as_millis()),
            a.meaning.map(|m| m.as_str()),
            a.session.as_deref().filter(|_| a.thread.is_none()),
            admission.is_brief,
        ],
    )?;
    if added == 0 {
        return Ok(None);
    }
    let seq = db.last_insert_rowid();
    if let Some(closing) = admission.closing() {
        close::close(db, &closing, a.at, seq)?;
    }
    if a.meaning == Some(Intent::Handoff) {
        close::hand_over(db, admission)?;
    }
    for (address, handler) in delivery::read_recipients(&routes, &a.receiver)? {
        delivery::queue(db, (seq, a.at), address, handler, priority)?;
    }
    if let Some(due) = admission.answer_by {
        queue::expect_answer(db, seq, due)?;
    }
    keep::use_blobs(db, admission, seq)?;
    poll::came(db, admission, seq)?;
    let index = log::accept(db, seq, admission)?;
    // Its row names the place of its entry in the log: what follows from it has later ones.
    delivery::report(db, a)?;
    ledger::keep(db, (seq, a.at), terms)?;
    let withdrawn = match &terms.withdrawal {
        Some(withdrawal) => {
            let withdrawn = ledger::revoke(db, Some(seq), withdrawal)?;
            queue::enqueue_notices(db, report::revocation_notices(a, &withdrawn))?;
            Some(Box::new(withdrawn))
        }
        None => None,
    };
    Ok(Some(AcceptOutcome::Accepted {
        seq: seq.unsigned_abs(),
        index,
        ids: ReceivedIds {
            thread: generated,
            message: a.id().to_owned(),
        },
        withdrawn,
    }))
}
