//! What several commands need. A command calls services; it never calls another command.
//!
//! ```text
//! settings   what a person wants without saying it each time
//! workspace  settings, keys, trust and the kept messages, opened for one command
//! lookup     kept messages and threads, by what a person types
//! compose    what a message says         deliver   signed, kept, printed, copied
//! reply      the answer to a message     recipient whom a typed name means
//! intake     verified, threaded, kept
//! relocate   another question for an answer that was filed with the wrong one
//! agent      agents on this machine, and what they send and read
//! consent    consent of messages in and out
//! poll       a poll that is kept here, with its answers
//! relay      one's own relay on disk, and others over the network
//! setup      settings of MCP clients, changed in one place
//! home       keys and trust on disk      passphrase  what opens a key, never an argument
//! signing    signed texts, checked       dns       asking domains, on request
//! clipboard  copying and pasting         editor    a text that a person writes
//! audit_log  the log of a relay, here or over the network      audit_bundle  the files that an auditor checks
//! ```

pub(crate) mod agent;
pub(crate) mod audit_bundle;
pub(crate) mod audit_log;
pub(crate) mod clipboard;
pub(crate) mod compose;
pub(crate) mod consent;
pub(crate) mod deliver;
pub(crate) mod dismiss;
pub(crate) mod dns;
pub(crate) mod editor;
pub(crate) mod home;
pub(crate) mod intake;
pub(crate) mod lookup;
pub(crate) mod passphrase;
pub(crate) mod poll;
pub(crate) mod recipient;
pub(crate) mod relay;
pub(crate) mod relocate;
pub(crate) mod reply;
pub(crate) mod settings;
pub(crate) mod setup;
pub(crate) mod signing;
pub(crate) mod workspace;
