//! What is derived from the intake: columns, threads, parties, words, and who has to act next.
//!
//! Everything here follows from the rows of the intake alone, in whatever order they are looked at, so that
//! [`rebuild`] gives what the steps of [`super::accept`] gave.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::Word;
use crosstalk_protocol::store::{Arrival, Kept, Side, Wait, Way, party, searchable};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::fault::Step;
use super::schema;

/// How many rows of the intake are in memory at once while everything is derived again.
const ROWS: i64 = 256;

/// A row of the intake as an arrival, and how it was filed.
pub(super) struct Filed {
    pub(super) seq: i64,
    pub(super) thread: String,
    pub(super) inferred: Option<String>,
    pub(super) arrival: Arrival,
}

pub(super) const FILED: &str = "seq, thread, inferred, text, received, verdict, pkid, side, way, at, spare_thread, \
                                spare_message";

/// Reads the columns of [`FILED`].
pub(super) fn filed(row: &Row<'_>) -> Step<Filed> {
    let pkid: String = row.get("pkid")?;
    Ok(Filed {
        seq: row.get("seq")?,
        thread: row.get("thread")?,
        inferred: row.get("inferred")?,
        arrival: Arrival::recall(Kept {
            text: row.get("text")?,
            received: row.get("received")?,
            verdict: word(row, "verdict", verdict_of)?,
            pkid: (!pkid.is_empty()).then_some(pkid),
            side: word(row, "side", Side::parse)?,
            way: word(row, "way", Way::parse)?,
            at: Timestamp::from_millis(row.get("at")?),
            spare: ReceivedIds {
                thread: row.get("spare_thread")?,
                message: row.get("spare_message")?,
            },
        }),
    })
}

pub(super) fn verdict_of(text: &str) -> Option<Word> {
    Word::ALL.into_iter().find(|w| w.as_str() == text)
}

/// A column that holds one of a few words.
pub(super) fn word<T>(row: &Row<'_>, column: &str, parse: fn(&str) -> Option<T>) -> Step<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| unknown(column, &text))
}

fn unknown(column: &str, text: &str) -> rusqlite::Error {
    let what = format!("`{}` is no {column}", text.escape_debug());
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, what.into())
}

/// The number of a [`Wait`] in its column.
const fn number(wait: Wait) -> i64 {
    match wait {
        Wait::Nobody => 0,
        Wait::Me => 1,
        Wait::Carry => 2,
        Wait::Them => 3,
    }
}

/// The wait of a number in its column.
pub(super) fn wait_of(number: i64) -> Step<Wait> {
    let found = Wait::ALL.into_iter().find(|w| self::number(*w) == number);
    found.ok_or_else(|| unknown("wait", &number.to_string()))
}

