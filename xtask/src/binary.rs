//! Builds the test binaries of the workspace, and says how each is run.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::tree::target;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A test binary that Cargo built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The name of the package, as it follows `cargo test -p`.
    pub package: String,
    /// The option of `cargo test` that selects it: `--lib`, `--test it`.
    pub selector: String,
    /// The executable file.
    pub path: PathBuf,
    /// The folder of the package, in which Cargo runs it.
    pub folder: PathBuf,
}

/// A line that Cargo writes with `--message-format=json`, as far as it concerns test binaries.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Manifest {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

/// Builds all test binaries.
pub fn build(root: &Path) -> Result<Ending, Failure> {
    Invocation::new("cargo test --workspace --no-run").run(root)
}

/// Builds the program as the integration tests start it, and says where it is. With one selection of packages, Cargo builds
/// each crate once for all tests: `-p crosstalk-cli` would give half of them other features, and build them again.
pub fn program(root: &Path) -> Result<PathBuf, Failure> {
    Invocation::new("cargo test --quiet --workspace --test it --no-run").run(root)?;
    Ok(target(root).join("debug/crosstalk"))
}

/// Lists the test binaries that [`build`] built.
pub fn list(root: &Path) -> Result<Vec<Binary>, Failure> {
    let listing = Invocation::new("cargo test --workspace --no-run --quiet --message-format=json");
    binaries(&listing.output(root)?)
}

/// The test binaries among Cargo's messages.
fn binaries(listing: &str) -> Result<Vec<Binary>, Failure> {
    let mut found = Vec::new();
    for line in listing.lines() {
        let Ok(message) = serde_json::from_str::<Message>(line) else {
            continue;
        };
        let (Some(manifest), Some(target), Some(profile), Some(path)) = (
            message.manifest_path,
            message.target,
            message.profile,
            message.executable,
        ) else {
            continue;
        };
        if !profile.test {
            continue;
        }
        let text = fs::read_to_string(&manifest)?;
        let parsed: Manifest = toml::from_str(&text)
            .map_err(|error| std::io::Error::other(format!("{}: {error}", manifest.display())))?;
        found.push(Binary {
            package: parsed.package.name,
            selector: selector(&target),
            path,
            folder: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
        });
    }
    Ok(found)
}

fn selector(target: &Target) -> String {
    match target.kind.first().map(String::as_str) {
        Some(kind @ ("test" | "bin" | "example" | "bench")) => format!("--{kind} {}", target.name),
        _ => "--lib".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_among_the_messages_of_cargo() {
        let root = crate::root();
        let manifest = root.join("xtask/Cargo.toml");
        let line = |kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":{manifest:?},"target":{{"kind":["{kind}"],"name":"it"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let listing = [
            line("test", true, "\"/t/it-1\""),
            line("bin", false, "\"/t/program\""),
            line("lib", true, "null"),
            line("lib", true, "\"/t/lib-2\""),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "not JSON".to_owned(),
        ];
        let found = binaries(&listing.join("\n")).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|b| format!("{} {} {}", b.package, b.selector, b.path.display()))
            .collect();
        assert_eq!(shown, ["xtask --test it /t/it-1", "xtask --lib /t/lib-2"]);
        assert!(found.iter().all(|b| b.folder == root.join("xtask")));
    }
}
