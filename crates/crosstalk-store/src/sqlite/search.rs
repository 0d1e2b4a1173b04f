//! The index of words, in a file of its own beside the store: `crosstalk.search.db` for `crosstalk.db`.
//!
//! ```text
//! store (committed) ──fill──> words, through      in batches, some time after the messages were indexed
//!   │                         removed             messages whose words are out while the store is changed
//!   └─ a change that erases: words out, noted, on disk ──> commit of the store ──> notes settled
//! ```
//!
//! Everything in the file follows from the store: a file that is missing, damaged or of another store is made again. Only
//! the removal of erased words can't be derived, so it follows a fixed order ([decision
//! 0038](../../../../docs/decisions/0038-words-in-a-file-of-their-own.md)):
//!
//! 1. The change holds the lock of the store until its commit. Before that, [`SearchIndex::remove`] takes the words out and
//!    notes the messages in `removed`; this is on disk before the store is.
//! 2. [`SearchIndex::fill`] reads the store after it has the lock of this file, and passes over messages that are noted. So it
//!    never adds a text that it read before an erasure.
//! 3. With the lock of the store, [`SearchIndex::settle`] adds noted messages that still have a text, and drops the notes. After
//!    a power cut the next fill does that.
//! 4. The file is made, or emptied because it is damaged, with the lock of the store alone: no note gets lost that a change still
//!    relies on.

use crosstalk_protocol::store::{Listing, Page, Record, Search, StoreError, searched_texts};
use rusqlite::config::DbConfig;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, Row, Transaction, TransactionBehavior, ffi, params,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fault::{self, SqlResult};
use super::relay::index;
use super::sql::{Sql as _, number, tuple, value};
use super::words::{Rewrite, Touched};
use super::{PATIENCE, SqliteStore, connect, make_file, query, room, schema, unchanging};

/// The form of the tables and of the words in them. A file of another version is made again.
const VERSION: i64 = 1;
/// How many messages a search adds at once before it looks for words, and how long it lets others write in between.
const FILL_ROWS: usize = 1000;
const FILL_PAUSE: Duration = Duration::from_millis(10);
/// How many bytes of text one batch takes, roughly.
const FILL_BYTES: usize = 8 << 20;
/// With so many messages, the index is not written anew as a whole when some are erased because of their age.
const MANY: i64 = 20_000;
/// How many pages of the index are written anew in one step.
const PAGES: i64 = 2000;
/// No message has this number.
const NO_MESSAGE: i64 = -1;

/// `last` is the latest message that was added, and when it came: if the store has another one in its place, it is an older
/// copy that went on differently. Whatever wants a beginning of a word gathers all words that begin so: indexes of beginnings
/// would take most of the time and room.
const TABLES: &str = "
DROP TABLE IF EXISTS search.words;
DROP TABLE IF EXISTS search.state;
DROP TABLE IF EXISTS search.removed;
CREATE TABLE search.state (
    version INTEGER NOT NULL,
    store INTEGER NOT NULL,
    through INTEGER NOT NULL,
    last INTEGER,
    last_at INTEGER
) STRICT;
CREATE TABLE search.removed (
    seq INTEGER PRIMARY KEY
) STRICT;
CREATE VIRTUAL TABLE search.words USING fts5 (
    body, context, sender, receiver, intent,
    content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO search.words (words, rank) VALUES ('secure-delete', 1);
INSERT INTO search.words (words, rank) VALUES ('hashsize', 8388608);
INSERT INTO search.words (words, rank) VALUES ('automerge', 8);
";

/// How far the index is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub(super) through: i64,
    pub(super) left: i64,
    /// Whether messages are noted as removed.
    pub(super) has_notes: bool,
}

/// A handle of the store that writes to the search file alone.
#[derive(Debug)]
pub(super) struct SearchIndex {
    /// The store is `main`, the file is `search`.
    pub(super) db: Connection,
    /// Where the store is; nowhere, if the index is in memory.
    store: Option<PathBuf>,
    file: Option<FileId>,
}

