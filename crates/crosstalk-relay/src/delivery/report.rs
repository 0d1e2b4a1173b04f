//! What a sender is told when a message did not arrive, or was not answered in time.

use crate::core::{Received, Relay};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::{self, ReceivedIds, Refusal};
use crosstalk_envelope::{Document, Intent, Reading, Timestamp, id, unicode};
use crosstalk_protocol::relay::Expectation;
use crosstalk_protocol::store::Record;

/// Whether nothing is ever said in answer to a message, so that programs do not talk to each other for ever.
pub(super) fn takes_no_answer(record: &Record) -> bool {
    matches!(
        record.meaning,
        Some(Intent::Error | Intent::Ack | Intent::Nack | Intent::Broadcast)
    )
}

/// Tells the sender that a message could not be delivered. `since` is when the delivery was queued: after it was queued
/// again, there is something new to tell.
pub(crate) async fn undeliverable(
    relay: &Relay,
    record: &Record,
    to: &str,
    (code, reason): (ErrorCode, &str),
    since: Timestamp,
) {
    let to = unicode::escape(to);
    let detail = format!(
        "Could not deliver message to {to}: {reason}.\nWhat to do: check the address, or send it again later."
    );
    let seed = format!("undeliverable\n{}\n{to}\n{since}\n", record.digest);
    say(relay, record, Refusal::new(code, detail), &seed).await;
}

/// Tells the sender that nobody answered in time.
pub(super) async fn unanswered(relay: &Relay, expectation: &Expectation) {
    let Expectation { record, due } = expectation;
    let detail = format!(
        "No answer came from {} until {due}.\nWhat to do: ask again, or ask somebody else.",
        unicode::escape(&record.receiver)
    );
    let seed = format!("unanswered\n{}\n{due}\n", record.digest);
    let refusal = Refusal::new(ErrorCode::Timeout, detail);
    say(relay, record, refusal, &seed).await;
}

/// What the sender of a message is told that waited for a person, if it is told anything.
pub(crate) fn declined(record: &Record, refusal: &Refusal) -> Option<String> {
    let seed = format!("declined\n{}\n", record.digest);
    written(record, refusal, &seed)
}

/// The ERROR in the name of the receiver; nothing where nothing is said.
fn written(record: &Record, refusal: &Refusal, seed: &str) -> Option<String> {
    if takes_no_answer(record) {
        return None;
    }
    let document = Document::parse(&record.text, Reading::Strict);
    let ids = ReceivedIds {
        thread: record.thread.clone(),
        message: record.id.clone(),
    };
    let error = reply::error(&document.envelope(), &ids, refusal)
        .message(derived(record.at, seed))
        .build();
    error
        .inspect_err(|error| {
            tracing::warn!(id = %record.id, reason = %error, "an ERROR could not be written");
        })
        .ok()
}

async fn say(relay: &Relay, record: &Record, refusal: Refusal, seed: &str) {
    let Some(text) = written(record, &refusal, seed) else {
        return;
    };
    if let Received::Refused { refusal, .. } = relay.say(&text).await {
        tracing::warn!(id = %record.id, code = refusal.code.as_str(), "the sender could not be told");
    }
}

/// An id that is always the same for the same thing: what was said before a crash is not said twice.
pub(super) fn derived(at: Timestamp, seed: &str) -> String {
    let digest = Digest::of(seed.as_bytes()).0;
    let tail = digest.iter().take(16);
    let tail = tail.fold(0_u128, |sum, byte| (sum << 8) | u128::from(*byte));
    id::ulid_of(u64::try_from(at.as_millis()).unwrap_or(0), tail)
}
