//! Threads: a list of them, and one as a tree, as a file, or for people.

use crate::client::{Client, ClientError, RequestTarget, unreadable};
use crate::endpoint::{endpoints, parameters};
use crate::inbox::{AFTER, LIMIT};
use crate::message::{ID, MessageView};
use crate::schema::{self, MAX_TEXT_CHARS};
use crate::{BodyForm, Media, ParameterKind, SuccessResponse};
use crosstalk_envelope::limit;
use http::header::ACCEPT;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest thread: as much as this program reads as one file (ENV-063).
const MAX_THREAD_BYTES: u64 = limit::PASTE_BYTES as u64;

parameters! {
    /// Only those that this address is a party of.
    WITH = query "with", ParameterKind::text::<schema::Address>(MAX_TEXT_CHARS);
    /// Only those that are open, or only those that are not.
    OPEN = query "open", ParameterKind::Flag { default: None };
    /// How many to leave out first. It costs the relay as much as listing them: a client that goes through all of them gives
    /// the cursor of the answer before.
    SKIP = query "skip", ParameterKind::number(0, 1_000_000_000, Some(0));
}

endpoints! {
    /// Conversations
    ///
    /// HTP-041.
    THREADS: Threads = Get "/crosstalk/threads" for Known in Threads {
        parameters: &[&WITH, &OPEN, &AFTER, &LIMIT, &SKIP],
        response: SuccessResponse::ok("The latest first.", &[BodyForm::json::<ThreadList>()]),
    }

    /// A conversation
    ///
    /// HTP-041.
    THREAD: Thread = Get "/crosstalk/threads/{}" for Known in Threads {
        parameters: &[&ID],
        response: SuccessResponse::ok(
            "The conversation.",
            &[
                BodyForm::json::<ThreadTree>(),
                BodyForm::text(Media::Text, "Envelopes with blank lines between them."),
                BodyForm::text(Media::Markdown, "For people."),
            ],
        ),
    }
}

/// A conversation.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Thread")]
pub struct ThreadView {
    /// Its id.
    #[schemars(with = "schema::Id")]
    pub id: String,
    /// The topic.
    pub context: Option<String>,
    /// The parties.
    #[schemars(with = "Vec<schema::Address>")]
    pub parties: Vec<String>,
    /// Whether it is not closed.
    pub open: bool,
    /// How many messages there are.
    pub messages: u64,
    /// When the latest came.
    #[schemars(with = "schema::Time")]
    pub updated_at: String,
}

/// Conversations, the latest first.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Threads")]
pub struct ThreadList {
    /// The conversations.
    #[schemars(length(max = 500))]
    pub threads: Vec<ThreadView>,
    /// Where to go on; missing after the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "schema::Cursor")]
    pub cursor: Option<String>,
}

/// A message of a thread, and its answers.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Node")]
pub struct ThreadNode {
    /// The message.
    #[serde(flatten)]
    pub message: MessageView,
    /// The messages that answer this one.
    #[serde(default)]
    pub answers: Vec<Self>,
}

/// A conversation as a tree.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct ThreadTree {
    /// The conversation.
    pub thread: ThreadView,
    /// Its messages, each under the one that it answers.
    pub messages: Vec<ThreadNode>,
    /// Whether there are more messages than fit into one answer.
    #[serde(default)]
    pub more: bool,
}

impl Client {
    /// Conversations after a cursor, the latest first; only those with a party, only open ones.
    pub async fn threads(
        &self,
        with: Option<&str>,
        open: bool,
        limit: usize,
        after: Option<&str>,
    ) -> Result<ThreadList, ClientError> {
        let target = RequestTarget::of(&THREADS)
            .query_if(&WITH, with)
            .query_if(&OPEN, open.then_some(true))
            .query_if(&AFTER, after)
            .query(&LIMIT, limit);
        self.get(target).await
    }

    /// A conversation as a tree.
    pub async fn thread(&self, id: &str) -> Result<ThreadTree, ClientError> {
        let mut call = self.call(RequestTarget::of(&THREAD).segment(id))?;
        call.most = MAX_THREAD_BYTES;
        self.json(call).await
    }

    /// A conversation as a file of envelopes.
    pub async fn export(&self, id: &str) -> Result<String, ClientError> {
        let mut call = self.call(RequestTarget::of(&THREAD).segment(id))?;
        call.most = MAX_THREAD_BYTES;
        let answer = self.run(call.header(ACCEPT, Media::Text.name())?).await?;
        let text = answer.text().map(str::to_owned);
        text.ok_or_else(|| unreadable(&answer, "it is not UTF-8"))
    }
}
