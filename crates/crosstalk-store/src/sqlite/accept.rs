//! Intake of a person's store: tells known messages, chooses the thread, settles questions.

use crosstalk_envelope::{Document, Reading, Timestamp};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{
    Arrival, Lookup, Meant, NamedIds, Side, StoreOutcome, ThreadHints, Wait, Way, party,
};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeSet;

use super::derive::{self, INTAKE_ROW, IntakeRow};
use super::fault::SqlResult;
use super::relay::{close, index, intake};
use super::{course, forget, log, reference, settle, words};
use crate::sqlite::sql::{Columns as _, Sql as _, tuple, value};

/// A message that is there and may be the one that comes, or has its id.
pub(super) struct KnownMessage {
    pub(super) seq: i64,
    pub(super) id: String,
    pub(super) spare: String,
    /// The thread that was generated for it.
    pub(super) spare_thread: String,
    pub(super) digest: [u8; 32],
    pub(super) verdict: VerdictWord,
    pub(super) side: Side,
    pub(super) thread: String,
    pub(super) since: Timestamp,
    /// Whether its text was erased.
    pub(super) is_gone: bool,
    /// Whether its text may be cut off.
    pub(super) is_truncated: bool,
}

const KNOWN: &str = "SELECT seq, id, spare_message, spare_thread, digest, verdict, side, thread, at, octet_length(text) = 0 AS gone, \
                     truncated FROM intake";

fn known(row: &Row<'_>) -> SqlResult<KnownMessage> {
    Ok(KnownMessage {
        seq: row.get("seq")?,
        id: row.get("id")?,
        spare: row.get("spare_message")?,
        spare_thread: row.get("spare_thread")?,
        digest: row.get("digest")?,
        verdict: row.word("verdict", VerdictWord::parse)?,
        side: row.word("side", Side::parse)?,
        thread: row.get("thread")?,
        since: row.time("at")?,
        is_gone: row.get("gone")?,
        is_truncated: row.get("truncated")?,
    })
}

/// Accepts messages. Only inside a transaction.
pub(super) fn accept_all(db: &Connection, batch: &[Arrival]) -> SqlResult<Vec<StoreOutcome>> {
    // What a relay took is filed first: threads and questions are looked for in what is filed.
    index::index_rest(db)?;
    let mut stale = BTreeSet::new();
    // Where several come at once, a whole chat was copied, and what is known of it is known.
    let is_alone = batch.len() == 1;
    let outcomes = batch.iter().map(|a| accept(db, a, is_alone, &mut stale));
    let outcomes = outcomes.collect::<SqlResult<Vec<StoreOutcome>>>()?;
    let filed: Vec<(&Arrival, &str)> = batch
        .iter()
        .zip(&outcomes)
        .filter_map(|(arrival, outcome)| match outcome {
            StoreOutcome::Filed { thread, .. } => Some((arrival, thread.as_str())),
            StoreOutcome::Known { .. } | StoreOutcome::Conflict { .. } => None,
        })
        .collect();
    update_threads(db, filed.iter().map(|(_, thread)| *thread), &stale)?;
    for (arrival, thread) in filed {
        close::follow(db, arrival, thread)?;
    }
    index::skip_indexed(db)?;
    Ok(outcomes)
}

/// Brings the threads up to date that messages were filed to, and those that are stale: once for everything that came, so
/// that a thread is gone through as often as there are batches, not messages.
pub(super) fn update_threads<'t>(
    db: &Connection,
    filed: impl Iterator<Item = &'t str>,
    stale: &BTreeSet<String>,
) -> SqlResult<()> {
    let fresh: BTreeSet<&str> = filed.filter(|t| !stale.contains(*t)).collect();
    for thread in fresh {
        course::date(db, thread)?;
    }
    for thread in stale {
        course::recount(db, thread)?;
    }
    Ok(())
}

