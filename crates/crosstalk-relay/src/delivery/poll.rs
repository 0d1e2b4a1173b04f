//! Closes polls: when the deadline has passed, or everybody has answered, what came out is sent to who asked.

use crate::core::{Relay, Standing};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::store::{Page, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::watch as signal;

/// At the latest after so long there is a look at the clock: it may have been set.
const LOOK: Duration = Duration::from_secs(5);
/// After so long there is another look, if the store had trouble.
const SOON: Duration = Duration::from_secs(1);
/// How many polls of before the start are looked at in one go.
const PORTION: usize = 64;

/// When open polls end.
type Ends = BTreeMap<String, Timestamp>;

/// Looks after polls until it is told to stop.
pub(super) async fn run(relay: Relay, mut stop: signal::Receiver<Option<Duration>>) {
    let mut stopped = relay.stopped();
    let (mut ends, mut before) = (Ends::new(), Some(0));
    loop {
        let mut is_well = true;
        let mut due = relay.touched_polls();
        // One part after the other, so that new ones are not kept waiting.
        if let Some(skip) = before {
            match earlier(&relay, skip, &mut due).await {
                Ok(next) => before = next,
                Err(_) => is_well = false,
            }
        }
        let now = relay.now();
        due.extend(
            ends.iter()
                .filter(|(_, end)| **end <= now)
                .map(|(id, _)| id.clone()),
        );
        for id in due {
            if stop.borrow().is_some() {
                return;
            }
            match relay.settle_poll(&id).await {
                Ok(standing) => note(&mut ends, id, standing.as_ref()),
                Err(error) => {
                    tracing::warn!(id, reason = %error, "a poll could not be counted");
                    ends.insert(id, now);
                    is_well = false;
                }
            }
        }
        let wait = match (is_well, before) {
            (false, _) => SOON,
            (true, Some(_)) => continue,
            (true, None) => until(&ends, relay.now()),
        };
        tokio::select! {
            _ = stop.wait_for(Option::is_some) => return,
            _ = stopped.wait_for(Option::is_some) => return,
            () = relay.poll_bell() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// The polls of before the start, one part of them; where the next one begins.
async fn earlier(
    relay: &Relay,
    skip: usize,
    due: &mut BTreeSet<String>,
) -> Result<Option<usize>, StoreError> {
    let page = Page {
        limit: PORTION,
        skip,
    };
    if skip == 0 {
        // What was taken and not filed before the start is looked at as well.
        relay.write_filed(|_| Ok(())).await?;
    }
    let (records, more) = relay.polls(page).await?;
    relay.knows_polls(&records, !more);
    due.extend(records.into_iter().map(|r| r.id));
    Ok(more.then_some(skip + PORTION))
}

fn note(ends: &mut Ends, id: String, standing: Option<&Standing>) {
    let open = standing.filter(|s| s.closed_at.is_none());
    match open.and_then(|s| s.ends_at) {
        Some(end) => ends.insert(id, end),
        None => ends.remove(&id),
    };
}

/// How long nothing has to be done.
fn until(ends: &Ends, now: Timestamp) -> Duration {
    let next = ends.values().min();
    next.map_or(LOOK, |at| {
        let millis = at.as_millis().saturating_sub(now.as_millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    })
    .clamp(Duration::from_millis(10), LOOK)
}
