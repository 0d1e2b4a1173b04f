//! `crosstalk watch`: follows the clipboard and keeps each message that is copied.

use crate::console::{Console, DIM, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::service::clipboard::ClipboardError;
use crate::service::compose::Content;
use crate::service::deliver::Delivery;
use crate::service::dns::Look;
use crate::service::intake::Intake;
use crate::service::reply;
use crate::service::workspace::Desk;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::store::{Record, Wait};
use std::thread::sleep;
use std::time::Duration;

/// How often the clipboard is looked at.
const INTERVAL: Duration = Duration::from_millis(300);

/// Follow the clipboard: keep each message as soon as it is copied
///
/// Copy an answer in the chat, and it is verified, threaded, kept and shown here. Only text with an envelope in it is
/// kept; everything else that you copy is looked at and forgotten. With --reply, your editor opens for each message that
/// waits for you, and the answer goes back on the clipboard. Ends with Ctrl-C.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk watch\n  crosstalk watch --reply\n  crosstalk watch --once        # ends after the next message\n\nExit codes: 0 with --once, as of crosstalk paste; 1 if there is no clipboard."
)]
pub(crate) struct Watch {
    /// End after the first message
    #[arg(long)]
    once: bool,
    /// Open the editor for each message that waits for you; the answer goes on the clipboard
    #[arg(long)]
    reply: bool,
    /// Keep messages that may be cut off; they are shown as truncated from then on
    #[arg(long)]
    accept_truncated: bool,
    /// Show texts that are folded because of a content warning
    #[arg(long)]
    unfold: bool,
    #[command(flatten)]
    delivery: Delivery,
    #[command(flatten)]
    look: Look,
}

impl Watch {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let mut clipboard = desk.follow_clipboard();
        let mut is_told = false;
        let mut trouble = None;
        loop {
            let look = clipboard.look();
            if clipboard.has_looked() && !is_told {
                // A text that is there already was copied before; only later ones count.
                console.talk(&styled(DIM, "Watching the clipboard; Ctrl-C ends it.\n"))?;
                is_told = true;
            }
            let text = match look {
                Ok(text) => text,
                // Nothing will ever come from there.
                Err(
                    fault @ (ClipboardError::Off
                    | ClipboardError::WriteOnly
                    | ClipboardError::Setting(_)),
                ) => return Err(fault.into()),
                Err(fault @ ClipboardError::Missing(_)) if !is_told => return Err(fault.into()),
                // Nothing was copied yet.
                Err(ClipboardError::Empty) => {
                    sleep(INTERVAL);
                    continue;
                }
                Err(fault) => {
                    // An image, or a display or program that does not answer: told once, and tried again.
                    let fault = fault.to_string();
                    if trouble.as_ref() != Some(&fault) {
                        let word = styled(YELLOW, "note");
                        console.talk(&format!("{word}: {}\n", escape(&fault)))?;
                        trouble = Some(fault);
                    }
                    sleep(INTERVAL);
                    continue;
                }
            };
            trouble = None;
            if let Some(text) = text.filter(|text| text.contains("[[")) {
                let mut intake = Intake::new(&desk, &self.look, self.unfold);
                // One's own messages come by as they are copied.
                intake.skips_known = true;
                intake.accept_truncated = self.accept_truncated;
                let exit = intake.keep(console, &Input::of_text("clipboard", text))?;
                console.flush()?;
                if self.reply {
                    self.answer(console, &desk, &intake.kept)?;
                }
                if self.once && !intake.kept.is_empty() {
                    return Ok(exit);
                }
            }
            sleep(INTERVAL);
        }
    }

    /// Opens the editor for what waits for an answer. An answer that is not written does not end the watch.
    fn answer(
        &self,
        console: &mut Console,
        desk: &Desk,
        records: &[Record],
    ) -> Result<(), Failure> {
        for record in records.iter().filter(|r| r.wait == Wait::Me) {
            let content = Content::default();
            if let Err(fault) = reply::answer(console, desk, record, &content, &self.delivery) {
                console.failure(&fault)?;
            }
        }
        Ok(())
    }
}
