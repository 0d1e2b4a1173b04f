//! Handing in: what is read, and how (HTP-001 to HTP-003, HTP-007).

use super::case;
use crate::relay::Case;
use crate::relay::probe::{
    Probe, Step, acked, entry_of, envelope, inbox_path, need, object, receive, refused, same,
    skipped, strict, word,
};
use crate::relay::wire::Request;
use crosstalk_envelope::limit::{ENVELOPE_BYTES, LINE_BYTES};
use crosstalk_envelope::registry::{ErrorCode, rule};
use crosstalk_envelope::{Document, Reading};
use serde_json::json;

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("receive-text", &rule::HTTP_RECEIVE, "an envelope as text/plain is taken and answered with an envelope", text),
    case!("receive-without-type", &rule::HTTP_RECEIVE, "a request without Content-Type counts as text/plain", without_type),
    case!("receive-charset", &rule::HTTP_RECEIVE, "the charset may be written in any case, or left out", charset),
    case!("receive-refusal-is-text", &rule::HTTP_RECEIVE, "a refusal is an envelope of the same type", refusal_is_text),
    case!("type-json", &rule::HTTP_MEDIA_TYPE, "a body of another type is 415", type_json),
    case!("type-charset", &rule::HTTP_MEDIA_TYPE, "another charset is 415", latin),
    case!("type-compressed", &rule::HTTP_MEDIA_TYPE, "a compressed body is 415 and not decompressed", compressed),
    case!("type-identity", &rule::HTTP_MEDIA_TYPE, "Content-Encoding: identity is none", identity),
    case!("json", &rule::HTTP_JSON, "a message as JSON is the envelope that it describes, and gets its answer as JSON", json),
    case!("one-envelope", &rule::HTTP_ONE_ENVELOPE, "two envelopes in one request are refused, and neither is taken", two),
    case!("strict-prose", &rule::HTTP_ONE_ENVELOPE, "text that is no envelope is refused", prose),
    case!("strict-empty", &rule::HTTP_ONE_ENVELOPE, "an empty body is refused", empty),
    case!("strict-fenced", &rule::HTTP_ONE_ENVELOPE, "an envelope in a code fence is refused: nothing is repaired", fenced),
    case!("strict-not-utf8", &rule::HTTP_ONE_ENVELOPE, "bytes that are not UTF-8 are refused", not_utf8),
    case!("strict-controls", &rule::HTTP_ONE_ENVELOPE, "control characters are refused", controls),
    case!("strict-duplicate", &rule::HTTP_ONE_ENVELOPE, "a header that stands twice is refused", duplicate),
    case!("strict-end-in-body", &rule::HTTP_ONE_ENVELOPE, "[[END]] at the start of a body line is refused", end_in_body),
    case!("strict-intent", &rule::HTTP_ONE_ENVELOPE, "the rules of the intent apply", intent),
    case!("strict-version", &rule::HTTP_ONE_ENVELOPE, "v2 is E-UNSUPPORTED", version),
    case!("strict-crlf", &rule::HTTP_ONE_ENVELOPE, "a byte order mark and CRLF change nothing", crlf),
    case!("limit-envelope", &rule::HTTP_ONE_ENVELOPE, "one byte more than 1 MiB is E-TOO-LARGE", too_large),
    case!("limit-fits", &rule::HTTP_ONE_ENVELOPE, "exactly 1 MiB is taken", largest),
    case!("limit-nfc", &rule::HTTP_ONE_ENVELOPE, "a text that grows past 1 MiB by NFC is E-TOO-LARGE", grows),
    case!("limit-line", &rule::HTTP_ONE_ENVELOPE, "a line of more than 64 KiB is E-TOO-LARGE", long_line),
];

/// A good REQUEST between two fresh addresses.
fn good(p: &Probe) -> Step<String> {
    Ok(p.request(&p.address("a"), &p.address("b"))?.text)
}

async fn text(p: &Probe) -> Step {
    let answer = p.post(good(p)?).await?;
    need(answer.status == 200, "200", answer.shown())?;
    envelope(&answer).map(drop)
}

