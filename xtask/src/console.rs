//! The web console in real browsers: its tests, pictures of every page, and the cost of large ones.

use crate::dist::PROFILE;
use crate::ending::{Ending, Failure};
use crate::extension::install_tools;
use crate::invocation::Invocation;
use crate::suite::Tier;
use crate::tree::target;
use std::path::Path;

/// Runs a script of the console with the tools and the program, built with a profile.
fn script(root: &Path, profile: &str, words: &str) -> Result<Invocation, Failure> {
    let tools = install_tools(root)?;
    Invocation::new("cargo build --quiet -p crosstalk-cli --profile")
        .arg(profile)
        .run(root)?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    Ok(
        Invocation::new(&format!("node crates/crosstalk-console/test/{words}"))
            .env("CROSSTALK_NPM", &shown(&tools))
            .env(
                "CROSSTALK_BINARY",
                &shown(&target(root).join(folder).join("crosstalk")),
            ),
    )
}

/// `cargo xtask console-test`: the console in Chromium, and its main path in Firefox, with a real relay.
pub fn test(root: &Path, tier: Tier) -> Result<Ending, Failure> {
    let mut tests = script(root, "dev", "run.mjs")?;
    if tier == Tier::Full {
        tests = tests.env("CROSSTALK_TEST_FULL", "1");
    }
    tests.run(root)
}

/// `cargo xtask screenshots`: every page in light, dark and phone width, in `target/screenshots`.
pub fn screenshots(root: &Path) -> Result<Ending, Failure> {
    script(root, "dev", "screenshots.mjs target/screenshots")?.run(root)?;
    Ok(Ending::Done("target/screenshots".to_owned()))
}

/// `cargo xtask bench console`: what an inbox of 100,000 messages and a conversation of 2,000 cost, in Chromium.
pub fn bench(root: &Path, words: &[String]) -> Result<Ending, Failure> {
    script(root, PROFILE, "measure.mjs")?
        .args(&words.join(" "))
        .run(root)
}
