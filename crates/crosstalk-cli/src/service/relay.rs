//! What the commands of the relay have in common: its data folder, and the way to one over the network.

pub(crate) mod answer;
pub(crate) mod archive;
pub(crate) mod backoff;
pub(crate) mod data;
pub(crate) mod error;
pub(crate) mod hint;
pub(crate) mod inbox;
pub(crate) mod integrity;
pub(crate) mod keyring;
pub(crate) mod last_start;
pub(crate) mod log;
pub(crate) mod outbox;
pub(crate) mod progress;
pub(crate) mod reach;
pub(crate) mod remote;
pub(crate) mod resolver;
pub(crate) mod secret;
pub(crate) mod send;
pub(crate) mod start;
pub(crate) mod submit;
pub(crate) mod token;
