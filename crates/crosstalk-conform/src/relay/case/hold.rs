//! Messages that wait for a person (CON-060 to CON-067).
//!
//! Which messages wait is a matter of the relay. The suite sends some with `Scope: conform-hold`; a relay that is to be
//! tested holds those.

use super::{case, who};
use crate::relay::Case;
use crate::relay::probe::{
    AHEAD_SECONDS, Letter, Probe, Step, by, encoded, failed, from_now, is_over, need, object, same,
    skipped, wait_until_past, word,
};
use crate::relay::wire::{Answer, Request};
use crosstalk_envelope::Builder;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::rule;
use serde_json::{Value, json};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("hold-unseen", &rule::HOLD_UNSEEN, "who gets a message does not see it while it waits", unseen),
    case!("hold-receipt", &rule::HOLD_RECEIPT, "the ACK says that it waits, and is the same again and after the decision", receipt),
    case!("hold-agent", &rule::HOLD_PEOPLE, "an agent neither sees what waits nor decides", agent),
    case!("hold-listed", &rule::HOLD_LISTED, "what waits is listed exactly as it came, with its digests", listed),
    case!("hold-approved", &rule::HOLD_DECIDED, "what a person approves is in the inbox", approved),
    case!("hold-other", &rule::HOLD_ONCE, "a decision with other digests is refused and changes nothing", other),
    case!("hold-once", &rule::HOLD_ONCE, "the second decision is refused", once),
    case!("hold-refused", &rule::HOLD_REFUSED, "the sender of what is refused gets an ERROR with the reason", refused),
    case!("hold-ended", &rule::HOLD_ENDED, "what has run out is not approved", ended),
];

/// Somebody who decides, besides whoever hands in.
struct Person(Option<String>);

impl Person {
    async fn new(p: &Probe) -> Step<Self> {
        match p.wire.has_token() {
            false => Ok(Self(None)),
            true => {
                let (_, token) = who::make(p, "decider", "person", &p.person("decider")).await?;
                Ok(Self(Some(token)))
            }
        }
    }

    async fn send(&self, p: &Probe, request: Request) -> Step<Answer> {
        let request = request.accept("application/json");
        match &self.0 {
            Some(token) => p.send(by(token, request)).await,
            None => p.send(request).await,
        }
    }

    async fn decide(&self, p: &Probe, id: &str, decision: &Value) -> Step<Answer> {
        self.send(p, Request::new("POST", path(id)).json(decision))
            .await
    }
}

fn path(id: &str) -> String {
    format!("/crosstalk/approvals/{}", encoded(id))
}

/// Hands a message in that waits.
async fn wait(p: &Probe, change: impl FnOnce(Builder) -> Builder) -> Step<Letter> {
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        let scoped = b.meta("privacy", "Scope", "conform-hold");
        change(scoped.meta("privacy", "Consent", "explicit_yes"))
    })?;
    let answer = p.post(letter.text.clone()).await?;
    match answer.status == 200 && answer.text().contains("\nState: held\n") {
        true => Ok(letter),
        false => skipped("this relay does not hold messages with `Scope: conform-hold`"),
    }
}

fn decision(letter: &Letter, word: &str) -> Step<Value> {
    let document = crate::relay::probe::strict(&letter.text)?;
    let Ok(digest) = document.digest() else {
        return failed("a canonical form", "none");
    };
    Ok(json!({
        "digest": digest.to_string(),
        "raw": Digest::of(letter.text.as_bytes()).to_string(),
        "decision": word,
        "reason": "as the suite wants it",
    }))
}

async fn need_unseen(p: &Probe, letter: &Letter) -> Step {
    let ids = p.inbox_ids(&p.address("b")).await?;
    need(ids.is_empty(), "an empty inbox", format!("{ids:?}"))?;
    p.need_state(&letter.id, &p.address("b"), "held")
        .await
        .map(drop)
}

async fn unseen(p: &Probe) -> Step {
    let letter = wait(p, |b| b).await?;
    need_unseen(p, &letter).await
}

async fn receipt(p: &Probe) -> Step {
    let letter = wait(p, |b| b).await?;
    let first = p.post(letter.text.clone()).await?;
    let person = Person::new(p).await?;
    let decided = person
        .decide(p, &letter.id, &decision(&letter, "approve")?)
        .await?;
    object(&decided, 200)?;
    let again = p.post(letter.text.clone()).await?;
    same("the ACK", &first.text(), &again.text())
}

