//! What a relay asks of its store about messages that are held.

use super::{Decision, HeldMessage, Ruling};
use crate::store::StoreError;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;

/// What is kept about messages that are held. [`RelayStore::take`](super::super::RelayStore::take) holds them.
pub trait HoldStore {
    /// What waits for a decision, the oldest first.
    fn waiting(&self, most: usize) -> Result<Vec<HeldMessage>, StoreError>;

    /// The message with an id that is held or was, whatever was decided.
    fn held(&self, id: &str) -> Result<Option<HeldMessage>, StoreError>;

    /// The latest of what waits for a decision and refers to an attachment so that it grants access.
    fn held_referring(&self, digest: Digest, most: usize) -> Result<Vec<HeldMessage>, StoreError>;

    /// Carries a decision out: in one transaction it is on record, and the message is taken or what its sender is told is
    /// owed.
    ///
    /// # Errors
    /// If the store can't be written. Nothing was decided then.
    fn decide(&mut self, decision: &Decision) -> Result<Ruling, StoreError>;

    /// What waits though its consent or its deadline has ended.
    fn lapsed(&self, now: Timestamp, most: usize) -> Result<Vec<HeldMessage>, StoreError>;

    /// When the next one ends.
    fn next_lapse(&self) -> Result<Option<Timestamp>, StoreError>;
}
