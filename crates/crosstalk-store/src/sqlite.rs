//! The embedded store: one SQLite file, which several processes may use at once.
//!
//! ```text
//! intake            accepted messages: never derived; a better verdict or a new thread may change a row
//!   ├─ message      the fields of the texts, in columns; who has to act next
//!   ├─ answer       the parties that answered a message
//!   ├─ thread       counts and dates
//!   ├─ party        the parties of a thread
//!   └─ words        the index of words (FTS5), in a file beside it ([`search`])
//! delivery, …       the way of a message to each recipient ([`relay`])
//! ```
//!
//! The store can derive everything below the intake again ([`SqliteStore::rebuild`]); a newer version does that when it
//! migrates a file.

mod accept;
mod copy;
mod derive;
mod fault;
mod forget;
mod indexed;
mod ledger;
mod log;
mod migrate;
#[cfg(test)]
mod plan;
mod quarantine;
mod query;
mod reference;
mod relay;
mod relay_store;
mod relocate;
mod room;
mod schema;
mod search;
mod sql;
mod transfer;
mod words;

pub use migrate::StoreOpening;
pub use relay::{Owned, SearchProgress};
pub use relay_store::SqliteRelay;
pub use transfer::COPY_FOLDER;
pub(crate) use transfer::FileSide;

use crosstalk_protocol::relay::Quarantined;
use crosstalk_protocol::store::{
    Arrival, AskedMessage, Listing, Moved, Page, Record, ReferenceMatch, Search, StoreError,
    StoreFault, StoreOutcome, Thread, ThreadFilter,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::{self, Lock};
use crate::fault::{DiskError, FileAction};
use fault::SqlResult;
use migrate::{FileState, folder_of, label_of, on_disk};
use search::SearchIndex;
use sql::Sql as _;

/// How long to wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(30);
/// The log is synced before its pages are moved, and not with every commit.
const SYNCHRONOUS_NORMAL: u8 = 1;
/// How much of the file a handle keeps in memory, unless it is one of several of a relay.
const CACHE_KB: i64 = 16_000;
/// Every statement stays prepared.
const STATEMENTS: usize = 192;

/// Messages in a SQLite file.
///
/// ```
/// use crosstalk_protocol::store::{Page, ThreadFilter};
/// use crosstalk_store::{Home, SqliteStore};
///
/// # let folder = tempfile::tempdir()?;
/// # let home = Home::at(folder.path());
/// assert!(SqliteStore::open_existing(home.store())?.is_none());
/// let store = SqliteStore::open(home.store())?;
/// assert!(store.threads(&ThreadFilter::default(), Page::first(10))?.items.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    db: Connection,
    path: PathBuf,
    opened: StoreOpening,
    /// Messages that wait for their index, as they were accepted.
    accepted: relay::index::AcceptedMessages,
    unindexed: relay::unindexed::UnindexedMessages,
    /// How a commit is made durable: the number of `PRAGMA synchronous`.
    synchronous: u8,
    patience: Duration,
    /// How much of each file the handle of the search index keeps in memory.
    search_cache_kb: i64,
    /// Opened when it is needed.
    search: RefCell<Option<SearchIndex>>,
}

