//! What still has to be handed to a relay: to which one, with which token and which files.

use crate::failure::Failure;
use crate::service::relay::data::make_folder;
use crate::service::relay::remote::Remote;
use crate::service::relay::submit::Attached;
use crate::service::workspace::Desk;
use crosstalk_envelope::meta::Digest;
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A message that is kept here and was meant for a relay.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) id: String,
    pub(crate) relay: String,
    pub(crate) token_file: Option<PathBuf>,
    files: Vec<NamedFile>,
}

/// A file that the message names.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
struct NamedFile {
    path: PathBuf,
    digest: String,
}

impl Due {
    /// A message on its way to a relay.
    pub(crate) fn new(id: &str, remote: &Remote, files: &[Attached]) -> Self {
        let named = |file: &Attached| NamedFile {
            path: std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone()),
            digest: file.digest.to_string(),
        };
        Self {
            id: id.to_owned(),
            relay: remote.url().to_owned(),
            token_file: remote.token_file().map(Path::to_owned),
            files: files.iter().map(named).collect(),
        }
    }

    /// Its files that are still there.
    pub(crate) fn files(&self) -> Vec<Attached> {
        let attached = |named: &NamedFile| {
            let digest = Digest::parse(&named.digest)?;
            let path = named.path.is_file().then(|| named.path.clone())?;
            Some(Attached { path, digest })
        };
        self.files.iter().filter_map(attached).collect()
    }
}

/// What is due, a file for each message.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    folder: PathBuf,
}

impl Outbox {
    /// The one of a person.
    pub(crate) fn of(desk: &Desk) -> Self {
        Self {
            folder: desk.home().as_ref().join("outbox"),
        }
    }

    /// Ids are anything: the name of a file is made of their digest.
    fn place(&self, id: &str) -> PathBuf {
        let digest = Digest::of(id.as_bytes()).to_string();
        let name = digest.trim_start_matches("sha256:");
        self.folder.join(format!("{name}.json"))
    }

    /// Remembers where a message was meant to go.
    pub(crate) fn add(&self, due: &Due) -> Result<(), Failure> {
        let place = self.place(&due.id);
        let fault = |e: io::Error| Failure::at(&place, e);
        let text = serde_json::to_vec(due).map_err(|e| fault(e.into()))?;
        make_folder(&self.folder).map_err(fault)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(fault)?;
        file.write_all(&text).map_err(fault)?;
        file.persist(&place).map_err(|e| fault(e.error))?;
        Ok(())
    }

    /// Where a message was meant to go, if it is not there yet.
    pub(crate) fn find(&self, id: &str) -> Option<Due> {
        let text = std::fs::read(self.place(id)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Where it is noted that a message was not copied.
    fn place_uncopied(&self, id: &str) -> PathBuf {
        self.place(id).with_extension("uncopied")
    }

    /// Remembers that a message which a person has to paste was not copied.
    pub(crate) fn add_uncopied(&self, id: &str) -> Result<(), Failure> {
        let place = self.place_uncopied(id);
        let fault = |e: io::Error| Failure::Io(place.to_string_lossy().into_owned(), e);
        make_folder(&self.folder).map_err(fault)?;
        std::fs::write(&place, "").map_err(fault)
    }

    /// Whether a message has to be copied first.
    pub(crate) fn is_uncopied(&self, id: &str) -> bool {
        self.place_uncopied(id).exists()
    }

    /// Forgets that a message was not copied.
    pub(crate) fn remove_uncopied(&self, id: &str) {
        // It is a hint: one that stays is told once more.
        let _ = std::fs::remove_file(self.place_uncopied(id));
    }

    /// Forgets a message that is there.
    pub(crate) fn remove(&self, id: &str) -> Result<(), Failure> {
        let place = self.place(id);
        match std::fs::remove_file(&place) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Failure::at(&place, e)),
            _ => Ok(()),
        }
    }

    /// The ids of everything that is due, the oldest first.
    pub(crate) fn all(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let read = |path: PathBuf| {
            let text = std::fs::read(path).ok()?;
            serde_json::from_slice::<Due>(&text).ok()
        };
        let mut ids: Vec<String> = entries
            .flatten()
            .filter_map(|entry| read(entry.path()).map(|due| due.id))
            .collect();
        ids.sort();
        ids
    }
}
