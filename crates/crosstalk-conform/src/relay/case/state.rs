//! Acknowledging, the states of a delivery, and what a request may say (HTP-036 to HTP-038).

use super::case;
use crate::relay::Case;
use crate::relay::probe::{Letter, Probe, Step, encoded, need, refused, same, word, words};
use crate::relay::wire::Request;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::id::new_ulid;
use crosstalk_envelope::registry::{ErrorCode, rule};
use serde_json::{Value, json};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("ack-lists", &rule::HTTP_ACK, "the answer says which ids changed and which are unknown", lists),
    case!("ack-empties", &rule::HTTP_ACK, "what was acknowledged is not listed any more", empties),
    case!("ack-default", &rule::HTTP_ACK, "without a state, acknowledged is meant", default),
    case!("ack-again", &rule::HTTP_ACK, "to acknowledge again changes nothing", again),
    case!("ack-other", &rule::HTTP_ACK, "a message of somebody else is unknown, and stays as it is", other),
    case!("states-forward", &rule::HTTP_STATES, "queued, delivered, read, acknowledged, each with its time", forward),
    case!("states-not-back", &rule::HTTP_STATES, "a state does not go back", not_back),
    case!("states-status", &rule::HTTP_STATES, "the status names the message, its thread and its sender", status),
    case!("parameters-range", &rule::HTTP_PARAMETERS, "a limit or a wait out of range is E-FORMAT", range),
    case!("parameters-missing", &rule::HTTP_PARAMETERS, "a parameter that is needed and missing is E-FORMAT", missing),
    case!("parameters-body", &rule::HTTP_PARAMETERS, "a body of another form is E-FORMAT", body),
];

async fn one(p: &Probe) -> Step<Letter> {
    let letter = p.request(&p.address("a"), &p.address("b"))?;
    p.take(&letter).await?;
    Ok(letter)
}

fn need_list(answer: &Value, key: &str, wanted: &[&str]) -> Step {
    let mut came = words(answer, key);
    came.sort();
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    need(
        came == wanted,
        format!("{key}: {wanted:?}"),
        answer.to_string(),
    )
}

async fn lists(p: &Probe) -> Step {
    let to = p.address("b");
    let (one, other, unknown) = (one(p).await?, one(p).await?, new_ulid());
    let answer = p
        .acknowledge(&to, &[&one.id, &unknown, &other.id], "read")
        .await?;
    need_list(&answer, "changed", &[&one.id, &other.id])?;
    need_list(&answer, "unknown", &[&unknown])
}

async fn empties(p: &Probe) -> Step {
    let to = p.address("b");
    let (first, second) = (one(p).await?, one(p).await?);
    p.acknowledge(&to, &[&first.id], "acknowledged").await?;
    let ids = p.inbox_ids(&to).await?;
    need(
        ids == [second.id.clone()],
        format!("[{}]", second.id),
        format!("{ids:?}"),
    )?;
    p.acknowledge(&to, &[&second.id], "read").await?;
    let ids = p.inbox_ids(&to).await?;
    need(
        ids == [second.id.clone()],
        "what was read is still there",
        format!("{ids:?}"),
    )
}

async fn default(p: &Probe) -> Step {
    let (to, letter) = (p.address("b"), one(p).await?);
    let said = json!({"for": to, "ids": [letter.id]});
    p.json(Request::new("POST", "/crosstalk/ack").json(&said))
        .await?;
    p.need_state(&letter.id, &to, "acknowledged")
        .await
        .map(drop)
}

async fn again(p: &Probe) -> Step {
    let (to, letter) = (p.address("b"), one(p).await?);
    p.acknowledge(&to, &[&letter.id], "acknowledged").await?;
    let first = p.need_state(&letter.id, &to, "acknowledged").await?;
    let answer = p.acknowledge(&to, &[&letter.id], "acknowledged").await?;
    need_list(&answer, "changed", &[&letter.id])?;
    let second = p.need_state(&letter.id, &to, "acknowledged").await?;
    same(
        "acknowledged_at",
        word(&first, "acknowledged_at"),
        word(&second, "acknowledged_at"),
    )
}

async fn other(p: &Probe) -> Step {
    let letter = one(p).await?;
    let answer = p
        .acknowledge(&p.address("c"), &[&letter.id], "acknowledged")
        .await?;
    need_list(&answer, "unknown", &[&letter.id])?;
    p.need_state(&letter.id, &p.address("b"), "queued")
        .await
        .map(drop)
}

