//! Check that the log is whole: no gap, the hashes those of the entries, the checkpoints those of the hashes, the texts those that
//! were accepted.

use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{EventDetail, Hash, Note, Tree, leaf_hash};
use rusqlite::{Connection, params};

use super::{all_checkpoints, entry, tile};
use crate::sqlite::fault::SqlResult;
use crate::sqlite::relay::check::report;
use crate::sqlite::sql::{number, to_u64};

/// Checks the log; returns one sentence for each fault.
pub(in crate::sqlite) fn check(db: &Connection) -> SqlResult<Vec<String>> {
    let mut found = Vec::new();
    let leaves = entries(db, &mut found)?;
    found.extend(tile::check(db, &leaves)?);
    checkpoints(db, &leaves, &mut found)?;
    texts(db, &mut found)?;
    Ok(found)
}

/// Reads every entry. Their hashes.
fn entries(db: &Connection, found: &mut Vec<String>) -> SqlResult<Vec<Hash>> {
    let mut ask = db.prepare("SELECT * FROM log ORDER BY place")?;
    let mut rows = ask.query([])?;
    let (mut leaves, mut bare, mut gap) = (Vec::new(), Vec::new(), None);
    while let Some(row) = rows.next()? {
        let place: i64 = row.get("place")?;
        if place != number(to_u64(leaves.len())) {
            gap = gap.or(Some(leaves.len()));
        }
        let leaf = match entry::leaf(row) {
            Ok(leaf) => leaf,
            Err(fault) => {
                found.push(format!("entry {place} of the log can't be read: {fault}"));
                return Ok(leaves);
            }
        };
        let salt: Option<Vec<u8>> = row.get("salt")?;
        let detail: Option<String> = row.get("detail")?;
        let sealed = match (&salt, &detail) {
            (Some(salt), Some(text)) => EventDetail::parse(text).map(|d| d.digest(salt)),
            // An erased detail leaves only its digest.
            (None, None) => leaf.detail,
            _ => None,
        };
        if sealed != leaf.detail {
            bare.push(place);
        }
        leaves.push(leaf_hash(leaf.to_string().as_bytes()));
    }
    if let Some(gap) = gap {
        found.push(format!("entry {gap} of the log is missing"));
    }
    report(found, "details of entries are not those of the log", &bare);
    Ok(leaves)
}

fn checkpoints(db: &Connection, leaves: &[Hash], found: &mut Vec<String>) -> SqlResult<()> {
    let tree = Tree::of(leaves.iter().copied());
    for sealed in all_checkpoints(db)? {
        let size = sealed.size;
        let claim = Note::parse(&sealed.note).and_then(|n| n.claim());
        let is_own = claim.is_ok_and(|c| (c.size, c.root) == (size, sealed.root));
        match tree.root(size) {
            None => found.push(format!(
                "the log was cut: a checkpoint has {size} entries, and there are {}",
                leaves.len()
            )),
            Some(root) if root != sealed.root || !is_own => found.push(format!(
                "the first {size} entries of the log are not those that were signed"
            )),
            Some(_) => {}
        }
    }
    Ok(())
}

/// The messages that are kept are those that were accepted.
fn texts(db: &Connection, found: &mut Vec<String>) -> SqlResult<()> {
    let mut ask = db.prepare(
        "SELECT i.seq, i.digest, coalesce(i.received, i.text) AS text, l.kind, l.canonical, l.raw, l.seq AS own, \
         (SELECT seq FROM log f WHERE f.place = i.entry AND f.kind = 0) AS first \
         FROM intake i LEFT JOIN log l ON l.place = coalesce(i.renewed, i.entry) \
         WHERE i.entry IS NOT NULL OR i.peer IS NOT NULL",
    )?;
    let mut rows = ask.query(params![])?;
    let mut wrong = Vec::new();
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get("seq")?;
        let text: String = row.get("text")?;
        let raw: Option<Hash> = row.get("raw")?;
        let same = row.get::<_, Option<i64>>("kind")? == Some(0)
            && row.get::<_, Option<Hash>>("canonical")? == Some(row.get("digest")?)
            && row.get::<_, Option<i64>>("own")? == Some(seq)
            && row.get::<_, Option<i64>>("first")? == Some(seq)
            && (text.is_empty() || raw == Some(Digest::of(text.as_bytes()).0));
        if !same {
            wrong.push(seq);
        }
    }
    report(
        found,
        "messages are not those that the log says were taken",
        &wrong,
    );
    Ok(())
}
