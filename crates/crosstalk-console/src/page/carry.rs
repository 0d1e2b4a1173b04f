//! Messages that the person carries to chats by copy and paste.

use super::{PageResult, Shell, render};
use crate::message::ShownMessage;
use crate::text::Shown;
use crate::visit::{Posted, Visit, redirect};
use askama::Template;

use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::{Assistant, carried, expects_answer, primer_of};

/// How many errands are listed.
const MOST: usize = 100;

/// A message to carry.
struct ErrandCard {
    message: ShownMessage,
    /// The text for the chat: how to answer, and the envelope in a fence.
    text: Shown,
    /// The same with every character as it is, for the clipboard.
    exact: String,
    takes_answer: bool,
}

#[derive(Template)]
#[template(path = "carry.html")]
struct CarryPage {
    shell: Shell,
    errands: Vec<ErrandCard>,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let waiting = visit.client.courier(MOST).await?;
    let errands = waiting.iter().map(|view| {
        let document = Document::parse(&view.envelope, Reading::Strict);
        let text = carried(
            &view.envelope,
            view.signature.as_deref(),
            view.pkid.as_deref(),
        );
        let primer = primer_of(Assistant::of_address(&view.to), document.sender());
        let exact = format!("{}\n\n{text}", primer.trim_end());
        ErrandCard {
            message: ShownMessage::of(view, visit.now),
            text: Shown::new(&exact),
            exact,
            takes_answer: expects_answer(document.envelope().meaning()),
        }
    });
    render(&CarryPage {
        errands: errands.collect(),
        shell: visit.shell("Carry").await,
    })
}

/// Says that a message was carried, or why not.
pub(crate) async fn report(Posted { visit, form }: Posted) -> PageResult {
    let reason = form
        .get("failed")
        .map(|_| match form.text("reason").trim() {
            "" => "it could not be carried",
            reason => reason,
        });
    visit
        .client
        .carried(form.text("id"), form.text("to"), reason)
        .await?;
    Ok(redirect(match reason {
        None => "/carry?did=carried",
        Some(_) => "/carry?did=failed",
    }))
}
