//! Errors of key files: what happened, where, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::permission::Exposure;
use crosstalk_envelope::Explanation;

/// An operation on a file.
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

/// The operating system can't read, write or lock a file.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explanation())]
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

    /// The kind of failure.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether there is no room left.
    pub(crate) fn is_full(&self) -> bool {
        matches!(
            self.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// Explains what happened and what to do.
    pub fn explanation(&self) -> Explanation {
        let (file, action) = (self.file.display(), self.action.as_participle());
        let help = match self.is_full() {
            true => "make room and try again",
            false => "",
        };
        Explanation::new(format!("`{file}` can't be {action}: {}", self.source), help)
    }
}

/// Why a key was not written, found, read or changed.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explanation())]
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
    /// The text is not a key id.
    NotAnId(String),
    /// Others can reach the file.
    Exposed {
        /// The file.
        file: PathBuf,
        /// Explains who can reach it and what to do.
        explanation: Explanation,
    },
    /// The file beside the private key is not what it should be.
    WrongFacts {
        /// The file.
        file: PathBuf,
        /// The fault.
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
        /// Explains the fault and what to do.
        explanation: Explanation,
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
        /// What became of it, and what to do.
        explanation: Explanation,
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
    /// The file can't be read or written.
    Disk(#[from] DiskError),
}

impl KeyFileError {
    pub(crate) fn not_a_key(what: impl Into<String>, help: &str) -> Self {
        Self::NotAKey {
            file: None,
            explanation: Explanation::new(what, help),
        }
    }

    pub(crate) fn exposed(exposure: &Exposure) -> Self {
        Self::Exposed {
            file: exposure.file().to_owned(),
            explanation: exposure.explanation(),
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

    /// Explains what happened and what to do.
    pub fn explanation(&self) -> Explanation {
        let (what, help) = match self {
            Self::NotFound { id, folder } => (
                format!("there is no key `{id}` in `{}`", folder.display()),
                "list your keys with `crosstalk key list`".to_owned(),
            ),
            Self::Exists { id, file } => (
                format!("there is a key `{id}` already, in `{}`", file.display()),
                format!(
                    "choose another id, or, unless it is revoked, replace the key with `crosstalk key rotate {id}`"
                ),
            ),
            Self::NotAnId(text) => (
                format!("`{}` is not a key id", text.escape_debug()),
                "use 1 to 255 visible ASCII characters without ;[]()<>|".to_owned(),
            ),
            Self::Exposed { explanation, .. } => return explanation.clone(),
            Self::WrongFacts { file, message } => (
                format!("`{}` does not describe its key: {message}", file.display()),
                "repair it, or move it and its .pem file away and import the key again".to_owned(),
            ),
            Self::Incomplete { file, missing } => (
                format!(
                    "`{}` is there, but `{}` beside it is missing",
                    file.display(),
                    missing.display()
                ),
                "restore the missing file, or move this one away and import the key again"
                    .to_owned(),
            ),
            Self::NotAKey { file, explanation } => (
                format!(
                    "there is no usable key in {}: {}",
                    place(file),
                    explanation.what
                ),
                explanation.help.clone(),
            ),
            Self::Mismatch { file } => (
                format!(
                    "the private key in {} does not belong to the public key that is recorded with it",
                    place(file)
                ),
                "one of the two was exchanged: restore both from a backup".to_owned(),
            ),
            Self::Denied(reason) => (
                format!("this key is on the deny list, because others have it as well: {reason}"),
                "make a new key".to_owned(),
            ),
            Self::NotInForce { id, explanation } => (
                format!("the key `{id}` can't be replaced: {}", explanation.what),
                explanation.help.clone(),
            ),
            Self::EmptyPassphrase => (
                "the passphrase is empty".to_owned(),
                "type at least one character, or store the key without a passphrase".to_owned(),
            ),
            Self::NoPassphrase { file, source } => (
                format!(
                    "the key in {} is encrypted, and its passphrase could not be asked for: {source}",
                    place(file)
                ),
                String::new(),
            ),
            Self::WrongPassphrase { file } => (
                format!("the passphrase does not open the key in {}", place(file)),
                "try again, with the keyboard layout that it was chosen with".to_owned(),
            ),
            Self::Disk(error) => return error.explanation(),
        };
        Explanation { what, help }
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
