//! The trust file: trusted keys, changed by one process at a time (TRU-030); and beside it the file of contacts, with keys that
//! a relay learned without a decision of a person (TRU-004).

use crosstalk_envelope::Explanation;
use crosstalk_protocol::{Trust, TrustFileError};
use std::path::{Path, PathBuf};

use crate::Home;
use crate::disk::{self, Lock, ReadFault};
use crate::fault::DiskError;
use crate::permission::Guard;

/// The name of its temporary files and its lock.
const LABEL: &str = "trust.toml";
/// The name of the file beside it.
const CONTACTS: &str = "contacts.toml";
/// The largest file that is read.
const LIMIT: u64 = 16 * 1024 * 1024;
/// How much of that only a change may use that takes trust away: a revocation always finds room.
const RESERVED_BYTES: u64 = 4 * 1024 * 1024;

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
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explanation())]
#[non_exhaustive]
pub enum TrustStoreError {
    /// It can't be understood. It is left as it is.
    Malformed {
        /// The file.
        file: PathBuf,
        /// The fault and its position.
        source: TrustFileError,
    },
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
    /// The new content could not be read back.
    Unwritable {
        /// The file.
        file: PathBuf,
    },
    /// The file can't be read or written.
    Disk(#[from] DiskError),
}

impl TrustStoreError {
    /// Explains what happened and what to do.
    pub fn explanation(&self) -> Explanation {
        match self {
            Self::Malformed { file, source } => Explanation::new(
                format!(
                    "the trust file `{}` can't be understood, and was left as it is: {}",
                    file.display(),
                    source.to_string().trim_end()
                ),
                "repair it, or move it away and start again",
            ),
            Self::Exposed { explanation, .. } => explanation.clone(),
            Self::TooLarge { file } => Explanation::new(
                format!(
                    "the trust file `{}` has more than {} MiB",
                    file.display(),
                    LIMIT >> 20
                ),
                "remove the keys that are no longer needed",
            ),
            Self::Unwritable { file } => Explanation::fact(format!(
                "the trust file `{}` was not written, because a key in it has an id, a sender or a time that could not \
                 be read again",
                file.display()
            )),
            Self::Disk(error) => error.explanation(),
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
        let trust = read(&self.path, Trust::default(), |_, text| Trust::parse(text))?;
        read(&self.contacts(), trust, Trust::add_contacts)
    }

    fn contacts(&self) -> PathBuf {
        self.path.with_file_name(CONTACTS)
    }

    /// Changes it, while no other process does. What others have written meanwhile is read before; nothing is written
    /// if the change fails or changes nothing. Others wait for `change`: it must not ask a person or the network.
    ///
    /// # Errors
    /// The error of `change`, or of reading or writing the file.
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
            self.write(&trust, &before)?;
        }
        Ok(answer)
    }

    /// Writes those of the two files that changed, decisions first: a contact about which somebody decided counts no more
    /// where the second file is not written.
    fn write(&self, trust: &Trust, before: &Trust) -> Result<(), TrustStoreError> {
        let texts = TrustTexts::checked(trust, before, &self.path)?;
        let files = [
            (self.path.clone(), texts.decided, before.to_text()),
            (self.contacts(), texts.met, before.contacts_to_text()),
        ];
        for (path, text, old) in files {
            if text != old {
                disk::replace(&path, &text, LABEL)?;
            }
        }
        Ok(())
    }
}

/// Trust data as it is kept: what somebody decided, and the contacts.
pub(crate) struct TrustTexts {
    pub(crate) decided: String,
    pub(crate) met: String,
}

impl TrustTexts {
    /// The texts of trust data that was `before` something else, if they can be read again and are not too large. `file` names
    /// where they are kept.
    pub(crate) fn checked(
        trust: &Trust,
        before: &Trust,
        file: &Path,
    ) -> Result<Self, TrustStoreError> {
        let texts = Self {
            decided: trust.to_text(),
            met: trust.contacts_to_text(),
        };
        let file = || file.to_owned();
        let again = Trust::parse(&texts.decided).and_then(|read| read.add_contacts(&texts.met));
        if !again.is_ok_and(|read| read.is_same_as(trust)) {
            return Err(TrustStoreError::Unwritable { file: file() });
        }
        for (text, old) in [
            (&texts.decided, before.to_text()),
            (&texts.met, before.contacts_to_text()),
        ] {
            let is_free = text.len() <= old.len() || trust.only_restricts(before);
            let limit = match is_free {
                true => LIMIT,
                false => LIMIT - RESERVED_BYTES,
            };
            if *text != old && text.len() as u64 > limit {
                return Err(TrustStoreError::TooLarge { file: file() });
            }
        }
        Ok(texts)
    }
}

/// Reads the texts of trust data; an empty text stands for none.
pub(crate) fn parse_texts(decided: &str, met: &str, file: &Path) -> Result<Trust, TrustStoreError> {
    let trust = match decided.is_empty() {
        true => Ok(Trust::default()),
        false => Trust::parse(decided),
    };
    let trust = trust.and_then(|trust| match met.is_empty() {
        true => Ok(trust),
        false => trust.add_contacts(met),
    });
    trust.map_err(|source| TrustStoreError::Malformed {
        file: file.to_owned(),
        source,
    })
}

/// Reads one of the two files on top of what is known.
fn read(
    path: &Path,
    known: Trust,
    parse: impl FnOnce(Trust, &str) -> Result<Trust, TrustFileError>,
) -> Result<Trust, TrustStoreError> {
    let file = path.to_owned();
    match disk::read(path, LIMIT, Guard::Public) {
        Ok(text) => {
            parse(known, &text).map_err(|source| TrustStoreError::Malformed { file, source })
        }
        Err(ReadFault::Missing) => Ok(known),
        Err(ReadFault::Exposed(exposure)) => {
            let explanation = exposure.explanation();
            Err(TrustStoreError::Exposed { file, explanation })
        }
        Err(ReadFault::TooLarge(_)) => Err(TrustStoreError::TooLarge { file }),
        Err(ReadFault::Disk(error)) => Err(error.into()),
    }
}
