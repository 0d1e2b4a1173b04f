//! Intake of a person's store: known messages, better copies of them, and new ones.

use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Arrival, KnownMessage, Side, StoreOutcome, party, searched_texts};
use rusqlite::{Connection, Row, params};

use super::derive::{self, INTAKE_ROW, IntakeRow};
use super::fault::SqlResult;
use super::indexed::{self, Batch};
use super::relay::{close, index};
use super::{forget, log, reference, words};
use crate::sqlite::sql::{Columns as _, Sql as _, number, value};

const KNOWN: &str = "SELECT seq, id, spare_message, spare_thread, digest, verdict, side, thread, at, octet_length(text) = 0 AS gone, \
                     truncated, entry FROM intake";

/// Reads the columns of [`KNOWN`].
fn known(row: &Row<'_>) -> SqlResult<KnownMessage> {
    Ok(KnownMessage {
        seq: row.seq("seq")?,
        id: row.get("id")?,
        generated: ReceivedIds {
            thread: row.get("spare_thread")?,
            message: row.get("spare_message")?,
        },
        digest: row.digest("digest")?,
        verdict: row.word("verdict", VerdictWord::parse)?,
        side: row.word("side", Side::parse)?,
        thread: row.get("thread")?,
        since: row.time("at")?,
        is_gone: row.get("gone")?,
        is_truncated: row.get("truncated")?,
    })
}

/// The same, with its place in the log.
fn known_and_logged(row: &Row<'_>) -> SqlResult<(KnownMessage, Option<u64>)> {
    Ok((known(row)?, row.opt_seq("entry")?))
}

/// Accepts messages. Only inside a transaction.
pub(super) fn accept_all(db: &Connection, messages: &[Arrival]) -> SqlResult<Vec<StoreOutcome>> {
    // What a relay accepted is indexed first: threads and questions are looked for in what is indexed.
    index::index_rest(db)?;
    let mut batch = Batch::new(db);
    // Where several come at once, a whole chat was copied, and what is known of it is known.
    let is_alone = messages.len() == 1;
    let outcomes = messages
        .iter()
        .map(|arrival| accept(db, arrival, is_alone, &mut batch));
    let outcomes = outcomes.collect::<SqlResult<Vec<StoreOutcome>>>()?;
    batch.write()?;
    for (arrival, outcome) in messages.iter().zip(&outcomes) {
        if let StoreOutcome::Filed { thread, .. } = outcome {
            close::follow(db, arrival, thread)?;
        }
    }
    index::skip_indexed(db)?;
    Ok(outcomes)
}

/// Accepts one message.
fn accept<'c>(
    db: &'c Connection,
    arrival: &Arrival,
    is_alone: bool,
    batch: &mut Batch<'c>,
) -> SqlResult<StoreOutcome> {
    if let Some(before) = &arrival.replaces {
        let mut corrected = arrival.clone();
        corrected.replaces = None;
        if corrected.message.as_ref() != Some(before) {
            corrected.message = None;
            corrected.generated.message.clone_from(before);
        }
        batch.write()?;
        forget::forget_message(db, before)?;
        return accept(db, &corrected, is_alone, batch);
    }
    let mut found = candidate(db, arrival)?;
    if found.is_some() {
        // Messages of this batch may have moved it.
        batch.write()?;
        found = candidate(db, arrival)?;
    }
    let Some(found) = found else {
        return match truncated_before(db, arrival, batch)? {
            Some(cut) => complete(db, arrival, &cut, batch),
            None => insert(db, arrival, None, batch),
        };
    };
    if found.is_same(arrival) {
        return match is_alone && answers_another(arrival, batch)? {
            true => insert(db, arrival, None, batch),
            false => again(db, &found, arrival),
        };
    }
    let kept = match found.is_gone {
        true => None,
        false => Some(row(db, number(found.seq))?),
    };
    let cut = kept.filter(|kept| arrival.completes(&kept.arrival));
    if let Some(cut) = cut
        .as_ref()
        .filter(|cut| arrival.holds_text_of(&cut.arrival))
    {
        return complete(db, arrival, cut, batch);
    }
    let spare = &found.generated.message;
    let takes_id = found.yields_id_to(arrival) || cut.is_some();
    if takes_id && by_id(db, spare)?.is_none() {
        displace(db, number(found.seq), spare)?;
        return insert(db, arrival, Some(found.generated.message), batch);
    }
    Ok(StoreOutcome::Conflict {
        id: found.id,
        thread: found.thread,
    })
}

