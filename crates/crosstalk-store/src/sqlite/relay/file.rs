//! Filing: what is derived from messages that were taken, and where they go from here.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::Intent;
use crosstalk_protocol::relay::{Closing, Filing, State};
use crosstalk_protocol::store::{Arrival, party};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::collections::BTreeSet;

use super::{close, delivery, progress, route, take};
use crate::sqlite::accept;
use crate::sqlite::derive::{self, FILED, Filed};
use crate::sqlite::fault::{self, Step};
use crate::sqlite::quarantine;

/// How much of a refusal is kept as the reason, in characters.
const REASON: usize = 200;

/// A message that was taken.
struct Waiting {
    filed: Filed,
    routes: String,
    priority: i64,
    answer_by: Option<i64>,
}

fn waiting(row: &Row<'_>) -> Step<Waiting> {
    Ok(Waiting {
        filed: derive::filed(row)?,
        routes: row.get("routes")?,
        priority: row.get("priority")?,
        answer_by: row.get("answer_by")?,
    })
}

/// Files the oldest that are not filed. Only inside of a transaction.
pub(super) fn file(db: &Connection, most: usize) -> Step<Filing> {
    file_some(db, i64::MAX, most)
}

/// Files everything up to a place.
pub(super) fn file_through(db: &Connection, place: i64) -> Step<()> {
    let mut through = progress::place(db, progress::FILED)?;
    while through < place {
        let before = through;
        file_some(db, place, progress::ROWS)?;
        through = progress::place(db, progress::FILED)?;
        if through == before {
            break;
        }
    }
    Ok(())
}

/// Who gets what is not filed yet, after a place.
pub(super) fn unfiled(db: &Connection, after: i64, most: usize) -> Step<Vec<(u64, Vec<String>)>> {
    let after = after.max(progress::place(db, progress::FILED)?);
    let sql = format!(
        "SELECT {FILED}, peer, priority, answer_by FROM intake WHERE seq > ?1 AND peer IS NOT NULL \
         AND text <> '' ORDER BY seq LIMIT ?2"
    );
    let mut find = db.prepare_cached(&sql)?;
    let rows = find.query_map(params![after, super::number(most)], waiting)?;
    let who = |row: Waiting| {
        let routes = route::read(&row.routes, &row.filed.arrival.receiver)?;
        let who = routes.into_iter().map(|(address, _)| address.to_owned());
        Ok((row.filed.seq.unsigned_abs(), who.collect()))
    };
    rows.map(|row| row.and_then(who)).collect()
}

