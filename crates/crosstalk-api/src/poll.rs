//! Polls at a relay.

use crate::client::{Client, ClientError, RequestTarget};
use crate::endpoint::endpoints;
use crate::inbox::LIMIT;
use crate::message::ID;
use crate::schema;
use crate::{BodyForm, Media, SuccessResponse};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

endpoints! {
    /// Polls
    ///
    /// spec/polls.md.
    POLLS: Polls = Get "/crosstalk/polls" for Known in Polls {
        parameters: &[&LIMIT],
        response: SuccessResponse::ok(
            "Polls in which the caller takes part, the latest first.",
            &[BodyForm::json::<PollList>()],
        ),
    }

    /// How a poll stands
    ///
    /// spec/polls.md.
    POLL: Poll = Get "/crosstalk/polls/{}" for Known in Polls {
        parameters: &[&ID],
        response: SuccessResponse::ok(
            "What is counted so far, or was when it was closed.",
            &[
                BodyForm::json::<PollView>(),
                BodyForm::text(
                    Media::Events,
                    "Events `tally`: the data is the poll. The stream ends when the poll is closed.",
                ),
            ],
        ),
    }

    /// Close a poll
    ///
    /// spec/polls.md.
    CLOSE_POLL: ClosePoll = Post "/crosstalk/polls/{}/close" for Known in Polls {
        parameters: &[&ID],
        response: SuccessResponse::ok("The result.", &[BodyForm::json::<PollView>()]),
    }
}

/// A poll in a list.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct PollSummary {
    /// The message that asks.
    #[schemars(with = "schema::Id")]
    pub message: String,
    /// The thread that it belongs to.
    #[schemars(with = "schema::Id")]
    pub thread: String,
    /// The party that asks.
    #[schemars(with = "schema::Address")]
    pub from: String,
    /// The topic.
    pub context: Option<String>,
    /// Whether ballots still count.
    #[schemars(extend("enum" = ["open", "closed"]))]
    pub state: String,
    /// When it closes by itself.
    #[schemars(with = "Option<schema::Time>")]
    pub ends_at: Option<String>,
    /// When it was closed.
    #[schemars(with = "Option<schema::Time>")]
    pub closed_at: Option<String>,
    /// How many are asked.
    pub invited: u64,
    /// How many ballots are needed.
    pub quorum: QuorumView,
    /// The outcome.
    pub outcome: Option<String>,
}

/// Polls, the latest first.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Polls")]
pub struct PollList {
    /// The polls.
    pub polls: Vec<PollSummary>,
}

/// How many ballots a poll needs, and how many it has.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Quorum")]
pub struct QuorumView {
    /// How many are needed; null if nobody can read what the poll says.
    pub required: Option<u64>,
    /// How many count, abstentions among them.
    pub counted: u64,
    /// Whether these are enough.
    pub reached: bool,
}

/// A collation, `crosstalk.poll/1` (spec/polls.md), and the state of the poll.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[schemars(rename = "Poll")]
pub struct PollView {
    /// The collation.
    #[serde(flatten)]
    #[schemars(with = "CollationSchema")]
    pub collation: serde_json::Map<String, Value>,
    /// Whether ballots still count.
    #[schemars(extend("enum" = ["open", "closed"]))]
    pub state: String,
    /// The thread that it belongs to.
    #[schemars(with = "schema::Id")]
    pub thread: String,
    /// When it closes by itself.
    #[schemars(with = "Option<schema::Time>")]
    pub ends_at: Option<String>,
    /// When it was closed.
    #[schemars(with = "Option<schema::Time>")]
    pub closed_at: Option<String>,
    /// Whether texts were erased since the poll was closed: outcome and reason are those of the result that was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub past: bool,
}

/// The schema of a collation, which `crosstalk_protocol::poll` serializes.
enum CollationSchema {}

impl JsonSchema for CollationSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Collation".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let address = generator.subschema_for::<schema::Address>();
        let time = generator.subschema_for::<Option<schema::Time>>();
        let quorum = generator.subschema_for::<QuorumView>();
        let choice =
            json!({ "type": ["string", "null"], "description": "Null for an abstention." });
        json_schema!({
            "type": "object",
            "required": ["schema", "outcome", "tally", "reason", "quorum", "counted", "not_counted", "missing"],
            "properties": {
                "schema": { "const": "crosstalk.poll/1" },
                "poll": { "type": "object", "description": "The question of the poll." },
                "at": time,
                "veiled": { "type": "boolean", "description": "Whether choices are not shown before the poll is closed." },
                "outcome": { "type": ["string", "null"], "description": "What came out." },
                "reason": { "type": ["string", "null"], "description": "Why nothing did." },
                "tally": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } },
                "pairwise": {
                    "type": "object",
                    "description": "Of a ranked poll: how many ballots prefer an option to another.",
                    "additionalProperties": {
                        "type": "object",
                        "additionalProperties": { "type": "integer", "minimum": 0 },
                    },
                },
                "quorum": quorum,
                "counted": { "type": "array", "items": {
                    "type": "object",
                    "required": ["from", "choice"],
                    "properties": { "from": address, "choice": choice },
                } },
                "not_counted": { "type": "array", "items": {
                    "type": "object",
                    "required": ["from", "why"],
                    "properties": {
                        "from": address,
                        "why": { "type": "string", "description": "One word of POL-023." },
                        "detail": { "type": "string", "description": "Part of a sentence." },
                    },
                } },
                "missing": { "type": "array", "items": address },
                "agreement": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "choice": choice, "voters": { "type": "array", "items": address } },
                } },
            },
        })
    }
}

impl Client {
    /// Polls in which the caller takes part, the latest first.
    pub async fn polls(&self, limit: usize) -> Result<Vec<PollSummary>, ClientError> {
        let target = RequestTarget::of(&POLLS).query(&LIMIT, limit);
        Ok(self.get::<PollList>(target).await?.polls)
    }

    /// How a poll stands: a collation of the form `crosstalk.poll/1`, with its state.
    pub async fn poll(&self, id: &str) -> Result<Value, ClientError> {
        self.get(RequestTarget::of(&POLL).segment(id)).await
    }

    /// Closes a poll now. Its result.
    pub async fn close_poll(&self, id: &str) -> Result<Value, ClientError> {
        self.put(RequestTarget::of(&CLOSE_POLL).segment(id), &json!({}))
            .await
    }
}
