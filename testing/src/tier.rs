//! The two tiers of the test suite: `cargo xtask test` runs a sample of each long matrix, `cargo xtask test --full`
//! runs the whole of it. `CONTRIBUTING.md` lists the matrices.

use std::env;

/// The variable that `cargo xtask test --full` sets.
const VARIABLE: &str = "CROSSTALK_TEST_FULL";

/// Whether the long matrices run in full.
pub fn is_full() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// The size of a matrix in this run: `sample` in the default tier, `full` in the full one.
pub fn size<T>(sample: T, full: T) -> T {
    if is_full() { full } else { sample }
}
