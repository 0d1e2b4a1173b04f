//! `crosstalk reply`: the answer to a message.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::compose::Content;
use crate::service::deliver::Delivery;
use crate::service::workspace::{self, Desk, LAST};
use crate::shell;
use crate::view;
use clap::Args;
use crosstalk_envelope::Intent;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::Word;
use crosstalk_protocol::compose::looks_like_text;
use crosstalk_protocol::poll::Call;
use crosstalk_protocol::store::{Found, Record, Side, Store as _, Wait, is_same_party};
use crosstalk_store::SqliteStore;

/// How many messages that wait are listed.
const LISTED: usize = 9;

/// Answer a message
///
/// Without an id, the message that waits for you; `last` is the latest that waits, or the latest of all if none does. Thread, parent, session and context are taken over, and the
/// answer goes to whoever asked; to a POLL it is a ballot. Without a text, your editor opens with the message below. A text
/// that is nothing but thanks for an answer waits for nothing; --intent REQUEST asks for an answer.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk reply\n  crosstalk reply \"Yes, with short expiry.\"           # to the one message that waits\n  crosstalk reply 01K74V8Q \"Yes, with short expiry.\"\n  crosstalk reply last --body - < answer.txt\n  crosstalk reply last --fyi \"Thanks, got it.\"   # waits for nothing\n\nExit codes: as of crosstalk send; 1 if nothing waits for you."
)]
pub(crate) struct Reply {
    /// The message: its id or the beginning of it, a thread, or `last`; without TEXT, a text for the only message that waits
    #[arg(value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    content: Content,
    #[command(flatten)]
    delivery: Delivery,
}

impl Reply {
    pub(super) fn run(mut self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let store = desk.kept(console)?;
        if let Some(text) = self.id.take_if(|id| is_the_text(&store, id, &self.content)) {
            self.content.set_text(text);
        }
        self.require_known(&store)?;
        let is_named = self
            .id
            .as_deref()
            .is_some_and(|id| !id.eq_ignore_ascii_case(LAST));
        let answered = match &self.id {
            // A thanks is for the answer that came last, and not for a question that waits.
            Some(reference) if self.content.asks_nothing() => {
                workspace::message(&store, reference)?
            }
            Some(reference) => workspace::question(&store, reference)?,
            None => waiting(&store, self.content.has_text())?,
        };
        self.delivery.require_open(&store, &answered.thread)?;
        if !is_named {
            console.talk(&format!(
                "Answers {}\n",
                workspace::named(&store, &answered)?
            ))?;
        }
        drop(store);
        answer(console, &desk, &answered, &self.content, &self.delivery)
    }
}

impl Reply {
    /// What is the only argument, and neither a message nor surely a text, may be a text all the same.
    fn require_known(&self, store: &SqliteStore) -> Result<(), Failure> {
        let Some(id) = self
            .id
            .as_deref()
            .filter(|id| !id.eq_ignore_ascii_case(LAST))
        else {
            return Ok(());
        };
        match store.find(id)? {
            Found::Nothing if !self.content.has_text() => Err(Failure::Failed(format!(
                "no message and no thread here begins with `{id}`: `crosstalk inbox` lists those that wait; if it is your \
                 answer, `crosstalk reply last {}` sends it",
                shell::word(id)
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether the only argument is the answer and not the message: it names none that is here, and reads like a text.
fn is_the_text(store: &SqliteStore, argument: &str, content: &Content) -> bool {
    let names_something =
        argument.eq_ignore_ascii_case(LAST) || !matches!(store.find(argument), Ok(Found::Nothing));
    !names_something && !content.has_text() && looks_like_text(argument)
}

/// The message that waits for an answer: without a text, which a person writes below it, the latest one; a text that is there
/// already goes to the only one.
fn waiting(store: &SqliteStore, has_text: bool) -> Result<Record, Failure> {
    let mut open = workspace::open(store, &[Wait::Me])?.into_iter();
    let Some(latest) = open.next() else {
        return Err(Failure::Failed(
            "nothing waits for an answer of yours: `crosstalk reply last \"…\"` answers the latest message, and `crosstalk \
             threads` lists the others"
                .into(),
        ));
    };
    let others: Vec<Record> = open.collect();
    if others.is_empty() || !has_text {
        return Ok(latest);
    }
    let number = others.len() + 1;
    let id = view::short(store, &latest.id)?;
    let mut rows = format!(
        "{number} messages wait for your answer: name one, as in `crosstalk reply {id} \"…\"`, or the latest with `last`"
    );
    for record in [&latest].into_iter().chain(&others).take(LISTED) {
        rows.push_str(&format!("\n  {}", workspace::named(store, record)?));
    }
    if number > LISTED {
        rows.push_str("\n  … `crosstalk inbox` lists the rest");
    }
    Err(Failure::Usage(rows))
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
    warn_of_stranger(console, answered, (&sender, content))?;
    let receivers = std::slice::from_ref(&receiver);
    let letter = content.write(console, desk, (&sender, receivers), Some(answered))?;
    letter.dispatch(console, desk, delivery)
}

/// Whether nothing speaks against a message.
pub(super) const fn is_sound(verdict: Word) -> bool {
    !matches!(verdict, Word::Damaged | Word::NotVerified | Word::Revoked)
}

/// Who answers whom: the one who was asked answers; who goes on with a message of their own stays the sender; and into a
/// conversation of others one speaks in one's own name.
fn sides(desk: &Desk, answered: &Record, content: &Content) -> Result<(String, String), Failure> {
    let document = answered.document();
    let routing = document.envelope().routing();
    let is_poll = answered.meaning == Some(Intent::Poll);
    let mine = desk.mine()?;
    // Answers to a poll are for who asked; elsewhere goes the result.
    let reply_to = routing.reply_to.filter(|_| !is_poll);
    let back = reply_to.map_or(answered.sender.clone(), |a| a.as_str().to_owned());
    let targets = routing.target_list();
    let own = targets.iter().find(|t| mine.has(t));
    // It was fetched from the inbox of another address.
    let is_for_me_alone = answered.side == Side::ToMe && targets.is_empty();
    let is_mine = answered.side == Side::Mine || mine.has(&answered.sender);
    let (sender, receiver) = match own.filter(|_| is_poll && !content.corrects()) {
        Some(own) => (own.to_string(), back),
        None if is_poll && content.names_sender() => (String::new(), back),
        None if is_mine => (answered.sender.clone(), answered.receiver.clone()),
        None if mine.has(&answered.receiver) || is_for_me_alone => {
            (answered.receiver.clone(), back)
        }
        None => match targets.as_slice() {
            [only] if is_poll && answered.side == Side::ToMe => (only.to_string(), back),
            _ => (desk.config.sender()?, back),
        },
    };
    match content.names_sender() {
        true => Ok((content.sender(&desk.config)?, receiver)),
        false => Ok((sender, receiver)),
    }
}

/// A ballot of somebody who is not asked does not count: said before it is sent.
fn warn_of_stranger(
    console: &mut Console,
    answered: &Record,
    (sender, content): (&str, &Content),
) -> Result<(), Failure> {
    if answered.meaning != Some(Intent::Poll) || content.corrects() {
        return Ok(());
    }
    let document = answered.document();
    let call = Call::read(&document, &answered.id, None);
    if call.asks(sender) {
        return Ok(());
    }
    console.warning(&format!(
        "{} is not among those who are asked, so this is no ballot: answer with --from NAME for one of {}",
        escape(sender),
        view::names(&call.invited)
    ))
}
