//! `crosstalk poll`: ask several, count what they say, and tell what came out.

mod close;
mod collate;
mod count;
mod new;
mod place;
mod status;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Ask several, and count what they say
///
/// A poll is a message to several; each answers with a ballot, or in prose. The result follows from the envelopes alone:
/// whoever has them gets the same result, byte for byte. Without options, a poll asks several for their own words, and
/// nothing is counted.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll new \"When do we release?\" --option Friday --option Monday --target claude --target human://acme.example/ann\n  crosstalk poll status last\n  crosstalk poll count 01K74V9TPR --as Monday   # what an answer in prose means\n  crosstalk poll close last\n  crosstalk poll collate --json poll.crosstalk answers/*.crosstalk"
)]
pub(crate) struct Poll {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    New(Box<new::New>),
    Status(status::Status),
    Count(count::Count),
    Collate(collate::Collate),
    Close(close::Close),
}

impl Poll {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.action {
            Action::New(action) => action.run(console),
            Action::Status(action) => action.run(console),
            Action::Count(action) => action.run(console),
            Action::Collate(action) => action.run(console),
            Action::Close(action) => action.run(console),
        }
    }
}
