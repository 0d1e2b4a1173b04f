//! What follows when a consent or a permission was withdrawn.

use super::Relay;
use crosstalk_protocol::consent::Withdrawn;

impl Relay {
    /// A REVOKE was taken, and this is what it took with it. What has to be said about it is owed, and whatever is left of
    /// it in files is taken out, both beside the answer.
    pub(super) fn has_withdrawn(&self, revoke: &str, withdrawn: &Withdrawn) {
        tracing::info!(
            id = revoke,
            consents = withdrawn.consents.len(),
            erased = withdrawn.erased.len(),
            cancelled = withdrawn.cancelled.len(),
            "withdrawn"
        );
        self.follows_withdrawal();
    }

    /// Whatever has to be done after a REVOKE has taken effect.
    pub(super) fn follows_withdrawal(&self) {
        self.shared.withdrawal.notify_one();
        self.owe();
        self.wake();
    }

    /// Waits until a consent was withdrawn since the last call.
    pub async fn withdrawal(&self) {
        self.shared.withdrawal.notified().await;
    }
}
