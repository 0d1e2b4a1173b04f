//! `crosstalk inbox`: what waits for the person of this store, or at a relay.

use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::count;
use crate::report::{
    FetchedMessage, InboxReport, MessageReport, RelayInboxReport, RemoteInboxReport,
    RemoteMessageReport, WaitingAtRelayReport,
};
use crate::schema::{INBOX, RELAY_INBOX};
use crate::service::dismiss::{Awaited, dismiss};
use crate::service::lookup;
use crate::service::relay::inbox::{addresses, take};
use crate::service::relay::remote::{MessageView, RelayArgument, RelayError, Remote};
use crate::service::workspace::{Workspace, listed};
use crate::shell;
use crate::view::{self, Look};
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{CoreHeader, Document, ErrorCode, Reading};
use crosstalk_protocol::relay::is_human;
use crosstalk_protocol::store::{Record, is_same_party};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Show the messages that wait for you: to answer, or to carry to another chat
///
/// Also asks the relays of the settings, for two seconds in all: for messages to you and in the queues of people that you may
/// answer, for held messages, and for messages to carry. Names a relay that does not answer; --local asks none.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk inbox\n  crosstalk inbox --local                    # ask no relay\n  crosstalk inbox --done 01K74V8Q\n  crosstalk inbox --json | jq '.messages | length'\n  crosstalk inbox --relay --take             # fetch what waits at your relay\n  crosstalk inbox --relay http://127.0.0.1:8799 --for CLAUDE\n\nExit codes: 0 shown; 1 a message of --done did not wait; 10 to 17 nothing waits here and no relay could be asked, or with\n--relay a rejection by the relay; with --take, as of crosstalk paste."
)]
pub(crate) struct Inbox {
    /// Remove this message without an answer; may be given again
    #[arg(long, value_name = "ID")]
    done: Vec<String>,
    /// Show the messages that wait at the relay of the settings, or of this URL, and not those that are kept here
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["done", "skip"])]
    relay: Option<String>,
    /// Ask no relay
    #[arg(long, conflicts_with = "relay")]
    local: bool,
    /// The address whose inbox at the relay to show; may be given again. Without it, yours
    #[arg(long = "for", value_name = "ADDR", requires = "relay")]
    addresses: Vec<String>,
    /// Keep the messages that wait at the relay, and acknowledge them there
    #[arg(long, requires = "relay")]
    take: bool,
    /// The file with the token of the relay
    #[arg(long, value_name = "FILE", requires = "relay")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    paging: super::Paging,
    /// Print JSON of the form crosstalk.inbox/1, or with --relay of the form crosstalk.relay-inbox/1
    #[arg(long)]
    json: bool,
}

impl Inbox {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        if !self.done.is_empty() {
            return dismiss(console, &workspace, &self.done, Awaited::OfMe);
        }
        if let Some(url) = &self.relay {
            let at_relay = RelayListing {
                through: RelayArgument::of(url, self.token_file.clone())?,
                addresses: &self.addresses,
                limit: self.paging.limit,
                take: self.take,
                json: self.json,
            };
            return at_relay.run(console, &workspace);
        }
        let store = workspace.messages(console)?;
        let (items, more) = listed(store.as_ref(), |s| s.inbox(self.paging.page()))?;
        let items: Vec<Record> = items.into_iter().map(lookup::veiled).collect();
        let relays = match self.local || workspace.config.relays().is_empty() {
            true => Vec::new(),
            false => ask_all(&workspace)?,
        };
        // An empty list is complete only if a relay could be asked, or none was.
        let faults: Vec<Exit> = relays.iter().filter_map(RelayFindings::fault).collect();
        let exit = match items.is_empty() && faults.len() == relays.len() {
            true => faults.into_iter().fold(Exit::SUCCESS, Exit::worst),
            false => Exit::SUCCESS,
        };
        if self.json {
            let report = InboxReport {
                messages: MessageReport::all(&items),
                more,
                relays: relays.iter().map(RelayFindings::report).collect(),
            };
            console.report(INBOX, &report)?;
            return Ok(exit);
        }
        match store {
            Some(store) if !items.is_empty() => {
                let short = view::shortener(&store);
                let question = |record: &Record| lookup::before(&store, record).ok()?.pop();
                let of_text = (view::first_line, question);
                let shown = view::messages(&items, short, of_text, &Look::of(console));
                console.show(&shown)?;
                self.paging.tell_more(console, more)?;
            }
            _ if relays.iter().any(RelayFindings::has_messages) => {
                console.talk("nothing waits for you here\n")?;
            }
            _ if exit != Exit::SUCCESS => {
                console.talk("nothing waits for you here, and no relay could be asked\n")?;
            }
            _ => console.talk("nothing waits for you\n")?,
        }
        for relay in &relays {
            relay.show(console)?;
        }
        Ok(exit)
    }
}

