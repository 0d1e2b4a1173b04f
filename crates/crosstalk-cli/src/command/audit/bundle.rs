//! `crosstalk audit export` and `verify`: audit bundles and receipts, which are checked without the relay.

use crate::clock;
use crate::console::{Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::{count, wrap};
use crate::report::AuditReport;
use crate::schema::AUDIT_VERIFY;
use crate::service::audit_bundle::{BundleFolder, require_empty};
use crate::service::audit_log::{LogArgument, LogSource, known_keys, log_key};
use crate::service::relay::progress::ProgressLine;
use clap::Args;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::bundle::{
    self, Against, BundleContents, BundleFault, BundleFiles as _, BundleReport, Wrong, write,
};
use crosstalk_protocol::audit::{
    EventKind, Hash, LogEntry, LogQuery, LogReceipt, Note, NoteKey, ReceiptError,
};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often, and how many times, the export waits for the log to record that a message was erased.
const RHYTHM: Duration = Duration::from_secs(1);
const TRIES: u32 = 10;

/// Write the log of a relay as a folder of text files that anyone can check offline
///
/// Writes everything up to the latest signed checkpoint: the entries, the messages as they were accepted, the checkpoint and the
/// public key. With --thread, --message, --since or --until a part of it, each entry with its proof. Needs the data folder of the
/// relay, or with --relay the token of an admin.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit export --out bundle/\n  crosstalk audit export --relay https://relay.acme.example --token-file admin.token --out bundle/\n  crosstalk audit export --thread 01K74V6R0074 --checkpoint held.note --out part/\n\nExit codes: 0 written, 1 the folder is not empty, nothing is signed yet, or nothing is of the message, thread or time."
)]
pub(super) struct ExportBundle {
    #[command(flatten)]
    place: LogArgument,
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
    /// Leave out the details: recipients, credentials and reasons
    #[arg(long)]
    no_details: bool,
}

impl ExportBundle {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let mut source = self.place.open(console)?;
        let key = source.key()?;
        require_empty(&self.out)?;
        let progress = ProgressLine::start("reading the log");
        let is_part = self.thread.is_some()
            || self.message.is_some()
            || self.since.is_some()
            || self.until.is_some();
        let mut asked = LogQuery {
            thread: source.thread(console, self.thread.as_deref())?,
            id: source.message(console, self.message.as_deref())?,
            since: self.since,
            until: self.until,
            limit: usize::MAX,
            ..LogQuery::default()
        };
        let mut tries = 0;
        let (note, signed, mut entries) = loop {
            let (note, signed) = source.signed(&key)?;
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
                return Err(Failure::failed(
                    "a message has expired, and the log does not record its erasure yet",
                )
                .help("try again in a minute"));
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
        let files = write(&BundleContents {
            key: &key,
            note: &note,
            entries: &entries,
            proofs: proofs.as_deref(),
            consistency: &consistency,
        });
        let messages = entries.iter().filter(|e| e.text.is_some()).count();
        let all = files.len() as u64;
        BundleFolder::at(&self.out).write(&files, &mut |done| progress.at(done, all))?;
        progress.end();
        let shown = self.out.to_string_lossy();
        console.talk(&format!(
            "{} of {}, {}, up to {}: {}\nCheck it anywhere with `crosstalk audit verify {}`; pass the key on over another channel.\n",
            entries_of(entries.len()),
            key.name(),
            count(messages, "message"),
            signed.size,
            shown_path(&shown),
            shown_path(&shown),
        ))
    }
}

fn entries_of(number: usize) -> String {
    match number {
        1 => "1 entry".to_owned(),
        n => format!("{n} entries"),
    }
}

/// Whether each accepted message has its text or the entry that says it was erased.
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

/// Adds, for each message that was erased, the entry that says so.
fn complete(
    source: &LogSource,
    entries: &mut Vec<LogEntry>,
    whole: &LogQuery,
) -> Result<(), Failure> {
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
            limit: usize::MAX,
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
fn older(source: &LogSource, file: &Path, size: u64) -> Result<(u64, Hash, Vec<Hash>), Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| Failure::at(file, e))?;
    let claim = Note::parse(&text).and_then(|n| n.claim());
    let claim = claim.map_err(|e| Failure::failed(format!("{}: {e}", file.display())))?;
    if claim.size > size {
        return Err(Failure::failed(format!(
            "{} has {} entries, and the log ends at {size}: it was cut",
            file.display(),
            claim.size
        ))
        .help("keep that file, and ask the relay operator"));
    }
    Ok((
        claim.size,
        claim.root,
        source.consistency(claim.size, size)?,
    ))
}

