//! What a sender is told when a message did not arrive.

use crate::core::Relay;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::report;
use crosstalk_protocol::store::Record;

/// Tells the sender that a message could not be delivered.
pub(crate) async fn undeliverable(
    relay: &Relay,
    record: &Record,
    to: &str,
    why: (ErrorCode, &str),
    since: Timestamp,
) {
    if let Some(text) = report::undeliverable(record, to, why, since) {
        relay.tell(&text).await;
    }
}
