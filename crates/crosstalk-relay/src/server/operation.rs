//! The endpoints for operators: health, readiness, metrics, the OpenAPI document, and a page about the relay.

use super::media::Media;
use super::response::{self, HttpError, Response};
use super::router::Call;
use super::{Server, ServerTls};
use crate::metrics::{Exposition, Measured};
use axum::extract::Request;
use bytes::Bytes;
use crosstalk_envelope::unicode::escape;
use http::HeaderMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long what was measured is told again.
const MEASURE_AGAIN: Duration = Duration::from_secs(2);

/// How long to wait for a store that has trouble.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The guide to the API, in the documentation that comes with the program.
const API_GUIDE: &str = "docs/guide/api.md";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether the process runs.
pub(super) async fn healthy() -> Response {
    response::text("ok\n".into())
}

/// Whether the relay is ready: not before the messages that it accepted before the start are indexed, not while it does not
/// reach its database, and not during shutdown.
pub(super) async fn ready(call: Call) -> Result<Response, HttpError> {
    let server = &call.server;
    if server.is_shutting_down() || server.relay.is_stopping() {
        Err(HttpError::later("The relay is shutting down"))
    } else if !server.is_ready.load(Ordering::Acquire) {
        let indexed = server.relay.metrics().indexed.load(Ordering::Relaxed);
        Err(HttpError::later(&format!(
            "The relay still indexes {} messages that it accepted before its start",
            server.left_before.saturating_sub(indexed).max(1)
        )))
    } else if !server.relay.store().is_reachable() {
        Err(HttpError::later("The relay does not reach its database"))
    } else {
        Ok(response::text("ready\n".into()))
    }
}

/// Waits until what was accepted before the start is indexed: then the relay is ready.
pub(super) async fn become_ready(server: Arc<Server>) {
    while server.relay.store().caught_up().await.is_err() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    server.is_ready.store(true, Ordering::Release);
}

/// The last measurement and its time: frequent callers get the same one for a while.
#[derive(Default)]
pub(super) struct Gauges(tokio::sync::Mutex<Option<(Instant, Measured)>>);

impl Gauges {
    async fn now(&self, server: &Server) -> Measured {
        let mut last = self.0.lock().await;
        match &*last {
            Some((at, measured)) if at.elapsed() < MEASURE_AGAIN => measured.clone(),
            _ => {
                let measured = measure(server).await;
                last.insert((Instant::now(), measured)).1.clone()
            }
        }
    }
}

async fn measure(server: &Server) -> Measured {
    let store = server.relay.store().gauges().await;
    Measured {
        // The rest is told anyway: it says whether the relay still works.
        store: store
            .inspect_err(|error| tracing::warn!(reason = %error, "the store can't be measured"))
            .ok(),
        disk_free: server.blobs.free_bytes().ok(),
        certificate_expires: server.tls.as_ref().and_then(ServerTls::expires_at),
    }
}

/// The counters and the measured values.
pub(super) async fn metrics(call: Call) -> Response {
    let server = &call.server;
    let mut out = Exposition::default();
    server.relay.metrics().write(&mut out);
    server.request_seconds.write(&mut out);
    let measured = server.measured.now(server).await;
    measured.write(server.relay.now(), &mut out);
    response::with_media(Media::Metrics, out.into_text().into())
}

/// The description of every path.
pub(super) async fn openapi() -> Response {
    let text = Bytes::from_static(crosstalk_api::openapi::text().as_bytes());
    response::with_media(Media::Json, text.into())
}

/// The relay in a few words, for a caller who prefers text; others get a page of the console.
pub(super) async fn page(call: Call, request: Request) -> Response {
    let name = call.server.relay.config().name.clone();
    let url = base(&call.server, request.headers());
    let (name, url) = (escape(&name), escape(&url));
    response::text(format!(
        "Crosstalk relay {name}\n\n\
         A relay of the AI Crosstalk Protocol, version {VERSION}. It accepts messages of AI assistants and people as text\n\
         envelopes, keeps them, and delivers them to their recipients.\n\n\
         Every path (OpenAPI): {url}openapi.json\n\
         API guide: {API_GUIDE} in the documentation of Crosstalk\n"
    ))
}

/// The URL of the relay, as the caller reaches it.
pub(super) fn base(server: &Server, headers: &HeaderMap) -> String {
    let scheme = if server.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let host = headers.get(http::header::HOST);
    let host = host.and_then(|h| h.to_str().ok()).unwrap_or("localhost");
    format!("{scheme}://{host}/")
}
