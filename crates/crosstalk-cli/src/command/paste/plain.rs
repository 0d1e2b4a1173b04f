//! A plain answer, made into the RESPOND of a message.

use crate::console::Console;
use crate::desk::{self, Desk};
use crate::failure::Failure;
use crate::input::Input;
use crate::outgoing::refused;
use crosstalk_envelope::reply::{self, ReceivedIds};
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::store::Record;

/// The message that is answered.
pub(super) fn answered(
    console: &mut Console,
    desk: &Desk,
    reference: &str,
) -> Result<Record, Failure> {
    let store = desk.kept(console)?;
    match reference {
        "" | desk::LAST => desk::latest_asked(&store)?.ok_or_else(|| {
            Failure::Failed(
                "no message of yours waits for an answer: name the one that this text answers with --as-reply-to ID"
                    .into(),
            )
        }),
        id => desk::message(&store, id),
    }
}

/// The envelope of the answer that stands in a text without one.
pub(super) fn envelope(desk: &Desk, input: &Input, answered: &Record) -> Result<String, Failure> {
    let text = input
        .text()
        .map_err(|(_, d)| Failure::of_rule(d.rule, &d.message))?;
    let body = text.trim_end().trim_start_matches(['\r', '\n']);
    if body.is_empty() {
        return Err(Failure::Failed("there is no text to file".into()));
    }
    build(desk, answered, body)
}

fn build(desk: &Desk, answered: &Record, body: &str) -> Result<String, Failure> {
    let document = Document::parse(&answered.text, Reading::Paste);
    let ids = ReceivedIds {
        thread: answered.thread.clone(),
        message: answered.id.clone(),
    };
    let user = desk.config.user()?;
    let builder = reply::respond(&document.envelope(), &ids, &user, body);
    builder.build().map_err(|e| refused(&e))
}
