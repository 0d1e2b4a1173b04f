//! A disk that loses its power, or fails, under a program that knows nothing of it.
//!
//! A small library (`disk/preload.c`) is loaded into the program. It writes a journal of everything that the program writes to
//! one folder, and of every sync. From the journal, [`RecordedDisk::cut`] makes the folder as it could be after a power cut:
//! writes that were synced are there; of the others all, none, the first, or any, some of them torn at the end of a sector.
//! New names, renames and removals are lost from some point on, unless their folder was synced.
//!
//! With [`Fault`], one write, change of length, sync, new file or rename of the program fails. After a failed sync the writes before
//! it are lost, though later syncs succeed.
//!
//! What a program writes past libc (`rustix` does that) or through memory maps is not seen: keep it out of the folder.

use crate::folder::Folder;
use crate::program::{Program, output};
use crate::relay::Setup;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::{env, fs};

const SOURCE: &str = include_str!("disk/preload.c");
const COMPILER: Program = Program::new("cc", "gcc");
/// A disk writes a sector whole, or not at all.
const SECTOR: u64 = 512;

/// Names the file that says that a full disk has room again.
const ROOM: &str = "CROSSTALK_DISK_ROOM";

/// A full disk has room again, for this program and others that are recorded with it.
///
/// # Panics
/// This program is not recorded.
pub fn make_room() {
    let file = env::var_os(ROOM).expect("a program that is recorded");
    fs::write(file, "").expect("a file");
}

/// The library, compiled if it is not there yet.
///
/// # Panics
/// There is no C compiler, or nothing can be written beside the program that runs.
pub fn library() -> PathBuf {
    let hash = SOURCE.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let program = env::current_exe().expect("a program");
    let folder = program.parent().expect("a folder");
    let library = folder.join(format!("crosstalk-disk-{hash:016x}.so"));
    if !library.exists() {
        let made = Folder::within(folder, "disk");
        made.write("preload.c", SOURCE);
        let (from, to) = (made.path().join("preload.c"), made.path().join("out.so"));
        let mut compile = COMPILER.command();
        compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&to);
        output(compile.arg(from), COMPILER);
        fs::rename(to, &library).expect("a library");
    }
    library
}

/// Numbers that look random and follow from a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, below a limit that is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn is_heads(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// How one operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `EIO`. After a failed sync, every descriptor of the file that was open then fails once.
    Broken,
    /// Half of it is written, then `ENOSPC`, until [`make_room`].
    Full,
    /// Half of it is written, which is allowed.
    Short,
}

/// What a power cut takes of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing: as if the process had been killed.
    Nothing,
    /// Everything.
    Everything,
    /// Of each file, everything from some write on.
    Tail,
    /// Of each file, some writes and sectors.
    Parts,
}

/// A folder whose changes are recorded.
#[derive(Debug)]
pub struct RecordedDisk {
    place: Folder,
    data: PathBuf,
    /// What was in it when the journal began.
    base: Vec<BaseEntry>,
}

/// A name in the folder; of a file, its number and content.
type BaseEntry = (PathBuf, Option<(u64, Vec<u8>)>);

impl RecordedDisk {
    /// A new folder, `data`, inside of another one.
    ///
    /// # Panics
    /// It can't be made.
    pub fn within(place: &Path) -> Self {
        let place = Folder::within(place, "recorded");
        let path = place.path().canonicalize().expect("a folder");
        let mut disk = Self {
            data: path.join("data"),
            place,
            base: Vec::new(),
        };
        make_folder(&disk.data);
        disk.begin();
        disk
    }

    /// The folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// A relay that has its data here, recorded.
    #[must_use]
    pub fn record(&self, setup: Setup) -> Setup {
        let variables = self.variables(None).into_iter();
        variables.fold(setup.data(&self.data), |setup, (name, value)| {
            setup.env(name, &value)
        })
    }

    /// The environment of a program that is recorded. One operation may fail: a write, a change of length, a sync, a new file or
    /// a rename, counted from 1.
    pub fn variables(&self, fault: Option<(Fault, usize)>) -> Vec<(&'static str, String)> {
        let name = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut variables = vec![
            ("LD_PRELOAD", name(library())),
            ("CROSSTALK_DISK_FOLDER", name(self.data.clone())),
            ("CROSSTALK_DISK_JOURNAL", name(self.journal())),
            (ROOM, name(self.room())),
        ];
        if let Some((fault, number)) = fault {
            let kind = match fault {
                Fault::Broken => "broken",
                Fault::Full => "full",
                Fault::Short => "short",
            };
            variables.push(("CROSSTALK_DISK_FAULT", format!("{kind} {number}")));
        }
        variables
    }

