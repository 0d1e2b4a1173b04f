//! `crosstalk inbox --relay`: what waits for an address at a relay.

use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{FetchedMessage, RelayInboxReport};
use crate::schema::RELAY_INBOX;
use crate::service::relay::inbox::{addresses, take};
use crate::service::relay::remote::{Remote, Through, Waiting};
use crate::service::workspace::Desk;
use crate::view;
use crosstalk_envelope::{CoreHeader, Document, Reading};

/// How many messages are fetched at once.
const AT_ONCE: u32 = 100;

/// What is asked for.
pub(super) struct AtRelay<'a> {
    pub(super) through: Through,
    /// Whose inboxes; one's own if none is named.
    pub(super) addresses: &'a [String],
    /// How many messages at most.
    pub(super) limit: u32,
    /// Whether they are kept here and acknowledged.
    pub(super) take: bool,
    pub(super) json: bool,
}

impl AtRelay<'_> {
    pub(super) fn run(&self, console: &mut Console, desk: &Desk) -> Result<Exit, Failure> {
        let addresses = addresses(desk, self.addresses)?;
        let (mut exit, mut messages) = (Exit::SUCCESS, Vec::new());
        for address in &addresses {
            let remote = self.through.connect(&desk.config, Some(address))?;
            exit = exit.worst(self.one(console, desk, &remote, address, &mut messages)?);
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
        desk: &Desk,
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
                    true => take(console, desk, remote, address, waiting, self.json)?,
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
fn question(waiting: &Waiting) -> Option<String> {
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
pub(super) fn line(waiting: &Waiting) -> String {
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
