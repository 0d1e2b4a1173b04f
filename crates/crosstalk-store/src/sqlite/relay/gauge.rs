//! What waits in the store, for whoever watches the relay. Each question is answered by one look into an index, or counts a
//! bounded number of its entries.

use crosstalk_protocol::relay::{Handler, MAX_COUNTED, QueueDepth, StoreGauges};
use rusqlite::{Connection, OptionalExtension as _, Params, params};

use super::{route, time};
use crate::sqlite::fault::Step;

pub(super) fn gauges(db: &Connection, bytes: u64) -> Step<StoreGauges> {
    let mut deliveries = Vec::new();
    for handler in Handler::ALL {
        if handler != Handler::Inbox {
            deliveries.push((handler, queued(db, handler)?));
        }
    }
    let most = super::number(MAX_COUNTED);
    let oldest =
        "SELECT at FROM held INDEXED BY held_waiting WHERE choice IS NULL ORDER BY at LIMIT 1";
    let held = QueueDepth {
        count: count(
            db,
            "SELECT count(*) FROM (SELECT 1 FROM held INDEXED BY held_waiting WHERE choice IS NULL LIMIT ?1)",
            params![most],
        )?,
        oldest: time(first(db, oldest, [])?),
    };
    let dead_letters = count(
        db,
        "SELECT count(*) FROM (SELECT 1 FROM delivery d INDEXED BY delivery_dead CROSS JOIN intake i ON i.seq = d.seq \
         WHERE d.state = 4 AND octet_length(i.text) > 0 LIMIT ?1)",
        params![most],
    )?;
    Ok(StoreGauges {
        deliveries,
        held,
        dead_letters,
        bytes,
    })
}

/// The queue of a handler.
fn queued(db: &Connection, handler: Handler) -> Step<QueueDepth> {
    const QUEUED: &str = "FROM delivery INDEXED BY delivery_waiting WHERE state = 0 AND handler > 0 AND handler = ?1";
    let number = route::place(&Handler::ALL, handler);
    let sql = format!("SELECT count(*) FROM (SELECT 1 {QUEUED} LIMIT ?2)");
    let count = count(db, &sql, params![number, super::number(MAX_COUNTED)])?;
    let sql = format!("SELECT queued_at {QUEUED} ORDER BY queued_at LIMIT 1");
    let oldest = time(first(db, &sql, params![number])?);
    Ok(QueueDepth { count, oldest })
}

fn count(db: &Connection, sql: &str, given: impl Params) -> Step<u64> {
    let count: i64 = db.prepare_cached(sql)?.query_row(given, |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

fn first(db: &Connection, sql: &str, given: impl Params) -> Step<Option<i64>> {
    db.prepare_cached(sql)?
        .query_row(given, |row| row.get(0))
        .optional()
}
