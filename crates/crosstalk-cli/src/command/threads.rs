//! `crosstalk threads`: the conversations that are kept.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{ThreadReport, ThreadsReport};
use crate::schema::THREADS;
use crate::service::workspace::{Desk, NOTHING};
use crate::view::{self, Look};
use clap::Args;
use crosstalk_protocol::store::{Store as _, ThreadFilter};

/// List the conversations, the latest first
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk threads\n  crosstalk threads --open --with CHATGPT\n  crosstalk threads --json --limit 1000 | jq -r '.threads[].id'"
)]
pub(crate) struct Threads {
    /// Only those that are not closed
    #[arg(long)]
    open: bool,
    /// Only those in which something waits for you
    #[arg(long)]
    waiting: bool,
    /// Only those with this party
    #[arg(long, value_name = "WHO")]
    with: Option<String>,
    #[command(flatten)]
    paging: super::Paging,
    /// Print JSON of the form crosstalk.threads/1
    #[arg(long)]
    json: bool,
}

impl Threads {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let filter = ThreadFilter {
            open: self.open,
            waiting: self.waiting,
            with: self.with.clone(),
        };
        let store = desk.messages(console)?;
        let listing = match &store {
            Some(store) => Some(store.threads(&filter, self.paging.page())?),
            None => None,
        };
        let (items, more) = listing.map_or((Vec::new(), false), |l| (l.items, l.more));
        if self.json {
            let threads = items.iter().map(ThreadReport::new).collect();
            console.report(THREADS, &ThreadsReport { threads, more })?;
            return Ok(Exit::SUCCESS);
        }
        let Some(store) = store else {
            console.talk(&format!("{NOTHING}\n"))?;
            return Ok(Exit::SUCCESS);
        };
        if items.is_empty() {
            console.talk(match self.waiting {
                true => "nothing waits for you\n",
                false => "there is no such conversation\n",
            })?;
        }
        let short = view::shortener(&store);
        console.show(&view::threads(&items, short, &Look::of(console)))?;
        self.paging.tell_more(console, more)?;
        Ok(Exit::SUCCESS)
    }
}
