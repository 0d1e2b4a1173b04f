//! Free space on the disk for the file of the store.
//!
//! SQLite appends each change to a log, and later moves the log into the file, which grows by what is new. If the log takes
//! the last room of the disk, the file can't grow, the log can't be moved, and so it does not begin anew: room that somebody
//! makes is taken by the log again. So the store adds messages only if there is room to move the log afterwards. It erases,
//! revokes and marks in any case.

use rusqlite::{Connection, ErrorCode};
use std::path::Path;

use super::fault::SqlResult;
use super::log_of;
use super::search::path_of;

/// The rough size of a change besides the texts of its messages.
pub(super) const CHANGE_BYTES: usize = 64 << 10;
/// The rough size of indexing a message.
pub(super) const INDEX_BYTES: usize = 64 << 10;
/// How many messages are indexed at a time where room is short.
pub(super) const FEW_MESSAGES: usize = 4;

/// Whether there is room for a change of about so many bytes, and for moving the log after it. Where room is short, this
/// moves the log first, so that it can begin anew.
pub(super) fn make_room(db: &Connection, path: &Path, change: u64) -> SqlResult<bool> {
    let (log, of_words) = (length(&log_of(path)), length(&log_of(&path_of(path))));
    // In the log, and in the file, which grows by the pages of the log at most.
    let change_twice = change.saturating_mul(2).saturating_add(of_words);
    if has_room(path, change_twice.saturating_add(log)) {
        return Ok(true);
    }
    let is_moved = match db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], is_all_moved) {
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::DiskFull) => false,
        moved => moved?,
    };
    // A log that was moved is written over.
    let in_log = change.saturating_sub(if is_moved { log } else { 0 });
    let number = |pragma: &str| {
        let read = db.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        read.map(|number| u64::try_from(number).unwrap_or(0))
    };
    // Pages that were erased are used again before the file grows.
    let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
    let size = pages
        .saturating_mul(number("page_size")?)
        .saturating_add(change);
    let in_file = size.saturating_sub(length(path));
    let in_both = in_log.saturating_add(in_file);
    Ok(has_room(path, in_both.saturating_add(of_words)))
}

/// Whether a checkpoint moved all pages of the log.
fn is_all_moved(row: &rusqlite::Row<'_>) -> SqlResult<bool> {
    let (pages, moved): (i64, i64) = (row.get(1)?, row.get(2)?);
    Ok(pages == moved)
}

/// Whether there is room for the words of so many bytes of text in the search file, and for moving both logs after it.
pub(super) fn has_room_for_words(path: &Path, bytes: usize) -> bool {
    let bytes = u64::try_from(bytes.saturating_add(CHANGE_BYTES)).unwrap_or(u64::MAX);
    let logs = length(&log_of(path)).saturating_add(length(&log_of(&path_of(path))));
    has_room(path, bytes.saturating_mul(2).saturating_add(logs))
}

/// The size of the file, of the search file and of their logs.
pub(super) fn bytes_of(path: &Path) -> u64 {
    let search = path_of(path);
    let files = [path, &log_of(path), &search, &log_of(&search)];
    files.into_iter().map(length).fold(0, u64::saturating_add)
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

/// Whether the disk has so much room; `true` where the system does not tell.
#[cfg(unix)]
fn has_room(path: &Path, bytes: u64) -> bool {
    let Ok(disk) = rustix::fs::statvfs(path) else {
        return true;
    };
    // A file system without a size does not say how much is free.
    disk.f_blocks == 0 || disk.f_bavail.saturating_mul(disk.f_frsize) >= bytes
}

#[cfg(not(unix))]
fn has_room(_: &Path, _: u64) -> bool {
    true
}
