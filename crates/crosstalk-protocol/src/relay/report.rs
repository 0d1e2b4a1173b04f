//! What a relay says by itself: a message did not arrive, was not answered in time, was refused by a person, or a
//! consent was withdrawn.
//!
//! The same thing always gets the same id, so that what is said again after a crash is known.

mod withdrawal;

pub use withdrawal::withdrawn;

use super::delivery::{Delivery, Handler};
use super::hop::{HOPS, hops_of};
use super::peer::authority;
use super::port::Expectation;
use crate::program::expects_answer;
use crate::store::{Record, is_same_party};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::name::{SYSTEM, SYSTEM_USER, same_host, same_name};
use crosstalk_envelope::registry::{ErrorCode, Intent};
use crosstalk_envelope::reply::{self, ReceivedIds, Refusal};
use crosstalk_envelope::{Document, Reading, Timestamp, id, unicode};
use std::borrow::Cow;

/// Whether nothing is ever said in answer to a message, so that programs do not talk to each other for ever.
pub fn takes_no_answer(record: &Record) -> bool {
    let says_enough = matches!(
        record.meaning,
        Some(Intent::Error | Intent::Ack | Intent::Nack | Intent::Broadcast)
    );
    says_enough || same_name(&record.sender, SYSTEM)
}

/// Whether a message in the name of SYSTEM is an ERROR of another domain about a message that was sent there, to its
/// sender. Another relay says nothing else in this name here: no withdrawal, no result, nothing about other messages.
pub fn is_report_about(
    report: &Document<'_>,
    domain: &str,
    sent: &Record,
    ways: &[Delivery],
) -> bool {
    let went_there = |way: &Delivery| {
        let there = authority(&way.to);
        way.by == Handler::Relay && there.is_some_and(|there| same_host(there, domain))
    };
    report.envelope().meaning() == Some(Intent::Error)
        && report.block("withdrawal").is_none()
        && is_same_party(report.receiver(), &sent.sender)
        && ways.iter().any(went_there)
}

/// Who a message is from, as it is shown: the SYSTEM of another domain with the domain that passed it on. `own` is how
/// many of its last hops are those of the relay that the reader asks, and not of another domain.
///
/// ```
/// use crosstalk_protocol::relay::report::speaker;
/// let text = "[[SYSTEM→ANN v1]]\nuser: system\nthread: T\nmessage: M\ncontext: c\nintent: NOTE\n\nmeta: audit\nHop: 1\n\
///             Received-At: 2026-11-16T08:00:00Z\nReceived-By: b.example\nPrevious-Digest: sha256:\
///             28489b2f98b6d2a0bda990afdcb8112288512c9d73c14b5e8ed6ba3683359044\n\nbody: |\n  x\nsig: none\n[[END]]\n";
/// assert_eq!(speaker("SYSTEM", text, 0), "SYSTEM@b.example");
/// assert_eq!(speaker("SYSTEM", text, 1), "SYSTEM");
/// assert_eq!(speaker("BOB", text, 0), "BOB");
/// ```
pub fn speaker<'s>(sender: &'s str, text: &str, own: usize) -> Cow<'s, str> {
    if !same_name(sender, SYSTEM) {
        return sender.into();
    }
    let hops = hops_of(&Document::parse(text, Reading::Strict));
    match hops.into_iter().rev().nth(own).flatten() {
        Some(hop) => format!("{sender}@{}", hop.received_by).into(),
        None => sender.into(),
    }
}

/// That a message could not be delivered. `since` is when the delivery was queued: after it was queued again, there is
/// something new to tell. Nothing where nothing is said.
pub fn undeliverable(
    record: &Record,
    to: &str,
    (code, reason, help): (ErrorCode, &str, &str),
    since: Timestamp,
) -> Option<String> {
    let to = unicode::escape(to);
    let what = format!("Could not deliver message to {to}: {reason}.");
    let seed = format!("undeliverable\n{}\n{to}\n{since}\n", record.digest);
    error(record, &Refusal::new(code, what, help), &seed)
}

