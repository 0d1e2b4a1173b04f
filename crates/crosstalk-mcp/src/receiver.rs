//! The agent that a name means: an address is itself, and the name of a client is the agent that a person would mean by it.

use crate::fence::one_line;
use crosstalk_envelope::registry::SchemeKind;
use crosstalk_envelope::{Address, Explanation};
use crosstalk_protocol::store::is_same_party;

/// What clients call themselves, and the word for each in an address.
const CLIENTS: &[(&str, &str)] = &[
    ("claude", "claude"),
    ("codex", "codex"),
    ("gemini", "gemini"),
    ("cursor", "cursor"),
    ("visual studio code", "vscode"),
    ("vscode", "vscode"),
];
/// The most agents that a sentence lists.
const LISTED: usize = 8;

/// The word of a known client in an address, by what the client calls itself.
///
/// ```
/// assert_eq!(crosstalk_mcp::known_client("Codex-MCP-client"), Some("codex"));
/// assert_eq!(crosstalk_mcp::known_client("zed"), None);
/// ```
pub fn known_client(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let mut known = CLIENTS.iter();
    let found = known.find(|(part, _)| name.contains(part));
    found.map(|(_, word)| *word)
}

/// An agent that has connected before, or that is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownAgent {
    /// Its address.
    pub address: String,
    /// The word of its client, such as `codex`.
    pub client: String,
    /// Its project, in any spelling that is the same for two agents of one project.
    pub project: String,
    /// Whether it is connected now.
    pub is_live: bool,
}

/// The receiver of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its address.
    pub address: String,
    /// What the sender should know, such as that nobody reads there yet; empty if there is nothing.
    pub note: String,
}

/// The agents around one agent.
#[derive(Debug)]
pub struct AgentDirectory<'d> {
    /// The agent that looks for another one.
    pub own: &'d KnownAgent,
    /// The agents that are known, with or without the own one.
    pub agents: Vec<KnownAgent>,
    /// Whether a relay delivers to addresses of agents that are not known here.
    pub has_relay: bool,
}

