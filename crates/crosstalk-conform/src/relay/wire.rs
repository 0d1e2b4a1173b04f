//! Requests of the suite, on a connection for each, and bytes that no polite client would send.

use super::probe::{CaseStep, need, same};
use bytes::Bytes;
use crosstalk_api::outbound::{HttpCall, Outbound, Roots};
use crosstalk_protocol::url::Url;
use http::{HeaderName, HeaderValue, Method};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

/// The longest wait for an answer: longer than any that a relay may hold one.
const PATIENCE: Duration = Duration::from_secs(90);
/// The largest answer that is read.
const MOST: usize = 80 << 20;

/// The credential of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Credential {
    /// The token that the suite was given, if any.
    Own,
    /// No credential.
    None,
    /// Another token.
    Token(String),
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct SuiteRequest {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    credential: Credential,
}

impl SuiteRequest {
    pub(super) fn new(method: &str, path: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            credential: Credential::Own,
        }
    }

    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    /// Sets a header; `Host` replaces the right one.
    pub(super) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn accept(self, kind: &str) -> Self {
        self.header("Accept", kind)
    }

    pub(super) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(super) fn json(self, value: &serde_json::Value) -> Self {
        self.header("Content-Type", "application/json")
            .body(value.to_string())
    }

    pub(super) fn by(mut self, credential: Credential) -> Self {
        self.credential = credential;
        self
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct SuiteAnswer {
    pub(super) status: u16,
    headers: http::HeaderMap,
    pub(super) body: Bytes,
}

impl SuiteAnswer {
    /// The value of a header; empty if it is not there or no text.
    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|v| v.to_str().ok());
        value.unwrap_or_default()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The type without its parameters, in lower case.
    pub(super) fn kind(&self) -> String {
        let kind = self.header("content-type").split(';').next();
        kind.unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Fails the case with the answer in one line, unless something holds.
    pub(super) fn require(&self, holds: bool, expected: impl Into<String>) -> CaseStep {
        need(holds, expected, self.shown())
    }

    /// Fails the case unless the answer has this status.
    pub(super) fn has_status(&self, status: u16) -> CaseStep {
        self.require(self.status == status, status.to_string())
    }

    /// Fails the case unless a header has this value.
    pub(super) fn has_header(&self, name: &str, value: &str) -> CaseStep {
        same(name, value, self.header(name))
    }

    /// In one line, for a report.
    pub(super) fn shown(&self) -> String {
        let text = self.text();
        let code = text
            .lines()
            .filter_map(|l| l.strip_prefix("Code: "))
            .next()
            .map(|c| format!(" {c}"));
        let first: String = text
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(120)
            .collect();
        let kind = match self.kind() {
            kind if kind.is_empty() => "no type".to_owned(),
            kind => kind,
        };
        format!(
            "{}{} ({kind}): {first}",
            self.status,
            code.unwrap_or_default()
        )
    }
}

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoAnswer(pub(super) String);

/// The addresses of a run.
#[derive(Debug, Default)]
pub(super) struct Used(Mutex<BTreeSet<String>>);

impl Used {
    /// Remembers an address.
    pub(super) fn note(&self, address: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(address.to_owned());
    }

    pub(super) fn all(&self) -> BTreeSet<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

/// The way to one relay.
pub(super) struct Wire {
    pub(super) base: Url,
    token: Option<String>,
    outbound: Outbound,
    /// Answers with 503 that came so far.
    pub(super) unavailable: Mutex<Vec<SuiteAnswer>>,
    /// The addresses that the cases made.
    pub(super) used: Used,
}

impl Wire {
    pub(super) fn new(base: Url, token: Option<String>) -> Self {
        Self {
            base,
            token,
            outbound: Outbound::new(None, Roots::system()),
            unavailable: Mutex::default(),
            used: Used::default(),
        }
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Connects, and no more.
    pub(super) async fn reach(&self) -> Result<(), NoAnswer> {
        let until = Instant::now() + Duration::from_secs(20);
        let connected = self.outbound.stream(&self.base, true, until).await;
        connected.map(drop).map_err(|e| NoAnswer(e.to_string()))
    }

    /// Sends a request; the head of the answer, and its body as it comes.
    async fn open(&self, request: SuiteRequest) -> Result<http::Response<Incoming>, NoAnswer> {
        let (method, path) = (&request.method, &request.path);
        let failed = |e: &dyn fmt::Display| NoAnswer(format!("{method} {path}: {e}"));
        let url = self.base.below(path.trim_start_matches('/'));
        let method = Method::from_bytes(method.as_bytes()).map_err(|e| failed(&e))?;
        let token = match &request.credential {
            Credential::Own => self.token.as_deref(),
            Credential::None => None,
            Credential::Token(token) => Some(token.as_str()),
        };
        let call = HttpCall::new(method, url).bearer(token);
        let mut call = call.map_err(|e| failed(&e))?;
        for (name, value) in &request.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| failed(&e))?;
            let value = HeaderValue::from_str(value).map_err(|e| failed(&e))?;
            call.headers.append(name, value);
        }
        call.body.clone_from(&request.body);
        let until = Instant::now() + PATIENCE;
        let connected = self.outbound.connect(&call.url, true, until).await;
        let mut connection = connected.map_err(|e| failed(&e))?;
        connection.send(call).await.map_err(|e| failed(&e))
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn send(&self, request: SuiteRequest) -> Result<SuiteAnswer, NoAnswer> {
        let name = format!("{} {}", request.method, request.path);
        let whole = async {
            let (head, body) = self.open(request).await?.into_parts();
            let body = http_body_util::Limited::new(body, MOST).collect().await;
            let body = body.map_err(|e| NoAnswer(format!("{name}: the answer broke off: {e}")))?;
            Ok(SuiteAnswer {
                status: head.status.as_u16(),
                headers: head.headers,
                body: body.to_bytes(),
            })
        };
        let answer = tokio::time::timeout(PATIENCE, whole).await;
        let answer = answer
            .unwrap_or_else(|_| Err(NoAnswer(format!("{name}: no answer within {PATIENCE:?}"))))?;
        if answer.status == 503 {
            let list = self.unavailable.lock();
            list.unwrap_or_else(PoisonError::into_inner)
                .push(answer.clone());
        }
        Ok(answer)
    }

    /// Opens a stream of events.
    pub(super) async fn events(&self, request: SuiteRequest) -> Result<EventStream, NoAnswer> {
        let response = tokio::time::timeout(PATIENCE, self.open(request)).await;
        let response = response.map_err(|_| NoAnswer("no stream came".into()))??;
        let (head, body) = response.into_parts();
        Ok(EventStream {
            head: SuiteAnswer {
                status: head.status.as_u16(),
                headers: head.headers,
                body: Bytes::new(),
            },
            body,
            text: String::new(),
        })
    }

    /// Sends bytes as they are and reads until the server ends the connection, or nothing comes for so long.
    pub(super) async fn raw(
        &self,
        bytes: &[u8],
        patience: Duration,
    ) -> Result<RawExchange, NoAnswer> {
        let until = Instant::now() + PATIENCE;
        let stream = self.outbound.stream(&self.base, true, until).await;
        let mut stream = stream.map_err(|e| NoAnswer(e.to_string()))?;
        let written = stream.write_all(bytes).await;
        written.map_err(|e| NoAnswer(format!("the connection broke: {e}")))?;
        let mut came = Vec::new();
        let read = async {
            let mut piece = [0; 4096];
            while let Ok(number) = stream.read(&mut piece).await
                && number > 0
            {
                came.extend(piece.iter().take(number));
            }
        };
        let is_over = tokio::time::timeout(patience, read).await.is_ok();
        Ok(RawExchange {
            is_over,
            text: String::from_utf8_lossy(&came).into_owned(),
        })
    }
}

/// The end of a connection.
pub(super) struct RawExchange {
    /// Whether the server ended it.
    pub(super) is_over: bool,
    /// The text that came.
    pub(super) text: String,
}

/// One server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamEvent {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) data: String,
}

/// A stream of events.
pub(super) struct EventStream {
    pub(super) head: SuiteAnswer,
    body: Incoming,
    text: String,
}

impl EventStream {
    /// The next event; comments are passed over.
    pub(super) async fn next(&mut self) -> Result<StreamEvent, NoAnswer> {
        let next = tokio::time::timeout(PATIENCE, self.read()).await;
        next.unwrap_or_else(|_| Err(NoAnswer(format!("no event within {PATIENCE:?}"))))
    }

    async fn read(&mut self) -> Result<StreamEvent, NoAnswer> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let event = event(block);
                self.text = rest.to_owned();
                if event != StreamEvent::default() {
                    return Ok(event);
                }
                continue;
            }
            let frame = self.body.frame().await;
            let frame = frame.ok_or_else(|| NoAnswer("the stream ended".into()))?;
            let frame = frame.map_err(|e| NoAnswer(format!("the stream broke off: {e}")))?;
            if let Some(data) = frame.data_ref() {
                let text = String::from_utf8_lossy(data).replace("\r\n", "\n");
                self.text.push_str(&text);
            }
        }
    }
}

fn event(block: &str) -> StreamEvent {
    let mut event = StreamEvent::default();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut event.name),
            "id" => value.clone_into(&mut event.id),
            "data" => {
                if !event.data.is_empty() {
                    event.data.push('\n');
                }
                event.data.push_str(value);
            }
            _ => {}
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read() {
        let wanted = StreamEvent {
            name: "message".into(),
            id: "7".into(),
            data: "a\nb".into(),
        };
        assert_eq!(
            event(": hello\nevent: message\nid: 7\ndata: a\ndata:b"),
            wanted
        );
        assert_eq!(event(": keep-alive"), StreamEvent::default());
    }
}