/// That the program of a recipient failed and is tried again: a BROADCAST, so that whoever waits for the answer waits on.
/// Said once, however often the program fails after `since`. Nothing where nothing is said, and to one who asks nothing.
pub fn retried(record: &Record, to: &str, since: Timestamp) -> Option<String> {
    if !expects_answer(record.meaning) || takes_no_answer(record) {
        return None;
    }
    let (id, to) = (retried_id(record, to, since), unicode::escape(to));
    let (what, help) = (
        format!(
            "No answer yet: the program that answers for {to} failed and will be retried. If it keeps failing, \
                 you get an ERROR."
        ),
        format!(
            "wait, or ask someone else. `crosstalk status {}` shows how often it was tried.",
            unicode::escape(&record.id)
        ),
    );
    let document = Document::parse(&record.text, Reading::Strict);
    let body = reply::what_and_help(&what, &help);
    let notice = reply::notice(&document.envelope(), &ids_of(record), SYSTEM_USER, &body);
    notice.message(id).build().ok()
}

/// The id of the notice of [`retried`]. The notice is settled once the program has answered, or is given up.
pub fn retried_id(record: &Record, to: &str, since: Timestamp) -> String {
    let to = unicode::escape(to);
    let seed = format!("retried\n{}\n{to}\n{since}\n", record.digest);
    derived(record.at, &seed)
}

/// That nobody answered in time. Nothing where nothing is said, and about a poll: its result says who has not answered.
pub fn unanswered(expectation: &Expectation) -> Option<String> {
    let Expectation { record, due } = expectation;
    if record.meaning == Some(Intent::Poll) {
        return None;
    }
    let (what, help) = (
        format!(
            "No answer came from {} until {due}.",
            unicode::escape(&record.receiver)
        ),
        "ask again, or ask somebody else.",
    );
    let seed = format!("unanswered\n{}\n{due}\n", record.digest);
    error(record, &Refusal::new(ErrorCode::Timeout, what, help), &seed)
}

/// That programs went on asking each other, and the relay ended it. `first` is the message that the conversation began with.
/// Said once, however many of its branches are ended. Nothing where nothing is said.
pub fn circular(first: &Record) -> Option<String> {
    let refusal = Refusal::new(
        ErrorCode::Route,
        format!(
            "No answer will come: the agents asked each other {HOPS} times in this conversation, and the relay ended it."
        ),
        "ask one agent alone, or have the programs changed so that they answer and do not ask on.",
    );
    let seed = format!("circular\n{}\n", first.digest);
    error(first, &refusal, &seed)
}

/// That a message which waited for a person does not go on. Nothing where nothing is said.
pub fn declined(record: &Record, refusal: &Refusal) -> Option<String> {
    let seed = format!("declined\n{}\n", record.digest);
    error(record, refusal, &seed)
}

/// The ERROR in the name of the receiver.
fn error(record: &Record, refusal: &Refusal, seed: &str) -> Option<String> {
    if takes_no_answer(record) {
        return None;
    }
    let document = Document::parse(&record.text, Reading::Strict);
    let error = reply::error(&document.envelope(), &ids_of(record), refusal);
    error.message(derived(record.at, seed)).build().ok()
}

fn ids_of(record: &Record) -> ReceivedIds {
    ReceivedIds {
        thread: record.thread.clone(),
        message: record.id.clone(),
    }
}

/// An id that is always the same for the same thing.
///
/// ```
/// use crosstalk_envelope::Timestamp;
/// use crosstalk_protocol::relay::report::derived;
/// let at = Timestamp::from_millis(1);
/// assert_eq!(derived(at, "a"), derived(at, "a"));
/// assert_ne!(derived(at, "a"), derived(at, "b"));
/// ```
pub fn derived(at: Timestamp, seed: &str) -> String {
    let digest = Digest::of(seed.as_bytes()).0;
    let tail = digest.iter().take(16);
    let tail = tail.fold(0_u128, |sum, byte| (sum << 8) | u128::from(*byte));
    id::ulid_of(u64::try_from(at.as_millis()).unwrap_or(0), tail)
}
