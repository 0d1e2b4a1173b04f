//! Queues of a relay: due deliveries, messages to carry, overdue questions, notices; and their lengths for the metrics.

use super::fault::PgResult;
use super::sql::{Db, member, number, params, position, time, tuple, value};
use super::{delivery, hold, inbox};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::port::InboxEntry;
use crosstalk_protocol::relay::{
    DeliveryState, DueDelivery, Errand, Handler, Lease, MAX_COUNTED, Priority, QueueDepth,
    StoreGauges, report,
};

/// How many deliveries that wait for a person are looked at for those of one person.
const LOOKED_AT: usize = 100_000;

/// Leases deliveries whose time has come. Only inside a transaction.
pub(super) fn due(
    db: &Db,
    now: Timestamp,
    lease: Timestamp,
    limit: usize,
) -> PgResult<Vec<DueDelivery>> {
    let mut given: Vec<DueDelivery> = Vec::new();
    for priority in Priority::ALL {
        let sql = "SELECT seq, party, address, handler, attempts, leased_at FROM delivery \
            WHERE state = 0 AND handler > 1 AND priority = $1 AND \
            next_at <= $2 AND seq NOT IN (SELECT seq FROM quarantine) ORDER BY next_at, seq LIMIT $3 \
            FOR UPDATE OF delivery SKIP LOCKED";
        let left = limit.saturating_sub(given.len());
        let asked = params![
            position(&Priority::ALL, priority),
            now.as_millis(),
            number(left)
        ];
        let rows: Vec<(i64, String, String, i64, i64, Option<i64>)> = db.all(sql, asked, tuple)?;
        for (seq, party, to, handler, attempts, before) in rows {
            // The time is the name of the lease, also if the clock was set back since the one before.
            let after = before.map_or(i64::MIN, |at| at.saturating_add(1));
            let leased_at = now.as_millis().max(after);
            let leased = params![seq, party, lease.as_millis(), leased_at];
            let sql = "UPDATE delivery SET next_at = $3, leased_at = $4 WHERE seq = $1 AND party \
                = $2";
            db.run(sql, leased)?;
            let sql = "SELECT id FROM intake WHERE seq = $1 AND text <> ''";
            if let Some(id) = db.find(sql, params![seq], value)? {
                let at = Timestamp::from_millis(leased_at);
                given.push(DueDelivery {
                    lease: Lease { id, to, at },
                    by: member("handler", &Handler::ALL, handler)?,
                    attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
                    priority,
                    seq: seq.unsigned_abs(),
                });
            }
        }
    }
    Ok(given)
}

pub(super) fn next_due(db: &Db) -> PgResult<Option<Timestamp>> {
    let sql = "SELECT next_at FROM delivery WHERE state = 0 AND handler > 1 \
        AND priority = $1 AND next_at IS NOT NULL AND seq NOT IN (SELECT seq FROM quarantine) \
        ORDER BY next_at LIMIT 1";
    let mut next: Option<i64> = None;
    for priority in Priority::ALL {
        let asked = params![position(&Priority::ALL, priority)];
        let found: Option<i64> = db.find(sql, asked, value)?;
        next = next.into_iter().chain(found).min();
    }
    Ok(time(next))
}

pub(super) fn courier(
    db: &Db,
    lets_carry: &dyn Fn(&Errand) -> bool,
    limit: usize,
) -> PgResult<Vec<InboxEntry>> {
    let sql = "SELECT d.seq, d.address, m.sender, q.sender, d.attempts, EXISTS (SELECT 1 FROM message p \
        JOIN delivery c ON c.seq = p.seq AND c.party = d.party AND c.handler = 1 WHERE p.id = q.parent) \
        FROM delivery d JOIN message m ON m.seq = d.seq LEFT JOIN message q ON q.id = m.parent WHERE \
        d.state = 0 AND d.handler = 1 ORDER BY d.priority, d.seq LIMIT $1";
    let found = db.all(sql, params![number(LOOKED_AT)], |row| {
        let errand = Errand {
            to: row.try_get(1)?,
            sender: row.try_get(2)?,
            asker: row.try_get(3)?,
            asker_is_carried: row.try_get(5)?,
        };
        Ok((row.try_get::<_, i64>(0)?, delivery::attempts(row)?, errand))
    })?;
    let mut carried = Vec::new();
    for (seq, attempts, errand) in found {
        if carried.len() >= limit {
            break;
        }
        if lets_carry(&errand)
            && let Some(record) = inbox::at(db, seq)?
        {
            carried.push(InboxEntry {
                to: errand.to,
                by: Handler::CopyPaste,
                state: DeliveryState::Queued,
                attempts,
                is_approved: hold::is_approved(db, &record.id)?,
                cursor: inbox::cursor(&record),
                record,
            });
        }
    }
    Ok(carried)
}

