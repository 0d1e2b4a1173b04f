//! What waits at the relays of the settings: all are asked at once, and none for long.

use super::remote::line;
use crate::console::{BOLD, Console, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::count;
use crate::report::{RelayReport, RemoteInboxReport, RemoteMessageReport};
use crate::service::relay::inbox::addresses;
use crate::service::relay::remote::{Remote, Through, Trouble, Waiting};
use crate::service::workspace::Desk;
use crate::{shell, view};
use crosstalk_envelope::ErrorCode;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::is_human;
use crosstalk_protocol::store::is_same_party;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long all relays together are waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many messages of an inbox are listed.
const LISTED: u32 = 20;
/// How many of the latest messages to people are looked through for queues, and how many queues are looked at.
const LOOKED_THROUGH: usize = 100;
const QUEUES: usize = 16;

/// What a relay has for the person of this store.
#[derive(Debug)]
pub(super) struct AtRelay {
    url: String,
    found: Result<Found, Unasked>,
}

/// Why a relay could not be asked.
#[derive(Debug)]
struct Unasked {
    why: String,
    exit: Exit,
}

impl Unasked {
    fn new(fault: &Failure) -> Self {
        Self {
            why: fault.to_string(),
            exit: fault.exit(),
        }
    }
}

/// What was found at a relay.
#[derive(Debug, Default)]
struct Found {
    /// Inboxes and queues with messages in them.
    inboxes: Vec<(String, Vec<Waiting>)>,
    /// How many messages wait for a decision.
    held: usize,
    /// How many messages wait to be carried to a chat.
    to_carry: usize,
    /// Why none of the person's own inboxes could be read.
    refusal: Option<Unasked>,
}

/// Asks all relays of the settings side by side. One that does not answer in time is named as such.
pub(super) fn ask_all(desk: &Desk) -> Result<Vec<AtRelay>, Failure> {
    let own = addresses(desk, &[])?;
    let mut all: Vec<AtRelay> = Vec::new();
    let (tell, told) = mpsc::channel();
    for relay in desk.config.relays() {
        if all.iter().any(|known| known.url == relay.url) {
            continue;
        }
        let place = all.len();
        let begun = begin(desk, &relay.url, &own, (place, tell.clone()));
        all.push(AtRelay {
            url: relay.url.clone(),
            found: Err(match begun {
                Ok(()) => Unasked {
                    why: format!(
                        "{} did not answer within {} seconds",
                        relay.url,
                        PATIENCE.as_secs()
                    ),
                    exit: ErrorCode::Timeout.into(),
                },
                Err(fault) => Unasked::new(&fault),
            }),
        });
    }
    drop(tell);
    let until = Instant::now() + PATIENCE;
    while let Ok((place, found)) =
        told.recv_timeout(until.saturating_duration_since(Instant::now()))
    {
        if let Some(relay) = all.get_mut::<usize>(place) {
            relay.found = found;
        }
    }
    Ok(all)
}

/// Where an answer goes: the place of its relay.
type Answers = (usize, mpsc::Sender<(usize, Result<Found, Unasked>)>);

/// Begins to ask a relay, on a thread that is left alone when the time is over.
fn begin(desk: &Desk, url: &str, own: &[String], (place, tell): Answers) -> Result<(), Failure> {
    let through = Through::new(Some(url.to_owned()), None);
    let remote = through.connect(&desk.config, None)?.with_deadline(PATIENCE);
    let own = own.to_vec();
    let ask = move || {
        let found = look(&remote, &own).map_err(|trouble| Unasked::new(&trouble.into()));
        // Nobody listens any more if the time is over.
        let _ = tell.send((place, found));
    };
    let begun = std::thread::Builder::new().spawn(ask);
    begun.map(drop).map_err(|e| Failure::io("a thread", e))
}

/// What waits at a relay for some addresses, and in the queues of people that the caller may read.
fn look(remote: &Remote, own: &[String]) -> Result<Found, Trouble> {
    let mut found = Found::default();
    let mut refusals = Vec::new();
    for address in own {
        match remote.inbox(address, None, LISTED, 0) {
            Ok(page) => found.add(address, page.messages),
            Err(trouble) if trouble.is_refusal() => refusals.push(Unasked::new(&trouble.into())),
            Err(trouble) => return Err(trouble),
        }
    }
    // A relay tells nobody more than they may read: what is refused from here on is not for this person.
    let to_people = remote
        .search("to:human", LOOKED_THROUGH)
        .unwrap_or_default();
    let mut queues: Vec<String> = Vec::new();
    for message in to_people.iter().filter(|m| is_human(&m.to)) {
        let mut known = own.iter().chain(&queues);
        if queues.len() < QUEUES && !known.any(|k| is_same_party(k, &message.to)) {
            queues.push(message.to.clone());
        }
    }
    for queue in &queues {
        if let Ok(page) = remote.inbox(queue, None, LISTED, 0) {
            found.add(queue, page.messages);
        }
    }
    found.held = remote.approvals(LISTED).map_or(0, |all| all.len());
    let listed = usize::try_from(LISTED).unwrap_or(usize::MAX);
    // What is for this person needs nobody to carry it.
    let is_listed = |m: &&Waiting| own.iter().chain(&queues).any(|a| is_same_party(a, &m.to));
    let to_carry = remote.courier(listed).unwrap_or_default();
    found.to_carry = to_carry.iter().filter(|m| !is_listed(m)).count();
    if refusals.len() == own.len() {
        found.refusal = refusals.pop();
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, address: &str, messages: Vec<Waiting>) {
        if !messages.is_empty() {
            self.inboxes.push((address.to_owned(), messages));
        }
    }

    fn is_empty(&self) -> bool {
        self.inboxes.is_empty() && self.held == 0 && self.to_carry == 0
    }
}

/// As many as were listed may be more.
fn many(number: usize) -> String {
    let shown = count(number, "message");
    match u32::try_from(number).is_ok_and(|n| n >= LISTED) {
        true => format!("{shown} or more"),
        false => shown,
    }
}

impl AtRelay {
    /// Whether something waits there.
    pub(super) fn has_messages(&self) -> bool {
        self.found.as_ref().is_ok_and(|found| !found.is_empty())
    }

    /// How a command ends that could not ask the relay, and found nothing there; nothing if it could.
    pub(super) fn fault(&self) -> Option<Exit> {
        match &self.found {
            Err(unasked) => Some(unasked.exit),
            Ok(found) if found.is_empty() => found.refusal.as_ref().map(|u| u.exit),
            Ok(_) => None,
        }
    }

    /// The command that fetches the messages of an address.
    fn fetch(&self, address: &str) -> String {
        format!(
            "crosstalk inbox --relay {} --for {} --take",
            shell::word(&self.url),
            shell::word(address)
        )
    }

    /// Shows what waits there, with the commands that fetch it; says why it is not known.
    pub(super) fn show(&self, console: &mut Console) -> Result<(), Failure> {
        let found = match &self.found {
            Ok(found) => found,
            Err(unasked) => {
                let why = unasked.why.replace('\n', " ");
                return console.note(&format!("{why}; `crosstalk inbox --local` asks no relay"));
            }
        };
        if let Some(refusal) = &found.refusal {
            console.note(&refusal.why.replace('\n', " "))?;
        }
        if found.is_empty() {
            return Ok(());
        }
        let mut out = format!(
            "\n{}\n",
            styled(BOLD, &format!("At {}:", escape(&self.url)))
        );
        for (address, messages) in &found.inboxes {
            out.push_str(&format!(
                "{} for {}: `{}`\n",
                many(messages.len()),
                view::party(address),
                self.fetch(address)
            ));
            for waiting in messages {
                for row in line(waiting).lines() {
                    out.push_str(&format!("  {row}\n"));
                }
            }
        }
        let url = shell::word(&self.url);
        for (number, what) in [
            (
                found.held,
                format!("for your decision: `crosstalk approve --relay {url}`"),
            ),
            (
                found.to_carry,
                format!("to carry to a chat: `crosstalk carry --relay {url}`"),
            ),
        ] {
            if number > 0 {
                out.push_str(&format!("{} {what}\n", many(number)));
            }
        }
        console.show(&out)
    }

    /// The same for programs.
    pub(super) fn report(&self) -> RelayReport {
        let empty = Found::default();
        let (found, error) = match &self.found {
            Ok(found) => (found, found.refusal.as_ref().map(|u| &u.why)),
            Err(unasked) => (&empty, Some(&unasked.why)),
        };
        let inbox = |(address, messages): &(String, Vec<Waiting>)| RemoteInboxReport {
            address: address.clone(),
            messages: messages.iter().map(RemoteMessageReport::new).collect(),
            fetch: self.fetch(address),
        };
        RelayReport {
            url: self.url.clone(),
            error: error.cloned(),
            inboxes: found.inboxes.iter().map(inbox).collect(),
            held: found.held,
            to_carry: found.to_carry,
        }
    }
}
