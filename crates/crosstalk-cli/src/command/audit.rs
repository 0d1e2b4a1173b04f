//! `crosstalk audit`: traces messages, reads and watches the log of a relay.

mod bundle;

use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Files, Input, shown_path};
use crate::report::{LogEntryReport, TraceReport};
use crate::schema::{AUDIT_LOG, AUDIT_TRACE, NamedForm};
use crate::service::audit_bundle::BundleFolder;
use crate::service::audit_log::{LogArgument, LogSource, any_public_key, keys_in, log_key};
use crate::service::dns::{DnsLookup, DnsOptions};
use crate::service::home::KeysAndTrust;
use crate::{clock, json, view};
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, PublicKey, Reading, Timestamp};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::bundle::{Against, check as check_bundle};
use crosstalk_protocol::audit::{
    ChainId, Checkpoint, EventKind, LogEntry, LogQuery, Note, NoteKey, extends,
};
use crosstalk_protocol::dns::DnsAnswer;
use crosstalk_protocol::relay::{HopSignature, HopStep, hops_of, trace};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

group! {
    /// Trace messages and check the log of a relay
    ///
    /// `trace` and `verify` need nothing but files. `log` and `export` read the data folder of a relay, or ask one over the
    /// network with the token of an admin. `watch` is for a second machine that remembers the relay's checkpoints.
    #[command(
        after_help = "Examples:\n  crosstalk audit trace message.aict\n  crosstalk audit export --out bundle/\n  crosstalk audit verify bundle/ --key relay.key\n  crosstalk audit log --kind refused --since 2026-11-01T00:00:00Z"
    )]
    Audit {
        Trace(TraceMessage),
        Log(ShowLog),
        Export(bundle::ExportBundle),
        Verify(bundle::VerifyBundle),
        Receipt(GetReceipt),
        Watch(WatchLog),
    }
}

/// Show the hops of a message and check each of them
///
/// Every relay adds a hop: when it had the message, from whom, and where it is in its log. Each hop covers the one before
/// with its digest. A signature is checked with the keys that are pinned here, or with --dns those of the domain.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit trace message.aict\n  crosstalk audit trace --dns message.aict\n  crosstalk audit trace --json message.aict | jq -r '.hops[].by'\n\nExit codes: 0 every hop follows and is signed by a key that is known, 20 a hop has an unknown key or is not\nsigned, 24 a hop does not hold, 12 the text can't be read."
)]
struct TraceMessage {
    #[command(flatten)]
    files: Files,
    /// Check all signatures with this key and no other: name+hash+key, a file with it, a PEM file or a record
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    look: DnsOptions,
    /// Print JSON of the form crosstalk.audit-trace/1, one object per line
    #[arg(long)]
    json: bool,
}

impl TraceMessage {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let given = self.key.as_deref().map(any_public_key).transpose()?;
        let rooms = KeysAndTrust::open()?;
        let mut trust = rooms.trust()?;
        let mut lookup = DnsLookup::new(&self.look, &rooms)?;
        self.files.each(console, |console, input: &Input| {
            let (text, scan) = input.scan(Reading::Strict);
            let _ = text;
            let mut exit = Exit::SUCCESS;
            for document in &scan.documents {
                let mut asked: Vec<(String, PublicKey)> = Vec::new();
                for hop in hops_of(document).into_iter().flatten() {
                    let by = hop.received_by;
                    if let Some(DnsAnswer::Keys { keys, .. }) =
                        lookup.ask(console, &by, &mut trust)?
                    {
                        asked.extend(keys.into_iter().map(|k| (by.clone(), k)));
                    }
                }
                let keys = |name: &str| match &given {
                    Some(key) => vec![*key],
                    None => {
                        let answered = asked.iter().filter(|(n, _)| n == name);
                        let answered = answered.map(|(_, k)| *k);
                        keys_in(&trust, name).into_iter().chain(answered).collect()
                    }
                };
                let steps = trace(document, &keys);
                exit = exit.worst(self.tell(console, input, document, &steps)?);
            }
            if scan.documents.is_empty() {
                let name = input.shown_name();
                return Err(Failure::malformed(format!(
                    "{name}: there is no envelope in it"
                )));
            }
            Ok(exit)
        })
    }

    fn tell(
        &self,
        console: &mut Console,
        input: &Input,
        document: &Document<'_>,
        steps: &[HopStep],
    ) -> Result<Exit, Failure> {
        let exit = steps.iter().map(judged).fold(Exit::SUCCESS, Exit::worst);
        if self.json {
            let file = self.files.several().then_some(input.name.as_str());
            let report = TraceReport::new(document, steps, file);
            console.data(json::line(&NamedForm::new(AUDIT_TRACE, &report))?)?;
            return Ok(exit);
        }
        let envelope = document.envelope();
        let id = envelope.message.unwrap_or("without an id");
        console.show(&format!(
            "{}  {} → {}\n",
            styled(BOLD, &escape(id)),
            escape(document.sender()),
            escape(envelope.receiver.as_str()),
        ))?;
        if steps.is_empty() {
            console.show("  no hops: no relay has passed it on\n")?;
        }
        for step in steps {
            console.show(&shown(step))?;
        }
        Ok(exit)
    }
}

