//! `crosstalk escalate`: a person is asked, with the conversation so far.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::consent;
use crate::service::deliver::Delivery;
use crate::service::passing::Passing;
use crate::service::workspace::Desk;
use clap::Args;
use crosstalk_protocol::bundle::{Escalation, escalation};

/// Ask a person to step in, with the conversation so far
///
/// One ESCALATE envelope holds the reason, what is open, the consent that holds, and every message of the thread, so that
/// nothing has to be explained again. It is kept, printed and put on the clipboard.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk escalate last --to human://support.acme.com/queue/billing --reason \"refund above my limit\"\n  crosstalk escalate 01K74V6R0074 --to ANNA --reason \"needs a decision\" --urgency today\n\nExit codes: as of crosstalk send; 11 if a consent that the thread depends on is denied, revoked or over."
)]
pub(crate) struct Escalate {
    #[command(flatten)]
    passing: Passing,
    /// Why a person is needed, in a line
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// How soon, in a word or a line
    #[arg(long, value_name = "TEXT")]
    urgency: Option<String>,
    #[command(flatten)]
    delivery: Delivery,
}

impl Escalate {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let passed = self.passing.look_up(console, &desk, &self.delivery)?;
        let request = Escalation {
            bundle: self.passing.bundle(&passed),
            reason: &self.reason,
            urgency: self.urgency.as_deref(),
        };
        let builder = self
            .passing
            .write(console, &passed, |records| escalation(records, &request))?;
        consent::tell_granted(console, &desk, std::slice::from_ref(&builder))?;
        self.delivery.dispatch(console, &desk, &builder, &[])
    }
}