async fn agent(p: &Probe) -> Step {
    if !p.wire.has_token() {
        return skipped("this relay needs no credential");
    }
    let letter = wait(p, |b| b).await?;
    let (_, token) = who::make(p, "agent", "agent", "*").await?;
    for request in [
        Request::get("/crosstalk/approvals"),
        Request::get(path(&letter.id)),
        Request::new("POST", path(&letter.id)).json(&decision(&letter, "approve")?),
    ] {
        let answer = p.send(by(&token, request)).await?;
        need(answer.status == 403, "403", answer.shown())?;
    }
    need_unseen(p, &letter).await
}

async fn listed(p: &Probe) -> Step {
    let letter = wait(p, |b| b).await?;
    let person = Person::new(p).await?;
    let answer = person.send(p, Request::get(path(&letter.id))).await?;
    let held = object(&answer, 200)?;
    let wanted = decision(&letter, "approve")?;
    same("envelope", &letter.text, word(&held, "envelope"))?;
    same("digest", word(&wanted, "digest"), word(&held, "digest"))?;
    same("raw", word(&wanted, "raw"), word(&held, "raw"))?;
    let all = Request::get("/crosstalk/approvals?limit=500");
    let all = object(&person.send(p, all).await?, 200)?;
    let list = all.get("approvals").and_then(Value::as_array);
    let is_there = list.is_some_and(|l| l.iter().any(|h| word(h, "id") == letter.id));
    need(
        is_there,
        "the message among those that wait",
        "it is not there",
    )
}

async fn approved(p: &Probe) -> Step {
    let letter = wait(p, |b| b).await?;
    let person = Person::new(p).await?;
    let answer = person
        .decide(p, &letter.id, &decision(&letter, "approve")?)
        .await?;
    let decided = object(&answer, 200)?;
    let made = decided.get("decided").cloned().unwrap_or_default();
    same("decision", "approved", word(&made, "decision"))?;
    p.entry(&p.address("b"), &letter.id).await.map(drop)
}

async fn other(p: &Probe) -> Step {
    let letter = wait(p, |b| b).await?;
    let person = Person::new(p).await?;
    for key in ["digest", "raw"] {
        let mut wrong = decision(&letter, "approve")?;
        if let Some(value) = wrong.get_mut(key) {
            *value = json!(Digest::of(b"another message").to_string());
        }
        let answer = person.decide(p, &letter.id, &wrong).await?;
        need(answer.status == 409, "409", answer.shown())?;
    }
    need_unseen(p, &letter).await
}

async fn once(p: &Probe) -> Step {
    let person = Person::new(p).await?;
    for (first, second) in [("approve", "refuse"), ("refuse", "approve")] {
        let letter = wait(p, |b| b).await?;
        let answer = person
            .decide(p, &letter.id, &decision(&letter, first)?)
            .await?;
        need(answer.status == 200, "200", answer.shown())?;
        let answer = person
            .decide(p, &letter.id, &decision(&letter, second)?)
            .await?;
        need(answer.status == 409, "409", answer.shown())?;
    }
    Ok(())
}

async fn refused(p: &Probe) -> Step {
    let letter = wait(p, |b| b).await?;
    let person = Person::new(p).await?;
    let answer = person
        .decide(p, &letter.id, &decision(&letter, "refuse")?)
        .await?;
    need(answer.status == 200, "200", answer.shown())?;
    p.need_state(&letter.id, &p.address("b"), "failed").await?;
    let inbox = p.inbox(&p.address("a")).await?;
    let text = inbox.to_string();
    need(
        text.contains("E-PERM") && text.contains("as the suite wants it"),
        "an ERROR with E-PERM and the reason for the sender",
        text,
    )
}

async fn ended(p: &Probe) -> Step {
    let person = Person::new(p).await?;
    let mut tries = AHEAD_SECONDS.iter();
    let (letter, end) = loop {
        let end = from_now(tries.next().copied().unwrap_or_default());
        let held = wait(p, |b| b.meta("privacy", "Expires", end.to_string())).await;
        // One that came after its end is not held by any relay.
        if held.is_ok() || !is_over(end) || tries.len() == 0 {
            break (held?, end);
        }
    };
    wait_until_past(end).await;
    let answer = person
        .decide(p, &letter.id, &decision(&letter, "approve")?)
        .await?;
    need(answer.status == 409, "409", answer.shown())?;
    let ids = p.inbox_ids(&p.address("b")).await?;
    need(ids.is_empty(), "an empty inbox", format!("{ids:?}"))
}
