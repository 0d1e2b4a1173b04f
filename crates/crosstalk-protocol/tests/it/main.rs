//! What a signed message survives, what becomes of it when it does not, and whom the trust store believes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test may fail"
)]

mod accept;
mod archive;
mod audit;
mod bundle;
mod chat;
mod consent;
mod conversation;
mod damage;
mod domain;
mod forgery;
mod hold;
mod index;
mod mutation;
mod name;
mod poll;
mod redact;
mod relay;
mod round;
mod sample;
mod survival;
mod trust;
mod way;
