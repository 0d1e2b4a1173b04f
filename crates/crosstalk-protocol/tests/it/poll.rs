//! Polls: what counts, whatever anybody sends, and in whatever order it comes.

mod election;
mod identity;
mod result;
mod second;

use crosstalk_envelope::id::ulid_of;
use crosstalk_envelope::{Document, Reading, Timestamp};
use crosstalk_protocol::poll::{Collation, Paper, collate};

pub(super) const POLL: &str = "01K74V6VX0S86Z5JATM52C3M7Z";
pub(super) const THREAD: &str = "01K74V6R0074G0T7MAHPXVDNXW";

/// 2025-10-09T16:00:00Z and so many seconds.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_760_025_600_000 + seconds * 1000)
}

pub(super) fn id(seconds: i64, tail: u128) -> String {
    ulid_of(u64::try_from(at(seconds).as_millis()).unwrap(), tail)
}

/// A POLL of KALLE. `fields` are lines of `meta: poll`.
pub(super) fn poll(targets: &[&str], fields: &str) -> String {
    let targets = serde_json::to_string(targets).unwrap();
    format!(
        "[[KALLE→TEAM v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\nthread: {THREAD}\nmessage: {POLL}\n\
         context: release\nintent: POLL\n\nmeta: routing\nTargets: {targets}\n\nmeta: poll\n{fields}\nbody: |\n  Which one?\n\
         sig: none\n[[END]]\n"
    )
}

/// A RESPOND to it. `vote` are lines of `meta: vote`; without any, the body is all there is.
pub(super) fn answer(from: &str, message: &str, vote: &str, body: &str) -> String {
    let vote = match vote.is_empty() {
        true => String::new(),
        false => format!("\nmeta: vote\n{vote}\n"),
    };
    let message = match message.is_empty() {
        true => String::new(),
        false => format!("message: {message}\n"),
    };
    let body: String = body.lines().map(|l| format!("  {l}\n")).collect();
    format!(
        "[[{from}→KALLE v1]]\nuser: u\nsession: 2025-10-09T16Z abc123\nthread: {THREAD}\nparent: {POLL}\n{message}context: release\n\
         intent: RESPOND\n{vote}\nbody: |\n{body}sig: none\n[[END]]\n"
    )
}

pub(super) fn choice(from: &str, seconds: i64, choice: &str) -> String {
    let tail = from
        .bytes()
        .fold(7, |sum: u128, b| sum * 31 + u128::from(b));
    answer(
        from,
        &id(seconds, tail),
        &format!("Choice: {choice}"),
        "As said.",
    )
}

pub(super) fn collated(texts: &[String]) -> Collation {
    collated_at(texts, None)
}

pub(super) fn collated_at(texts: &[String], at: Option<Timestamp>) -> Collation {
    let documents = parsed(texts);
    let papers: Vec<Paper<'_>> = documents.iter().map(Paper::of).collect();
    collate(&papers, None, at).unwrap()
}

pub(super) fn parsed(texts: &[String]) -> Vec<Document<'_>> {
    let read = |t: &'_ String| {
        let mut document = Document::parse(t, Reading::Strict).into_owned();
        document.check();
        assert!(document.is_accepted(), "{:?}\n{t}", document.diagnostics());
        document
    };
    texts.iter().map(read).collect()
}

/// Everything that a collation says, in bytes.
pub(super) fn bytes(collation: &Collation) -> String {
    let mut out = serde_json::to_string_pretty(collation).unwrap();
    for envelope in collation.to_envelopes(None).unwrap() {
        out.push_str(&envelope);
    }
    out
}

pub(super) fn whys(collation: &Collation) -> Vec<(&str, &str)> {
    let all = collation.not_counted.iter();
    all.map(|n| (n.from.as_str(), n.why.as_str())).collect()
}

pub(super) fn choices(collation: &Collation) -> Vec<(&str, &str)> {
    let all = collation.counted.iter();
    all.map(|c| (c.from.as_str(), c.choice.as_deref().unwrap_or("-")))
        .collect()
}
