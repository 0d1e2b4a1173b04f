//! The relay: durable inboxes, routing and delivery over HTTP.
//!
//! ```text
//! request ── server ──> Relay::receive ──> verify ──> admit ──> RelayStore::accept ──> response
//!                                                               │
//!                                                               └─ index ──> threads, waits, words
//! ```
//!
//! The relay knows ports only: [`RelayStore`](crosstalk_protocol::relay::port::RelayStore), [`Resolver`](port::Resolver) and
//! [`Keyring`](port::Keyring). The program that starts it picks the adapters.

pub mod config;
pub mod core;
pub mod delivery;
pub mod file;
pub mod metrics;
pub mod rate;
pub mod server;

/// The client and its transport, which moved to `crosstalk-api`.
pub use crosstalk_api::{client, outbound};
/// The ports of a relay.
pub use crosstalk_protocol::port;
