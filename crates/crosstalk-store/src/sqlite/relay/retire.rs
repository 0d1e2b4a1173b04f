//! Erasing what is too old or has run out. Its id and its digest stay: the same message is known when it comes again.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::{Retention, Retired};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::BTreeSet;

use super::{hold, keep, progress};
use crate::sqlite::derive::{self, FILED, Filed};
use crate::sqlite::fault::Step;
use crate::sqlite::{course, log, settle};

/// With so many messages, the index of words is not written anew as a whole.
const MANY: i64 = 20_000;

/// Erases messages. Only inside of a transaction.
pub(super) fn retire(db: &Connection, what: &Retention) -> Step<Retired> {
    let mut chosen = expired(db, what)?;
    let mut more = chosen.len() > what.most;
    chosen.truncate(what.most);
    for seq in &chosen {
        keep::let_go(db, *seq)?;
    }
    if let Some(before) = what.brief_before {
        let room = what.most.saturating_sub(chosen.len());
        let times = (before.as_millis(), what.now.as_millis());
        chosen.extend(brief(db, times, room)?);
        more |= chosen.len() >= what.most;
    }
    if let Some(before) = what.before
        && !more
    {
        let room = what.most.saturating_sub(chosen.len());
        more = aged(db, before.as_millis(), room, &mut chosen)?;
    }
    if let Some(before) = what.before {
        let why = ("nobody decided for as long as messages are kept", what.now);
        hold::give_up(db, "h.at < ?1", &before.as_millis(), why)?;
    }
    chosen.sort_unstable();
    chosen.dedup();
    erase(db, &chosen, what.now, "retention")?;
    if !chosen.is_empty() && !more {
        tidy(db)?;
    }
    Ok(Retired {
        messages: u64::try_from(chosen.len()).unwrap_or(u64::MAX),
        more,
    })
}

/// Messages whose time has run out, one more than are wanted. What is not filed yet is left for the next time.
fn expired(db: &Connection, what: &Retention) -> Step<Vec<i64>> {
    let mut find = db.prepare_cached(
        "SELECT seq FROM intake INDEXED BY intake_expires WHERE expires <= ?1 AND seq <= ?2 ORDER BY expires LIMIT ?3",
    )?;
    let filed = progress::place(db, progress::FILED)?;
    let limit = super::number(what.most.saturating_add(1));
    let rows = find.query_map(params![what.now.as_millis(), filed, limit], |row| {
        row.get(0)
    })?;
    rows.collect()
}

/// Sensitive messages that came before a time, and that nobody is to get any more. A signed message that granted a consent
/// under a name of its own proves it, and stays as long as the consent holds.
fn brief(db: &Connection, (before, now): (i64, i64), room: usize) -> Step<Vec<i64>> {
    let mut find = db.prepare_cached(
        "SELECT seq FROM intake i INDEXED BY intake_brief WHERE brief = 1 AND at < ?1 AND seq <= ?2 AND NOT EXISTS \
         (SELECT 1 FROM delivery d WHERE d.seq = i.seq AND d.state NOT IN (3, 4)) AND NOT EXISTS \
         (SELECT 1 FROM consent_use u INDEXED BY consent_use_seq JOIN consent c ON c.id = u.consent WHERE u.seq = i.seq \
         AND c.message = i.id AND c.id <> c.message AND c.pkid IS NOT NULL AND c.revoked_at IS NULL \
         AND (c.expires IS NULL OR c.expires > ?4)) ORDER BY at LIMIT ?3",
    )?;
    let filed = progress::place(db, progress::FILED)?;
    let rows = find.query_map(params![before, filed, super::number(room), now], |row| {
        row.get(0)
    })?;
    rows.collect()
}

