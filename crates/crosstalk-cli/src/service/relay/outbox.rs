//! Messages that are not handed to their relay yet, and the delivery state of those that are.

use crate::console::{Console, YELLOW, styled};
use crate::failure::Failure;
use crate::report::ReachReport;
use crate::service::relay::data::make_folder;
use crate::service::relay::remote::{DeliveryStatus, MessageView, RelayArgument, Remote};
use crate::service::relay::send::Attached;
use crate::service::settings::Settings;
use crate::service::workspace::Workspace;
use crate::{shell, view};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{CoreHeader, Document, Intent, Reading};
use crosstalk_protocol::nearest_address;
use crosstalk_protocol::relay::{DeliveryState, Handler};
use crosstalk_protocol::store::{Record, Way};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A message that is kept here and was meant for a relay.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct DueMessage {
    pub(crate) id: String,
    pub(crate) relay: String,
    pub(crate) token_file: Option<PathBuf>,
    files: Vec<NamedFile>,
}

/// A file that the message names.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
struct NamedFile {
    path: PathBuf,
    digest: String,
}

impl DueMessage {
    /// A message on its way to a relay.
    pub(crate) fn new(id: &str, remote: &Remote, files: &[Attached]) -> Self {
        let named = |file: &Attached| NamedFile {
            path: std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone()),
            digest: file.digest.to_string(),
        };
        Self {
            id: id.to_owned(),
            relay: remote.url().to_owned(),
            token_file: remote.token_file().map(Path::to_owned),
            files: files.iter().map(named).collect(),
        }
    }

    /// Its files that are still there.
    pub(crate) fn files(&self) -> Vec<Attached> {
        let attached = |named: &NamedFile| {
            let digest = Digest::parse(&named.digest)?;
            let path = named.path.is_file().then(|| named.path.clone())?;
            Some(Attached { path, digest })
        };
        self.files.iter().filter_map(attached).collect()
    }
}

/// The messages that are due, one file each.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    folder: PathBuf,
}

impl Outbox {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        Self {
            folder: workspace.home().as_ref().join("outbox"),
        }
    }

    /// The file of a message; an id may hold any character, so the name is its digest.
    fn place(&self, id: &str) -> PathBuf {
        let digest = Digest::of(id.as_bytes()).to_string();
        let name = digest.trim_start_matches("sha256:");
        self.folder.join(format!("{name}.json"))
    }

    /// Remembers where a message was meant to go.
    pub(crate) fn add(&self, due: &DueMessage) -> Result<(), Failure> {
        let place = self.place(&due.id);
        let fault = |e: io::Error| Failure::at(&place, e);
        let text = serde_json::to_vec(due).map_err(|e| fault(e.into()))?;
        make_folder(&self.folder).map_err(fault)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(fault)?;
        file.write_all(&text).map_err(fault)?;
        file.persist(&place).map_err(|e| fault(e.error))?;
        Ok(())
    }

    /// Where a message was meant to go, if it is not there yet.
    pub(crate) fn find(&self, id: &str) -> Option<DueMessage> {
        let text = std::fs::read(self.place(id)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Where it is noted that a message was not copied.
    fn place_uncopied(&self, id: &str) -> PathBuf {
        self.place(id).with_extension("uncopied")
    }

    /// Remembers that a message which a person has to paste was not copied.
    pub(crate) fn add_uncopied(&self, id: &str) -> Result<(), Failure> {
        let place = self.place_uncopied(id);
        let fault = |e: io::Error| Failure::io(place.to_string_lossy().into_owned(), e);
        make_folder(&self.folder).map_err(fault)?;
        std::fs::write(&place, "").map_err(fault)
    }

    /// Whether a message has to be copied first.
    pub(crate) fn is_uncopied(&self, id: &str) -> bool {
        self.place_uncopied(id).exists()
    }

    /// Forgets that a message was not copied.
    pub(crate) fn remove_uncopied(&self, id: &str) {
        // It is a hint: one that stays is told once more.
        let _ = std::fs::remove_file(self.place_uncopied(id));
    }

    pub(crate) fn remove(&self, id: &str) -> Result<(), Failure> {
        let place = self.place(id);
        match std::fs::remove_file(&place) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Failure::at(&place, e)),
            _ => Ok(()),
        }
    }

    /// The ids of everything that is due, the oldest first.
    pub(crate) fn all(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let read = |path: PathBuf| {
            let text = std::fs::read(path).ok()?;
            serde_json::from_slice::<DueMessage>(&text).ok()
        };
        let mut ids: Vec<String> = entries
            .flatten()
            .filter_map(|entry| read(entry.path()).map(|due| due.id))
            .collect();
        ids.sort();
        ids
    }
}

