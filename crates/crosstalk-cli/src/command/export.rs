//! `crosstalk export`: a thread as files, text, Markdown or JSON.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::json;
use crate::paragraph::count;
use crate::report::{ExportReport, MessageReport, ThreadReport};
use crate::schema::{EXPORT, Named};
use crate::service::lookup;
use crate::service::workspace::Desk;
use clap::{Args, ValueEnum};
use crosstalk_protocol::archive;
use crosstalk_protocol::store::Record;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Write a thread as files, text, Markdown or JSON
///
/// `text` is all envelopes one after the other, byte for byte, and `files` one file for each: `crosstalk import` reads
/// both. `markdown` is for people, `json` for programs (the form crosstalk.export/1).
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk export 01K74V6R0074 > thread.crosstalk\n  crosstalk export 01K74V6R0074 --format files --out archive/\n  crosstalk export last --format markdown --out decision.md\n\nExit codes: 0 written, 1 not found, or a file is there already (--force replaces it)."
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
        let mut records = lookup::everything(&store, &thread.id)?;
        let all = records.len();
        records.retain(|r| !r.text.is_empty());
        if records.len() < all {
            console.note(&format!(
                "{} left out: the consent is over or was withdrawn",
                count(all - records.len(), "message")
            ))?;
        }
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
                Failure::failed(format!("{name} is there already")).help("--force replaces it")
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
