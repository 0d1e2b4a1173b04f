//! `crosstalk close`: the end of a thread, told to the other side.

use crate::config::Config;
use crate::console::Console;
use crate::desk::{self, Desk};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outgoing::Delivery;
use clap::Args;
use crosstalk_protocol::bundle::{Closing, closing};
use crosstalk_protocol::store::{Record, Side};

/// Close a thread: nothing waits in it any more, and the other side is told
///
/// Writes a CLOSE, keeps it and puts it on the clipboard. Messages that come later are kept with a warning; new ones are
/// refused.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk close 01K74V6R0074 --reason \"decided: JWT with short expiry\"\n\nExit codes: 0 closed, 1 not found, 14 closed already."
)]
pub(crate) struct Close {
    /// The thread, one of its messages, or `last`
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Why, in a line
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The outcome of the conversation, in a line
    #[arg(long, value_name = "TEXT")]
    outcome: Option<String>,
    /// Words of your own
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    delivery: Delivery,
}

impl Close {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let store = desk.kept(console)?;
        let thread = desk::thread(&store, &self.thread)?;
        desk::require_open(&store, &thread.id)?;
        let records = desk::everything(&store, &thread.id)?;
        drop(store);
        let (sender, receiver) = sides(&desk.config, &records)?;
        let request = Closing {
            sender: &sender,
            receiver: &receiver,
            user: &desk.config.user()?,
            message: &desk.new_id(),
            reason: self.reason.as_deref(),
            outcome: self.outcome.as_deref(),
            note: self.note.as_deref(),
        };
        let builder = closing(&records, &request)?;
        self.delivery.dispatch(console, &desk, &builder, &[])
    }
}

/// Who tells whom: who wrote last here tells the same side again, else the last sender is told.
fn sides(config: &Config, records: &[Record]) -> Result<(String, String), Failure> {
    Ok(match records.last() {
        Some(last) if last.side == Side::Mine => (last.sender.clone(), last.receiver.clone()),
        Some(last) => (config.sender()?, last.sender.clone()),
        None => (config.sender()?, config.sender()?),
    })
}
