//! `/mcp`: the tools of an agent over streamable HTTP, for the address of its token.
//!
//! Every request stands for itself: there are no sessions, so that nothing of a client stays in memory between two requests, and
//! any relay of several can answer. A request passes the checks of every other endpoint first.

use super::Server;
use super::body::{self, Body, BodyLimits};
use super::credential::Caller;
use super::inbox::settle;
use super::poll;
use super::response::{HttpError, Response};
use super::router::Call;
use crate::core::access::Access;
use crate::core::{InboxWatch, Received, Relay};
use axum::extract::Request;
use bytes::Bytes;
use crosstalk_envelope::{Address, Builder, CoreHeader, Explanation, Intent, id};
use crosstalk_mcp::rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use crosstalk_mcp::rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService,
};
use crosstalk_mcp::{
    AgentDirectory, AgentMessage, AgentPort, AgentServer, AgentThread, ChangeWatch, KnownAgent,
    McpCaller, MessageDraft, News, PollDraft, PollProgress, PortFuture, PortSource, PostedMessage,
};
use crosstalk_protocol::agent_user;
use crosstalk_protocol::compose::{context_of, infer_intent, session_text};
use crosstalk_protocol::poll::{PollKind, answer_hint};
use crosstalk_protocol::relay::{DeliveryState, Handler, Pattern, is_human};
use crosstalk_protocol::store::{Page, Record, StoreError, ThreadFilter, is_same_party};
use futures_util::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Full};
use percent_encoding::percent_decode_str;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The largest request, in bytes, and how long it may take to come.
const LIMITS: BodyLimits = BodyLimits {
    bytes: 2 << 20,
    time: Duration::from_secs(20),
};
/// The most messages of a thread that are shown at once: the latest.
const SHOWN: usize = 200;
/// The most unread messages that a check looks at.
const WINDOW: usize = 100;

/// Answers a request of an MCP client.
pub(super) async fn handle(call: Call, request: Request) -> Result<Response, HttpError> {
    let address = address_of(&call.caller, request.uri().query())?;
    let (parts, request_body) = request.into_parts();
    let bytes = body::collect(request_body, LIMITS).await?;
    let source = Arc::new(RelaySource {
        port: Arc::new(RelayPort {
            access: call.access(),
            server: Arc::clone(&call.server),
            caller: call.caller.clone(),
            address,
        }),
    });
    // The gate of the relay knows its names; it has looked at them already.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts();
    let factory = move || Ok(AgentServer::new(Arc::clone(&source) as Arc<dyn PortSource>));
    let service =
        StreamableHttpService::new(factory, Arc::new(NeverSessionManager::default()), config);
    let request = http::Request::from_parts(parts, Full::new(bytes));
    let response = tokio::select! {
        response = service.handle(request) => response,
        () = call.server.wait_for_shutdown() => {
            return Err(HttpError::later("The relay is shutting down"));
        }
    };
    let (parts, mut frames) = response.into_parts();
    let kind = parts
        .headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok());
    if kind.is_none_or(|kind| !kind.starts_with("text/event-stream")) {
        let bytes = frames.collect().await.map(|all| all.to_bytes());
        let bytes: Bytes = bytes.unwrap_or_default();
        return Ok(http::Response::from_parts(parts, Body::from(bytes)));
    }
    let (send, stream) = body::stream(&call.connection.phase, None);
    tokio::spawn(async move {
        loop {
            let frame = tokio::select! {
                frame = frames.frame() => frame,
                () = send.closed() => return,
                () = call.server.wait_for_shutdown() => return,
            };
            let Some(Ok(frame)) = frame else { return };
            if let Ok(data) = frame.into_data()
                && send.send(data).await.is_err()
            {
                return;
            }
        }
    });
    Ok(http::Response::from_parts(parts, stream))
}

