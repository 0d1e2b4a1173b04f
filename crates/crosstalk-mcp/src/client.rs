//! The client: one call of one tool of another server.
//!
//! A call opens a connection, looks for the tool, calls it once, and closes the connection. It has no limit of its own in size
//! or time: the transport has the one, the caller the other. A server that asks for a model, a file or a person gets nothing.

use crate::fence::one_line;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    ContentBlock, ErrorCode, Implementation, JsonObject, PaginatedRequestParams, ProtocolVersion,
    RequestMetaObject, ResourceContents,
};
use rmcp::service::{
    ClientLifecycleMode, Peer, RoleClient, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::IntoTransport;
use serde_json::Value;
use std::time::Duration;

/// The most pages of a list of tools that are read.
const MAX_PAGES: usize = 100;
/// The words for a part of a result that is none of the known kinds.
const NO_TEXT: &str = "[something that is no text, left out]";
/// How long a connection may take to close after the result is there.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// A tool, and what it gets.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: JsonObject,
    /// The further data of the request, in `_meta`.
    pub meta: Vec<(String, String)>,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolFault {
    /// No connection came about, so that the tool was not called.
    #[error("the MCP server does not work: {0}")]
    Server(String),
    /// The server has no tool of this name.
    #[error("the MCP server has no tool `{0}`")]
    Unknown(String),
    /// The server does not accept the arguments.
    #[error("the MCP server rejects the arguments: {0}")]
    Arguments(String),
    /// The tool can't be called as a relay calls it.
    #[error("{0}")]
    Unsupported(String),
    /// The tool ran, and reports an error.
    #[error("the tool reports an error: {0}")]
    Reported(String),
    /// The server reports a failure of its own.
    #[error("the MCP server failed: {0}")]
    Failed(String),
    /// The connection broke while the tool was running: nobody knows what it did.
    #[error("the MCP server broke off: {0}")]
    Lost(String),
}

/// Calls a tool. Its result is text: everything in it that is none is named and left out.
///
/// # Errors
/// Why there is no result.
pub async fn call_tool<T, E, A>(transport: T, call: ToolCall) -> Result<String, ToolFault>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let service = serve_client_with_lifecycle(RelayClient, transport, lifecycle).await;
    let mut service = service.map_err(|error| ToolFault::Server(one_line(&error.to_string())))?;
    let result = call_once(service.peer(), call).await;
    // A server that does not close is left alone: its caller ends it.
    let _ = service.close_with_timeout(CLOSE_TIME).await;
    result
}

async fn call_once(peer: &Peer<RoleClient>, call: ToolCall) -> Result<String, ToolFault> {
    if !has_tool(peer, &call.tool).await? {
        return Err(ToolFault::Unknown(one_line(&call.tool)));
    }
    let mut params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
    let mut meta = RequestMetaObject::new();
    for (name, value) in call.meta {
        meta.insert(name, Value::String(value));
    }
    params.meta = Some(meta);
    match peer.call_tool_once(params).await {
        Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
            Err(ToolFault::Reported(one_line(&text_of(&result))))
        }
        Ok(CallToolResponse::Complete(result)) => Ok(text_of(&result)),
        Ok(CallToolResponse::InputRequired(_)) => Err(ToolFault::Unsupported(
            "the tool asks for more input, and no person is there to give it".into(),
        )),
        Ok(_) => Err(ToolFault::Unsupported(
            "the tool answers with a task instead of a result".into(),
        )),
        Err(error) => Err(fault_of(error, ToolFault::Lost)),
    }
}

/// Whether a server has a tool. The list says it before the tool is called, and which headers a call has over HTTP.
async fn has_tool(peer: &Peer<RoleClient>, name: &str) -> Result<bool, ToolFault> {
    let mut page = None;
    for _ in 0..MAX_PAGES {
        let list = peer.list_tools(page.take()).await;
        let list = list.map_err(|error| fault_of(error, ToolFault::Server))?;
        if list.tools.iter().any(|tool| tool.name == name) {
            return Ok(true);
        }
        let Some(cursor) = list.next_cursor else {
            return Ok(false);
        };
        page = Some(PaginatedRequestParams::default().with_cursor(Some(cursor)));
    }
    Ok(false)
}

/// The fault of a request that failed; `lost` if no response came.
fn fault_of(error: ServiceError, lost: impl Fn(String) -> ToolFault) -> ToolFault {
    let said = match &error {
        ServiceError::McpError(data) => one_line(&data.message),
        other => one_line(&other.to_string()),
    };
    match error {
        ServiceError::McpError(data) => match data.code {
            ErrorCode::INVALID_PARAMS => ToolFault::Arguments(said),
            ErrorCode::METHOD_NOT_FOUND | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => {
                ToolFault::Unsupported(format!("the MCP server does not support the call: {said}"))
            }
            _ => ToolFault::Failed(said),
        },
        _ => lost(said),
    }
}

/// The text of a result; its JSON where it has no text.
fn text_of(result: &CallToolResult) -> String {
    let parts: Vec<String> = result.content.iter().map(part_of).collect();
    let text = parts.join("\n\n");
    match &result.structured_content {
        Some(value) if text.trim().is_empty() => {
            serde_json::to_string_pretty(value).unwrap_or_default()
        }
        _ => text,
    }
}

fn part_of(block: &ContentBlock) -> String {
    let left_out = |what: &str, kind: &str, base64: &str| {
        format!(
            "[{what} {}, {} bytes in base64, left out]",
            one_line(kind),
            base64.len()
        )
    };
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => left_out("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => left_out("audio", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => format!("[resource {}]", one_line(&link.uri)),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                left_out("resource", uri, blob)
            }
            _ => NO_TEXT.into(),
        },
        _ => NO_TEXT.into(),
    }
}

/// The relay, as a server sees it: it can do nothing but call.
struct RelayClient;

impl ClientHandler for RelayClient {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("crosstalk", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
    }
}
