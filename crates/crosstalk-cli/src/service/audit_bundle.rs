//! An audit bundle on disk: a folder of files.

use crate::failure::Failure;
use crate::service::relay::data::{make_folder, private_file};
use crosstalk_protocol::audit::bundle::{BundleFiles, DETAILS, ENTRIES, KEY, chain_folder};
use crosstalk_protocol::audit::{ChainId, EventDetail, Leaf, LogEntry};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A bundle on disk.
pub(crate) struct BundleFolder(PathBuf);

impl BundleFolder {
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Writes the files for their owner alone: they hold texts of messages. `written` hears how many are written.
    pub(crate) fn write(
        &self,
        files: &[(String, String)],
        written: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        let is_key = |(name, _): &&(String, String)| name.ends_with(KEY);
        for (name, _) in files.iter().filter(is_key) {
            let chain = name.strip_suffix(KEY).unwrap_or_default();
            let messages = self.0.join(chain).join("messages");
            make_folder(&messages).map_err(|e| Failure::at(&messages, e))?;
        }
        let mut options = private_file();
        options.create(true).truncate(true);
        for (number, (name, text)) in (1..).zip(files) {
            let path = self.0.join(name);
            let file = options.open(&path);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|e| Failure::at(&path, e))?;
            written(number);
        }
        Ok(())
    }
}

impl BundleFolder {
    /// A file of the bundle as text; nothing if it is not there.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, String> {
        let text = self.read(name)?.map(|b| String::from_utf8(b.into_owned()));
        text.transpose().map_err(|_| format!("{name} is not text"))
    }

    /// The entries of a chain, without texts and parties. The proofs have to be checked before.
    pub(crate) fn entries(&self, chain: ChainId) -> Result<Vec<LogEntry>, String> {
        let folder = chain_folder(chain);
        let details = self
            .text(&format!("{folder}{DETAILS}"))?
            .unwrap_or_default();
        let detail = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (index, _salt) = (words.next()?.parse().ok()?, words.next()?);
            Some((index, EventDetail::parse(words.next()?)?))
        };
        let mut details: BTreeMap<u64, EventDetail> = details.lines().filter_map(detail).collect();
        let entry = |line: &str| {
            let (index, leaf) = line.split_once(' ')?;
            let (index, leaf) = (index.parse().ok()?, Leaf::parse(leaf).ok()?);
            Some(LogEntry {
                index,
                leaf,
                detail: details.remove(&index).map(|detail| (Vec::new(), detail)),
                text: None,
                parties: None,
            })
        };
        let entries = self
            .text(&format!("{folder}{ENTRIES}"))?
            .unwrap_or_default();
        Ok(entries.lines().skip(1).filter_map(entry).collect())
    }
}

/// Whether a folder may be one of a bundle: messages, and the other chains.
fn is_part(name: &str) -> bool {
    let (chain, rest) = name.split_once('/').unwrap_or((name, "messages"));
    rest == "messages" && (chain == "messages" || chain.starts_with("chain-"))
}

/// The names of what is in a folder; folders in it end with a slash.
fn names(folder: &Path, before: &str, found: &mut Vec<String>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true if is_part(&name) => names(&entry.path(), &format!("{name}/"), found),
            true => found.push(format!("{name}/")),
            false => found.push(name),
        }
    }
}

impl BundleFiles for BundleFolder {
    fn names(&self) -> Vec<String> {
        let mut found = Vec::new();
        names(&self.0, "", &mut found);
        found.sort();
        found
    }

    fn read(&self, name: &str) -> Result<Option<Cow<'_, [u8]>>, String> {
        match std::fs::read(self.0.join(name)) {
            Ok(bytes) => Ok(Some(Cow::Owned(bytes))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.to_string()),
        }
    }
}

/// Rejects a folder that is not empty: its files would count as part of the bundle.
pub(crate) fn require_empty(folder: &Path) -> Result<(), Failure> {
    let mut entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|e| Failure::at(folder, e))?,
    };
    match entries.next() {
        Some(_) => Err(
            Failure::failed(format!("{} is not empty", folder.display())).help("name a new folder"),
        ),
        None => Ok(()),
    }
}
