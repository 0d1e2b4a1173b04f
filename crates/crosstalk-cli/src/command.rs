//! The commands, one module each: read the input, call the library, render the answer.

mod address;
mod build;
mod canonical;
mod completions;
mod doctor;
mod explain;
mod fmt;
mod id;
mod key;
mod lint;
mod man;
mod migrate;
mod parse;
mod redact;
mod schema;
mod sign;
mod trust;
mod verify;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::Subcommand;

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Parse(parse::Parse),
    Lint(lint::Lint),
    Fmt(fmt::Fmt),
    Doctor(doctor::Doctor),
    Sign(sign::Sign),
    Verify(verify::Verify),
    Key(key::Key),
    Trust(trust::Trust),
    Redact(redact::Redact),
    Build(build::Build),
    Migrate(migrate::Migrate),
    Canonical(canonical::Canonical),
    Address(address::Address),
    Id(id::Id),
    Explain(explain::Explain),
    Schema(schema::Schema),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Runs it.
    pub(crate) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self {
            Self::Parse(command) => command.run(console),
            Self::Lint(command) => command.run(console),
            Self::Fmt(command) => command.run(console),
            Self::Doctor(command) => command.run(console),
            Self::Sign(command) => command.run(console),
            Self::Verify(command) => command.run(console),
            Self::Key(command) => command.run(console),
            Self::Trust(command) => command.run(console),
            Self::Redact(command) => command.run(console),
            Self::Build(command) => command.run(console),
            Self::Migrate(command) => command.run(console),
            Self::Canonical(command) => command.run(console),
            Self::Address(command) => command.run(console),
            Self::Id(command) => command.run(console),
            Self::Explain(command) => command.run(console),
            Self::Schema(command) => command.run(console),
            Self::Completions(command) => command.run(console),
            Self::Man(command) => command.run(console),
        }
    }
}
