//! `crosstalk move`: a message that was filed with the wrong question, put where it belongs.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{MessageReport, MoveReport};
use crate::schema::MOVE;
use crate::service::lookup;
use crate::service::relocate::{relocate, tell};
use crate::service::workspace::Desk;
use clap::Args;
use crosstalk_protocol::store::{Moved, Record, Store as _};
use crosstalk_store::SqliteStore;

/// Move a message that was filed with the wrong question
///
/// The message is filed with another one from now on: its thread, what it answers and what it settles follow. Its answers
/// go along. Nothing in the message changes, and a signature stays what it is: where a message is filed is known here
/// only.
#[derive(Args, Debug)]
#[command(
    name = "move",
    after_help = "Examples:\n  crosstalk move 01K74V8QF857 --answers 01K74V6R0074\n  crosstalk move last --answers 01K74V6R0074\n  crosstalk move 01K74V8QF857 --back      # where it was filed first\n\nExit codes: 0 moved, or there already; 1 not found; 2 it would answer itself."
)]
pub(crate) struct Move {
    /// The message: its id, the beginning of it, or `last`
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// The message that it answers
    #[arg(long, value_name = "ID", required_unless_present = "back")]
    answers: Option<String>,
    /// Put it where it was filed first
    #[arg(long, conflicts_with = "answers")]
    back: bool,
    /// Print JSON of the form crosstalk.move/1
    #[arg(long)]
    json: bool,
}

impl Move {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let mut store = desk.kept(console)?;
        let record = lookup::message(&store, &self.message)?;
        let answers = self.answers.as_deref();
        let answers = answers.map(|id| lookup::message(&store, id)).transpose()?;
        let moved = relocate(&mut store, &record, answers.as_ref())?;
        if self.json {
            return report(console, &store, &record, &moved);
        }
        match moved {
            Moved::Done { .. } => tell(console, &store, &record, &moved)?,
            _ if self.back => console.talk("It was never moved.\n")?,
            _ => console.talk("It answers that message already.\n")?,
        }
        Ok(Exit::SUCCESS)
    }
}

fn report(
    console: &mut Console,
    store: &SqliteStore,
    record: &Record,
    moved: &Moved,
) -> Result<Exit, Failure> {
    let now = store.message(&record.id)?;
    let now = now.map(lookup::veiled);
    let (from, along, settles, reopens) = match moved {
        Moved::Done {
            from,
            along,
            settled,
            reopened,
            ..
        } => (from, *along, settled.clone(), reopened.clone()),
        _ => (&record.thread, 0, None, None),
    };
    let report = MoveReport {
        moved: matches!(moved, Moved::Done { .. }),
        from: from.clone(),
        message: now.as_ref().map(MessageReport::new),
        along,
        settles,
        reopens,
    };
    console.report(MOVE, &report)?;
    Ok(Exit::SUCCESS)
}