/// The address that a token is for. One for many addresses, or the person at this machine, names one of them with `?as=`; nobody
/// is a person here.
fn address_of(caller: &Caller, query: Option<&str>) -> Result<String, HttpError> {
    let mut pairs = query.unwrap_or_default().split('&');
    let named = pairs.find_map(|pair| pair.strip_prefix("as="));
    let named = named.map(|text| percent_decode_str(text).decode_utf8_lossy().into_owned());
    let is_agent = |address: &str| {
        let split = Address::split(address);
        let is_one = !address.contains(|c: char| c.is_whitespace() || c.is_control() || c == '*');
        split.scheme().is_some() && !is_human(address) && is_one
    };
    let exact = caller.peer.addresses.iter().filter_map(Pattern::address);
    let found = match named {
        Some(named) => Some(named).filter(|address| caller.peer.speaks_for(address)),
        None => exact.map(str::to_owned).find(|address| is_agent(address)),
    };
    found.filter(|address| is_agent(address)).ok_or_else(|| {
        HttpError::forbidden(
            "The credential is for no address of an agent.",
            "use a token that was made for one, as with `crosstalk token create NAME --role agent --for ADDRESS`; one for several \
             addresses names one with `/mcp?as=ADDRESS`.",
        )
    })
}

/// The port of the one caller of a request.
struct RelaySource {
    port: Arc<RelayPort>,
}

impl PortSource for RelaySource {
    fn open<'f>(&'f self, _: McpCaller<'f>) -> PortFuture<'f, Arc<dyn AgentPort>> {
        let port: Arc<dyn AgentPort> = self.port.clone();
        Box::pin(async move { Ok(port) })
    }
}

/// An address at this relay, as its agent uses it.
struct RelayPort {
    server: Arc<Server>,
    caller: Caller,
    access: Access,
    address: String,
}

fn trouble(error: StoreError) -> Explanation {
    error.explanation
}

fn unknown(id: &str) -> Explanation {
    Explanation::new(
        format!("no message or thread of yours has the id {id}"),
        "check lists new messages with their ids",
    )
}

impl RelayPort {
    fn relay(&self) -> &Relay {
        &self.server.relay
    }

    /// The address behind the name of the inbox.
    fn inbox_address(&self) -> String {
        self.relay().rules().routes.named(&self.address).to_owned()
    }

    /// Whether the credential still counts: a call may have waited for long.
    async fn check(&self) -> Result<(), Explanation> {
        let checked = self.server.check_credential(&self.caller).await;
        checked.map_err(HttpError::into_explanation)
    }

    async fn shown(&self, record: &Record) -> Result<AgentMessage, Explanation> {
        let held = self.relay().store().held_message(&record.id).await;
        let held = held.map_err(trouble)?;
        let is_approved = held.is_some_and(|held| held.is_approved());
        Ok(AgentMessage::of(record, &self.address, is_approved))
    }

    async fn shown_all(&self, records: &[Record]) -> Result<Vec<AgentMessage>, Explanation> {
        let mut all = Vec::with_capacity(records.len());
        for record in records {
            all.push(self.shown(record).await?);
        }
        Ok(all)
    }

    /// The message or the thread that an id means, as far as this agent may read it.
    async fn find(&self, id: &str) -> Result<Vec<Record>, Explanation> {
        self.check().await?;
        self.server.wait_for_index().await;
        let (store, now) = (self.relay().store(), self.relay().now());
        let records = match store.record(id).await.map_err(trouble)? {
            Some(record) => vec![record],
            None => {
                let mut all: Vec<Record> = Vec::new();
                loop {
                    let after = all.last().map(|r| r.seq);
                    let page = store.messages(id, after, SHOWN).await.map_err(trouble)?;
                    all.extend(page.items);
                    let extra = all.len().saturating_sub(SHOWN);
                    all.drain(..extra);
                    if !page.more {
                        break all;
                    }
                }
            }
        };
        let mut readable = Vec::new();
        for record in records {
            let may = self.access.can_read(store, &record).await;
            if may.map_err(trouble)? && !record.is_expired(now) && !record.text.is_empty() {
                readable.push(record);
            }
        }
        match readable.is_empty() {
            true => Err(unknown(id)),
            false => Ok(readable),
        }
    }

