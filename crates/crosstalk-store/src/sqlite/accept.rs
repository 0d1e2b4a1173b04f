//! Messages on their way in: is it known, where does it belong, what does it settle.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::Word;
use crosstalk_protocol::store::{Arrival, Outcome, ThreadHints, party};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::collections::BTreeSet;

use super::derive::{self, FILED, Filed};
use super::fault::Step;

/// A message that is there and may be the one that comes.
struct Known {
    seq: i64,
    id: String,
    peer: String,
    digest: [u8; 32],
    verdict: Word,
    thread: String,
    since: Timestamp,
}

const KNOWN: &str = "SELECT seq, id, pkid, digest, verdict, thread, at FROM intake";

fn known(row: &Row<'_>) -> Step<Known> {
    Ok(Known {
        seq: row.get("seq")?,
        id: row.get("id")?,
        peer: row.get("pkid")?,
        digest: row.get("digest")?,
        verdict: derive::word(row, "verdict", derive::verdict_of)?,
        thread: row.get("thread")?,
        since: Timestamp::from_millis(row.get("at")?),
    })
}

/// Takes one message in. Only inside of a transaction.
pub(super) fn accept(db: &Connection, arrival: &Arrival) -> Step<Outcome> {
    let rows = candidates(db, arrival)?;
    let same = |k: &&Known| k.digest == arrival.digest.0;
    let is_peer = |k: &&Known| k.peer == arrival.peer();
    let found = rows.iter().filter(same);
    let found = found.clone().find(is_peer).or_else(|| found.clone().next());
    let other = rows.iter().find(|k| is_peer(k) && !same(k));
    match (found, other) {
        (Some(found), None) => again(db, found, arrival),
        // Its content is known, and that the key which signed it has signed another message under this id as well.
        (Some(found), Some(_)) if !arrival.improves(found.verdict) => again(db, found, arrival),
        (_, Some(other)) => Ok(Outcome::Conflict {
            id: other.id.clone(),
            thread: other.thread.clone(),
        }),
        (None, None) => file(db, arrival),
    }
}

/// The messages with its id; without an id, those with its content that have none either.
fn candidates(db: &Connection, arrival: &Arrival) -> Step<Vec<Known>> {
    let mut rows = match &arrival.message {
        Some(_) => Vec::new(),
        None => {
            let sql = format!("{KNOWN} WHERE carried = 0 AND digest = ?1");
            let mut find = db.prepare_cached(&sql)?;
            let rows = find.query_map(params![arrival.digest.0], known)?;
            rows.collect::<Step<Vec<_>>>()?
        }
    };
    if rows.is_empty() {
        let mut find = db.prepare_cached(&format!("{KNOWN} WHERE id = ?1"))?;
        let found = find.query_map(params![arrival.id()], known)?;
        rows = found.collect::<Step<_>>()?;
    }
    rows.sort_by_key(|row| row.seq);
    Ok(rows)
}

/// A message that is there: kept is what is known better now, with the text that shows it.
fn again(db: &Connection, found: &Known, arrival: &Arrival) -> Step<Outcome> {
    let improved = arrival.improves(found.verdict);
    if improved {
        let before = row(db, found.seq)?;
        derive::unindex(db, found.seq, &before.arrival)?;
        db.prepare_cached(
            "UPDATE intake SET pkid = ?2, verdict = ?3, text = ?4, received = ?5 WHERE seq = ?1",
        )?
        .execute(params![
            found.seq,
            arrival.peer(),
            arrival.verdict.as_str(),
            arrival.text,
            arrival.received
        ])?;
        let now = row(db, found.seq)?;
        derive::index(db, found.seq, &now)?;
        derive::recount(db, &now.thread)?;
        take_effect(db, found.seq, &now)?;
    }
    let thread = row(db, found.seq)?.thread;
    Ok(Outcome::Known {
        id: found.id.clone(),
        thread,
        since: found.since,
        improved,
    })
}

fn row(db: &Connection, seq: i64) -> Step<Filed> {
    let sql = format!("SELECT {FILED} FROM intake WHERE seq = ?1");
    db.prepare_cached(&sql)?
        .query_row(params![seq], derive::filed)
}

fn file(db: &Connection, arrival: &Arrival) -> Step<Outcome> {
    let thread = arrival.choose_thread(&hints(db, arrival)?);
    let closed = db
        .prepare_cached("SELECT closed_at FROM thread WHERE id = ?1")?
        .query_row(params![thread], |row| row.get::<_, Option<i64>>(0))
        .optional()?
        .flatten();
    let filed = Filed {
        seq: 0,
        inferred: inferred(db, arrival, &thread)?,
        arrival: arrival.clone(),
        thread,
    };
    db.prepare_cached(
        "INSERT INTO intake (id, carried, pkid, digest, at, way, side, verdict, spare_thread, spare_message, thread, \
         inferred, text, received) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        arrival.id(),
        arrival.message.is_some(),
        arrival.peer(),
        arrival.digest.0,
        arrival.at.as_millis(),
        arrival.way.as_str(),
        arrival.side.as_str(),
        arrival.verdict.as_str(),
        arrival.spare.thread,
        arrival.spare.message,
        filed.thread,
        filed.inferred,
        arrival.text,
        arrival.received,
    ])?;
    let seq = db.last_insert_rowid();
    derive::index(db, seq, &filed)?;
    let settled = take_effect(db, seq, &filed)?;
    Ok(Outcome::Filed {
        id: arrival.id().to_owned(),
        thread: filed.thread,
        settled,
        closed: closed.map(Timestamp::from_millis),
    })
}

