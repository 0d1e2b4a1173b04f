//! Messages at the same moment, answers while somebody waits, streams, pages.

use super::code;
use crate::relay::CaseFunction;
use crate::relay::probe::{
    CaseStep, Probe, SuiteMessage, acked, encoded, envelope, equal, failed, holds, ids, inbox_path,
    listed, need, receive, same, strict, word,
};
use crate::relay::wire::{EventStream, StreamEvent, SuiteAnswer, SuiteRequest};
use crosstalk_envelope::{CoreHeader, Intent};
use serde_json::Value;
use std::time::{Duration, Instant};

pub(super) const CODE: &[(&str, CaseFunction)] = &[
    code!("replay-at-once", at_once),
    code!("wait-answer", wait_answer),
    code!("wait-without-id", wait_without_id),
    code!("wait-inbox", wait_inbox),
    code!("wait-long", wait_long),
    code!("stream-message", stream),
    code!("stream-continued", continued),
    code!("cursor-pages", pages),
    code!("wait-comes", wait),
    code!("wait-nothing", wait_nothing),
];

pub(super) fn same_answer(first: &SuiteAnswer, again: &SuiteAnswer) -> CaseStep {
    acked(again)?;
    same("answer", &first.text(), &again.text())
}

pub(super) async fn once(p: &Probe, to: &str, id: &str) -> CaseStep {
    let ids = p.inbox_ids(to).await?;
    equal(&ids, &[id])
}

async fn at_once(p: &Probe) -> CaseStep {
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    let send = || p.post(letter.text.clone());
    let (a, b, c, d, e, f) = tokio::join!(send(), send(), send(), send(), send(), send());
    let first = a?;
    acked(&first)?;
    for again in [b, c, d, e, f] {
        same_answer(&first, &again?)?;
    }
    once(p, &to, &letter.id).await
}

/// Sends a message that waits, and the RESPOND to it when it is in the inbox. A message without an id is answered under the
/// id that the inbox gives it.
async fn answered(
    p: &Probe,
    text: String,
    known: Option<&SuiteMessage>,
    wait: &str,
) -> CaseStep<(SuiteAnswer, SuiteMessage)> {
    let (from, to) = (p.address("a"), p.address("b"));
    let ask = p.send(receive(text).header("Prefer", format!("wait={wait}")));
    let reply = async {
        let inbox = p
            .json(SuiteRequest::get(inbox_path(&to, "&wait=30")))
            .await?;
        let answer = match (known, ids(&inbox).pop()) {
            (Some(letter), _) => p.letter("RESPOND", &to, &from, |b| {
                b.thread(&letter.thread)
                    .parent(&letter.id)
                    .body("Forty-two.")
            })?,
            (None, Some(id)) => {
                p.letter("RESPOND", &to, &from, |b| b.parent(id).body("Forty-two."))?
            }
            (None, None) => return failed("the message in the inbox", inbox.to_string()),
        };
        p.take(&answer).await?;
        CaseStep::Ok(answer)
    };
    let (answer, reply) = tokio::join!(ask, reply);
    Ok((answer?, reply?))
}

async fn asked(p: &Probe, wait: &str) -> CaseStep<(SuiteAnswer, SuiteMessage)> {
    let letter = p.request(&p.address("a"), &p.address("b"))?;
    answered(p, letter.text.clone(), Some(&letter), wait).await
}

async fn wait_answer(p: &Probe) -> CaseStep {
    let (answer, reply) = asked(p, "30").await?;
    answer.require(answer.status == 200, "200 and the RESPOND")?;
    let came = envelope(&answer)?;
    answer.require(
        came.envelope().meaning() == Some(Intent::Respond),
        "the RESPOND",
    )?;
    equal(&came.header(CoreHeader::Message), &Some(reply.id.as_str()))?;
    answer.has_header("preference-applied", "wait=30")
}

async fn wait_without_id(p: &Probe) -> CaseStep {
    let letter = p.letter("QUESTION", &p.address("a"), &p.address("b"), |b| {
        b.session(format!("2025-10-09T16Z {}", p.word("session")))
    })?;
    let is_id = |line: &&str| !line.starts_with("message: ") && !line.starts_with("thread: ");
    let lines = letter.text.split_inclusive('\n').filter(is_id);
    let (answer, reply) = answered(p, lines.collect(), None, "30").await?;
    let came = envelope(&answer)?;
    equal(&came.header(CoreHeader::Message), &Some(reply.id.as_str()))
}