/// Accepts one message. `stale` are the threads that have to be counted again.
fn accept(
    db: &Connection,
    arrival: &Arrival,
    is_alone: bool,
    stale: &mut BTreeSet<String>,
) -> SqlResult<StoreOutcome> {
    if let Some(before) = &arrival.replaces {
        let mut corrected = arrival.clone();
        corrected.replaces = None;
        if corrected.message.as_ref() != Some(before) {
            corrected.message = None;
            corrected.generated.message.clone_from(before);
        }
        forget::forget_message(db, before)?;
        return accept(db, &corrected, is_alone, stale);
    }
    let Some(found) = candidate(db, arrival)? else {
        return match truncated_before(db, arrival)? {
            Some(cut) => complete(db, arrival, &cut, stale),
            None => insert(db, arrival, None, stale),
        };
    };
    if found.digest == arrival.digest.0 {
        return match is_alone && answers_another(db, arrival, stale)? {
            true => insert(db, arrival, None, stale),
            false => again(db, &found, arrival, stale),
        };
    }
    let kept = match found.is_gone {
        true => None,
        false => Some(row(db, found.seq)?),
    };
    let cut = kept.filter(|kept| arrival.completes(&kept.arrival));
    if let Some(cut) = cut
        .as_ref()
        .filter(|cut| arrival.holds_text_of(&cut.arrival))
    {
        return complete(db, arrival, cut, stale);
    }
    let takes_id = arrival.displaces(found.verdict, found.side) || cut.is_some();
    if takes_id && by_id(db, &found.spare)?.is_none() {
        displace(db, &found)?;
        return insert(db, arrival, Some(found.spare), stale);
    }
    Ok(StoreOutcome::Conflict {
        id: found.id,
        thread: found.thread,
    })
}

/// Whether an answer with the ids of the example, whose text is known, means a question that still waits.
fn answers_another(
    db: &Connection,
    arrival: &Arrival,
    stale: &mut BTreeSet<String>,
) -> SqlResult<bool> {
    if !arrival.copies_example() || arrival.answers.is_some() {
        return Ok(false);
    }
    let mut answer = arrival.clone();
    let (candidates, _) = infer_question(db, &mut answer, stale)?;
    Ok(answer.answers.is_some() || !candidates.is_empty())
}

/// How many of the latest threads of a sender, and of the latest messages of each, are looked through for one that was cut off.
const RECENT: (i64, i64) = (16, 64);

/// The latest message that may be cut off and that an arrival is the whole of, though no id tells it.
fn truncated_before(db: &Connection, arrival: &Arrival) -> SqlResult<Option<IntakeRow>> {
    if !arrival.may_make_up() || arrival.truncated {
        return Ok(None);
    }
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
    stale: &mut BTreeSet<String>,
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
    if whole.id() != id && has_answers(db, &id)? {
        return insert(db, &whole, None, stale);
    }
    forget::forget_message(db, &id)?;
    insert(db, &whole, Some(gone), stale)
}

/// The message with its id, or with its content and an id of its own.
fn candidate(db: &Connection, arrival: &Arrival) -> SqlResult<Option<KnownMessage>> {
    let found = match &arrival.message {
        Some(id) => by_id(db, id)?,
        None => by_content(db, arrival)?,
    };
    match (found, &arrival.message) {
        (Some(found), _) => Ok(Some(found)),
        (None, Some(_)) => by_content(db, arrival),
        (None, None) => by_id(db, arrival.id()),
    }
}

/// The message with its content and an id of its own.
pub(super) fn by_content(db: &Connection, arrival: &Arrival) -> SqlResult<Option<KnownMessage>> {
    let sql = format!("{KNOWN} WHERE carried = 0 AND digest = ?1 ORDER BY seq LIMIT 1");
    db.find(&sql, params![arrival.digest.0], known)
}

pub(super) fn by_id(db: &Connection, id: &str) -> SqlResult<Option<KnownMessage>> {
    db.find(&format!("{KNOWN} WHERE id = ?1"), params![id], known)
}

/// The sender of a message, if its text is there.
pub(super) fn sender(db: &Connection, seq: i64) -> SqlResult<Option<String>> {
    let sql = "SELECT text FROM intake WHERE seq = ?1";
    let text: String = db.one(sql, params![seq], value)?;
    let document = Document::parse(&text, Reading::Strict);
    Ok((!text.is_empty()).then(|| document.sender().to_owned()))
}

/// Gives a message an id of its own, since another one takes the id that it has. What answers that id stays with it.
pub(super) fn displace(db: &Connection, found: &KnownMessage) -> SqlResult<()> {
    for sql in [
        "UPDATE intake SET id = ?2, carried = 0 WHERE seq = ?1",
        "UPDATE message SET id = ?2 WHERE seq = ?1",
    ] {
        db.run(sql, params![found.seq, found.spare])?;
    }
    settle::judge(db, &found.spare)
}

