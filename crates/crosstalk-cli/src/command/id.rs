//! `crosstalk id`: new ids for threads and messages (IDS-001 to IDS-003).

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::{Args, Subcommand};
use crosstalk_envelope::id;

/// Work with ids
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  crosstalk id new")]
pub(crate) struct Id {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    New(New),
}

/// Make new ids, one a line
///
/// Ids carry their time in front: the order of the texts is the order in which they were made.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  crosstalk id new\n  crosstalk id new --uuid --count 3")]
struct New {
    /// UUIDv7 in place of ULID
    #[arg(long)]
    uuid: bool,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u32,
}

impl Id {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let Action::New(new) = self.action;
        let make = if new.uuid {
            id::new_uuid_v7
        } else {
            id::new_ulid
        };
        for _ in 0..new.count {
            console.data(make() + "\n")?;
        }
        Ok(Exit::SUCCESS)
    }
}
