//! `crosstalk consent`: what was agreed to, by whom and for what, and what became of it.

mod check;
mod grant;
mod list;
mod revoke;
mod show;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::lookup::is_long_enough;
use crate::service::relay::data::Data;
use crate::service::relay::remote::{Remote, Through};
use crate::service::workspace::Desk;
use clap::{Args, Subcommand};
use crosstalk_protocol::consent::{Grant, GrantFilter, LedgerStore as _};
use crosstalk_store::SqliteStore;
use std::path::PathBuf;

/// Grant, look at, check and withdraw consents
///
/// Every message that says `Consent: explicit_yes` is on record here, with who gave it, for what, to whom, until when,
/// and how well that was verified. Revoking a consent erases every message that was kept under it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent grant claude://session/abc123 --scope medical --expires 2027-01-01T00:00:00Z\n  crosstalk consent list\n  crosstalk consent show 01K74V8Q\n  crosstalk consent revoke 01K74V8Q --reason 'not needed any more'\n  crosstalk consent check message.txt"
)]
pub(crate) struct Consent {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::List),
    Show(show::Show),
    Grant(Box<grant::Grant>),
    Revoke(Box<revoke::Revoke>),
    Check(check::Check),
}

impl Consent {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        match self.action {
            Action::List(action) => action.run(console, &desk),
            Action::Show(action) => action.run(console, &desk),
            Action::Grant(action) => action.run(console, &desk),
            Action::Revoke(action) => action.run(console, &desk),
            Action::Check(action) => action.run(console, &desk),
        }
    }
}

/// Where consents are looked at: here, at a relay, or in the data folder of one.
#[derive(Args, Debug)]
struct ConsentSource {
    /// Ask a relay; without a URL, that of the settings
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    relay: Option<String>,
    /// The file with the token of the relay
    #[arg(long, value_name = "FILE", requires = "relay")]
    token_file: Option<PathBuf>,
    /// Read the data folder of a relay on this machine, without the network
    #[arg(long, value_name = "DIR", conflicts_with = "relay")]
    data: Option<PathBuf>,
}

impl ConsentSource {
    /// The relay, if one is to be asked.
    fn connect(&self, desk: &Desk) -> Result<Option<Remote>, Failure> {
        let Some(url) = &self.relay else {
            return Ok(None);
        };
        let through = Through::of(url, self.token_file.clone())?;
        through.connect(&desk.config, None).map(Some)
    }

    /// The store on this machine; nothing if the person keeps none.
    fn open(&self, console: &mut Console, desk: &Desk) -> Result<Option<SqliteStore>, Failure> {
        let Some(folder) = &self.data else {
            return desk.messages(console);
        };
        let data = Data::at(folder.clone());
        data.require()?;
        data.open().map(Some)
    }
}

/// The consent that a name, or the beginning of one, means; nothing if there is none.
fn find(store: &SqliteStore, name: &str) -> Result<Option<Grant>, Failure> {
    if let Some(grant) = store.grant(name)? {
        return Ok(Some(grant));
    }
    if !is_long_enough(name) {
        return Ok(None);
    }
    let all = store.grants(&GrantFilter::default())?;
    let mut found = all.into_iter().filter(|g| g.id.starts_with(name));
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(several(name)),
        (found, _) => Ok(found),
    }
}

fn several(name: &str) -> Failure {
    Failure::usage(format!("`{name}` can mean several consents"))
        .help("write more of it (`crosstalk consent list --all`)")
}

fn unknown(name: &str) -> Failure {
    Failure::failed(format!("no consent `{name}` is on record"))
        .help("`crosstalk consent list --all` shows those that are")
}
