//! Messages of an inbox at a relay, kept here and acknowledged there.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::service::dns::Look;
use crate::service::intake::{AssignedIds, Intake};
use crate::service::recipient::resolve_typed;
use crate::service::relay::remote::{Remote, Waiting};
use crate::service::relay::send::is_kept;
use crate::service::workspace::Desk;
use crosstalk_protocol::store::{Store as _, Wait, Way};

/// Whose inboxes are meant: one's own, if nobody says so.
pub(crate) fn addresses(desk: &Desk, typed: &[String]) -> Result<Vec<String>, Failure> {
    if let Some(pattern) = typed.iter().find(|a| a.contains('*')) {
        return Err(Failure::Usage(format!(
            "`{pattern}` is a pattern, and an inbox belongs to one address: name each address that you read for"
        )));
    }
    if !typed.is_empty() {
        return Ok(typed
            .iter()
            .map(|a| resolve_typed(&desk.config, a))
            .collect());
    }
    let mut all = vec![desk.config.sender()?];
    for one in desk.config.me() {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    Ok(all)
}

/// Keeps a message here, as one that was pasted is kept, and acknowledges it at the relay.
pub(crate) fn take(
    console: &mut Console,
    desk: &Desk,
    remote: &Remote,
    address: &str,
    waiting: &Waiting,
    quiet: bool,
) -> Result<(Exit, bool), Failure> {
    let exit = keep(console, desk, waiting, (quiet, true))?;
    let taken = is_kept(exit);
    if taken {
        remote.acknowledge(address, &waiting.id)?;
    }
    Ok((exit, taken))
}

/// Keeps a message here, as one that was pasted is kept. What came out of an inbox is for the person who fetched it,
/// under whatever address.
pub(crate) fn keep(
    console: &mut Console,
    desk: &Desk,
    waiting: &Waiting,
    (quiet, is_mine): (bool, bool),
) -> Result<Exit, Failure> {
    let look = Look::default();
    keep_history(console, desk, &look, waiting)?;
    let mut intake = Intake::new(desk, &look, false);
    intake.way = Way::Relayed;
    intake.quiet = quiet;
    intake.given = AssignedIds::of(waiting).map(|assigned| assigned.in_inbox(is_mine));
    intake.keep(console, &Input::of_text("relay", waiting.envelope.clone()))
}

/// Keeps the messages before an ESCALATE or a HANDOFF, so that they are shown with it. They wait for no answer.
fn keep_history(
    console: &mut Console,
    desk: &Desk,
    look: &Look,
    waiting: &Waiting,
) -> Result<(), Failure> {
    for text in waiting.history.iter().flatten() {
        let mut intake = Intake::new(desk, look, false);
        intake.way = Way::Relayed;
        intake.quiet = true;
        // One that can't be kept is not shown, and the message itself is.
        let _ = intake.keep(console, &Input::of_text("relay", text.clone()))?;
        let carried = intake.kept.iter().filter(|r| r.wait == Wait::Carry);
        for record in carried {
            desk.kept(console)?.dismiss(&record.id)?;
        }
    }
    Ok(())
}
