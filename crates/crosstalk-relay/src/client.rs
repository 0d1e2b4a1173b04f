//! A client of a relay.
//!
//! ```no_run
//! # async fn example() -> Result<(), crosstalk_relay::client::ClientError> {
//! use crosstalk_relay::client::Client;
//! use std::time::Duration;
//!
//! let client = Client::new("http://127.0.0.1:8799")?.with_token("xt_…");
//! let text = "[[ANN→BOB v1]]\nuser: ann\nthread: T1\nmessage: M1\ncontext: c\nintent: REQUEST\nbody: |\n  Ready?\n\
//!             sig: none\n[[END]]\n";
//! let sent = client.ask(text, Duration::from_secs(30)).await?;
//! let inbox = client.inbox("BOB", None, 100, Duration::from_secs(30)).await?;
//! for message in &inbox.messages {
//!     client.acknowledge("BOB", &[&message.id]).await?;
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod approval;
mod audit;
mod blob;
mod consent;
mod error;
mod path;
mod poll;
mod stream;

pub use answer::{
    Acked, AgentInfo, Blob, DeliveryStatus, Inbox, Letter, Message, Messages, NewToken, Node,
    Resolved, Status, Thread, ThreadTree, Token,
};
pub use approval::{Approval, Goal, Made, Verdict};
pub use consent::{Consent, ConsentEnd, ConsentRecord, UnderConsent};
pub use error::{ClientError, Refused};
pub(crate) use error::{one_line, refusal};
pub use stream::Stream;

use crate::outbound::{Answer, Call, Line, Outbound, OutboundError, Roots, Url};
use answer::{Agents, Letters, Requeued, Threads, Tokens};
use bytes::Bytes;
use crosstalk_envelope::{Document, Intent, Reading, limit, scan};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use http::{Method, StatusCode};
use path::Path;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a request may take, besides what it is told to wait.
const WITHIN: Duration = Duration::from_secs(30);
/// The largest answer about one message: the envelope and the messages before it (HTP-031), as JSON.
const MESSAGE_BYTES: u64 = 8 << 20;
/// The largest page of a listing (HTP-038).
const PAGE_BYTES: u64 = 32 << 20;
/// The largest thread: what this program reads as one file (ENV-063).
const THREAD_BYTES: u64 = limit::PASTE_BYTES as u64;
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const BATCH: &str = "application/vnd.crosstalk.batch";

/// A client of one relay. Clones share a connection.
#[derive(Clone)]
pub struct Client {
    base: Url,
    token: Option<String>,
    outbound: Outbound,
    within: Duration,
    line: Arc<Mutex<Option<Line>>>,
}

/// What a relay answered to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The envelope: an ACK of the relay, or what the recipient answered.
    pub answer: String,
    /// What the relay says about the message, if it is its ACK.
    pub receipt: Option<Receipt>,
    /// Whether the relay waited for the answer, as it was asked to.
    pub has_waited: bool,
}

/// What a relay says about a message that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The digest of the message.
    pub digest: String,
    /// Its place in the log.
    pub index: Option<u64>,
    /// When it came.
    pub received_at: Option<String>,
    /// Which relay has it.
    pub received_by: Option<String>,
    /// Whether it waits for a person.
    pub is_held: bool,
}

impl Sent {
    pub(crate) fn of(answer: &str) -> Option<Self> {
        let document = Document::parse(answer, Reading::Strict);
        if !document.is_accepted() {
            return None;
        }
        let field = |key| document.meta("receipt", key).map(str::to_owned);
        let is_ack = document.envelope().meaning() == Some(Intent::Ack);
        let receipt = field("Digest").filter(|_| is_ack).map(|digest| Receipt {
            digest,
            index: field("Index").and_then(|i| i.parse().ok()),
            received_at: field("Received-At"),
            received_by: field("Received-By"),
            is_held: field("State").is_some_and(|state| state == "held"),
        });
        Some(Self {
            answer: answer.to_owned(),
            receipt,
            has_waited: false,
        })
    }
}

impl Client {
    /// A client of the relay at a URL, which may be on this machine.
    ///
    /// # Errors
    /// If that is no URL.
    pub fn new(base: &str) -> Result<Self, ClientError> {
        Ok(Self {
            base: Url::parse(base)?,
            token: None,
            outbound: Outbound::new(None, Roots::system()),
            within: WITHIN,
            line: Arc::default(),
        })
    }

