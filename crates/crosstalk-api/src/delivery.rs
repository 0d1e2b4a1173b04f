//! Messages that a person carries, and dead letters.

use crate::client::{Client, ClientError, RequestTarget};
use crate::endpoint::endpoints;
use crate::inbox::{InboxPage, LIMIT};
use crate::message::{ID, MessageStatus, MessageView, Messages};
use crate::schema;
use crate::{BodyForm, RequestBody, SuccessResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

endpoints! {
    /// List messages that wait for a courier
    ///
    /// HTP-045: own messages, those of others where the operator assigned them; all for an administrator. Nothing that is for
    /// an address of a token.
    COURIER: Courier = Get "/crosstalk/courier" for Person in Delivery {
        parameters: &[&LIMIT],
        response: SuccessResponse::ok("The most urgent first.", &[BodyForm::json::<InboxPage>()]),
    }

    /// Say what became of it
    ///
    /// HTP-045. The reason is never told in the name of the receiver.
    CARRY: Carry = Post "/crosstalk/courier/{}" for Person in Delivery {
        parameters: &[&ID],
        request: Some(RequestBody {
            description: "What became of it.",
            content: &[BodyForm::json::<CarriedReport>()],
        }),
        response: SuccessResponse::ok("How far this delivery is now.", &[BodyForm::json::<MessageStatus>()]),
    }

    /// Dead letters
    ///
    /// HTP-047.
    DEAD: Dead = Get "/crosstalk/dead" for Admin in Delivery {
        parameters: &[&LIMIT],
        response: SuccessResponse::ok("The latest first.", &[BodyForm::json::<DeadLetters>()]),
    }

    /// Try a dead letter again
    ///
    /// HTP-047.
    REQUEUE: Requeue = Post "/crosstalk/dead/{}/requeue" for Admin in Delivery {
        parameters: &[&ID],
        response: SuccessResponse::ok(
            "How many deliveries were queued again.",
            &[BodyForm::json::<Requeued>()],
        ),
    }

    /// Messages that were accepted and could not be indexed
    ///
    /// HTP-047. They are on their way to nobody.
    QUARANTINE: Quarantine = Get "/crosstalk/quarantine" for Admin in Delivery {
        parameters: &[&LIMIT],
        response: SuccessResponse::ok(
            "In the order in which they came.",
            &[BodyForm::json::<QuarantineList>()],
        ),
    }

    /// Index them again
    ///
    /// HTP-047. Those that can be indexed now go on to their recipients.
    RETRY_QUARANTINE: RetryQuarantine = Post "/crosstalk/quarantine/retry" for Admin in Delivery {
        response: SuccessResponse::ok("What came of it.", &[BodyForm::json::<Retried>()]),
    }
}

/// A message that was accepted and could not be indexed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Quarantined")]
pub struct QuarantinedView {
    /// The message.
    #[schemars(with = "schema::Id")]
    pub id: String,
    /// Its position in the accepted sequence.
    pub seq: u64,
    /// Why it could not be indexed.
    pub reason: String,
}

/// Messages that could not be indexed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Quarantine")]
pub struct QuarantineList {
    /// The messages.
    #[schemars(length(max = 500))]
    pub messages: Vec<QuarantinedView>,
}

/// The result of indexing again.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Retried {
    /// How many messages are indexed now.
    pub indexed: u64,
    /// How many still can't be indexed.
    pub left: u64,
}

/// The result of carrying a message.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Carried")]
pub struct CarriedReport {
    /// The recipient.
    #[schemars(with = "schema::Address")]
    pub to: String,
    /// The new state.
    #[schemars(extend("enum" = ["carried", "failed"]))]
    pub state: String,
    /// Why it failed, in the words of the courier: on record as such, and never told in the name of the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 2000))]
    pub reason: Option<String>,
}

/// A dead letter.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "DeadLetter")]
pub struct DeadLetterView {
    /// The message.
    #[schemars(with = "schema::Id")]
    pub id: String,
    /// Its sender.
    #[schemars(with = "schema::Address")]
    pub from: String,
    /// The recipient.
    #[schemars(with = "schema::Address")]
    pub to: String,
    /// How it should have got there.
    #[schemars(with = "schema::Way")]
    pub by: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it is not tried any more.
    pub reason: Option<String>,
    /// When.
    #[schemars(with = "Option<schema::Time>")]
    pub failed_at: Option<String>,
}

/// Dead letters, the latest first.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct DeadLetters {
    /// The deliveries.
    #[schemars(length(max = 500))]
    pub letters: Vec<DeadLetterView>,
}

/// How many deliveries were queued again.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Requeued {
    /// The number.
    pub requeued: u64,
}

impl Client {
    /// Lists the messages that wait for a courier.
    pub async fn courier(&self, limit: usize) -> Result<Vec<MessageView>, ClientError> {
        let target = RequestTarget::of(&COURIER).query(&LIMIT, limit);
        Ok(self.get::<Messages>(target).await?.messages)
    }

    /// Says that a person carried a message, or why not.
    pub async fn carried(
        &self,
        id: &str,
        to: &str,
        failed: Option<&str>,
    ) -> Result<MessageStatus, ClientError> {
        let state = if failed.is_none() {
            "carried"
        } else {
            "failed"
        };
        let carried = CarriedReport {
            to: to.to_owned(),
            state: state.to_owned(),
            reason: failed.map(str::to_owned),
        };
        self.put(RequestTarget::of(&CARRY).segment(id), &carried)
            .await
    }

    /// Dead letters, the latest first.
    pub async fn dead(&self, limit: usize) -> Result<Vec<DeadLetterView>, ClientError> {
        let target = RequestTarget::of(&DEAD).query(&LIMIT, limit);
        Ok(self.get::<DeadLetters>(target).await?.letters)
    }

    /// Messages that were accepted and could not be indexed.
    pub async fn quarantine(&self, limit: usize) -> Result<Vec<QuarantinedView>, ClientError> {
        let target = RequestTarget::of(&QUARANTINE).query(&LIMIT, limit);
        Ok(self.get::<QuarantineList>(target).await?.messages)
    }

    /// Indexes messages again that could not be indexed.
    pub async fn retry_quarantine(&self) -> Result<Retried, ClientError> {
        self.put(RequestTarget::of(&RETRY_QUARANTINE), &json!({}))
            .await
    }

    /// Has the deliveries of a message tried again. How many.
    pub async fn requeue(&self, id: &str) -> Result<u64, ClientError> {
        let target = RequestTarget::of(&REQUEUE).segment(id);
        let done: Requeued = self.put(target, &json!({})).await?;
        Ok(done.requeued)
    }
}