fn judged(step: &HopStep) -> Exit {
    match (&step.signed, step.faults.is_empty()) {
        (_, false) => VerdictWord::NotVerified.into(),
        (HopSignature::Verified(_), true) => Exit::SUCCESS,
        (_, true) => VerdictWord::FirstContact.into(),
    }
}

fn shown(step: &HopStep) -> String {
    let mark = match judged(step) {
        Exit::SUCCESS => styled(GREEN, "✓"),
        exit if exit == Exit::from(VerdictWord::FirstContact) => styled(YELLOW, "?"),
        _ => styled(RED, "✗"),
    };
    let (mut by, mut at, mut chain) = (String::from("?"), String::from("?"), String::new());
    if let Some(hop) = &step.hop {
        by = escape(&hop.received_by).into_owned();
        at = hop.received_at.to_string();
        if let Some(place) = &hop.chain {
            chain = format!("  log {}", escape(place));
        }
    }
    let gap = step.since.map(passed).unwrap_or_default();
    let signed = match &step.signed {
        HopSignature::Verified(_) => "signed by a known key",
        HopSignature::Unknown(_) => "signed by an unknown key",
        HopSignature::Wrong(_) => "the signature does not verify",
        HopSignature::No => "not signed",
    };
    let mut out = format!(
        "  {mark} {}  {at}{}  {}{}\n",
        step.place,
        styled(DIM, &gap),
        styled(BOLD, &by),
        styled(DIM, &format!("  {signed}{chain}"))
    );
    for fault in &step.faults {
        out.push_str(&format!("      {}\n", styled(RED, fault.sentence())));
    }
    out
}

/// The time between two hops.
fn passed(millis: i64) -> String {
    let sign = if millis < 0 { '-' } else { '+' };
    match millis.unsigned_abs() {
        ms @ 0..10_000 => format!("  {sign}{ms} ms"),
        ms @ 10_000..600_000 => format!("  {sign}{} s", ms / 1000),
        ms @ 600_000..36_000_000 => format!("  {sign}{} min", ms / 60_000),
        ms => format!("  {sign}{} h", ms / 3_600_000),
    }
}

const RHYTHM: Duration = Duration::from_secs(1);

/// Read the log of a relay: messages accepted, rejected, delivered and erased, with times
///
/// Works on the data folder of a relay, or with --relay over the network (needs the token of an admin). The oldest entry
/// comes first; without --from and --since, the last ones are shown. With BUNDLE, the command checks a folder that
/// `audit export --out` wrote, and reads the log in it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit log\n  crosstalk audit log --kind refused --kind failed --since 2026-11-01T00:00:00Z\n  crosstalk audit log --message 01K74V8QF857CTA8MBHN4ZW0ZK\n  crosstalk audit log --json --from 0 -n 100000 | jq -r .leaf\n  crosstalk audit log bundle/ --kind granted --kind revoked\n\nExit codes: 0 shown, 1 nothing in the log is of the message or thread, 14 the\nbundle can't be used."
)]
struct ShowLog {
    /// An audit bundle to read, in place of the log of a relay
    #[arg(value_name = "BUNDLE", conflicts_with_all = ["data", "relay", "follow", "thread"])]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    place: LogArgument,
    /// Only this kind; can be given several times
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<EventKind>,
    /// The chain of a relay that shares its store with others, by its number [default: the first one]
    #[arg(long, value_name = "NUMBER", value_parser = chain, default_value = "0", hide_default_value = true)]
    chain: ChainId,
    /// From this index on
    #[arg(long, value_name = "INDEX")]
    from: Option<u64>,
    /// Not before this time
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    since: Option<Timestamp>,
    /// Not after this time
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    until: Option<Timestamp>,
    /// Only of this message: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    message: Option<String>,
    /// Only of the messages of this thread: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// How many entries at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Go on, and show what is added
    #[arg(long)]
    follow: bool,
    /// Print JSON of the form crosstalk.audit-log/1, one object per line
    #[arg(long)]
    json: bool,
}

