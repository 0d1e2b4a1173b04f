//! Key files: one PEM file for each private key, and what is public about it in a TOML file beside it.
//!
//! `alice@example.com.pem` and `alice@example.com.toml` are the files of the key that counts; those of a key that was
//! replaced have `~` and eight hex digits of their key behind the id. A key is there when its TOML file is. So no
//! passphrase is needed to see which keys there are, and an interrupted command leaves either the old state or the new.

mod change;
mod listing;

pub use change::KeyHandover;
pub use listing::KeyListing;

use crosstalk_envelope::{PrivateKey, Timestamp, is_key_id};
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

use crate::disk::{self, Lock, ReadFault};
use crate::facts::KeyFacts;
use crate::fault::{DiskError, FileAction, KeyFileError};
use crate::permission::Guard;
use crate::{Home, backup, name, pem};

/// The name of its temporary files and its lock.
const LABEL: &str = "keys";
const PRIVATE: &str = "pem";
const PUBLIC: &str = "toml";
/// Neither file of a key gets near to it.
const LIMIT: u64 = 64 * 1024;

/// The keys that this user signs with.
///
/// ```
/// use crosstalk_envelope::{Algorithm, PrivateKey, Timestamp};
/// use crosstalk_store::{Home, KeyStore};
///
/// # let folder = tempfile::tempdir()?;
/// # let home = Home::at(folder.path());
/// let store = KeyStore::new(&home);
/// let key = PrivateKey::generate(Algorithm::Ed25519)?;
/// store.create("alice@example.com", &key, Some("correct horse"), Timestamp::from_millis(0))?;
///
/// let found = store.find("alice@example.com")?;
/// assert_eq!(found.facts.public, key.public());
/// let loaded = store.load(&found, || Ok("correct horse".to_owned().into()))?;
/// assert_eq!(loaded.public(), key.public());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyStore {
    folder: PathBuf,
}

/// A key of the store: what is public about it, and where its private key is.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredKey {
    /// Its public facts.
    pub facts: KeyFacts,
    /// The name of its TOML file, without the ending.
    stem: String,
    private: PathBuf,
}

impl StoredKey {
    /// The file with the private key.
    pub fn path(&self) -> &Path {
        &self.private
    }

    /// Whether the key counts: it was neither replaced nor revoked.
    pub const fn is_active(&self) -> bool {
        self.facts.is_active()
    }
}

impl KeyStore {
    /// The keys under a home.
    pub fn new(home: &Home) -> Self {
        let folder = home.keys();
        Self { folder }
    }

    /// Stores a new key under an id that has none, encrypted if there is a passphrase.
    ///
    /// # Errors
    /// If the id is none or has a key, the passphrase is empty, the key is on the deny list, or the disk says no.
    pub fn create(
        &self,
        id: &str,
        key: &PrivateKey,
        passphrase: Option<&str>,
        created: Timestamp,
    ) -> Result<StoredKey, KeyFileError> {
        self.add(KeyFacts::new(id, key.public(), created), key, passphrase)
    }

    /// Stores a key with all that is known about it, as a backup tells it. An id has one key that counts, and any
    /// number that were replaced.
    ///
    /// # Errors
    /// As [`create`](Self::create), and if the facts are those of another key.
    pub fn add(
        &self,
        facts: KeyFacts,
        key: &PrivateKey,
        passphrase: Option<&str>,
    ) -> Result<StoredKey, KeyFileError> {
        let text = sealed(&facts, key, passphrase)?;
        let _lock = Lock::wait(&self.folder, LABEL)?;
        let listing = self.scan()?;
        let in_the_way = listing.of_id(&facts.id).find(|other| {
            let is_same = other.facts.public == facts.public;
            let both_count = other.facts.retired.is_none() && facts.retired.is_none();
            let is_no_successor = facts.retired.is_none() && facts.rotation.is_none();
            is_same || both_count || is_no_successor
        });
        if let Some(other) = in_the_way {
            return Err(KeyFileError::Exists {
                id: facts.id,
                file: other.private.clone(),
            });
        }
        let stem = if facts.retired.is_some() {
            name::of_key(&facts.id, &facts.public)
        } else {
            name::of_id(&facts.id)
        };
        self.put(stem, facts, &text)
    }

    /// Writes the two files of a key where there are none, the private key first: it is not there before its facts are.
    fn put(&self, stem: String, facts: KeyFacts, text: &str) -> Result<StoredKey, KeyFileError> {
        let (private, public) = (self.file(&stem, PRIVATE), self.file(&stem, PUBLIC));
        for file in [&private, &public] {
            // Whatever it is, it may be somebody's only copy.
            if file.symlink_metadata().is_ok() {
                return Err(KeyFileError::Exists {
                    id: facts.id,
                    file: file.clone(),
                });
            }
        }
        let described = describe(&facts, &public)?;
        disk::replace(&private, text, LABEL)?;
        disk::replace(&public, &described, LABEL)?;
        Ok(StoredKey {
            facts,
            stem,
            private,
        })
    }

