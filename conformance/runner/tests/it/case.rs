//! The cases of `conformance/`.

use crosstalk_conform::{CaseFile, CaseSet};
use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every case below `conformance/`, in the order of the ids.
pub(crate) fn all() -> Vec<CaseFile> {
    let set = CaseSet::of_folder(&root().join("conformance")).unwrap();
    let read = |source: &crosstalk_conform::CaseSource| source.read().unwrap();
    set.sources().iter().map(read).collect()
}

/// A file with another name would never run.
#[test]
fn every_file_of_an_area_is_a_case() {
    let base = root().join("conformance");
    for area in std::fs::read_dir(&base).unwrap() {
        let area = area.unwrap().path();
        if !area.is_dir()
            || ["runner", "examples", "wasm"]
                .iter()
                .any(|n| area.ends_with(n))
        {
            continue;
        }
        for file in std::fs::read_dir(&area).unwrap() {
            let file = file.unwrap().path();
            // The relay suite has several cases in a file; the mails have their lists of cases beside them.
            let extensions: &[&str] = match area.file_name().and_then(|name| name.to_str()) {
                Some("http") => &["toml"],
                Some("tool") => &["toml", "md"],
                Some("email") => &["eml", "toml", "md"],
                _ => &["case"],
            };
            let extension = file.extension().and_then(|e| e.to_str());
            assert!(
                extension.is_some_and(|e| extensions.contains(&e)),
                "{} is not a case",
                file.display()
            );
        }
    }
}
