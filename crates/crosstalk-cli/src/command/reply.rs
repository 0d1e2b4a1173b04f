//! `crosstalk reply`: the answer to a message.

use crate::console::Console;
use crate::content::Content;
use crate::desk::{self, Desk};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outgoing::Delivery;
use clap::Args;
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::Word;
use crosstalk_protocol::store::{Page, Record, Side, Store as _, Wait, is_same_party};
use crosstalk_store::SqliteStore;

/// Answer a message
///
/// Without an id, the latest message that waits for you. Thread, parent, session and context are taken over, and the
/// answer goes to whoever asked. Without a text, your editor opens with the message below.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk reply\n  crosstalk reply 01K74V8Q \"Yes, with short expiry.\"\n  crosstalk reply last --body - < answer.txt\n\nExit codes: as of crosstalk send; 1 if nothing waits for you."
)]
pub(crate) struct Reply {
    /// The message: its id or the beginning of it, a thread, or `last`
    #[arg(value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    content: Content,
    #[command(flatten)]
    delivery: Delivery,
}

impl Reply {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let store = desk.kept(console)?;
        let answered = match &self.id {
            Some(reference) => found(&store, reference)?,
            None => waiting(&store)?,
        };
        self.delivery.require_open(&store, &answered.thread)?;
        drop(store);
        answer(console, &desk, &answered, &self.content, &self.delivery)
    }
}

/// The message that is meant; what looks like a text was not meant as an id.
fn found(store: &SqliteStore, reference: &str) -> Result<Record, Failure> {
    if reference.contains(char::is_whitespace) {
        return Err(Failure::Usage(
            "the first argument is the message to answer: `crosstalk reply last \"…\"`, or `crosstalk reply --body \"…\"` \
             for the one that waits"
                .into(),
        ));
    }
    desk::message(store, reference)
}

/// The message that waits for an answer, the latest one first.
fn waiting(store: &SqliteStore) -> Result<Record, Failure> {
    let inbox = store.inbox(Page::first(50))?;
    let mine = inbox.items.into_iter().find(|r| r.wait == Wait::Me);
    let mine = mine.map(desk::veiled);
    mine.ok_or_else(|| {
        Failure::Failed(
            "nothing waits for an answer of yours: name a message (`crosstalk threads`, `crosstalk show THREAD`), or \
             `last`"
                .into(),
        )
    })
}

/// Writes and sends the answer to a message.
pub(super) fn answer(
    console: &mut Console,
    desk: &Desk,
    answered: &Record,
    content: &Content,
    delivery: &Delivery,
) -> Result<Exit, Failure> {
    delivery.require_key(desk)?;
    if !is_sound(answered.verdict) {
        console.warning("you answer a message that must not be acted on")?;
    }
    let (sender, receiver) = sides(desk, answered, content)?;
    if answered.side != Side::Mine
        && !is_same_party(&receiver, &answered.sender)
        && !is_same_party(&receiver, &answered.receiver)
    {
        let from = &answered.sender;
        console.note(&format!(
            "the message wants its answer at {receiver} (X-Reply-To), not at {from}"
        ))?;
    }
    let letter = content.write(console, desk, (&sender, &receiver), Some(answered))?;
    letter.dispatch(console, desk, delivery)
}

/// Whether nothing speaks against a message.
pub(super) const fn is_sound(verdict: Word) -> bool {
    !matches!(verdict, Word::Damaged | Word::NotVerified | Word::Revoked)
}

/// Who answers whom: the one who was asked answers; who goes on with a message of their own stays the sender; and into a
/// conversation of others one speaks in one's own name.
fn sides(desk: &Desk, answered: &Record, content: &Content) -> Result<(String, String), Failure> {
    let document = Document::parse(&answered.text, Reading::Paste);
    let reply_to = document.envelope().routing().reply_to;
    let back = reply_to.map_or(answered.sender.clone(), |a| a.as_str().to_owned());
    let mine = desk.mine()?;
    // It was fetched from the inbox of another address.
    let has_targets = !document.envelope().routing().target_list().is_empty();
    let is_for_me_alone = answered.side == Side::ToMe && !has_targets;
    let (sender, receiver) = if answered.side == Side::Mine || mine.has(&answered.sender) {
        (answered.sender.clone(), answered.receiver.clone())
    } else if mine.has(&answered.receiver) || is_for_me_alone {
        (answered.receiver.clone(), back)
    } else {
        (desk.config.sender()?, back)
    };
    match content.names_sender() {
        true => Ok((content.sender(&desk.config)?, receiver)),
        false => Ok((sender, receiver)),
    }
}