/// A message that is there: kept is what is known better now, with the text that shows it.
fn again(
    db: &Connection,
    found: &KnownMessage,
    arrival: &Arrival,
    stale: &mut BTreeSet<String>,
) -> SqlResult<StoreOutcome> {
    let is_whole_now = found.is_truncated && !arrival.truncated && arrival.verdict == found.verdict;
    let improved = (arrival.improves(found.verdict) || is_whole_now) && !found.is_gone;
    let thread = match improved {
        true => improve(db, found, arrival, stale)?,
        false => found.thread.clone(),
    };
    if arrival.comes_back(found.side) && !found.is_gone && derive::is_indexed(db, found.seq)? {
        hand_to_me(db, found, stale)?;
    }
    Ok(StoreOutcome::Known {
        id: found.id.clone(),
        thread,
        since: found.since,
        improved,
    })
}

/// Lets a message that was written here wait for the person, who fetched it from the inbox that it is for.
fn hand_to_me(
    db: &Connection,
    found: &KnownMessage,
    stale: &mut BTreeSet<String>,
) -> SqlResult<()> {
    let sql = "UPDATE intake SET side = ?2 WHERE seq = ?1";
    db.run(sql, params![found.seq, Side::ToMe.as_str()])?;
    let now = row(db, found.seq)?;
    derive::remove_columns(db, found.seq)?;
    derive::columns(db, found.seq, &now)?;
    settle::judge(db, &found.id)?;
    stale.insert(now.thread);
    Ok(())
}

/// Keeps what is known better about a message. The thread that it is in then.
pub(super) fn improve(
    db: &Connection,
    found: &KnownMessage,
    arrival: &Arrival,
    stale: &mut BTreeSet<String>,
) -> SqlResult<String> {
    let seq = found.seq;
    if !derive::is_indexed(db, seq)? {
        update_evidence(db, seq, arrival)?;
        return Ok(found.thread.clone());
    }
    let before = row(db, seq)?;
    update_evidence(db, seq, arrival)?;
    let now = row(db, seq)?;
    if words::words(&before.arrival) != words::words(&now.arrival) {
        words::touch(db, seq)?;
    }
    derive::remove_columns(db, seq)?;
    derive::columns(db, seq, &now)?;
    stale.insert(now.thread.clone());
    apply_effects(db, seq, &now, stale)?;
    Ok(row(db, seq)?.thread)
}

/// The verdict, with the text that shows it.
pub(super) fn update_evidence(db: &Connection, seq: i64, arrival: &Arrival) -> SqlResult<()> {
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
    log::renewed(db, seq, arrival)
}

pub(super) fn row(db: &Connection, seq: i64) -> SqlResult<IntakeRow> {
    let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = ?1");
    db.one(&sql, params![seq], derive::intake_row)
}

fn insert(
    db: &Connection,
    arrival: &Arrival,
    displaced: Option<String>,
    stale: &mut BTreeSet<String>,
) -> SqlResult<StoreOutcome> {
    let mut filed = IntakeRow {
        seq: 0,
        arrival: arrival.clone(),
        thread: String::new(),
    };
    let (mut candidates, named) = infer_question(db, &mut filed.arrival, stale)?;
    let of_parent = choose_thread(db, &mut filed)?;
    if let (Some(thread), None) = (named, &of_parent) {
        filed.thread = thread;
    }
    let closed = course::closed_at(db, &filed.thread)?;
    let id = filed.arrival.id();
    let is_taken = id != filed.thread && is_thread(db, id)?;
    if is_taken || reference::imitates(db, id)? {
        filed.arrival.message = None;
    }
    candidates.extend(find_question(db, &mut filed, of_parent.is_some(), stale)?);
    let arrival = &filed.arrival;
    let sql = "INSERT INTO intake (id, carried, pkid, digest, at, way, side, verdict, \
        spare_thread, spare_message, thread, inferred, text, received, truncated) VALUES (?1, \
        ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    db.run(
        sql,
        params![
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
            filed.thread,
            arrival.answers,
            arrival.text,
            arrival.received,
            arrival.truncated,
        ],
    )?;
    let seq = db.last_insert_rowid();
    derive::index(db, seq, &filed)?;
    let settled = apply_effects(db, seq, &filed, stale)?;
    Ok(StoreOutcome::Filed {
        id: arrival.id().to_owned(),
        thread: filed.thread.clone(),
        settled,
        closed,
        displaced,
        candidates,
    })
}

