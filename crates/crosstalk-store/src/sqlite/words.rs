//! Check that the index of words has the words of the messages, and no others.
//!
//! It has no content of its own, so that SQLite looks at its form alone. The words are made again here, a few messages at a
//! time, and compared with what is in it.

use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::derive::{self, INTAKE_ROW, IntakeRow};
use super::fault::SqlResult;
use super::relay::check::report;
use crate::sqlite::sql::Sql as _;

/// How many messages are in memory at once.
const ROWS: i64 = 256;
/// The columns of the index, in their order.
const COLUMNS: [&str; 5] = ["body", "context", "sender", "receiver", "intent"];

/// The words as they are in the index, and as they should be: gone with the transaction.
const FRESH: &str = "
CREATE VIRTUAL TABLE temp.found USING fts5vocab (main, words, instance);
CREATE VIRTUAL TABLE temp.fresh USING fts5 (
    body, context, sender, receiver, intent,
    content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE temp.wanted USING fts5vocab (temp, fresh, instance);
";

/// How many messages there are in an index, and how many words in each of its columns.
type Totals = [u64; 1 + COLUMNS.len()];

/// What is wrong, one sentence each. Only inside a transaction that is not kept.
pub(super) fn check(db: &Connection) -> SqlResult<Vec<String>> {
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
    while let Some(last) = fill(db, after, &mut totals)? {
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
    let mut found = Vec::new();
    let odd: Vec<i64> = odd.into_keys().collect();
    let sentence = "the index of words has other words than the messages";
    report(&mut found, sentence, &odd);
    if kept(db)? != Some(totals) {
        found.push("the words of the index are counted wrongly".into());
    }
    Ok(found)
}

/// Makes the words of the next messages. The last of them; nothing if there are no more.
fn fill(db: &Connection, after: i64, totals: &mut Totals) -> SqlResult<Option<i64>> {
    db.execute("INSERT INTO temp.fresh (fresh) VALUES ('delete-all')", [])?;
    let sql = format!(
        "SELECT {INTAKE_ROW} FROM intake i WHERE seq > ?1 AND text <> '' \
         AND EXISTS (SELECT 1 FROM message m WHERE m.seq = i.seq) ORDER BY seq LIMIT ?2"
    );
    let mut find = db.prepare_cached(&sql)?;
    let mut rows = find.query(params![after, ROWS])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        let IntakeRow { seq, arrival, .. } = derive::intake_row(row)?;
        let [body, context, sender, receiver, intent] = derive::words(&arrival);
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
    let bytes: Vec<u8> = db.query_row("SELECT block FROM words_data WHERE id = 1", [], |row| {
        row.get(0)
    })?;
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
