//! The trust file: whom to believe, changed by one process at a time (TRU-030).

use crosstalk_protocol::{Trust, TrustFileError};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::Home;
use crate::disk::{self, Lock, Unread};
use crate::fault::DiskError;
use crate::permission::Guard;

/// What its temporary files and its lock are called.
const LABEL: &str = "trust.toml";
const LIMIT: u64 = 16 * 1024 * 1024;

/// The file that says whom to believe.
///
/// ```
/// use crosstalk_protocol::Trust;
/// use crosstalk_store::{Home, TrustFile, TrustStoreError};
///
/// # let folder = tempfile::tempdir()?;
/// # let home = Home::at(folder.path());
/// let file = TrustFile::new(&home);
/// assert_eq!(file.read()?, Trust::default());
/// let removed = file.update(|trust| Ok::<_, TrustStoreError>(trust.remove("mallory", None)))?;
/// assert_eq!(removed, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TrustFile {
    path: PathBuf,
}

/// Why the trust file was not read or not changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum TrustStoreError {
    /// It can't be understood. It is left as it is.
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where.
        source: TrustFileError,
    },
    /// Others can change it.
    Exposed {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what to do.
        message: String,
    },
    /// It is larger than the limit, or would be.
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// What was to be written could not be read again.
    Unwritable {
        /// The file.
        file: PathBuf,
    },
    /// The disk says no.
    Disk(DiskError),
}

impl From<DiskError> for TrustStoreError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl fmt::Display for TrustStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { file, source } => write!(
                f,
                "the trust file `{}` can't be understood, and stays as it is: {}\nRepair it, or move it away and begin \
                 anew",
                file.display(),
                source.to_string().trim_end()
            ),
            Self::Exposed { message, .. } => f.write_str(message),
            Self::TooLarge { file } => write!(
                f,
                "the trust file `{}` has more than {} MiB: take out what is no longer needed",
                file.display(),
                LIMIT >> 20
            ),
            Self::Unwritable { file } => write!(
                f,
                "the trust file `{}` was not written, because it could not be read again: a key in it has an id, a sender \
                 or a time that can't be written",
                file.display()
            ),
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TrustStoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed { source, .. } => Some(source),
            Self::Disk(error) => Some(error),
            _ => None,
        }
    }
}

impl TrustFile {
    /// The trust file of a home.
    pub fn new(home: &Home) -> Self {
        let path = home.trust();
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it. No file means that nobody is known.
    ///
    /// # Errors
    /// If it can't be read or understood, or others can change it.
    pub fn read(&self) -> Result<Trust, TrustStoreError> {
        let file = self.path.clone();
        match disk::read(&self.path, LIMIT, Guard::Public) {
            Ok(text) => {
                Trust::parse(&text).map_err(|source| TrustStoreError::Malformed { file, source })
            }
            Err(Unread::Missing) => Ok(Trust::default()),
            Err(Unread::Exposed(exposure)) => {
                let message = exposure.to_string();
                Err(TrustStoreError::Exposed { file, message })
            }
            Err(Unread::TooLarge(_)) => Err(TrustStoreError::TooLarge { file }),
            Err(Unread::Disk(error)) => Err(error.into()),
        }
    }

    /// Changes it, while no other process does. What others have written meanwhile is read before; nothing is written
    /// if the change fails or changes nothing. Others wait for `change`: it must not ask a person or the network.
    ///
    /// # Errors
    /// What `change` says, or that the file could not be read or written.
    pub fn update<T, E: From<TrustStoreError>>(
        &self,
        change: impl FnOnce(&mut Trust) -> Result<T, E>,
    ) -> Result<T, E> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let _lock = Lock::wait(folder, LABEL).map_err(TrustStoreError::from)?;
        let before = self.read()?;
        let mut trust = before.clone();
        let answer = change(&mut trust)?;
        if trust != before {
            self.write(&trust)?;
        }
        Ok(answer)
    }

    fn write(&self, trust: &Trust) -> Result<(), TrustStoreError> {
        let file = self.path.clone();
        let text = trust.to_text();
        if !Trust::parse(&text).is_ok_and(|read| read == *trust) {
            return Err(TrustStoreError::Unwritable { file });
        }
        if text.len() as u64 > LIMIT {
            return Err(TrustStoreError::TooLarge { file });
        }
        Ok(disk::replace(&self.path, &text, LABEL)?)
    }
}
