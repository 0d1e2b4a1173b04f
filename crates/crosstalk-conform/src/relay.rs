//! The relay suite: does a server keep the HTTP binding? Level 3 of `spec/`, run over the network against any relay.
//!
//! A case is about one rule of `spec/http.md`. It needs nothing but the public paths of the relay, and uses addresses and
//! ids of its own, so that it can run against a relay that others use. The addresses are below `claude://conform/`,
//! `human://conform/` and simple names that begin with `CONFORM-`: a token has to speak for them. At the end, what waits
//! for them is settled.

mod case;
mod play;
mod probe;
mod report;
mod script;
mod wire;

pub use report::{RelayOutcome, RelayReport, RelayResult, RelaySummary, SCHEMA};

use crosstalk_envelope::registry::Rule;
use crosstalk_protocol::url::Url;
use probe::{CaseStep, CaseStop, Probe, object, word};
use script::CaseRun;
use serde_json::json;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;
use wire::{SuiteRequest, Wire};

type CaseFunction = for<'p> fn(&'p Probe) -> Pin<Box<dyn Future<Output = CaseStep> + Send + 'p>>;

/// How many cases run at the same time.
const AT_ONCE: usize = 8;

/// One case of the suite.
#[derive(Clone, Copy, Debug)]
pub struct RelayCase {
    /// Its name.
    pub id: &'static str,
    /// The rule that it checks.
    pub rule: &'static Rule,
    /// The behaviour that it shows.
    pub title: &'static str,
    /// Whether it takes long or loads the relay, and runs only on request.
    pub is_heavy: bool,
    run: CaseRun,
}

impl RelayCase {
    /// Whether a word chooses it: its name, its rule, or the beginning of its rule.
    pub fn is_meant_by(&self, word: &str) -> bool {
        let is_rule = self.rule.id.starts_with(&word.to_ascii_uppercase());
        !word.is_empty() && (is_rule || self.id.eq_ignore_ascii_case(word))
    }
}

/// All cases, in the order of the rules.
///
/// ```
/// let cases = crosstalk_conform::relay::cases();
/// assert!(cases.len() > 100 && cases.iter().all(|c| ["HTP", "CON"].contains(&&c.rule.id[..3])));
/// ```
pub fn cases() -> Vec<RelayCase> {
    script::CASES.clone()
}

/// Reads the base URL of a relay: one without a query, which ends with a slash.
///
/// ```
/// use crosstalk_conform::relay::base_url;
/// assert_eq!(base_url("https://relay.example/team").unwrap().to_string(), "https://relay.example/team/");
/// assert!(base_url("relay.example").is_err() && base_url("http://a/?x").is_err());
/// ```
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn base_url(text: &str) -> std::result::Result<Url, String> {
    let url = Url::parse(text).map_err(|fault| fault.to_string())?;
    match url.target().contains('?') {
        true => Err("the URL of a relay has no query".into()),
        false => Ok(url.below("")),
    }
}

/// A run of the suite: the relay, the credential and the chosen cases.
#[derive(Clone)]
pub struct Suite {
    /// Where the relay is.
    pub base: Url,
    /// A token that speaks for the addresses of the suite. Cases that need an administrator are skipped with another one.
    pub token: Option<String>,
    /// Rules, beginnings of rules, or cases that are run; all if there are none.
    pub only: Vec<String>,
    /// Whether heavy cases are run: they take a minute and send thousands of requests.
    pub flood: bool,
}

impl Suite {
    /// The cases that are chosen.
    pub fn chosen(&self) -> Vec<RelayCase> {
        let fits =
            |c: &RelayCase| self.only.is_empty() || self.only.iter().any(|w| c.is_meant_by(w));
        cases().into_iter().filter(fits).collect()
    }

