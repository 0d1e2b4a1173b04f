//! Errors of PostgreSQL for people: what happened, and what to do.

use crosstalk_protocol::store::{StoreError, StoreFault};
use std::fmt;
use tokio_postgres::error::SqlState;

/// What a step inside the store gives back; the name of the database is added on the way out.
pub(super) type PgResult<T> = Result<T, SqlError>;

/// Why a statement, or what was made of its rows, failed.
#[derive(Debug)]
pub(super) enum SqlError {
    /// The server, or the way to it.
    Server(tokio_postgres::Error),
    /// A row is not what it has to be.
    Row(String),
    /// There is no row where one has to be.
    NoRow,
    /// The server did not answer in time.
    Timeout,
    /// The transaction is committed here, and the server gave up waiting for its standby: a fail-over may lose it.
    Unconfirmed,
    /// The session ended before the server said whether the transaction is committed.
    InDoubt,
    /// The database was made by a newer program.
    Newer(i64),
    /// The server can't be reached, or does not let us in.
    Connect(StoreError),
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(e) => match e.as_db_error() {
                Some(db) => write!(f, "{} ({})", db.message(), db.code().code()),
                None => write!(f, "{e}"),
            },
            Self::Row(what) => f.write_str(what),
            Self::NoRow => f.write_str("a row is missing"),
            Self::Timeout => f.write_str("the server did not answer in time"),
            Self::InDoubt => f.write_str("the connection ended before the answer came"),
            Self::Unconfirmed => f.write_str("no standby confirmed it"),
            Self::Newer(version) => write!(f, "it has version {version}"),
            Self::Connect(e) => write!(f, "{e}"),
        }
    }
}

impl From<tokio_postgres::Error> for SqlError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl SqlError {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Server(e) => e.code(),
            _ => None,
        }
    }

    /// Whether the transaction can be tried again as it is: others were in its way.
    pub(super) fn is_conflict(&self) -> bool {
        let conflicts = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ];
        self.code().is_some_and(|code| conflicts.contains(code))
    }

    /// Whether the session can't be used any more: the connection is gone, or the server is no primary.
    pub(super) fn ends_session(&self) -> bool {
        match self {
            Self::Server(e) => match e.code() {
                None => true,
                Some(code) => {
                    let code = code.code();
                    // Connections, shut-downs, and what a server says that became a standby.
                    code.starts_with("08") || code.starts_with("57P") || code == "25006"
                }
            },
            Self::Timeout | Self::InDoubt | Self::Unconfirmed | Self::Connect(_) => true,
            Self::Row(_) | Self::NoRow | Self::Newer(_) => false,
        }
    }

    /// Whether the server said nothing.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::Timeout) || matches!(self, Self::Server(e) if e.code().is_none())
    }

    /// Whether nothing was changed, and the same may succeed in another session, or a little later.
    pub(super) fn can_be_tried_again(&self) -> bool {
        let is_in_doubt = matches!(self, Self::InDoubt | Self::Unconfirmed);
        !is_in_doubt && (self.ends_session() || self.is_conflict())
    }

    /// Whether a server does not let us in: to try again does not help.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Connect(error) if error.fault == StoreFault::Unavailable)
    }

    /// Whether an error is about the message that is written, and not about the server: another message can be written
    /// after it.
    pub(super) fn is_about_message(&self) -> bool {
        match self {
            Self::Server(e) => match e.code().map(SqlState::code) {
                // Values that do not fit, and constraints.
                Some(code) => {
                    code.starts_with("22") || code.starts_with("23") || code.starts_with("54")
                }
                None => false,
            },
            Self::Row(_) | Self::NoRow => true,
            Self::Timeout
            | Self::InDoubt
            | Self::Unconfirmed
            | Self::Newer(_)
            | Self::Connect(_) => false,
        }
    }

    /// The error of the store.
    pub(super) fn at(&self, place: &str) -> StoreError {
        let error = |fault, what: String, help: &str| StoreError::new(fault, what, help);
        match self {
            Self::Connect(error) => error.clone(),
            Self::Newer(theirs) => newer(place, *theirs),
            Self::Unconfirmed => error(
                StoreFault::Busy,
                format!("no standby of {place} confirmed the change, and a fail-over may lose it"),
                "send the same message again",
            ),
            Self::Timeout => error(
                StoreFault::Busy,
                format!("{place} did not answer in time"),
                "try again; the same message is not accepted twice",
            ),
            _ if self.is_about_message() => error(
                StoreFault::Invalid,
                format!("a message breaks a rule of {place}, and nothing was written: {self}"),
                "report it: the relay should have rejected the message",
            ),
            Self::Server(e) if e.code() == Some(&SqlState::DISK_FULL) => error(
                StoreFault::Full,
                format!("the disk of {place} is full, and nothing was written"),
                "make room and try again",
            ),
            Self::Server(e)
                if e.code().is_some_and(|c| c.code().starts_with("42"))
                    || e.code() == Some(&SqlState::INVALID_SCHEMA_NAME) =>
            {
                error(
                    StoreFault::Unavailable,
                    format!("{place} can't be used: {self}"),
                    "check that the role of the relay owns its tables, and that no other program changed them",
                )
            }
            _ => error(
                StoreFault::Busy,
                format!("{place} can't be used now: {self}"),
                "try again; the same message is not accepted twice",
            ),
        }
    }
}

/// Relays of another name use the database.
pub(super) fn other_name(place: &str, registered: &str, mine: &str) -> StoreError {
    let (registered, mine) = (registered.escape_debug(), mine.escape_debug());
    StoreError::new(
        StoreFault::Unavailable,
        format!(
            "{place} belongs to the relays called `{registered}`, and this relay is called `{mine}`"
        ),
        "all relays of a database have one name: start this one with the same `--name`, or on a database of its own \
         (docs/high-availability.md)",
    )
}

/// The database was made by a newer program.
pub(super) fn newer(place: &str, theirs: i64) -> StoreError {
    let what = format!(
        "{place} has version {theirs}, and was left as it is: this program knows versions up to {}",
        super::schema::VERSION
    );
    StoreError::new(StoreFault::Newer, what, "update crosstalk")
}
