//! `crosstalk console`: opens the web console of the relay on this machine, signed in by a one-time link.

use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::relay::console::sign_in_url;
use crate::service::relay::data::{DataArgument, DataFolder};
use clap::Args;
use crosstalk_console::ConsoleCredential;
use crosstalk_protocol::relay::{Role, TokenRecord};
use crosstalk_relay::server::write_link_page;
use std::path::Path;
use std::process::{Command, Stdio};

/// Open the web console of the relay on this machine
///
/// The console is the page where people read, answer, approve and check, in a browser. This command makes a link that
/// signs in one browser, once, within ten minutes, and opens it. It works on the data folder of the relay, on the machine where
/// it runs; elsewhere, open the URL of the relay and sign in with a token.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk console\n  crosstalk console --as ann\n  crosstalk console --print --data /var/lib/crosstalk\n\nExit codes: 0 the link is on stdout or opened, 1 no relay runs on the folder, 2 it is not clear whom to sign in."
)]
pub(crate) struct OpenConsole {
    /// Sign in as the owner of this token; needed if there are several tokens of people
    #[arg(long = "as", value_name = "TOKEN")]
    token: Option<String>,
    /// Print the link, and open nothing
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    data: DataArgument,
}

impl OpenConsole {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let data = self.data.folder()?;
        data.require()?;
        let url = running_url(&data)?;
        let credential = self.credential(&data)?;
        let link = sign_in_url(&data, &url, credential)?;
        let is_opened = match !self.print && console.is_terminal() && has_desktop() {
            true => {
                // Everybody on the machine can read the command lines of others, so the link is in none.
                let page = write_link_page(data.folder(), &link);
                open(&page.map_err(|e| Failure::at(data.folder(), e))?)
            }
            false => false,
        };
        match is_opened {
            true => console.talk(&format!(
                "Opened {url} in the browser. The link works once:\n{link}\n"
            ))?,
            false => console.data(format!("{link}\n"))?,
        }
        Ok(Exit::SUCCESS)
    }

    /// Whom the link signs in.
    fn credential(&self, data: &DataFolder) -> Result<ConsoleCredential, Failure> {
        let (store, now) = (data.open()?, clock::now());
        let mut tokens = store.tokens()?;
        if tokens.is_empty() {
            return match &self.token {
                None => Ok(ConsoleCredential::Local),
                Some(name) => Err(Failure::usage(format!("there is no token `{name}`"))
                    .help("the relay has no tokens: leave --as out")),
            };
        }
        let counts = |t: &TokenRecord| {
            t.revoked_at.is_none()
                && t.expires_at.is_none_or(|end| end > now)
                && t.role != Role::Monitor
        };
        tokens.retain(counts);
        let found: Vec<&TokenRecord> = match &self.token {
            Some(name) => tokens.iter().filter(|t| t.name == *name).collect(),
            None => {
                let people = |t: &&TokenRecord| matches!(t.role, Role::Person | Role::Admin);
                tokens.iter().filter(people).collect()
            }
        };
        match (found.as_slice(), &self.token) {
            ([only], _) => Ok(ConsoleCredential::Token(only.hash.0)),
            (_, Some(name)) => Err(Failure::usage(format!("there is no active token `{name}`"))
                .help(format!("`{}` shows all", data.command("token list")))),
            ([], None) => Err(
                Failure::usage("the relay has no active token of a person").help(format!(
                    "create one: `{}`",
                    data.command("token create NAME --role person --for ADDRESS")
                )),
            ),
            (several, None) => {
                let names: Vec<&str> = several.iter().map(|t| t.name.as_str()).collect();
                Err(
                    Failure::usage(format!("there are several people: {}", names.join(", "))).help(
                        format!("say who you are: `{}`", data.command("console --as NAME")),
                    ),
                )
            }
        }
    }
}

/// The URL of the relay that runs on a data folder.
fn running_url(data: &DataFolder) -> Result<String, Failure> {
    let not_running = || {
        Failure::failed(format!("no relay runs on {}", data.shown()))
            .help(format!("start it with `{}`", data.command("serve")))
    };
    let fault = |e| Failure::at(data.folder(), e);
    if !data.is_running().map_err(fault)? {
        return Err(not_running());
    }
    let said = data.last_said().map_err(fault)?.unwrap_or_default();
    let url = said.split(", ").find(|part| part.starts_with("http"));
    url.map(str::to_owned).ok_or_else(not_running)
}

/// Whether there is a desktop to open a browser on.
fn has_desktop() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Opens a file in the browser of the desktop. Whether that worked.
fn open(page: &Path) -> bool {
    #[cfg(target_os = "macos")]
    const PROGRAM: &str = "open";
    #[cfg(not(target_os = "macos"))]
    const PROGRAM: &str = "xdg-open";
    let mut command = Command::new(PROGRAM);
    command
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
