//! Inboxes: three forms, cursors, waiting (HTP-031 to HTP-035).

use super::case;
use crate::relay::Case;
use crate::relay::probe::{
    Letter, Probe, Step, encoded, failed, ids, inbox_path, listed, need, refused, same, strict,
    word,
};
use crate::relay::wire::{Event, Events, Request};
use crosstalk_envelope::registry::{ErrorCode, rule};
use crosstalk_envelope::{Reading, Timestamp, scan};
use serde_json::Value;
use std::time::{Duration, Instant};

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("inbox-entry", &rule::HTTP_INBOX, "an entry has id, thread, parties, intent, state, time and envelope", entry),
    case!("inbox-order", &rule::HTTP_INBOX, "the oldest comes first", order),
    case!("inbox-empty", &rule::HTTP_INBOX, "an address that nobody wrote to has an empty inbox", empty),
    case!("inbox-own", &rule::HTTP_INBOX, "an inbox has what its address got, and nothing else", own),
    case!("inbox-legacy", &rule::HTTP_INBOX, "the intent of an entry is what was meant", legacy),
    case!("inbox-text", &rule::HTTP_INBOX_TEXT, "as text it is a file of envelopes, with the cursor in a header", text),
    case!("inbox-default", &rule::HTTP_INBOX_TEXT, "without Accept it is text", default),
    case!("stream-message", &rule::HTTP_INBOX_STREAM, "as a stream it gives what is there, then what comes", stream),
    case!("stream-continued", &rule::HTTP_INBOX_STREAM, "Last-Event-ID goes on where a stream ended", continued),
    case!("look-again", &rule::HTTP_INBOX_CURSOR, "looking does not consume", look),
    case!("cursor-pages", &rule::HTTP_INBOX_CURSOR, "from cursor to cursor everything comes once, in order", pages),
    case!("cursor-empty", &rule::HTTP_INBOX_CURSOR, "the cursor of an empty inbox can be used", cursor_of_empty),
    case!("cursor-acknowledged", &rule::HTTP_INBOX_CURSOR, "acknowledging does not move a cursor", acknowledged),
    case!("cursor-strange", &rule::HTTP_INBOX_CURSOR, "a cursor that the relay did not make is refused", strange),
    case!("wait-comes", &rule::HTTP_INBOX_WAIT, "with wait the answer comes with the message", wait),
    case!("wait-nothing", &rule::HTTP_INBOX_WAIT, "when nothing comes the answer is empty", wait_nothing),
    case!("wait-there", &rule::HTTP_INBOX_WAIT, "what is there already is not waited for", wait_there),
];

async fn some(p: &Probe, number: usize) -> Step<Vec<String>> {
    let mut ids = Vec::new();
    for _ in 0..number {
        ids.push(one(p).await?.id);
    }
    Ok(ids)
}

async fn one(p: &Probe) -> Step<Letter> {
    let letter = p.request(&p.address("a"), &p.address("b"))?;
    p.take(&letter).await?;
    Ok(letter)
}

/// The inbox of the recipient, with further parameters.
async fn get(p: &Probe, more: &str) -> Step<Value> {
    let inbox = p
        .json(Request::get(inbox_path(&p.address("b"), more)))
        .await?;
    listed(&inbox)?;
    Ok(inbox)
}

async fn entry(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = one(p).await?;
    let entry = p.entry(&to, &letter.id).await?;
    for (key, wanted) in [
        ("thread", &letter.thread),
        ("from", &from),
        ("to", &to),
        ("intent", &"REQUEST".to_owned()),
    ] {
        same(key, wanted, word(&entry, key))?;
    }
    let state = word(&entry, "state");
    need(
        matches!(state, "queued" | "delivered"),
        "state: queued or delivered",
        state,
    )?;
    let at = word(&entry, "received_at");
    need(
        Timestamp::parse(at).is_some() && at.ends_with('Z'),
        "received_at: a time in UTC",
        at,
    )?;
    strict(word(&entry, "envelope")).map(drop)
}

async fn order(p: &Probe) -> Step {
    let sent = some(p, 5).await?;
    let came = p.inbox_ids(&p.address("b")).await?;
    need(came == sent, format!("{sent:?}"), format!("{came:?}"))
}

async fn empty(p: &Probe) -> Step {
    let came = p.inbox_ids(&p.address("nobody")).await?;
    need(came.is_empty(), "[]", format!("{came:?}"))
}

async fn own(p: &Probe) -> Step {
    one(p).await?;
    for who in ["a", "B", "b/c"] {
        let came = p.inbox_ids(&p.address(who)).await?;
        need(
            came.is_empty(),
            format!("nothing for {who}"),
            format!("{came:?}"),
        )?;
    }
    Ok(())
}

async fn legacy(p: &Probe) -> Step {
    let letter = p.letter("QUESTION", &p.address("a"), &p.address("b"), |b| b)?;
    p.take(&letter).await?;
    let entry = p.entry(&p.address("b"), &letter.id).await?;
    same("intent", "REQUEST", word(&entry, "intent"))?;
    need(
        word(&entry, "envelope").contains("intent: QUESTION"),
        "the envelope as it was written",
        word(&entry, "envelope"),
    )
}

