//! `cargo xtask lines`: how many lines of Rust people wrote, per crate, sources and tests apart.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::source::{LineKind, Source};
use crate::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

/// The files of a tree by their path: every `Cargo.toml`, without its text, and every `.rs` file.
pub type Files = BTreeMap<String, String>;

/// The Rust files and manifests of the working tree.
pub fn working_tree(root: &Path) -> Result<Files, Failure> {
    let mut files = Files::new();
    for path in tree::files(root)? {
        let shown = tree::shown(root, &path);
        if is_manifest(&shown) {
            files.insert(shown, String::new());
        } else if tree::has_extension(&path, &["rs"]) {
            files.insert(shown, tree::text(&path)?);
        }
    }
    Ok(files)
}

/// The same of a commit, read from the repository: nothing is checked out.
fn commit(root: &Path, revision: &str) -> Result<Files, Failure> {
    let list = Invocation::new("git ls-tree -r --name-only").arg(revision);
    let list = list.output(root)?;
    let is_counted = |path: &&str| is_manifest(path) || path.ends_with(".rs");
    let paths: Vec<&str> = list.lines().filter(is_counted).collect();
    let texts = blobs(root, revision, &paths)?;
    let named = paths.iter().map(|path| (*path).to_owned());
    Ok(named.zip(texts).collect())
}

fn is_manifest(path: &str) -> bool {
    path == "Cargo.toml" || path.ends_with("/Cargo.toml")
}

/// The texts of several files of a commit, by one `git cat-file --batch`.
fn blobs(root: &Path, revision: &str, paths: &[&str]) -> Result<Vec<String>, Failure> {
    let invocation = Invocation::new("git cat-file --batch");
    let mut child = invocation
        .command(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| invocation.not_started(&e))?;
    let asked: String = paths.iter().map(|p| format!("{revision}:{p}\n")).collect();
    let input = child.stdin.take();
    // Git answers while it reads; a thread of its own keeps both pipes flowing.
    let writer = std::thread::spawn(move || match input {
        Some(mut input) => input.write_all(asked.as_bytes()),
        None => Ok(()),
    });
    let mut answer = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut answer)?;
    }
    child.wait()?;
    writer
        .join()
        .map_err(|_| "the names could not be handed to git".to_owned())??;
    let mut rest = answer.as_slice();
    let mut texts = Vec::new();
    for path in paths {
        let (text, after) = blob(rest).ok_or_else(|| format!("{revision}:{path}: not readable"))?;
        texts.push(String::from_utf8_lossy(text).into_owned());
        rest = after;
    }
    Ok(texts)
}

/// The first object of an answer of `git cat-file --batch`, and the rest: `NAME blob SIZE`, the bytes, a line break.
fn blob(answer: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = answer.iter().position(|b| *b == b'\n')?;
    let head = String::from_utf8_lossy(answer.get(..end)?);
    let size: usize = head.rsplit_once(' ')?.1.parse().ok()?;
    let body = answer.get(end + 1..)?;
    Some((body.get(..size)?, body.get(size + 1..)?))
}

/// Numbers of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    code: usize,
    comment: usize,
    blank: usize,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.code += other.code;
        self.comment += other.comment;
        self.blank += other.blank;
    }

    const fn all(self) -> usize {
        self.code + self.comment + self.blank
    }

    fn line(&mut self, kind: LineKind) {
        match kind {
            LineKind::Code => self.code += 1,
            LineKind::Comment => self.comment += 1,
            LineKind::Blank => self.blank += 1,
        }
    }
}

/// The lines of one crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CrateLines {
    source: Count,
    tests: Count,
}

impl CrateLines {
    fn add(&mut self, other: Self) {
        self.source.add(other.source);
        self.tests.add(other.tests);
    }
}

/// The files that people wrote, each with the lines of modules for tests marked as such.
pub fn sources(files: &Files) -> Vec<(&String, Source)> {
    let rust = files.iter().filter(|(path, _)| path.ends_with(".rs"));
    let mut sources: Vec<(&String, Source)> = rust
        .filter(|(path, text)| !Source::is_generated(path, text))
        .map(|(path, text)| (path, Source::read(text)))
        .collect();
    let mut for_tests = BTreeSet::new();
    for (path, source) in &sources {
        let folder = child_folder(path);
        for_tests.extend(source.test_modules.iter().map(|m| format!("{folder}{m}")));
    }
    for (path, source) in &mut sources {
        if is_test_file(files, path) || is_within(path, &for_tests) {
            for line in &mut source.lines {
                line.is_test = true;
            }
        }
    }
    sources
}