async fn forward(p: &Probe) -> Step {
    let (to, letter) = (p.address("b"), one(p).await?);
    let mut delivery = p.need_state(&letter.id, &to, "queued").await?;
    let mut last = "queued_at";
    for (state, time) in [
        ("delivered", "delivered_at"),
        ("read", "read_at"),
        ("acknowledged", "acknowledged_at"),
    ] {
        let is_null = delivery.get(time).is_none_or(Value::is_null);
        need(is_null, format!("no {time} yet"), delivery.to_string())?;
        match state {
            "delivered" => drop(p.inbox(&to).await?),
            _ => drop(p.acknowledge(&to, &[&letter.id], state).await?),
        }
        delivery = p.need_state(&letter.id, &to, state).await?;
        let at = |key: &str| Timestamp::parse(word(&delivery, key));
        let follows = at(time).is_some_and(|t| at(last).is_some_and(|l| l <= t));
        need(
            follows,
            format!("{time}, not before {last}"),
            delivery.to_string(),
        )?;
        last = time;
    }
    Ok(())
}

async fn not_back(p: &Probe) -> Step {
    let (to, letter) = (p.address("b"), one(p).await?);
    p.acknowledge(&to, &[&letter.id], "acknowledged").await?;
    p.acknowledge(&to, &[&letter.id], "read").await?;
    p.need_state(&letter.id, &to, "acknowledged").await?;
    p.inbox(&to).await?;
    let nack = p.letter("NACK", &to, &p.address("a"), |b| {
        b.thread(&letter.thread).parent(&letter.id)
    })?;
    p.take(&nack).await?;
    p.need_state(&letter.id, &to, "acknowledged")
        .await
        .map(drop)
}

async fn status(p: &Probe) -> Step {
    let letter = one(p).await?;
    let status = p
        .json(Request::get(format!(
            "/crosstalk/messages/{}/status",
            letter.id
        )))
        .await?;
    same("id", &letter.id, word(&status, "id"))?;
    same("thread", &letter.thread, word(&status, "thread"))?;
    same("sender", &p.address("a"), word(&status, "sender"))?;
    let delivery = p.delivery(&letter.id, &p.address("b")).await?;
    same("by", "inbox", word(&delivery, "by"))?;
    let attempts = delivery.get("attempts").is_some_and(Value::is_u64);
    need(attempts, "attempts: a number", delivery.to_string())
}

async fn range(p: &Probe) -> Step {
    let address = encoded(&p.address("b"));
    for more in [
        "limit=0",
        "limit=501",
        "limit=-1",
        "limit=many",
        "limit=",
        "wait=61",
        "wait=-1",
        "wait=1.5",
    ] {
        let request = Request::get(format!("/crosstalk/inbox?for={address}&{more}"));
        refused(&p.send(request).await?, 400, ErrorCode::Format)?;
    }
    let long = "x".repeat(201);
    let request = Request::get(format!("/crosstalk/inbox?for={address}&after={long}"));
    refused(&p.send(request).await?, 400, ErrorCode::Format).map(drop)
}

async fn missing(p: &Probe) -> Step {
    for path in [
        "/crosstalk/inbox",
        "/crosstalk/inbox?limit=5",
        "/crosstalk/search",
        "/crosstalk/resolve",
    ] {
        refused(&p.send(Request::get(path)).await?, 400, ErrorCode::Format)?;
    }
    Ok(())
}

async fn body(p: &Probe) -> Step {
    let to = p.address("b");
    let many = vec!["x"; 501];
    for said in [
        json!([]),
        json!({}),
        json!({"for": to}),
        json!({"for": to, "ids": []}),
        json!({"for": to, "ids": "all"}),
        json!({"for": to, "ids": [7]}),
        json!({"for": to, "ids": many}),
        json!({"for": to, "ids": ["x"], "state": "queued"}),
    ] {
        let answer = p
            .send(Request::new("POST", "/crosstalk/ack").json(&said))
            .await?;
        refused(&answer, 400, ErrorCode::Format)?;
    }
    let request = Request::new("POST", "/crosstalk/ack").header("Content-Type", "application/json");
    refused(&p.send(request.body("{")).await?, 400, ErrorCode::Format).map(drop)
}
