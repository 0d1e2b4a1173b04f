//! `crosstalk import`: archives of envelopes, and chats that were exported.

mod export;
mod files;

use crate::console::{Console, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Input, shown_path};
use crate::paragraph::count;
use crate::report::{ImportConflict, ImportRejection, ImportReport};
use crate::schema::IMPORT;
use crate::service::consent;
use crate::service::dns::DnsOptions;
use crate::service::intake::{Incoming, Taken};
use crate::service::workspace::Workspace;
use clap::Args;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{Document, ErrorCode, Reading};
use crosstalk_protocol::chat::{self, ChatImport, ExportedChat};
use crosstalk_protocol::store::{Arrival, StoreOutcome, Way};
use crosstalk_store::SqliteStore;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;

/// How many messages go into the store at once.
const BATCH: usize = 500;
/// How much of the export of a chat program is read.
const MAX_EXPORT_BYTES: u64 = 2 << 30;

/// Keep the messages of files and folders: archives, and chats exported from ChatGPT, Claude or as Markdown
///
/// Folders are searched for files that end in .crosstalk, .aict, .md, .markdown or .txt, and for conversations.json;
/// links in them are not followed. The conversations.json of ChatGPT and of Claude, and a Markdown file without an
/// envelope, are read as chats: each conversation becomes a thread, and each turn a message. Messages that are known
/// already are counted and left alone, so an import can be repeated. Unpack a .zip first. Keys are not pinned.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk import archive/\n  crosstalk import conversations.json\n  crosstalk import chat-export.md thread.crosstalk\n  crosstalk import --json archive/ | jq .filed\n\nExit codes: 0 all was kept or known; else that of the worst file (11 a consent that is not enough, 12 nothing that can be read, 14 an id that\nanother message has, 15 a .zip to unpack first), after all others were imported."
)]
pub(crate) struct Import {
    /// Files and folders
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Keep messages that may be cut off; they are shown as truncated from then on
    #[arg(long)]
    accept_truncated: bool,
    /// Print JSON of the form crosstalk.import/1
    #[arg(long)]
    json: bool,
}

/// The count of each result.
#[derive(Debug, Default)]
struct Tally {
    files: usize,
    filed: usize,
    known: usize,
    conflicts: Vec<ImportConflict>,
    refused: Vec<ImportRejection>,
    /// Whether a file had no message in it at all.
    is_strange: bool,
}

impl Import {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let found = files::find(&self.paths)?;
        let look = DnsOptions::default();
        let bar = self.bar(&found);
        let mut work = Work {
            incoming: Incoming::new(&workspace, &look)?,
            store: workspace.store(console)?,
            batch: Vec::new(),
            tally: Tally::default(),
            exit: Exit::SUCCESS,
            person: workspace.config.sender()?,
            user: workspace.config.user()?,
            accept_truncated: self.accept_truncated,
            bar: bar.clone(),
        };
        let mut done = 0;
        for path in &found {
            work.file(console, path)?;
            done += bytes_of(path);
            bar.set_position(done);
        }
        work.flush()?;
        bar.finish_and_clear();
        self.tell(console, work.tally)?;
        Ok(work.exit)
    }

    /// A bar on a terminal, nothing elsewhere.
    fn bar(&self, files: &[PathBuf]) -> ProgressBar {
        let is_shown = std::io::stderr().is_terminal() && !self.json;
        let target = match is_shown {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bytes = files.iter().map(|path| bytes_of(path)).sum();
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        let style = ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {eta} left");
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }

    fn tell(&self, console: &mut Console, tally: Tally) -> Result<(), Failure> {
        if self.json {
            let report = ImportReport {
                files: tally.files,
                filed: tally.filed,
                known: tally.known,
                conflicts: tally.conflicts,
                refused: tally.refused,
            };
            return console.report(IMPORT, &report);
        }
        for ImportRejection { file, reason } in &tally.refused {
            let word = styled(RED, "refused");
            console.talk(&format!("{word}: {}: {reason}\n", shown_path(file)))?;
        }
        if tally.is_strange {
            console.tell(WHAT_WORKS)?;
        }
        for ImportConflict { file, id } in &tally.conflicts {
            let word = styled(RED, "not kept");
            let file = shown_path(file);
            console.talk(&format!(
                "{word}: {file}: another message has the id {id}\n"
            ))?;
        }
        let files = count(tally.files, "file");
        if tally.filed + tally.known == 0 && !tally.is_strange && tally.refused.is_empty() {
            console.tell(WHAT_WORKS)?;
        }
        console.talk(&match (tally.filed, tally.known) {
            (0, known @ 1..) => {
                let known = count(known, "message");
                format!("{files} read: nothing new, {known} known already\n")
            }
            (filed, known) => {
                let filed = count(filed, "message");
                format!("{files} read: {filed} kept, {known} known already\n")
            }
        })
    }
}

