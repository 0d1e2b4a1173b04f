//! `crosstalk audit export`: a bundle that others check without the relay.

use super::source::{Source, Where};
use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::count;
use crate::service::relay::data::make_folder;
use crate::service::relay::progress::Progress;
use clap::Args;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::audit::bundle::{Contents, write};
use crosstalk_protocol::audit::{Checkpoint, EventKind, Hash, LogEntry, LogQuery, Note, NoteKey};
use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often, and how many times, a log is looked at that lacks the word that a message was erased.
const RHYTHM: Duration = Duration::from_secs(1);
const TRIES: u32 = 10;

/// Write the log of a relay as a folder of text files that anyone can check offline
///
/// Everything up to the latest signed checkpoint: the entries, the messages as they were taken, the checkpoint and the public
/// key. With --thread, --message, --since or --until a part of it, each entry with its proof. Needs the data folder of the
/// relay, or with --relay the token of an admin.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit export --out bundle/\n  crosstalk audit export --relay https://relay.acme.example --token-file admin.token --out bundle/\n  crosstalk audit export --thread 01K74V6R0074 --checkpoint held.note --out part/\n\nExit codes: 0 written, 1 the folder is not empty, nothing is signed yet, or nothing is of the message, thread or time."
)]
pub(super) struct Export {
    #[command(flatten)]
    place: Where,
    /// The folder: a new or an empty one
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Only messages of this thread, and what happened to them: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// Only this message, and what happened to it: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    message: Option<String>,
    /// Not before this time
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    since: Option<Timestamp>,
    /// Not after this time
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    until: Option<Timestamp>,
    /// With a proof that the log extends this older checkpoint; can be given several times
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// Leave out to whom, by whom and why
    #[arg(long)]
    no_details: bool,
}

impl Export {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut source = self.place.open(console)?;
        let key = source.key()?;
        require_empty(&self.out)?;
        let progress = Progress::start("reading the log");
        let is_part = self.thread.is_some()
            || self.message.is_some()
            || self.since.is_some()
            || self.until.is_some();
        let mut asked = LogQuery {
            thread: source.thread(console, self.thread.as_deref())?,
            id: source.message(console, self.message.as_deref())?,
            since: self.since,
            until: self.until,
            most: usize::MAX,
            ..LogQuery::default()
        };
        let mut tries = 0;
        let (note, signed, mut entries) = loop {
            let (note, signed) = signed(&mut source, &key)?;
            asked.to = Some(signed.size);
            asked.texts = Some(clock::exact());
            let mut entries = source.entries(&asked, &mut |n| progress.at(n, signed.size))?;
            if is_part {
                complete(&source, &mut entries, &asked)?;
            }
            if is_whole(&entries) {
                break (note, signed, entries);
            }
            tries += 1;
            if tries == TRIES {
                return Err(Failure::Failed(
                    "a message is over, and that it is erased is not signed yet: try again in a minute".into(),
                ));
            }
            std::thread::sleep(RHYTHM);
        };
        if is_part && entries.is_empty() {
            return Err(source.nothing(&asked));
        }
        let mut proofs = None;
        let mut consistency = Vec::new();
        if is_part {
            progress.next("proving entries");
            let mut all = Vec::with_capacity(entries.len());
            for (done, entry) in (1..).zip(&entries) {
                all.push(source.inclusion(entry.index, signed.size)?);
                progress.at(done, entries.len() as u64);
            }
            proofs = Some(all);
            for file in &self.checkpoint {
                consistency.push(older(&source, file, signed.size)?);
            }
        }
        if self.no_details {
            entries.iter_mut().for_each(|e| e.detail = None);
        }
        progress.next("writing files");
        let files = write(&Contents {
            key: &key,
            note: &note,
            entries: &entries,
            proofs: proofs.as_deref(),
            consistency: &consistency,
        });
        let messages = entries.iter().filter(|e| e.text.is_some()).count();
        let folder = self.out.join("messages");
        make_folder(&folder).map_err(|e| Failure::at(&folder, e))?;
        for (done, (name, text)) in (1..).zip(&files) {
            let path = self.out.join(name);
            write_private(&path, text).map_err(|e| Failure::at(&path, e))?;
            progress.at(done, files.len() as u64);
        }
        progress.end();
        let shown = self.out.to_string_lossy();
        console.talk(&format!(
            "{} of {}, {}, up to {}: {}\nCheck it anywhere with `crosstalk audit verify {}`; give the key by another way.\n",
            entries_of(entries.len()),
            key.name(),
            count(messages, "message"),
            signed.size,
            shown_path(&shown),
            shown_path(&shown),
        ))?;
        Ok(Exit::SUCCESS)
    }
}