/// Whether an answer with the ids of the example, whose text is known, means a question that still waits.
fn answers_another(arrival: &Arrival, batch: &mut Batch<'_>) -> SqlResult<bool> {
    if !arrival.copies_example() || arrival.answers.is_some() {
        return Ok(false);
    }
    let mut answer = arrival.clone();
    let (candidates, _) = batch.index.infer_question(&mut answer)?;
    Ok(answer.answers.is_some() || !candidates.is_empty())
}

/// How many of the latest threads of a sender, and of the latest messages of each, are looked through for one that was cut off.
const RECENT: (i64, i64) = (16, 64);

/// The latest message that may be cut off and that an arrival is the whole of, though no id tells it.
fn truncated_before(
    db: &Connection,
    arrival: &Arrival,
    batch: &mut Batch<'_>,
) -> SqlResult<Option<IntakeRow>> {
    if !arrival.may_make_up() || arrival.truncated {
        return Ok(None);
    }
    batch.write()?;
    let (threads, messages) = RECENT;
    let mut find = db.prepare_cached(
        "SELECT thread FROM party WHERE party = ?1 ORDER BY last_at DESC, last_seq DESC LIMIT ?2",
    )?;
    let asked = params![party(&arrival.sender), threads];
    let threads = find.query_map(asked, |row| row.get(0))?;
    let mut find = db.prepare_cached(
        "SELECT seq FROM intake WHERE seq IN (SELECT seq FROM message WHERE thread = ?1 ORDER BY seq DESC LIMIT ?2)
         AND truncated = 1 AND text <> '' ORDER BY seq DESC",
    )?;
    for thread in threads.collect::<SqlResult<Vec<String>>>()? {
        let cut = find.query_map(params![thread, messages], |row| row.get(0))?;
        for seq in cut.collect::<SqlResult<Vec<i64>>>()? {
            let cut = row(db, seq)?;
            if arrival.continues(&cut.arrival) {
                return Ok(Some(cut));
            }
        }
    }
    Ok(None)
}

/// Keeps the whole of a message that was cut off in the place of that one, which is erased. If neither carries an id, the whole
/// one takes the id that the other one has here. One that has another id, and answers, stays beside the whole one.
fn complete(
    db: &Connection,
    arrival: &Arrival,
    cut: &IntakeRow,
    batch: &mut Batch<'_>,
) -> SqlResult<StoreOutcome> {
    let mut whole = arrival.clone();
    if whole.answers.is_none() {
        whole.answers.clone_from(&cut.arrival.answers);
    }
    whole.generated.thread.clone_from(&cut.thread);
    let id = cut.arrival.id().to_owned();
    let gone = match (&whole.message, &cut.arrival.message) {
        (None, None) => std::mem::replace(&mut whole.generated.message, id.clone()),
        _ => cut.arrival.generated.message.clone(),
    };
    let has_answers = db.has("SELECT 1 FROM message WHERE parent = ?1", params![id])?;
    if whole.id() != id && has_answers {
        return insert(db, &whole, None, batch);
    }
    forget::forget_message(db, &id)?;
    insert(db, &whole, Some(gone), batch)
}

