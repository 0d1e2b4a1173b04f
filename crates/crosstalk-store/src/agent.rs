//! The agents of a user: which process holds which address, and what the agent has read.

use crate::Home;
use crate::disk::{self, Lock, ReadFault};
use crate::fault::{DiskError, FileAction};
use crate::permission::Guard;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::store::{is_same_party, party};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

const LIMIT: u64 = 4 * 1024 * 1024;
/// The most agents that are listed.
const LISTED: usize = 1_000;

/// The folder with a file for each agent.
#[derive(Clone, Debug)]
pub struct AgentFolder {
    folder: PathBuf,
}

/// The state of an agent on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Its address.
    pub address: String,
    /// The client that it runs in, such as `claude`.
    pub client: String,
    /// The folder of its project.
    pub project: String,
    /// When it was last seen, as a time of the wire.
    pub last_seen: String,
    /// Every message to it up to this position was read or answered.
    #[serde(default)]
    pub read_through: u64,
    /// The positions after it of messages that were read or answered.
    #[serde(default)]
    pub read: BTreeSet<u64>,
}

/// An agent whose address this process holds, until it is dropped or the process ends.
#[derive(Debug)]
pub struct HeldAgent {
    folder: AgentFolder,
    facts: AgentFacts,
    _lock: Lock,
}

impl AgentFolder {
    /// The one of a home.
    pub fn new(home: &Home) -> Self {
        let data: &std::path::Path = home.as_ref();
        Self {
            folder: data.join("agents"),
        }
    }

    /// Addresses have any characters, and a file name has few.
    fn label(address: &str) -> String {
        let digest = Digest::of(party(address).as_bytes()).to_string();
        let hex = digest.rsplit(':').next().unwrap_or_default();
        let short: String = hex.chars().take(24).collect();
        format!("{short}.toml")
    }

    /// Takes an address for this process; nothing if another process holds it. What it has read is as it was left.
    ///
    /// # Errors
    /// If the folder can't be read or written.
    pub fn hold(&self, address: &str) -> Result<Option<HeldAgent>, DiskError> {
        let label = Self::label(address);
        let lock = loop {
            if let Some(lock) = Lock::at_once(&self.folder, &label)? {
                break lock;
            }
            if Lock::is_held(&self.folder, &label) {
                return Ok(None);
            }
            // Another process only looked whether it is held.
            std::thread::yield_now();
        };
        let facts = self.read(&label)?.unwrap_or_else(|| AgentFacts {
            address: address.to_owned(),
            ..AgentFacts::default()
        });
        Ok(Some(HeldAgent {
            folder: self.clone(),
            facts,
            _lock: lock,
        }))
    }

    /// The state of the agent with this address.
    ///
    /// # Errors
    /// If its file can't be read.
    pub fn find(&self, address: &str) -> Result<Option<AgentFacts>, DiskError> {
        let facts = self.read(&Self::label(address))?;
        Ok(facts.filter(|facts| is_same_party(&facts.address, address)))
    }

    /// Whether a live process holds an address.
    pub fn is_live(&self, address: &str) -> bool {
        Lock::is_held(&self.folder, &Self::label(address))
    }

    /// All agents, by address. A file that can't be read is left out.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub fn list(&self) -> Result<Vec<AgentFacts>, DiskError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(DiskError::new(FileAction::Read, &self.folder, e)),
        };
        let mut all = Vec::new();
        for entry in entries.flatten().take(LISTED) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".toml") && !name.starts_with('.') {
                all.extend(self.read(&name).ok().flatten());
            }
        }
        all.sort_by(|a, b| a.address.cmp(&b.address));
        Ok(all)
    }

    /// A file that is none of ours any more counts as absent: the agent reads its mail again.
    fn read(&self, label: &str) -> Result<Option<AgentFacts>, DiskError> {
        match disk::read(&self.folder.join(label), LIMIT, Guard::Public) {
            Ok(text) => Ok(toml::from_str(&text).ok()),
            Err(ReadFault::Disk(fault)) => Err(fault),
            Err(ReadFault::Missing | ReadFault::Exposed(_) | ReadFault::TooLarge(_)) => Ok(None),
        }
    }
}

impl HeldAgent {
    /// Its state.
    pub const fn facts(&self) -> &AgentFacts {
        &self.facts
    }

    /// Changes what is kept of it. When this returns, it is on disk.
    ///
    /// # Errors
    /// If its file can't be written.
    pub fn update(&mut self, change: impl FnOnce(&mut AgentFacts)) -> Result<(), DiskError> {
        let mut after = self.facts.clone();
        change(&mut after);
        let label = AgentFolder::label(&after.address);
        let path = self.folder.folder.join(&label);
        let invalid = |e: toml::ser::Error| {
            let fault = io::Error::new(io::ErrorKind::InvalidData, e);
            DiskError::new(FileAction::Write, &path, fault)
        };
        let text = toml::to_string(&after).map_err(invalid)?;
        disk::replace(&path, &text, &label)?;
        self.facts = after;
        Ok(())
    }
}

impl AgentFacts {
    /// Whether the message at this position was read or answered.
    pub fn has_read(&self, seq: u64) -> bool {
        seq <= self.read_through || self.read.contains(&seq)
    }

    /// Marks messages as read, by their positions.
    pub fn mark(&mut self, seqs: impl IntoIterator<Item = u64>) {
        let through = self.read_through;
        self.read
            .extend(seqs.into_iter().filter(|seq| *seq > through));
    }

    /// Forgets single positions up to the first message that was not read.
    pub fn compact(&mut self, first_unread: Option<u64>) {
        let last = self.read.last().copied().unwrap_or_default();
        let through = first_unread.map_or(last, |seq| seq.saturating_sub(1).min(last));
        if through > self.read_through {
            self.read_through = through;
            self.read = self.read.split_off(&through.saturating_add(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_held_once_and_free_again_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let agents = AgentFolder::new(&Home::at(folder.path()));
        let mut first = agents.hold("claude://code/api").unwrap().unwrap();
        assert!(agents.hold("claude://code/api").unwrap().is_none());
        assert!(agents.is_live("Claude://code/api") && !agents.is_live("claude://code/api-2"));
        first.update(|facts| facts.mark([3, 5])).unwrap();
        drop(first);
        assert!(!agents.is_live("claude://code/api"));
        let again = agents.hold("claude://code/api").unwrap().unwrap();
        assert!(again.facts().has_read(5) && !again.facts().has_read(4));
        assert_eq!(agents.list().unwrap().len(), 1);
    }

    #[test]
    fn compacting_keeps_what_was_read() {
        let mut facts = AgentFacts::default();
        facts.mark([2, 4, 9]);
        facts.compact(Some(7));
        assert_eq!((facts.read_through, facts.read.len()), (6, 1));
        assert!(facts.has_read(4) && facts.has_read(9) && !facts.has_read(7));
        facts.compact(None);
        assert!(facts.has_read(9) && facts.read.is_empty() && !facts.has_read(10));
    }
}
