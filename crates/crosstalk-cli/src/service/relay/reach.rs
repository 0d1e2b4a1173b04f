//! How far a message that was written here has come: on this machine, at a relay, or with whoever it is for.

use crate::failure::Failure;
use crate::service::relay::hint::unread;
use crate::service::relay::outbox::Outbox;
use crate::service::relay::remote::{Delivered, Remote, Through};
use crate::service::settings::Config;
use crate::service::workspace::Desk;
use crate::view;
use crosstalk_protocol::relay::{Handler, State};
use crosstalk_protocol::store::{Record, Way};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long all relays together are waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many messages a relay is asked about.
const ASKED: usize = 50;

/// How far a message is.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// It was meant for this relay, which did not take it.
    NotHandedOver(String),
    /// It is to be pasted, and was not copied.
    NotCopied,
    /// A relay has it.
    AtRelay(Vec<Delivered>),
    /// This relay could not be asked.
    Unknown(String),
}

impl Reach {
    /// The words for it in JSON, beside the states of a delivery.
    pub(crate) const WORDS: [&'static str; 5] = [
        "not_handed_over",
        "not_copied",
        "unknown",
        State::Held.as_str(),
        State::Quarantined.as_str(),
    ];

    /// What this machine knows by itself about a message of one's own.
    pub(crate) fn here(desk: &Desk, record: &Record) -> Option<Self> {
        let outbox = Outbox::of(desk);
        match outbox.find(&record.id) {
            _ if record.way != Way::Sent => None,
            Some(due) => Some(Self::NotHandedOver(due.relay)),
            None => outbox.is_uncopied(&record.id).then_some(Self::NotCopied),
        }
    }

    /// The same of several messages; about those that went by a relay of the settings, that relay is asked. All relays are
    /// asked side by side, and none for long.
    pub(crate) fn of_all(desk: &Desk, records: &[&Record]) -> HashMap<String, Self> {
        let mut all: HashMap<String, Self> = HashMap::new();
        let mut at: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for record in records.iter().filter(|r| r.way == Way::Sent) {
            if let Some(reach) = Self::here(desk, record) {
                all.insert(record.id.clone(), reach);
            } else if let Some(relay) = desk.config.relay_for(&record.receiver) {
                let url = relay.url.clone();
                all.insert(record.id.clone(), Self::Unknown(url.clone()));
                at.entry(url).or_default().push(record.id.clone());
            }
        }
        let (tell, told) = mpsc::channel();
        for (url, ids) in at {
            // A relay that can't be asked stays unknown.
            let _ = begin(desk, &url, ids, tell.clone());
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

    /// What is told to people; `id` is how the message is called here.
    pub(crate) fn sentences(&self, config: &Config, id: &str) -> Vec<String> {
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
    pub(crate) fn report(&self, config: &Config, id: &str) -> Value {
        let state = match self {
            Self::NotHandedOver(_) => "not_handed_over",
            Self::NotCopied => "not_copied",
            Self::Unknown(_) => "unknown",
            Self::AtRelay(deliveries) => {
                let states = deliveries.iter().filter_map(|d| State::parse(&d.state));
                let behind = states.min_by_key(|s| State::ALL.iter().position(|a| a == s));
                let is_kept_back = |word: &&str| deliveries.iter().any(|d| d.state == *word);
                let kept_back = Self::WORDS.into_iter().find(is_kept_back);
                kept_back.or(behind.map(State::as_str)).unwrap_or("unknown")
            }
        };
        json!({"state": state, "notes": self.sentences(config, id)})
    }
}

/// How far a delivery is, in words.
fn told(config: &Config, delivery: &Delivered) -> String {
    let to = view::line(&delivery.to);
    let reason = delivery.reason.as_deref().map(view::line);
    match (State::parse(&delivery.state), reason) {
        (Some(State::Queued), Some(reason)) if delivery.attempts > 0 => {
            format!("not delivered to {to} yet, and tried again: {reason}")
        }
        (Some(State::Queued), _) if delivery.by == Handler::CopyPaste.as_str() => {
            format!("at the relay, where nobody has carried it to {to} yet")
        }
        (Some(State::Queued), _) => unread(config, delivery)
            .unwrap_or_else(|| format!("at the relay, where {to} has not fetched it yet")),
        (Some(State::Failed), reason) => format!(
            "not delivered to {to}: {}",
            reason.unwrap_or_else(|| "given up".into())
        ),
        (None, _) if delivery.state == State::Held.as_str() => {
            "at the relay, where a person has to approve it".to_owned()
        }
        (Some(State::Acknowledged), _) => format!("{to} has it"),
        _ => format!("{} ({to})", view::line(&delivery.state)),
    }
}

/// Begins to ask a relay about messages, on a thread that is left alone when the time is over.
fn begin(
    desk: &Desk,
    url: &str,
    ids: Vec<String>,
    tell: mpsc::Sender<(String, Option<Vec<Delivered>>)>,
) -> Result<(), Failure> {
    let through = Through::new(Some(url.to_owned()), None);
    let remote: Remote = through.connect(&desk.config, None)?.with_deadline(PATIENCE);
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
    begun
        .map(drop)
        .map_err(|e| Failure::Io("a thread".into(), e))
}
