//! Ends the waiting for an answer without one.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::lookup;
use crate::service::workspace::Workspace;
use crate::view;
use crosstalk_protocol::store::Wait;

/// Whose answer a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The person's, or the person's way to another chat.
    OfMe,
    /// That of others.
    OfOthers,
}

/// Ends the waiting of messages. The exit code says whether each of them waited.
pub(crate) fn dismiss(
    console: &mut Console,
    workspace: &Workspace,
    references: &[String],
    awaited: Awaited,
) -> Result<Exit, Failure> {
    let mut store = workspace.kept(console)?;
    let mut exit = Exit::SUCCESS;
    for reference in references {
        let record = lookup::message(&store, reference)?;
        let id = view::short(&store, &record.id)?;
        let is_meant = match awaited {
            Awaited::OfMe => matches!(record.wait, Wait::Me | Wait::Carry),
            Awaited::OfOthers => matches!(record.wait, Wait::Them | Wait::Carry),
        };
        let word = match (is_meant && store.dismiss(&record.id)?, awaited, record.wait) {
            (true, ..) => "done".to_owned(),
            (false, Awaited::OfMe, Wait::Them) => format!(
                "did not wait for you; `crosstalk waiting --done {id}` ends the waiting for an answer"
            ),
            (false, Awaited::OfOthers, Wait::Me) => {
                format!(
                    "waits for your answer; `crosstalk inbox --done {id}` removes it without one"
                )
            }
            (false, Awaited::OfMe, _) => "did not wait for you".to_owned(),
            (false, Awaited::OfOthers, _) => "did not wait for an answer".to_owned(),
        };
        if word != "done" {
            exit = exit.worst(Exit::FAILURE);
        }
        console.talk(&format!("{id}: {word}\n"))?;
    }
    Ok(exit)
}
