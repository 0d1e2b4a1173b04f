//! A conversation that is passed on: which one, to whom, and what goes with it. For `escalate` and `handoff`.

use crate::clock;
use crate::console::Console;
use crate::failure::Failure;
use crate::paragraph::count;
use crate::service::deliver::Delivery;
use crate::service::lookup;
use crate::service::recipient::resolve_typed;
use crate::service::workspace::Desk;
use clap::Args;
use crosstalk_envelope::{Builder, Timestamp};
use crosstalk_protocol::bundle::{Bundle, BundleError, DEFAULT_LIMIT};
use crosstalk_protocol::store::Record;

/// What is passed on.
#[derive(Args, Debug)]
pub(crate) struct Passing {
    /// The thread, one of its messages, or `last`
    #[arg(value_name = "THREAD")]
    thread: String,
    /// The receiver: a name or an address
    #[arg(long, value_name = "TO")]
    to: String,
    /// The sender, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// A capability that the receiver must have; may be given again
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
pub(crate) struct Passed {
    /// All messages of the thread: what they say about consent counts, even if it is over.
    all: Vec<Record>,
    /// Those with a text.
    records: Vec<Record>,
    /// The messages of other threads that some of them belong to.
    elsewhere: Vec<Record>,
    sender: String,
    receiver: String,
    user: String,
    message: String,
    at: Timestamp,
}

impl Passing {
    /// Looks up the conversation and the two sides.
    pub(crate) fn look_up(
        &self,
        console: &mut Console,
        desk: &Desk,
        delivery: &Delivery,
    ) -> Result<Passed, Failure> {
        delivery.require_key(desk)?;
        let store = desk.kept(console)?;
        let thread = lookup::thread(&store, &self.thread)?;
        delivery.require_open(&store, &thread.id)?;
        let sender = match &self.from {
            Some(from) => resolve_typed(&desk.config, from),
            None => desk.config.sender()?,
        };
        let all = lookup::whole(&store, &thread.id)?;
        let records = lookup::everything(&store, &thread.id)?.into_iter();
        Ok(Passed {
            records: records.filter(|r| !r.text.is_empty()).collect(),
            elsewhere: lookup::elsewhere(&store, &all)?,
            all,
            sender,
            receiver: resolve_typed(&desk.config, &self.to),
            user: desk.config.user()?,
            message: desk.new_id(),
            at: clock::exact(),
        })
    }

    /// Writes the envelope. Nothing is passed on whose consent does not hold, and no text whose consent is over.
    pub(crate) fn write(
        &self,
        console: &mut Console,
        passed: &Passed,
        write: impl Fn(&[Record]) -> Result<Builder, BundleError>,
    ) -> Result<Builder, Failure> {
        let whole = write(&passed.all)?;
        let left_out = passed.all.len() - passed.records.len();
        if left_out == 0 {
            return Ok(whole);
        }
        if let ([first, ..], []) = (passed.all.as_slice(), passed.records.as_slice()) {
            lookup::require_text(&lookup::veiled(first.clone()))?;
        }
        let what = count(left_out, "message");
        console.note(&format!(
            "{what} left out: the consent is over or was withdrawn"
        ))?;
        Ok(write(&passed.records)?)
    }

    /// The two together, as the library takes them.
    pub(crate) fn bundle<'a>(&'a self, passed: &'a Passed) -> Bundle<'a> {
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
            elsewhere: &passed.elsewhere,
        }
    }
}
