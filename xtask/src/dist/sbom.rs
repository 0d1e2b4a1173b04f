//! The bill of materials: a CycloneDX 1.6 document with every crate that the program was built from.
//!
//! `cargo tree` says which crates these are, since it selects features for the program alone; `cargo metadata` selects
//! them for the whole workspace, tests included. Descriptions come from `cargo metadata`, checksums from `Cargo.lock`.

use super::{Release, date};
use crate::ending::Failure;
use crate::invocation::Invocation;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    license_file: Option<String>,
    description: Option<String>,
    repository: Option<String>,
    source: Option<String>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None` for a normal dependency, else `build` or `dev`.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Which crates there are: `name version` of each.
struct Crates {
    /// All that the build needs: normal and build dependencies, macros among them.
    all: BTreeSet<String>,
    /// Those that are in the program itself.
    linked: BTreeSet<String>,
}

/// The document as text.
pub fn write(release: &Release) -> Result<String, Failure> {
    let target = &release.target;
    let tree = |edges: &str| {
        let line = format!(
            "cargo tree --locked -p crosstalk-cli --target {target} --prefix none --no-dedupe --format {{p}} --edges {edges}"
        );
        Invocation::new(&line)
            .output(&release.root)
            .map(|text| read_tree(&text))
    };
    let crates = Crates {
        all: tree("normal,build")?,
        linked: tree("normal,no-proc-macro")?,
    };
    let line = format!("cargo metadata --format-version 1 --locked --filter-platform {target}");
    let metadata = Invocation::new(&line).output(&release.root)?;
    let lock = fs::read_to_string(release.root.join("Cargo.lock"))?;
    let timestamp = date(release, "+%Y-%m-%dT%H:%M:%SZ")?;
    let document = document(&metadata, &lock, &crates, &timestamp)?;
    Ok(format!("{document:#}\n"))
}

/// `name version` of each line `name vVERSION …` of `cargo tree`.
fn read_tree(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next()?;
            let version = words.next()?.strip_prefix('v')?;
            Some(format!("{name} {version}"))
        })
        .collect()
}

/// The document, from what Cargo says and what is locked.
fn document(metadata: &str, lock: &str, crates: &Crates, timestamp: &str) -> Result<Value, String> {
    let metadata: Metadata =
        serde_json::from_str(metadata).map_err(|e| format!("the output of cargo metadata: {e}"))?;
    let lock: Lock = toml::from_str(lock).map_err(|e| format!("Cargo.lock: {e}"))?;
    let checksums: BTreeMap<String, String> = lock
        .package
        .into_iter()
        .filter_map(|p| Some((format!("{} {}", p.name, p.version), p.checksum?)))
        .collect();
    let packages: BTreeMap<&str, &Package> = metadata
        .packages
        .iter()
        .filter(|p| crates.all.contains(&key(p)))
        .map(|p| (p.id.as_str(), p))
        .collect();
    if packages.len() != crates.all.len() {
        return Err("cargo tree and cargo metadata do not list the same crates".into());
    }
    let program = packages
        .values()
        .find(|p| p.name == "crosstalk-cli")
        .ok_or("crosstalk-cli is not among the crates")?;

    let mut components: Vec<&&Package> = packages.values().filter(|p| p.id != program.id).collect();
    components.sort_by_key(|p| key(p));
    let components: Vec<Value> = components
        .into_iter()
        .map(|p| component(p, crates, checksums.get(&key(p))))
        .collect();

    let mut dependencies: Vec<(String, BTreeSet<String>)> = metadata
        .resolve
        .nodes
        .iter()
        .filter_map(|node| {
            let from = packages.get(node.id.as_str())?;
            let to = node
                .deps
                .iter()
                .filter(|e| e.dep_kinds.iter().any(|k| k.kind.as_deref() != Some("dev")))
                .filter_map(|e| packages.get(e.pkg.as_str()))
                .map(|p| purl(p))
                .collect();
            Some((purl(from), to))
        })
        .collect();
    dependencies.sort();
    let dependencies: Vec<Value> = dependencies
        .into_iter()
        .map(|(from, to)| json!({ "ref": from, "dependsOn": to }))
        .collect();

    let mut main = component(program, crates, None);
    set(&mut main, "type", json!("application"));
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": timestamp,
            "lifecycles": [{ "phase": "build" }],
            "component": main,
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// One crate.
fn component(package: &Package, crates: &Crates, checksum: Option<&String>) -> Value {
    let purl = purl(package);
    let linked = crates.linked.contains(&key(package));
    let mut out = json!({
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        // `excluded`: needed to build the program, and not part of it.
        "scope": if linked { "required" } else { "excluded" },
        "purl": purl,
    });
    if let Some(text) = &package.description {
        let words: Vec<&str> = text.split_whitespace().collect();
        set(&mut out, "description", json!(words.join(" ")));
    }
    match (&package.license, &package.license_file) {
        (Some(text), _) => {
            let expression = text.replace('/', " OR ");
            set(&mut out, "licenses", json!([{ "expression": expression }]));
        }
        (None, Some(file)) => {
            let name = format!("{} of {}", file, package.name);
            set(
                &mut out,
                "licenses",
                json!([{ "license": { "name": name } }]),
            );
        }
        (None, None) => {}
    }
    if let Some(content) = checksum {
        set(
            &mut out,
            "hashes",
            json!([{ "alg": "SHA-256", "content": content }]),
        );
    }
    if package.name == "libsqlite3-sys" {
        let manifest = package.manifest_path.as_deref();
        let sqlite = manifest.and_then(|path| sqlite(path.parent()?));
        set(&mut out, "components", sqlite.into_iter().collect());
    }
    if let (Some(url), Some(_)) = (&package.repository, &package.source) {
        set(
            &mut out,
            "externalReferences",
            json!([{ "type": "vcs", "url": url }]),
        );
    }
    out
}

/// The source of SQLite that a crate brings: a scanner for known faults looks for its version.
fn sqlite(folder: &Path) -> Option<Value> {
    let header = fs::read_to_string(folder.join("sqlite3/sqlite3.h")).ok()?;
    let define = |line: &str| {
        let version = line.strip_prefix("#define SQLITE_VERSION ")?;
        Some(version.trim().trim_matches('"').to_owned())
    };
    let version = header.lines().find_map(define)?;
    Some(json!({
        "type": "library",
        "name": "SQLite",
        "version": version,
        "cpe": format!("cpe:2.3:a:sqlite:sqlite:{version}:*:*:*:*:*:*:*"),
        "purl": format!("pkg:generic/sqlite@{version}"),
        "licenses": [{ "license": { "id": "blessing" } }],
    }))
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
}

fn key(package: &Package) -> String {
    format!("{} {}", package.name, package.version)
}

/// The package URL of a crate.
fn purl(package: &Package) -> String {
    let version = package.version.replace('+', "%2B");
    format!("pkg:cargo/{}@{version}", package.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "packages": [
            {"id": "c", "name": "crosstalk-cli", "version": "0.1.0", "license": "MIT OR Apache-2.0"},
            {"id": "a", "name": "alpha", "version": "1.1.0+spec-1", "license": "MIT/Apache-2.0", "source": "registry",
             "description": "two\n lines", "repository": "https://example.org/alpha"},
            {"id": "m", "name": "macros", "version": "2.0.0", "license_file": "COPYING", "source": "registry"},
            {"id": "t", "name": "tester", "version": "3.0.0", "license": "MIT", "source": "registry"}
        ],
        "resolve": {"nodes": [
            {"id": "c", "deps": [
                {"pkg": "a", "dep_kinds": [{"kind": null}, {"kind": "dev"}]},
                {"pkg": "t", "dep_kinds": [{"kind": "dev"}]}
            ]},
            {"id": "a", "deps": [{"pkg": "m", "dep_kinds": [{"kind": "build"}]}]},
            {"id": "m", "deps": []},
            {"id": "t", "deps": []}
        ]}
    }"#;
    const LOCK: &str = "[[package]]\nname = \"alpha\"\nversion = \"1.1.0+spec-1\"\nchecksum = \"aa11\"\n\
                        [[package]]\nname = \"crosstalk-cli\"\nversion = \"0.1.0\"\n";

    fn crates() -> Crates {
        let tree = "crosstalk-cli v0.1.0 (/src)\nalpha v1.1.0+spec-1\n";
        Crates {
            linked: read_tree(tree),
            all: read_tree(&format!("{tree}macros v2.0.0 (proc-macro)\n\n")),
        }
    }

    #[test]
    fn lists_the_crates_of_the_program() {
        let bom = document(METADATA, LOCK, &crates(), "2026-01-01T00:00:00Z").unwrap();
        assert_eq!(bom["bomFormat"], "CycloneDX");
        assert_eq!(bom["metadata"]["component"]["name"], "crosstalk-cli");
        assert_eq!(
            bom["components"],
            json!([
                {
                    "type": "library",
                    "bom-ref": "pkg:cargo/alpha@1.1.0%2Bspec-1",
                    "name": "alpha",
                    "version": "1.1.0+spec-1",
                    "scope": "required",
                    "purl": "pkg:cargo/alpha@1.1.0%2Bspec-1",
                    "description": "two lines",
                    "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                    "hashes": [{ "alg": "SHA-256", "content": "aa11" }],
                    "externalReferences": [{ "type": "vcs", "url": "https://example.org/alpha" }],
                },
                {
                    "type": "library",
                    "bom-ref": "pkg:cargo/macros@2.0.0",
                    "name": "macros",
                    "version": "2.0.0",
                    "scope": "excluded",
                    "purl": "pkg:cargo/macros@2.0.0",
                    "licenses": [{ "license": { "name": "COPYING of macros" } }],
                },
            ])
        );
    }

    #[test]
    fn dependencies_leave_tests_out() {
        let bom = document(METADATA, LOCK, &crates(), "").unwrap();
        assert_eq!(
            bom["dependencies"],
            json!([
                { "ref": "pkg:cargo/alpha@1.1.0%2Bspec-1", "dependsOn": ["pkg:cargo/macros@2.0.0"] },
                { "ref": "pkg:cargo/crosstalk-cli@0.1.0", "dependsOn": ["pkg:cargo/alpha@1.1.0%2Bspec-1"] },
                { "ref": "pkg:cargo/macros@2.0.0", "dependsOn": [] },
            ])
        );
    }

    #[test]
    fn crate_without_metadata_is_an_error() {
        let mut crates = crates();
        crates.all.insert("gone 1.0.0".into());
        let error = document(METADATA, LOCK, &crates, "").unwrap_err();
        assert!(error.contains("do not list the same crates"));
    }
}
