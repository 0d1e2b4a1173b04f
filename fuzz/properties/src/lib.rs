//! Properties that hold for every input.
//!
//! Each function is the body of a fuzz target of the same name; `cargo test` runs it over the saved corpus
//! on the stable toolchain, `cargo xtask fuzz` lets libFuzzer look for more.

#![allow(
    clippy::panic,
    reason = "a broken property panics: that is how a fuzzer sees it"
)]

mod canonical;
mod random;
mod reading;
mod trust;
mod writing;

pub use canonical::Meaning;
pub use random::Random;
pub use reading::{paste, strict};
pub use trust::{signed_message, trust};
pub use writing::{builder, json, values};

/// A fuzz target: its name and its body.
pub type Target = (&'static str, fn(&[u8]));

/// The fuzz targets, each with a folder `fuzz/corpus/NAME`.
pub const TARGETS: [Target; 6] = [
    ("strict", strict),
    ("paste", paste),
    ("builder", builder),
    ("json", json),
    ("values", values),
    ("trust", trust),
];

/// The text of a fuzz input; other bytes have nothing to say here.
fn text(data: &[u8]) -> Option<&str> {
    crosstalk_envelope::decode(data).ok()
}
