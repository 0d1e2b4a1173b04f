//! DNS records of keys, addresses and relays: the port that the adapter answers to (TRU-020 to TRU-025, ADR-012 to
//! ADR-014).

mod address;
mod relay;

pub use address::{AddressAnswer, address_name, host_fault};
pub use relay::{RelayAnswer, RelayRecord, relay_name, relay_order};

use address::is_label;
use crosstalk_envelope::PublicKey;
use crosstalk_envelope::words;

/// The answer of the DNS about the keys of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsAnswer {
    /// The keys that the domain lists.
    Keys {
        /// Every record that is a key.
        keys: Vec<PublicKey>,
        /// For how many seconds the answer may be kept.
        ttl: u32,
        /// The DNSSEC status of the answer.
        dnssec: Dnssec,
    },
    /// There is no such name or no TXT record: final.
    Absent {
        /// The DNSSEC status of the answer.
        dnssec: Dnssec,
    },
    /// There are records, and none is a key.
    Wrong {
        /// The fault of the records.
        reason: String,
    },
    /// SERVFAIL, a time-out, a refusal, a broken DNSSEC chain: try later.
    Unavailable {
        /// The cause.
        reason: String,
    },
}

words! {
    /// The DNSSEC status of an answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Dnssec {
        /// Signed, and the chain up to a trust anchor holds.
        Secure = "secure",
        /// The zone is not signed.
        Insecure = "insecure",
        /// It can't be told.
        Indeterminate = "indeterminate",
    }
}

/// The name of the TXT records of a domain.
///
/// ```
/// assert_eq!(crosstalk_protocol::dns::key_name("example.com"), "_crosstalk-key.example.com");
/// ```
pub fn key_name(domain: &str) -> String {
    format!("_crosstalk-key.{domain}")
}

/// The domain that can vouch for a key id: the part after its only `@`, up to a `/`, if it is a host name with
/// a dot.
///
/// ```
/// use crosstalk_protocol::dns::domain_of;
/// assert_eq!(domain_of("alice@example.com"), Some("example.com"));
/// assert_eq!(domain_of("alice@example.com/2026"), Some("example.com"));
/// assert_eq!(domain_of("bob@keys/2025"), None);
/// assert_eq!(domain_of("alice@example.com/x@evil.example"), None);
/// assert_eq!(domain_of("did:key:z6Mk"), None);
/// ```
pub fn domain_of(pkid: &str) -> Option<&str> {
    let (_, behind) = pkid.split_once('@')?;
    let domain = behind.split('/').next()?;
    (!behind.contains('@') && is_host(domain)).then_some(domain)
}

/// Whether a text is a host name with at least two labels.
pub(crate) fn is_host(text: &str) -> bool {
    // A last label of digits makes it an address, not a name.
    let last = text.rsplit('.').next().unwrap_or("");
    let is_address = last.bytes().all(|b| b.is_ascii_digit());
    text.len() <= 237 && text.contains('.') && text.split('.').all(is_label) && !is_address
}
