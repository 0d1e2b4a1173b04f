//! `crosstalk move`: a message that was filed with the wrong question, put where it belongs.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::json;
use crate::report::Message;
use crate::schema::MOVE;
use crate::service::dns::Look;
use crate::service::intake::Intake;
use crate::service::lookup;
use crate::service::recipient::resolve_typed;
use crate::service::relocate::{relocate, tell, tell_waiting};
use crate::service::workspace::Desk;
use clap::Args;
use crosstalk_protocol::Word;
use crosstalk_protocol::store::{Moved, Record, Side, Store as _};
use crosstalk_store::SqliteStore;
use serde_json::json;

/// Move a message that was filed with the wrong question
///
/// The message is filed with another one from now on: its thread, what it answers and what it settles follow. Its answers
/// go along. It is the answer then, whatever its intent says. Nothing in the message changes, and a signature stays what it
/// is: where a message is filed is known here only. An answer that is not signed can be filed as that of somebody else with
/// --from.
#[derive(Args, Debug)]
#[command(
    name = "move",
    after_help = "Examples:\n  crosstalk move 01K74V8QF857 --answers 01K74V6R0074\n  crosstalk move last --answers 01K74V6R0074\n  crosstalk move 01K74V8QF857 --answers 01K74V6R0074 --from chatgpt   # ChatGPT said it\n  crosstalk move 01K74V8QF857 --back      # where it was filed first\n\nExit codes: 0 moved, or there already; 1 not found; 2 it would answer itself."
)]
pub(crate) struct Move {
    /// The message: its id, the beginning of it, or `last`
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// The message that it answers
    #[arg(long, value_name = "ID", required_unless_present = "back")]
    answers: Option<String>,
    /// Who said it, if the message names somebody who was not asked
    #[arg(long, value_name = "NAME", requires = "answers")]
    from: Option<String>,
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
        if let (Some(from), Some(answers)) = (&self.from, &answers) {
            drop(store);
            return self.file_as(console, &desk, &record, (from, answers));
        }
        let moved = relocate(&mut store, &record, answers.as_ref())?;
        if self.json {
            return report(console, &store, &record, &moved);
        }
        match moved {
            Moved::Done { .. } => tell(console, &store, &record, &moved)?,
            _ if self.back => console.talk("It was never moved.\n")?,
            _ => {
                console.talk("It answers that message already.\n")?;
                if let Some(answers) = &answers {
                    tell_waiting(console, &store, &record, &answers.id)?;
                }
            }
        }
        Ok(Exit::SUCCESS)
    }
}

impl Move {
    /// Files a message as the answer of somebody else than it names.
    fn file_as(
        &self,
        console: &mut Console,
        desk: &Desk,
        record: &Record,
        (from, answers): (&str, &Record),
    ) -> Result<Exit, Failure> {
        lookup::require_text(record)?;
        if record.verdict != Word::Unsigned || record.side == Side::Mine {
            return Err(Failure::Usage(
                "the sender of a message that is signed, or that you sent, stays what it is: leave out --from".into(),
            ));
        }
        let look = Look::default();
        let mut intake = Intake::new(desk, &look, false);
        intake.from = Some(resolve_typed(&desk.config, from));
        intake.quiet = self.json;
        let text = Input::of_text("message", record.text.clone());
        let exit = intake.keep_answer(console, &text, &answers.id)?;
        if self.json {
            let messages = intake.messages;
            let message = messages.first();
            let answer = json!({
                "schema": MOVE,
                "moved": message.is_some(),
                "from": record.thread,
                "message": message.map(|m| &m["message"]),
                "along": 0,
                "settles": message.map(|m| &m["settles"]),
                "reopens": null,
            });
            console.data(json::pretty(&answer)?)?;
        }
        Ok(exit)
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
