//! The keys, addresses and relays of a domain, asked of the DNS: the adapter behind [`crosstalk_protocol::dns`] (TRU-020
//! to TRU-022, ADR-012 to ADR-014, HTP-080 to HTP-082).
//!
//! [`Dns`] asks for the TXT records at `_crosstalk-key.` and the domain, or at `_crosstalk-addr.`, a name and the
//! domain, with DNSSEC, and says what it got as a [`DnsAnswer`](crosstalk_protocol::dns::DnsAnswer) or an
//! [`AddressAnswer`](crosstalk_protocol::dns::AddressAnswer). It keeps nothing: the caller
//! decides how long an answer counts. Nothing leaves the machine before a question is put.

mod answer;
mod client;
mod dnssec;
mod domain;

pub use client::{Dns, Options, SetupError};
