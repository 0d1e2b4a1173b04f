//! A small HTTP client: one connection for each request, and requests that no polite client would send.

use super::probe::{CaseStep, need, same};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The longest wait for an answer: longer than any that a relay may hold one.
const PATIENCE: Duration = Duration::from_secs(90);
/// The largest answer that is read.
const MOST: usize = 80 << 20;

/// Where a relay is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayUrl {
    is_tls: bool,
    host: String,
    port: u16,
    /// The prefix of every path, without a slash at its end.
    path: String,
}

impl RelayUrl {
    /// Reads the base URL of a relay.
    ///
    /// ```
    /// use crosstalk_conform::relay::RelayUrl;
    /// assert_eq!(RelayUrl::parse("http://127.0.0.1:8799/").unwrap().authority(), "127.0.0.1:8799");
    /// assert!(RelayUrl::parse("relay.example").is_err());
    /// ```
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (is_tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err("the URL of a relay begins with http:// or https://".into()),
        };
        if rest.contains(['?', '#', '@']) {
            return Err("the URL of a relay has no user, no query and no fragment".into());
        }
        let uri: http::Uri = url.parse().map_err(|e| format!("it is no URL: {e}"))?;
        let host = uri.host().unwrap_or_default().to_owned();
        if host.is_empty() {
            return Err("there is no host in it".into());
        }
        Ok(Self {
            is_tls,
            host,
            port: uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// The host and, unless it is the usual one, the port: what stands in `Host`.
    pub fn authority(&self) -> String {
        match (self.is_tls, self.port) {
            (true, 443) | (false, 80) => self.host.clone(),
            _ => format!("{}:{}", self.host, self.port),
        }
    }

    /// The origin of pages of this server.
    pub fn origin(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }
}

impl fmt::Display for RelayUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}/", self.origin(), self.path)
    }
}

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

trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

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
    pub(super) base: RelayUrl,
    token: Option<String>,
    tls: Option<TlsConnector>,
    /// Answers with 503 that came so far.
    pub(super) unavailable: Mutex<Vec<SuiteAnswer>>,
    /// The addresses that the cases made.
    pub(super) used: Used,
}

impl Wire {
    pub(super) fn new(base: RelayUrl, token: Option<String>) -> Self {
        let tls = base.is_tls.then(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let config = ClientConfig::builder()
                .with_root_certificates(roots)
                .with_no_client_auth();
            TlsConnector::from(Arc::new(config))
        });
        Self {
            base,
            token,
            tls,
            unavailable: Mutex::default(),
            used: Used::default(),
        }
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Connects, and no more.
    pub(super) async fn reach(&self) -> Result<(), NoAnswer> {
        let connected = tokio::time::timeout(Duration::from_secs(20), self.connect()).await;
        let connected = connected.unwrap_or_else(|_| {
            Err(NoAnswer(format!(
                "no connection to {} within 20 s",
                self.base
            )))
        });
        connected.map(drop)
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, NoAnswer> {
        let RelayUrl { host, port, .. } = &self.base;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let failed = |e: std::io::Error| NoAnswer(format!("no connection to {}: {e}", self.base));
        let stream = TcpStream::connect((bare, *port)).await.map_err(failed)?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some(tls) => {
                let name = ServerName::try_from(bare.to_owned());
                let name = name.map_err(|e| NoAnswer(format!("{bare}: {e}")))?;
                Ok(Box::new(tls.connect(name, stream).await.map_err(failed)?))
            }
        }
    }

    /// Sends a request; the head of the answer, and its body as it comes.
    async fn open(&self, request: SuiteRequest) -> Result<http::Response<Incoming>, NoAnswer> {
        let failed =
            |e: &dyn fmt::Display| NoAnswer(format!("{} {}: {e}", request.method, request.path));
        let io = TokioIo::new(self.connect().await?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io)
            .await
            .map_err(|e| failed(&e))?;
        tokio::spawn(connection);
        let mut built = http::Request::builder()
            .method(request.method.as_str())
            .uri(format!("{}{}", self.base.path, request.path));
        let has_host = request.headers.iter().any(|(n, _)| n == "Host");
        if !has_host {
            built = built.header("Host", self.base.authority());
        }
        let token = match &request.credential {
            Credential::Own => self.token.as_deref(),
            Credential::None => None,
            Credential::Token(token) => Some(token.as_str()),
        };
        if let Some(token) = token {
            built = built.header("Authorization", format!("Bearer {token}"));
        }
        for (name, value) in &request.headers {
            built = built.header(name, value);
        }
        let built = built.body(Full::new(request.body.clone()));
        let built = built.map_err(|e| failed(&e))?;
        sender.send_request(built).await.map_err(|e| failed(&e))
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
        let mut stream = self.connect().await?;
        let failed = |e: std::io::Error| NoAnswer(format!("the connection broke: {e}"));
        stream.write_all(bytes).await.map_err(failed)?;
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
    fn base_urls_are_read() {
        let base = RelayUrl::parse("https://relay.example/team/").unwrap();
        assert_eq!(base.to_string(), "https://relay.example/team/");
        assert_eq!(base.authority(), "relay.example");
        let base = RelayUrl::parse("http://[::1]:8799").unwrap();
        assert_eq!(base.to_string(), "http://[::1]:8799/");
        for url in [
            "",
            "ftp://a",
            "http://",
            "http://a/?x",
            "http://u@a/",
            "http:///x",
        ] {
            assert!(RelayUrl::parse(url).is_err(), "{url}");
        }
    }

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
