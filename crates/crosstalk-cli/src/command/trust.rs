//! `crosstalk trust`: whom to believe (TRU-003 to TRU-013, TRU-030).

mod check;
mod distrust;
mod export;
mod import;
mod list;
mod pin;
mod remove;
mod view;

use crate::caret::Carets;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use clap::{Args, Subcommand};
use crosstalk_envelope::{Document, Reading, Severity};

/// Say whom to believe: pin, distrust, exchange and check keys of others
///
/// The trust file is a text file in the folder of CROSSTALK_HOME, or in the usual place of your system.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust pin signed.txt\n  crosstalk trust list\n  crosstalk trust import rotation.txt"
)]
pub(crate) struct Trust {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::List),
    Pin(pin::Pin),
    Remove(remove::Remove),
    Distrust(distrust::Distrust),
    Export(export::Export),
    Import(import::Import),
    Check(check::Check),
}

impl Trust {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.action {
            Action::List(action) => action.run(console),
            Action::Pin(action) => action.run(console),
            Action::Remove(action) => action.run(console),
            Action::Distrust(action) => action.run(console),
            Action::Export(action) => action.run(console),
            Action::Import(action) => action.run(console),
            Action::Check(action) => action.run(console),
        }
    }
}

/// Works on each message of a text, and tells what can't be read.
fn each_message(
    console: &mut Console,
    input: &Input,
    mut work: impl FnMut(&mut Console, &Document<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let (text, scan) = input.scan(Reading::Paste);
    let name = input.shown_name();
    let carets = Carets::new(&name, &text);
    let refused = scan.refused.iter();
    for finding in refused.filter(|d| d.severity >= Severity::Warning) {
        console.talk(&carets.draw(finding))?;
    }
    let mut exit = Exit::of(&scan.refused);
    for document in &scan.documents {
        exit = exit.worst(work(console, document)?);
    }
    Ok(exit)
}
