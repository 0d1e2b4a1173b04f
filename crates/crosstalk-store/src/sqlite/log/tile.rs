//! Hashes of the tree, 256 neighbours to a tile. Only full tiles are stored, with their own hashes; what is at the right edge
//! is made from the tiles below it, and from entries.

use crosstalk_protocol::audit::{Hash, Hashes, Tree};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::HashMap;

use super::{entry, number_of, signed};
use crate::sqlite::fault::Step;

/// How many levels of the tree a tile spans.
const HEIGHT: u32 = 8;
/// How many hashes a tile has.
const WIDTH: u64 = 1 << HEIGHT;

/// The hashes of a log, as they are asked for.
pub(super) struct Tiles<'d> {
    db: &'d Connection,
    /// What was read, by level and place.
    read: HashMap<(u32, u64), Vec<Hash>>,
}

impl<'d> Tiles<'d> {
    pub(super) fn new(db: &'d Connection) -> Self {
        let read = HashMap::new();
        Self { db, read }
    }

    /// The hashes of a tile, as far as there are some.
    fn tile(&mut self, level: u32, place: u64) -> Step<&[Hash]> {
        if !self.read.contains_key(&(level, place)) {
            let hashes = match stored(self.db, level, place)? {
                Some(hashes) => hashes,
                None => self.edge(level, place)?,
            };
            self.read.insert((level, place), hashes);
        }
        Ok(self.read.get(&(level, place)).map_or(&[], Vec::as_slice))
    }

    /// The hashes of a tile that is not stored.
    fn edge(&mut self, level: u32, place: u64) -> Step<Vec<Hash>> {
        let first = place << HEIGHT;
        let Some(below) = level.checked_sub(1) else {
            return entry::hashes(self.db, first, WIDTH);
        };
        let mut hashes = roots(self.db, below, first)?;
        // Those whose tiles are full and not stored yet.
        while number_of(hashes.len()) < WIDTH {
            let tile = self.tile(below, first + number_of(hashes.len()))?;
            if number_of(tile.len()) < WIDTH {
                break;
            }
            let root = Tree::of(tile.iter().copied()).root(WIDTH);
            hashes.extend(root);
        }
        Ok(hashes)
    }
}

impl Hashes for Tiles<'_> {
    type Error = rusqlite::Error;

    fn at(&mut self, level: u32, place: u64) -> Step<Hash> {
        let (tiles, rest) = (level / HEIGHT, level % HEIGHT);
        let first = place << rest;
        let skip = usize::try_from(first % WIDTH).unwrap_or(usize::MAX);
        let count = 1_u64 << rest;
        let tile = self.tile(tiles, first / WIDTH)?;
        let taken = tile.iter().copied().skip(skip);
        let part = Tree::of(taken.take(usize::try_from(count).unwrap_or(usize::MAX)));
        part.root(count).ok_or(rusqlite::Error::QueryReturnedNoRows)
    }
}

fn stored(db: &Connection, level: u32, place: u64) -> Step<Option<Vec<Hash>>> {
    let bytes: Option<Vec<u8>> = db
        .prepare_cached("SELECT hashes FROM tile WHERE level = ?1 AND place = ?2")?
        .query_row(params![level, signed(place)], |row| row.get(0))
        .optional()?;
    Ok(bytes.map(|bytes| bytes.as_chunks::<32>().0.to_vec()))
}

/// The hashes of tiles from a place on, without a gap, as many as the tile above has room for.
fn roots(db: &Connection, level: u32, first: u64) -> Step<Vec<Hash>> {
    let mut find = db.prepare_cached(
        "SELECT place, root FROM tile WHERE level = ?1 AND place >= ?2 AND place < ?3 ORDER BY place",
    )?;
    let mut rows = find.query(params![level, signed(first), signed(first + WIDTH)])?;
    let mut hashes = Vec::new();
    while let Some(row) = rows.next()? {
        let place: i64 = row.get(0)?;
        if place.unsigned_abs() != first + number_of(hashes.len()) {
            break;
        }
        hashes.push(row.get(1)?);
    }
    Ok(hashes)
}

/// How many tiles of a level are stored.
fn count(db: &Connection, level: u32) -> Step<u64> {
    let last: Option<i64> = db
        .prepare_cached("SELECT max(place) FROM tile WHERE level = ?1")?
        .query_row(params![level], |row| row.get(0))?;
    Ok(last.map_or(0, |place| place.unsigned_abs() + 1))
}

/// Whether there is a tile that is full and not stored.
pub(super) fn is_behind(db: &Connection, size: u64) -> Step<bool> {
    Ok(count(db, 0)? < size / WIDTH)
}

/// Stores tiles that are full and not stored. Whether there are more. Only inside of a transaction.
pub(super) fn store(db: &Connection, size: u64, most: usize) -> Step<bool> {
    let mut left = most;
    for level in 0..u64::BITS / HEIGHT {
        let full = size.checked_shr(HEIGHT * (level + 1)).unwrap_or(0);
        for place in count(db, level)?..full {
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            let mut tiles = Tiles::new(db);
            let hashes = tiles.tile(level, place)?;
            let root = Tree::of(hashes.iter().copied()).root(WIDTH);
            let root = root.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            db.prepare_cached(
                "INSERT INTO tile (level, place, root, hashes) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![level, signed(place), root, hashes.as_flattened()])?;
        }
        if full == 0 {
            break;
        }
    }
    Ok(false)
}

/// What is wrong with the tiles of a log, one sentence each.
pub(super) fn check(db: &Connection, leaves: &[Hash]) -> Step<Vec<String>> {
    let (mut found, mut hashes, mut seen) = (Vec::new(), leaves.to_vec(), 0_u64);
    for level in 0..u64::BITS / HEIGHT {
        let stored_here = count(db, level)?;
        let mut above = Vec::new();
        let width = usize::try_from(WIDTH).unwrap_or(usize::MAX);
        for (place, group) in (0_u64..).zip(hashes.chunks_exact(width)) {
            let root = Tree::of(group.iter().copied()).root(WIDTH);
            above.extend(root);
            if place >= stored_here {
                continue;
            }
            seen += 1;
            let kept: Option<(Vec<u8>, Hash)> = db
                .prepare_cached("SELECT hashes, root FROM tile WHERE level = ?1 AND place = ?2")?
                .query_row(params![level, signed(place)], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            let fits =
                kept.is_some_and(|(all, own)| all == group.as_flattened() && Some(own) == root);
            if !fits {
                found.push(format!(
                    "the stored hashes {level}/{place} of the log are not those of its entries"
                ));
            }
        }
        hashes = above;
    }
    let all: i64 = db.query_row("SELECT count(*) FROM tile", [], |row| row.get(0))?;
    if all.unsigned_abs() != seen {
        found.push("there are stored hashes of entries that the log does not have".to_owned());
    }
    Ok(found)
}