/// Records until when a message is to be answered.
pub(super) fn expect_answer(db: &Db, seq: i64, due: Timestamp) -> PgResult<()> {
    let sql = "INSERT INTO expectation (seq, due) VALUES ($1, $2)";
    db.run(sql, params![seq, due.as_millis()])?;
    Ok(())
}

/// Settles questions that are overdue. How many senders are told. Only inside a transaction.
pub(super) fn overdue(db: &Db, now: Timestamp, limit: usize) -> PgResult<u64> {
    let mut told = 0;
    for _ in 0..limit {
        let sql = "SELECT seq, due FROM expectation WHERE due <= $1 ORDER BY due, seq LIMIT 1";
        let next = db.find(sql, params![now.as_millis()], |row| {
            Ok((row.try_get::<_, i64>(0)?, row.try_get(1)?))
        })?;
        let Some((seq, due)) = next else { break };
        db.run("DELETE FROM expectation WHERE seq = $1", params![seq])?;
        let sql = "SELECT 1 FROM message WHERE seq = $1 AND wait <> 0";
        let waits = db.has(sql, params![seq])?;
        if waits && let Some(record) = inbox::at(db, seq)? {
            let due = Timestamp::from_millis(due);
            if let Some(text) = report::unanswered(&record, due) {
                enqueue_notices(db, [text])?;
                told += 1;
            }
        }
    }
    Ok(told)
}

pub(super) fn next_deadline(db: &Db) -> PgResult<Option<Timestamp>> {
    let sql = "SELECT due FROM expectation ORDER BY due LIMIT 1";
    let next: Option<i64> = db.find(sql, params![], value)?;
    Ok(time(next))
}

/// Records what the relay has to say by itself, with the change that it follows from. It is kept until it is said. Only
/// inside a transaction.
pub(super) fn enqueue_notices(db: &Db, texts: impl IntoIterator<Item = String>) -> PgResult<()> {
    texts.into_iter().try_for_each(|text| {
        db.run("INSERT INTO owed (text) VALUES ($1)", params![text])
            .map(drop)
    })
}

pub(super) fn notices(db: &Db, limit: usize) -> PgResult<Vec<(u64, String)>> {
    let sql = "SELECT place, text FROM owed ORDER BY place LIMIT $1";
    db.all(sql, params![number(limit)], |row| {
        Ok((row.try_get::<_, i64>(0)?.unsigned_abs(), row.try_get(1)?))
    })
}

/// Only inside a transaction.
pub(super) fn drop_notices(db: &Db, owed: &[u64]) -> PgResult<()> {
    owed.iter().try_for_each(|place| {
        let sql = "DELETE FROM owed WHERE place = $1";
        db.run(sql, params![number(*place)]).map(drop)
    })
}

const QUEUED: &str = "delivery WHERE state = 0 AND handler > 0 AND \
    handler = $1";
const HELD: &str = "held WHERE choice IS NULL AND $1 = $1::bigint";
const DEAD: &str = "delivery d JOIN intake i ON i.seq = d.seq WHERE \
    d.state = 4 AND i.text <> '' AND $1 = $1::bigint";

/// What waits, for the metrics of the relay: each answer takes one look into an index, or counts a bounded number of entries.
pub(super) fn gauges(db: &Db, bytes: u64) -> PgResult<StoreGauges> {
    let mut deliveries = Vec::new();
    for handler in Handler::ALL {
        if handler != Handler::Inbox {
            let key = position(&Handler::ALL, handler);
            deliveries.push((handler, depth(db, QUEUED, "queued_at", key)?));
        }
    }
    Ok(StoreGauges {
        deliveries,
        held: depth(db, HELD, "at", 0)?,
        dead_letters: count(db, DEAD, 0)?,
        bytes,
    })
}

fn depth(db: &Db, queue: &str, since: &str, key: i64) -> PgResult<QueueDepth> {
    let sql = format!("SELECT {since} FROM {queue} ORDER BY {since} LIMIT 1");
    Ok(QueueDepth {
        count: count(db, queue, key)?,
        oldest: time(db.find(&sql, params![key], value)?),
    })
}

fn count(db: &Db, queue: &str, key: i64) -> PgResult<u64> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {queue} LIMIT $2) q");
    let count: i64 = db.one(&sql, params![key, number(MAX_COUNTED)], value)?;
    Ok(count.unsigned_abs())
}
