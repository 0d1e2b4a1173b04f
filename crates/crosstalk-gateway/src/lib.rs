//! The mail gateway of a relay: it takes mail in by LMTP, SMTP and IMAP, and hands the messages in it to the relay.
//!
//! ```text
//! LMTP, SMTP ── session, data ──┐                                                        ┌─ Relay::take_in, before 250
//!                               ├── MailIntake::receive ── authenticate, read, decide ──┤
//! IMAP ── imap ─────────────────┘                                                        └─ 5xx, 4xx, or nothing
//! ```
//!
//! The rules are in `crosstalk-email`, which does no I/O; this crate has the network. Implements MAI-064 and MAI-070 to MAI-074.

pub mod authenticate;
pub mod data;
pub mod gateway;
pub mod imap;
pub mod intake;
pub mod listener;
pub mod session;