/// The number of a chain.
fn chain(text: &str) -> Result<ChainId, String> {
    ChainId::parse(text).ok_or_else(|| "write a number, such as 1".to_owned())
}

fn kind(text: &str) -> Result<EventKind, String> {
    let all = || EventKind::ALL.map(EventKind::as_str).join(", ");
    EventKind::parse(text).ok_or_else(|| format!("write one of these: {}", all()))
}

impl ShowLog {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        if let Some(bundle) = &self.bundle {
            return self.run_on_bundle(console, bundle);
        }
        let source = self.place.open(console)?;
        source.require_chain(self.chain)?;
        let mut asked = LogQuery {
            chain: self.chain,
            from: self.from.unwrap_or(0),
            kinds: self.kind.clone(),
            since: self.since,
            until: self.until,
            id: source.message(console, self.message.as_deref())?,
            thread: source.thread(console, self.thread.as_deref())?,
            limit: usize::try_from(self.limit).unwrap_or(usize::MAX),
            newest: self.from.is_none() && self.since.is_none(),
            ..LogQuery::default()
        };
        let mut next = self.print(console, &source, &asked)?;
        if next.is_none() && !self.follow {
            if asked.id.is_some() || asked.thread.is_some() {
                return Err(source.nothing(&asked));
            }
            if !self.json {
                console.talk("The log has no such entry.\n")?;
            }
        }
        if !self.follow {
            return Ok(Exit::SUCCESS);
        }
        // Until somebody ends it.
        loop {
            std::thread::sleep(RHYTHM);
            asked.newest = false;
            asked.from = next.unwrap_or(asked.from);
            next = self.print(console, &source, &asked)?.or(next);
        }
    }

    /// Checks a bundle and prints entries of its log.
    fn run_on_bundle(&self, console: &mut Console, folder: &Path) -> Result<Exit, Failure> {
        let mut entries = bundle_entries(folder, self.chain)?;
        entries.retain(|entry| {
            let leaf = &entry.leaf;
            let id = leaf.id.as_deref().unwrap_or_default();
            self.from.is_none_or(|from| entry.index >= from)
                && (self.kind.is_empty() || self.kind.contains(&leaf.kind))
                && self.since.is_none_or(|since| leaf.at >= since)
                && self.until.is_none_or(|until| leaf.at <= until)
                && self.message.as_deref().is_none_or(|m| id.starts_with(m))
        });
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let surplus = entries.len().saturating_sub(limit);
        match self.from.is_none() && self.since.is_none() {
            true => drop(entries.drain(..surplus)),
            false => entries.truncate(limit),
        }
        if entries.is_empty() {
            if self.message.is_some() {
                return Err(Failure::failed("the bundle has no such entry"));
            }
            console.talk("The bundle has no such entry.\n")?;
            return Ok(Exit::SUCCESS);
        }
        self.show(console, self.chain, &entries)?;
        Ok(Exit::SUCCESS)
    }

    /// Prints entries. The index behind the last.
    fn print(
        &self,
        console: &mut Console,
        source: &LogSource,
        asked: &LogQuery,
    ) -> Result<Option<u64>, Failure> {
        let entries = source.entries(asked, &mut |_| {})?;
        self.show(console, asked.chain, &entries)?;
        Ok(entries.last().map(|e| e.index + 1))
    }

    fn show(
        &self,
        console: &mut Console,
        chain: ChainId,
        entries: &[LogEntry],
    ) -> Result<(), Failure> {
        for entry in entries {
            match self.json {
                true => {
                    let report = LogEntryReport::new(chain, entry);
                    console.data(json::line(&NamedForm::new(AUDIT_LOG, &report))?)?;
                }
                false => console.show(&line(entry))?,
            }
        }
        Ok(())
    }
}

/// The log entries of a bundle, once its proofs are checked.
fn bundle_entries(folder: &Path, chain: ChainId) -> Result<Vec<LogEntry>, Failure> {
    let files = BundleFolder::at(folder);
    let unusable = |what: String| {
        let folder = folder.display();
        Failure::denied(format!("the bundle {folder} can't be used: {what}"))
    };
    let against = Against::new(None, &[]);
    let checked = check_bundle(&files, &against, &mut |_, _| {})
        .map_err(|wrong| unusable(wrong.to_string()).help(wrong.help))?;
    let mut others = checked.others.iter().map(|(other, _)| *other);
    if chain != ChainId::FIRST && !others.any(|other| other == chain) {
        return Err(Failure::failed(format!("the bundle has no chain {chain}")));
    }
    files.entries(chain).map_err(unusable)
}

