//! Calls a tool of an MCP server with a REQUEST; its result is the answer. The server is a program that the relay starts for each
//! call, or one behind a URL.
//!
//! The operator names the server and the tools. A message gives the arguments alone, and what comes back is text of a stranger:
//! bounded, without controls, and never read as an envelope.

mod http;

use super::exec::{MAX_ANSWER_BYTES, ProcessGroup, REST_TIME, Stop, TIMEOUT_SECONDS, Tail, plain};
use super::{AttemptOutcome, Blame, DeliveryHandler, DeliveryJob, HandlerReply, exec};
use crate::config::RouteEntry;
use crate::port::Later;
use crosstalk_api::outbound::{Outbound, Url};
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::unicode::visible;
use crosstalk_envelope::{Document, Intent, Reading};
use crosstalk_mcp::rmcp::model::JsonObject;
use crosstalk_mcp::rmcp::transport::async_rw::AsyncRwTransport;
use crosstalk_mcp::{ToolCall, ToolFault, call_tool};
use crosstalk_protocol::MESSAGE_VARIABLE_PREFIX;
use crosstalk_protocol::message_variables;
use http::HttpServer;
use serde_json::Value;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::oneshot;

/// Where a tool finds what a program has in its environment.
const META_PREFIX: &str = "crosstalk/";
/// The answer of a tool that returns nothing.
const NOTHING: &str = "(The tool returned nothing.)";

/// Calls tools.
pub(super) struct ToolHandler {
    work: PathBuf,
    outbound: Outbound,
}

impl ToolHandler {
    pub(super) fn new(work: PathBuf, outbound: Outbound) -> Self {
        Self { work, outbound }
    }

    async fn call(&self, job: &DeliveryJob) -> AttemptOutcome {
        match job.record.meaning {
            Some(Intent::Request) => {}
            Some(
                Intent::Respond
                | Intent::Ack
                | Intent::Nack
                | Intent::Error
                | Intent::Broadcast
                | Intent::Revoke
                | Intent::Close,
            ) => return AttemptOutcome::delivered(),
            Some(Intent::Escalate | Intent::Handoff | Intent::Poll) | None => {
                let reason = "a tool answers a REQUEST, and no message of another intent";
                return AttemptOutcome::refused(ErrorCode::Unsupported, reason);
            }
        }
        let Some(route) = job.route.as_deref() else {
            return AttemptOutcome::later(ErrorCode::Route, "the route that led there is gone");
        };
        let call = match tool_call(route, job) {
            Ok(call) => call,
            Err(outcome) => return outcome,
        };
        let within = route.timeout_seconds.unwrap_or(TIMEOUT_SECONDS).max(1);
        let within = Duration::from_secs(within);
        let limit = ByteLimit::new(route.answer_bytes.unwrap_or(MAX_ANSWER_BYTES));
        let answer = async {
            match &route.url {
                Some(url) => self.post(route, url, call, &limit, within).await,
                None => self.run(route, job, call, &limit).await,
            }
        };
        let late = || {
            let reason = format!("the tool did not answer within {} s", within.as_secs());
            AttemptOutcome::later(ErrorCode::Timeout, reason).blaming(Blame::Either)
        };
        let ended = tokio::time::timeout(within, answer).await;
        ended.unwrap_or_else(|_| late())
    }