fn file_some(db: &Connection, place: i64, most: usize) -> Step<Filing> {
    let through = progress::place(db, progress::FILED)?;
    // Messages that were erased before they were indexed have nothing to index.
    let mut find = db.prepare_cached(
        "SELECT seq, peer IS NOT NULL AND text <> '' FROM intake WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3",
    )?;
    let rows = find.query_map(params![through, place, super::number(most)], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let rows = rows.collect::<Step<Vec<(i64, bool)>>>()?;
    let Some(last) = rows.last().map(|(seq, _)| *seq) else {
        return progress::filing(db, 0);
    };
    let seqs: Vec<i64> = rows
        .into_iter()
        .filter_map(|(seq, is)| is.then_some(seq))
        .collect();
    db.execute_batch("SAVEPOINT batch")?;
    match file_together(db, &seqs) {
        Err(error) if fault::is_about_message(&error) => {
            // One of them can't be indexed: each goes alone, so that it is the only one.
            db.execute_batch("ROLLBACK TO batch")?;
            for seq in &seqs {
                quarantine::alone(db, *seq, || file_together(db, &[*seq]))?;
            }
        }
        result => result?,
    }
    db.execute_batch("RELEASE batch")?;
    progress::set(db, progress::FILED, last)?;
    progress::filing(db, seqs.len())
}

/// Indexes messages. Their threads are counted once for all of them.
fn file_together(db: &Connection, seqs: &[i64]) -> Step<()> {
    let sql = format!("SELECT {FILED}, peer, priority, answer_by FROM intake WHERE seq = ?1");
    let (mut stale, mut threads) = (BTreeSet::new(), Vec::with_capacity(seqs.len()));
    for seq in seqs {
        let mut row = db.prepare_cached(&sql)?.query_row(params![seq], waiting)?;
        file_one(db, &mut row, &mut stale)?;
        threads.push(row.filed.thread);
    }
    accept::count_again(db, threads.iter().map(String::as_str), &stale)
}

/// Tries messages again that could not be indexed.
pub(in crate::sqlite) fn retry_quarantined(db: &Connection) -> Step<()> {
    for quarantined in quarantine::list(db)? {
        let seq = super::number(quarantined.seq);
        quarantine::alone(db, seq, || {
            quarantine::release(db, seq)?;
            file_together(db, &[seq])
        })?;
    }
    Ok(())
}

fn file_one(db: &Connection, row: &mut Waiting, stale: &mut BTreeSet<String>) -> Step<()> {
    let filed = &mut row.filed;
    let (seq, before) = (filed.seq, filed.thread.clone());
    let of_parent = accept::choose_thread(db, filed)?;
    let closes = take::closes_thread(db, &filed.arrival, &filed.thread)?;
    accept::find_question(db, filed, of_parent.is_some(), stale)?;
    if filed.thread != before || filed.arrival.answers.is_some() {
        db.prepare_cached("UPDATE intake SET thread = ?2, inferred = ?3 WHERE seq = ?1")?
            .execute(params![seq, filed.thread, filed.arrival.answers])?;
    }
    derive::index(db, seq, filed)?;
    let settled = accept::take_effect(db, seq, filed, stale)?;
    if closes {
        let thread = Closing::Thread(filed.thread.clone());
        close::close(db, &thread, filed.arrival.at, seq)?;
    }
    if let Some(id) = settled {
        db.prepare_cached(
            "DELETE FROM expectation WHERE seq = (SELECT seq FROM message WHERE id = ?1)",
        )?
        .execute(params![id])?;
    }
    let arrival = &row.filed.arrival;
    for (address, handler) in route::read(&row.routes, &arrival.receiver)? {
        let next = handler.is_active().then(|| arrival.at.as_millis());
        db.prepare_cached(
            "INSERT OR IGNORE INTO delivery (seq, party, address, handler, state, priority, attempts, next_at, queued_at) \
             VALUES (?1, ?2, ?3, ?4, 0, ?5, 0, ?6, ?7)",
        )?
        .execute(params![
            seq,
            party(address),
            address,
            route::handler_number(handler),
            row.priority,
            next,
            arrival.at.as_millis()
        ])?;
    }
    if let Some(due) = row.answer_by {
        db.prepare_cached("INSERT OR IGNORE INTO expectation (seq, due) VALUES (?1, ?2)")?
            .execute(params![seq, due])?;
    }
    acknowledge(db, arrival)
}

/// What an ACK or a NACK says about the delivery of the message that it answers.
fn acknowledge(db: &Connection, arrival: &Arrival) -> Step<()> {
    let state = match arrival.meaning {
        Some(Intent::Ack) => State::Acknowledged,
        Some(Intent::Nack) => State::Failed,
        _ => return Ok(()),
    };
    let Some(seq) = seq_of(db, arrival.answered())?.filter(|_| arrival.counts()) else {
        return Ok(());
    };
    let reason = (state == State::Failed).then(|| reason(arrival));
    let at: Timestamp = arrival.at;
    // Of the recipient alone, not of others of the same scheme.
    delivery::advance(
        db,
        seq,
        &party(&arrival.sender),
        state,
        at,
        reason.as_deref(),
    )?;
    Ok(())
}

fn seq_of(db: &Connection, id: Option<&str>) -> Step<Option<i64>> {
    let Some(id) = id else { return Ok(None) };
    db.prepare_cached("SELECT seq FROM message WHERE id = ?1")?
        .query_row(params![id], |row| row.get(0))
        .optional()
}

/// Why a message was refused, in a line.
fn reason(arrival: &Arrival) -> String {
    let line = arrival.body.lines().find(|l| !l.trim().is_empty());
    let said: String = line
        .unwrap_or_default()
        .trim()
        .chars()
        .take(REASON)
        .collect();
    match said.is_empty() {
        true => "NACK".to_owned(),
        false => format!("NACK: {said}"),
    }
}
