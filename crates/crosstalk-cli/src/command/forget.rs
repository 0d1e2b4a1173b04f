//! `crosstalk forget`: a message or a thread is erased, from the store and the index.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::{count, wrap};
use crate::service::lookup::{self, Reference};
use crate::service::relay::data::{DataArgument, NotAlone};
use crate::service::workspace::Desk;
use crate::{clock, view};
use clap::Args;
use crosstalk_protocol::store::{Record, Store as _, Thread};
use crosstalk_store::SqliteStore;
use std::path::PathBuf;

/// Erase a message, or a thread with all its messages, after a question
///
/// The command erases it from the store, the search index and the log, and nothing brings it back. Of a thread, the other
/// messages stay: what the erased message answered is open again, and a poll counts without it. Copies that others have
/// stay with them; exported files and backups of the store stay as well.
///
/// With --data, the messages of a relay are erased in its data folder, while the relay is stopped. Their ids and digests stay,
/// and the log of the relay says that they were erased.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk forget 01K74V8QF857\n  crosstalk forget last --yes\n  crosstalk forget --thread 01K74V6R0074\n  crosstalk forget --of human://acme.example/ann --data /var/lib/crosstalk\n\nExit codes: 0 erased, 1 not found or not confirmed, 2 the id names a thread, or\nno terminal and no --yes."
)]
pub(crate) struct Forget {
    /// The message: its id, the beginning of it, or `last`; with --thread, the thread or one of its messages
    #[arg(value_name = "MESSAGE", required_unless_present = "of")]
    message: Option<String>,
    /// Erase the whole thread
    #[arg(long)]
    thread: bool,
    /// Erase every message from or to this address
    #[arg(long, value_name = "ADDR", requires = "data", conflicts_with_all = ["message", "thread"])]
    of: Option<String>,
    /// Erase in the data folder of this relay, which must not run, and not in your own store
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
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
        if self.data.is_some() {
            return self.run_at_relay(console);
        }
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

    /// Erases in the data folder of a relay that is stopped.
    fn run_at_relay(&self, console: &mut Console) -> Result<Exit, Failure> {
        let folder = DataArgument {
            data: self.data.clone(),
        };
        let data = folder.folder()?;
        data.require()?;
        let _alone = data.claim().map_err(|fault| match fault {
            NotAlone::Running(_) => Failure::Failed(format!(
                "a relay runs on {}: stop it, erase, and start it again",
                data.shown()
            )),
            NotAlone::Disk(e) => Failure::at(data.folder(), e),
        })?;
        let mut store = data.open()?;
        let (ids, what) = match &self.of {
            Some(address) => {
                let ids = store.messages_of_party(address)?;
                let what = format!(
                    "{} from or to {}",
                    count(ids.len(), "message"),
                    view::line(address)
                );
                (ids, what)
            }
            None => {
                let erasure = self.find(&store)?;
                let what = erasure.describe(&store)?;
                (erasure.ids(&store)?, what)
            }
        };
        if ids.is_empty() {
            return Err(Failure::Failed(format!(
                "there is nothing to erase in {}: {what}",
                data.shown()
            )));
        }
        let question = format!(
            "Erase {what} in {}? It can't be brought back.",
            data.shown()
        );
        if !self.yes && !console.confirm(&question, &format!("erase {what}"))? {
            console.talk("Nothing was erased.\n")?;
            return Ok(Exit::FAILURE);
        }
        let erased = store.erase_messages(&ids, clock::now())?;
        let erased = usize::try_from(erased).unwrap_or(usize::MAX);
        let told = format!(
            "Erased: {} ({what}). The log of the relay says so. Backups, bundles and copies that others got still have them.",
            count(erased, "text")
        );
        console.talk(&format!("{}\n", wrap(&told, 0, 0)))?;
        Ok(Exit::SUCCESS)
    }

    fn find(&self, store: &SqliteStore) -> Result<Erasure, Failure> {
        let message = self.message.as_deref().unwrap_or_default();
        if self.thread {
            let thread = lookup::thread(store, message)?;
            return Ok(Erasure::Thread(Box::new(thread)));
        }
        match lookup::reference(store, message)? {
            Reference::Message(record) => Ok(Erasure::Message(record)),
            Reference::Thread(thread) => {
                let number = usize::try_from(thread.messages).unwrap_or(usize::MAX);
                let id = view::short(store, &thread.id)?;
                Err(Failure::Usage(format!(
                    "`{}` is a thread with {}: `crosstalk forget --thread {id}` erases all of it, `crosstalk show {id}` lists \
                     its messages",
                    message,
                    count(number, "message"),
                )))
            }
        }
    }
}

impl Erasure {
    /// The messages that go.
    fn ids(&self, store: &SqliteStore) -> Result<Vec<String>, Failure> {
        match self {
            Self::Message(record) => Ok(vec![record.id.clone()]),
            Self::Thread(thread) => {
                let number = usize::try_from(thread.messages).unwrap_or(usize::MAX);
                let listing = store.messages(&thread.id, None, number)?;
                Ok(listing.items.into_iter().map(|m| m.id).collect())
            }
        }
    }

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
