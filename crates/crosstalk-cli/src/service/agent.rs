//! Agents on this machine: the address that a process holds, and what an agent sends and reads by the services of the command
//! line.
//!
//! ```text
//! identity  <client>://code/<project>, held by a lock      mailbox  what may be read, and what is new
//! port      the tools of the MCP server, over the store    fetch    messages from a relay into the store
//! ```

mod fetch;
mod identity;
mod mailbox;
mod port;

pub(crate) use mailbox::unread_count;
pub(crate) use port::{LocalSource, Project};

use crate::failure::Failure;
use crate::service::workspace::Workspace;
use crosstalk_protocol::store::is_same_party;
use crosstalk_store::{AgentFacts, AgentFolder};
use std::path::PathBuf;

/// The agents that were seen on this machine.
pub(crate) fn known(workspace: &Workspace) -> Result<Vec<AgentFacts>, Failure> {
    Ok(AgentFolder::new(workspace.home()).list()?)
}

/// The project that the current folder is in.
pub(crate) fn current_project() -> Result<PathBuf, Failure> {
    let folder = std::env::current_dir().map_err(|e| Failure::io("the current folder", e))?;
    Ok(identity::project_folder(&folder))
}

/// Whether an agent on this machine has this address: it reads the store itself.
pub(crate) fn is_known(workspace: &Workspace, address: &str) -> Result<bool, Failure> {
    let found = AgentFolder::new(workspace.home()).find(address)?;
    Ok(found.is_some_and(|facts| is_same_party(&facts.address, address)))
}
