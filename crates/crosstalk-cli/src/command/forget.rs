//! `crosstalk forget`: a message or a thread is erased, from the store and the index.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::{count, wrap};
use crate::service::lookup::{self, Reference};
use crate::service::workspace::Desk;
use crate::view;
use clap::Args;
use crosstalk_protocol::store::{Record, Store as _, Thread};
use crosstalk_store::SqliteStore;

/// Erase a message, or a thread with all its messages, after a question
///
/// The command erases it from the store, the search index and the log, and nothing brings it back. Of a thread, the other
/// messages stay: what the erased message answered is open again, and a poll counts without it. Copies that others have
/// stay with them; exported files and backups of the store stay as well.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk forget 01K74V8QF857\n  crosstalk forget last --yes\n  crosstalk forget --thread 01K74V6R0074\n\nExit codes: 0 erased, 1 not found or not confirmed, 2 the id names a thread, or\nno terminal and no --yes."
)]
pub(crate) struct Forget {
    /// The message: its id, the beginning of it, or `last`; with --thread, the thread or one of its messages
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// Erase the whole thread
    #[arg(long)]
    thread: bool,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
}

/// What is to be erased.
enum Erasure {
    Message(Box<Record>),
    Thread(Box<Thread>),
}

impl Forget {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let mut store = desk.kept(console)?;
        let erasure = self.find(&store)?;
        let what = erasure.describe(&store)?;
        let question = format!("Erase {what}? It can't be brought back.");
        if !self.yes && !console.confirm(&question, &format!("erase {what}"))? {
            console.talk("Nothing was erased.\n")?;
            return Ok(Exit::FAILURE);
        }
        match &erasure {
            Erasure::Message(record) => store.forget_message(&record.id).map(drop)?,
            Erasure::Thread(thread) => store.forget(&thread.id).map(drop)?,
        }
        console.talk(&format!("{}\n", wrap(&format!("Erased: {what}."), 0, 0)))?;
        Ok(Exit::SUCCESS)
    }

    fn find(&self, store: &SqliteStore) -> Result<Erasure, Failure> {
        if self.thread {
            let thread = lookup::thread(store, &self.message)?;
            return Ok(Erasure::Thread(Box::new(thread)));
        }
        match lookup::reference(store, &self.message)? {
            Reference::Message(record) => Ok(Erasure::Message(record)),
            Reference::Thread(thread) => {
                let number = usize::try_from(thread.messages).unwrap_or(usize::MAX);
                let id = view::short(store, &thread.id)?;
                Err(Failure::usage(format!("`{}` is a thread with {}", self.message, count(number, "message"))).help(format!("`crosstalk forget --thread {id}` erases all of it, `crosstalk show {id}` lists \
                     its messages")))
            }
        }
    }
}

impl Erasure {
    /// What will go, for the question and the confirmation.
    fn describe(&self, store: &SqliteStore) -> Result<String, Failure> {
        match self {
            Self::Message(record) => {
                let about = match record.context.as_deref().unwrap_or_default() {
                    "" => String::new(),
                    context => format!(" about {}", view::line(context)),
                };
                Ok(format!(
                    "1 message{about}, {} ({})",
                    view::parties(record),
                    view::short(store, &record.id)?
                ))
            }
            Self::Thread(thread) => {
                let number = usize::try_from(thread.messages).unwrap_or(usize::MAX);
                let about = match thread.context.as_deref().unwrap_or_default() {
                    "" => String::new(),
                    context => format!(" about {}", view::line(context)),
                };
                Ok(format!(
                    "the thread{about} with {} ({})",
                    count(number, "message"),
                    view::short(store, &thread.id)?
                ))
            }
        }
    }
}
