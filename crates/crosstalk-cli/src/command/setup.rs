//! `crosstalk setup`: tells the MCP clients of this machine about `crosstalk mcp`.

use crate::console::{BOLD, Console, GREEN, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::service::setup::{
    ClientFile, ClientKind, HOME_VARIABLE, Place, PluginFile, SERVER, ServerCommand,
    SettingsChange, changed, check, claude_plugin, diff, gemini_extension,
};
use crate::view;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use std::fs;
use std::path::{Path, PathBuf};

/// Connect Claude Code, Codex, Gemini CLI, Cursor or VS Code
///
/// Finds the clients of this machine, shows what it would change in the settings of each, and changes it after a yes. Everything
/// else in them stays as it is. Then it starts the server as a client would, and says what the client still needs.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk setup\n  crosstalk setup claude codex --yes\n  crosstalk setup gemini --remove\n  crosstalk setup claude --plugin ./crosstalk-plugin   # the server, a skill and commands\n\nExit codes: 0 every client is connected, 1 none was found, the server does not\nanswer, or settings can't be read (they stay as they are), 2 wrong usage."
)]
pub(crate) struct SetupCommand {
    /// The clients; without one, every client that is installed
    #[arg(value_enum, value_name = "CLIENT")]
    clients: Vec<ClientKind>,
    /// Change the settings without a question
    #[arg(long, short)]
    yes: bool,
    /// Remove the server from the settings
    #[arg(long)]
    remove: bool,
    /// Write a Claude Code plugin or a Gemini CLI extension into this folder, and change no settings
    #[arg(long, value_name = "DIR", conflicts_with = "remove")]
    plugin: Option<PathBuf>,
}

impl SetupCommand {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let profile = console.profile().map(str::to_owned);
        let command = ServerCommand::own(profile.as_deref())?;
        if let Some(folder) = &self.plugin {
            self.write_plugin(console, folder, &command)?;
            return Ok(Exit::SUCCESS);
        }
        let named = !self.clients.is_empty();
        let kinds = match named {
            true => self.clients.clone(),
            false => ClientKind::ALL.to_vec(),
        };
        let mut places = Vec::new();
        for kind in kinds {
            let place = kind.place()?;
            if named || place.is_installed {
                places.push(place);
            }
        }
        if places.is_empty() {
            let words = ClientKind::ALL.map(ClientKind::word).join(", ");
            return Err(
                Failure::failed("no client was found on this machine").help(format!(
                    "name yours, one of {words}; any other MCP client starts `{} mcp`",
                    command.program
                )),
            );
        }
        let mut exit = Exit::SUCCESS;
        let mut connected = Vec::new();
        for place in &places {
            match self.set_up(console, place, &command) {
                Ok(true) => connected.push(place.kind),
                Ok(false) => {}
                Err(fault) => {
                    let path = place.file.to_string_lossy();
                    let about = format!("{}, {}", place.kind.name(), shown_path(&path));
                    console.failure(&fault.about(&about))?;
                    exit = exit.worst(Exit::FAILURE);
                }
            }
        }
        if self.remove || connected.is_empty() {
            return Ok(exit);
        }
        warn_of_other_home(console, &command)?;
        let tools = check(&command)?;
        console.talk(&format!(
            "{}: the server answers, with the tools {}.\n",
            styled(GREEN, "connected"),
            view::names(&tools)
        ))?;
        for kind in connected {
            console.tell(&format!("{}: {}", kind.name(), kind.needs()))?;
        }
        Ok(exit)
    }

    /// Changes the settings of one client. Returns whether the server is in them.
    fn set_up(
        &self,
        console: &mut Console,
        place: &Place,
        command: &ServerCommand,
    ) -> Result<bool, Failure> {
        let file = ClientFile::read(&place.file)?;
        let change = match self.remove {
            true => SettingsChange::Remove,
            false => SettingsChange::Add,
        };
        let after = changed(place.kind, file.text(), command, change)?;
        let name = styled(BOLD, place.kind.name());
        let path = place.file.to_string_lossy();
        let path = shown_path(&path);
        if after == file.text() {
            let state = match self.remove {
                true => "has no entry of Crosstalk",
                false => "is set up already",
            };
            console.talk(&format!("{name} {state}: {path}\n"))?;
            return Ok(!self.remove);
        }
        let what = if file.exists() { "" } else { ", a new file" };
        console.talk(&format!("{name}: {path}{what}\n"))?;
        for line in diff(file.text(), &after).lines() {
            let shown = escape(line);
            let shown = match line.chars().next() {
                Some('+') => styled(GREEN, &shown),
                Some('-') => styled(RED, &shown),
                _ => shown.into_owned(),
            };
            console.talk(&format!("  {shown}\n"))?;
        }
        let action = match self.remove {
            true => "remove it",
            false => "write it",
        };
        if !self.yes && !console.confirm("Change these settings?", action)? {
            console.talk("Nothing was changed.\n")?;
            return Ok(false);
        }
        file.write(&after)?;
        Ok(!self.remove)
    }

    fn write_plugin(
        &self,
        console: &mut Console,
        folder: &Path,
        command: &ServerCommand,
    ) -> Result<(), Failure> {
        let (files, next) = match self.clients.as_slice() {
            [ClientKind::Claude] => (
                claude_plugin(command),
                "Start Claude Code with it: `claude --plugin-dir",
            ),
            [ClientKind::Gemini] => (
                gemini_extension(command),
                "Install it: `gemini extensions install",
            ),
            _ => {
                return Err(Failure::usage("--plugin is for one of two clients").help(
                    "`crosstalk setup claude --plugin DIR`, or `crosstalk setup gemini --plugin DIR`",
                ));
            }
        };
        require_own_folder(folder, &files)?;
        for PluginFile { path, text } in &files {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(|e| Failure::at(parent, e))?;
            fs::write(&path, text).map_err(|e| Failure::at(&path, e))?;
            console.data(format!("{}\n", path.display()))?;
        }
        console.talk(&format!("{next} {}`\n", folder.display()))
    }
}