/// Where it may belong. Messages that must not be acted on come last.
fn hints(db: &Connection, arrival: &Arrival) -> Step<ThreadHints> {
    let ask = |sql: &str, key: Option<&str>| -> Step<Option<String>> {
        let Some(key) = key else { return Ok(None) };
        let mut find = db.prepare_cached(sql)?;
        find.query_row(params![key], |row| row.get(0)).optional()
    };
    Ok(ThreadHints {
        of_parent: ask(
            "SELECT thread FROM message WHERE id = ?1 ORDER BY trust, seq LIMIT 1",
            arrival.parent.as_deref(),
        )?,
        of_session: ask(
            "SELECT thread FROM message WHERE session = ?1 ORDER BY counts DESC, seq DESC LIMIT 1",
            arrival.session.as_deref(),
        )?,
        of_answer: ask(
            "SELECT thread FROM message WHERE parent = ?1 AND named = 0 LIMIT 1",
            Some(arrival.id()),
        )?,
    })
}

/// The message that an answer without a parent answers: the only one of its thread that waits for its sender.
fn inferred(db: &Connection, arrival: &Arrival, thread: &str) -> Step<Option<String>> {
    if !arrival.answers_unnamed() {
        return Ok(None);
    }
    let sender = party(&arrival.sender);
    let mut find = db.prepare_cached(
        "SELECT DISTINCT id FROM message WHERE thread = ?1 AND wait <> 0 \
         AND (receiver_party = ?2 OR instr(targets, ?3) > 0) LIMIT 2",
    )?;
    let in_list = format!("\n{sender}\n");
    let rows = find.query_map(params![thread, sender, in_list], |row| row.get(0))?;
    let mut rows = rows.collect::<Step<Vec<String>>>()?;
    Ok(rows.pop().filter(|_| rows.is_empty()))
}

/// What a message changes about others, and others about it. The message that it settles.
fn take_effect(db: &Connection, seq: i64, filed: &Filed) -> Step<Option<String>> {
    let arrival = &filed.arrival;
    if !arrival.counts() {
        return Ok(None);
    }
    let answered = arrival.parent.as_ref().or(filed.inferred.as_ref());
    let answered = answered.filter(|_| arrival.settles());
    let before = waiting(db, answered)?;
    gather(db, seq, arrival.id(), &filed.thread)?;
    derive::refresh(db, arrival.id())?;
    if let Some(id) = answered {
        derive::refresh(db, id)?;
    }
    if arrival.closes() {
        derive::settle_closed(db, &filed.thread)?;
    }
    let is_settled = waiting(db, answered)? < before;
    Ok(answered.filter(|_| is_settled).cloned())
}

/// How many messages of an id wait.
fn waiting(db: &Connection, id: Option<&String>) -> Step<i64> {
    let mut count =
        db.prepare_cached("SELECT count(*) FROM message WHERE id = ?1 AND wait <> 0")?;
    count.query_row(params![id], |row| row.get(0))
}

/// Brings answers that came before their message into its thread, with what answers them, unless they named a thread of
/// their own or another message that counts had this id before.
fn gather(db: &Connection, seq: i64, id: &str, thread: &str) -> Step<()> {
    let mut find = db.prepare_cached(
        "SELECT DISTINCT thread FROM message WHERE parent = ?1 AND named = 0 AND thread <> ?2 \
         AND NOT EXISTS (SELECT 1 FROM message WHERE id = ?1 AND counts = 1 AND seq <> ?3)",
    )?;
    let rows = find.query_map(params![id, thread, seq], |row| row.get(0))?;
    let left: BTreeSet<String> = rows.collect::<Step<_>>()?;
    if left.is_empty() {
        return Ok(());
    }
    let mut find = db.prepare_cached(
        "WITH RECURSIVE moved (seq, id, thread) AS ( \
         SELECT seq, id, thread FROM message WHERE parent = ?1 AND named = 0 AND thread <> ?2 UNION \
         SELECT m.seq, m.id, m.thread FROM moved JOIN message m ON m.parent = moved.id AND m.thread = moved.thread) \
         SELECT seq FROM moved",
    )?;
    let rows = find.query_map(params![id, thread], |row| row.get(0))?;
    for seq in rows.collect::<Step<Vec<i64>>>()? {
        for table in ["intake", "message"] {
            let sql = format!("UPDATE {table} SET thread = ?2 WHERE seq = ?1");
            db.prepare_cached(&sql)?.execute(params![seq, thread])?;
        }
    }
    for thread in left.iter().map(String::as_str).chain([thread]) {
        derive::recount(db, thread)?;
    }
    Ok(())
}
