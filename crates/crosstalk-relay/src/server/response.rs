//! Responses: text, JSON, and errors, which say what happened, where, and what to do.

use super::Server;
use super::body::{self, Body, BodyLimits};
use super::media::{self, Media};
use super::router::Exchange;
use crate::client::one_line;
use crate::core::{Received, unread};
use axum::extract::{FromRequest, Request};
use axum::response::IntoResponse;
use crosstalk_api::error::{ErrorAnswer, ErrorFields};
use crosstalk_api::receive::{Accepted, RECEIVE_SCHEMA};
use crosstalk_envelope::Explanation;
use crosstalk_envelope::json::message_of;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::unicode::{escape, is_hidden};
use crosstalk_protocol::store::{StoreError, StoreFault};
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// An answer.
pub(super) type Response = axum::response::Response;

/// After how many seconds to try again when there is trouble that passes.
const SOON: u32 = 5;
/// The largest JSON of a request, in bytes.
const MAX_JSON_BYTES: u64 = 1 << 20;
/// How much of a reason is in the log of the program.
const REASON_CHARS: usize = 200;

/// A request that is not answered as it was meant.
#[derive(Debug)]
pub(super) struct HttpError {
    refusal: Box<Rejection>,
    status: u16,
    retry_after: Option<u32>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
    /// Whether nothing more can be read from this connection.
    pub(super) closes: bool,
}

impl HttpError {
    /// A rejection with the status of its code.
    pub(super) fn new(code: ErrorCode, what: impl Into<String>, help: impl Into<String>) -> Self {
        Rejection::new(code, what, help).into()
    }

    /// What happened and what to do, for an answer that is not HTTP.
    pub(super) fn into_explanation(self) -> Explanation {
        Explanation::new(self.refusal.what, self.refusal.help)
    }

    /// A parameter or a body that is not as it should be.
    pub(super) fn format(what: impl Into<String>, help: impl Into<String>) -> Self {
        let refusal = Rejection::new(ErrorCode::Format, what, help);
        refusal.with_reason("Malformed request").into()
    }

    /// Something that does not exist, or that the caller may not see.
    pub(super) fn missing(thing: &str) -> Self {
        let refusal = Rejection::new(
            ErrorCode::Route,
            format!("There is no {thing}, or you lack access."),
            "check its name, and the credential that you use.",
        );
        refusal.with_reason(format!("There is no {thing}")).into()
    }

    /// Something that the caller may not do.
    pub(super) fn forbidden(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(ErrorCode::Perm, what, help)
    }

    /// A credential is needed, and there is none that counts.
    pub(super) fn unknown_peer(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(ErrorCode::Perm, what, help).status(401)
    }

    /// Something that the relay can't do now.
    pub(super) fn later(what: &str) -> Self {
        let refusal = Rejection::new(
            ErrorCode::Rate,
            format!("{what}."),
            format!("try again after {SOON} seconds."),
        );
        let mut fault = Self::from(refusal.with_reason("The relay can't do it now")).status(503);
        fault.retry_after = Some(SOON);
        fault
    }

    /// More than is allowed in a time.
    pub(super) fn too_often(seconds: u32) -> Self {
        let mut fault = Self::new(
            ErrorCode::Rate,
            "More requests came than are allowed in a minute.",
            format!("try again after {seconds} seconds."),
        );
        fault.retry_after = Some(seconds);
        fault
    }

    /// The path has no such method.
    pub(super) fn method(allowed: &str) -> Self {
        let mut fault = Self::new(
            ErrorCode::Unsupported,
            "The path has no such method.",
            format!("use one of these: {allowed}."),
        )
        .status(405);
        let value = HeaderValue::from_str(allowed).ok();
        fault.header = value.map(|v| Box::new((ALLOW, v)));
        fault
    }

    /// The status of the answer.
    pub(super) fn status_code(&self) -> u16 {
        self.status
    }

    /// The same with another status.
    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same, after which the connection is closed.
    pub(super) fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    /// The fault that a handler answered with.
    pub(super) fn take_from(answer: &mut Response) -> Option<Self> {
        let fault: Arc<Self> = answer.extensions_mut().remove()?;
        Arc::into_inner(fault)
    }

    /// The ERROR envelope alone.
    pub(super) fn envelope(self) -> String {
        unread(None, *self.refusal, self.retry_after)
            .answer()
            .to_owned()
    }

    /// The answers of a batch of which a part was accepted, and why the rest was not.
    pub(super) fn render_after(self, mut answers: String) -> Response {
        let (status, closes) = (self.status, self.closes);
        answers.push('\n');
        answers.push_str(&self.envelope());
        let mut answer = with_media(Media::Batch, answers.into());
        *answer.status_mut() = status_of(status);
        close_after(&mut answer, closes);
        answer
    }

    /// The answer: an ERROR envelope, or JSON.
    pub(super) fn render(self, as_json: bool) -> Response {
        let (status, closes, header) = (self.status, self.closes, self.header);
        let received = unread(None, *self.refusal, self.retry_after);
        let mut answer = refused(&received, status, as_json);
        if let Some((name, value)) = header.map(|h| *h) {
            answer.headers_mut().insert(name, value);
        }
        close_after(&mut answer, closes);
        answer
    }
}

