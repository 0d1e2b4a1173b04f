//! A scratch folder in memory for the tests: most of them write small files and databases all the time.
//!
//! Tests about durability, full disks and several processes use the target folder instead, which is on a disk.

use crate::invocation::Invocation;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// Where Linux mounts a file system in memory.
const PLACE: &str = "/dev/shm";
/// The free space that the tests need there.
const NEEDED_MIB: u64 = 2048;
/// How the folder's name begins; the process id follows.
const PREFIX: &str = "crosstalk-test-";
/// A file in the folder that the run which uses it has locked.
const LOCK: &str = "lock";

/// The folder. It is removed with its value.
#[derive(Debug)]
pub struct Memory {
    folder: PathBuf,
    /// Locked as long as the folder is in use.
    _lock: File,
}

impl Memory {
    /// A new folder in memory, or why there is none.
    pub fn new(root: &Path) -> Result<Self, String> {
        let df = Invocation::new(&format!("df --output=avail --block-size=1M {PLACE}"));
        let free = df.output(root).ok().and_then(|text| free_mib(&text));
        match free {
            None => return Err(format!("{PLACE} does not exist")),
            Some(free) if free < NEEDED_MIB => {
                return Err(format!("{PLACE} has only {free} MiB free"));
            }
            Some(_) => {}
        }
        let memory = Self::within(Path::new(PLACE)).map_err(|error| format!("{PLACE}: {error}"))?;
        if memory.runs_programs() {
            Ok(memory)
        } else {
            Err(format!("no program can be started from {PLACE}"))
        }
    }

    /// A new folder for its owner alone. Folders of runs that were interrupted are removed first.
    fn within(place: &Path) -> io::Result<Self> {
        let folder = place.join(format!("{PREFIX}{}", process::id()));
        remove_stale(place);
        // It fails if somebody else has made it.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let lock = File::create_new(folder.join(LOCK))?;
        lock.lock()?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// Whether programs can be started from there, as tests do.
    fn runs_programs(&self) -> bool {
        let program = self.folder.join("true");
        let runs = fs::copy("/bin/true", &program).is_ok()
            && Command::new(&program)
                .status()
                .is_ok_and(|status| status.success());
        let _ = fs::remove_file(program);
        runs
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folders of interrupted runs of this user: those whose lock nobody holds.
fn remove_stale(place: &Path) {
    let Ok(own) = fs::metadata("/proc/self").map(|process| process.uid()) else {
        return;
    };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX))
            && fs::symlink_metadata(entry.path()).is_ok_and(|m| m.is_dir() && m.uid() == own);
        let is_free = || File::open(entry.path().join(LOCK)).is_ok_and(|f| f.try_lock().is_ok());
        if is_ours && is_free() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The number below the heading of `df`.
fn free_mib(text: &str) -> Option<u64> {
    text.lines().nth(1)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn free_space_is_read() {
        assert_eq!(free_mib("  Avail\n  24105\n"), Some(24_105));
        assert_eq!(free_mib(""), None);
    }

    #[test]
    fn folders_of_interrupted_runs_are_removed_and_no_others() {
        let scratch = Scratch::new();
        let stale = format!("{PREFIX}1/{LOCK}");
        let foreign = format!("{PREFIX}notes/file");
        for name in [stale.as_str(), foreign.as_str(), "other/lock"] {
            scratch.write(name, "");
        }
        let used = Memory::within(scratch.path()).unwrap();
        remove_stale(scratch.path());
        let is_there = |name: &str| scratch.path().join(name).exists();
        assert!(used.path().exists() && is_there(&foreign) && is_there("other/lock"));
        assert!(!is_there(&stale));
        assert!(Memory::within(scratch.path()).is_err(), "it is in use");
        let mode = fs::metadata(used.path()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = used.path().to_path_buf();
        drop(used);
        assert!(!path.exists());
    }
}
