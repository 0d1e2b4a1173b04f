//! What can be wrong with the files of keys: what, where, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::permission::Exposure;

/// What was to be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Read,
    Write,
    Lock,
}

/// The disk, or the operating system, says no.
#[derive(Debug)]
pub struct DiskError {
    action: Action,
    file: PathBuf,
    source: io::Error,
}

impl DiskError {
    pub(crate) fn new(action: Action, file: &Path, source: io::Error) -> Self {
        let file = file.to_owned();
        Self {
            action,
            file,
            source,
        }
    }

    /// The file or folder.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What kind of failure it was.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, source) = (self.file.display(), &self.source);
        match self.action {
            Action::Read => write!(f, "`{file}` can't be read: {source}"),
            Action::Write => write!(f, "`{file}` can't be written: {source}"),
            Action::Lock => write!(
                f,
                "`{file}` can't be locked, so nothing was changed: {source}"
            ),
        }
    }
}

impl std::error::Error for DiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Why a key was not written, found, read or changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyFileError {
    /// There is no key of this id in this folder.
    NotFound {
        /// The id.
        id: String,
        /// The folder.
        folder: PathBuf,
    },
    /// There is a key of this id already, or a file in its place.
    Exists {
        /// The id.
        id: String,
        /// The file.
        file: PathBuf,
    },
    /// The text is no key id.
    NotAnId(String),
    /// Others can reach the file: what the sentence says.
    Exposed {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what to do.
        message: String,
    },
    /// The file beside the private key is not what it should be.
    WrongFacts {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Of the two files of a key, this one is missing.
    Incomplete {
        /// The file that is there.
        file: PathBuf,
        /// The one that is not.
        missing: PathBuf,
    },
    /// The text has no private key that can be used.
    NotAKey {
        /// The file, if it was one of the store's.
        file: Option<PathBuf>,
        /// What is wrong.
        message: String,
    },
    /// The private key is not that of the public key.
    Mismatch {
        /// The file, if it was one of the store's.
        file: Option<PathBuf>,
    },
    /// The key is on the deny list: why.
    Denied(&'static str),
    /// The key was replaced or revoked, and can't be replaced.
    NotInForce {
        /// Its id.
        id: String,
        /// What became of it.
        message: String,
    },
    /// A passphrase without a character.
    EmptyPassphrase,
    /// The passphrase that was needed could not be had.
    NoPassphrase {
        /// The file, if it was one of the store's.
        file: Option<PathBuf>,
        /// Why.
        source: io::Error,
    },
    /// The passphrase does not open the key.
    WrongPassphrase {
        /// The file, if it was one of the store's.
        file: Option<PathBuf>,
    },
    /// The disk says no.
    Disk(DiskError),
}

impl KeyFileError {
    pub(crate) fn not_a_key(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::NotAKey {
            file: None,
            message,
        }
    }

    pub(crate) fn exposed(exposure: &Exposure) -> Self {
        Self::Exposed {
            file: exposure.file().to_owned(),
            message: exposure.to_string(),
        }
    }

    /// Says in which file it was.
    pub(crate) fn at(mut self, path: &Path) -> Self {
        if let Self::NotAKey { file, .. }
        | Self::Mismatch { file }
        | Self::NoPassphrase { file, .. }
        | Self::WrongPassphrase { file } = &mut self
        {
            *file = Some(path.to_owned());
        }
        self
    }

    /// The file that it is about.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Exists { file, .. }
            | Self::Exposed { file, .. }
            | Self::WrongFacts { file, .. }
            | Self::Incomplete { file, .. } => Some(file),
            Self::NotAKey { file, .. }
            | Self::Mismatch { file }
            | Self::NoPassphrase { file, .. }
            | Self::WrongPassphrase { file } => file.as_deref(),
            Self::Disk(error) => Some(error.file()),
            _ => None,
        }
    }
}

impl From<DiskError> for KeyFileError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.file() {
            Some(file) => format!("`{}`", file.display()),
            None => "the text".to_owned(),
        };
        match self {
            Self::NotFound { id, folder } => write!(
                f,
                "there is no key `{id}` in `{}`: `crosstalk key list` shows the keys that are there",
                folder.display()
            ),
            Self::Exists { id, .. } => write!(
                f,
                "there is a key `{id}` already, in {place}: choose another id, or, unless it is revoked, replace the key with \
                 `crosstalk key rotate {id}`"
            ),
            Self::NotAnId(id) => write!(
                f,
                "`{}` is no key id: it has 1 to 255 visible ASCII characters without ;[]()<>|",
                id.escape_debug()
            ),
            Self::Exposed { message, .. } => f.write_str(message),
            Self::WrongFacts { message, .. } => write!(
                f,
                "{place} does not say what it should about its key: {message}. Repair it, or move it and its .pem file \
                 away and import the key again"
            ),
            Self::Incomplete { missing, .. } => write!(
                f,
                "{place} is there, and `{}` beside it is not: bring that one back, or move this one away and import the \
                 key again",
                missing.display()
            ),
            Self::NotAKey { message, .. } => write!(f, "there is no key to use in {place}: {message}"),
            Self::Mismatch { .. } => write!(
                f,
                "the private key in {place} is not the one of the public key that is recorded with it: one of the two was \
                 exchanged. Restore both from a backup"
            ),
            Self::Denied(reason) => write!(
                f,
                "nobody believes this key, because others have it as well: {reason}. Make a new one"
            ),
            Self::NotInForce { id, message } => {
                write!(f, "the key `{id}` can't be replaced: {message}")
            }
            Self::EmptyPassphrase => f.write_str(
                "the passphrase is empty: give one that has characters, or store the key without one",
            ),
            Self::NoPassphrase { source, .. } => write!(
                f,
                "the key in {place} is encrypted, and there is no passphrase to open it: {source}"
            ),
            Self::WrongPassphrase { .. } => write!(
                f,
                "the passphrase does not open the key in {place}: try again, with the keyboard that it was chosen on"
            ),
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for KeyFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Disk(error) => Some(error),
            Self::NoPassphrase { source, .. } => Some(source),
            _ => None,
        }
    }
}