fn line(entry: &LogEntry) -> String {
    let leaf = &entry.leaf;
    let style = match leaf.kind {
        EventKind::Accepted | EventKind::Delivered | EventKind::Approved => GREEN,
        EventKind::Refused | EventKind::Failed | EventKind::Declined => RED,
        EventKind::Revoked | EventKind::Erased | EventKind::Held => YELLOW,
        EventKind::Granted | EventKind::Transferred | EventKind::Closed => BOLD,
    };
    let detail: Vec<String> = match (&entry.detail, &entry.parties) {
        (Some((_, detail)), _) => detail
            .pairs()
            .map(|(name, value)| format!("{} {}", view::line(name), view::line(value)))
            .collect(),
        (None, _) if leaf.detail.is_some() => vec!["detail erased".into()],
        (None, Some((from, to))) => vec![format!("{} → {}", view::line(from), view::line(to))],
        (None, None) => Vec::new(),
    };
    format!(
        "{:>7}  {}  {}  {}  {}\n",
        entry.index,
        leaf.at,
        styled(style, &format!("{:<9}", leaf.kind.as_str())),
        view::line(leaf.id.as_deref().unwrap_or("-")),
        styled(DIM, &detail.join(", "))
    )
    .replace("  \n", "\n")
}

/// Get the signed receipt of a message: proof that the relay accepted it, and when
///
/// The receipt is text: the entry, its proof up to the root of the log, and the signed checkpoint. `crosstalk audit verify` checks
/// it against the message.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit receipt 01K74V8QF857CTA8MBHN4ZW0ZK --relay https://relay.acme.example --out r.tlog-proof\n  crosstalk audit verify r.tlog-proof --message sent.aict --key relay.key\n\nExit codes: 0 written, 10 the relay does not know the message or can't be reached."
)]
struct GetReceipt {
    /// The id of the message, or the beginning of one that is kept here
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    place: LogArgument,
    /// The file; else stdout
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl GetReceipt {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let mut source = self.place.open(console)?;
        let id = source.message(console, Some(&self.id))?;
        let receipt = source.receipt(id.as_deref().unwrap_or(&self.id))?;
        match &self.out {
            None => console.text(&receipt.to_string())?,
            Some(file) => {
                std::fs::write(file, receipt.to_string()).map_err(|e| Failure::at(file, e))?
            }
        }
        Ok(())
    }
}

/// Remember the checkpoint of a relay, and notice when a later one does not extend it
///
/// For a cron job on another machine than the relay's. The first run keeps the key (or that of --key) and the checkpoint in the
/// file. Each later run asks for a proof that the new checkpoint extends the one in the file, and replaces it. A checkpoint that
/// does not is kept beside it, in FILE.shown, FILE.shown.2 and so on: both notes together prove what happened. A note that the key
/// did not sign proves nothing; it is written to FILE.unsigned.
#[derive(Args, Debug)]
#[command(
    visible_alias = "witness",
    after_help = "Examples:\n  crosstalk audit watch --relay https://relay.acme.example --token-file w.token --keep acme.note\n  */5 * * * * crosstalk audit watch --relay https://relay.acme.example --token-file w.token --keep acme.note\n\nExit codes: 0 it extends the one that was kept, 20 the first contact, 24 the checkpoint is not signed by the key, or the relay\ndoes not prove that it extends the one that was kept, 30 it does not extend it, 10 the relay gives no checkpoint."
)]
struct WatchLog {
    #[command(flatten)]
    place: LogArgument,
    /// Where the checkpoint is kept; the key is beside it, in FILE.key
    #[arg(long, value_name = "FILE")]
    keep: PathBuf,
    /// The public key of the log, from elsewhere
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The chain of a relay that shares its store with others, by its number; each needs a file of its own
    #[arg(long, value_name = "NUMBER", value_parser = chain, default_value = "0", hide_default_value = true)]
    chain: ChainId,
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The content of a file, if the file exists.
fn kept(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Failure::at(path, e)),
    }
}

/// Replaces a file in one step: a reader sees the old text or the new one.
fn put(path: &Path, text: &str) -> Result<(), Failure> {
    let new = beside(path, ".new");
    std::fs::write(&new, text).map_err(|e| Failure::at(&new, e))?;
    std::fs::rename(&new, path).map_err(|e| Failure::at(path, e))
}

