//! Deliveries: recipients in columns, and states, which only go forward.

use super::{index, queue};
use crate::sqlite::accept::seq_of;
use crate::sqlite::derive::{self, INTAKE_ROW, IntakeRow};
use crate::sqlite::fault::SqlResult;
use crate::sqlite::sql::{
    Columns as _, Sql as _, member, number, position, to_u64, tuple, unknown,
};
use crate::sqlite::{log, quarantine};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::{Event, EventDetail};
use crosstalk_protocol::relay::{
    Admission, Attempt, DeadLetter, Delivery, DeliveryFacts, DeliveryState, Handler, Lease,
    Recipient, program_failure,
};
use crosstalk_protocol::store::{Arrival, party};
use rusqlite::{CachedStatement, Connection, Row, params};

const DELIVERY: &str = "d.address, d.handler, d.state, d.attempts, d.queued_at, d.delivered_at, d.read_at, \
                        d.acknowledged_at, d.failed_at, d.reason, d.next_at, d.leased_at";

fn delivery(row: &Row<'_>) -> SqlResult<Delivery> {
    Ok(Delivery {
        to: row.get("address")?,
        by: row.member("handler", &Handler::ALL)?,
        state: row.member("state", &DeliveryState::ALL)?,
        attempts: row.get("attempts")?,
        queued_at: row.time("queued_at")?,
        delivered_at: row.opt_time("delivered_at")?,
        read_at: row.opt_time("read_at")?,
        acknowledged_at: row.opt_time("acknowledged_at")?,
        failed_at: row.opt_time("failed_at")?,
        reason: row.get("reason")?,
        next_at: row.opt_time("next_at")?,
        leased_at: row.opt_time("leased_at")?,
    })
}

pub(in crate::sqlite) fn deliveries(db: &Connection, id: &str) -> SqlResult<Vec<Delivery>> {
    let sql = format!(
        "SELECT {DELIVERY} FROM intake i JOIN delivery d ON d.seq = i.seq WHERE i.id = ?1 ORDER BY d.party"
    );
    let mut found = db.all(&sql, params![id], delivery)?;
    if quarantine::has(db, id)? {
        let is_queued = |d: &&mut Delivery| d.state == DeliveryState::Queued;
        for delivery in found.iter_mut().filter(is_queued) {
            delivery.state = DeliveryState::Quarantined;
            delivery.reason = Some("the relay could not index it; ask its operator".to_owned());
        }
    }
    Ok(found)
}

/// Brings the delivery that an ACK or a NACK reports into its state: of the recipient alone, not of others of its scheme.
pub(super) fn report(db: &Connection, arrival: &Arrival) -> SqlResult<()> {
    let reported = arrival.reports_delivery().zip(arrival.answered());
    if let Some(((state, reason), id)) = reported
        && let Some(seq) = seq_of(db, id)?
    {
        let sender = party(&arrival.sender);
        advance(db, seq, &sender, state, arrival.at, reason.as_deref())?;
    }
    Ok(())
}

/// Queues deliveries.
pub(in crate::sqlite) struct DeliveryQueuer<'c>(CachedStatement<'c>);

impl<'c> DeliveryQueuer<'c> {
    pub(in crate::sqlite) fn new(db: &'c Connection) -> SqlResult<Self> {
        let queue = db.prepare_cached(
            "INSERT OR IGNORE INTO delivery (seq, party, address, handler, state, priority, attempts, next_at, queued_at) \
             VALUES (?1, ?2, ?3, ?4, 0, ?5, 0, ?6, ?7)",
        )?;
        Ok(Self(queue))
    }

    /// Queues a delivery, unless there is one to this party.
    pub(in crate::sqlite) fn queue(
        &mut self,
        (seq, at): (i64, Timestamp),
        to: &str,
        by: Handler,
        priority: i64,
    ) -> SqlResult<()> {
        let (at, handler) = (at.as_millis(), position(&Handler::ALL, by));
        let next = by.is_active().then_some(at);
        let given = params![seq, party(to), to, handler, priority, next, at];
        self.0.execute(given)?;
        Ok(())
    }
}

