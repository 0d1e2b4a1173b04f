//! A command that a task starts, and the line by which a person starts it again.

use crate::ending::{Ending, Failure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fmt, io};

/// A command line of words without spaces, with the variables set for it.
#[derive(Clone, Debug)]
pub struct Invocation {
    variables: Vec<(&'static str, String)>,
    words: Vec<String>,
}

impl Invocation {
    /// The command that this line names; it is split at white space, nothing is quoted.
    pub fn new(line: &str) -> Self {
        Self {
            variables: Vec::new(),
            words: line.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// The program with this path, without arguments.
    pub fn program(path: &Path) -> Self {
        Self {
            variables: Vec::new(),
            words: Vec::new(),
        }
        .arg(path)
    }

    /// The same command with one more word, which may have spaces in it.
    pub fn arg(mut self, word: impl AsRef<Path>) -> Self {
        self.words
            .push(word.as_ref().to_string_lossy().into_owned());
        self
    }

    /// The same command with more words, split at white space.
    pub fn args(mut self, words: &str) -> Self {
        self.words
            .extend(words.split_whitespace().map(str::to_owned));
        self
    }

    /// The same command with a variable of the environment set.
    pub fn env(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// The same command with a path as a variable of the environment.
    pub fn env_path(self, name: &'static str, path: &Path) -> Self {
        self.env(name, &path.to_string_lossy())
    }

    /// The process to be, with `root` as its working folder.
    pub fn command(&self, root: &Path) -> Command {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        for (name, _) in std::env::vars_os() {
            if describes_this_crate(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        command
            .args(words)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(root);
        command
    }

    /// Runs it, its output going where ours goes.
    pub fn run(&self, root: &Path) -> Result<Ending, Failure> {
        println!("$ {self}");
        let status = self
            .command(root)
            .status()
            .map_err(|e| self.not_started(&e))?;
        if status.success() {
            Ok(Ending::Done(String::new()))
        } else {
            Err(Failure::new(
                format!("the command failed ({status})"),
                self.to_string(),
            ))
        }
    }

    /// Runs it and returns its standard output; if it fails, the error has its standard error.
    pub fn output(&self, root: &Path) -> Result<String, Failure> {
        let output = self.output_bytes(root)?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// [`Invocation::output`] for a program whose output is no text.
    pub fn output_bytes(&self, root: &Path) -> Result<Vec<u8>, Failure> {
        let output = self
            .command(root)
            .output()
            .map_err(|e| self.not_started(&e))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            let talk = String::from_utf8_lossy(&output.stderr);
            Err(Failure::new(talk.trim_end(), self.to_string()))
        }
    }

    /// Whether it can be started and succeeds; nothing is shown.
    pub fn succeeds(&self, root: &Path) -> bool {
        self.command(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// The failure to tell of when the process could not even begin.
    pub fn not_started(&self, error: &io::Error) -> Failure {
        Failure::new(
            format!("the command could not be started: {error}"),
            self.to_string(),
        )
    }
}

/// Whether Cargo set this variable to tell what `xtask` is. The build script of `ring` looks at some of them, so that a
/// `cargo` which inherited them would build it, and everything that depends on it, again.
fn describes_this_crate(variable: &str) -> bool {
    [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
    ]
    .iter()
    .any(|start| variable.starts_with(start))
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={value:?} ")?;
        }
        f.write_str(&self.words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_shown_as_it_is_typed() {
        let doc = Invocation::new("cargo doc --no-deps").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(
            doc.to_string(),
            "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps"
        );
    }

    #[test]
    fn cargo_does_not_inherit_what_describes_this_crate() {
        let removed = |name: &str| {
            let command = Invocation::new("cargo build").command(Path::new("."));
            command
                .get_envs()
                .any(|(found, value)| found == name && value.is_none())
        };
        // It is set for tests, too.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert!(removed("CARGO_MANIFEST_DIR"));
        assert!(describes_this_crate("CARGO_PKG_NAME"));
        assert!(!removed("PATH") && !removed("CARGO_HOME") && !removed("CARGO_TARGET_DIR"));
    }

    #[test]
    fn a_failure_names_the_command() {
        let here = Path::new(".");
        assert!(Invocation::new("true").run(here).is_ok());
        for line in ["false", "no-such-program-anywhere --flag"] {
            let failure = Invocation::new(line).run(here).unwrap_err();
            assert_eq!(failure.again.as_deref(), Some(line));
            assert!(!Invocation::new(line).succeeds(here));
            assert!(Invocation::new(line).output(here).is_err());
            assert!(Invocation::new(line).output_bytes(here).is_err());
        }
    }
}
