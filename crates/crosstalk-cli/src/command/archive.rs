//! The commands that change what is kept: `export`, `forget` and `move`.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Input, shown_path};
use crate::paragraph::count;
use crate::report::{ExportReport, MessageReport, MoveReport, ThreadReport};
use crate::schema::{EXPORT, MOVE, NamedForm};
use crate::service::dns::DnsOptions;
use crate::service::intake::TextIntake;
use crate::service::lookup::{self, Reference};
use crate::service::recipient::resolve_typed;
use crate::service::relay::data::DataArgument;
use crate::service::relocate::{relocate, tell, tell_waiting};
use crate::service::workspace::Workspace;
use crate::{clock, json, view};
use clap::{Args, ValueEnum};
use crosstalk_protocol::store::{Moved, Record, Side, Thread};
use crosstalk_protocol::{VerdictWord, archive};
use crosstalk_store::SqliteStore;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Write a thread as files, text, Markdown or JSON
///
/// `text` is all envelopes one after the other, byte for byte, and `files` one file for each: `crosstalk import` reads
/// both. `markdown` is for people, `json` for programs (the form crosstalk.export/1).
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk export 01K74V6R0074 > thread.crosstalk\n  crosstalk export 01K74V6R0074 --format files --out archive/\n  crosstalk export last --format markdown --out decision.md\n\nExit codes: 0 written, 1 not found, or a file already exists (--force replaces it)."
)]
pub(crate) struct Export {
    /// The thread, one of its messages, or `last`
    #[arg(value_name = "THREAD")]
    thread: String,
    /// The form
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The file, or for `files` the folder; else stdout
    #[arg(long, short, value_name = "PATH", required_if_eq("format", "files"))]
    out: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// All envelopes, one after the other
    Text,
    /// One file for each message, in a folder
    Files,
    /// A document for people
    Markdown,
    /// For programs
    Json,
}

impl Export {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let store = workspace.kept(console)?;
        let thread = lookup::thread(&store, &self.thread)?;
        let records = lookup::with_text(console, lookup::everything(&store, &thread.id)?)?;
        let text = match self.format {
            Format::Files => return self.files(console, &records),
            Format::Text => archive::to_text(&records),
            Format::Markdown => archive::to_markdown(&thread, &records),
            Format::Json => {
                let report = ExportReport {
                    thread: ThreadReport::new(&thread),
                    messages: MessageReport::all(&records),
                };
                json::pretty(&NamedForm::new(EXPORT, &report))?
            }
        };
        match &self.out {
            Some(path) => {
                self.write(path, &text)?;
                let name = path.to_string_lossy();
                console.talk(&format!("Written: {}\n", shown_path(&name)))?;
            }
            None => console.text(&text)?,
        }
        Ok(Exit::SUCCESS)
    }

    fn files(&self, console: &mut Console, records: &[Record]) -> Result<Exit, Failure> {
        let Some(folder) = &self.out else {
            return Err(Failure::usage("say where the files go").help("--out FOLDER"));
        };
        let shown = folder.to_string_lossy().into_owned();
        if folder.is_file() {
            let name = shown_path(&shown);
            return Err(
                Failure::usage(format!("{name} is a file")).help("name a folder with --out")
            );
        }
        std::fs::create_dir_all(folder).map_err(|e| Failure::io(shown.clone(), e))?;
        for (number, record) in records.iter().enumerate() {
            let path = folder.join(archive::file_name(record, number + 1));
            self.write(&path, &archive::to_text(std::slice::from_ref(record)))?;
        }
        let what = count(records.len(), "file");
        console.talk(&format!("Written: {what} in {}\n", shown_path(&shown)))?;
        Ok(Exit::SUCCESS)
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), Failure> {
        let name = path.to_string_lossy();
        let fault = |e: std::io::Error| match e.kind() {
            ErrorKind::AlreadyExists => {
                let name = shown_path(&name);
                Failure::failed(format!("{name} already exists")).help("--force replaces it")
            }
            _ => Failure::io(name.to_string(), e),
        };
        let mut options = OpenOptions::new();
        options.write(true).create(true);
        match self.force {
            true => options.truncate(true),
            false => options.create_new(true),
        };
        let mut file = options.open(path).map_err(fault)?;
        file.write_all(text.as_bytes()).map_err(fault)?;
        file.sync_all().map_err(fault)
    }
}

