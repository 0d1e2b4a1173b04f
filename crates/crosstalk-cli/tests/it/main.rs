//! The command line, as a person and as a script meet it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "helpers of tests are tests"
)]

#[cfg(target_os = "linux")]
mod availability;
#[cfg(target_os = "linux")]
mod chains;
#[cfg(target_os = "linux")]
mod clipboard;
mod config;
mod conform;
mod consent;
mod conversation;
mod demo;
mod dns;
#[cfg(unix)]
mod durability;
mod forgery;
mod help;
mod hint;
mod hostile;
mod key;
mod mcp;
mod misaddressed;
mod mistake;
#[cfg(unix)]
mod openapi;
mod picture;
#[cfg(unix)]
mod pressure;
mod relay;
mod resolve;
mod run;
mod schema;
mod several;
#[cfg(target_os = "linux")]
mod shared;
mod story;
mod stream;
mod terminal;
mod transcript;
mod verify;
mod width;
