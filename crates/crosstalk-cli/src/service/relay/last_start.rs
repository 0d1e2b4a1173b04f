//! `last-start.toml` in a data folder: the name and the configuration of the last start, and why it failed. Other commands
//! use it while no relay runs.

use crate::{clock, shell};
use crosstalk_envelope::unicode::escape;
use crosstalk_relay::file::{open_regular, read_bounded};
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(crate) const FILE: &str = "last-start.toml";
const MAX_BYTES: u64 = 64 * 1024;
const MAX_REASON_CHARS: usize = 4000;
const TITLE: &str =
    "# Written by `crosstalk serve`. The relay does not read it; other commands do.\n";

/// The record of the last start.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(crate) struct LastStart {
    pub(crate) started_at: Option<String>,
    pub(crate) name: Option<String>,
    /// Its configuration, if that is not `relay.toml` in the folder.
    pub(crate) config: Option<PathBuf>,
    /// The failure after that start, or of a later one.
    pub(crate) failure: Option<FailedStart>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct FailedStart {
    pub(crate) at: String,
    pub(crate) reason: String,
    /// The options of the failed start.
    pub(crate) config: Option<PathBuf>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) name: Option<String>,
}

impl FailedStart {
    /// A start that failed now.
    pub(crate) fn new(reason: &str) -> Self {
        Self {
            at: clock::now().to_string(),
            reason: reason.chars().take(MAX_REASON_CHARS).collect(),
            config: None,
            listen: None,
            name: None,
        }
    }
}

impl LastStart {
    /// Reads the record of a folder; empty if it is missing or unreadable.
    pub(crate) fn read(folder: &Path) -> Self {
        let read = open_regular(&folder.join(FILE)).and_then(|f| read_bounded(&f, MAX_BYTES));
        let text = read.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| toml::from_str(&text).ok())
            .unwrap_or_default()
    }

    pub(crate) fn succeeded(name: &str, config: Option<PathBuf>) -> Self {
        Self {
            started_at: Some(clock::now().to_string()),
            name: Some(name.to_owned()),
            config,
            failure: None,
        }
    }

    /// The difference between a start and the last one that succeeded. `own` is the configuration of the data folder.
    pub(crate) fn difference(
        &self,
        name: &str,
        config: Option<&Path>,
        own: &Path,
    ) -> Option<String> {
        let last = self.name.as_deref()?;
        let (before, now) = (self.config.as_deref(), config);
        // A link, or `..` in a path, leads to the same file.
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_same = last == name && real(before.unwrap_or(own)) == real(now.unwrap_or(own));
        let shown = |config: Option<&Path>| match config {
            Some(file) => format!("--config {}", escape(&shell::word(&file.to_string_lossy()))),
            None => "no --config".to_owned(),
        };
        (!is_same).then(|| {
            format!(
                "The last start used {} and the name {}; this one uses {} and the name {}",
                shown(before),
                escape(last),
                shown(now),
                escape(name)
            )
        })
    }

    /// The same, and a start after it failed.
    pub(crate) fn and_failed(self, failure: FailedStart) -> Self {
        Self {
            failure: Some(failure),
            ..self
        }
    }

    /// Replaces the record of the folder.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        let mut file = tempfile::Builder::new()
            .prefix(".last-start")
            .tempfile_in(folder)?;
        file.write_all(TITLE.as_bytes())?;
        file.write_all(text.as_bytes())?;
        file.persist(folder.join(FILE)).map_err(|e| e.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_start_keeps_the_name_and_the_next_good_one_forgets_the_failure() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(LastStart::read(folder.path()), LastStart::default());
        let good = LastStart::succeeded("relay.example", Some("/etc/relay.toml".into()));
        good.write(folder.path()).unwrap();
        assert_eq!(LastStart::read(folder.path()), good);
        let bad = good.clone().and_failed(FailedStart {
            listen: Some("127.0.0.1:1".parse().unwrap()),
            ..FailedStart::new("line 1\n\"no\"")
        });
        bad.write(folder.path()).unwrap();
        let read = LastStart::read(folder.path());
        assert_eq!(read.name.as_deref(), Some("relay.example"));
        assert_eq!(read, bad);
        assert_eq!(read.failure.unwrap().reason, "line 1\n\"no\"");
        std::fs::write(folder.path().join(FILE), "name = 3\n").unwrap();
        assert_eq!(LastStart::read(folder.path()), LastStart::default());
    }

    #[test]
    fn a_start_with_another_configuration_or_name_differs() {
        let own = Path::new("/data/relay.toml");
        let etc = Path::new("/etc/relay.toml");
        let last = LastStart::succeeded("relay.example", Some(etc.into()));
        assert_eq!(last.difference("relay.example", Some(etc), own), None);
        let said = last.difference("localhost", None, own).unwrap();
        assert_eq!(
            said,
            "The last start used --config /etc/relay.toml and the name relay.example; this one uses no --config and the name \
             localhost"
        );
        assert!(last.difference("other.example", Some(etc), own).is_some());
        let plain = LastStart::succeeded("relay.example", None);
        assert_eq!(plain.difference("relay.example", Some(own), own), None);
        assert_eq!(LastStart::default().difference("x", Some(etc), own), None);
    }
}
