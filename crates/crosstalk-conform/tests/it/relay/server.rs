//! The model behind HTTP: every path of `spec/http.md`, in as few lines as possible.

mod look;

use super::defect::Defect;
use super::model::{Model, Outcome};
use bytes::Bytes;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::Rejection;
use crosstalk_protocol::relay::{Agent, Directory, Pattern, Peer, Role};
use crosstalk_testing::wait::LIMIT;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// The token of the administrator.
pub(super) const ADMIN: &str = "xt_0123456789012345678901234567890123456789012";
/// The requirements of a relay for its clients.
#[derive(Clone, Copy)]
pub(super) struct Manners {
    /// Requests that one token has before it is told to wait.
    requests: usize,
    /// How many requests in a row are told so.
    rejected: usize,
    /// How long it waits for the rest of a request that has begun.
    wait: Duration,
}

/// For everybody who does not test them: however busy the machine is, no client is too slow.
pub(super) const PATIENT: Manners = Manners {
    requests: 50_000,
    rejected: 1,
    wait: LIMIT,
};

/// For a token whose limit others have used up.
pub(super) const BUSY: Manners = Manners {
    requests: 1,
    rejected: 4,
    wait: LIMIT,
};

/// For the heavy cases, which send many requests and slow ones.
pub(super) const STRICT: Manners = Manners {
    requests: 200,
    rejected: 1,
    wait: Duration::from_secs(1),
};

/// A body that comes piece by piece.
struct Pieces(mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|p| Ok(Frame::data(p))))
    }
}

struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Reply {
    fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", kind.into())],
            body: body.into(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

fn json_reply(status: u16, value: &Value) -> Reply {
    Reply::new(status, "application/json", value.to_string())
}

/// Why a request is refused, with the status if it is not that of the code.
struct Fault(Rejection, Option<u16>, Vec<(&'static str, String)>);

fn fault(code: ErrorCode, why: &str) -> Fault {
    Fault(
        Rejection::new(code, format!("{why}."), "see the specification."),
        None,
        Vec::new(),
    )
}

struct Asked {
    method: String,
    path: Vec<String>,
    query: BTreeMap<String, String>,
    headers: http::HeaderMap,
    body: Bytes,
    peer: Peer,
}

impl Asked {
    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |v| v.to_str().unwrap_or(""))
    }

    fn accepts(&self, kind: &str) -> bool {
        self.header("accept") == kind
    }

    fn text(&self, name: &str) -> Result<&str, Fault> {
        let value = self
            .query
            .get(name)
            .filter(|v| (1..=2000).contains(&v.len()));
        value
            .map(String::as_str)
            .ok_or_else(|| fault(ErrorCode::Format, "A parameter is missing"))
    }

    fn number(
        &self,
        name: &str,
        usual: usize,
        least: usize,
        most: usize,
        clamps: bool,
    ) -> Result<usize, Fault> {
        let Some(written) = self.query.get(name) else {
            return Ok(usual);
        };
        match written.parse::<usize>() {
            Ok(n) if (least..=most).contains(&n) => Ok(n),
            _ if clamps => Ok(usual),
            _ => Err(fault(ErrorCode::Format, "A parameter is out of range")),
        }
    }

    fn object(&self) -> Result<Value, Fault> {
        let value: Option<Value> = serde_json::from_slice(&self.body).ok();
        value
            .filter(Value::is_object)
            .ok_or_else(|| fault(ErrorCode::Format, "The body is no object"))
    }
}

fn texts(value: &Value, least: usize, most: usize) -> Result<Vec<String>, Fault> {
    let list: Option<Vec<String>> = serde_json::from_value(value.clone()).ok();
    let list = list.filter(|l| (least..=most).contains(&l.len()));
    list.ok_or_else(|| fault(ErrorCode::Format, "A list is of another form"))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let hex = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).unwrap()
}

struct Server {
    model: Mutex<Model>,
    defect: Defect,
    host: String,
    tokens: Mutex<BTreeMap<String, (String, Peer)>>,
    count: Mutex<usize>,
    manners: Manners,
}

/// Starts a relay with a defect; its URL.
pub(super) async fn start(defect: Defect, manners: Manners) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let admin = Peer {
        name: "admin".into(),
        role: Role::Admin,
        addresses: vec![Pattern::all()],
        domain: None,
        courier: Vec::new(),
        is_local: false,
    };
    let mut model = Model {
        defect,
        ..Model::default()
    };
    model.rules.escalate_to = Some("human://localhost/queue".into());
    let agent = |address: &str, capabilities: &[&str]| Agent {
        address: address.into(),
        capabilities: capabilities.iter().map(|c| (*c).to_owned()).collect(),
    };
    model.rules.directory = Directory::new([
        agent("claude://conform/able", &["conform-skill"]),
        agent("claude://conform/narrowed", &["conform-one", "conform-two"]),
    ]);
    let server = Arc::new(Server {
        model: Mutex::new(model),
        defect,
        host: host.clone(),
        tokens: Mutex::new(BTreeMap::from([(ADMIN.into(), ("admin".into(), admin))])),
        count: Mutex::new(0),
        manners,
    });
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let server = Arc::clone(&server);
            let service = hyper::service::service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(server.serve(request).await) }
            });
            tokio::spawn(async move {
                // A client that was not scheduled for a while is not slow: its time begins with its first byte.
                let _ = stream.peek(&mut [0]).await;
                hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(manners.wait)
                    .serve_connection(TokioIo::new(stream), service)
                    .await
            });
        }
    });
    format!("http://{host}/")
}