/// Queues the deliveries of messages that an older version accepted, and did not index. Only inside a transaction.
pub(in crate::sqlite) fn queue_unindexed(db: &Connection) -> SqlResult<()> {
    let sql = format!(
        "SELECT {INTAKE_ROW}, priority, answer_by FROM intake WHERE peer IS NOT NULL AND text <> '' AND seq IN \
         (SELECT seq FROM intake WHERE seq > ?1 UNION SELECT seq FROM quarantine) ORDER BY seq"
    );
    let mut find = db.prepare(&sql)?;
    let mut queuer = DeliveryQueuer::new(db)?;
    let mut rows = find.query(params![index::progress(db, index::INDEXED)?])?;
    while let Some(row) = rows.next()? {
        let routes: String = row.get("routes")?;
        let IntakeRow { seq, arrival, .. } = derive::intake_row(row)?;
        for (address, handler) in read_recipients(&routes, &arrival.receiver)? {
            let priority = row.get("priority")?;
            queuer.queue((seq, arrival.at), address, handler, priority)?;
        }
        if let Some(due) = row.opt_time("answer_by")? {
            queue::expect_answer(db, seq, due)?;
        }
        report(db, &arrival)?;
    }
    Ok(())
}

/// Brings the deliveries of messages to an address into a state. Only inside a transaction.
pub(super) fn mark(
    db: &Connection,
    address: &str,
    ids: &[String],
    state: DeliveryState,
    at: Timestamp,
) -> SqlResult<Vec<String>> {
    let party = party(address);
    let mut found = Vec::new();
    for id in ids {
        if let Some(seq) = seq_of(db, id)?
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
    state: DeliveryState,
    at: Timestamp,
    reason: Option<&str>,
) -> SqlResult<bool> {
    let sql = "SELECT state FROM delivery WHERE seq = ?1 AND party = ?2";
    let read = |row: &Row<'_>| row.member("state", &DeliveryState::ALL);
    let Some(now) = db.find(sql, params![seq, party], read)? else {
        return Ok(false);
    };
    if !state.follows(now) || state == DeliveryState::Queued {
        return Ok(true);
    }
    set_state(db, (seq, party), state, at, reason)?;
    note(db, seq, party, (now, state), at)?;
    Ok(true)
}

/// Writes the state of a delivery.
pub(in crate::sqlite) fn set_state(
    db: &Connection,
    (seq, party): (i64, &str),
    state: DeliveryState,
    at: Timestamp,
    reason: Option<&str>,
) -> SqlResult<()> {
    let times = match state {
        DeliveryState::Queued | DeliveryState::Held | DeliveryState::Quarantined => return Ok(()),
        DeliveryState::Delivered => "delivered_at = coalesce(delivered_at, ?4)",
        DeliveryState::Read => "delivered_at = coalesce(delivered_at, ?4), read_at = ?4",
        DeliveryState::Acknowledged => {
            "delivered_at = coalesce(delivered_at, ?4), acknowledged_at = ?4"
        }
        DeliveryState::Failed => "failed_at = ?4",
    };
    let sql = format!(
        "UPDATE delivery SET state = ?3, {times}, next_at = NULL, leased_at = NULL, reason = ?5 WHERE seq = ?1 AND party = ?2"
    );
    let (at, state) = (at.as_millis(), position(&DeliveryState::ALL, state));
    db.run(&sql, params![seq, party, state, at, reason])?;
    Ok(())
}

/// The delivery of a message to a party.
pub(super) fn delivery_to(
    db: &Connection,
    seq: i64,
    party: &str,
) -> SqlResult<Option<DeliveryFacts>> {
    let sql = format!("{FACTS} AND party = ?2");
    db.find(&sql, params![seq, party], facts)
}

/// All deliveries of a message.
pub(in crate::sqlite) fn deliveries_of(db: &Connection, seq: i64) -> SqlResult<Vec<DeliveryFacts>> {
    let sql = format!("{FACTS} ORDER BY party");
    db.all(&sql, params![seq], facts)
}

const FACTS: &str = "SELECT party, address, handler, state FROM delivery WHERE seq = ?1";

fn facts(row: &Row<'_>) -> SqlResult<DeliveryFacts> {
    Ok(DeliveryFacts {
        party: row.get("party")?,
        address: row.get("address")?,
        by: row.member("handler", &Handler::ALL)?,
        state: row.member("state", &DeliveryState::ALL)?,
    })
}

/// Everybody whom a message names, and who got it.
pub(super) fn parts(db: &Connection, seq: i64) -> SqlResult<Vec<String>> {
    let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = ?1");
    db.one(&sql, params![seq], |row| {
        let routes: String = row.get("routes")?;
        let IntakeRow { arrival, .. } = derive::intake_row(row)?;
        let got = read_recipients(&routes, &arrival.receiver)?;
        let got: Vec<String> = got.into_iter().map(|(to, _)| to.to_owned()).collect();
        let named = [arrival.sender, arrival.receiver].into_iter();
        Ok(named.chain(arrival.targets).chain(got).collect())
    })
}

/// Writes into the log that a message was delivered, or became a dead letter.
fn note(
    db: &Connection,
    seq: i64,
    party: &str,
    (before, now): (DeliveryState, DeliveryState),
    at: Timestamp,
) -> SqlResult<()> {
    let Some(kind) = now.event_after(before) else {
        return Ok(());
    };
    let sql = "SELECT address, handler FROM delivery WHERE seq = ?1 AND party = ?2";
    let (address, handler): (String, i64) = db.one(sql, params![seq, party], tuple)?;
    let by = member("handler", &Handler::ALL, handler)?;
    // Not why: the words of a NACK go when it is erased, and what is in the log stays.
    let detail = EventDetail::default()
        .with("to", &address)
        .with("by", by.as_str());
    let event = Event {
        detail: Some(detail),
        ..Event::new(kind, at)
    };
    log::append_about(db, seq, event)?;
    Ok(())
}

/// Records the outcome of an attempt. Only inside a transaction.
pub(super) fn attempted(
    db: &Connection,
    (id, to, leased_at): (&str, &str, Option<Timestamp>),
    attempt: &Attempt,
    at: Timestamp,
) -> SqlResult<bool> {
    let Some(seq) = seq_of(db, id)? else {
        return Ok(false);
    };
    let party = party(to);
    let sql = "UPDATE delivery SET attempts = attempts + 1 WHERE seq = ?1 AND party = ?2 AND \
        state = 0 AND leased_at IS ?3";
    let leased_at = leased_at.map(Timestamp::as_millis);
    let counted = db.run(sql, params![seq, party, leased_at])?;
    if counted == 0 {
        return Ok(false);
    }
    match attempt {
        Attempt::Delivered => advance(db, seq, &party, DeliveryState::Delivered, at, None),
        Attempt::Failed { reason } => {
            advance(db, seq, &party, DeliveryState::Failed, at, Some(reason))
        }
        Attempt::Later { at: next, reason } => {
            let sql = "UPDATE delivery SET next_at = iif(handler > 1, ?3, NULL), leased_at = \
                NULL, reason = ?4 WHERE seq = ?1 AND party = ?2";
            db.run(sql, params![seq, party, next.as_millis(), reason])?;
            Ok(true)
        }
    }
}

/// Records that the program of a recipient failed. Only inside a transaction.
pub(super) fn note_failure(
    db: &Connection,
    address: &str,
    ids: &[String],
    is_final: bool,
    at: Timestamp,
) -> SqlResult<Vec<String>> {
    let party = party(address);
    let state = match is_final {
        true => DeliveryState::Failed,
        false => DeliveryState::Delivered,
    };
    let reason = program_failure(is_final);
    let mut changed = Vec::new();
    for id in ids {
        let Some(seq) = seq_of(db, id)? else {
            continue;
        };
        let sql = "UPDATE delivery SET attempts = attempts + 1, reason = ?3 WHERE seq = ?1 AND \
            party = ?2 AND state < 2 AND handler < 2";
        let counted = db.run(sql, params![seq, party, reason])?;
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
pub(super) fn was_handed_out(db: &Connection, address: &str, name: &str) -> SqlResult<bool> {
    let sql = "SELECT 1 FROM (SELECT m.seq FROM (SELECT thread FROM party WHERE party = ?4 ORDER \
        BY last_at DESC, last_seq DESC LIMIT ?2) p CROSS JOIN message m ON m.thread = p.thread \
        LIMIT ?3) s CROSS JOIN delivery d ON d.seq = s.seq AND d.party = ?1 WHERE d.delivered_at \
        IS NOT NULL LIMIT 1";
    db.has(
        sql,
        params![party(address), RECENT_THREADS, RECENT_MESSAGES, party(name)],
    )
}

/// Moves the end of leases. Only inside a transaction.
pub(super) fn renew(db: &Connection, leases: &[Lease], until: Timestamp) -> SqlResult<u64> {
    let sql = "UPDATE delivery SET next_at = ?4 WHERE seq = ?1 AND party = ?2 AND state = 0 AND \
        leased_at = ?3";
    change_leases(db, sql, leases, until)
}

/// Ends leases. Only inside a transaction.
pub(super) fn release(db: &Connection, leases: &[Lease], at: Timestamp) -> SqlResult<u64> {
    let sql = "UPDATE delivery SET next_at = ?4, leased_at = NULL WHERE seq = ?1 AND party = ?2 \
        AND state = 0 AND leased_at = ?3";
    change_leases(db, sql, leases, at)
}

/// Changes deliveries as long as their leases hold.
fn change_leases(db: &Connection, sql: &str, leases: &[Lease], at: Timestamp) -> SqlResult<u64> {
    let mut changed = 0;
    for lease in leases {
        let seq = seq_of(db, &lease.id)?;
        let given = params![seq, party(&lease.to), lease.at.as_millis(), at.as_millis()];
        changed += to_u64(db.run(sql, given)?);
    }
    Ok(changed)
}

/// Dead letters. A message whose text was erased can't be queued again, and is none of them.
pub(super) fn dead(db: &Connection, limit: usize) -> SqlResult<Vec<DeadLetter>> {
    let sql = format!(
        "SELECT i.id, coalesce(m.sender, '') AS sender, {DELIVERY} FROM delivery d INDEXED BY delivery_dead \
         JOIN intake i ON i.seq = d.seq LEFT JOIN message m ON m.seq = d.seq \
         WHERE d.state = 4 AND octet_length(i.text) > 0 ORDER BY d.failed_at DESC, d.seq DESC LIMIT ?1"
    );
    db.all(&sql, params![number(limit)], |row| {
        Ok(DeadLetter {
            id: row.get("id")?,
            from: row.get("sender")?,
            delivery: delivery(row)?,
        })
    })
}

/// Queues dead letters again. Only inside a transaction.
pub(super) fn requeue(db: &Connection, id: &str, at: Timestamp) -> SqlResult<u64> {
    let Some(seq) = seq_of(db, id)? else {
        return Ok(0);
    };
    let sql = "UPDATE delivery SET state = 0, attempts = 0, queued_at = ?2, next_at = \
        iif(handler > 1, ?2, NULL), leased_at = NULL, delivered_at = NULL, failed_at = NULL, \
        reason = NULL WHERE seq = ?1 AND state = 4 AND EXISTS (SELECT 1 FROM intake i WHERE \
        i.seq = ?1 AND i.text <> '')";
    let count = db.run(sql, params![seq, at.as_millis()])?;
    Ok(to_u64(count))
}

/// The recipients of a message in a column; nothing where that is the receiver by its inbox.
pub(super) fn write_recipients(admission: &Admission) -> String {
    if let [one] = admission.recipients.as_slice()
        && one.by == Handler::Inbox
        && one.address == admission.arrival.receiver
    {
        return String::new();
    }
    recipient_lines(&admission.recipients)
}

/// The same, a line each, whoever it is.
pub(super) fn recipient_lines(recipients: &[Recipient]) -> String {
    let line = |r: &Recipient| format!("{} {}", r.by.as_str(), r.address);
    let lines: Vec<String> = recipients.iter().map(line).collect();
    lines.join("\n")
}

/// The addresses and handlers that were written.
pub(in crate::sqlite) fn read_recipients<'r>(
    routes: &'r str,
    receiver: &'r str,
) -> SqlResult<Vec<(&'r str, Handler)>> {
    if routes.is_empty() {
        return Ok(vec![(receiver, Handler::Inbox)]);
    }
    let one = |line: &'r str| {
        let (word, address) = line.split_once(' ').unwrap_or((line, ""));
        let handler = Handler::parse(word).ok_or_else(|| unknown("handler", word))?;
        Ok((address, handler))
    };
    routes.lines().map(one).collect()
}
