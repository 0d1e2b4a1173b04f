//! `/crosstalk/sms`: callbacks of the provider of text messages, signed as the Standard Webhooks say (TXT-010 to TXT-013).
//!
//! ```text
//! callback ── check_webhook ──┬─ message.received ── code of a question, and the number that got it ──> RESPOND
//!                             └─ message.failed ──── code of a message ──> ERROR (E-ROUTE) to its sender
//! ```
//!
//! The provider gets 200 when the message is on disk, and also for an answer that will never count, so that it does not call
//! again. A callback that comes again changes nothing.

use super::body::{self, BodyLimits};
use super::response::{HttpError, Json};
use super::router::Call;
use crate::config::Sms;
use crate::core::{Received, Relay};
use crate::delivery::sms::phone_of;
use crate::file::{open_regular, read_bounded};
use crate::metrics::IncomingOutcome;
use axum::extract::Request;
use crosstalk_email::{
    TextCode, TokenScope, WebhookCall, WebhookError, check_webhook, phone_number, read_text,
    respond_in_words,
};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::port::RecordQuery;
use crosstalk_protocol::relay::report::{derived, takes_no_answer, undeliverable};
use crosstalk_protocol::relay::{Handler, Peer};
use crosstalk_protocol::store::Record;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The path of the callbacks.
pub(super) const PATH: &str = "/crosstalk/sms";

/// The largest callback, in bytes, and how long it may take to come.
const LIMITS: BodyLimits = BodyLimits {
    bytes: 64 << 10,
    time: Duration::from_secs(20),
};
/// The largest file with a secret, in bytes.
const MAX_SECRET_BYTES: u64 = 4096;
/// How many texts of one number are read in a minute: a code has 30 bits that have to be guessed.
const TEXTS_PER_MINUTE: u32 = 10;
/// The longest reason of a provider that is passed on, in characters.
const MAX_REASON_CHARS: usize = 200;
const DAY_MILLIS: i64 = 86_400_000;

/// A callback. Types other than the two of this file have data of other forms.
#[derive(Deserialize)]
struct Callback {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: serde_json::Value,
}

/// A text that a phone sent.
#[derive(Deserialize)]
struct ReceivedText {
    /// The id that the provider gave it.
    id: String,
    from: String,
    text: String,
}

/// A text that did not arrive.
#[derive(Deserialize)]
struct FailedText {
    reference: String,
    #[serde(default)]
    reason: String,
}

/// What became of a callback.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct CallbackReport {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl CallbackReport {
    fn accepted(id: String) -> Self {
        Self {
            outcome: "accepted",
            message: Some(id),
            why: None,
        }
    }

    fn dropped(why: impl Into<String>) -> Self {
        Self {
            outcome: "dropped",
            message: None,
            why: Some(why.into()),
        }
    }

    fn rejected(why: impl Into<String>) -> Self {
        Self {
            outcome: "rejected",
            ..Self::dropped(why)
        }
    }
}

/// Answers a callback.
pub(super) async fn callback(
    call: Call,
    request: Request,
) -> Result<Json<CallbackReport>, HttpError> {
    let relay = &call.server.relay;
    let config = relay.config();
    let Some(sms) = &config.sms else {
        return Err(HttpError::missing("bridge to text messages"));
    };
    let (parts, request_body) = request.into_parts();
    let bytes = body::collect(request_body, LIMITS).await?;
    let secret = secret(sms).await?;
    check(&parts.headers, &bytes, &secret, relay.now())?;
    let read: Callback = serde_json::from_slice(&bytes).map_err(unreadable)?;
    let report = match read.kind.as_str() {
        "message.received" => {
            let text: ReceivedText = serde_json::from_value(read.data).map_err(unreadable)?;
            let key = ("text", phone_number(&text.from).unwrap_or_default());
            let limit =
                call.server
                    .rate_limiter
                    .acquire(&key, TEXTS_PER_MINUTE, std::time::Instant::now());
            limit.map_err(HttpError::too_often)?;
            answer(relay, sms, &text).await?
        }
        "message.failed" => {
            let text: FailedText = serde_json::from_value(read.data).map_err(unreadable)?;
            failed(relay, &text).await?
        }
        _ => CallbackReport::dropped("the relay does nothing on this type"),
    };
    let outcome = match report.outcome {
        "accepted" => IncomingOutcome::Accepted,
        "dropped" => IncomingOutcome::Dropped,
        _ => IncomingOutcome::Rejected,
    };
    relay.metrics().count_incoming("sms", outcome);
    tracing::info!(
        outcome = report.outcome,
        why = report.why,
        "a callback of the provider of text messages"
    );
    Ok(Json(report))
}

fn unreadable(fault: serde_json::Error) -> HttpError {
    HttpError::format(
        format!("The callback can't be read: {fault}."),
        "send `type` and `data` as docs/operate.md describes them.",
    )
}

/// The secret of the callbacks; read each time, so that it can be changed.
async fn secret(sms: &Sms) -> Result<String, HttpError> {
    let Some(path) = sms.secret_file.clone() else {
        return Err(HttpError::missing("secret of callbacks at this relay"));
    };
    let read = tokio::task::spawn_blocking(move || secret_in(path)).await;
    match read {
        Ok(Ok(secret)) => Ok(secret),
        Ok(Err(reason)) => {
            tracing::error!(reason, "no callback of text messages can be checked");
            Err(HttpError::later("The secret of callbacks can't be read"))
        }
        Err(_) => Err(HttpError::later("The relay is shutting down")),
    }
}

