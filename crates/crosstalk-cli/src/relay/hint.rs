//! What is worth telling about a message right after it was handed to a relay: nobody reads where it waits, or the program
//! that should answer it fails.

use crate::config::Config;
use crate::console::{Console, YELLOW, styled};
use crate::failure::Failure;
use crate::relay::remote::{Delivered, Remote};
use crate::view;
use crosstalk_protocol::nearest_address;

/// That nobody has ever read the inbox where a message waits, with the address that may have been meant: one that the relay
/// may name to this caller, or one of the settings.
pub(crate) fn unread(config: &Config, delivery: &Delivered) -> Option<String> {
    if !delivery.never_read {
        return None;
    }
    let own = || {
        let addresses = config.names().iter().map(|(_, address)| address);
        nearest_address(&delivery.to, addresses)
    };
    let meant = delivery.did_you_mean.as_deref().or_else(own);
    let to = view::line(&delivery.to);
    Some(match meant {
        Some(meant) => format!(
            "No one has read {to} yet; did you mean {}?",
            view::line(meant)
        ),
        None => format!("No one has read {to} yet."),
    })
}

/// Tells it. A relay that does not say how far the message is, is left alone: the message is there.
pub(crate) fn tell(
    console: &mut Console,
    config: &Config,
    remote: &Remote,
    id: &str,
) -> Result<(), Failure> {
    let Ok(status) = remote.status(id) else {
        return Ok(());
    };
    for delivery in &status.deliveries {
        if let Some(hint) = unread(config, delivery) {
            console.talk(&format!("{}\n", styled(YELLOW, &hint)))?;
        }
        if let Some(reason) = delivery.reason.as_ref().filter(|_| delivery.attempts > 0) {
            let sentence = format!("{}: {}.", view::line(&delivery.to), view::line(reason));
            console.talk(&format!("{}\n", styled(YELLOW, &sentence)))?;
        }
    }
    Ok(())
}
