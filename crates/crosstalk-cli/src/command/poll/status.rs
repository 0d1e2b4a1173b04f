//! `crosstalk poll status`: how a poll stands.

use super::place::Place;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::poll::KeptPoll;
use crate::service::workspace::Desk;
use crate::{json, view};
use clap::Args;
use serde_json::Value;

/// Show how a poll stands: what was chosen, by whom, and who has not answered
///
/// From what is kept here, or from the relay that counts it: one of the settings that the poll went to, or that --relay
/// names. Of a secret poll, choices are not shown before it is closed.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk poll status last\n  crosstalk poll status 01K74V6VX0 --json | jq .tally\n  crosstalk poll status 01K74V6VX0S86Z5JATM52C3M7Z --relay http://127.0.0.1:8799\n\nExit codes: 0 shown, 1 there is no such poll here, 10 the relay does not know\nit or can't be reached, 14 no permission."
)]
pub(super) struct Status {
    /// The poll, its thread, or `last`
    #[arg(value_name = "POLL")]
    poll: String,
    /// Print JSON of the form crosstalk.poll/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

impl Status {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let kept = KeptPoll::find(console, &desk, &self.poll)?;
        let view = match self.place.relay(&desk, &self.poll, kept.as_ref())? {
            Some((relay, id)) => relay.poll(&id)?,
            None => {
                let none = || {
                    Failure::failed(format!("no poll here begins with `{}`", self.poll))
                        .help("--remote asks the relay")
                };
                here(&kept.ok_or_else(none)?)?
            }
        };
        match self.json {
            true => console.data(json::pretty(&view)?)?,
            false => console.show(&view::poll(console, &view))?,
        }
        Ok(Exit::SUCCESS)
    }
}

/// How a poll that is kept here stands.
fn here(kept: &KeptPoll) -> Result<Value, Failure> {
    let collation = kept.collate(kept.closed_at())?;
    let is_over = kept.is_over(&collation);
    let shown = match is_over {
        true => collation,
        false => collation.while_open(),
    };
    let mut view = json::value(&shown)?;
    let state = if is_over { "closed" } else { "open" };
    json::set(&mut view, "state", Some(state));
    Ok(view)
}
