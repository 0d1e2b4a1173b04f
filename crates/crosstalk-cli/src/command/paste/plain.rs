//! A plain answer, made into the RESPOND of a message.

use crate::command::poll::KeptPoll;
use crate::console::Console;
use crate::desk::{self, Desk};
use crate::failure::Failure;
use crate::input::Input;
use crate::outgoing::refused;
use crate::recipient::resolve_typed;
use crate::view;
use crosstalk_envelope::reply::{self, ReceivedIds};
use crosstalk_envelope::unicode::{escape, nfc};
use crosstalk_envelope::{Address, Document, Intent};
use crosstalk_protocol::poll::Call;
use crosstalk_protocol::store::{Record, Wait, Way, is_same_party};
use crosstalk_store::SqliteStore;

/// The latest question that somebody else has to answer.
pub(super) fn latest_question(store: &SqliteStore) -> Result<Option<Record>, Failure> {
    desk::latest_open(store, &[Wait::Them, Wait::Carry])
}

/// The message that is answered.
pub(super) fn answered(
    console: &mut Console,
    desk: &Desk,
    reference: &str,
) -> Result<Record, Failure> {
    let store = desk.kept(console)?;
    match reference {
        "" | desk::LAST => latest_question(&store)?.ok_or_else(|| {
            Failure::Failed(
                "no message of yours waits for an answer: name the one that this text answers with --as-reply-to ID"
                    .into(),
            )
        }),
        id => desk::message(&store, id),
    }
}

/// The plain text of an answer, without the blank lines around it.
fn body_of(input: &Input) -> Result<&str, Failure> {
    let text = input
        .text()
        .map_err(|(_, d)| Failure::of_rule(d.rule, &d.message))?;
    Ok(text.trim_end().trim_start_matches(['\r', '\n']))
}

/// The lines of a text in the form in which a body is kept.
fn lines_of(text: &str) -> Vec<String> {
    let lines = text.trim_end().lines();
    lines.map(|l| nfc(l.trim_end()).into_owned()).collect()
}

/// Whether a message was filed from the same plain text.
fn is_filed_from(record: &Record, body: &str) -> bool {
    record.way == Way::Filed && lines_of(&record.document().body_text()) == lines_of(body)
}

/// The answer that was filed before from the same plain text, in one of the latest threads; by the one who is named, if one is.
pub(super) fn filed_before(
    console: &mut Console,
    desk: &Desk,
    input: &Input,
    from: Option<&str>,
) -> Result<Option<Record>, Failure> {
    let (Ok(body), Some(store)) = (body_of(input), desk.messages(console)?) else {
        return Ok(None);
    };
    if body.is_empty() {
        return Ok(None);
    }
    let from = from.map(|name| resolve_typed(&desk.config, name));
    desk::find_recent(&store, |r| {
        is_filed_from(r, body) && from.as_deref().is_none_or(|f| is_same_party(&r.sender, f))
    })
}

/// The envelope of the answer that stands in a text without one; of one that was filed before, as it was.
pub(super) fn envelope(
    console: &mut Console,
    desk: &Desk,
    input: &Input,
    (answered, from): (&Record, Option<&str>),
) -> Result<String, Failure> {
    let body = body_of(input)?;
    if body.is_empty() {
        return Err(Failure::Failed("there is no text to file".into()));
    }
    let document = answered.document();
    let sender = speaker(console, desk, (answered, &document), from)?;
    let before = desk::everything(&desk.kept(console)?, &answered.thread)?;
    let mut before = before
        .into_iter()
        .rev()
        .filter(|r| r.parent.as_deref() == Some(&answered.id) && is_same_party(&r.sender, &sender));
    if let Some(same) = before.find(|r| is_filed_from(r, body)) {
        return Ok(same.text);
    }
    let ids = ReceivedIds {
        thread: answered.thread.clone(),
        message: answered.id.clone(),
    };
    let user = desk.config.user()?;
    let mut asked = document.envelope();
    asked.receiver = Address::split(&sender);
    let builder = reply::respond(&asked, &ids, &user, body);
    builder.build().map_err(|e| refused(&e))
}

/// Who said it: the one whom the message is for; of those whom a poll asks, the one who is named.
fn speaker(
    console: &mut Console,
    desk: &Desk,
    (answered, document): (&Record, &Document<'_>),
    from: Option<&str>,
) -> Result<String, Failure> {
    let from = from.map(|name| resolve_typed(&desk.config, name));
    if answered.meaning != Some(Intent::Poll) {
        return Ok(from.unwrap_or_else(|| answered.receiver.clone()));
    }
    let call = Call::read(document, &answered.id, None);
    let open = KeptPoll::missing(console, desk, &answered.id)?;
    let asked = match open.is_empty() {
        true => view::names(&call.invited),
        false => view::names(&open),
    };
    let from = match (from, call.invited.as_slice()) {
        (Some(from), _) => from,
        (None, [only]) => return Ok(only.clone()),
        (None, _) if console.can_ask() => {
            let line = console.ask(&format!("Who said it? One of {asked}: "))?;
            resolve_typed(&desk.config, &line.unwrap_or_default())
        }
        (None, _) => {
            return Err(Failure::Usage(format!(
                "a poll asks several, and a plain answer does not say whose it is: name who said it with --from, one of {asked}"
            )));
        }
    };
    match call.asks(&from) {
        true => Ok(from),
        false => Err(Failure::Usage(format!(
            "{} is not among those whom the poll asks: name one of {asked} with --from",
            escape(&from)
        ))),
    }
}
