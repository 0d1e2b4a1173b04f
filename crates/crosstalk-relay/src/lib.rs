//! The relay: durable inboxes, routing and honest delivery over HTTP.
//!
//! ```text
//! request ── server ──> Relay::receive ──> judge ──> admit ──> writer ──> RelayStore::take ──> answer
//!                                                                │
//!                                                                └─ file ──> inboxes, threads, words, deliveries
//! ```
//!
//! The relay knows ports only: [`RelayStore`](crosstalk_protocol::relay::RelayStore), [`Resolver`](port::Resolver) and
//! [`Keyring`](port::Keyring). Who starts it picks the adapters.

pub mod client;
pub mod config;
pub mod core;
pub mod delivery;
pub mod file;
pub mod metrics;
pub mod outbound;
pub mod port;
mod rate;
pub mod server;
