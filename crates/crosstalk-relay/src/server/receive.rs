//! `POST /crosstalk/receive`: accepts one envelope, or a batch.

use super::batch;
use super::body::{self, BodyLimits};
use super::media::{self, RequestForm};
use super::response::{self, HttpError, Response};
use super::router::Call;
use crate::port::Later;
use axum::extract::Request;
use crosstalk_envelope::json::NewThreads;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{json, limit};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use std::time::Duration;
use tokio::time::Instant;

/// The longest wait for an answer, in seconds.
const WAIT: u64 = 60;

/// Accepts the message of a request. `axum` moves the future of each handler into a new box, and this one is large and runs most
/// often: the handler only defers the request, and the future of the connection runs this one in place.
pub(super) async fn receive(call: Call, request: Request) -> Result<Response, HttpError> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let relay = &call.server.relay;
    let time = Duration::from_secs(relay.config().limits.body_seconds.max(1));
    let form = media::request_form(headers)?;
    if form == RequestForm::Batch {
        return Box::pin(batch::receive(&call, body, time)).await;
    }
    let bounds = BodyLimits {
        bytes: limit::ENVELOPE_BYTES as u64,
        time,
    };
    let mut bytes = body::collect(body, bounds).await?;
    if form == RequestForm::Json {
        bytes = envelope_of(&bytes)?.into();
    }
    let (server, caller) = (&call.server, &call.caller);
    let peer = &caller.peer;
    // The credential may have been revoked while the message came.
    server.check_credential(caller).await?;
    let Some(wait) = wait_of(headers) else {
        let received = relay.receive(&bytes, peer).await;
        return Ok(response::received(received, media::prefers_json(headers)));
    };
    let until = Instant::now() + Duration::from_secs(wait);
    let is_valid =
        || -> Later<'_, bool> { Box::pin(async { server.check_credential(caller).await.is_ok() }) };
    let (received, has_waited) = tokio::select! {
        // Boxed: most senders do not wait, and their requests should not carry its weight.
        asked = Box::pin(relay.ask(&bytes, peer, until, &is_valid)) => asked,
        // The same message again gets its ACK.
        () = server.wait_for_shutdown() => (Box::pin(relay.receive(&bytes, peer)).await, true),
    };
    let mut answer = response::received(received, media::prefers_json(headers));
    if !has_waited {
        return Ok(answer);
    }
    server.check_credential(caller).await?;
    if let Ok(applied) = HeaderValue::from_str(&format!("wait={wait}")) {
        let name = HeaderName::from_static("preference-applied");
        answer.headers_mut().insert(name, applied);
    }
    Ok(answer)
}

/// The envelope that JSON describes, with ids where it has none (HTP-007).
fn envelope_of(json: &[u8]) -> Result<String, HttpError> {
    let json = std::str::from_utf8(json)
        .map_err(|_| HttpError::format("The body is not UTF-8.", "send the JSON as UTF-8."))?;
    let builders = json::builders_with_ids(json, NewThreads::WithoutSession).map_err(|e| {
        let (what, help) = (
            format!("The body is not a message: {}.", escape(&e.message)),
            "send one JSON object in the form that `crosstalk schema` prints.",
        );
        HttpError::new(e.code, what, help)
    })?;
    let [builder] = builders.as_slice() else {
        return Err(HttpError::format(
            "The body holds several messages.",
            "send one JSON object per request.",
        ));
    };
    builder.build().map_err(|fault| {
        let refusal = Rejection::from_findings(&fault.diagnostics, &fault.text);
        refusal.map_or_else(
            || HttpError::format("The message is malformed.", ""),
            HttpError::from,
        )
    })
}

/// How many seconds the sender would like to wait for the answer.
fn wait_of(headers: &HeaderMap) -> Option<u64> {
    let lines = headers.get_all("prefer").iter();
    let mut preferences = lines
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split([',', ';']));
    let wait = preferences.find_map(|p| {
        let (name, value) = p.split_once('=')?;
        let is_wait = name.trim().eq_ignore_ascii_case("wait");
        is_wait.then(|| value.trim().trim_matches('"'))
    })?;
    let plain = !wait.is_empty() && wait.bytes().all(|b| b.is_ascii_digit());
    let wait = wait.parse().ok().or(plain.then_some(WAIT))?;
    (plain && wait > 0).then_some(wait.min(WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_whole_number_of_seconds() {
        for (value, wanted) in [
            ("wait=20", Some(20)),
            ("respond-async, wait=20", Some(20)),
            ("respond-async; wait = \"7\"", Some(7)),
            ("WAIT=1", Some(1)),
            ("wait=61", Some(60)),
            ("wait=99999999999999999999", Some(60)),
            ("wait=0", None),
            ("wait=-1", None),
            ("wait=+5", None),
            ("wait=1.5", None),
            ("wait=", None),
            ("wait", None),
            ("return=minimal", None),
        ] {
            let headers = HeaderMap::from_iter([(
                HeaderName::from_static("prefer"),
                HeaderValue::from_static(value),
            )]);
            assert_eq!(wait_of(&headers), wanted, "{value}");
        }
    }
}
