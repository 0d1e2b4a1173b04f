//! The words of messages: what they are, which of them a change touches, and whether the index has them and no others.
//!
//! The index has no content of its own, so that SQLite looks at its form alone. To check it, the words are made again here, a
//! few messages at a time, and compared with what is in it.

use crosstalk_protocol::store::{StoreError, searched_texts};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::SqliteStore;
use super::fault::{self, SqlResult};
use super::relay::check::report;
use super::search::{self, SearchIndex};
use crate::sqlite::sql::{Sql as _, value};

/// What a change does to the words of messages, until it is committed. A table of the connection, so that a savepoint that is
/// rolled back takes it along.
pub(super) const TOUCHED: &str = "
CREATE TEMP TABLE touched (seq INTEGER PRIMARY KEY);
CREATE TEMP TABLE rewriting (whole INTEGER NOT NULL);
";

/// The effects of a change on the words of messages.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// The messages.
    pub(super) seqs: Vec<i64>,
    /// Which pages of the index are to be written anew.
    pub(super) rewrite: Option<Rewrite>,
}

/// Which pages of the index are written anew, so that no word stays as the key of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rewrite {
    /// All of them.
    All,
    /// All if they are few, else some.
    Some,
}

/// Says that this change erases a message that is indexed, or changes its words. Only inside [`super::SqliteStore::write`].
pub(super) fn touch(db: &Connection, seq: i64) -> SqlResult<()> {
    let sql = "INSERT OR IGNORE INTO temp.touched (seq) VALUES (?1)";
    db.run(sql, params![seq]).map(|_| ())
}

/// Says which pages of the index are to be written anew with this change.
pub(super) fn ask_to_rewrite(db: &Connection, which: Rewrite) -> SqlResult<()> {
    let sql = "INSERT INTO temp.rewriting (whole) VALUES (?1)";
    db.run(sql, params![which == Rewrite::All]).map(|_| ())
}

/// What this change did to the words of messages; nothing if it did nothing to them.
pub(super) fn take_touched(db: &Connection) -> SqlResult<Option<Touched>> {
    let whole: Option<bool> = db.one("SELECT max(whole) FROM temp.rewriting", [], value)?;
    let rewrite = whole.map(|whole| if whole { Rewrite::All } else { Rewrite::Some });
    let seqs = db.all(
        "SELECT seq FROM temp.touched ORDER BY seq",
        [],
        value::<i64>,
    )?;
    if seqs.is_empty() && rewrite.is_none() {
        return Ok(None);
    }
    db.run("DELETE FROM temp.touched", [])?;
    db.run("DELETE FROM temp.rewriting", [])?;
    Ok(Some(Touched { seqs, rewrite }))
}

/// Makes the index anew from what is there when this change is committed.
pub(super) fn start_again(db: &Connection) -> SqlResult<()> {
    db.run("UPDATE identity SET store = random()", [])
        .map(|_| ())
}

/// How often it is looked, where something is wrong.
const ATTEMPTS: usize = 3;
/// How many messages are in memory at once.
const ROWS: i64 = 256;
/// The columns of the index, in their order.
const COLUMNS: [&str; 5] = ["body", "context", "sender", "receiver", "intent"];

impl SqliteStore {
    /// Looks whether the search file has the words that it should have, as far as it is filled.
    pub(super) fn check_words(&self) -> Result<Vec<String>, StoreError> {
        let path = search::path_of(&self.path);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let look = || {
            let index = SearchIndex::open(&self.path, self.patience, self.search_cache_kb)?;
            // The two files are not seen at the same moment: others may change both in between, but not every time.
            let mut found = Vec::new();
            for _ in 0..ATTEMPTS {
                let state = index.db.unchecked_transaction()?;
                found = check(&state)?;
                if found.is_empty() {
                    break;
                }
            }
            Ok(found)
        };
        match look() {
            Err(e) if search::is_damage(&e) => {
                Ok(vec![format!("`{}` is damaged: {e}", path.display())])
            }
            found => found.map_err(|e| fault::at(&path, &e)),
        }
    }
}

