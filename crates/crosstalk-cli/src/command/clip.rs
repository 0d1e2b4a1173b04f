//! `crosstalk clip`: text to the clipboard and from it, whatever the clipboard is.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::service::clipboard::{Choice, Clipboard, hold};
use clap::{Args, Subcommand};
use crosstalk_envelope::Diagnostic;
use crosstalk_envelope::unicode::escape;
use std::path::PathBuf;

/// Copy a text to the clipboard, or show the one that is there
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk clip copy message.txt\n  crosstalk clip show | crosstalk verify"
)]
pub(crate) struct Clip {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Copy(Copy),
    Show(Show),
}

/// Copy a text as it is, and look whether it is on the clipboard
///
/// It stays there after the command has ended. Over SSH, where the system has no clipboard, the terminal is asked to
/// take the text (OSC 52); terminals don't say whether they did.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk clip copy message.txt\n  crosstalk sign message.txt | crosstalk clip copy"
)]
struct Copy {
    /// The file to copy; `-` or none is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    which: Which,
}

/// Write the text on the clipboard to stdout
///
/// Into a file or a pipe it goes byte for byte; on a terminal, hidden characters are shown as `\u{…}`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk clip show\n  crosstalk clip show | crosstalk verify"
)]
struct Show {
    #[command(flatten)]
    which: Which,
}

#[derive(Args, Debug)]
struct Which {
    /// Which clipboard: auto, system, terminal or none; else CROSSTALK_CLIPBOARD says it
    #[arg(long, value_enum, value_name = "WHICH", hide_possible_values = true)]
    clipboard: Option<Choice>,
}

impl Which {
    fn open(&self) -> Result<Clipboard, Failure> {
        Ok(Clipboard::open(Choice::of(self.clipboard, None)?)?)
    }
}

impl Clip {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.action {
            Action::Copy(copy) => {
                let mut clipboard = copy.which.open()?;
                let file = copy.file.unwrap_or_else(|| "-".into());
                let input = Input::read(&file, console)?;
                let text = input.text().map_err(|(_, fault)| refused(&fault))?;
                let copied = clipboard.write(text)?;
                console.talk(&format!("{}\n", copied.sentence()))?;
            }
            Action::Show(show) => {
                let text = show.which.open()?.read()?;
                if console.is_terminal() {
                    console.data(escape(&text).as_bytes())?;
                } else {
                    console.data(text)?;
                }
            }
        }
        Ok(Exit::SUCCESS)
    }
}

/// Hold the clipboard until something else is copied; the text comes on stdin
///
/// Started by whatever copies, and by nobody else.
#[derive(Args, Debug)]
#[command(
    hide = true,
    after_help = "Example:\n  crosstalk clipboard-hold < message.txt"
)]
pub(crate) struct ClipboardHold {}

impl ClipboardHold {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let input = Input::read("-".as_ref(), console)?;
        let text = input
            .text()
            .map_err(|(_, fault)| refused(&fault))?
            .to_owned();
        drop(input);
        hold(text)?;
        Ok(Exit::SUCCESS)
    }
}

fn refused(fault: &Diagnostic) -> Failure {
    Failure::of_rule(fault.rule, &fault.message)
}
