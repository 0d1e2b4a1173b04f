//! Errors of key files: what happened, where, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::permission::Exposure;

/// What was to be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileAction {
    Read,
    Write,
    Lock,
}

impl FileAction {
    const fn as_participle(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "written",
            Self::Lock => "locked, so nothing was changed",
        }
    }
}

/// The disk, or the operating system, says no.
#[derive(Debug, thiserror::Error)]
#[error("`{}` can't be {}: {source}", .file.display(), .action.as_participle())]
pub struct DiskError {
    action: FileAction,
    file: PathBuf,
    source: io::Error,
}

impl DiskError {
    pub(crate) fn new(action: FileAction, file: &Path, source: io::Error) -> Self {
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

/// Why a key was not written, found, read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// There is no key of this id in this folder.
    #[error("there is no key `{id}` in `{}`: `crosstalk key list` shows the keys that are there", .folder.display())]
    NotFound {
        /// The id.
        id: String,
        /// The folder.
        folder: PathBuf,
    },
    /// There is a key of this id already, or a file in its place.
    #[error("there is a key `{id}` already, in `{}`: choose another id, or, unless it is revoked, replace the key with `crosstalk key rotate {id}`", .file.display())]
    Exists {
        /// The id.
        id: String,
        /// The file.
        file: PathBuf,
    },
    /// The text is no key id.
    #[error("`{}` is no key id: it has 1 to 255 visible ASCII characters without ;[]()<>|", .0.escape_debug())]
    NotAnId(String),
    /// Others can reach the file: what the sentence says.
    #[error("{message}")]
    Exposed {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what to do.
        message: String,
    },
    /// The file beside the private key is not what it should be.
    #[error("`{}` does not say what it should about its key: {message}. Repair it, or move it and its .pem file away and import the key again", .file.display())]
    WrongFacts {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Of the two files of a key, this one is missing.
    #[error("`{}` is there, and `{}` beside it is not: bring that one back, or move this one away and import the key again", .file.display(), .missing.display())]
    Incomplete {
        /// The file that is there.
        file: PathBuf,
        /// The one that is not.
        missing: PathBuf,
    },
    /// The text has no private key that can be used.
    #[error("there is no key to use in {}: {message}", place(.file))]
    NotAKey {
        /// The file, if it was one of the store's.
        file: Option<PathBuf>,
        /// What is wrong.
        message: String,
    },
    /// The private key is not that of the public key.
    #[error("the private key in {} is not the one of the public key that is recorded with it: one of the two was exchanged. Restore both from a backup", place(.file))]
    Mismatch {
        /// The file, if it was one of the store's.
        file: Option<PathBuf>,
    },
    /// The key is on the deny list: why.
    #[error("nobody believes this key, because others have it as well: {0}. Make a new one")]
    Denied(&'static str),
    /// The key was replaced or revoked, and can't be replaced.
    #[error("the key `{id}` can't be replaced: {message}")]
    NotInForce {
        /// Its id.
        id: String,
        /// What became of it.
        message: String,
    },
    /// A passphrase without a character.
    #[error("the passphrase is empty: give one that has characters, or store the key without one")]
    EmptyPassphrase,
    /// The passphrase that was needed could not be had.
    #[error("the key in {} is encrypted, and there is no passphrase to open it: {source}", place(.file))]
    NoPassphrase {
        /// The file, if it was one of the store's.
        file: Option<PathBuf>,
        /// Why.
        source: io::Error,
    },
    /// The passphrase does not open the key.
    #[error("the passphrase does not open the key in {}: try again, with the keyboard that it was chosen on", place(.file))]
    WrongPassphrase {
        /// The file, if it was one of the store's.
        file: Option<PathBuf>,
    },
    /// The disk says no.
    #[error(transparent)]
    Disk(#[from] DiskError),
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

fn place(file: &Option<PathBuf>) -> String {
    match file {
        Some(file) => format!("`{}`", file.display()),
        None => "the text".to_owned(),
    }
}
