//! The report of the suite: as text, as JSON and as JUnit XML.

use super::RelayCase;
use crate::junit::{JunitCase, JunitOutcome, junit, seconds};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// The name and version of the JSON report.
pub const SCHEMA: &str = "crosstalk.conform/1";
const RULE_PATTERN: &str = "^[A-Z]{3}-[0-9]{3}$";

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayOutcome {
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

impl RelayOutcome {
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
pub struct RelayResult {
    /// The case.
    pub case: RelayCase,
    /// How it ended.
    pub outcome: RelayOutcome,
    /// How long it took.
    pub time: Duration,
}

impl RelayResult {
    pub(super) fn broken(case: RelayCase) -> Self {
        Self {
            case,
            outcome: RelayOutcome::Failed {
                expected: "the case to come to an end".into(),
                got: "it broke: this is a fault of the suite, and not of the relay".into(),
            },
            time: Duration::ZERO,
        }
    }
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct RelayReport {
    /// The relay.
    pub base: String,
    /// One result for each case, in the order of the rules.
    pub results: Vec<RelayResult>,
    /// How long it took.
    pub time: Duration,
}

impl RelayReport {
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
        let failed = |r: &&RelayResult| matches!(r.outcome, RelayOutcome::Failed { .. });
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
    pub fn summary(&self) -> RelaySummary {
        RelaySummary {
            relay: self.base.clone(),
            passed: self.count("passed"),
            failed: self.count("failed"),
            skipped: self.count("skipped"),
            seconds: seconds(self.time),
            broken_rules: self.broken_rules(),
            cases: self.results.iter().map(RelayCaseSummary::new).collect(),
        }
    }

    /// For build servers: JUnit XML.
    pub fn to_junit(&self) -> String {
        let case = |result: &RelayResult| {
            let case = result.case;
            JunitCase {
                rule: case.rule.id,
                name: format!("{}: {}", case.id, case.title),
                time: result.time,
                outcome: match &result.outcome {
                    RelayOutcome::Passed => JunitOutcome::Passed,
                    RelayOutcome::Skipped(reason) => JunitOutcome::Skipped(reason.clone()),
                    RelayOutcome::Failed { expected, got } => JunitOutcome::Failed {
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

/// What `crosstalk conform --format json` prints.
#[derive(Serialize, JsonSchema)]
pub struct RelaySummary {
    relay: String,
    passed: usize,
    failed: usize,
    skipped: usize,
    #[schemars(range(min = 0))]
    seconds: f64,
    #[schemars(extend("items" = serde_json::json!({"pattern": RULE_PATTERN}), "uniqueItems" = true))]
    broken_rules: Vec<&'static str>,
    cases: Vec<RelayCaseSummary>,
}

/// A case and how it ended.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct RelayCaseSummary {
    id: &'static str,
    #[schemars(extend("pattern" = RULE_PATTERN))]
    rule: &'static str,
    title: &'static str,
    #[schemars(extend("enum" = ["passed", "failed", "skipped"]))]
    outcome: &'static str,
    /// Null unless the case failed.
    expected: Option<String>,
    /// Null unless the case failed.
    got: Option<String>,
    /// Null unless the case was skipped.
    reason: Option<String>,
    #[schemars(range(min = 0))]
    seconds: f64,
}

impl RelayCaseSummary {
    fn new(result: &RelayResult) -> Self {
        let (expected, got, reason) = match result.outcome.clone() {
            RelayOutcome::Passed => (None, None, None),
            RelayOutcome::Failed { expected, got } => (Some(expected), Some(got), None),
            RelayOutcome::Skipped(reason) => (None, None, Some(reason)),
        };
        Self {
            id: result.case.id,
            rule: result.case.rule.id,
            title: result.case.title,
            outcome: result.outcome.as_str(),
            expected,
            got,
            reason,
            seconds: seconds(result.time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::cases;

    fn report() -> RelayReport {
        let outcomes = [
            RelayOutcome::Passed,
            RelayOutcome::Failed {
                expected: "403 E-PERM".into(),
                got: "200: <b>\"\u{1b}]0;x\u{7}&".into(),
            },
            RelayOutcome::Skipped("no token".into()),
        ];
        let results = cases()
            .into_iter()
            .zip(outcomes)
            .map(|(case, outcome)| RelayResult {
                case,
                outcome,
                time: Duration::from_millis(1500),
            });
        RelayReport {
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
        let value = serde_json::to_value(report.summary()).unwrap();
        assert_eq!(value["cases"].as_array().unwrap().len(), 3);
        assert_eq!(value["cases"][1]["expected"], "403 E-PERM");
        let junit = report.to_junit();
        assert!(junit.contains("failures=\"1\""), "{junit}");
        assert!(junit.contains("&lt;b&gt;&quot;"), "{junit}");
        assert!(!junit.contains('\u{1b}') && !junit.contains('\u{7}'));
    }
}
