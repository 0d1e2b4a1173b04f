//! The port through which the server reaches a store or a relay.

use crosstalk_envelope::{Explanation, PublicKey, Timestamp};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Record, is_same_party};
use futures_util::future::BoxFuture;
use rmcp::model::Extensions;
use std::sync::Arc;
use std::time::Duration;

/// The answer of a port: a value, or what went wrong and what to do about it.
pub type PortFuture<'f, T> = BoxFuture<'f, Result<T, Explanation>>;

/// The client of one request.
#[derive(Clone, Copy, Debug)]
pub struct McpCaller<'c> {
    /// The name by which the client introduced itself, such as `claude-code`; empty if it did not.
    pub client: &'c str,
    /// The data of the transport about the request: over HTTP, its head.
    pub extensions: &'c Extensions,
}

/// Gives each caller the port of its address.
pub trait PortSource: Send + Sync + 'static {
    /// The port of the address that the caller holds.
    fn open<'f>(&'f self, caller: McpCaller<'f>) -> PortFuture<'f, Arc<dyn AgentPort>>;
}

/// The messages of one address, as its agent sees them. It never shows mail of another address.
pub trait AgentPort: Send + Sync + 'static {
    /// The address of the agent.
    fn address(&self) -> &str;

    /// Writes and sends a message.
    fn send(&self, draft: MessageDraft) -> PortFuture<'_, PostedMessage>;

    /// The messages that were neither read nor answered. The port remembers what it has shown: see [`News::of`].
    fn news(&self, limit: usize) -> PortFuture<'_, News>;

    /// A message, or the messages of a thread; `marks` takes them out of the news.
    fn read(&self, id: String, marks: bool) -> PortFuture<'_, Vec<AgentMessage>>;

    /// Answers a message, which takes it out of the news.
    fn reply(&self, id: String, text: String) -> PortFuture<'_, PostedMessage>;

    /// Opens a poll.
    fn open_poll(&self, draft: PollDraft) -> PortFuture<'_, PostedMessage>;

    /// The state of a poll.
    fn poll(&self, id: String) -> PortFuture<'_, PollProgress>;

    /// Asks the person: a message that waits in the inbox of the person.
    fn ask_person(
        &self,
        question: String,
        context: Option<String>,
    ) -> PortFuture<'_, PostedMessage>;

    /// The answer to a message of this agent, if it has come. It takes the answer out of the news.
    fn answer_to(&self, id: String) -> PortFuture<'_, Option<AgentMessage>>;

    /// Takes a question of this agent out of the inbox of the person, who has decided about it in a form. A relay leaves it there.
    fn settle(&self, id: String) -> PortFuture<'_, ()>;

    /// The threads that the address takes part in, the one with the latest message first.
    fn threads(&self, limit: usize) -> PortFuture<'_, Vec<AgentThread>>;

    /// Notices changes from now on.
    fn watch(&self) -> Box<dyn ChangeWatch>;
}

/// Notices that something may have changed for an address.
pub trait ChangeWatch: Send {
    /// Returns when something has changed since the watch was made or last returned, or after `within`.
    fn changed(&mut self, within: Duration) -> BoxFuture<'_, ()>;
}

/// A message that an agent writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageDraft {
    /// The receiver: a name or an address.
    pub to: String,
    /// The text.
    pub text: String,
    /// The intent; else it is inferred from the text.
    pub intent: Option<String>,
    /// The subject.
    pub context: Option<String>,
    /// The thread, or a message of it, that it continues.
    pub thread: Option<String>,
}

/// A poll that an agent opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollDraft {
    /// The question.
    pub question: String,
    /// The options; none for free answers.
    pub options: Vec<String>,
    /// The voters.
    pub to: Vec<String>,
}

/// A message that is on disk, and on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedMessage {
    /// Its id.
    pub id: String,
    /// Its thread.
    pub thread: String,
    /// A note for the agent, such as that a person has to approve it; empty if there is nothing.
    pub note: String,
}

impl PostedMessage {
    /// The same with something more that the agent should know.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        if !note.is_empty() {
            if !self.note.is_empty() {
                self.note.push(' ');
            }
            self.note.push_str(note);
        }
        self
    }
}

/// The most characters of messages that one result has.
const MAX_CHARS: usize = 40_000;