/// Files a row of the intake into every table, without a look at what it settles or what settles it.
pub(super) fn index(db: &Connection, seq: i64, filed: &Filed) -> Step<()> {
    let Filed {
        arrival: a, thread, ..
    } = filed;
    let at = a.at.as_millis();
    let parties = parties(a);
    let targets = parties.get(2..).filter(|t| !t.is_empty()).map(|targets| {
        let keys: String = targets.iter().map(|(key, _)| format!("{key}\n")).collect();
        format!("\n{keys}")
    });
    db.prepare_cached(
        "INSERT INTO message (seq, id, thread, named, parent, answers, session, sender, sender_party, receiver, \
         receiver_party, targets, user, context, intent, meaning, at, written_at, trust, counts, settles, closes, mine, \
         asks, needs, own_is_enough, wait) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, \
         ?23, ?24, ?25, ?26, 0)",
    )?
    .execute(params![
        seq,
        a.id(),
        thread,
        a.thread.as_ref() == Some(thread),
        a.parent,
        a.parent.as_ref().or(filed.inferred.as_ref()),
        a.session,
        a.sender,
        party(&a.sender),
        a.receiver,
        party(&a.receiver),
        targets,
        a.user,
        a.context,
        a.intent,
        a.meaning.map(|m| m.as_str()),
        at,
        a.written_at.map(Timestamp::as_millis),
        trust(a.verdict),
        a.counts(),
        a.settles(),
        a.closes(),
        a.side == Side::Mine,
        number(a.wait()),
        i64::try_from(a.answers_needed()).unwrap_or(i64::MAX),
        a.own_answer_is_enough(),
    ])?;
    db.prepare_cached(
        "INSERT INTO thread (id, messages, waiting, asked, first_at, first_seq, last_at, last_seq) \
         VALUES (?1, 1, 0, 0, ?2, ?3, ?2, ?3) \
         ON CONFLICT (id) DO UPDATE SET messages = messages + 1, \
         first_seq = iif((?2, ?3) < (first_at, first_seq), ?3, first_seq), first_at = min(?2, first_at), \
         last_seq = iif((?2, ?3) > (last_at, last_seq), ?3, last_seq), last_at = max(?2, last_at)",
    )?
    .execute(params![thread, at, seq])?;
    if a.closes() {
        let mut close = db.prepare_cached(
            "UPDATE thread SET closed_at = coalesce(closed_at, ?2), closed_seq = max(coalesce(closed_seq, 0), ?3) \
             WHERE id = ?1",
        )?;
        close.execute(params![thread, at, seq])?;
    }
    add_parties(db, thread, seq, &parties)?;
    let [body, context, sender, receiver, intent] = words(a);
    db.prepare_cached(
        "INSERT INTO words (rowid, body, context, sender, receiver, intent) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![seq, body, context, sender, receiver, intent])?;
    Ok(())
}

/// The place of a verdict among all, the best first.
pub(super) fn trust(verdict: Word) -> i64 {
    let place = Word::ALL.iter().position(|w| *w == verdict);
    place.and_then(|p| i64::try_from(p).ok()).unwrap_or(0)
}

/// Everyone who is named: the sender, the receiver, the targets.
fn parties(a: &Arrival) -> Vec<(String, &str)> {
    let names = [&a.sender, &a.receiver].into_iter().chain(&a.targets);
    names.map(|name| (party(name), name.as_str())).collect()
}

/// Adds a message's parties to a thread, and moves all parties of the thread to the place of its latest message.
fn add_parties(db: &Connection, thread: &str, seq: i64, parties: &[(String, &str)]) -> Step<()> {
    let mut add = db.prepare_cached(
        "INSERT INTO party (thread, party, address, first_seq, place, last_at, last_seq) \
         VALUES (?1, ?2, ?3, ?4, ?5, 0, 0) \
         ON CONFLICT (thread, party) DO UPDATE SET address = excluded.address, first_seq = excluded.first_seq, \
         place = excluded.place WHERE excluded.first_seq < first_seq",
    )?;
    for (place, (key, address)) in parties.iter().enumerate() {
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        add.execute(params![thread, key, address, seq, place])?;
    }
    db.prepare_cached(
        "UPDATE party SET (last_at, last_seq) = (SELECT last_at, last_seq FROM thread WHERE id = ?1) WHERE thread = ?1",
    )?
    .execute(params![thread])?;
    Ok(())
}

/// What is searched of a message, in the columns of the table of words.
fn words(a: &Arrival) -> [String; 5] {
    let two = |one: &str, other: &str| searchable(&format!("{one} {other}"));
    let meaning = a.meaning.map_or("", |m| m.as_str());
    [
        searchable(&a.body),
        searchable(a.context.as_deref().unwrap_or_default()),
        two(&a.sender, a.user.as_deref().unwrap_or_default()),
        searchable(&a.receiver),
        two(a.intent.as_deref().unwrap_or_default(), meaning),
    ]
}

/// Takes a message out of the columns and the words; its thread and parties are left as they are.
pub(super) fn unindex(db: &Connection, seq: i64, arrival: &Arrival) -> Step<()> {
    let [body, context, sender, receiver, intent] = words(arrival);
    db.prepare_cached(
        "INSERT INTO words (words, rowid, body, context, sender, receiver, intent) \
         VALUES ('delete', ?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![seq, body, context, sender, receiver, intent])?;
    db.prepare_cached("DELETE FROM message WHERE seq = ?1")?
        .execute(params![seq])?;
    Ok(())
}

/// Decides again who has to act on the messages of an id.
pub(super) fn refresh(db: &Connection, id: &str) -> Step<()> {
    let mut find = db.prepare_cached("SELECT seq FROM message WHERE id = ?1 AND asks <> 0")?;
    let rows = find.query_map(params![id], |row| row.get(0))?;
    for seq in rows.collect::<Step<Vec<i64>>>()? {
        refresh_row(db, seq)?;
    }
    Ok(())
}

fn refresh_row(db: &Connection, seq: i64) -> Step<()> {
    let mut look = db.prepare_cached(
        "SELECT m.thread, m.wait, m.asks, \
         i.dismissed = 0 AND coalesce(t.closed_seq, 0) < m.seq \
         AND CASE m.needs \
             WHEN 1 THEN NOT EXISTS (SELECT 1 FROM message a \
                 WHERE a.settles = 1 AND a.answers = m.id AND a.seq <> m.seq) \
             ELSE (SELECT count(DISTINCT a.sender_party) FROM message a \
                 WHERE a.settles = 1 AND a.answers = m.id AND a.seq <> m.seq) < m.needs END \
         AND NOT (m.own_is_enough AND EXISTS (SELECT 1 FROM message a \
             WHERE a.settles = 1 AND a.answers = m.id AND a.seq <> m.seq AND a.mine = 1)) AS open \
         FROM message m JOIN intake i ON i.seq = m.seq JOIN thread t ON t.id = m.thread WHERE m.seq = ?1",
    )?;
    let (thread, before, asks, open): (String, i64, i64, bool) = look
        .query_row(params![seq], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
    let after = if open { asks } else { 0 };
    if after != before {
        db.prepare_cached("UPDATE message SET wait = ?2 WHERE seq = ?1")?
            .execute(params![seq, after])?;
        db.prepare_cached(
            "UPDATE thread SET waiting = waiting + (?3 IN (1, 2)) - (?2 IN (1, 2)), asked = asked + (?3 = 3) - (?2 = 3) \
             WHERE id = ?1",
        )?
        .execute(params![thread, before, after])?;
    }
    Ok(())
}

/// Clears the waits of a thread up to the message that closed it.
pub(super) fn settle_closed(db: &Connection, thread: &str) -> Step<()> {
    let mut find = db.prepare_cached(
        "SELECT seq FROM message WHERE thread = ?1 AND wait <> 0 \
         AND seq < (SELECT coalesce(closed_seq, 0) FROM thread WHERE id = ?1)",
    )?;
    let rows = find.query_map(params![thread], |row| row.get(0))?;
    for seq in rows.collect::<Step<Vec<i64>>>()? {
        refresh_row(db, seq)?;
    }
    Ok(())
}

/// Counts a thread again after messages have left it or come to it from another one.
pub(super) fn recount(db: &Connection, thread: &str) -> Step<()> {
    db.prepare_cached("DELETE FROM party WHERE thread = ?1")?
        .execute(params![thread])?;
    db.prepare_cached("DELETE FROM thread WHERE id = ?1")?
        .execute(params![thread])?;
    db.prepare_cached(
        "INSERT INTO thread SELECT ?1, count(*), sum(wait IN (1, 2)), sum(wait = 3), \
         min(at), (SELECT seq FROM message WHERE thread = ?1 ORDER BY at, seq LIMIT 1), \
         max(at), (SELECT seq FROM message WHERE thread = ?1 ORDER BY at DESC, seq DESC LIMIT 1), \
         (SELECT at FROM message WHERE thread = ?1 AND closes = 1 ORDER BY seq LIMIT 1), \
         (SELECT max(seq) FROM message WHERE thread = ?1 AND closes = 1) \
         FROM message WHERE thread = ?1 HAVING count(*) > 0",
    )?
    .execute(params![thread])?;
    let sql = format!("SELECT {FILED} FROM intake WHERE seq = ?1");
    let mut rows = db.prepare_cached("SELECT seq FROM message WHERE thread = ?1 ORDER BY seq")?;
    let rows = rows.query_map(params![thread], |row| row.get(0))?;
    for seq in rows.collect::<Step<Vec<i64>>>()? {
        let row = db.prepare_cached(&sql)?.query_row(params![seq], filed)?;
        add_parties(db, thread, seq, &parties(&row.arrival))?;
        if row.arrival.wait() != Wait::Nobody {
            refresh_row(db, seq)?;
        }
    }
    Ok(())
}

/// Empties everything that is derived, and derives it again.
pub(super) fn rebuild(db: &Connection) -> Step<()> {
    db.execute_batch(schema::EMPTY)?;
    let sql = format!("SELECT {FILED} FROM intake WHERE seq > ?1 ORDER BY seq LIMIT ?2");
    let mut after = 0;
    loop {
        let mut find = db.prepare_cached(&sql)?;
        let rows = find.query_map(params![after, ROWS], filed)?;
        let rows = rows.collect::<Step<Vec<Filed>>>()?;
        for row in &rows {
            index(db, row.seq, row)?;
            after = row.seq;
        }
        if rows.is_empty() {
            break;
        }
    }
    let mut after = 0;
    let mut next =
        db.prepare("SELECT seq FROM message WHERE seq > ?1 AND asks <> 0 ORDER BY seq LIMIT 1")?;
    while let Some(seq) = next
        .query_row(params![after], |row| row.get(0))
        .optional()?
    {
        refresh_row(db, seq)?;
        after = seq;
    }
    Ok(())
}
