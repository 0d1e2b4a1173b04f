//! Erasing what is too old or has expired. Its id and its digest stay: the same message is known when it comes again.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::port::{MaintenanceResult, Retention};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

use super::{hold, index, keep};
use crate::sqlite::derive::{self, INTAKE_ROW, IntakeRow};
use crate::sqlite::fault::SqlResult;
use crate::sqlite::sql::{Sql as _, number, to_u64, value};
use crate::sqlite::words::{self, Rewrite};
use crate::sqlite::{indexed, log};

/// Erases messages. Only inside a transaction.
pub(super) fn retire(db: &Connection, what: &Retention) -> SqlResult<MaintenanceResult> {
    let mut chosen = expired(db, what)?;
    let mut more = chosen.len() > what.limit;
    chosen.truncate(what.limit);
    for seq in &chosen {
        keep::let_go(db, *seq)?;
    }
    if let Some(before) = what.brief_before {
        let room = what.limit.saturating_sub(chosen.len());
        let times = (before.as_millis(), what.now.as_millis());
        chosen.extend(brief(db, times, room)?);
        more |= chosen.len() >= what.limit;
    }
    if let Some(before) = what.before
        && !more
    {
        let room = what.limit.saturating_sub(chosen.len());
        more = aged(db, before.as_millis(), room, &mut chosen)?;
    }
    if let Some(before) = what.before {
        let why = ("nobody decided for as long as messages are kept", what.now);
        hold::lapse_where(db, "h.at < ?1", &before.as_millis(), why)?;
    }
    chosen.sort_unstable();
    chosen.dedup();
    erase(db, &chosen, what.now, "retention")?;
    if !chosen.is_empty() && !more {
        words::ask_to_rewrite(db, Rewrite::Some)?;
    }
    Ok(MaintenanceResult {
        count: to_u64(chosen.len()),
        more,
        blobs: Vec::new(),
    })
}

/// Expired messages, one more than are wanted. Messages that are not indexed yet are left for the next run.
fn expired(db: &Connection, what: &Retention) -> SqlResult<Vec<i64>> {
    let filed = index::progress(db, index::INDEXED)?;
    let limit = number(what.limit.saturating_add(1));
    let sql = "SELECT seq FROM intake INDEXED BY intake_expires WHERE expires <= ?1 AND seq <= \
        ?2 ORDER BY expires LIMIT ?3";
    db.all(sql, params![what.now.as_millis(), filed, limit], |row| {
        row.get(0)
    })
}

/// Sensitive messages that came before a time, and that nobody is to get any more. A signed message that granted a consent
/// under a name of its own proves it, and stays as long as the consent holds.
fn brief(db: &Connection, (before, now): (i64, i64), room: usize) -> SqlResult<Vec<i64>> {
    let filed = index::progress(db, index::INDEXED)?;
    let sql = "SELECT seq FROM intake i INDEXED BY intake_brief WHERE brief = 1 AND at < ?1 AND \
        seq <= ?2 AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.seq = i.seq AND d.state NOT \
        IN (3, 4)) AND NOT EXISTS (SELECT 1 FROM consent_use u INDEXED BY consent_use_seq JOIN \
        consent c ON c.id = u.consent WHERE u.seq = i.seq AND c.message = i.id AND c.id <> \
        c.message AND c.pkid IS NOT NULL AND c.revoked_at IS NULL AND (c.expires IS NULL OR \
        c.expires > ?4)) ORDER BY at LIMIT ?3";
    db.all(sql, params![before, filed, number(room), now], |row| {
        row.get(0)
    })
}

/// Messages that came before a time, in the order in which they came, up to the first that did not; whether there are
/// more. Those that the person of this store accepted are theirs.
fn aged(db: &Connection, before: i64, room: usize, chosen: &mut Vec<i64>) -> SqlResult<bool> {
    let mut find = db.prepare_cached(
        "SELECT seq, at, peer IS NOT NULL AND octet_length(text) > 0 FROM intake WHERE seq > ?1 AND seq <= ?2 ORDER BY seq",
    )?;
    let mut last = index::progress(db, index::RETIRED)?;
    let mut rows = find.query(params![last, index::progress(db, index::INDEXED)?])?;
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
    index::set_progress(db, index::RETIRED, last)?;
    Ok(more)
}

/// Erases messages, and records why.
fn erase(db: &Connection, chosen: &[i64], at: Timestamp, why: &str) -> SqlResult<()> {
    for seq in chosen {
        log::erased(db, *seq, at, why)?;
        clear(db, *seq)?;
    }
    erase_texts(db, chosen)
}

/// Erases messages because the operator says so. Their ids and digests stay, so that the same messages are not accepted again.
/// How many had a text. Only inside a transaction.
pub(in crate::sqlite) fn erase_on_request(
    db: &Connection,
    ids: &[String],
    at: Timestamp,
) -> SqlResult<u64> {
    index::index_rest(db)?;
    let sql = "SELECT seq FROM intake WHERE id = ?1 AND octet_length(text) > 0";
    let mut chosen: Vec<i64> = Vec::new();
    for id in ids {
        chosen.extend(db.find(sql, params![id], value::<i64>)?);
    }
    for seq in &chosen {
        keep::let_go(db, *seq)?;
    }
    erase(db, &chosen, at, "the operator erased it")?;
    words::ask_to_rewrite(db, Rewrite::Some)?;
    Ok(u64::try_from(chosen.len()).unwrap_or(u64::MAX))
}

/// Erases the texts of messages and everything that is derived from them, indexed or not. Those that have none are left: the
/// index of words takes a row out once.
pub(in crate::sqlite) fn erase_texts(db: &Connection, chosen: &[i64]) -> SqlResult<()> {
    let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = ?1 AND text <> ''");
    let (mut threads, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for seq in chosen {
        let row: Option<IntakeRow> = db.find(&sql, params![seq], derive::intake_row)?;
        let Some(row) = row else { continue };
        if derive::is_indexed(db, *seq)? {
            answered.extend(row.arrival.answered().map(str::to_owned));
            threads.insert(row.thread);
        }
        derive::unindex(db, *seq)?;
        let sql = "UPDATE intake SET text = '', received = NULL, routes = '', inferred = NULL, \
            answer_by = NULL, expires = NULL, session = NULL, brief = 0 WHERE seq = ?1";
        db.run(sql, params![seq])?;
    }
    indexed::change(db, |index| {
        for thread in &threads {
            index.recount(thread)?;
        }
        // Questions that they settled elsewhere are open again.
        answered.iter().try_for_each(|id| index.judge(id))
    })
}

/// Removes everything that a relay keeps about a message besides its row.
pub(in crate::sqlite) fn clear(db: &Connection, seq: i64) -> SqlResult<()> {
    keep::release(db, seq)?;
    for sql in [
        "DELETE FROM delivery WHERE seq = ?1",
        "DELETE FROM expectation WHERE seq = ?1",
        "DELETE FROM consent_use WHERE seq = ?1",
        "DELETE FROM poll WHERE seq = ?1",
        "DELETE FROM moved WHERE seq = ?1",
    ] {
        db.run(sql, params![seq])?;
    }
    Ok(())
}
