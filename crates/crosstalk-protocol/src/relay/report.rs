//! Notices that a relay sends by itself: a message did not arrive, was not answered in time, was rejected by a person, or a
//! consent was revoked.
//!
//! The same thing always gets the same id, so that what is said again after a crash is known.

use super::delivery::{Delivery, Handler};
use super::hop::{HOPS, hops_of};
use super::peer::authority;
use crate::consent::{Cancelled, RevocationResult};
use crate::program::expects_answer;
use crate::store::{Arrival, Record, is_same_party};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::name::{SYSTEM, SYSTEM_USER, same_host, same_name};
use crosstalk_envelope::registry::{ErrorCode, Intent};
use crosstalk_envelope::reply::{ReceivedIds, Rejection};
use crosstalk_envelope::{Builder, Document, Explanation, Reading, Timestamp, id, reply, unicode};
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
/// sender. Another relay says nothing else in this name here: no revocation, no result, nothing about other messages.
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
    error(record, &Rejection::new(code, what, help), &seed)
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
    let body = Explanation::new(what, help).detail();
    let notice = reply::notice(&document.envelope(), &ids_of(record), SYSTEM_USER, &body);
    notice.message(id).build().ok()
}

/// The id of the notice of [`retried`]. The notice is settled by the answer of the program or by a dead letter.
pub fn retried_id(record: &Record, to: &str, since: Timestamp) -> String {
    let to = unicode::escape(to);
    let seed = format!("retried\n{}\n{to}\n{since}\n", record.digest);
    derived(record.at, &seed)
}

/// That nobody answered in time. Nothing where nothing is said, and about a poll: its result says who has not answered.
pub fn unanswered(record: &Record, due: Timestamp) -> Option<String> {
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
    error(
        record,
        &Rejection::new(ErrorCode::Timeout, what, help),
        &seed,
    )
}

/// That programs went on asking each other, and the relay ended it. `first` is the message that the conversation began with.
/// Said once, however many of its branches are ended. Nothing where nothing is said.
pub fn circular(first: &Record) -> Option<String> {
    let refusal = Rejection::new(
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
pub fn declined(record: &Record, refusal: &Rejection) -> Option<String> {
    let seed = format!("declined\n{}\n", record.digest);
    error(record, refusal, &seed)
}

/// That the answer of a recipient was rejected: an ERROR of the relay to the recipient, where nobody told it while it answered.
/// `answer` is the id that the answer would have had, so that it is said once. Nothing where nothing is said: else an answer to such
/// an ERROR would bring the next one.
pub fn rejected_answer(
    question: &Record,
    recipient: &str,
    answer: &str,
    refusal: &Rejection,
) -> Option<String> {
    if takes_no_answer(question) {
        return None;
    }
    let seed = format!("rejected answer\n{}\n{answer}\n", question.digest);
    Builder::new(SYSTEM, recipient)
        .user(SYSTEM_USER)
        .thread(&question.thread)
        .parent(&question.id)
        .message(derived(question.at, &seed))
        .context(question.context.as_deref().unwrap_or("answer"))
        .intent(Intent::Error.as_str())
        .meta("error", "Code", refusal.code.as_str())
        .meta("error", "Reason", &refusal.reason)
        .body(refusal.detail())
        .visible()
        .build()
        .ok()
}

/// The ERROR in the name of the receiver.
fn error(record: &Record, refusal: &Rejection, seed: &str) -> Option<String> {
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

/// How many erased messages a confirmation lists; the rest is counted.
const LISTED: usize = 1000;

/// Everything that is said after a REVOKE. One that another relay passed on is confirmed by its receipt: no relay takes the
/// word of another one's SYSTEM for what was erased.
pub fn revocation_notices(revoke: &Arrival, withdrawn: &RevocationResult) -> Vec<String> {
    let errors = withdrawn.cancelled.iter().map(|c| cancellation(c, revoke));
    let passed_on = Document::parse(&revoke.text, Reading::Strict);
    let is_ours = passed_on.envelope().hops().next().is_none();
    let all = errors.chain(is_ours.then(|| confirmation(revoke, withdrawn)));
    all.filter_map(|builder| builder.build().ok()).collect()
}

/// What the sender of a message is told that is not delivered any more.
fn cancellation(cancelled: &Cancelled, revoke: &Arrival) -> Builder {
    let (what, help) = (
        format!(
            "The message was not delivered to {}: the consent that it was sent under was revoked at {}. Its \
                 text is erased.",
            unicode::escape(&cancelled.to),
            revoke.at
        ),
        "ask for a new consent before you send it again.",
    );
    let refusal = Rejection::new(ErrorCode::Consent, what, help);
    let seed = format!(
        "withdrawn\n{}\n{}\n{}\n",
        cancelled.id, cancelled.to, revoke.digest
    );
    Builder::new(&cancelled.to, &cancelled.from)
        .user(SYSTEM_USER)
        .thread(&cancelled.thread)
        .parent(&cancelled.id)
        .message(derived(revoke.at, &seed))
        .context("consent")
        .intent(Intent::Error.as_str())
        .meta("error", "Code", refusal.code.as_str())
        .meta("error", "Reason", &refusal.reason)
        .body(refusal.detail())
}

/// The message that confirms a REVOKE: the consents, deliveries and texts that it ended, and when.
fn confirmation(revoke: &Arrival, withdrawn: &RevocationResult) -> Builder {
    let mut body = String::from("Revoked. This was done:\n");
    let mut line = |text: String| {
        body.push_str(&text);
        body.push('\n');
    };
    for id in &withdrawn.consents {
        line(format!("- the consent {} is revoked", unicode::escape(id)));
    }
    for name in &withdrawn.tokens {
        line(format!("- the token {} is revoked", unicode::escape(name)));
    }
    line(format!(
        "- {} deliveries were cancelled",
        withdrawn.cancelled.len()
    ));
    for to in &withdrawn.told {
        line(format!(
            "- {} had received some of it, and gets this REVOKE",
            unicode::escape(to)
        ));
    }
    line(format!(
        "- {} messages were erased at this relay",
        withdrawn.erased.len()
    ));
    for erased in withdrawn.erased.iter().take(LISTED) {
        line(format!(
            "  {} {}",
            unicode::escape(&erased.id),
            erased.digest
        ));
    }
    let thread = revoke.thread.as_deref().unwrap_or(&revoke.generated.thread);
    let seed = format!("confirmation\n{}\n", revoke.digest);
    // Not in the name of the receiver: what they erase is theirs to say.
    Builder::new(SYSTEM, &revoke.sender)
        .user("relay")
        .thread(thread)
        .parent(revoke.id())
        .message(derived(revoke.at, &seed))
        .context("consent")
        .intent(Intent::Broadcast.as_str())
        .meta("withdrawal", "Consents", withdrawn.consents.join(", "))
        .meta("withdrawal", "Erased", withdrawn.erased.len().to_string())
        .meta(
            "withdrawal",
            "Cancelled",
            withdrawn.cancelled.len().to_string(),
        )
        .meta("withdrawal", "Passed-On", withdrawn.told.len().to_string())
        .meta("withdrawal", "At", revoke.at.to_string())
        .body(&body)
}
