//! `crosstalk handoff`: the conversation goes to another agent or person, with all that was said.

use crate::clock;
use crate::config::Config;
use crate::console::Console;
use crate::content::new_id;
use crate::desk::{self, Desk};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outgoing::Delivery;
use crate::recipient::resolve_typed;
use clap::Args;
use crosstalk_protocol::bundle::{DEFAULT_LIMIT, Handoff as Transfer, handoff};

/// Hand the conversation over to another agent or person
///
/// One HANDOFF envelope holds what the new party has to be able to do, the consent that goes with it, and every message
/// of the thread, so that nothing has to be explained again. It is kept, printed and put on the clipboard.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk handoff last --to gemini --capability sql --capability file-access\n  crosstalk handoff 01K74V6R0074 --to claude://session/abc123 --note \"Go on with table four.\"\n\nExit codes: as of crosstalk send; 11 if a consent that the thread depends on is denied, revoked, over, or\nnot approved to be transferred (--approve-transfer)."
)]
pub(crate) struct Handoff {
    /// The thread, one of its messages, or `last`
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Who takes over
    #[arg(long, value_name = "TO")]
    to: String,
    /// The person concerned agrees that their consent goes to the new party
    #[arg(long)]
    approve_transfer: bool,
    #[command(flatten)]
    bundle: Bundle,
    #[command(flatten)]
    delivery: Delivery,
}

/// What goes with a conversation that is passed on.
#[derive(Args, Debug)]
pub(super) struct Bundle {
    /// Who sends it, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// What the receiver has to be able to do; may be given again
    #[arg(long, value_name = "WORD")]
    pub(super) capability: Vec<String>,
    /// Words of your own, before the conversation
    #[arg(long, value_name = "TEXT")]
    pub(super) note: Option<String>,
    /// The characters that the conversation may take; what is left out is counted
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT)]
    pub(super) limit: usize,
}

impl Bundle {
    pub(super) fn sender(&self, config: &Config) -> Result<String, Failure> {
        match &self.from {
            Some(from) => Ok(resolve_typed(config, from)),
            None => config.sender(),
        }
    }
}

impl Handoff {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let store = desk.kept(console)?;
        let thread = desk::thread(&store, &self.thread)?;
        desk::require_open(&store, &thread.id)?;
        let records = desk::everything(&store, &thread.id)?;
        drop(store);
        let builder = handoff(
            &records,
            &Transfer {
                sender: self.bundle.sender(&desk.config)?,
                receiver: resolve_typed(&desk.config, &self.to),
                user: desk.config.user()?,
                capabilities: self.bundle.capability.clone(),
                note: self.bundle.note.clone(),
                transfer_approved: self.approve_transfer,
                message: new_id(&desk.config),
                at: clock::now(),
                limit: self.bundle.limit,
            },
        )?;
        self.delivery.dispatch(console, &desk, &builder)
    }
}
