//! `crosstalk waiting`: what the person of this store waits for.

use crate::console::{Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{AskedReport, MessageReport, WaitingReport};
use crate::schema::WAITING;
use crate::service::lookup;
use crate::service::relay::outbox::Reach;
use crate::service::workspace::{Desk, NOTHING};
use crate::view::{self, Look};
use clap::Args;
use crosstalk_protocol::store::{AskedMessage, Record, Store as _};
use std::collections::HashMap;

/// Show what you wait for, from whom, and since when
///
/// These are the questions that you sent and that are not answered. Of a poll, those are named who have not answered yet. A
/// message that was not copied or handed over says so; the relays of the settings are asked, for two seconds in all, how far
/// the others are.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk waiting\n  crosstalk waiting --local                  # ask no relay\n  crosstalk waiting --json | jq -r '.messages[].waits_for[]'\n\nExit codes: 0 shown, also if you wait for nothing."
)]
pub(crate) struct Waiting {
    /// Ask no relay how far the messages are
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    paging: super::Paging,
    /// Print JSON of the form crosstalk.waiting/1
    #[arg(long)]
    json: bool,
}

impl Waiting {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let store = desk.messages(console)?;
        let listing = match &store {
            Some(store) => Some(store.asked(self.paging.page())?),
            None => None,
        };
        let (items, more) = listing.map_or((Vec::new(), false), |l| (l.items, l.more));
        let items: Vec<AskedMessage> = items.into_iter().map(veiled).collect();
        let records: Vec<&Record> = items.iter().map(|asked| &asked.record).collect();
        let reached = match self.local {
            true => here(&desk, &records),
            false => Reach::of_all(&desk, &records),
        };
        if self.json {
            let report = |asked: &AskedMessage| report(asked, &desk, &reached);
            let messages = items.iter().map(report).collect();
            console.report(WAITING, &WaitingReport { messages, more })?;
            return Ok(Exit::SUCCESS);
        }
        let Some(store) = store else {
            console.talk(&format!("{NOTHING}\n"))?;
            return Ok(Exit::SUCCESS);
        };
        if items.is_empty() {
            console.talk("You wait for nothing.\n")?;
            return Ok(Exit::SUCCESS);
        }
        let short = view::shortener(&store);
        let notes = |record: &Record| {
            let reach = reached.get(&record.id);
            reach.map_or_else(Vec::new, |r| r.sentences(&desk.config, &short(&record.id)))
        };
        console.show(&view::asked(&items, (&short, notes), &Look::of(console)))?;
        self.paging.tell_more(console, more)?;
        let hint = "`crosstalk paste` keeps an answer that you copied.";
        console.talk(&format!("{}\n", styled(DIM, hint)))?;
        Ok(Exit::SUCCESS)
    }
}

/// A message whose consent is over has no text any more.
fn veiled(asked: AskedMessage) -> AskedMessage {
    AskedMessage {
        record: lookup::veiled(asked.record),
        of: asked.of,
    }
}

/// How far messages are, as this machine knows by itself.
fn here(desk: &Desk, records: &[&Record]) -> HashMap<String, Reach> {
    let known = records
        .iter()
        .filter_map(|r| Some((r.id.clone(), Reach::here(desk, r)?)));
    known.collect()
}

fn report(asked: &AskedMessage, desk: &Desk, reached: &HashMap<String, Reach>) -> AskedReport {
    let id = &asked.record.id;
    AskedReport {
        message: MessageReport::new(&asked.record),
        waits_for: asked.of.clone(),
        since: asked.record.at.to_string(),
        delivery: reached.get(id).map(|reach| reach.report(&desk.config, id)),
    }
}