    fn room(&self) -> PathBuf {
        self.place.path().join("room")
    }

    fn journal(&self) -> PathBuf {
        self.place.path().join("journal")
    }

    /// From now on, everything that is in the folder is on the disk. The program does not run.
    ///
    /// # Panics
    /// The files can't be read or written.
    pub fn begin(&mut self) {
        let _ = fs::remove_file(self.journal());
        self.base.clear();
        let mut folders = vec![self.data.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("a file").path();
                if path.is_dir() {
                    self.base.push((path.clone(), None));
                    folders.push(path);
                } else if !path.to_string_lossy().ends_with("-shm") {
                    let content = fs::read(&path).expect("a file");
                    self.base
                        .push((path.clone(), Some((number_of(&path), content))));
                }
            }
        }
    }

    /// How long the journal is: everything that the program has done so far is before this point.
    pub fn now(&self) -> u64 {
        fs::metadata(self.journal()).map_or(0, |file| file.len())
    }

    /// Everything that the program did up to a point.
    ///
    /// # Panics
    /// The journal can't be read.
    pub fn operations(&self, until: u64) -> Vec<Operation> {
        let bytes = fs::read(self.journal()).unwrap_or_default();
        let until = usize::try_from(until).unwrap_or(usize::MAX);
        let mut rest = bytes.get(..until).unwrap_or(&bytes);
        let mut operations = Vec::new();
        while let Some(operation) = Operation::read(&mut rest) {
            operations.push(operation);
        }
        operations
    }

    /// Makes the folder as it is after a power cut at a point of the journal, and begins a new journal. The program does not run.
    ///
    /// # Panics
    /// The files can't be read or written.
    pub fn cut(&mut self, at: u64, loss: Loss, random: &mut Random) {
        let mut model = Model::of(&self.base);
        for operation in self.operations(at) {
            model.apply(operation);
        }
        model.lose(loss, random);
        fs::remove_dir_all(&self.data).expect("a folder");
        make_folder(&self.data);
        model.write();
        self.begin();
    }
}

/// A call that a [`Fault`] can hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultyCall {
    /// It was meant to be short and does not write: it was carried out.
    Passed,
    /// Bytes were written.
    Write,
    /// The length was changed.
    Truncate,
    /// A file or folder was synced.
    Sync,
    /// A file was made.
    Create,
    /// A file got another name.
    Rename,
}

/// Something that a program did to the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new file, by its number, under a name.
    Create(u64, PathBuf),
    /// Bytes of a file from a place on.
    Write(u64, u64, Vec<u8>),
    /// Another length of a file.
    Truncate(u64, u64),
    /// The beginning of a sync of a file or folder: number of the file, of the sync, name.
    SyncBegin(u64, u64, PathBuf),
    /// The end of a sync: its number.
    SyncEnd(u64),
    /// Another name.
    Rename(PathBuf, PathBuf),
    /// A name that is gone.
    Remove(PathBuf),
    /// A new folder.
    Folder(PathBuf),
    /// The fault was injected: the call that failed, number of the file, name.
    Fault(FaultyCall, u64, PathBuf),
}

impl Operation {
    fn read(rest: &mut &[u8]) -> Option<Self> {
        let mut record = split(rest, 4).and_then(|size| {
            let size = u32::from_le_bytes(size.try_into().ok()?);
            split(rest, size as usize)
        })?;
        let record = &mut record;
        let mut number = |bytes: usize| {
            let mut whole = [0; 8];
            let part = split(record, bytes)?;
            whole.get_mut(..bytes)?.copy_from_slice(part);
            Some(u64::from_le_bytes(whole))
        };
        let (kind, file, place) = (number(4)?, number(8)?, number(8)?);
        let (path, target) = (number(4)?, number(4)?);
        let mut name = |length: u64| {
            let bytes = split(record, usize::try_from(length).ok()?)?;
            Some(PathBuf::from(String::from_utf8_lossy(bytes).into_owned()))
        };
        let (path, target) = (name(path)?, name(target)?);
        Some(match kind {
            1 => Self::Create(file, path),
            2 => Self::Write(file, place, record.to_vec()),
            3 => Self::Truncate(file, place),
            4 => Self::SyncBegin(file, place, path),
            5 => Self::SyncEnd(place),
            6 => Self::Rename(path, target),
            7 => Self::Remove(path),
            8 => Self::Folder(path),
            9 => {
                let call = match place {
                    0 => FaultyCall::Passed,
                    1 => FaultyCall::Write,
                    2 => FaultyCall::Truncate,
                    3 => FaultyCall::Sync,
                    4 => FaultyCall::Create,
                    5 => FaultyCall::Rename,
                    other => panic!("the journal has a fault of kind {other}"),
                };
                Self::Fault(call, file, path)
            }
            other => panic!("the journal has a record of kind {other}"),
        })
    }
}

