//! The address of an agent: the client that it runs in, and its project.

use super::mailbox;
use crate::clock;
use crate::console::Console;
use crate::failure::Failure;
use crate::service::workspace::Workspace;
use crosstalk_envelope::Address;
use crosstalk_envelope::registry::{SCHEMES, SchemeKind};
use crosstalk_mcp::known_client;
use crosstalk_protocol::store::is_same_party;
use crosstalk_store::{AgentFacts, AgentFolder, HeldAgent};
use std::path::{Path, PathBuf};

/// The most agents of one client in one project.
const MOST: usize = 99;

/// The word of a client in an address: a known one, else its own name, else `agent`. It is never the scheme of a person.
pub(super) fn client_word(name: &str) -> String {
    let name = name.to_lowercase();
    if let Some(word) = known_client(&name) {
        return word.to_owned();
    }
    let word = slug(&name).replace(['.', '_'], "-");
    let is_taken = SCHEMES.iter().any(|scheme| scheme.name == word);
    match word.starts_with(|c: char| c.is_ascii_lowercase()) && !is_taken {
        true => word,
        false => "agent".to_owned(),
    }
}

/// A word for a path: ASCII letters, digits, `.`, `_` and `-`.
fn slug(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain = text.chars().map(|c| if is_plain(c) { c } else { '-' });
    let plain: String = plain.take(64).collect();
    plain.trim_matches(['-', '.']).to_owned()
}

/// The folder of the project that a folder is in: the nearest one with a repository, else the folder itself.
pub(super) fn project_folder(folder: &Path) -> PathBuf {
    let mut above = folder.ancestors();
    let found = above.find(|folder| folder.join(".git").exists());
    found.unwrap_or(folder).to_owned()
}

fn project_word(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    match slug(&name.to_lowercase()) {
        word if word.is_empty() => "project".to_owned(),
        word => word,
    }
}

/// The addresses of a client in a project, in the order in which they are taken.
fn names(client: &str, folder: &Path) -> impl Iterator<Item = String> {
    let base = format!("{client}://code/{}", project_word(folder));
    (1..=MOST).map(move |number| match number {
        1 => base.clone(),
        n => format!("{base}-{n}"),
    })
}

/// Whether agents of this project may have an address. One that was last held in another folder is not free: its mail belongs to
/// another project.
fn is_of(owner: &str, folder: &Path) -> bool {
    owner.is_empty() || *owner == *folder.to_string_lossy()
}

/// The address that the first agent of a client gets in a project.
pub(super) fn first_name(agents: &[AgentFacts], client: &str, folder: &Path) -> String {
    let is_taken = |name: &String| {
        let mut known = agents.iter();
        known.any(|facts| is_same_party(&facts.address, name) && !is_of(&facts.project, folder))
    };
    let mut free = names(client, folder).filter(|name| !is_taken(name));
    free.next().unwrap_or_default()
}

/// Takes the first free address of a client in a project. One with messages that wait comes first, so that what was sent to a
/// second session is read after that session has ended.
pub(super) fn claim(
    console: &mut Console,
    workspace: &Workspace,
    client: &str,
    folder: &Path,
) -> Result<HeldAgent, Failure> {
    let agents = AgentFolder::new(workspace.home());
    let mut waiting = Vec::new();
    if let Some(store) = workspace.messages(console)? {
        for name in names(client, folder) {
            let known = agents
                .find(&name)?
                .filter(|facts| is_of(&facts.project, folder));
            if let Some(facts) = known
                && mailbox::unread_count(&store, &facts)? > 0
            {
                waiting.push(name);
            }
        }
    }
    for address in waiting.into_iter().chain(names(client, folder)) {
        let Some(mut held) = agents.hold(&address)? else {
            continue;
        };
        if is_of(&held.facts().project, folder) {
            introduce(&mut held, client, &folder.to_string_lossy())?;
            return Ok(held);
        }
    }
    Err(Failure::failed(format!(
        "{MOST} agents of {client} hold addresses in {}",
        folder.display()
    ))
    .help("name another one with --as ADDRESS"))
}

/// Takes the address that a person chose.
pub(super) fn claim_named(
    workspace: &Workspace,
    address: &str,
    client: &str,
    folder: &Path,
) -> Result<HeldAgent, Failure> {
    require_agent(workspace, address)?;
    let held = AgentFolder::new(workspace.home()).hold(address)?;
    let mut held = held.ok_or_else(|| {
        Failure::failed(format!("another process holds the address {address}"))
            .help("end it, or give this one another address with --as")
    })?;
    introduce(&mut held, client, &folder.to_string_lossy())?;
    Ok(held)
}

/// An agent never speaks or reads as a person.
pub(crate) fn require_agent(workspace: &Workspace, address: &str) -> Result<(), Failure> {
    let split = Address::split(address);
    let is_agent = matches!(
        split.kind(),
        None | Some(SchemeKind::Assistant | SchemeKind::Custom)
    );
    if !is_agent || workspace.mine()?.has(address) {
        return Err(Failure::denied(format!(
            "{address} is no address of an agent, and an agent does not speak for a person"
        ))
        .help("choose an address of its own, such as agent://code/reviewer"));
    }
    if split.scheme().is_none() || address.contains(char::is_whitespace) {
        return Err(Failure::usage(format!("{address} is no address"))
            .help("write it as agent://code/reviewer"));
    }
    Ok(())
}

fn introduce(held: &mut HeldAgent, client: &str, project: &str) -> Result<(), Failure> {
    let now = clock::now().to_string();
    Ok(held.update(|facts: &mut AgentFacts| {
        client.clone_into(&mut facts.client);
        project.clone_into(&mut facts.project);
        facts.last_seen = now;
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_words_that_are_no_persons() {
        let word = |name| client_word(name);
        assert_eq!(word("claude-code"), "claude");
        assert_eq!(word("codex-mcp-client"), "codex");
        assert_eq!(word("gemini-cli-mcp-client"), "gemini");
        assert_eq!(word("Visual Studio Code"), "vscode");
        assert_eq!(word("Zed"), "zed");
        for name in ["", "human", "email", "mcp", "1234", "🤖"] {
            assert_eq!(word(name), "agent", "{name}");
        }
    }
}
