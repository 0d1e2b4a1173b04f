//! Ids that a relay makes: from the time a message came and its digest, so that nothing random is needed and the same
//! message gets the same ones.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::id::ulid_of;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::ReceivedIds;

/// The ids of a message that has none.
pub(super) fn spare(digest: Digest, at: Timestamp) -> ReceivedIds {
    ReceivedIds {
        thread: made(digest, at, 0),
        message: made(digest, at, 1),
    }
}

/// The id of the receipt for a message.
pub(super) fn receipt(digest: Digest, at: Timestamp) -> String {
    made(digest, at, 2)
}

/// A ULID of a time and one of three parts of a digest, 80 bits each.
fn made(digest: Digest, at: Timestamp, part: usize) -> String {
    let bytes = digest.0.into_iter().skip(part * 10).take(10);
    let tail = bytes.fold(0, |tail: u128, byte| (tail << 8) | u128::from(byte));
    ulid_of(u64::try_from(at.as_millis()).unwrap_or(0), tail)
}
