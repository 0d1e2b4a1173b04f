//! `crosstalk move`: a message that was filed with the wrong question, put where it belongs.

use crate::console::{Console, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::{count, wrap};
use crate::report::Message;
use crate::schema::MOVE;
use crate::service::workspace::{self, Desk};
use crate::{json, view};
use clap::Args;
use crosstalk_protocol::store::{Moved, Record, Store as _};
use crosstalk_store::SqliteStore;
use serde_json::json;

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
        let record = workspace::message(&store, &self.message)?;
        let answers = self.answers.as_deref();
        let answers = answers
            .map(|id| workspace::message(&store, id))
            .transpose()?;
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

/// Files a message with another one, or where it was filed first.
pub(super) fn relocate(
    store: &mut SqliteStore,
    record: &Record,
    answers: Option<&Record>,
) -> Result<Moved, Failure> {
    match store.relocate(&record.id, answers.map(|a| a.id.as_str()))? {
        Moved::AnswersItself => Err(Failure::Usage(format!(
            "{} can't answer itself, or a message that answers it: name another one with --answers",
            record.id
        ))),
        Moved::Unknown => Err(Failure::Failed(
            "one of the two messages is gone: `crosstalk threads` lists what is here".into(),
        )),
        moved => Ok(moved),
    }
}

/// Tells what a move did; nothing if the message was there already.
pub(super) fn tell(
    console: &mut Console,
    store: &SqliteStore,
    record: &Record,
    moved: &Moved,
) -> Result<(), Failure> {
    let Moved::Done {
        from,
        to,
        along,
        reopened,
        ..
    } = moved
    else {
        return Ok(());
    };
    let short = view::shortener(store);
    let mut text = short(&record.id);
    if *from != to.thread {
        text.push_str(&format!(
            " from thread {} to {}",
            short(from),
            short(&to.thread)
        ));
    }
    if *along > 0 {
        let verb = if *along == 1 { "answers" } else { "answer" };
        text.push_str(&format!(
            ", with {} that {verb} it",
            count(*along, "message")
        ));
    }
    if let Some(answers) = &to.answers {
        text.push_str(&format!("; it answers {} now", short(answers)));
    }
    if let Some(reopened) = reopened {
        text.push_str(&format!("; {} waits for an answer again", short(reopened)));
    }
    let word = styled(GREEN, "Moved");
    console.talk(&format!("{word} {}\n", wrap(&text, 6, 0)))
}

fn report(
    console: &mut Console,
    store: &SqliteStore,
    record: &Record,
    moved: &Moved,
) -> Result<Exit, Failure> {
    let now = store.message(&record.id)?;
    let now = now.map(workspace::veiled);
    let (from, along, settled, reopened) = match moved {
        Moved::Done {
            from,
            along,
            settled,
            reopened,
            ..
        } => (from.as_str(), *along, settled.clone(), reopened.clone()),
        _ => (record.thread.as_str(), 0, None, None),
    };
    let answer = json!({
        "schema": MOVE,
        "moved": matches!(moved, Moved::Done { .. }),
        "from": from,
        "message": now.as_ref().map(Message::new),
        "along": along,
        "settles": settled,
        "reopens": reopened,
    });
    console.data(json::pretty(&answer)?)?;
    Ok(Exit::SUCCESS)
}