async fn without_type(p: &Probe) -> Step {
    let request = Request::new("POST", "/crosstalk/receive").body(good(p)?);
    acked(&p.send(request).await?).map(drop)
}

async fn charset(p: &Probe) -> Step {
    for kind in [
        "text/plain",
        "text/plain;charset=UTF-8",
        "Text/Plain; Charset=\"utf-8\"",
    ] {
        let request = Request::new("POST", "/crosstalk/receive");
        let request = request.header("Content-Type", kind).body(good(p)?);
        acked(&p.send(request).await?)?;
    }
    Ok(())
}

async fn refusal_is_text(p: &Probe) -> Step {
    let answer = p.post("hello").await?;
    need(answer.status != 200, "a refusal", answer.shown())?;
    envelope(&answer).map(drop)
}

async fn json(p: &Probe) -> Step {
    let (from, to) = (p.address("a"), p.address("b"));
    let message = json!({
        "sender": from, "receiver": to, "user": "conform", "context": "json", "intent": "REQUEST", "body": "As JSON?",
    });
    let request = Request::new("POST", "/crosstalk/receive").json(&message);
    let answer = p.send(request.accept("application/json")).await?;
    if answer.status == 415 {
        return skipped("the relay accepts no JSON");
    }
    let accepted = object(&answer, 200)?;
    same("schema", "crosstalk.receive/1", word(&accepted, "schema"))?;
    let part = |pointer: &str| accepted.pointer(pointer).cloned().unwrap_or_default();
    need(part("/answer").is_null(), "no answer yet", answer.shown())?;
    let ack = part("/ack");
    same(
        "intent of the ACK",
        "ACK",
        word(&part("/ack/intent"), "meaning"),
    )?;
    let id = word(&ack, "parent");
    let inbox = p
        .send(Request::get(inbox_path(&to, "")).accept("application/json"))
        .await?;
    let entry = entry_of(&object(&inbox, 200)?, &to, id)?;
    let document = strict(word(&entry, "envelope"))?;
    same("sender", &from, document.sender())?;
    same("body", "As JSON?", &document.body_text())?;
    let broken = Request::new("POST", "/crosstalk/receive").json(&json!({"sender": from}));
    refused(&p.send(broken).await?, 400, ErrorCode::Format).map(drop)
}

async fn typed(p: &Probe, name: &str, value: &str) -> Step {
    let mut request = Request::new("POST", "/crosstalk/receive").header(name, value);
    if name != "Content-Type" {
        request = request.header("Content-Type", "text/plain; charset=utf-8");
    }
    let answer = p.send(request.body(good(p)?)).await?;
    refused(&answer, 415, ErrorCode::Unsupported).map(drop)
}

async fn type_json(p: &Probe) -> Step {
    typed(p, "Content-Type", "text/html").await?;
    typed(p, "Content-Type", "application/octet-stream").await
}

async fn latin(p: &Probe) -> Step {
    typed(p, "Content-Type", "text/plain; charset=iso-8859-1").await
}

async fn compressed(p: &Probe) -> Step {
    typed(p, "Content-Encoding", "gzip").await?;
    typed(p, "Content-Encoding", "br").await
}

async fn identity(p: &Probe) -> Step {
    let request = receive(good(p)?).header("Content-Encoding", "identity");
    acked(&p.send(request).await?).map(drop)
}

async fn two(p: &Probe) -> Step {
    let to = p.address("b");
    let one = p.request(&p.address("a"), &to)?;
    let other = p.request(&p.address("a"), &to)?;
    let answer = p.post(format!("{}\n{}", one.text, other.text)).await?;
    let error = refused(&answer, 400, ErrorCode::Format)?;
    let rule = error.meta("error", "Rule").unwrap_or("none");
    same("Rule", rule::ONE_PER_REQUEST.id, rule)?;
    let kept = p.inbox_ids(&to).await?;
    need(kept.is_empty(), "an empty inbox", format!("{kept:?}"))
}

async fn bad(p: &Probe, text: impl Into<bytes::Bytes>) -> Step {
    refused(&p.post(text).await?, 400, ErrorCode::Format).map(drop)
}

async fn prose(p: &Probe) -> Step {
    bad(p, "Dear relay, please pass this on.\n").await
}

