//! The relay over real stores and real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::result_large_err,
    reason = "a test may fail, and say why it was skipped"
)]

mod consent;
mod core;
mod delivery;
mod dns;
mod house;
mod http;
mod replay;
mod server;
mod shared;
mod storage;
mod trust;
mod variant;