    /// The key of an id that counts, else the newest of those that were replaced.
    ///
    /// # Errors
    /// If there is none, or its files are not what they should be.
    pub fn find(&self, id: &str) -> Result<StoredKey, KeyFileError> {
        let listing = self.list()?;
        let newest = |key: &&StoredKey| {
            let counts = key.facts.retired.is_none();
            (counts, key.facts.created)
        };
        let found = listing.of_id(id).max_by_key(newest).cloned();
        if let Some(key) = found.as_ref().filter(|key| key.facts.retired.is_none()) {
            return Ok(key.clone());
        }
        // A broken file may be the one that counts.
        let name = name::of_id(id);
        let is_of_id = |problem: &KeyFileError| {
            let stem = problem.file().and_then(Path::file_stem);
            stem.is_some_and(|stem| *stem == *name)
        };
        match listing.problems.into_iter().find(is_of_id) {
            Some(problem) => Err(problem),
            None => found.ok_or_else(|| KeyFileError::NotFound {
                id: id.to_owned(),
                folder: self.folder.clone(),
            }),
        }
    }

    /// Reads the private key. The passphrase is asked for only if it is encrypted.
    ///
    /// # Errors
    /// If others can reach the file, the passphrase does not open it, or the key is not that of its public key.
    pub fn load(
        &self,
        key: &StoredKey,
        ask: impl FnOnce() -> io::Result<Zeroizing<String>>,
    ) -> Result<PrivateKey, KeyFileError> {
        let (file, text) = self.read_private(key)?;
        let private = pem::open(&text, ask).map_err(|e| e.at(&file))?;
        require_pair(&key.facts, &private).map_err(|e| e.at(&file))?;
        Ok(private)
    }

    /// Whether a passphrase is needed to sign with a key.
    ///
    /// # Errors
    /// If others can reach the file, or there is no key in it.
    pub fn is_encrypted(&self, key: &StoredKey) -> Result<bool, KeyFileError> {
        let (file, text) = self.read_private(key)?;
        pem::is_encrypted(&text).map_err(|e| e.at(&file))
    }

    /// The text of a private key, from where it is now: another key may have got its name since it was found.
    fn read_private(&self, key: &StoredKey) -> Result<(PathBuf, Zeroizing<String>), KeyFileError> {
        let _lock = Lock::share(&self.folder, LABEL);
        let current = self.current(&self.scan()?, key);
        let key = current.unwrap_or_else(|_| key.clone());
        match read(&key.private, Guard::Private) {
            Ok(text) => Ok((key.private, text)),
            Err(Some(error)) => Err(error),
            Err(None) => Err(KeyFileError::Incomplete {
                file: self.file(&key.stem, PUBLIC),
                missing: key.private,
            }),
        }
    }

    /// Writes a backup of a key, encrypted with a passphrase of its own, to a file that was not there.
    ///
    /// # Errors
    /// If the passphrase is empty, the private key is another one, or the file exists or can't be written.
    pub fn backup(
        &self,
        key: &StoredKey,
        private: &PrivateKey,
        to: &Path,
        passphrase: &str,
    ) -> Result<(), KeyFileError> {
        require_pair(&key.facts, private)?;
        let text = backup::text(&key.facts, private, passphrase)?;
        disk::write_new(to, &text).map_err(|e| DiskError::new(FileAction::Write, to, e))?;
        Ok(())
    }

    fn file(&self, stem: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{stem}.{ending}"))
    }
}

/// Reads one of the two files of a key; the error is nothing if there is no such file.
fn read(path: &Path, guard: Guard) -> Result<Zeroizing<String>, Option<KeyFileError>> {
    disk::read(path, LIMIT, guard).map_err(|unread| match unread {
        ReadFault::Missing => None,
        ReadFault::Exposed(exposure) => Some(KeyFileError::exposed(&exposure)),
        ReadFault::TooLarge(limit) => {
            let message = format!("it is larger than the {limit} bytes that a key file may have");
            Some(KeyFileError::not_a_key(message, "").at(path))
        }
        ReadFault::Disk(error) => Some(error.into()),
    })
}

/// The text of the private key, once it is clear that it may be stored.
fn sealed(
    facts: &KeyFacts,
    key: &PrivateKey,
    passphrase: Option<&str>,
) -> Result<Zeroizing<String>, KeyFileError> {
    if !is_key_id(&facts.id) {
        return Err(KeyFileError::NotAnId(facts.id.clone()));
    }
    if let Some(reason) = facts.public.denied() {
        return Err(KeyFileError::Denied(reason));
    }
    require_pair(facts, key)?;
    pem::seal(key, passphrase)
}

fn require_pair(facts: &KeyFacts, key: &PrivateKey) -> Result<(), KeyFileError> {
    if facts.public == key.public() {
        Ok(())
    } else {
        Err(KeyFileError::Mismatch { file: None })
    }
}

/// The text of the facts, for a file.
fn describe(facts: &KeyFacts, file: &Path) -> Result<String, KeyFileError> {
    facts.to_text().map_err(|message| KeyFileError::WrongFacts {
        file: file.to_owned(),
        message,
    })
}