fn split<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (first, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(first)
}

/// A change of a file.
#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(place, bytes) => {
                let place = usize::try_from(*place).expect("a place");
                let end = place + bytes.len();
                content.resize(content.len().max(end), 0);
                content
                    .get_mut(place..end)
                    .expect("it is long enough")
                    .copy_from_slice(bytes);
            }
            Self::Truncate(length) => {
                content.resize(usize::try_from(*length).expect("a length"), 0);
            }
        }
    }

    /// The parts of a write that are written together.
    fn sectors(&self) -> Vec<Self> {
        let &Self::Write(mut place, ref bytes) = self else {
            return vec![self.clone()];
        };
        let mut rest = bytes.as_slice();
        let mut sectors = Vec::new();
        while !rest.is_empty() {
            let room = usize::try_from(SECTOR - place % SECTOR).expect("a sector");
            let (part, after) = rest.split_at(room.min(rest.len()));
            rest = after;
            sectors.push(Self::Write(place, part.to_vec()));
            place += part.len() as u64;
        }
        sectors
    }
}

/// A file: what is on the disk, and what is only in memory.
#[derive(Debug, Default)]
struct RecordedFile {
    durable: Vec<u8>,
    pending: VecDeque<Change>,
    /// How many changes are on the disk.
    synced: usize,
}

impl RecordedFile {
    fn changes(&self) -> usize {
        self.synced + self.pending.len()
    }

    fn sync(&mut self, changes: usize) {
        while self.synced < changes {
            let Some(change) = self.pending.pop_front() else {
                return;
            };
            change.apply(&mut self.durable);
            self.synced += 1;
        }
    }

