//! `crosstalk prompt`: the text that teaches another AI the format.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::workspace::Desk;
use clap::{Args, ValueEnum};
use crosstalk_protocol::{Assistant, primer_of};

/// Print the text that teaches another AI to answer in envelopes
///
/// Paste it at the start of a chat, or where the chat keeps standing instructions. It has at most 1,400 characters.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  crosstalk prompt\n  crosstalk prompt --for chatgpt --copy")]
pub(crate) struct Prompt {
    /// The chat that it is for: chats differ in what they do to an answer
    #[arg(long = "for", value_enum, value_name = "WHO", default_value_t = PrimerReader::Any)]
    reader: PrimerReader,
    /// Put it on the clipboard as well
    #[arg(long)]
    copy: bool,
}

/// Whom the text is for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PrimerReader {
    Claude,
    Chatgpt,
    Gemini,
    Any,
}

impl Prompt {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        // The text is of use also where the settings can't be read.
        let desk = Desk::open(console);
        let me = desk.and_then(|desk| desk.config.sender());
        let me = me.unwrap_or_else(|_| "KALLE".to_owned());
        let assistant = match self.reader {
            PrimerReader::Claude => Assistant::Claude,
            PrimerReader::Chatgpt => Assistant::Chatgpt,
            PrimerReader::Gemini => Assistant::Gemini,
            PrimerReader::Any => Assistant::Any,
        };
        let text = primer_of(assistant, &me);
        console.data(&text)?;
        if self.copy {
            let copied = Desk::open(console)?.clipboard()?.write(&text)?;
            console.talk(&format!("{}\n", copied.sentence()))?;
        }
        Ok(Exit::SUCCESS)
    }
}
