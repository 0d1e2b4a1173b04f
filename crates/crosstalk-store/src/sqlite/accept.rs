//! Messages on their way in: is it known, where does it belong, what does it settle.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::Word;
use crosstalk_protocol::store::{Arrival, Outcome, Side, ThreadHints};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::collections::BTreeSet;

use super::derive::{self, FILED, Filed};
use super::fault::Step;
use super::{course, reference, settle};

/// A message that is there and may be the one that comes, or has its id.
struct Known {
    seq: i64,
    id: String,
    spare: String,
    digest: [u8; 32],
    verdict: Word,
    side: Side,
    thread: String,
    since: Timestamp,
}

const KNOWN: &str = "SELECT seq, id, spare_message, digest, verdict, side, thread, at FROM intake";

fn known(row: &Row<'_>) -> Step<Known> {
    Ok(Known {
        seq: row.get("seq")?,
        id: row.get("id")?,
        spare: row.get("spare_message")?,
        digest: row.get("digest")?,
        verdict: derive::word(row, "verdict", derive::verdict_of)?,
        side: derive::word(row, "side", Side::parse)?,
        thread: row.get("thread")?,
        since: Timestamp::from_millis(row.get("at")?),
    })
}

/// Takes messages in. Only inside of a transaction.
pub(super) fn accept_all(db: &Connection, batch: &[Arrival]) -> Step<Vec<Outcome>> {
    let mut stale = BTreeSet::new();
    let outcomes = batch.iter().map(|a| accept(db, a, &mut stale));
    let outcomes = outcomes.collect::<Step<Vec<Outcome>>>()?;
    let filed = outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Filed { thread, .. } => Some(thread.as_str()),
        Outcome::Known { .. } | Outcome::Conflict { .. } => None,
    });
    for thread in filed
        .filter(|t| !stale.contains(*t))
        .collect::<BTreeSet<&str>>()
    {
        course::date(db, thread)?;
    }
    // Once for everything that came: a thread is gone through as often as there are batches, not messages.
    for thread in &stale {
        course::recount(db, thread)?;
    }
    Ok(outcomes)
}

/// Takes one message in. `stale` are the threads that have to be counted again.
fn accept(db: &Connection, arrival: &Arrival, stale: &mut BTreeSet<String>) -> Step<Outcome> {
    let Some(found) = candidate(db, arrival)? else {
        return file(db, arrival, None, stale);
    };
    if found.digest == arrival.digest.0 {
        return again(db, &found, arrival, stale);
    }
    if arrival.displaces(found.verdict, found.side) && by_id(db, &found.spare)?.is_none() {
        displace(db, &found)?;
        return file(db, arrival, Some(found.spare), stale);
    }
    Ok(Outcome::Conflict {
        id: found.id,
        thread: found.thread,
    })
}

/// The message with its id, or with its content and an id of its own.
fn candidate(db: &Connection, arrival: &Arrival) -> Step<Option<Known>> {
    let by_content = || {
        let sql = format!("{KNOWN} WHERE carried = 0 AND digest = ?1 ORDER BY seq LIMIT 1");
        let mut find = db.prepare_cached(&sql)?;
        find.query_row(params![arrival.digest.0], known).optional()
    };
    let found = match &arrival.message {
        Some(id) => by_id(db, id)?,
        None => by_content()?,
    };
    match (found, &arrival.message) {
        (Some(found), _) => Ok(Some(found)),
        (None, Some(_)) => by_content(),
        (None, None) => by_id(db, arrival.id()),
    }
}

fn by_id(db: &Connection, id: &str) -> Step<Option<Known>> {
    let mut find = db.prepare_cached(&format!("{KNOWN} WHERE id = ?1"))?;
    find.query_row(params![id], known).optional()
}

/// Gives a message an id of its own, since another one takes the id that it has. What answers that id stays with it.
fn displace(db: &Connection, found: &Known) -> Step<()> {
    for sql in [
        "UPDATE intake SET id = ?2, carried = 0 WHERE seq = ?1",
        "UPDATE message SET id = ?2 WHERE seq = ?1",
    ] {
        db.prepare_cached(sql)?
            .execute(params![found.seq, found.spare])?;
    }
    settle::judge(db, &found.spare)
}

