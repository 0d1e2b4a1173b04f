//! The files of a folder.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folder where everything is built.
pub fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |own| root.join(own))
}

/// Folders that hold nothing of ours, wherever they stand.
const FOREIGN: &[&str] = &[".git", "target", "node_modules"];

/// All files below a folder in a fixed order; none if there is no such folder. Links to folders
/// are not followed.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                found.push(entry.path());
            } else if !FOREIGN.iter().any(|name| entry.file_name() == *name) {
                waiting.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the name of a file ends in one of these extensions.
pub fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .is_some_and(|e| extensions.iter().any(|wanted| e == *wanted))
}

/// The text of a file; bytes that are not UTF-8 are replaced, because only ASCII is looked for.
pub fn text(path: &Path) -> io::Result<String> {
    let bytes =
        fs::read(path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A path as it is shown: from the root of the workspace.
pub fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn walks_everything_but_foreign_folders() {
        let scratch = Scratch::new();
        for path in [
            "b/c.rs",
            "a.md",
            "target/x.rs",
            "b/node_modules/y.js",
            ".git/z.md",
        ] {
            scratch.write(path, "");
        }
        let found: Vec<String> = files(scratch.path())
            .unwrap()
            .iter()
            .map(|p| shown(scratch.path(), p))
            .collect();
        assert_eq!(found, ["a.md", "b/c.rs"]);
        assert!(files(&scratch.path().join("none")).unwrap().is_empty());
    }
}
