//! Packages from npm that builds and tests need, in folders below `target/tools`.

use crate::ending::Failure;
use crate::invocation::Invocation;
use crate::tree::target;
use std::fs;
use std::path::{Path, PathBuf};

const INSTALL: &str =
    "npm install --silent --no-save --no-audit --no-fund --no-package-lock --prefix";

/// Installs packages into a folder of this name, unless it has exactly these. `finish` is what npm leaves to do.
///
/// Returns the folder, and whether it is new.
pub fn install(
    root: &Path,
    name: &str,
    packages: &str,
    finish: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(PathBuf, bool), Failure> {
    let folder = target(root).join("tools").join(name);
    // Written last: half of an installation is none.
    let note = folder.join("requirement");
    let is_new = fs::read_to_string(&note).unwrap_or_default() != packages;
    if is_new {
        fs::create_dir_all(&folder)?;
        Invocation::new(INSTALL)
            .arg(&folder)
            .args(packages)
            .run(root)?;
        finish(&folder)?;
        fs::write(note, packages)?;
    }
    Ok((folder, is_new))
}