/// The message with its id, or with its content and an id of its own.
fn candidate(db: &Connection, arrival: &Arrival) -> SqlResult<Option<KnownMessage>> {
    let found = match &arrival.message {
        Some(id) => by_id(db, id)?,
        None => by_content(db, arrival.digest)?,
    };
    match (found, &arrival.message) {
        (Some(found), _) => Ok(Some(found)),
        (None, Some(_)) => by_content(db, arrival.digest),
        (None, None) => by_id(db, arrival.id()),
    }
}

fn by_content(db: &Connection, digest: Digest) -> SqlResult<Option<KnownMessage>> {
    Ok(logged_by_content(db, digest)?.map(|(found, _)| found))
}

/// The oldest message with a content and an id of its own, and its place in the log.
pub(super) fn logged_by_content(
    db: &Connection,
    digest: Digest,
) -> SqlResult<Option<(KnownMessage, Option<u64>)>> {
    let sql = format!("{KNOWN} WHERE carried = 0 AND digest = ?1 ORDER BY seq LIMIT 1");
    db.find(&sql, params![digest.0], known_and_logged)
}

pub(super) fn by_id(db: &Connection, id: &str) -> SqlResult<Option<KnownMessage>> {
    Ok(logged_by_id(db, id)?.map(|(found, _)| found))
}

/// The message with an id, and its place in the log.
pub(super) fn logged_by_id(
    db: &Connection,
    id: &str,
) -> SqlResult<Option<(KnownMessage, Option<u64>)>> {
    let sql = format!("{KNOWN} WHERE id = ?1");
    db.find(&sql, params![id], known_and_logged)
}

/// The position of the message with an id.
pub(super) fn seq_of(db: &Connection, id: &str) -> SqlResult<Option<i64>> {
    db.find("SELECT seq FROM intake WHERE id = ?1", params![id], value)
}

/// The sender of a message, if its text is there.
pub(super) fn sender(db: &Connection, seq: i64) -> SqlResult<Option<String>> {
    let sql = "SELECT text FROM intake WHERE seq = ?1";
    let text: String = db.one(sql, params![seq], value)?;
    let document = Document::parse(&text, Reading::Strict);
    Ok((!text.is_empty()).then(|| document.sender().to_owned()))
}

/// Gives a message an id of its own, since another one takes the id that it has. What answers that id stays with it.
pub(super) fn displace(db: &Connection, seq: i64, spare: &str) -> SqlResult<()> {
    for sql in [
        "UPDATE intake SET id = ?2, carried = 0 WHERE seq = ?1",
        "UPDATE message SET id = ?2 WHERE seq = ?1",
    ] {
        db.run(sql, params![seq, spare])?;
    }
    indexed::change(db, |index| index.judge(spare))
}

/// A message that is there: kept is what is known better now, with the text that shows it.
fn again(db: &Connection, found: &KnownMessage, arrival: &Arrival) -> SqlResult<StoreOutcome> {
    let seq = number(found.seq);
    let improved = found.is_improved_by(arrival);
    if improved {
        let entry = log::renewed(db, seq, arrival)?;
        improve(db, seq, arrival, entry)?;
    }
    if arrival.comes_back(found.side) && !found.is_gone && derive::is_indexed(db, seq)? {
        // It waits for the person, who fetched it from the inbox that it is for.
        let sql = "UPDATE intake SET side = ?2 WHERE seq = ?1";
        db.run(sql, params![seq, Side::ToMe.as_str()])?;
        indexed::renew(db, row(db, seq)?)?;
    }
    let sql = "SELECT thread FROM intake WHERE seq = ?1";
    Ok(StoreOutcome::Known {
        id: found.id.clone(),
        thread: db.one(sql, params![seq], value)?,
        since: found.since,
        improved,
    })
}

