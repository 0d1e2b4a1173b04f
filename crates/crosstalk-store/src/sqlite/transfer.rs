//! The file of a relay as one side of a copy ([`crate::transfer`]).

use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::port::BLOB_PART_BYTES;
use crosstalk_protocol::store::StoreError;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::fault::{self, SqlResult};
use super::migrate::on_disk;
use super::relay::index;
use super::sql::{Sql as _, value};
use super::{SqliteStore, disk};
use crate::fault::{DiskError, FileAction};
use crate::transfer::{
    Cell, CellKind, CopyColumn, CopyPage, CopySide, CopyTarget, ProgressSink, refused,
};

/// The name of the store in a data folder.
const STORE: &str = "relay.db";
/// The folder in a data folder in which a copy is made.
pub const COPY_FOLDER: &str = "copying";
/// The file in it that says what is copied.
const SOURCE: &str = "source";

/// A store in a file.
pub(crate) struct FileSide {
    db: Connection,
    path: PathBuf,
    /// The data folder, if the file is a copy that is being made.
    copy_in: Option<PathBuf>,
}

/// The column of the file that the other store calls by this name.
fn own_name(table: &str, column: &str) -> String {
    match (table, column) {
        ("message", "speaker") => "\"user\"".to_owned(),
        _ => format!("\"{column}\""),
    }
}

fn names(table: &str, columns: &[CopyColumn]) -> String {
    let names = columns.iter().map(|c| own_name(table, &c.name));
    names.collect::<Vec<_>>().join(", ")
}

fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

impl ToSql for Cell {
    fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Int(value) => ToSqlOutput::Owned(Value::Integer(*value)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl FileSide {
    /// The store of a data folder, which is only read.
    pub(crate) fn source(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(STORE);
        // Brings it to the version of this program.
        if SqliteStore::open_existing(&path)?.is_none() {
            return Err(refused(
                format!("there is no store of a relay in `{}`", folder.display()),
                "name the data folder of a relay",
            ));
        }
        let side = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, None)?;
        let sql = "SELECT 1 FROM intake WHERE peer IS NULL UNION ALL SELECT 1 FROM moved";
        match side.ask(|db| db.has(sql, []))? {
            true => Err(refused(
                format!(
                    "`{}` has messages that a person filed, and no relay accepted",
                    side.path.display()
                ),
                "name the data folder of a relay",
            )),
            false => Ok(side),
        }
    }

    /// A new store of a data folder: begun, or gone on with if the same source was copied before.
    pub(crate) fn target(folder: &Path, source: &str) -> Result<Self, StoreError> {
        if folder.join(STORE).symlink_metadata().is_ok() {
            return Err(refused(
                format!("there is a store in `{}` already", folder.display()),
                "name a folder without one",
            ));
        }
        let inner = folder.join(COPY_FOLDER);
        let written = |error| on_disk(DiskError::new(FileAction::Write, &inner, error));
        std::fs::create_dir_all(&inner).map_err(written)?;
        let file = inner.join(SOURCE);
        match std::fs::read_to_string(&file) {
            Ok(before) if before == source => {}
            Ok(before) => {
                return Err(refused(
                    format!(
                        "`{}` has a part of a copy of {before}, and not of {source}",
                        inner.display()
                    ),
                    "go on with that copy, or remove this folder",
                ));
            }
            Err(_) => std::fs::write(&file, source).map_err(written)?,
        }
        let path = inner.join(STORE);
        drop(SqliteStore::open(&path)?);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        Self::connect(path, flags, Some(folder.to_owned()))
    }

    fn connect(
        path: PathBuf,
        flags: OpenFlags,
        copy_in: Option<PathBuf>,
    ) -> Result<Self, StoreError> {
        let connect = || {
            let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let db = Connection::open_with_flags(&path, flags)?;
            db.pragma_update(None, "foreign_keys", false)?;
            db.set_prepared_statement_cache_capacity(128);
            Ok(db)
        };
        let db = connect().map_err(|e| fault::at(&path, &e))?;
        Ok(Self { db, path, copy_in })
    }

    fn ask<T>(&self, ask: impl FnOnce(&Connection) -> SqlResult<T>) -> Result<T, StoreError> {
        ask(&self.db).map_err(|e| fault::at(&self.path, &e))
    }

    fn write<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> SqlResult<T>,
    ) -> Result<T, StoreError> {
        let write = || {
            let transaction = self.db.transaction()?;
            let done = change(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        write().map_err(|e| fault::at(&self.path, &e))
    }
}

fn read_cell(value: ValueRef<'_>) -> SqlResult<Cell> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).map_err(|e| rusqlite::Error::Utf8Error(0, e))?;
            Cell::Text(text.to_owned())
        }
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_owned()),
        ValueRef::Real(_) => {
            let name = "a number with a fraction".to_owned();
            let kind = rusqlite::types::Type::Real;
            return Err(rusqlite::Error::InvalidColumnType(0, name, kind));
        }
    })
}