    async fn message(&self, id: &str) -> Result<Record, Explanation> {
        let mut found = self.find(id).await?;
        found.pop().ok_or_else(|| unknown(id))
    }

    /// Takes messages out of the news.
    async fn mark(&self, records: &[Record]) -> Result<(), Explanation> {
        let others = records
            .iter()
            .filter(|r| !is_same_party(&r.sender, &self.address));
        let ids: Vec<String> = others.map(|r| r.id.clone()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let address = self.inbox_address();
        let settled = settle(self.relay(), &address, ids, DeliveryState::Acknowledged);
        settled.await.map(drop).map_err(trouble)
    }

    /// An agent at this relay, by its address: `codex://code/web` is a Codex in the project `code/web`.
    fn known_agent(&self, address: String) -> KnownAgent {
        let (client, project) = address.split_once("://").unwrap_or_default();
        KnownAgent {
            client: client.to_owned(),
            project: project.to_owned(),
            is_live: self.relay().has_reader(&address),
            address,
        }
    }

    /// The receiver that an agent names: a name of the relay, an address, or the client of an agent. Only agents of the
    /// configuration count there: nobody takes a name over by declaring an address that fits it.
    fn receiver(&self, typed: &str) -> Result<(String, String), Explanation> {
        let typed = typed.trim();
        let rules = self.relay().rules();
        let own = self.known_agent(self.address.clone());
        let agents = rules.directory.agents();
        let directory = AgentDirectory {
            own: &own,
            agents: agents.map(|a| self.known_agent(a.address)).collect(),
            has_relay: true,
        };
        let named = rules.routes.named(typed);
        let is_alias = Address::split(typed).is_name() && !Address::split(named).is_name();
        let is_own = is_same_party(named, &self.address);
        let meant = if is_own { named } else { typed };
        let address = match is_alias && !is_own {
            true => typed.to_owned(),
            false => {
                let found =
                    directory.resolve(meant, |client| format!("{client}://{}", own.project));
                found?.address
            }
        };
        Ok((address, directory.listed()))
    }

    /// What the sender should know about an inbox that nobody has read.
    async fn unread_note(&self, id: &str, listed: &str) -> Result<String, Explanation> {
        self.server.wait_for_index().await;
        let relay = self.relay();
        let Some(record) = relay.store().record(id).await.map_err(trouble)? else {
            return Ok(String::new());
        };
        for delivery in relay.store().deliveries_of(id).await.map_err(trouble)? {
            if relay
                .is_never_read(&record, &delivery)
                .await
                .map_err(trouble)?
            {
                let meant = relay.similar_address(&self.caller.peer, &delivery.to);
                let meant = meant.map_or(String::new(), |a| format!(" Did you mean {a}?"));
                return Ok(format!(
                    "No agent has connected as {} yet: the message waits for it.{meant} {listed}",
                    delivery.to
                ));
            }
        }
        Ok(String::new())
    }

    async fn post(&self, builder: Builder) -> Result<PostedMessage, Explanation> {
        let text = builder.visible().build().map_err(|fault| {
            let found = fault.diagnostics.iter().find(|d| d.is_error());
            match found {
                Some(found) => Explanation::new(found.message.clone(), found.rule.help),
                None => Explanation::fact(fault.to_string()),
            }
        })?;
        match self
            .relay()
            .receive(text.as_bytes(), &self.caller.peer)
            .await
        {
            Received::Accepted { id, seq, .. } => {
                let document =
                    crosstalk_envelope::Document::parse(&text, crosstalk_envelope::Reading::Strict);
                let thread = document.header(CoreHeader::Thread).unwrap_or_default();
                let note = match seq {
                    0 => "A person has to approve it before it goes on.",
                    _ => "",
                };
                Ok(PostedMessage {
                    id,
                    thread: thread.to_owned(),
                    note: note.to_owned(),
                })
            }
            Received::Rejected { refusal, .. } => Err(Explanation::new(refusal.what, refusal.help)),
        }
    }

    /// A message of this agent, in a thread of its own or after another message.
    fn written(
        &self,
        receiver: &str,
        text: &str,
        (intent, context): (Option<&str>, Option<&str>),
        before: Option<&Record>,
    ) -> Builder {
        let thread = before.map_or_else(id::new_ulid, |r| r.thread.clone());
        let asked = before.filter(|r| !is_same_party(&r.sender, &self.address));
        let asked = asked.and_then(|r| r.meaning);
        let intent = match intent {
            Some(intent) => intent.to_uppercase(),
            None => infer_intent(text, asked).as_str().to_owned(),
        };
        let session = match before {
            Some(before) => before.session.clone(),
            None => {
                let word: String = thread.chars().rev().take(6).collect();
                Some(session_text(self.relay().now(), &word.to_lowercase()))
            }
        };
        let context = context.map(str::to_owned);
        let context = context.or_else(|| before?.context.clone());
        Builder::new(self.address.as_str(), receiver)
            .user(agent_user(&self.address))
            .core_if(CoreHeader::Session, session.as_deref())
            .thread(thread)
            .core_if(CoreHeader::Parent, before.map(|r| r.id.as_str()))
            .message(id::new_ulid())
            .context(context.unwrap_or_else(|| context_of(text)))
            .intent(intent)
            .body(text)
    }

    async fn send_message(&self, draft: MessageDraft) -> Result<PostedMessage, Explanation> {
        let (receiver, listed) = self.receiver(&draft.to)?;
        let before = match &draft.thread {
            Some(thread) => Some(self.message(thread).await?),
            None => None,
        };
        let wanted = (draft.intent.as_deref(), draft.context.as_deref());
        let written = self.written(&receiver, &draft.text, wanted, before.as_ref());
        let sent = self.post(written).await?;
        let note = self.unread_note(&sent.id, &listed).await?;
        Ok(sent.with_note(&note))
    }

    async fn look(&self, limit: usize) -> Result<News, Explanation> {
        let relay = self.relay();
        let entries = relay.inbox(&self.address, None, WINDOW + 1);
        let mut entries = entries.await.map_err(trouble)?;
        // After the messages were read: nothing is shown to a token that was revoked meanwhile.
        self.check().await?;
        relay.note_reader(&self.caller.peer, &self.address);
        let now = relay.now();
        let more = entries.len() > WINDOW;
        entries.truncate(WINDOW);
        entries.retain(|e| !e.record.is_expired(now) && !e.record.text.is_empty());
        let queued = entries
            .iter()
            .filter(|e| e.by == Handler::Inbox && e.state == DeliveryState::Queued);
        let queued: HashSet<String> = queued.map(|e| e.record.id.clone()).collect();
        let shown = entries
            .iter()
            .map(|e| AgentMessage::of(&e.record, &self.address, e.is_approved));
        // Behind a full window, there may be messages that were never shown.
        let was_shown = |message: &AgentMessage| !more && !queued.contains(&message.id);
        let mut news = News::of(shown.collect(), limit, was_shown);
        news.more |= more;
        let ids = news.messages.iter().map(|m| m.id.clone());
        let ids: Vec<String> = ids.filter(|id| queued.contains(id)).collect();
        if !ids.is_empty() {
            relay.handed_out(&self.inbox_address(), ids);
        }
        Ok(news)
    }

    async fn answer(&self, id: &str, text: &str) -> Result<PostedMessage, Explanation> {
        let answered = self.message(id).await?;
        let document = answered.document();
        let is_poll = answered.meaning == Some(Intent::Poll);
        let reply_to = document.envelope().routing().reply_to;
        let reply_to = reply_to.filter(|_| !is_poll).map(|a| a.as_str().to_owned());
        drop(document);
        let receiver = match is_same_party(&answered.sender, &self.address) {
            true => answered.receiver.clone(),
            false => reply_to.unwrap_or_else(|| answered.sender.clone()),
        };
        let sent = self.post(self.written(&receiver, text, (None, None), Some(&answered)));
        let sent = sent.await?;
        self.mark(&[answered]).await?;
        Ok(sent)
    }

    async fn begin_poll(&self, draft: PollDraft) -> Result<PostedMessage, Explanation> {
        let mut voters: Vec<String> = Vec::new();
        let mut listed = String::new();
        for typed in &draft.to {
            let (voter, about) = self.receiver(typed)?;
            voters.push(voter);
            listed = about;
        }
        let Some(first) = voters.first() else {
            return Err(Explanation::new(
                "a poll needs voters",
                "name them in to, as [\"codex://code/web\", \"gemini://code/web\"]",
            ));
        };
        let kind = match draft.options.len() {
            0 => PollKind::Open,
            1 => {
                return Err(Explanation::new(
                    "one option is no choice",
                    "give another, or none",
                ));
            }
            _ => PollKind::Plurality,
        };
        let list = |all: &[String]| serde_json::to_string(all).unwrap_or_default();
        let text = match answer_hint(&kind, &draft.options) {
            Some(hint) => format!("{}\n\n{hint}", draft.question.trim_end()),
            None => draft.question.clone(),
        };
        let mut builder = self
            .written(first, &text, (Some("POLL"), None), None)
            .meta("routing", "Targets", list(&voters))
            .meta("poll", "Type", kind.as_str());
        if !draft.options.is_empty() {
            builder = builder.meta("poll", "Options", list(&draft.options));
        }
        let opened = self.post(builder).await?;
        let note = self.unread_note(&opened.id, &listed).await?;
        Ok(opened.with_note(&note))
    }

    async fn poll_progress(&self, id: &str) -> Result<PollProgress, Explanation> {
        self.check().await?;
        self.server.wait_for_index().await;
        let found = poll::find(&self.server, &self.access, id).await;
        let standing = found.map_err(HttpError::into_explanation)?;
        let shown = standing.shown();
        let mut answers = Vec::new();
        if shown.call().options.is_empty() {
            let records = self.find(&standing.record.thread).await?;
            let is_answer = |r: &Record| {
                r.parent.as_deref() == Some(id) && !is_same_party(&r.sender, &self.address)
            };
            let records: Vec<Record> = records.into_iter().filter(is_answer).collect();
            answers = self.shown_all(&records).await?;
        }
        let tally = shown.tally.0.iter();
        Ok(PollProgress {
            id: standing.record.id.clone(),
            is_open: standing.closed_at.is_none(),
            tally: tally.map(|(o, n)| (o.clone(), n.to_string())).collect(),
            missing: shown.missing.clone(),
            answers,
        })
    }

    /// The person who decides at this relay: the only address of a person that a token is for.
    async fn person(&self) -> Result<String, Explanation> {
        let known = self.relay().registry().await.map_err(trouble)?;
        let now = self.relay().now();
        let tokens = known.tokens.values().filter(|t| t.fault(now).is_none());
        let persons = tokens.filter(|token| token.peer.is_person() && !token.peer.is_admin());
        let mut found: Vec<String> = Vec::new();
        for token in persons {
            let exact = token.peer.addresses.iter().filter_map(Pattern::address);
            for address in exact.filter(|address| is_human(address)) {
                if !found.iter().any(|known| is_same_party(known, address)) {
                    found.push(address.to_owned());
                }
            }
        }
        match found.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(Explanation::new(
                "no person has a token at this relay",
                "ask your user in the conversation; the operator makes a token with `crosstalk token create NAME --role person --for \
                 human://NAME`",
            )),
            _ => Err(Explanation::new(
                "several persons have a token at this relay",
                "use send with the address of one of them, and check for the answer",
            )),
        }
    }

