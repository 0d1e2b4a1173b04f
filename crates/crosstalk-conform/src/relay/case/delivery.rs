//! Ways of delivery, the courier's queue and dead letters (HTP-045 to HTP-047).

use super::case;
use super::who::{end, make};
use crate::relay::Case;
use crate::relay::probe::{
    Letter, Probe, Step, acked, allowed, by as credential, ids, inbox_path, need, object, refused,
    reports, same, skipped, strict, word,
};
use crate::relay::wire::Request;
use crosstalk_envelope::CoreHeader;
use crosstalk_envelope::registry::{ErrorCode, rule};
use serde_json::{Value, json};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("courier-asked", &rule::HTTP_COURIER, "X-Delivery: copy_paste waits for a person", courier_asked),
    case!("courier-name", &rule::HTTP_COURIER, "so does a simple name that leads nowhere", courier_name),
    case!("courier-carried", &rule::HTTP_COURIER, "what was carried is delivered, and waits no more", carried),
    case!("courier-inbox", &rule::HTTP_COURIER, "a name that a token is bound to is an inbox, and nothing to carry", inbox_of_token),
    case!("courier-words", &rule::HTTP_COURIER, "a courier's words are not told in the name of the receiver", words),
    case!("way-inbox", &rule::HTTP_DELIVERY_WAY, "X-Delivery: inbox puts a message into the inbox", way_inbox),
    case!("way-missing", &rule::HTTP_DELIVERY_WAY, "a way that there is no route for is E-ROUTE", way_missing),
    case!("way-unknown", &rule::HTTP_DELIVERY_WAY, "a way that the relay does not know is E-UNSUPPORTED", way_unknown),
    case!("dead-requeue", &rule::HTTP_DEAD_LETTERS, "a delivery that failed is listed, and can be queued again", dead),
    case!("dead-told", &rule::HTTP_DEAD_LETTERS, "the sender of a delivery that was given up gets an ERROR", told),
];

async fn by(p: &Probe, way: &str) -> Step<Letter> {
    p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        b.meta("routing", "X-Delivery", way)
    })
}

/// Whether a message waits for a person.
async fn waits(p: &Probe, id: &str) -> Step<bool> {
    let request = Request::get("/crosstalk/courier?limit=500").accept("application/json");
    let answer = p.send(request).await?;
    allowed(&answer, "see the courier's queue")?;
    let ids = ids(&object(&answer, 200)?);
    match ids.iter().any(|i| i == id) {
        false if ids.len() >= 500 => skipped("the courier's queue is too long to see all of it"),
        found => Ok(found),
    }
}

async fn courier_asked(p: &Probe) -> Step {
    let letter = by(p, "copy_paste").await?;
    p.take(&letter).await?;
    need(
        waits(p, &letter.id).await?,
        "the message in the courier's queue",
        "it is not there",
    )?;
    let delivery = p.delivery(&letter.id, &p.address("b")).await?;
    same("by", "copy_paste", word(&delivery, "by"))
}

async fn courier_name(p: &Probe) -> Step {
    let letter = p.request(&p.address("a"), &p.word("chat"))?;
    let answer = p.post(letter.text).await?;
    if answer.status == 404 {
        return skipped("this relay refuses names that it does not know");
    }
    acked(&answer)?;
    need(
        waits(p, &letter.id).await?,
        "the message in the courier's queue",
        "it is not there",
    )
}

async fn inbox_of_token(p: &Probe) -> Step {
    let address = p.word("bound");
    let (name, token) = make(p, "bound", "agent", &address).await?;
    let letter = p.request(&p.address("a"), &address)?;
    let sent = p.post(letter.text).await?;
    let waits = waits(p, &letter.id).await;
    let inbox = Request::get(inbox_path(&address, "")).accept("application/json");
    let inbox = p.send(credential(&token, inbox)).await?;
    end(p, &name).await?;
    acked(&sent)?;
    need(
        !waits?,
        "a courier's queue without the message",
        "it is there",
    )?;
    let ids = ids(&object(&inbox, 200)?);
    need(
        ids.contains(&letter.id),
        "the message in the inbox of the token",
        ids.join(", "),
    )
}

