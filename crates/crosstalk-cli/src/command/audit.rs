//! `crosstalk audit`: what a relay can be held to.

mod export;
mod journal;
mod key;
mod receipt;
mod source;
mod trace;
mod verify;
mod watch;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Check the way of a message, and the log of a relay
///
/// `trace` and `verify` need nothing but files. `log` and `export` read the data folder of a relay, or ask one over the
/// network with the token of an admin. `watch` is for a second machine that remembers what the relay said.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit trace message.aict\n  crosstalk audit export --out bundle/\n  crosstalk audit verify bundle/ --key relay.key\n  crosstalk audit log --kind refused --since 2026-11-01T00:00:00Z"
)]
pub(crate) struct Audit {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Trace(trace::Trace),
    Log(journal::Log),
    Export(export::Export),
    Verify(verify::Verify),
    Receipt(receipt::Receipt),
    Watch(watch::Watch),
}

impl Audit {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.action {
            Action::Trace(action) => action.run(console),
            Action::Log(action) => action.run(console),
            Action::Export(action) => action.run(console),
            Action::Verify(action) => action.run(console),
            Action::Receipt(action) => action.run(console),
            Action::Watch(action) => action.run(console),
        }
    }
}
