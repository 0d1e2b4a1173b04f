//! What a relay says by itself: a message did not arrive, was not answered in time, was refused by a person, or a
//! consent was withdrawn.
//!
//! The same thing always gets the same id, so that what is said again after a crash is known.

mod withdrawal;

pub use withdrawal::withdrawn;

use super::port::Expectation;
use crate::store::Record;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::name::same_name;
use crosstalk_envelope::registry::{ErrorCode, Intent};
use crosstalk_envelope::reply::{self, ReceivedIds, Refusal};
use crosstalk_envelope::{Document, Reading, Timestamp, id, unicode};

/// Whether nothing is ever said in answer to a message, so that programs do not talk to each other for ever.
pub fn takes_no_answer(record: &Record) -> bool {
    let says_enough = matches!(
        record.meaning,
        Some(Intent::Error | Intent::Ack | Intent::Nack | Intent::Broadcast)
    );
    says_enough || same_name(&record.sender, crate::poll::TELLER)
}

/// That a message could not be delivered. `since` is when the delivery was queued: after it was queued again, there is
/// something new to tell. Nothing where nothing is said.
pub fn undeliverable(
    record: &Record,
    to: &str,
    (code, reason): (ErrorCode, &str),
    since: Timestamp,
) -> Option<String> {
    let to = unicode::escape(to);
    let detail = format!(
        "Could not deliver message to {to}: {reason}.\nWhat to do: check the address, or send it again later."
    );
    let seed = format!("undeliverable\n{}\n{to}\n{since}\n", record.digest);
    error(record, &Refusal::new(code, detail), &seed)
}

/// That nobody answered in time. Nothing where nothing is said, and about a poll: its result says who has not answered.
pub fn unanswered(expectation: &Expectation) -> Option<String> {
    let Expectation { record, due } = expectation;
    if record.meaning == Some(Intent::Poll) {
        return None;
    }
    let detail = format!(
        "No answer came from {} until {due}.\nWhat to do: ask again, or ask somebody else.",
        unicode::escape(&record.receiver)
    );
    let seed = format!("unanswered\n{}\n{due}\n", record.digest);
    error(record, &Refusal::new(ErrorCode::Timeout, detail), &seed)
}

/// That a message which waited for a person does not go on. Nothing where nothing is said.
pub fn declined(record: &Record, refusal: &Refusal) -> Option<String> {
    let seed = format!("declined\n{}\n", record.digest);
    error(record, refusal, &seed)
}

/// The ERROR in the name of the receiver.
fn error(record: &Record, refusal: &Refusal, seed: &str) -> Option<String> {
    if takes_no_answer(record) {
        return None;
    }
    let document = Document::parse(&record.text, Reading::Strict);
    let ids = ReceivedIds {
        thread: record.thread.clone(),
        message: record.id.clone(),
    };
    let error = reply::error(&document.envelope(), &ids, refusal);
    error.message(derived(record.at, seed)).build().ok()
}

/// An id that is always the same for the same thing.
///
/// ```
/// use crosstalk_envelope::Timestamp;
/// use crosstalk_protocol::relay::report::derived;
/// let at = Timestamp::from_millis(1);
/// assert_eq!(derived(at, "a"), derived(at, "a"));
/// assert_ne!(derived(at, "a"), derived(at, "b"));
/// ```
pub fn derived(at: Timestamp, seed: &str) -> String {
    let digest = Digest::of(seed.as_bytes()).0;
    let tail = digest.iter().take(16);
    let tail = tail.fold(0_u128, |sum, byte| (sum << 8) | u128::from(*byte));
    id::ulid_of(u64::try_from(at.as_millis()).unwrap_or(0), tail)
}
