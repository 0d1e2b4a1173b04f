//! Who gets a message, and what the recipient says to it (HTP-026 to HTP-029).
//!
//! What agents can do is a matter of the operator. A relay that is to be tested with agents assigns `conform-skill` to
//! `claude://conform/able`, and nothing to others.

use super::case;
use crate::relay::Case;
use crate::relay::probe::{
    Probe, Step, acked, allowed, encoded, entry_of, need, object, refused, skipped, word, words,
};
use crate::relay::wire::Request;
use crosstalk_envelope::registry::{ErrorCode, rule};
use serde_json::{Value, json};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("targets-each", &rule::HTTP_TARGETS, "a POLL goes to each of its Targets once, and not to its receiver", targets),
    case!("targets-broadcast", &rule::HTTP_TARGETS, "so does a BROADCAST with Targets", broadcast),
    case!("targets-limit", &rule::HTTP_TARGETS, "more than 256 Targets are E-TOO-LARGE", too_many),
    case!("escalate-person", &rule::HTTP_ESCALATE_TO_PERSON, "an ESCALATE to a person has the thread so far", escalate),
    case!("escalate-elsewhere", &rule::HTTP_ESCALATE_TO_PERSON, "an ESCALATE to somebody else goes to a person, or is E-ROUTE", elsewhere),
    case!("handoff-unassigned", &rule::HTTP_HANDOFF_CAPABLE, "a HANDOFF to an agent without the capability is E-UNSUPPORTED, whatever it declares", unassigned),
    case!("handoff-assigned", &rule::HTTP_HANDOFF_CAPABLE, "a HANDOFF to an agent with the capability is taken, with the thread so far", assigned),
    case!("handoff-any", &rule::HTTP_HANDOFF_CAPABLE, "for ANY the relay picks an agent with the capability", any),
    case!("handoff-nobody", &rule::HTTP_HANDOFF_CAPABLE, "for ANY with a capability that agents only declare the answer is E-ROUTE", nobody),
    case!("handoff-steward", &rule::HTTP_HANDOFF_CAPABLE, "only the steward hands a thread on", steward),
    case!("ack-intent", &rule::HTTP_ACK_STATE, "an ACK from the recipient makes the delivery acknowledged", ack),
    case!("nack-intent", &rule::HTTP_ACK_STATE, "a NACK from the recipient makes the delivery failed", nack),
    case!("ack-stranger", &rule::HTTP_ACK_STATE, "an ACK from somebody else changes nothing", stranger),
];

async fn each(p: &Probe, intent: &str) -> Step {
    let targets: Vec<String> = ["b", "c", "d"].iter().map(|w| p.address(w)).collect();
    // One of them stands there twice.
    let list = format!(
        "{}, {}, {}, {}",
        targets.join(", "),
        p.address("b"),
        p.address("c"),
        p.address("d")
    );
    let letter = p.letter(intent, &p.address("a"), &p.address("all"), |b| {
        b.meta("routing", "Targets", list)
    })?;
    p.take(&letter).await?;
    for target in &targets {
        let ids = p.inbox_ids(target).await?;
        need(
            ids == [letter.id.clone()],
            format!("the {intent}, once, for {target}"),
            format!("{ids:?}"),
        )?;
    }
    let ids = p.inbox_ids(&p.address("all")).await?;
    need(
        ids.is_empty(),
        "nothing for the receiver",
        format!("{ids:?}"),
    )
}

async fn targets(p: &Probe) -> Step {
    each(p, "POLL").await
}

async fn broadcast(p: &Probe) -> Step {
    each(p, "BROADCAST").await
}

async fn too_many(p: &Probe) -> Step {
    let all: Vec<String> = (0..257).map(|n| p.address(&n.to_string())).collect();
    let letter = p.letter("BROADCAST", &p.address("a"), &p.address("all"), |b| {
        b.meta("routing", "Targets", all.join(", "))
    })?;
    refused(&p.post(letter.text).await?, 413, ErrorCode::TooLarge).map(drop)
}

/// The entry of a message for somebody whom this credential may not be able to read for.
async fn entry(p: &Probe, address: &str, id: &str) -> Step<Value> {
    let path = format!("/crosstalk/inbox?for={}", encoded(address));
    let answer = p
        .send(Request::get(path).accept("application/json"))
        .await?;
    allowed(&answer, &format!("read for {address}"))?;
    entry_of(&object(&answer, 200)?, address, id)
}

fn need_history(entry: &Value, before: &str) -> Step {
    let history = words(entry, "history");
    need(
        history.len() == 1 && history.iter().all(|e| e.contains(before)),
        format!("a history with the message {before}"),
        format!("{history:?}"),
    )
}

async fn escalate(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let first = p.request(&from, &to)?;
    p.take(&first).await?;
    let person = p.person("queue");
    let letter = p.letter("ESCALATE", &to, &person, |b| {
        b.thread(&first.thread).parent(&first.id)
    })?;
    p.take(&letter).await?;
    need_history(&entry(p, &person, &letter.id).await?, &first.id)
}

