//! A client of a relay.
//!
//! ```no_run
//! # async fn example() -> Result<(), crosstalk_api::client::ClientError> {
//! use crosstalk_api::client::Client;
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

mod error;
mod stream;

pub use crate::approval::{
    Approval, ApprovalDecision, DecisionRequest, DecisionView, RecipientView,
};
pub use crate::audit::LogChainView;
pub use crate::blob::Blob;
pub use crate::consent::{ConsentEnd, ConsentRecord, ConsentView, UnderConsent};
pub use crate::delivery::{DeadLetterView, QuarantinedView, Retried};
pub use crate::directory::{AgentInfo, Resolved, RouteView};
pub use crate::inbox::{Acked, InboxPage};
pub use crate::message::{DeliveryStatus, MessageStatus, MessageView, Messages};
pub use crate::poll::PollSummary;
pub use crate::thread::{ThreadNode, ThreadTree, ThreadView};
pub use crate::token::{NewToken, TokenView};
pub use crate::trust::{Distrust, NewPin, TrustedKeyView};
pub use error::{ClientError, RejectedRequest, one_line, rejection_of};
pub use stream::InboxStream;

use crate::outbound::{
    HttpCall, HttpConnection, HttpResponse, Outbound, OutboundError, Roots, Url,
};
use crate::{Endpoint, Media, Method, Parameter};
use crosstalk_envelope::{Document, Intent, Reading};
use crosstalk_protocol::port::Later;
use http::header::{ACCEPT, CONTENT_TYPE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a request may take, besides the time that it is told to wait.
const WITHIN: Duration = Duration::from_secs(30);
/// The largest answer about one message: the envelope and the messages before it (HTP-031), as JSON.
pub(crate) const MESSAGE_BYTES: u64 = 8 << 20;
/// The largest page of a listing (HTP-038).
const PAGE_BYTES: u64 = 32 << 20;

/// Another way for the requests of a client than the network: a relay whose console calls its own endpoints.
pub trait Transport: Send + Sync {
    /// Answers a request. The relay checks it as one that came over the network.
    fn call(&self, call: HttpCall) -> Later<'_, Result<HttpResponse, OutboundError>>;
}

/// A client of one relay. Clones share a connection.
#[derive(Clone)]
pub struct Client {
    base: Url,
    token: Option<String>,
    outbound: Outbound,
    within: Duration,
    line: Arc<Mutex<Option<HttpConnection>>>,
    transport: Option<Arc<dyn Transport>>,
}

/// The answer of a relay to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendResult {
    /// The envelope: an ACK of the relay, or what the recipient answered.
    pub answer: String,
    /// The receipt, if the answer is the ACK of the relay.
    pub receipt: Option<RelayReceipt>,
    /// Whether the relay waited for the answer, as it was asked to.
    pub has_waited: bool,
}

/// The receipt of a relay for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayReceipt {
    /// The digest of the message.
    pub digest: String,
    /// Its place in the log.
    pub index: Option<u64>,
    /// The origin of the chain of the log, `#` and the index, if it is not the first chain of the relay.
    pub chain: Option<String>,
    /// When it came.
    pub received_at: Option<String>,
    /// Which relay has it.
    pub received_by: Option<String>,
    /// Whether it waits for a person.
    pub is_held: bool,
}

impl SendResult {
    /// The ACK or the answer that a text is, if it is one.
    pub fn of(answer: &str) -> Option<Self> {
        let document = Document::parse(answer, Reading::Strict);
        if !document.is_accepted() {
            return None;
        }
        let field = |key| document.meta("receipt", key).map(str::to_owned);
        let is_ack = document.envelope().meaning() == Some(Intent::Ack);
        let receipt = field("Digest")
            .filter(|_| is_ack)
            .map(|digest| RelayReceipt {
                digest,
                index: field("Index").and_then(|i| i.parse().ok()),
                chain: field("Chain"),
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
            transport: None,
        })
    }

    /// The same client, whose requests take another way than the network.
    #[must_use]
    pub fn with_transport(self, transport: Arc<dyn Transport>) -> Self {
        Self {
            transport: Some(transport),
            ..self
        }
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

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        target: RequestTarget,
    ) -> Result<T, ClientError> {
        self.json(self.call(target)?).await
    }

    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        target: RequestTarget,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let mut call = self
            .call(target)?
            .header(CONTENT_TYPE, Media::Json.name())?;
        call.most = MESSAGE_BYTES;
        call.body = serde_json::to_vec(body)
            .map_err(|e| OutboundError::Refused(e.to_string()))?
            .into();
        self.json(call).await
    }

    pub(crate) async fn json<T: DeserializeOwned>(&self, call: HttpCall) -> Result<T, ClientError> {
        let answer = self.run(call.header(ACCEPT, Media::Json.name())?).await?;
        serde_json::from_slice(&answer.body).map_err(|e| unreadable(&answer, &e.to_string()))
    }

    pub(crate) fn call(&self, target: RequestTarget) -> Result<HttpCall, ClientError> {
        let call = HttpCall {
            // The user of a client chose the relay.
            allow_private: true,
            within: self.within,
            most: PAGE_BYTES,
            ..HttpCall::new(target.method.into(), self.base.below(&target.path))
        };
        Ok(call.bearer(self.token.as_deref())?)
    }

    /// Calls, on the connection of the last call if it is still there.
    pub(crate) async fn run(&self, call: HttpCall) -> Result<HttpResponse, ClientError> {
        let (until, within) = (Instant::now() + call.within, call.within);
        let work = async {
            if let Some(transport) = &self.transport {
                return transport.call(call).await;
            }
            let kept = self.slot().take().filter(HttpConnection::is_open);
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
            false => Err(ClientError::Rejected(Box::new(rejection_of(&answer)))),
        }
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<HttpConnection>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn unreadable(answer: &HttpResponse, reason: &str) -> ClientError {
    ClientError::Unreadable {
        status: answer.status,
        reason: reason.to_owned(),
    }
}

/// Characters that are escaped in a path or a query.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// An endpoint with the values of its parameters.
pub(crate) struct RequestTarget {
    method: Method,
    path: String,
    has_query: bool,
}

impl RequestTarget {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        Self {
            method: endpoint.method,
            path: endpoint.path.trim_start_matches('/').to_owned(),
            has_query: false,
        }
    }

    /// The same with the segment of its path.
    pub(crate) fn segment(self, name: &str) -> Self {
        Self {
            path: self.path.replacen("{}", &encode(name), 1),
            ..self
        }
    }

    /// The same with a parameter.
    pub(crate) fn query(mut self, parameter: &Parameter, value: impl Display) -> Self {
        self.path.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.path.push_str(parameter.name);
        self.path.push('=');
        self.path.push_str(&encode(&value.to_string()));
        self
    }

    /// The same with a parameter that may have no value.
    pub(crate) fn query_if(self, parameter: &Parameter, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(parameter, value),
            None => self,
        }
    }
}

fn encode(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, ENCODED).into()
}

/// A client for programs without a runtime of their own.
///
/// ```no_run
/// use crosstalk_api::client::{Blocking, Client};
/// let client = Blocking::new(Client::new("http://127.0.0.1:8799").unwrap()).unwrap();
/// let threads = client.run(async |c| c.threads(None, true, 20, None).await);
/// ```
pub struct Blocking {
    client: Client,
    runtime: tokio::runtime::Runtime,
}

impl Blocking {
    /// A runtime of one thread, which runs while something is waited for.
    ///
    /// # Errors
    /// The system gives no runtime.
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
