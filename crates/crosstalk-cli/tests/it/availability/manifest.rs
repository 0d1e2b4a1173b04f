//! The manifests of `deploy/ha`, which are not run here, against the schemas of those who read them; and the tables of
//! `docs/scale.md` against their model.

use super::repository;
use crosstalk_testing::folder::Folder;
use std::path::Path;
use std::process::{Command, Output};

/// Where `xtask` installs what checks manifests.
const TOOLS: &str = "target/tools/kubernetes-validate/bin";

fn run(program: &Path, arguments: &[&Path]) -> Output {
    let output = Command::new(program).args(arguments).output();
    output.unwrap_or_else(|e| {
        let shown = program.display();
        panic!("{shown}, which `cargo xtask test` installs: {e}")
    })
}

fn is_valid_for_kubernetes(file: &Path) -> bool {
    let validate = repository().join(TOOLS).join("kubernetes-validate");
    run(&validate, &[Path::new("--strict"), file])
        .status
        .success()
}

fn is_valid_for_compose(file: &Path) -> bool {
    let code = "import sys, compose_spec\n\
                compose_spec.PyOptions(apply_merge=True).from_yaml(open(sys.argv[1]).read())";
    let python = repository().join(TOOLS).join("python");
    run(&python, &[Path::new("-c"), Path::new(code), file])
        .status
        .success()
}

/// Whether a check accepts a file, and rejects it with a change.
fn accepts_only(check: fn(&Path) -> bool, file: &str, part: &str, change: &str) {
    let path = repository().join("deploy/ha").join(file);
    assert!(check(&path), "{file}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(part), "{part} is not in {file}");
    let folder = Folder::new("manifest");
    folder.write("changed.yaml", &text.replacen(part, change, 1));
    assert!(
        !check(&folder.path().join("changed.yaml")),
        "{file} with {change}"
    );
}

#[test]
fn manifests_fit_the_schemas_of_kubernetes() {
    let check = is_valid_for_kubernetes;
    accepts_only(
        check,
        "kubernetes/database.yaml",
        "replicas: 3",
        "replicas: three",
    );
    accepts_only(
        check,
        "kubernetes/relay.yaml",
        "maxUnavailable",
        "mostUnavailable",
    );
}

#[test]
fn the_compose_file_fits_its_specification() {
    let check = is_valid_for_compose;
    accepts_only(
        check,
        "compose.yml",
        "network_mode: service",
        "network_mod: service",
    );
}

#[test]
fn the_tables_of_the_scale_model_are_those_of_its_figures() {
    let script = repository().join("testing/scale.py");
    let output = run(Path::new("python3"), &[&script, Path::new("--check")]);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
}
