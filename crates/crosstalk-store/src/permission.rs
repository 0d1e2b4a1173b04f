//! Permissions of a file: on Unix by its mode and owner. On Windows the profile's folder decides.

use crosstalk_envelope::Explanation;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

/// The access that others must not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Neither read nor write: for private keys. They have to belong to the user, as well.
    Private,
    /// Not write: for what decides whom to believe. It belongs to the user or to root.
    Public,
}

impl Guard {
    /// Checks the file that is open, so that nothing can be exchanged between the check and the reading.
    pub(crate) fn check(self, file: &File, path: &Path) -> Result<(), Exposure> {
        match file.metadata() {
            Ok(metadata) => self.check_metadata(&metadata, path),
            // The read that follows reports the failure.
            Err(_) => Ok(()),
        }
    }

    #[cfg(unix)]
    fn check_metadata(self, metadata: &Metadata, path: &Path) -> Result<(), Exposure> {
        use std::os::unix::fs::MetadataExt as _;
        let me = rustix::process::geteuid().as_raw();
        self.check_mode(metadata.mode() & 0o7777, metadata.uid(), me)
            .map_err(|problem| problem.at(path))
    }

    #[cfg(not(unix))]
    fn check_metadata(self, _: &Metadata, _: &Path) -> Result<(), Exposure> {
        Ok(())
    }

    #[cfg(unix)]
    fn check_mode(self, mode: u32, owner: u32, me: u32) -> Result<(), Problem> {
        let (forbidden, is_mine) = match self {
            Self::Private => (0o077, owner == me),
            Self::Public => (0o022, owner == me || owner == 0),
        };
        if !is_mine {
            Err(Problem::Owner(owner))
        } else if mode & forbidden != 0 {
            Err(Problem::Mode(mode, self))
        } else {
            Ok(())
        }
    }
}

/// Makes sure that only its owner can change a file that decides what a program does.
///
/// # Errors
/// If others can change it: who, and what to do.
pub fn require_own(file: &File, path: &Path) -> Result<(), Explanation> {
    let checked = Guard::Public.check(file, path);
    checked.map_err(|e| e.explanation())
}

/// Others can reach a file that they must not reach.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(unix),
    allow(dead_code, reason = "modes and owners are those of Unix")
)]
pub(crate) enum Exposure {
    Readable { file: PathBuf, mode: u32 },
    Writable { file: PathBuf, mode: u32 },
    Foreign { file: PathBuf, owner: u32 },
}

impl Exposure {
    /// Explains who can reach the file and what to do.
    pub(crate) fn explanation(&self) -> Explanation {
        let file = self.file().display();
        let (what, help) = match self {
            Self::Readable { mode, .. } => (
                format!(
                    "the private key `{file}` has the mode {mode:04o}: others on this machine can reach it"
                ),
                format!(
                    "if nobody has read it, run `chmod 600 '{file}'`; otherwise replace the key"
                ),
            ),
            Self::Writable { mode, .. } => (
                format!("`{file}` has the mode {mode:04o}: others on this machine can change it"),
                format!("check its content, and run `chmod 600 '{file}'`"),
            ),
            Self::Foreign { owner, .. } => (
                format!(
                    "`{file}` belongs to another user of this machine, number {owner}, who can read and change it"
                ),
                format!("if it is yours, run `chown \"$(id -u)\" '{file}'`"),
            ),
        };
        Explanation { what, help }
    }

    pub(crate) fn file(&self) -> &Path {
        match self {
            Self::Readable { file, .. }
            | Self::Writable { file, .. }
            | Self::Foreign { file, .. } => file,
        }
    }
}

#[cfg(unix)]
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    Mode(u32, Guard),
    Owner(u32),
}

#[cfg(unix)]
impl Problem {
    fn at(self, path: &Path) -> Exposure {
        let file = path.to_owned();
        match self {
            Self::Mode(mode, Guard::Private) => Exposure::Readable { file, mode },
            Self::Mode(mode, Guard::Public) => Exposure::Writable { file, mode },
            Self::Owner(owner) => Exposure::Foreign { file, owner },
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn files_that_others_can_read_are_rejected() {
        let private = |mode| Guard::Private.check_mode(mode, 7, 7);
        for mode in [0o600, 0o400, 0o700] {
            assert_eq!(private(mode), Ok(()), "{mode:o}");
        }
        for mode in [0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o601] {
            let problem = Problem::Mode(mode, Guard::Private);
            assert_eq!(private(mode), Err(problem), "{mode:o}");
        }
        assert_eq!(
            Guard::Private.check_mode(0o600, 8, 7),
            Err(Problem::Owner(8))
        );
        assert_eq!(
            Guard::Private.check_mode(0o600, 8, 0),
            Err(Problem::Owner(8))
        );
        let public = |mode| Guard::Public.check_mode(mode, 7, 7);
        assert_eq!(public(0o644), Ok(()));
        assert_eq!(Guard::Public.check_mode(0o644, 0, 7), Ok(()));
        assert!(Guard::Public.check_mode(0o644, 8, 7).is_err());
        assert!(public(0o664).is_err() && public(0o646).is_err());
    }
}
