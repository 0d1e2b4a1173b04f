//! The state of a thread: number of messages, first and last date, parties, whether it is closed.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Arrival, Way, party};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

use super::derive::joined;
use super::fault::SqlResult;
use super::settle;
use crate::sqlite::sql::{Sql as _, number, position, value};

/// How many parties of a thread are kept: the first ones. A message costs no more than this, however many there are.
const PARTIES: usize = 64;

/// What a message does to its thread.
pub(super) struct ThreadTurn {
    seq: i64,
    at: i64,
    counts: bool,
    closes: bool,
    reopens: bool,
    mine: bool,
    trust: i64,
    /// Whether its sender is in the thread by it alone.
    joins: bool,
    sender: String,
    receiver: String,
    targets: Option<String>,
}

impl ThreadTurn {
    pub(super) fn of(seq: i64, a: &Arrival) -> Self {
        Self {
            seq,
            at: a.at.as_millis(),
            counts: a.counts(),
            closes: a.closes(),
            reopens: a.reopens(),
            mine: a.is_written_here(),
            trust: position(&VerdictWord::ALL, a.verdict),
            joins: a.joins_alone(),
            sender: a.sender.clone(),
            receiver: a.receiver.clone(),
            targets: joined(&a.targets),
        }
    }
}

/// Takes a message into its thread, as the latest that came.
pub(super) fn follow(db: &Connection, thread: &str, turn: &ThreadTurn) -> SqlResult<()> {
    let sql = "INSERT INTO thread (id, messages, waiting, asked, first_at, first_seq, last_at, \
        last_seq) VALUES (?1, 1, 0, 0, ?2, ?3, ?2, ?3) ON CONFLICT (id) DO UPDATE SET messages = \
        messages + 1, first_seq = iif((?2, ?3) < (first_at, first_seq), ?3, first_seq), first_at \
        = min(?2, first_at), last_seq = iif((?2, ?3) > (last_at, last_seq), ?3, last_seq), \
        last_at = max(?2, last_at)";
    db.run(sql, params![thread, turn.at, turn.seq])?;
    if turn.closes && (turn.mine || is_in(db, thread, &turn.sender)?) {
        let is_firm = turn.mine || turn.trust == 0;
        let sql = "UPDATE thread SET closed_at = coalesce(closed_at, ?2), closed_seq = ?3, \
            firm_seq = iif(?4, ?3, firm_seq) WHERE id = ?1";
        db.run(sql, params![thread, turn.at, turn.seq, is_firm])?;
    } else if turn.reopens {
        let sql = "UPDATE thread SET closed_at = NULL WHERE id = ?1 AND closed_at IS NOT NULL";
        db.run(sql, params![thread])?;
    }
    add_parties(db, thread, turn)
}

/// Whether somebody takes part in a thread: began it, or was written to by somebody who does.
fn is_in(db: &Connection, thread: &str, sender: &str) -> SqlResult<bool> {
    let sql = "SELECT 1 FROM party WHERE thread = ?1 AND party = ?2 AND counts = 1";
    db.has(sql, params![thread, party(sender)])
}

fn has_party(db: &Connection, thread: &str) -> SqlResult<bool> {
    let sql = "SELECT 1 FROM party WHERE thread = ?1 AND counts = 1";
    db.has(sql, params![thread])
}