    fn lose(&mut self, loss: Loss, random: &mut Random) {
        let pending = std::mem::take(&mut self.pending);
        let kept = match loss {
            Loss::Nothing | Loss::Parts => pending.len(),
            Loss::Everything => 0,
            Loss::Tail => usize::try_from(random.below(pending.len() as u64 + 1)).unwrap_or(0),
        };
        for change in pending.into_iter().take(kept) {
            if loss != Loss::Parts {
                change.apply(&mut self.durable);
                continue;
            }
            match (&change, random.below(3)) {
                // What comes after it was written to other blocks, which are lost with the new length.
                (Change::Truncate(_), 0) => return,
                (Change::Truncate(_), _) | (_, 0) => change.apply(&mut self.durable),
                (_, 1) => {}
                _ => {
                    let sectors = change.sectors().into_iter();
                    sectors
                        .filter(|_| random.is_heads())
                        .for_each(|sector| sector.apply(&mut self.durable));
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    File(usize),
    Folder,
}

/// A change of names.
#[derive(Clone, Debug)]
enum Naming {
    Add(PathBuf, Entry),
    Move(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Naming {
    fn is_in(&self, folder: &Path) -> bool {
        let is_in = |path: &Path| path.parent() == Some(folder);
        match self {
            Self::Add(path, _) | Self::Remove(path) => is_in(path),
            Self::Move(from, to) => is_in(from) || is_in(to),
        }
    }

    fn apply(self, names: &mut BTreeMap<PathBuf, Entry>) {
        match self {
            Self::Add(path, entry) => {
                names.insert(path, entry);
            }
            Self::Move(from, to) => {
                if let Some(entry) = names.remove(&from) {
                    names.insert(to, entry);
                }
            }
            Self::Remove(path) => {
                names.remove(&path);
            }
        }
    }
}

/// The folder: what is on the disk, and what is only in memory.
#[derive(Debug, Default)]
struct Model {
    files: Vec<RecordedFile>,
    by_number: HashMap<u64, usize>,
    names: BTreeMap<PathBuf, Entry>,
    pending: Vec<(usize, Naming)>,
    namings: usize,
    /// Syncs that have begun: what they cover.
    syncs: HashMap<u64, Sync>,
}

#[derive(Debug)]
enum Sync {
    File(usize, usize),
    Folder(PathBuf, usize),
}

impl Model {
    fn of(base: &[BaseEntry]) -> Self {
        let mut model = Self::default();
        for (path, file) in base {
            let entry = match file {
                None => Entry::Folder,
                Some((number, content)) => {
                    let file = model.add(*number);
                    if let Some(file) = model.files.get_mut(file) {
                        file.durable.clone_from(content);
                    }
                    Entry::File(file)
                }
            };
            model.names.insert(path.clone(), entry);
        }
        model
    }

    fn add(&mut self, number: u64) -> usize {
        self.files.push(RecordedFile::default());
        self.by_number.insert(number, self.files.len() - 1);
        self.files.len() - 1
    }

    fn change(&mut self, number: u64, change: Change) {
        let file = self.by_number.get(&number);
        if let Some(file) = file.and_then(|f| self.files.get_mut(*f)) {
            file.pending.push_back(change);
        }
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Create(number, path) => {
                let file = self.add(number);
                self.name(Naming::Add(path, Entry::File(file)));
            }
            Operation::Write(number, place, bytes) => {
                self.change(number, Change::Write(place, bytes));
            }
            Operation::Truncate(number, length) => self.change(number, Change::Truncate(length)),
            Operation::SyncBegin(number, sync, path) => {
                let covered = match self.by_number.get(&number) {
                    Some(file) => {
                        let changes = self.files.get(*file).map_or(0, RecordedFile::changes);
                        Sync::File(*file, changes)
                    }
                    None => Sync::Folder(path, self.namings),
                };
                self.syncs.insert(sync, covered);
            }
            Operation::SyncEnd(sync) => match self.syncs.remove(&sync) {
                Some(Sync::File(file, changes)) => {
                    if let Some(file) = self.files.get_mut(file) {
                        file.sync(changes);
                    }
                }
                Some(Sync::Folder(path, changes)) => self.sync_folder(&path, changes),
                None => panic!("a sync ends that has not begun"),
            },
            Operation::Rename(from, to) => self.name(Naming::Move(from, to)),
            Operation::Remove(path) => self.name(Naming::Remove(path)),
            Operation::Folder(path) => self.name(Naming::Add(path, Entry::Folder)),
            Operation::Fault(FaultyCall::Sync, number, _) => self.forget_unsynced(number),
            Operation::Fault(..) => {}
        }
    }

    /// After a failed sync, Linux takes the writes for done: a later sync does not try them again.
    fn forget_unsynced(&mut self, number: u64) {
        let file = self.by_number.get(&number);
        if let Some(file) = file.and_then(|f| self.files.get_mut(*f)) {
            file.synced = file.changes();
            file.pending.clear();
        }
    }

    fn name(&mut self, naming: Naming) {
        self.pending.push((self.namings, naming));
        self.namings += 1;
    }

    fn sync_folder(&mut self, folder: &Path, namings: usize) {
        for (place, naming) in std::mem::take(&mut self.pending) {
            if place < namings && naming.is_in(folder) {
                naming.apply(&mut self.names);
            } else {
                self.pending.push((place, naming));
            }
        }
    }

    fn lose(&mut self, loss: Loss, random: &mut Random) {
        let pending = std::mem::take(&mut self.pending);
        let kept = match loss {
            Loss::Nothing => pending.len(),
            Loss::Everything => 0,
            Loss::Tail | Loss::Parts => {
                usize::try_from(random.below(pending.len() as u64 + 1)).unwrap_or(0)
            }
        };
        for (_, naming) in pending.into_iter().take(kept) {
            naming.apply(&mut self.names);
        }
        for file in &mut self.files {
            file.lose(loss, random);
        }
    }

    /// Folders come before what is in them. A file whose folder is lost is lost with it.
    fn write(&self) {
        for (path, entry) in &self.names {
            if !path.parent().is_some_and(Path::is_dir) {
                continue;
            }
            match entry {
                Entry::Folder => make_folder(path),
                Entry::File(file) => {
                    let content = self.files.get(*file).map(|f| f.durable.as_slice());
                    write_file(path, content.unwrap_or_default());
                }
            }
        }
    }
}

fn number_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).expect("a file").ino()
}

fn make_folder(path: &Path) {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made.expect("a folder");
}

fn write_file(path: &Path, content: &[u8]) {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    file.and_then(|mut file| file.write_all(content))
        .expect("a file");
}
