//! `cargo xtask test`: the whole check, step by step, until one fails.

use crate::binary::{self, Binary};
use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::memory::Memory;
use crate::parallel::{self, Job, Report};
use crate::{
    console, dist, extension, fuzz, js, layers, mcp_client, names, package, python, registry, spec,
    toolchain,
};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How long each fuzz target runs in the full check; `cargo xtask fuzz` runs longer.
const FUZZ_SECONDS: u32 = 30;

/// The heading in `CONTRIBUTING.md` below which stands what the full check adds.
const ADDED: &str = "## What the full check adds";

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Every behaviour once, and a sample of each long matrix.
    Default,
    /// The long matrices as well.
    Full,
}

/// One step: its name, the command that runs it alone, and what it does.
struct Step {
    name: &'static str,
    again: &'static str,
    /// The lowest tier that it belongs to.
    tier: Tier,
    run: fn(&Path, Tier) -> Result<Ending, Failure>,
}

impl Step {
    const fn new(
        name: &'static str,
        again: &'static str,
        run: fn(&Path, Tier) -> Result<Ending, Failure>,
    ) -> Self {
        Self {
            name,
            again,
            tier: Tier::Default,
            run,
        }
    }

    const fn only_in_full(self) -> Self {
        Self {
            tier: Tier::Full,
            ..self
        }
    }
}

const STEPS: &[Step] = &[
    Step::new("format", "cargo fmt --all --check", |root, _| format(root)),
    Step::new("generated source", "cargo xtask generate", |root, _| {
        generated(root)
    }),
    Step::new("layers", "cargo xtask layers", |root, _| layers::task(root)),
    Step::new("names", "cargo xtask names", |root, _| names::task(root)),
    Step::new("spec", "cargo xtask spec", |root, _| {
        spec::task(root, false)
    }),
    Step::new(
        "clippy, tools",
        "cargo clippy --workspace --all-targets -- -D warnings",
        |root, _| clippy_and_tools(root),
    ),
    Step::new(
        "build of tests",
        "cargo test --workspace --no-run",
        |root, _| binary::build(root),
    ),
    Step::new("tests", "cargo test --workspace", tests),
    Step::new(
        "documentation",
        "cargo doc --workspace --no-deps",
        documentation,
    ),
    Step::new("package", "cargo xtask dist", |root, tier| {
        let profile = match tier {
            Tier::Default => dist::TESTS,
            Tier::Full => dist::PROFILE,
        };
        dist::step(root, profile)
    }),
    Step::new("Python package", "cargo xtask python-test", python::test),
    Step::new("JavaScript package", "cargo xtask js-test", js::test),
    Step::new("extension", "cargo xtask extension-test", extension::test),
    Step::new("console", "cargo xtask console-test", console::test),
    Step::new("fuzz", "cargo xtask fuzz 30", |root, _| {
        fuzz::step(root, FUZZ_SECONDS)
    })
    .only_in_full(),
];

/// How many tests of a binary run at once, for each core. Most tests of servers wait for programs and disks.
const THREADS_PER_CORE: usize = 2;

/// The test binaries that take longest, slowest first. They start first, so that no core is idle at the end.
const SLOW: &[(&str, &str)] = &[
    ("crosstalk-cli", "--test it"),
    ("crosstalk-relay", "--test it"),
    ("crosstalk-protocol", "--test it"),
    ("crosstalk-conform", "--test it"),
    ("crosstalk-conformance", "--test it"),
    ("crosstalk-store", "--test it"),
    ("crosstalk-fuzz-properties", "--test it"),
    ("crosstalk-dns", "--test it"),
];

/// `cargo xtask test`.
pub fn run(root: &Path, tier: Tier) -> Result<Ending, Failure> {
    let began = Instant::now();
    if tier == Tier::Full {
        let guide = fs::read_to_string(root.join("CONTRIBUTING.md"))?;
        println!("{}", section(&guide, ADDED));
    }
    let steps: Vec<&Step> = STEPS
        .iter()
        .filter(|step| step.tier == Tier::Default || tier == Tier::Full)
        .collect();
    let (rows, failure) = walk(root, tier, &steps);
    println!("\n{}", table(&rows, began.elapsed()));
    match failure {
        // The fault stands above; the last line says how to see it again.
        Some(failure) => Err(Failure {
            message: "the check failed".to_owned(),
            ..failure
        }),
        None if tier == Tier::Full => Ok(Ending::Done("all is well".to_owned())),
        None => Ok(Ending::Done(
            "all is well; `cargo xtask test --full` adds the long matrices".to_owned(),
        )),
    }
}