/// So many entries.
fn entries_of(number: usize) -> String {
    match number {
        1 => "1 entry".to_owned(),
        n => format!("{n} entries"),
    }
}

/// Writes a file for its owner alone: it may hold the text of a message.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Nothing else is in the folder: what is there would count as part of the bundle. It is made when there is something to write.
fn require_empty(folder: &Path) -> Result<(), Failure> {
    let mut entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|e| Failure::at(folder, e))?,
    };
    match entries.next() {
        Some(_) => Err(Failure::Failed(format!(
            "{} is not empty: name a new folder",
            folder.display()
        ))),
        None => Ok(()),
    }
}

/// The latest checkpoint, and what it says.
fn signed(source: &mut Source, key: &NoteKey) -> Result<(String, Checkpoint), Failure> {
    source.expire()?;
    let note = source.checkpoint()?;
    let parsed = Note::parse(&note);
    let claimed = parsed.as_ref().ok().and_then(|n| n.claim().ok());
    match (parsed.and_then(|n| n.open(key)), claimed) {
        (Ok(signed), _) => Ok((note, signed)),
        (Err(_), Some(claim)) if claim.origin != key.name() => {
            Err(source.renamed(&claim.origin, key.name()))
        }
        (Err(fault), _) => Err(Failure::Failed(format!("the checkpoint: {fault}"))),
    }
}

/// Whether each message that was taken is there, or why it is not.
fn is_whole(entries: &[LogEntry]) -> bool {
    let message = |e: &LogEntry| (e.leaf.id.clone(), e.leaf.canonical);
    let mut ends = HashMap::new();
    for entry in entries {
        if matches!(entry.leaf.kind, EventKind::Erased | EventKind::Accepted) {
            ends.insert(message(entry), entry.index);
        }
    }
    entries.iter().all(|e| {
        let is_taken = e.leaf.kind == EventKind::Accepted;
        let is_last = ends.get(&message(e)) == Some(&e.index);
        !(is_taken && is_last && e.text.is_none())
    })
}

/// A message that is not kept any more comes with the entry that says so.
fn complete(source: &Source, entries: &mut Vec<LogEntry>, whole: &LogQuery) -> Result<(), Failure> {
    let is_gone = |e: &&LogEntry| e.leaf.kind == EventKind::Accepted && e.text.is_none();
    let gone: Vec<String> = entries
        .iter()
        .filter(is_gone)
        .filter_map(|e| e.leaf.id.clone())
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    let mut all: BTreeMap<u64, LogEntry> = std::mem::take(entries)
        .into_iter()
        .map(|e| (e.index, e))
        .collect();
    for id in gone {
        let asked = LogQuery {
            id: Some(id),
            to: whole.to,
            kinds: vec![EventKind::Erased, EventKind::Accepted],
            most: usize::MAX,
            texts: whole.texts,
            ..LogQuery::default()
        };
        for entry in source.entries(&asked, &mut |_| {})? {
            all.entry(entry.index).or_insert(entry);
        }
    }
    *entries = all.into_values().collect();
    Ok(())
}

/// The root at the size of an older checkpoint, and the proof from there.
fn older(source: &Source, file: &Path, size: u64) -> Result<(u64, Hash, Vec<Hash>), Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| Failure::at(file, e))?;
    let claim = Note::parse(&text).and_then(|n| n.claim());
    let claim = claim.map_err(|e| Failure::Failed(format!("{}: {e}", file.display())))?;
    if claim.size > size {
        return Err(Failure::Failed(format!(
            "{} has {} entries, and the log ends at {size}: it was cut. Keep that file, and ask the relay operator",
            file.display(),
            claim.size
        )));
    }
    Ok((
        claim.size,
        claim.root,
        source.consistency(claim.size, size)?,
    ))
}
