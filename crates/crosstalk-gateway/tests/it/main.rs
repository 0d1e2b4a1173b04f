//! Mail into a real relay: over sockets, from mail servers, and from clients that try to cheat.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test may fail"
)]

mod authentication;
mod house;
mod imap;
mod intake;
mod postfix;
mod session;
