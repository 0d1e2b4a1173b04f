//! The files of an import.

use crate::failure::Failure;
use std::io::Read as _;
use std::path::{Path, PathBuf};

const ENDINGS: [&str; 5] = ["crosstalk", "aict", "md", "markdown", "txt"];

/// The files that were named, and those of folders that may hold messages, each folder in the order of the names.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            walk(path, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

/// Goes through a folder and those in it. Links are not followed: they may lead in a circle, or anywhere.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let fault = |e| Failure::at(&folder, e);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(fault)? {
            entries.push(entry.map_err(fault)?);
        }
        entries.sort_by_key(std::fs::DirEntry::file_name);
        let mut below = Vec::new();
        for entry in entries {
            let kind = entry.file_type().map_err(fault)?;
            if kind.is_dir() {
                below.push(entry.path());
            } else if kind.is_file() && may_hold_messages(&entry.path()) {
                found.push(entry.path());
            }
        }
        folders.extend(below.into_iter().rev());
    }
    Ok(())
}

/// Whether a file of a folder may hold messages.
fn may_hold_messages(path: &Path) -> bool {
    // Beside the conversations, exports have files about the account and what was shared.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ending(path).is_some() || (is_json(path) && name.to_lowercase().starts_with("conversations"))
}

/// Whether a file may be the export of a chat program.
pub(super) fn is_json(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("json"))
}

/// Whether a file is a .zip archive.
pub(super) fn is_archive(path: &Path) -> bool {
    // A pipe can be read only once.
    if !path.is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(4).read_to_end(&mut start));
    read.is_ok() && start == b"PK\x03\x04"
}

/// Describes a file without messages, as the end of a sentence; `fault` is the fault in its JSON.
pub(super) fn kind_of(path: &Path, text: &str, fault: Option<&str>) -> String {
    let start: String = text.trim_start().chars().take(256).collect();
    let start = start.to_ascii_lowercase();
    let is_page = start.starts_with("<!doctype html") || start.starts_with("<html");
    match fault {
        _ if is_page => "a web page (HTML)".to_owned(),
        _ if start.starts_with("%pdf") => "a PDF".to_owned(),
        Some(fault) => format!("named .json, and no JSON that can be read ({fault})"),
        None if is_json(path) => "JSON without conversations".to_owned(),
        None if start.is_empty() => "empty".to_owned(),
        None if may_be_chat(path) => {
            "text without envelopes, and not a chat of two speakers".to_owned()
        }
        None => "text without envelopes".to_owned(),
    }
}

/// Whether a file without an envelope may be a chat.
pub(super) fn may_be_chat(path: &Path) -> bool {
    matches!(ending(path), Some("md" | "markdown" | "txt"))
}

fn ending(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_string_lossy().to_lowercase();
    ENDINGS.into_iter().find(|e| *e == ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_in_order_and_links_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("b")).unwrap();
        for name in [
            "c.crosstalk",
            "a.AICT",
            "b/x.md",
            "b/picture.png",
            "b/conversations.json",
            "b/user.json",
        ] {
            std::fs::write(root.join(name), "").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(root, root.join("b/loop")).unwrap();
        let found = find(&[root.to_owned(), root.join("b/picture.png")]).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|p| p.strip_prefix(root).unwrap())
            .collect();
        let expected = [
            "a.AICT",
            "c.crosstalk",
            "b/conversations.json",
            "b/x.md",
            "b/picture.png",
        ]
        .map(Path::new);
        assert_eq!(names, expected);
    }
}
