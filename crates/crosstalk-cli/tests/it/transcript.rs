//! Transcripts: what is typed and what comes back. `TRYCMD=overwrite cargo test` writes them anew.

use crate::run::folder;
use crosstalk_testing::folder::Folder;
use std::fs;
use std::path::Path;

fn cases() -> trycmd::TestCases {
    let cases = trycmd::TestCases::new();
    cases.register_bin("crosstalk", Path::new(env!("CARGO_BIN_EXE_crosstalk")));
    // In the folder that the transcript runs in, and nowhere else.
    cases.env("CROSSTALK_HOME", "home");
    cases
}

#[test]
fn the_commands_answer_as_written_down() {
    cases().case("tests/cmd/*.md");
}

/// The examples of a page, with the files of `tests/cmd/examples`.
fn page_tells_what_happens(page: &Path) {
    let place = Folder::new("page");
    let copy = place.path().join(page.file_name().unwrap());
    let files = copy.with_extension("in");
    fs::create_dir_all(&files).unwrap();
    for entry in fs::read_dir(folder("tests/cmd/examples")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), files.join(entry.file_name())).unwrap();
    }
    fs::copy(page, &copy).unwrap();
    let cases = cases();
    cases.case(&copy);
    drop(cases);
    if std::env::var_os("TRYCMD").is_some_and(|v| v == "overwrite") {
        fs::copy(&copy, page).unwrap();
    }
}

#[test]
fn the_documentation_tells_what_happens() {
    page_tells_what_happens(&folder("../../docs/cli.md"));
}

/// A reader of the guide needs nothing else: the files that it uses stand in it.
#[test]
fn the_guide_to_text_tells_what_happens() {
    let guide = folder("../../docs/guide/text.md");
    page_tells_what_happens(&guide);
    let text = fs::read_to_string(guide).unwrap();
    for file in ["pasted.txt", "message.json", "cut.txt", "signed.txt"] {
        let content = fs::read_to_string(folder("tests/cmd/examples").join(file)).unwrap();
        assert!(text.contains(&content), "the guide lacks {file}");
    }
}
