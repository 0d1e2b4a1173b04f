//! `crosstalk send`: a new message, on the clipboard and in the store.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::compose::Content;
use crate::service::deliver::Delivery;
use crate::service::lookup;
use crate::service::recipient::{Ask, meant_by};
use crate::service::workspace::Desk;
use crate::view;
use clap::Args;

/// Write a message, keep it, and put it on the clipboard
///
/// Prints the envelope; paste it into the chat that it is for. Without a text, your editor opens. The settings and the
/// text say who you are, what it is about and what it wants, unless you say so. Several receivers get a message each, in
/// one thread, and `crosstalk show --compare` puts their answers side by side.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk send chatgpt \"Should we use JWT?\"\n  crosstalk send claude --context auth --attach plan.md\n  git diff | crosstalk send gemini --intent REQUEST --body -\n  crosstalk send claude://code/api \"Which endpoint stays?\" --wait 60   # by the relay\n  crosstalk send chatgpt,claude \"Which of the two endpoints should stay?\"   # asks both\n  crosstalk send chatgpt --fyi --reply-to last \"Thanks, got it.\"   # waits for nothing\n\nExit codes: 0 sent, 1 nothing written or kept, 2 wrong usage, 11 consent\ndenied, 12 and 13 the message would break a rule, 14 no permission (a key, a\nclosed thread); with a relay, 10 to 17 what it refuses, 16 no answer in time."
)]
pub(crate) struct Send {
    /// The receiver: a name, or an address such as chatgpt://thread/xyz789; several with commas between them
    #[arg(value_name = "TO")]
    to: String,
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    content: Content,
    /// The message that it answers: its id or the beginning of it, or `last`
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
    #[command(flatten)]
    delivery: Delivery,
}

impl Send {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let receivers = self.ask.resolve_each(console, &desk.config, &self.to)?;
        for receiver in &receivers {
            if let Some(meant) = meant_by(&desk, console, receiver)? {
                console.note(&format!(
                    "nobody here is called {}: did you mean {}?",
                    view::line(receiver),
                    view::line(&meant)
                ))?;
            }
        }
        let answered = match &self.reply_to {
            Some(reference) => Some(lookup::message(&desk.kept(console)?, reference)?),
            None => None,
        };
        if let Some(answered) = &answered {
            self.delivery
                .require_open(&desk.kept(console)?, &answered.thread)?;
        }
        self.delivery.require_key(&desk)?;
        let sender = self.content.sender(&desk.config)?;
        let letter =
            self.content
                .write(console, &desk, (&sender, &receivers), answered.as_ref())?;
        letter.dispatch(console, &desk, &self.delivery)
    }
}