impl WatchLog {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut source = self.place.open(console)?;
        source.require_chain(self.chain)?;
        let shown = source.checkpoint(self.chain)?;
        let claim = Note::parse(&shown).and_then(|n| n.claim());
        let origin = claim.map(|c| c.origin).unwrap_or_default();
        let key_file = beside(&self.keep, ".key");
        let own = kept(&key_file)?;
        let own = own.map(|text| {
            NoteKey::parse(text.trim_end())
                .map_err(|e| Failure::failed(format!("{}: {e}", key_file.display())))
        });
        let (key, is_new) = match (own.transpose()?, &self.key) {
            (_, Some(text)) => (log_key(text, &origin)?, false),
            (Some(own), None) => (own, false),
            (None, None) => (source.key(self.chain)?, true),
        };
        let new = match Note::parse(&shown).and_then(|n| n.open(&key)) {
            Ok(new) => new,
            Err(fault) => {
                let unsigned = beside(&self.keep, ".unsigned");
                put(&unsigned, &shown)?;
                return self.cry(
                    console,
                    &unsigned,
                    &fault.to_string(),
                    VerdictWord::NotVerified.into(),
                );
            }
        };
        let Some(held) = kept(&self.keep)? else {
            put(&key_file, &format!("{key}\n"))?;
            put(&self.keep, &shown)?;
            self.say(console, &new, "kept: the first one")?;
            return Ok(match is_new {
                true => VerdictWord::FirstContact.into(),
                false => Exit::SUCCESS,
            });
        };
        let old = Note::parse(&held).and_then(|n| n.open(&key));
        let old = old.map_err(|e| Failure::failed(format!("{}: {e}", self.keep.display())))?;
        if new.size < old.size {
            // A relay that was brought back out of an older backup says so, too: what it forgot is gone.
            let what = format!(
                "it has {} entries, and had {}: the log was cut",
                new.size, old.size
            );
            return self.cry(console, &self.evidence(&shown)?, &what, Exit::FORK);
        }
        let path = match new.size == old.size {
            true => Vec::new(),
            false => match source.consistency(self.chain, old.size, new.size) {
                Ok(path) => path,
                // A relay that rewrites a log has a reason to give no proof.
                Err(fault) => {
                    let what = format!(
                        "the relay did not prove that it extends the one of {} entries: {fault}",
                        old.size
                    );
                    let kept = self.evidence(&shown)?;
                    return self.cry(console, &kept, &what, VerdictWord::NotVerified.into());
                }
            },
        };
        if !extends(old.size, &old.root, new.size, &new.root, &path) {
            let what = format!(
                "its first {} entries differ from those that were signed before",
                old.size
            );
            return self.cry(console, &self.evidence(&shown)?, &what, Exit::FORK);
        }
        put(&self.keep, &shown)?;
        self.say(
            console,
            &new,
            &format!("extends the one of {} entries", old.size),
        )?;
        Ok(Exit::SUCCESS)
    }

    fn say(&self, console: &mut Console, new: &Checkpoint, what: &str) -> Result<(), Failure> {
        console.show(&format!(
            "{}  {}, {} entries: {what}\n",
            styled(GREEN, "ok"),
            escape(&new.origin),
            new.size
        ))
    }

    /// Saves the new checkpoint beside the kept one as evidence, and returns its path.
    fn evidence(&self, shown: &str) -> Result<PathBuf, Failure> {
        let mut place = beside(&self.keep, ".shown");
        let mut number = 1_u64;
        while let Some(before) = kept(&place)? {
            if before == shown {
                return Ok(place);
            }
            number += 1;
            place = beside(&self.keep, &format!(".shown.{number}"));
        }
        put(&place, shown)?;
        Ok(place)
    }

    /// Reports a checkpoint that contradicts the kept one, with the paths of both.
    fn cry(
        &self,
        console: &mut Console,
        evidence: &Path,
        what: &str,
        exit: Exit,
    ) -> Result<Exit, Failure> {
        let text = |path: &Path| shown_path(&path.to_string_lossy()).into_owned();
        console.show(&format!(
            "{}  {}\n",
            styled(RED, "the checkpoint does not hold"),
            escape(what)
        ))?;
        console.show(&format!(
            "  {} has the earlier checkpoint, {} the new one: keep both, and ask the relay operator.\n",
            text(&self.keep),
            text(evidence)
        ))?;
        Ok(exit)
    }
}
