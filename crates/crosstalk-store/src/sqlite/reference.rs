//! References as people type them: an id, or its beginning.

use crosstalk_protocol::store::ReferenceMatch;
use rusqlite::{Connection, params};

use super::fault::SqlResult;
use crate::sqlite::sql::{Sql as _, number, value};

/// Fewer characters name nothing but an id that is as short.
const LEAST_TYPED: usize = 4;
/// An id is never shown with fewer characters.
const LEAST_SHOWN: usize = 8;
/// How many ids are named where several begin alike.
const MOST: usize = 10;

/// What a reference means: as it is typed, else in capitals, which ULIDs are made of.
pub(super) fn find(db: &Connection, reference: &str) -> SqlResult<ReferenceMatch> {
    let found = find_exactly(db, reference)?;
    let upper = reference.to_ascii_uppercase();
    if found == ReferenceMatch::Nothing && upper != reference {
        return find_exactly(db, &upper);
    }
    Ok(found)
}

fn find_exactly(db: &Connection, reference: &str) -> SqlResult<ReferenceMatch> {
    let has = |sql| -> SqlResult<bool> { db.has(sql, params![reference]) };
    if has("SELECT 1 FROM thread WHERE id = ?1")? {
        return Ok(ReferenceMatch::Thread(reference.to_owned()));
    }
    if has("SELECT 1 FROM message WHERE seq = (SELECT seq FROM intake WHERE id = ?1)")? {
        return Ok(ReferenceMatch::Message(reference.to_owned()));
    }
    match reference.chars().count() < LEAST_TYPED {
        true => Ok(ReferenceMatch::Nothing),
        false => find_prefix(db, reference),
    }
}

fn find_prefix(db: &Connection, prefix: &str) -> SqlResult<ReferenceMatch> {
    // No character of an id comes after this one.
    let end = format!("{prefix}\u{10ffff}");
    let ask = |sql: &str, apart: &str| -> SqlResult<Vec<String>> {
        let limit = number(MOST);
        db.all(sql, params![prefix, end, apart, limit], value)
    };
    let threads = ask(
        "SELECT id FROM thread WHERE id >= ?1 AND id < ?2 AND ?3 = ?3 ORDER BY id LIMIT ?4",
        "",
    )?;
    let apart = match threads.as_slice() {
        [one] => one,
        _ => "",
    };
    let messages = match threads.len() {
        0 | 1 => ask(
            "SELECT i.id FROM intake i CROSS JOIN message m ON m.seq = i.seq WHERE i.id >= ?1 AND i.id < ?2 \
             AND m.thread <> ?3 ORDER BY i.id LIMIT ?4",
            apart,
        )?,
        _ => Vec::new(),
    };
    Ok(match (threads.as_slice(), messages.as_slice()) {
        ([], []) => ReferenceMatch::Nothing,
        ([thread], []) => ReferenceMatch::Thread(thread.clone()),
        ([], [message]) => ReferenceMatch::Message(message.clone()),
        _ => ReferenceMatch::Several(threads.into_iter().chain(messages).take(MOST).collect()),
    })
}

/// Whether an id could pass for what is shown of another one: the beginning of a ULID.
pub(super) fn is_beginning(id: &str) -> bool {
    (LEAST_SHOWN..26).contains(&id.len())
        && id.starts_with(|c: char| ('0'..='7').contains(&c))
        && id
            .bytes()
            .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
}

/// Whether an id that is here begins so.
pub(super) fn is_found(db: &Connection, beginning: &str) -> SqlResult<bool> {
    Ok(find_prefix(db, beginning)? != ReferenceMatch::Nothing)
}

/// How many characters tell an id from its neighbours.
pub(super) fn shortest(db: &Connection, id: &str) -> SqlResult<usize> {
    let mut needed = LEAST_SHOWN;
    for sql in [
        "SELECT id FROM intake WHERE id < ?1 ORDER BY id DESC LIMIT 1",
        "SELECT id FROM intake WHERE id > ?1 ORDER BY id LIMIT 1",
        "SELECT id FROM thread WHERE id < ?1 ORDER BY id DESC LIMIT 1",
        "SELECT id FROM thread WHERE id > ?1 ORDER BY id LIMIT 1",
    ] {
        let neighbour: Option<String> = db.find(sql, params![id], value)?;
        if let Some(neighbour) = neighbour {
            let alike = id.chars().zip(neighbour.chars());
            needed = needed.max(alike.take_while(|(a, b)| a == b).count() + 1);
        }
    }
    Ok(needed.min(id.chars().count()))
}
