//! Closed conversations, their parties, and the address that a conversation was handed to.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::{ConversationId, ConversationParties, PendingParties};
use crosstalk_protocol::store::Arrival;
use rusqlite::{Connection, Row, params};

use super::index;
use super::unindexed::{ConversationKey, UnindexedMessages};
use crate::sqlite::accept;
use crate::sqlite::derive::{self, INTAKE_ROW, IntakeRow};
use crate::sqlite::fault::SqlResult;
use crate::sqlite::sql::{Sql as _, time, value};

/// The kinds of a conversation.
pub(super) const THREAD: i64 = 0;
pub(super) const SESSION: i64 = 1;

/// A conversation in columns.
fn key(conversation: &ConversationId) -> ConversationKey<'_> {
    match conversation {
        ConversationId::Thread(id) => (THREAD, id),
        ConversationId::Session(name) => (SESSION, name),
    }
}

/// Since when a conversation is closed.
pub(super) fn closed(db: &Connection, what: &ConversationId) -> SqlResult<Option<Timestamp>> {
    let (kind, name) = key(what);
    let sql = "SELECT at FROM closing WHERE kind = ?1 AND name = ?2";
    let at: Option<i64> = db.find(sql, params![kind, name], value)?;
    Ok(time(at))
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
pub(super) fn hand_over(
    db: &Connection,
    what: &ConversationId,
    to: &str,
    at: Timestamp,
) -> SqlResult<()> {
    let (kind, name) = key(what);
    let sql = "INSERT OR REPLACE INTO steward (kind, name, address, at) VALUES (?1, ?2, ?3, ?4)";
    db.run(sql, params![kind, name, to, at.as_millis()])?;
    Ok(())
}

/// The parties of a conversation: those of its thread, and those of its messages that are not indexed yet.
pub(in crate::sqlite) fn parties(
    db: &Connection,
    what: &ConversationId,
    unindexed: &UnindexedMessages,
) -> SqlResult<ConversationParties> {
    let (thread, column) = match what {
        ConversationId::Thread(id) => (Some(id.clone()), "thread"),
        ConversationId::Session(name) => {
            let thread = db.find(accept::THREAD_OF_SESSION, params![name], value)?;
            (thread, "session")
        }
    };
    let sql = "SELECT party FROM party WHERE thread = ?1 AND counts = 1";
    let indexed = db.all(sql, params![thread], value::<String>)?;
    let (through, last) = (index::progress(db, index::INDEXED)?, index::last_seq(db)?);
    let name = key(what).1;
    let pending = match unindexed.of(key(what), (through, last)) {
        Some(seqs) => {
            let sql = format!("SELECT {INTAKE_ROW} FROM intake WHERE seq = ?1 AND {column} = ?2");
            let found = seqs
                .iter()
                .map(|seq| db.find(&sql, params![seq, name], pending));
            found
                .filter_map(Result::transpose)
                .collect::<SqlResult<_>>()?
        }
        // Another process accepted some of them, before this one began.
        None => {
            let sql = format!(
                "SELECT {INTAKE_ROW} FROM intake WHERE seq > ?1 AND {column} = ?2 ORDER BY seq"
            );
            db.all(&sql, params![through, name], pending)?
        }
    };
    Ok(ConversationParties {
        indexed: indexed.into_iter().collect(),
        pending,
    })
}

fn pending(row: &Row<'_>) -> SqlResult<PendingParties> {
    let IntakeRow { arrival, .. } = derive::intake_row(row)?;
    Ok(PendingParties::of(&arrival, []))
}
