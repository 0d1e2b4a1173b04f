//! `crosstalk config edit`: the file in an editor. It is replaced only by a text that can be read.

use crate::config::{Config, check, editor};
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Args;
use crosstalk_store::{ConfigFile, Home};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Open the settings in an editor
///
/// The editor is that of the setting `editor`, of VISUAL or of EDITOR. It gets a copy; the file is replaced if the copy
/// can be read. If not, you are asked whether to go on, and what you wrote is kept.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk config edit\n  EDITOR='code --wait' crosstalk config edit"
)]
pub(super) struct Edit {}

impl Edit {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let file = ConfigFile::new(&Home::from_env()?);
        let before = file.read()?.unwrap_or_default();
        let editor = chosen();
        let copy = copy_of(&before)?;
        loop {
            if let Err(fault) = open(&editor, &copy) {
                // Whatever was written until then is there.
                return Err(kept(&copy, &before, fault));
            }
            let after = std::fs::read_to_string(&copy)
                .map_err(|e| Failure::Io(copy.to_string_lossy().into_owned(), e))?;
            if after == before {
                let _ = std::fs::remove_file(&copy);
                console.talk("nothing was changed\n")?;
                return Ok(Exit::SUCCESS);
            }
            if let Err(fault) = check(&after, file.path()) {
                console.failure(&fault)?;
                if again(console)? {
                    continue;
                }
                let fault = Failure::Failed("the settings stay as they were".to_owned());
                return Err(kept(&copy, &before, fault));
            }
            return match replace(&file, &before, &after) {
                Ok(()) => {
                    let _ = std::fs::remove_file(&copy);
                    Ok(Exit::SUCCESS)
                }
                Err(fault) => Err(kept(&copy, &before, fault)),
            };
        }
    }
}

/// The editor to open. Settings that can't be read must not keep anybody from repairing them.
fn chosen() -> String {
    let set = Config::load(None).ok().and_then(|config| config.editor());
    set.or_else(|| editor().map(|(editor, _)| editor))
        .unwrap_or_else(|| if cfg!(windows) { "notepad" } else { "vi" }.to_owned())
}

/// A copy for the owner alone, which an editor sees as TOML.
fn copy_of(text: &str) -> Result<PathBuf, Failure> {
    let fault = |e| Failure::Io("a copy of the settings".to_owned(), e);
    let mut copy = tempfile::Builder::new()
        .prefix("crosstalk-config-")
        .suffix(".toml")
        .tempfile()
        .map_err(fault)?;
    copy.write_all(text.as_bytes()).map_err(fault)?;
    let (_, path) = copy.keep().map_err(|e| fault(e.error))?;
    Ok(path)
}

/// Runs the editor, with the arguments that its setting names.
fn open(editor: &str, copy: &Path) -> Result<(), Failure> {
    let mut command = if cfg!(windows) {
        let mut words = editor.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("notepad"));
        command.args(words).arg(copy);
        command
    } else {
        // The shell takes it apart, as it does everywhere else; the name of the file is not part of its text.
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{editor} \"$@\""), "sh"])
            .arg(copy);
        command
    };
    let failed = |why: String| {
        Failure::Failed(format!(
            "the editor `{editor}` {why}: choose another with EDITOR"
        ))
    };
    let status = command
        .status()
        .map_err(|e| failed(format!("can't be opened: {e}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(match status.code() {
            Some(code) => format!("ended with {code}"),
            None => "was stopped".to_owned(),
        })),
    }
}

/// Whether to go on: asked only if somebody is there.
fn again(console: &mut Console) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(false);
    }
    console.talk("Edit it again? [Y/n] ")?;
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    let read = read.map_err(|e| Failure::Io("stdin".to_owned(), e))?;
    Ok(read > 0 && !answer.trim().to_ascii_lowercase().starts_with('n'))
}

fn replace(file: &ConfigFile, before: &str, after: &str) -> Result<(), Failure> {
    file.update(|now| match now == before {
        true => Ok(Some(after.to_owned())),
        false => Err(Failure::Failed(
            "somebody else changed the settings meanwhile: they stay as they are now".to_owned(),
        )),
    })?;
    Ok(())
}

/// The failure, with where the text is; a copy that nobody changed is removed.
fn kept(copy: &Path, before: &str, fault: Failure) -> Failure {
    if std::fs::read_to_string(copy).is_ok_and(|text| text == before) {
        let _ = std::fs::remove_file(copy);
        return fault;
    }
    let place = copy.display();
    Failure::Failed(format!("{fault}\nwhat you wrote is in `{place}`"))
}
