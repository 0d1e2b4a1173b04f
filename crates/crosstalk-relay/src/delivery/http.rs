//! Posts a message to an HTTP endpoint, whose response may be the answer.

use super::{AttemptOutcome, Blame, DeliveryHandler, DeliveryJob, HandlerReply};
use crate::config::RouteEntry;
use crate::file::{open_regular, read_bounded};
use crate::port::Later;
use bytes::Bytes;
use crosstalk_api::client::{RejectedRequest, one_line, rejection_of};
use crosstalk_api::outbound::{HttpCall, HttpResponse, Outbound, Url};
use crosstalk_envelope::name::{SYSTEM, same_name};
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::{Document, Intent, Reading};
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use std::path::Path;
use std::time::Duration;

/// How long an endpoint may take, if nothing is configured.
const TIMEOUT_SECONDS: u64 = 30;
/// How many bytes of an answer are read, if nothing is configured: an envelope.
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// The largest file with a token, in bytes.
const MAX_TOKEN_BYTES: u64 = 4096;

/// The number of the attempt, from 1: an endpoint that sees another number may have got the message before.
const ATTEMPT: HeaderName = HeaderName::from_static("crosstalk-attempt");

/// Posts messages.
pub(super) struct Http {
    outbound: Outbound,
}

impl Http {
    pub(super) fn new(outbound: Outbound) -> Self {
        Self { outbound }
    }

    async fn post(&self, job: &DeliveryJob) -> AttemptOutcome {
        let Some(route) = job.route.as_deref() else {
            return AttemptOutcome::later(ErrorCode::Route, "the route that led there is gone");
        };
        let url = match Url::parse(route.url.as_deref().unwrap_or_default()) {
            Ok(url) => url,
            Err(error) => {
                return AttemptOutcome::failed(
                    ErrorCode::Route,
                    format!("the URL of the route: {error}"),
                );
            }
        };
        let call = match request_of(job, url, Some(route), route.allow_private).await {
            Ok(call) => call,
            Err(outcome) => return outcome,
        };
        match self.outbound.call(call).await {
            Ok(answer) if (200..300).contains(&answer.status) => read_answer(&answer),
            Ok(answer) => outcome_of_rejection(rejection_of(&answer)),
            Err(error) => error.into(),
        }
    }
}

impl DeliveryHandler for Http {
    fn handle<'l>(&'l self, job: &'l DeliveryJob) -> Later<'l, AttemptOutcome> {
        Box::pin(self.post(job))
    }
}

/// The request that brings a message somewhere.
pub(super) async fn request_of(
    job: &DeliveryJob,
    url: Url,
    route: Option<&RouteEntry>,
    allow_private: bool,
) -> Result<HttpCall, AttemptOutcome> {
    let token = match route.and_then(|r| r.token_file.as_deref()) {
        Some(path) => Some(token(path).await?),
        None => None,
    };
    let within = route
        .and_then(|r| r.timeout_seconds)
        .unwrap_or(TIMEOUT_SECONDS);
    let call = HttpCall {
        body: Bytes::copy_from_slice(job.text.as_bytes()),
        allow_private,
        within: Duration::from_secs(within.max(1)),
        most: route
            .and_then(|r| r.answer_bytes)
            .unwrap_or(MAX_ANSWER_BYTES),
        ..HttpCall::new(Method::POST, url)
    };
    let call = call
        .header(CONTENT_TYPE, "text/plain; charset=utf-8")
        .and_then(|c| c.header(ACCEPT, "text/plain"))
        .and_then(|c| c.header(ATTEMPT, &job.attempt().to_string()))
        .and_then(|c| c.bearer(token.as_deref()));
    call.map_err(AttemptOutcome::from)
}

/// The token in a file; read each time, so that it can be changed.
pub(super) async fn token(path: &Path) -> Result<String, AttemptOutcome> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || read_token(&path)).await;
    let read = read.unwrap_or_else(|e| Err(e.to_string()));
    read.map_err(|reason| AttemptOutcome::later(ErrorCode::Route, reason))
}

/// The token in a file, or why there is none.
pub(super) fn read_token(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let read = open_regular(path).and_then(|file| read_bounded(&file, MAX_TOKEN_BYTES));
    let read = read.map_err(|e| format!("the token in {shown} can't be read: {e}"))?;
    let text = String::from_utf8(read).unwrap_or_default();
    let token = text.trim();
    match token.is_empty() || token.contains(char::is_whitespace) {
        true => Err(format!("{shown} does not hold a token")),
        false => Ok(token.to_owned()),
    }
}

/// The outcome of a response with a good status.
fn read_answer(answer: &HttpResponse) -> AttemptOutcome {
    let text = answer.text().unwrap_or_default().trim_start();
    let document = Document::parse(text, Reading::Strict);
    if !text.starts_with("[[") || !document.is_accepted() {
        return read_plain_answer(answer);
    }
    if document.envelope().meaning() == Some(Intent::Error) && same_name(document.sender(), SYSTEM)
    {
        return outcome_of_rejection(rejection_of(answer));
    }
    AttemptOutcome::Delivered {
        answer: Some(HandlerReply::Envelopes(vec![text.to_owned()])),
    }
}

/// A text that is no envelope is an answer in plain words, with the status for a whole answer; pages and JSON are none.
fn read_plain_answer(answer: &HttpResponse) -> AttemptOutcome {
    let kind = answer.headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|v| v.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    let is_text = kind.trim().eq_ignore_ascii_case("text/plain");
    let text = answer.text().unwrap_or_default().trim();
    let is_reply = is_text && answer.status == 200 && !text.is_empty() && !text.starts_with("[[");
    AttemptOutcome::Delivered {
        answer: is_reply.then(|| HandlerReply::Text(text.to_owned())),
    }
}

/// The outcome of a rejection: some may work later.
pub(super) fn outcome_of_rejection(refused: RejectedRequest) -> AttemptOutcome {
    let RejectedRequest {
        status,
        code,
        reason,
        detail,
        retry_after,
    } = refused;
    // What an ERROR says is for the sender; any other page may be about the inside of a server.
    let public =
        code.map(|code| format!("the other side rejected it ({}: {reason})", code.as_str()));
    let reason = match code {
        Some(code) => format!("status {status}, {}: {reason}", code.as_str()),
        None => format!("status {status}: {}", one_line(&detail)),
    };
    match status {
        408 | 425 | 429 | 500.. => AttemptOutcome::Later {
            code: match status {
                408 | 504 => ErrorCode::Timeout,
                _ => ErrorCode::Route,
            },
            reason,
            public,
            after: retry_after,
            blame: Blame::Destination,
        },
        _ => AttemptOutcome::Failed {
            code: code.unwrap_or(ErrorCode::Route),
            reason,
            public,
        },
    }
}
