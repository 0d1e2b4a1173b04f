//! Closed conversations, their parties, and the address that a conversation was handed to.

use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::{ConversationId, ConversationParties, PendingParties};

use super::fault::PgResult;
use super::intake::{INTAKE_ROW, PgIntakeRow, intake_row};
use super::sql::{Db, params, value};

/// The latest thread of a session.
pub(super) const THREAD_OF_SESSION: &str =
    "SELECT thread FROM message WHERE session = $1 ORDER BY counts DESC, seq DESC LIMIT 1";

/// A conversation in columns.
pub(super) fn key(conversation: &ConversationId) -> (i64, &str) {
    match conversation {
        ConversationId::Thread(id) => (0, id),
        ConversationId::Session(name) => (1, name),
    }
}

/// Records that a conversation is closed; the first time counts.
pub(super) fn close(db: &Db, what: &ConversationId, at: Timestamp, seq: i64) -> PgResult<()> {
    let (kind, name) = key(what);
    let sql =
        "INSERT INTO closing (kind, name, at, seq) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    db.run(sql, params![kind, name, at.as_millis(), seq])?;
    Ok(())
}

/// Records who a conversation is handed to.
pub(super) fn hand_over(db: &Db, what: &ConversationId, to: &str, at: Timestamp) -> PgResult<()> {
    let (kind, name) = key(what);
    let sql = "INSERT INTO steward (kind, name, address, at) VALUES ($1, $2, $3, $4) ON CONFLICT (kind, name) \
        DO UPDATE SET address = excluded.address, at = excluded.at";
    db.run(sql, params![kind, name, to, at.as_millis()])?;
    Ok(())
}

/// The parties of a conversation: those of its thread, and those of its messages that are not indexed yet.
pub(super) fn parties(db: &Db, what: &ConversationId) -> PgResult<ConversationParties> {
    let (thread, column) = match what {
        ConversationId::Thread(id) => (Some(id.clone()), "thread"),
        ConversationId::Session(name) => {
            let thread = db.find(THREAD_OF_SESSION, params![name], value)?;
            (thread, "session")
        }
    };
    let sql = "SELECT party FROM party WHERE thread = $1 AND counts";
    let indexed = db.all(sql, params![thread], value::<String>)?;
    let sql = format!(
        "SELECT {INTAKE_ROW} FROM intake WHERE seq > (SELECT seq FROM progress WHERE name = 'indexed') AND {column} = $1 ORDER BY seq"
    );
    let pending = db.all(&sql, params![key(what).1], |row| {
        let PgIntakeRow { arrival, .. } = intake_row(row)?;
        Ok(PendingParties::of(&arrival, []))
    })?;
    Ok(ConversationParties {
        indexed: indexed.into_iter().collect(),
        pending,
    })
}
