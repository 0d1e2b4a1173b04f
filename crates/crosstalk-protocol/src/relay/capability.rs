//! What agents can do, by their own words, and who can take a conversation over.

/// The receiver of a HANDOFF that leaves the choice to the relay.
pub const ANY: &str = "ANY";

/// An agent, and what it says it can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its address.
    pub address: String,
    /// What it can do, in its own words.
    pub capabilities: Vec<String>,
}

impl Agent {
    /// Which of some capabilities it has not. They are compared in any ASCII case.
    pub fn lacks<'c>(&self, required: &'c [String]) -> Vec<&'c str> {
        let has = |c: &String| self.capabilities.iter().any(|h| h.eq_ignore_ascii_case(c));
        let lacking = required.iter().filter(|c| !has(c));
        lacking.map(String::as_str).collect()
    }
}

/// All agents that a relay knows of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    agents: Vec<Agent>,
}

impl Directory {
    /// A directory of agents; the later of two with one address counts.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        let mut directory = Self::default();
        agents.into_iter().for_each(|a| directory.put(a));
        directory
    }

    /// Adds an agent, in place of what was known of it.
    pub fn put(&mut self, agent: Agent) {
        self.agents
            .retain(|a| !crate::store::is_same_party(&a.address, &agent.address));
        self.agents.push(agent);
    }

    /// All of them.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// The agent with an address.
    pub fn get(&self, address: &str) -> Option<&Agent> {
        let mut agents = self.agents.iter();
        agents.find(|a| crate::store::is_same_party(&a.address, address))
    }

    /// The agents that can do all of this.
    pub fn able<'d>(&'d self, required: &'d [String]) -> impl Iterator<Item = &'d Agent> {
        let able = |a: &&Agent| a.lacks(required).is_empty();
        self.agents.iter().filter(able)
    }
}
