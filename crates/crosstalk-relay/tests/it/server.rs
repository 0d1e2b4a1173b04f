//! The HTTP server over real sockets.

mod access;
mod approval;
mod audit;
mod batch;
mod blob;
mod code;
mod consent;
mod console;
mod courier;
mod directory;
mod inbox;
mod limit;
mod listener;
mod message;
mod name;
mod operation;
mod pairing;
mod poll;
mod reading;
mod receive;
mod replay;
mod revocation;
