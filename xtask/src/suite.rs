//! `cargo xtask test`: the whole check, step by step, until one fails.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::{fuzz, layers, package, python, registry, spec, toolchain};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How many executions each fuzz target gets here, always the same ones; `cargo xtask fuzz` looks for more.
const FUZZ_RUNS: u32 = 40_000;

/// One step: its name, the command that runs it alone, and what it does.
struct Step {
    name: &'static str,
    again: &'static str,
    run: fn(&Path) -> Result<Ending, Failure>,
}

const STEPS: &[Step] = &[
    Step {
        name: "format",
        again: "cargo fmt --all --check",
        run: format,
    },
    Step {
        name: "generated source",
        again: "cargo xtask generate",
        run: generated,
    },
    Step {
        name: "layers",
        again: "cargo xtask layers",
        run: layers::task,
    },
    Step {
        name: "spec",
        again: "cargo xtask spec",
        run: |root| spec::task(root, false),
    },
    Step {
        name: "clippy",
        again: "cargo clippy --workspace --all-targets -- -D warnings",
        run: clippy,
    },
    Step {
        name: "packages",
        again: "apt-get install knot knot-dnsutils",
        run: package::step,
    },
    Step {
        name: "Python programs",
        again: "cargo xtask test",
        run: python::step,
    },
    Step {
        name: "tests",
        again: "cargo test --workspace",
        run: tests,
    },
    Step {
        name: "documentation",
        again: "cargo doc --workspace --no-deps",
        run: documentation,
    },
    Step {
        name: "fuzz",
        again: "cargo xtask fuzz 20",
        run: |root| fuzz::step(root, FUZZ_RUNS),
    },
];

/// `cargo xtask test`.
pub fn run(root: &Path) -> Result<Ending, Failure> {
    let began = Instant::now();
    let (rows, failure) = walk(root, STEPS);
    println!("\n{}", table(&rows, began.elapsed()));
    match failure {
        // What was wrong stands above, where it happened; the last line says how to get there.
        Some(failure) => Err(Failure {
            message: "the check failed".to_owned(),
            ..failure
        }),
        None => Ok(Ending::Done("all is well".to_owned())),
    }
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

fn clippy(root: &Path) -> Result<Ending, Failure> {
    toolchain::component(root, "clippy", "cargo clippy --version")?;
    Invocation::new("cargo clippy --workspace --all-targets -- -D warnings").run(root)
}

fn tests(root: &Path) -> Result<Ending, Failure> {
    Invocation::new("cargo test --workspace").run(root)
}

fn documentation(root: &Path) -> Result<Ending, Failure> {
    Invocation::new("cargo doc --workspace --no-deps")
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
fn walk(root: &Path, steps: &[Step]) -> (Vec<Row>, Option<Failure>) {
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
        let ending = (step.run)(root);
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

    const GOOD: Step = Step {
        name: "good",
        again: "-",
        run: |_| Ok(Ending::Done("3 things".to_owned())),
    };
    const SKIPPED: Step = Step {
        name: "skipped",
        again: "-",
        run: |_| Ok(Ending::Skipped("no nightly".to_owned())),
    };
    const BAD: Step = Step {
        name: "bad",
        again: "cargo bad",
        run: |_| Err(std::io::Error::other("broken").into()),
    };

    #[test]
    fn stops_at_the_first_failure_and_says_how_to_see_it_again() {
        let (rows, failure) = walk(Path::new("."), &[GOOD, SKIPPED, BAD, GOOD]);
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
        let (rows, failure) = walk(Path::new("."), &[GOOD, GOOD]);
        assert!(failure.is_none());
        assert!(rows.iter().all(|r| r.time.is_some()));
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
