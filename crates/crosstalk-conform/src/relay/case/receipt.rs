//! The receipt, and the same message again (HTP-010 to HTP-014).

use super::case;
use crate::relay::Case;
use crate::relay::probe::{
    Letter, Probe, Step, acked, encoded, envelope, failed, from_now, need, receive, refused, same,
};
use crate::relay::wire::{Answer, Request};
use crosstalk_envelope::registry::{ErrorCode, rule};
use crosstalk_envelope::{CoreHeader, Document, Intent, Reading, Timestamp};
use crosstalk_protocol::relay::add_hop;
use std::time::Duration;

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("receipt", &rule::HTTP_RECEIPT, "the ACK has the digest, the place, the time and the relay", receipt),
    case!("receipt-conversation", &rule::HTTP_RECEIPT, "the ACK swaps the parties and keeps the conversation", conversation),
    case!("receipt-order", &rule::HTTP_RECEIPT, "what comes later has a greater place", order),
    case!("receipt-made-up-id", &rule::HTTP_RECEIPT, "a message without an id gets one, and is found by it", made_up),
    case!("receipt-made-up-thread", &rule::HTTP_RECEIPT, "a message without a thread gets one, and is found in it", made_up_thread),
    case!("ids-draft", &rule::HTTP_IDS, "the example ids of the draft are kept as they are", draft_ids),
    case!("ids-thread", &rule::HTTP_IDS, "a thread is the one that the message names, whatever its session", named_thread),
    case!("durable-found", &rule::HTTP_DURABLE, "what was acknowledged is found on every path at once", found),
    case!("durable-refused", &rule::HTTP_DURABLE, "what was refused is found nowhere", not_found),
    case!("replay-same", &rule::HTTP_REPLAY, "the same message again gets the same answer, byte for byte", replay),
    case!("replay-once", &rule::HTTP_REPLAY, "the same message again is in the inbox once", replay_once),
    case!("replay-at-once", &rule::HTTP_REPLAY, "the same message many times at once is taken once", at_once),
    case!("replay-hops", &rule::HTTP_REPLAY, "the same message over other hops is the same message", over_hops),
    case!("replay-without-id", &rule::HTTP_REPLAY, "a message without an id gets the same answer again, with an id that is found", replay_without_id),
    case!("replay-acknowledged", &rule::HTTP_REPLAY, "a message that was acknowledged does not come again", acknowledged),
    case!("id-taken", &rule::HTTP_ID_TAKEN, "another content under an id that is taken is E-PERM, and the first stays", taken),
    case!("wait-answer", &rule::HTTP_PREFER_WAIT, "with Prefer: wait the RESPOND is the answer", wait_answer),
    case!("wait-without-id", &rule::HTTP_PREFER_WAIT, "a message without an id waits for its answer as well", wait_without_id),
    case!("wait-inbox", &rule::HTTP_PREFER_WAIT, "a RESPOND that was the answer is in the inbox as well", wait_inbox),
    case!("wait-over", &rule::HTTP_PREFER_WAIT, "when nobody answers in time the ACK comes", wait_over),
    case!("wait-long", &rule::HTTP_PREFER_WAIT, "a longer wait than 60 seconds is one of 60", wait_long),
    case!("wait-secret", &rule::HTTP_PREFER_WAIT, "the ballot of a secret poll is never the answer", wait_secret),
    case!("wait-nonsense", &rule::HTTP_PREFER_WAIT, "a wait that is no number counts as none", wait_nonsense),
];

fn letter(p: &Probe) -> Step<Letter> {
    p.request(&p.address("a"), &p.address("b"))
}

async fn receipt(p: &Probe) -> Step {
    let letter = letter(p)?;
    let ack = p.take(&letter).await?;
    let get = |key| ack.meta("receipt", key).unwrap_or("none").to_owned();
    let digest = Document::parse(&letter.text, Reading::Strict).digest();
    let digest = digest.map(|d| d.to_string()).unwrap_or_default();
    same("Digest", &digest, &get("Digest"))?;
    need(
        get("Index").parse::<u64>().is_ok(),
        "Index: a number",
        get("Index"),
    )?;
    let at = Timestamp::parse(&get("Received-At"));
    // Clocks differ; a day is another thing.
    let is_near = at.is_some_and(|t| (t.as_millis() - from_now(0).as_millis()).abs() < 86_400_000);
    need(is_near, "Received-At: a time of today", get("Received-At"))?;
    need(
        !get("Received-By").is_empty() && get("Received-By") != "none",
        "Received-By",
        get("Received-By"),
    )
}