    /// A server that is started for this call, and ended after it.
    async fn run(
        &self,
        route: &RouteEntry,
        job: &DeliveryJob,
        call: ToolCall,
        limit: &Arc<ByteLimit>,
    ) -> AttemptOutcome {
        let mut child = match exec::spawn(route, &self.work, job).await {
            Ok(child) => child,
            Err(outcome) => return outcome,
        };
        // Whatever happens to this attempt, nothing of the server is left behind.
        let group = ProcessGroup::of(&child);
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return AttemptOutcome::later(ErrorCode::Route, "the server has no pipes");
        };
        let stderr = child.stderr.take();
        let stdout = BoundedReader {
            inner: stdout,
            limit: Arc::clone(limit),
        };
        // The limit ends what would grow here.
        let transport =
            AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(usize::MAX);
        let mut tail = Tail::default();
        let (ended, stop) = oneshot::channel();
        let converse = async {
            let result = call_tool(transport, call).await;
            // Its input has ended. A server that goes on, or can't write any more, is killed.
            if !limit.is_exceeded() {
                let _ = tokio::time::timeout(REST_TIME, child.wait()).await;
            }
            group.kill();
            let _ = ended.send(());
            result
        };
        let complain = tail.read(stderr, Stop::after(stop, REST_TIME));
        let (result, ()) = tokio::join!(converse, complain);
        outcome_of(result, limit, &tail.complaint())
    }

    /// A server over streamable HTTP.
    async fn post(
        &self,
        route: &RouteEntry,
        url: &str,
        call: ToolCall,
        limit: &Arc<ByteLimit>,
        within: Duration,
    ) -> AttemptOutcome {
        let url = match Url::parse(url) {
            Ok(url) => url,
            Err(error) => {
                let reason = format!("the URL of the route: {error}");
                return AttemptOutcome::failed(ErrorCode::Route, reason);
            }
        };
        let token = match route.token_file.as_deref() {
            Some(path) => match super::http::token(path).await {
                Ok(token) => Some(token),
                Err(outcome) => return outcome,
            },
            None => None,
        };
        let server = HttpServer::new(&self.outbound, route.allow_private, within, limit);
        let result = call_tool(server.transport(&url, token), call).await;
        // What the tool said counts, whatever failed when the session was closed.
        let is_broken = matches!(&result, Err(ToolFault::Server(_) | ToolFault::Lost(_)));
        match server.fault() {
            Some(outcome) if is_broken && !limit.is_exceeded() => outcome,
            _ => outcome_of(result, limit, ""),
        }
    }
}

impl DeliveryHandler for ToolHandler {
    fn handle<'l>(&'l self, job: &'l DeliveryJob) -> Later<'l, AttemptOutcome> {
        Box::pin(self.call(job))
    }
}

/// The call that a message asks for.
fn tool_call(route: &RouteEntry, job: &DeliveryJob) -> Result<ToolCall, AttemptOutcome> {
    let Some(tool) = route.tool(&job.to) else {
        let reason = "no tool of this name may be called here";
        return Err(AttemptOutcome::refused(ErrorCode::Route, reason));
    };
    let document = Document::parse(&job.record.text, Reading::Strict);
    let body = document.body_text();
    let arguments = arguments_of(route.argument.as_deref(), &visible(&body));
    let arguments =
        arguments.map_err(|reason| AttemptOutcome::refused(ErrorCode::Format, reason))?;
    let variables = message_variables(&job.record, 0, job.attempt()).into_iter();
    let meta = variables.map(|(name, value)| {
        let name = name.trim_start_matches(MESSAGE_VARIABLE_PREFIX);
        (format!("{META_PREFIX}{}", name.to_ascii_lowercase()), value)
    });
    Ok(ToolCall {
        tool: tool.to_owned(),
        arguments,
        meta: meta.collect(),
    })
}

/// The arguments in a body: all of them as JSON, or the one that the operator names.
fn arguments_of(argument: Option<&str>, body: &str) -> Result<JsonObject, String> {
    let mut arguments = JsonObject::new();
    if let Some(name) = argument {
        arguments.insert(name.to_owned(), Value::String(body.to_owned()));
        return Ok(arguments);
    }
    if body.trim().is_empty() {
        return Ok(arguments);
    }
    serde_json::from_str(body).map_err(|error| {
        format!("the body is not the arguments of the tool, a JSON object: {error}")
    })
}

