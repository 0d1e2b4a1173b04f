//! The commands that change what is kept: `export`, `forget` and `move`.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::{count, wrap};
use crate::report::{ExportReport, MessageReport, MoveReport, ThreadReport};
use crate::schema::{EXPORT, MOVE, Named};
use crate::service::lookup::{self, Reference};
use crate::service::relocate::{relocate, tell};
use crate::service::workspace::Desk;
use crate::{json, view};
use clap::{Args, ValueEnum};
use crosstalk_protocol::archive;
use crosstalk_protocol::store::{Moved, Record, Store as _, Thread};
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
        let desk = Desk::open(console)?;
        let store = desk.kept(console)?;
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
                json::pretty(&Named::new(EXPORT, &report))?
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

/// The message or thread to erase.
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
