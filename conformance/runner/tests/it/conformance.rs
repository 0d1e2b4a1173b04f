//! Walks `conformance/` and runs every case; there is no list of them anywhere.

use crate::case;
use crosstalk_conform::{CaseFailure, CaseFile, Implementation, judge};
use crosstalk_conformance::Ours;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why an implementation fails a case; `None` if it passes.
pub(crate) fn fault(case: &CaseFile, tested: &dyn Implementation) -> Option<String> {
    // A panic is a failure of this case, not the end of the run.
    let judged = catch_unwind(AssertUnwindSafe(|| judge(case, tested)));
    let judged = judged.unwrap_or_else(|_| Err(CaseFailure::NoAnswer("it panicked".into())));
    judged.err().map(|fault| fault.to_string())
}

/// The cases that an implementation fails, with the reason.
pub(crate) fn failures<'c>(
    cases: &'c [CaseFile],
    tested: &dyn Implementation,
) -> Vec<(&'c CaseFile, String)> {
    let failed = |case: &'c CaseFile| Some((case, fault(case, tested)?));
    cases.iter().filter_map(failed).collect()
}

#[test]
fn every_case_passes() {
    let cases = case::all();
    let failures = failures(&cases, &Ours);
    for (case, fault) in &failures {
        println!(
            "--- conformance/{}.case ({}: {})",
            case.id(),
            case.rule(),
            case.get("about")
        );
        println!("{fault}\n");
    }
    let red: Vec<&str> = failures.iter().map(|(c, _)| c.id()).collect();
    assert!(
        red.is_empty(),
        "{} of {} cases are red: {red:#?}",
        red.len(),
        cases.len()
    );
}

#[test]
fn there_are_enough_cases_and_one_for_every_rule() {
    let cases = case::all();
    assert!(cases.len() >= 1_700, "there are only {} cases", cases.len());
    let registry = case::root().join("spec/registry/rules.toml");
    let registry = std::fs::read_to_string(registry).unwrap();
    let id = |rule: &'_ str| {
        let id = rule.lines().find_map(|l| l.strip_prefix("id = "));
        id.map(|id| id.trim_matches('"').to_owned())
    };
    let rules = || registry.split("[[rule]]");
    let ids: BTreeSet<String> = rules().filter_map(id).collect();
    assert!(ids.len() >= 180, "there are only {} rules", ids.len());
    // A rule with a suite has its cases there.
    let is_here = |rule: &&str| !rule.contains("\nsuite = ");
    let here: BTreeSet<String> = rules().filter(is_here).filter_map(id).collect();
    let covered: BTreeSet<String> = cases.iter().map(|c| c.rule().to_owned()).collect();
    let missing: Vec<_> = here.difference(&covered).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    let unknown: Vec<_> = covered.difference(&ids).collect();
    assert!(unknown.is_empty(), "no such rule: {unknown:?}");
}

#[test]
fn no_two_cases_are_about_the_same() {
    let cases = case::all();
    let mut seen = std::collections::HashMap::new();
    for case in &cases {
        let about = case.get("about");
        if let Some(other) = seen.insert(about, case.id()) {
            panic!("{other} and {} are both about: {about}", case.id());
        }
    }
}
