//! What has to be done at which time: deliveries of active handlers, what waits to be carried, questions that run out.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::{Courier, Due, Errand, Expectation, INTERRUPTED, Priority, report};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{inbox, owed, route};
use crate::sqlite::fault::Step;

/// How many deliveries that wait for a person are looked at for those of one person.
const LOOKED_AT: usize = 100_000;

/// Gives out deliveries whose time has come, and leases them. Only inside of a transaction.
pub(super) fn due(
    db: &Connection,
    now: Timestamp,
    lease: Timestamp,
    most: usize,
) -> Step<Vec<Due>> {
    let mut given: Vec<Due> = Vec::new();
    for priority in Priority::ALL {
        let mut find = db.prepare_cached(
            "SELECT seq, party, address, handler, attempts FROM delivery INDEXED BY delivery_due \
             WHERE state = 0 AND handler > 1 AND priority = ?1 AND next_at <= ?2 ORDER BY next_at, seq LIMIT ?3",
        )?;
        let left = most.saturating_sub(given.len());
        let asked = params![
            route::priority_number(priority),
            now.as_millis(),
            super::number(left)
        ];
        let rows = find.query_map(asked, |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        })?;
        for (seq, party, to, handler, attempts) in
            rows.collect::<Step<Vec<(i64, String, String, i64, u32)>>>()?
        {
            let leased = params![seq, party, lease.as_millis(), now.as_millis()];
            db.prepare_cached(
                "UPDATE delivery SET next_at = ?3, leased_at = ?4 WHERE seq = ?1 AND party = ?2",
            )?
            .execute(leased)?;
            if let Some(record) = inbox::at(db, seq)? {
                given.push(Due {
                    to,
                    by: route::handler_of(handler)?,
                    attempts,
                    priority,
                    record,
                });
            }
        }
    }
    Ok(given)
}

/// Gives back what a relay that was killed had leased. Only inside of a transaction.
pub(super) fn release_leases(db: &Connection, at: Timestamp) -> Step<u64> {
    let released = db
        .prepare_cached(
            "UPDATE delivery SET next_at = ?1, leased_at = NULL, reason = ?2 \
             WHERE state = 0 AND handler > 1 AND leased_at IS NOT NULL",
        )?
        .execute(params![at.as_millis(), INTERRUPTED])?;
    Ok(u64::try_from(released).unwrap_or(u64::MAX))
}

pub(super) fn next_due(db: &Connection) -> Step<Option<Timestamp>> {
    let mut find = db.prepare_cached(
        "SELECT next_at FROM delivery INDEXED BY delivery_due WHERE state = 0 AND handler > 1 AND priority = ?1 \
         AND next_at IS NOT NULL ORDER BY next_at LIMIT 1",
    )?;
    let mut next: Option<i64> = None;
    for priority in Priority::ALL {
        let asked = params![route::priority_number(priority)];
        let found: Option<i64> = find.query_row(asked, |row| row.get(0)).optional()?;
        next = next.into_iter().chain(found).min();
    }
    Ok(super::time(next))
}

pub(super) fn courier(
    db: &Connection,
    lets_carry: &dyn Fn(&Errand) -> bool,
    most: usize,
) -> Step<Vec<Courier>> {
    let mut find = db.prepare_cached(
        "SELECT d.seq, d.address, m.sender, q.sender, EXISTS (SELECT 1 FROM message p CROSS JOIN delivery c \
         ON c.seq = p.seq AND c.party = d.party AND c.handler = 1 WHERE p.id = q.parent) \
         FROM delivery d INDEXED BY delivery_courier CROSS JOIN message m ON m.seq = d.seq \
         LEFT JOIN message q ON q.id = m.parent WHERE d.state = 0 AND d.handler = 1 ORDER BY d.priority, d.seq \
         LIMIT ?1",
    )?;
    let mut rows = find.query(params![super::number(LOOKED_AT)])?;
    let mut carried = Vec::new();
    while carried.len() < most
        && let Some(row) = rows.next()?
    {
        let errand = Errand {
            to: row.get(1)?,
            sender: row.get(2)?,
            asker: row.get(3)?,
            asker_is_carried: row.get(4)?,
        };
        if lets_carry(&errand)
            && let Some(record) = inbox::at(db, row.get(0)?)?
        {
            let to = errand.to;
            carried.push(Courier { to, record });
        }
    }
    Ok(carried)
}

/// Settles questions that have run out of time. How many senders are told. Only inside of a transaction.
pub(super) fn overdue(db: &Connection, now: Timestamp, most: usize) -> Step<u64> {
    let mut told = 0;
    for _ in 0..most {
        let next = db
            .prepare_cached(
                "SELECT seq, due FROM expectation WHERE due <= ?1 ORDER BY due, seq LIMIT 1",
            )?
            .query_row(params![now.as_millis()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get(1)?))
            })
            .optional()?;
        let Some((seq, due)) = next else { break };
        db.prepare_cached("DELETE FROM expectation WHERE seq = ?1")?
            .execute(params![seq])?;
        let waits = db
            .prepare_cached("SELECT 1 FROM message WHERE seq = ?1 AND wait <> 0")?
            .exists(params![seq])?;
        if waits && let Some(record) = inbox::at(db, seq)? {
            let due = Timestamp::from_millis(due);
            if let Some(text) = report::unanswered(&Expectation { record, due }) {
                owed::owe(db, [text])?;
                told += 1;
            }
        }
    }
    Ok(told)
}

pub(super) fn next_deadline(db: &Connection) -> Step<Option<Timestamp>> {
    let next: Option<i64> = db
        .prepare_cached("SELECT due FROM expectation ORDER BY due LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(super::time(next))
}
