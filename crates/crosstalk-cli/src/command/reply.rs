//! `crosstalk reply`: the answer to a message.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::compose::Content;
use crate::service::deliver::Delivery;
use crate::service::lookup::{self, LAST};
use crate::service::reply::answer;
use crate::service::workspace::Desk;
use crate::{shell, view};
use clap::Args;
use crosstalk_protocol::compose::looks_like_text;
use crosstalk_protocol::store::{Found, Record, Store as _, Wait};
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
            Some(reference) if self.content.asks_nothing() => lookup::message(&store, reference)?,
            Some(reference) => lookup::question(&store, reference)?,
            None => waiting(&store, self.content.has_text())?,
        };
        self.delivery.require_open(&store, &answered.thread)?;
        if !is_named {
            console.talk(&format!("Answers {}\n", lookup::named(&store, &answered)?))?;
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
            Found::Nothing if !self.content.has_text() => Err(Failure::failed(format!(
                "no message and no thread here begins with `{id}`"
            ))
            .help(format!(
                "`crosstalk inbox` lists those that wait; if it is your \
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
    let mut open = lookup::open(store, &[Wait::Me])?.into_iter();
    let Some(latest) = open.next() else {
        return Err(
            Failure::failed("nothing waits for an answer of yours").help(
                "`crosstalk reply last \"…\"` answers the latest message, and `crosstalk \
             threads` lists the others",
            ),
        );
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
        rows.push_str(&format!("\n  {}", lookup::named(store, record)?));
    }
    if number > LISTED {
        rows.push_str("\n  … `crosstalk inbox` lists the rest");
    }
    Err(Failure::usage(rows))
}