/// Where the search file of a store is.
pub(super) fn path_of(store: &Path) -> PathBuf {
    store.with_extension("search.db")
}

impl SearchIndex {
    /// Opens the search file of a store, which has to be there; it may be empty.
    pub(super) fn open(store: &Path, patience: Duration, cache_kb: i64) -> SqlResult<Self> {
        let path = path_of(store);
        let file = file_id(&path);
        let (db, _) = connect(store)?;
        db.busy_timeout(patience)?;
        db.execute("ATTACH ?1 AS search", params![bytes_of_name(&path)])?;
        db.query_row("PRAGMA search.journal_mode = WAL", [], |_| Ok(()))?;
        // A batch that is lost with the power is filled again. Removals are written more carefully.
        db.execute_batch(
            "PRAGMA search.synchronous = NORMAL; PRAGMA search.secure_delete = ON; \
             PRAGMA search.journal_size_limit = 16777216;",
        )?;
        for file in ["main", "search"] {
            db.pragma_update(Some(file), "cache_size", -cache_kb)?;
        }
        Ok(Self {
            db,
            store: Some(store.to_owned()),
            file,
        })
    }

    /// An index in memory, for a store whose search file can't be written.
    fn in_memory(store: &Path) -> SqlResult<Self> {
        let db = Connection::open_in_memory()?;
        db.busy_timeout(PATIENCE)?;
        db.execute_batch("PRAGMA temp_store = MEMORY; ATTACH ':memory:' AS search")?;
        let attach = |name: &[u8]| {
            db.execute("ATTACH ?1 AS store", params![name])?;
            index::progress(&db, index::INDEXED).map(|_| ())
        };
        if let Err(e) = attach(&bytes_of_name(store)) {
            let Some(uri) = unchanging(store, &e) else {
                return Err(e);
            };
            // It may be attached, and can't be read.
            let _ = db.execute_batch("DETACH store");
            attach(uri.as_bytes())?;
        }
        Ok(Self {
            db,
            store: None,
            file: None,
        })
    }

    /// Whether the file that this has open is still in its place.
    pub(super) fn is_in_place(&self) -> bool {
        let is_it = |store: &PathBuf| file_id(&path_of(store)) == self.file;
        self.store.as_ref().is_none_or(is_it)
    }

    /// Closes a file that is not in its place any more, and leaves the files alone that are there now.
    pub(super) fn leave(self) {
        // Else SQLite would remove the log of the new file, which it knows by its name alone.
        let _ = (self.db).set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }

    /// How far the index is.
    pub(super) fn filled(&self) -> SqlResult<Filled> {
        let state = self.db.unchecked_transaction()?;
        filled(&state)
    }

    /// Looks for messages. Each is one that the store has now. Through which message the index is filled.
    fn search(&self, search: &Search, page: Page) -> SqlResult<(Listing<Record>, i64)> {
        let state = self.db.unchecked_transaction()?;
        let through = filled(&state)?.through;
        let found = match through {
            0 => Listing {
                items: Vec::new(),
                more: false,
            },
            _ => query::search(&state, search, page)?,
        };
        Ok((found, through))
    }

    /// Adds messages, at most so many of them. The store is not locked.
    pub(super) fn fill(&self, limit: usize) -> SqlResult<Filled> {
        let now = self.filled()?;
        if now.left == 0 || limit == 0 {
            return Ok(now);
        }
        self.change(|db| {
            start_unless_current(db)?;
            let (after, indexed) = (through(db)?, index::progress(db, index::INDEXED)?);
            let mut find = db.prepare_cached(UNFILLED)?;
            let mut insert = db.prepare_cached(ADD)?;
            let mut rows = find.query(params![after, indexed, number(limit)])?;
            let (mut through, mut bytes, mut count) = (indexed, 0, 0);
            let mut last: Option<(i64, i64)> = None;
            while let Some(row) = rows.next()? {
                let seq: i64 = row.get("seq")?;
                // A message that can't be read has no words.
                if let Some(text) = about_message(text(row))? {
                    bytes += text.len();
                    let [body, context, sender, receiver, intent] = searched_texts(text);
                    insert.execute(params![seq, body, context, sender, receiver, intent])?;
                    last = Some((seq, row.get("at")?));
                }
                count += 1;
                if count == limit || bytes >= FILL_BYTES {
                    through = seq;
                    break;
                }
            }
            if let Some((seq, at)) = last {
                let sql = "UPDATE search.state SET last = ?1, last_at = ?2";
                db.run(sql, params![seq, at])?;
            }
            if let Some(store) = &self.store
                && !room::has_room_for_words(store, bytes)
            {
                return Err(full());
            }
            db.run("UPDATE search.state SET through = ?1", params![through])?;
            filled(db)
        })
    }

