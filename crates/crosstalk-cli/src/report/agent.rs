//! What the commands about agents print for programs.

use schemars::JsonSchema;
use serde::Serialize;

/// What `crosstalk agents --json` prints, by address.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentsReport {
    pub(crate) agents: Vec<AgentReport>,
}

/// An agent that has connected.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentReport {
    pub(crate) address: String,
    /// The client that it runs in.
    pub(crate) client: String,
    /// The folder of its project.
    pub(crate) project: String,
    pub(crate) last_seen: String,
    /// Whether it is connected now.
    pub(crate) live: bool,
    /// How many messages it has neither read nor answered.
    pub(crate) waiting: usize,
}
