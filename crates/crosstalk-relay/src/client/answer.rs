//! What a relay answers to its clients.

use serde::{Deserialize, Serialize};

/// A message in an inbox, in the courier's queue, or in a listing.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// The conversation.
    pub thread: String,
    /// From whom.
    pub from: String,
    /// To whom.
    pub to: String,
    /// What it wants.
    pub intent: Option<String>,
    /// How far it is on its way; not in every listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// When it came to the relay.
    pub received_at: String,
    /// The envelope.
    pub envelope: String,
    /// Of an ESCALATE and a HANDOFF: the thread so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<String>,
    /// How many texts are left out of it, because their consent is not for who gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<u64>,
}

/// Some messages of an inbox, and where to go on.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Inbox {
    /// The messages, the oldest first.
    pub messages: Vec<Message>,
    /// Where to go on.
    pub cursor: String,
}

/// Some messages.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Messages {
    /// The messages.
    pub messages: Vec<Message>,
}

/// How far the deliveries of a message are.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Status {
    /// The message.
    pub id: String,
    /// The conversation.
    pub thread: String,
    /// From whom.
    pub sender: String,
    /// One for each recipient.
    pub deliveries: Vec<DeliveryStatus>,
}

/// How far a message is on its way to one recipient.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct DeliveryStatus {
    /// To whom.
    pub to: String,
    /// How.
    pub by: String,
    /// How far.
    pub state: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Since when it waits.
    pub queued_at: String,
    /// When it was handed out.
    pub delivered_at: Option<String>,
    /// When it was read.
    pub read_at: Option<String>,
    /// When it was acknowledged.
    pub acknowledged_at: Option<String>,
    /// When it was given up.
    pub failed_at: Option<String>,
    /// Why the last attempt failed.
    pub reason: Option<String>,
    /// When it is tried next.
    pub next_at: Option<String>,
    /// Whether it waits in an inbox that nobody has ever read.
    #[serde(default)]
    pub never_read: bool,
    /// The address that may have been meant, if nobody has.
    #[serde(default)]
    pub did_you_mean: Option<String>,
}

/// What an acknowledgement changed.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Acked {
    /// Ids whose deliveries are in the state now.
    pub changed: Vec<String>,
    /// Ids that are not on their way to this address.
    pub unknown: Vec<String>,
}

/// A conversation.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Thread {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub context: Option<String>,
    /// Who takes part.
    pub parties: Vec<String>,
    /// Whether it is not closed.
    pub open: bool,
    /// How many messages there are.
    pub messages: u64,
    /// When the latest came.
    pub updated_at: String,
}

/// A message of a conversation, and its answers.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Node {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// The messages that answer it.
    #[serde(default)]
    pub answers: Vec<Self>,
}

/// A conversation with its messages.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct ThreadTree {
    /// The conversation.
    pub thread: Thread,
    /// Its messages, as trees.
    pub messages: Vec<Node>,
}

/// Where a name leads.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Resolved {
    /// The name.
    pub name: String,
    /// Where it leads.
    pub address: Option<String>,
    /// What decided: names, dns, directory, nobody.
    pub by: String,
    /// How it was found out.
    #[serde(default)]
    pub steps: Vec<serde_json::Value>,
}

/// An agent and what it can do.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct AgentInfo {
    /// Its address.
    pub address: String,
    /// What it can do.
    pub capabilities: Vec<String>,
}

/// A delivery that was given up.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Letter {
    /// The message.
    pub id: String,
    /// From whom.
    pub from: String,
    /// To whom.
    pub to: String,
    /// How.
    pub by: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it was given up.
    pub reason: Option<String>,
    /// When.
    pub failed_at: Option<String>,
}

/// A token that is wanted.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct NewToken {
    /// Its name.
    pub name: String,
    /// What it is for: agent, person, admin.
    pub role: String,
    /// For which addresses.
    pub addresses: Vec<String>,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A token.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: String,
    /// For which addresses.
    pub addresses: Vec<String>,
    /// When it was made.
    pub created_at: String,
    /// When it ends.
    pub expires_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
    /// When it was last used, to the minute; a relay of an older version does not say it.
    #[serde(default)]
    pub last_used_at: Option<String>,
    /// The secret, right after it was made and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// An attachment that a relay has.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Blob {
    /// Its digest.
    pub digest: String,
    /// How many bytes it has.
    pub size: u64,
}

#[derive(Deserialize)]
pub(super) struct Threads {
    pub(super) threads: Vec<Thread>,
}

#[derive(Deserialize)]
pub(super) struct Agents {
    pub(super) agents: Vec<AgentInfo>,
}

#[derive(Deserialize)]
pub(super) struct Letters {
    pub(super) letters: Vec<Letter>,
}

#[derive(Deserialize)]
pub(super) struct Requeued {
    pub(super) requeued: u64,
}

#[derive(Deserialize)]
pub(super) struct Tokens {
    pub(super) tokens: Vec<Token>,
}