impl SqliteStore {
    /// Opens a store, or makes one: for the owner alone, as the folder is if that has to be made, too. An older store is
    /// brought to the version of this program, with a backup beside it.
    ///
    /// # Errors
    /// If it can't be opened or made, or is none that this program knows.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        if !path.exists() {
            make_file(&path, &path)?;
        }
        Self::open_file(path)
    }

    /// Opens a store if there is one. Nothing is made; where nothing can be written, it can be read.
    ///
    /// # Errors
    /// If it can't be opened, or is none that this program knows.
    pub fn open_existing(path: impl Into<PathBuf>) -> Result<Option<Self>, StoreError> {
        let path = path.into();
        match path.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) => Self::open_file(path).map(Some),
            Err(e) => Err(fault::unavailable(
                format!("`{}` can't be looked for: {e}", path.display()),
                "",
            )),
        }
    }

    /// Whether there is a store of an older version, which opening it would bring to the version of this program. Nothing is
    /// changed.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn is_older(path: &Path) -> Result<bool, StoreError> {
        if !path.is_file() {
            return Ok(false);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let state = Connection::open_with_flags(path, flags).and_then(|db| migrate::state(&db));
        match state.map_err(|e| fault::at(path, &e))? {
            FileState::Version(version) => Ok(version < migrate::CURRENT),
            FileState::Empty | FileState::Foreign => Ok(false),
        }
    }

    fn open_file(path: PathBuf) -> Result<Self, StoreError> {
        if !path.is_file() {
            let what = format!("`{}` is not a regular file", path.display());
            return Err(fault::unavailable(what, "move it away"));
        }
        let (mut db, state) = match connect(&path) {
            Ok(connected) => connected,
            Err(e) => connect_unchanging(&path, e).map_err(|e| fault::at(&path, &e))?,
        };
        let opened = match state {
            FileState::Version(migrate::CURRENT) => StoreOpening::default(),
            FileState::Empty => migrate::migrate(&path, &mut db)?,
            FileState::Version(version) if version < migrate::CURRENT => {
                migrate::migrate(&path, &mut db)?
            }
            FileState::Version(version) => {
                leave_alone(&db, &path);
                return Err(fault::newer(&path, version, migrate::CURRENT));
            }
            FileState::Foreign => {
                leave_alone(&db, &path);
                return Err(fault::foreign(&path));
            }
        };
        let synchronous = db.pragma_query_value(None, "synchronous", |row| row.get(0));
        Ok(Self {
            synchronous: synchronous.map_err(|e| fault::at(&path, &e))?,
            accepted: relay::index::AcceptedMessages::default(),
            unindexed: relay::unindexed::UnindexedMessages::default(),
            db,
            path,
            opened,
            patience: PATIENCE,
            search_cache_kb: CACHE_KB,
            search: RefCell::default(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The migration that opening it made, if any.
    pub fn opened(&self) -> &StoreOpening {
        &self.opened
    }

    /// The copies that were made before it was brought to newer versions. Forgotten messages stay in them.
    pub fn backups(&self) -> Vec<PathBuf> {
        let start = format!("{}.v", label_of(&self.path));
        let entries = std::fs::read_dir(folder_of(&self.path));
        let entries = entries.into_iter().flatten().flatten();
        let mut backups: Vec<PathBuf> = entries
            .filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with(&start) && name.contains(".backup")
            })
            .map(|entry| entry.path())
            .collect();
        backups.sort();
        backups
    }

    /// How long to wait for another process that writes; 30 seconds unless something else is said.
    pub fn set_patience(&mut self, patience: Duration) -> Result<(), StoreError> {
        self.patience = patience;
        let search = self.search.get_mut().as_ref().map(|index| &index.db);
        let mut handles = search.into_iter().chain([&self.db]);
        let set = handles.try_for_each(|db| db.busy_timeout(patience));
        set.map_err(|e| fault::at(&self.path, &e))
    }

    /// Looks at every page, row and index, and whether what a relay keeps fits together: what is wrong, one sentence each.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        let mut found = self.read(|db| {
            let mut check = db.prepare("PRAGMA integrity_check")?;
            let rows = check.query_map([], |row| row.get(0))?;
            let mut found = rows.collect::<SqlResult<Vec<String>>>()?;
            found.retain(|line| line != "ok");
            // A broken table is not queried.
            if found.is_empty() {
                found = relay::check::check(db)?;
                found.extend(log::check::check(db)?);
            }
            Ok(found)
        })?;
        if found.is_empty() {
            found = self.check_words()?;
        }
        Ok(found)
    }

    /// Derives threads, waits and the index of words from what came again.
    pub fn rebuild(&mut self) -> Result<(), StoreError> {
        self.write(|db| {
            relay::index::index_rest(db)?;
            derive::rebuild(db)?;
            words::start_again(db)?;
            relay::index::retry_quarantined(db)
        })?;
        self.fill_all_words()
    }

    /// The messages that could not be indexed, in the order in which they came.
    pub fn quarantine(&self) -> Result<Vec<Quarantined>, StoreError> {
        self.read(quarantine::list)
    }

    /// Indexes messages again that could not be indexed. How many are indexed now.
    pub(crate) fn retry_quarantine(&mut self) -> Result<u64, StoreError> {
        self.write(|db| {
            let before = quarantine::count(db)?;
            relay::index::retry_quarantined(db)?;
            Ok(before.saturating_sub(quarantine::count(db)?))
        })
    }

    /// Reads one state of the store, whatever other processes write meanwhile.
    fn read<T>(&self, ask: impl FnOnce(&Connection) -> SqlResult<T>) -> Result<T, StoreError> {
        let look = || {
            let state = self.db.unchecked_transaction()?;
            ask(&state)
        };
        look().map_err(|e| fault::at(&self.path, &e))
    }

    /// Rejects a change that adds so many bytes of text, or what is derived from them, if the disk has no room for it.
    fn need_room(&self, bytes: usize) -> Result<(), StoreError> {
        let bytes = u64::try_from(bytes.saturating_add(room::CHANGE_BYTES)).unwrap_or(u64::MAX);
        match room::make_room(&self.db, &self.path, bytes) {
            Ok(true) => Ok(()),
            Ok(false) => Err(fault::full(&self.path)),
            Err(e) => Err(fault::at(&self.path, &e)),
        }
    }

    /// Runs a change in one transaction that a power cut may undo: it derives what can be derived again. The log is written in
    /// order, so that nothing which comes after it is durable without it.
    fn derive<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> SqlResult<T>,
    ) -> Result<T, StoreError> {
        self.set_synchronous(self.synchronous.min(SYNCHRONOUS_NORMAL))?;
        let answer = self.write(change);
        self.set_synchronous(self.synchronous)?;
        answer
    }

    fn set_synchronous(&self, level: u8) -> Result<(), StoreError> {
        let set = self.db.pragma_update(None, "synchronous", level);
        set.map_err(|e| fault::at(&self.path, &e))
    }

    /// Runs a change in one transaction.
    fn write<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> SqlResult<T>,
    ) -> Result<T, StoreError> {
        let fault = |e: rusqlite::Error| fault::at(&self.path, &e);
        let state = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate);
        let state = state.map_err(fault)?;
        // A newer program may have come since this one opened it.
        let version = migrate::state(&state).map_err(fault)?;
        if let FileState::Version(version) = version
            && version > migrate::CURRENT
        {
            return Err(fault::newer(&self.path, version, migrate::CURRENT));
        }
        let answer = change(&state).map_err(fault)?;
        let Some(touched) = words::take_touched(&state).map_err(fault)? else {
            state.commit().map_err(fault)?;
            return Ok(answer);
        };
        // Erased words are out of the other file, on disk, before this one says that they are erased.
        self.remove_words(&touched)?;
        die_at("words");
        let committed = state.commit().map_err(fault);
        die_at("store");
        self.settle_words();
        committed.map(|()| answer)
    }
}