/// Messages for an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The messages: first those that the agent was not shown before, and of each kind the oldest first.
    pub messages: Vec<AgentMessage>,
    /// Whether there are more.
    pub more: bool,
    /// Why messages may be missing, such as a relay that can't be reached.
    pub trouble: Option<String>,
    /// Whether an agent that waits should hear of it: it has something that the agent was not shown before.
    pub is_new: bool,
    /// Whether the agent was shown some of the messages before.
    pub has_shown: bool,
}

impl News {
    /// As many of the unread messages as one result has room for. `was_shown` knows those that the agent was shown before.
    pub fn of(
        unread: Vec<AgentMessage>,
        limit: usize,
        was_shown: impl Fn(&AgentMessage) -> bool,
    ) -> Self {
        let all = unread.len();
        let (shown, unseen): (Vec<_>, Vec<_>) = unread.into_iter().partition(was_shown);
        let is_new = !unseen.is_empty();
        let count_of_unseen = unseen.len();
        let mut chars = 0;
        let mut messages: Vec<AgentMessage> = Vec::new();
        for message in unseen.into_iter().chain(shown).take(limit) {
            chars += message.text.chars().count();
            if !messages.is_empty() && chars > MAX_CHARS {
                break;
            }
            messages.push(message);
        }
        Self {
            more: messages.len() < all,
            has_shown: messages.len() > count_of_unseen,
            messages,
            trouble: None,
            is_new,
        }
    }
}

/// A message as an agent reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMessage {
    /// Its id.
    pub id: String,
    /// Its thread.
    pub thread: String,
    /// The sender, as the message says.
    pub from: String,
    /// The intent, as the message says.
    pub intent: Option<String>,
    /// The result of checking its signature.
    pub verdict: VerdictWord,
    /// Whether a person approved it.
    pub is_approved: bool,
    /// Whether the agent wrote it.
    pub is_own: bool,
    /// The text.
    pub text: String,
    /// When it came.
    pub at: Timestamp,
}

impl AgentMessage {
    /// A message of a store, as the agent with an address reads it. A key that everybody can make says nothing about its holder: a
    /// signature with one is first contact, whatever the store says about it.
    pub fn of(record: &Record, address: &str, is_approved: bool) -> Self {
        let has_own_key = record
            .pkid
            .as_deref()
            .is_some_and(|key| PublicKey::from_did(key).is_some());
        Self {
            id: record.id.clone(),
            thread: record.thread.clone(),
            from: record.sender.clone(),
            intent: record.intent.clone(),
            verdict: match record.verdict {
                VerdictWord::Verified if has_own_key => VerdictWord::FirstContact,
                verdict => verdict,
            },
            is_approved,
            is_own: is_same_party(&record.sender, address),
            text: record.document().body_text(),
            at: record.at,
        }
    }
}

/// The state of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollProgress {
    /// The id of the poll.
    pub id: String,
    /// Whether it still takes answers.
    pub is_open: bool,
    /// Each option with its votes, as others may have written them.
    pub tally: Vec<(String, String)>,
    /// The voters who have not answered.
    pub missing: Vec<String>,
    /// The answers, where there are no options.
    pub answers: Vec<AgentMessage>,
}

/// A thread of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentThread {
    /// Its id.
    pub id: String,
    /// How many messages it has.
    pub messages: u64,
    /// When the latest one came.
    pub last_at: Timestamp,
}

/// The word for the verification of a message: `verified`, `first contact`, `unsigned` or `damaged`, with `approved` after it if a
/// person approved the message.
///
/// ```
/// use crosstalk_mcp::verification_label;
/// use crosstalk_protocol::VerdictWord;
/// assert_eq!(verification_label(VerdictWord::Unsigned, false), "unsigned");
/// assert_eq!(verification_label(VerdictWord::FirstContact, true), "first contact, approved");
/// ```
pub fn verification_label(verdict: VerdictWord, is_approved: bool) -> String {
    let word = match verdict {
        VerdictWord::Verified => "verified",
        VerdictWord::FirstContact | VerdictWord::Unbound => "first contact",
        VerdictWord::Unsigned | VerdictWord::UnknownKey => "unsigned",
        VerdictWord::Damaged | VerdictWord::NotVerified | VerdictWord::Revoked => "damaged",
    };
    match is_approved {
        true => format!("{word}, approved"),
        false => word.to_owned(),
    }
}