    /// Takes the words of messages out as they are in the store now, and notes the messages. This is on disk when it returns.
    /// Only while the caller has the lock of the store, and has not committed.
    pub(super) fn remove(&self, touched: &Touched) -> SqlResult<()> {
        self.set_synchronous("FULL")?;
        let removed = self.change(|db| {
            start_unless_current(db)?;
            start_if_ahead(db)?;
            let mut through = through(db)?;
            for seq in &touched.seqs {
                let sql = "INSERT OR IGNORE INTO search.removed (seq) VALUES (?1)";
                let is_noted = db.run(sql, params![seq])? == 0;
                if *seq > through || is_noted {
                    continue;
                }
                match about_message(searched(db, *seq))? {
                    Some(Some(words)) => take_out(db, *seq, words)?,
                    Some(None) => {}
                    // Its words are unknown by now, so all words are removed.
                    None => {
                        start(db)?;
                        through = 0;
                    }
                }
            }
            match touched.rewrite {
                None => Ok(()),
                Some(Rewrite::All) => rewrite(db, true),
                Some(Rewrite::Some) => rewrite(db, is_small(db)?),
            }
        });
        self.set_synchronous("NORMAL")?;
        removed
    }

    /// Begins anew if the file has words of messages that are not indexed: a power cut undid that, and such a message can be
    /// erased without a look at its words. This is on disk when it returns. Only while the caller has the lock of the store.
    fn start_if_ahead(&self) -> SqlResult<()> {
        self.set_synchronous("FULL")?;
        let started = self.change(|db| {
            start_unless_current(db)?;
            start_if_ahead(db)
        });
        self.set_synchronous("NORMAL")?;
        started
    }

    /// Adds messages that are noted and still have a text, and drops the notes. Only while the caller has the lock of the store,
    /// and has changed nothing.
    pub(super) fn settle(&self) -> SqlResult<()> {
        if !self.filled()?.has_notes {
            return Ok(());
        }
        self.change(|db| {
            start_unless_current(db)?;
            let through = through(db)?;
            for seq in db.all("SELECT seq FROM search.removed", [], value::<i64>)? {
                if seq <= through
                    && let Some(Some(words)) = about_message(searched(db, seq))?
                {
                    let [body, context, sender, receiver, intent] = words;
                    db.run(ADD, params![seq, body, context, sender, receiver, intent])?;
                }
            }
            db.run("DELETE FROM search.removed", [])?;
            Ok(())
        })
    }

    /// Begins to write the whole index anew, as [`rewrite`] does, in steps.
    pub(super) fn begin_rewrite(&self) -> SqlResult<()> {
        self.change(|db| {
            start_unless_current(db)?;
            rewrite(db, false)
        })
    }

    /// Writes some more pages anew. Whether there are no more.
    pub(super) fn go_on_rewriting(&self) -> SqlResult<bool> {
        self.change(|db| {
            start_unless_current(db)?;
            let before = db.total_changes();
            let sql = "INSERT INTO search.words (words, rank) VALUES ('merge', ?1)";
            db.run(sql, params![PAGES])?;
            Ok(db.total_changes().saturating_sub(before) < 2)
        })
    }

    /// Moves everything from the log into the file and empties the log. False if somebody still reads an older state.
    pub(super) fn empty_log(&self) -> SqlResult<bool> {
        let sql = "PRAGMA search.wal_checkpoint(TRUNCATE)";
        let busy: i64 = self.db.query_row(sql, [], value)?;
        Ok(busy == 0)
    }

