//! Replaces a file in one step: there is the old text or the new one, never half of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes `bytes` beside the file and renames the result over it. A link stays a link.
pub(super) fn file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = path.canonicalize()?;
    let (beside, mut file) = create_beside(&target)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.set_permissions(fs::metadata(&target)?.permissions()))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        // The first fault is the one to tell about.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A new file in the same folder, so that renaming stays within the file system.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let mut number = 0_u32;
    loop {
        let beside = target.with_file_name(format!(".{name}.{}.{number}", std::process::id()));
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside)
        {
            Ok(file) => return Ok((beside, file)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 100 => number += 1,
            Err(e) => return Err(e),
        }
    }
}