/// Ends the process in the middle of an erasure, where a test wants to see what is left then. Not in release builds.
fn die_at(_place: &str) {
    #[cfg(debug_assertions)]
    if std::env::var_os("CROSSTALK_TEST_ERASURE").is_some_and(|place| place == _place) {
        std::process::abort();
    }
}

/// Makes an empty file of a store for the owner alone, in its place at once.
fn make_file(path: &Path, store: &Path) -> Result<(), StoreError> {
    let (folder, label) = (folder_of(store), label_of(store));
    let _lock = Lock::wait(folder, &label).map_err(on_disk)?;
    if path.exists() {
        return Ok(());
    }
    // Not opened under its own name: to close a file drops the locks that this process has on it.
    let temporary = disk::temporary(folder, &label).map_err(on_disk)?;
    disk::write_new(&temporary, "")
        .map_err(|e| on_disk(DiskError::new(FileAction::Write, path, e)))?;
    disk::rename(&temporary, path).map_err(on_disk)
}

/// Opens the file, and looks what it is.
fn connect(path: &Path) -> SqlResult<(Connection, FileState)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    set_up(Connection::open_with_flags(path, flags)?)
}

/// None of these reads the file: they are about the connection. SQLite spills to memory, so that no text ends up
/// in other folders.
fn set_up(db: Connection) -> SqlResult<(Connection, FileState)> {
    db.busy_timeout(PATIENCE)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Plans don't depend on values: else statements are prepared again for every one of them.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; \
         PRAGMA journal_size_limit = 16777216;",
    )?;
    db.pragma_update(None, "cache_size", -CACHE_KB)?;
    db.execute_batch(words::TOUCHED)?;
    // On macOS, fsync leaves data in the cache of the drive; elsewhere these change nothing.
    db.execute_batch("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")?;
    // Tests have to see that they notice a store which is not safe. Not in release builds.
    #[cfg(debug_assertions)]
    if std::env::var_os("CROSSTALK_TEST_DURABILITY").is_some_and(|fault| fault == "off") {
        db.execute_batch("PRAGMA synchronous = OFF")?;
    }
    let state = migrate::state(&db)?;
    Ok((db, state))
}