    fn set_synchronous(&self, level: &str) -> SqlResult<()> {
        (self.db).pragma_update(Some("search"), "synchronous", level)
    }

    /// Runs a change of the search file in one transaction. It sees the store as it is once the file is locked.
    fn change<T>(&self, change: impl FnOnce(&Connection) -> SqlResult<T>) -> SqlResult<T> {
        let state = self.db.unchecked_transaction()?;
        // Takes the lock of this file, and not the one of the store, as `BEGIN IMMEDIATE` would.
        let lock = (Some("search"), "application_id", schema::APPLICATION);
        state.pragma_update(lock.0, lock.1, lock.2)?;
        let done = change(&state)?;
        state.commit()?;
        Ok(done)
    }
}

impl SqliteStore {
    /// Adds the words of messages to the search file, at most so many messages.
    pub(super) fn fill_words(&self, limit: usize) -> Result<Filled, StoreError> {
        let filled = self.with_search(StoreLock::Free, |index| index.fill(limit))?;
        if filled.left == 0 && filled.has_notes {
            // A change was not finished, or another process is about to.
            self.settle_words();
        }
        Ok(filled)
    }

    /// Searches in what the search file has. Through which message that is.
    pub(super) fn search_words(
        &self,
        search: &Search,
        page: Page,
    ) -> Result<(Listing<Record>, i64), StoreError> {
        self.with_search(StoreLock::Free, |index| index.search(search, page))
    }

    /// Searches in all messages that are indexed. Through which message that is.
    pub(super) fn search_all(
        &self,
        search: &Search,
        page: Page,
    ) -> Result<(Listing<Record>, i64), StoreError> {
        let filled = self
            .fill_all_words()
            .and_then(|()| self.search_words(search, page));
        if filled.is_ok() {
            return filled;
        }
        // The file can't be written: the folder is closed or the disk full, or another process has it.
        let look = || {
            let index = SearchIndex::in_memory(&self.path)?;
            while index.fill(FILL_ROWS)?.left > 0 {}
            index.search(search, page)
        };
        look().map_err(|e| fault::at(&self.path, &e))
    }

    /// Adds the words of all messages that are indexed now.
    pub(super) fn fill_all_words(&self) -> Result<(), StoreError> {
        let first = self.fill_words(FILL_ROWS)?;
        let (last, mut now) = (first.through.saturating_add(first.left), first);
        while now.through < last && now.left > 0 {
            std::thread::sleep(FILL_PAUSE);
            now = self.fill_words(FILL_ROWS)?;
        }
        Ok(())
    }

    /// Takes the words of messages out, before the change is committed that touches them. Only inside that change.
    pub(super) fn remove_words(&self, touched: &Touched) -> Result<(), StoreError> {
        // It can't be made, and filled, before the change is committed.
        if !path_of(&self.path).exists() {
            return Ok(());
        }
        self.with_search(StoreLock::Held, |index| index.remove(touched))
    }