impl Server {
    fn has(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    /// How long it waits: what never comes with its defect is not worth a minute.
    fn worth(&self, wait: Duration) -> Duration {
        match self.defect {
            Defect::AcksEverything
            | Defect::ConsumesOnReading
            | Defect::IgnoresDeadlines
            | Defect::LosesMessages
            | Defect::NeverTimesOut
            | Defect::SilentFailures
            | Defect::SkipsOne => wait.min(Duration::from_secs(10)),
            _ => wait,
        }
    }

    async fn serve(self: Arc<Self>, request: hyper::Request<Incoming>) -> hyper::Response<Pieces> {
        let (head, body) = request.into_parts();
        let wants_json = head
            .headers
            .get("accept")
            .is_some_and(|a| a == "application/json");
        let is_head = head.method == "HEAD";
        let reply = match self.asked(head, body).await {
            Ok(asked)
                if asked.accepts("text/event-stream")
                    && asked.path == ["inbox"]
                    && !self.has(Defect::NoStream) =>
            {
                return self.stream(&asked);
            }
            Ok(asked) => self.answer(&asked).await,
            Err(fault) => Err(fault),
        };
        let mut reply = reply.unwrap_or_else(|fault| self.refused(fault, wants_json));
        let length = reply.body.len();
        if is_head {
            reply.body.clear();
        }
        let (send, receive) = mpsc::channel(1);
        send.try_send(Bytes::from(reply.body)).unwrap();
        let mut response = hyper::Response::builder().status(reply.status);
        for (name, value) in reply.headers {
            response = response.header(name, value);
        }
        if is_head {
            response = response.header("Content-Length", length);
        }
        response = response.header(
            "RateLimit-Policy",
            format!("\"requests\";q={};w=60", self.manners.requests),
        );
        response.body(Pieces(receive)).unwrap()
    }

    fn refused(&self, Fault(refusal, status, headers): Fault, wants_json: bool) -> Reply {
        let retry = headers
            .iter()
            .find(|(n, _)| *n == "Retry-After")
            .map(|(_, v)| v.parse().unwrap());
        let status = match self.defect {
            Defect::ErrorsAre200 => 200,
            _ => status.unwrap_or(refusal.code.http_status()),
        };
        let mut reply = match wants_json || self.has(Defect::JsonErrors) {
            true => json_reply(
                status,
                &json!({"error": {"code": refusal.code.as_str(), "reason": refusal.reason, "detail": refusal.detail()}}),
            ),
            false => Reply::new(status, TEXT, Model::refusal(&refusal, retry)),
        };
        let hidden = match self.defect {
            Defect::NoAllow => "Allow",
            Defect::NoChallenge => "WWW-Authenticate",
            Defect::NoRetryAfter => "Retry-After",
            _ => "",
        };
        reply
            .headers
            .extend(headers.into_iter().filter(|(n, _)| *n != hidden));
        reply
    }

    /// The caller and the request.
    async fn asked(&self, head: http::request::Parts, body: Incoming) -> Result<Asked, Fault> {
        let header = |name: &str| {
            head.headers
                .get(name)
                .map(|v| v.to_str().unwrap_or("?").to_owned())
        };
        let perm = |why: &str| fault(ErrorCode::Perm, why);
        if header("host").as_ref() != Some(&self.host) && !self.has(Defect::AnyHost) {
            return Err(perm("A strange Host"));
        }
        let own = format!("http://{}", self.host);
        if header("origin").is_some_and(|o| o != own) && !self.has(Defect::AnyOrigin) {
            return Err(perm("A strange Origin"));
        }
        let token =
            header("authorization").and_then(|a| a.strip_prefix("Bearer ").map(str::to_owned));
        let peer = token.and_then(|t| Some(self.tokens.lock().unwrap().get(&t)?.1.clone()));
        let Some(peer) = peer else {
            let challenge = vec![("WWW-Authenticate", "Bearer".to_owned())];
            let is_sent = head.uri.path().ends_with("/receive");
            let status = match is_sent && self.has(Defect::StrangersAre403) {
                true => 403,
                false => 401,
            };
            return Err(Fault(perm("No token").0, Some(status), challenge));
        };
        let count = {
            let mut count = self.count.lock().unwrap();
            *count += 1;
            *count
        };
        let first = self.manners.requests;
        if (first..first + self.manners.rejected).contains(&count) {
            let wait = vec![("Retry-After", "1".to_owned())];
            return Err(Fault(
                fault(ErrorCode::Rate, "Too many requests").0,
                None,
                wait,
            ));
        }
        let parts = head.uri.path().trim_start_matches("/crosstalk/").split('/');
        let path: Vec<String> = parts.map(decoded).collect();
        let pairs = head
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|p| p.split_once('='));
        let query = pairs.map(|(k, v)| (k.to_owned(), decoded(v))).collect();
        let body =
            tokio::time::timeout(self.manners.wait, Limited::new(body, 64 << 20).collect()).await;
        let Ok(body) = body else {
            return Err(Fault(
                fault(ErrorCode::Timeout, "Too slow").0,
                Some(408),
                Vec::new(),
            ));
        };
        let body = body
            .map_err(|_| fault(ErrorCode::TooLarge, "Too large"))?
            .to_bytes();
        Ok(Asked {
            method: head.method.to_string(),
            path,
            query,
            headers: head.headers,
            body,
            peer,
        })
    }

