//! Files and folders: made for their owner alone, complete or not there, one writer at a time.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

use crate::fault::{DiskError, FileAction};
use crate::permission::{Exposure, Guard};

/// Why a text was not read.
#[derive(Debug)]
pub(crate) enum ReadFault {
    /// There is no such file.
    Missing,
    /// Others can reach it.
    Exposed(Exposure),
    /// It is larger than anything that belongs there, in bytes.
    TooLarge(u64),
    /// The disk says no.
    Disk(DiskError),
}

/// Reads a text that others must not be able to reach. A link is followed; what counts is the file at its end.
pub(crate) fn read(path: &Path, limit: u64, guard: Guard) -> Result<Zeroizing<String>, ReadFault> {
    let fault = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ReadFault::Missing,
        _ => ReadFault::Disk(DiskError::new(FileAction::Read, path, source)),
    };
    let file = open_for_reading(path).map_err(fault)?;
    let metadata = file.metadata().map_err(fault)?;
    if !metadata.is_file() {
        return Err(fault(io::Error::other("it is not a regular file")));
    }
    guard.check(&file, path).map_err(ReadFault::Exposed)?;
    let length = metadata.len();
    if length > limit {
        return Err(ReadFault::TooLarge(limit));
    }
    // Room for all of it at once: a text that grows leaves copies of secrets behind.
    let room = usize::try_from(length).unwrap_or(0) + 1;
    let mut text = Zeroizing::new(String::with_capacity(room));
    file.take(limit).read_to_string(&mut text).map_err(fault)?;
    Ok(text)
}

/// Opens a file, and does not wait if a pipe without a writer is in its place.
fn open_for_reading(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        let flags = i32::try_from(flags).unwrap_or(0);
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    options.open(path)
}

/// Makes a folder, and those above it, for the owner alone.
pub(crate) fn make_folder(path: &Path) -> Result<(), DiskError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(path)
        .map_err(|e| DiskError::new(FileAction::Write, path, e))
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a file that was not there, for the owner alone.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = owner_only().create_new(true).open(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a file is worse than none.
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Puts a file in the place of what was there, or where nothing was: readers see the one or the other. `label` names
/// what the new file is called in between, for [`sweep`].
pub(crate) fn replace(path: &Path, text: &str, label: &str) -> Result<(), DiskError> {
    let fault = |e| DiskError::new(FileAction::Write, path, e);
    // A link stays a link: what is replaced is the file at its end.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().unwrap_or(Path::new("."));
    let temporary = temporary(folder, label)?;
    write_new(&temporary, text).map_err(fault)?;
    let renamed = std::fs::rename(&temporary, &target);
    if renamed.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    renamed.and_then(|()| sync_folder(folder)).map_err(fault)
}

/// Gives a file another name in its folder, if that one is free. Only the holder of the lock may ask.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), DiskError> {
    let fault = |e| DiskError::new(FileAction::Write, to, e);
    if to.symlink_metadata().is_ok() {
        return Err(fault(io::ErrorKind::AlreadyExists.into()));
    }
    std::fs::rename(from, to)
        .and_then(|()| sync_folder(to.parent().unwrap_or(Path::new("."))))
        .map_err(fault)
}

/// A rename is on the disk when its folder is. Windows does not open folders, and orders renames itself.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// A name for a file that is not in its place yet, for [`sweep`] to find if it never gets there.
pub(crate) fn temporary(folder: &Path, label: &str) -> Result<PathBuf, DiskError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .map_err(|e| DiskError::new(FileAction::Write, folder, io::Error::other(e)))?;
    let random = u64::from_be_bytes(random);
    Ok(folder.join(format!("{}{random:016x}", temporary_prefix(label))))
}

fn temporary_prefix(label: &str) -> String {
    format!(".{label}.tmp-")
}

/// Removes what a writer left behind that was interrupted. Only the holder of the lock may do so.
fn sweep(folder: &Path, label: &str) {
    let prefix = temporary_prefix(label);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            // A leftover file does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn lock_file(folder: &Path, label: &str) -> PathBuf {
    folder.join(format!(".{label}.lock"))
}

fn open_lock(folder: &Path, label: &str) -> Result<(File, PathBuf), DiskError> {
    make_folder(folder)?;
    let path = lock_file(folder, label);
    match owner_only().create(true).truncate(false).open(&path) {
        Ok(file) => Ok((file, path)),
        Err(e) => Err(DiskError::new(FileAction::Lock, &path, e)),
    }
}

/// The right to write, or to read while nobody writes, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Closing the file is not enough: a child process that is being started has a copy of it for a moment.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Waits for the right to write what `label` names in a folder, which is made if it is missing.
    pub(crate) fn wait(folder: &Path, label: &str) -> Result<Self, DiskError> {
        let (file, path) = open_lock(folder, label)?;
        file.lock()
            .map_err(|e| DiskError::new(FileAction::Lock, &path, e))?;
        sweep(folder, label);
        Ok(Self { file })
    }

    /// The right to be the only one that does what `label` names in a folder; nothing if another process has it.
    pub(crate) fn at_once(folder: &Path, label: &str) -> Result<Option<Self>, DiskError> {
        let (file, path) = open_lock(folder, label)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(DiskError::new(FileAction::Lock, &path, e)),
        }
    }

    /// Whether another process, or another part of this one, has the right that [`Self::at_once`] gives.
    pub(crate) fn is_held(folder: &Path, label: &str) -> bool {
        let Ok(file) = File::open(lock_file(folder, label)) else {
            return false;
        };
        match file.try_lock_shared() {
            Ok(()) => {
                drop(Self { file });
                false
            }
            Err(fault) => matches!(fault, TryLockError::WouldBlock),
        }
    }

    /// Waits until nobody writes, if anybody ever did. A user who may only read the folder can still read.
    pub(crate) fn share(folder: &Path, label: &str) -> Option<Self> {
        let file = File::open(lock_file(folder, label)).ok()?;
        file.lock_shared().ok()?;
        Some(Self { file })
    }
}
