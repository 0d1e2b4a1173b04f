//! Programs that tests start, found and started with a word on where they come from.

use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::{env, fmt};

/// A program, and the Debian package that it is in.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    name: &'static str,
    package: &'static str,
}

impl Program {
    pub(crate) const fn new(name: &'static str, package: &'static str) -> Self {
        Self { name, package }
    }

    /// A command that starts it. Servers are in folders that not everyone has in the search path.
    pub(crate) fn command(self) -> Command {
        let path = env::var_os("PATH").unwrap_or_default();
        let file = env::split_paths(&path)
            .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
            .map(|folder| folder.join(self.name))
            .find(|file| file.is_file());
        Command::new(file.unwrap_or_else(|| PathBuf::from(self.name)))
    }

    /// Starts it.
    pub(crate) fn spawn(self, command: &mut Command) -> Child {
        let started = command.spawn();
        started.unwrap_or_else(|error| self.not_started(&error))
    }

    fn not_started(self, error: &Error) -> ! {
        if error.kind() == ErrorKind::NotFound {
            panic!(
                "{self} is not installed: `cargo xtask test` installs it (Debian package {})",
                self.package
            );
        }
        panic!("{self} could not be started: {error}");
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Runs a program that has to succeed, and returns its stdout.
pub(crate) fn output(command: &mut Command, program: Program) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| program.not_started(&error));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{talk}");
    text
}