async fn conversation(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.letter("REQUEST", &from, &to, |b| {
        b.session("2025-10-09T16Z conform")
    })?;
    let ack = p.take(&letter).await?;
    let direction = format!("{}→{}", ack.sender(), ack.receiver());
    same("direction", &format!("{to}→{from}"), &direction)?;
    for (core, wanted) in [
        (CoreHeader::User, "relay"),
        (CoreHeader::Session, "2025-10-09T16Z conform"),
        (CoreHeader::Thread, &letter.thread),
        (CoreHeader::Parent, &letter.id),
        (CoreHeader::Context, "conformance of a relay"),
    ] {
        same(core.as_str(), wanted, ack.header(core).unwrap_or("none"))?;
    }
    let own = ack.header(CoreHeader::Message).unwrap_or_default();
    need(
        !own.is_empty() && own != letter.id,
        "a message id of its own",
        own,
    )
}

fn index(ack: &Document<'_>) -> u64 {
    let index = ack.meta("receipt", "Index").and_then(|i| i.parse().ok());
    index.unwrap_or(0)
}

async fn order(p: &Probe) -> Step {
    let first = index(&p.take(&letter(p)?).await?);
    let second = index(&p.take(&letter(p)?).await?);
    need(
        first < second,
        format!("a place after {first}"),
        second.to_string(),
    )
}

async fn made_up(p: &Probe) -> Step {
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    let line = format!("message: {}\n", letter.id);
    let ack = acked(&p.post(letter.text.replace(&line, "")).await?)?;
    let Some(id) = ack.header(CoreHeader::Parent).map(str::to_owned) else {
        return failed("a parent: the id that was made up", "none");
    };
    p.entry(&to, &id).await.map(drop)
}

/// A message of v1.0: a session, no thread and no id.
fn v1_0(p: &Probe) -> Step<(String, String)> {
    let session = format!("2025-10-09T16Z {}", p.word("session"));
    let letter = p.letter("QUESTION", &p.address("a"), &p.address("b"), |b| {
        b.session(session.clone())
    })?;
    let is_id = |line: &&str| !line.starts_with("message: ") && !line.starts_with("thread: ");
    let lines = letter.text.lines().filter(is_id);
    Ok((lines.fold(String::new(), |t, l| t + l + "\n"), session))
}

async fn is_found(p: &Probe, path: String) -> Step {
    let answer = p.send(Request::get(path.clone())).await?;
    need(
        answer.status == 200,
        format!("200 for {path}"),
        answer.shown(),
    )
}

async fn made_up_thread(p: &Probe) -> Step {
    let ack = acked(&p.post(v1_0(p)?.0).await?)?;
    let (Some(thread), Some(id)) = (
        ack.header(CoreHeader::Thread),
        ack.header(CoreHeader::Parent),
    ) else {
        return failed(
            "an ACK with the thread and the id that were generated",
            "none",
        );
    };
    let path = format!("/crosstalk/threads/{}", encoded(thread));
    let view = p.json(Request::get(path)).await?;
    let ids = super::super::probe::ids(&view);
    need(
        ids.iter().any(|i| i == id),
        format!("the message {id} in its thread"),
        view.to_string(),
    )
}

async fn draft_ids(p: &Probe) -> Step {
    let unique = p.word("draft");
    let id = format!("01J9J3DBC4N7P2{unique}...");
    let thread = format!("01J9J3D3M6A4M3{unique}...");
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    let text = letter
        .text
        .replace(&letter.id, &id)
        .replace(&letter.thread, &thread);
    let ack = acked(&p.post(text).await?)?;
    for (core, wanted) in [(CoreHeader::Parent, &id), (CoreHeader::Thread, &thread)] {
        same(core.as_str(), wanted, ack.header(core).unwrap_or("none"))?;
    }
    p.entry(&to, &id).await?;
    is_found(p, format!("/crosstalk/messages/{}", encoded(&id))).await?;
    is_found(p, format!("/crosstalk/threads/{}", encoded(&thread))).await
}

