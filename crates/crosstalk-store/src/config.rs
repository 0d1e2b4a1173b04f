//! The file with the settings: a text that a person may have written, changed by one process at a time.

use crosstalk_envelope::Explanation;
use std::path::{Path, PathBuf};

use crate::Home;
use crate::disk::{self, Lock, ReadFault};
use crate::fault::DiskError;
use crate::permission::Guard;

/// The name of its temporary files and its lock.
const LABEL: &str = "config.toml";
const LIMIT: u64 = 1024 * 1024;

/// The file with the settings. Its reader knows what its text means.
///
/// ```
/// use crosstalk_store::{ConfigFile, ConfigFileError, Home};
///
/// # let folder = tempfile::tempdir()?;
/// # let home = Home::at(folder.path());
/// let file = ConfigFile::new(&home);
/// assert_eq!(file.read()?, None);
/// file.update(|text| Ok::<_, ConfigFileError>(Some(format!("{text}sign = true\n"))))?;
/// assert_eq!(file.read()?.as_deref(), Some("sign = true\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConfigFile {
    path: PathBuf,
}

/// Why the file with the settings was not read or not changed.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explanation())]
#[non_exhaustive]
pub enum ConfigFileError {
    /// Others can change it.
    Exposed {
        /// The file.
        file: PathBuf,
        /// Explains who can change it and what to do.
        explanation: Explanation,
    },
    /// It is larger than the limit, or would be.
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// The file can't be read or written.
    Disk(#[from] DiskError),
}

impl ConfigFileError {
    /// Explains what happened and what to do.
    pub fn explanation(&self) -> Explanation {
        match self {
            Self::Exposed { explanation, .. } => explanation.clone(),
            Self::TooLarge { file } => Explanation::new(
                format!(
                    "the settings in `{}` have more than {} MiB",
                    file.display(),
                    LIMIT >> 20
                ),
                "remove the settings that are no longer needed",
            ),
            Self::Disk(error) => error.explanation(),
        }
    }
}

impl ConfigFile {
    /// The file of a home.
    pub fn new(home: &Home) -> Self {
        let path = home.config();
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its text; nothing if there is no file.
    ///
    /// # Errors
    /// If it can't be read, or others can change it: a setting may name a program to run.
    pub fn read(&self) -> Result<Option<String>, ConfigFileError> {
        let file = self.path.clone();
        match disk::read(&self.path, LIMIT, Guard::Public) {
            Ok(text) => Ok(Some(text.as_str().to_owned())),
            Err(ReadFault::Missing) => Ok(None),
            Err(ReadFault::Exposed(exposure)) => {
                let explanation = exposure.explanation();
                Err(ConfigFileError::Exposed { file, explanation })
            }
            Err(ReadFault::TooLarge(_)) => Err(ConfigFileError::TooLarge { file }),
            Err(ReadFault::Disk(error)) => Err(error.into()),
        }
    }

    /// Changes it, while no other process does: `change` gets the text, which is empty if there is no file, and says
    /// what to write in its place, if anything. Others wait for `change`: it must not ask a person or the network.
    /// Says whether something was written.
    ///
    /// # Errors
    /// The error of `change`, or of reading or writing the file.
    pub fn update<E: From<ConfigFileError>>(
        &self,
        change: impl FnOnce(&str) -> Result<Option<String>, E>,
    ) -> Result<bool, E> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let _lock = Lock::wait(folder, LABEL).map_err(ConfigFileError::from)?;
        let before = self.read()?.unwrap_or_default();
        let Some(after) = change(&before)?.filter(|after| *after != before) else {
            return Ok(false);
        };
        if after.len() as u64 > LIMIT {
            let file = self.path.clone();
            return Err(ConfigFileError::TooLarge { file }.into());
        }
        disk::replace(&self.path, &after, LABEL).map_err(ConfigFileError::from)?;
        Ok(true)
    }
}
