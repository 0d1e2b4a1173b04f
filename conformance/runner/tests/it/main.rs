//! The conformance suite of `conformance/`, the examples of `spec/`, the proof that the suite notices defects, and
//! signatures that others published.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a test may panic and print"
)]

mod case;
mod conformance;
mod implementation;
mod judge;
mod levels;
mod mutants;
mod spec_examples;
mod subset;
mod tampering;
mod vectors;
