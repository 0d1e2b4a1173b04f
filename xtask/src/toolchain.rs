//! Programs of this machine that tasks need, and their installation.

use crate::ending::Failure;
use crate::invocation::Invocation;
use std::env;
use std::path::Path;

/// Makes sure that a component of the toolchain is there: `probe` succeeds when it is.
pub fn component(root: &Path, name: &str, probe: &str) -> Result<(), Failure> {
    if Invocation::new(probe).succeeds(root) {
        return Ok(());
    }
    Invocation::new(&format!("rustup component add {name}")).run(root)?;
    Ok(())
}

/// The name of an installed nightly toolchain, as it follows `cargo +`, or why there is none.
pub fn nightly(root: &Path) -> Result<String, String> {
    let list = Invocation::new("rustup toolchain list")
        .output(root)
        .map_err(|_| {
            "rustup is not installed, so no nightly toolchain was looked for".to_owned()
        })?;
    find_nightly(&list).ok_or_else(|| {
        "no nightly toolchain is installed (`rustup toolchain install nightly`)".to_owned()
    })
}

/// The plain `nightly` if the list has it, else the first dated one.
fn find_nightly(list: &str) -> Option<String> {
    let names = || {
        list.lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| *name == "nightly" || name.starts_with("nightly-"))
    };
    let dated = |name: &str| {
        name.trim_start_matches("nightly-")
            .starts_with(|c: char| c.is_ascii_digit())
    };
    if names().any(|name| !dated(name)) {
        return Some("nightly".to_owned());
    }
    names().next().map(str::to_owned)
}

/// Makes sure that cargo-fuzz and the C++ compiler for libFuzzer are there.
pub fn fuzzer(root: &Path) -> Result<(), Failure> {
    if !Invocation::new("cargo fuzz --version").succeeds(root) {
        Invocation::new("cargo install --locked cargo-fuzz").run(root)?;
    }
    if env::var_os("CXX").is_some() || Invocation::new("c++ --version").succeeds(root) {
        return Ok(());
    }
    if !Invocation::new("apt-get --version").succeeds(root) {
        return Err(Failure::new(
            "libFuzzer needs a C++ compiler and this machine has none: install g++ or clang",
            "c++ --version",
        ));
    }
    Invocation::new("apt-get update").run(root)?;
    Invocation::new("apt-get install --yes --no-install-recommends g++")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run(root)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::find_nightly;

    #[test]
    fn finds_a_nightly_in_the_list() {
        let both = "stable-x86_64-unknown-linux-gnu (active, default)\n\
                    nightly-2026-01-02-x86_64-unknown-linux-gnu\nnightly-x86_64-unknown-linux-gnu\n";
        assert_eq!(find_nightly(both).as_deref(), Some("nightly"));
        let dated = "nightly-2026-01-02-x86_64-unknown-linux-gnu (default)\n";
        assert_eq!(
            find_nightly(dated).as_deref(),
            Some("nightly-2026-01-02-x86_64-unknown-linux-gnu")
        );
        assert_eq!(
            find_nightly("stable-x86_64-unknown-linux-gnu (default)\n1.95.0\n"),
            None
        );
        assert_eq!(find_nightly("no installed toolchains\n"), None);
    }
}