async fn named_thread(p: &Probe) -> Step {
    let (first, session) = v1_0(p)?;
    acked(&p.post(first).await?)?;
    let thread = format!("ticket {}", p.word("ticket"));
    let letter = p.letter("REQUEST", &p.address("a"), &p.address("b"), |b| {
        b.session(session).thread(thread.clone())
    })?;
    p.take(&letter).await?;
    let path = format!("/crosstalk/threads/{}", encoded(&thread));
    let view = p.json(Request::get(path)).await?;
    let ids = super::super::probe::ids(&view);
    need(
        ids == [letter.id.clone()],
        format!("{} alone in the thread that it names", letter.id),
        view.to_string(),
    )
}

async fn replay_without_id(p: &Probe) -> Step {
    let text = v1_0(p)?.0;
    let first = p.post(text.clone()).await?;
    let ack = acked(&first)?;
    for _ in 0..3 {
        // An id that is made from the time would be another one now.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let again = p.post(text.clone()).await?;
        same("the answer", &first.text(), &again.text())?;
    }
    let id = ack.header(CoreHeader::Parent).unwrap_or("none");
    is_found(p, format!("/crosstalk/messages/{}", encoded(id))).await
}

async fn wait_without_id(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let text = v1_0(p)?.0;
    let ask = p.send(receive(text).header("Prefer", "wait=30"));
    let reply = async {
        let path = format!("/crosstalk/inbox?for={}&wait=30", encoded(&to));
        let inbox = p.json(Request::get(path)).await?;
        let Some(id) = super::super::probe::ids(&inbox).pop() else {
            return failed("the message in the inbox", inbox.to_string());
        };
        let answer = p.letter("RESPOND", &to, &from, |b| b.parent(id).body("Forty-two."))?;
        p.take(&answer).await?;
        Step::Ok(answer)
    };
    let (answer, reply) = tokio::join!(ask, reply);
    let (answer, reply) = (answer?, reply?);
    let came = envelope(&answer)?;
    same(
        "message",
        &reply.id,
        came.header(CoreHeader::Message).unwrap_or("none"),
    )
}

async fn found(p: &Probe) -> Step {
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    p.take(&letter).await?;
    p.entry(&to, &letter.id).await?;
    let answer = p
        .send(Request::get(format!("/crosstalk/messages/{}", letter.id)))
        .await?;
    need(
        answer.status == 200,
        "200: the message by its id",
        answer.shown(),
    )?;
    let answer = p
        .send(Request::get(format!(
            "/crosstalk/threads/{}",
            letter.thread
        )))
        .await?;
    need(answer.status == 200, "200: the thread", answer.shown())?;
    p.delivery(&letter.id, &to).await.map(drop)
}

async fn not_found(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.letter("REQUEST", &from, &to, |b| {
        b.meta("privacy", "Consent", "explicit_no")
    })?;
    let answer = p.post(letter.text).await?;
    need(answer.status != 200, "a refusal", answer.shown())?;
    let kept = p.inbox_ids(&to).await?;
    need(kept.is_empty(), "an empty inbox", format!("{kept:?}"))?;
    let answer = p
        .send(Request::get(format!("/crosstalk/messages/{}", letter.id)))
        .await?;
    refused(&answer, 404, ErrorCode::Route).map(drop)
}

fn same_answer(first: &Answer, again: &Answer) -> Step {
    acked(again)?;
    same("answer", &first.text(), &again.text())
}

async fn replay(p: &Probe) -> Step {
    let text = letter(p)?.text;
    let first = p.post(text.clone()).await?;
    acked(&first)?;
    p.take(&letter(p)?).await?;
    for _ in 0..3 {
        same_answer(&first, &p.post(text.clone()).await?)?;
    }
    Ok(())
}

async fn once(p: &Probe, to: &str, id: &str) -> Step {
    let ids = p.inbox_ids(to).await?;
    need(ids == [id], format!("{id}, once"), format!("{ids:?}"))
}

async fn replay_once(p: &Probe) -> Step {
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    for _ in 0..5 {
        p.take(&letter).await?;
    }
    once(p, &to, &letter.id).await
}

