//! The relay suite notices what a relay does wrong, and nothing else.

mod defect;
mod model;
mod server;

use crosstalk_conform::relay::{RelayOutcome, RelayReport, Suite, base_url};
use crosstalk_testing::tier;
use defect::{Defect, needs_flood};

/// The cases that load a relay, and what they are judged by.
const HEAVY: [&str; 3] = ["rate-flood", "slow-head", "slow-body"];

/// Runs some cases against the model with a defect, all if none is named; what fails is printed.
async fn report(defect: Defect, only: &[&str]) -> RelayReport {
    run(server::start(defect, server::PATIENT).await, only, false).await
}

/// Runs the heavy cases against the model with a defect.
async fn heavy_report(defect: Defect) -> RelayReport {
    run(server::start(defect, server::STRICT).await, &HEAVY, true).await
}

async fn run(url: String, only: &[&str], flood: bool) -> RelayReport {
    let suite = Suite {
        base: base_url(&url).unwrap(),
        token: Some(server::ADMIN.to_owned()),
        only: only.iter().map(|o| (*o).to_owned()).collect(),
        flood,
    };
    suite
        .run(|result| {
            if let RelayOutcome::Failed { expected, got } = &result.outcome {
                let case = result.case;
                println!(
                    "{} {}: expected {expected}\n    got {got}",
                    case.rule.id, case.id
                );
            }
        })
        .await
}

/// A report without a failed case, in which only these cases were skipped.
fn assert_good(report: &RelayReport, skipped: &[&str]) {
    assert_eq!(report.broken_rules(), [""; 0]);
    let results = report.results.iter();
    let came = results.filter(|r| matches!(r.outcome, RelayOutcome::Skipped(_)));
    let came: Vec<&str> = came.map(|r| r.case.id).collect();
    assert_eq!(came, skipped, "cases that were skipped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_relay_passes_all_of_it() {
    let (all, heavy) = tokio::join!(report(Defect::None, &[]), heavy_report(Defect::None));
    assert_good(&heavy, &[]);
    let skipped = [
        "hold-unseen",
        "hold-receipt",
        "hold-agent",
        "hold-listed",
        "hold-approved",
        "hold-other",
        "hold-once",
        "hold-refused",
        "hold-ended",
        "json",
        "rate-flood",
        "for-now",
        "slow-head",
        "slow-body",
    ];
    assert_good(&all, &skipped);
}

/// A case that shares the limit of a token with others waits for its turn, more than once.
#[tokio::test(flavor = "multi_thread")]
async fn case_waits_as_long_as_the_relay_says() {
    let url = server::start(Defect::None, server::BUSY).await;
    assert_good(&run(url, &["receive-text"], false).await, &[]);
}

/// Every defect against rules that have to notice it, three at most; in the full run against all rules, of which no other
/// must.
#[tokio::test(flavor = "multi_thread")]
async fn every_defect_breaks_its_rules() {
    let mut running = tokio::task::JoinSet::new();
    let mut waiting = defect::TABLE.iter();
    let mut wrong = Vec::new();
    loop {
        while running.len() < 16
            && let Some((defect, rules)) = waiting.next()
        {
            let some = rules.get(..3).unwrap_or(rules);
            let (only, rules) = tier::size((some, some), (&[], *rules));
            running.spawn(async move {
                let report = report(*defect, only).await;
                let mut broken = report.broken_rules();
                if needs_flood(*defect) {
                    broken.extend(heavy_report(*defect).await.broken_rules());
                    broken.sort_unstable();
                }
                (*defect, rules.to_vec(), broken)
            });
        }
        let Some(ended) = running.join_next().await else {
            break;
        };
        let (defect, rules, broken) = ended.unwrap();
        if rules != broken {
            wrong.push(format!(
                "{defect:?}: {rules:?} expected\n    {broken:?} came"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
