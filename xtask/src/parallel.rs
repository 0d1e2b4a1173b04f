//! Runs test binaries side by side, and lists what failed with the command that runs it alone.

use crate::binary::Binary;
use crate::invocation::Invocation;
use crate::suite::Tier;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The variable that `crosstalk_testing::tier` reads.
const FULL: &str = "CROSSTALK_TEST_FULL";

/// The time between two lines about what still runs.
const PROGRESS: Duration = Duration::from_secs(30);

/// A program that runs tests and reports in the form of libtest.
pub struct Job {
    /// The name that the person sees.
    name: String,
    command: Command,
    /// The command that runs the whole job again.
    again: String,
}

impl Job {
    /// Runs a test binary as Cargo would, with so many of its tests at once.
    pub fn of_binary(binary: &Binary, threads: usize) -> Self {
        let mut command = Invocation::program(&binary.path).command(&binary.folder);
        command
            .arg(format!("--test-threads={threads}"))
            .env("CARGO_MANIFEST_DIR", &binary.folder);
        Self {
            name: format!("{} {}", binary.package, binary.selector),
            command,
            again: format!("cargo test -p {} {}", binary.package, binary.selector),
        }
    }

    /// Runs the examples in the documentation.
    pub fn of_doc_tests(root: &Path) -> Self {
        let again = "cargo test --workspace --doc";
        let command = Invocation::new(again).command(root);
        Self {
            name: "documentation examples".to_owned(),
            command,
            again: again.to_owned(),
        }
    }

    /// Gives it another place for scratch folders.
    pub fn set_scratch(&mut self, folder: &Path) {
        self.command.env("TMPDIR", folder);
    }

    /// Sets the size of the long matrices.
    pub fn set_tier(&mut self, tier: Tier) {
        match tier {
            Tier::Default => self.command.env_remove(FULL),
            Tier::Full => {
                self.again.insert_str(0, &format!("{FULL}=1 "));
                self.command.env(FULL, "1")
            }
        };
    }

    /// Runs it to its end.
    fn run(mut self) -> Report {
        let began = Instant::now();
        let output = self.command.stdin(Stdio::null()).output();
        let time = began.elapsed();
        let (status, out, err) = match output {
            Ok(output) => (Ok(output.status), output.stdout, output.stderr),
            Err(error) => (Err(error), Vec::new(), Vec::new()),
        };
        Report {
            name: self.name,
            again: self.again,
            time,
            status,
            out: String::from_utf8_lossy(&out).into_owned(),
            err: String::from_utf8_lossy(&err).into_owned(),
        }
    }
}

/// How a job ended.
pub struct Report {
    name: String,
    again: String,
    time: Duration,
    status: io::Result<ExitStatus>,
    out: String,
    err: String,
}

impl Report {
    fn has_passed(&self) -> bool {
        self.status.as_ref().is_ok_and(ExitStatus::success)
    }

    /// How many tests passed.
    pub fn passed(&self) -> usize {
        let results = self.out.lines().filter(|l| l.starts_with("test result:"));
        let passed = results.filter_map(|line| {
            let (before, _) = line.split_once(" passed")?;
            before.rsplit(' ').next()?.parse::<usize>().ok()
        });
        passed.sum()
    }

    /// The names of the tests that failed.
    fn failed(&self) -> Vec<&str> {
        let lines = self.out.lines();
        lines
            .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
            .collect()
    }

    /// The line that tells of its end, with what could not be tested on this machine.
    fn summary(&self) -> String {
        let word = if self.has_passed() { "ok" } else { "FAILED" };
        let mut text = format!(
            "{word:<7}{:<40}{:>5} passed {:>7.1} s",
            self.name,
            self.passed(),
            self.time.as_secs_f64()
        );
        for line in self.err.lines().filter(|line| line.contains(": skipped: ")) {
            let _ = write!(text, "\n       {line}");
        }
        text
    }

    /// The output of a failed job about its failures.
    fn details(&self) -> String {
        let said = match self.out.find("\nfailures:\n") {
            Some(at) => self.out.get(at..).unwrap_or_default(),
            None => &self.out,
        };
        format!("== {}\n{}\n{}", self.name, said.trim(), self.err.trim())
    }

