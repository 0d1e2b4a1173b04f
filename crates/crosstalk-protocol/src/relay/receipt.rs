//! The answer to a message that was accepted: an ACK with its digest and its index in the log; and the ids that a relay
//! generates, from the time a message came and its digest, so that the same message gets the same ones.

use crate::audit::{ChainId, LogPlace};
use crate::nearest::intent_hint;
use crate::store::Arrival;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::id::ulid_of;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::reply::ReceivedIds;

/// A message that is on disk, and what its sender is told about it.
#[derive(Clone, Copy, Debug)]
pub struct Receipted<'r> {
    /// The message.
    pub arrival: &'r Arrival,
    /// The ids that it is kept under.
    pub ids: &'r ReceivedIds,
    /// Its entry in the log.
    pub entry: LogPlace,
    /// When it came first.
    pub at: Timestamp,
    /// The relay that has it: a name without white space.
    pub by: &'r str,
    /// Whether it waits for a person: then the entry is that of this.
    pub is_held: bool,
}

/// The ACK of a relay. The same message gets the same one: its id is made from the message and the time it came.
///
/// Everything in it was read by the strict grammar before, so that it is written as it is.
pub fn acknowledgement(receipt: &Receipted<'_>) -> String {
    let Receipted {
        arrival,
        ids,
        entry,
        at,
        by,
        is_held,
    } = receipt;
    let mut text = String::with_capacity(512);
    let mut add = |parts: &[&str]| parts.iter().for_each(|part| text.push_str(part));
    add(&[
        "[[",
        &arrival.receiver,
        "→",
        &arrival.sender,
        " v1]]\nuser: relay\n",
    ]);
    if let Some(session) = &arrival.session {
        add(&["session: ", session, "\n"]);
    }
    let thread = arrival.thread.as_ref().unwrap_or(&ids.thread);
    add(&["thread: ", thread, "\n"]);
    let (id, digest) = (receipt_id(arrival.digest, *at), arrival.digest.to_string());
    let context = arrival.context.as_deref().unwrap_or("receipt");
    add(&[
        "parent: ",
        &ids.message,
        "\nmessage: ",
        &id,
        "\ncontext: ",
        context,
    ]);
    add(&["\nintent: ACK\n\nmeta: receipt\nDigest: ", &digest]);
    add(&["\nIndex: ", &entry.index.to_string()]);
    if entry.chain != ChainId::FIRST {
        add(&["\nChain: ", &entry.at(by)]);
    }
    if *is_held {
        add(&["\nState: held"]);
    }
    if let Some(hint) = arrival.intent.as_deref().and_then(intent_hint) {
        add(&["\nDiagnostic: ", rule::INTENT_UNKNOWN.id, ", ", &hint]);
    }
    add(&["\nReceived-At: ", &at.to_string()]);
    add(&["\nReceived-By: ", by, "\n\nbody: |\nsig: none\n[[END]]\n"]);
    text
}

/// The ids of a message that has none.
pub(super) fn generated_ids(digest: Digest, at: Timestamp) -> ReceivedIds {
    ReceivedIds {
        thread: generated_id(digest, at, 0),
        message: generated_id(digest, at, 1),
    }
}

/// The id of the receipt for a message.
fn receipt_id(digest: Digest, at: Timestamp) -> String {
    generated_id(digest, at, 2)
}

/// A ULID of a time and one of three parts of a digest, 80 bits each.
fn generated_id(digest: Digest, at: Timestamp, part: usize) -> String {
    let bytes = digest.0.into_iter().skip(part * 10).take(10);
    let tail = bytes.fold(0, |tail: u128, byte| (tail << 8) | u128::from(byte));
    ulid_of(u64::try_from(at.as_millis()).unwrap_or(0), tail)
}
