//! Streamable HTTP over the HTTP client of the relay: every address is checked, there are no redirects, and everything that
//! comes is counted.

use super::ByteLimit;
use crate::delivery::AttemptOutcome;
use crate::delivery::http::outcome_of_rejection;
use bytes::Bytes;
use crosstalk_api::client::rejection_of;
use crosstalk_api::outbound::{HttpCall, HttpResponse, Outbound, OutboundError, Url};
use crosstalk_mcp::rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage,
};
use crosstalk_mcp::rmcp::transport::StreamableHttpClientTransport;
use crosstalk_mcp::rmcp::transport::common::client_side_sse::ExponentialBackoff;
use crosstalk_mcp::rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, try_unfold};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// How often a stream of events that broke is asked for again.
const MAX_RESUMES: usize = 3;

type Fault = StreamableHttpError<OutboundError>;

/// A server behind a URL, for one call.
#[derive(Clone)]
pub(super) struct HttpServer {
    outbound: Outbound,
    allow_private: bool,
    within: Duration,
    until: Instant,
    limit: Arc<ByteLimit>,
    /// Why the last request failed, as a delivery tells it.
    fault: Arc<Mutex<Option<AttemptOutcome>>>,
}

impl HttpServer {
    pub(super) fn new(
        outbound: &Outbound,
        allow_private: bool,
        within: Duration,
        limit: &Arc<ByteLimit>,
    ) -> Self {
        Self {
            outbound: outbound.clone(),
            allow_private,
            within,
            until: Instant::now() + within,
            limit: Arc::clone(limit),
            fault: Arc::default(),
        }
    }

    pub(super) fn transport(
        &self,
        url: &Url,
        token: Option<String>,
    ) -> StreamableHttpClientTransport<Self> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_string())
            .reinit_on_expired_session(false);
        let mut resume = ExponentialBackoff::default();
        resume.max_times = Some(MAX_RESUMES);
        config.retry_config = Arc::new(resume);
        config.auth_header = token;
        StreamableHttpClientTransport::with_client(self.clone(), config)
    }

    /// Why the last request failed, if one did.
    pub(super) fn fault(&self) -> Option<AttemptOutcome> {
        let fault = self.fault.lock();
        fault.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, outcome: AttemptOutcome) {
        let fault = self.fault.lock();
        *fault.unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    fn failed(&self, error: OutboundError) -> Fault {
        let shown = OutboundError::Refused(error.to_string());
        self.note(error.into());
        StreamableHttpError::Client(shown)
    }

    /// Sends a request on a connection of its own.
    async fn send(
        &self,
        method: Method,
        uri: &str,
        body: Bytes,
        (session, token): (Option<&str>, Option<&str>),
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Response<Incoming>, Fault> {
        let sent = async {
            let url = Url::parse(uri).map_err(|e| OutboundError::Refused(e.to_string()))?;
            let mut call = HttpCall {
                body,
                allow_private: self.allow_private,
                ..HttpCall::new(method, url.clone())
            };
            call.headers.extend(headers);
            call = call
                .header(CONTENT_TYPE, JSON)?
                .header(ACCEPT, &format!("{JSON}, {EVENTS}"))?
                .bearer(token)?;
            if let Some(session) = session {
                call = call.header(SESSION, session)?;
            }
            let connection = self.outbound.connect(&url, self.allow_private, self.until);
            let response = connection.await?.send(call).await?;
            if response.status().is_redirection() {
                let to = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
                let to = String::from_utf8_lossy(to.unwrap_or_default()).into_owned();
                return Err(OutboundError::Redirect {
                    url: url.to_string(),
                    status: response.status().as_u16(),
                    to: crosstalk_envelope::unicode::escape(&to).into_owned(),
                });
            }
            Ok(response)
        };
        // What is left of a client goes on after its call: nothing of it waits longer than the call may take.
        let sent = tokio::time::timeout_at(self.until, sent).await;
        let sent = sent.unwrap_or(Err(OutboundError::Late(self.within)));
        sent.map_err(|error| self.failed(error))
    }

    /// The whole body of a response, as far as the limit allows.
    async fn body(&self, body: Incoming) -> Result<Bytes, Fault> {
        let mut frames = self.frames(body);
        let mut read = Vec::new();
        while let Some(data) = frames.next().await {
            read.extend_from_slice(&data.map_err(StreamableHttpError::Io)?);
        }
        Ok(read.into())
    }

    fn frames(&self, body: Incoming) -> BoxStream<'static, Result<Bytes, std::io::Error>> {
        let (limit, until) = (Arc::clone(&self.limit), self.until);
        let frames = try_unfold(body.into_data_stream(), move |mut body| {
            let limit = Arc::clone(&limit);
            async move {
                let next = tokio::time::timeout_at(until, body.next()).await;
                let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
                let Some(data) = next.map_err(late)? else {
                    return Ok(None);
                };
                let data = data.map_err(std::io::Error::other)?;
                match limit.allows(data.len()) {
                    true => Ok(Some((data, body))),
                    false => Err(std::io::Error::other("the server sends too much")),
                }
            }
        });
        frames.boxed()
    }

    fn events(&self, body: Incoming) -> BoxStream<'static, Result<Sse, SseError>> {
        SseStream::from_bytes_stream(self.frames(body)).boxed()
    }
}

