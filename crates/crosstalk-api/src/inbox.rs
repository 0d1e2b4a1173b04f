//! The inbox of an address: reading it, and saying how far its messages are.

use crate::client::{Client, ClientError, InboxStream, RequestTarget};
use crate::endpoint::{endpoints, parameters};
use crate::message::MessageView;
use crate::schema::{self, MAX_ID_CHARS, MAX_TEXT_CHARS, require};
use crate::{BodyForm, Media, ParameterKind, RequestBody, SuccessResponse};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// How many messages one request acknowledges at most.
pub const MAX_ACK_IDS: usize = 500;

parameters! {
    /// The address of the inbox.
    FOR = required "for", ParameterKind::text::<schema::Address>(MAX_TEXT_CHARS);
    /// Only what comes after this cursor.
    AFTER = query "after", ParameterKind::text::<schema::Cursor>(MAX_ID_CHARS);
    /// How many at most.
    LIMIT = query "limit", ParameterKind::number(1, 500, Some(100));
    /// For how many seconds to wait until there is something.
    WAIT = query "wait", ParameterKind::number(0, 60, Some(0));
    /// Of a stream: the id of the last event that came; counts as `after`.
    LAST_EVENT_ID = header "Last-Event-ID", ParameterKind::text::<schema::LastEventId>(MAX_ID_CHARS);
}

endpoints! {
    /// Read the inbox of an address
    ///
    /// HTP-031 to HTP-035. Looking never consumes.
    INBOX: Inbox = Get "/crosstalk/inbox" for Known in Inbox {
        parameters: &[&FOR, &AFTER, &LIMIT, &WAIT, &LAST_EVENT_ID],
        response: SuccessResponse {
            headers: &["Crosstalk-Cursor"],
            ..SuccessResponse::ok(
                "What is not acknowledged, the oldest first.",
                &[
                    BodyForm::text(Media::Text, "Envelopes with blank lines between them."),
                    BodyForm::json::<InboxPage>(),
                    BodyForm::text(
                        Media::Events,
                        "Events `message`: the data is an entry, the id the cursor after it.",
                    ),
                ],
            )
        },
    }

    /// Say what was read or is done
    ///
    /// HTP-036.
    ACK: Ack = Post "/crosstalk/ack" for Known in Inbox {
        request: Some(RequestBody {
            description: "Which messages.",
            content: &[BodyForm::json::<Ack>()],
        }),
        response: SuccessResponse::ok("What changed.", &[BodyForm::json::<Acked>()]),
    }
}

/// The messages that an address has not acknowledged, the oldest first.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Inbox")]
pub struct InboxPage {
    /// The messages.
    #[schemars(with = "Vec<InboxEntrySchema>", length(max = 500))]
    pub messages: Vec<MessageView>,
    /// Where to go on.
    #[schemars(with = "schema::Cursor")]
    pub cursor: String,
}

/// A message in an inbox: its state and the number of the attempt are always there.
#[derive(Debug)]
pub enum InboxEntrySchema {}

impl JsonSchema for InboxEntrySchema {
    fn schema_name() -> Cow<'static, str> {
        "Entry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let message = MessageView::json_schema(generator);
        let message = require(message, "attempt", "A message in an inbox.");
        require(message, "state", "A message in an inbox.")
    }
}

/// Messages of an inbox and their new state.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Ack {
    /// The address of the inbox.
    #[schemars(with = "schema::Address")]
    pub r#for: String,
    /// The messages.
    #[schemars(with = "Vec<schema::Id>", length(min = 1, max = MAX_ACK_IDS))]
    pub ids: Vec<String>,
    /// Their new state. With `retrying` and `failed`, the program of the recipient failed on them, and is tried
    /// again or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        extend("enum" = ["read", "acknowledged", "retrying", "failed"], "default" = "acknowledged")
    )]
    pub state: Option<String>,
}

/// The result of an acknowledgement.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Acked {
    /// Ids whose deliveries are in the state now.
    #[schemars(with = "Vec<schema::Id>")]
    pub changed: Vec<String>,
    /// Ids of which no delivery to this address is known.
    #[schemars(with = "Vec<schema::Id>")]
    pub unknown: Vec<String>,
}

impl Client {
    /// Reads the messages that an address has not acknowledged, after a cursor. If there is none, the relay waits.
    pub async fn inbox(
        &self,
        address: &str,
        after: Option<&str>,
        limit: usize,
        wait: Duration,
    ) -> Result<InboxPage, ClientError> {
        let target = RequestTarget::of(&INBOX)
            .query(&FOR, address)
            .query_if(&AFTER, after)
            .query(&LIMIT, limit)
            .query(&WAIT, wait.as_secs());
        let mut call = self.call(target)?;
        call.within += wait;
        self.json(call).await
    }

    /// The messages of an address as they come.
    pub async fn stream(
        &self,
        address: &str,
        after: Option<&str>,
    ) -> Result<InboxStream, ClientError> {
        let target = RequestTarget::of(&INBOX)
            .query(&FOR, address)
            .query_if(&AFTER, after);
        InboxStream::open(self, target, after).await
    }

    /// Acknowledges messages of an address: they are done.
    pub async fn acknowledge(&self, address: &str, ids: &[&str]) -> Result<Acked, ClientError> {
        self.mark(address, ids, "acknowledged").await
    }

    /// Says how far messages of an address are: `read` or `acknowledged`; or that the program that answers them failed, and is
    /// tried again (`retrying`) or not (`failed`).
    pub async fn mark(
        &self,
        address: &str,
        ids: &[&str],
        state: &str,
    ) -> Result<Acked, ClientError> {
        let ack = Ack {
            r#for: address.to_owned(),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            state: Some(state.to_owned()),
        };
        self.put(RequestTarget::of(&ACK), &ack).await
    }
}
