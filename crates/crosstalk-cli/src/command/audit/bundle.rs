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
use crate::service::audit_log::{LogArgument, LogSource, known_keys, log_key, parse_note_key};
use crate::service::relay::progress::ProgressLine;
use clap::Args;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::bundle::{
    self, Against, BundleContents, BundleFault, BundleReport, MessageKey, Wrong, write_chains,
};
use crosstalk_protocol::audit::{
    ChainId, Checkpoint, EventKind, Hash, LogEntry, LogPlace, LogQuery, LogReceipt, Note, NoteKey,
    ReceiptError,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
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

/// A chain on its way into a bundle.
struct ExportedChain {
    id: ChainId,
    key: NoteKey,
    note: String,
    signed: Checkpoint,
    entries: Vec<LogEntry>,
    proofs: Option<Vec<Vec<Hash>>>,
    consistency: Vec<(u64, Hash, Vec<Hash>)>,
}

impl ExportedChain {
    fn contents(&self) -> (ChainId, BundleContents<'_>) {
        let contents = BundleContents {
            key: &self.key,
            note: &self.note,
            entries: &self.entries,
            proofs: self.proofs.as_deref(),
            consistency: &self.consistency,
        };
        (self.id, contents)
    }
}

impl ExportBundle {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let mut source = self.place.open(console)?;
        let mut keys = Vec::new();
        for chain in source.chains()? {
            keys.push((chain, source.key(chain)?));
        }
        require_empty(&self.out)?;
        let progress = ProgressLine::start("reading the log");
        let is_part = self.is_part();
        let mut asked = LogQuery {
            thread: source.thread(console, self.thread.as_deref())?,
            id: source.message(console, self.message.as_deref())?,
            since: self.since,
            until: self.until,
            limit: usize::MAX,
            ..LogQuery::default()
        };
        let mut tries = 0;
        let mut chains = loop {
            asked.texts = Some(clock::exact());
            let chains = read_chains(&mut source, &keys, &asked, is_part, &progress)?;
            if is_whole(&chains) {
                break chains;
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
        if is_part && chains.iter().all(|chain| chain.entries.is_empty()) {
            return Err(source.nothing(&asked));
        }
        if is_part {
            progress.next("proving entries");
            self.prove(&source, &mut chains, &progress)?;
        }
        if self.no_details {
            let entries = chains.iter_mut().flat_map(|chain| &mut chain.entries);
            entries.for_each(|entry| entry.detail = None);
        }
        progress.next("writing files");
        let contents: Vec<_> = chains.iter().map(ExportedChain::contents).collect();
        let files = write_chains(&contents);
        let all = files.len() as u64;
        BundleFolder::at(&self.out).write(&files, &mut |done| progress.at(done, all))?;
        progress.end();
        let shown = self.out.to_string_lossy();
        for chain in &chains {
            let messages = chain.entries.iter().filter(|e| e.text.is_some()).count();
            console.talk(&format!(
                "{} of {}, {}, up to {}: {}\n",
                entries_of(chain.entries.len()),
                chain.key.name(),
                count(messages, "message"),
                chain.signed.size,
                shown_path(&shown),
            ))?;
        }
        console.talk(&format!(
            "Check it anywhere with `crosstalk audit verify {}`; pass the {} on over another channel.\n",
            shown_path(&shown),
            if chains.len() == 1 { "key" } else { "keys" },
        ))
    }

    fn is_part(&self) -> bool {
        self.thread.is_some()
            || self.message.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }

    /// Adds the proof of each entry, and the proofs from older checkpoints.
    fn prove(
        &self,
        source: &LogSource,
        chains: &mut [ExportedChain],
        progress: &ProgressLine,
    ) -> Result<(), Failure> {
        let total: u64 = chains.iter().map(|chain| chain.entries.len() as u64).sum();
        let mut done = 0;
        for chain in &mut *chains {
            let mut all = Vec::with_capacity(chain.entries.len());
            for entry in &chain.entries {
                let place = LogPlace {
                    chain: chain.id,
                    index: entry.index,
                };
                all.push(source.inclusion(place, chain.signed.size)?);
                done += 1;
                progress.at(done, total);
            }
            chain.proofs = Some(all);
        }
        for file in &self.checkpoint {
            let claim = older(file)?;
            // A checkpoint of another log is compared with the first chain, and does not fit it.
            let is_its = |chain: &ExportedChain| chain.key.name() == claim.origin;
            let place = chains.iter().position(is_its).unwrap_or_default();
            if let Some(chain) = chains.get_mut(place) {
                let proof = proof_from(source, file, &claim, chain)?;
                chain.consistency.push((claim.size, claim.root, proof));
            }
        }
        Ok(())
    }
}

/// Reads what is signed of each chain.
fn read_chains(
    source: &mut LogSource,
    keys: &[(ChainId, NoteKey)],
    asked: &LogQuery,
    is_part: bool,
    progress: &ProgressLine,
) -> Result<Vec<ExportedChain>, Failure> {
    let mut chains = Vec::new();
    for (id, key) in keys {
        let (note, signed) = source.signed(*id, key)?;
        let asked = LogQuery {
            chain: *id,
            to: Some(signed.size),
            ..asked.clone()
        };
        let entries = source.entries(&asked, &mut |n| progress.at(n, signed.size))?;
        chains.push(ExportedChain {
            id: *id,
            key: key.clone(),
            note,
            signed,
            entries,
            proofs: None,
            consistency: Vec::new(),
        });
    }
    if is_part {
        complete(source, &mut chains, asked)?;
    }
    Ok(chains)
}

fn entries_of(number: usize) -> String {
    match number {
        1 => "1 entry".to_owned(),
        n => format!("{n} entries"),
    }
}

fn message_of(entry: &LogEntry) -> MessageKey {
    (entry.leaf.id.clone(), entry.leaf.canonical)
}

/// Whether each accepted message has its text or the entry that says it was erased, in any chain.
fn is_whole(chains: &[ExportedChain]) -> bool {
    let mut known: HashMap<MessageKey, BTreeSet<ChainId>> = HashMap::new();
    for chain in chains {
        let ends = chain.entries.iter().filter(|entry| {
            let is_kept = entry.leaf.kind == EventKind::Accepted && entry.text.is_some();
            is_kept || entry.leaf.kind == EventKind::Erased
        });
        for entry in ends {
            known.entry(message_of(entry)).or_default().insert(chain.id);
        }
    }
    let is_elsewhere = |chain: ChainId, entry: &LogEntry| {
        let found = known.get(&message_of(entry));
        found.is_some_and(|chains| chains.iter().any(|other| *other != chain))
    };
    chains.iter().all(|chain| {
        let mut ends = HashMap::new();
        for entry in &chain.entries {
            if matches!(entry.leaf.kind, EventKind::Erased | EventKind::Accepted) {
                ends.insert(message_of(entry), entry.index);
            }
        }
        chain.entries.iter().all(|entry| {
            let is_taken = entry.leaf.kind == EventKind::Accepted;
            let is_last = ends.get(&message_of(entry)) == Some(&entry.index);
            let is_missing = is_taken && is_last && entry.text.is_none();
            !is_missing || is_elsewhere(chain.id, entry)
        })
    })
}

/// Adds, for each message that was erased, the entries that say so.
fn complete(
    source: &LogSource,
    chains: &mut [ExportedChain],
    whole: &LogQuery,
) -> Result<(), Failure> {
    let is_gone = |e: &&LogEntry| e.leaf.kind == EventKind::Accepted && e.text.is_none();
    let entries = chains.iter().flat_map(|chain| &chain.entries);
    let gone: BTreeSet<String> = entries
        .filter(is_gone)
        .filter_map(|e| e.leaf.id.clone())
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    for chain in chains {
        let own = std::mem::take(&mut chain.entries).into_iter();
        let mut all: BTreeMap<u64, LogEntry> = own.map(|e| (e.index, e)).collect();
        for id in &gone {
            let asked = LogQuery {
                chain: chain.id,
                id: Some(id.clone()),
                to: Some(chain.signed.size),
                kinds: vec![EventKind::Erased, EventKind::Accepted],
                limit: usize::MAX,
                texts: whole.texts,
                ..LogQuery::default()
            };
            for entry in source.entries(&asked, &mut |_| {})? {
                all.entry(entry.index).or_insert(entry);
            }
        }
        chain.entries = all.into_values().collect();
    }
    Ok(())
}

/// What an older checkpoint says.
fn older(file: &Path) -> Result<Checkpoint, Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| Failure::at(file, e))?;
    let claim = Note::parse(&text).and_then(|n| n.claim());
    claim.map_err(|e| Failure::failed(format!("{}: {e}", file.display())))
}

