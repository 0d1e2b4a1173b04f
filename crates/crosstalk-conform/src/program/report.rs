//! The report on a run of the case files.

use crate::junit::{JunitCase, JunitOutcome, junit, seconds};
use crate::level::SpecLevel;
use crate::question::CaseFailure;
use crate::set::CaseSource;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// The name and version of the JSON report.
pub const SCHEMA: &str = "crosstalk.conform-program/1";

/// How much of what was expected or received is kept.
const MAX_CHARS: usize = 4_000;

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramOutcome {
    /// The program does what the case says.
    Passed,
    /// The program does something else.
    Failed {
        /// The expectation of the case; nothing if there was no answer to compare.
        expected: Option<String>,
        /// The answer of the program, or why there is none.
        received: String,
    },
    /// The program does not have the operation, and the level needs it.
    Unsupported,
    /// The program does not have the operation, and may leave it out.
    LeftOut,
    /// The run stopped before.
    NotRun,
}

impl ProgramOutcome {
    pub(super) fn failed(fault: CaseFailure) -> Self {
        let (expected, received) = match fault {
            CaseFailure::Mismatch { expected, received } => (Some(expected), received),
            other => (None, other.to_string()),
        };
        Self::Failed {
            expected: expected.map(|text| shortened(&text, MAX_CHARS)),
            received: shortened(&received, MAX_CHARS),
        }
    }

    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed { .. } => "failed",
            Self::Unsupported => "unsupported",
            Self::LeftOut => "left-out",
            Self::NotRun => "not-run",
        }
    }
}

/// A case and how it ended.
#[derive(Clone, Debug)]
pub struct ProgramResult {
    /// The id of the case: `env/arrow-ascii`.
    pub id: String,
    /// The rule that it is about.
    pub rule: String,
    /// The behaviour that it shows, in one sentence.
    pub about: String,
    /// Its level.
    pub level: SpecLevel,
    /// How it ended.
    pub outcome: ProgramOutcome,
    /// How long it took.
    pub time: Duration,
}

impl ProgramResult {
    pub(super) fn new(source: &CaseSource, outcome: ProgramOutcome, time: Duration) -> Self {
        Self {
            id: source.id.clone(),
            rule: source.rule.clone(),
            about: source.about.clone(),
            level: source.level,
            outcome,
            time,
        }
    }

    fn area(&self) -> &str {
        self.id.split_once('/').map_or("", |(area, _)| area)
    }
}

/// How the cases of one area ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AreaCount {
    /// The folder of the cases: `env`.
    pub area: String,
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many the program does not support, though the level needs them.
    pub unsupported: usize,
    /// How many the program left out, as it may.
    pub left_out: usize,
    /// How many were not run, because the run stopped.
    pub not_run: usize,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct ProgramReport {
    /// The command line of the program.
    pub program: String,
    /// The level that was asked for.
    pub level: SpecLevel,
    /// One result for each case, in the order of the ids.
    pub results: Vec<ProgramResult>,
    /// Why the run stopped before its end, if it did.
    pub stopped: Option<String>,
    /// The end of what the program wrote to stderr.
    pub stderr: String,
    /// How long it took.
    pub time: Duration,
}

impl ProgramReport {
    /// Whether the program passes: every case passed, apart from those that it may leave out, and one was run.
    pub fn is_good(&self) -> bool {
        let all = self.total();
        all.passed > 0 && all.failed + all.unsupported + all.not_run == 0
    }

    /// The counts of all areas together.
    pub fn total(&self) -> AreaCount {
        let mut all = AreaCount::default();
        self.results
            .iter()
            .for_each(|result| all.add(&result.outcome));
        all
    }

    /// The counts, by area, in the order of the names.
    pub fn areas(&self) -> Vec<AreaCount> {
        let mut areas: Vec<AreaCount> = Vec::new();
        for result in &self.results {
            let known = areas.iter().position(|a| a.area == result.area());
            let at = known.unwrap_or_else(|| {
                areas.push(AreaCount {
                    area: result.area().to_owned(),
                    ..AreaCount::default()
                });
                areas.len() - 1
            });
            if let Some(area) = areas.get_mut(at) {
                area.add(&result.outcome);
            }
        }
        areas
    }

    /// For programs: `crosstalk.conform-program/1`.
    pub fn summary(&self) -> ProgramSummary {
        let total = self.total();
        ProgramSummary {
            program: self.program.clone(),
            level: self.level.as_str(),
            conforms: self.is_good(),
            passed: total.passed,
            failed: total.failed,
            unsupported: total.unsupported,
            left_out: total.left_out,
            not_run: total.not_run,
            stopped: self.stopped.clone(),
            stderr: self.stderr.clone(),
            seconds: seconds(self.time),
            areas: self.areas(),
            cases: self.results.iter().map(ProgramCaseSummary::new).collect(),
        }
    }

