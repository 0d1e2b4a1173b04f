//! Times that pass while a case runs: deadlines, and consents that expire.

use super::code;
use crate::relay::CaseFunction;
use crate::relay::play::make_token;
use crate::relay::probe::{
    CaseStep, Probe, by, encoded, equal, failed, holds, ids, in_time, is_over, listed, need,
    reports, same, skipped, strict, wait_until_past, word,
};
use crate::relay::wire::SuiteRequest;
use crosstalk_envelope::Intent;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use serde_json::json;

pub(super) const CODE: &[(&str, CaseFunction)] = &[
    code!("deadline-passes", deadline_passes),
    code!("deadline-kept", deadline_kept),
    code!("hold-ended", hold_ended),
];

async fn deadline_passes(p: &Probe) -> CaseStep {
    let to = p.address("b");
    // A relay rejects a message that comes after its deadline.
    let ((from, letter), _) = in_time(|seconds, end| {
        let (from, to) = (p.address(&format!("a{seconds}")), &to);
        async move {
            let letter = p.letter("REQUEST", &from, to, |b| {
                b.meta("routing", "X-Deadline", end.to_string())
            })?;
            p.take(&letter).await?;
            Ok((from, letter))
        }
    })
    .await?;
    let path = format!("/crosstalk/inbox?for={}&wait=60", encoded(&from));
    let inbox = p.json(SuiteRequest::get(path)).await?;
    let Some(entry) = listed(&inbox)?.first() else {
        return failed(
            "an ERROR with E-TIMEOUT in the inbox of the sender",
            "nothing within 60 s",
        );
    };
    let error = strict(word(entry, "envelope"))?;
    need(
        error.envelope().meaning() == Some(Intent::Error),
        "an ERROR",
        word(entry, "envelope"),
    )?;
    reports(&error, ErrorCode::Timeout, &letter.id)?;
    same("sender", &to, error.sender())?;
    same("receiver", &from, error.receiver())
}

async fn deadline_kept(p: &Probe) -> CaseStep {
    let to = p.address("b");
    let ((from, answer), end) = in_time(|seconds, end| {
        let (from, to) = (p.address(&format!("a{seconds}")), &to);
        async move {
            let letter = p.letter("REQUEST", &from, to, |b| {
                b.meta("routing", "X-Deadline", end.to_string())
            })?;
            p.take(&letter).await?;
            let answer = p.letter("RESPOND", to, &from, |b| {
                b.thread(&letter.thread).parent(&letter.id)
            })?;
            p.take(&answer).await?;
            // An answer that is late does not keep the deadline.
            match is_over(end) {
                true => skipped("the relay is too slow to be answered in time"),
                false => Ok((from, answer)),
            }
        }
    })
    .await?;
    let inbox = p.inbox(&from).await?;
    equal(&ids(&inbox), &[answer.id.as_str()])?;
    // Behind the RESPOND nothing comes, also after the deadline.
    wait_until_past(end).await;
    let path = format!(
        "/crosstalk/inbox?for={}&wait=2&after={}",
        encoded(&from),
        encoded(word(&inbox, "cursor"))
    );
    let later = p.json(SuiteRequest::get(path)).await?;
    need(ids(&later).is_empty(), "nothing else", later.to_string())
}

async fn hold_ended(p: &Probe) -> CaseStep {
    let to = p.address("b");
    let decider = match p.wire.has_token() {
        true => Some(
            make_token(p, "decider", "person", &[p.person("decider")])
                .await?
                .1,
        ),
        false => None,
    };
    // No relay holds a message that comes after its end.
    let (letter, end) = in_time(|_, end| {
        let to = &to;
        async move {
            let letter = p.letter("REQUEST", &p.address("a"), to, |b| {
                b.meta("privacy", "Scope", "conform-hold")
                    .meta("privacy", "Consent", "explicit_yes")
                    .meta("privacy", "Expires", end.to_string())
            })?;
            let answer = p.post(letter.text.clone()).await?;
            match answer.status == 200 && answer.text().contains("\nState: held\n") {
                true => Ok(letter),
                false => skipped("this relay does not hold messages with `Scope: conform-hold`"),
            }
        }
    })
    .await?;
    wait_until_past(end).await;
    let Ok(digest) = strict(&letter.text)?.digest() else {
        return failed("a canonical form", "none");
    };
    let path = format!("/crosstalk/approvals/{}", encoded(&letter.id));
    let request = SuiteRequest::new("POST", path).json(&json!({
        "digest": digest.to_string(),
        "raw": Digest::of(letter.text.as_bytes()).to_string(),
        "decision": "approve",
        "reason": "as the suite wants it",
    }));
    let request = match &decider {
        Some(token) => by(token, request),
        None => request,
    };
    let answer = p.send(request.accept("application/json")).await?;
    answer.has_status(409)?;
    let ids = p.inbox_ids(&to).await?;
    holds(ids.is_empty(), "an empty inbox", &ids)
}