/// The lines of each crate, by the folder of its manifest.
fn count(files: &Files) -> BTreeMap<String, CrateLines> {
    let mut crates: BTreeMap<String, CrateLines> = BTreeMap::new();
    for (path, source) in sources(files) {
        let lines = crates.entry(owner(files, path).to_owned()).or_default();
        for line in &source.lines {
            match line.is_test {
                true => lines.tests.line(line.kind),
                false => lines.source.line(line.kind),
            }
        }
    }
    crates
}

/// Where the modules stand that a file declares.
fn child_folder(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/"),
        _ => format!("{}/", path.trim_end_matches(".rs")),
    }
}

/// Whether a file is one of these modules, or a part of one.
fn is_within(path: &str, modules: &BTreeSet<String>) -> bool {
    let ends = path.match_indices(['/', '.']);
    let mut starts = ends.filter_map(|(end, _)| path.get(..end));
    starts.any(|start| modules.contains(start))
}

/// Whether a file stands in a folder of its crate that is compiled for tests only.
fn is_test_file(files: &Files, path: &str) -> bool {
    let inner = path.strip_prefix(owner(files, path)).unwrap_or(path);
    ["/tests/", "/benches/", "/examples/"]
        .iter()
        .any(|folder| inner.starts_with(folder))
}

/// The folder of the manifest that a file belongs to.
fn owner<'a>(files: &Files, path: &'a str) -> &'a str {
    let mut folder = path;
    while let Some((parent, _)) = folder.rsplit_once('/') {
        if files.contains_key(&format!("{parent}/Cargo.toml")) {
            return parent;
        }
        folder = parent;
    }
    "."
}

/// The rows of a table: the crates below `crates/`, their sum, the others, and the sum of all.
fn rows(crates: &BTreeMap<String, CrateLines>) -> Vec<(String, CrateLines)> {
    let (inner, outer): (Vec<_>, Vec<_>) = crates
        .iter()
        .map(|(name, lines)| (name.clone(), *lines))
        .partition(|(name, _)| name.starts_with("crates/"));
    let sum = |rows: &[(String, CrateLines)]| {
        let mut sum = CrateLines::default();
        for (_, lines) in rows {
            sum.add(*lines);
        }
        sum
    };
    let (ours, others) = (sum(&inner), sum(&outer));
    let mut all = ours;
    all.add(others);
    let mut rows = inner;
    rows.push(("crates/*".into(), ours));
    rows.extend(outer);
    rows.push(("all".into(), all));
    rows
}

fn table(crates: &BTreeMap<String, CrateLines>) -> String {
    let mut out = format!("{:<26}{:>36}{:>38}\n{:<26}", "", "src", "tests", "crate");
    let titles = ["lines", "code", "comment", "blank"];
    for _ in 0..2 {
        for title in titles {
            let _ = write!(out, "{title:>9}");
        }
        out.push_str("  ");
    }
    for (name, lines) in rows(crates) {
        let _ = write!(out, "\n{name:<26}");
        for count in [lines.source, lines.tests] {
            for number in [count.all(), count.code, count.comment, count.blank] {
                let _ = write!(out, "{number:>9}");
            }
            out.push_str("  ");
        }
    }
    trimmed(&out)
}

fn comparison(
    old: &BTreeMap<String, CrateLines>,
    new: &BTreeMap<String, CrateLines>,
    revision: &str,
) -> String {
    let mut both: BTreeMap<String, CrateLines> = BTreeMap::new();
    for name in old.keys().chain(new.keys()) {
        both.insert(name.clone(), CrateLines::default());
    }
    let of = |crates: &BTreeMap<String, CrateLines>| {
        let mut all = both.clone();
        all.extend(crates.iter().map(|(name, lines)| (name.clone(), *lines)));
        rows(&all)
    };
    let mut out = format!("before: {revision}\n\n{:<26}", "crate");
    for part in ["src lines", "src code", "test lines", "test code"] {
        let _ = write!(out, "{part:>16}{:>8}", "");
    }
    for ((name, before), (_, after)) in of(old).into_iter().zip(of(new)) {
        let _ = write!(out, "\n{name:<26}");
        for (before, after) in [
            (before.source.all(), after.source.all()),
            (before.source.code, after.source.code),
            (before.tests.all(), after.tests.all()),
            (before.tests.code, after.tests.code),
        ] {
            let change = format!("{before} → {after}");
            let _ = write!(out, "{change:>16}{:>8}", percent(before, after));
        }
    }
    trimmed(&out)
}

