//! What is derived from the intake: columns and words here, threads and parties in [`super::course`], who has to act
//! next in [`super::settle`].
//!
//! Everything here follows from the rows of the intake alone, in whatever order they are looked at, so that
//! [`rebuild`] gives what the steps of [`super::accept`] gave.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::Word;
use crosstalk_protocol::store::{Arrival, Kept, Side, Wait, Way, searchable};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::course::{self, Turn};
use super::fault::Step;
use super::relay::{progress, route};
use super::{quarantine, schema, settle};

/// How many rows of the intake are in memory at once while everything is derived again.
const ROWS: i64 = 256;

/// A row of the intake as an arrival, and how it was filed.
pub(super) struct Filed {
    pub(super) seq: i64,
    pub(super) thread: String,
    pub(super) arrival: Arrival,
}

pub(super) const FILED: &str = "seq, id, thread, inferred, carried, text, received, verdict, pkid, side, way, at, \
                                spare_thread, spare_message, routes, truncated";

/// Reads the columns of [`FILED`].
pub(super) fn filed(row: &Row<'_>) -> Step<Filed> {
    let pkid: String = row.get("pkid")?;
    let routes: String = row.get("routes")?;
    let mut filed = Filed {
        seq: row.get("seq")?,
        thread: row.get("thread")?,
        arrival: Arrival::recall(Kept {
            text: row.get("text")?,
            received: row.get("received")?,
            truncated: row.get("truncated")?,
            verdict: word(row, "verdict", verdict_of)?,
            pkid: (!pkid.is_empty()).then_some(pkid),
            side: word(row, "side", Side::parse)?,
            way: word(row, "way", Way::parse)?,
            at: Timestamp::from_millis(row.get("at")?),
            message: match row.get("carried")? {
                true => Some(row.get("id")?),
                false => None,
            },
            answers: row.get("inferred")?,
            spare: ReceivedIds {
                thread: row.get("spare_thread")?,
                message: row.get("spare_message")?,
            },
        }),
    };
    route::widen(&mut filed.arrival, &routes);
    Ok(filed)
}

pub(super) fn verdict_of(text: &str) -> Option<Word> {
    Word::parse(text)
}

/// A column that holds one of a few words.
pub(super) fn word<T>(row: &Row<'_>, column: &str, parse: fn(&str) -> Option<T>) -> Step<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| unknown(column, &text))
}