    /// The failures, each with the command that runs it alone.
    fn failures(&self) -> Vec<(String, String)> {
        if self.has_passed() {
            return Vec::new();
        }
        let each = self.failed().into_iter().map(|test| {
            let again = match test.contains(' ') {
                // An example in the documentation: its name has spaces and matches as it is.
                true => format!("{} -- '{test}'", self.again),
                false => format!("{} -- --exact {test}", self.again),
            };
            (format!("{}: {test}", self.name), again)
        });
        let mut failures: Vec<_> = each.collect();
        // A binary that ran to its end with failed tests has said so by its names.
        let how = match &self.status {
            Ok(status) if status.code() == Some(101) && !failures.is_empty() => return failures,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        failures.push((format!("{}: {how}", self.name), self.again.clone()));
        failures
    }
}

/// An event in a lane.
enum Event {
    Started(String),
    Ended(Report),
}

/// Runs the jobs in their order, `lanes` of them at a time, and tells of each as it ends.
pub fn run(jobs: Vec<Job>, lanes: usize) -> Vec<Report> {
    let waiting = Mutex::new(VecDeque::from(jobs));
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pop_front()
    };
    let (tell, events) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..lanes {
            let (tell, next) = (tell.clone(), &next);
            scope.spawn(move || {
                while let Some(job) = next() {
                    let _ = tell.send(Event::Started(job.name.clone()));
                    let _ = tell.send(Event::Ended(job.run()));
                }
            });
        }
        drop(tell);
        follow(&events)
    })
}

/// Tells of each job as it ends, and in between what still runs.
fn follow(events: &Receiver<Event>) -> Vec<Report> {
    let mut running: Vec<String> = Vec::new();
    let mut reports = Vec::new();
    loop {
        match events.recv_timeout(PROGRESS) {
            Ok(Event::Started(name)) => running.push(name),
            Ok(Event::Ended(report)) => {
                println!("{}", report.summary());
                running.retain(|name| *name != report.name);
                reports.push(report);
            }
            Err(RecvTimeoutError::Timeout) => println!("...    {}", running.join(", ")),
            Err(RecvTimeoutError::Disconnected) => return reports,
        }
    }
}

/// The failures in full, then as a list; `None` if there are none.
pub fn complaint(reports: &[Report]) -> Option<String> {
    let mut details = String::new();
    let mut list = String::new();
    let mut count = 0;
    for report in reports.iter().filter(|r| !r.has_passed()) {
        let _ = writeln!(details, "\n{}", report.details());
        for (what, again) in report.failures() {
            count += 1;
            let _ = write!(list, "\n  {what}\n    {again}");
        }
    }
    let plural = if count == 1 { "failure" } else { "failures" };
    (count > 0).then(|| {
        format!("{details}\n{count} {plural}, each with the command that runs it alone:{list}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job that reports like a test binary.
    fn job(name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.to_owned(),
            command,
            again: format!("cargo test -p {name}"),
        }
    }

    #[test]
    fn failures_are_listed_with_the_command_that_runs_them_alone() {
        let good = job(
            "good",
            "echo 'test a ... ok'; echo 'test result: ok. 3 passed; 0 failed'",
        );
        let bad = job(
            "bad",
            "echo 'test a ... ok'; echo 'test b::c ... FAILED'; echo; echo failures:; echo why; \
             echo 'test result: FAILED. 1 passed; 1 failed'; exit 101",
        );
        let dead = job("dead", "kill -9 $$");
        let example = job(
            "example",
            "echo 'test src/lib.rs - f (line 3) ... FAILED'; exit 101",
        );
        let reports = run(vec![good, bad, dead, example], 2);
        assert_eq!(reports.iter().map(Report::passed).sum::<usize>(), 4);
        let complaint = complaint(&reports).unwrap();
        assert!(complaint.contains("\n3 failures, each"), "{complaint}");
        assert!(
            complaint.contains("bad: b::c\n    cargo test -p bad -- --exact b::c"),
            "{complaint}"
        );
        assert!(complaint.contains("dead: signal: 9"), "{complaint}");
        assert!(
            complaint.contains("cargo test -p example -- 'src/lib.rs - f (line 3)'"),
            "{complaint}"
        );
        assert!(
            complaint.contains("why") && !complaint.contains("test a ... ok"),
            "{complaint}"
        );
    }

    #[test]
    fn the_command_of_a_full_run_names_its_tier() {
        let mut job = job("bad", "test \"$CROSSTALK_TEST_FULL\" = 1 && exit 3");
        job.set_tier(Tier::Full);
        let complaint = complaint(&run(vec![job], 1)).unwrap();
        assert!(complaint.contains("exit status: 3"), "{complaint}");
        assert!(
            complaint.contains("\n    CROSSTALK_TEST_FULL=1 cargo test -p bad"),
            "{complaint}"
        );
    }

    #[test]
    fn all_jobs_run_even_if_the_first_one_fails() {
        let reports = run(vec![job("bad", "exit 1"), job("good", "true")], 1);
        assert_eq!(reports.len(), 2);
        assert!(complaint(&reports[1..]).is_none());
    }

    #[test]
    fn a_test_that_could_not_run_here_is_told() {
        let reports = run(
            vec![job(
                "some",
                "echo 'a: skipped: no disk' >&2; echo noise >&2",
            )],
            1,
        );
        let summary = reports.first().unwrap().summary();
        assert!(
            summary.contains("a: skipped: no disk") && !summary.contains("noise"),
            "{summary}"
        );
    }
}
