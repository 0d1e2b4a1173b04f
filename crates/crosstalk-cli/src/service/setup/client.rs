//! The MCP clients that are known, and where each keeps its settings.

use crate::failure::Failure;
use clap::ValueEnum;
use std::env;
use std::path::PathBuf;

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientKind {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
}

/// Where a client keeps its settings, and whether it seems to be installed.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) kind: ClientKind,
    pub(crate) file: PathBuf,
    pub(crate) is_installed: bool,
}

impl ClientKind {
    /// All of them, in the order of the help.
    pub(crate) const ALL: [Self; 5] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Cursor,
        Self::Vscode,
    ];

    /// Its name for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
        }
    }

    /// Its word in `crosstalk setup` and in addresses.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Vscode => "code",
            other => other.word(),
        }
    }

    /// The key of the servers in JSON settings; nothing where the settings are TOML.
    pub(super) const fn table(self) -> Option<&'static str> {
        match self {
            Self::Codex => None,
            Self::Vscode => Some("servers"),
            _ => Some("mcpServers"),
        }
    }

    /// Whether an entry says that the server speaks on stdin and stdout.
    pub(super) const fn has_type(self) -> bool {
        matches!(self, Self::Claude | Self::Vscode)
    }

    /// What the client still needs after its settings are written.
    pub(crate) const fn needs(self) -> &'static str {
        match self {
            Self::Claude => {
                "Start Claude Code anew, or type /mcp in it: it lists crosstalk as connected."
            }
            Self::Codex => "Start Codex anew. `codex mcp list` shows crosstalk as enabled.",
            Self::Gemini => {
                "Gemini CLI connects servers only in folders that you trust: start it in your project, choose to trust the folder, \
                 and type /mcp."
            }
            Self::Cursor => {
                "Open Cursor Settings, Tools & MCP, and turn crosstalk on if it is off."
            }
            Self::Vscode => {
                "Open the chat in agent mode; VS Code asks once whether you trust the server."
            }
        }
    }

    /// Where it keeps its settings.
    pub(crate) fn place(self) -> Result<Place, Failure> {
        let home = home()?;
        let own = |variable: &str, folder: &str| {
            let named = env::var_os(variable).filter(|value| !value.is_empty());
            named.map_or_else(|| home.join(folder), PathBuf::from)
        };
        let (folder, file) = match self {
            Self::Claude => {
                let named = env::var_os("CLAUDE_CONFIG_DIR").filter(|value| !value.is_empty());
                let folder = named.map(PathBuf::from);
                let file = folder.clone().unwrap_or_else(|| home.clone());
                (
                    folder.unwrap_or_else(|| home.join(".claude")),
                    file.join(".claude.json"),
                )
            }
            Self::Codex => {
                let folder = own("CODEX_HOME", ".codex");
                (folder.clone(), folder.join("config.toml"))
            }
            Self::Gemini => {
                let folder = home.join(".gemini");
                (folder.clone(), folder.join("settings.json"))
            }
            Self::Cursor => {
                let folder = home.join(".cursor");
                (folder.clone(), folder.join("mcp.json"))
            }
            Self::Vscode => {
                let folder = code_folder(&home);
                (folder.clone(), folder.join("mcp.json"))
            }
        };
        let is_installed = folder.is_dir() || file.is_file() || is_in_path(self.program());
        Ok(Place {
            kind: self,
            file,
            is_installed,
        })
    }
}

fn home() -> Result<PathBuf, Failure> {
    let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
    home.ok_or_else(|| {
        Failure::failed("there is no home folder, so the settings of clients are not found")
            .help("set HOME")
    })
}

/// The folder of the user in VS Code.
fn code_folder(home: &std::path::Path) -> PathBuf {
    let data = match () {
        () if cfg!(target_vendor = "apple") => home.join("Library/Application Support"),
        () if cfg!(windows) => {
            env::var_os("APPDATA").map_or_else(|| home.join("AppData/Roaming"), PathBuf::from)
        }
        () => env::var_os("XDG_CONFIG_HOME")
            .filter(|value| !value.is_empty())
            .map_or_else(|| home.join(".config"), PathBuf::from),
    };
    data.join("Code").join("User")
}

fn is_in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let ends: &[&str] = if cfg!(windows) {
        &[".exe", ".cmd"]
    } else {
        &[""]
    };
    env::split_paths(&path).any(|folder| {
        ends.iter()
            .any(|end| folder.join(format!("{program}{end}")).is_file())
    })
}
