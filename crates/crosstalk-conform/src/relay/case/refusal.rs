//! How a request is refused (HTP-004 to HTP-006).

use super::case;
use crate::relay::Case;
use crate::relay::probe::{Letter, Probe, Step, failed, need, object, receive, refused, same};
use crate::relay::wire::Request;
use crosstalk_envelope::id::new_ulid;
use crosstalk_envelope::registry::{ErrorCode, rule};
use crosstalk_envelope::{CoreHeader, Document};
use serde_json::Value;

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("refusal-json", &rule::HTTP_REFUSAL, "who accepts JSON gets the refusal as an object", json),
    case!("refusal-place", &rule::HTTP_REFUSAL, "a refusal names the rule and the place", place),
    case!("refusal-every-path", &rule::HTTP_REFUSAL, "a refusal is an ERROR envelope on every path", every_path),
    case!("refusal-accept", &rule::HTTP_REFUSAL, "an Accept that can't be satisfied gets the envelope", accept),
    case!("status-path", &rule::HTTP_STATUS, "an unknown path is 404 E-ROUTE", path),
    case!("status-unknown", &rule::HTTP_STATUS, "a message, thread or attachment that is not there is 404 E-ROUTE", unknown),
    case!("status-method", &rule::HTTP_STATUS, "a method that a path does not have is 405 with Allow", method),
    case!("system-unknown", &rule::HTTP_SYSTEM_ANSWERS, "what has no direction line is answered by SYSTEM to UNKNOWN", to_unknown),
    case!("system-sender", &rule::HTTP_SYSTEM_ANSWERS, "SYSTEM takes over what could be read", to_sender),
    case!("system-not", &rule::HTTP_SYSTEM_ANSWERS, "what was read is answered in the name of its receiver", from_receiver),
];

async fn json(p: &Probe) -> Step {
    let answer = p.send(receive("hello").accept("application/json")).await?;
    let value = object(&answer, 400)?;
    let error = value.get("error").cloned().unwrap_or_default();
    let is_text = |key: &str| {
        error
            .get(key)
            .and_then(Value::as_str)
            .is_some_and(|t| !t.is_empty())
    };
    let good = error.get("code").and_then(Value::as_str) == Some("E-FORMAT")
        && is_text("reason")
        && is_text("detail");
    need(
        good,
        "{\"error\": {\"code\": \"E-FORMAT\", \"reason\", \"detail\"}}",
        value.to_string(),
    )
}

async fn place(p: &Probe) -> Step {
    let text = p.request(&p.address("a"), &p.address("b"))?.text;
    let line = 1 + text
        .lines()
        .take_while(|l| !l.starts_with("  A message"))
        .count();
    let answer = p.post(text.replace("  A message", "A message")).await?;
    let error = refused(&answer, 400, ErrorCode::Format)?;
    let get = |key| error.meta("error", key).unwrap_or("none").to_owned();
    same("Rule", rule::BODY_INDENT.id, &get("Rule"))?;
    same("Line", &line.to_string(), &get("Line"))?;
    same("Column", "1", &get("Column"))
}

async fn every_path(p: &Probe) -> Step {
    let id = new_ulid();
    for path in [
        "/crosstalk/inbox".to_owned(),
        "/crosstalk/inbox?for=".to_owned(),
        "/crosstalk/search".to_owned(),
        "/crosstalk/resolve".to_owned(),
    ] {
        refused(&p.send(Request::get(path)).await?, 400, ErrorCode::Format)?;
    }
    let path = format!("/crosstalk/messages/{id}/status");
    refused(&p.send(Request::get(path)).await?, 404, ErrorCode::Route).map(drop)
}

async fn accept(p: &Probe) -> Step {
    let answer = p.send(receive("hello").accept("image/png")).await?;
    refused(&answer, 400, ErrorCode::Format).map(drop)
}

async fn path(p: &Probe) -> Step {
    for path in ["/crosstalk/nothing", "/crosstalk/receive/more"] {
        refused(&p.send(Request::get(path)).await?, 404, ErrorCode::Route)?;
    }
    Ok(())
}

async fn unknown(p: &Probe) -> Step {
    let (id, zeros) = (new_ulid(), "0".repeat(64));
    for path in [
        format!("/crosstalk/messages/{id}"),
        format!("/crosstalk/threads/{id}"),
        format!("/crosstalk/blobs/sha256:{zeros}"),
    ] {
        refused(&p.send(Request::get(path)).await?, 404, ErrorCode::Route)?;
    }
    Ok(())
}

async fn method(p: &Probe) -> Step {
    for (method, path, right) in [
        ("GET", "/crosstalk/receive", "POST"),
        ("DELETE", "/crosstalk/inbox", "GET"),
        ("PUT", "/crosstalk/ack", "POST"),
    ] {
        let answer = p.send(Request::new(method, path)).await?;
        refused(&answer, 405, ErrorCode::Unsupported)?;
        let allow = answer.header("allow");
        let lists = allow.split(',').any(|m| m.trim() == right);
        need(lists, format!("Allow: {right}"), format!("Allow: {allow}"))?;
    }
    Ok(())
}

async fn to_unknown(p: &Probe) -> Step {
    let error = refused(&p.post("hello").await?, 400, ErrorCode::Format)?;
    let direction = format!("{}→{}", error.sender(), error.receiver());
    same("direction", "SYSTEM→UNKNOWN", &direction)
}

async fn to_sender(p: &Probe) -> Step {
    let from = p.address("a");
    let letter = p.request(&from, &p.address("b"))?;
    // The body mark is missing its `|`.
    let answer = p
        .post(letter.text.replace("\nbody: |\n", "\nbody: yes\n"))
        .await?;
    let error = refused(&answer, 400, ErrorCode::Format)?;
    same("sender", "SYSTEM", error.sender())?;
    same("receiver", &from, error.receiver())?;
    takes_over(&error, &letter)
}

/// An ERROR names the thread, the id and the intent of the REQUEST that it refuses.
fn takes_over(error: &Document<'_>, letter: &Letter) -> Step {
    let get = |core| error.header(core).unwrap_or("none");
    same("thread", &letter.thread, get(CoreHeader::Thread))?;
    same("parent", &letter.id, get(CoreHeader::Parent))?;
    let intent = error.meta("error", "Original-Intent");
    same("Original-Intent", "REQUEST", intent.unwrap_or("none"))
}

async fn from_receiver(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.letter("REQUEST", &from, &to, |b| {
        b.meta("privacy", "Consent", "explicit_no")
    })?;
    let answer = p.post(letter.text.clone()).await?;
    let error = refused(&answer, 403, ErrorCode::Consent)?;
    let direction = format!("{}→{}", error.sender(), error.receiver());
    same("direction", &format!("{to}→{from}"), &direction)?;
    let get = |core| error.header(core).unwrap_or("none");
    same("user", "system", get(CoreHeader::User))?;
    takes_over(&error, &letter)?;
    match get(CoreHeader::Message) {
        id if id == letter.id => failed("an id of its own", "that of the message"),
        _ => Ok(()),
    }
}