/// Keeps what is known better about a message, and the place of the entry in the log that says so.
pub(super) fn improve(
    db: &Connection,
    seq: i64,
    arrival: &Arrival,
    entry: Option<u64>,
) -> SqlResult<()> {
    let before = match derive::is_indexed(db, seq)? {
        true => Some(row(db, seq)?),
        false => None,
    };
    update_evidence(db, seq, arrival, entry)?;
    let Some(before) = before else {
        return Ok(());
    };
    let now = row(db, seq)?;
    if searched_texts(&before.arrival.text) != searched_texts(&now.arrival.text) {
        words::touch(db, seq)?;
    }
    indexed::renew(db, now)
}

/// The verdict, with the text that shows it.
fn update_evidence(
    db: &Connection,
    seq: i64,
    arrival: &Arrival,
    entry: Option<u64>,
) -> SqlResult<()> {
    let sql = "UPDATE intake SET pkid = ?2, verdict = ?3, text = ?4, received = ?5, truncated = \
        ?6 WHERE seq = ?1";
    db.run(
        sql,
        params![
            seq,
            arrival.pkid.as_deref().unwrap_or_default(),
            arrival.verdict.as_str(),
            arrival.text,
            arrival.received,
            arrival.truncated
        ],
    )?;
    let Some(entry) = entry.map(number) else {
        return Ok(());
    };
    for sql in [
        "UPDATE intake SET renewed = ?2 WHERE seq = ?1",
        "INSERT INTO renewal (seq, place) VALUES (?1, ?2)",
    ] {
        db.run(sql, params![seq, entry])?;
    }
    Ok(())
}

pub(super) fn row(db: &Connection, seq: i64) -> SqlResult<IntakeRow> {
    let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = ?1");
    db.one(&sql, params![seq], derive::intake_row)
}

fn insert(
    db: &Connection,
    arrival: &Arrival,
    displaced: Option<String>,
    batch: &mut Batch<'_>,
) -> SqlResult<StoreOutcome> {
    let mut arrival = arrival.clone();
    let placed = batch.index.place(&mut arrival)?;
    let id = arrival.id();
    let is_thread = id != placed.thread && batch.index.thread(id)?.is_some();
    if is_thread || imitates(db, id, batch)? {
        arrival.message = None;
    }
    let seq = index::next_seq(db)?;
    let sql = "INSERT INTO intake (seq, id, carried, pkid, digest, at, way, side, verdict, \
        spare_thread, spare_message, thread, inferred, text, received, truncated) VALUES (?1, \
        ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    db.run(
        sql,
        params![
            seq,
            arrival.id(),
            arrival.message.is_some(),
            arrival.pkid.as_deref().unwrap_or_default(),
            arrival.digest.0,
            arrival.at.as_millis(),
            arrival.way.as_str(),
            arrival.side.as_str(),
            arrival.verdict.as_str(),
            arrival.generated.thread,
            arrival.generated.message,
            placed.thread,
            arrival.answers,
            arrival.text,
            arrival.received,
            arrival.truncated,
        ],
    )?;
    let id = arrival.id().to_owned();
    let settled = batch.add(seq.unsigned_abs(), arrival, placed.thread.clone())?;
    Ok(StoreOutcome::Filed {
        id,
        thread: placed.thread,
        settled,
        closed: placed.closed,
        displaced,
        candidates: placed.candidates,
    })
}

/// Whether an id could pass for what is shown of another one that is here.
fn imitates(db: &Connection, id: &str, batch: &mut Batch<'_>) -> SqlResult<bool> {
    if !reference::is_beginning(id) {
        return Ok(false);
    }
    batch.write()?;
    reference::is_found(db, id)
}

/// The latest thread of a session.
pub(super) const THREAD_OF_SESSION: &str =
    "SELECT thread FROM message WHERE session = ?1 ORDER BY counts DESC, seq DESC LIMIT 1";

/// The thread of the message with an id.
pub(super) fn thread_of(db: &Connection, id: Option<&str>) -> SqlResult<Option<String>> {
    let sql = "SELECT thread FROM message WHERE seq = (SELECT seq FROM intake WHERE id = ?1)";
    db.find(sql, params![id], value)
}