/// Agents whose clients start the server with another CROSSTALK_HOME do not see the messages of the others.
fn warn_of_other_home(console: &mut Console, command: &ServerCommand) -> Result<(), Failure> {
    for kind in ClientKind::ALL {
        let place = kind.place()?;
        // Settings that can't be read were told about, or are none of this call's business.
        let Ok(file) = ClientFile::read(&place.file) else {
            continue;
        };
        let Ok(without) = changed(kind, file.text(), command, SettingsChange::Remove) else {
            continue;
        };
        let is_named = |text: &str| text.matches(HOME_VARIABLE).count();
        let has_home = is_named(file.text()) > is_named(&without);
        let is_same = match command.home() {
            Some(home) => has_home && file.text().contains(home),
            None => !has_home,
        };
        if without != file.text() && !is_same {
            console.warning(&format!(
                "the entry of {} has another {HOME_VARIABLE}, so that its agents do not meet the others: run `crosstalk setup` \
                 for all of them with the same {HOME_VARIABLE}",
                kind.name(),
            ))?;
        }
    }
    Ok(())
}

/// A folder with other things in it is left alone.
fn require_own_folder(folder: &Path, files: &[PluginFile]) -> Result<(), Failure> {
    let mut entries = match fs::read_dir(folder) {
        Err(_) => return Ok(()),
        Ok(entries) => entries,
    };
    let manifest = files.first().map(|file| folder.join(file.path));
    let is_own = manifest
        .and_then(|path| fs::read_to_string(path).ok())
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
        .is_some_and(|value| value.get("name").and_then(|n| n.as_str()) == Some(SERVER));
    match entries.next().is_none() || is_own {
        true => Ok(()),
        false => Err(
            Failure::failed(format!("{} has other files in it", folder.display()))
                .help("name a new folder"),
        ),
    }
}