/// Finds the message that an answer means whose ids are unknown or in the wrong place: the only one that waits for its sender,
/// or those that it may be. The thread that it named in the wrong place comes with them.
fn infer_question(
    db: &Connection,
    arrival: &mut Arrival,
    stale: &mut BTreeSet<String>,
) -> SqlResult<(Vec<String>, Option<String>)> {
    if !arrival.may_make_up() {
        return Ok((Vec::new(), None));
    }
    let (open, named) = match arrival.look_for_question(&named_ids(db, arrival)?) {
        Lookup::None | Lookup::Here => return Ok((Vec::new(), None)),
        Lookup::Thread(thread) => {
            freshen(db, Some(&thread), stale)?;
            let open = settle::open_to(db, Some(&thread), &arrival.sender)?;
            (open, Some(thread))
        }
        Lookup::Everywhere => {
            for thread in std::mem::take(stale) {
                course::recount(db, &thread)?;
            }
            (settle::open_to(db, None, &arrival.sender)?, None)
        }
        Lookup::Next(thread) => {
            freshen(db, Some(&thread), stale)?;
            let open = settle::open_to(db, Some(&thread), &arrival.sender)?;
            if let Meant::One(id) = arrival.choose_next(&open) {
                arrival.answers = Some(id);
            }
            return Ok((Vec::new(), None));
        }
    };
    match arrival.choose_question(&open) {
        Meant::None => Ok((Vec::new(), named)),
        Meant::Several(candidates) => Ok((candidates, named)),
        Meant::One(id) => {
            arrival.answers = Some(id);
            Ok((Vec::new(), None))
        }
    }
}

/// What is known of the ids that a message carries.
fn named_ids(db: &Connection, arrival: &Arrival) -> SqlResult<NamedIds> {
    let (thread, parent) = (arrival.thread.as_deref(), arrival.parent.as_deref());
    let is_a_thread = |id: Option<&str>| id.map_or(Ok(false), |id| is_thread(db, id));
    let asks = |thread: Option<&str>| -> SqlResult<bool> {
        let sql = "SELECT 1 FROM message WHERE thread = ?1 AND asks <> 0";
        db.has(sql, params![thread])
    };
    let of_thread_as_message = match is_a_thread(thread)? {
        true => None,
        false => thread_of(db, thread)?,
    };
    let sql = "SELECT 1 FROM message WHERE session = ?1 AND asks <> 0";
    let session_asks = db.has(sql, params![arrival.session])?;
    Ok(NamedIds {
        parent_is_message: thread_of(db, parent)?.is_some(),
        parent_is_thread: is_a_thread(parent)?,
        thread_asks: asks(thread)?,
        of_thread_as_message,
        session_asks,
        not_waiting: match parent {
            Some(parent) => settle::not_waiting_in(db, parent, &arrival.sender)?,
            None => None,
        },
    })
}

/// Chooses the thread of a message. The thread of the message that it answers, if that is known.
pub(super) fn choose_thread(db: &Connection, filed: &mut IntakeRow) -> SqlResult<Option<String>> {
    let arrival = &mut filed.arrival;
    // One id names one thing: no thread is named after a message of another one, and no message after another thread.
    if names_a_message(db, arrival.thread.as_deref(), arrival.id())? {
        arrival.thread = None;
    }
    let hints = hints(db, arrival)?;
    filed.thread = arrival.choose_thread(&hints);
    Ok(hints.of_parent)
}

/// Finds the message of its thread that an answer means that names none, or those that it may mean. What is told about
/// questions is right afterwards.
pub(super) fn find_question(
    db: &Connection,
    filed: &mut IntakeRow,
    parent_is_known: bool,
    stale: &mut BTreeSet<String>,
) -> SqlResult<Vec<String>> {
    let mut candidates = Vec::new();
    if filed.arrival.answers_unnamed(parent_is_known) {
        freshen(db, Some(&filed.thread), stale)?;
        let open = settle::open_to(db, Some(&filed.thread), &filed.arrival.sender)?;
        match filed.arrival.choose_question(&open) {
            Meant::None => {}
            Meant::One(id) => filed.arrival.answers = Some(id),
            Meant::Several(several) => candidates = several,
        }
    }
    let asked_in = thread_of(db, filed.arrival.answered())?;
    freshen(db, asked_in.as_deref(), stale)?;
    Ok(candidates)
}

/// Whether a named thread is a message, other than the one that names it.
fn names_a_message(db: &Connection, thread: Option<&str>, id: &str) -> SqlResult<bool> {
    let sql = "SELECT 1 FROM message WHERE id = ?1 AND ?1 <> ?2 AND thread <> ?1";
    db.has(sql, params![thread, id])
}

fn is_thread(db: &Connection, id: &str) -> SqlResult<bool> {
    db.has("SELECT 1 FROM thread WHERE id = ?1", params![id])
}

/// The latest thread of a session.
pub(super) const THREAD_OF_SESSION: &str =
    "SELECT thread FROM message WHERE session = ?1 ORDER BY counts DESC, seq DESC LIMIT 1";

