//! Reads the files that decide what a relay does: configuration, certificate, key, token.
//!
//! Only regular files are read, and only up to a limit. A pipe or a device in the place of such a file is an error at once:
//! the relay never waits for another process to write to it.

use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The largest configuration, certificate or key that is read.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Opens a regular file. A link is followed; what counts is the file at its end.
///
/// # Errors
/// If it can't be opened, or is something else: a pipe, a device, a folder.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe waits for its writer.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(
            "it is not a regular file: put a file there, or name another one",
        )),
    }
}

/// Reads an open file whole.
///
/// # Errors
/// If it can't be read, or has more bytes than the limit.
pub fn read_bounded(file: &File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()).is_ok_and(|length| length <= limit) {
        true => Ok(bytes),
        false => Err(io::Error::other(format!(
            "it has more than {limit} bytes, which no such file needs"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_read_and_only_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        let read = |limit| open_regular(&path).and_then(|file| read_bounded(&file, limit));
        assert_eq!(read(5).unwrap(), b"12345");
        assert!(read(4).is_err());
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from(0o600)).unwrap();
        for other in [pipe.as_path(), folder.path(), Path::new("/dev/zero")] {
            let fault = open_regular(other).unwrap_err().to_string();
            assert!(fault.contains("not a regular file"), "{fault}");
        }
    }
}