impl AgentDirectory<'_> {
    /// The receiver that a name or an address means. `first_of` is the address that the first agent of a client gets in the
    /// project of the own agent.
    ///
    /// # Errors
    /// If the name means several agents, or can't mean any, or is the own address.
    pub fn resolve(
        &self,
        typed: &str,
        first_of: impl FnOnce(&str) -> String,
    ) -> Result<Receiver, Explanation> {
        let typed = typed.trim();
        let split = Address::split(typed);
        match split.kind() {
            Some(SchemeKind::Assistant | SchemeKind::Custom) => self.of_address(typed),
            Some(_) if self.has_relay => Ok(Receiver {
                address: typed.to_owned(),
                note: String::new(),
            }),
            Some(_) => Err(Explanation::new(
                format!(
                    "no relay delivers to {}, and no agent has it",
                    one_line(typed)
                ),
                format!(
                    "use ask_human for your person, or send to an agent. {}",
                    self.listed()
                ),
            )),
            None => self.of_client(typed, first_of),
        }
    }

    fn of_address(&self, typed: &str) -> Result<Receiver, Explanation> {
        if Address::parse(typed).is_err() || typed.ends_with([':', '/']) {
            return Err(Explanation::new(
                format!("{} is no address", one_line(typed)),
                format!("write it as codex://code/web. {}", self.listed()),
            ));
        }
        if is_same_party(typed, &self.own.address) {
            return Err(Explanation::new(
                format!("{} is your own address", one_line(typed)),
                format!(
                    "send it to another agent, or use ask_human to ask your person. {}",
                    self.listed()
                ),
            ));
        }
        let known = self.agents.iter();
        let mut known = known.filter(|agent| is_same_party(&agent.address, typed));
        Ok(match known.next() {
            Some(agent) => self.to(agent),
            None => self.to_unknown(typed.to_owned()),
        })
    }

    /// The one agent of a client: of the live ones, and else of the others, the one of this project first.
    fn of_client(
        &self,
        typed: &str,
        first_of: impl FnOnce(&str) -> String,
    ) -> Result<Receiver, Explanation> {
        let word = typed.to_lowercase();
        let others = || {
            let named = |agent: &&KnownAgent| agent.client.eq_ignore_ascii_case(&word);
            self.others().filter(named)
        };
        let is_here = |agent: &&KnownAgent| agent.project == self.own.project;
        let live = || others().filter(|agent| agent.is_live);
        for choice in [live().filter(is_here).collect::<Vec<_>>(), live().collect()] {
            match choice.as_slice() {
                [] => {}
                [only] => return Ok(self.to(only)),
                several => {
                    let all: Vec<String> = several.iter().map(|a| one_line(&a.address)).collect();
                    return Err(Explanation::new(
                        format!("{} means several connected agents", one_line(typed)),
                        format!("send it to one of them: {}", all.join(", ")),
                    ));
                }
            }
        }
        // Of those that ended here, the first name is taken first again.
        let ended = others().filter(is_here).min_by_key(|agent| {
            let address = &agent.address;
            (address.len(), address.clone())
        });
        if let Some(ended) = ended {
            return Ok(self.to(ended));
        }
        let is_client = CLIENTS.iter().any(|(_, known)| *known == word)
            || self
                .agents
                .iter()
                .any(|a| a.client.eq_ignore_ascii_case(&word));
        if !is_client {
            return Err(Explanation::new(
                format!("{} is no agent and no address", one_line(typed)),
                format!(
                    "name an address such as codex://code/web, or a client such as codex; ask_human asks your person. {}",
                    self.listed()
                ),
            ));
        }
        let first = first_of(&word);
        if is_same_party(&first, &self.own.address) {
            return Err(Explanation::new(
                format!("no other {word} has connected"),
                format!("send it to another agent. {}", self.listed()),
            ));
        }
        Ok(self.to_unknown(first))
    }

    fn to(&self, agent: &KnownAgent) -> Receiver {
        let note = match agent.is_live {
            true => String::new(),
            false => format!(
                "{} is not connected now: the message waits for it. {}",
                one_line(&agent.address),
                self.listed()
            ),
        };
        Receiver {
            address: agent.address.clone(),
            note,
        }
    }

    fn to_unknown(&self, address: String) -> Receiver {
        let shown = one_line(&address);
        let note = match self.has_relay {
            true => format!("No agent of this machine is {shown}: the message goes to the relay. "),
            false => format!("No agent has connected as {shown} yet: the message waits for it. "),
        };
        Receiver {
            note: note + &self.listed(),
            address,
        }
    }

    fn others(&self) -> impl Iterator<Item = &KnownAgent> {
        let is_other = |agent: &&KnownAgent| !is_same_party(&agent.address, &self.own.address);
        self.agents.iter().filter(is_other)
    }

    /// A sentence with the other agents, the connected ones first.
    pub fn listed(&self) -> String {
        let live = self.others().filter(|agent| agent.is_live);
        let ended = self.others().filter(|agent| !agent.is_live);
        let live = live.map(|agent| format!("{} (connected)", one_line(&agent.address)));
        let all = live.chain(ended.map(|agent| one_line(&agent.address)));
        let all: Vec<String> = all.take(LISTED).collect();
        match all.is_empty() {
            true => "No other agent is known.".to_owned(),
            false => format!("Known agents: {}.", all.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(address: &str, is_live: bool) -> KnownAgent {
        let (client, project) = address.split_once("://code/").unwrap();
        KnownAgent {
            address: address.into(),
            client: client.into(),
            project: project.trim_end_matches("-2").into(),
            is_live,
        }
    }

    fn resolve(known: &[(&str, bool)], typed: &str) -> Result<Receiver, String> {
        let own = agent("claude://code/api", true);
        let directory = AgentDirectory {
            own: &own,
            agents: known.iter().map(|(a, live)| agent(a, *live)).collect(),
            has_relay: false,
        };
        let found = directory.resolve(typed, |client| format!("{client}://code/api"));
        found.map_err(|explanation| explanation.to_string())
    }

    #[test]
    fn a_short_name_is_the_agent_that_a_person_means() {
        let all = [
            ("claude://code/api", true),
            ("codex://code/old", false),
            ("codex://code/web", true),
        ];
        for (known, meant) in [
            // The only live one, whatever ended elsewhere.
            (&all[..], "codex://code/web"),
            // The live one of this project before other live ones.
            (
                &[("codex://code/api", true), ("codex://code/web", true)],
                "codex://code/api",
            ),
            // A live one elsewhere before one that ended here.
            (
                &[("codex://code/api", false), ("codex://code/web", true)],
                "codex://code/web",
            ),
            // One that ended here before one that ended elsewhere.
            (
                &[("codex://code/web", false), ("codex://code/api", false)],
                "codex://code/api",
            ),
            (
                &[("codex://code/api-2", false), ("codex://code/api", false)],
                "codex://code/api",
            ),
            // Nobody: the first one that will start in this project.
            (&[("codex://code/web", false)], "codex://code/api"),
            (&[], "codex://code/api"),
        ] {
            for typed in ["codex", "Codex", " CODEX "] {
                assert_eq!(resolve(known, typed).unwrap().address, meant, "{known:?}");
            }
        }
        assert_eq!(resolve(&all, "codex").unwrap().note, "");
    }

    #[test]
    fn several_live_agents_are_named_and_none_is_chosen() {
        let known = [("codex://code/web", true), ("codex://code/shop", true)];
        let said = resolve(&known, "codex").unwrap_err();
        assert!(said.contains("several"), "{said}");
        assert!(
            said.contains("codex://code/web, codex://code/shop"),
            "{said}"
        );
    }

    #[test]
    fn a_message_that_waits_for_an_agent_says_so_and_lists_the_others() {
        let known = [("codex://code/old", false), ("codex://code/web", true)];
        let note = resolve(&known, "codex://code/wb").unwrap().note;
        assert!(
            note.contains("No agent has connected as codex://code/wb yet"),
            "{note}"
        );
        assert!(
            note.contains("codex://code/web (connected), codex://code/old."),
            "{note}"
        );
        let note = resolve(&known, "codex://code/old").unwrap().note;
        assert!(note.contains("is not connected now"), "{note}");
        let note = resolve(&[], "gemini").unwrap().note;
        assert!(
            note.contains("as gemini://code/api yet") && note.contains("No other"),
            "{note}"
        );
        let named = resolve(&known, "Codex://code/web").unwrap();
        assert_eq!(
            (named.address.as_str(), named.note.as_str()),
            ("codex://code/web", "")
        );
    }

    #[test]
    fn a_name_of_nobody_fails_with_what_to_do() {
        for name in [
            "codx",
            "claude-2",
            "human",
            "kalle",
            "human://kalle",
            "codex:",
            "mcp://a@b",
        ] {
            let said = resolve(&[("codex://code/web", true)], name).unwrap_err();
            assert!(
                said.contains("codex://code/web (connected)"),
                "{name}: {said}"
            );
        }
        for own in ["claude", "claude://code/api"] {
            assert!(
                resolve(&[("claude://code/api", true)], own).is_err(),
                "{own}"
            );
        }
    }
}
