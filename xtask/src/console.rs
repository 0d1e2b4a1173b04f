//! The web console in real browsers: its tests, pictures of every page, and the cost of large ones.

use crate::ending::{Ending, Failure};
use crate::extension::install_tools;
use crate::invocation::Invocation;
use crate::suite::Tier;
use crate::tree::target;
use crate::{binary, dist};
use std::path::Path;

/// Runs a script of the console with the tools and a program.
fn script(root: &Path, program: &Path, words: &str) -> Result<Invocation, Failure> {
    let tools = install_tools(root)?;
    let script = format!("node crates/crosstalk-console/test/{words}");
    Ok(Invocation::new(&script)
        .env_path("CROSSTALK_NPM", &tools)
        .env_path("CROSSTALK_BINARY", program))
}

/// `cargo xtask console-test`: the console in Chromium, and its main path in Firefox, with a real relay.
pub fn test(root: &Path, tier: Tier) -> Result<Ending, Failure> {
    let mut tests = script(root, &binary::program(root)?, "run.mjs")?;
    if tier == Tier::Full {
        tests = tests.env("CROSSTALK_TEST_FULL", "1");
    }
    tests.run(root)
}

/// `cargo xtask screenshots`: every page in light, dark and phone width, in `target/screenshots`.
pub fn screenshots(root: &Path) -> Result<Ending, Failure> {
    let words = "screenshots.mjs target/screenshots";
    script(root, &binary::program(root)?, words)?.run(root)?;
    Ok(Ending::Done("target/screenshots".to_owned()))
}

/// `cargo xtask bench console`: what an inbox of 100,000 messages and a conversation of 2,000 cost, in Chromium.
pub fn bench(root: &Path, words: &[String]) -> Result<Ending, Failure> {
    Invocation::new("cargo build --quiet -p crosstalk-cli --profile")
        .arg(dist::PROFILE)
        .run(root)?;
    let program = target(root).join(dist::PROFILE).join("crosstalk");
    script(root, &program, "measure.mjs")?
        .args(&words.join(" "))
        .run(root)
}
