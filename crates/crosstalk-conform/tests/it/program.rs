//! Programs that misbehave: each gets a clear report, and nothing of it is left behind.

use crosstalk_conform::program::{ProgramOutcome, ProgramReport, TestedProgram};
use crosstalk_conform::{CaseSet, SpecLevel};
use crosstalk_testing::folder::Folder;
use crosstalk_testing::wait::{LIMIT, wait_until};
use std::time::Duration;

/// Enough for a program that answers at all.
const PATIENT: Duration = LIMIT;
/// For a program that never does.
const SHORT: Duration = Duration::from_millis(300);

/// Answers with the form that an id of 26 characters has, and says what else it is asked.
const ULIDS: &str = r#"while read -r line; do
    id=${line#*\"id\":}; id=${id%%,*}
    case $line in
        *'"op":"id"'*) echo "{\"id\":$id,\"result\":{\"form\":\"ulid\"}}";;
        *) echo "{\"id\":$id,\"unsupported\":true}";;
    esac
done"#;

/// The cases with this op.
fn cases(op: &str) -> CaseSet {
    let mut set = CaseSet::embedded().unwrap();
    set.retain(|source| source.read().unwrap().op() == op);
    assert!(!set.sources().is_empty());
    set
}

fn run(script: &str, timeout: Duration) -> ProgramReport {
    let program = TestedProgram::new(script, timeout).unwrap();
    program.run(&cases("id"), SpecLevel::L0, |_| {})
}

/// Why the first case that failed did.
fn reason(report: &ProgramReport) -> &str {
    let failed = report.results.iter().find_map(|r| match &r.outcome {
        ProgramOutcome::Failed { received, .. } => Some(received.as_str()),
        _ => None,
    });
    failed.unwrap_or_default()
}

#[test]
fn a_program_is_judged_by_what_it_answers() {
    let report = run(ULIDS, PATIENT);
    let total = report.total();
    assert!(total.passed > 2 && total.failed > 2, "{total:?}");
    assert_eq!((total.unsupported, total.not_run), (0, 0), "{total:?}");
    assert!(report.stopped.is_none() && !report.is_good());
    let wrong = report.results.iter().find_map(|r| match &r.outcome {
        ProgramOutcome::Failed { expected, received } => Some((expected.clone(), received.clone())),
        _ => None,
    });
    let (expected, received) = wrong.unwrap();
    assert!(expected.is_some_and(|e| e != "ulid"));
    assert_eq!(received, "ulid");
}

#[test]
fn an_op_that_is_missing_counts_unless_its_area_is_optional() {
    let program = TestedProgram::new(ULIDS, PATIENT).unwrap();
    let total = program.run(&cases("exit"), SpecLevel::L1, |_| {}).total();
    assert!(total.unsupported > 0 && total.failed == 0, "{total:?}");
    let report = program.run(&cases("redact"), SpecLevel::L1, |_| {});
    let total = report.total();
    assert!(total.left_out > 0 && total.unsupported == 0, "{total:?}");
    assert!(!report.is_good(), "nothing passed");
}

#[test]
fn a_program_that_hangs_is_killed_with_all_that_it_started() {
    let folder = Folder::new("hang");
    let pid = folder.path().join("pid");
    // The second process would live on if only the first were killed.
    let script = format!("sleep 100000 & echo $! > '{}'; wait", pid.display());
    let report = run(&script, SHORT);
    assert!(
        reason(&report).contains("did not answer within"),
        "{}",
        reason(&report)
    );
    assert!(reason(&report).contains("flush"), "{}", reason(&report));
    assert_eq!(
        report.stopped.as_deref(),
        Some("The program never answered.")
    );
    let total = report.total();
    assert_eq!((total.failed, total.not_run), (1, report.results.len() - 1));
    let pid = std::fs::read_to_string(pid).unwrap();
    let is_gone = || {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // A dead process that nobody waited for yet is dead.
        state.is_err() || state.is_ok_and(|s| s.contains(") Z "))
    };
    wait_until("the process that the program started is gone", is_gone);
}

#[test]
fn a_program_that_ends_early_is_started_again() {
    // Answers one question, then ends with a complaint.
    let script = r#"read -r line; id=${line#*\"id\":}; id=${id%%,*}
        echo "{\"id\":$id,\"result\":{\"form\":\"ulid\"}}"; read -r line; echo "no more" >&2; exit 3"#;
    let report = run(script, PATIENT);
    assert!(
        reason(&report).contains("exit status: 3"),
        "{}",
        reason(&report)
    );
    assert!(
        reason(&report).contains("stderr: no more"),
        "{}",
        reason(&report)
    );
    assert_eq!(report.total().not_run, 0, "{:?}", report.stopped);
}

