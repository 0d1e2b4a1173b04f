//! Real servers, displays and terminals for the tests of other crates: started in a place of their own, gone with the
//! value.
//!
//! Only dev-dependencies lead here.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test whose server can't be set up has to fail, and say why"
)]

#[cfg(unix)]
mod certificate;
#[cfg(target_os = "linux")]
pub mod cluster;
#[cfg(target_os = "linux")]
pub mod disk;
#[cfg(unix)]
pub mod dovecot;
pub mod folder;
pub mod http;
pub mod knot;
pub mod loopback;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(unix)]
pub mod postfix;
#[cfg(unix)]
pub mod postgres;
mod program;
pub mod relay;
pub mod tier;
pub mod tmux;
pub mod wait;
pub mod xvfb;