    /// Makes sure that the search file has words of indexed messages alone. For a relay that starts.
    pub(super) fn check_search_position(&self) -> Result<(), StoreError> {
        if !path_of(&self.path).exists() {
            return Ok(());
        }
        let lock = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate);
        let _lock = lock.map_err(|e| fault::at(&self.path, &e))?;
        self.with_search(StoreLock::Held, |index| {
            index.start_if_ahead()?;
            index.empty_log().map(drop)
        })
    }

    /// Drops the notes about removed messages. If it fails, the next fill does it.
    pub(super) fn settle_words(&self) {
        if !path_of(&self.path).exists() {
            return;
        }
        let lock = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate);
        if let Ok(_lock) = lock {
            let _ = self.with_search(StoreLock::Held, SearchIndex::settle);
        }
    }

    /// Does something with the search file, if there is one.
    pub(super) fn with_search_file<T>(
        &self,
        ask: impl Fn(&SearchIndex) -> SqlResult<T>,
    ) -> Result<Option<T>, StoreError> {
        match path_of(&self.path).exists() {
            true => self.with_search(StoreLock::Free, ask).map(Some),
            false => Ok(None),
        }
    }

    /// Does something with the search file. One that is missing is made; one that is damaged is emptied, and it is done again.
    fn with_search<T>(
        &self,
        lock: StoreLock,
        ask: impl Fn(&SearchIndex) -> SqlResult<T>,
    ) -> Result<T, StoreError> {
        let mut open = self.search.borrow_mut();
        if let Some(index) = open.take_if(|index| !index.is_in_place()) {
            index.leave();
        }
        let path = path_of(&self.path);
        let failed = |e: rusqlite::Error| match e.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) | None => fault::at(&self.path, &e),
            Some(_) => fault::at(&path, &e),
        };
        if !path.exists() {
            let _lock = self.lock_unless(lock).map_err(failed)?;
            make_file(&path, &self.path)?;
        }
        let attempt = |open: &mut Option<SearchIndex>| {
            let index = match open.take() {
                Some(index) => index,
                None => SearchIndex::open(&self.path, self.patience, self.search_cache_kb)?,
            };
            ask(open.insert(index))
        };
        let mut done = attempt(&mut open);
        if done.as_ref().is_err_and(is_damage) {
            *open = None;
            let _lock = self.lock_unless(lock).map_err(failed)?;
            reset(&path, self.patience).map_err(failed)?;
            done = attempt(&mut open);
        }
        done.map_err(failed)
    }

    /// Takes the lock of the store, unless the caller has it.
    fn lock_unless(&self, lock: StoreLock) -> SqlResult<Option<Transaction<'_>>> {
        match lock {
            StoreLock::Held => Ok(None),
            StoreLock::Free => {
                Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate).map(Some)
            }
        }
    }
}

/// Whether the caller has the lock of the store.
#[derive(Clone, Copy, Debug)]
enum StoreLock {
    Held,
    Free,
}

/// Empties a file that SQLite can't use, whoever else has it open.
fn reset(path: &Path, patience: Duration) -> SqlResult<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(patience)?;
    // Reading the schema keeps the log; it may be unreadable.
    let _ = db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = db.execute_batch("VACUUM");
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    emptied?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Whether an error is about what is in the file, so that making it again may help.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(e, _) => !matches!(
            e.code,
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::CannotOpen
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::OperationInterrupted
        ),
        _ => true,
    }
}

/// Whether the file belongs to this state of this store.
pub(super) fn is_current(db: &Connection) -> SqlResult<bool> {
    let sql =
        "SELECT count(*) FROM search.sqlite_schema WHERE name IN ('state', 'removed', 'words')";
    if db.one(sql, [], value::<i64>)? < 3 {
        return Ok(false);
    }
    let sql = format!(
        "SELECT 1 FROM search.state CROSS JOIN identity ON identity.store = state.store WHERE version = ?1 \
         AND through <= {} AND NOT EXISTS (SELECT 1 FROM intake WHERE seq = state.last AND at <> state.last_at)",
        index::LAST_GIVEN
    );
    db.has(&sql, params![VERSION])
}

fn filled(db: &Connection) -> SqlResult<Filled> {
    let indexed = index::progress(db, index::INDEXED)?;
    if !is_current(db)? {
        return Ok(Filled {
            through: 0,
            left: indexed,
            has_notes: false,
        });
    }
    let through = through(db)?;
    Ok(Filled {
        through,
        left: indexed.saturating_sub(through).max(0),
        has_notes: db.has("SELECT 1 FROM search.removed", [])?,
    })
}

fn through(db: &Connection) -> SqlResult<i64> {
    db.one("SELECT through FROM search.state", [], value)
}

fn start_unless_current(db: &Connection) -> SqlResult<()> {
    match is_current(db)? {
        true => Ok(()),
        false => start(db),
    }
}