fn read_row(row: &rusqlite::Row<'_>, count: usize) -> SqlResult<Vec<Cell>> {
    (0..count)
        .map(|place| read_cell(row.get_ref(place)?))
        .collect()
}

impl CopySide for FileSide {
    fn tables(&mut self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name";
        self.ask(|db| db.all(sql, [], value))
    }

    fn columns(&mut self, table: &str) -> Result<Vec<CopyColumn>, StoreError> {
        let sql = "SELECT name, type, \"notnull\" AND dflt_value IS NULL, pk FROM pragma_table_info(?1) ORDER BY name";
        let read = |row: &rusqlite::Row<'_>| {
            let (name, kind): (String, String) = (row.get(0)?, row.get(1)?);
            let key: i64 = row.get(3)?;
            Ok(CopyColumn {
                name: match (table, name.as_str()) {
                    ("message", "user") => "speaker".to_owned(),
                    _ => name,
                },
                kind: match kind.as_str() {
                    "INTEGER" => CellKind::Int,
                    "BLOB" => CellKind::Bytes,
                    _ => CellKind::Text,
                },
                is_required: row.get(2)?,
                key: usize::try_from(key).unwrap_or(0),
            })
        };
        let mut columns = self.ask(|db| db.all(sql, [table], read))?;
        columns.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(columns)
    }

    fn count(&mut self, table: &str) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM \"{table}\"");
        let count: i64 = self.ask(|db| db.one(&sql, [], value))?;
        Ok(count.unsigned_abs())
    }

    fn variety(&mut self, table: &str, column: &str) -> Result<u64, StoreError> {
        let column = own_name(table, column);
        let sql =
            format!("SELECT count(*) FROM (SELECT DISTINCT {column} FROM \"{table}\" LIMIT 2)");
        let count: i64 = self.ask(|db| db.one(&sql, [], value))?;
        Ok(count.unsigned_abs())
    }

    fn rows(&mut self, page: &CopyPage<'_>) -> Result<Vec<Vec<Cell>>, StoreError> {
        let (columns, key) = (names(page.table, page.columns), names(page.table, page.key));
        let behind = match page.after {
            Some(after) => format!("WHERE ({key}) > ({})", places(after.len())),
            None => String::new(),
        };
        let (table, limit) = (page.table, page.limit);
        let sql =
            format!("SELECT {columns} FROM \"{table}\" {behind} ORDER BY {key} LIMIT {limit}");
        let given = params_from_iter(page.after.unwrap_or_default());
        let count = page.columns.len();
        self.ask(|db| db.all(&sql, given, |row| read_row(row, count)))
    }

    fn last(&mut self, table: &str, key: &[CopyColumn]) -> Result<Option<Vec<Cell>>, StoreError> {
        let order: Vec<String> = key
            .iter()
            .map(|c| format!("{} DESC", own_name(table, &c.name)))
            .collect();
        let sql = format!(
            "SELECT {} FROM \"{table}\" ORDER BY {} LIMIT 1",
            names(table, key),
            order.join(", ")
        );
        self.ask(|db| db.find(&sql, [], |row| read_row(row, key.len())))
    }

    fn part(&mut self, digest: &Digest, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.attachment(digest);
        let length = u64::try_from(BLOB_PART_BYTES).unwrap_or(u64::MAX);
        let read = || {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(number.saturating_mul(length)))?;
            let mut bytes = Vec::new();
            file.take(length).read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        };
        match read() {
            // An empty attachment has one part.
            Ok(bytes) => Ok((!bytes.is_empty() || number == 0).then_some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(on_disk(DiskError::new(FileAction::Read, &path, error))),
        }
    }

    fn progress(&mut self) -> Result<[i64; 2], StoreError> {
        self.ask(|db| {
            Ok([
                index::progress(db, "filed")?,
                index::progress(db, "retired")?,
            ])
        })
    }
}

