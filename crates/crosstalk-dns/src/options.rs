//! How to ask, and what can be wrong with that before anybody is asked.

use std::time::Duration;

/// How to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long one try may take. The whole look-up, with all that DNSSEC needs, takes at most `attempts` times as
    /// long.
    pub timeout: Duration,
    /// How often a question is put before it counts as unanswered; 0 is the same as 1.
    pub attempts: u32,
    /// The keys that DNSSEC is checked against, as DNSKEY records in the form of a zone file, instead of those of
    /// the root, which are built in. For a zone below the root: all of its DNSKEY records.
    ///
    /// With keys given here, a name below them that can't be validated counts as broken. Names that are not below
    /// any of them are [`Indeterminate`](crosstalk_protocol::dns::Dnssec::Indeterminate).
    pub anchor: Option<String>,
}

impl Default for Options {
    /// Two tries of four seconds, and the keys of the root.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(4),
            attempts: 2,
            anchor: None,
        }
    }
}

impl Options {
    /// How long the whole look-up may take.
    pub(crate) fn deadline(&self) -> Duration {
        self.timeout.saturating_mul(self.attempts.max(1))
    }
}

/// Why there is nobody to ask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The resolver configuration of the system can't be used.
    #[error("the system's resolver configuration can't be used: {0}; name a DNS server instead")]
    System(String),
    /// The trust anchor can't be read.
    #[error("the trust anchor can't be read: {0}; it consists of DNSKEY records, one per line")]
    Anchor(String),
}