/// Messages that came before a time, in the order in which they came, up to the first that did not; whether there are
/// more. Those that the person of this store took in are theirs.
fn aged(db: &Connection, before: i64, room: usize, chosen: &mut Vec<i64>) -> Step<bool> {
    let mut find = db.prepare_cached(
        "SELECT seq, at, peer IS NOT NULL AND octet_length(text) > 0 FROM intake WHERE seq > ?1 AND seq <= ?2 ORDER BY seq",
    )?;
    let mut last = progress::place(db, progress::RETIRED)?;
    let mut rows = find.query(params![last, progress::place(db, progress::FILED)?])?;
    let (mut found, mut more) = (0, false);
    while let Some(row) = rows.next()? {
        let (seq, at, is_there): (i64, i64, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if at >= before {
            break;
        }
        if is_there && found == room {
            more = true;
            break;
        }
        if is_there {
            chosen.push(seq);
            found += 1;
        }
        last = seq;
    }
    drop(rows);
    progress::set(db, progress::RETIRED, last)?;
    Ok(more)
}

/// Erases messages, and writes down why.
fn erase(db: &Connection, chosen: &[i64], at: Timestamp, why: &str) -> Step<()> {
    for seq in chosen {
        log::erased(db, *seq, at, why)?;
        clear(db, *seq)?;
    }
    erase_texts(db, chosen)
}

/// Erases messages because the operator says so. Their ids and digests stay, so that the same messages are not accepted again.
/// How many had a text. Only inside of a transaction.
pub(in crate::sqlite) fn erase_on_request(
    db: &Connection,
    ids: &[String],
    at: Timestamp,
) -> Step<u64> {
    progress::file_rest(db)?;
    let mut chosen = Vec::new();
    for id in ids {
        let seq: Option<i64> = db
            .prepare_cached("SELECT seq FROM intake WHERE id = ?1 AND octet_length(text) > 0")?
            .query_row(params![id], |row| row.get(0))
            .optional()?;
        chosen.extend(seq);
    }
    for seq in &chosen {
        keep::let_go(db, *seq)?;
    }
    erase(db, &chosen, at, "the operator erased it")?;
    tidy(db)?;
    Ok(u64::try_from(chosen.len()).unwrap_or(u64::MAX))
}

/// Erases the texts of messages and everything that is derived from them, filed or not. Those that have none are left: the
/// index of words takes a row out once.
pub(in crate::sqlite) fn erase_texts(db: &Connection, chosen: &[i64]) -> Step<()> {
    let sql = format!("SELECT {FILED} FROM intake WHERE seq = ?1 AND text <> ''");
    let (mut threads, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for seq in chosen {
        let mut read = db.prepare_cached(&sql)?;
        let row: Option<Filed> = read.query_row(params![seq], derive::filed).optional()?;
        let Some(row) = row else { continue };
        if derive::is_indexed(db, *seq)? {
            answered.extend(row.arrival.answered().map(str::to_owned));
            threads.insert(row.thread);
        }
        derive::unindex(db, *seq, &row.arrival)?;
        db.prepare_cached(
            "UPDATE intake SET text = '', received = NULL, routes = '', inferred = NULL, answer_by = NULL, \
             expires = NULL, session = NULL, brief = 0 WHERE seq = ?1",
        )?
        .execute(params![seq])?;
    }
    for thread in &threads {
        course::recount(db, thread)?;
    }
    // What they settled elsewhere is open again.
    for id in answered {
        settle::judge(db, &id)?;
    }
    Ok(())
}

/// Words that begin a page of the index are its keys, and outlive what they were written for: its pages are written anew,
/// all of them if they are few, else some each time.
fn tidy(db: &Connection) -> Step<()> {
    let place = |sql| db.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
    let first = place("SELECT min(seq) FROM message")?.unwrap_or(0);
    let last = place("SELECT max(seq) FROM message")?.unwrap_or(0);
    let sql = match last - first < MANY {
        true => "INSERT INTO words (words) VALUES ('optimize')",
        false => "INSERT INTO words (words, rank) VALUES ('merge', -2000)",
    };
    db.execute(sql, [])?;
    Ok(())
}

/// Takes everything away that a relay keeps about a message besides its row.
pub(in crate::sqlite) fn clear(db: &Connection, seq: i64) -> Step<()> {
    keep::release(db, seq)?;
    for sql in [
        "DELETE FROM delivery WHERE seq = ?1",
        "DELETE FROM expectation WHERE seq = ?1",
        "DELETE FROM consent_use WHERE seq = ?1",
        "DELETE FROM poll WHERE seq = ?1",
        "DELETE FROM moved WHERE seq = ?1",
    ] {
        db.prepare_cached(sql)?.execute(params![seq])?;
    }
    Ok(())
}