fn secret_in(path: PathBuf) -> Result<String, String> {
    let read = open_regular(&path).and_then(|file| read_bounded(&file, MAX_SECRET_BYTES));
    let bytes = read.map_err(|fault| format!("{}: {fault}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

fn check(headers: &HeaderMap, body: &[u8], secret: &str, now: Timestamp) -> Result<(), HttpError> {
    let header = |name: &str| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().unwrap_or_default(),
            _ => "",
        }
    };
    let call = WebhookCall {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        body,
    };
    check_webhook(&call, secret, now).map_err(|fault| match fault {
        WebhookError::Secret => {
            tracing::error!(reason = %fault, "`secret_file` of [sms] holds no secret");
            HttpError::later("The secret of callbacks can't be used")
        }
        _ => HttpError::unknown_peer(
            format!("Nothing shows that the provider sent this: {fault}."),
            "sign it with the secret that the relay operator configured.",
        ),
    })
}

/// The message that a code is for, and its recipient by text message.
async fn message_of(relay: &Relay, code: &TextCode) -> Result<Option<(Record, String)>, HttpError> {
    let Some(key) = relay.reply_key() else {
        return Ok(None);
    };
    let store = relay.store();
    let records = store.records(RecordQuery::Seqs(vec![code.place()])).await?;
    let Some(record) = records.into_iter().next() else {
        return Ok(None);
    };
    let ways = store.deliveries_of(&record.id).await?;
    let way = ways.into_iter().find(|way| {
        let scope = TokenScope {
            message: &record.id,
            thread: &record.thread,
            recipient: &way.to,
        };
        way.by == Handler::Sms && code.is_for(key, scope)
    });
    Ok(way.map(|way| (record, way.to)))
}

/// A person answers. The words count if they have the code of a question, and come from the number that the question went to.
async fn answer(
    relay: &Relay,
    sms: &Sms,
    text: &ReceivedText,
) -> Result<CallbackReport, HttpError> {
    if text.id.is_empty() {
        return Ok(CallbackReport::rejected("the text has no id"));
    }
    // What it answers may have come a moment ago.
    relay.store().caught_up().await?;
    let mut found = None;
    for (code, words) in read_text(&text.text).codes {
        if let Some((record, recipient)) = message_of(relay, &code).await? {
            found = Some((record, recipient, words));
            break;
        }
    }
    let Some((record, recipient, words)) = found else {
        return Ok(CallbackReport::rejected(
            "the text has no code of a question of this relay, or no words beside it",
        ));
    };
    let asked = phone_of(&relay.config(), &recipient);
    if asked.is_none() || asked != phone_number(&text.from) {
        return Ok(CallbackReport::rejected(
            "the question went to another number",
        ));
    }
    let days = i64::from(sms.reply_days).saturating_mul(DAY_MILLIS);
    if relay.now().as_millis() >= record.at.as_millis().saturating_add(days) {
        return Ok(CallbackReport::rejected(
            "the time in which this text could be answered is over",
        ));
    }
    if takes_no_answer(&record) {
        return Ok(CallbackReport::dropped(
            "it answers a message that takes no answer",
        ));
    }
    let speaker = relay.name_of_recipient(&record, &recipient);
    // Nobody foresees it: a message of somebody else could take the place of the answer.
    let seed = format!(
        "text message\n{}\n{}\n{}",
        record.digest, recipient, text.id
    );
    let id = derived(record.at, &relay.keyed(&seed));
    let built = respond_in_words(&record, &speaker, id, ("text message", &words));
    let envelope = match built {
        Ok(envelope) => envelope,
        Err(refusal) => return Ok(CallbackReport::rejected(refusal.what)),
    };
    let peer = Peer::answering(format!("sms:{recipient}"), &[speaker, recipient]);
    outcome(relay.take_in(&envelope, &peer).await)
}

/// A text did not arrive. Its sender is told once, however often the provider says it.
async fn failed(relay: &Relay, text: &FailedText) -> Result<CallbackReport, HttpError> {
    relay.store().caught_up().await?;
    let code = TextCode::parse(&text.reference);
    let found = match &code {
        Some(code) => message_of(relay, code).await?,
        None => None,
    };
    let Some((record, recipient)) = found else {
        return Ok(CallbackReport::dropped("it is about no text of this relay"));
    };
    let reason: String = escape(text.reason.trim().trim_end_matches('.'))
        .chars()
        .take(MAX_REASON_CHARS)
        .collect();
    let reason = match reason.is_empty() {
        true => "the provider of text messages could not deliver it".to_owned(),
        false => reason.replace('\n', " "),
    };
    let help = "check the number, or reach the recipient in another way.";
    let told = (ErrorCode::Route, reason.as_str(), help);
    match undeliverable(&record, &recipient, told, record.at) {
        Some(envelope) => outcome(relay.say(&envelope).await),
        None => Ok(CallbackReport::dropped(
            "nothing is said about a message that takes no answer",
        )),
    }
}

fn outcome(received: Received) -> Result<CallbackReport, HttpError> {
    match received {
        Received::Accepted { id, .. } => Ok(CallbackReport::accepted(id)),
        Received::Rejected {
            refusal,
            status: 503,
            ..
        } => Err(HttpError::later(refusal.what.trim_end_matches('.'))),
        Received::Rejected { refusal, .. } if refusal.code == ErrorCode::Rate => {
            Err(HttpError::later(refusal.what.trim_end_matches('.')))
        }
        Received::Rejected { refusal, .. } => Ok(CallbackReport::rejected(refusal.what)),
    }
}
