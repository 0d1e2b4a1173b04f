//! `crosstalk relay deliver`: hands a message that is kept here to a relay.

use crate::console::Console;
use crate::content::attached;
use crate::desk::{self, Desk};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::relay::handing::Attached;
use crate::relay::parcel::Parcel;
use crate::relay::remote::Through;
use crate::view;
use clap::Args;
use std::path::PathBuf;

/// Hand messages that are kept here to a relay, for the first time or again
///
/// A relay takes a message once, however often it comes: what is there already gets the same answer.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk relay deliver last\n  crosstalk relay deliver 01K74V8Q --wait 60\n  crosstalk relay deliver 01K74V8Q --relay https://relay.example --attach plan.md\n\nExit codes: 0 handed over, 10 to 17 what the relay refuses; 16 no answer in\ntime. Of several, the largest one."
)]
pub(super) struct Deliver {
    /// The messages: ids or the beginnings of them, or `last`
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Wait so many seconds for the answer, show it and keep it
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: Option<u64>,
    /// Upload a file that the message names; may be given again
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    #[command(flatten)]
    through: Through,
}

impl Deliver {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let files: Vec<Attached> = self
            .attach
            .iter()
            .map(|path| attached(path))
            .collect::<Result<_, _>>()?;
        let mut exit = Exit::SUCCESS;
        for reference in &self.ids {
            let store = desk.kept(console)?;
            let record = desk::message(&store, reference)?;
            let short = view::short(&store, &record.id)?;
            drop(store);
            let remote = self.through.connect(&desk.config, Some(&record.receiver))?;
            let parcel = Parcel {
                text: &record.text,
                files: &files,
                wait: self.wait,
            };
            exit = exit.worst(parcel.hand(console, &desk, &remote, &short)?);
        }
        Ok(exit)
    }
}
