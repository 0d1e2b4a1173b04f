//! The direction of dependencies: inward only.
//!
//! `envelope ← protocol ← { api ← { conform, console }, { console, email, mcp } ← relay ← gateway } ← cli`, `protocol ← { store, dns, mcp } ← cli`,
//! `protocol ← binding ← { cli, python, wasm }`.
//! The relay and the MCP server know the ports only, so no adapter depends on another one.
//!
//! Inside the command line, commands call services: a command never names another command, and a service names none.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// The crates that a crate may depend on.
enum Reach {
    /// These crates of the workspace, and no others.
    Inward(&'static [&'static str]),
    /// All of them: it is a tool, and only tools may depend on it.
    Tool,
    /// None of them: it gives servers to tests, and every crate may have it as a dev-dependency.
    Testing,
}

/// Crates that tests of a crate may use besides, as a dev-dependency or by a feature: a relay is tested with a real store and a
/// real look-up, the relay suite with a model that answers in the forms of the relay's client, and the Python module with all
/// operations of the conformance suite.
const FOR_TESTS: &[(&str, &str)] = &[
    ("crosstalk-conform", "crosstalk-relay"),
    ("crosstalk-python", "crosstalk-conform"),
    ("crosstalk-python", "crosstalk-conformance"),
    ("crosstalk-relay", "crosstalk-store"),
    ("crosstalk-relay", "crosstalk-dns"),
    ("crosstalk-gateway", "crosstalk-store"),
    ("crosstalk-gateway", "crosstalk-dns"),
];

const CORE: &[&str] = &["crosstalk-envelope"];
const PROTOCOL: &[&str] = &["crosstalk-envelope", "crosstalk-protocol"];
const BINDING: &[&str] = &[
    "crosstalk-envelope",
    "crosstalk-protocol",
    "crosstalk-binding",
];
const GATEWAY: &[&str] = &[
    "crosstalk-envelope",
    "crosstalk-protocol",
    "crosstalk-api",
    "crosstalk-console",
    "crosstalk-email",
    "crosstalk-relay",
];
const API: &[&str] = &["crosstalk-envelope", "crosstalk-protocol", "crosstalk-api"];
/// A relay serves the tools of an agent, too.
const RELAY: &[&str] = &[
    "crosstalk-envelope",
    "crosstalk-protocol",
    "crosstalk-api",
    "crosstalk-console",
    "crosstalk-email",
    "crosstalk-mcp",
];