async fn at_once(p: &Probe) -> Step {
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

async fn over_hops(p: &Probe) -> Step {
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    let first = p.post(letter.text.clone()).await?;
    acked(&first)?;
    let Ok(other) = add_hop(&letter.text, from_now(-5), "conform.invalid", None) else {
        return failed("a hop", "a fault of the suite");
    };
    same_answer(&first, &p.post(other).await?)?;
    once(p, &to, &letter.id).await
}

async fn acknowledged(p: &Probe) -> Step {
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    p.take(&letter).await?;
    p.acknowledge(&to, &[&letter.id], "acknowledged").await?;
    p.take(&letter).await?;
    let ids = p.inbox_ids(&to).await?;
    need(ids.is_empty(), "an empty inbox", format!("{ids:?}"))
}

async fn taken(p: &Probe) -> Step {
    let to = p.address("b");
    let letter = p.request(&p.address("a"), &to)?;
    let first = p.post(letter.text.clone()).await?;
    acked(&first)?;
    let other = letter.text.replace("A message", "Another message");
    refused(&p.post(other).await?, 403, ErrorCode::Perm)?;
    let entry = p.entry(&to, &letter.id).await?;
    let kept = entry
        .get("envelope")
        .and_then(|e| e.as_str())
        .unwrap_or_default();
    need(kept.contains("  A message of"), "what came first", kept)?;
    same_answer(&first, &p.post(letter.text).await?)
}

/// A REQUEST that waits, and the RESPOND to it, sent when the REQUEST is in the inbox.
async fn asked(p: &Probe, wait: &str) -> Step<(Answer, Letter)> {
    let (from, to) = (p.address("a"), p.address("b"));
    let letter = p.request(&from, &to)?;
    let ask = p.send(receive(letter.text.clone()).header("Prefer", format!("wait={wait}")));
    let reply = async {
        let path = format!("/crosstalk/inbox?for={}&wait=30", encoded(&to));
        p.json(Request::get(path)).await?;
        let answer = p.letter("RESPOND", &to, &from, |b| {
            b.thread(&letter.thread)
                .parent(&letter.id)
                .body("Forty-two.")
        })?;
        p.take(&answer).await?;
        Step::Ok(answer)
    };
    let (answer, reply) = tokio::join!(ask, reply);
    Ok((answer?, reply?))
}

async fn wait_answer(p: &Probe) -> Step {
    let (answer, reply) = asked(p, "30").await?;
    need(answer.status == 200, "200 and the RESPOND", answer.shown())?;
    let came = envelope(&answer)?;
    need(
        came.envelope().meaning() == Some(Intent::Respond),
        "the RESPOND",
        answer.shown(),
    )?;
    same(
        "message",
        &reply.id,
        came.header(CoreHeader::Message).unwrap_or("none"),
    )?;
    same(
        "Preference-Applied",
        "wait=30",
        answer.header("preference-applied"),
    )
}

async fn wait_inbox(p: &Probe) -> Step {
    let (_, reply) = asked(p, "30").await?;
    p.entry(&p.address("a"), &reply.id).await.map(drop)
}

async fn wait_over(p: &Probe) -> Step {
    let request = receive(letter(p)?.text).header("Prefer", "wait=1");
    let answer = p.send(request).await?;
    acked(&answer)?;
    same(
        "Preference-Applied",
        "wait=1",
        answer.header("preference-applied"),
    )
}

async fn wait_long(p: &Probe) -> Step {
    let (answer, _) = asked(p, "86400").await?;
    same(
        "Preference-Applied",
        "wait=60",
        answer.header("preference-applied"),
    )
}

async fn wait_secret(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let poll = p.letter("POLL", &from, &to, |b| {
        b.meta("routing", "Targets", format!("[\"{to}\"]"))
            .meta("poll", "Options", "Yes | No")
            .meta("poll", "Secrecy", "until close")
    })?;
    p.take(&poll).await?;
    let ballot = p.letter("RESPOND", &to, &from, |b| {
        b.thread(&poll.thread)
            .parent(&poll.id)
            .meta("vote", "Choice", "No")
    })?;
    p.take(&ballot).await?;
    let request = receive(poll.text).header("Prefer", "wait=1");
    acked(&p.send(request).await?).map(drop)
}

async fn wait_nonsense(p: &Probe) -> Step {
    for wait in ["soon", "0", "-5", "1.5"] {
        let request = receive(letter(p)?.text).header("Prefer", format!("wait={wait}"));
        let answer = tokio::time::timeout(Duration::from_secs(30), p.send(request)).await;
        let Ok(answer) = answer else {
            return failed(
                "the ACK at once",
                format!("no answer for 30 s with wait={wait}"),
            );
        };
        let answer = answer?;
        acked(&answer)?;
        need(
            !answer.has("preference-applied"),
            format!("no Preference-Applied for wait={wait}"),
            answer.header("preference-applied"),
        )?;
    }
    Ok(())
}
