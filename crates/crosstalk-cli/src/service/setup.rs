//! Tells MCP clients of this machine how to start `crosstalk mcp`: finds them, changes their settings, and checks the connection.
//!
//! ```text
//! client   which clients there are, and where each keeps its settings     json, toml   the changed text, the rest as it is
//! file     read, written at once, or left alone                            plugin       a Claude Code plugin, a Gemini CLI extension
//! ```

mod check;
mod client;
mod diff;
mod file;
mod json;
mod plugin;
mod toml;

pub(crate) use check::check;
pub(crate) use client::{ClientKind, Place};
pub(crate) use diff::diff;
pub(crate) use file::ClientFile;
pub(crate) use plugin::{PluginFile, claude_plugin, gemini_extension};

use crate::failure::Failure;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The name of the server in the settings of a client.
pub(crate) const SERVER: &str = "crosstalk";
/// Variables that a client may not pass on, and that say which messages are meant.
const PASSED_ON: [&str; 2] = [HOME_VARIABLE, "CROSSTALK_PROFILE"];
/// The variable that names the folder of the messages.
pub(crate) const HOME_VARIABLE: &str = "CROSSTALK_HOME";

/// The command by which a client starts the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerCommand {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

impl ServerCommand {
    /// This program, wherever it is: a client may have another search path.
    pub(crate) fn own(profile: Option<&str>) -> Result<Self, Failure> {
        let program =
            std::env::current_exe().map_err(|e| Failure::io("the path of crosstalk", e))?;
        let program = program.into_os_string().into_string().map_err(|path| {
            Failure::failed(format!(
                "the path of crosstalk is no Unicode text: {}",
                PathBuf::from(path).display()
            ))
            .help("install it in another folder")
        })?;
        let mut arguments = vec!["mcp".to_owned()];
        if let Some(profile) = profile {
            arguments.extend(["--profile".to_owned(), profile.to_owned()]);
        }
        let given = PASSED_ON.iter().filter_map(|name| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
            // A client starts the server in another folder.
            let is_path = *name == HOME_VARIABLE;
            let absolute = std::path::absolute(&value).ok().filter(|_| is_path);
            let absolute = absolute.and_then(|path| path.into_os_string().into_string().ok());
            Some(((*name).to_owned(), absolute.unwrap_or(value)))
        });
        Ok(Self {
            program,
            arguments,
            environment: given.collect(),
        })
    }

    /// The folder of the messages, if the variable names one.
    pub(crate) fn home(&self) -> Option<&str> {
        let mut all = self.environment.iter();
        let found = all.find(|(name, _)| name == HOME_VARIABLE);
        found.map(|(_, value)| value.as_str())
    }

    /// The entry of the server in JSON settings; some clients want to be told the transport.
    pub(crate) fn to_json(&self, has_type: bool) -> Value {
        let mut entry = Map::new();
        if has_type {
            entry.insert("type".into(), "stdio".into());
        }
        entry.insert("command".into(), self.program.clone().into());
        entry.insert("args".into(), self.arguments.clone().into());
        if !self.environment.is_empty() {
            let all = self.environment.iter();
            let all = all.map(|(name, value)| (name.clone(), value.clone().into()));
            entry.insert("env".into(), Value::Object(all.collect()));
        }
        Value::Object(entry)
    }
}

/// What becomes of the settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingsChange {
    /// The server is added, or its command is corrected.
    Add,
    /// The server is removed.
    Remove,
}

/// The settings of a client after a change. Everything else in them is as it was, byte for byte.
pub(crate) fn changed(
    kind: ClientKind,
    text: &str,
    command: &ServerCommand,
    change: SettingsChange,
) -> Result<String, Failure> {
    match (kind.table(), change) {
        (None, SettingsChange::Add) => toml::add(text, command),
        (None, SettingsChange::Remove) => toml::remove(text),
        (Some(table), SettingsChange::Add) => {
            json::set(text, [table, SERVER], &command.to_json(kind.has_type()))
        }
        (Some(table), SettingsChange::Remove) => json::remove(text, [table, SERVER]),
    }
}
