//! What a sender is told when a message did not arrive, or is tried again.

use crate::core::Relay;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::{RelayStore, Rules, State, report};
use crosstalk_protocol::store::{Record, StoreError};

/// Tells the sender that a message could not be delivered.
pub(crate) async fn undeliverable(
    relay: &Relay,
    record: &Record,
    to: &str,
    why: (ErrorCode, &str, &str),
    since: Timestamp,
) {
    if let Some(text) = report::undeliverable(record, to, why, since) {
        relay.tell(&text).await;
    }
}

/// Tells the sender that the program of a recipient failed, and is tried again.
pub(crate) async fn retried(relay: &Relay, record: &Record, to: &str, since: Timestamp) {
    if let Some(text) = report::retried(record, to, since) {
        relay.tell(&text).await;
    }
}

/// Tells whoever began a conversation that it went round in circles and was ended.
pub(crate) async fn circular(relay: &Relay, first: &Record) {
    if let Some(text) = report::circular(first) {
        relay.tell(&text).await;
    }
}

/// Settles the notice that a program is tried again: it has answered, or is given up. Nothing changes if nobody was told.
pub(crate) fn settle_retried(
    store: &mut dyn RelayStore,
    rules: &Rules,
    asked: &Record,
    (to, since): (&str, Timestamp),
    at: Timestamp,
) -> Result<(), StoreError> {
    let notice = report::retried_id(asked, to, since);
    let asker = rules.routes.named(&asked.sender);
    let settled = store.mark(asker, &[notice], State::Acknowledged, at);
    settled.map(drop)
}