/// The text below a heading, up to the next one.
fn section<'t>(text: &'t str, heading: &str) -> &'t str {
    let Some((_, after)) = text.split_once(heading) else {
        return "";
    };
    after.split("\n## ").next().unwrap_or_default().trim()
}

fn format(root: &Path) -> Result<Ending, Failure> {
    toolchain::component(root, "rustfmt", "cargo fmt --version")?;
    Invocation::new("cargo fmt --all --check").run(root)?;
    // The fuzz targets are a workspace of their own, because they need nightly.
    if root.join("fuzz/Cargo.toml").is_file() {
        Invocation::new("cargo fmt --manifest-path fuzz/Cargo.toml --check").run(root)?;
    }
    Ok(Ending::Done(String::new()))
}

fn generated(root: &Path) -> Result<Ending, Failure> {
    let fresh = registry::source(root)?;
    match fs::read_to_string(root.join(registry::GENERATED)) {
        Ok(kept) if kept == fresh => Ok(Ending::Done(String::new())),
        _ => Err(Failure::new(
            format!(
                "{} is not what spec/registry/*.toml says: run `cargo xtask generate`",
                registry::GENERATED
            ),
            "cargo xtask generate && git diff --stat",
        )),
    }
}

/// Installs the tools while clippy compiles: one waits for the network, the other needs the processor.
fn clippy_and_tools(root: &Path) -> Result<Ending, Failure> {
    thread::scope(|scope| {
        let tools = scope.spawn(|| install_tools(root));
        clippy(root)?;
        let tools = tools.join();
        tools.unwrap_or_else(|_| Err("installing the tools panicked".to_owned().into()))
    })
}

/// Installs what the later steps need: packages of the system, Python programs, and programs from npm.
fn install_tools(root: &Path) -> Result<Ending, Failure> {
    let mut notes = Vec::new();
    for step in [package::step, python::step, mcp_client::step] {
        match step(root)? {
            Ending::Done(note) | Ending::Skipped(note) if note.is_empty() => {}
            Ending::Done(note) | Ending::Skipped(note) => notes.push(note),
        }
    }
    js::install_tools(root)?;
    extension::install_tools(root)?;
    Ok(Ending::Done(notes.join("; ")))
}

fn clippy(root: &Path) -> Result<Ending, Failure> {
    toolchain::component(root, "clippy", "cargo clippy --version")?;
    Invocation::new("cargo clippy --workspace --all-targets -- -D warnings").run(root)
}

fn tests(root: &Path, tier: Tier) -> Result<Ending, Failure> {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let mut binaries = binary::list(root)?;
    if let Some((package, selector)) = SLOW
        .iter()
        .find(|slow| !binaries.iter().any(|b| is_binary(b, slow)))
    {
        return Err(
            format!("there is no test binary `{package} {selector}`: correct `SLOW`").into(),
        );
    }
    binaries.sort_by_key(rank);
    let memory = Memory::new(root);
    if let Err(reason) = &memory {
        println!("scratch folders are on disk: {reason}");
    }
    let mut jobs: Vec<Job> = binaries
        .iter()
        .map(|binary| Job::of_binary(binary, THREADS_PER_CORE * cores))
        .collect();
    jobs.push(Job::of_doc_tests(root));
    for job in &mut jobs {
        if let Ok(memory) = &memory {
            job.set_scratch(memory.path());
        }
        job.set_tier(tier);
    }
    let reports = parallel::run(jobs, cores);
    match parallel::complaint(&reports) {
        Some(complaint) => Err(complaint.into()),
        None => {
            let passed: usize = reports.iter().map(Report::passed).sum();
            Ok(Ending::Done(format!("{passed} tests")))
        }
    }
}

/// The place of a binary in the order of starting.
fn rank(binary: &Binary) -> usize {
    let place = SLOW.iter().position(|slow| is_binary(binary, slow));
    place.unwrap_or(SLOW.len())
}

fn is_binary(binary: &Binary, (package, selector): &(&str, &str)) -> bool {
    binary.package == *package && binary.selector == *selector
}

fn documentation(root: &Path, tier: Tier) -> Result<Ending, Failure> {
    let crates = match tier {
        Tier::Default => "-p crosstalk-envelope",
        Tier::Full => "--workspace",
    };
    Invocation::new(&format!("cargo doc {crates} --no-deps"))
        .env("RUSTDOCFLAGS", "-D warnings")
        .run(root)
}

/// A line of the closing table.
struct Row {
    name: &'static str,
    /// `None` if an earlier step failed and this one did not run.
    time: Option<Duration>,
    result: String,
}

