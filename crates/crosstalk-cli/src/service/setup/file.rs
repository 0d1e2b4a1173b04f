//! A settings file of a client: read as a whole, and replaced at once or left alone.

use crate::failure::Failure;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// No settings are larger.
const MAX_BYTES: u64 = 64 << 20;

/// A settings file, with its text when it was read.
#[derive(Debug)]
pub(crate) struct ClientFile {
    /// Where it is, behind links.
    path: PathBuf,
    text: Option<String>,
}

impl ClientFile {
    /// Reads it; a missing one has no text.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        // People keep such files elsewhere and link them: the link stays.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let text = match fs::metadata(&path) {
            Ok(facts) if !facts.is_file() || facts.len() > MAX_BYTES => {
                return Err(
                    Failure::failed(format!("{} is no settings file", path.display()))
                        .help("look at it; nothing was changed"),
                );
            }
            Ok(_) => Some(read_text(&path)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(Failure::at(&path, e)),
        };
        Ok(Self { path, text })
    }

    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Whether there is one.
    pub(crate) const fn exists(&self) -> bool {
        self.text.is_some()
    }

    /// Replaces it at once, with the permissions that it had. If somebody changed it meanwhile, it is left alone.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        let fault = |e: io::Error| Failure::at(&self.path, e);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(fault)?;
        let mut new = tempfile::NamedTempFile::new_in(folder).map_err(fault)?;
        new.write_all(text.as_bytes()).map_err(fault)?;
        if let Ok(facts) = fs::metadata(&self.path) {
            fs::set_permissions(new.path(), facts.permissions()).map_err(fault)?;
        }
        new.as_file().sync_all().map_err(fault)?;
        let now = match self.path.exists() {
            true => Some(read_text(&self.path)?),
            false => None,
        };
        if now != self.text {
            return Err(Failure::failed(format!(
                "{} was changed meanwhile, so nothing was written",
                self.path.display()
            ))
            .help("run the command again"));
        }
        new.persist(&self.path).map_err(|e| fault(e.error))?;
        Ok(())
    }
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(|e| Failure::at(path, e))?;
    String::from_utf8(bytes).map_err(|_| {
        Failure::malformed(format!("{} is no UTF-8 text", path.display()))
            .help("nothing was changed; correct the file, or set the client up by hand")
    })
}
