//! The report of the suite: as text, as JSON and as JUnit XML.

use super::Case;
use crate::junit::{JunitCase, JunitOutcome, junit, seconds};
use serde_json::{Value, json};
use std::time::Duration;

/// The name and version of the JSON report.
pub const SCHEMA: &str = "crosstalk.conform/1";

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The relay does what the rule says.
    Passed,
    /// It does not.
    Failed {
        /// The behaviour that the rule wants.
        expected: String,
        /// The behaviour of the relay.
        got: String,
    },
    /// It was not found out: why.
    Skipped(String),
}

impl Outcome {
    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed { .. } => "failed",
            Self::Skipped(_) => "skipped",
        }
    }
}

/// A case and how it ended.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub time: Duration,
}

impl CaseResult {
    pub(super) fn broken(case: Case) -> Self {
        Self {
            case,
            outcome: Outcome::Failed {
                expected: "the case to come to an end".into(),
                got: "it broke: this is a fault of the suite, and not of the relay".into(),
            },
            time: Duration::ZERO,
        }
    }
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The relay.
    pub base: String,
    /// One result for each case, in the order of the rules.
    pub results: Vec<CaseResult>,
    /// How long it took.
    pub time: Duration,
}

impl Report {
    /// Whether no case failed, and one was run.
    pub fn is_good(&self) -> bool {
        self.count("failed") == 0 && self.count("passed") > 0
    }

    /// How many cases ended so: `passed`, `failed` or `skipped`.
    pub fn count(&self, word: &str) -> usize {
        let all = self.results.iter();
        all.filter(|r| r.outcome.as_str() == word).count()
    }

    /// The ids of the rules that were broken.
    pub fn broken_rules(&self) -> Vec<&'static str> {
        let failed = |r: &&CaseResult| matches!(r.outcome, Outcome::Failed { .. });
        let mut rules: Vec<&str> = self
            .results
            .iter()
            .filter(failed)
            .map(|r| r.case.rule.id)
            .collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// For programs: `crosstalk.conform/1`.
    pub fn to_json(&self) -> Value {
        let results: Vec<_> = self.results.iter().map(entry).collect();
        json!({
            "schema": SCHEMA,
            "relay": self.base,
            "passed": self.count("passed"),
            "failed": self.count("failed"),
            "skipped": self.count("skipped"),
            "seconds": seconds(self.time),
            "broken_rules": self.broken_rules(),
            "cases": results,
        })
    }

    /// For build servers: JUnit XML.
    pub fn to_junit(&self) -> String {
        let case = |result: &CaseResult| {
            let case = result.case;
            JunitCase {
                rule: case.rule.id,
                name: format!("{}: {}", case.id, case.title),
                time: result.time,
                outcome: match &result.outcome {
                    Outcome::Passed => JunitOutcome::Passed,
                    Outcome::Skipped(reason) => JunitOutcome::Skipped(reason.clone()),
                    Outcome::Failed { expected, got } => JunitOutcome::Failed {
                        message: case.rule.title.to_owned(),
                        details: format!("{}\nexpected: {expected}\ngot: {got}", case.rule.title),
                    },
                },
            }
        };
        let cases: Vec<JunitCase<'_>> = self.results.iter().map(case).collect();
        junit("crosstalk relay", &self.base, self.time, &cases)
    }
}

fn entry(result: &CaseResult) -> Value {
    let case = &result.case;
    let (expected, got, reason) = match &result.outcome {
        Outcome::Passed => (None, None, None),
        Outcome::Failed { expected, got } => (Some(expected), Some(got), None),
        Outcome::Skipped(reason) => (None, None, Some(reason)),
    };
    json!({
        "id": case.id,
        "rule": case.rule.id,
        "title": case.title,
        "outcome": result.outcome.as_str(),
        "expected": expected,
        "got": got,
        "reason": reason,
        "seconds": seconds(result.time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::cases;

    fn report() -> Report {
        let outcomes = [
            Outcome::Passed,
            Outcome::Failed {
                expected: "403 E-PERM".into(),
                got: "200: <b>\"\u{1b}]0;x\u{7}&".into(),
            },
            Outcome::Skipped("no token".into()),
        ];
        let results = cases()
            .into_iter()
            .zip(outcomes)
            .map(|(case, outcome)| CaseResult {
                case,
                outcome,
                time: Duration::from_millis(1500),
            });
        Report {
            base: "http://127.0.0.1:8799/".into(),
            results: results.collect(),
            time: Duration::from_secs(2),
        }
    }

    #[test]
    fn a_failure_is_not_good_and_neither_is_nothing() {
        let mut report = report();
        assert!(!report.is_good());
        assert_eq!(report.broken_rules().len(), 1);
        report.results.remove(1);
        assert!(report.is_good());
        report.results.remove(0);
        assert!(!report.is_good(), "all were skipped");
    }

    #[test]
    fn reports_are_well_formed_whatever_a_relay_says() {
        let report = report();
        let value = report.to_json();
        assert_eq!(value["cases"].as_array().unwrap().len(), 3);
        assert_eq!(value["cases"][1]["expected"], "403 E-PERM");
        let junit = report.to_junit();
        assert!(junit.contains("failures=\"1\""), "{junit}");
        assert!(junit.contains("&lt;b&gt;&quot;"), "{junit}");
        assert!(!junit.contains('\u{1b}') && !junit.contains('\u{7}'));
    }
}
