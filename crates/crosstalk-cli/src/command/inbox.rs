//! `crosstalk inbox`: what waits for the person of this store, or at a relay.

mod relays;
mod remote;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{InboxReport, MessageReport};
use crate::schema::INBOX;
use crate::service::lookup;
use crate::service::relay::remote::Through;
use crate::service::workspace::Desk;
use crate::view::{self, Look};
use clap::Args;
use crosstalk_protocol::store::{Record, Store as _};
use std::path::PathBuf;

/// Show what waits for you: to answer, or to carry to another chat
///
/// The relays of the settings are asked as well, for two seconds in all: what waits there for you, in the queues of people that
/// you may answer, for your decision, or to be carried. A relay that does not answer is named, and --local asks none.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk inbox\n  crosstalk inbox --local                    # ask no relay\n  crosstalk inbox --done 01K74V8Q\n  crosstalk inbox --json | jq '.messages | length'\n  crosstalk inbox --relay --take             # fetch what waits at your relay\n  crosstalk inbox --relay http://127.0.0.1:8799 --for CLAUDE\n\nExit codes: 0 shown; 1 a message of --done did not wait; 10 to 17 nothing waits here and no relay could be asked, or with\n--relay what it refuses; with --take, as of crosstalk paste."
)]
pub(crate) struct Inbox {
    /// Take this message out without an answer; may be given again
    #[arg(long, value_name = "ID")]
    done: Vec<String>,
    /// Show what waits at the relay of the settings, or of this URL, and not what is kept here
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["done", "skip"])]
    relay: Option<String>,
    /// Ask no relay
    #[arg(long, conflicts_with = "relay")]
    local: bool,
    /// The address whose inbox at the relay to show; may be given again. Without it, yours
    #[arg(long = "for", value_name = "ADDR", requires = "relay")]
    addresses: Vec<String>,
    /// Keep here what waits at the relay, and acknowledge it there
    #[arg(long, requires = "relay")]
    take: bool,
    /// The file with the token of the relay
    #[arg(long, value_name = "FILE", requires = "relay")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    paging: super::Paging,
    /// Print JSON of the form crosstalk.inbox/1, or with --relay of the form crosstalk.relay-inbox/1
    #[arg(long)]
    json: bool,
}

impl Inbox {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        if !self.done.is_empty() {
            return self.finish(console, &desk);
        }
        if let Some(url) = &self.relay {
            let at_relay = remote::AtRelay {
                through: Through::of(url, self.token_file.clone())?,
                addresses: &self.addresses,
                limit: self.paging.limit,
                take: self.take,
                json: self.json,
            };
            return at_relay.run(console, &desk);
        }
        let store = desk.messages(console)?;
        let listing = match &store {
            Some(store) => Some(store.inbox(self.paging.page())?),
            None => None,
        };
        let (items, more) = listing.map_or((Vec::new(), false), |l| (l.items, l.more));
        let items: Vec<Record> = items.into_iter().map(lookup::veiled).collect();
        let relays = match self.local || desk.config.relays().is_empty() {
            true => Vec::new(),
            false => relays::ask_all(&desk)?,
        };
        // What is shown is all that waits only if a relay could be asked, or none was.
        let faults: Vec<Exit> = relays.iter().filter_map(relays::AtRelay::fault).collect();
        let exit = match items.is_empty() && faults.len() == relays.len() {
            true => faults.into_iter().fold(Exit::SUCCESS, Exit::worst),
            false => Exit::SUCCESS,
        };
        if self.json {
            let report = InboxReport {
                messages: MessageReport::all(&items),
                more,
                relays: relays.iter().map(relays::AtRelay::report).collect(),
            };
            console.report(INBOX, &report)?;
            return Ok(exit);
        }
        match store {
            Some(store) if !items.is_empty() => {
                let short = view::shortener(&store);
                let question = |record: &Record| lookup::before(&store, record).ok()?.pop();
                let of_text = (view::first_line, question);
                let shown = view::messages(&items, short, of_text, &Look::of(console));
                console.show(&shown)?;
                self.paging.tell_more(console, more)?;
            }
            _ if relays.iter().any(relays::AtRelay::has_messages) => {
                console.talk("nothing waits for you here\n")?;
            }
            _ if exit != Exit::SUCCESS => {
                console.talk("nothing waits for you here, and no relay could be asked\n")?;
            }
            _ => console.talk("nothing waits for you\n")?,
        }
        for relay in &relays {
            relay.show(console)?;
        }
        Ok(exit)
    }

    fn finish(&self, console: &mut Console, desk: &Desk) -> Result<Exit, Failure> {
        let mut store = desk.kept(console)?;
        let mut exit = Exit::SUCCESS;
        for reference in &self.done {
            let record = lookup::message(&store, reference)?;
            let word = match store.dismiss(&record.id)? {
                true => "done",
                false => {
                    exit = exit.worst(Exit::FAILURE);
                    "did not wait for you"
                }
            };
            console.talk(&format!("{}: {word}\n", view::short(&store, &record.id)?))?;
        }
        Ok(exit)
    }
}
