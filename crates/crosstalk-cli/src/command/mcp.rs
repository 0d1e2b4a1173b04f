//! `crosstalk mcp`: the MCP server for the client that starts it, and `crosstalk agents`: who has used it.

use crate::console::{BOLD, Console, DIM, styled};
use crate::failure::Failure;
use crate::report::{AgentReport, AgentsReport};
use crate::schema::AGENTS;
use crate::service::agent::{self, LocalSource, Project, unread_count};
use crate::service::workspace::Workspace;
use crate::view;
use clap::Args;
use crosstalk_mcp::{AgentServer, known_client, serve_stdio};
use crosstalk_store::{AgentFacts, AgentFolder, SqliteStore};
use std::path::Path;
use std::sync::Arc;

/// Serve messages to an AI client as MCP tools, on stdin and stdout
///
/// An MCP client such as Claude Code, Codex or Gemini CLI starts it; `crosstalk setup` tells the client how. The client gets the
/// tools send, check, read, reply, poll and ask_human. Without --as, its address is made of the client and the project, as
/// claude://code/shop; a second process of the client in the same project gets claude://code/shop-2. It works with the messages
/// that are kept here, and with the relays of the settings.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk mcp\n  crosstalk mcp --as agent://code/reviewer\n  claude mcp add crosstalk -- crosstalk mcp   # `crosstalk setup claude` does the same\n\nExit codes: 0 the client ended the session, 1 it does not speak MCP."
)]
pub(crate) struct Mcp {
    /// The address of the agent
    #[arg(long = "as", value_name = "ADDRESS")]
    address: Option<String>,
}

impl Mcp {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        if console.can_ask() {
            console.talk(
                "An MCP client starts this command; `crosstalk setup` tells yours how. Ctrl-C ends it.\n",
            )?;
        }
        let folder = std::env::current_dir().map_err(|e| Failure::io("the current folder", e))?;
        let source = LocalSource::new(Project {
            profile: console.profile().map(str::to_owned),
            address: self.address,
            folder,
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|e| Failure::io("the server", e))?;
        let served = runtime.block_on(serve_stdio(AgentServer::new(Arc::new(source))));
        // Work that no client waits for any more does not keep the process.
        runtime.shutdown_background();
        served.map_err(|e| Failure::io("the client", e))
    }
}

/// List the agents of this machine: address, project, whether they are connected, and how many messages wait
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk agents\n  crosstalk send claude://code/shop \"Please review the plan.\"\n\nExit codes: 0 listed, 2 --waiting names no client."
)]
pub(crate) struct AgentsCommand {
    /// Print JSON of the form crosstalk.agents/1
    #[arg(long)]
    json: bool,
    /// Say how many messages wait for this client in the current project, if any do
    #[arg(long, value_name = "CLIENT", conflicts_with = "json")]
    waiting: Option<String>,
}

impl AgentsCommand {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let workspace = Workspace::open(console)?;
        let known = agent::known(&workspace)?;
        let store = workspace.messages(console)?;
        if let Some(client) = &self.waiting {
            return Self::tell_waiting(console, store.as_ref(), &known, client);
        }
        let folder = AgentFolder::new(workspace.home());
        let mut agents = Vec::new();
        for facts in known {
            let waiting = match &store {
                Some(store) => unread_count(store, &facts)?,
                None => 0,
            };
            agents.push(AgentReport {
                live: folder.is_live(&facts.address),
                address: facts.address,
                client: facts.client,
                project: facts.project,
                last_seen: facts.last_seen,
                waiting,
            });
        }
        if self.json {
            return console.report(AGENTS, &AgentsReport { agents });
        }
        if agents.is_empty() {
            return console
                .talk("No agent has connected yet. `crosstalk setup` connects the clients of this machine.\n");
        }
        for agent in &agents {
            let address = styled(BOLD, &view::line(&agent.address));
            let rest = format!(
                "{}, last seen {}",
                view::line(&agent.project),
                view::line(&agent.last_seen)
            );
            let waiting = crate::paragraph::count(agent.waiting, "message");
            let live = if agent.live { ", connected" } else { "" };
            console.show(&format!(
                "{address}  {waiting} waiting{live}\n  {}\n",
                styled(DIM, &rest)
            ))?;
        }
        Ok(())
    }

    /// One line for the hook of a client; nothing where nothing waits.
    fn tell_waiting(
        console: &mut Console,
        store: Option<&SqliteStore>,
        known: &[AgentFacts],
        client: &str,
    ) -> Result<(), Failure> {
        let has_name = |name: &str| name.eq_ignore_ascii_case(client);
        let is_client = known_client(client).is_some_and(has_name);
        if !is_client && !known.iter().any(|facts| has_name(&facts.client)) {
            return Err(Failure::usage(format!("no client is called {client}"))
                .help("`crosstalk agents` lists the agents with their clients, such as claude"));
        }
        let Some(store) = store else {
            return Ok(());
        };
        let project = agent::current_project()?;
        let here = |facts: &&AgentFacts| {
            facts.client.eq_ignore_ascii_case(client) && Path::new(&facts.project) == project
        };
        for facts in known.iter().filter(here) {
            let waiting = unread_count(store, facts)?;
            if waiting > 0 {
                console.show(&format!(
                    "Crosstalk: {} for {}. The tool check shows what they say.\n",
                    crate::paragraph::count(waiting, "new message"),
                    view::line(&facts.address)
                ))?;
            }
        }
        Ok(())
    }
}
