//! `crosstalk config edit`: the file in an editor. It is replaced only by a text that can be read.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::editor::Program;
use crate::service::settings::{Config, check};
use clap::Args;
use crosstalk_store::{ConfigFile, Home};
use std::io::Write as _;
use std::path::{Path, PathBuf};

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
        let editor = chosen()?;
        let copy = copy_of(&before)?;
        loop {
            if let Err(why) = editor.run(&copy) {
                // Whatever was written until then is there.
                let fault = format!("the editor `{}` {why}", editor.name());
                return Err(kept(&copy, &before, Failure::Failed(fault)));
            }
            let after = std::fs::read_to_string(&copy).map_err(|e| Failure::at(&copy, e))?;
            if after == before {
                let _ = std::fs::remove_file(&copy);
                console.talk("nothing was changed\n")?;
                return Ok(Exit::SUCCESS);
            }
            if let Err(fault) = check(&after, file.path()) {
                console.failure(&fault)?;
                if console.offer("Edit it again?")? {
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
fn chosen() -> Result<Program, Failure> {
    let set = Config::load(None).ok().and_then(|config| config.editor());
    Ok(Program::find(set.as_deref())?)
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
