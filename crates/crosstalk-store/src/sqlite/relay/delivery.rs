//! How far messages are on their way: the states of deliveries, which only go forward.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::{Detail, Event, EventKind};
use crosstalk_protocol::relay::{Attempt, DeadLetter, Delivery, Handler, State, program_failure};
use crosstalk_protocol::store::party;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{file, route, time};
use crate::sqlite::derive::{self, FILED, unknown};
use crate::sqlite::fault::Step;
use crate::sqlite::log;
use crate::sqlite::quarantine;

/// The number of a state in its column.
pub(super) fn number(state: State) -> i64 {
    route::place(&State::ALL, state)
}

pub(super) fn state_of(number: i64) -> Step<State> {
    route::at_place(&State::ALL, number).ok_or_else(|| unknown("state", &number.to_string()))
}

const DELIVERY: &str = "d.address, d.handler, d.state, d.attempts, d.queued_at, d.delivered_at, d.read_at, \
                        d.acknowledged_at, d.failed_at, d.reason, d.next_at, d.leased_at";

fn delivery(row: &Row<'_>) -> Step<Delivery> {
    Ok(Delivery {
        to: row.get("address")?,
        by: route::handler_of(row.get("handler")?)?,
        state: state_of(row.get("state")?)?,
        attempts: row.get("attempts")?,
        queued_at: Timestamp::from_millis(row.get("queued_at")?),
        delivered_at: time(row.get("delivered_at")?),
        read_at: time(row.get("read_at")?),
        acknowledged_at: time(row.get("acknowledged_at")?),
        failed_at: time(row.get("failed_at")?),
        reason: row.get("reason")?,
        next_at: time(row.get("next_at")?),
        leased_at: time(row.get("leased_at")?),
    })
}

pub(in crate::sqlite) fn deliveries(db: &Connection, id: &str) -> Step<Vec<Delivery>> {
    let sql = format!(
        "SELECT {DELIVERY} FROM intake i JOIN delivery d ON d.seq = i.seq WHERE i.id = ?1 ORDER BY d.party"
    );
    let mut find = db.prepare_cached(&sql)?;
    let rows = find.query_map(params![id], delivery)?;
    let found = rows.collect::<Step<Vec<Delivery>>>()?;
    match found.is_empty() {
        true => quarantined(db, id),
        false => Ok(found),
    }
}

