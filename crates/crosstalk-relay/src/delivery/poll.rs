//! Closes polls: when the deadline has passed, or everybody has answered, what came out is sent to who asked.
//!
//! The store knows which polls have to be counted, so that neither the start nor the memory grows with all polls that ever
//! were.

use crate::core::Relay;
use crosstalk_envelope::Timestamp;
use std::time::Duration;
use tokio::sync::watch as signal;

/// At the latest after so long there is a look at the clock: it may have been set.
const LOOK: Duration = Duration::from_secs(5);
/// After so long there is another look, if the store had trouble.
const SOON: Duration = Duration::from_secs(1);
/// How many polls are counted in one go.
const PORTION: usize = 64;

/// Looks after polls until it is told to stop.
pub(super) async fn run(relay: Relay, mut stop: signal::Receiver<Option<Duration>>) {
    let mut stopped = relay.stopped();
    loop {
        if stop.borrow().is_some() || stopped.borrow().is_some() {
            return;
        }
        let wait = match relay.settle_polls(PORTION).await {
            Ok(0) => until(relay.next_poll_end().await.ok().flatten(), relay.now()),
            Ok(_) => continue,
            Err(_) => SOON,
        };
        tokio::select! {
            _ = stop.wait_for(Option::is_some) => return,
            _ = stopped.wait_for(Option::is_some) => return,
            () = relay.poll_bell() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// How long nothing has to be done.
fn until(next: Option<Timestamp>, now: Timestamp) -> Duration {
    next.map_or(LOOK, |at| {
        let millis = at.as_millis().saturating_sub(now.as_millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    })
    .clamp(Duration::from_millis(10), LOOK)
}
