//! The paste boundary: an answer from a chat is read once, every repair is shown in the text, the person says which question it
//! answers, and sees the envelope that is filed.

use super::reply::after_sending;
use super::{PageError, PageResult, Shell, render};
use crate::compose::brought_back;
use crate::fields::encode;
use crate::text::{PartyName, Shown};
use crate::visit::{Posted, Visit, redirect};
use askama::Template;
use crosstalk_api::client::MessageView;

use crosstalk_envelope::{Diagnostic, Document, LineIndex, Reading, Severity, scan};

/// How many questions are offered.
const OFFERED: usize = 100;
/// How many findings are shown.
const MAX_FINDINGS: usize = 300;
/// How much of a text is shown in one piece without a finding, in characters.
const MAX_SHOWN: usize = 60_000;

/// A question that a pasted text may answer.
struct QuestionChoice {
    id: Shown,
    to: Shown,
    context: Shown,
    is_chosen: bool,
}

/// A part of the pasted text, marked where something was found.
struct MarkedPart {
    text: Shown,
    /// The number of the finding, and its severity.
    mark: Option<(usize, &'static str)>,
}

/// A finding in words.
struct FindingLine {
    number: usize,
    line: usize,
    tone: &'static str,
    message: Shown,
    help: &'static str,
    rule: &'static str,
}

#[derive(Template)]
#[template(path = "paste.html")]
struct PastePage {
    shell: Shell,
    questions: Vec<QuestionChoice>,
    /// As it came, for the form.
    text: String,
    review: Option<Review>,
}

/// The messages that were read out of a text.
struct Review {
    parts: Vec<MarkedPart>,
    findings: Vec<FindingLine>,
    repairs: usize,
    /// How many envelopes there are, and which one is shown.
    found: usize,
    place: usize,
    result: Result<Outcome, Refused>,
}

/// The message that would be filed.
struct Outcome {
    envelope: Shown,
    /// The same with every character as it is, for the form.
    exact: String,
    has_envelope: bool,
    is_readdressed: bool,
    is_truncated: bool,
    /// Whether it speaks for a person, and nobody signed it.
    is_claimed: bool,
    from: PartyName,
    to: PartyName,
}

/// Why nothing can be filed.
struct Refused {
    what: Shown,
    help: Shown,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let chosen = visit.query.text("question").to_owned();
    page(visit, "", &chosen, None).await
}

/// Reads a text and shows what was made of it.
pub(crate) async fn review(Posted { visit, form }: Posted) -> PageResult {
    let text = form.text("text").to_owned();
    let chosen = form.text("question").to_owned();
    let place = form.text("place").parse().unwrap_or(0);
    let question = match chosen.as_str() {
        "" => None,
        id => Some(visit.client.message(id).await?),
    };
    let read = visit.console.read_apart(move || {
        let review = read(&text, place, question.as_ref());
        (review, text)
    });
    let (review, text) = read.await?;
    page(visit, &text, &chosen, Some(review)).await
}

async fn page(visit: Visit, text: &str, chosen: &str, review: Option<Review>) -> PageResult {
    let mut questions = match visit.peer.is_person() {
        true => visit.client.courier(OFFERED).await?,
        false => Vec::new(),
    };
    if !chosen.is_empty() && !questions.iter().any(|q| q.id == chosen) {
        questions.insert(0, visit.client.message(chosen).await?);
    }
    let questions = questions.iter().map(|q| choice(q, chosen));
    render(&PastePage {
        questions: questions.collect(),
        text: text.to_owned(),
        review,
        shell: visit.shell("Paste").await,
    })
}

fn choice(question: &MessageView, chosen: &str) -> QuestionChoice {
    let document = Document::parse(&question.envelope, Reading::Strict);
    let context = document.envelope().context.unwrap_or("").to_owned();
    QuestionChoice {
        id: Shown::new(&question.id),
        to: Shown::new(&question.to),
        context: Shown::short(&context, 70),
        is_chosen: question.id == chosen,
    }
}

fn read(text: &str, place: usize, question: Option<&MessageView>) -> Review {
    let found = scan(text, Reading::Paste).accept_truncated();
    let document = found.documents.get(place);
    let mut findings: Vec<&Diagnostic> = found.rejected.iter().collect();
    if found.documents.is_empty() && question.is_some() {
        // A plain answer has no envelope, and needs none.
        findings.clear();
    }
    findings.extend(document.into_iter().flat_map(|d| d.diagnostics()));
    findings.retain(|d| d.severity != Severity::Note);
    findings.sort_by_key(|d| d.span.start);
    findings.truncate(MAX_FINDINGS);
    let index = LineIndex::new(text);
    let lines = findings.iter().enumerate().map(|(at, d)| FindingLine {
        number: at + 1,
        line: index.line(d.span.start),
        tone: tone(d.severity),
        message: Shown::new(&d.message),
        help: d.help(),
        rule: d.rule.id,
    });
    let result = brought_back(text, place, question).map(|brought| {
        let read = Document::parse(&brought.envelope, Reading::Strict);
        let from = PartyName::of(read.sender());
        Outcome {
            is_claimed: from.is_person && matches!(read.sig(), None | Some("none")),
            from,
            to: PartyName::of(read.receiver()),
            envelope: Shown::new(&brought.envelope),
            exact: brought.envelope.clone(),
            has_envelope: brought.has_envelope,
            is_readdressed: brought.is_readdressed,
            is_truncated: document.is_some_and(Document::is_truncated),
        }
    });
    Review {
        repairs: findings
            .iter()
            .filter(|d| d.severity == Severity::Repair)
            .count(),
        findings: lines.collect(),
        parts: marked(text, &findings),
        found: found.documents.len(),
        place,
        result: result.map_err(|fault| {
            let why = fault.explanation();
            Refused {
                what: Shown::new(&why.what),
                help: Shown::new(&why.help),
            }
        }),
    }
}

/// The class for a severity.
pub(crate) const fn tone(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "bad",
        Severity::Warning => "warn",
        Severity::Repair => "repair",
        Severity::Note => "none",
    }
}