/// A message that is there: kept is what is known better now, with the text that shows it.
fn again(
    db: &Connection,
    found: &Known,
    arrival: &Arrival,
    stale: &mut BTreeSet<String>,
) -> Step<Outcome> {
    let improved = arrival.improves(found.verdict);
    if improved {
        let before = row(db, found.seq)?;
        derive::unindex(db, found.seq, &before.arrival)?;
        db.prepare_cached(
            "UPDATE intake SET pkid = ?2, verdict = ?3, text = ?4, received = ?5 WHERE seq = ?1",
        )?
        .execute(params![
            found.seq,
            arrival.pkid.as_deref().unwrap_or_default(),
            arrival.verdict.as_str(),
            arrival.text,
            arrival.received
        ])?;
        let now = row(db, found.seq)?;
        derive::columns(db, found.seq, &now)?;
        stale.insert(now.thread.clone());
        take_effect(db, found.seq, &now, stale)?;
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

fn file(
    db: &Connection,
    arrival: &Arrival,
    displaced: Option<String>,
    stale: &mut BTreeSet<String>,
) -> Step<Outcome> {
    let mut arrival = arrival.clone();
    // One id names one thing: no thread is named after a message of another one, and no message after another thread.
    if names_a_message(db, arrival.thread.as_deref(), arrival.id())? {
        arrival.thread = None;
    }
    let hints = hints(db, &arrival)?;
    let thread = arrival.choose_thread(&hints);
    let closed = course::closed_at(db, &thread)?;
    let is_taken = arrival.id() != thread && is_thread(db, arrival.id())?;
    if is_taken || reference::imitates(db, arrival.id())? {
        arrival.message = None;
    }
    if arrival.answers_unnamed(hints.of_parent.is_some()) {
        freshen(db, Some(&thread), stale)?;
        arrival.answers = settle::only_one(db, &thread, &arrival.sender)?;
    }
    let filed = Filed {
        seq: 0,
        arrival,
        thread,
    };
    let arrival = &filed.arrival;
    let asked_in = thread_of(db, arrival.answered())?;
    freshen(db, asked_in.as_deref(), stale)?;
    db.prepare_cached(
        "INSERT INTO intake (id, carried, pkid, digest, at, way, side, verdict, spare_thread, spare_message, thread, \
         inferred, text, received) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        arrival.id(),
        arrival.message.is_some(),
        arrival.pkid.as_deref().unwrap_or_default(),
        arrival.digest.0,
        arrival.at.as_millis(),
        arrival.way.as_str(),
        arrival.side.as_str(),
        arrival.verdict.as_str(),
        arrival.spare.thread,
        arrival.spare.message,
        filed.thread,
        arrival.answers,
        arrival.text,
        arrival.received,
    ])?;
    let seq = db.last_insert_rowid();
    derive::index(db, seq, &filed)?;
    let settled = take_effect(db, seq, &filed, stale)?;
    Ok(Outcome::Filed {
        id: arrival.id().to_owned(),
        thread: filed.thread.clone(),
        settled,
        closed,
        displaced,
    })
}

/// Whether a named thread is a message, other than the one that names it.
fn names_a_message(db: &Connection, thread: Option<&str>, id: &str) -> Step<bool> {
    let mut find =
        db.prepare_cached("SELECT 1 FROM message WHERE id = ?1 AND ?1 <> ?2 AND thread <> ?1")?;
    find.exists(params![thread, id])
}

fn is_thread(db: &Connection, id: &str) -> Step<bool> {
    db.prepare_cached("SELECT 1 FROM thread WHERE id = ?1")?
        .exists(params![id])
}

/// Where it may belong. Messages that must not be acted on come last.
fn hints(db: &Connection, arrival: &Arrival) -> Step<ThreadHints> {
    let ask = |sql: &str, key: Option<&str>| -> Step<Option<String>> {
        let Some(key) = key else { return Ok(None) };
        let mut find = db.prepare_cached(sql)?;
        find.query_row(params![key], |row| row.get(0)).optional()
    };
    let named = ask(
        "SELECT id FROM thread WHERE id = ?1",
        arrival.thread.as_deref(),
    )?;
    // What nobody signed leads nothing that is verified into its thread.
    let of_answer = match arrival.verdict {
        Word::Verified => {
            "SELECT thread FROM message WHERE parent = ?1 AND names IS NOT thread AND trust = 0 ORDER BY thread LIMIT 1"
        }
        _ => {
            "SELECT thread FROM message WHERE parent = ?1 AND names IS NOT thread ORDER BY thread LIMIT 1"
        }
    };
    Ok(ThreadHints {
        of_parent: ask(
            "SELECT thread FROM message WHERE id = ?1",
            arrival.answered(),
        )?,
        named_is_known: named.is_some(),
        of_session: ask(
            "SELECT thread FROM message WHERE session = ?1 ORDER BY counts DESC, seq DESC LIMIT 1",
            arrival.session.as_deref(),
        )?,
        of_answer: ask(of_answer, Some(arrival.id()))?,
    })
}

/// What a message changes about others, and others about it. The message that it settles.
fn take_effect(
    db: &Connection,
    seq: i64,
    filed: &Filed,
    stale: &mut BTreeSet<String>,
) -> Step<Option<String>> {
    let arrival = &filed.arrival;
    if !arrival.counts() {
        return Ok(None);
    }
    let answered = arrival.answered().filter(|_| arrival.settles());
    let waited = settle::waits(db, answered)?;
    gather(db, filed, stale)?;
    settle::judge(db, arrival.id())?;
    if let Some(id) = answered {
        settle::count(db, id, seq, arrival)?;
    }
    if arrival.closes() {
        settle::close(db, &filed.thread, seq)?;
    }
    if waited {
        freshen(db, thread_of(db, answered)?.as_deref(), stale)?;
    }
    let is_settled = waited && !settle::waits(db, answered)?;
    Ok(answered.filter(|_| is_settled).map(str::to_owned))
}

/// The thread of the message with an id.
fn thread_of(db: &Connection, id: Option<&str>) -> Step<Option<String>> {
    let mut find = db.prepare_cached("SELECT thread FROM message WHERE id = ?1")?;
    find.query_row(params![id], |row| row.get(0)).optional()
}

/// Counts a thread again now if that is due: what is told about its questions has to be right.
fn freshen(db: &Connection, thread: Option<&str>, stale: &mut BTreeSet<String>) -> Step<()> {
    match thread {
        Some(thread) if stale.remove(thread) => course::recount(db, thread),
        _ => Ok(()),
    }
}

/// Brings answers that came before their message into its thread, with what answers them, unless they named a thread of
/// their own. A verified one follows a verified one alone.
fn gather(db: &Connection, filed: &Filed, stale: &mut BTreeSet<String>) -> Step<()> {
    let Filed {
        arrival, thread, ..
    } = filed;
    let mut find = db.prepare_cached(
        "WITH RECURSIVE moved (seq, id, thread, trust) AS ( \
         SELECT seq, id, thread, trust FROM message WHERE parent = ?1 AND names IS NOT thread AND thread <> ?2 \
         AND (trust > 0 OR ?3) UNION \
         SELECT m.seq, m.id, m.thread, m.trust FROM moved JOIN message m ON m.parent = moved.id \
         AND m.thread = moved.thread WHERE m.trust > 0 OR moved.trust = 0) \
         SELECT seq, thread FROM moved",
    )?;
    let is_verified = arrival.verdict == Word::Verified;
    let asked = params![arrival.id(), thread, is_verified];
    let rows = find.query_map(asked, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let moved = rows.collect::<Step<Vec<(i64, String)>>>()?;
    if !moved.is_empty() {
        stale.insert(thread.clone());
    }
    for (seq, from) in moved {
        for sql in [
            "UPDATE intake SET thread = ?2 WHERE seq = ?1",
            "UPDATE message SET thread = ?2 WHERE seq = ?1",
        ] {
            db.prepare_cached(sql)?.execute(params![seq, thread])?;
        }
        stale.insert(from);
    }
    Ok(())
}
