//! Statements and rows: the few shapes in which the store asks PostgreSQL, and the types of its columns.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{ChainId, Hash, LogPlace};
use futures_util::future::{join, join_all};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_postgres::types::{FromSqlOwned, ToSql};
use tokio_postgres::{Client, Row, Statement};

use super::fault::{PgResult, SqlError};

/// How long a statement may take, with everything that it waits for. The server ends it sooner.
const ANSWER_LIMIT: Duration = Duration::from_secs(25);

/// The values of a statement.
pub(super) type Given<'g> = &'g [&'g (dyn ToSql + Sync)];

/// The values of a statement, in their order.
macro_rules! params {
    () => { &[] };
    ($($value:expr),+ $(,)?) => {
        &[$(&$value as &(dyn tokio_postgres::types::ToSql + Sync)),+]
    };
}
pub(super) use params;

/// A value that waits for its statement.
pub(super) type OwnedValue = Box<dyn ToSql + Send + Sync>;

/// The values of a statement that is run later.
macro_rules! owned {
    ($($value:expr),+ $(,)?) => {
        vec![$(Box::new($value) as $crate::postgres::sql::OwnedValue),+]
    };
}
pub(super) use owned;

/// How many statements are sent at once.
const PIPELINE: usize = 400;
/// How many of them are polled in their order for certain.
const IN_ORDER: usize = 25;

/// A session with the server, for one thread: each statement stays prepared, and waits for its answer.
pub(super) struct Db {
    client: Client,
    runtime: Handle,
    statements: RefCell<HashMap<String, Statement>>,
    /// Statements that are sent before the next one.
    before: RefCell<Vec<&'static str>>,
    /// How many warnings the server sent.
    warnings: Arc<AtomicU64>,
    /// How often the server was asked and waited for.
    trips: Arc<AtomicU64>,
    /// The chain that this relay writes.
    chain: Arc<AtomicI64>,
    /// Statements that are run together.
    later: RefCell<Vec<(String, Vec<OwnedValue>)>>,
    /// How many messages were indexed since somebody asked.
    indexed: Cell<usize>,
}

impl Db {
    pub(super) fn new(
        client: Client,
        runtime: Handle,
        warnings: Arc<AtomicU64>,
        (trips, chain): (Arc<AtomicU64>, Arc<AtomicI64>),
    ) -> Self {
        Self {
            client,
            runtime,
            statements: RefCell::default(),
            before: RefCell::default(),
            later: RefCell::default(),
            warnings,
            trips,
            chain,
            indexed: Cell::new(0),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The chain that this relay writes.
    pub(super) fn chain(&self) -> i64 {
        self.chain.load(Ordering::SeqCst)
    }

    pub(super) fn add_indexed(&self, count: usize) {
        self.indexed.set(self.indexed.get() + count);
    }

    pub(super) fn take_indexed(&self) -> usize {
        self.indexed.take()
    }

    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> PgResult<T> {
        self.trips.fetch_add(1, Ordering::Relaxed);
        let limited = async { tokio::time::timeout(ANSWER_LIMIT, answer).await };
        match self.runtime.block_on(limited) {
            Ok(answer) => answer.map_err(SqlError::from),
            Err(_) => Err(SqlError::Timeout),
        }
    }

    fn prepared(&self, sql: &str) -> PgResult<Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let statement = self.wait(self.client.prepare(sql))?;
        let mut statements = self.statements.borrow_mut();
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Asks for something, after the statements that were put off. All of it takes one trip.
    fn ask<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> PgResult<T> {
        let before = self.before.take();
        if before.is_empty() {
            return self.wait(answer);
        }
        let mut statements = Vec::with_capacity(before.len());
        for sql in before {
            statements.push(self.prepared(sql)?);
        }
        let first = statements.iter().map(|sql| self.client.query(sql, &[]));
        self.wait(async {
            let (first, answer) = join(join_all(first), answer).await;
            first.into_iter().collect::<Result<Vec<_>, _>>()?;
            answer
        })
    }

    /// Runs a statement together with the next one.
    pub(super) fn put_off(&self, sql: &'static str) {
        self.before.borrow_mut().push(sql);
    }

    fn query(&self, sql: &str, given: Given<'_>) -> PgResult<Vec<Row>> {
        let statement = self.prepared(sql)?;
        self.ask(self.client.query(&statement, given))
    }

    /// Runs statements that take and give nothing.
    pub(super) fn batch(&self, sql: &str) -> PgResult<()> {
        self.ask(self.client.batch_execute(sql))
    }

    /// Commits, and makes sure that the server did all of it.
    pub(super) fn commit(&self) -> PgResult<()> {
        self.finish(&[])
    }

    /// Ends the transaction, and forgets what was put off.
    pub(super) fn roll_back(&self) {
        self.before.take();
        self.later.take();
        // A session that can't is closed by its owner.
        let _ = self.batch("ROLLBACK");
    }

    /// Runs the last statements of a transaction and commits it in one trip. A wait for a standby that was cancelled is a
    /// warning alone, and no commit that can be relied on. Nor is a COMMIT after an error, which is none: so every answer
    /// is looked at.
    pub(super) fn finish(&self, asked: &[(&str, Given<'_>)]) -> PgResult<()> {
        let before = self.warnings.load(Ordering::SeqCst);
        let mut asked = asked.to_vec();
        asked.push(("COMMIT", &[]));
        match self.pipeline(&asked) {
            // It may be committed all the same.
            Err(error) if error.is_silence() => return Err(SqlError::InDoubt),
            done => done?,
        };
        match self.warnings.load(Ordering::SeqCst) == before {
            true => Ok(()),
            false => Err(SqlError::Unconfirmed),
        }
    }

    /// Runs statements in one trip to the server, in their order. If one fails, those after it fail as well.
    pub(super) fn pipeline(&self, asked: &[(&str, Given<'_>)]) -> PgResult<Vec<Vec<Row>>> {
        let mut statements = Vec::with_capacity(asked.len());
        for (sql, _) in asked {
            statements.push(self.prepared(sql)?);
        }
        let queries = statements.iter().zip(asked);
        let queries = queries.map(|(statement, (_, given))| self.client.query(statement, given));
        // A longer list is not polled in its order for certain.
        let mut queries = queries.fuse();
        let mut groups = Vec::new();
        while let Some(first) = queries.next() {
            let rest = queries.by_ref().take(IN_ORDER - 1);
            groups.push(join_all(std::iter::once(first).chain(rest)));
        }
        self.ask(async { join_all(groups).await.into_iter().flatten().collect() })
    }

    /// Runs a statement. How many rows it changed.
    pub(super) fn run(&self, sql: &str, given: Given<'_>) -> PgResult<u64> {
        let statement = self.prepared(sql)?;
        self.ask(self.client.execute(&statement, given))
    }

    /// Runs a statement together with others, at [`flush`](Self::flush).
    pub(super) fn later(&self, sql: &str, given: Vec<OwnedValue>) {
        self.later.borrow_mut().push((sql.to_owned(), given));
    }

    /// Runs the statements that were left for later, in their order, in as few trips as possible.
    pub(super) fn flush(&self) -> PgResult<()> {
        let later = self.later.take();
        let given = later.iter().map(|(sql, given)| {
            let given: Vec<&(dyn ToSql + Sync)> = given.iter().map(|g| g.as_ref() as _).collect();
            (sql.as_str(), given)
        });
        let given: Vec<(&str, Vec<&(dyn ToSql + Sync)>)> = given.collect();
        for portion in given.chunks(PIPELINE) {
            let portion = portion.iter().map(|(sql, given)| (*sql, given.as_slice()));
            self.pipeline(&portion.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Whether a query finds anything.
    pub(super) fn has(&self, sql: &str, given: Given<'_>) -> PgResult<bool> {
        Ok(!self.query(sql, given)?.is_empty())
    }

    /// The only row of a query.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        given: Given<'_>,
        read: impl FnOnce(&Row) -> PgResult<T>,
    ) -> PgResult<T> {
        self.find(sql, given, read)?.ok_or(SqlError::NoRow)
    }

    /// The first row of a query, if it finds any.
    pub(super) fn find<T>(
        &self,
        sql: &str,
        given: Given<'_>,
        read: impl FnOnce(&Row) -> PgResult<T>,
    ) -> PgResult<Option<T>> {
        self.query(sql, given)?.first().map(read).transpose()
    }

    /// All rows of a query.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        given: Given<'_>,
        read: impl FnMut(&Row) -> PgResult<T>,
    ) -> PgResult<Vec<T>> {
        self.query(sql, given)?.iter().map(read).collect()
    }
}

/// Reads the first column.
pub(super) fn value<T: FromSqlOwned>(row: &Row) -> PgResult<T> {
    Ok(row.try_get(0)?)
}

/// Reads columns of the types that the tables use.
pub(super) trait PgColumns {
    fn time(&self, column: &str) -> PgResult<Timestamp>;
    fn opt_time(&self, column: &str) -> PgResult<Option<Timestamp>>;
    fn digest(&self, column: &str) -> PgResult<Digest>;
    fn hash(&self, column: &str) -> PgResult<Hash>;
    fn opt_digest(&self, column: &str) -> PgResult<Option<Digest>>;
    fn seq(&self, column: &str) -> PgResult<u64>;
    fn opt_seq(&self, column: &str) -> PgResult<Option<u64>>;
    /// The columns `chain` and `entry`.
    fn log_place(&self) -> PgResult<Option<LogPlace>>;
    /// A text; nothing where it is empty.
    fn opt_text(&self, column: &str) -> PgResult<Option<String>>;
    /// Several texts, one a line.
    fn lines(&self, column: &str) -> PgResult<Vec<String>>;
    /// One of a few words.
    fn word<T>(&self, column: &str, parse: fn(&str) -> Option<T>) -> PgResult<T>;
    /// One of a few values, as its position among all of them.
    fn member<T: Copy>(&self, column: &str, all: &[T]) -> PgResult<T>;
}

impl PgColumns for Row {
    fn time(&self, column: &str) -> PgResult<Timestamp> {
        Ok(Timestamp::from_millis(self.try_get(column)?))
    }

    fn opt_time(&self, column: &str) -> PgResult<Option<Timestamp>> {
        Ok(time(self.try_get(column)?))
    }

    fn digest(&self, column: &str) -> PgResult<Digest> {
        self.hash(column).map(Digest)
    }

    fn hash(&self, column: &str) -> PgResult<Hash> {
        let bytes: &[u8] = self.try_get(column)?;
        Hash::try_from(bytes).map_err(|_| SqlError::Row(format!("{column} is no digest")))
    }

    fn opt_digest(&self, column: &str) -> PgResult<Option<Digest>> {
        let bytes: Option<&[u8]> = self.try_get(column)?;
        match bytes {
            Some(_) => self.digest(column).map(Some),
            None => Ok(None),
        }
    }

    fn seq(&self, column: &str) -> PgResult<u64> {
        let seq: i64 = self.try_get(column)?;
        Ok(seq.unsigned_abs())
    }

    fn opt_seq(&self, column: &str) -> PgResult<Option<u64>> {
        let seq: Option<i64> = self.try_get(column)?;
        Ok(seq.map(i64::unsigned_abs))
    }

    fn log_place(&self) -> PgResult<Option<LogPlace>> {
        let chain = ChainId(self.seq("chain")?);
        let entry = self.opt_seq("entry")?;
        Ok(entry.map(|index| LogPlace { chain, index }))
    }

    fn opt_text(&self, column: &str) -> PgResult<Option<String>> {
        let text: String = self.try_get(column)?;
        Ok((!text.is_empty()).then_some(text))
    }

    fn lines(&self, column: &str) -> PgResult<Vec<String>> {
        let text: Option<&str> = self.try_get(column)?;
        let lines = text.unwrap_or_default().lines();
        Ok(lines.map(str::to_owned).collect())
    }

    fn word<T>(&self, column: &str, parse: fn(&str) -> Option<T>) -> PgResult<T> {
        let text: &str = self.try_get(column)?;
        parse(text).ok_or_else(|| unknown(column, text))
    }

    fn member<T: Copy>(&self, column: &str, all: &[T]) -> PgResult<T> {
        member(column, all, self.try_get(column)?)
    }
}

/// The value at a position among all.
pub(super) fn member<T: Copy>(what: &str, all: &[T], position: i64) -> PgResult<T> {
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

pub(super) fn unknown(column: &str, text: &str) -> SqlError {
    SqlError::Row(format!("`{}` is no {column}", text.escape_debug()))
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

/// A digest in its column.
pub(super) fn bytes(digest: &Digest) -> &[u8] {
    &digest.0
}

pub(super) fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millis)
}

/// Several columns as one value.
pub(super) trait Tuple: Sized {
    fn read(row: &Row) -> PgResult<Self>;
}

macro_rules! tuples {
    ($(($($name:ident $place:literal),+))+) => {
        $(impl<$($name: FromSqlOwned),+> Tuple for ($($name,)+) {
            fn read(row: &Row) -> PgResult<Self> {
                Ok(($(row.try_get::<_, $name>($place)?,)+))
            }
        })+
    };
}

tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

/// Reads the first columns in their order.
pub(super) fn tuple<T: Tuple>(row: &Row) -> PgResult<T> {
    T::read(row)
}