/// How long to wait for all relays together.
const PATIENCE: Duration = Duration::from_secs(2);
const ASKED: usize = 50;

#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// It was meant for this relay, which did not take it.
    NotHandedOver(String),
    /// It is to be pasted, and was not copied.
    NotCopied,
    /// A relay has it.
    AtRelay(Vec<DeliveryStatus>),
    /// This relay could not be asked.
    Unknown(String),
}

impl Reach {
    /// The words for it in JSON, beside the states of a delivery.
    pub(crate) const WORDS: [&'static str; 5] = [
        "not_handed_over",
        "not_copied",
        "unknown",
        DeliveryState::Held.as_str(),
        DeliveryState::Quarantined.as_str(),
    ];

    /// What this machine knows about an own message without asking a relay.
    pub(crate) fn here(workspace: &Workspace, record: &Record) -> Option<Self> {
        let outbox = Outbox::of(workspace);
        match outbox.find(&record.id) {
            _ if record.way != Way::Sent => None,
            Some(due) => Some(Self::NotHandedOver(due.relay)),
            None => outbox.is_uncopied(&record.id).then_some(Self::NotCopied),
        }
    }

    /// The same for several messages. The relays of the settings are asked about theirs, all at once and with a short
    /// deadline.
    pub(crate) fn of_all(workspace: &Workspace, records: &[&Record]) -> HashMap<String, Self> {
        let mut all: HashMap<String, Self> = HashMap::new();
        let mut at: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for record in records.iter().filter(|r| r.way == Way::Sent) {
            if let Some(reach) = Self::here(workspace, record) {
                all.insert(record.id.clone(), reach);
            } else if let Some(relay) = workspace.config.relay_for(&record.receiver) {
                let url = relay.url.clone();
                all.insert(record.id.clone(), Self::Unknown(url.clone()));
                at.entry(url).or_default().push(record.id.clone());
            }
        }
        let (tell, told) = mpsc::channel();
        for (url, ids) in at {
            // A relay that can't be asked stays unknown.
            let _ = begin(workspace, &url, ids, tell.clone());
        }
        drop(tell);
        let until = Instant::now() + PATIENCE;
        while let Ok((id, deliveries)) =
            told.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            match deliveries {
                Some(deliveries) => all.insert(id, Self::AtRelay(deliveries)),
                // It was carried by hand.
                None => all.remove(&id),
            };
        }
        all
    }

    /// Sentences for people; `id` is the local id.
    pub(crate) fn sentences(&self, config: &Settings, id: &str) -> Vec<String> {
        match self {
            Self::NotHandedOver(relay) => vec![format!(
                "not handed over to {}: `crosstalk relay deliver {id}` tries again",
                view::line(relay)
            )],
            Self::NotCopied => vec![format!(
                "not copied yet: `crosstalk show {id} --copy` copies it"
            )],
            Self::Unknown(relay) => vec![format!("{} can't be asked now", view::line(relay))],
            Self::AtRelay(deliveries) => deliveries.iter().map(|d| told(config, d)).collect(),
        }
    }

    /// The same for programs: the state of the delivery that is the furthest behind.
    pub(crate) fn report(&self, config: &Settings, id: &str) -> ReachReport {
        let state = match self {
            Self::NotHandedOver(_) => "not_handed_over",
            Self::NotCopied => "not_copied",
            Self::Unknown(_) => "unknown",
            Self::AtRelay(deliveries) => {
                let states = deliveries
                    .iter()
                    .filter_map(|d| DeliveryState::parse(&d.state));
                let behind = states.min_by_key(|s| DeliveryState::ALL.iter().position(|a| a == s));
                let is_kept_back = |word: &&str| deliveries.iter().any(|d| d.state == *word);
                let kept_back = Self::WORDS.into_iter().find(is_kept_back);
                kept_back
                    .or(behind.map(DeliveryState::as_str))
                    .unwrap_or("unknown")
            }
        };
        ReachReport {
            state,
            notes: self.sentences(config, id),
        }
    }
}

