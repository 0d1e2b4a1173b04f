//! The command line of Crosstalk: read, repair, check, sign, verify and write envelopes.
//!
//! ```text
//! cli        the commands and their arguments
//!   command  one module per group of commands: reads its input, calls services, renders the answer
//!   service  shared by several commands: messages in and out, settings, relays
//! input      files and stdin, limited to the size of a paste
//! render     an envelope for people      caret   a finding with its line
//! view       conversations for people    report  conversations for programs
//! json       an answer for programs      schema  the JSON Schemas of those answers
//! clock      the time, now or as given
//! console    stdout for data, stderr for sentences
//! screen     the size of the terminal, and text that fits
//! shell      quoting of words in commands that people copy
//! guide      commands by purpose, and the words that people type for them
//! exit       the exit codes              failure expected failures
//! ```
//!
//! Untrusted text is shown only through [`crosstalk_envelope::unicode::escape`].

pub mod exit;

mod caret;
mod cli;
mod clock;
mod command;
mod console;
mod failure;
mod guide;
mod input;
mod json;
mod paragraph;
mod render;
mod report;
mod schema;
mod screen;
mod service;
mod shell;
mod view;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _};
use cli::Cli;
use console::{Console, fitted};
use exit::Exit;
use failure::Failure;
use std::io::Write as _;
use std::process::ExitCode;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(fault) => {
            // Help and the version go to stdout, wrong usage to stderr; a closed pipe is no news.
            let shown = fault.render().ansi().to_string();
            let _ = match fault.use_stderr() {
                // The message quotes the arguments, which may hold anything.
                true => write!(
                    anstream::stderr(),
                    "{}",
                    fitted(
                        &harmless(&fault.render().to_string()),
                        screen::stderr_columns()
                    )
                ),
                false => write!(
                    anstream::stdout(),
                    "{}",
                    fitted(&shown, screen::stdout_columns())
                ),
            };
            return ExitCode::from(u8::try_from(fault.exit_code()).unwrap_or(exit::USAGE));
        }
    };
    let mut console = Console::new(cli.color, cli.profile);
    let result = match cli.command {
        Some(command) => command.run(&mut console),
        None => command::start::run(&mut console),
    };
    finish(result, &mut console).into()
}

/// Reads the arguments of this process.
fn parse() -> Result<Cli, clap::Error> {
    let parsed = command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command())));
    parsed.map_err(|mut fault| {
        let arguments = std::env::args_os().skip(1);
        let arguments = arguments.map(|a| a.to_string_lossy().into_owned());
        let mut arguments: Vec<String> = arguments.collect();
        // Clap knows similar commands only where a command is called, and not behind `help`.
        if fault.kind() == ErrorKind::InvalidSubcommand
            && arguments.first().is_some_and(|a| a == "help")
        {
            arguments.remove(0);
            let called = std::iter::once("crosstalk").chain(arguments.iter().map(String::as_str));
            if let Err(other) = command().try_get_matches_from(called)
                && other.kind() == ErrorKind::InvalidSubcommand
            {
                fault = other;
            }
        }
        guide::advise(&mut fault, &command(), arguments.into_iter());
        fault
    })
}

/// The text without anything that a terminal would act on.
fn harmless(text: &str) -> std::borrow::Cow<'_, str> {
    crosstalk_envelope::unicode::escape(text)
}

/// The whole command line, for completions, man pages and tests.
pub fn command() -> clap::Command {
    guide::grouped(Cli::command())
}

fn finish(result: Result<Exit, Failure>, console: &mut Console) -> Exit {
    match result.and_then(|exit| console.flush().map(|()| exit)) {
        Ok(exit) => exit,
        Err(failure) => {
            // If stderr is gone, too, there is nobody left to tell.
            let _ = console.failure(&failure);
            failure.exit()
        }
    }
}
