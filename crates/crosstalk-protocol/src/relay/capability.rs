//! Capabilities of agents: those that the operator assigned, as far as the agent still offers them; and the agents that can
//! take a conversation over.
//!
//! An agent's own words never add to what the operator assigned: whoever could declare a capability could have every
//! HANDOFF that needs it.

use crate::store::is_same_party;

/// The receiver of a HANDOFF that leaves the choice to the relay.
pub const ANY: &str = "ANY";

/// An agent, and what it can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its address.
    pub address: String,
    /// Its capabilities. They are compared in any ASCII case.
    pub capabilities: Vec<String>,
}

impl Agent {
    /// Whether it has a capability.
    pub fn has(&self, capability: &str) -> bool {
        let mut own = self.capabilities.iter();
        own.any(|c| c.eq_ignore_ascii_case(capability))
    }

    /// Which of some capabilities it has not.
    pub fn lacks<'c>(&self, required: &'c [String]) -> Vec<&'c str> {
        let lacking = required.iter().filter(|c| !self.has(c));
        lacking.map(String::as_str).collect()
    }
}

/// All agents that a relay knows of.
///
/// ```
/// use crosstalk_protocol::relay::{Agent, Directory};
/// let agent = |address: &str, capabilities: &[&str]| Agent {
///     address: address.into(),
///     capabilities: capabilities.iter().map(|c| (*c).to_owned()).collect(),
/// };
/// let mut directory = Directory::new([agent("claude://a", &["rust", "sql"])]);
/// // An agent narrows what it was assigned, and never widens it.
/// directory.declare(agent("claude://a", &["RUST", "deploy"]));
/// directory.declare(agent("claude://evil", &["sql"]));
/// assert_eq!(directory.get("claude://a").unwrap().capabilities, ["rust"]);
/// assert_eq!(directory.able(&["sql".into()]).count(), 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    assigned: Vec<Agent>,
    declared: Vec<Agent>,
}

impl Directory {
    /// The agents that the operator assigned capabilities to; the later of two with one address counts.
    pub fn new(assigned: impl IntoIterator<Item = Agent>) -> Self {
        let mut directory = Self::default();
        assigned
            .into_iter()
            .for_each(|a| put(&mut directory.assigned, a));
        directory
    }

    /// Notes what an agent offers, in place of what it offered before.
    pub fn declare(&mut self, agent: Agent) {
        put(&mut self.declared, agent);
    }

    /// The agents that the operator assigned capabilities to, each with those that it still offers.
    pub fn agents(&self) -> impl Iterator<Item = Agent> {
        self.assigned.iter().map(|agent| self.narrowed(agent))
    }

    /// The agents that declared something, in their own words.
    pub fn declared(&self) -> &[Agent] {
        &self.declared
    }

    /// The agent with an address, and what it can do: nothing where the operator assigned nothing to it.
    pub fn get(&self, address: &str) -> Option<Agent> {
        let agent = find(&self.assigned, address)?;
        Some(self.narrowed(agent))
    }

    /// The agents that can do all of this, in the order of the configuration.
    pub fn able(&self, required: &[String]) -> impl Iterator<Item = Agent> {
        self.agents().filter(|a| a.lacks(required).is_empty())
    }

    fn narrowed(&self, agent: &Agent) -> Agent {
        let mut agent = agent.clone();
        if let Some(declared) = find(&self.declared, &agent.address) {
            agent.capabilities.retain(|c| declared.has(c));
        }
        agent
    }
}

fn find<'a>(agents: &'a [Agent], address: &str) -> Option<&'a Agent> {
    agents.iter().find(|a| is_same_party(&a.address, address))
}

fn put(agents: &mut Vec<Agent>, agent: Agent) {
    agents.retain(|a| !is_same_party(&a.address, &agent.address));
    agents.push(agent);
}