/// Dates a turn of a chat by when it was said, where the export tells: a chat of last year is not the latest conversation.
fn date_as_said(turn: &mut Arrival) {
    let said = turn.written_at.filter(|at| at.as_millis() > 0);
    turn.at = said.map_or(turn.at, |at| at.min(turn.at));
}

/// How long a file is; nothing if that can't be found out.
fn bytes_of(path: &std::path::Path) -> u64 {
    path.metadata().map_or(0, |m| m.len())
}

/// The files that can be imported.
const WHAT_WORKS: &str = "These can be imported: the conversations.json of a ChatGPT or Claude export, a chat as Markdown \
                          (.md), and files with envelopes.";

/// Whether a file has conversations that a chat program exported.
enum Exported {
    Yes,
    /// It has none; what is wrong with its JSON, if it can't be read.
    No(Option<String>),
}

/// An import under way.
struct Work<'w> {
    incoming: Incoming<'w>,
    store: SqliteStore,
    batch: Vec<(String, Arrival)>,
    tally: Tally,
    exit: Exit,
    /// The name of the person in an exported chat.
    person: String,
    user: String,
    accept_truncated: bool,
    bar: ProgressBar,
}

impl Work<'_> {
    /// Reads one file; one that can't be read does not stop the others.
    fn file(&mut self, console: &mut Console, path: &std::path::Path) -> Result<(), Failure> {
        self.tally.files += 1;
        let name = path.to_string_lossy().into_owned();
        if files::is_archive(path) {
            let reason =
                "it is a .zip archive: unpack it, then import the folder or its conversations.json";
            self.refuse(&name, reason, ErrorCode::Unsupported.into());
            return Ok(());
        }
        let exported = match files::is_json(path) {
            true => self.exported(console, path, &name)?,
            false => Exported::No(None),
        };
        let Exported::No(json_fault) = exported else {
            return Ok(());
        };
        let input = match Input::read(path, console) {
            Ok(input) => input,
            Err(fault) => {
                let reason = fault
                    .io_error()
                    .map_or_else(|| fault.to_string(), io::Error::to_string);
                self.refuse(&name, &reason, fault.exit());
                self.tally.files -= 1;
                return Ok(());
            }
        };
        let (text, mut scan) = input.scan(Reading::Paste);
        if self.accept_truncated {
            scan = scan.accept_truncated();
        }
        if scan.documents.is_empty()
            && files::may_be_chat(path)
            && let Some(chat) = chat::read_chat(&text)
        {
            return self.chat(console, &name, &chat);
        }
        if let Some(fault) = scan.rejected.iter().find(|d| d.is_error()) {
            let line = fault.position(&text).line;
            let mut reason = match fault.rule.id == rule::NO_ENVELOPE.id {
                true => format!(
                    "no message in it: it is {} ({})",
                    files::kind_of(path, &text, json_fault.as_deref()),
                    fault.rule.id
                ),
                false => format!("line {line}: {} ({})", fault.message, fault.rule.id),
            };
            self.tally.is_strange |= fault.rule.id == rule::NO_ENVELOPE.id;
            if !scan.truncated.is_empty() {
                reason.push_str("; --accept-truncated keeps it, marked as truncated");
            }
            self.refuse(&name, &reason, Exit::of(&scan.rejected));
        }
        for document in &scan.documents {
            self.document(console, &name, document, Way::Imported)?;
        }
        Ok(())
    }

    /// Reads the conversations that a chat program exported.
    fn exported(
        &mut self,
        console: &mut Console,
        path: &std::path::Path,
        name: &str,
    ) -> Result<Exported, Failure> {
        let Ok(file) = std::fs::File::open(path) else {
            return Ok(Exported::No(None));
        };
        let file = self.bar.clone().wrap_read(file.take(MAX_EXPORT_BYTES));
        let (mut number, mut is_export) = (0_usize, false);
        let ended = export::each_element(std::io::BufReader::new(file), |value| {
            number += 1;
            let exported = match serde_json::from_value::<ExportedChat>(value) {
                Ok(exported) => exported,
                Err(fault) => {
                    if is_export {
                        let reason = format!("conversation {number}: {fault}");
                        self.refuse(name, &reason, ErrorCode::Format.into());
                    }
                    return Ok(());
                }
            };
            is_export |= exported.is_known();
            match exported.into_chat() {
                Some(chat) => self.chat(console, name, &chat),
                None => Ok(()),
            }
        });
        match ended {
            Ok(()) => {}
            Err(export::Ended::Failed(failure)) => return Err(failure),
            Err(export::Ended::Malformed(fault)) if !is_export => {
                return Ok(Exported::No(Some(fault.to_string())));
            }
            Err(export::Ended::Malformed(fault)) => {
                let reason = format!("after {}: {fault}", count(number, "conversation"));
                self.refuse(name, &reason, ErrorCode::Format.into());
            }
        }
        Ok(match is_export {
            true => Exported::Yes,
            false => Exported::No(None),
        })
    }

    fn chat(
        &mut self,
        console: &mut Console,
        name: &str,
        chat: &chat::Chat,
    ) -> Result<(), Failure> {
        let file = std::path::Path::new(name).file_name();
        let file = file
            .map(|f| f.to_string_lossy().into_owned())
            .unwrap_or_default();
        let import = ChatImport {
            person: &self.person,
            user: &self.user,
            source: &file,
        };
        for builder in chat.messages(&import) {
            match builder.build() {
                Ok(text) => {
                    let document = Document::parse(&text, Reading::Strict);
                    self.document(console, name, &document, Way::Filed)?;
                }
                Err(fault) => {
                    let exit = Exit::of(&fault.diagnostics);
                    self.refuse(name, &fault.to_string(), exit);
                }
            }
        }
        Ok(())
    }

    fn document(
        &mut self,
        console: &mut Console,
        name: &str,
        document: &Document<'_>,
        way: Way,
    ) -> Result<(), Failure> {
        let mut taken = self.incoming.take(console, document, way)?;
        if way == Way::Filed {
            date_as_said(&mut taken.arrival);
        }
        if !taken.said.is_silent() {
            return self.with_consent(console, name, &mut taken);
        }
        self.batch.push((name.to_owned(), taken.arrival));
        match self.batch.len() >= BATCH {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// One that says something about consent, after all that came before it.
    fn with_consent(
        &mut self,
        console: &mut Console,
        name: &str,
        taken: &mut Taken,
    ) -> Result<(), Failure> {
        self.flush()?;
        let way = taken.arrival.way;
        let by = (&taken.said, &self.incoming.policy);
        let filed = consent::file(console, &mut self.store, &taken.arrival, by)?;
        match filed {
            Ok((outcome, revoked)) => {
                self.count(name.to_owned(), way, outcome);
                consent::tell(console, &revoked)
            }
            Err(refusal) => {
                let id = taken.arrival.id();
                let reason = format!("{id}: {}", consent::sentence(&refusal).replace('\n', " "));
                self.refuse(name, &reason, refusal.code.into());
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let batch = std::mem::take(&mut self.batch);
        let (names, arrivals): (Vec<String>, Vec<Arrival>) = batch.into_iter().unzip();
        let outcomes = self.store.accept(&arrivals)?;
        let ways: Vec<Way> = arrivals.iter().map(|a| a.way).collect();
        for ((name, way), outcome) in names.into_iter().zip(ways).zip(outcomes) {
            self.count(name, way, outcome);
        }
        Ok(())
    }

    fn count(&mut self, name: String, way: Way, outcome: StoreOutcome) {
        match outcome {
            StoreOutcome::Filed { .. } => self.tally.filed += 1,
            StoreOutcome::Known { .. } => self.tally.known += 1,
            // The id of a turn comes from what was said: only the name of the file is another one.
            StoreOutcome::Conflict { .. } if way == Way::Filed => self.tally.known += 1,
            StoreOutcome::Conflict { id, .. } => {
                self.exit = self.exit.worst(ErrorCode::Perm.into());
                let id = crosstalk_envelope::unicode::escape(&id).into_owned();
                self.tally.conflicts.push(ImportConflict { file: name, id });
            }
        }
    }

    fn refuse(&mut self, name: &str, reason: &str, exit: Exit) {
        self.exit = self.exit.worst(exit);
        let reason = crosstalk_envelope::unicode::escape(reason).into_owned();
        let file = name.to_owned();
        self.tally.refused.push(ImportRejection { file, reason });
    }
}