pub(in crate::sqlite) fn unknown(column: &str, text: &str) -> rusqlite::Error {
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

/// Addresses in one column, one a line.
pub(super) fn joined(addresses: &[String]) -> Option<String> {
    (!addresses.is_empty()).then(|| addresses.join("\n"))
}

/// Files a row of the intake into every table, as the latest of its thread, without a look at what it settles or what
/// settles it.
pub(super) fn index(db: &Connection, seq: i64, filed: &Filed) -> Step<()> {
    columns(db, seq, filed)?;
    add_words(db, seq, &filed.arrival)?;
    course::follow(db, &filed.thread, &Turn::of(seq, &filed.arrival))
}

/// What the text says, in columns.
pub(super) fn columns(db: &Connection, seq: i64, filed: &Filed) -> Step<()> {
    let Filed {
        arrival: a, thread, ..
    } = filed;
    db.prepare_cached(
        "INSERT INTO message (seq, id, thread, names, parent, session, sender, receiver, targets, user, context, intent, \
         meaning, at, written_at, trust, counts, settles, closes, reopens, mine, asks, needs, answered, wait) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, \
         ?23, 0, 0)",
    )?
    .execute(params![
        seq,
        a.id(),
        thread,
        a.thread,
        a.answered(),
        a.session,
        a.sender,
        a.receiver,
        joined(&a.targets),
        a.user,
        a.context,
        a.intent,
        a.meaning.map(|m| m.as_str()),
        a.at.as_millis(),
        a.written_at.map(Timestamp::as_millis),
        trust(a.verdict),
        a.counts(),
        a.settles(),
        a.closes(),
        a.reopens(),
        a.is_written_here(),
        number(a.wait()),
        i64::try_from(a.answers_needed()).unwrap_or(i64::MAX),
    ])?;
    Ok(())
}

/// What is searched of a message.
pub(super) fn add_words(db: &Connection, seq: i64, arrival: &Arrival) -> Step<()> {
    let [body, context, sender, receiver, intent] = words(arrival);
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

/// What is searched of a message, in the columns of the table of words.
pub(super) fn words(a: &Arrival) -> [String; 5] {
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

/// Whether a message is indexed: not if it still waits for that, or is quarantined.
pub(super) fn is_indexed(db: &Connection, seq: i64) -> Step<bool> {
    db.prepare_cached("SELECT 1 FROM message WHERE seq = ?1")?
        .exists(params![seq])
}

/// Takes a message out of the columns and the words, or out of quarantine; its thread and parties are left as they are.
pub(super) fn unindex(db: &Connection, seq: i64, arrival: &Arrival) -> Step<()> {
    if quarantine::release(db, seq)? || !is_indexed(db, seq)? {
        return Ok(());
    }
    take_words(db, seq, arrival)?;
    take_columns(db, seq)
}

/// Takes the words of a message out of the index.
pub(super) fn take_words(db: &Connection, seq: i64, arrival: &Arrival) -> Step<()> {
    let [body, context, sender, receiver, intent] = words(arrival);
    db.prepare_cached(
        "INSERT INTO words (words, rowid, body, context, sender, receiver, intent) \
         VALUES ('delete', ?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![seq, body, context, sender, receiver, intent])?;
    Ok(())
}

/// Takes a message out of the columns.
pub(super) fn take_columns(db: &Connection, seq: i64) -> Step<()> {
    for sql in [
        "DELETE FROM answer WHERE question = ?1",
        "DELETE FROM message WHERE seq = ?1",
    ] {
        db.prepare_cached(sql)?.execute(params![seq])?;
    }
    Ok(())
}

/// Empties everything that is derived, and derives it again for what was indexed: not for messages that still wait for that,
/// or are quarantined.
pub(super) fn rebuild(db: &Connection) -> Step<()> {
    db.execute_batch(schema::EMPTY)?;
    // A message of the person of this store has no deliveries: it is indexed here or nowhere.
    db.execute_batch(
        "DELETE FROM quarantine WHERE seq IN (SELECT seq FROM intake WHERE peer IS NULL)",
    )?;
    let mut find = db.prepare(
        "SELECT seq FROM intake i WHERE seq > ?1 AND seq <= ?2 AND text <> '' \
         AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.seq = i.seq) ORDER BY seq LIMIT ?3",
    )?;
    let sql = format!("SELECT {FILED} FROM intake WHERE seq = ?1");
    let (mut after, last) = (0, progress::place(db, progress::FILED)?);
    loop {
        let rows = find.query_map(params![after, last, ROWS], |row| row.get(0))?;
        let rows = rows.collect::<Step<Vec<i64>>>()?;
        for seq in &rows {
            quarantine::alone(db, *seq, || {
                let row = db.prepare_cached(&sql)?.query_row(params![seq], filed)?;
                index(db, *seq, &row)
            })?;
        }
        let Some(last) = rows.last() else { break };
        after = *last;
    }
    db.execute_batch(schema::DATED)?;
    let mut after = 0;
    let mut next = db
        .prepare("SELECT seq, id FROM message WHERE seq > ?1 AND asks <> 0 ORDER BY seq LIMIT 1")?;
    while let Some((seq, id)) = next
        .query_row(params![after], |row| {
            Ok((row.get(0)?, row.get::<_, String>(1)?))
        })
        .optional()?
    {
        settle::judge(db, &id)?;
        after = seq;
    }
    Ok(())
}
