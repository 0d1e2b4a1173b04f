//! Writing: a new message or an answer, the preview of its exact envelope, and sending it.

use super::{PageError, PageResult, Shell, render};
use crate::compose::{INTENTS, WrittenMessage};
use crate::fields::encode;
use crate::message::takes_reply;
use crate::signing::{UnsignedMessage, read_key};
use crate::text::Shown;
use crate::visit::{Posted, Visit, own_path, redirect};
use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstalk_api::client::{MessageView, SendResult};
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};
use crosstalk_protocol::relay::is_human;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde::Serialize;

/// An intent that a form offers.
pub(crate) struct IntentChoice {
    pub(crate) word: &'static str,
    pub(crate) label: &'static str,
}

pub(crate) fn intent_choices() -> Vec<IntentChoice> {
    let all = INTENTS.iter();
    all.map(|&(intent, label)| IntentChoice {
        word: intent.as_str(),
        label,
    })
    .collect()
}

#[derive(Template)]
#[template(path = "new.html")]
struct NewPage {
    shell: Shell,
    addresses: Vec<Shown>,
    is_free: bool,
    to: Shown,
    known: Vec<Shown>,
}

/// The form for a new message.
pub(crate) async fn new(visit: Visit) -> PageResult {
    let agents = visit.client.agents().await.unwrap_or_default();
    render(&NewPage {
        addresses: visit.addresses().iter().map(|a| Shown::new(a)).collect(),
        is_free: visit.chooses_address(),
        to: Shown::new(visit.query.text("to")),
        known: agents.iter().map(|a| Shown::new(&a.address)).collect(),
        shell: visit.shell("New message").await,
    })
}

#[derive(Template)]
#[template(path = "preview.html")]
struct PreviewPage {
    shell: Shell,
    envelope: Shown,
    /// The same with every character as it is, for the form.
    exact: String,
    to: Shown,
    relay: Shown,
    /// The fields of the form, so that the browser can go back to it.
    back: String,
    /// The key that signed it, in the short form that people compare.
    signed_by: Option<String>,
    purpose: Purpose,
    /// The command that writes and sends the same.
    command: Option<String>,
}

/// The effect of an envelope, and the page that shows it.
struct Purpose {
    meaning: &'static str,
    button: &'static str,
    /// Whether a relay accepts it only with a signature (INT-012).
    needs_signature: bool,
    /// The page that shows what came of it, if that is not the conversation.
    next: Option<String>,
}

impl Purpose {
    fn of(envelope: &str) -> Self {
        let document = Document::parse(envelope, Reading::Strict);
        let written = document.envelope();
        let poll =
            |id: Option<&str>, word| id.map(|id| format!("/polls/{}?did={word}", encode(id)));
        let consent = |namespace, word| {
            let name = document.meta(namespace, "Consent-ID");
            name.map(|name| format!("/consents/{}?did={word}", encode(name)))
        };
        let corrects = document.meta("vote", "Corrects").is_some();
        let (meaning, button, next) = match written.meaning() {
            Some(Intent::Poll) => (
                "It goes to every voter, and the relay counts the answers.",
                "Open the poll",
                poll(written.message, "opened"),
            ),
            Some(Intent::Revoke) => (
                "The texts under the consent are erased. That can’t be undone.",
                "Revoke and erase",
                consent("revocation", "revoked"),
            ),
            _ if corrects => (
                "The voters see who corrected the reading, and what it was before.",
                "Count it",
                poll(written.parent, "counted"),
            ),
            _ => match consent("privacy", "granted") {
                Some(next) => (
                    "The relay enforces it from now on. You can revoke it later with the key that signs it.",
                    "Send",
                    Some(next),
                ),
                None => ("", "Send", None),
            },
        };
        Self {
            meaning,
            button,
            needs_signature: written.meaning() == Some(Intent::Revoke),
            next,
        }
    }
}

/// The exact envelope of a new message.
pub(crate) async fn preview_new(Posted { visit, form }: Posted) -> PageResult {
    let envelope = draft_of(&visit, &form, None)?;
    preview(visit, envelope, "/new".to_owned(), None).await
}

/// The exact envelope of an answer.
pub(crate) async fn preview_reply(
    Path(thread): Path<String>,
    Posted { visit, form }: Posted,
) -> PageResult {
    let answered = visit.client.message(form.text("parent")).await?;
    let meaning = Document::parse(&answered.envelope, Reading::Strict)
        .envelope()
        .meaning();
    if !takes_reply(meaning) {
        return Err(PageError::fault(
            409,
            "This message takes no answer: it only informs, or settles something.",
            "write a new message.",
        ));
    }
    let envelope = draft_of(&visit, &form, Some(&answered))?;
    let back = format!("/threads/{}#reply", encode(&thread));
    preview(visit, envelope, back, None).await
}

