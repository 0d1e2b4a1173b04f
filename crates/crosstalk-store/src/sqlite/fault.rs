//! Errors of SQLite for people: what happened, and what to do.

use crosstalk_protocol::store::{StoreError, StoreFault};
use rusqlite::ErrorCode;
use rusqlite::ffi;
use std::path::Path;

/// What a step inside the store gives back; the path is added on the way out.
pub(super) type SqlResult<T> = Result<T, rusqlite::Error>;

/// The error of a store, with the file that it is about.
pub(super) fn at(path: &Path, error: &rusqlite::Error) -> StoreError {
    let file = path.display();
    let (code, extended) = match error {
        rusqlite::Error::SqliteFailure(e, _) => (e.code, e.extended_code),
        // A table or a column is missing.
        rusqlite::Error::SqlInputError { msg, .. } => return damaged(path, msg),
        // The store writes only UTF-8, so the file was damaged.
        rusqlite::Error::Utf8Error(..) => return damaged(path, &error.to_string()),
        _ if is_about_message(error) => return invalid(path, error),
        _ => return damaged(path, &error.to_string()),
    };
    // Of the index of words alone, a message may be the cause; to a reader, it is damaged all the same.
    if is_about_message(error) && code != ErrorCode::DatabaseCorrupt {
        return invalid(path, error);
    }
    let (fault, what, help) = match code {
        ErrorCode::DiskFull => return full(path),
        _ if extended == ffi::SQLITE_IOERR_SHMSIZE => return full(path),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (
            StoreFault::Busy,
            format!("`{file}` was in use by another process for too long; nothing was written"),
            "wait until that process has finished, and try again",
        ),
        _ if is_temporary(code, extended) => (
            StoreFault::Busy,
            format!("`{file}` can't be used now, and nothing was written: {error}"),
            "try again",
        ),
        // Tables are there that should not be, or the other way round.
        _ if extended == ffi::SQLITE_ERROR => return damaged(path, &error.to_string()),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            return damaged(path, &error.to_string());
        }
        ErrorCode::ReadOnly
        | ErrorCode::PermissionDenied
        | ErrorCode::AuthorizationForStatementDenied => (
            StoreFault::Unavailable,
            format!("`{file}` can't be written: {error}"),
            "check that the file and its folder belong to you and are writable",
        ),
        ErrorCode::CannotOpen => (
            StoreFault::Unavailable,
            format!("`{file}` can't be opened: {error}"),
            "check that it is a file, and that you may read and write it and its folder",
        ),
        _ => (
            StoreFault::Unavailable,
            format!("`{file}` can't be used, and nothing was written: {error}"),
            "check the disk, and try again",
        ),
    };
    StoreError::new(fault, what, help)
}

/// Whether an error says nothing about the file: the change was rolled back, and everything written before is on disk. What
/// is written, synced or damaged is never among them.
const fn is_temporary(code: ErrorCode, extended: i32) -> bool {
    match code {
        ErrorCode::OperationInterrupted
        | ErrorCode::OperationAborted
        | ErrorCode::OutOfMemory
        | ErrorCode::SchemaChanged
        | ErrorCode::FileLockingProtocolFailed
        | ErrorCode::InternalMalfunction
        | ErrorCode::ApiMisuse => true,
        ErrorCode::SystemIoFailure => matches!(
            extended,
            ffi::SQLITE_IOERR_NOMEM
                | ffi::SQLITE_IOERR_BLOCKED
                | ffi::SQLITE_IOERR_LOCK
                | ffi::SQLITE_IOERR_RDLOCK
                | ffi::SQLITE_IOERR_UNLOCK
                | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK
                | ffi::SQLITE_IOERR_SHMLOCK
                | ffi::SQLITE_IOERR_SHMMAP
                | ffi::SQLITE_IOERR_SHMOPEN
        ),
        _ => false,
    }
}

/// Whether an error is about the message that is written, and neither about the disk nor about the store: another message
/// can be written after it.
pub(super) fn is_about_message(error: &rusqlite::Error) -> bool {
    use rusqlite::Error;
    match error {
        Error::SqliteFailure(e, _) if e.extended_code == ffi::SQLITE_CORRUPT_VTAB => true,
        Error::SqliteFailure(e, _) => matches!(
            e.code,
            ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch
                | ErrorCode::TooBig
                | ErrorCode::ParameterOutOfRange
        ),
        // A table or a column is missing.
        Error::SqlInputError { .. } | Error::InvalidPath(_) => false,
        // A value does not fit, or a statement and its values do not: the file has no part in it.
        _ => true,
    }
}

/// A message breaks a rule of the store.
fn invalid(path: &Path, error: &rusqlite::Error) -> StoreError {
    StoreError::new(
        StoreFault::Invalid,
        format!(
            "a message breaks a rule of `{}`, and nothing was written: {error}",
            path.display()
        ),
        "check the store with `crosstalk fsck`",
    )
}

