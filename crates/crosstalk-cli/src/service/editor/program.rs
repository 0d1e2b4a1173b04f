//! Which editor, and how it is run: through the shell, so that its name may have arguments, and on the terminal.

use super::EditorError;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Editors that people have without choosing one.
const USUAL: &[&str] = if cfg!(windows) {
    &["notepad"]
} else {
    &["nano", "vim", "vi"]
};

/// The command line of an editor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Editor(String);

impl Editor {
    /// The editor that is configured, else that of `VISUAL`, else that of `EDITOR`, else a usual one if there is a
    /// terminal to run it on.
    pub(crate) fn find(configured: Option<&str>) -> Result<Self, EditorError> {
        let said = |name| std::env::var(name).ok();
        let chosen = [
            configured.map(str::to_owned),
            said("VISUAL"),
            said("EDITOR"),
        ];
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Stdout may be a file for the answer: somebody sits there if they can type and see.
        let sees = std::io::stdout().is_terminal() || std::io::stderr().is_terminal();
        Self::choose(chosen, std::io::stdin().is_terminal() && sees, &path)
    }

    fn choose(
        chosen: [Option<String>; 3],
        has_terminal: bool,
        path: &OsStr,
    ) -> Result<Self, EditorError> {
        if let Some(chosen) = chosen.into_iter().flatten().find(|c| !c.trim().is_empty()) {
            return Ok(Self(chosen));
        }
        if !has_terminal {
            return Err(EditorError::NoTerminal);
        }
        let folders: Vec<_> = std::env::split_paths(path).collect();
        let is_there = |name: &&&str| {
            let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
            folders.iter().any(|folder| folder.join(&file).is_file())
        };
        let found = USUAL.iter().find(is_there);
        found
            .map(|name| Self((*name).to_owned()))
            .ok_or(EditorError::NoEditor)
    }

    /// Its command line.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Runs it on a file and waits for it; the error continues a sentence that begins with its name.
    pub(crate) fn run(&self, file: &Path) -> Result<(), String> {
        // Shows the earlier output before the editor starts. The console holds the lock of this thread.
        let _ = std::io::stdout().flush();
        let mut command = shell(&self.0, file);
        // Data on stdout may go elsewhere, and an answer may have come on stdin: an editor wants the terminal. Without
        // one, whatever it says is talk.
        if !std::io::stdin().is_terminal() {
            command.stdin(terminal("CONIN$").map_or_else(Stdio::null, Stdio::from));
        }
        if !std::io::stdout().is_terminal() {
            command.stdout(terminal("CONOUT$").map_or_else(talk, Stdio::from));
        }
        let status = command.status();
        match status.map(|s| (s.success(), s.code())) {
            Err(fault) => Err(format!("could not be started: {fault}")),
            Ok((true, _)) => Ok(()),
            // What shells say for a command that is not there, and for one that can't be run.
            Ok((_, Some(127))) if cfg!(unix) => Err("is not found".into()),
            Ok((_, Some(9009))) if cfg!(windows) => Err("is not found".into()),
            Ok((_, Some(126))) if cfg!(unix) => Err("can't be run".into()),
            Ok((_, Some(code))) => Err(format!("ended with exit code {code}")),
            Ok((_, None)) => Err("was ended by a signal".into()),
        }
    }
}

/// The shell reads the editor's command line; the file is an argument, whatever its name.
#[cfg(unix)]
fn shell(editor: &str, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("{editor} \"$@\""))
        .arg(editor)
        .arg(file);
    command
}

/// `cmd` drops the outer quotes, and the inner ones keep the name of the file together.
#[cfg(windows)]
fn shell(editor: &str, file: &Path) -> Command {
    use std::os::windows::process::CommandExt as _;
    let mut command = Command::new("cmd");
    command
        .arg("/S")
        .arg("/C")
        .raw_arg(format!("\"{editor} \"{}\"\"", file.display()));
    command
}

/// The terminal that this command was started from, for reading or for writing.
fn terminal(windows: &str) -> Option<File> {
    let device = if cfg!(windows) { windows } else { "/dev/tty" };
    File::options().read(true).write(true).open(device).ok()
}

/// Where talk goes.
fn talk() -> Stdio {
    #[cfg(unix)]
    let stderr = std::os::fd::AsFd::as_fd(&std::io::stderr()).try_clone_to_owned();
    #[cfg(windows)]
    let stderr = std::os::windows::io::AsHandle::as_handle(&std::io::stderr()).try_clone_to_owned();
    stderr.map_or_else(|_| Stdio::null(), Stdio::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn first_chosen_editor_is_used() {
        let choose = |chosen| Editor::choose(chosen, false, "".as_ref());
        let name = |chosen| choose(chosen).unwrap().0;
        assert_eq!(
            name([some("code --wait"), some("emacs"), some("ed")]),
            "code --wait"
        );
        assert_eq!(name([None, some("emacs"), some("ed")]), "emacs");
        assert_eq!(name([some(" "), some(""), some("ed")]), "ed");
        assert!(matches!(
            choose([None, None, None]),
            Err(EditorError::NoTerminal)
        ));
    }

    #[test]
    fn usual_editor_is_used_if_it_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let choose = || Editor::choose([None, None, None], true, folder.path().as_os_str());
        assert!(matches!(choose(), Err(EditorError::NoEditor)));
        for name in USUAL.iter().rev() {
            let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
            std::fs::write(folder.path().join(file), "").unwrap();
            assert_eq!(choose().unwrap().0, *name);
        }
    }
}