    async fn answer(&self, asked: &Asked) -> Result<Reply, Fault> {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        let allow = match path.as_slice() {
            ["receive" | "ack"]
            | ["courier", _]
            | ["dead", _, "requeue"]
            | ["polls", _, "close"] => "POST",
            [
                "inbox" | "search" | "resolve" | "courier" | "dead" | "threads" | "consents"
                | "polls",
            ]
            | ["messages" | "threads" | "consents" | "polls", _]
            | ["messages", _, "status"] => "GET",
            ["agents"] => "GET, PUT",
            ["tokens"] => "GET, POST",
            ["tokens", _] => "DELETE",
            ["blobs", _] => "GET, HEAD, PUT",
            ["", "metrics"] => "GET",
            _ => return Err(fault(ErrorCode::Route, "There is no such path")),
        };
        if !allow.split(", ").any(|m| m == asked.method) {
            let allow = vec![("Allow", allow.to_owned())];
            return Err(Fault(
                fault(ErrorCode::Unsupported, "No such method").0,
                Some(405),
                allow,
            ));
        }
        let is_metrics = path.as_slice() == ["", "metrics"];
        if asked.peer.is_monitor() && !is_metrics && !self.has(Defect::MonitorsRead) {
            return Err(fault(ErrorCode::Perm, "A monitor reads the metrics alone"));
        }
        match path.as_slice() {
            ["", "metrics"] if asked.peer.is_monitor() || asked.peer.is_admin() => {
                let text = b"crosstalk_build_info{version=\"0\"} 1\n".to_vec();
                Ok(Reply::new(200, "text/plain; version=0.0.4", text))
            }
            ["", "metrics"] => Err(fault(ErrorCode::Perm, "Only a monitor")),
            ["receive"] => self.receive(asked).await,
            ["inbox"] => self.inbox(asked).await,
            ["blobs", name] => self.blob(asked, name),
            ["tokens", ..] => self.token(asked),
            _ => self.look(asked, &path),
        }
    }

