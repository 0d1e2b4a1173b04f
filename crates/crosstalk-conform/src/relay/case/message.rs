//! Handing in: bytes that are no text, exact sizes, batches, many recipients.

use super::code;
use crate::relay::CaseFunction;
use crate::relay::probe::{
    CaseStep, Probe, acked, equal, holds, need, rejected, same, strict, word,
};
use crate::relay::wire::{SuiteAnswer, SuiteRequest};
use crosstalk_envelope::limit::{ENVELOPE_BYTES, LINE_BYTES};
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::{CoreHeader, Document, Intent};
use serde_json::Value;

pub(super) const CODE: &[(&str, CaseFunction)] = &[
    code!("strict-not-utf8", not_utf8),
    code!("limit-envelope", too_large),
    code!("limit-fits", largest),
    code!("limit-nfc", grows),
    code!("limit-line", long_line),
    code!("batch-order", order),
    code!("batch-mixed", mixed),
    code!("batch-again", again),
    code!("batch-limit", batch_limit),
    code!("targets-limit", too_many),
    code!("escalate-elsewhere", elsewhere),
];

/// A good REQUEST between two fresh addresses.
fn good(p: &Probe) -> CaseStep<String> {
    Ok(p.request(&p.address("a"), &p.address("b"))?.text)
}

async fn not_utf8(p: &Probe) -> CaseStep {
    let mut bytes = good(p)?.replace("A message", "\u{1}message").into_bytes();
    for byte in &mut bytes {
        if *byte == 1 {
            *byte = 0xff;
        }
    }
    rejected(&p.post(bytes).await?, 400, ErrorCode::Format).map(drop)
}

/// A good envelope of this many bytes.
fn sized(p: &Probe, bytes: usize) -> CaseStep<String> {
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

async fn too_large(p: &Probe) -> CaseStep {
    let answer = p.post(sized(p, ENVELOPE_BYTES + 1)?).await?;
    rejected(&answer, 413, ErrorCode::TooLarge).map(drop)
}

async fn largest(p: &Probe) -> CaseStep {
    acked(&p.post(sized(p, ENVELOPE_BYTES)?).await?).map(drop)
}

async fn grows(p: &Probe) -> CaseStep {
    // U+1D160 has four bytes, and twelve in NFC.
    let line = format!("  {}\n", "\u{1d160}".repeat(1000));
    let text = good(p)?.replace("  A message", &format!("{}  A message", line.repeat(100)));
    need(
        text.len() < ENVELOPE_BYTES,
        "a text that is small enough",
        "a fault of the suite",
    )?;
    rejected(&p.post(text).await?, 413, ErrorCode::TooLarge).map(drop)
}

async fn long_line(p: &Probe) -> CaseStep {
    let line = "x".repeat(LINE_BYTES);
    let text = good(p)?.replace("  A message", &format!("  {line}\n  A message"));
    rejected(&p.post(text).await?, 413, ErrorCode::TooLarge).map(drop)
}

const BATCH: &str = "application/vnd.crosstalk.batch";

/// The most pieces of a batch.
const PIECES: usize = 10_000;

async fn post(p: &Probe, texts: &[String]) -> CaseStep<SuiteAnswer> {
    let request = SuiteRequest::new("POST", "/crosstalk/receive").header("Content-Type", BATCH);
    p.send(request.body(texts.join("\n"))).await
}

/// The answers of a batch.
fn pieces(answer: &SuiteAnswer) -> CaseStep<Vec<Document<'static>>> {
    answer.has_status(200)?;
    answers(answer)
}

fn answers(answer: &SuiteAnswer) -> CaseStep<Vec<Document<'static>>> {
    same("type", BATCH, &answer.kind())?;
    let text = answer.text();
    let ends = text.split_inclusive("\n[[END]]\n");
    let texts = ends
        .map(|t| t.trim_start_matches('\n'))
        .filter(|t| !t.is_empty());
    texts.map(strict).collect()
}