async fn elsewhere(p: &Probe) -> Step {
    let letter = p.letter("ESCALATE", &p.address("a"), &p.address("b"), |b| b)?;
    let answer = p.post(letter.text).await?;
    if answer.status != 200 {
        return refused(&answer, 404, ErrorCode::Route).map(drop);
    }
    acked(&answer)?;
    let status = p
        .json(Request::get(format!(
            "/crosstalk/messages/{}/status",
            letter.id
        )))
        .await?;
    let list = status.get("deliveries").and_then(Value::as_array);
    let is_person = |d: &Value| word(d, "to").starts_with("human:");
    let good = list.is_some_and(|l| !l.is_empty() && l.iter().all(is_person));
    need(good, "a delivery to a human:// address", status.to_string())
}

async fn declare(p: &Probe, address: &str, capability: &str) -> Step {
    let agent = json!({"address": address, "capabilities": [capability]});
    p.json(Request::new("PUT", "/crosstalk/agents").json(&agent))
        .await
        .map(drop)
}

/// The agent that a relay assigns a capability to, and the capability.
async fn able(p: &Probe) -> Step<(String, &'static str)> {
    let (address, skill) = ("claude://conform/able", "conform-skill");
    let all = p.json(Request::get("/crosstalk/agents")).await?;
    let list = all.get("agents").and_then(Value::as_array);
    let mut list = list.into_iter().flatten();
    let is_able = |a: &Value| word(a, "address") == address && words(a, "capabilities") == [skill];
    match list.any(is_able) {
        true => Ok((p.noted(address.into()), skill)),
        false => skipped(format!("this relay does not assign `{skill}` to {address}")),
    }
}

async fn unassigned(p: &Probe) -> Step {
    declare(p, &p.address("b"), &p.word("skill")).await?;
    let letter = p.letter("HANDOFF", &p.address("a"), &p.address("b"), |b| {
        b.meta("routing", "X-Capabilities-Required", p.word("skill"))
    })?;
    refused(&p.post(letter.text).await?, 422, ErrorCode::Unsupported).map(drop)
}

async fn assigned(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let (next, skill) = able(p).await?;
    let first = p.request(&from, &to)?;
    p.take(&first).await?;
    let letter = p.letter("HANDOFF", &to, &next, |b| {
        b.thread(&first.thread)
            .meta("routing", "X-Capabilities-Required", skill)
    })?;
    p.take(&letter).await?;
    need_history(&entry(p, &next, &letter.id).await?, &first.id)
}

async fn any(p: &Probe) -> Step {
    let (able, skill) = able(p).await?;
    declare(p, &p.address("other"), skill).await?;
    let letter = p.letter("HANDOFF", &p.address("a"), "ANY", |b| {
        b.meta("routing", "X-Capabilities-Required", skill)
    })?;
    p.take(&letter).await?;
    let path = format!("/crosstalk/messages/{}/status", letter.id);
    let status = p.json(Request::get(path)).await?;
    let list = status.get("deliveries").and_then(Value::as_array);
    let good = list.is_some_and(|l| matches!(l.as_slice(), [d] if word(d, "to") == able));
    need(good, format!("one delivery, to {able}"), status.to_string())
}

async fn nobody(p: &Probe) -> Step {
    declare(p, &p.address("other"), &p.word("skill")).await?;
    let letter = p.letter("HANDOFF", &p.address("a"), "ANY", |b| {
        b.meta("routing", "X-Capabilities-Required", p.word("skill"))
    })?;
    refused(&p.post(letter.text).await?, 404, ErrorCode::Route).map(drop)
}

async fn steward(p: &Probe) -> Step {
    let (from, to, third) = (p.address("a"), p.address("b"), p.address("c"));
    let first = p.letter("HANDOFF", &from, &to, |b| b)?;
    p.take(&first).await?;
    let stolen = p.letter("HANDOFF", &from, &third, |b| b.thread(&first.thread))?;
    refused(&p.post(stolen.text).await?, 403, ErrorCode::Perm)?;
    let onward = p.letter("HANDOFF", &to, &third, |b| b.thread(&first.thread))?;
    p.take(&onward).await.map(drop)
}

/// What becomes of a delivery when somebody answers with an intent.
async fn said(p: &Probe, intent: &str, by: &str, state: &str) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.request(&from, &to)?;
    p.take(&letter).await?;
    let word = p.letter(intent, by, &from, |b| {
        b.thread(&letter.thread).parent(&letter.id)
    })?;
    let answer = p.post(word.text).await?;
    if by != to && answer.status != 200 {
        return skipped("the relay does not take it at all, which is as good");
    }
    acked(&answer)?;
    p.need_state(&letter.id, &to, state).await.map(drop)
}

async fn ack(p: &Probe) -> Step {
    said(p, "ACK", &p.address("b"), "acknowledged").await
}

async fn nack(p: &Probe) -> Step {
    said(p, "NACK", &p.address("b"), "failed").await
}

async fn stranger(p: &Probe) -> Step {
    said(p, "ACK", &p.address("stranger"), "queued").await
}
