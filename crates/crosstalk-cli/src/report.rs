//! Messages and threads for programs: the parts that the answers of the conversation commands are made of.

use crosstalk_protocol::store::{FailedAnswer, Record, Thread, ThreadState, Wait};
use serde::Serialize;

/// A message.
#[derive(Debug, Serialize)]
pub(crate) struct Message {
    id: String,
    thread: String,
    parent: Option<String>,
    session: Option<String>,
    from: String,
    to: String,
    user: Option<String>,
    context: Option<String>,
    /// As it was written.
    intent: Option<String>,
    /// The core intent that it means.
    meaning: Option<&'static str>,
    side: &'static str,
    way: &'static str,
    waits_for: &'static str,
    verdict: &'static str,
    pkid: Option<String>,
    received_at: String,
    written_at: Option<String>,
    digest: String,
    body: String,
    envelope: String,
    /// Whether the text may be cut off.
    truncated: bool,
}

impl Message {
    pub(crate) fn new(record: &Record) -> Self {
        let own = |text: &Option<String>| text.clone();
        Self {
            id: record.id.clone(),
            thread: record.thread.clone(),
            parent: own(&record.parent),
            session: own(&record.session),
            from: record.sender.clone(),
            to: record.receiver.clone(),
            user: own(&record.user),
            context: own(&record.context),
            intent: own(&record.intent),
            meaning: record.meaning.map(|m| m.as_str()),
            side: record.side.as_str(),
            way: record.way.as_str(),
            waits_for: record.wait.as_str(),
            verdict: record.verdict.as_str(),
            pkid: own(&record.pkid),
            received_at: record.at.to_string(),
            written_at: record.written_at.map(|t| t.to_string()),
            digest: record.digest.to_string(),
            body: record.document().body_text(),
            envelope: record.text.clone(),
            truncated: record.truncated,
        }
    }
}

/// A thread.
#[derive(Debug, Serialize)]
pub(crate) struct Conversation {
    id: String,
    context: Option<String>,
    session: Option<String>,
    parties: Vec<String>,
    messages: u64,
    /// How many messages wait for the person of this store.
    waiting: u64,
    /// How many messages wait for the other side.
    asked: u64,
    first_at: String,
    last_at: String,
    last: String,
    closed_at: Option<String>,
    /// What has to happen next.
    state: &'static str,
    /// Whom the other open questions wait for.
    waits_for: Vec<String>,
    /// Whose last answer was a failure or a refusal.
    failed: Vec<Failed>,
}

/// A question that ended in an ERROR or a NACK.
#[derive(Debug, Serialize)]
struct Failed {
    of: String,
    code: String,
}

impl Failed {
    fn new(failed: &FailedAnswer) -> Self {
        Self {
            of: failed.of.clone(),
            code: failed.code.clone(),
        }
    }
}

impl Conversation {
    pub(crate) fn new(thread: &Thread) -> Self {
        Self {
            id: thread.id.clone(),
            context: thread.context.clone(),
            session: thread.session.clone(),
            parties: thread.parties.clone(),
            messages: thread.messages,
            waiting: thread.waiting,
            asked: thread.asked,
            first_at: thread.first_at.to_string(),
            last_at: thread.last_at.to_string(),
            last: thread.last.clone(),
            closed_at: thread.closed_at.map(|t| t.to_string()),
            state: thread.state().as_str(),
            waits_for: match thread.state() {
                ThreadState::Carry(names) | ThreadState::WaitingFor(names) => names,
                ThreadState::YourTurn => thread.awaited(Wait::Them),
                ThreadState::Closed
                | ThreadState::Failed(_)
                | ThreadState::Answered
                | ThreadState::Open => Vec::new(),
            },
            failed: thread.failed.iter().map(Failed::new).collect(),
        }
    }
}
