//! Services of the relay commands: the data folder of a relay, and relays over the network.

pub(crate) mod archive;
pub(crate) mod console;
pub(crate) mod data;
pub(crate) mod inbox;
pub(crate) mod last_start;
pub(crate) mod log;
pub(crate) mod outbox;
pub(crate) mod progress;
pub(crate) mod remote;
pub(crate) mod send;
pub(crate) mod start;