fn close_after(answer: &mut Response, closes: bool) {
    if closes {
        let close = HeaderValue::from_static("close");
        answer.headers_mut().insert(CONNECTION, close);
    }
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The code around the router renders it, which knows what form the caller prefers.
impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut answer = Response::default();
        answer.extensions_mut().insert(Arc::new(self));
        answer
    }
}

/// The JSON of a request, or of a response.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Server>> for Json<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, server: &Arc<Server>) -> Result<Self, HttpError> {
        media::check_json(request.headers())?;
        let caller = Exchange::of(request.extensions())?.caller()?.clone();
        let bounds = BodyLimits {
            bytes: MAX_JSON_BYTES,
            time: Duration::from_secs(server.relay.config().limits.body_seconds.max(1)),
        };
        let bytes = body::collect(request.into_body(), bounds).await?;
        // The credential may have been revoked while the body came.
        server.check_credential(&caller).await?;
        serde_json::from_slice(&bytes).map(Self).map_err(|e| {
            let reason = escape(&e.to_string()).into_owned();
            HttpError::format(
                format!("The body is not the JSON that it should be: {reason}."),
                "see /openapi.json.",
            )
        })
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        with_media(Media::Json, json_text(&self.0).into())
    }
}

impl From<Rejection> for HttpError {
    fn from(refusal: Rejection) -> Self {
        Self {
            status: refusal.code.http_status(),
            refusal: Box::new(refusal),
            retry_after: None,
            header: None,
            closes: false,
        }
    }
}

impl From<StoreError> for HttpError {
    fn from(error: StoreError) -> Self {
        let detail = match error.fault {
            StoreFault::Full => "The disk of the relay is full",
            StoreFault::Busy => "The store of the relay is busy",
            StoreFault::Invalid
            | StoreFault::Newer
            | StoreFault::Damaged
            | StoreFault::Unavailable => {
                tracing::error!(reason = %error, "the store can't be used");
                "The store of the relay can't be used"
            }
        };
        Self::later(detail)
    }
}

/// What became of a message, as an answer.
pub(super) fn received(received: Received, as_json: bool) -> Response {
    match received {
        Received::Accepted { ack, reply, .. } if as_json => Json(Accepted {
            schema: RECEIVE_SCHEMA,
            ack: message_of(&ack),
            answer: reply.as_deref().map(message_of),
        })
        .into_response(),
        Received::Accepted { ack, reply, .. } => text(reply.unwrap_or(ack)),
        ref refusal @ Received::Rejected { status, .. } => refused(refusal, status, as_json),
    }
}

fn refused(received: &Received, status: u16, as_json: bool) -> Response {
    let Received::Rejected {
        refusal,
        retry_after,
        answer,
        ..
    } = received
    else {
        return text(received.answer().to_owned());
    };
    let mut out = match as_json {
        true => Json(error_json(refusal, *retry_after)).into_response(),
        false => text(answer.clone()),
    };
    out.extensions_mut().insert(LoggedRejection {
        code: refusal.code.as_str(),
        rule: refusal.rule.map_or("", |(id, _)| id),
        reason: one_line(&refusal.what).chars().take(REASON_CHARS).collect(),
    });
    *out.status_mut() = status_of(status);
    if let Some(seconds) = retry_after {
        out.headers_mut().insert(RETRY_AFTER, (*seconds).into());
    }
    if status == 401 {
        let how = HeaderValue::from_static("Bearer");
        out.headers_mut().insert(WWW_AUTHENTICATE, how);
    }
    out
}

/// Why a request was rejected, for the log of the program.
#[derive(Clone, Debug)]
pub(super) struct LoggedRejection {
    pub(super) code: &'static str,
    pub(super) rule: &'static str,
    /// The reason, on one line of bounded length.
    pub(super) reason: String,
}

fn error_json(refusal: &Rejection, retry_after: Option<u32>) -> ErrorAnswer {
    let position = refusal.rule.as_ref().and_then(|(_, p)| p.as_ref());
    ErrorAnswer {
        error: ErrorFields {
            code: refusal.code.as_str().to_owned(),
            reason: refusal.reason.clone(),
            detail: refusal.detail(),
            what: refusal.what.clone(),
            help: Some(refusal.help.clone()).filter(|help| !help.is_empty()),
            rule: refusal.rule.as_ref().map(|(rule, _)| (*rule).to_owned()),
            line: position.map(|p| p.line),
            column: position.map(|p| p.column),
            retry_after: retry_after.map(u64::from),
        },
    }
}

/// An answer of a kind.
pub(super) fn with_media(media: Media, body: Body) -> Response {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.reserve(4);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// A text.
pub(super) fn text(text: String) -> Response {
    with_media(Media::Text, text.into())
}

/// Nothing.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut answer = with_media(Media::Text, Body::empty());
    answer.headers_mut().remove(CONTENT_TYPE);
    *answer.status_mut() = status;
    answer
}

/// The JSON of a value on one line. What could move the cursor, reorder or hide something is written as `\u…`: the same
/// value for a program, and visible for a person.
pub(super) fn json_text(value: &impl Serialize) -> String {
    // Only values that are made here come here, and their keys are texts.
    let text = serde_json::to_string(value).unwrap_or_default();
    let harmful = |c: char| c.is_control() || is_hidden(c);
    if !text.contains(harmful) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if harmful(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}