/// Runs the steps in order up to the first that fails.
fn walk(root: &Path, tier: Tier, steps: &[&Step]) -> (Vec<Row>, Option<Failure>) {
    let mut rows = Vec::new();
    let mut failure = None;
    for (number, step) in steps.iter().enumerate() {
        if failure.is_some() {
            rows.push(Row {
                name: step.name,
                time: None,
                result: "not run".to_owned(),
            });
            continue;
        }
        println!("\n== {}/{} {}", number + 1, steps.len(), step.name);
        let began = Instant::now();
        let ending = (step.run)(root, tier);
        let time = began.elapsed();
        let result = match ending {
            Ok(Ending::Done(note)) if note.is_empty() => "ok".to_owned(),
            Ok(Ending::Done(note)) => format!("ok: {note}"),
            Ok(Ending::Skipped(reason)) => format!("skipped: {reason}"),
            Err(mut failed) => {
                eprintln!("{}", failed.message);
                failed.again.get_or_insert_with(|| step.again.to_owned());
                failure = Some(failed);
                "FAILED".to_owned()
            }
        };
        println!("== {}: {result} ({:.1} s)", step.name, time.as_secs_f64());
        rows.push(Row {
            name: step.name,
            time: Some(time),
            result,
        });
    }
    (rows, failure)
}

fn table(rows: &[Row], whole: Duration) -> String {
    let mut out = format!("{:<18}{:>9}  result\n", "step", "time");
    for row in rows {
        let time = row
            .time
            .map_or("-".to_owned(), |t| format!("{:.1} s", t.as_secs_f64()));
        let _ = writeln!(out, "{:<18}{time:>9}  {}", row.name, row.result);
    }
    let _ = write!(out, "{:<18}{:>7.1} s", "in all", whole.as_secs_f64());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const GOOD: &Step = &Step::new("good", "-", |_, _| Ok(Ending::Done("3 things".to_owned())));
    const SKIPPED: &Step = &Step::new("skipped", "-", |_, _| {
        Ok(Ending::Skipped("no nightly".to_owned()))
    });
    const BAD: &Step = &Step::new("bad", "cargo bad", |_, _| {
        Err(std::io::Error::other("broken").into())
    });

    #[test]
    fn stops_at_the_first_failure_and_says_how_to_see_it_again() {
        let (rows, failure) = walk(Path::new("."), Tier::Default, &[GOOD, SKIPPED, BAD, GOOD]);
        let failure = failure.unwrap();
        assert_eq!(failure.to_string(), "broken\nto see it again: cargo bad");
        let results: Vec<&str> = rows.iter().map(|r| r.result.as_str()).collect();
        assert_eq!(
            results,
            ["ok: 3 things", "skipped: no nightly", "FAILED", "not run"]
        );
        let table = table(&rows, Duration::from_millis(1500));
        assert!(
            table.contains("good                      -  not run"),
            "{table}"
        );
        assert!(table.ends_with("in all                1.5 s"), "{table}");
    }

    #[test]
    fn all_steps_run_when_none_fails() {
        let (rows, failure) = walk(Path::new("."), Tier::Default, &[GOOD, GOOD]);
        assert!(failure.is_none());
        assert!(rows.iter().all(|r| r.time.is_some()));
    }

    #[test]
    fn the_guide_says_what_the_full_check_adds() {
        let guide = fs::read_to_string(crate::root().join("CONTRIBUTING.md")).unwrap();
        let added = section(&guide, ADDED);
        for matrix in [
            "kill",
            "power",
            "Schemathesis",
            "hostile",
            "fuzz",
            "documentation",
        ] {
            assert!(added.contains(matrix), "{matrix}: {added}");
        }
        assert!(!added.contains("\n## "));
        assert_eq!(section("none", ADDED), "");
    }

    #[test]
    fn stale_generated_source_is_seen() {
        let root = crate::root();
        let scratch = Scratch::new();
        for name in [
            "errors",
            "intents",
            "keys",
            "namespaces",
            "redactions",
            "rules",
            "schemes",
        ] {
            let path = format!("spec/registry/{name}.toml");
            scratch.write(&path, fs::read(root.join(&path)).unwrap());
        }
        assert!(generated(scratch.path()).is_err(), "no file");
        let fresh = registry::source(scratch.path()).unwrap();
        scratch.write(registry::GENERATED, &fresh);
        assert!(generated(scratch.path()).is_ok());
        scratch.write(registry::GENERATED, fresh.replacen("ENV-001", "ENV-999", 1));
        let failure = generated(scratch.path()).unwrap_err();
        assert!(failure.message.contains("cargo xtask generate"));
    }
}
