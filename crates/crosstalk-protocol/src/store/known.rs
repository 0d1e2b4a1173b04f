//! A message that is kept and comes again, or whose id another one wants.

use super::arrival::{Arrival, Side};
use crate::verdict::VerdictWord;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::ReceivedIds;

/// A kept message that may be the one that comes, or has its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownMessage {
    /// Its position.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// The ids that were generated for it.
    pub generated: ReceivedIds,
    /// The digest of its canonical form.
    pub digest: Digest,
    /// The result of checking its signature.
    pub verdict: VerdictWord,
    /// The side that it comes from.
    pub side: Side,
    /// The thread that it is in.
    pub thread: String,
    /// When it came.
    pub since: Timestamp,
    /// Whether its text was erased.
    pub is_gone: bool,
    /// Whether its text may be cut off.
    pub is_truncated: bool,
}

impl KnownMessage {
    /// Whether an arrival is this message again.
    pub fn is_same(&self, arrival: &Arrival) -> bool {
        self.digest == arrival.digest
    }

    /// Whether more is known about the message by an arrival of the same content: a signature holds, or the text is whole. What
    /// was erased stays so.
    pub fn is_improved_by(&self, arrival: &Arrival) -> bool {
        let is_whole_now =
            self.is_truncated && !arrival.truncated && arrival.verdict == self.verdict;
        (arrival.improves(self.verdict) || is_whole_now) && !self.is_gone
    }

    /// Whether it gives its id up to an arrival of other content ([`Arrival::displaces`]).
    pub fn yields_id_to(&self, arrival: &Arrival) -> bool {
        arrival.displaces(self.verdict, self.side)
    }
}