fn connect_unchanging(path: &Path, fault: rusqlite::Error) -> SqlResult<(Connection, FileState)> {
    let Some(uri) = unchanging(path, &fault) else {
        return Err(fault);
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    set_up(Connection::open_with_flags(uri, flags)?)
}

/// Where the folder can't be written, SQLite can't make the files beside a store that it needs for several processes. If
/// nothing waits in the log, the file alone is the whole store, under this name.
fn unchanging(path: &Path, fault: &rusqlite::Error) -> Option<String> {
    use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    let code = fault.sqlite_error_code();
    let is_closed = matches!(code, Some(CannotOpen | ReadOnly | PermissionDenied));
    let log = log_of(path).metadata().map_or(0, |log| log.len());
    uri(path).filter(|_| is_closed && log == 0)
}

/// The characters that a path in a URI encodes.
const NOT_IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

fn uri(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let path = utf8_percent_encode(path.to_str()?, NOT_IN_PATH);
    Some(format!("file:{path}?immutable=1"))
}

fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Closes a file of another program as it was found, with its log.
fn leave_alone(db: &Connection, path: &Path) {
    if log_of(path).metadata().is_ok_and(|log| log.len() > 0) {
        // If this fails, what was committed by others is moved into their file, as they would do themselves.
        let _ = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
}

impl SqliteStore {
    /// Keeps messages: all of them or, on an error, none. One outcome for each, in their order. When this returns, they
    /// are on disk. Within a batch, later messages see earlier ones.
    pub fn accept(&mut self, batch: &[Arrival]) -> Result<Vec<StoreOutcome>, StoreError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let texts: usize = batch.iter().map(|a| a.text.len()).sum();
        self.need_room(texts.saturating_mul(2))?;
        self.write(|db| accept::accept_all(db, batch))
    }

    /// What an id or the beginning of one means. A thread comes before its own messages.
    pub fn find(&self, reference: &str) -> Result<ReferenceMatch, StoreError> {
        self.read(|db| reference::find(db, reference))
    }

    /// The message with this id. There is one at most: a message under the id of another one is rejected, or, if it
    /// is verified and the other one is not, takes the id, and the other one gets an id of its own.
    pub fn message(&self, id: &str) -> Result<Option<Record>, StoreError> {
        self.read(|db| query::message(db, id))
    }

    /// The thread with this id.
    pub fn thread(&self, id: &str) -> Result<Option<Thread>, StoreError> {
        self.read(|db| query::thread(db, id))
    }

    /// The messages of a thread in the order in which they came; `after` is the `seq` of the last one seen.
    pub fn messages(
        &self,
        thread: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Listing<Record>, StoreError> {
        self.read(|db| query::messages(db, thread, after, limit))
    }

    /// The messages of a thread before a number, the newest first.
    pub fn messages_before(
        &self,
        thread: &str,
        before: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.read(|db| query::messages_before(db, thread, before, limit))
    }

    /// The threads, the one with the latest message first.
    pub fn threads(
        &self,
        filter: &ThreadFilter,
        page: Page,
    ) -> Result<Listing<Thread>, StoreError> {
        self.read(|db| query::threads(db, filter, page))
    }

    /// The messages that wait for the person of this store ([`Wait::Me`], [`Wait::Carry`]), the latest first.
    pub fn inbox(&self, page: Page) -> Result<Listing<Record>, StoreError> {
        self.read(|db| query::inbox(db, page))
    }

    /// The messages that wait for others ([`Wait::Them`]), those of the thread with the latest message first.
    pub fn asked(&self, page: Page) -> Result<Listing<AskedMessage>, StoreError> {
        self.read(|db| query::asked(db, page))
    }

    /// The messages that a search finds, the latest first.
    pub fn search(&self, search: &Search, page: Page) -> Result<Listing<Record>, StoreError> {
        self.search_all(search, page).map(|(found, _)| found)
    }

    /// Whether anything was ever exchanged with an address (as sender or receiver, simple names in any case), among the parties
    /// that are kept of threads.
    pub fn knows(&self, address: &str) -> Result<bool, StoreError> {
        self.read(|db| query::knows(db, address))
    }

    /// The messages to an address after a position, the oldest first: it is their receiver, or one of those whom they ask.
    pub fn addressed(
        &self,
        address: &str,
        after: u64,
        limit: usize,
    ) -> Result<Listing<Record>, StoreError> {
        self.read(|db| query::addressed(db, address, after, limit))
    }

    /// A number that another process changes with everything that it stores.
    pub fn data_version(&self) -> Result<i64, StoreError> {
        let version = self
            .db
            .pragma_query_value(None, "data_version", |row| row.get(0));
        version.map_err(|e| fault::at(&self.path, &e))
    }

    /// How many characters of an id are enough to name it here, at least eight of them.
    pub fn shortest(&self, id: &str) -> Result<usize, StoreError> {
        self.read(|db| reference::shortest(db, id))
    }

    /// Ends the wait of a message without an answer: nobody has to act on it any more. False if it did not wait.
    pub fn dismiss(&mut self, id: &str) -> Result<bool, StoreError> {
        self.write(|db| forget::dismiss(db, id))
    }

    /// Files a message with another one, and what answers it with it; without one, where it was filed first. What the
    /// envelopes say stays as it is.
    pub fn relocate(&mut self, id: &str, answers: Option<&str>) -> Result<Moved, StoreError> {
        self.write(|db| relocate::relocate(db, id, answers))
    }

    /// The thread that a message was in before a person moved it; nothing if it was not moved.
    pub fn first_thread(&self, id: &str) -> Result<Option<String>, StoreError> {
        self.read(|db| relocate::first_thread(db, id))
    }

    /// Erases a thread with all its messages, from the index too, so that nothing of it is left in the store's files.
    /// How many messages there were.
    pub fn forget(&mut self, thread: &str) -> Result<u64, StoreError> {
        let count = self.write(|db| forget::forget(db, thread))?;
        self.empty_log("thread").map(|()| count)
    }

    /// Erases one message, from the index too, so that nothing of it is left in the store's files. The rest of its thread stays:
    /// what it answered is open again, and answers to it stand without it. False if it was not there.
    pub fn forget_message(&mut self, id: &str) -> Result<bool, StoreError> {
        let was_there = self.write(|db| forget::forget_message(db, id))?;
        self.empty_log("message").map(|()| was_there)
    }
}

impl SqliteStore {
    /// Erases messages of a relay because its operator says so: texts, deliveries, search words and what was derived. Ids and
    /// digests stay, and the log says that they were erased. How many there were.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub fn erase_messages(
        &mut self,
        ids: &[String],
        at: crosstalk_envelope::Timestamp,
    ) -> Result<u64, StoreError> {
        let erased = self.write(|db| relay::retire::erase_on_request(db, ids, at))?;
        self.empty_log("messages").map(|()| erased)
    }

    /// The ids of all messages that a party sent or is the receiver of, the oldest first.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn messages_of_party(&self, address: &str) -> Result<Vec<String>, StoreError> {
        use crosstalk_protocol::store::is_same_party;
        let sql = "SELECT m.id, m.sender, m.receiver FROM party p CROSS JOIN message m ON \
            m.thread = p.thread WHERE p.party = ?1 ORDER BY m.seq";
        self.read(|db| {
            let party = crosstalk_protocol::store::party(address);
            let mut found: Vec<(String, String, String)> = db.all(sql, [party], sql::tuple)?;
            found
                .retain(|(_, from, to)| is_same_party(from, address) || is_same_party(to, address));
            Ok(found.into_iter().map(|(id, ..)| id).collect())
        })
    }

    /// Removes erased texts from the log, too, and erased words from that of the search file.
    fn empty_log(&self, what: &str) -> Result<(), StoreError> {
        match self.empty_logs()? {
            true => Ok(()),
            false => Err(StoreError::new(
                StoreFault::Busy,
                format!(
                    "the {what} was erased from `{}`, but another process still reads the state before, and traces are \
                     left in the log beside it",
                    self.path.display()
                ),
                format!("forget the {what} again when that process has finished"),
            )),
        }
    }

    /// Empties the logs of both files. False if somebody still reads an older state.
    fn empty_logs(&self) -> Result<bool, StoreError> {
        let store = forget::empty_log(&self.db).map_err(|e| fault::at(&self.path, &e))?;
        let words = self.with_search_file(SearchIndex::empty_log)?;
        Ok(store && words.unwrap_or(true))
    }
}
