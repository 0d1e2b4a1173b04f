//! `crosstalk key passphrase`.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::home::Rooms;
use crate::service::passphrase::{Passphrase, choose_new};
use clap::Args;
use crosstalk_envelope::unicode::escape;
use std::path::PathBuf;

/// Set, change or remove the passphrase of a key
///
/// Backups keep the passphrase that they were made with. Scripts give the new one in CROSSTALK_NEW_PASSPHRASE or
/// with --new-passphrase-file.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key passphrase alice@example.com\n  crosstalk key passphrase alice@example.com --remove"
)]
pub(super) struct Change {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// Keep the key without a passphrase: whoever reads the file can sign
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    ask: Passphrase,
    /// Read the new passphrase from the first line of this file
    #[arg(long, value_name = "FILE", conflicts_with = "remove")]
    new_passphrase_file: Option<PathBuf>,
}

impl Change {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let key = rooms.keys.find(&self.id)?;
        let opened = rooms.unlock(&key, &self.ask)?;
        let new = match self.remove {
            true => None,
            false => Some(
                choose_new(self.new_passphrase_file.as_deref(), &self.id)
                    .map_err(|e| Failure::Io("the passphrase".into(), e))?,
            ),
        };
        let text = new.as_ref().map(|p| p.as_str());
        rooms.keys.set_passphrase(&key, &opened.key, text)?;
        let id = escape(&self.id);
        console.talk(&match new {
            Some(_) => format!("{id} is encrypted with the new passphrase\n"),
            None => format!("{id} has no passphrase: whoever reads the file can sign\n"),
        })?;
        Ok(Exit::SUCCESS)
    }
}
