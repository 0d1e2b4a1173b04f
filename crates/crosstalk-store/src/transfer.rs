//! Copies the store of a relay from its data folder into PostgreSQL, and back.
//!
//! The two adapters have the same tables, but for a few that belong to one of them. A copy goes table by table in the order of the
//! primary key, so that it goes on where it was interrupted: behind the last row that the new store has. At the end, every row of
//! both stores is read again: counts and digests have to be the same, and the audit log has to have the roots that its checkpoints
//! say. Until then, no relay starts on the new store.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::Trust;
use crosstalk_protocol::audit::{EventKind, Hash, Leaf, Tree, leaf_hash};
use crosstalk_protocol::store::{StoreError, StoreFault};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::postgres::{PgSide, PostgresPlace};
use crate::sqlite::FileSide;
use crate::{Home, TrustFile, TrustStoreError};

/// How many rows are copied in one transaction.
const ROWS: usize = 1000;

/// Tables that are not copied: each store makes its own, or they are said in another way.
const OWN: [&str; 14] = [
    "blob_part",
    "chain",
    "crosstalk_version",
    "identity",
    "log_key",
    "progress",
    "registry_version",
    "relay_identity",
    "store_copy",
    "touched",
    "trust",
    "trust_source",
    "turn",
    "words",
];

/// Columns that only the database has: its own relays use them while they run, or they say where bytes are.
const DATABASE_ONLY: [(&str, &str); 3] = [
    ("blob", "parts"),
    ("intake", "origin"),
    ("intake", "speaker"),
];

/// A store that is copied, or a place for a copy.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a program has two of them, and moves them once"
)]
pub enum StorePlace {
    /// The data folder of a relay.
    Folder(PathBuf),
    /// A PostgreSQL database.
    Database(PostgresPlace),
}

impl std::fmt::Display for StorePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "the data folder `{}`", folder.display()),
            Self::Database(place) => write!(f, "{place}"),
        }
    }
}

/// A step of a copy, for whoever shows how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress<'p> {
    /// Whether rows are compared, and not copied.
    pub is_check: bool,
    /// The table.
    pub table: &'p str,
    /// How many of its rows are done.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// The result of a copy whose rows were compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// How many rows each table has.
    pub tables: BTreeMap<String, u64>,
    /// How many of all rows were there before, from a copy that was interrupted.
    pub resumed: u64,
    /// How many entries the audit log has.
    pub log_entries: u64,
    /// How many checkpoints its entries fulfil.
    pub checkpoints: u64,
    /// How many attachments the copy has the bytes of.
    pub attachments: u64,
    /// How many attachments have no bytes in what was copied.
    pub missing: u64,
}

