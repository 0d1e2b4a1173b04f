//! `crosstalk audit log`: the log as a journal.

use super::source::{Source, Where};
use crate::clock;
use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::json;
use crate::schema::AUDIT_LOG;
use crate::service::audit_bundle::BundleFolder;
use crate::view;
use clap::Args;
use crosstalk_envelope::{ErrorCode, Timestamp};
use crosstalk_protocol::audit::bundle::{self, Against, Files as _};
use crosstalk_protocol::audit::{Detail, EventKind, Leaf, LogEntry, LogQuery};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a log is looked at again.
const RHYTHM: Duration = Duration::from_secs(1);

/// Read the log of a relay: what was taken, refused, delivered, erased, and when
///
/// Works on the data folder of a relay, or with --relay over the network (needs the token of an admin). The oldest entry
/// comes first; without --from and --since, the last ones are shown. With BUNDLE, it is the log in a folder that `audit export
/// --out` wrote, which is checked first.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk audit log\n  crosstalk audit log --kind refused --kind failed --since 2026-11-01T00:00:00Z\n  crosstalk audit log --message 01K74V8QF857CTA8MBHN4ZW0ZK\n  crosstalk audit log --json --from 0 -n 100000 | jq -r .leaf\n  crosstalk audit log bundle/ --kind granted --kind revoked\n\nExit codes: 0 shown, 1 nothing in the log is of the message or thread, 14 the\nbundle does not hold."
)]
pub(super) struct Log {
    /// An audit bundle to read, in place of the log of a relay
    #[arg(value_name = "BUNDLE", conflicts_with_all = ["data", "relay", "follow", "thread"])]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// Only this kind; can be given several times
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<EventKind>,
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
    /// Print JSON of the form crosstalk.audit-log/1, one object a line
    #[arg(long)]
    json: bool,
}

/// Reads a kind of the command line.
fn kind(text: &str) -> Result<EventKind, String> {
    let all = || EventKind::ALL.map(EventKind::as_str).join(", ");
    EventKind::parse(text).ok_or_else(|| format!("write one of these: {}", all()))
}

impl Log {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        if let Some(bundle) = &self.bundle {
            return self.run_on_bundle(console, bundle);
        }
        let source = self.place.open(console)?;
        let mut asked = LogQuery {
            from: self.from.unwrap_or(0),
            kinds: self.kind.clone(),
            since: self.since,
            until: self.until,
            id: source.message(console, self.message.as_deref())?,
            thread: source.thread(console, self.thread.as_deref())?,
            most: usize::try_from(self.limit).unwrap_or(usize::MAX),
            newest: self.from.is_none() && self.since.is_none(),
            ..LogQuery::default()
        };
        let mut next = self.print(console, &source, &asked)?;
        if next.is_none() && !self.follow {
            if asked.id.is_some() || asked.thread.is_some() {
                return Err(source.nothing(&asked));
            }
            if !self.json {
                console.talk("there is no such entry in the log\n")?;
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

    /// Prints entries of a bundle that holds.
    fn run_on_bundle(&self, console: &mut Console, folder: &Path) -> Result<Exit, Failure> {
        let mut entries = bundle_entries(folder)?;
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
            let message = "there is no such entry in the bundle".to_owned();
            return match self.message {
                Some(_) => Err(Failure::Failed(message)),
                None => console
                    .talk(&format!("{message}\n"))
                    .map(|()| Exit::SUCCESS),
            };
        }
        self.show(console, &entries)?;
        Ok(Exit::SUCCESS)
    }

    /// Prints entries. The index behind the last.
    fn print(
        &self,
        console: &mut Console,
        source: &Source,
        asked: &LogQuery,
    ) -> Result<Option<u64>, Failure> {
        let entries = source.entries(asked, &mut |_| {})?;
        self.show(console, &entries)?;
        Ok(entries.last().map(|e| e.index + 1))
    }

    fn show(&self, console: &mut Console, entries: &[LogEntry]) -> Result<(), Failure> {
        for entry in entries {
            match self.json {
                true => console.data(json::line(&report(entry))?)?,
                false => console.show(&line(entry))?,
            }
        }
        Ok(())
    }
}

/// The entries of a bundle, if everything in it fits together.
fn bundle_entries(folder: &Path) -> Result<Vec<LogEntry>, Failure> {
    let files = BundleFolder::at(folder);
    let unusable = |what: String| {
        Failure::Refused(
            ErrorCode::Perm,
            format!("the bundle {} can't be used: {what}", folder.display()),
        )
    };
    let against = Against {
        key: None,
        held: &[],
    };
    bundle::check(&files, &against, &mut |_, _| {})
        .map_err(|wrong| unusable(format!("{wrong}. {}", wrong.help)))?;
    let read = |name: &str| -> Result<String, Failure> {
        let bytes = files.read(name).map_err(unusable)?.unwrap_or_default();
        String::from_utf8(bytes.into_owned()).map_err(|_| unusable(format!("{name} is no text")))
    };
    let details = read(bundle::DETAILS)?;
    let mut details: BTreeMap<u64, Detail> = details
        .lines()
        .filter_map(|line| {
            let mut words = line.splitn(3, ' ');
            let (index, _salt) = (words.next()?.parse().ok()?, words.next()?);
            Some((index, Detail::parse(words.next()?)?))
        })
        .collect();
    let entry = |line: &str| {
        let (index, leaf) = line.split_once(' ')?;
        let (index, leaf) = (index.parse().ok()?, Leaf::parse(leaf).ok()?);
        Some(LogEntry {
            index,
            leaf,
            detail: details.remove(&index).map(|detail| (Vec::new(), detail)),
            text: None,
            parties: None,
        })
    };
    Ok(read(bundle::ENTRIES)?
        .lines()
        .skip(1)
        .filter_map(entry)
        .collect())
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

fn report(entry: &LogEntry) -> Value {
    let leaf = &entry.leaf;
    let pairs = entry.detail.as_ref().map(|(_, detail)| {
        let pairs = detail.pairs();
        pairs
            .map(|(n, v)| (n.to_owned(), v.into()))
            .collect::<Map<String, Value>>()
    });
    let (from, to) = entry.parties.as_ref().map(|(f, t)| (f, t)).unzip();
    json!({
        "schema": AUDIT_LOG,
        "index": entry.index,
        "at": leaf.at.to_string(),
        "kind": leaf.kind.as_str(),
        "message": leaf.id,
        "from": from,
        "to": to,
        "canonical": leaf.canonical.map(|d| d.to_string()),
        "raw": leaf.raw.map(|d| d.to_string()),
        "detail": pairs,
        "leaf": leaf.to_string(),
    })
}