async fn empty(p: &Probe) -> Step {
    bad(p, "").await?;
    bad(p, "\n\n").await
}

async fn fenced(p: &Probe) -> Step {
    bad(p, format!("```text\n{}```\n", good(p)?)).await
}

async fn not_utf8(p: &Probe) -> Step {
    let mut bytes = good(p)?.replace("A message", "\u{1}message").into_bytes();
    for byte in &mut bytes {
        if *byte == 1 {
            *byte = 0xff;
        }
    }
    bad(p, bytes).await
}

async fn controls(p: &Probe) -> Step {
    for control in ['\u{0}', '\u{1b}', '\u{85}', '\u{7f}', '\u{2028}'] {
        bad(
            p,
            good(p)?.replace("A message", &format!("A{control}message")),
        )
        .await?;
    }
    Ok(())
}

async fn duplicate(p: &Probe) -> Step {
    bad(
        p,
        good(p)?.replace("intent: REQUEST\n", "intent: REQUEST\nintent: CLOSE\n"),
    )
    .await?;
    bad(
        p,
        good(p)?.replace("intent: REQUEST\n", "intent: REQUEST\nX-A: 1\nx-a: 2\n"),
    )
    .await
}

async fn end_in_body(p: &Probe) -> Step {
    bad(p, good(p)?.replace("  A message", "[[END]]\n  A message")).await
}

async fn intent(p: &Probe) -> Step {
    // A RESPOND that names no parent, an ERROR without a code.
    bad(p, good(p)?.replace("intent: REQUEST", "intent: RESPOND")).await?;
    bad(p, good(p)?.replace("intent: REQUEST", "intent: ERROR")).await
}

async fn version(p: &Probe) -> Step {
    let answer = p.post(good(p)?.replacen(" v1]]", " v2]]", 1)).await?;
    refused(&answer, 422, ErrorCode::Unsupported).map(drop)
}

async fn crlf(p: &Probe) -> Step {
    let text = good(p)?;
    let answer = p
        .post(format!("\u{feff}{}", text.replace('\n', "\r\n")))
        .await?;
    let ack = acked(&answer)?;
    let digest = Document::parse(&text, Reading::Strict).digest();
    let digest = digest.map(|d| d.to_string()).unwrap_or_default();
    same(
        "Digest",
        &digest,
        ack.meta("receipt", "Digest").unwrap_or("none"),
    )
}

/// A good envelope of this many bytes.
fn sized(p: &Probe, bytes: usize) -> Step<String> {
    let text = good(p)?;
    let mut missing = bytes.saturating_sub(text.len());
    let mut lines = String::new();
    while missing > 0 {
        // Two spaces, text, LF; the last line takes what is left, which is never less than four.
        let line = if missing > 2000 { 1000 } else { missing };
        lines.push_str("  ");
        lines.push_str(&"x".repeat(line.saturating_sub(3)));
        lines.push('\n');
        missing = missing.saturating_sub(line);
    }
    Ok(text.replace("  A message", &format!("{lines}  A message")))
}

async fn too_large(p: &Probe) -> Step {
    let answer = p.post(sized(p, ENVELOPE_BYTES + 1)?).await?;
    refused(&answer, 413, ErrorCode::TooLarge).map(drop)
}

async fn largest(p: &Probe) -> Step {
    acked(&p.post(sized(p, ENVELOPE_BYTES)?).await?).map(drop)
}

async fn grows(p: &Probe) -> Step {
    // U+1D160 has four bytes, and twelve in NFC.
    let line = format!("  {}\n", "\u{1d160}".repeat(1000));
    let text = good(p)?.replace("  A message", &format!("{}  A message", line.repeat(100)));
    need(
        text.len() < ENVELOPE_BYTES,
        "a text that is small enough",
        "a fault of the suite",
    )?;
    refused(&p.post(text).await?, 413, ErrorCode::TooLarge).map(drop)
}

async fn long_line(p: &Probe) -> Step {
    let line = "x".repeat(LINE_BYTES);
    let text = good(p)?.replace("  A message", &format!("  {line}\n  A message"));
    refused(&p.post(text).await?, 413, ErrorCode::TooLarge).map(drop)
}