/// The disk has no room for a change.
pub(super) fn full(path: &Path) -> StoreError {
    StoreError::new(
        StoreFault::Full,
        format!(
            "the disk is full, and nothing was written to `{}`",
            path.display()
        ),
        "make room and try again",
    )
}

/// It is not what a store has to be.
pub(super) fn damaged(path: &Path, what: &str) -> StoreError {
    StoreError::new(
        StoreFault::Damaged,
        format!("`{}` is damaged: {what}", path.display()),
        "move it away, with the files beside it that begin with its name; then put your backup in its place, or \
         import your archive into a new store",
    )
}

/// It belongs to another program.
pub(super) fn foreign(path: &Path) -> StoreError {
    StoreError::new(
        StoreFault::Damaged,
        format!(
            "`{}` is a database of another program, and was left as it is",
            path.display()
        ),
        "move it away, or set CROSSTALK_HOME to another folder",
    )
}

/// It was made by a newer program.
pub(super) fn newer(path: &Path, theirs: u32, ours: u32) -> StoreError {
    StoreError::new(
        StoreFault::Newer,
        format!(
            "`{}` has version {theirs}, and was left as it is: this program knows versions up to {ours}",
            path.display()
        ),
        "update crosstalk",
    )
}

/// The system denies access to a file or folder.
pub(super) fn unavailable(what: impl Into<String>, help: &str) -> StoreError {
    StoreError::new(StoreFault::Unavailable, what, help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(extended: i32) -> StoreFault {
        let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(extended), None);
        at(Path::new("relay.db"), &failure).fault
    }

    /// A relay ends after `Damaged` and `Unavailable`: only if acknowledged messages may not be on disk.
    #[test]
    fn only_errors_that_endanger_what_is_written_are_fatal() {
        for code in [
            ffi::SQLITE_INTERRUPT,
            ffi::SQLITE_ABORT,
            ffi::SQLITE_ABORT_ROLLBACK,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_LOCKED,
            ffi::SQLITE_LOCKED_SHAREDCACHE,
            ffi::SQLITE_NOMEM,
            ffi::SQLITE_SCHEMA,
            ffi::SQLITE_PROTOCOL,
            ffi::SQLITE_MISUSE,
            ffi::SQLITE_INTERNAL,
            ffi::SQLITE_IOERR_NOMEM,
            ffi::SQLITE_IOERR_LOCK,
            ffi::SQLITE_IOERR_SHMMAP,
        ] {
            assert_eq!(fault(code), StoreFault::Busy, "{code}");
        }
        for code in [
            ffi::SQLITE_TOOBIG,
            ffi::SQLITE_MISMATCH,
            ffi::SQLITE_RANGE,
            ffi::SQLITE_CONSTRAINT_UNIQUE,
        ] {
            assert_eq!(fault(code), StoreFault::Invalid, "{code}");
        }
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
            assert_eq!(fault(code), StoreFault::Full, "{code}");
        }
        for code in [
            ffi::SQLITE_IOERR,
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_DIR_FSYNC,
            ffi::SQLITE_IOERR_TRUNCATE,
            ffi::SQLITE_READONLY_DBMOVED,
            ffi::SQLITE_CANTOPEN,
        ] {
            assert_eq!(fault(code), StoreFault::Unavailable, "{code}");
        }
        for code in [
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_CORRUPT_INDEX,
            ffi::SQLITE_CORRUPT_VTAB,
            ffi::SQLITE_NOTADB,
            ffi::SQLITE_ERROR,
        ] {
            assert_eq!(fault(code), StoreFault::Damaged, "{code}");
        }
    }

    #[test]
    fn value_that_does_not_fit_is_about_its_message() {
        for error in [
            rusqlite::Error::InvalidParameterCount(1, 2),
            rusqlite::Error::IntegralValueOutOfRange(0, 7),
            rusqlite::Error::QueryReturnedNoRows,
        ] {
            assert_eq!(at(Path::new("s"), &error).fault, StoreFault::Invalid);
        }
    }

    /// A message whose words can't be indexed is quarantined, and stops no other.
    #[test]
    fn trouble_with_the_words_of_a_message_is_about_it() {
        let words = ffi::Error::new(ffi::SQLITE_CORRUPT_VTAB);
        assert!(is_about_message(&rusqlite::Error::SqliteFailure(
            words, None
        )));
        let file = ffi::Error::new(ffi::SQLITE_CORRUPT);
        assert!(!is_about_message(&rusqlite::Error::SqliteFailure(
            file, None
        )));
    }

    #[test]
    fn acknowledged_data_is_never_left_in_a_cache() {
        let folder = tempfile::tempdir().unwrap();
        let store = crate::SqliteStore::open(folder.path().join("s.db")).unwrap();
        for (name, wanted) in [
            ("synchronous", 2),
            ("fullfsync", 1),
            ("checkpoint_fullfsync", 1),
        ] {
            let read = |row: &rusqlite::Row<'_>| row.get(0);
            let value: i64 = store.db.pragma_query_value(None, name, read).unwrap();
            assert_eq!(value, wanted, "{name}");
        }
    }
}
