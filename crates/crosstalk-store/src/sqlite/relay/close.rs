//! Closed conversations, their parties, and the address that a conversation was handed to.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::Intent;
use crosstalk_protocol::relay::{Admission, ConversationId};
use crosstalk_protocol::store::{Arrival, party};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

use super::index;
use crate::sqlite::derive::{self, INTAKE_ROW, IntakeRow};
use crate::sqlite::fault::SqlResult;
use crate::sqlite::sql::{Sql as _, time, value};

/// A conversation in columns.
fn key(conversation: &ConversationId) -> (i64, &str) {
    match conversation {
        ConversationId::Thread(id) => (0, id),
        ConversationId::Session(name) => (1, name),
    }
}

/// Since when a conversation is closed.
pub(super) fn closed(db: &Connection, kind: i64, name: &str) -> SqlResult<Option<Timestamp>> {
    let sql = "SELECT at FROM closing WHERE kind = ?1 AND name = ?2";
    let at: Option<i64> = db.find(sql, params![kind, name], value)?;
    Ok(time(at))
}

pub(super) fn closed_conversation(
    db: &Connection,
    what: &ConversationId,
) -> SqlResult<Option<Timestamp>> {
    let (kind, name) = key(what);
    closed(db, kind, name)
}

/// Records that a conversation is closed; the first time counts.
pub(super) fn close(
    db: &Connection,
    what: &ConversationId,
    at: Timestamp,
    seq: i64,
) -> SqlResult<()> {
    let (kind, name) = key(what);
    let sql = "INSERT OR IGNORE INTO closing (kind, name, at, seq) VALUES (?1, ?2, ?3, ?4)";
    db.run(sql, params![kind, name, at.as_millis(), seq])?;
    Ok(())
}

/// What a message of the person of this store, or one that they accepted, does to its thread.
pub(in crate::sqlite) fn follow(db: &Connection, arrival: &Arrival, thread: &str) -> SqlResult<()> {
    if arrival.closes() {
        let sql = "INSERT OR IGNORE INTO closing (kind, name, at, seq) SELECT 0, id, closed_at, \
            closed_seq FROM thread WHERE id = ?1 AND closed_at IS NOT NULL";
        db.run(sql, params![thread])?;
    } else if arrival.reopens() {
        let sql = "DELETE FROM closing WHERE kind = 0 AND name = ?1";
        db.run(sql, params![thread])?;
    }
    Ok(())
}

/// The address that a conversation was handed to.
pub(super) fn steward(db: &Connection, what: &ConversationId) -> SqlResult<Option<String>> {
    let (kind, name) = key(what);
    let sql = "SELECT address FROM steward WHERE kind = ?1 AND name = ?2";
    db.find(sql, params![kind, name], value)
}

/// Records who a conversation is handed to.
pub(super) fn hand_over(db: &Connection, admission: &Admission) -> SqlResult<()> {
    let Some(what) = admission.conversation() else {
        return Ok(());
    };
    let (kind, name) = key(&what);
    let receiver = &admission.arrival.receiver;
    let to = admission
        .recipients
        .first()
        .map_or(receiver, |r| &r.address);
    let sql = "INSERT OR REPLACE INTO steward (kind, name, address, at) VALUES (?1, ?2, ?3, ?4)";
    db.run(
        sql,
        params![kind, name, to, admission.arrival.at.as_millis()],
    )?;
    Ok(())
}

/// Whether somebody may hand a conversation over: a party of it, or who begins it.
pub(super) fn may_hand_over(
    db: &Connection,
    what: &ConversationId,
    address: &str,
) -> SqlResult<bool> {
    let (parties, is_known) = parties(db, what, &party(address))?;
    Ok(!is_known || parties.contains(&party(address)))
}

/// Whether somebody is a party of a conversation. By the rules of a thread: the sender who begins it is in it, and brings in
/// those whom they write to.
pub(super) fn is_party(db: &Connection, what: &ConversationId, address: &str) -> SqlResult<bool> {
    let (parties, _) = parties(db, what, &party(address))?;
    Ok(parties.contains(&party(address)))
}

/// Who is in a conversation, at least as far as it takes to find one of them; whether anything is known of it.
fn parties(
    db: &Connection,
    what: &ConversationId,
    wanted: &str,
) -> SqlResult<(BTreeSet<String>, bool)> {
    let thread = match what {
        ConversationId::Thread(id) => Some(id.clone()),
        ConversationId::Session(name) => db.find(
            "SELECT thread FROM message WHERE session = ?1 ORDER BY counts DESC, seq DESC LIMIT 1",
            params![name],
            value,
        )?,
    };
    let mut find = db.prepare_cached("SELECT party FROM party WHERE thread = ?1 AND counts = 1")?;
    let rows = find.query_map(params![thread], |row| row.get(0))?;
    let mut parties = rows.collect::<SqlResult<BTreeSet<String>>>()?;
    let mut is_known = !parties.is_empty();
    if parties.contains(wanted) {
        return Ok((parties, is_known));
    }
    let column = match what {
        ConversationId::Thread(_) => "thread",
        ConversationId::Session(_) => "session",
    };
    let sql =
        format!("SELECT {INTAKE_ROW} FROM intake WHERE seq > ?1 AND {column} = ?2 ORDER BY seq");
    let mut find = db.prepare_cached(&sql)?;
    let unfiled = params![index::progress(db, index::INDEXED)?, key(what).1];
    let mut rows = find.query(unfiled)?;
    while let Some(row) = rows.next()? {
        let IntakeRow { arrival, .. } = derive::intake_row(row)?;
        is_known = true;
        let sender = party(&arrival.sender);
        let begins = parties.is_empty() && arrival.meaning != Some(Intent::Close);
        if arrival.counts() && (begins || arrival.joins_alone() || parties.contains(&sender)) {
            parties.extend([sender, party(&arrival.receiver)]);
            parties.extend(arrival.targets.iter().map(|t| party(t)));
        }
        if parties.contains(wanted) {
            break;
        }
    }
    Ok((parties, is_known))
}