fn parents(answers: &[Document<'_>]) -> Vec<String> {
    let parent = |d: &Document<'_>| d.header(CoreHeader::Parent).unwrap_or("none").to_owned();
    answers.iter().map(parent).collect()
}

async fn order(p: &Probe) -> CaseStep {
    let to = p.address("b");
    let mut texts = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..5 {
        let letter = p.request(&p.address("a"), &to)?;
        texts.push(letter.text);
        ids.push(letter.id);
    }
    let answers = pieces(&post(p, &texts).await?)?;
    equal(&parents(&answers), &ids)?;
    let are_acks = answers
        .iter()
        .all(|a| a.envelope().meaning() == Some(Intent::Ack));
    need(are_acks, "an ACK for each", "something else")?;
    let kept = p.inbox_ids(&to).await?;
    equal(&kept, &ids)
}

async fn mixed(p: &Probe) -> CaseStep {
    let to = p.address("b");
    let one = p.request(&p.address("a"), &to)?;
    let refused = p.letter("REQUEST", &p.address("a"), &to, |b| {
        b.meta("privacy", "Consent", "explicit_no")
    })?;
    let broken = p
        .request(&p.address("a"), &to)?
        .text
        .replace("\nbody: |\n", "\nbody: yes\n");
    let last = p.request(&p.address("a"), &to)?;
    let texts = [one.text, refused.text, broken, last.text];
    let answers = pieces(&post(p, &texts).await?)?;
    let came: Vec<String> = answers
        .iter()
        .map(|a| match a.meta("error", "Code") {
            Some(code) => code.to_owned(),
            None => a
                .envelope()
                .intent
                .map_or("none".into(), |i| i.written.to_owned()),
        })
        .collect();
    let wanted = ["ACK", "E-CONSENT", "E-FORMAT", "ACK"];
    equal(&came, &wanted)?;
    let kept = p.inbox_ids(&to).await?;
    equal(&kept, &[one.id.clone(), last.id.clone()])
}

async fn again(p: &Probe) -> CaseStep {
    let to = p.address("b");
    let texts = [
        p.request(&p.address("a"), &to)?.text,
        p.request(&p.address("a"), &to)?.text,
    ];
    let first = post(p, &texts).await?;
    pieces(&first)?;
    let second = post(p, &texts).await?;
    same("answer", &first.text(), &second.text())?;
    let kept = p.inbox_ids(&to).await?;
    holds(kept.len() == 2, "two messages", &kept)
}

async fn batch_limit(p: &Probe) -> CaseStep {
    // Pieces that a relay rejects one by one, so that a relay without the limit keeps nothing.
    let texts = vec!["[[A→B v1]]\n[[END]]\n".to_owned(); PIECES + 1];
    let answer = post(p, &texts).await?;
    if answer.kind() != BATCH {
        return rejected(&answer, 413, ErrorCode::TooLarge).map(drop);
    }
    // It read them as they came: the answers so far, then why there are no more.
    answer.has_status(413)?;
    let answers = answers(&answer)?;
    equal(&answers.len(), &(PIECES + 1))?;
    let last = answers.last().and_then(|a| a.meta("error", "Code"));
    same("Code", "E-TOO-LARGE", last.unwrap_or("none"))
}

async fn too_many(p: &Probe) -> CaseStep {
    let all: Vec<String> = (0..257).map(|n| p.address(&n.to_string())).collect();
    let letter = p.letter("BROADCAST", &p.address("a"), &p.address("all"), |b| {
        b.meta("routing", "Targets", all.join(", "))
    })?;
    rejected(&p.post(letter.text).await?, 413, ErrorCode::TooLarge).map(drop)
}

async fn elsewhere(p: &Probe) -> CaseStep {
    let letter = p.letter("ESCALATE", &p.address("a"), &p.address("b"), |b| b)?;
    let answer = p.post(letter.text).await?;
    if answer.status != 200 {
        return rejected(&answer, 404, ErrorCode::Route).map(drop);
    }
    acked(&answer)?;
    let status = p
        .json(SuiteRequest::get(format!(
            "/crosstalk/messages/{}/status",
            letter.id
        )))
        .await?;
    let list = status.get("deliveries").and_then(Value::as_array);
    let is_person = |d: &Value| word(d, "to").starts_with("human:");
    let good = list.is_some_and(|l| !l.is_empty() && l.iter().all(is_person));
    need(good, "a delivery to a human:// address", status.to_string())
}
