//! The HTTP server over real sockets.

mod access;
mod approval;
mod batch;
mod blob;
mod code;
mod directory;
mod inbox;
mod limit;
mod message;
mod operation;
mod poll;
mod receive;
