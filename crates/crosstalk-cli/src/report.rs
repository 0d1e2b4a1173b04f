//! The output of the conversation commands for programs. The doc comments become the descriptions of the JSON Schemas.

mod agent;
mod audit;
mod email;
mod poll;
mod relay;
mod settings;
mod signing;

pub(crate) use agent::*;
pub(crate) use audit::*;
pub(crate) use email::*;
pub(crate) use poll::*;
pub(crate) use relay::*;
pub(crate) use settings::*;
pub(crate) use signing::*;

use crate::failure::Failure;
use crate::service::relay::outbox::Reach;
use crate::service::relay::remote::MessageView;
use crosstalk_envelope::Intent;
use crosstalk_envelope::json::MessageJson;
use crosstalk_envelope::reply::Rejection;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::consent::{Assurance, RevocationResult};
use crosstalk_protocol::relay::DeliveryState;
use crosstalk_protocol::store::{Record, Side, Thread, ThreadState, Wait, Way};
use crosstalk_relay::client::ConsentView;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

const DIGEST: &str = "^sha256:[0-9a-f]{64}$";

/// A message.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessageReport {
    pub(crate) id: String,
    thread: String,
    parent: Option<String>,
    session: Option<String>,
    from: String,
    to: String,
    user: Option<String>,
    context: Option<String>,
    /// The intent as it was written.
    intent: Option<String>,
    /// The core intent that it means.
    #[schemars(extend("enum" = or_null(Intent::ALL, Intent::as_str)))]
    meaning: Option<&'static str>,
    #[schemars(extend("enum" = Side::ALL.map(Side::as_str)))]
    side: &'static str,
    #[schemars(extend("enum" = Way::ALL.map(Way::as_str)))]
    way: &'static str,
    #[schemars(extend("enum" = Wait::ALL.map(Wait::as_str)))]
    waits_for: &'static str,
    #[schemars(extend("enum" = VerdictWord::ALL.map(VerdictWord::as_str)))]
    verdict: &'static str,
    pkid: Option<String>,
    received_at: String,
    written_at: Option<String>,
    #[schemars(extend("pattern" = DIGEST))]
    digest: String,
    body: String,
    envelope: String,
    /// Whether the text may be cut off.
    truncated: bool,
}

impl MessageReport {
    pub(crate) fn new(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            thread: record.thread.clone(),
            parent: record.parent.clone(),
            session: record.session.clone(),
            from: record.sender.clone(),
            to: record.receiver.clone(),
            user: record.user.clone(),
            context: record.context.clone(),
            intent: record.intent.clone(),
            meaning: record.meaning.map(|m| m.as_str()),
            side: record.side.as_str(),
            way: record.way.as_str(),
            waits_for: record.wait.as_str(),
            verdict: record.verdict.as_str(),
            pkid: record.pkid.clone(),
            received_at: record.at.to_string(),
            written_at: record.written_at.map(|t| t.to_string()),
            digest: record.digest.to_string(),
            body: record.document().body_text(),
            envelope: record.text.clone(),
            truncated: record.truncated,
        }
    }

    pub(crate) fn all(records: &[Record]) -> Vec<Self> {
        records.iter().map(Self::new).collect()
    }
}

/// A thread.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ThreadReport {
    id: String,
    context: Option<String>,
    session: Option<String>,
    parties: Vec<String>,
    messages: u64,
    /// How many messages wait for you.
    waiting: u64,
    /// How many messages wait for the other side.
    asked: u64,
    first_at: String,
    last_at: String,
    last: String,
    closed_at: Option<String>,
    /// The next step.
    #[schemars(extend("enum" = ThreadState::WORDS))]
    state: &'static str,
    /// The others who have to act.
    waits_for: Vec<String>,
    /// Those whose last answer was an ERROR or a NACK.
    failed: Vec<FailedParty>,
}

/// A party whose last answer was an ERROR or a NACK.
#[derive(Debug, Serialize, JsonSchema)]
struct FailedParty {
    of: String,
    code: String,
}

impl ThreadReport {
    pub(crate) fn new(thread: &Thread) -> Self {
        let failed = thread.failed.iter().map(|failed| FailedParty {
            of: failed.of.clone(),
            code: failed.code.clone(),
        });
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
            failed: failed.collect(),
        }
    }
}

/// The output of `crosstalk threads --json`, the thread with the latest message first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ThreadsReport {
    pub(crate) threads: Vec<ThreadReport>,
    pub(crate) more: bool,
}

/// The output of `crosstalk show --json`: a message with its thread, or all messages of a thread as they came.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ShowReport {
    pub(crate) thread: Option<ThreadReport>,
    pub(crate) messages: Vec<MessageReport>,
}

/// The output of `crosstalk export --format json`: a thread and all its messages as they came.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExportReport {
    pub(crate) thread: ThreadReport,
    pub(crate) messages: Vec<MessageReport>,
}

