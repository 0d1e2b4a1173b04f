//! The web console in real browsers: its tests, and pictures of every page.

use crate::binary;
use crate::ending::{Ending, Failure};
use crate::extension::install_tools;
use crate::invocation::Invocation;
use crate::suite::Tier;
use std::path::Path;

/// Runs a script of the console with the tools and the program.
fn script(root: &Path, words: &str) -> Result<Invocation, Failure> {
    let tools = install_tools(root)?;
    let program = binary::program(root)?;
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    Ok(
        Invocation::new(&format!("node crates/crosstalk-console/test/{words}"))
            .env("CROSSTALK_NPM", &shown(&tools))
            .env("CROSSTALK_BINARY", &shown(&program)),
    )
}

/// `cargo xtask console-test`: the console in Chromium, and its main path in Firefox, with a real relay.
pub fn test(root: &Path, tier: Tier) -> Result<Ending, Failure> {
    let mut tests = script(root, "run.mjs")?;
    if tier == Tier::Full {
        tests = tests.env("CROSSTALK_TEST_FULL", "1");
    }
    tests.run(root)
}

/// `cargo xtask screenshots`: every page in light, dark and phone width, in `target/screenshots`.
pub fn screenshots(root: &Path) -> Result<Ending, Failure> {
    script(root, "screenshots.mjs target/screenshots")?.run(root)?;
    Ok(Ending::Done("target/screenshots".to_owned()))
}