/// Every crate of the workspace. A crate that is not here fails the check.
const TABLE: &[(&str, Reach)] = &[
    ("crosstalk-envelope", Reach::Inward(&[])),
    ("crosstalk-protocol", Reach::Inward(CORE)),
    ("crosstalk-binding", Reach::Inward(PROTOCOL)),
    ("crosstalk-api", Reach::Inward(PROTOCOL)),
    ("crosstalk-store", Reach::Inward(PROTOCOL)),
    ("crosstalk-dns", Reach::Inward(PROTOCOL)),
    ("crosstalk-relay", Reach::Inward(RELAY)),
    ("crosstalk-conform", Reach::Inward(API)),
    ("crosstalk-console", Reach::Inward(API)),
    ("crosstalk-mcp", Reach::Inward(PROTOCOL)),
    ("crosstalk-email", Reach::Inward(PROTOCOL)),
    ("crosstalk-gateway", Reach::Inward(GATEWAY)),
    (
        "crosstalk-cli",
        Reach::Inward(&[
            "crosstalk-envelope",
            "crosstalk-protocol",
            "crosstalk-binding",
            "crosstalk-api",
            "crosstalk-store",
            "crosstalk-dns",
            "crosstalk-relay",
            "crosstalk-conform",
            "crosstalk-console",
            "crosstalk-mcp",
            "crosstalk-email",
            "crosstalk-gateway",
        ]),
    ),
    ("crosstalk-python", Reach::Inward(BINDING)),
    ("crosstalk-wasm", Reach::Inward(BINDING)),
    ("crosstalk-bench", Reach::Tool),
    ("crosstalk-conformance", Reach::Tool),
    ("crosstalk-conformance-wasm", Reach::Tool),
    ("crosstalk-fuzz-properties", Reach::Tool),
    ("crosstalk-testing", Reach::Testing),
    ("xtask", Reach::Tool),
    ("xtask-wasm", Reach::Tool),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None` for a normal one, else `build` or `dev`.
    kind: Option<String>,
    /// Whether a feature turns it on.
    #[serde(default)]
    optional: bool,
    /// Only dependencies inside the repository have one.
    path: Option<String>,
}

/// `cargo xtask layers`.
pub fn task(root: &Path) -> Result<Ending, Failure> {
    const AGAIN: &str = "cargo xtask layers";
    let metadata = Invocation::new("cargo metadata --format-version 1 --no-deps").output(root)?;
    let (edges, mut problems) = check(&metadata)
        .map_err(|e| Failure::new(format!("the output of cargo metadata: {e}"), AGAIN))?;
    let commands = check_commands(&root.join("crates/crosstalk-cli/src"));
    problems.extend(
        commands
            .map_err(|e| Failure::new(format!("the sources of the command line: {e}"), AGAIN))?,
    );
    if problems.is_empty() {
        Ok(Ending::Done(format!(
            "{edges} edges, all inward; no command calls another"
        )))
    } else {
        Err(Failure::new(problems.join("\n"), AGAIN))
    }
}

fn reach(name: &str) -> Option<&'static Reach> {
    TABLE.iter().find(|(n, _)| *n == name).map(|(_, r)| r)
}

/// How many edges there are between our crates, and what is wrong with them.
fn check(metadata: &str) -> serde_json::Result<(usize, Vec<String>)> {
    let metadata: Metadata = serde_json::from_str(metadata)?;
    let mut edges = 0;
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let Some(from) = reach(&package.name) else {
            problems.push(unknown(&package.name));
            continue;
        };
        let ours = package
            .dependencies
            .iter()
            .filter(|d| d.path.is_some() && d.name != package.name);
        for dependency in ours {
            edges += 1;
            let edge = (package.name.as_str(), dependency.name.as_str());
            let is_dev = dependency.kind.as_deref() == Some("dev");
            let is_for_tests = (is_dev || dependency.optional) && FOR_TESTS.contains(&edge);
            let allowed = match (from, reach(&dependency.name)) {
                (_, None) => {
                    problems.push(unknown(&dependency.name));
                    continue;
                }
                (Reach::Tool, Some(_)) => true,
                (Reach::Testing, Some(_)) => false,
                (Reach::Inward(_), Some(Reach::Tool)) => is_for_tests,
                (Reach::Inward(_), Some(Reach::Testing)) => is_dev,
                (Reach::Inward(inner), Some(_)) => inner.contains(&edge.1) || is_for_tests,
            };
            if !allowed {
                let kind = dependency.kind.as_deref().unwrap_or("normal");
                problems.push(format!(
                    "forbidden edge: {} → {} ({kind} dependency)",
                    package.name, dependency.name
                ));
            }
        }
    }
    problems.dedup();
    Ok((edges, problems))
}

/// The sources of the command line in which a command names another one, or a service names a command.
fn check_commands(source: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in ["command", "service"] {
        collect(&source.join(folder), folder, &mut files)?;
    }
    let groups = files.iter().filter_map(|(path, _)| group_of(path));
    let groups: BTreeSet<String> = groups.map(str::to_owned).collect();
    let problems = files.iter().flat_map(|(path, text)| {
        let named = named_commands(path, text, &groups).into_iter();
        named.map(move |name| {
            format!(
                "crates/crosstalk-cli/src/{path}: names the command `{name}`; move what both need into service/"
            )
        })
    });
    Ok(problems.collect())
}

/// The Rust files below a folder with their texts; their paths begin with `prefix`.
fn collect(folder: &Path, prefix: &str, found: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        match entry.file_type()?.is_dir() {
            true => collect(&entry.path(), &path, found)?,
            false if path.ends_with(".rs") => {
                found.push((path, std::fs::read_to_string(entry.path())?));
            }
            false => {}
        }
    }
    found.sort();
    Ok(())
}

/// The command that a file belongs to: `poll` for `command/poll.rs` and `command/poll/new.rs`.
fn group_of(path: &str) -> Option<&str> {
    let inner = path.strip_prefix("command/")?.strip_suffix(".rs")?;
    inner.split('/').next()
}

/// The other commands that a file names, by `crate::command::` or by as many `super::` as lead there.
fn named_commands(path: &str, text: &str, groups: &BTreeSet<String>) -> BTreeSet<String> {
    let own = group_of(path);
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut ways = vec!["crate::command::".to_owned()];
    if own.is_some() {
        ways.push("super::".repeat(path.matches('/').count()));
    }
    let mut found = BTreeSet::new();
    for way in ways {
        for (at, _) in code.match_indices(&way) {
            let before = code.get(..at).unwrap_or_default();
            let after = code.get(at + way.len()..).unwrap_or_default();
            if !before.ends_with("super::") {
                found.extend(first_names(after));
            }
        }
    }
    found.retain(|name| groups.contains(name) && Some(name.as_str()) != own);
    found
}

/// The names that a path goes on with: one, or those of a list in braces.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| {
        let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
        text.chars().take_while(is_part).collect::<String>()
    };
    let Some(list) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let (mut depth, mut begins, mut names) = (0_usize, true, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                begins = false;
                names.push(name(list.get(at..).unwrap_or_default()));
            }
            _ => {}
        }
    }
    names
}

fn unknown(name: &str) -> String {
    format!(
        "unknown crate: {name}; add it to TABLE in xtask/src/layers.rs with what it may depend on"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metadata of crates with edges written as `from → to`, `from → to (dev)`.
    fn problems(edges: &[(&str, &str, Option<&str>)]) -> Vec<String> {
        let packages: Vec<serde_json::Value> = edges
            .iter()
            .map(|(from, to, kind)| {
                serde_json::json!({
                    "name": from,
                    "dependencies": [
                        {"name": "serde", "kind": null, "source": "registry"},
                        {"name": to, "kind": kind, "path": "/project/somewhere"},
                    ],
                })
            })
            .collect();
        let metadata = serde_json::json!({ "packages": packages }).to_string();
        let (count, problems) = check(&metadata).unwrap();
        assert_eq!(count, edges.len());
        problems
    }

    #[test]
    fn inward_edges_pass() {
        for (from, to) in [
            ("crosstalk-protocol", "crosstalk-envelope"),
            ("crosstalk-store", "crosstalk-protocol"),
            ("crosstalk-relay", "crosstalk-api"),
            ("crosstalk-conform", "crosstalk-api"),
            ("crosstalk-cli", "crosstalk-relay"),
            ("crosstalk-cli", "crosstalk-conform"),
            ("crosstalk-conformance", "crosstalk-conform"),
            ("crosstalk-wasm", "crosstalk-binding"),
            ("crosstalk-bench", "crosstalk-cli"),
            ("crosstalk-bench", "crosstalk-fuzz-properties"),
            ("xtask", "crosstalk-envelope"),
        ] {
            assert_eq!(problems(&[(from, to, None)]), [""; 0], "{from} → {to}");
        }
    }

    #[test]
    fn outward_and_sideways_edges_fail_in_every_kind() {
        for (from, to) in [
            ("crosstalk-envelope", "crosstalk-protocol"),
            ("crosstalk-protocol", "crosstalk-store"),
            ("crosstalk-store", "crosstalk-relay"),
            ("crosstalk-store", "crosstalk-api"),
            ("crosstalk-api", "crosstalk-relay"),
            ("crosstalk-relay", "crosstalk-conform"),
            ("crosstalk-mcp", "crosstalk-store"),
            ("crosstalk-mcp", "crosstalk-dns"),
            ("crosstalk-wasm", "crosstalk-api"),
            ("crosstalk-cli", "crosstalk-wasm"),
            ("crosstalk-email", "crosstalk-cli"),
            ("crosstalk-cli", "xtask"),
            ("crosstalk-envelope", "crosstalk-fuzz-properties"),
        ] {
            for kind in [None, Some("build"), Some("dev")] {
                let name = kind.unwrap_or("normal");
                assert_eq!(
                    problems(&[(from, to, kind)]),
                    [format!("forbidden edge: {from} → {to} ({name} dependency)")]
                );
            }
        }
    }

    #[test]
    fn some_crates_are_for_the_tests_of_others_only() {
        for (from, to) in [
            ("crosstalk-relay", "crosstalk-store"),
            ("crosstalk-relay", "crosstalk-dns"),
            ("crosstalk-conform", "crosstalk-relay"),
        ] {
            for (kind, allowed) in [(Some("dev"), true), (Some("build"), false), (None, false)] {
                let found = problems(&[(from, to, kind)]);
                assert_eq!(found.is_empty(), allowed, "{to} {kind:?}: {found:?}");
            }
        }
    }

    #[test]
    fn a_feature_for_tests_may_use_the_conformance_suite() {
        let of = |optional: bool| {
            let dependency = serde_json::json!({"name": "crosstalk-conformance", "kind": null,
                "optional": optional, "path": "/project/somewhere"});
            let package =
                serde_json::json!({"name": "crosstalk-python", "dependencies": [dependency]});
            check(&serde_json::json!({"packages": [package]}).to_string())
                .unwrap()
                .1
        };
        assert_eq!(of(true), [""; 0]);
        assert_eq!(of(false).len(), 1);
    }

    #[test]
    fn crates_with_servers_for_tests_are_for_tests_only() {
        let (dns, testing) = ("crosstalk-dns", "crosstalk-testing");
        for (kind, allowed) in [(Some("dev"), true), (Some("build"), false), (None, false)] {
            let found = problems(&[(dns, testing, kind)]);
            assert_eq!(found.is_empty(), allowed, "{kind:?}: {found:?}");
        }
        for kind in [Some("dev"), None] {
            assert_eq!(problems(&[(testing, dns, kind)]).len(), 1, "{kind:?}");
        }
        assert_eq!(problems(&[("crosstalk-bench", testing, None)]), [""; 0]);
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_fails() {
        for found in [
            problems(&[("crosstalk-cli", "crosstalk-new", None)]),
            check(r#"{"packages":[{"name":"crosstalk-new","dependencies":[]}]}"#)
                .unwrap()
                .1,
        ] {
            assert_eq!(found.len(), 1);
            assert!(found[0].contains("unknown crate: crosstalk-new; add it to TABLE"));
        }
    }

    #[test]
    fn a_crate_may_test_itself_with_other_features() {
        let metadata = r#"{"packages":[{"name":"crosstalk-envelope","dependencies":[
            {"name":"crosstalk-envelope","kind":"dev","path":"/x"}]}]}"#;
        assert_eq!(check(metadata).unwrap(), (0, vec![]));
    }

    #[test]
    fn broken_metadata_is_an_error() {
        assert!(check("{}").is_err());
    }

    #[test]
    fn a_command_names_no_other_command() {
        let groups: BTreeSet<String> = ["paste", "poll", "show"].map(str::to_owned).into();
        let named = |path: &str, text: &str| -> Vec<String> {
            named_commands(path, text, &groups).into_iter().collect()
        };
        for (path, text) in [
            ("command/poll.rs", "use super::paste::Intake;"),
            ("command/poll.rs", "let x = super::paste::run();"),
            ("command/poll/new.rs", "use super::super::paste::Intake;"),
            ("command/poll/new.rs", "use crate::command::paste::Intake;"),
            (
                "command/poll.rs",
                "use crate::command::{\n    poll::{a, b},\n    paste,\n};",
            ),
            ("service/intake.rs", "use crate::command::paste;"),
        ] {
            assert_eq!(named(path, text), ["paste"], "{path}: {text}");
        }
        for (path, text) in [
            ("command/poll.rs", "use super::Paging;"),
            (
                "command/poll/new.rs",
                "use super::show;\nuse crate::command::poll::draw;",
            ),
            ("command/poll.rs", "/// As super::paste::Paste does."),
            ("service/poll.rs", "use super::show;"),
        ] {
            assert_eq!(named(path, text), [""; 0], "{path}: {text}");
        }
    }
}
