//! How much a relay takes, and from whom it does not wait (HTP-064 to HTP-066).

use super::code;
use crate::relay::CaseFunction;
use crate::relay::probe::{CaseStep, Probe, equal, failed, inbox_path, need, rejected, skipped};
use crate::relay::wire::{SuiteAnswer, SuiteRequest};
use crosstalk_envelope::registry::ErrorCode;
use std::sync::PoisonError;
use std::time::Duration;

pub(super) const CODE: &[(&str, CaseFunction)] = &[
    code!("rate-told", rate_told),
    code!("rate-flood", flood),
    code!("for-now", for_now),
    code!("slow-head", slow_head),
    code!("slow-body", slow_body),
];

/// A request that needs a credential wherever any does.
fn private(p: &Probe) -> SuiteRequest {
    SuiteRequest::get(inbox_path(&p.address("a"), ""))
}

/// The limit that an answer tells: requests and seconds.
fn told(answer: &SuiteAnswer) -> Option<(u64, u64)> {
    let policy = answer.header("ratelimit-policy");
    let number = |key: &str| {
        let mut parts = policy.split(';').map(str::trim);
        parts.find_map(|part| part.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    Some((number("q")?, number("w")?))
}

async fn rate_told(p: &Probe) -> CaseStep {
    let answer = p.send(private(p)).await?;
    if !answer.has("ratelimit-policy") {
        return skipped("the relay tells no limit");
    }
    let policy = answer.header("ratelimit-policy");
    need(told(&answer).is_some(), "\"requests\";q=600;w=60", policy)
}

async fn flood(p: &Probe) -> CaseStep {
    let told = told(&p.send(private(p)).await?).map(|(requests, _)| requests);
    let most = told.map_or(3000, |n| n + n / 2 + 100).min(50_000);
    for _ in 0..most {
        let answer = p.wire.send(private(p)).await?;
        if answer.status != 429 {
            continue;
        }
        let error = rejected(&answer, 429, ErrorCode::Rate)?;
        let wait = answer.header("retry-after");
        need(wait.parse::<u64>().is_ok(), "Retry-After in seconds", wait)?;
        return equal(&error.meta("error", "Retry-After"), &Some(wait));
    }
    match told {
        Some(limit) => failed(
            format!("429 after {limit} requests"),
            format!("none after {most}"),
        ),
        None => skipped(format!(
            "the relay tells no limit, and {most} requests did not reach one"
        )),
    }
}

async fn for_now(p: &Probe) -> CaseStep {
    let came = p.wire.unavailable.lock();
    let came = came.unwrap_or_else(PoisonError::into_inner).clone();
    if came.is_empty() {
        return skipped("the relay was never in trouble while the suite ran");
    }
    for answer in came {
        let wait = answer.header("retry-after");
        answer.require(
            wait.parse::<u64>().is_ok(),
            "503 with Retry-After in seconds",
        )?;
        if answer.kind() == "text/plain" {
            rejected(&answer, 503, ErrorCode::Rate)?;
        }
    }
    Ok(())
}

async fn slow(p: &Probe, rest: &str) -> CaseStep<String> {
    let head = format!(
        "POST /crosstalk/receive HTTP/1.1\r\nHost: {}\r\n{rest}",
        p.wire.base.authority()
    );
    let patience = Duration::from_secs(120);
    let (ended, meanwhile) =
        tokio::join!(p.wire.raw(head.as_bytes(), patience), p.send(private(p)));
    let meanwhile = meanwhile?;
    meanwhile.require(meanwhile.status == 200, "200 for others meanwhile")?;
    let ended = ended?;
    match ended.is_over {
        true => Ok(ended.text),
        false => failed("the end of the connection within 120 s", "it is still open"),
    }
}

async fn slow_head(p: &Probe) -> CaseStep {
    let said = slow(p, "Content-Type: text/pl").await?;
    let good = said.is_empty() || said.starts_with("HTTP/1.1 408");
    need(
        good,
        "408, or the end without a word",
        said.lines().next().unwrap_or_default(),
    )
}

async fn slow_body(p: &Probe) -> CaseStep {
    let said = slow(
        p,
        "Content-Type: text/plain\r\nContent-Length: 500\r\n\r\n[[A→B v1]]\n",
    )
    .await?;
    // A relay may ask for a credential before it reads the body.
    let good = ["HTTP/1.1 408", "HTTP/1.1 401"]
        .iter()
        .any(|s| said.starts_with(s));
    need(
        good,
        "408",
        said.lines().next().unwrap_or("the end without a word"),
    )
}