impl CopyReport {
    /// How many messages were accepted.
    pub fn messages(&self) -> u64 {
        self.tables.get("intake").copied().unwrap_or(0)
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.tables.values().sum()
    }
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Cell {
    /// Adds it to a digest, so that no two rows are the same bytes.
    fn digest(&self, hash: &mut Sha256) {
        let (kind, bytes): (u8, &[u8]) = match self {
            Self::Null => (0, &[]),
            Self::Int(value) => {
                hash.update([1]);
                hash.update(value.to_be_bytes());
                return;
            }
            Self::Text(text) => (2, text.as_bytes()),
            Self::Bytes(bytes) => (3, bytes),
        };
        hash.update([kind]);
        hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(bytes);
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellKind {
    Int,
    Bool,
    Text,
    Bytes,
}

/// A column by the name that both stores use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyColumn {
    pub(crate) name: String,
    pub(crate) kind: CellKind,
    /// Whether a row needs a value that nothing else gives.
    pub(crate) is_required: bool,
    /// Its position in the primary key, from 1 on; 0 if it is not in it.
    pub(crate) key: usize,
}

/// Rows of a table in the order of some columns.
pub(crate) struct CopyPage<'p> {
    pub(crate) table: &'p str,
    pub(crate) columns: &'p [CopyColumn],
    pub(crate) key: &'p [CopyColumn],
    /// Behind the row with this key.
    pub(crate) after: Option<&'p [Cell]>,
    pub(crate) limit: usize,
}

/// Reads a store that is copied.
pub(crate) trait CopySide {
    /// Its tables.
    fn tables(&mut self) -> Result<Vec<String>, StoreError>;
    fn columns(&mut self, table: &str) -> Result<Vec<CopyColumn>, StoreError>;
    fn count(&mut self, table: &str) -> Result<u64, StoreError>;
    /// How many different values a column has, 2 at most.
    fn variety(&mut self, table: &str, column: &str) -> Result<u64, StoreError>;
    fn rows(&mut self, page: &CopyPage<'_>) -> Result<Vec<Vec<Cell>>, StoreError>;
    /// The key of the last row.
    fn last(&mut self, table: &str, key: &[CopyColumn]) -> Result<Option<Vec<Cell>>, StoreError>;
    /// How far indexing is, and how far messages were looked at for their age.
    fn progress(&mut self) -> Result<[i64; 2], StoreError>;
    /// A part of an attachment; nothing behind the last one, or if there are no bytes of it.
    fn part(&mut self, digest: &Digest, number: u64) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Writes a store that is a copy.
pub(crate) trait CopyTarget: CopySide {
    fn insert(
        &mut self,
        table: &str,
        columns: &[CopyColumn],
        rows: Vec<Vec<Cell>>,
    ) -> Result<(), StoreError>;
    /// Makes what is not copied from what is. It can be interrupted as well.
    fn complete(&mut self, progress: [i64; 2], seen: ProgressSink<'_>) -> Result<(), StoreError>;
    /// Keeps a part of an attachment.
    fn add_part(&mut self, digest: &Digest, number: u64, bytes: Vec<u8>) -> Result<(), StoreError>;
    /// Makes the parts of an attachment its bytes.
    fn finish_parts(&mut self, digest: &Digest) -> Result<(), StoreError>;
    /// Lets relays start on it.
    fn release(&mut self) -> Result<(), StoreError>;
}

/// Receives the progress of a copy.
pub(crate) type ProgressSink<'s> = &'s mut dyn FnMut(CopyProgress<'_>);

/// Copies the store of a relay. If it is interrupted, the same call goes on. No relay may use either of them.
///
/// # Errors
/// If one of the stores can't be used, the new one has something else in it, or the copy is not what was copied.
pub fn copy_store(
    from: &StorePlace,
    to: &StorePlace,
    seen: ProgressSink<'_>,
) -> Result<CopyReport, StoreError> {
    match (from, to) {
        (StorePlace::Folder(folder), StorePlace::Database(place)) => {
            let mut source = FileSide::source(folder)?;
            let mut target = PgSide::target(place.clone(), &from.to_string())?;
            copy(&mut source, &mut target, seen)
        }
        (StorePlace::Database(place), StorePlace::Folder(folder)) => {
            let mut source = PgSide::source(place.clone())?;
            let mut target = FileSide::target(folder, &from.to_string())?;
            copy_trust(&source.trust(&from.to_string())?, folder)?;
            copy(&mut source, &mut target, seen)
        }
        _ => Err(refused(
            "one of the two stores has to be a data folder, and the other one a database",
            "copy a data folder with its backup and restore commands, and a database with pg_dump",
        )),
    }
}

/// Adds the trusted keys of a database to the trust file of a data folder, before the rest: a key that was revoked stays revoked.
fn copy_trust(trust: &Trust, folder: &Path) -> Result<(), StoreError> {
    let file = TrustFile::new(&Home::at(folder));
    let unusable = |error: TrustStoreError| StoreError {
        fault: StoreFault::Unavailable,
        explanation: error.explanation(),
    };
    let merge = |ours: &mut Trust| Ok::<_, TrustStoreError>(ours.merge(trust));
    let left_out = file.update(merge).map_err(unusable)?;
    match left_out.first() {
        None => Ok(()),
        Some((key, _)) => Err(refused(
            format!(
                "`{}` contradicts the trusted keys of the database, first about the key {key}",
                file.path().display()
            ),
            "move the file away, and start the same copy again",
        )),
    }
}

pub(crate) fn refused(what: impl Into<String>, help: impl Into<String>) -> StoreError {
    StoreError::new(StoreFault::Unavailable, what, help)
}

/// A table that both stores have: the columns that are copied, and those by which its rows are ordered.
struct SharedTable {
    table: String,
    /// The columns in the old store and in the new one, in the same order: their kinds may differ.
    columns: [Vec<CopyColumn>; 2],
    key: [Vec<CopyColumn>; 2],
    /// Columns that only the new store has, and their value.
    filled: Vec<(CopyColumn, Cell)>,
}

/// The old store, and the new one.
const SOURCE: usize = 0;
const TARGET: usize = 1;

impl SharedTable {
    /// Where a column is in the rows.
    fn place(&self, name: &str) -> Option<usize> {
        let [columns, _] = &self.columns;
        columns.iter().position(|c| c.name == name)
    }

    fn page<'p>(&'p self, side: usize, after: Option<&'p [Cell]>) -> CopyPage<'p> {
        let of =
            |pair: &'p [Vec<CopyColumn>; 2]| pair.get(side).map(Vec::as_slice).unwrap_or_default();
        CopyPage {
            table: &self.table,
            columns: of(&self.columns),
            key: of(&self.key),
            after,
            limit: ROWS,
        }
    }
}

fn copy(
    source: &mut dyn CopySide,
    target: &mut dyn CopyTarget,
    seen: ProgressSink<'_>,
) -> Result<CopyReport, StoreError> {
    let tables = shared(source, target)?;
    let mut report = CopyReport::default();
    for shared in &tables {
        report.resumed += copy_table(source, target, shared, seen)?;
    }
    copy_attachments(source, target, &tables, &mut report, seen)?;
    target.complete(source.progress()?, seen)?;
    for shared in &tables {
        let count = compare(source, target, shared, seen)?;
        report.tables.insert(shared.table.clone(), count);
    }
    (report.log_entries, report.checkpoints) = check_log(target, &tables)?;
    target.release()?;
    Ok(report)
}

/// Copies the bytes of attachments, but for those that the copy has.
fn copy_attachments(
    source: &mut dyn CopySide,
    target: &mut dyn CopyTarget,
    tables: &[SharedTable],
    report: &mut CopyReport,
    seen: ProgressSink<'_>,
) -> Result<(), StoreError> {
    let Some(shared) = tables.iter().find(|shared| shared.table == "blob") else {
        return Ok(());
    };
    let mut digests = Vec::new();
    each_row(source, SOURCE, shared, &mut |row| {
        if let Some(Cell::Bytes(bytes)) = cell(shared, row, "digest")
            && let Ok(digest) = bytes.as_slice().try_into()
        {
            digests.push(Digest(digest));
        }
    })?;
    let total = u64::try_from(digests.len()).unwrap_or(u64::MAX);
    for (done, digest) in (0..).zip(digests) {
        seen(CopyProgress {
            is_check: false,
            table: "attachments",
            done,
            total,
        });
        if target.part(&digest, 0)?.is_none() && source.part(&digest, 0)?.is_some() {
            copy_attachment(source, target, &digest)?;
        }
        match target.part(&digest, 0)?.is_some() {
            true => report.attachments += 1,
            false => report.missing += 1,
        }
    }
    Ok(())
}

fn copy_attachment(
    source: &mut dyn CopySide,
    target: &mut dyn CopyTarget,
    digest: &Digest,
) -> Result<(), StoreError> {
    let mut hash = Sha256::new();
    for number in 0.. {
        let Some(bytes) = source.part(digest, number)? else {
            break;
        };
        hash.update(&bytes);
        target.add_part(digest, number, bytes)?;
    }
    match Digest(hash.finalize().into()) == *digest {
        true => target.finish_parts(digest),
        false => Err(refused(
            format!("the attachment {digest} is damaged"),
            "`crosstalk fsck --repair` moves damaged attachments of a data folder away; then copy again",
        )),
    }
}

/// The tables of both stores, without those that are not copied.
fn shared(
    source: &mut dyn CopySide,
    target: &mut dyn CopyTarget,
) -> Result<Vec<SharedTable>, StoreError> {
    let ours = target.tables()?;
    let mut all = Vec::new();
    for table in source.tables()? {
        if OWN.contains(&table.as_str()) {
            continue;
        }
        if !ours.contains(&table) {
            if source.count(&table)? > 0 {
                return Err(refused(
                    format!("the new store has no table `{table}`, and the old one has rows in it"),
                    "copy stores of relays with a program of the version of these relays",
                ));
            }
            continue;
        }
        let (theirs, ours) = (source.columns(&table)?, target.columns(&table)?);
        let is_in = |columns: &[CopyColumn], name: &str| columns.iter().any(|c| c.name == name);
        let (kept, left): (Vec<_>, Vec<_>) =
            theirs.into_iter().partition(|c| is_in(&ours, &c.name));
        for column in left {
            let is_known = DATABASE_ONLY.contains(&(table.as_str(), column.name.as_str()));
            if !is_known && source.variety(&table, &column.name)? > 1 {
                return Err(refused(
                    format!(
                        "the new store can't keep the column `{}` of the table `{table}`, and its rows differ in it",
                        column.name
                    ),
                    "a data folder keeps the data of one relay: leave the data in the database",
                ));
            }
        }
        let own = |theirs: &[CopyColumn]| {
            let found = theirs
                .iter()
                .map(|c| ours.iter().find(|o| o.name == c.name));
            found.flatten().cloned().collect::<Vec<CopyColumn>>()
        };
        let filled = ours.iter().filter(|c| !is_in(&kept, &c.name)).cloned();
        let filled = filled.filter(|c| c.is_required).map(|column| {
            let value = match column.kind {
                CellKind::Int | CellKind::Bool => Cell::Int(0),
                CellKind::Text => Cell::Text(String::new()),
                CellKind::Bytes => Cell::Bytes(Vec::new()),
            };
            (column, value)
        });
        let filled: Vec<(CopyColumn, Cell)> = filled.collect();
        let mut key: Vec<CopyColumn> = kept.iter().filter(|c| c.key > 0).cloned().collect();
        key.sort_by_key(|column| column.key);
        if key.is_empty() {
            return Err(refused(format!("the table `{table}` has no key"), ""));
        }
        let (new_columns, new_key) = (own(&kept), own(&key));
        all.push(SharedTable {
            table,
            columns: [kept, new_columns],
            key: [key, new_key],
            filled,
        });
    }
    Ok(all)
}

/// The values of the key in a row.
fn key_of(shared: &SharedTable, row: &[Cell]) -> Vec<Cell> {
    let [key, _] = &shared.key;
    let places = key.iter().filter_map(|key| shared.place(&key.name));
    places.filter_map(|place| row.get(place).cloned()).collect()
}

fn copy_table(
    source: &mut dyn CopySide,
    target: &mut dyn CopyTarget,
    shared: &SharedTable,
    seen: ProgressSink<'_>,
) -> Result<u64, StoreError> {
    let table = shared.table.as_str();
    let total = source.count(table)?;
    let resumed = target.count(table)?;
    let [_, key] = &shared.key;
    let (mut done, mut after) = (resumed, target.last(table, key)?);
    let [_, mut columns] = shared.columns.clone();
    columns.extend(shared.filled.iter().map(|(column, _)| column.clone()));
    loop {
        seen(CopyProgress {
            is_check: false,
            table,
            done,
            total,
        });
        let mut rows = source.rows(&shared.page(SOURCE, after.as_deref()))?;
        let Some(last) = rows.last() else {
            return Ok(resumed);
        };
        after = Some(key_of(shared, last));
        done += count_of(&rows);
        for row in &mut rows {
            row.extend(shared.filled.iter().map(|(_, value)| value.clone()));
        }
        target.insert(table, &columns, rows)?;
    }
}

fn count_of(rows: &[Vec<Cell>]) -> u64 {
    u64::try_from(rows.len()).unwrap_or(u64::MAX)
}

/// Runs through all rows of a table.
fn each_row(
    store: &mut dyn CopySide,
    side: usize,
    shared: &SharedTable,
    row: &mut dyn FnMut(&[Cell]),
) -> Result<u64, StoreError> {
    let (mut count, mut after) = (0, None);
    loop {
        let rows = store.rows(&shared.page(side, after.as_deref()))?;
        let Some(last) = rows.last() else {
            return Ok(count);
        };
        after = Some(key_of(shared, last));
        count += count_of(&rows);
        rows.iter().for_each(|cells| row(cells));
    }
}

/// The number of rows of a table, and a digest of all of them.
fn digest(
    store: &mut dyn CopySide,
    side: usize,
    shared: &SharedTable,
) -> Result<(u64, Digest), StoreError> {
    let mut hash = Sha256::new();
    let count = each_row(store, side, shared, &mut |row| {
        row.iter().for_each(|cell| cell.digest(&mut hash));
    })?;
    Ok((count, Digest(hash.finalize().into())))
}

/// Compares all rows of a table. How many there are.
fn compare(
    source: &mut dyn CopySide,
    target: &mut dyn CopyTarget,
    shared: &SharedTable,
    seen: ProgressSink<'_>,
) -> Result<u64, StoreError> {
    let table = shared.table.as_str();
    let total = source.count(table)?;
    let mut tell = |done| {
        seen(CopyProgress {
            is_check: true,
            table,
            done,
            total,
        });
    };
    tell(0);
    let (theirs, ours) = (
        digest(source, SOURCE, shared)?,
        digest(target, TARGET, shared)?,
    );
    if theirs != ours {
        return Err(refused(
            format!(
                "the copy of the table `{table}` is not what was copied: {} rows with {}, and {} rows with {}",
                theirs.0, theirs.1, ours.0, ours.1
            ),
            "a relay may have written meanwhile: stop all relays, remove the copy, and copy again",
        ));
    }
    tell(total);
    Ok(theirs.0)
}

/// Checks that the entries of the audit log have the roots that its checkpoints say. How many entries and checkpoints there are.
fn check_log(
    target: &mut dyn CopyTarget,
    tables: &[SharedTable],
) -> Result<(u64, u64), StoreError> {
    let named = |name: &str| tables.iter().find(|shared| shared.table == name);
    let (Some(log), Some(checkpoints)) = (named("log"), named("checkpoint")) else {
        return Err(refused("the store has no audit log", ""));
    };
    let damaged = |what: String| {
        refused(
            format!("the audit log is damaged: {what}"),
            "check the store that was copied with `crosstalk fsck`",
        )
    };
    let mut leaves: Vec<Hash> = Vec::new();
    let mut fault = None;
    let entries = each_row(target, TARGET, log, &mut |row| {
        let place = match cell(log, row, "place") {
            Some(Cell::Int(place)) => *place,
            _ => -1,
        };
        match leaf(log, row) {
            Some(leaf) => {
                if i64::try_from(leaves.len()).ok() != Some(place) {
                    fault.get_or_insert(format!("entry {place} is not where it has to be"));
                }
                leaves.push(leaf_hash(leaf.to_string().as_bytes()));
            }
            None => {
                fault.get_or_insert(format!("entry {place} can't be read"));
            }
        }
    })?;
    let tree = Tree::of(leaves);
    let count = each_row(target, TARGET, checkpoints, &mut |row| {
        let (size, root) = match (
            cell(checkpoints, row, "size"),
            cell(checkpoints, row, "root"),
        ) {
            (Some(Cell::Int(size)), Some(Cell::Bytes(root))) => {
                (size.unsigned_abs(), root.as_slice())
            }
            _ => (0, [].as_slice()),
        };
        if tree.root(size).is_none_or(|found| found.as_slice() != root) {
            fault.get_or_insert(format!(
                "its first {size} entries do not have the root that the checkpoint says"
            ));
        }
    })?;
    match fault {
        Some(what) => Err(damaged(what)),
        None => Ok((entries, count)),
    }
}

fn cell<'r>(shared: &SharedTable, row: &'r [Cell], name: &str) -> Option<&'r Cell> {
    row.get(shared.place(name)?)
}

/// The leaf of an entry of the log.
fn leaf(shared: &SharedTable, row: &[Cell]) -> Option<Leaf> {
    let of = |name: &str| cell(shared, row, name);
    let digest = |name: &str| match of(name)? {
        Cell::Null => Some(None),
        Cell::Bytes(bytes) => Some(Some(Digest(bytes.as_slice().try_into().ok()?))),
        _ => None,
    };
    let (Cell::Int(kind), Cell::Int(at)) = (of("kind")?, of("at")?) else {
        return None;
    };
    Some(Leaf {
        kind: *EventKind::ALL.get(usize::try_from(*kind).ok()?)?,
        at: Timestamp::from_millis(*at),
        canonical: digest("canonical")?,
        raw: digest("raw")?,
        detail: digest("sealed")?,
        id: match of("id")? {
            Cell::Text(id) => Some(id.clone()),
            _ => None,
        },
    })
}