/// Erase a message or a whole thread, after you confirm
///
/// The command erases it from the store, the search index and the log, and nothing brings it back. The other messages of the thread
/// stay: the question that the erased message answered is open again, and a poll counts without it. Copies that others have stay
/// with them; exported files and backups of the store stay as well.
///
/// With --data, the command erases messages of a relay in its data folder, while the relay is stopped. Their ids and digests
/// stay, and the log of the relay records that they were erased.
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

/// The message or thread to erase.
enum Erasure {
    Message(Box<Record>),
    Thread(Box<Thread>),
}

impl Forget {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        if self.data.is_some() {
            return self.run_at_relay(console);
        }
        let workspace = Workspace::open(console)?;
        let mut store = workspace.kept(console)?;
        let erasure = self.find(&store)?;
        let what = erasure.describe(&store)?;
        let question = format!("Erase {what}? You can't undo this.");
        if !self.yes && !console.confirm(&question, &format!("erase {what}"))? {
            console.talk("Nothing was erased.\n")?;
            return Ok(Exit::FAILURE);
        }
        match &erasure {
            Erasure::Message(record) => store.forget_message(&record.id).map(drop)?,
            Erasure::Thread(thread) => store.forget(&thread.id).map(drop)?,
        }
        console.tell(&format!("Erased: {what}."))?;
        Ok(Exit::SUCCESS)
    }

    /// Erases in the data folder of a relay that is stopped.
    fn run_at_relay(&self, console: &mut Console) -> Result<Exit, Failure> {
        let folder = DataArgument {
            data: self.data.clone(),
        };
        let data = folder.folder()?;
        data.require()?;
        let _claim = data.require_stopped("stop it, erase, and start it again")?;
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
            return Err(Failure::failed(format!(
                "nothing to erase in {}: {what}",
                data.shown()
            )));
        }
        let question = format!("Erase {what} in {}? You can't undo this.", data.shown());
        if !self.yes && !console.confirm(&question, &format!("erase {what}"))? {
            console.talk("Nothing was erased.\n")?;
            return Ok(Exit::FAILURE);
        }
        let erased = store.erase_messages(&ids, clock::now())?;
        let erased = usize::try_from(erased).unwrap_or(usize::MAX);
        let told = format!(
            "Erased: {} ({what}). The log of the relay records it. Backups, bundles and copies that others got still have them.",
            count(erased, "text")
        );
        console.tell(&told)?;
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
                Err(Failure::usage(format!("`{}` is a thread with {}", message, count(number, "message"))).help(format!("`crosstalk forget --thread {id}` erases all of it, `crosstalk show {id}` lists \
                     its messages")))
            }
        }
    }
}

impl Erasure {
    /// The ids of the messages to erase.
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
    /// Names it, for the question and the confirmation.
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

/// Move a message that was filed with the wrong question
///
/// Files the message with another question: its thread, its parent and the question that it settles change, and its answers move
/// along. It counts as the answer then, whatever its intent says. The message itself does not change, and a signature stays valid:
/// only this store knows where a message is filed. --from files an unsigned answer as that of another party.
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
    /// The party that said it, if the message names one that was not asked
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
        let workspace = Workspace::open(console)?;
        let mut store = workspace.kept(console)?;
        let record = lookup::message(&store, &self.message)?;
        let answers = self.answers.as_deref();
        let answers = answers.map(|id| lookup::message(&store, id)).transpose()?;
        if let (Some(from), Some(answers)) = (&self.from, &answers) {
            drop(store);
            return self.file_as(console, &workspace, &record, (from, answers));
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

    /// Files a message as the answer of another party than it names.
    fn file_as(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        record: &Record,
        (from, answers): (&str, &Record),
    ) -> Result<Exit, Failure> {
        lookup::require_text(record)?;
        if record.verdict != VerdictWord::Unsigned || record.side == Side::Mine {
            return Err(Failure::usage(
                "the sender of a message that is signed, or that you sent, can't be changed",
            )
            .help("leave out --from"));
        }
        let look = DnsOptions::default();
        let mut intake = TextIntake::new(workspace, &look, false);
        intake.from = Some(resolve_typed(&workspace.config, from));
        intake.quiet = self.json;
        let text = Input::of_text("message", record.text.clone());
        let exit = intake.keep_answer(console, &text, &answers.id)?;
        if self.json {
            let filed = intake.messages.into_iter().next();
            let moved = filed.is_some();
            let (message, settles) = filed.map_or((None, None), |m| (m.message, m.settles));
            let report = MoveReport {
                moved,
                from: record.thread.clone(),
                message,
                along: 0,
                settles,
                reopens: None,
            };
            console.report(MOVE, &report)?;
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