/// The words as they are in the index, and as they should be: gone with the transaction.
const FRESH: &str = "
CREATE VIRTUAL TABLE temp.found USING fts5vocab (search, words, instance);
CREATE VIRTUAL TABLE temp.fresh USING fts5 (
    body, context, sender, receiver, intent,
    content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE temp.wanted USING fts5vocab (temp, fresh, instance);
";

/// How many messages there are in an index, and how many words in each of its columns.
type Totals = [u64; 1 + COLUMNS.len()];

/// Checks the search file; returns one sentence for each fault. Only for a transaction that is rolled back. A file that
/// has to be rebuilt anyway is not checked.
pub(super) fn check(db: &Connection) -> SqlResult<Vec<String>> {
    if !search::is_current(db)? {
        return Ok(Vec::new());
    }
    let mut look = db.prepare("PRAGMA search.integrity_check")?;
    let rows = look.query_map([], |row| row.get(0))?;
    let mut found = rows.collect::<SqlResult<Vec<String>>>()?;
    found.retain(|line| line != "ok");
    if !found.is_empty() {
        return Ok(found);
    }
    let through: i64 = db.one("SELECT through FROM search.state", [], value)?;
    db.execute_batch(FRESH)?;
    // What each message has in the index and should not, or the other way round: nothing is zero.
    let mut odd: BTreeMap<i64, u64> = BTreeMap::new();
    each(db, "found", |row| {
        let sum = odd.entry(row.get("doc")?).or_default();
        *sum = sum.wrapping_add(fingerprint(row)?);
        Ok(())
    })?;
    let mut totals: Totals = [0; 6];
    let mut after = 0;
    while let Some(last) = fill(db, (after, through), &mut totals)? {
        after = last;
        each(db, "wanted", |row| {
            let sum = odd.entry(row.get("doc")?).or_default();
            *sum = sum.wrapping_sub(fingerprint(row)?);
            let column: String = row.get("col")?;
            let place = COLUMNS.iter().position(|c| *c == column);
            if let Some(total) = place.and_then(|p| totals.get_mut(p + 1)) {
                *total += 1;
            }
            Ok(())
        })?;
    }
    odd.retain(|_, sum| *sum != 0);
    let odd: Vec<i64> = odd.into_keys().collect();
    let sentence = "the index of words has other words than the messages";
    report(&mut found, sentence, &odd);
    if kept(db)? != Some(totals) {
        found.push("the words of the index are counted wrongly".into());
    }
    Ok(found)
}

/// Makes the words of the next messages. The last of them; nothing if there are no more.
fn fill(
    db: &Connection,
    (after, through): (i64, i64),
    totals: &mut Totals,
) -> SqlResult<Option<i64>> {
    db.execute("INSERT INTO temp.fresh (fresh) VALUES ('delete-all')", [])?;
    let mut find = db.prepare_cached(search::UNFILLED)?;
    let mut rows = find.query(params![after, through, ROWS])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get("seq")?;
        let [body, context, sender, receiver, intent] = searched_texts(search::text(row)?);
        let sql = "INSERT INTO temp.fresh (rowid, body, context, sender, receiver, intent) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        db.run(sql, params![seq, body, context, sender, receiver, intent])?;
        let [messages, ..] = totals;
        *messages += 1;
        last = Some(seq);
    }
    Ok(last)
}

fn each(
    db: &Connection,
    table: &str,
    mut look: impl FnMut(&Row<'_>) -> SqlResult<()>,
) -> SqlResult<()> {
    let mut ask = db.prepare_cached(&format!("SELECT term, doc, col, offset FROM temp.{table}"))?;
    let mut rows = ask.query([])?;
    while let Some(row) = rows.next()? {
        look(row)?;
    }
    Ok(())
}

/// A number for a word at its place in a message.
fn fingerprint(row: &Row<'_>) -> SqlResult<u64> {
    let mut hasher = DefaultHasher::new();
    row.get_ref("term")?.as_bytes_or_null()?.hash(&mut hasher);
    row.get_ref("col")?.as_bytes_or_null()?.hash(&mut hasher);
    row.get::<_, i64>("offset")?.hash(&mut hasher);
    Ok(hasher.finish())
}

/// The totals that the index keeps: six numbers as SQLite writes them, seven bits a byte.
fn kept(db: &Connection) -> SqlResult<Option<Totals>> {
    let bytes: Vec<u8> = db.query_row(
        "SELECT block FROM search.words_data WHERE id = 1",
        [],
        |row| row.get(0),
    )?;
    // An index that never had a message keeps none.
    if bytes.is_empty() {
        return Ok(Some([0; 6]));
    }
    let (mut totals, mut number) = (Vec::new(), 0_u64);
    for byte in bytes {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            totals.push(std::mem::take(&mut number));
        }
    }
    Ok(totals.try_into().ok())
}
