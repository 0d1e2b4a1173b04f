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
mod levels;
mod mutants;
mod program;
mod spec_examples;
mod tampering;
mod vectors;