/// Check a bundle, or the receipt of a message: no relay and no network is needed
///
/// Names the first fault, its place, and what to do. A signature proves something only with a key that did not
/// come with the bundle: give it with --key, or pin it under the name of the relay (`crosstalk trust pin`). A
/// checkpoint that you kept from before shows whether the log was rewritten or cut since.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit verify bundle/ --key relay.key\n  crosstalk audit verify bundle/ --key relay.key --checkpoint held.note\n  crosstalk audit verify receipt.tlog-proof --message sent.aict --key relay.key\n\nExit codes: 0 everything holds, 20 it holds, and the key came with it, 24 something does not hold, 30 the log was\nrewritten: two checkpoints contradict each other, 12 it is no bundle, or the message is none, 1 a file can't be read."
)]
pub(super) struct VerifyBundle {
    /// The folder of a bundle, or the file of a receipt
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The public key of the log: name+hash+key, a file with it, a PEM file or a record
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// A checkpoint that you kept from before; can be given several times
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    /// Of a receipt: the message
    #[arg(long, value_name = "FILE")]
    message: Option<PathBuf>,
    /// Print JSON of the form crosstalk.audit-verify/1
    #[arg(long)]
    json: bool,
}

impl VerifyBundle {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.path.is_dir() {
            true => self.bundle(console),
            false => self.receipt(console),
        }
    }

    /// The key to check with, for the log of a name.
    fn trusted(&self, own: Option<&NoteKey>, name: &str) -> Result<Option<NoteKey>, Failure> {
        if let Some(text) = &self.key {
            return log_key(text, name).map(Some);
        }
        let known = known_keys(name)?;
        let mut keys = known.into_iter().filter_map(|k| NoteKey::new(name, k).ok());
        Ok(match own {
            // Of several, the one that it is signed with.
            Some(own) => {
                let all: Vec<NoteKey> = keys.collect();
                let same = all.iter().find(|k| *k == own).cloned();
                same.or_else(|| all.into_iter().next())
            }
            None => keys.next(),
        })
    }

    fn bundle(&self, console: &mut Console) -> Result<Exit, Failure> {
        let folder = BundleFolder::at(&self.path);
        let mut held = Vec::new();
        for file in &self.checkpoint {
            let read = std::fs::read_to_string(file);
            held.push(read.map_err(|e| Failure::at(file, e))?);
        }
        let own = folder.read(bundle::KEY).ok().flatten();
        let own = own.and_then(|b| NoteKey::parse(std::str::from_utf8(&b).ok()?.trim_end()).ok());
        let name = own.as_ref().map_or("", NoteKey::name);
        let trusted = match &own {
            Some(key) => self.trusted(Some(key), name)?,
            None => None,
        };
        let against = Against {
            key: trusted.as_ref(),
            held: &held,
        };
        let progress = ProgressLine::start("checking messages");
        let checked = bundle::check(&folder, &against, &mut |done, all| progress.at(done, all));
        progress.end();
        match checked {
            Ok(checked) => self.holds(console, &checked, trusted.is_some()),
            Err(wrong) => self.fails(console, &wrong),
        }
    }

    fn holds(
        &self,
        console: &mut Console,
        checked: &BundleReport,
        is_trusted: bool,
    ) -> Result<Exit, Failure> {
        let exit = match is_trusted {
            true => Exit::SUCCESS,
            false => VerdictWord::FirstContact.into(),
        };
        if self.json {
            console.report(AUDIT_VERIFY, &AuditReport::of_bundle(checked, is_trusted))?;
            return Ok(exit);
        }
        let word = match is_trusted {
            true => styled(GREEN, "holds"),
            false => styled(YELLOW, "holds, by the key that came with it"),
        };
        let kinds: Vec<String> = checked
            .kinds
            .iter()
            .map(|(kind, n)| format!("{n} {}", kind.as_str()))
            .collect();
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let scope = match checked.is_all {
            true => "the whole log",
            false => "a part of the log",
        };
        let mut out = format!(
            "{word}  {} of {}, {} entries signed\n",
            scope,
            escape(&checked.checkpoint.origin),
            checked.checkpoint.size
        );
        if !kinds.is_empty() {
            out.push_str(&format!("  {}\n", kinds.join(", ")));
        }
        out.push_str(&format!(
            "  {}, each the text that was accepted; {} erased\n",
            count(number(checked.messages), "message"),
            checked.erased
        ));
        if let Some((first, last)) = checked.span {
            out.push_str(&styled(DIM, &format!("  from {first} to {last}\n")));
        }
        if checked.extended > 0 {
            let held = count(checked.extended, "older checkpoint");
            out.push_str(&format!("  it extends {held}\n"));
        }
        console.show(&out)?;
        if !is_trusted {
            let advice = format!(
                "The author of the bundle could have made the key. Compare it with the key that {} publishes elsewhere, and pass it with --key:\n  {}\n",
                escape(&checked.checkpoint.origin),
                escape(&checked.key.to_string())
            );
            console.talk(&advice)?;
        }
        Ok(exit)
    }

    fn fails(&self, console: &mut Console, wrong: &Wrong) -> Result<Exit, Failure> {
        let exit = match &wrong.trouble {
            BundleFault::Unread => Exit::FAILURE,
            BundleFault::Form => crosstalk_envelope::ErrorCode::Format.into(),
            BundleFault::Broken | BundleFault::Apart => VerdictWord::NotVerified.into(),
            BundleFault::Fork(_) => Exit::FORK,
        };
        let fork = match &wrong.trouble {
            BundleFault::Fork(fork) => Some(fork),
            _ => None,
        };
        if self.json {
            console.report(
                AUDIT_VERIFY,
                &AuditReport::of_fault(wrong, exit, fork.map(AsRef::as_ref)),
            )?;
            return Ok(exit);
        }
        let word = match fork {
            Some(_) => "the log was rewritten",
            None => "does not hold",
        };
        console.show(&format!(
            "{}  {}\n",
            styled(RED, word),
            shown_path(&self.path.to_string_lossy())
        ))?;
        console.show(&format!("  {}\n", wrap(&escape(&wrong.to_string()), 2, 2)))?;
        console.show(&format!("  {}\n", wrap(wrong.help, 2, 2)))?;
        if let Some(fork) = fork {
            let notes = [
                ("the one that you kept", &fork.held),
                ("the one that was shown", &fork.shown),
            ];
            for (whose, note) in notes {
                console.show(&format!("\n{}\n{}", styled(DIM, whose), escape(note)))?;
            }
        }
        Ok(exit)
    }

    fn receipt(&self, console: &mut Console) -> Result<Exit, Failure> {
        let read = |path: &PathBuf| {
            let text = std::fs::read_to_string(path);
            text.map_err(|e| Failure::at(path, e))
        };
        let text = read(&self.path)?;
        let Some(file) = &self.message else {
            return Err(Failure::usage("a receipt is checked against its message")
                .help("give it with --message FILE"));
        };
        let message = read(file)?;
        let broken = |what: String| Wrong {
            trouble: BundleFault::Broken,
            file: self.path.to_string_lossy().into_owned(),
            line: None,
            what,
            help: "Ask the relay for the receipt again: crosstalk audit receipt",
        };
        let receipt = match LogReceipt::parse(&text) {
            Ok(receipt) => receipt,
            Err(e) => {
                let wrong = Wrong {
                    trouble: BundleFault::Form,
                    ..broken(e.to_string())
                };
                return self.fails(console, &wrong);
            }
        };
        let claim = crosstalk_protocol::audit::Note::parse(&receipt.note).and_then(|n| n.claim());
        let origin = claim.map(|c| c.origin).unwrap_or_default();
        let Some(key) = self.trusted(None, &origin)? else {
            return Err(
                Failure::usage(format!("there is no key of `{origin}` here"))
                    .help("give it with --key, or pin it"),
            );
        };
        let opened = receipt
            .open(&key)
            .and_then(|c| receipt.is_of(&message).map(|()| c));
        let checkpoint = match opened {
            Ok(checkpoint) => checkpoint,
            Err(e @ ReceiptError::Unreadable) => {
                let wrong = Wrong {
                    trouble: BundleFault::Form,
                    file: file.to_string_lossy().into_owned(),
                    help: "Give the message as it was handed in: one envelope and nothing else",
                    ..broken(e.to_string())
                };
                return self.fails(console, &wrong);
            }
            Err(e) => return self.fails(console, &broken(e.to_string())),
        };
        if self.json {
            let report = AuditReport::of_receipt(&key, &checkpoint, &receipt);
            console.report(AUDIT_VERIFY, &report)?;
            return Ok(Exit::SUCCESS);
        }
        console.show(&format!(
            "{} {} accepted this message at {}: entry {} of {}\n",
            styled(GREEN, "holds"),
            escape(&checkpoint.origin),
            receipt.leaf.at,
            receipt.index,
            checkpoint.size
        ))?;
        Ok(Exit::SUCCESS)
    }
}