async fn carry(p: &Probe, id: &str, said: &Value) -> Step {
    let request = Request::new("POST", format!("/crosstalk/courier/{id}")).json(said);
    let answer = p.send(request.accept("application/json")).await?;
    allowed(&answer, "carry messages")?;
    object(&answer, 200).map(drop)
}

async fn carried(p: &Probe) -> Step {
    let letter = by(p, "copy_paste").await?;
    p.take(&letter).await?;
    let to = p.address("b");
    carry(p, &letter.id, &json!({"to": to, "state": "carried"})).await?;
    p.need_state(&letter.id, &to, "delivered").await?;
    need(
        !waits(p, &letter.id).await?,
        "a queue without the message",
        "it is still there",
    )
}

async fn way_inbox(p: &Probe) -> Step {
    let letter = by(p, "inbox").await?;
    p.take(&letter).await?;
    p.entry(&p.address("b"), &letter.id).await.map(drop)
}

async fn way_missing(p: &Probe) -> Step {
    let letter = by(p, "exec").await?;
    let answer = p.post(letter.text).await?;
    refused(&answer, 404, ErrorCode::Route).map(drop)
}

async fn way_unknown(p: &Probe) -> Step {
    for way in ["email", "pigeon"] {
        let letter = by(p, way).await?;
        let answer = p.post(letter.text).await?;
        refused(&answer, 422, ErrorCode::Unsupported)?;
    }
    Ok(())
}

/// What a courier says.
const GONE: &str = "the chat is gone";

/// A message that a person could not carry.
async fn given_up(p: &Probe) -> Step<Letter> {
    let letter = by(p, "copy_paste").await?;
    p.take(&letter).await?;
    let said = json!({"to": p.address("b"), "state": "failed", "reason": GONE});
    carry(p, &letter.id, &said).await?;
    Ok(letter)
}

async fn dead(p: &Probe) -> Step {
    let (letter, to) = (given_up(p).await?, p.address("b"));
    p.need_state(&letter.id, &to, "failed").await?;
    let answer = p
        .send(Request::get("/crosstalk/dead?limit=500").accept("application/json"))
        .await?;
    allowed(&answer, "see dead letters")?;
    let all = object(&answer, 200)?;
    let list = all.get("letters").and_then(Value::as_array);
    let own = list
        .into_iter()
        .flatten()
        .find(|l| word(l, "id") == letter.id);
    let own = own.cloned().unwrap_or_default();
    same("to", &to, word(&own, "to"))?;
    let reason = word(&own, "reason");
    need(reason.contains(GONE), format!("{GONE} in `reason`"), reason)?;
    let path = format!("/crosstalk/dead/{}/requeue", letter.id);
    let answer = p.json(Request::new("POST", path)).await?;
    need(
        answer.get("requeued") == Some(&json!(1)),
        "{\"requeued\": 1}",
        answer.to_string(),
    )?;
    p.need_state(&letter.id, &to, "queued").await.map(drop)
}

async fn words(p: &Probe) -> Step {
    given_up(p).await?;
    let path = inbox_path(&p.address("a"), "&wait=30");
    let inbox = p.json(Request::get(path)).await?;
    let entry = inbox.pointer("/messages/0").cloned().unwrap_or_default();
    let text = word(&entry, "envelope");
    need(
        !text.contains(GONE),
        "an ERROR without what the courier wrote",
        text,
    )
}

async fn told(p: &Probe) -> Step {
    let letter = given_up(p).await?;
    let path = inbox_path(&p.address("a"), "&wait=30");
    let inbox = p.json(Request::get(path)).await?;
    let entry = inbox.pointer("/messages/0").cloned().unwrap_or_default();
    need(
        !entry.is_null(),
        "an ERROR in the inbox of the sender",
        inbox.to_string(),
    )?;
    let error = strict(word(&entry, "envelope"))?;
    same(
        "intent",
        "ERROR",
        error.header(CoreHeader::Intent).unwrap_or("none"),
    )?;
    reports(&error, ErrorCode::Route, &letter.id)
}
