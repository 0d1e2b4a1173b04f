//! `crosstalk close`: the end of a thread, told to everyone in it.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::screen::clip_cells;
use crate::service::deliver::Delivery;
use crate::service::lookup;
use crate::service::workspace::Desk;
use crate::view;
use clap::Args;
use crosstalk_protocol::bundle::{Closing, closing, others_in};
use crosstalk_protocol::store::{Record, Side, Wait};
use crosstalk_store::SqliteStore;

/// The most columns of a question that is listed.
const QUOTED: usize = 40;

/// Close a thread: nothing waits in it any more, and the others are told
///
/// Writes a CLOSE for each of the others, keeps it and puts it on the clipboard, one after the other. Questions that are open
/// are listed first; on a terminal you are asked. Messages that come later are kept with a warning; new ones are refused.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk close 01K74V6R0074 --reason \"decided: JWT with short expiry\"\n\nExit codes: 0 closed, 1 not found or not confirmed, 14 closed already."
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
    /// Don't ask, even if questions in it are open
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    delivery: Delivery,
}

impl Close {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let store = desk.kept(console)?;
        let thread = lookup::thread(&store, &self.thread)?;
        lookup::require_open(&store, &thread.id)?;
        let records = lookup::everything(&store, &thread.id)?;
        if !self.is_confirmed(console, &store, &records)? {
            return Ok(Exit::FAILURE);
        }
        drop(store);
        let sender = match records.last() {
            Some(last) if last.side == Side::Mine => last.sender.clone(),
            _ => desk.config.sender()?,
        };
        let receivers = others_in(&records, &desk.mine()?);
        let receivers = match receivers.is_empty() {
            true => vec![sender.clone()],
            false => self.reachable(console, &desk, receivers)?,
        };
        let user = desk.config.user()?;
        let mut builders = Vec::new();
        for receiver in &receivers {
            let request = Closing {
                sender: &sender,
                receiver,
                user: &user,
                message: &desk.new_id(),
                reason: self.reason.as_deref(),
                outcome: self.outcome.as_deref(),
                note: self.note.as_deref(),
            };
            builders.push(closing(&records, &request)?);
        }
        let exit = self.delivery.dispatch_all(console, &desk, &builders, &[])?;
        let mut to_carry = Vec::new();
        for receiver in receivers {
            if self.delivery.relay_for(&desk, &receiver)?.is_none() {
                to_carry.push(receiver);
            }
        }
        if !to_carry.is_empty() && !self.delivery.json {
            let names = view::names(&to_carry);
            console.talk(&format!(
                "{}\n",
                wrap(&format!("Still to be told, by you: {names}."), 0, 0)
            ))?;
        }
        Ok(exit)
    }

    /// Lists what is open, and asks whether to close it all the same where somebody can be asked.
    fn is_confirmed(
        &self,
        console: &mut Console,
        store: &SqliteStore,
        records: &[Record],
    ) -> Result<bool, Failure> {
        let open: Vec<&Record> = records.iter().filter(|r| r.wait != Wait::Nobody).collect();
        if open.is_empty() {
            return Ok(true);
        }
        let (what, pronoun) = match open.len() {
            1 => ("1 question is".to_owned(), "it"),
            many => (format!("{many} questions are"), "them"),
        };
        console.note(&format!(
            "{what} without an answer in this thread; once it is closed, nobody waits for {pronoun}:"
        ))?;
        for record in open {
            let whom = match record.wait {
                Wait::Me => "your answer".to_owned(),
                _ => view::names(&record.recipients()),
            };
            let words = view::first_line(&record.document().body_text());
            console.talk(&format!(
                "  {}  waits for {whom}: {}\n",
                view::short(store, &record.id)?,
                clip_cells(&words, QUOTED)
            ))?;
        }
        match self.yes || self.delivery.json || !console.can_ask() {
            true => Ok(true),
            false => console.confirm("Close it all the same?", "close it"),
        }
    }

    /// Those who are told: a relay takes one CLOSE for a thread, so of several whom it serves, the first one.
    fn reachable(
        &self,
        console: &mut Console,
        desk: &Desk,
        receivers: Vec<String>,
    ) -> Result<Vec<String>, Failure> {
        let mut told: Vec<(String, Option<String>)> = Vec::new();
        for receiver in receivers {
            let relay = self.delivery.relay_for(desk, &receiver)?;
            match told
                .iter()
                .find(|(_, used)| relay.is_some() && *used == relay)
            {
                Some((first, _)) => console.note(&format!(
                    "{} is not told: the relay takes one CLOSE for a thread, and that goes to {}",
                    view::party(&receiver),
                    view::party(first)
                ))?,
                None => told.push((receiver, relay)),
            }
        }
        Ok(told.into_iter().map(|(receiver, _)| receiver).collect())
    }
}