fn draft_of(
    visit: &Visit,
    form: &crate::fields::FormFields,
    answered: Option<&MessageView>,
) -> Result<String, PageError> {
    let from = form.get("from").or(answered.map(|a| a.to.as_str()));
    let to = form.get("to").or(answered.map(|a| a.from.as_str()));
    let (Some(from), Some(to)) = (from, to) else {
        return Err(PageError::fault(
            400,
            "The message has no sender or no receiver.",
            "name both.",
        ));
    };
    let draft = WrittenMessage {
        from: from.trim(),
        to: to.trim(),
        intent: form.get("intent"),
        context: form.get("context").map(str::trim),
        body: form.text("body"),
        is_urgent: form.get("urgent").is_some(),
    };
    draft.envelope(&user_of(visit, from), answered)
}

/// The value of `user:`: the last part of the address, else the name of the credential.
pub(crate) fn user_of(visit: &Visit, from: &str) -> String {
    let last = from.rsplit('/').next().unwrap_or("");
    let name = match last.is_empty() {
        true => visit.peer.name.as_str(),
        false => last,
    };
    name.to_lowercase()
}

async fn preview(
    visit: Visit,
    envelope: String,
    back: String,
    signed_by: Option<String>,
) -> PageResult {
    render_preview(&visit, envelope, back, signed_by, None).await
}

/// The exact envelope that another page wrote, and the command that does the same.
pub(crate) async fn preview_written(
    visit: &Visit,
    envelope: String,
    back: &str,
    command: String,
) -> PageResult {
    render_preview(visit, envelope, back.to_owned(), None, Some(command)).await
}

async fn render_preview(
    visit: &Visit,
    envelope: String,
    back: String,
    signed_by: Option<String>,
    command: Option<String>,
) -> PageResult {
    let to = Document::parse(&envelope, Reading::Strict)
        .receiver()
        .to_owned();
    render(&PreviewPage {
        relay: Shown::new(&visit.console.host.relay_name()),
        shell: visit.shell("Preview").await,
        envelope: Shown::new(&envelope),
        to: Shown::new(&to),
        purpose: Purpose::of(&envelope),
        exact: envelope,
        back,
        signed_by,
        command,
    })
}

/// The bytes that a browser signs.
#[derive(Serialize)]
struct SigningJson {
    at: String,
    bytes: String,
}

/// Gives a browser the bytes that a signature covers; with the signature, shows the signed envelope.
pub(crate) async fn sign(Posted { visit, form }: Posted) -> PageResult {
    let key = read_key(form.text("key"))?;
    let at = form.get("at").and_then(Timestamp::parse);
    let unsigned = UnsignedMessage::new(form.text("envelope"), key, at.unwrap_or(visit.now))?;
    if let Some(signature) = form.get("signature") {
        let signed = unsigned.sign(signature)?;
        let back = own_path(form.text("back")).unwrap_or("/new").to_owned();
        return preview(visit, signed, back, Some(key.fingerprint().to_string())).await;
    }
    let json = SigningJson {
        at: visit.now.to_string(),
        bytes: STANDARD.encode(&unsigned.bytes),
    };
    let text = serde_json::to_string(&json);
    let text = text.map_err(|_| PageError::format("The message can't be signed."))?;
    let mut answer = Response::new(text.into());
    let media = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, media);
    Ok(answer)
}

/// Sends an envelope as it was shown.
pub(crate) async fn send(Posted { visit, form }: Posted) -> PageResult {
    let envelope = form.text("envelope");
    let sent = visit.client.send(envelope).await?;
    finish_answered(&visit, envelope).await;
    remember_sender(&visit, envelope);
    let is_held = sent.receipt.as_ref().is_some_and(|r| r.is_held);
    match Purpose::of(envelope).next.filter(|_| !is_held) {
        Some(next) => Ok(redirect(&next)),
        None => after_sending(&visit, &sent).await,
    }
}

/// The page of the conversation that a message went to.
pub(crate) async fn after_sending(visit: &Visit, sent: &SendResult) -> PageResult {
    let word = match &sent.receipt {
        Some(receipt) if receipt.is_held => "held",
        _ => "sent",
    };
    let answer = Document::parse(&sent.answer, Reading::Strict);
    let parent = answer.envelope().parent.map(str::to_owned);
    let thread = match parent {
        Some(id) => visit.client.message(&id).await.ok().map(|m| m.thread),
        None => None,
    };
    Ok(redirect(&match thread {
        Some(thread) if word == "sent" => format!("/threads/{}?did={word}", encode(&thread)),
        _ => format!("/inbox?did={word}"),
    }))
}

/// A person who has chosen no inbox yet reads that of the person in whose name they write, or they would miss the answer.
fn remember_sender(visit: &Visit, envelope: &str) {
    let document = Document::parse(envelope, Reading::Strict);
    let sender = document.sender();
    if visit.addresses().is_empty() && is_human(sender) {
        let sender = Some(sender.to_owned());
        visit.console.sign_ins.set_address(&visit.secret, sender);
    }
}

/// A message that was answered leaves the inbox of the one who answered it.
async fn finish_answered(visit: &Visit, envelope: &str) {
    let document = Document::parse(envelope, Reading::Strict);
    let written = document.envelope();
    let answers = written.meaning().is_some_and(|m| m.answers());
    let Some(parent) = written.parent.filter(|_| answers) else {
        return;
    };
    // It may be in no inbox of the person.
    let _ = visit.client.acknowledge(document.sender(), &[parent]).await;
}
