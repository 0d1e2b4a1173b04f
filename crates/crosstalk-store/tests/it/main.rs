//! What is kept on disk, on a real disk: modes, hostile names, other programs' keys, interrupted and concurrent writers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a test may panic and print"
)]

#[macro_use]
mod suite;

mod again;
mod backup;
mod config;
mod home;
mod interruption;
mod keys;
mod letter;
mod memory;
mod openssl;
mod parcel;
#[cfg(unix)]
mod permission;
#[cfg(unix)]
mod postgres;
mod rotation;
mod sqlite;
mod transfer;
mod trust;

use crosstalk_envelope::{Algorithm, PrivateKey, Timestamp};
use crosstalk_store::{Home, KeyStore};
use std::io;
use std::path::Path;
use tempfile::TempDir;
use zeroize::Zeroizing;

/// A home of its own for a test, which vanishes with it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    /// One on the disk that the project is built on, for tests about disks and about several processes: the folder for
    /// temporary files may be in memory.
    fn on_disk() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn home(&self) -> Home {
        Home::at(self.path())
    }

    fn store(&self) -> KeyStore {
        KeyStore::new(&self.home())
    }

    /// The names of the files with keys, in order; what is hidden is left out.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = all_names(&self.home().keys())
            .into_iter()
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        names
    }
}

fn all_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn new_key() -> PrivateKey {
    PrivateKey::generate(Algorithm::Ed25519).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_763_000_000_000 + seconds * 1000)
}

/// For keys that are not encrypted.
fn never() -> io::Result<Zeroizing<String>> {
    panic!("nothing to ask for")
}

fn says(passphrase: &str) -> impl FnOnce() -> io::Result<Zeroizing<String>> {
    let passphrase = Zeroizing::new(passphrase.to_owned());
    || Ok(passphrase)
}
