//! `crosstalk key`: keys of one's own, from the first to the last day (SIG-020 to SIG-024, TRU-010, TRU-013).

mod announcement;
mod backup;
mod export;
mod import;
mod list;
mod new;
mod passphrase;
mod revoke;
mod rotate;
mod show;
mod view;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Make, show, back up, replace and revoke keys of your own
///
/// Keys are files in the folder of CROSSTALK_HOME, or in the usual place of your system. Passphrases are asked for
/// on the terminal; scripts give them in CROSSTALK_PASSPHRASE or with --passphrase-file.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key new --id alice@example.com\n  crosstalk key show alice@example.com\n  crosstalk key backup alice@example.com --to alice.backup"
)]
pub(crate) struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    New(new::New),
    List(list::List),
    Show(show::Show),
    Export(export::Export),
    Import(import::Import),
    Backup(backup::Backup),
    Rotate(rotate::Rotate),
    Revoke(revoke::Revoke),
    Passphrase(passphrase::Change),
}

impl Key {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.action {
            Action::New(action) => action.run(console),
            Action::List(action) => action.run(console),
            Action::Show(action) => action.run(console),
            Action::Export(action) => action.run(console),
            Action::Import(action) => action.run(console),
            Action::Backup(action) => action.run(console),
            Action::Rotate(action) => action.run(console),
            Action::Revoke(action) => action.run(console),
            Action::Passphrase(action) => action.run(console),
        }
    }
}