    async fn ask(
        &self,
        question: &str,
        context: Option<&str>,
    ) -> Result<PostedMessage, Explanation> {
        let person = self.person().await?;
        self.post(self.written(&person, question, (Some("ESCALATE"), context), None))
            .await
    }

    /// The answer of the person that was asked. The relay accepts none in a person's name without the person's credential.
    async fn find_answer(&self, id: &str) -> Result<Option<AgentMessage>, Explanation> {
        let question = self.message(id).await?;
        let records = self.find(&question.thread).await?;
        let is_answer = |record: &&Record| {
            record.parent.as_deref() == Some(id)
                && is_same_party(&record.sender, &question.receiver)
        };
        let Some(answer) = records.iter().find(is_answer) else {
            return Ok(None);
        };
        let shown = self.shown(answer).await?;
        self.mark(std::slice::from_ref(answer)).await?;
        Ok(Some(shown))
    }

    async fn list_threads(&self, limit: usize) -> Result<Vec<AgentThread>, Explanation> {
        self.check().await?;
        self.server.wait_for_index().await;
        let filter = ThreadFilter {
            with: Some(self.address.clone()),
            ..ThreadFilter::default()
        };
        let threads = self.relay().store().threads(filter, Page::first(limit));
        let threads = threads.await.map_err(trouble)?.items.into_iter();
        let shown = threads.map(|thread| AgentThread {
            id: thread.id,
            messages: thread.messages,
            last_at: thread.last_at,
        });
        Ok(shown.collect())
    }
}