impl FileSide {
    /// Where the attachment with a digest is.
    fn attachment(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        let name = name.trim_start_matches("sha256:");
        let start: String = name.chars().take(2).collect();
        let folder = match &self.copy_in {
            Some(folder) => folder.as_path(),
            None => self.path.parent().unwrap_or(Path::new(".")),
        };
        folder.join("blobs").join(start).join(name)
    }

    /// An attachment whose parts are still being copied.
    fn unfinished(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        let folder = self.path.parent().unwrap_or(Path::new("."));
        folder.join(name.trim_start_matches("sha256:"))
    }
}

impl CopyTarget for FileSide {
    fn insert(
        &mut self,
        table: &str,
        columns: &[CopyColumn],
        rows: Vec<Vec<Cell>>,
    ) -> Result<(), StoreError> {
        let sql = format!(
            "INSERT INTO \"{table}\" ({}) VALUES ({})",
            names(table, columns),
            places(columns.len())
        );
        self.write(|db| {
            for row in &rows {
                db.run(&sql, params_from_iter(row))?;
            }
            Ok(())
        })
    }

    fn add_part(&mut self, digest: &Digest, number: u64, bytes: Vec<u8>) -> Result<(), StoreError> {
        let path = self.unfinished(digest);
        let write = || {
            let mut options = std::fs::OpenOptions::new();
            // The first part begins anew: a copy may have been interrupted.
            let options = options.create(true).write(true).truncate(number == 0);
            let mut file = options.append(number > 0).open(&path)?;
            file.write_all(&bytes)
        };
        write().map_err(|e| on_disk(DiskError::new(FileAction::Write, &path, e)))
    }

    fn finish_parts(&mut self, digest: &Digest) -> Result<(), StoreError> {
        let (from, to) = (self.unfinished(digest), self.attachment(digest));
        let finish = || {
            File::open(&from)?.sync_all()?;
            std::fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))
        };
        finish().map_err(|e| on_disk(DiskError::new(FileAction::Write, &to, e)))?;
        disk::rename(&from, &to).map_err(on_disk)
    }

    fn complete(&mut self, progress: [i64; 2], _: ProgressSink<'_>) -> Result<(), StoreError> {
        let [indexed, retired] = progress;
        self.write(|db| {
            index::set_progress(db, "filed", indexed)?;
            index::set_progress(db, "retired", retired)
        })
    }

    fn release(&mut self) -> Result<(), StoreError> {
        let Some(folder) = self.copy_in.clone() else {
            return Ok(());
        };
        // The file alone has everything then.
        self.ask(|db| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))?;
        let closed = std::mem::replace(
            &mut self.db,
            Connection::open_in_memory().map_err(|e| fault::at(&self.path, &e))?,
        );
        closed.close().map_err(|(_, e)| fault::at(&self.path, &e))?;
        let written = |error| on_disk(DiskError::new(FileAction::Write, &self.path, error));
        let sync = || File::open(&self.path)?.sync_all();
        sync().map_err(written)?;
        disk::rename(&self.path, &folder.join(STORE)).map_err(on_disk)?;
        // Nothing of it is needed any more.
        let _ = std::fs::remove_dir_all(folder.join(COPY_FOLDER));
        Ok(())
    }
}
