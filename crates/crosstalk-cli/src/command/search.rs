//! `crosstalk search`: messages by their words.

use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{MessageReport, SearchReport};
use crate::schema::SEARCH;
use crate::service::workspace::Desk;
use crate::view::{self, Look};
use clap::Args;
use crosstalk_protocol::store;
use crosstalk_protocol::store::Store as _;

/// Find messages by their words, the latest first
///
/// Every word has to be there, in any case and with or without accents. The last word may be the beginning of one, as any
/// word with a * may: auth* finds authority. "Some words" in quotes have to be whole and follow each other; from:, to:,
/// context: and intent: before a word look there alone.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk search jwt expi\n  crosstalk search '\"short expiry\"' from:chatgpt\n  crosstalk search --json 'auth*' | jq -r '.messages[].id'\n\nExit codes: 0 found, 1 nothing found, 2 no word to look for."
)]
pub(crate) struct Search {
    /// The words to look for
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    paging: super::Paging,
    /// Print JSON of the form crosstalk.search/1
    #[arg(long)]
    json: bool,
}

impl Search {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let query = self.words.join(" ");
        let search =
            store::Search::parse_typed(&query).map_err(|e| Failure::usage(e.to_string()))?;
        let desk = Desk::open(console)?;
        let kept = desk.messages(console)?;
        let listing = match &kept {
            Some(kept) => Some(kept.search(&search, self.paging.page())?),
            None => None,
        };
        let (mut items, more) = listing.map_or((Vec::new(), false), |l| (l.items, l.more));
        items.retain(|r| !r.has_run_out(clock::exact()));
        let exit = match items.is_empty() {
            true => Exit::FAILURE,
            false => Exit::SUCCESS,
        };
        if self.json {
            let messages = MessageReport::all(&items);
            let report = SearchReport {
                query,
                messages,
                more,
            };
            console.report(SEARCH, &report)?;
            return Ok(exit);
        }
        match kept {
            Some(kept) if !items.is_empty() => {
                let look = Look::of(console);
                let extract = |body: &str| view::around(body, &search, look.width);
                let shown =
                    view::messages(&items, view::shortener(&kept), (extract, |_| None), &look);
                console.show(&shown)?;
                self.paging.tell_more(console, more)?;
            }
            _ => console.talk("nothing found\n")?,
        }
        Ok(exit)
    }
}
