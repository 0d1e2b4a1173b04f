//! Versions of the store: numbered steps, each from the version before. A new store takes all of them.

use crosstalk_envelope::Intent;
use crosstalk_envelope::name::name_key;
use crosstalk_protocol::store::{StoreError, Wait, Way};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::fault::{self, SqlResult};
use super::relay::delivery;
use super::{derive, indexed, log, schema};
use crate::disk::{self, Lock};
use crate::fault::{DiskError, FileAction};
use crate::sqlite::sql::{Sql as _, tuple};

/// The steps: the first makes version 1.
const STEPS: [&str; 16] = [
    schema::INTAKE,
    schema::DERIVED,
    schema::RELAY,
    schema::LOG,
    schema::CONSENT,
    schema::HOLD,
    schema::BOUNDARY,
    schema::WATCH,
    schema::REFILED,
    schema::ENDED,
    schema::LEASED,
    schema::ROUTED,
    schema::SEARCH,
    schema::AUDITED,
    schema::SLIM,
    schema::COUNTED,
];
/// Before this version there was no relay.
const RELAYING: u32 = 3;
/// Before this version a relay kept no log.
const LOGGING: u32 = 4;
/// Before this version kept texts were read as pastes when they were indexed, names were the same in any ASCII case only, and
/// URLs byte for byte.
const STRICT: u32 = 7;
/// Before this version questions of exported chats and polls with a result could wait for an answer.
const ENDING: u32 = 10;

/// Before this version deliveries were written when a message was indexed.
const ROUTING: u32 = 12;

/// Before this version SQLite counted the positions of messages.
const COUNTING: u32 = 16;

/// The version that this program reads and writes.
pub(super) const CURRENT: u32 = STEPS.len() as u32;

/// The migration that opening a store made, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreOpening {
    /// The version that it had, if it was brought to a newer one.
    pub migrated_from: Option<u32>,
    /// Where it is kept as it was before.
    pub backup: Option<PathBuf>,
}

/// The state of a file, by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// There is nothing in it.
    Empty,
    /// It is a store of this version.
    Version(u32),
    /// It is somebody else's.
    Foreign,
}

/// Looks at a file. Nothing is changed.
pub(super) fn state(db: &Connection) -> SqlResult<FileState> {
    let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if application == schema::APPLICATION && version > 0 {
        return Ok(FileState::Version(version));
    }
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_empty = tables == 0 && version == 0 && application == 0;
    Ok(if is_empty {
        FileState::Empty
    } else {
        FileState::Foreign
    })
}

/// Brings a store to the version of this program, while no other process does. It makes a backup first.
pub(super) fn migrate(path: &Path, db: &mut Connection) -> Result<StoreOpening, StoreError> {
    let fault = |e: rusqlite::Error| fault::at(path, &e);
    let _lock = Lock::wait(folder_of(path), &label_of(path)).map_err(on_disk)?;
    if state(db).map_err(fault)? == FileState::Empty {
        // Only outside a transaction; it stays with the file.
        db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
            .map_err(fault)?;
    }
    let change = db
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fault)?;
    // Another process may have done it meanwhile.
    let from = match state(&change).map_err(fault)? {
        FileState::Empty => 0,
        FileState::Version(version) => version,
        FileState::Foreign => return Err(fault::foreign(path)),
    };
    if from >= CURRENT {
        return Ok(StoreOpening::default());
    }
    let backup = match from {
        0 => None,
        _ => Some(back_up(path, from)?),
    };
    step(&change, from).map_err(fault)?;
    change.commit().map_err(fault)?;
    Ok(StoreOpening {
        migrated_from: (from > 0).then_some(from),
        backup,
    })
}

fn step(db: &Connection, from: u32) -> SqlResult<()> {
    for (number, step) in (1_u32..).zip(STEPS) {
        if number > from {
            db.execute_batch(step)?;
        }
    }
    if from > 0 && from < COUNTING {
        drop_autoincrement(db)?;
    }
    // With the columns of today.
    if from < STRICT {
        refold(db)?;
        derive::rebuild(db)?;
        db.execute_batch(schema::REOPENED)?;
    }
    if from > 0 && from < ENDING {
        end_stale_waits(db)?;
    }
    if from < RELAYING {
        db.execute_batch(schema::CLOSED)?;
    }
    if (RELAYING..ROUTING).contains(&from) {
        delivery::queue_unindexed(db)?;
    }
    if from < LOGGING {
        log::adopt(db)?;
    }
    db.pragma_update(None, "application_id", schema::APPLICATION)?;
    db.pragma_update(None, "user_version", CURRENT)
}

/// Takes `AUTOINCREMENT` out of the text of the table. The rows stay as they are: SQLite allows this change of the text, and a new
/// table would be a copy of the whole store.
fn drop_autoincrement(db: &Connection) -> SqlResult<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
    let dropped = db.execute_batch(
        "PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = replace(sql, 'PRIMARY KEY AUTOINCREMENT', 'PRIMARY KEY') \
         WHERE type = 'table' AND name = 'intake'; \
         DELETE FROM sqlite_sequence WHERE name = 'intake'; PRAGMA writable_schema = RESET",
    );
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    dropped
}

