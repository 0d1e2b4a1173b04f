//! `crosstalk key show`.

use super::view;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::home::Rooms;
use clap::Args;
use crosstalk_store::StoredKey;

/// Show what is public about a key, its fingerprint first of all
///
/// The keys that the id had before are shown below it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key show alice@example.com\n  crosstalk key show alice@example.com --json | jq -r '.keys[0].fingerprint'"
)]
pub(super) struct Show {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// Print JSON of the form crosstalk.key-list/1
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let current = rooms.keys.find(&self.id)?;
        let listing = rooms.keys.list()?;
        let earlier = listing.of_id(&self.id).filter(|k| **k != current);
        let keys: Vec<&StoredKey> = std::iter::once(&current).chain(earlier).collect();
        if self.json {
            console.data(view::report(&rooms, keys, &[])?)?;
            return Ok(Exit::SUCCESS);
        }
        for (number, key) in keys.into_iter().enumerate() {
            console.show(if number == 0 { "" } else { "\n" })?;
            console.show(&view::text(&rooms, key)?)?;
        }
        Ok(Exit::SUCCESS)
    }
}
