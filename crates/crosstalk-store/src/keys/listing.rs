//! The list of keys. A broken file is reported and does not hide the rest.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{KeyStore, LABEL, PRIVATE, PUBLIC, StoredKey, read};
use crate::disk::Lock;
use crate::facts::{KeyFacts, KeyRetirement};
use crate::fault::{DiskError, FileAction, KeyFileError};
use crate::name;
use crate::permission::Guard;

/// The keys of a store.
#[derive(Debug, Default)]
pub struct KeyListing {
    /// The keys, by id, and those of one id by age.
    pub keys: Vec<StoredKey>,
    /// The faults of the files of other keys.
    pub problems: Vec<KeyFileError>,
}

impl KeyListing {
    /// Every key of an id: the one that counts, and those that it replaced.
    pub fn of_id<'l>(&'l self, id: &str) -> impl Iterator<Item = &'l StoredKey> {
        self.keys.iter().filter(move |key| key.facts.id == id)
    }

    /// A new key says which one it replaced. That counts even if the command that replaced it was interrupted before it
    /// could mark the old one.
    fn retire_what_was_replaced(&mut self) {
        let rotations: Vec<_> = self
            .keys
            .iter()
            .filter_map(|key| {
                let retired = KeyRetirement {
                    at: key.facts.created,
                    by: key.facts.id.clone(),
                    grace: key.facts.rotation.as_ref()?.grace_until,
                };
                Some((key.facts.rotation.clone()?, retired))
            })
            .collect();
        for key in self.keys.iter_mut().filter(|k| k.facts.retired.is_none()) {
            let replaced = rotations.iter().find(|(rotation, _)| {
                rotation.replaces == key.facts.id && rotation.replaces_key == key.facts.public
            });
            key.facts.retired = replaced.map(|(_, retired)| retired.clone());
        }
    }
}

impl KeyStore {
    /// Every key, those that were replaced included. No passphrase is needed, and no folder means no keys.
    ///
    /// # Errors
    /// If the folder can't be read. The answer holds the faults of single keys.
    pub fn list(&self) -> Result<KeyListing, KeyFileError> {
        let _lock = Lock::share(&self.folder, LABEL);
        self.scan()
    }

    /// The same, for who has the right to write.
    pub(super) fn scan(&self) -> Result<KeyListing, KeyFileError> {
        let fault = |e| DiskError::new(FileAction::Read, &self.folder, e);
        let entries = match std::fs::read_dir(&self.folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(KeyListing::default()),
            entries => entries.map_err(fault)?,
        };
        let mut public: BTreeSet<String> = BTreeSet::new();
        let mut private: BTreeSet<PathBuf> = BTreeSet::new();
        for entry in entries {
            let name = entry.map_err(fault)?.file_name();
            // A hidden file is a lock or an unfinished write.
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            match name.rsplit_once('.') {
                Some((stem, PUBLIC)) => _ = public.insert(stem.to_owned()),
                Some((_, PRIVATE)) => _ = private.insert(self.folder.join(name)),
                _ => {}
            }
        }
        let mut listing = KeyListing::default();
        for stem in public {
            match self.entry(&stem, &private) {
                Ok(key) => {
                    private.remove(&key.private);
                    listing.keys.push(key);
                }
                Err(problem) => {
                    private.remove(&self.file(&stem, PRIVATE));
                    listing.problems.push(problem);
                }
            }
        }
        let alone = private.into_iter().map(|file| KeyFileError::Incomplete {
            missing: file.with_extension(PUBLIC),
            file,
        });
        listing.problems.extend(alone);
        listing.retire_what_was_replaced();
        listing.keys.sort_by(|a, b| {
            let (a, b) = (&a.facts, &b.facts);
            (&a.id, a.created, a.public.record()).cmp(&(&b.id, b.created, b.public.record()))
        });
        Ok(listing)
    }

    /// The key whose facts have this name.
    fn entry(&self, stem: &str, private: &BTreeSet<PathBuf>) -> Result<StoredKey, KeyFileError> {
        let file = self.file(stem, PUBLIC);
        let wrong = |message| KeyFileError::WrongFacts {
            file: file.clone(),
            message,
        };
        let text = read(&file, Guard::Public).map_err(|unread| {
            unread.unwrap_or_else(|| wrong("it is gone, or a link to nowhere".to_owned()))
        })?;
        let facts = KeyFacts::parse(&text).map_err(wrong)?;
        let (by_id, by_key) = (
            name::of_id(&facts.id),
            name::of_key(&facts.id, &facts.public),
        );
        if stem != by_id && stem != by_key {
            return Err(wrong(format!(
                "it is about the key `{}`, whose file is called `{by_id}.{PUBLIC}`",
                facts.id
            )));
        }
        // While a key is moved, its private key may have the longer name already, or still.
        let own = [&by_key, stem].map(|stem| self.file(stem, PRIVATE));
        let found = own.into_iter().find(|file| private.contains(file));
        let Some(private) = found else {
            return Err(KeyFileError::Incomplete {
                missing: self.file(stem, PRIVATE),
                file,
            });
        };
        Ok(StoredKey {
            facts,
            stem: stem.to_owned(),
            private,
        })
    }
}
