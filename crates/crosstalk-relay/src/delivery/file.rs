//! Writes a message into a folder: whole or not at all, and never over another file.

mod name;

use super::{AttemptOutcome, DeliveryHandler, DeliveryJob};
use crate::port::Later;
use crosstalk_envelope::registry::ErrorCode;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Writes messages into folders.
pub(super) struct File;

impl DeliveryHandler for File {
    fn handle<'l>(&'l self, job: &'l DeliveryJob) -> Later<'l, AttemptOutcome> {
        Box::pin(async move {
            let Some(folder) = job.route.as_ref().and_then(|r| r.folder.clone()) else {
                return AttemptOutcome::later(ErrorCode::Route, "the route that led there is gone");
            };
            let (id, text) = (job.record.id.clone(), job.text.clone());
            let shown = folder.display().to_string();
            let work = move || drop_into(&folder, &id, text.as_bytes());
            let done = tokio::task::spawn_blocking(work).await;
            match done.unwrap_or_else(|e| Err(io::Error::other(e))) {
                Ok(()) => AttemptOutcome::delivered(),
                Err(error) => AttemptOutcome::later(
                    ErrorCode::Route,
                    format!("it can't be written into {shown}: {error}"),
                ),
            }
        })
    }
}

/// Writes a message into a folder under a name of its own. If it is there already, nothing is done.
fn drop_into(folder: &Path, id: &str, bytes: &[u8]) -> io::Result<()> {
    if !folder.is_dir() {
        // The last part is made; that more is missing is rather a disk that is not there.
        fs::DirBuilder::new().mode(0o700).create(folder)?;
    }
    let temporary = folder.join(name::temporary()?);
    let written = write(&temporary, bytes).and_then(|()| {
        for name in name::candidates(id, bytes) {
            let path = folder.join(name);
            match place(&temporary, &path) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if is_same(&path, bytes) {
                        return fs::remove_file(&temporary);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "another file has the name of this message",
        ))
    });
    if written.is_err() {
        // Removes the half-written file; if that fails too, the first fault is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    fs::File::open(folder)?.sync_all()
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Gives a file its name, unless there is one of this name.
fn place(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            // The file system can't do it in one step; a link does not replace either.
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        Err(error) => Err(error.into()),
    }
}

fn is_same(path: &Path, bytes: &[u8]) -> bool {
    let is_file = fs::symlink_metadata(path)
        .is_ok_and(|m| m.is_file() && usize::try_from(m.len()) == Ok(bytes.len()));
    is_file && fs::read(path).is_ok_and(|read| read == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = names
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_never_replaced_and_a_message_never_written_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("M1.aict"), "of somebody else").unwrap();
        drop_into(&path, "M1", b"one").unwrap();
        drop_into(&path, "M1", b"one").unwrap();
        drop_into(&path, "M2", b"two").unwrap();
        drop_into(&path, "M2", b"two").unwrap();
        let names = listing(&path);
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(fs::read(path.join("M1.aict")).unwrap(), b"of somebody else");
        assert_eq!(fs::read(path.join("M2.aict")).unwrap(), b"two");
    }

    #[test]
    fn a_link_in_the_way_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        let path = folder.path().join("out");
        fs::create_dir(&path).unwrap();
        std::os::unix::fs::symlink(&target, path.join("M1.aict")).unwrap();
        drop_into(&path, "M1", b"one").unwrap();
        assert!(!target.exists());
        assert_eq!(listing(&path).len(), 2);
    }

    #[test]
    fn only_the_last_folder_is_made() {
        let folder = tempfile::tempdir().unwrap();
        drop_into(&folder.path().join("out"), "M1", b"one").unwrap();
        assert!(drop_into(&folder.path().join("no/such"), "M1", b"one").is_err());
    }
}
