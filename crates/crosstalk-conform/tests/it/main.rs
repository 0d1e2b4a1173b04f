//! The suites against implementations that are right, and against some that are wrong.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::result_large_err,
    reason = "a test may fail, and say why it was skipped"
)]

mod program;
mod relay;
