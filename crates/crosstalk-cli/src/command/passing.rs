//! A conversation that is passed on: which one, to whom, and what goes with it. For `escalate` and `handoff`.

use crate::clock;
use crate::console::Console;
use crate::desk::{self, Desk};
use crate::failure::Failure;
use crate::outgoing::Delivery;
use crate::recipient::resolve_typed;
use clap::Args;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::bundle::{Bundle, DEFAULT_LIMIT};
use crosstalk_protocol::store::Record;

/// What is passed on.
#[derive(Args, Debug)]
pub(super) struct Passing {
    /// The thread, one of its messages, or `last`
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Who gets it: a name or an address
    #[arg(long, value_name = "TO")]
    to: String,
    /// Who sends it, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// What the receiver has to be able to do; may be given again
    #[arg(long, value_name = "WORD")]
    capability: Vec<String>,
    /// Words of your own, before the conversation
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Where the answer goes, if not to the sender
    #[arg(long, value_name = "ADDRESS")]
    answer_to: Option<String>,
    /// The characters that it may have; what is left out is counted
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT)]
    limit: usize,
}

/// What was found for it.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) records: Vec<Record>,
    sender: String,
    receiver: String,
    user: String,
    message: String,
    at: Timestamp,
}

impl Passing {
    /// Looks up the conversation and the two sides.
    pub(super) fn look_up(
        &self,
        console: &mut Console,
        desk: &Desk,
        delivery: &Delivery,
    ) -> Result<Passed, Failure> {
        delivery.require_key(desk)?;
        let store = desk.kept(console)?;
        let thread = desk::thread(&store, &self.thread)?;
        delivery.require_open(&store, &thread.id)?;
        let sender = match &self.from {
            Some(from) => resolve_typed(&desk.config, from),
            None => desk.config.sender()?,
        };
        Ok(Passed {
            records: desk::everything(&store, &thread.id)?,
            sender,
            receiver: resolve_typed(&desk.config, &self.to),
            user: desk.config.user()?,
            message: desk.new_id(),
            at: clock::now(),
        })
    }

    /// The two together, as the library takes them.
    pub(super) fn bundle<'a>(&'a self, passed: &'a Passed) -> Bundle<'a> {
        Bundle {
            sender: &passed.sender,
            receiver: &passed.receiver,
            user: &passed.user,
            message: &passed.message,
            parent: None,
            at: passed.at,
            reply_to: self.answer_to.as_deref(),
            capabilities: &self.capability,
            note: self.note.as_deref(),
            limit: self.limit,
        }
    }
}
