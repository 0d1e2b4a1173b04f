//! A database as one side of a copy ([`crate::transfer`]).

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::Trust;
use crosstalk_protocol::relay::port::BlobPart;
use crosstalk_protocol::store::StoreError;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::{PgResult, SqlError};
use super::index::{INDEXED, PORTION, RETIRED, progress, set_progress};
use super::intake::{INTAKE_ROW, intake_row};
use super::session::PgSession;
use super::sql::{Db, OwnedValue, number, params, tuple, value};
use super::{PostgresPlace, keep, registry, schema, search, trust};
use crate::transfer::{
    Cell, CellKind, CopyColumn, CopyPage, CopyProgress, CopySide, CopyTarget, ProgressSink, refused,
};

/// How long a copy waits for the sessions of relays to end, and how often it looks.
const SESSION_END: Duration = Duration::from_secs(5);
const SESSION_POLL: Duration = Duration::from_millis(50);

/// A store in a database.
pub(crate) struct PgSide {
    session: PgSession,
    /// The threads of the session.
    runtime: Option<Runtime>,
}

impl Drop for PgSide {
    fn drop(&mut self) {
        self.session.reset();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whether a copy into this database was begun and not finished.
const IS_COPYING: &str = "SELECT 1 WHERE to_regclass('store_copy') IS NOT NULL";

/// Lets no relay in where a copy was not finished.
pub(super) fn require_whole(session: &mut PgSession, place: &str) -> Result<(), StoreError> {
    match session.read(|db| db.has(IS_COPYING, params![]))? {
        true => Err(unfinished(place)),
        false => Ok(()),
    }
}

fn unfinished(place: &str) -> StoreError {
    refused(
        format!("a store is being copied into {place}, or the copy was interrupted"),
        "start the same copy again: it goes on where it was",
    )
}

impl PgSide {
    fn open(mut place: PostgresPlace) -> Result<Self, StoreError> {
        let label = place.to_string();
        // So that an interrupted copy does not look like a relay.
        place.config.application_name("crosstalk copy");
        let (door, runtime) = super::door(place, 1)?;
        let mut session = PgSession::new(door);
        session.read(schema::migrate)?;
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
            application_name = 'crosstalk' AND pid <> pg_backend_pid()";
        // The server notices a little later that a relay has stopped.
        let until = Instant::now() + SESSION_END;
        while session.read(|db| db.one(sql, params![], value::<i64>))? > 0 {
            if Instant::now() >= until {
                return Err(refused(
                    format!("relays use {label}"),
                    "stop all relays on this database, and copy again",
                ));
            }
            std::thread::sleep(SESSION_POLL);
        }
        Ok(Self {
            session,
            runtime: Some(runtime),
        })
    }

    /// A database that is only read.
    pub(crate) fn source(place: PostgresPlace) -> Result<Self, StoreError> {
        let label = place.to_string();
        let mut side = Self::open(place)?;
        require_whole(&mut side.session, &label)?;
        let sql = "SELECT 1 FROM chain_entry WHERE chain <> 0 LIMIT 1";
        match side.session.read(|db| db.has(sql, params![]))? {
            true => Err(refused(
                format!(
                    "several relays have written the audit log of {label}, each a chain of its own"
                ),
                "a data folder keeps the chain of one relay: leave the data in the database",
            )),
            false => Ok(side),
        }
    }

    /// The trusted keys of the relays.
    pub(crate) fn trust(&mut self, label: &str) -> Result<Trust, StoreError> {
        trust::read_from(&mut self.session, label)
    }

    /// A new database: begun, or gone on with if the same source was copied before.
    pub(crate) fn target(place: PostgresPlace, source: &str) -> Result<Self, StoreError> {
        let label = place.to_string();
        let mut side = Self::open(place)?;
        let before = side.session.change(|db| begin(db, source))?;
        match before {
            Begun::Now => Ok(side),
            Begun::Before(other) if other == source => Ok(side),
            Begun::Before(other) => Err(refused(
                format!("{label} has a part of a copy of {other}, and not of {source}"),
                "go on with that copy, or make another database",
            )),
            Begun::NotEmpty => Err(refused(
                format!("{label} has data of relays already"),
                "make an empty database for the copy (`createdb -E UTF8 -O ROLE NAME`)",
            )),
        }
    }
}

/// How a copy begins.
enum Begun {
    Now,
    /// It was begun before, of this source.
    Before(String),
    NotEmpty,
}

fn begin(db: &Db, source: &str) -> PgResult<Begun> {
    if db.has(IS_COPYING, params![])? {
        let sql = "SELECT source FROM store_copy";
        return Ok(Begun::Before(db.one(sql, params![], value)?));
    }
    let used = "SELECT 1 WHERE EXISTS (SELECT 1 FROM log) OR EXISTS (SELECT 1 FROM intake) OR EXISTS (SELECT 1 FROM token)";
    if db.has(used, params![])? {
        return Ok(Begun::NotEmpty);
    }
    db.batch("CREATE TABLE store_copy (source TEXT NOT NULL)")?;
    let sql = "INSERT INTO store_copy (source) VALUES ($1)";
    db.run(sql, params![source])?;
    Ok(Begun::Now)
}

/// The tables of the audit log, by the names that both stores use: a database keeps the chains of all its relays in them.
const LOG_TABLES: [(&str, &str); 3] = [
    ("checkpoint", "chain_checkpoint"),
    ("log", "chain_entry"),
    ("tile", "chain_tile"),
];

/// The name of a table in a database.
fn database_name(table: &str) -> &str {
    let found = LOG_TABLES.iter().find(|(shared, _)| *shared == table);
    found.map_or(table, |(_, own)| own)
}

/// The name that both stores use for a table of a database.
fn shared_name(table: String) -> String {
    let found = LOG_TABLES.iter().find(|(_, own)| *own == table);
    found.map_or(table, |(shared, _)| (*shared).to_owned())
}

fn name(column: &CopyColumn) -> String {
    format!("\"{}\"", column.name)
}

fn names(columns: &[CopyColumn]) -> String {
    columns.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A column as one of the values that both stores have.
fn selected(column: &CopyColumn) -> String {
    match column.kind {
        CellKind::Bool => format!("\"{}\"::int::bigint", column.name),
        _ => name(column),
    }
}

fn read_row(row: &Row, columns: &[CopyColumn]) -> PgResult<Vec<Cell>> {
    let mut cells = Vec::with_capacity(columns.len());
    for (place, column) in columns.iter().enumerate() {
        let cell = match column.kind {
            CellKind::Int | CellKind::Bool => {
                let value: Option<i64> = row.try_get(place)?;
                value.map(Cell::Int)
            }
            CellKind::Text => {
                let value: Option<String> = row.try_get(place)?;
                value.map(Cell::Text)
            }
            CellKind::Bytes => {
                let value: Option<Vec<u8>> = row.try_get(place)?;
                value.map(Cell::Bytes)
            }
        };
        cells.push(cell.unwrap_or(Cell::Null));
    }
    Ok(cells)
}

/// A value for a statement that compares keys.
fn owned(cell: &Cell) -> OwnedValue {
    match cell {
        Cell::Null => Box::new(None::<i64>),
        Cell::Int(value) => Box::new(*value),
        Cell::Text(text) => Box::new(text.clone()),
        Cell::Bytes(bytes) => Box::new(bytes.clone()),
    }
}

/// The values of a column in all rows.
fn column_values(kind: CellKind, cells: Vec<Cell>) -> (OwnedValue, &'static str) {
    let int = |cell| match cell {
        Cell::Int(value) => Some(value),
        _ => None,
    };
    let text = |cell| match cell {
        Cell::Text(text) => Some(text),
        _ => None,
    };
    let bytes = |cell| match cell {
        Cell::Bytes(bytes) => Some(bytes),
        _ => None,
    };
    let cells = cells.into_iter();
    match kind {
        CellKind::Int => (Box::new(cells.map(int).collect::<Vec<_>>()), "bigint[]"),
        CellKind::Bool => {
            let values = cells.map(int).map(|value| value.map(|v| v != 0));
            (Box::new(values.collect::<Vec<_>>()), "boolean[]")
        }
        CellKind::Text => (Box::new(cells.map(text).collect::<Vec<_>>()), "text[]"),
        CellKind::Bytes => (Box::new(cells.map(bytes).collect::<Vec<_>>()), "bytea[]"),
    }
}

impl CopySide for PgSide {
    fn tables(&mut self) -> Result<Vec<String>, StoreError> {
        let sql =
            "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1";
        let tables: Vec<String> = self.session.read(|db| db.all(sql, params![], value))?;
        Ok(tables.into_iter().map(shared_name).collect())
    }

    fn columns(&mut self, table: &str) -> Result<Vec<CopyColumn>, StoreError> {
        let sql = "SELECT a.attname::text, format_type(a.atttypid, NULL), \
            a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', \
            coalesce(array_position(i.indkey::int2[], a.attnum), -1)::bigint \
            FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary \
            WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attnum > 0 AND NOT a.attisdropped";
        let read = |row: &Row| {
            let (name, kind, is_required, key): (String, String, bool, i64) = tuple(row)?;
            Ok(CopyColumn {
                kind: match kind.as_str() {
                    "bigint" => CellKind::Int,
                    "boolean" => CellKind::Bool,
                    "text" => CellKind::Text,
                    "bytea" => CellKind::Bytes,
                    _ => {
                        return Err(SqlError::Row(format!(
                            "the column {name} is of type {kind}"
                        )));
                    }
                },
                name,
                is_required,
                // The positions in an index begin at 0.
                key: usize::try_from(key + 1).unwrap_or(0),
            })
        };
        let table = database_name(table);
        let mut columns = self.session.read(|db| db.all(sql, params![table], read))?;
        columns.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(columns)
    }

    fn count(&mut self, table: &str) -> Result<u64, StoreError> {
        let table = database_name(table);
        let sql = format!("SELECT count(*) FROM \"{table}\"");
        let count: i64 = self.session.read(|db| db.one(&sql, params![], value))?;
        Ok(count.unsigned_abs())
    }

    fn variety(&mut self, table: &str, column: &str) -> Result<u64, StoreError> {
        let table = database_name(table);
        let sql = format!(
            "SELECT count(*) FROM (SELECT DISTINCT \"{column}\" FROM \"{table}\" LIMIT 2) v"
        );
        let count: i64 = self.session.read(|db| db.one(&sql, params![], value))?;
        Ok(count.unsigned_abs())
    }

    fn rows(&mut self, page: &CopyPage<'_>) -> Result<Vec<Vec<Cell>>, StoreError> {
        let columns: Vec<String> = page.columns.iter().map(selected).collect();
        let (columns, key) = (columns.join(", "), names(page.key));
        let after: Vec<OwnedValue> = page.after.unwrap_or_default().iter().map(owned).collect();
        let behind = match after.len() {
            0 => String::new(),
            count => {
                let places: Vec<String> = (1..=count).map(|n| format!("${n}")).collect();
                format!("WHERE ({key}) > ({})", places.join(", "))
            }
        };
        let (table, limit) = (database_name(page.table), page.limit);
        let sql =
            format!("SELECT {columns} FROM \"{table}\" {behind} ORDER BY {key} LIMIT {limit}");
        let given: Vec<&(dyn ToSql + Sync)> = after.iter().map(|v| v.as_ref() as _).collect();
        self.session
            .read(|db| db.all(&sql, &given, |row| read_row(row, page.columns)))
    }

    fn last(&mut self, table: &str, key: &[CopyColumn]) -> Result<Option<Vec<Cell>>, StoreError> {
        let (columns, order): (Vec<String>, Vec<String>) = key
            .iter()
            .map(|c| (selected(c), format!("{} DESC", name(c))))
            .unzip();
        let table = database_name(table);
        let sql = format!(
            "SELECT {} FROM \"{table}\" ORDER BY {} LIMIT 1",
            columns.join(", "),
            order.join(", ")
        );
        self.session
            .read(|db| db.find(&sql, params![], |row| read_row(row, key)))
    }

    fn part(&mut self, digest: &Digest, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let part = self
            .session
            .read(|db| keep::read_part(db, *digest, number))?;
        Ok(part.map(|part| part.bytes))
    }

    fn progress(&mut self) -> Result<[i64; 2], StoreError> {
        self.session
            .read(|db| Ok([progress(db, INDEXED)?, progress(db, RETIRED)?]))
    }
}

impl CopyTarget for PgSide {
    fn insert(
        &mut self,
        table: &str,
        columns: &[CopyColumn],
        rows: Vec<Vec<Cell>>,
    ) -> Result<(), StoreError> {
        let mut by_column: Vec<Vec<Cell>> = columns.iter().map(|_| Vec::new()).collect();
        for row in rows {
            for (column, cell) in by_column.iter_mut().zip(row) {
                column.push(cell);
            }
        }
        let kinds = columns.iter().map(|column| column.kind);
        let values = kinds
            .zip(by_column)
            .map(|(kind, cells)| column_values(kind, cells));
        let (values, types): (Vec<OwnedValue>, Vec<&str>) = values.unzip();
        let types = types.iter().enumerate();
        let types: Vec<String> = types
            .map(|(n, kind)| format!("${}::{kind}", n + 1))
            .collect();
        let table = database_name(table);
        let sql = format!(
            "INSERT INTO \"{table}\" ({}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest({})",
            names(columns),
            types.join(", ")
        );
        let given: Vec<&(dyn ToSql + Sync)> = values.iter().map(|v| v.as_ref() as _).collect();
        self.session.change(|db| db.run(&sql, &given))?;
        Ok(())
    }

    fn add_part(&mut self, digest: &Digest, number: u64, bytes: Vec<u8>) -> Result<(), StoreError> {
        let part = BlobPart {
            upload: digest.to_string(),
            number,
            bytes,
        };
        // Parts of a copy that was interrupted are the same.
        let now = Timestamp::from_millis(i64::MAX);
        self.session.change(|db| keep::add_part(db, &part, now))
    }

    fn finish_parts(&mut self, digest: &Digest) -> Result<(), StoreError> {
        let sql = "UPDATE blob SET parts = $2 WHERE digest = $1";
        let (digest, upload) = (digest.0.as_slice(), digest.to_string());
        self.session
            .change(|db| db.run(sql, params![digest, upload]))?;
        Ok(())
    }

    fn complete(
        &mut self,
        [indexed, retired]: [i64; 2],
        seen: ProgressSink<'_>,
    ) -> Result<(), StoreError> {
        let total: i64 = self.session.read(|db| {
            let sql = "SELECT count(*) FROM message WHERE seq <= $1";
            db.one(sql, params![indexed], value)
        })?;
        let mut done: i64 = self
            .session
            .read(|db| db.one("SELECT count(*) FROM words", params![], value))?;
        loop {
            seen(CopyProgress {
                is_check: false,
                table: "words",
                done: done.unsigned_abs(),
                total: total.unsigned_abs(),
            });
            let filled = self.session.change(|db| fill_words(db, indexed))?;
            if filled == 0 {
                break;
            }
            done += number(filled);
        }
        self.session.change(|db| {
            set_progress(db, INDEXED, indexed)?;
            set_progress(db, RETIRED, retired)?;
            let sql = "UPDATE turn SET seq = (SELECT coalesce(max(seq), 0) FROM intake)";
            db.run(sql, params![])?;
            for (table, column) in [("held", "seq"), ("owed", "place")] {
                let sql = format!(
                    "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), \
                     greatest((SELECT max({column}) FROM {table}), 1), (SELECT max({column}) FROM {table}) IS NOT NULL)"
                );
                db.has(&sql, params![])?;
            }
            registry::renew(db)
        })
    }

    fn release(&mut self) -> Result<(), StoreError> {
        self.session.change(|db| db.batch("DROP TABLE store_copy"))
    }
}

/// Makes the next messages searchable that are not. How many.
fn fill_words(db: &Db, indexed: i64) -> PgResult<usize> {
    let sql = format!(
        "SELECT {INTAKE_ROW} FROM intake WHERE seq > (SELECT coalesce(max(seq), 0) FROM words) AND seq <= $1 AND text <> '' \
         AND EXISTS (SELECT 1 FROM message m WHERE m.seq = intake.seq) ORDER BY seq LIMIT $2"
    );
    let rows = db.all(&sql, params![indexed, number(PORTION)], intake_row)?;
    let words: Vec<_> = rows.iter().map(|row| (row.seq, &row.arrival)).collect();
    search::fill(db, &words)?;
    Ok(rows.len())
}