/// How long all relays together are waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many messages of an inbox are listed.
const LISTED: u32 = 20;
/// How many of the latest messages to people are looked through for queues, and how many queues are looked at.
const LOOKED_THROUGH: usize = 100;
const QUEUES: usize = 16;

/// The messages that a relay has for the person of this store.
#[derive(Debug)]
struct RelayFindings {
    url: String,
    found: Result<WaitingMessages, Unasked>,
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

/// The messages found at a relay.
#[derive(Debug, Default)]
struct WaitingMessages {
    /// Inboxes and queues with messages in them.
    inboxes: Vec<(String, Vec<MessageView>)>,
    /// How many messages wait for a decision.
    held: usize,
    /// How many messages wait to be carried to a chat.
    to_carry: usize,
    /// Why none of the person's own inboxes could be read.
    refusal: Option<Unasked>,
}

/// Asks all relays of the settings side by side. One that does not answer in time is named as such.
fn ask_all(workspace: &Workspace) -> Result<Vec<RelayFindings>, Failure> {
    let own = addresses(workspace, &[])?;
    let mut all: Vec<RelayFindings> = Vec::new();
    let (tell, told) = mpsc::channel();
    for relay in workspace.config.relays() {
        if all.iter().any(|known| known.url == relay.url) {
            continue;
        }
        let place = all.len();
        let begun = begin(workspace, &relay.url, &own, (place, tell.clone()));
        all.push(RelayFindings {
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
type FindingsSender = (
    usize,
    mpsc::Sender<(usize, Result<WaitingMessages, Unasked>)>,
);

/// Begins to ask a relay, on a thread that is left alone when the time is over.
fn begin(
    workspace: &Workspace,
    url: &str,
    own: &[String],
    (place, tell): FindingsSender,
) -> Result<(), Failure> {
    let through = RelayArgument::new(Some(url.to_owned()), None);
    let remote = through
        .connect(&workspace.config, None)?
        .with_deadline(PATIENCE);
    let own = own.to_vec();
    let ask = move || {
        let found = look(&remote, &own).map_err(|trouble| Unasked::new(&trouble.into()));
        // The receiver is gone if the time is over.
        let _ = tell.send((place, found));
    };
    let begun = std::thread::Builder::new().spawn(ask);
    begun.map(drop).map_err(|e| Failure::io("a thread", e))
}

/// Lists the messages for some addresses at a relay, and those in the queues of people that the caller may read.
fn look(remote: &Remote, own: &[String]) -> Result<WaitingMessages, RelayError> {
    let mut found = WaitingMessages::default();
    let mut refusals = Vec::new();
    for address in own {
        match remote.inbox(address, None, LISTED, 0) {
            Ok(page) => found.add(address, page.messages),
            Err(trouble) if trouble.is_refusal() => refusals.push(Unasked::new(&trouble.into())),
            Err(trouble) => return Err(trouble),
        }
    }
    // A relay shows a caller only what it may read, so a rejection from here on means that the caller lacks access.
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
    // A message for this person need not be carried.
    let is_listed = |m: &&MessageView| own.iter().chain(&queues).any(|a| is_same_party(a, &m.to));
    let to_carry = remote.courier(listed).unwrap_or_default();
    found.to_carry = to_carry.iter().filter(|m| !is_listed(m)).count();
    if refusals.len() == own.len() {
        found.refusal = refusals.pop();
    }
    Ok(found)
}

impl WaitingMessages {
    fn add(&mut self, address: &str, messages: Vec<MessageView>) {
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

impl RelayFindings {
    /// Whether something waits there.
    fn has_messages(&self) -> bool {
        self.found.as_ref().is_ok_and(|found| !found.is_empty())
    }

    /// How a command ends that could not ask the relay, and found nothing there; nothing if it could.
    fn fault(&self) -> Option<Exit> {
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
    fn show(&self, console: &mut Console) -> Result<(), Failure> {
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
    fn report(&self) -> WaitingAtRelayReport {
        let empty = WaitingMessages::default();
        let (found, error) = match &self.found {
            Ok(found) => (found, found.refusal.as_ref().map(|u| &u.why)),
            Err(unasked) => (&empty, Some(&unasked.why)),
        };
        let inbox = |(address, messages): &(String, Vec<MessageView>)| RemoteInboxReport {
            address: address.clone(),
            messages: messages.iter().map(RemoteMessageReport::new).collect(),
            fetch: self.fetch(address),
        };
        WaitingAtRelayReport {
            url: self.url.clone(),
            error: error.cloned(),
            inboxes: found.inboxes.iter().map(inbox).collect(),
            held: found.held,
            to_carry: found.to_carry,
        }
    }
}

/// How many messages are fetched at once.
const AT_ONCE: u32 = 100;

/// A request of `inbox --relay`.
struct RelayListing<'a> {
    through: RelayArgument,
    /// The owners of the inboxes; the person if none is named.
    addresses: &'a [String],
    /// How many messages at most.
    limit: u32,
    /// Whether they are kept here and acknowledged.
    take: bool,
    json: bool,
}

impl RelayListing<'_> {
    fn run(&self, console: &mut Console, workspace: &Workspace) -> Result<Exit, Failure> {
        let addresses = addresses(workspace, self.addresses)?;
        let (mut exit, mut messages) = (Exit::SUCCESS, Vec::new());
        for address in &addresses {
            let remote = self.through.connect(&workspace.config, Some(address))?;
            exit = exit.worst(self.one(console, workspace, &remote, address, &mut messages)?);
        }
        if self.json {
            console.report(RELAY_INBOX, &RelayInboxReport { messages })?;
        } else if messages.is_empty() {
            let whom = view::names(&addresses);
            console.talk(&format!("nothing waits there for {whom}\n"))?;
        }
        Ok(exit)
    }

    fn one(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        remote: &Remote,
        address: &str,
        messages: &mut Vec<FetchedMessage>,
    ) -> Result<Exit, Failure> {
        let (mut exit, mut left, mut cursor) = (Exit::SUCCESS, self.limit, None::<String>);
        while left > 0 {
            let page = remote.inbox(address, cursor.as_deref(), left.min(AT_ONCE), 0)?;
            if page.messages.is_empty() {
                break;
            }
            left = left.saturating_sub(u32::try_from(page.messages.len()).unwrap_or(u32::MAX));
            for waiting in &page.messages {
                let (one, taken) = match self.take {
                    true => take(console, workspace, remote, address, waiting, self.json)?,
                    false => (Exit::SUCCESS, false),
                };
                exit = exit.worst(one);
                if !self.json && !self.take {
                    console.show(&line(waiting))?;
                }
                messages.push(FetchedMessage {
                    message: waiting.clone(),
                    taken,
                });
            }
            cursor = Some(page.cursor);
        }
        Ok(exit)
    }
}

/// The question that an ESCALATE or a HANDOFF goes back to, in a line.
fn question(waiting: &MessageView) -> Option<String> {
    let own = Document::parse(&waiting.envelope, Reading::Strict);
    let parent = own.header(CoreHeader::Parent)?;
    let mut earlier = waiting.history.iter().flatten().rev();
    earlier.find_map(|text| {
        let document = Document::parse(text, Reading::Strict);
        let is_it = document.header(CoreHeader::Message) == Some(parent);
        is_it.then(|| {
            format!(
                "{} asked: {}",
                view::party(document.sender()),
                view::first_line(&document.body_text())
            )
        })
    })
}

/// A message in a line or two.
fn line(waiting: &MessageView) -> String {
    let body = Document::parse(&waiting.envelope, Reading::Strict).body_text();
    let state = waiting.state.as_deref().unwrap_or("queued");
    let more = format!("{state}, {}", waiting.received_at);
    let question = question(waiting).map(|q| format!("  {}\n", styled(DIM, &q)));
    format!(
        "{}  {} → {}  {}  {}\n  {}\n{}",
        styled(BOLD, &view::line(&waiting.id)),
        view::line(&waiting.from),
        view::line(&waiting.to),
        view::line(waiting.intent.as_deref().unwrap_or("")),
        styled(DIM, &view::line(&more)),
        view::first_line(&body),
        question.unwrap_or_default()
    )
}