    /// Whether there is a server at all.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub async fn reach(&self) -> std::result::Result<(), String> {
        let wire = Wire::new(self.base.clone(), None);
        wire.reach().await.map_err(|fault| fault.0)
    }

    /// Runs them, some at the same time. `tell` gets each result as it comes, in the order of the cases.
    ///
    /// ```
    /// use crosstalk_conform::relay::{Suite, base_url};
    /// let suite = Suite { base: base_url("http://127.0.0.1:9/").unwrap(), token: None, only: vec!["HTP-010".into()], flood: false };
    /// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    /// let report = runtime.block_on(suite.run(|_| {}));
    /// assert!(!report.is_good());
    /// ```
    pub async fn run(&self, mut tell: impl FnMut(&RelayResult)) -> RelayReport {
        let began = Instant::now();
        let wire = Arc::new(Wire::new(self.base.clone(), self.token.clone()));
        let chosen = self.chosen();
        let mut waiting = chosen.iter().copied().enumerate();
        let mut running: JoinSet<(usize, RelayResult)> = JoinSet::new();
        let mut done: Vec<Option<RelayResult>> = chosen.iter().map(|_| None).collect();
        let mut results = Vec::new();
        loop {
            while running.len() < AT_ONCE
                && let Some((number, case)) = waiting.next()
            {
                let probe = Probe::new(Arc::clone(&wire));
                let flood = self.flood;
                running.spawn(async move { (number, run(case, &probe, flood).await) });
            }
            let Some(ended) = running.join_next().await else {
                break;
            };
            // A case that panicked is missing here and reported below.
            if let Ok((number, result)) = ended
                && let Some(place) = done.get_mut(number)
            {
                *place = Some(result);
            }
            while let Some(Some(result)) = done.get_mut(results.len()).map(Option::take) {
                tell(&result);
                results.push(result);
            }
        }
        let missing = chosen.iter().skip(results.len());
        let lost = missing.zip(done.iter_mut().skip(results.len()));
        let lost: Vec<RelayResult> = lost
            .map(|(case, kept)| kept.take().unwrap_or_else(|| RelayResult::broken(*case)))
            .collect();
        results.extend(lost);
        settle(&wire).await;
        RelayReport {
            base: self.base.to_string(),
            results,
            time: began.elapsed(),
        }
    }
}

async fn run(case: RelayCase, probe: &Probe, flood: bool) -> RelayResult {
    let began = Instant::now();
    let outcome = match case.is_heavy && !flood {
        true => {
            RelayOutcome::Skipped("it takes long or loads the relay: it runs with --flood".into())
        }
        false => match case.run.run(probe).await {
            Ok(()) => RelayOutcome::Passed,
            Err(CaseStop::Skipped(reason)) => RelayOutcome::Skipped(reason),
            Err(CaseStop::Failed { expected, got }) => RelayOutcome::Failed { expected, got },
        },
    };
    RelayResult {
        case,
        outcome,
        time: began.elapsed(),
    }
}

/// Settles the messages that wait for the addresses of a run, so that people who use the relay find none of them in the
/// courier's queue. A relay that does not allow it is left as it is.
async fn settle(wire: &Arc<Wire>) {
    let probe = Probe::new(Arc::clone(wire));
    let used = wire.used.all();
    let request = SuiteRequest::get("/crosstalk/courier?limit=500").accept("application/json");
    let Ok(answer) = probe.send(request).await else {
        return;
    };
    if let Ok(queue) = object(&answer, 200)
        && let Some(waiting) = queue.get("messages").and_then(|m| m.as_array())
    {
        let is_ours = |m: &&serde_json::Value| used.contains(word(m, "to"));
        for message in waiting.iter().filter(is_ours) {
            let path = format!("/crosstalk/courier/{}", word(message, "id"));
            let said = json!({"to": word(message, "to"), "state": "carried"});
            let request = SuiteRequest::new("POST", path).json(&said);
            // One that is gone meanwhile is settled.
            let _ = probe.send(request.accept("application/json")).await;
        }
    }
    for address in &used {
        let Ok(ids) = probe.inbox_ids(address).await else {
            continue;
        };
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        if !ids.is_empty() {
            // The inbox is nobody else's; what stays there disturbs nobody.
            let _ = probe.acknowledge(address, &ids, "acknowledged").await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_envelope::registry::rule;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_titles_are_sentences() {
        let mut seen = BTreeSet::new();
        for case in cases() {
            assert!(seen.insert(case.id), "{}", case.id);
            assert!(
                !case.title.is_empty() && !case.title.ends_with('.'),
                "{}",
                case.id
            );
        }
    }

    #[test]
    fn only_chooses_by_rule_and_by_name() {
        let mut suite = Suite {
            base: base_url("http://127.0.0.1:9/").unwrap(),
            token: None,
            only: vec![rule::HTTP_REPLAY.id.to_ascii_lowercase()],
            flood: false,
        };
        let rules: BTreeSet<&str> = suite.chosen().iter().map(|c| c.rule.id).collect();
        assert_eq!(Vec::from_iter(rules), [rule::HTTP_REPLAY.id]);
        suite.only = vec!["receive-text".into()];
        assert_eq!(suite.chosen().len(), 1);
        suite.only = vec!["HTP-99".into()];
        assert!(suite.chosen().is_empty());
    }
}
