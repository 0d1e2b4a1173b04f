//! Fetches the messages of an agent from its relay into the store, for as long as the process lives.

use crate::console::Console;
use crate::failure::Failure;
use crate::service::relay::inbox::keep;
use crate::service::relay::remote::{MessageView, RelayArgument, Remote};
use crate::service::relay::send::is_kept;
use crate::service::workspace::Workspace;
use crosstalk_protocol::store::Wait;
use std::thread;
use std::time::Duration;

/// How long the relay holds a request that finds nothing, in seconds.
const HELD_SECONDS: u64 = 25;
const AT_ONCE: u32 = 50;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Starts fetching, if a relay is configured.
pub(super) fn start(profile: Option<String>, address: &str) {
    let address = address.to_owned();
    // Without a thread, nothing is fetched, and what the agents of this machine send still arrives.
    let _ = thread::Builder::new()
        .name("fetch".into())
        .spawn(move || follow(profile, &address));
}

fn follow(profile: Option<String>, address: &str) {
    let mut pause = FIRST_PAUSE;
    loop {
        let mut console = Console::muted(profile.clone());
        match round(&mut console, address) {
            Ok(true) => pause = FIRST_PAUSE,
            Ok(false) => return,
            Err(_) => {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Fetches until something fails. False if no relay is configured.
fn round(console: &mut Console, address: &str) -> Result<bool, Failure> {
    let workspace = Workspace::open(console)?;
    if workspace.config.relays().is_empty() {
        return Ok(false);
    }
    let remote = RelayArgument::default().connect(&workspace.config, Some(address))?;
    let mut cursor: Option<String> = None;
    loop {
        let page = remote.inbox(address, cursor.as_deref(), AT_ONCE, HELD_SECONDS)?;
        for waiting in &page.messages {
            take(console, &workspace, &remote, address, waiting)?;
        }
        if !page.messages.is_empty() {
            cursor = Some(page.cursor);
        }
    }
}

/// Keeps a message, and acknowledges it once it is on disk. It is for the agent, and the person has nothing to carry.
fn take(
    console: &mut Console,
    workspace: &Workspace,
    remote: &Remote,
    address: &str,
    waiting: &MessageView,
) -> Result<(), Failure> {
    let exit = keep(console, workspace, waiting, (true, false))?;
    if !is_kept(exit) {
        return Ok(());
    }
    let mut store = workspace.store(console)?;
    if let Some(record) = store.message(&waiting.id)?
        && record.wait == Wait::Carry
    {
        store.dismiss(&record.id)?;
    }
    Ok(remote.acknowledge(address, &waiting.id)?)
}