/// Adds the sender, the receiver and the targets, as long as there is room.
fn add_parties(db: &Connection, thread: &str, turn: &ThreadTurn) -> SqlResult<()> {
    let targets = turn.targets.as_deref().unwrap_or_default();
    let names = [turn.sender.as_str(), turn.receiver.as_str()].into_iter();
    let names = names.chain(targets.lines());
    // The sender who begins a thread is in it, and so is one whom the person of the store verified; they bring in those whom
    // they write to. Nobody else joins by writing.
    let begins = !turn.closes && !has_party(db, thread)?;
    let brings = turn.counts && (turn.joins || begins || is_in(db, thread, &turn.sender)?);
    let mut seen = BTreeSet::new();
    let fresh = names.filter(|name| seen.insert(party(name)));
    let named: Vec<&str> = fresh.take(PARTIES).collect();
    let mut room: Option<usize> = None;
    for (place, address) in named.into_iter().enumerate() {
        let key = party(address);
        let sql = "SELECT counts FROM party WHERE thread = ?1 AND party = ?2";
        let known = db.find(sql, params![thread, key], value::<bool>)?;
        if known == Some(false) && brings {
            let sql = "UPDATE party SET counts = 1 WHERE thread = ?1 AND party = ?2";
            db.run(sql, params![thread, key])?;
        }
        if known.is_some() {
            continue;
        }
        let left = match room {
            Some(left) => left,
            None => PARTIES.saturating_sub(count(db, thread)?),
        };
        room = Some(left.saturating_sub(1));
        if left > 0 {
            let place = number(place);
            let sql = "INSERT INTO party (thread, party, address, first_seq, place, counts, \
                last_at, last_seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0)";
            db.run(sql, params![thread, key, address, turn.seq, place, brings])?;
        }
    }
    Ok(())
}

fn count(db: &Connection, thread: &str) -> SqlResult<usize> {
    let sql = "SELECT count(*) FROM party WHERE thread = ?1";
    let count: i64 = db.one(sql, params![thread], value)?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Moves the parties of a thread to the place of its latest message: once for everything that came.
pub(super) fn date(db: &Connection, thread: &str) -> SqlResult<()> {
    let sql = "UPDATE party SET (last_at, last_seq) = (SELECT last_at, last_seq FROM thread \
        WHERE id = ?1) WHERE thread = ?1";
    db.run(sql, params![thread])?;
    Ok(())
}

/// Since when a thread is closed.
pub(super) fn closed_at(db: &Connection, thread: &str) -> SqlResult<Option<Timestamp>> {
    let sql = "SELECT closed_at FROM thread WHERE id = ?1";
    let closed = db.find(sql, params![thread], |row| row.get::<_, Option<i64>>(0))?;
    Ok(closed.flatten().map(Timestamp::from_millis))
}

/// Goes through a thread again after messages have left it, come to it from another one, or changed.
pub(super) fn recount(db: &Connection, thread: &str) -> SqlResult<()> {
    for sql in [
        "DELETE FROM party WHERE thread = ?1",
        "DELETE FROM thread WHERE id = ?1",
    ] {
        db.run(sql, params![thread])?;
    }
    let mut find = db.prepare_cached(
        "SELECT seq, at, counts, closes, reopens, mine, trust, sender, receiver, targets, asks, \
         mine OR (trust = 0 AND (SELECT way FROM intake i WHERE i.seq = message.seq) <> ?2) AS joins \
         FROM message WHERE thread = ?1 ORDER BY seq",
    )?;
    let mut rows = find.query(params![thread, Way::Relayed.as_str()])?;
    let mut asking: Vec<i64> = Vec::new();
    while let Some(row) = rows.next()? {
        let turn = ThreadTurn {
            seq: row.get("seq")?,
            at: row.get("at")?,
            counts: row.get("counts")?,
            closes: row.get("closes")?,
            reopens: row.get("reopens")?,
            mine: row.get("mine")?,
            trust: row.get("trust")?,
            joins: row.get("joins")?,
            sender: row.get("sender")?,
            receiver: row.get("receiver")?,
            targets: row.get("targets")?,
        };
        follow(db, thread, &turn)?;
        if row.get::<_, i64>("asks")? != 0 {
            asking.push(turn.seq);
        }
    }
    let sql = "UPDATE thread SET (waiting, asked) = (SELECT coalesce(sum(wait IN (1, 2)), 0), \
        coalesce(sum(wait = 3), 0) FROM message WHERE thread = ?1) WHERE id = ?1";
    db.run(sql, params![thread])?;
    for seq in asking {
        settle::refresh(db, seq)?;
    }
    date(db, thread)
}
