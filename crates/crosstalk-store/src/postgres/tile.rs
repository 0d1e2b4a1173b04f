//! Hashes of the tree, 256 neighbours to a tile. Only full tiles are stored, with their own hashes; what is at the right edge
//! is made from the tiles below it, and from entries.

use crosstalk_protocol::audit::{Hash, Hashes, Tree};
use std::collections::HashMap;

use super::entry;
use super::fault::{PgResult, SqlError};
use super::sql::{Db, PgColumns as _, number, params, to_u64, value};

/// How many levels of the tree a tile spans.
const HEIGHT: u32 = 8;
/// How many hashes a tile has.
const WIDTH: u64 = 1 << HEIGHT;

/// The hashes of a chain, as they are asked for.
pub(super) struct PgTiles<'d> {
    db: &'d Db,
    chain: i64,
    /// The tiles read so far, by level and position.
    read: HashMap<(u32, u64), Vec<Hash>>,
}

impl<'d> PgTiles<'d> {
    pub(super) fn new(db: &'d Db, chain: i64) -> Self {
        let read = HashMap::new();
        Self { db, chain, read }
    }

    /// The hashes of a tile, as far as there are some.
    fn tile(&mut self, level: u32, place: u64) -> PgResult<&[Hash]> {
        if !self.read.contains_key(&(level, place)) {
            let hashes = match stored(self.db, self.chain, level, place)? {
                Some(hashes) => hashes,
                None => self.edge(level, place)?,
            };
            self.read.insert((level, place), hashes);
        }
        Ok(self.read.get(&(level, place)).map_or(&[], Vec::as_slice))
    }

    /// The hashes of a tile that is not stored.
    fn edge(&mut self, level: u32, place: u64) -> PgResult<Vec<Hash>> {
        let first = place << HEIGHT;
        let Some(below) = level.checked_sub(1) else {
            return entry::hashes(self.db, self.chain, first, WIDTH);
        };
        let mut hashes = roots(self.db, self.chain, below, first)?;
        // Those whose tiles are full and not stored yet.
        while to_u64(hashes.len()) < WIDTH {
            let tile = self.tile(below, first + to_u64(hashes.len()))?;
            if to_u64(tile.len()) < WIDTH {
                break;
            }
            let root = Tree::of(tile.iter().copied()).root(WIDTH);
            hashes.extend(root);
        }
        Ok(hashes)
    }
}

impl Hashes for PgTiles<'_> {
    type Error = SqlError;

    fn at(&mut self, level: u32, place: u64) -> PgResult<Hash> {
        let (tiles, rest) = (level / HEIGHT, level % HEIGHT);
        let first = place << rest;
        let skip = usize::try_from(first % WIDTH).unwrap_or(usize::MAX);
        let count = 1_u64 << rest;
        let tile = self.tile(tiles, first / WIDTH)?;
        let taken = tile.iter().copied().skip(skip);
        let part = Tree::of(taken.take(usize::try_from(count).unwrap_or(usize::MAX)));
        part.root(count).ok_or(SqlError::NoRow)
    }
}

fn stored(db: &Db, chain: i64, level: u32, place: u64) -> PgResult<Option<Vec<Hash>>> {
    let sql = "SELECT hashes FROM chain_tile WHERE chain = $1 AND level = $2 AND place = $3";
    let asked = params![chain, i64::from(level), number(place)];
    let bytes: Option<Vec<u8>> = db.find(sql, asked, value)?;
    Ok(bytes.map(|bytes| bytes.as_chunks::<32>().0.to_vec()))
}

/// The hashes of tiles from a position on, without a gap, as many as the tile above has room for.
fn roots(db: &Db, chain: i64, level: u32, first: u64) -> PgResult<Vec<Hash>> {
    let sql = "SELECT place, root FROM chain_tile WHERE chain = $1 AND level = $2 AND place >= $3 AND place < $4 \
        ORDER BY place";
    let asked = params![
        chain,
        i64::from(level),
        number(first),
        number(first + WIDTH)
    ];
    let rows = db.all(sql, asked, |row| Ok((row.seq("place")?, row.hash("root")?)))?;
    let without_gap = (first..)
        .zip(rows)
        .take_while(|(wanted, (place, _))| wanted == place);
    Ok(without_gap.map(|(_, (_, root))| root).collect())
}

/// How many tiles of a level are stored.
fn count(db: &Db, chain: i64, level: u32) -> PgResult<u64> {
    let sql = "SELECT max(place) FROM chain_tile WHERE chain = $1 AND level = $2";
    let last: Option<i64> = db.one(sql, params![chain, i64::from(level)], value)?;
    Ok(last.map_or(0, |place| place.unsigned_abs() + 1))
}

/// Stores tiles of the own chain that are full and not stored. Whether there are more. Only inside a transaction.
pub(super) fn store(db: &Db, size: u64, limit: usize) -> PgResult<bool> {
    let chain = db.chain();
    let mut left = limit;
    for level in 0..u64::BITS / HEIGHT {
        let full = size.checked_shr(HEIGHT * (level + 1)).unwrap_or(0);
        for place in count(db, chain, level)?..full {
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            let mut tiles = PgTiles::new(db, chain);
            let hashes = tiles.tile(level, place)?;
            let root = Tree::of(hashes.iter().copied()).root(WIDTH);
            let root = root.ok_or(SqlError::NoRow)?;
            let sql = "INSERT INTO chain_tile (chain, level, place, root, hashes) VALUES ($1, $2, $3, $4, $5)";
            db.run(
                sql,
                params![
                    chain,
                    i64::from(level),
                    number(place),
                    root.as_slice(),
                    hashes.as_flattened()
                ],
            )?;
        }
        if full == 0 {
            break;
        }
    }
    Ok(false)
}