/// Whether a finding is about a part of what another one is about.
fn is_within(inner: &Diagnostic, outer: &Diagnostic) -> bool {
    let (inner, outer) = (&inner.span, &outer.span);
    outer.start <= inner.start
        && inner.end <= outer.end
        && inner.len() < outer.len()
        && !inner.is_empty()
}

/// The text with its findings marked. Where several overlap, the most exact one counts, else the first.
fn marked(text: &str, findings: &[&Diagnostic]) -> Vec<MarkedPart> {
    let (mut parts, mut at) = (Vec::new(), 0);
    let end = text
        .char_indices()
        .nth(MAX_SHOWN)
        .map_or(text.len(), |(end, _)| end);
    let plain = |from: usize, to: usize| MarkedPart {
        text: Shown::new(text.get(from..to).unwrap_or("")),
        mark: None,
    };
    for (place, finding) in findings.iter().enumerate() {
        let (start, stop) = (finding.span.start.max(at), finding.span.end.min(end));
        let is_exact = !findings.iter().any(|other| is_within(other, finding));
        if finding.span.start < at || start > end || !is_exact {
            continue;
        }
        parts.push(plain(at, start));
        let what = text.get(start..stop.max(start)).unwrap_or("");
        parts.push(MarkedPart {
            text: Shown::new(what),
            mark: Some((place + 1, tone(finding.severity))),
        });
        at = stop.max(start);
    }
    parts.push(plain(at, end));
    parts
}

/// Files an answer: the envelope goes to the relay, and the question counts as carried.
pub(crate) async fn file(Posted { visit, form }: Posted) -> PageResult {
    let text = form.text("text").to_owned();
    let place = form.text("place").parse().unwrap_or(0);
    let question = match form.get("question") {
        None => None,
        Some(id) => Some(visit.client.message(id).await?),
    };
    let read = visit.console.read_apart(move || {
        let brought = brought_back(&text, place, question.as_ref());
        (brought, question)
    });
    let (brought, question) = read.await?;
    let brought = brought?;
    let shown = form.text("envelope");
    // The person has seen one text, and that one is filed: ids that are made anew differ.
    let envelope = match is_same_answer(shown, &brought.envelope) {
        true => shown,
        false => {
            return Err(PageError::fault(
                409,
                "The text is not the one that was shown.",
                "check it once more.",
            ));
        }
    };
    let sent = visit.client.send(envelope).await?;
    if let Some(question) = &question {
        // A NACK settled it at the relay when it came, and somebody else may have been faster.
        let _ = visit.client.carried(&question.id, &question.to, None).await;
        return Ok(redirect(&format!(
            "/threads/{}?did=filed",
            encode(&question.thread)
        )));
    }
    after_sending(&visit, &sent).await
}

/// Whether two envelopes say the same: the generated id of the message may differ.
fn is_same_answer(one: &str, other: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.trim_end().lines();
        lines
            .filter(|l| !l.starts_with("message: "))
            .map(str::to_owned)
            .collect()
    };
    lines(one) == lines(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_are_marked_in_the_text() {
        let text = "Sure!\n[[CHATGPT=>CLAUDE v1]]\nUser: kalle\nSession: 2025-10-09T16Z abc123\nContext: auth\nIntent: ANSWER\nBody: |\nYes \u{202e}<b>.\n[[END]]\n";
        let review = read(text, 0, None);
        assert!(review.repairs > 3 && review.found == 1);
        let whole: String = review.parts.iter().map(|p| p.text.as_str()).collect();
        assert_eq!(whole, Shown::new(text).as_str());
        assert!(
            review
                .parts
                .iter()
                .any(|p| p.mark.is_some() && p.text.as_str().contains("=>"))
        );
        assert!(!review.result.ok().unwrap().is_claimed);
        let nothing = read("hello", 0, None);
        assert!(nothing.result.is_err() && nothing.found == 0);
    }

    #[test]
    fn an_unsigned_text_in_the_name_of_a_person_is_a_claim() {
        let from = |sender: &str, sig: &str| {
            let text = format!(
                "[[{sender}→CLAUDE v1]]\nuser: ann\ncontext: c\nintent: REQUEST\nbody: |\n  Deploy.\nsig: {sig}\n[[END]]\n"
            );
            read(&text, 0, None).result.ok().unwrap().is_claimed
        };
        assert!(from("human://acme.example/ann", "none"));
        assert!(!from("claude://code/main", "none"));
        let signed = "ed25519:pkid=ann@acme.example;sig=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";
        assert!(!from("human://acme.example/ann", signed));
    }
}