impl AgentPort for RelayPort {
    fn address(&self) -> &str {
        &self.address
    }

    fn send(&self, draft: MessageDraft) -> PortFuture<'_, PostedMessage> {
        Box::pin(self.send_message(draft))
    }

    fn news(&self, limit: usize) -> PortFuture<'_, News> {
        Box::pin(self.look(limit))
    }

    fn read(&self, id: String, marks: bool) -> PortFuture<'_, Vec<AgentMessage>> {
        Box::pin(async move {
            let found = self.find(&id).await?;
            if marks {
                self.mark(&found).await?;
            }
            self.shown_all(&found).await
        })
    }

    fn reply(&self, id: String, text: String) -> PortFuture<'_, PostedMessage> {
        Box::pin(async move { self.answer(&id, &text).await })
    }

    fn open_poll(&self, draft: PollDraft) -> PortFuture<'_, PostedMessage> {
        Box::pin(self.begin_poll(draft))
    }

    fn poll(&self, id: String) -> PortFuture<'_, PollProgress> {
        Box::pin(async move { self.poll_progress(&id).await })
    }

    fn ask_person(
        &self,
        question: String,
        context: Option<String>,
    ) -> PortFuture<'_, PostedMessage> {
        Box::pin(async move { self.ask(&question, context.as_deref()).await })
    }

    fn answer_to(&self, id: String) -> PortFuture<'_, Option<AgentMessage>> {
        Box::pin(async move { self.find_answer(&id).await })
    }

    /// The question stays in the inbox: the form of an agent's client is no credential of the person.
    fn settle(&self, _: String) -> PortFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn threads(&self, limit: usize) -> PortFuture<'_, Vec<AgentThread>> {
        Box::pin(self.list_threads(limit))
    }

    fn watch(&self) -> Box<dyn ChangeWatch> {
        Box::new(self.relay().watch_inbox(&self.address))
    }
}

impl ChangeWatch for InboxWatch {
    fn changed(&mut self, within: Duration) -> BoxFuture<'_, ()> {
        Box::pin(InboxWatch::changed(self, within))
    }
}