    async fn receive(&self, asked: &Asked) -> Result<Reply, Fault> {
        let kind = asked
            .header("content-type")
            .to_ascii_lowercase()
            .replace([' ', '"'], "");
        let is_batch = kind == "application/vnd.crosstalk.batch";
        let is_known =
            is_batch || ["", "text/plain", "text/plain;charset=utf-8"].contains(&kind.as_str());
        let is_plain = ["", "identity"].contains(&asked.header("content-encoding"));
        let is_fine = is_known && is_plain;
        if !is_fine && !self.has(Defect::TakesAnyType) {
            return Err(Fault(
                fault(ErrorCode::Unsupported, "Another type").0,
                Some(415),
                Vec::new(),
            ));
        }
        if is_batch {
            return self.batch(asked);
        }
        let outcome = self.model.lock().unwrap().receive(&asked.body, &asked.peer);
        let prefer = asked
            .header("prefer")
            .strip_prefix("wait=")
            .and_then(|n| n.parse::<u64>().ok());
        let prefer = prefer.filter(|n| *n > 0).map(|n| n.min(60));
        let wait = prefer.filter(|_| outcome.asks.is_some());
        let mut text = outcome.text.clone();
        if let (Some(seconds), Some(id)) = (wait, &outcome.asks) {
            let until = Instant::now() + self.worth(Duration::from_secs(seconds));
            while Instant::now() < until && !self.has(Defect::NeverHolds) {
                if let Some(answer) = self.model.lock().unwrap().answer_to(id) {
                    text = answer;
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let reply = match outcome.refusal {
            Some(refusal) if asked.accepts("application/json") || self.has(Defect::JsonErrors) => {
                self.refused(Fault(refusal, None, Vec::new()), true)
            }
            _ if self.has(Defect::ErrorsAre200) => Reply::new(200, TEXT, text),
            _ => Reply::new(outcome.status, TEXT, text),
        };
        Ok(match wait.filter(|_| !self.has(Defect::SilentWait)) {
            Some(seconds) => reply.with("Preference-Applied", format!("wait={seconds}")),
            None => reply,
        })
    }

    fn batch(&self, asked: &Asked) -> Result<Reply, Fault> {
        let text = String::from_utf8_lossy(&asked.body);
        let pieces = text
            .split_inclusive("\n[[END]]\n")
            .map(|p| p.trim_start_matches('\n'));
        let pieces: Vec<&str> = pieces.filter(|p| !p.trim().is_empty()).collect();
        match pieces.len() {
            0 => return Err(fault(ErrorCode::Format, "There is nothing")),
            n if n > 10_000 => return Err(fault(ErrorCode::TooLarge, "Too many")),
            _ => {}
        }
        let mut model = self.model.lock().unwrap();
        let mut answers: Vec<String> = Vec::new();
        for piece in pieces {
            let Outcome { text, refusal, .. } = model.receive(piece.as_bytes(), &asked.peer);
            answers.push(text);
            if refusal.is_some() && self.has(Defect::BatchStops) {
                break;
            }
        }
        if self.has(Defect::BatchBackwards) {
            answers.reverse();
        }
        Ok(Reply::new(
            200,
            "application/vnd.crosstalk.batch",
            answers.join("\n"),
        ))
    }

    fn may_read(&self, asked: &Asked, address: &str) -> Result<(), Fault> {
        let may = asked.peer.is_admin()
            || asked.peer.speaks_for(address)
            || self.has(Defect::AnybodySpeaks);
        may.then_some(())
            .ok_or_else(|| fault(ErrorCode::Perm, "Another's inbox"))
    }

    fn after(&self, asked: &Asked) -> Result<usize, Fault> {
        let last = asked
            .headers
            .get("last-event-id")
            .map(|v| v.to_str().unwrap());
        let Some(written) = asked.query.get("after").map(String::as_str).or(last) else {
            return Ok(0);
        };
        let place = written.strip_prefix("c-").and_then(|n| n.parse().ok());
        place.ok_or_else(|| fault(ErrorCode::Format, "A strange cursor"))
    }

    /// The messages of an inbox behind a position.
    fn behind(&self, address: &str, after: usize, limit: usize) -> Vec<(usize, Value)> {
        let mut found = self.model.lock().unwrap().inbox(address, after, limit);
        if self.has(Defect::SkipsOne) && after > 0 && !found.is_empty() {
            found.remove(0);
        }
        found
    }

    async fn inbox(&self, asked: &Asked) -> Result<Reply, Fault> {
        let clamps = self.has(Defect::Clamps);
        let address = asked.text("for")?;
        let limit = asked.number("limit", 100, 1, 500, clamps)?;
        let wait = asked.number("wait", 0, 0, 60, clamps)?;
        let after = self.after(asked)?;
        self.may_read(asked, address)?;
        let until = Instant::now() + self.worth(Duration::from_secs(u64::try_from(wait).unwrap()));
        let found = loop {
            let found = self.behind(address, after, limit);
            if !found.is_empty() || Instant::now() >= until || self.has(Defect::NeverWaits) {
                break found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let last = found.iter().map(|(place, _)| *place).max();
        let cursor = format!("c-{}", last.unwrap_or(after));
        let entries: Vec<Value> = found.into_iter().map(|(_, entry)| entry).collect();
        if asked.accepts("application/json") || self.has(Defect::AlwaysJson) {
            return Ok(json_reply(
                200,
                &json!({"messages": entries, "cursor": cursor}),
            ));
        }
        let texts: Vec<&str> = entries
            .iter()
            .map(|e| e["envelope"].as_str().unwrap())
            .collect();
        Ok(Reply::new(200, TEXT, texts.join("\n")).with("Crosstalk-Cursor", cursor))
    }

    fn stream(self: Arc<Self>, asked: &Asked) -> hyper::Response<Pieces> {
        let address = asked.query["for"].clone();
        let mut after = self.after(asked).unwrap_or_else(|_| panic!("a cursor"));
        let (send, receive) = mpsc::channel(16);
        tokio::spawn(async move {
            let mut last = Instant::now();
            while !send.is_closed() && last.elapsed() < self.worth(LIMIT) {
                let found = self.behind(&address, after, 10);
                for (place, entry) in found {
                    (after, last) = (place, Instant::now());
                    let event =
                        format!(": hello\n\nevent: message\nid: c-{place}\ndata: {entry}\n\n");
                    if send.send(event.into()).await.is_err() {
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let response = hyper::Response::builder().header("Content-Type", "text/event-stream");
        response.body(Pieces(receive)).unwrap()
    }
}
