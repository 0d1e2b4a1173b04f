//! `crosstalk key list`.

use super::view;
use crate::console::{BOLD, Console, DIM, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::home::Rooms;
use clap::Args;
use crosstalk_envelope::unicode::escape;

/// List your keys
///
/// Files that can't be read as keys are told about, and the exit code is 1 then.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key list\n  crosstalk key list --json | jq -r '.keys[].id'"
)]
pub(super) struct List {
    /// Print JSON of the form crosstalk.key-list/1
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let listing = rooms.keys.list()?;
        if self.json {
            console.data(view::report(&rooms, &listing.keys, &listing.problems)?)?;
        } else {
            for key in &listing.keys {
                let facts = &key.facts;
                console.show(&format!(
                    "{}  {}  {}\n  {}\n",
                    styled(BOLD, &escape(&facts.id)),
                    view::state(key),
                    facts.public.algorithm(),
                    styled(DIM, &facts.public.fingerprint().to_string())
                ))?;
            }
            if listing.keys.is_empty() && listing.problems.is_empty() {
                console.talk(
                    "there are no keys: make one with `crosstalk key new --id you@example.com`\n",
                )?;
            }
        }
        for problem in &listing.problems {
            let word = styled(YELLOW, "warning");
            let problem = problem.to_string();
            console.talk(&format!("{word}: {}\n", escape(&problem)))?;
        }
        Ok(match listing.problems.is_empty() {
            true => Exit::SUCCESS,
            false => Exit::FAILURE,
        })
    }
}
