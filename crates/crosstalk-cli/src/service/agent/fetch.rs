//! Fetches the messages of an agent from its relay into the store, for as long as the process lives.

use crate::console::Console;
use crate::failure::Failure;
use crate::service::relay::inbox::keep;
use crate::service::relay::remote::{MessageView, RelayArgument, Remote};
use crate::service::relay::send::is_kept;
use crate::service::workspace::Workspace;
use crosstalk_protocol::store::Wait;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long the relay holds a request that finds nothing, in seconds.
const HELD_SECONDS: u64 = 25;
const AT_ONCE: u32 = 50;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long somebody who asks for the state waits until the relay was asked for the first time.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// How the relay answers: whether the agent gets what is there for it.
#[derive(Debug, Default)]
pub(super) struct FetchState {
    asked: Mutex<Option<Result<(), String>>>,
    changed: Condvar,
}

impl FetchState {
    fn set(&self, answer: Result<(), String>) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.changed.notify_all();
    }

    /// Why messages of the relay may be missing; nothing if none are.
    pub(super) fn trouble(&self) -> Option<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(asked, FIRST_ANSWER, |a| a.is_none());
        let (asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &*asked {
            Some(Ok(())) => None,
            Some(Err(why)) => Some(why.clone()),
            None => Some("the relay has not answered yet".to_owned()),
        }
    }
}

/// Starts fetching, if a relay is configured.
pub(super) fn start(profile: Option<String>, address: &str) -> Arc<FetchState> {
    let state = Arc::new(FetchState::default());
    let (address, told) = (address.to_owned(), state.clone());
    // Without a thread, nothing is fetched, and what the agents of this machine send still arrives.
    let started = thread::Builder::new()
        .name("fetch".into())
        .spawn(move || follow(profile, &address, &told));
    if let Err(fault) = started {
        state.set(Err(format!("nothing is fetched from a relay: {fault}")));
    }
    state
}

fn follow(profile: Option<String>, address: &str, state: &FetchState) {
    let mut pause = FIRST_PAUSE;
    loop {
        let mut console = Console::muted(profile.clone());
        match round(&mut console, address, state) {
            Ok(true) => pause = FIRST_PAUSE,
            Ok(false) => return state.set(Ok(())),
            Err(fault) => {
                state.set(Err(fault.to_string()));
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Fetches until something fails. False if no relay is configured.
fn round(console: &mut Console, address: &str, state: &FetchState) -> Result<bool, Failure> {
    let workspace = Workspace::open(console)?;
    if workspace.config.relays().is_empty() {
        return Ok(false);
    }
    let remote = RelayArgument::default().connect(&workspace.config, Some(address))?;
    let mut cursor: Option<String> = None;
    // The first answer comes at once, so that the agent knows what is there.
    let mut held = 0;
    loop {
        let page = remote.inbox(address, cursor.as_deref(), AT_ONCE, held);
        let page = page.map_err(|fault| match fault.is_refusal() {
            true => Failure::failed(fault.to_string()).help(
                "a token is for one address: `crosstalk mcp --as ADDRESS` takes that of the token",
            ),
            false => Failure::from(fault),
        })?;
        for waiting in &page.messages {
            take(console, &workspace, &remote, address, waiting)?;
        }
        state.set(Ok(()));
        held = HELD_SECONDS;
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
