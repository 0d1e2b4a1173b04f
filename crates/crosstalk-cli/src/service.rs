//! What several commands need. A command calls services; it never calls another command.
//!
//! ```text
//! settings   what a person wants without saying it each time
//! workspace  settings, keys, trust and the kept messages, opened for one command
//! compose    what a message says         deliver   signed, kept, printed, copied
//! recipient  whom a typed name means     intake    verified, threaded, kept
//! consent    consent of messages in and out
//! relay      one's own relay on disk, and others over the network
//! home       keys and trust on disk      passphrase  what opens a key, never an argument
//! dns        asking domains, on request
//! clipboard  copying and pasting         editor    a text that a person writes
//! ```

pub(crate) mod clipboard;
pub(crate) mod compose;
pub(crate) mod consent;
pub(crate) mod deliver;
pub(crate) mod dns;
pub(crate) mod editor;
pub(crate) mod home;
pub(crate) mod intake;
pub(crate) mod passphrase;
pub(crate) mod recipient;
pub(crate) mod relay;
pub(crate) mod settings;
pub(crate) mod workspace;