/// The output of `crosstalk search --json`, the latest message first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SearchReport {
    pub(crate) query: String,
    pub(crate) messages: Vec<MessageReport>,
    pub(crate) more: bool,
}

/// The output of `crosstalk inbox --json`, the latest message first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InboxReport {
    pub(crate) messages: Vec<MessageReport>,
    pub(crate) more: bool,
    /// The messages that wait at the relays of the settings.
    pub(crate) relays: Vec<WaitingAtRelayReport>,
}

/// The messages that wait at a relay.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WaitingAtRelayReport {
    pub(crate) url: String,
    /// Why the relay could not be asked.
    pub(crate) error: Option<String>,
    pub(crate) inboxes: Vec<RemoteInboxReport>,
    /// How many messages are held for your decision.
    pub(crate) held: usize,
    /// How many messages there are to carry.
    pub(crate) to_carry: usize,
}

/// The messages that wait in an inbox at a relay.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemoteInboxReport {
    pub(crate) address: String,
    pub(crate) messages: Vec<RemoteMessageReport>,
    /// The command that fetches the messages.
    pub(crate) fetch: String,
}

/// A message that waits at a relay, without its text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemoteMessageReport {
    id: String,
    thread: String,
    from: String,
    to: String,
    intent: Option<String>,
    received_at: String,
}

impl RemoteMessageReport {
    pub(crate) fn new(message: &MessageView) -> Self {
        Self {
            id: message.id.clone(),
            thread: message.thread.clone(),
            from: message.from.clone(),
            to: message.to.clone(),
            intent: message.intent.clone(),
            received_at: message.received_at.clone(),
        }
    }
}

/// The output of `crosstalk inbox --relay --json`, the oldest message first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RelayInboxReport {
    pub(crate) messages: Vec<FetchedMessage>,
}

/// A message at a relay.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("required" = [
    "id", "thread", "from", "to", "intent", "state", "received_at", "envelope", "taken",
]))]
pub(crate) struct FetchedMessage {
    #[serde(flatten)]
    pub(crate) message: MessageView,
    /// Whether it is kept here and acknowledged there (--take).
    pub(crate) taken: bool,
}

/// The output of `crosstalk waiting --json`: the messages that you wait for an answer to, those of the thread with the latest
/// message first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WaitingReport {
    pub(crate) messages: Vec<AskedReport>,
    pub(crate) more: bool,
}

/// A message that you wait for an answer to.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AskedReport {
    pub(crate) message: MessageReport,
    /// Those who have not answered yet.
    pub(crate) waits_for: Vec<String>,
    pub(crate) since: String,
    /// How far the message is, if it is not in the hands of the person.
    pub(crate) delivery: Option<ReachReport>,
}

/// How far a message is.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ReachReport {
    #[schemars(extend("enum" = [DeliveryState::ALL.map(DeliveryState::as_str).as_slice(), &Reach::WORDS].concat()))]
    pub(crate) state: &'static str,
    pub(crate) notes: Vec<String>,
}

/// The output of `crosstalk move --json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MoveReport {
    pub(crate) moved: bool,
    /// The thread that the message was in.
    pub(crate) from: String,
    pub(crate) message: Option<MessageReport>,
    /// How many messages went with it because they answer it.
    pub(crate) along: usize,
    /// The message that it answers and that waits no more.
    pub(crate) settles: Option<String>,
    /// The message that waits again.
    pub(crate) reopens: Option<String>,
}

/// The output of `crosstalk import --json`: how many files were read, and how many of their messages are kept.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ImportReport {
    pub(crate) files: usize,
    pub(crate) filed: usize,
    pub(crate) known: usize,
    pub(crate) conflicts: Vec<ImportConflict>,
    pub(crate) refused: Vec<ImportRejection>,
}

/// A message that is not kept because another one has its id.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportConflict {
    pub(crate) file: String,
    pub(crate) id: String,
}

/// A file or a message that is not kept.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportRejection {
    pub(crate) file: String,
    pub(crate) reason: String,
}

/// The output of `crosstalk paste --json`. `errors` are about text that could not be read.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PasteReport {
    pub(crate) messages: Vec<PastedReport>,
    #[schemars(schema_with = "crosstalk_binding::form::findings")]
    pub(crate) errors: Vec<Value>,
}

/// A message that was pasted, and what became of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PastedReport {
    /// `moved` says that the message was here and answers another one now.
    #[schemars(extend("enum" = ["filed", "known", "moved", "conflict", "refused"]))]
    pub(crate) outcome: &'static str,
    pub(crate) id: String,
    pub(crate) message: Option<MessageReport>,
    pub(crate) settles: Option<String>,
    /// The messages that an answer with unknown ids may mean, if several wait for its sender.
    pub(crate) candidates: Vec<String>,
    pub(crate) learned: Option<String>,
    #[schemars(schema_with = "crosstalk_binding::form::findings")]
    pub(crate) repairs: Vec<Value>,
    /// The verdict, of the form crosstalk.verify/1.
    #[schemars(schema_with = "verdict")]
    pub(crate) verdict: Value,
    /// Why a message is not kept whose consent is not enough.
    pub(crate) refusal: Option<RefusalReport>,
}

