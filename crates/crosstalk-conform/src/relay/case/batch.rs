//! Several envelopes in one request (HTP-015).

use super::case;
use crate::relay::Case;
use crate::relay::probe::{Probe, Step, need, refused, same, strict};
use crate::relay::wire::{Answer, Request};
use crosstalk_envelope::registry::{ErrorCode, rule};
use crosstalk_envelope::{CoreHeader, Document, Intent};

const KIND: &str = "application/vnd.crosstalk.batch";
/// The most pieces of a batch.
const PIECES: usize = 10_000;

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case!("batch-order", &rule::HTTP_BATCH, "each envelope of a batch gets its answer, in order", order),
    case!("batch-mixed", &rule::HTTP_BATCH, "a refused piece does not refuse the others", mixed),
    case!("batch-again", &rule::HTTP_BATCH, "a batch again gets the same answers", again),
    case!("batch-empty", &rule::HTTP_BATCH, "a batch without a piece is refused", empty),
    case!("batch-limit", &rule::HTTP_BATCH, "a batch of more than 10,000 pieces is E-TOO-LARGE", limit),
];

async fn post(p: &Probe, texts: &[String]) -> Step<Answer> {
    let request = Request::new("POST", "/crosstalk/receive").header("Content-Type", KIND);
    p.send(request.body(texts.join("\n"))).await
}

/// The answers of a batch.
fn pieces(answer: &Answer) -> Step<Vec<Document<'static>>> {
    need(answer.status == 200, "200", answer.shown())?;
    answers(answer)
}

fn answers(answer: &Answer) -> Step<Vec<Document<'static>>> {
    same("type", KIND, &answer.kind())?;
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

async fn order(p: &Probe) -> Step {
    let to = p.address("b");
    let mut texts = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..5 {
        let letter = p.request(&p.address("a"), &to)?;
        texts.push(letter.text);
        ids.push(letter.id);
    }
    let answers = pieces(&post(p, &texts).await?)?;
    need(
        parents(&answers) == ids,
        format!("answers to {ids:?}"),
        format!("{:?}", parents(&answers)),
    )?;
    let are_acks = answers
        .iter()
        .all(|a| a.envelope().meaning() == Some(Intent::Ack));
    need(are_acks, "an ACK for each", "something else")?;
    let kept = p.inbox_ids(&to).await?;
    need(
        kept == ids,
        format!("{ids:?} in the inbox"),
        format!("{kept:?}"),
    )
}

async fn mixed(p: &Probe) -> Step {
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
    need(came == wanted, format!("{wanted:?}"), format!("{came:?}"))?;
    let kept = p.inbox_ids(&to).await?;
    need(
        kept == [one.id.clone(), last.id.clone()],
        format!("[{}, {}]", one.id, last.id),
        format!("{kept:?}"),
    )
}

async fn again(p: &Probe) -> Step {
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
    need(kept.len() == 2, "two messages", format!("{kept:?}"))
}

async fn empty(p: &Probe) -> Step {
    for text in ["", "\n\n\n"] {
        let answer = post(p, &[text.to_owned()]).await?;
        refused(&answer, 400, ErrorCode::Format)?;
    }
    Ok(())
}

async fn limit(p: &Probe) -> Step {
    // Pieces that would each be refused, so that a relay without the limit keeps nothing.
    let texts = vec!["[[A→B v1]]\n[[END]]\n".to_owned(); PIECES + 1];
    let answer = post(p, &texts).await?;
    if answer.kind() != KIND {
        return refused(&answer, 413, ErrorCode::TooLarge).map(drop);
    }
    // It read them as they came: the answers so far, then why there are no more.
    need(answer.status == 413, "413", answer.shown())?;
    let answers = answers(&answer)?;
    need(
        answers.len() == PIECES + 1,
        format!("{} answers", PIECES + 1),
        answers.len().to_string(),
    )?;
    let last = answers.last().and_then(|a| a.meta("error", "Code"));
    same("Code", "E-TOO-LARGE", last.unwrap_or("none"))
}