#[test]
fn programs_that_never_answer_are_reported_once() {
    for (script, told) in [
        ("exit 4", "exit status: 4"),
        ("crosstalk-no-such-program", "not found"),
        ("kill -9 $$", "signal: 9"),
        ("echo Ready.; cat", "not a JSON object: Ready."),
        ("echo '[]'; cat", "not a JSON object"),
        (
            "echo '{\"id\":99,\"result\":{}}'; cat",
            "the id 99 where the question has the id 1",
        ),
        ("echo '{\"result\":{}}'; cat", "the id null"),
        ("echo '{\"id\":1}'; cat", "neither `result`"),
        ("echo '{\"id\":1,\"result\":7}'; cat", "neither `result`"),
        ("yes", "not a JSON object: y"),
        ("yes | tr -d '\\n'", "without a line end"),
        ("exec >&-; sleep 100000", "closed its output"),
    ] {
        let report = run(script, PATIENT);
        assert!(
            reason(&report).contains(told),
            "{script}: {}",
            reason(&report)
        );
        assert_eq!(report.total().failed, 1, "{script}");
        assert!(report.stopped.is_some() && !report.is_good(), "{script}");
    }
}

#[test]
fn twenty_cases_without_an_answer_stop_the_run() {
    let script = r#"read -r line; case $line in *'"id":1,'*) echo '{"id":1,"result":{"form":"ulid"}}';; esac; exit 1"#;
    let report = run(script, PATIENT);
    let stopped = report.stopped.clone().unwrap();
    assert!(stopped.contains("20 cases in a row"), "{stopped}");
    assert!(report.total().not_run > 0);
}

#[test]
fn a_result_that_lacks_a_part_is_named() {
    let script = r#"while read -r line; do
        id=${line#*\"id\":}; id=${id%%,*}; echo "{\"id\":$id,\"result\":{\"from\":\"ulid\"}}"; done"#;
    let report = run(script, PATIENT);
    assert_eq!(reason(&report), r#"{"from":"ulid"}"#);
    let total = report.total();
    assert_eq!((total.passed, total.not_run), (0, 0), "{total:?}");
}

#[test]
fn an_error_of_the_program_is_told_and_the_run_goes_on() {
    let script = r#"while read -r line; do
        id=${line#*\"id\":}; id=${id%%,*}; echo "{\"id\":$id,\"error\":\"KeyError\"}"; done"#;
    let report = run(script, PATIENT);
    assert!(reason(&report).contains("KeyError"), "{}", reason(&report));
    assert_eq!(report.total().failed, report.results.len());
}

/// It reads nothing, so that a large question does not fit into the pipe, and writes far more than the pipe holds.
#[test]
fn a_program_that_writes_and_does_not_read_is_no_deadlock() {
    let mut set = CaseSet::embedded().unwrap();
    set.retain(|source| source.id == "env/limit-envelope");
    let program =
        TestedProgram::new("yes 'no JSON' | head -c 4000000; sleep 100000", PATIENT).unwrap();
    let report = program.run(&set, SpecLevel::L1, |_| {});
    assert!(
        reason(&report).contains("not a JSON object"),
        "{}",
        reason(&report)
    );
}

#[test]
fn stderr_is_kept_by_its_end() {
    let script = format!("yes noise | head -c 1000000 >&2; echo the end >&2; {ULIDS}");
    let report = run(&script, PATIENT);
    assert!(report.total().passed > 0);
    assert!(report.stderr.ends_with("the end"), "{}", report.stderr);
    assert!(report.stderr.len() <= 4096, "{}", report.stderr.len());
}

#[test]
fn the_questions_never_hold_the_expected_result() {
    let program = TestedProgram::new(ULIDS, PATIENT).unwrap();
    for op in ["id", "parse", "build", "canonical", "redact", "verify"] {
        let mut set = cases(op);
        let mut first = true;
        set.retain(|_| std::mem::take(&mut first));
        program.run(&set, SpecLevel::L3, |_| {});
        let asked = program.exchanges();
        assert!(!asked.is_empty(), "{op}");
        for exchange in asked {
            let question: serde_json::Value = serde_json::from_str(&exchange.question).unwrap();
            assert_eq!(question["op"], op);
            for key in [
                "expect",
                "code",
                "json",
                "output",
                "digest",
                "canonical",
                "verdict",
                "found",
                "rule",
            ] {
                assert!(question.get(key).is_none(), "{op}: {key}");
            }
        }
    }
}
