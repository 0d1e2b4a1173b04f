//! What the relay says by itself. What follows from a change of the store is owed in the transaction of that change,
//! and said here, again after a crash: its id is always the same.

use crate::core::{Received, Relay};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::{RelayStore, report};
use crosstalk_protocol::store::{Record, StoreError};
use std::time::Duration;
use tokio::sync::watch as signal;
use tokio::task::JoinSet;

/// How much is said at once.
const BATCH: usize = 256;
/// At the latest after so long there is a look at what is owed.
const LOOK: Duration = Duration::from_secs(5);
/// The status of trouble that passes.
const LATER: u16 = 503;

/// Says what is owed, until it is told to stop.
pub(super) async fn run(relay: Relay, mut stop: signal::Receiver<Option<Duration>>) {
    let mut stopped = relay.stopped();
    loop {
        if let Err(error) = say_owed(&relay).await {
            tracing::warn!(reason = %error, "what is to be said has to wait for the store");
        }
        tokio::select! {
            _ = stop.wait_for(Option::is_some) => return,
            _ = stopped.wait_for(Option::is_some) => return,
            () = relay.owes() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

async fn say_owed(relay: &Relay) -> Result<(), StoreError> {
    loop {
        let owed = relay.read(|store| store.owed(BATCH)).await?;
        if owed.is_empty() {
            return Ok(());
        }
        let mut saying = JoinSet::new();
        for (place, text) in owed {
            let relay = relay.clone();
            saying.spawn(async move { say(&relay, &text).await.then_some(place) });
        }
        let said = saying.join_all().await;
        let is_all = said.iter().all(Option::is_some);
        let settle = move |store: &mut dyn RelayStore| {
            let said: Vec<u64> = said.into_iter().flatten().collect();
            store.settle(&said)
        };
        relay.write(settle).await?;
        if !is_all {
            return Ok(());
        }
    }
}

/// Says something. False if it has to be said again later.
async fn say(relay: &Relay, text: &str) -> bool {
    match relay.say(text).await {
        Received::Taken { .. } => true,
        Received::Refused {
            refusal, status, ..
        } => {
            let code = refusal.code.as_str();
            tracing::warn!(code, reason = %refusal.detail, "somebody could not be told");
            status != LATER
        }
    }
}

/// Tells the sender that a message could not be delivered.
pub(crate) async fn undeliverable(
    relay: &Relay,
    record: &Record,
    to: &str,
    why: (ErrorCode, &str),
    since: Timestamp,
) {
    if let Some(text) = report::undeliverable(record, to, why, since) {
        say(relay, &text).await;
    }
}