async fn file(p: &Probe, request: Request) -> Step {
    let sent = some(p, 2).await?;
    let answer = p.send(request).await?;
    let kind = answer
        .header("content-type")
        .to_ascii_lowercase()
        .replace(' ', "");
    same("Content-Type", "text/plain;charset=utf-8", &kind)?;
    need(
        answer.status == 200 && answer.has("crosstalk-cursor"),
        "200 with Crosstalk-Cursor",
        answer.shown(),
    )?;
    let text = answer.text();
    let found = scan(&text, Reading::Strict);
    let came: Vec<String> = found
        .documents
        .iter()
        .map(|d| d.envelope().message.unwrap_or_default().to_owned())
        .collect();
    need(
        came == sent && found.refused.is_empty(),
        format!("a file with {sent:?}"),
        format!("{came:?}: {}", answer.shown()),
    )?;
    let more = format!("&after={}", encoded(answer.header("crosstalk-cursor")));
    let rest = ids(&get(p, &more).await?);
    need(
        rest.is_empty(),
        "nothing behind the cursor",
        format!("{rest:?}"),
    )
}

async fn text(p: &Probe) -> Step {
    file(
        p,
        Request::get(inbox_path(&p.address("b"), "")).accept("text/plain"),
    )
    .await
}

async fn default(p: &Probe) -> Step {
    file(p, Request::get(inbox_path(&p.address("b"), ""))).await
}

async fn open(p: &Probe, last: Option<&str>) -> Step<Events> {
    let mut request = Request::get(inbox_path(&p.address("b"), "")).accept("text/event-stream");
    if let Some(id) = last {
        request = request.header("Last-Event-ID", id);
    }
    let events = p.events(request).await?;
    let good = events.head.status == 200 && events.head.kind() == "text/event-stream";
    need(good, "200 and text/event-stream", events.head.shown())?;
    Ok(events)
}

async fn next(events: &mut Events, id: &str) -> Step<Event> {
    let event = events.next().await?;
    same("event", "message", &event.name)?;
    need(
        !event.id.is_empty(),
        "an event with an id",
        format!("{event:?}"),
    )?;
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    need(
        word(&data, "id") == id,
        format!("data: the entry of {id}"),
        event.data.clone(),
    )?;
    strict(word(&data, "envelope"))?;
    Ok(event)
}

async fn stream(p: &Probe) -> Step {
    let first = one(p).await?;
    let mut events = open(p, None).await?;
    next(&mut events, &first.id).await?;
    let second = one(p).await?;
    next(&mut events, &second.id).await.map(drop)
}

async fn continued(p: &Probe) -> Step {
    let first = one(p).await?;
    let second = one(p).await?;
    let event = next(&mut open(p, None).await?, &first.id).await?;
    next(&mut open(p, Some(&event.id)).await?, &second.id)
        .await
        .map(drop)
}

async fn look(p: &Probe) -> Step {
    let sent = some(p, 3).await?;
    for kind in ["application/json", "text/plain"] {
        let request = Request::get(inbox_path(&p.address("b"), "")).accept(kind);
        p.send(request).await?;
    }
    for _ in 0..3 {
        let came = p.inbox_ids(&p.address("b")).await?;
        need(
            came == sent,
            format!("{sent:?}, as often as one looks"),
            format!("{came:?}"),
        )?;
    }
    Ok(())
}

async fn pages(p: &Probe) -> Step {
    let sent = some(p, 5).await?;
    let (mut came, mut more) = (Vec::new(), String::new());
    for _ in 0..4 {
        let page = get(p, &format!("&limit=2{more}")).await?;
        need(ids(&page).len() <= 2, "at most two", page.to_string())?;
        came.extend(ids(&page));
        more = format!("&after={}", encoded(word(&page, "cursor")));
    }
    need(came == sent, format!("{sent:?}"), format!("{came:?}"))?;
    let last = one(p).await?;
    let rest = ids(&get(p, &more).await?);
    need(
        rest == [last.id.clone()],
        format!("[{}] behind the last cursor", last.id),
        format!("{rest:?}"),
    )
}

async fn cursor_of_empty(p: &Probe) -> Step {
    let cursor = word(&get(p, "").await?, "cursor").to_owned();
    let sent = some(p, 2).await?;
    let came = ids(&get(p, &format!("&after={}", encoded(&cursor))).await?);
    need(came == sent, format!("{sent:?}"), format!("{came:?}"))
}

async fn acknowledged(p: &Probe) -> Step {
    let sent = some(p, 4).await?;
    let page = get(p, "&limit=2").await?;
    let first: Vec<&str> = sent.iter().take(2).map(String::as_str).collect();
    p.acknowledge(&p.address("b"), &first, "acknowledged")
        .await?;
    let came = ids(&get(p, &format!("&after={}", encoded(word(&page, "cursor")))).await?);
    let rest: Vec<String> = sent.iter().skip(2).cloned().collect();
    need(came == rest, format!("{rest:?}"), format!("{came:?}"))?;
    let came = p.inbox_ids(&p.address("b")).await?;
    need(
        came == rest,
        format!("{rest:?} without a cursor too"),
        format!("{came:?}"),
    )
}

async fn strange(p: &Probe) -> Step {
    let path = inbox_path(&p.address("b"), "&after=not%20a%20cursor!");
    refused(&p.send(Request::get(path)).await?, 400, ErrorCode::Format).map(drop)
}

async fn wait(p: &Probe) -> Step {
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

async fn wait_nothing(p: &Probe) -> Step {
    let began = Instant::now();
    let came = ids(&get(p, "&wait=2").await?);
    need(came.is_empty(), "[]", format!("{came:?}"))?;
    let time = began.elapsed();
    need(
        time > Duration::from_millis(1900),
        "[] after two seconds",
        format!("{time:?}"),
    )
}

async fn wait_there(p: &Probe) -> Step {
    let letter = one(p).await?;
    let came = tokio::time::timeout(Duration::from_secs(30), get(p, "&wait=60")).await;
    match came {
        Ok(inbox) => same("inbox", &letter.id, &ids(&inbox?).join(" ")),
        Err(_) => failed("the message at once", "no answer for 30 s"),
    }
}