    /// For build servers: JUnit XML.
    pub fn to_junit(&self) -> String {
        let failed = |message: &str, details: String| JunitOutcome::Failed {
            message: message.to_owned(),
            details,
        };
        let case = |result: &'_ ProgramResult| match &result.outcome {
            ProgramOutcome::Passed => JunitOutcome::Passed,
            ProgramOutcome::LeftOut => JunitOutcome::Skipped("the program leaves it out".into()),
            ProgramOutcome::NotRun => JunitOutcome::Skipped("the run stopped before".into()),
            ProgramOutcome::Unsupported => failed(&result.about, "unsupported".into()),
            ProgramOutcome::Failed {
                expected: Some(expected),
                received,
            } => failed(
                &result.about,
                format!("expected: {expected}\nreceived: {received}"),
            ),
            ProgramOutcome::Failed { received, .. } => failed(&result.about, received.clone()),
        };
        let cases = self.results.iter().map(|result| JunitCase {
            rule: &result.rule,
            name: format!("{}: {}", result.id, result.about),
            time: result.time,
            outcome: case(result),
        });
        let cases: Vec<JunitCase<'_>> = cases.collect();
        junit("crosstalk program", &self.program, self.time, &cases)
    }
}

/// What `crosstalk conform --program CMD --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct ProgramSummary {
    program: String,
    #[schemars(extend("enum" = SpecLevel::ALL.map(SpecLevel::as_str)))]
    level: &'static str,
    conforms: bool,
    passed: usize,
    failed: usize,
    unsupported: usize,
    left_out: usize,
    not_run: usize,
    /// Why the run stopped before its end.
    stopped: Option<String>,
    stderr: String,
    #[schemars(range(min = 0))]
    seconds: f64,
    areas: Vec<AreaCount>,
    cases: Vec<ProgramCaseSummary>,
}

/// A case and how it ended. Without `expected`, `received` says why there is no answer to compare.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ProgramCaseSummary {
    id: String,
    rule: String,
    about: String,
    #[schemars(extend("enum" = SpecLevel::ALL.map(SpecLevel::as_str)))]
    level: &'static str,
    #[schemars(extend("enum" = ["passed", "failed", "unsupported", "left-out", "not-run"]))]
    outcome: &'static str,
    expected: Option<String>,
    received: Option<String>,
    #[schemars(range(min = 0))]
    seconds: f64,
}

impl ProgramCaseSummary {
    fn new(result: &ProgramResult) -> Self {
        let (expected, received) = match result.outcome.clone() {
            ProgramOutcome::Failed { expected, received } => (expected, Some(received)),
            _ => (None, None),
        };
        Self {
            id: result.id.clone(),
            rule: result.rule.clone(),
            about: result.about.clone(),
            level: result.level.as_str(),
            outcome: result.outcome.as_str(),
            expected,
            received,
            seconds: seconds(result.time),
        }
    }
}

impl AreaCount {
    fn add(&mut self, outcome: &ProgramOutcome) {
        let count = match outcome {
            ProgramOutcome::Passed => &mut self.passed,
            ProgramOutcome::Failed { .. } => &mut self.failed,
            ProgramOutcome::Unsupported => &mut self.unsupported,
            ProgramOutcome::LeftOut => &mut self.left_out,
            ProgramOutcome::NotRun => &mut self.not_run,
        };
        *count += 1;
    }
}

/// A text of at most so many characters; what is left out is told.
pub(super) fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => {
            let (start, rest) = text.split_at(at);
            format!("{start} … ({} more bytes)", rest.len())
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcomes: &[ProgramOutcome]) -> ProgramReport {
        let result = |(number, outcome): (usize, &ProgramOutcome)| ProgramResult {
            id: format!("{}/case-{number}", if number < 2 { "env" } else { "ids" }),
            rule: "ENV-001".into(),
            about: "Something.".into(),
            level: SpecLevel::L0,
            outcome: outcome.clone(),
            time: Duration::ZERO,
        };
        ProgramReport {
            program: "x".into(),
            level: SpecLevel::L0,
            results: outcomes.iter().enumerate().map(result).collect(),
            stopped: None,
            stderr: String::new(),
            time: Duration::ZERO,
        }
    }

    #[test]
    fn only_what_may_be_left_out_is_no_failure() {
        use ProgramOutcome::{LeftOut, NotRun, Passed, Unsupported};
        assert!(report(&[Passed, LeftOut]).is_good());
        for bad in [
            &[Passed, Unsupported][..],
            &[Passed, NotRun],
            &[Passed, ProgramOutcome::failed(CaseFailure::Unsupported)],
            &[LeftOut],
            &[],
        ] {
            assert!(!report(bad).is_good(), "{bad:?}");
        }
    }

    #[test]
    fn counts_are_by_area() {
        use ProgramOutcome::{Passed, Unsupported};
        let areas = report(&[Passed, Unsupported, Passed]).areas();
        let told: Vec<_> = areas
            .iter()
            .map(|a| (a.area.as_str(), a.passed, a.unsupported))
            .collect();
        assert_eq!(told, [("env", 1, 1), ("ids", 1, 0)]);
    }
}