/// Where it may belong. Messages that must not be acted on come last.
fn hints(db: &Connection, arrival: &Arrival) -> SqlResult<ThreadHints> {
    let ask = |sql: &str, key: Option<&str>| -> SqlResult<Option<String>> {
        let Some(key) = key else { return Ok(None) };
        db.find(sql, params![key], value)
    };
    let named = ask(
        "SELECT id FROM thread WHERE id = ?1",
        arrival.thread.as_deref(),
    )?;
    // What nobody signed leads nothing that is verified into its thread.
    let of_answer = match arrival.verdict {
        VerdictWord::Verified => {
            "SELECT thread FROM message WHERE parent = ?1 AND names IS NOT thread AND trust = 0 ORDER BY thread LIMIT 1"
        }
        _ => {
            "SELECT thread FROM message WHERE parent = ?1 AND names IS NOT thread ORDER BY thread LIMIT 1"
        }
    };
    let of_parent = match arrival.way {
        Way::Relayed if arrival.side == Side::Between => intake::thread_of_parent(db, arrival)?,
        _ => thread_of(db, arrival.answered())?,
    };
    Ok(ThreadHints {
        of_parent,
        named_is_known: named.is_some(),
        of_session: ask(THREAD_OF_SESSION, arrival.session.as_deref())?,
        of_answer: ask(of_answer, Some(arrival.id()))?,
    })
}

/// What a message changes about others, and others about it. The message that it settles.
pub(super) fn apply_effects(
    db: &Connection,
    seq: i64,
    filed: &IntakeRow,
    stale: &mut BTreeSet<String>,
) -> SqlResult<Option<String>> {
    let arrival = &filed.arrival;
    if !arrival.counts() {
        return Ok(None);
    }
    let answered = arrival.answered().filter(|_| arrival.settles());
    let waited = settle::waits(db, answered)?;
    if has_answers(db, arrival.id())? {
        gather(db, filed, stale)?;
        settle::judge(db, arrival.id())?;
    } else if arrival.wait() != Wait::Nobody {
        settle::refresh(db, seq)?;
    }
    if let Some(id) = answered {
        settle::count(db, id, seq, arrival)?;
        settle::take_as_answer(db, id, seq, arrival)?;
    }
    if let Some(poll) = answered.filter(|_| arrival.ends_poll()) {
        settle::end_poll(db, poll)?;
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

/// Whether anything that is here says that it answers a message.
fn has_answers(db: &Connection, id: &str) -> SqlResult<bool> {
    db.has("SELECT 1 FROM message WHERE parent = ?1", params![id])
}

/// The thread of the message with an id.
pub(super) fn thread_of(db: &Connection, id: Option<&str>) -> SqlResult<Option<String>> {
    let sql = "SELECT thread FROM message WHERE id = ?1";
    db.find(sql, params![id], value)
}

/// Counts a thread again now if that is due: what is told about its questions has to be right.
fn freshen(db: &Connection, thread: Option<&str>, stale: &mut BTreeSet<String>) -> SqlResult<()> {
    match thread {
        Some(thread) if stale.remove(thread) => course::recount(db, thread),
        _ => Ok(()),
    }
}

/// Brings answers that came before their message into its thread, with what answers them, unless they named a thread of
/// their own. A verified one follows a verified one alone.
fn gather(db: &Connection, filed: &IntakeRow, stale: &mut BTreeSet<String>) -> SqlResult<()> {
    let IntakeRow {
        arrival, thread, ..
    } = filed;
    let is_verified = arrival.verdict == VerdictWord::Verified;
    let asked = params![arrival.id(), thread, is_verified];
    let moved = db.all("WITH RECURSIVE moved (seq, id, thread, trust) AS ( \
         SELECT seq, id, thread, trust FROM message WHERE parent = ?1 AND names IS NOT thread AND thread <> ?2 \
         AND (trust > 0 OR ?3) UNION \
         SELECT m.seq, m.id, m.thread, m.trust FROM moved JOIN message m ON m.parent = moved.id \
         AND m.thread = moved.thread WHERE m.trust > 0 OR moved.trust = 0) \
         SELECT seq, thread FROM moved", asked, tuple::<(i64, String)>)?;
    if !moved.is_empty() {
        stale.insert(thread.clone());
    }
    for (seq, from) in moved {
        for sql in [
            "UPDATE intake SET thread = ?2 WHERE seq = ?1",
            "UPDATE message SET thread = ?2 WHERE seq = ?1",
        ] {
            db.run(sql, params![seq, thread])?;
        }
        stale.insert(from);
    }
    Ok(())
}
