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
use crate::sqlite::fault::Step;

/// How much of a refusal is kept as the reason, in characters.
const REASON: usize = 200;

/// A message that was taken.
struct Waiting {
    filed: Filed,
    /// Whether a relay took it: what a person took in was filed at once.
    is_relayed: bool,
    routes: String,
    priority: i64,
    answer_by: Option<i64>,
}

fn waiting(row: &Row<'_>) -> Step<Waiting> {
    Ok(Waiting {
        filed: derive::filed(row)?,
        is_relayed: row.get::<_, Option<String>>("peer")?.is_some(),
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
    let sql = format!(
        "SELECT {FILED}, peer, priority, answer_by FROM intake WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3"
    );
    let mut find = db.prepare_cached(&sql)?;
    let rows = find.query_map(params![through, place, super::number(most)], waiting)?;
    let mut rows = rows.collect::<Step<Vec<Waiting>>>()?;
    let Some(last) = rows.last().map(|row| row.filed.seq) else {
        return progress::filing(db, 0);
    };
    // What was erased before it was filed is not filed.
    rows.retain(|row| row.is_relayed && !row.filed.arrival.text.is_empty());
    let mut stale = BTreeSet::new();
    for row in &mut rows {
        file_one(db, row, &mut stale)?;
    }
    let threads = rows.iter().map(|row| row.filed.thread.as_str());
    accept::count_again(db, threads, &stale)?;
    progress::set(db, progress::FILED, last)?;
    progress::filing(db, rows.len())
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