/// The deliveries that a message would have, if it could be indexed.
fn quarantined(db: &Connection, id: &str) -> Step<Vec<Delivery>> {
    if !quarantine::has(db, id)? {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT {FILED} FROM intake WHERE id = ?1");
    let mut find = db.prepare_cached(&sql)?;
    find.query_row(params![id], |row| {
        let routes: String = row.get("routes")?;
        let arrival = derive::filed(row)?.arrival;
        let routes = route::read(&routes, &arrival.receiver)?;
        let one = |(address, by): (&str, Handler)| Delivery {
            to: address.to_owned(),
            by,
            state: State::Quarantined,
            attempts: 0,
            queued_at: arrival.at,
            delivered_at: None,
            read_at: None,
            acknowledged_at: None,
            failed_at: None,
            reason: Some("the relay could not index it; ask its operator".to_owned()),
            next_at: None,
            leased_at: None,
        };
        Ok(routes.into_iter().map(one).collect())
    })
}

/// The place of a message; it is filed when this returns.
fn place_of(db: &Connection, id: &str) -> Step<Option<i64>> {
    let seq: Option<i64> = db
        .prepare_cached("SELECT seq FROM intake WHERE id = ?1")?
        .query_row(params![id], |row| row.get(0))
        .optional()?;
    if let Some(seq) = seq {
        file::file_through(db, seq)?;
    }
    Ok(seq)
}

/// Brings the deliveries of messages to an address into a state. Only inside of a transaction.
pub(super) fn mark(
    db: &Connection,
    address: &str,
    ids: &[String],
    state: State,
    at: Timestamp,
) -> Step<Vec<String>> {
    let party = party(address);
    let mut found = Vec::new();
    for id in ids {
        if let Some(seq) = place_of(db, id)?
            && advance(db, seq, &party, state, at, None)?
        {
            found.push(id.clone());
        }
    }
    Ok(found)
}

/// Brings a delivery into a state, if that may follow the one that it is in. False if there is no such delivery.
pub(super) fn advance(
    db: &Connection,
    seq: i64,
    party: &str,
    state: State,
    at: Timestamp,
    reason: Option<&str>,
) -> Step<bool> {
    let now: Option<i64> = db
        .prepare_cached("SELECT state FROM delivery WHERE seq = ?1 AND party = ?2")?
        .query_row(params![seq, party], |row| row.get(0))
        .optional()?;
    let Some(now) = now else { return Ok(false) };
    if !state.follows(state_of(now)?) {
        return Ok(true);
    }
    let times = match state {
        State::Queued | State::Held | State::Quarantined => return Ok(true),
        State::Delivered => "delivered_at = coalesce(delivered_at, ?4)",
        State::Read => "delivered_at = coalesce(delivered_at, ?4), read_at = ?4",
        State::Acknowledged => "delivered_at = coalesce(delivered_at, ?4), acknowledged_at = ?4",
        State::Failed => "failed_at = ?4",
    };
    let sql = format!(
        "UPDATE delivery SET state = ?3, {times}, next_at = NULL, leased_at = NULL, reason = ?5 WHERE seq = ?1 AND party = ?2"
    );
    db.prepare_cached(&sql)?
        .execute(params![seq, party, number(state), at.as_millis(), reason])?;
    note(db, seq, party, (state_of(now)?, state), at)?;
    Ok(true)
}

/// Gives up a delivery that is not made yet.
pub(in crate::sqlite) fn cancel(
    db: &Connection,
    seq: i64,
    party: &str,
    at: Timestamp,
    reason: &str,
) -> Step<()> {
    db.prepare_cached(
        "UPDATE delivery SET state = 4, failed_at = ?3, next_at = NULL, leased_at = NULL, reason = ?4 WHERE seq = ?1 AND party = ?2",
    )?
    .execute(params![seq, party, at.as_millis(), reason])?;
    note(db, seq, party, (State::Queued, State::Failed), at)
}

/// Writes into the log that a message was delivered, or given up.
fn note(
    db: &Connection,
    seq: i64,
    party: &str,
    (before, now): (State, State),
    at: Timestamp,
) -> Step<()> {
    let kind = match now {
        State::Failed => EventKind::Failed,
        _ if before == State::Queued => EventKind::Delivered,
        _ => return Ok(()),
    };
    let (address, handler): (String, i64) = db
        .prepare_cached("SELECT address, handler FROM delivery WHERE seq = ?1 AND party = ?2")?
        .query_row(params![seq, party], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let by = route::handler_of(handler)?;
    // Not why: the words of a NACK go when it is erased, and what is in the log stays.
    let detail = Detail::default()
        .with("to", &address)
        .with("by", by.as_str());
    let event = Event {
        detail: Some(detail),
        ..Event::new(kind, at)
    };
    log::append_about(db, seq, event)?;
    Ok(())
}

/// Writes down what became of an attempt. Only inside of a transaction.
pub(super) fn attempted(
    db: &Connection,
    id: &str,
    to: &str,
    attempt: &Attempt,
    at: Timestamp,
) -> Step<bool> {
    let Some(seq) = place_of(db, id)? else {
        return Ok(false);
    };
    let party = party(to);
    let counted = db
        .prepare_cached(
            "UPDATE delivery SET attempts = attempts + 1 WHERE seq = ?1 AND party = ?2 AND state = 0",
        )?
        .execute(params![seq, party])?;
    if counted == 0 {
        return Ok(false);
    }
    match attempt {
        Attempt::Delivered => advance(db, seq, &party, State::Delivered, at, None),
        Attempt::Failed { reason } => advance(db, seq, &party, State::Failed, at, Some(reason)),
        Attempt::Later { at: next, reason } => {
            db.prepare_cached(
                "UPDATE delivery SET next_at = iif(handler > 1, ?3, NULL), leased_at = NULL, reason = ?4 \
                 WHERE seq = ?1 AND party = ?2",
            )?
            .execute(params![seq, party, next.as_millis(), reason])?;
            Ok(true)
        }
    }
}

/// Writes down that the program of a recipient failed. Only inside of a transaction.
pub(super) fn note_failure(
    db: &Connection,
    address: &str,
    ids: &[String],
    is_final: bool,
    at: Timestamp,
) -> Step<Vec<String>> {
    let party = party(address);
    let state = match is_final {
        true => State::Failed,
        false => State::Delivered,
    };
    let reason = program_failure(is_final);
    let mut changed = Vec::new();
    for id in ids {
        let Some(seq) = place_of(db, id)? else {
            continue;
        };
        let counted = db
            .prepare_cached(
                "UPDATE delivery SET attempts = attempts + 1, reason = ?3 \
                 WHERE seq = ?1 AND party = ?2 AND state < 2 AND handler < 2",
            )?
            .execute(params![seq, party, reason])?;
        if counted == 0 {
            continue;
        }
        advance(db, seq, &party, state, at, Some(&reason))?;
        changed.push(id.clone());
    }
    Ok(changed)
}

/// How many threads of an address are looked at, and how many of their messages.
const RECENT_THREADS: i64 = 64;
const RECENT_MESSAGES: i64 = 1000;

/// Whether something was handed out to an address in the latest threads of a name.
pub(super) fn was_handed_out(db: &Connection, address: &str, name: &str) -> Step<bool> {
    db.prepare_cached(
        "SELECT 1 FROM (SELECT m.seq FROM (SELECT thread FROM party WHERE party = ?4 ORDER BY last_at DESC, last_seq DESC \
         LIMIT ?2) p CROSS JOIN message m ON m.thread = p.thread LIMIT ?3) s \
         CROSS JOIN delivery d ON d.seq = s.seq AND d.party = ?1 WHERE d.delivered_at IS NOT NULL LIMIT 1",
    )?
    .exists(params![
        party(address),
        RECENT_THREADS,
        RECENT_MESSAGES,
        party(name)
    ])
}

/// Gives a lease back. Only inside of a transaction.
pub(super) fn release(db: &Connection, id: &str, to: &str, at: Timestamp) -> Step<bool> {
    let Some(seq) = place_of(db, id)? else {
        return Ok(false);
    };
    let released = db
        .prepare_cached(
            "UPDATE delivery SET next_at = ?3, leased_at = NULL \
             WHERE seq = ?1 AND party = ?2 AND state = 0 AND handler > 1",
        )?
        .execute(params![seq, party(to), at.as_millis()])?;
    Ok(released > 0)
}

/// Deliveries that were given up. A message whose text was erased can't be queued again, and is none of them.
pub(super) fn dead(db: &Connection, most: usize) -> Step<Vec<DeadLetter>> {
    let sql = format!(
        "SELECT i.id, coalesce(m.sender, '') AS sender, {DELIVERY} FROM delivery d INDEXED BY delivery_dead \
         JOIN intake i ON i.seq = d.seq LEFT JOIN message m ON m.seq = d.seq \
         WHERE d.state = 4 AND octet_length(i.text) > 0 ORDER BY d.failed_at DESC, d.seq DESC LIMIT ?1"
    );
    let mut find = db.prepare_cached(&sql)?;
    let rows = find.query_map(params![super::number(most)], |row| {
        Ok(DeadLetter {
            id: row.get("id")?,
            from: row.get("sender")?,
            delivery: delivery(row)?,
        })
    })?;
    rows.collect()
}

/// Queues what was given up. Only inside of a transaction.
pub(super) fn requeue(db: &Connection, id: &str, at: Timestamp) -> Step<u64> {
    let Some(seq) = place_of(db, id)? else {
        return Ok(0);
    };
    let count = db
        .prepare_cached(
            "UPDATE delivery SET state = 0, attempts = 0, queued_at = ?2, next_at = iif(handler > 1, ?2, NULL), leased_at = NULL, \
             delivered_at = NULL, failed_at = NULL, reason = NULL WHERE seq = ?1 AND state = 4 \
             AND EXISTS (SELECT 1 FROM intake i WHERE i.seq = ?1 AND i.text <> '')",
        )?
        .execute(params![seq, at.as_millis()])?;
    Ok(u64::try_from(count).unwrap_or(u64::MAX))
}
