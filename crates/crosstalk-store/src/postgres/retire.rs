//! Erasing what is too old or has expired. Its id and its digest stay: the same message is known when it comes again.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::port::{MaintenanceResult, Retention};
use std::collections::BTreeSet;

use super::fault::PgResult;
use super::intake::{INTAKE_ROW, PgIntakeRow, intake_row};
use super::sql::{Db, number, params, to_u64, tuple, value};
use super::{hold, index, indexed, keep, log};

/// Erases messages. Only inside a transaction.
pub(super) fn retire(db: &Db, what: &Retention) -> PgResult<MaintenanceResult> {
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
        hold::lapse_before(db, before, why)?;
    }
    chosen.sort_unstable();
    chosen.dedup();
    erase(db, &chosen, what.now, "retention")?;
    Ok(MaintenanceResult {
        count: to_u64(chosen.len()),
        more,
        blobs: Vec::new(),
    })
}

/// Expired messages, one more than are wanted. Messages that are not indexed yet are left for the next run.
fn expired(db: &Db, what: &Retention) -> PgResult<Vec<i64>> {
    let filed = index::progress(db, index::INDEXED)?;
    let limit = number(what.limit.saturating_add(1));
    let sql = "SELECT seq FROM intake WHERE expires <= $1 AND seq <= \
        $2 ORDER BY expires LIMIT $3";
    db.all(sql, params![what.now.as_millis(), filed, limit], value)
}

/// Sensitive messages that came before a time, and that nobody is to get any more. A signed message that granted a consent
/// under a name of its own proves it, and stays as long as the consent holds.
fn brief(db: &Db, (before, now): (i64, i64), room: usize) -> PgResult<Vec<i64>> {
    let filed = index::progress(db, index::INDEXED)?;
    let sql = "SELECT seq FROM intake i WHERE brief AND at < $1 AND \
        seq <= $2 AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.seq = i.seq AND d.state NOT \
        IN (3, 4)) AND NOT EXISTS (SELECT 1 FROM consent_use u JOIN \
        consent c ON c.id = u.consent WHERE u.seq = i.seq AND c.message = i.id AND c.id <> \
        c.message AND c.pkid IS NOT NULL AND c.revoked_at IS NULL AND (c.expires IS NULL OR \
        c.expires > $4)) ORDER BY at LIMIT $3";
    db.all(sql, params![before, filed, number(room), now], value)
}

/// How many messages are looked at together for their age.
const AGED_ROWS: i64 = 1000;

/// Messages that came before a time, in the order in which they came, up to the first that did not; whether there are
/// more. Those that the person of this store accepted are theirs.
fn aged(db: &Db, before: i64, room: usize, chosen: &mut Vec<i64>) -> PgResult<bool> {
    let sql =
        "SELECT seq, at, text <> '' FROM intake WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3";
    let mut last = index::progress(db, index::RETIRED)?;
    let indexed = index::progress(db, index::INDEXED)?;
    let (mut found, mut more) = (0, false);
    'rows: loop {
        let rows = db.all(
            sql,
            params![last, indexed, AGED_ROWS],
            tuple::<(i64, i64, bool)>,
        )?;
        let count = number(rows.len());
        for (seq, at, is_there) in rows {
            if at >= before {
                break 'rows;
            }
            if is_there && found == room {
                more = true;
                break 'rows;
            }
            if is_there {
                chosen.push(seq);
                found += 1;
            }
            last = seq;
        }
        if count < AGED_ROWS {
            break;
        }
    }
    index::set_progress(db, index::RETIRED, last)?;
    Ok(more)
}

/// Erases messages, and records why.
fn erase(db: &Db, chosen: &[i64], at: Timestamp, why: &str) -> PgResult<()> {
    for seq in chosen {
        log::erased(db, *seq, at, why)?;
        clear(db, *seq)?;
    }
    erase_texts(db, chosen)
}

/// Erases the texts of messages and everything that is derived from them, indexed or not. Those that have none are left: the
/// index of words takes a row out once.
pub(super) fn erase_texts(db: &Db, chosen: &[i64]) -> PgResult<()> {
    let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = $1 AND text <> ''");
    let (mut threads, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for seq in chosen {
        let row: Option<PgIntakeRow> = db.find(&sql, params![seq], intake_row)?;
        let Some(row) = row else { continue };
        if indexed::is_indexed(db, *seq)? {
            answered.extend(row.arrival.answered().map(str::to_owned));
            threads.insert(row.thread);
        }
        indexed::unindex(db, *seq)?;
        let sql = "UPDATE intake SET text = '', received = NULL, routes = '', inferred = NULL, \
            answer_by = NULL, expires = NULL, session = NULL, brief = FALSE WHERE seq = $1";
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
pub(super) fn clear(db: &Db, seq: i64) -> PgResult<()> {
    keep::release(db, seq)?;
    for sql in [
        "DELETE FROM delivery WHERE seq = $1",
        "DELETE FROM expectation WHERE seq = $1",
        "DELETE FROM consent_use WHERE seq = $1",
        "DELETE FROM poll WHERE seq = $1",
    ] {
        db.run(sql, params![seq])?;
    }
    Ok(())
}
