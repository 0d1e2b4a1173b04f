//! `crosstalk escalate`: a person is asked, with the conversation so far.

use crate::clock;
use crate::console::Console;
use crate::content::new_id;
use crate::desk::{self, Desk};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outgoing::Delivery;
use crate::recipient::resolve_typed;
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
    /// The thread, one of its messages, or `last`
    #[arg(value_name = "THREAD")]
    thread: String,
    /// The person or queue
    #[arg(long, value_name = "TO")]
    to: String,
    /// Why a person is needed, in a line
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// How urgent it is, in a word or a line
    #[arg(long, value_name = "TEXT")]
    urgency: Option<String>,
    #[command(flatten)]
    bundle: super::handoff::Bundle,
    #[command(flatten)]
    delivery: Delivery,
}

impl Escalate {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let store = desk.kept(console)?;
        let thread = desk::thread(&store, &self.thread)?;
        desk::require_open(&store, &thread.id)?;
        let records = desk::everything(&store, &thread.id)?;
        drop(store);
        let builder = escalation(
            &records,
            &Escalation {
                sender: self.bundle.sender(&desk.config)?,
                receiver: resolve_typed(&desk.config, &self.to),
                user: desk.config.user()?,
                reason: self.reason.clone(),
                urgency: self.urgency.clone(),
                capabilities: self.bundle.capability.clone(),
                note: self.bundle.note.clone(),
                message: new_id(&desk.config),
                at: clock::now(),
                limit: self.bundle.limit,
            },
        )?;
        self.delivery.dispatch(console, &desk, &builder)
    }
}