fn verdict(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "required": ["schema", "verdict", "sentence", "next"]})
}

/// Why a consent is not enough.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RefusalReport {
    code: &'static str,
    rule: Option<&'static str>,
    reason: String,
}

impl RefusalReport {
    pub(crate) fn new(refusal: &Rejection) -> Self {
        Self {
            code: refusal.code.as_str(),
            rule: refusal.rule.map(|(id, _)| id),
            reason: refusal.detail(),
        }
    }
}

/// The output of `send`, `reply`, `forward`, `escalate`, `handoff` and `close` with --json.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SentReport {
    #[schemars(extend("const" = crate::schema::SENT))]
    pub(crate) schema: &'static str,
    pub(crate) message: MessageReport,
    /// The text for the chat and the clipboard: the envelope, in a fence if that was asked for, or with the primer in
    /// front if `primer` is true.
    pub(crate) text: String,
    pub(crate) primer: bool,
    /// How it came on the clipboard.
    #[schemars(extend("enum" = ["system", "terminal", null]))]
    pub(crate) copied: Option<&'static str>,
    /// The result at a relay, if it went to one.
    pub(crate) relay: Option<HandedReport>,
    /// The messages that it erased here, if it is a REVOKE.
    pub(crate) withdrawn: Option<RevokedReport>,
}

/// The output of `send`, `forward` and `close` with --json for several receivers: a crosstalk.sent/1 for each message that is
/// kept, in the order of the receivers. The first message that no relay takes is the one on the clipboard.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SentManyReport {
    pub(crate) thread: String,
    pub(crate) messages: Vec<SentReport>,
    /// The receivers whose message is not kept.
    pub(crate) failed: Vec<UnsentReport>,
}

/// A receiver whose message is not kept.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UnsentReport {
    pub(crate) to: String,
    #[serde(flatten)]
    pub(crate) failure: FailureReport,
}

/// A failure: its exit code, and what a person reads.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FailureReport {
    pub(crate) exit: u64,
    pub(crate) message: String,
}

impl FailureReport {
    pub(crate) fn new(failure: &Failure) -> Self {
        Self {
            exit: failure.exit().code().into(),
            message: failure.to_string(),
        }
    }
}

/// The result of handing a message to a relay.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HandedReport {
    pub(crate) url: String,
    /// Whether the relay has the message; null where the connection ended before the relay said so.
    pub(crate) taken: Option<bool>,
    pub(crate) held: bool,
    pub(crate) answer: Option<String>,
    /// The answer as `crosstalk parse --json` prints it.
    #[schemars(with = "Option<Value>", extend("type" = ["object", "null"]))]
    pub(crate) parsed_answer: Option<MessageJson>,
    pub(crate) error: Option<FailureReport>,
}

/// The consents that a REVOKE revoked, and the messages that it erased.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RevokedReport {
    consents: Vec<String>,
    erased: Vec<ErasedReport>,
}

/// A message that was erased.
#[derive(Serialize, JsonSchema)]
struct ErasedReport {
    id: String,
    #[schemars(extend("pattern" = DIGEST))]
    digest: String,
}

impl RevokedReport {
    /// Nothing if no consent was revoked.
    pub(crate) fn new(revoked: &RevocationResult) -> Option<Self> {
        let erased = revoked.erased.iter().map(|e| ErasedReport {
            id: e.id.clone(),
            digest: e.digest.to_string(),
        });
        (!revoked.consents.is_empty()).then(|| Self {
            consents: revoked.consents.clone(),
            erased: erased.collect(),
        })
    }
}

/// The output of `crosstalk consent list --json`, the latest first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ConsentsReport {
    pub(crate) consents: Vec<ConsentView>,
}

/// The output of `crosstalk consent check --json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ConsentCheckReport {
    pub(crate) envelopes: Vec<CheckedConsentReport>,
}

/// Whether the consent of an envelope is enough.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckedConsentReport {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) enough: bool,
    /// The scopes that need an explicit consent.
    pub(crate) needs: Vec<String>,
    pub(crate) consent: Option<String>,
    pub(crate) scopes: Vec<String>,
    #[schemars(extend("enum" = Assurance::ALL.map(Assurance::as_str)))]
    pub(crate) assurance: &'static str,
    /// Until when it would be kept.
    pub(crate) expires: Option<String>,
    /// The consents that it would be kept under.
    pub(crate) under: Vec<String>,
    pub(crate) refusal: Option<RefusalReport>,
}

/// The words of some values, and null.
fn or_null<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) -> Vec<Option<&'static str>> {
    let words = all.iter().map(|one| Some(word(*one)));
    words.chain([None]).collect()
}
