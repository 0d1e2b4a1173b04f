//! The project's own commands: `cargo xtask --help`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task talks to the person who started it"
)]

mod binary;
mod console;
mod dist;
mod ending;
mod extension;
mod fuzz;
mod invocation;
mod js;
mod layers;
mod lines;
mod mcp_client;
mod memory;
mod names;
mod npm;
mod package;
mod parallel;
mod python;
mod registry;
#[cfg(test)]
mod scratch;
mod source;
mod spec;
mod suite;
mod task;
mod toolchain;
mod tree;

use ending::{Ending, Failure};
use invocation::Invocation;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};
use task::Task;

/// The folder of the workspace, wherever the command was started.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args_os()
        .skip(1)
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    let task = match Task::parse(&arguments) {
        Ok(task) => task,
        Err(usage) => {
            eprintln!("xtask: {usage}\n`cargo xtask --help` lists the tasks");
            return ExitCode::from(2);
        }
    };
    match perform(&task, &root()) {
        Ok(Ending::Done(note) | Ending::Skipped(note)) => {
            if !note.is_empty() {
                println!("{note}");
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn perform(task: &Task, root: &Path) -> Result<Ending, Failure> {
    match task {
        Task::Help => Ok(Ending::Done(task::help())),
        Task::Test { tier } => suite::run(root, *tier),
        Task::Generate => generate(root),
        Task::Spec { verbose } => spec::task(root, *verbose),
        Task::Layers => layers::task(root),
        Task::Lines { base } => lines::task(root, base.as_deref()),
        Task::Names => names::task(root),
        Task::Fuzz { seconds } => fuzz::task(root, *seconds),
        Task::Bench { words } if words.first().is_some_and(|word| word == "python") => {
            python::bench(root, words.get(1..).unwrap_or_default())
        }
        Task::Bench { words } if words.first().is_some_and(|word| word == "js") => {
            js::bench(root, words.get(1..).unwrap_or_default())
        }
        Task::Bench { words } if words.first().is_some_and(|word| word == "console") => {
            console::bench(root, words.get(1..).unwrap_or_default())
        }
        Task::Bench { words } => {
            if task::needs_peers(words) {
                package::install_peers(root)?;
                python::install_peers(root)?;
            }
            // The program itself is measured, too. One build of both, because two would differ in the features of what they share.
            Invocation::new("cargo build -p crosstalk-cli -p crosstalk-bench --profile")
                .arg(dist::PROFILE)
                .run(root)?;
            let bench = tree::target(root)
                .join(dist::PROFILE)
                .join("crosstalk-bench");
            Invocation::program(&bench).args(&words.join(" ")).run(root)
        }
        Task::Js => js::task(root),
        Task::JsTest { tier } => js::test(root, *tier),
        Task::Extension => extension::task(root),
        Task::ExtensionTest { tier } => extension::test(root, *tier),
        Task::ConsoleTest { tier } => console::test(root, *tier),
        Task::Screenshots => console::screenshots(root),
        Task::Dist { profile } => dist::step(root, profile),
        Task::Python => python::build(root),
        Task::PythonTest { tier } => python::test(root, *tier),
        Task::RelayKill { cycles } => {
            Invocation::new("cargo test -p crosstalk-cli --test it -- durability::kill --nocapture")
                .env("CROSSTALK_KILL_CYCLES", &cycles.to_string())
                .run(root)
        }
        Task::RelayPower { cuts } => {
            let test = "durability::recorded::acknowledged";
            Invocation::new(&format!(
                "cargo test -p crosstalk-cli --test it -- {test} --nocapture"
            ))
            .env("CROSSTALK_POWER_CUTS", &cuts.to_string())
            .run(root)
        }
        Task::Ha {
            failovers,
            partitions,
        } => {
            package::install_cluster(root)?;
            python::install_cluster(root)?;
            let tests = ["fail_overs", "without", "relays"].map(|t| format!("availability::{t}"));
            Invocation::new("cargo test -p crosstalk-cli --test it -- --nocapture --test-threads=1")
                .args(&tests.join(" "))
                .env("CROSSTALK_FAILOVERS", &failovers.to_string())
                .env("CROSSTALK_PARTITIONS", &partitions.to_string())
                .run(root)
        }
        Task::Transcripts => Invocation::new("cargo test -p crosstalk-cli")
            .env("TRYCMD", "overwrite")
            .run(root),
    }
}

fn generate(root: &Path) -> Result<Ending, Failure> {
    toolchain::component(root, "rustfmt", "cargo fmt --version")?;
    let source = registry::source(root)?;
    let path = root.join(registry::GENERATED);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, source)?;
    Ok(Ending::Done(format!("wrote {}", registry::GENERATED)))
}
