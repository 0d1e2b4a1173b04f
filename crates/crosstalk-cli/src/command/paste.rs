//! `crosstalk paste`: what came from a chat, found in whatever surrounds it, verified, threaded and kept.

mod source;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::PasteReport;
use crate::schema::PASTE;
use crate::service::dns::Look;
use crate::service::intake::Intake;
use crate::service::recipient::resolve_typed;
use crate::service::workspace::Desk;
use clap::Args;
use std::path::PathBuf;

/// Take messages from the clipboard, files or stdin: verify, thread and keep them
///
/// Finds every envelope in the text, whatever stands around it, and says what had to be repaired. A key that comes with a
/// message at first contact is pinned, unless the settings say otherwise. The same message again is noticed. A plain
/// answer without an envelope is filed with --as-reply-to, which also moves a message that is here already. An answer whose
/// ids are unknown is filed with the only message that waits for its sender.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk paste                     # from the clipboard\n  crosstalk paste chat.txt\n  pbpaste | crosstalk paste\n  crosstalk paste --as-reply-to last  # a plain answer to what you sent last\n  crosstalk paste --as-reply-to 01K74V6V --from claude  # to a poll\n  crosstalk paste --accept-truncated  # an answer that was cut off\n\nExit codes: 0 kept, or filed already; 11 without the consent that it needs; 12 no message that can be read; 14 another message has this id;\n23 to 25 kept, but don't act on it (crosstalk verify --help). Of several, the largest one."
)]
pub(crate) struct Paste {
    /// Files to read; `-` is stdin. Without one: stdin if something is piped in, else the clipboard
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Take the clipboard, whatever stdin is
    #[arg(long, conflicts_with = "files")]
    clipboard: bool,
    /// The text answers this message: its id or the beginning of it; alone or `last`, the latest one without an answer, of
    /// those to the one whom --from names
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    as_reply_to: Option<String>,
    /// The sender of the answer: one of those who were asked, or the chat that signed with another name
    #[arg(long, value_name = "NAME", requires = "as_reply_to")]
    from: Option<String>,
    /// Keep a message whose id another one has under an id of its own
    #[arg(long)]
    new_id: bool,
    /// Keep a message that may be cut off; it is shown as truncated from then on
    #[arg(long)]
    accept_truncated: bool,
    /// Show texts that are folded because of a content warning
    #[arg(long)]
    unfold: bool,
    /// List each repair, also several of one kind
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON of the form crosstalk.paste/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    look: Look,
}

impl Paste {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let inputs = source::read(&self, console, &desk)?;
        let mut intake = Intake::new(&desk, &self.look, self.unfold);
        intake.new_id = self.new_id;
        intake.accept_truncated = self.accept_truncated;
        intake.verbose = self.verbose;
        intake.may_ask = true;
        intake.from = self
            .from
            .as_deref()
            .map(|name| resolve_typed(&desk.config, name));
        intake.quiet = self.json;
        let mut exit = Exit::SUCCESS;
        for input in &inputs {
            let one = match &self.as_reply_to {
                Some(reference) => intake.keep_answer(console, input, reference)?,
                None => intake.keep(console, input)?,
            };
            exit = exit.worst(one);
        }
        if self.json {
            let (messages, errors) = (intake.messages, intake.errors);
            console.report(PASTE, &PasteReport { messages, errors })?;
        }
        Ok(exit)
    }
}
