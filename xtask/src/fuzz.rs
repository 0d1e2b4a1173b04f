//! A real fuzz run of every target of `fuzz/`, with the number of executions of each.
//!
//! New inputs go to `fuzz/live/TARGET`, which git ignores; the saved corpus is only read. The crates
//! forbid unsafe code, so no sanitizer is needed to see a fault: it is a panic.

use crate::ending::{Ending, Failure};
use crate::invocation::Invocation;
use crate::toolchain;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::{fs, io};

/// Options of cargo-fuzz, for building and running alike.
const OPTIONS: &str = "--fuzz-dir fuzz --sanitizer none";

/// How many of the last lines of a failed run are shown.
const TAIL: usize = 200;

/// `cargo xtask fuzz`: without a nightly toolchain it fails.
pub fn task(root: &Path, seconds: u32) -> Result<Ending, Failure> {
    let nightly = toolchain::nightly(root)
        .map_err(|reason| Failure::new(reason, format!("cargo xtask fuzz {seconds}")))?;
    run(root, &nightly, seconds)
}

/// The step of `cargo xtask test --full`: without a nightly toolchain it is skipped.
pub fn step(root: &Path, seconds: u32) -> Result<Ending, Failure> {
    match toolchain::nightly(root) {
        Ok(nightly) => run(root, &nightly, seconds),
        Err(reason) => Ok(Ending::Skipped(reason)),
    }
}

fn run(root: &Path, nightly: &str, seconds: u32) -> Result<Ending, Failure> {
    toolchain::fuzzer(root)?;
    let list = Invocation::new(&format!("cargo +{nightly} fuzz list --fuzz-dir fuzz"));
    let targets = list.output(root)?;
    let targets: Vec<&str> = targets.split_whitespace().collect();
    if targets.is_empty() {
        return Err(Failure::new("fuzz/ has no targets", list.to_string()));
    }
    Invocation::new(&format!("cargo +{nightly} fuzz build {OPTIONS}")).run(root)?;
    let mut sum = 0;
    for target in &targets {
        let executions = run_target(root, nightly, target, seconds)?;
        println!("{target:<24}{:>14} executions", grouped(executions));
        sum += executions;
    }
    Ok(Ending::Done(format!(
        "{} executions over {} targets, no crash",
        grouped(sum),
        targets.len()
    )))
}

/// The command that fuzzes one target. The first corpus is the one that libFuzzer writes to.
fn invocation(root: &Path, nightly: &str, target: &str, seconds: u32) -> Invocation {
    let saved = format!("fuzz/corpus/{target}");
    let saved = if root.join(&saved).is_dir() {
        saved
    } else {
        String::new()
    };
    Invocation::new(&format!(
        "cargo +{nightly} fuzz run {OPTIONS} {target} fuzz/live/{target} {saved} -- \
         -max_total_time={seconds} -timeout=10 -print_final_stats=1"
    ))
}

fn run_target(root: &Path, nightly: &str, target: &str, seconds: u32) -> Result<u64, Failure> {
    fs::create_dir_all(root.join("fuzz/live").join(target))?;
    let invocation = invocation(root, nightly, target, seconds);
    let mut child = invocation
        .command(root)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| invocation.not_started(&e))?;
    let mut log = Log::default();
    if let Some(stderr) = child.stderr.take() {
        log.read(BufReader::new(stderr))?;
    }
    let status = child.wait()?;
    let again = match &log.artifact {
        Some(input) => format!("cargo +{nightly} fuzz run {OPTIONS} {target} {input}"),
        None => invocation.to_string(),
    };
    let failed = |what: String| {
        let tail: Vec<String> = log.tail.iter().cloned().collect();
        Failure::new(format!("{}\n\n{target}: {what}", tail.join("\n")), again)
    };
    match log.executions {
        Some(executions) if status.success() => Ok(executions),
        Some(executions) => Err(failed(format!(
            "failed after {executions} executions ({status})"
        ))),
        None => Err(failed(format!(
            "libFuzzer reported no executions ({status})"
        ))),
    }
}

/// The output of libFuzzer: its last lines, and the numbers among them.
#[derive(Default)]
struct Log {
    tail: VecDeque<String>,
    executions: Option<u64>,
    /// The file with the input that failed.
    artifact: Option<String>,
}

impl Log {
    /// Reads to the end; a line may hold any bytes, since a panic may quote the input.
    fn read(&mut self, mut from: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if let Some(number) = text.strip_prefix("stat::number_of_executed_units:") {
                self.executions = number.trim().parse().ok();
            }
            if let Some((_, path)) = text.split_once("Test unit written to ") {
                self.artifact = Some(path.to_owned());
            }
            if self.tail.len() == TAIL {
                self.tail.pop_front();
            }
            self.tail.push_back(text);
            line.clear();
        }
        Ok(())
    }
}

/// `1234567` → `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn counts_are_read_from_the_final_statistics() {
        let mut log = Log::default();
        log.read(&b"INFO: Seed: 1\n\xff\xfe\nstat::number_of_executed_units: 7274212\nstat::peak_rss_mb:  27\n"[..])
            .unwrap();
        assert_eq!(log.executions, Some(7_274_212));
        assert_eq!(log.tail.len(), 4);
    }

    #[test]
    fn the_failing_input_is_named() {
        let mut log = Log::default();
        let line =
            "artifact_prefix='fuzz/artifacts/x/'; Test unit written to fuzz/artifacts/x/crash-1\n";
        log.read(line.as_bytes()).unwrap();
        assert_eq!(log.artifact.as_deref(), Some("fuzz/artifacts/x/crash-1"));
    }

    #[test]
    fn a_run_without_statistics_has_no_count_and_a_short_tail() {
        let mut log = Log::default();
        log.read("#1 pulse\n".repeat(1000).as_bytes()).unwrap();
        assert_eq!(log.executions, None);
        assert_eq!(log.tail.len(), TAIL);
    }

    #[test]
    fn the_saved_corpus_comes_second_and_only_if_there_is_one() {
        let scratch = Scratch::new();
        let line =
            |scratch: &Scratch| invocation(scratch.path(), "nightly", "strict", 20).to_string();
        assert!(line(&scratch).contains(" strict fuzz/live/strict -- -max_total_time=20 "));
        scratch.write("fuzz/corpus/strict/seed", "x");
        assert!(line(&scratch).contains(" strict fuzz/live/strict fuzz/corpus/strict -- "));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }
}
