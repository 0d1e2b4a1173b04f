//! A folder that goes away with its value.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The folder.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new, empty one.
    pub fn new(what: &str) -> Self {
        Self::within(&env::temp_dir(), what)
    }

    /// A new, empty one that a server with users of its own can enter: the folder for temporary files may be ours alone.
    pub fn for_server(what: &str) -> Self {
        Self::within(Path::new("/var/tmp"), what)
    }

    /// A new, empty one inside of another.
    pub fn within(place: &Path, what: &str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("crosstalk-{what}-{}-{number}", process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.0.join(name), content).expect("a file in a temporary folder");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