/// Begins anew if the file has words of messages that are not indexed. Only with the lock of the file.
fn start_if_ahead(db: &Connection) -> SqlResult<()> {
    match through(db)? > index::progress(db, index::INDEXED)? {
        true => start(db),
        false => Ok(()),
    }
}

/// Begins the file anew, for the store as it is. Notes of removed messages are kept: their change may not be committed yet.
fn start(db: &Connection) -> SqlResult<()> {
    let sql = "SELECT count(*) FROM search.sqlite_schema WHERE name = 'removed'";
    let noted = match db.one(sql, [], value::<i64>)? {
        0 => Vec::new(),
        _ => db.all("SELECT seq FROM search.removed", [], value::<i64>)?,
    };
    db.execute_batch(TABLES)?;
    let sql =
        "INSERT INTO search.state (version, store, through) SELECT ?1, store, 0 FROM identity";
    db.run(sql, params![VERSION])?;
    for seq in noted {
        db.run("INSERT INTO search.removed (seq) VALUES (?1)", params![seq])?;
    }
    Ok(())
}

/// The messages of the store that are searched for, and not noted as removed: they are indexed and have a text.
pub(super) const UNFILLED: &str = "SELECT seq, at, text FROM intake i WHERE seq > ?1 AND seq <= ?2 AND text <> '' \
     AND EXISTS (SELECT 1 FROM message m WHERE m.seq = i.seq) \
     AND NOT EXISTS (SELECT 1 FROM search.removed r WHERE r.seq = i.seq) ORDER BY seq LIMIT ?3";

/// The text of a row of [`UNFILLED`].
pub(super) fn text<'r>(row: &'r Row<'_>) -> SqlResult<&'r str> {
    Ok(row.get_ref("text")?.as_str()?)
}

/// The words of a message that is searched for.
fn searched(db: &Connection, seq: i64) -> SqlResult<Option<[String; 5]>> {
    let sql = "SELECT text FROM intake i WHERE seq = ?1 AND text <> '' AND EXISTS (SELECT 1 FROM \
        message m WHERE m.seq = i.seq)";
    db.find(sql, params![seq], |row| Ok(searched_texts(text(row)?)))
}

/// Adds the words of a message.
const ADD: &str = "INSERT INTO search.words (rowid, body, context, sender, receiver, intent) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// The index has no content of its own: it has to be told what to take out.
fn take_out(db: &Connection, seq: i64, words: [String; 5]) -> SqlResult<()> {
    let [body, context, sender, receiver, intent] = words;
    let sql = "INSERT INTO search.words (words, rowid, body, context, sender, receiver, intent) \
        VALUES ('delete', ?1, ?2, ?3, ?4, ?5, ?6)";
    let given = params![seq, body, context, sender, receiver, intent];
    db.run(sql, given).map(|_| ())
}

/// Writes pages of the index anew: all of them, or the first of them. Words that begin a page are its keys, and outlive the
/// message that they were written for.
fn rewrite(db: &Connection, whole: bool) -> SqlResult<()> {
    // FTS5 leaves an index alone that is in one part. So there is a second one.
    let sql = "INSERT INTO search.words (rowid, body) VALUES (?1, 'a')";
    db.run(sql, params![NO_MESSAGE])?;
    match whole {
        true => db.run("INSERT INTO search.words (words) VALUES ('optimize')", [])?,
        false => {
            let sql = "INSERT INTO search.words (words, rank) VALUES ('merge', ?1)";
            db.run(sql, params![-PAGES])?
        }
    };
    let sql = "INSERT INTO search.words (words, rowid, body) VALUES ('delete', ?1, 'a')";
    db.run(sql, params![NO_MESSAGE]).map(|_| ())
}

fn is_small(db: &Connection) -> SqlResult<bool> {
    let sql =
        "SELECT coalesce(min(seq), 0), (SELECT coalesce(max(seq), 0) FROM message) FROM message";
    let (first, last): (i64, i64) = db.one(sql, [], tuple)?;
    Ok(last - first < MANY)
}

