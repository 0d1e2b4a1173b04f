//! A secret of this machine that nobody else can guess, for ids that must not be known before they are used.

use crate::failure::Failure;
use crate::service::workspace::Desk;
use crosstalk_envelope::meta::Digest;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// The name of the file in the folder of the settings.
const FILE: &str = "listen.secret";
/// How long it is, in bytes.
const LENGTH: u64 = 32;

/// The secret of a person as text. It is made when it is needed first, and stays the same from then on.
pub(crate) fn of(desk: &Desk) -> Result<String, Failure> {
    in_folder(desk.home().as_ref())
}

/// The secret of a folder.
pub(crate) fn in_folder(folder: &Path) -> Result<String, Failure> {
    let place = folder.join(FILE);
    let fault = |e: io::Error| Failure::at(&place, e);
    if !place.exists() {
        let mut bytes = [0; LENGTH as usize];
        getrandom::fill(&mut bytes).map_err(|e| fault(io::Error::other(e.to_string())))?;
        let made = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.as_file().sync_all()?;
            // Another process may have made one meanwhile: the first counts.
            match file.persist_noclobber(&place) {
                Err(e) if e.error.kind() != io::ErrorKind::AlreadyExists => Err(e.error),
                _ => Ok(()),
            }
        });
        made.map_err(fault)?;
    }
    let mut bytes = Vec::new();
    let file = File::open(&place).map_err(fault)?;
    file.take(LENGTH + 1)
        .read_to_end(&mut bytes)
        .map_err(fault)?;
    match bytes.len() as u64 == LENGTH {
        true => Ok(Digest::of(&bytes).to_string()),
        false => Err(Failure::Failed(format!(
            "{} is damaged: remove it, and a new one is made",
            place.to_string_lossy()
        ))),
    }
}