fn percent(before: usize, after: usize) -> String {
    let (Ok(before), Ok(after)) = (i64::try_from(before), i64::try_from(after)) else {
        return String::new();
    };
    match before {
        0 if after == 0 => String::new(),
        0 => "new".into(),
        _ => {
            let thousandths = (after - before) * 1000 / before;
            let sign = if thousandths < 0 { '-' } else { '+' };
            let size = thousandths.abs();
            format!("{sign}{}.{}%", size / 10, size % 10)
        }
    }
}

fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// Counts the working tree; with `base`, compares it with that commit.
pub fn task(root: &Path, base: Option<&str>) -> Result<Ending, Failure> {
    let now = count(&working_tree(root)?);
    Ok(Ending::Done(match base {
        None => table(&now),
        Some(revision) => comparison(&count(&commit(root, revision)?), &now, revision),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Files {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        list.iter().map(owned).collect()
    }

    #[test]
    fn lines_belong_to_their_crate_and_part() {
        let files = files(&[
            ("Cargo.toml", ""),
            ("crates/a/Cargo.toml", ""),
            (
                "crates/a/src/lib.rs",
                "//! A.\n\nmod b;\n#[cfg(test)]\nmod c;\n",
            ),
            (
                "crates/a/src/b.rs",
                "fn b() {}\n#[cfg(test)]\nmod tests {\n}\n",
            ),
            ("crates/a/src/c.rs", "fn c() {}\n"),
            ("crates/a/src/c/d.rs", "fn d() {}\n"),
            ("crates/a/src/generated.rs", "fn many() {}\n"),
            ("crates/a/tests/it/main.rs", "// T.\nfn t() {}\n"),
            ("tool/Cargo.toml", ""),
            ("tool/src/main.rs", "fn main() {}\n"),
        ]);
        let crates = count(&files);
        let a = crates["crates/a"];
        assert_eq!((a.source.code, a.source.comment, a.source.blank), (2, 1, 1));
        assert_eq!(
            (a.tests.code, a.tests.comment, a.tests.blank),
            (2 + 3 + 2 + 1, 1, 0)
        );
        assert_eq!(crates["tool"].source.all(), 1);
        let sums = rows(&crates);
        let names: Vec<&str> = sums.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["crates/a", "crates/*", "tool", "all"]);
        assert_eq!(sums[3].1.source.all(), 5);
    }

    #[test]
    fn changes_are_shown_in_percent() {
        assert_eq!(percent(200, 150), "-25.0%");
        assert_eq!(percent(1000, 1005), "+0.5%");
        assert_eq!(percent(0, 3), "new");
        let old = count(&files(&[
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", "a;\nb;\n"),
        ]));
        let new = count(&files(&[
            ("crates/b/Cargo.toml", ""),
            ("crates/b/src/lib.rs", "a;\n"),
        ]));
        let shown = comparison(&old, &new, "main");
        assert!(
            shown.contains("2 → 0 -100.0%") && shown.contains("0 → 1     new"),
            "{shown}"
        );
        assert!(shown.contains("2 → 1  -50.0%"), "{shown}");
    }

    #[test]
    fn objects_of_git_are_read_one_after_the_other() {
        let (text, rest) = blob(b"abc blob 3\na\nb\ndef blob 0\n\n").unwrap();
        assert_eq!(text, b"a\nb");
        assert_eq!(blob(rest), Some((&b""[..], &b""[..])));
        assert_eq!(blob(b"abc missing\n"), None);
    }

    #[test]
    fn this_repository_is_counted_like_its_working_tree() {
        let root = crate::root();
        if Invocation::new("git rev-parse HEAD").succeeds(&root) {
            let files = commit(&root, "HEAD").unwrap();
            assert!(count(&files).contains_key("xtask"));
        }
    }
}