/// The value read from a message; nothing if the message can't be read.
fn about_message<T>(read: SqlResult<T>) -> SqlResult<Option<T>> {
    match read {
        Err(e) if fault::is_about_message(&e) => Ok(None),
        read => read.map(Some),
    }
}

fn full() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), None)
}

/// The bytes of a path, as SQLite reads them.
#[cfg(unix)]
fn bytes_of_name(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
fn bytes_of_name(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

/// What a file is, whatever its name.
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    let file = path.metadata().ok()?;
    Some((file.dev(), file.ino()))
}

/// Files that are open can't be replaced there.
#[cfg(not(unix))]
fn file_id(path: &Path) -> Option<FileId> {
    path.exists().then_some((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::words;
    use crosstalk_envelope::Timestamp;
    use crosstalk_envelope::reply::ReceivedIds;
    use crosstalk_protocol::VerdictWord;
    use crosstalk_protocol::store::{Arrival, Side, StoredMessage, Way};

    fn arrival(number: i64) -> Arrival {
        let lines = format!("thread: T1\nmessage: M{number}\ncontext: c\nintent: REQUEST\n");
        let text = format!(
            "[[KALLE→CLAUDE v1]]\nuser: kalle\n{lines}body: |\n  plums{number} zanzibarqux\nsig: none\n[[END]]\n"
        );
        Arrival::recall(StoredMessage {
            text,
            received: None,
            truncated: false,
            verdict: VerdictWord::Unsigned,
            pkid: None,
            side: Side::ToMe,
            way: Way::Pasted,
            at: Timestamp::from_millis(number),
            message: Some(format!("M{number}")),
            answers: None,
            generated: ReceivedIds {
                thread: format!("thread {number}"),
                message: format!("spare {number}"),
            },
        })
    }

    fn store(folder: &Path) -> SqliteStore {
        let mut store = SqliteStore::open(folder.join("crosstalk.db")).unwrap();
        store.accept(&[1, 2, 3].map(arrival)).unwrap();
        store
    }

    fn found(store: &SqliteStore, word: &str) -> usize {
        let page = Page::first(9);
        let found = store.search_words(&Search::parse(word).unwrap(), page);
        found.unwrap().0.items.len()
    }

    fn traces(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let has = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap();
            bytes.windows(6).any(|w| w == b"plums2")
        };
        entries.map(|e| e.path()).filter(has).collect()
    }

    /// A change that is about to be committed, and a fill that comes in between: on either side of the words, and before and
    /// after the message was filled.
    #[test]
    fn fill_between_the_two_commits_adds_nothing_that_is_erased() {
        for filled_before in [0, 1, 2, 3] {
            for is_committed in [true, false] {
                let folder = tempfile::tempdir().unwrap();
                let mut store = store(folder.path());
                let other = SqliteStore::open(folder.path().join("crosstalk.db")).unwrap();
                let filled = other.fill_words(filled_before).unwrap();
                assert_eq!(filled.through, number(filled_before));
                let change = Transaction::new_unchecked(&store.db, TransactionBehavior::Immediate);
                let change = change.unwrap();
                assert!(super::super::forget::forget_message(&change, "M2").unwrap());
                let touched = words::take_touched(&change).unwrap().unwrap();
                assert_eq!(touched.seqs, [2]);
                store.remove_words(&touched).unwrap();
                assert_eq!(found(&other, "plums2"), 0);
                let filled = other.with_search(StoreLock::Free, |index| index.fill(9));
                let filled = filled.unwrap();
                assert_eq!(
                    (filled.through, filled.left, filled.has_notes),
                    (3, 0, true)
                );
                assert_eq!(found(&other, "zanzibarqux"), 2);
                assert_eq!(store.check_words().unwrap(), [""; 0]);
                match is_committed {
                    true => change.commit().unwrap(),
                    false => drop(change),
                }
                // In the meantime it is as good as erased.
                assert_eq!(found(&other, "zanzibarqux"), 2);
                other.fill_words(9).unwrap();
                let left = usize::from(!is_committed);
                assert_eq!(found(&other, "zanzibarqux"), 2 + left);
                assert_eq!(found(&other, "plums2"), left);
                assert_eq!(store.check().unwrap(), [""; 0]);
                store.forget_message("M2").unwrap();
                drop(other);
                assert_eq!(traces(folder.path()), [""; 0].map(PathBuf::from));
                assert_eq!(store.check().unwrap(), [""; 0]);
            }
        }
    }

    /// A relay has several handles: what each of them keeps in memory is bounded.
    #[test]
    fn memory_of_a_search_handle_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(folder.path());
        store.search_cache_kb = 1000;
        store.fill_words(1).unwrap();
        let index = store.search.take().unwrap();
        for file in ["main", "search"] {
            let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            let size = index.db.pragma_query_value(Some(file), "cache_size", read);
            assert_eq!(size.unwrap(), -1000, "{file}");
        }
    }

    /// A fill that waits for the lock of the search file sees an erasure that is made meanwhile.
    #[test]
    fn fill_reads_the_store_after_it_has_the_lock_of_the_search_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(folder.path());
        store.fill_words(1).unwrap();
        let path = path_of(store.path());
        let mut index = SearchIndex::open(store.path(), PATIENCE, 1000).unwrap();
        let other = Connection::open(path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let waited = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let waits = std::sync::Arc::clone(&waited);
        let erase = move |_| {
            if waits.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
                other.execute_batch("ROLLBACK").unwrap();
                assert!(store.forget_message("M2").unwrap());
            }
            true
        };
        index.db.busy_handler(Some(erase)).unwrap();
        let filled = index.fill(9).unwrap();
        assert_eq!((filled.through, filled.left), (3, 0));
        assert_eq!(waited.load(std::sync::atomic::Ordering::Relaxed), 1);
        let store = SqliteStore::open(folder.path().join("crosstalk.db")).unwrap();
        assert_eq!(found(&store, "zanzibarqux"), 2);
        assert_eq!(store.check().unwrap(), [""; 0]);
        drop((index, store));
        assert_eq!(traces(folder.path()), [""; 0].map(PathBuf::from));
    }

    /// A message whose text becomes another one has the words of that one, and no others.
    #[test]
    fn words_of_a_replaced_text_are_gone() {
        for filled_before in [0, 3] {
            let folder = tempfile::tempdir().unwrap();
            let mut store = store(folder.path());
            store.fill_words(filled_before).unwrap();
            let replace = |db: &Connection| {
                db.run(
                    "UPDATE intake SET text = replace(text, 'plums2', 'pears2')",
                    [],
                )?;
                words::touch(db, 2)
            };
            store.write(replace).unwrap();
            store.fill_words(9).unwrap();
            assert_eq!((found(&store, "plums2"), found(&store, "pears2")), (0, 1));
            assert_eq!(store.check().unwrap(), [""; 0]);
            store.forget_message("none").unwrap();
            assert_eq!(traces(folder.path()), [""; 0].map(PathBuf::from));
        }
    }

    /// Whoever empties a damaged file waits for a change that has noted something in it.
    #[test]
    fn damaged_file_is_not_emptied_in_the_middle_of_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        store.fill_words(9).unwrap();
        let mut other = SqliteStore::open(folder.path().join("crosstalk.db")).unwrap();
        other.set_patience(Duration::from_millis(20)).unwrap();
        let change = Transaction::new_unchecked(&store.db, TransactionBehavior::Immediate).unwrap();
        let fails = |_: &SearchIndex| -> SqlResult<()> {
            let damage = ffi::Error::new(ffi::SQLITE_CORRUPT);
            Err(rusqlite::Error::SqliteFailure(damage, None))
        };
        let fault = other.with_search(StoreLock::Free, fails).unwrap_err();
        assert_eq!(fault.fault, crosstalk_protocol::store::StoreFault::Busy);
        assert_eq!(found(&store, "plums2"), 1);
        drop(change);
        other.with_search(StoreLock::Free, fails).unwrap_err();
        assert_eq!(found(&store, "plums2"), 0);
        store.fill_words(9).unwrap();
        assert_eq!(found(&store, "plums2"), 1);
    }
}