/// The state of a delivery in words.
fn told(config: &Settings, delivery: &DeliveryStatus) -> String {
    let to = view::line(&delivery.to);
    let reason = delivery.reason.as_deref().map(view::line);
    match (DeliveryState::parse(&delivery.state), reason) {
        (Some(DeliveryState::Queued), Some(reason)) if delivery.attempts > 0 => {
            format!("not delivered to {to} yet, and tried again: {reason}")
        }
        (Some(DeliveryState::Queued), _) if delivery.by == Handler::CopyPaste.as_str() => {
            format!("at the relay, and not carried to {to} yet")
        }
        (Some(DeliveryState::Queued), _) => unread(config, delivery)
            .unwrap_or_else(|| format!("at the relay, where {to} has not fetched it yet")),
        (Some(DeliveryState::Failed), reason) => format!(
            "not delivered to {to}: {}",
            reason.unwrap_or_else(|| "dead letter".into())
        ),
        (None, _) if delivery.state == DeliveryState::Held.as_str() => {
            "at the relay, where a person has to approve it".to_owned()
        }
        (Some(DeliveryState::Acknowledged), _) => format!("{to} has it"),
        _ => format!("{} ({to})", view::line(&delivery.state)),
    }
}

/// Asks a relay about messages, on a thread that is abandoned after the deadline.
fn begin(
    workspace: &Workspace,
    url: &str,
    ids: Vec<String>,
    tell: mpsc::Sender<(String, Option<Vec<DeliveryStatus>>)>,
) -> Result<(), Failure> {
    let through = RelayArgument::new(Some(url.to_owned()), None);
    let remote: Remote = through
        .connect(&workspace.config, None)?
        .with_deadline(PATIENCE);
    let ask = move || {
        for id in ids.into_iter().take(ASKED) {
            let deliveries = match remote.status(&id) {
                Ok(status) => Some(status.deliveries),
                Err(trouble) if trouble.is_unknown() => None,
                Err(_) => continue,
            };
            // Nobody listens any more if the time is over.
            if tell.send((id, deliveries)).is_err() {
                return;
            }
        }
    };
    let begun = std::thread::Builder::new().spawn(ask);
    begun.map(drop).map_err(|e| Failure::io("a thread", e))
}

/// The hint that an inbox was never read, with the address that may have been meant: one that the relay may name to
/// this caller, or one of the settings.
pub(crate) fn unread(config: &Settings, delivery: &DeliveryStatus) -> Option<String> {
    if !delivery.never_read {
        return None;
    }
    let own = || {
        let addresses = config.names().iter().map(|(_, address)| address);
        nearest_address(&delivery.to, addresses)
    };
    let meant = delivery.did_you_mean.as_deref().or_else(own);
    let to = view::line(&delivery.to);
    Some(match meant {
        Some(meant) => format!(
            "No one has read {to} yet; did you mean {}?",
            view::line(meant)
        ),
        None => format!("No one has read {to} yet."),
    })
}

/// How many of the latest messages to people are looked through for the ESCALATE of a conversation.
const LOOKED_THROUGH: usize = 50;

/// Follows a message at a relay, and tells each piece of news once.
#[derive(Debug, Default)]
pub(crate) struct StatusWatch {
    told: BTreeSet<String>,
}

impl StatusWatch {
    /// Reports news about a message, each once. Says nothing if the relay does not report the state.
    pub(crate) fn tell(
        &mut self,
        console: &mut Console,
        config: &Settings,
        remote: &Remote,
        id: &str,
    ) -> Result<(), Failure> {
        let Ok(status) = remote.status(id) else {
            return Ok(());
        };
        let mut news: Vec<String> = Vec::new();
        for delivery in &status.deliveries {
            news.extend(unread(config, delivery));
            let to = view::line(&delivery.to);
            if let Some(reason) = delivery.reason.as_ref().filter(|_| delivery.attempts > 0) {
                news.push(format!("{to}: {}.", view::line(reason)));
            }
            if delivery.by == Handler::CopyPaste.as_str()
                && delivery.state == DeliveryState::Queued.as_str()
            {
                let url = shell::word(remote.url());
                news.push(format!(
                    "It waits for a person who carries it to {to}: `crosstalk carry --relay {url}`."
                ));
            }
        }
        let to_people = remote
            .search("to:human", LOOKED_THROUGH)
            .unwrap_or_default();
        let is_passed_on = |m: &&MessageView| {
            let document = Document::parse(&m.envelope, Reading::Strict);
            document.header(CoreHeader::Parent) == Some(id)
                && document.envelope().meaning() == Some(Intent::Escalate)
        };
        for asked in to_people.iter().filter(is_passed_on) {
            news.push(format!(
                "{} has asked a person, {}, and waits for the reply.",
                view::line(&asked.from),
                view::line(&asked.to)
            ));
        }
        for sentence in news {
            if self.told.insert(sentence.clone()) {
                console.talk(&format!("{}\n", styled(YELLOW, &sentence)))?;
            }
        }
        Ok(())
    }
}