/// The outcome of a call. What the other side did wrong with the arguments of its sender is said to them, in its own words.
fn outcome_of(result: Result<String, ToolFault>, limit: &ByteLimit, said: &str) -> AttemptOutcome {
    let fault = match result {
        Ok(text) => {
            let text = plain(&text);
            let text = match text.trim().is_empty() {
                true => NOTHING,
                false => text.trim_matches('\n'),
            };
            return AttemptOutcome::Delivered {
                answer: Some(HandlerReply::Text(text.to_owned())),
            };
        }
        Err(fault) => fault,
    };
    if limit.is_exceeded() {
        let reason = format!("the MCP server sent more than {} bytes{said}", limit.most);
        return AttemptOutcome::failed(ErrorCode::TooLarge, reason);
    }
    let code = match fault {
        ToolFault::Arguments(_) => ErrorCode::Format,
        ToolFault::Unsupported(_) => ErrorCode::Unsupported,
        ToolFault::Reported(_) => ErrorCode::Route,
        ToolFault::Server(_) | ToolFault::Unknown(_) => {
            return AttemptOutcome::later(ErrorCode::Route, format!("{fault}{said}"));
        }
        ToolFault::Failed(_) | ToolFault::Lost(_) => {
            let reason = format!("{fault}{said}");
            return AttemptOutcome::later(ErrorCode::Route, reason).blaming(Blame::Either);
        }
    };
    AttemptOutcome::refused(code, fault.to_string())
}

/// How many bytes a server may send, whatever it sends.
struct ByteLimit {
    most: u64,
    read: AtomicU64,
    is_exceeded: AtomicBool,
}

impl ByteLimit {
    fn new(most: u64) -> Arc<Self> {
        Arc::new(Self {
            most,
            read: AtomicU64::new(0),
            is_exceeded: AtomicBool::new(false),
        })
    }

    /// Counts what came. False once it is too much.
    fn allows(&self, bytes: usize) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.read.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.most {
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        !self.is_exceeded()
    }

    fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }
}

/// What a server prints, until it is too much: then it ends.
struct BoundedReader<R> {
    inner: R,
    limit: Arc<ByteLimit>,
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        let read = buffer.filled().len().saturating_sub(before);
        if read > 0 && !self.limit.allows(read) {
            buffer.set_filled(before);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_a_json_object_or_one_declared_argument() {
        let read =
            |argument, body| arguments_of(argument, body).map(|a| Value::Object(a).to_string());
        assert_eq!(
            read(None, "{\"city\": \"Kiel\"}").unwrap(),
            "{\"city\":\"Kiel\"}"
        );
        assert_eq!(read(None, " \n").unwrap(), "{}");
        assert_eq!(
            read(Some("q"), "{\"a\": 1}").unwrap(),
            "{\"q\":\"{\\\"a\\\": 1}\"}"
        );
        for body in ["Kiel", "[1]", "\"Kiel\"", "{\"a\": 1} {}", "{\"a\": "] {
            assert!(
                read(None, body).unwrap_err().contains("JSON object"),
                "{body}"
            );
        }
    }

    #[test]
    fn faults_of_a_server_are_tried_again_and_those_of_a_message_are_not() {
        let limit = ByteLimit::new(10);
        let code = |fault: ToolFault| match outcome_of(Err(fault), &limit, "; it says: x") {
            AttemptOutcome::Later { code, public, .. } => {
                assert_eq!(public, None, "the inside of a server is not for the sender");
                ("later", code)
            }
            AttemptOutcome::Failed { code, .. } => ("failed", code),
            AttemptOutcome::Delivered { .. } => panic!("delivered"),
        };
        let word = || "w".to_owned();
        assert_eq!(code(ToolFault::Server(word())), ("later", ErrorCode::Route));
        assert_eq!(
            code(ToolFault::Unknown(word())),
            ("later", ErrorCode::Route)
        );
        assert_eq!(code(ToolFault::Failed(word())), ("later", ErrorCode::Route));
        assert_eq!(code(ToolFault::Lost(word())), ("later", ErrorCode::Route));
        assert_eq!(
            code(ToolFault::Arguments(word())),
            ("failed", ErrorCode::Format)
        );
        assert_eq!(
            code(ToolFault::Unsupported(word())),
            ("failed", ErrorCode::Unsupported)
        );
        assert_eq!(
            code(ToolFault::Reported(word())),
            ("failed", ErrorCode::Route)
        );
        assert!(limit.allows(10) && !limit.allows(1));
        assert_eq!(
            code(ToolFault::Lost(word())),
            ("failed", ErrorCode::TooLarge)
        );
    }
}