/// The proof that a chain extends an older checkpoint.
fn proof_from(
    source: &LogSource,
    file: &Path,
    claim: &Checkpoint,
    chain: &ExportedChain,
) -> Result<Vec<Hash>, Failure> {
    let size = chain.signed.size;
    if claim.size > size {
        return Err(Failure::failed(format!(
            "{} has {} entries, and the log ends at {size}: it was cut",
            file.display(),
            claim.size
        ))
        .help("keep that file, and ask the relay operator"));
    }
    source.consistency(chain.id, claim.size, size)
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
    /// The public key of the log: name+hash+key, a file with it, a PEM file or a record; can be given several times, for the
    /// chains of relays that share a store
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,
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

    /// The keys that are known for an origin: those that were given, or else those that are pinned or that its domain lists.
    fn known(&self, origin: &str) -> Result<Vec<NoteKey>, Failure> {
        if self.key.is_empty() {
            let pinned = known_keys(origin)?.into_iter();
            return Ok(pinned
                .filter_map(|k| NoteKey::new(origin, k).ok())
                .collect());
        }
        self.key.iter().map(|text| log_key(text, origin)).collect()
    }

    /// The key to check a chain with, if one is known: the one that it is signed with, if that is among them.
    fn trusted(&self, own: &NoteKey) -> Result<Option<NoteKey>, Failure> {
        let known = self.known(own.name())?;
        if known.contains(own) {
            return Ok(Some(own.clone()));
        }
        let (_, chain) = ChainId::of_origin(own.name());
        let given = self.key.iter().filter_map(|text| parse_note_key(text));
        let mut named = given.filter(|key| key.name() == own.name());
        Ok(match chain {
            ChainId::FIRST => known.into_iter().next(),
            // The keys of other relays say nothing about this one.
            _ => named.next(),
        })
    }

    fn bundle(&self, console: &mut Console) -> Result<Exit, Failure> {
        let folder = BundleFolder::at(&self.path);
        let mut held = Vec::new();
        for file in &self.checkpoint {
            let read = std::fs::read_to_string(file);
            held.push(read.map_err(|e| Failure::at(file, e))?);
        }
        let mut keys = BTreeMap::new();
        for (chain, own) in own_keys(&folder) {
            if let Some(key) = self.trusted(&own)? {
                keys.insert(chain, key);
            }
        }
        let against = Against { keys, held: &held };
        let progress = ProgressLine::start("checking messages");
        let checked = bundle::check(&folder, &against, &mut |done, all| progress.at(done, all));
        progress.end();
        match checked {
            Ok(checked) => self.holds(console, &checked, &against.keys),
            Err(wrong) => self.fails(console, &wrong),
        }
    }

    fn holds(
        &self,
        console: &mut Console,
        checked: &BundleReport,
        keys: &BTreeMap<ChainId, NoteKey>,
    ) -> Result<Exit, Failure> {
        let is_trusted = |chain: ChainId| keys.contains_key(&chain);
        let others = checked
            .others
            .iter()
            .map(|(chain, report)| (*chain, report));
        let chains: Vec<_> = std::iter::once((ChainId::FIRST, checked))
            .chain(others)
            .collect();
        let exit = match chains.iter().all(|(chain, _)| is_trusted(*chain)) {
            true => Exit::SUCCESS,
            false => VerdictWord::FirstContact.into(),
        };
        if self.json {
            console.report(AUDIT_VERIFY, &AuditReport::of_bundle(checked, &is_trusted))?;
            return Ok(exit);
        }
        for (chain, report) in &chains {
            console.show(&shown_report(report, is_trusted(*chain)))?;
        }
        for (_, report) in chains.iter().filter(|(chain, _)| !is_trusted(*chain)) {
            let advice = format!(
                "The author of the bundle could have made the key. Compare it with the key that {} publishes elsewhere, and pass it with --key:\n  {}\n",
                escape(&report.checkpoint.origin),
                escape(&report.key.to_string())
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
        let known = self.known(&origin)?;
        let signs = |key: &&NoteKey| receipt.open(key).is_ok();
        let Some(key) = known.iter().find(signs).or(known.first()) else {
            return Err(
                Failure::usage(format!("there is no key of `{origin}` here"))
                    .help("give it with --key, or pin it"),
            );
        };
        let opened = receipt
            .open(key)
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
            let report = AuditReport::of_receipt(key, &checkpoint, &receipt);
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

/// What holds of a chain, for a person.
fn shown_report(checked: &BundleReport, is_trusted: bool) -> String {
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
    out
}

/// The keys that came with a bundle, by their chains.
fn own_keys(folder: &BundleFolder) -> BTreeMap<ChainId, NoteKey> {
    let read = |name: &str| folder.text(name).ok().flatten();
    let own = read(bundle::KEY).and_then(|text| NoteKey::parse(text.trim_end()).ok());
    let listed = read(bundle::CHAINS).unwrap_or_default();
    let listed = listed.lines().filter_map(|line| {
        let (number, key) = line.split_once(' ')?;
        Some((ChainId::parse(number)?, NoteKey::parse(key).ok()?))
    });
    let mut keys: BTreeMap<ChainId, NoteKey> = listed.collect();
    keys.extend(own.map(|key| (ChainId::FIRST, key)));
    keys
}
