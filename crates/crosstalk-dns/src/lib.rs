//! The keys, addresses and relays of a domain, asked of the DNS: the adapter behind [`crosstalk_protocol::dns`] (TRU-020
//! to TRU-022, ADR-012 to ADR-014, HTP-080 to HTP-082).
//!
//! [`Dns`] asks for the TXT records at `_crosstalk-key.` and the domain, or at `_crosstalk-addr.`, a name and the
//! domain, with DNSSEC, and says what it got as a [`DnsAnswer`](crosstalk_protocol::dns::DnsAnswer) or an
//! [`AddressAnswer`](crosstalk_protocol::dns::AddressAnswer). It keeps nothing: how long an answer counts is the business
//! of whoever asked. Nothing leaves the machine before a question is put.

mod anchor;
mod answer;
mod chain;
mod client;
mod domain;
mod options;

pub use client::Dns;
pub use options::{Options, SetupError};
