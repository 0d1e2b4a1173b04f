//! Statements and rows: the few shapes in which the store asks SQLite, and the types of its columns.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use rusqlite::types::{FromSql, Type};
use rusqlite::{Connection, OptionalExtension as _, Params, Row};

use super::fault::SqlResult;

/// Runs statements that stay prepared.
pub(super) trait Sql {
    /// Runs a statement. How many rows it changed.
    fn run(&self, sql: &str, given: impl Params) -> SqlResult<usize>;
    /// Whether a query finds anything.
    fn has(&self, sql: &str, given: impl Params) -> SqlResult<bool>;
    /// The only row of a query.
    fn one<T>(&self, sql: &str, given: impl Params, read: impl Read<T>) -> SqlResult<T>;
    /// The first row of a query, if it finds any.
    fn find<T>(&self, sql: &str, given: impl Params, read: impl Read<T>) -> SqlResult<Option<T>>;
    /// All rows of a query.
    fn all<T>(&self, sql: &str, given: impl Params, read: impl Read<T>) -> SqlResult<Vec<T>>;
}

/// Reads a row.
pub(super) trait Read<T>: FnMut(&Row<'_>) -> SqlResult<T> {}
impl<T, F: FnMut(&Row<'_>) -> SqlResult<T>> Read<T> for F {}

impl Sql for Connection {
    fn run(&self, sql: &str, given: impl Params) -> SqlResult<usize> {
        self.prepare_cached(sql)?.execute(given)
    }

    fn has(&self, sql: &str, given: impl Params) -> SqlResult<bool> {
        self.prepare_cached(sql)?.exists(given)
    }

    fn one<T>(&self, sql: &str, given: impl Params, read: impl Read<T>) -> SqlResult<T> {
        self.prepare_cached(sql)?.query_row(given, read)
    }

    fn find<T>(&self, sql: &str, given: impl Params, read: impl Read<T>) -> SqlResult<Option<T>> {
        self.one(sql, given, read).optional()
    }

    fn all<T>(&self, sql: &str, given: impl Params, read: impl Read<T>) -> SqlResult<Vec<T>> {
        self.prepare_cached(sql)?.query_map(given, read)?.collect()
    }
}

/// Reads the first column.
pub(super) fn value<T: FromSql>(row: &Row<'_>) -> SqlResult<T> {
    row.get(0)
}

/// Reads the first columns in their order.
pub(super) fn tuple<T>(row: &Row<'_>) -> SqlResult<T>
where
    T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>,
{
    T::try_from(row)
}

/// Reads columns of the types that the tables use.
pub(super) trait Columns {
    fn time(&self, column: &str) -> SqlResult<Timestamp>;
    fn opt_time(&self, column: &str) -> SqlResult<Option<Timestamp>>;
    fn digest(&self, column: &str) -> SqlResult<Digest>;
    fn seq(&self, column: &str) -> SqlResult<u64>;
    fn opt_seq(&self, column: &str) -> SqlResult<Option<u64>>;
    /// A text; nothing where it is empty.
    fn opt_text(&self, column: &str) -> SqlResult<Option<String>>;
    /// Several texts, one a line.
    fn lines(&self, column: &str) -> SqlResult<Vec<String>>;
    /// One of a few words.
    fn word<T>(&self, column: &str, parse: fn(&str) -> Option<T>) -> SqlResult<T>;
    /// One of a few values, as its position among all of them.
    fn member<T: Copy>(&self, column: &str, all: &[T]) -> SqlResult<T>;
}

impl Columns for Row<'_> {
    fn time(&self, column: &str) -> SqlResult<Timestamp> {
        self.get(column).map(Timestamp::from_millis)
    }

    fn opt_time(&self, column: &str) -> SqlResult<Option<Timestamp>> {
        self.get(column).map(time)
    }

    fn digest(&self, column: &str) -> SqlResult<Digest> {
        self.get(column).map(Digest)
    }

    fn seq(&self, column: &str) -> SqlResult<u64> {
        self.get(column).map(i64::unsigned_abs)
    }

    fn opt_seq(&self, column: &str) -> SqlResult<Option<u64>> {
        let seq: Option<i64> = self.get(column)?;
        Ok(seq.map(i64::unsigned_abs))
    }

    fn opt_text(&self, column: &str) -> SqlResult<Option<String>> {
        let text: String = self.get(column)?;
        Ok((!text.is_empty()).then_some(text))
    }

    fn lines(&self, column: &str) -> SqlResult<Vec<String>> {
        let text = self.get_ref(column)?.as_str_or_null()?.unwrap_or_default();
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn word<T>(&self, column: &str, parse: fn(&str) -> Option<T>) -> SqlResult<T> {
        let text: String = self.get(column)?;
        parse(&text).ok_or_else(|| unknown(column, &text))
    }

    fn member<T: Copy>(&self, column: &str, all: &[T]) -> SqlResult<T> {
        member(column, all, self.get(column)?)
    }
}

/// The value at a position among all.
pub(super) fn member<T: Copy>(what: &str, all: &[T], position: i64) -> SqlResult<T> {
    let found = usize::try_from(position).ok().and_then(|p| all.get(p));
    found
        .copied()
        .ok_or_else(|| unknown(what, &position.to_string()))
}

/// The position of a value among all, for its column.
pub(super) fn position<T: PartialEq>(all: &[T], one: T) -> i64 {
    let found = all.iter().position(|other| *other == one);
    found.map_or(0, number)
}

pub(super) fn unknown(column: &str, text: &str) -> rusqlite::Error {
    let what = format!("`{}` is no {column}", text.escape_debug());
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, what.into())
}

/// A time in its column.
pub(super) fn time(millis: Option<i64>) -> Option<Timestamp> {
    millis.map(Timestamp::from_millis)
}

/// A count or a position in its column.
pub(super) fn number(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

pub(super) fn to_u64(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
