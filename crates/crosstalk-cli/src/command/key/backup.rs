//! `crosstalk key backup`.

use super::new::choose;
use crate::console::{Console, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::wrap;
use crate::service::home::Rooms;
use crate::service::passphrase::Passphrase;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use std::path::PathBuf;

/// Write a key and all that belongs to it into one encrypted file
///
/// A key that has a passphrase keeps it in the backup; for another one, a passphrase for the backup is asked for.
/// A file that is there already is left alone.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key backup alice@example.com --to /media/stick/alice.backup\n  crosstalk key import /media/stick/alice.backup     # on another machine: try it once"
)]
pub(super) struct Backup {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    ask: Passphrase,
}

impl Backup {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        if self.to.as_os_str() == "-" {
            let message = "a backup is a file of its own: give its name with --to".to_owned();
            return Err(Failure::Usage(message));
        }
        let rooms = Rooms::open()?;
        let key = rooms.keys.find(&self.id)?;
        let opened = rooms.unlock(&key, &self.ask)?;
        let passphrase = match opened.passphrase {
            Some(passphrase) => passphrase,
            None => choose(&self.ask, "the backup")?,
        };
        rooms
            .keys
            .backup(&key, &opened.key, &self.to, &passphrase)?;
        let to = self.to.to_string_lossy();
        let id = escape(&self.id);
        let advice = format!(
            "Put {} where this computer is not, and keep its passphrase. If the key is lost without them, nobody can \
             sign as {id} again, replace the key or revoke it.",
            shown_path(&to)
        );
        let done = styled(crate::console::GREEN, "written");
        console.talk(&format!(
            "{}: {done}\n{}\n",
            shown_path(&to),
            wrap(&advice, 0, 0)
        ))?;
        Ok(Exit::SUCCESS)
    }
}
