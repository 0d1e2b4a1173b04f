//! The benchmark of the npm package, which Node.js runs.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use std::path::Path;

/// `cargo xtask bench js`: the package is built first, because it is measured.
pub fn bench(root: &Path, words: &[String]) -> Result<Ending, Failure> {
    Invocation::new("cargo xtask js").run(root)?;
    let packages = "npm install --prefix bench/js --no-audit --no-fund --no-package-lock";
    Invocation::new(packages).run(root)?;
    Invocation::new(&format!("node bench/js/main.mjs {}", words.join(" "))).run(root)
}
