//! What the last start of a relay left in its data folder (`last-start.toml`): the name of the relay, the configuration that
//! it was given, and why it failed if it did. Commands on the folder go by it while no relay runs.

use crate::clock;
use crosstalk_relay::file::{open_regular, read_bounded};
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The name of the file in the data folder.
pub(crate) const FILE: &str = "last-start.toml";
/// The largest file that is read.
const MAX_BYTES: u64 = 64 * 1024;
/// How much of a reason is kept.
const MAX_REASON_CHARS: usize = 4000;
const TITLE: &str =
    "# Written by `crosstalk serve`. The relay does not read it; other commands do.\n";

/// The last start of a relay on a data folder.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default)]
pub(crate) struct LastStart {
    /// When a relay started here.
    pub(crate) started_at: Option<String>,
    /// The name that it had.
    pub(crate) name: Option<String>,
    /// Its configuration, if that is not `relay.toml` in the folder.
    pub(crate) config: Option<PathBuf>,
    /// What went wrong after that, or at a start after it.
    pub(crate) failure: Option<FailedStart>,
}

/// A start that failed.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct FailedStart {
    pub(crate) at: String,
    pub(crate) reason: String,
}

impl LastStart {
    /// Reads what a data folder says. A folder of an older version says nothing, and so does a file that can't be read.
    pub(crate) fn read(folder: &Path) -> Self {
        let read = open_regular(&folder.join(FILE)).and_then(|f| read_bounded(&f, MAX_BYTES));
        let text = read.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| toml::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// A start that worked.
    pub(crate) fn succeeded(name: &str, config: Option<PathBuf>) -> Self {
        Self {
            started_at: Some(clock::now().to_string()),
            name: Some(name.to_owned()),
            config,
            failure: None,
        }
    }

    /// The same, and a start after it failed.
    pub(crate) fn and_failed(self, reason: &str) -> Self {
        let failure = FailedStart {
            at: clock::now().to_string(),
            reason: reason.chars().take(MAX_REASON_CHARS).collect(),
        };
        Self {
            failure: Some(failure),
            ..self
        }
    }

    /// Puts it in the place of what the folder said before.
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
        let bad = good.clone().and_failed("line 1\n\"no\"");
        bad.write(folder.path()).unwrap();
        let read = LastStart::read(folder.path());
        assert_eq!(read.name.as_deref(), Some("relay.example"));
        assert_eq!(read.failure.unwrap().reason, "line 1\n\"no\"");
        std::fs::write(folder.path().join(FILE), "name = 3\n").unwrap();
        assert_eq!(LastStart::read(folder.path()), LastStart::default());
    }
}
