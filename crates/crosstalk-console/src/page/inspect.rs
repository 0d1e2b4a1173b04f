//! The inspector: any text, its envelopes line by line. What a line is for, whether a signature covers it, what a hop added, what was
//! repaired. Nothing is kept.

use super::paste::tone;
use super::{PageResult, Shell, render};
use crate::text::Shown;
use crate::visit::{Posted, Visit};
use askama::Template;
use axum::response::Response;

use crosstalk_envelope::registry::Namespace;
use crosstalk_envelope::{
    Diagnosis, Diagnostic, Document, LineIndex, Reading, Signature, diagnose, lint, scan,
};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

/// How many lines of an envelope are explained.
const MOST_LINES: usize = 600;
/// How many envelopes of a text are shown.
const MOST_ENVELOPES: usize = 10;
/// How many findings are shown of an envelope, and of what is none.
const MOST_FINDINGS: usize = 300;

#[derive(Template)]
#[template(path = "inspect.html")]
struct InspectPage {
    shell: Shell,
    text: String,
    envelopes: Vec<Inspected>,
    rejected: Vec<LineRemark>,
    is_read: bool,
}

/// One envelope.
struct Inspected {
    lines: Vec<InspectedLine>,
    more_lines: usize,
    signature: String,
    is_signed: bool,
    body: String,
    body_tone: &'static str,
    repairs: Vec<LineRemark>,
    /// As it was read, for the file.
    text: String,
}

/// A line and what it means.
struct InspectedLine {
    number: usize,
    text: Shown,
    meaning: String,
    /// `signed`, `hop`, or nothing.
    cover: &'static str,
    is_changed: bool,
}

/// A finding.
struct LineRemark {
    tone: &'static str,
    line: usize,
    message: Shown,
    help: &'static str,
    rule: &'static str,
    title: &'static str,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    match visit.query.get("id") {
        Some(id) => {
            let message = visit.client.message(id).await?;
            page(visit, message.envelope).await
        }
        None => page(visit, String::new()).await,
    }
}

pub(crate) async fn inspect(Posted { visit, form }: Posted) -> PageResult {
    let text = form.text("text").to_owned();
    page(visit, text).await
}

/// The text of an envelope as a file.
pub(crate) async fn save(Posted { form, .. }: Posted) -> Response {
    let mut answer = Response::new(form.text("envelope").to_owned().into());
    let headers = answer.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    let name = HeaderValue::from_static("attachment; filename=\"message.aict\"");
    headers.insert(CONTENT_DISPOSITION, name);
    answer
}

async fn page(visit: Visit, text: String) -> PageResult {
    let read = visit.console.read_apart(move || {
        let (envelopes, rejected) = read(&text);
        (envelopes, rejected, text)
    });
    let (envelopes, rejected, text) = read.await?;
    render(&InspectPage {
        envelopes,
        rejected,
        is_read: !text.trim().is_empty(),
        text,
        shell: visit.shell("Inspect").await,
    })
}

/// The envelopes of a text, and what could not be read.
fn read(text: &str) -> (Vec<Inspected>, Vec<LineRemark>) {
    if text.trim().is_empty() {
        return (Vec::new(), Vec::new());
    }
    let found = scan(text, Reading::Paste).accept_truncated();
    let index = LineIndex::new(text);
    let envelopes = found.documents.iter().take(MOST_ENVELOPES);
    let rejected = found.rejected.iter().take(MOST_FINDINGS);
    (
        envelopes.map(|d| inspected(d, &index)).collect(),
        rejected.map(|d| remark(d, &index)).collect(),
    )
}

fn remark(finding: &Diagnostic, index: &LineIndex<'_>) -> LineRemark {
    LineRemark {
        tone: tone(finding.severity),
        line: index.line(finding.span.start),
        message: Shown::new(&finding.message),
        help: finding.help(),
        rule: finding.rule.id,
        title: finding.rule.title,
    }
}

fn inspected(document: &Document<'_>, index: &LineIndex<'_>) -> Inspected {
    let envelope = document.envelope();
    let (is_signed, signature) = match envelope.signature {
        Some(Signature::Signed {
            algorithm, pkid, ..
        }) => (
            true,
            format!(
                "Signed with {algorithm} by the key {pkid}. Green lines are what the signature covers."
            ),
        ),
        Some(Signature::None) => (
            false,
            "Not signed: every line may have been changed on the way.".to_owned(),
        ),
        None => (false, "The signature line can't be read.".to_owned()),
    };
    let diagnosis = diagnose(document);
    let (body_tone, body) = match &diagnosis {
        None => ("none", "The envelope has no digest of its body.".to_owned()),
        Some(Diagnosis::Intact) => (
            "ok",
            "The body has the digest that the head declares: intact.".to_owned(),
        ),
        Some(Diagnosis::Reflowed) => (
            "warn",
            "The body has the same words in other lines: reflowed.".to_owned(),
        ),
        Some(Diagnosis::Truncated { .. }) => (
            "bad",
            "Lines of the body are missing: truncated.".to_owned(),
        ),
        Some(Diagnosis::Altered { lines }) => (
            "bad",
            format!("The body is another text: {} lines differ.", lines.len()),
        ),
    };
    let mut findings: Vec<Diagnostic> = document.diagnostics().to_vec();
    findings.extend(lint(document));
    findings.sort_by_key(|d| d.span.start);
    findings.truncate(MOST_FINDINGS);
    let (lines, more_lines) = lines(document, is_signed, diagnosis.as_ref());
    Inspected {
        lines,
        more_lines,
        signature,
        is_signed,
        body,
        body_tone,
        repairs: findings.iter().map(|d| remark(d, index)).collect(),
        text: document.text().to_owned(),
    }
}

