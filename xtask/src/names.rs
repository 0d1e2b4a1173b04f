//! `cargo xtask names`: names that several types share. A reader takes one name for one concept.

use crate::ending::{Ending, Failure};
use crate::lines::{self, Files};
use crate::source::Source;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Where each type of `crates/*/src` is declared, tests left out.
fn declared(files: &Files) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, source) in lines::sources(files) {
        let mut parts = path.split('/');
        if parts.next() != Some("crates") || parts.nth(1) != Some("src") {
            continue;
        }
        for (name, line) in types(&source) {
            places
                .entry(name)
                .or_default()
                .push(format!("{path}:{line}"));
        }
    }
    places
}

/// The types that a file declares, each with its line. Types in an `impl` or a `trait` belong to it and do not count.
fn types(source: &Source) -> Vec<(String, usize)> {
    let tokens = source.tokens();
    let mut found = Vec::new();
    // For each open brace, whether it is that of an `impl` or a `trait`.
    let mut braces: Vec<bool> = Vec::new();
    let mut is_owner = false;
    let mut before = "";
    for (place, (word, line)) in tokens.iter().enumerate() {
        let begins_item = matches!(before, "" | "}" | "{" | ";" | "]" | ")" | "pub" | "unsafe");
        match word.as_str() {
            "{" => braces.push(std::mem::take(&mut is_owner)),
            "}" => drop(braces.pop()),
            ";" => is_owner = false,
            "impl" | "trait" if begins_item => is_owner = true,
            _ => {}
        }
        let is_declaration = matches!(
            word.as_str(),
            "struct" | "enum" | "trait" | "type" | "union"
        );
        if is_declaration
            && begins_item
            && braces.last() != Some(&true)
            && let Some((name, _)) = tokens.get(place + 1)
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && source.lines.get(line - 1).is_none_or(|l| !l.is_test)
        {
            found.push((name.clone(), *line));
        }
        before = word;
    }
    found
}

/// Fails if a name is declared more than once.
pub fn task(root: &Path) -> Result<Ending, Failure> {
    let mut shared = declared(&lines::working_tree(root)?);
    let count = shared.len();
    shared.retain(|_, places| places.len() > 1);
    if shared.is_empty() {
        return Ok(Ending::Done(format!(
            "{count} type names, each for one type"
        )));
    }
    let mut out =
        "these names stand for more than one type; rename all but one of each:".to_owned();
    for (name, places) in shared {
        let _ = write!(out, "\n  {name}: {}", places.join(", "));
    }
    Err(Failure::new(out, "cargo xtask names"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found_and_associated_types_are_not() {
        let text = "pub struct A<T>(T);\n#[derive(Clone)]\npub(crate) enum B { X }\ntrait C { type In; }\n\
                    impl Iterator for A<u8> {\n    type Item = u8;\n    fn f() { struct D; }\n}\n\
                    type E = u8;\nfn f() -> impl Fn() { let a: E = 1; }\nenum G {}\n\
                    #[cfg(test)]\nmod tests { struct H; }\nmacro_rules! m { ($n:ident) => { struct $n; } }\n";
        let found = types(&Source::read(text));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["A", "B", "C", "D", "E", "G"]);
    }

    #[test]
    fn only_sources_of_crates_count() {
        let files: Files = [
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", "struct A;\n"),
            ("crates/a/src/b.rs", "struct A;\n"),
            ("crates/a/tests/it/main.rs", "struct A;\n"),
            ("xtask/src/main.rs", "struct A;\n"),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into();
        assert_eq!(
            declared(&files)["A"],
            ["crates/a/src/b.rs:1", "crates/a/src/lib.rs:1"]
        );
    }
}
