//! The notices that the relay itself sends. The transaction that causes a notice puts it into the queue; it is sent from here,
//! and again after a crash: its id is always the same.

use super::{Received, Relay};
use crosstalk_protocol::consent::RevocationResult;
use crosstalk_protocol::store::StoreError;
use std::time::Duration;
use tokio::task::JoinSet;

/// How many notices are sent at once.
const BATCH: usize = 256;
/// How long the queue is left alone at most.
const LOOK: Duration = Duration::from_secs(5);
/// The status of trouble that passes.
const LATER: u16 = 503;

impl Relay {
    /// Sends the notices of the queue, now and whenever there are some, until it is aborted.
    pub(crate) async fn run_notice_queue(self) {
        loop {
            if let Err(error) = self.send_notices().await {
                tracing::warn!(reason = %error, "notices have to wait for the store");
            }
            tokio::select! {
                () = self.shared.notices.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Wakes the task that sends notices.
    pub(crate) fn wake_notice_queue(&self) {
        self.shared.notices.notify_one();
    }

    /// Sends the notices that are in the queue now.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn send_notices(&self) -> Result<(), StoreError> {
        // Others find the queue empty, instead of sending the same notices.
        let _turn = self.shared.notice_turn.lock().await;
        loop {
            let owed = self.store().notices(BATCH).await?;
            if owed.is_empty() {
                return Ok(());
            }
            let mut saying = JoinSet::new();
            for (place, text) in owed {
                let relay = self.clone();
                saying.spawn(async move { relay.send_notice(&text).await.then_some(place) });
            }
            let said = saying.join_all().await;
            let is_all = said.iter().all(Option::is_some);
            let said: Vec<u64> = said.into_iter().flatten().collect();
            self.store().drop_notices(said).await?;
            if !is_all {
                return Ok(());
            }
        }
    }

    /// Sends a notice. False if it has to be sent again later.
    pub(crate) async fn send_notice(&self, text: &str) -> bool {
        match self.say(text).await {
            Received::Accepted { .. } => true,
            Received::Rejected {
                refusal, status, ..
            } => {
                let code = refusal.code.as_str();
                tracing::warn!(code, reason = %refusal.detail(), "a notice could not be sent");
                status != LATER
            }
        }
    }

    /// Logs an accepted REVOKE and its effects. The store has queued the notices about it, and the rest of the texts in
    /// files is removed, both in the background.
    pub(super) fn log_revocation(&self, revoke: &str, withdrawn: &RevocationResult) {
        tracing::info!(
            id = revoke,
            consents = withdrawn.consents.len(),
            erased = withdrawn.erased.len(),
            cancelled = withdrawn.cancelled.len(),
            "revoked"
        );
        self.follow_up_revocation();
    }

    /// Starts the work that follows a REVOKE.
    pub(super) fn follow_up_revocation(&self) {
        self.shared.revocation.notify_one();
        self.wake_notice_queue();
        self.wake();
    }

    /// Waits until a consent was revoked since the last call.
    pub async fn revocation(&self) {
        self.shared.revocation.notified().await;
    }
}
