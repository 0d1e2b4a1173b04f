//! The relay suite notices what a relay does wrong, and nothing else.

mod defect;
mod model;
mod server;

use crosstalk_relay::conform::{Base, Outcome, Report, Suite};
use defect::{Defect, needs_flood};

/// Runs the whole suite against a relay; what fails is printed.
pub(crate) async fn report(url: &str, token: Option<&str>, flood: bool) -> Report {
    let suite = Suite {
        base: Base::parse(url).unwrap(),
        token: token.map(str::to_owned),
        only: Vec::new(),
        flood,
    };
    suite
        .run(|result| {
            if let Outcome::Failed { expected, got } = &result.outcome {
                let case = result.case;
                println!(
                    "{} {}: expected {expected}\n    got {got}",
                    case.rule.id, case.id
                );
            }
        })
        .await
}

/// A relay passes the whole suite; only these cases may be skipped.
pub(crate) async fn need_conformance(
    url: &str,
    token: Option<&str>,
    flood: bool,
    skipped: &[&str],
) {
    let report = report(url, token, flood).await;
    assert_eq!(report.broken_rules(), [""; 0], "{url}");
    let is_skipped =
        |r: &&crosstalk_relay::conform::CaseResult| matches!(r.outcome, Outcome::Skipped(_));
    let came: Vec<&str> = report
        .results
        .iter()
        .filter(is_skipped)
        .map(|r| r.case.id)
        .collect();
    assert_eq!(came, skipped, "{url}: cases that were skipped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_relay_passes_all_of_it() {
    let url = server::start(Defect::None).await;
    need_conformance(
        &url,
        Some(server::ADMIN),
        true,
        &[
            "hold-unseen",
            "hold-receipt",
            "hold-agent",
            "hold-listed",
            "hold-approved",
            "hold-other",
            "hold-once",
            "hold-refused",
            "hold-ended",
            "for-now",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_defect_breaks_its_rules() {
    let mut running = tokio::task::JoinSet::new();
    let mut waiting = defect::TABLE.iter();
    let mut wrong = Vec::new();
    loop {
        while running.len() < 16
            && let Some((defect, rules)) = waiting.next()
        {
            running.spawn(async move {
                let url = server::start(*defect).await;
                let report = report(&url, Some(server::ADMIN), needs_flood(*defect)).await;
                (*defect, rules.to_vec(), report.broken_rules())
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
