//! The Rust crates as a program behind `crosstalk conform --program`: what passes directly passes over pipes.

use crosstalk_conform::program::{DEFAULT_TIMEOUT, ProgramOutcome, TestedProgram};
use crosstalk_conform::{CaseSet, SpecLevel};
use crosstalk_testing::tier;

const PROGRAM: &str = env!("CARGO_BIN_EXE_crosstalk-conformance");

/// All cases. The default tier leaves out those with an input of some MiB: they are slow as JSON without optimisation.
fn cases() -> CaseSet {
    let mut set = CaseSet::embedded().unwrap();
    let is_small = |set: &crosstalk_conform::CaseSource| {
        let case = set.read().unwrap();
        case.all("input").all(|input| input.len() < 1 << 20)
    };
    if !tier::is_full() {
        set.retain(is_small);
    }
    set
}

#[test]
fn the_rust_crates_pass_as_a_program() {
    let set = cases();
    let program = TestedProgram::new(&format!("'{PROGRAM}'"), DEFAULT_TIMEOUT).unwrap();
    let report = program.run(&set, SpecLevel::L3, |result| {
        if result.outcome != ProgramOutcome::Passed {
            println!("{}: {:?}", result.id, result.outcome);
        }
    });
    let total = report.total();
    println!("{total:?} in {:?}", report.time);
    assert!(report.is_good(), "{total:?}");
    assert_eq!(total.passed, set.sources().len());
    assert!(total.passed > 2_300, "{total:?}");
}

/// A question without a known op, or that is no JSON, is answered as the README says.
#[test]
fn the_program_answers_whatever_comes() {
    let answer = |line| -> serde_json::Value {
        serde_json::from_str(&crosstalk_conformance::answer(line)).unwrap()
    };
    assert_eq!(answer(r#"{"id":3,"op":"dance"}"#)["unsupported"], true);
    assert!(answer("dance")["error"].is_string());
    assert_eq!(answer(r#"{"id":3,"op":"parse"}"#)["id"], 3);
    assert!(answer(r#"{"id":3,"op":"parse"}"#)["error"].is_string());
}
