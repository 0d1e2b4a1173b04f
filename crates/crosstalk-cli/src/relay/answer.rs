//! The answer to a message that came by a relay: what a program or a chat said, made into a RESPOND.

use crate::clock;
use crate::console::Console;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::outgoing::{Delivery, arrival, refused};
use crate::relay::handing::hand;
use crate::relay::remote::{Remote, Waiting};
use crosstalk_envelope::{Builder, CoreHeader, Document, Intent, Reading, scan};
use crosstalk_protocol::store::{Store as _, is_same_party};

/// Whether a message takes an answer. What nobody asked for, and answers themselves, are never answered: else two
/// programs would talk for ever.
pub(crate) fn takes_answer(waiting: &Waiting) -> bool {
    let document = Document::parse(&waiting.envelope, Reading::Strict);
    matches!(
        document.envelope().meaning(),
        Some(Intent::Request | Intent::Escalate | Intent::Handoff | Intent::Poll)
    )
}

/// The envelope of an answer: the one that stands in a text if it fits, else the text, or the body of what stands in it,
/// as a RESPOND.
pub(crate) fn envelope(desk: &Desk, waiting: &Waiting, said: &str) -> Result<String, Failure> {
    let found = scan(said, Reading::Paste);
    let body = match found.documents.as_slice() {
        [only] => {
            let text = only.text().to_owned();
            let strict = Document::parse(&text, Reading::Strict);
            if strict.is_accepted() && fits(&strict, waiting) {
                return Ok(text);
            }
            only.body_text()
        }
        _ => said.trim_end().trim_start_matches(['\r', '\n']).to_owned(),
    };
    if body.trim().is_empty() {
        return Err(Failure::Failed("the answer is empty".into()));
    }
    respond(desk, waiting, &body)?
        .build()
        .map_err(|e| refused(&e))
}

/// Whether an envelope is an answer to a message, from the one who got it.
fn fits(answer: &Document<'_>, waiting: &Waiting) -> bool {
    let is_new = answer
        .header(CoreHeader::Message)
        .is_some_and(|id| id != waiting.id);
    is_new
        && is_same_party(answer.sender(), &waiting.to)
        && answer.header(CoreHeader::Parent) == Some(waiting.id.as_str())
        && answer
            .header(CoreHeader::Thread)
            .is_none_or(|t| t == waiting.thread)
}

/// The RESPOND to a message.
fn respond(desk: &Desk, waiting: &Waiting, body: &str) -> Result<Builder, Failure> {
    let document = Document::parse(&waiting.envelope, Reading::Strict);
    let envelope = document.envelope();
    let reply_to = envelope.routing().reply_to;
    let receiver = reply_to.map_or(waiting.from.clone(), |a| a.as_str().to_owned());
    let builder = Builder::new(waiting.to.as_str(), receiver)
        .user(desk.config.user()?)
        .core_if(CoreHeader::Session, envelope.session.map(|s| s.text))
        .thread(&waiting.thread)
        .parent(&waiting.id)
        .message(desk.new_id())
        .context(envelope.context.unwrap_or("reply"))
        .intent(Intent::Respond.as_str())
        .body(body);
    Ok(builder.visible())
}

/// Keeps an answer here, signed if the settings say so, and hands it to the relay. Its id.
pub(crate) fn post(
    console: &mut Console,
    desk: &Desk,
    remote: &Remote,
    text: &str,
) -> Result<String, Failure> {
    let document = Document::parse(text, Reading::Strict);
    let at = clock::now();
    let mut store = desk.store(console)?;
    let is_signed = document.sig().is_some_and(|sig| sig != "none");
    let (text, key) = match is_signed {
        true => (text.to_owned(), None),
        false => {
            let is_known = store.knows(document.receiver())?;
            Delivery::default().seal(desk, text, at, is_known)?
        }
    };
    let arrival = arrival(&text, key.as_ref(), at);
    let id = arrival.id().to_owned();
    store.accept(&[arrival])?;
    drop(store);
    hand(remote, &text, None).map_err(|trouble| {
        let failure = Failure::from(trouble);
        match failure {
            Failure::Refused(code, message) => Failure::Refused(
                code,
                format!("the answer was not handed over: {message}\nIt is kept: `crosstalk relay deliver {id}` tries again"),
            ),
            other => other,
        }
    })?;
    Ok(id)
}