impl StreamableHttpClient for HttpServer {
    type Error = OutboundError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let body = serde_json::to_vec(&message).map_err(StreamableHttpError::Deserialize)?;
        let with = (session.as_deref(), token.as_deref());
        let response = self.send(Method::POST, &uri, body.into(), with, headers);
        let (head, body) = response.await?.into_parts();
        let text = |name| {
            head.headers
                .get(name)
                .and_then(|v: &HeaderValue| v.to_str().ok())
        };
        let kind = text(CONTENT_TYPE).unwrap_or_default().to_owned();
        let session = text(SESSION).map(str::to_owned);
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        if head.status.is_success() && !is_request {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if head.status.is_success() && kind.starts_with(EVENTS) {
            let events = self.events(body);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let status = head.status;
        let headers = head.headers;
        let body = self.body(body).await?;
        let said = serde_json::from_slice::<ServerJsonRpcMessage>(&body);
        if status.is_success() {
            return match said {
                Ok(said) => Ok(StreamableHttpPostResponse::Json(said, session)),
                Err(error) => Err(StreamableHttpError::Deserialize(error)),
            };
        }
        if let Some(error) = rejection_of_discovery(&message, status, said) {
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        self.note(outcome_of_rejection(rejection_of(&HttpResponse {
            status: status.as_u16(),
            headers,
            body,
        })));
        let why = format!("status {}", status.as_u16());
        Err(StreamableHttpError::UnexpectedServerResponse(why.into()))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Fault> {
        let with = (Some(&*session), token.as_deref());
        let sent = self.send(Method::DELETE, &uri, Bytes::new(), with, headers);
        sent.await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Fault> {
        // Only the rest of a response is asked for: a relay follows nothing else that a server has to say.
        let Some(last) = last_event.and_then(|id| HeaderValue::from_str(&id).ok()) else {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        };
        headers.insert(LAST_EVENT, last);
        let with = (session.as_deref(), token.as_deref());
        let response = self.send(Method::GET, &uri, Bytes::new(), with, headers);
        let response = response.await?;
        match response.status() {
            StatusCode::OK => Ok(self.events(response.into_body())),
            _ => Err(StreamableHttpError::ServerDoesNotSupportSse),
        }
    }
}

/// A server of an older revision rejects the discovery in words of its own. They are given to the client as the answer that it
/// falls back from.
fn rejection_of_discovery(
    message: &ClientJsonRpcMessage,
    status: StatusCode,
    said: Result<ServerJsonRpcMessage, serde_json::Error>,
) -> Option<ServerJsonRpcMessage> {
    let ClientJsonRpcMessage::Request(request) = message else {
        return None;
    };
    let is_answer = matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
    );
    let id = Some(request.id.clone());
    match said {
        Ok(ServerJsonRpcMessage::Error(said)) if is_answer => {
            Some(ServerJsonRpcMessage::error(said.error, id))
        }
        _ if is_answer && matches!(request.request, ClientRequest::DiscoverRequest(_)) => {
            let error = ErrorData::invalid_request("the server rejects the discovery", None);
            Some(ServerJsonRpcMessage::error(error, id))
        }
        _ => None,
    }
}
