//! What the relay says by itself. What follows from a change of the store is owed in the transaction of that change,
//! and said here, again after a crash: its id is always the same.

use super::{Received, Relay};
use crosstalk_protocol::relay::RelayStore;
use crosstalk_protocol::store::StoreError;
use std::time::Duration;
use tokio::task::JoinSet;

/// How much is said at once.
const BATCH: usize = 256;
/// At the latest after so long there is a look at what is owed.
const LOOK: Duration = Duration::from_secs(5);
/// The status of trouble that passes.
const LATER: u16 = 503;

impl Relay {
    /// Says what is owed, now and whenever something is, until it is aborted.
    pub(crate) async fn keep_its_word(self) {
        loop {
            if let Err(error) = self.say_owed().await {
                tracing::warn!(reason = %error, "what is to be said has to wait for the store");
            }
            tokio::select! {
                () = self.shared.owes.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Says that something is owed.
    pub(crate) fn owe(&self) {
        self.shared.owes.notify_one();
    }

    /// Says what is owed now.
    ///
    /// # Errors
    /// What the store says.
    pub(crate) async fn say_owed(&self) -> Result<(), StoreError> {
        loop {
            let owed = self.read(|store| store.owed(BATCH)).await?;
            if owed.is_empty() {
                return Ok(());
            }
            let mut saying = JoinSet::new();
            for (place, text) in owed {
                let relay = self.clone();
                saying.spawn(async move { relay.tell(&text).await.then_some(place) });
            }
            let said = saying.join_all().await;
            let is_all = said.iter().all(Option::is_some);
            let settle = move |store: &mut dyn RelayStore| {
                let said: Vec<u64> = said.into_iter().flatten().collect();
                store.settle(&said)
            };
            self.write(settle).await?;
            if !is_all {
                return Ok(());
            }
        }
    }

    /// Says something. False if it has to be said again later.
    pub(crate) async fn tell(&self, text: &str) -> bool {
        match self.say(text).await {
            Received::Taken { .. } => true,
            Received::Refused {
                refusal, status, ..
            } => {
                let code = refusal.code.as_str();
                tracing::warn!(code, reason = %refusal.detail(), "somebody could not be told");
                status != LATER
            }
        }
    }
}
