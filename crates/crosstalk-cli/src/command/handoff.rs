//! `crosstalk handoff`: the conversation goes to another agent or person, with all that was said.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::consent;
use crate::service::deliver::Delivery;
use crate::service::passing::Passing;
use crate::service::workspace::Desk;
use clap::Args;
use crosstalk_protocol::bundle;

/// Hand the conversation over to another agent or person
///
/// One HANDOFF envelope holds what the new party has to be able to do, the consent that goes with it, and every message
/// of the thread, so that nothing has to be explained again. It is kept, printed and put on the clipboard.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk handoff last --to gemini --capability sql --capability file-access\n  crosstalk handoff 01K74V6R0074 --to claude://session/abc123 --note \"Go on with table four.\"\n\nExit codes: as of crosstalk send; 11 if a consent that the thread depends on is denied, revoked, over, or\nnot approved to be transferred (--approve-transfer)."
)]
pub(crate) struct Handoff {
    #[command(flatten)]
    passing: Passing,
    /// The person who gave a consent agrees that the new party gets it
    #[arg(long)]
    approve_transfer: bool,
    #[command(flatten)]
    delivery: Delivery,
}

impl Handoff {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let passed = self.passing.look_up(console, &desk, &self.delivery)?;
        let request = bundle::Handoff {
            bundle: self.passing.bundle(&passed),
            approved: self.approve_transfer,
        };
        let builder = self.passing.write(console, &passed, |records| {
            bundle::handoff(records, &request)
        })?;
        consent::tell_granted(console, &desk, std::slice::from_ref(&builder))?;
        self.delivery.dispatch(console, &desk, &builder, &[])
    }
}
