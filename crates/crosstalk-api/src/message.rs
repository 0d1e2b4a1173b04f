//! A message by its id, how far its deliveries are, and messages by their words.

use crate::client::{Client, ClientError, RequestTarget};
use crate::endpoint::{endpoints, parameters};
use crate::inbox::LIMIT;
use crate::schema::{self, MAX_ID_CHARS, MAX_TEXT_CHARS};
use crate::{BodyForm, Media, ParameterKind, SuccessResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

parameters! {
    /// The id of a message or a thread.
    ID = segment "id", ParameterKind::text::<schema::Id>(MAX_ID_CHARS);
    /// Words that all have to be there.
    WORDS = required "q", ParameterKind::text::<schema::Text>(MAX_TEXT_CHARS);
}

endpoints! {
    /// A message
    ///
    /// HTP-040.
    MESSAGE: Message = Get "/crosstalk/messages/{}" for Known in Messages {
        parameters: &[&ID],
        response: SuccessResponse::ok(
            "The message.",
            &[BodyForm::of::<schema::Envelope>(Media::Text), BodyForm::json::<MessageView>()],
        ),
    }

    /// How far a message is
    ///
    /// HTP-037.
    STATUS: Status = Get "/crosstalk/messages/{}/status" for Known in Messages {
        parameters: &[&ID],
        response: SuccessResponse::ok("Its deliveries.", &[BodyForm::json::<MessageStatus>()]),
    }

    /// Words in messages
    ///
    /// HTP-042.
    SEARCH: Search = Get "/crosstalk/search" for Known in Threads {
        parameters: &[&WORDS, &LIMIT],
        response: SuccessResponse::ok(
            "Messages that have all the words, the latest first.",
            &[BodyForm::json::<Messages>()],
        ),
    }
}

/// A message that the relay has.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Message")]
pub struct MessageView {
    /// Its id.
    #[schemars(with = "schema::Id")]
    pub id: String,
    /// The thread that it belongs to.
    #[schemars(with = "schema::Id")]
    pub thread: String,
    /// Its sender.
    #[schemars(with = "schema::Address")]
    pub from: String,
    /// Its receiver.
    #[schemars(with = "schema::Address")]
    pub to: String,
    /// The meaning of the intent that was written; null if there is none.
    pub intent: Option<String>,
    /// How far it is on its way; not in every listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::State")]
    pub state: Option<String>,
    /// The number of this attempt to process it, from 1: one more than the failures that its recipient reported. Only in an
    /// inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1))]
    pub attempt: Option<u32>,
    /// When the relay accepted it.
    #[schemars(with = "schema::Time")]
    pub received_at: String,
    /// The result of the verification of its signature when the relay accepted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Signature")]
    pub signature: Option<String>,
    /// The key id that signed it, where the signature holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub pkid: Option<String>,
    /// The envelope.
    #[schemars(with = "schema::Envelope")]
    pub envelope: String,
    /// Of an ESCALATE and a HANDOFF: the thread so far, the oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<schema::Envelope>", length(max = 64))]
    pub history: Option<Vec<String>>,
    /// How many texts are left out of the history: their consent was neither given to the recipient nor transferred, or they
    /// must not leave the organisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 1))]
    pub withheld: Option<u64>,
}

/// Some messages, the latest first.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Messages {
    /// The messages.
    #[schemars(length(max = 500))]
    pub messages: Vec<MessageView>,
    /// The place of the last message that was searched: later ones are accepted, and not in the index of words yet.
    #[serde(default)]
    pub indexed_through: u64,
}

/// How far the deliveries of a message are.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Status")]
pub struct MessageStatus {
    /// The message.
    #[schemars(with = "schema::Id")]
    pub id: String,
    /// The thread that it belongs to.
    #[schemars(with = "schema::Id")]
    pub thread: String,
    /// Its sender.
    #[schemars(with = "schema::Address")]
    pub sender: String,
    /// One for each recipient.
    pub deliveries: Vec<DeliveryStatus>,
}

/// How far a message is on its way to one recipient.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Delivery")]
pub struct DeliveryStatus {
    /// The recipient.
    #[schemars(with = "schema::Address")]
    pub to: String,
    /// How it gets there.
    #[schemars(with = "schema::Way")]
    pub by: String,
    /// How far it is.
    #[schemars(with = "schema::State")]
    pub state: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Since when it is queued.
    #[schemars(with = "schema::Time")]
    pub queued_at: String,
    /// When it was handed out first.
    #[schemars(with = "Option<schema::Time>")]
    pub delivered_at: Option<String>,
    /// When it was read.
    #[schemars(with = "Option<schema::Time>")]
    pub read_at: Option<String>,
    /// When it was acknowledged.
    #[schemars(with = "Option<schema::Time>")]
    pub acknowledged_at: Option<String>,
    /// When it became a dead letter.
    #[schemars(with = "Option<schema::Time>")]
    pub failed_at: Option<String>,
    /// Why the last attempt failed.
    pub reason: Option<String>,
    /// When it is tried next.
    #[schemars(with = "Option<schema::Time>")]
    pub next_at: Option<String>,
    /// Since when an attempt runs, if one does.
    #[serde(default)]
    #[schemars(with = "Option<schema::Time>")]
    pub running_since: Option<String>,
    /// Whether it waits in an inbox that nobody has ever read.
    #[serde(default)]
    pub never_read: bool,
    /// The address that may have been meant, if nobody has: one that the caller may know of.
    #[serde(default)]
    pub did_you_mean: Option<String>,
}

impl Client {
    /// How far the deliveries of a message are.
    pub async fn status(&self, id: &str) -> Result<MessageStatus, ClientError> {
        self.get(RequestTarget::of(&STATUS).segment(id)).await
    }

    /// A message, as it leaves the relay.
    pub async fn message(&self, id: &str) -> Result<MessageView, ClientError> {
        self.get(RequestTarget::of(&MESSAGE).segment(id)).await
    }

    /// Messages with these words.
    pub async fn search(&self, words: &str, limit: usize) -> Result<Vec<MessageView>, ClientError> {
        let target = RequestTarget::of(&SEARCH)
            .query(&WORDS, words)
            .query(&LIMIT, limit);
        Ok(self.get::<Messages>(target).await?.messages)
    }
}
