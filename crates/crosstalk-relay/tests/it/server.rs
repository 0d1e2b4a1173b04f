//! The HTTP server over real sockets.

mod access;
mod batch;
mod blob;
mod code;
mod consent;
mod directory;
mod inbox;
mod limit;
mod message;
mod operation;
mod receive;