async fn wait_inbox(p: &Probe) -> CaseStep {
    let (_, reply) = asked(p, "30").await?;
    p.entry(&p.address("a"), &reply.id).await.map(drop)
}

async fn wait_long(p: &Probe) -> CaseStep {
    let (answer, _) = asked(p, "86400").await?;
    answer.has_header("preference-applied", "wait=60")
}

async fn some(p: &Probe, number: usize) -> CaseStep<Vec<String>> {
    let mut ids = Vec::new();
    for _ in 0..number {
        ids.push(one(p).await?.id);
    }
    Ok(ids)
}

async fn one(p: &Probe) -> CaseStep<SuiteMessage> {
    let letter = p.request(&p.address("a"), &p.address("b"))?;
    p.take(&letter).await?;
    Ok(letter)
}

/// The inbox of the recipient, with further parameters.
async fn get(p: &Probe, more: &str) -> CaseStep<Value> {
    let inbox = p
        .json(SuiteRequest::get(inbox_path(&p.address("b"), more)))
        .await?;
    listed(&inbox)?;
    Ok(inbox)
}

async fn open(p: &Probe, last: Option<&str>) -> CaseStep<EventStream> {
    let mut request =
        SuiteRequest::get(inbox_path(&p.address("b"), "")).accept("text/event-stream");
    if let Some(id) = last {
        request = request.header("Last-Event-ID", id);
    }
    let events = p.events(request).await?;
    let good = events.head.status == 200 && events.head.kind() == "text/event-stream";
    events.head.require(good, "200 and text/event-stream")?;
    Ok(events)
}

async fn next(events: &mut EventStream, id: &str) -> CaseStep<StreamEvent> {
    let event = events.next().await?;
    same("event", "message", &event.name)?;
    holds(!event.id.is_empty(), "an event with an id", &event)?;
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    equal(word(&data, "id"), id)?;
    strict(word(&data, "envelope"))?;
    Ok(event)
}

async fn stream(p: &Probe) -> CaseStep {
    let first = one(p).await?;
    let mut events = open(p, None).await?;
    next(&mut events, &first.id).await?;
    let second = one(p).await?;
    next(&mut events, &second.id).await.map(drop)
}

async fn continued(p: &Probe) -> CaseStep {
    let first = one(p).await?;
    let second = one(p).await?;
    let event = next(&mut open(p, None).await?, &first.id).await?;
    next(&mut open(p, Some(&event.id)).await?, &second.id)
        .await
        .map(drop)
}

async fn pages(p: &Probe) -> CaseStep {
    let sent = some(p, 5).await?;
    let (mut came, mut more) = (Vec::new(), String::new());
    for _ in 0..4 {
        let page = get(p, &format!("&limit=2{more}")).await?;
        need(ids(&page).len() <= 2, "at most two", page.to_string())?;
        came.extend(ids(&page));
        more = format!("&after={}", encoded(word(&page, "cursor")));
    }
    equal(&came, &sent)?;
    let last = one(p).await?;
    let rest = ids(&get(p, &more).await?);
    equal(&rest, &[last.id.as_str()])
}

async fn wait(p: &Probe) -> CaseStep {
    let held = get(p, "&wait=30");
    tokio::pin!(held);
    // The answer must not come while there is nothing.
    tokio::select! {
        early = &mut held => return failed("no answer before there is a message", early?.to_string()),
        () = tokio::time::sleep(Duration::from_millis(700)) => {}
    }
    let (inbox, letter) = tokio::join!(held, one(p));
    let (inbox, letter) = (inbox?, letter?);
    match ids(&inbox) == [letter.id.clone()] {
        true => Ok(()),
        false => failed(format!("[{}]", letter.id), inbox.to_string()),
    }
}

async fn wait_nothing(p: &Probe) -> CaseStep {
    let began = Instant::now();
    let came = ids(&get(p, "&wait=2").await?);
    equal(&came, &[""; 0])?;
    let time = began.elapsed();
    let is_late = time > Duration::from_millis(1900);
    holds(is_late, "[] after two seconds", &time)
}
