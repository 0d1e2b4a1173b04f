//! The MCP server: six tools, resources and prompts by which an agent exchanges messages. With the feature `client`, one call of
//! a tool of another server.
//!
//! ```text
//! MCP client ── rmcp ── AgentServer ── PortSource ──> AgentPort     send, check, read, reply, poll, ask_human
//!                            │
//!                            └── shown, fenced      words of others reach the model as data
//! ```
//!
//! The crate knows what an agent may ask ([`AgentPort`]), and no store and no relay: the command line and the relay give the
//! port. Everything that another party wrote leaves this crate through [`fenced`], labelled with its sender and with the
//! verification of its signature.

#[cfg(feature = "client")]
mod client;
mod fence;
mod port;
mod prompt;
mod receiver;
mod resource;
mod server;
mod tool;

#[cfg(feature = "client")]
pub use client::{ToolCall, ToolFault, call_tool};
pub use fence::{fenced, one_line, shown};
pub use port::{
    AgentMessage, AgentPort, AgentThread, ChangeWatch, McpCaller, MessageDraft, News, PollDraft,
    PollProgress, PortFuture, PortSource, PostedMessage, verification_label,
};
pub use receiver::{AgentDirectory, KnownAgent, Receiver, known_client};
pub use rmcp;
pub use server::{AgentServer, serve_stdio};
pub use tool::tools;