    /// The same client with a credential.
    #[must_use]
    pub fn with_token(self, token: impl Into<String>) -> Self {
        Self {
            token: Some(token.into()),
            ..self
        }
    }

    /// The same client with another way to connect.
    #[must_use]
    pub fn with_outbound(self, outbound: Outbound) -> Self {
        Self {
            outbound,
            line: Arc::default(),
            ..self
        }
    }

    /// The same client with another deadline for each request, besides what it is told to wait.
    #[must_use]
    pub fn with_deadline(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// The URL of the relay.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Sends an envelope. The ACK of the relay, or what the recipient answered at once.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn send(&self, text: &str) -> Result<Sent, ClientError> {
        self.ask(text, Duration::ZERO).await
    }

    /// Sends an envelope and waits for the answer to it, at most 60 seconds. The answer, else the ACK of the relay.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn ask(&self, text: &str, wait: Duration) -> Result<Sent, ClientError> {
        let mut call = self.call(Method::POST, "crosstalk/receive")?;
        call = call
            .header(CONTENT_TYPE, TEXT)?
            .header(ACCEPT, "text/plain")?;
        if wait.as_secs() > 0 {
            let prefer = HeaderName::from_static("prefer");
            call = call.header(prefer, &format!("wait={}", wait.as_secs()))?;
        }
        call.within += wait;
        call.most = MESSAGE_BYTES;
        call.body = Bytes::copy_from_slice(text.as_bytes());
        let answer = self.run(call).await?;
        let sent = answer.text().and_then(Sent::of);
        let sent = sent.ok_or_else(|| unreadable(&answer, "it is no envelope"))?;
        Ok(Sent {
            has_waited: answer.headers.contains_key("preference-applied"),
            ..sent
        })
    }

    /// Sends several envelopes in one request. One answer for each, in their order: an ACK, or an ERROR.
    ///
    /// # Errors
    /// If the request as a whole is refused, or the relay can't be reached.
    pub async fn send_batch(&self, texts: &[&str]) -> Result<Vec<String>, ClientError> {
        let mut call = self.call(Method::POST, "crosstalk/receive")?;
        call = call.header(CONTENT_TYPE, BATCH)?.header(ACCEPT, BATCH)?;
        let texts: Vec<&str> = texts.iter().map(|t| t.trim_end()).collect();
        call.body = Bytes::from(texts.join("\n\n") + "\n");
        let answer = self.run(call).await?;
        let text = answer.text().unwrap_or_default();
        let found = scan(text, Reading::Strict);
        if found.documents.len() != texts.len() {
            return Err(unreadable(&answer, "it has not one envelope for each"));
        }
        let answers = found.documents.iter().map(|d| d.to_well_formed());
        Ok(answers.collect())
    }

    /// What an address has got and not acknowledged, after a place; if nothing, waits so long.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn inbox(
        &self,
        address: &str,
        after: Option<&str>,
        limit: usize,
        wait: Duration,
    ) -> Result<Inbox, ClientError> {
        let path = Path::new("crosstalk/inbox")
            .query("for", address)
            .query_if("after", after)
            .query("limit", &limit.to_string())
            .query("wait", &wait.as_secs().to_string());
        let mut call = self.call(Method::GET, &path.text)?;
        call.within += wait;
        self.json(call).await
    }

    /// The messages of an address as they come.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn stream(&self, address: &str, after: Option<&str>) -> Result<Stream, ClientError> {
        let path = Path::new("crosstalk/inbox")
            .query("for", address)
            .query_if("after", after);
        let call = self.call(Method::GET, &path.text)?;
        let call = call.header(ACCEPT, "text/event-stream")?;
        let (until, within) = (Instant::now() + call.within, call.within);
        let work = async {
            let mut line = self.outbound.connect(&call.url, true, until).await?;
            let response = line.send(call).await?;
            Ok::<_, OutboundError>((line, response))
        };
        let opened = tokio::time::timeout_at(until, work).await;
        let (line, response) = opened.map_err(|_| OutboundError::Late(within))??;
        let (head, body) = response.into_parts();
        if head.status != StatusCode::OK {
            use http_body_util::{BodyExt as _, Limited};
            let body = Limited::new(body, limit::ENVELOPE_BYTES).collect();
            let body = tokio::time::timeout_at(until, body).await;
            let body = body.ok().and_then(Result::ok).map(|b| b.to_bytes());
            return Err(ClientError::Refused(Box::new(refusal(&Answer {
                status: head.status.as_u16(),
                headers: head.headers,
                body: body.unwrap_or_default(),
            }))));
        }
        Ok(Stream::new(body, line, after.map(str::to_owned)))
    }

    /// Acknowledges messages of an address: they are done.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn acknowledge(&self, address: &str, ids: &[&str]) -> Result<Acked, ClientError> {
        self.mark(address, ids, "acknowledged").await
    }

    /// Says how far messages of an address are: `read` or `acknowledged`; or that the program that answers them failed, and is
    /// tried again (`retrying`) or not (`failed`).
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn mark(
        &self,
        address: &str,
        ids: &[&str],
        state: &str,
    ) -> Result<Acked, ClientError> {
        let body = json!({ "for": address, "ids": ids, "state": state });
        self.put(Method::POST, "crosstalk/ack", &body).await
    }

    /// How far the deliveries of a message are.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn status(&self, id: &str) -> Result<Status, ClientError> {
        let path = Path::new("crosstalk/messages").part(id).part("status");
        self.get(path).await
    }

    /// A message, as it leaves the relay.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn message(&self, id: &str) -> Result<Message, ClientError> {
        self.get(Path::new("crosstalk/messages").part(id)).await
    }

    /// Conversations, the latest first; only those with a party, only open ones.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn threads(
        &self,
        with: Option<&str>,
        open: bool,
        limit: usize,
        skip: usize,
    ) -> Result<Vec<Thread>, ClientError> {
        let path = Path::new("crosstalk/threads")
            .query_if("with", with)
            .query_if("open", open.then_some("true"))
            .query("limit", &limit.to_string())
            .query("skip", &skip.to_string());
        Ok(self.get::<Threads>(path).await?.threads)
    }

    /// A conversation as a tree.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn thread(&self, id: &str) -> Result<ThreadTree, ClientError> {
        let path = Path::new("crosstalk/threads").part(id);
        let mut call = self.call(Method::GET, &path.text)?;
        call.most = THREAD_BYTES;
        self.json(call).await
    }

    /// A conversation as a file of envelopes.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn export(&self, id: &str) -> Result<String, ClientError> {
        let path = Path::new("crosstalk/threads").part(id);
        let mut call = self.call(Method::GET, &path.text)?;
        call.most = THREAD_BYTES;
        let answer = self.run(call.header(ACCEPT, "text/plain")?).await?;
        let text = answer.text().map(str::to_owned);
        text.ok_or_else(|| unreadable(&answer, "it is not UTF-8"))
    }

    /// Messages with these words.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn search(&self, words: &str, limit: usize) -> Result<Vec<Message>, ClientError> {
        let path = Path::new("crosstalk/search")
            .query("q", words)
            .query("limit", &limit.to_string());
        Ok(self.get::<Messages>(path).await?.messages)
    }

    /// Where a name leads.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn resolve(&self, name: &str) -> Result<Resolved, ClientError> {
        self.get(Path::new("crosstalk/resolve").query("name", name))
            .await
    }

    /// Agents and what they can do.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn agents(&self) -> Result<Vec<AgentInfo>, ClientError> {
        let agents: Agents = self.get(Path::new("crosstalk/agents")).await?;
        Ok(agents.agents)
    }

    /// Says which of the capabilities that the operator assigned to an agent it offers; the answer has those that it
    /// has then.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn declare(&self, agent: &AgentInfo) -> Result<AgentInfo, ClientError> {
        self.put(Method::PUT, "crosstalk/agents", agent).await
    }

    /// What waits for a person to carry it.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn courier(&self, limit: usize) -> Result<Vec<Message>, ClientError> {
        let path = Path::new("crosstalk/courier").query("limit", &limit.to_string());
        Ok(self.get::<Messages>(path).await?.messages)
    }

    /// Says that a person carried a message, or why not.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn carried(
        &self,
        id: &str,
        to: &str,
        failed: Option<&str>,
    ) -> Result<Status, ClientError> {
        let body = match failed {
            None => json!({ "to": to, "state": "carried" }),
            Some(reason) => json!({ "to": to, "state": "failed", "reason": reason }),
        };
        let path = Path::new("crosstalk/courier").part(id);
        self.put(Method::POST, &path.text, &body).await
    }

    /// Deliveries that were given up, the latest first.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn dead(&self, limit: usize) -> Result<Vec<Letter>, ClientError> {
        let path = Path::new("crosstalk/dead").query("limit", &limit.to_string());
        Ok(self.get::<Letters>(path).await?.letters)
    }

    /// Has the deliveries of a message tried again. How many.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn requeue(&self, id: &str) -> Result<u64, ClientError> {
        let path = Path::new("crosstalk/dead").part(id).part("requeue");
        let done: Requeued = self.put(Method::POST, &path.text, &json!({})).await?;
        Ok(done.requeued)
    }

    /// All tokens, without their secrets.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn tokens(&self) -> Result<Vec<Token>, ClientError> {
        Ok(self
            .get::<Tokens>(Path::new("crosstalk/tokens"))
            .await?
            .tokens)
    }

    /// Makes a token. Its secret is in the answer.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn add_token(&self, token: &NewToken) -> Result<Token, ClientError> {
        self.put(Method::POST, "crosstalk/tokens", token).await
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn revoke_token(&self, name: &str) -> Result<(), ClientError> {
        let path = Path::new("crosstalk/tokens").part(name);
        let call = self.call(Method::DELETE, &path.text)?;
        self.run(call.header(ACCEPT, JSON)?).await.map(drop)
    }

    async fn get<T: DeserializeOwned>(&self, path: Path) -> Result<T, ClientError> {
        self.json(self.call(Method::GET, &path.text)?).await
    }

    async fn put<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let mut call = self.call(method, path)?.header(CONTENT_TYPE, JSON)?;
        call.most = MESSAGE_BYTES;
        call.body = serde_json::to_vec(body)
            .map_err(|e| OutboundError::Refused(e.to_string()))?
            .into();
        self.json(call).await
    }

    async fn json<T: DeserializeOwned>(&self, call: Call) -> Result<T, ClientError> {
        let answer = self.run(call.header(ACCEPT, JSON)?).await?;
        serde_json::from_slice(&answer.body).map_err(|e| unreadable(&answer, &e.to_string()))
    }

    fn call(&self, method: Method, path: &str) -> Result<Call, ClientError> {
        let call = Call {
            // Who uses a client chose the relay.
            allow_private: true,
            within: self.within,
            most: PAGE_BYTES,
            ..Call::new(method, self.base.below(path))
        };
        Ok(call.bearer(self.token.as_deref())?)
    }

    /// Calls, on the connection of the last call if it is still there.
    async fn run(&self, call: Call) -> Result<Answer, ClientError> {
        let (until, within) = (Instant::now() + call.within, call.within);
        let work = async {
            let kept = self.slot().take().filter(Line::is_open);
            if let Some(mut line) = kept {
                match line.call(call.clone()).await {
                    Ok(answer) => {
                        *self.slot() = Some(line);
                        return Ok(answer);
                    }
                    // The relay closed it while it was idle.
                    Err(OutboundError::Broken { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            let mut line = self.outbound.connect(&call.url, true, until).await?;
            let answer = line.call(call).await?;
            *self.slot() = Some(line);
            Ok(answer)
        };
        let answer = tokio::time::timeout_at(until, work).await;
        let answer = answer.map_err(|_| OutboundError::Late(within))??;
        match (200..300).contains(&answer.status) {
            true => Ok(answer),
            false => Err(ClientError::Refused(Box::new(refusal(&answer)))),
        }
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unreadable(answer: &Answer, reason: &str) -> ClientError {
    ClientError::Unreadable {
        status: answer.status,
        reason: reason.to_owned(),
    }
}

/// A client for programs without a runtime of their own.
///
/// ```no_run
/// use crosstalk_relay::client::{Blocking, Client};
/// let client = Blocking::new(Client::new("http://127.0.0.1:8799").unwrap()).unwrap();
/// let threads = client.run(async |c| c.threads(None, true, 20, 0).await);
/// ```
pub struct Blocking {
    client: Client,
    runtime: tokio::runtime::Runtime,
}

impl Blocking {
    /// A runtime of one thread, which runs while something is waited for.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn new(client: Client) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self { client, runtime })
    }

    /// The same client with another deadline for each request, besides what it is told to wait.
    #[must_use]
    pub fn with_deadline(self, within: Duration) -> Self {
        Self {
            client: self.client.with_deadline(within),
            ..self
        }
    }

    /// Does something with the client, and waits for it.
    pub fn run<T>(&self, work: impl AsyncFnOnce(&Client) -> T) -> T {
        self.runtime.block_on(work(&self.client))
    }
}
