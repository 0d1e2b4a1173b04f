//! What the commands of the relay have in common: its data folder, and the way to one over the network.

pub(crate) mod archive;
pub(crate) mod data;
pub(crate) mod inbox;
pub(crate) mod last_start;
pub(crate) mod log;
pub(crate) mod outbox;
pub(crate) mod progress;
pub(crate) mod remote;
pub(crate) mod send;
pub(crate) mod start;