/// Where a line stands.
enum Part {
    Head,
    Block(String),
    Body,
    Tail,
}

fn lines(
    document: &Document<'_>,
    is_signed: bool,
    diagnosis: Option<&Diagnosis>,
) -> (Vec<InspectedLine>, usize) {
    let text = document.text();
    let changed = diagnosis.map_or(&[][..], Diagnosis::lines);
    let (mut part, mut out, mut body_line, mut rest) = (Part::Head, Vec::new(), 0, 0);
    for (at, line) in text.lines().enumerate() {
        let (meaning, is_covered, is_hop) = explain(line, &mut part);
        let is_changed = matches!(part, Part::Body) && !line.starts_with("body:") && {
            body_line += 1;
            changed.contains(&body_line)
        };
        if at >= MOST_LINES {
            rest += 1;
            continue;
        }
        out.push(InspectedLine {
            number: at + 1,
            text: Shown::new(line),
            meaning,
            cover: match (is_hop, is_signed && is_covered) {
                (true, _) => "hop",
                (false, true) => "signed",
                (false, false) => "",
            },
            is_changed,
        });
    }
    (out, rest)
}

/// The purpose of a line, whether a signature covers it, and whether a hop wrote it.
fn explain(line: &str, part: &mut Part) -> (String, bool, bool) {
    if line.starts_with("[[END") {
        *part = Part::Tail;
        return ("the end".to_owned(), false, false);
    }
    if line.starts_with("[[") {
        *part = Part::Head;
        return ("from whom, to whom, which version".to_owned(), true, false);
    }
    let is_indented = line.starts_with(' ') || line.is_empty();
    if let Part::Body = part
        && is_indented
    {
        return (String::new(), true, false);
    }
    if line.trim().is_empty() {
        let is_hop =
            matches!(part, Part::Block(name) if Namespace::find(name).is_some_and(|n| n.hop));
        return (String::new(), false, is_hop);
    }
    let (name, _) = line.split_once(':').unwrap_or((line, ""));
    match name {
        "sig" => {
            *part = Part::Tail;
            let is_signed = line != "sig: none";
            let meaning = match is_signed {
                true => "the signature over the green lines",
                false => "nobody signed it",
            };
            return (meaning.to_owned(), false, false);
        }
        "body" | "response" => {
            *part = Part::Body;
            return ("the text follows, indented".to_owned(), true, false);
        }
        "meta" => {
            let namespace = line.split_once(':').map_or("", |(_, n)| n.trim());
            let found = Namespace::find(namespace);
            let is_hop = found.is_some_and(|n| n.hop);
            *part = Part::Block(namespace.to_owned());
            let summary = found.map_or("a block that the registry does not know", |n| n.summary);
            let meaning = match is_hop {
                true => format!("{summary}; not signed by the sender"),
                false => summary.to_owned(),
            };
            return (meaning, !is_hop, is_hop);
        }
        _ => {}
    }
    if let Part::Block(namespace) = part {
        let is_route = name == "X-Route";
        let is_hop = is_route || Namespace::find(namespace).is_some_and(|n| n.hop);
        let meaning = match is_route {
            true => "the way so far; hops add to it",
            false => "",
        };
        return (meaning.to_owned(), !is_hop, is_hop);
    }
    let meaning = match name {
        "user" => "who speaks",
        "session" => "the conversation, as version 1.0 named it",
        "thread" => "the conversation",
        "parent" => "the message that it answers",
        "message" => "the id of this message",
        "context" => "the topic",
        "intent" => "what the message wants",
        _ => "a header that the format does not know",
    };
    (meaning.to_owned(), true, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_shown_up_to_a_number() {
        let bad = "[[A→B v1]]\nuser: u\nbody: |\n\u{202e}\rx\n[[END\n".repeat(2000);
        let (envelopes, rejected) = read(&bad);
        assert!(rejected.len() <= MOST_FINDINGS && envelopes.len() <= MOST_ENVELOPES);
        assert!(envelopes.iter().all(|e| e.repairs.len() <= MOST_FINDINGS));
        assert!(!(rejected.is_empty() && envelopes.is_empty()));
    }

    #[test]
    fn each_line_says_what_covers_it() {
        let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: REQUEST\nmeta: routing\nX-Priority: high\nX-Route: A>B\n\
                    meta: audit\nHop: relay\nbody: |\n  meta: no\n\n  sig: no\nsig: ed25519:pkid=a;sig=AAAA\n[[END]]\n";
        let document = Document::parse(text, Reading::Strict);
        let (lines, _) = lines(&document, true, None);
        let covers: Vec<&str> = lines.iter().map(|l| l.cover).collect();
        let (s, h) = ("signed", "hop");
        assert_eq!(covers, [s, s, s, s, s, s, s, h, h, h, s, s, s, s, "", ""]);
    }
}
