//! Consents on record.

use super::StoreFuture;
use crate::consent::{Grant, GrantFilter};

/// Where consents are on record. Messages write them when they are accepted.
pub trait ConsentLedger {
    /// Consents on record.
    fn grants(&self, query: GrantQuery) -> StoreFuture<'_, Vec<Grant>>;

    /// The ids of the messages that are or were kept under a consent, with whether their text is still there, the oldest
    /// first.
    fn under(&self, consent: &str) -> StoreFuture<'_, Vec<(String, bool)>>;
}

/// Which consents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantQuery {
    /// Those with these names, and those that they go back to.
    Named(Vec<String>),
    /// Those that a filter lets through, the latest first.
    Filtered(GrantFilter),
}