/// Ends the waits that an older version left: of what exported chats asked, of pasted thanks, and of polls whose result is
/// here.
fn end_stale_waits(db: &Connection) -> SqlResult<()> {
    let sql = "SELECT m.seq, m.id FROM message m JOIN intake i ON i.seq = m.seq WHERE m.asks <> 0 AND \
        i.way IN (?1, ?2)";
    let ways = params![Way::Filed.as_str(), Way::Pasted.as_str()];
    for (seq, id) in db.all(sql, ways, tuple::<(i64, String)>)? {
        if super::accept::row(db, seq)?.arrival.wait() != Wait::Nobody {
            continue;
        }
        db.run("UPDATE message SET asks = 0 WHERE seq = ?1", params![seq])?;
        indexed::change(db, |index| index.reconsider(&id))?;
    }
    let sql = "SELECT a.seq, q.id FROM message q JOIN message a ON a.parent = q.id AND a.mine = 1 \
        WHERE q.meaning = ?1 AND q.wait <> 0";
    let polls = db.all(sql, params![Intent::Poll.as_str()], tuple::<(i64, String)>)?;
    for (answer, poll) in polls {
        if super::accept::row(db, answer)?.arrival.ends_poll() {
            indexed::change(db, |index| index.end_poll(&poll))?;
        }
    }
    Ok(())
}

/// Brings the keys of names and addresses that are not derived to the form of today ([`name_key`]). Parties that are the same
/// by now become one.
fn refold(db: &Connection) -> SqlResult<()> {
    let changed = |table: &str| -> SqlResult<Vec<(String, String)>> {
        let mut find = db.prepare(&format!("SELECT DISTINCT party FROM {table}"))?;
        let keys = find.query_map([], |row| row.get::<_, String>(0))?;
        let keys = keys.collect::<SqlResult<Vec<String>>>()?.into_iter();
        let pairs = keys.map(|old| (name_key(&old), old));
        Ok(pairs.filter(|(new, old)| new != old).collect())
    };
    for (new, old) in changed("delivery")? {
        // A message that was sent to two spellings of one party is there once.
        db.execute(
            "DELETE FROM delivery WHERE party = ?1 AND seq IN (SELECT seq FROM delivery WHERE party = ?2)",
            params![old, new],
        )?;
        db.execute(
            "UPDATE delivery SET party = ?2 WHERE party = ?1",
            params![old, new],
        )?;
    }
    for (new, old) in changed("agent")? {
        // The last declaration counts.
        db.execute(
            "DELETE FROM agent WHERE party IN (?1, ?2) AND at < (SELECT max(at) FROM agent WHERE party IN (?1, ?2))",
            params![old, new],
        )?;
        db.execute(
            "UPDATE OR REPLACE agent SET party = ?2 WHERE party = ?1",
            params![old, new],
        )?;
    }
    Ok(())
}

/// A copy of the store as it is, beside it, on disk, for the owner alone. It replaces no other file.
fn back_up(path: &Path, version: u32) -> Result<PathBuf, StoreError> {
    let (folder, label) = (folder_of(path), label_of(path));
    let temporary = disk::temporary(folder, &label).map_err(on_disk)?;
    let copied = copy(path, &temporary).and_then(|()| {
        let sync = || File::open(&temporary)?.sync_all();
        sync().map_err(|e| on_disk(DiskError::new(FileAction::Write, &temporary, e)))
    });
    let named = copied.and_then(|()| {
        for number in 1.. {
            let suffix = match number {
                1 => String::new(),
                _ => format!(".{number}"),
            };
            let target = folder.join(format!("{label}.v{version}.backup{suffix}"));
            match disk::rename(&temporary, &target) {
                Ok(()) => return Ok(target),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(on_disk(e)),
            }
        }
        Err(fault::unavailable("there is no name left for a backup", ""))
    });
    if named.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    named
}

fn copy(path: &Path, target: &Path) -> Result<(), StoreError> {
    let Some(name) = target.to_str() else {
        return Err(fault::unavailable(
            format!(
                "`{}` can't be backed up before it is changed, because its path is not UTF-8",
                path.display()
            ),
            "move the store to another folder",
        ));
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    disk::write_new(target, "")
        .map_err(|e| on_disk(DiskError::new(FileAction::Write, target, e)))?;
    Connection::open_with_flags(path, flags)
        .and_then(|db| db.execute("VACUUM INTO ?1", params![name]).map(|_| ()))
        .map_err(|e| fault::at(path, &e))
}

pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The name of the file, which its lock and its temporary files have too.
pub(super) fn label_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

pub(super) fn on_disk(error: DiskError) -> StoreError {
    use crosstalk_protocol::store::StoreFault;
    let fault = match error.is_full() {
        true => StoreFault::Full,
        false => StoreFault::Unavailable,
    };
    let explanation = error.explanation();
    StoreError { fault, explanation }
}
