//! Messages that wait for a person's decision (CON-063 to CON-067).

use crate::client::{Client, ClientError, RequestTarget};
use crate::endpoint::endpoints;
use crate::inbox::LIMIT;
use crate::message::ID;
use crate::schema;
use crate::{BodyForm, RequestBody, SuccessResponse};
use crosstalk_envelope::meta::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// List messages that are held for a decision
    ///
    /// CON-063. For people: what they may decide about; the relay operator sees all of it.
    APPROVALS: Approvals = Get "/crosstalk/approvals" for Person in Approvals {
        parameters: &[&LIMIT],
        response: SuccessResponse::ok("The oldest first.", &[BodyForm::json::<Approvals>()]),
    }

    /// A message that waits, or what was decided about it
    ///
    /// CON-063.
    APPROVAL: Approval = Get "/crosstalk/approvals/{}" for Person in Approvals {
        parameters: &[&ID],
        response: SuccessResponse::ok(
            "The message exactly as it came while it waits, and what was decided after.",
            &[BodyForm::json::<Approval>()],
        ),
    }

    /// Approve or refuse it
    ///
    /// CON-064 to CON-067. For people alone. A decision is made once, about exactly the message that was looked at.
    DECIDE: Decide = Post "/crosstalk/approvals/{}" for Person in Approvals {
        parameters: &[&ID],
        request: Some(RequestBody {
            description: "The decision.",
            content: &[BodyForm::json::<DecisionRequest>()],
        }),
        response: SuccessResponse::ok("What was decided.", &[BodyForm::json::<Approval>()]),
        own_errors: &[409],
    }
}

/// A message that waits for a person, or did.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Approval {
    /// The message.
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
    /// Its intent.
    pub intent: Option<String>,
    /// When it came.
    #[schemars(with = "schema::Time")]
    pub received_at: String,
    /// The result of the verification of its signature.
    #[schemars(with = "schema::Signature")]
    pub signature: String,
    /// The key id that signed it, where the signature holds.
    pub pkid: Option<String>,
    /// The credential that it was handed in with.
    pub handed_in_by: String,
    /// The recipients, if it is approved.
    pub recipients: Vec<RecipientView>,
    /// Why it waits.
    pub why: String,
    /// The addresses of the people who may decide; any person, if there are none.
    #[schemars(with = "Vec<schema::Address>")]
    pub deciders: Vec<String>,
    /// When it can't be approved any more.
    #[schemars(with = "Option<schema::Time>")]
    pub ends_at: Option<String>,
    /// The digest of its canonical form.
    #[schemars(with = "schema::Digest")]
    pub digest: String,
    /// The digest of its text, byte for byte.
    #[schemars(with = "schema::Digest")]
    pub raw: String,
    /// Exactly as it came, while it waits.
    #[schemars(with = "Option<schema::Envelope>")]
    pub envelope: Option<String>,
    /// The decision.
    pub decided: Option<DecisionView>,
}

/// A recipient of a message, and the way there.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Recipient")]
pub struct RecipientView {
    /// The address.
    #[schemars(with = "schema::Address")]
    pub to: String,
    /// How it gets there.
    #[schemars(with = "schema::Way")]
    pub by: String,
}

/// A decision.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Decided")]
pub struct DecisionView {
    /// The decision.
    #[schemars(extend("enum" = ["approved", "refused", "lapsed"]))]
    pub decision: String,
    /// The credential of the decider.
    pub by: String,
    /// When.
    #[schemars(with = "schema::Time")]
    pub at: String,
    /// Why.
    pub reason: Option<String>,
}

/// Messages that wait for a person.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Approvals {
    /// The messages.
    pub approvals: Vec<Approval>,
}

/// A decision about a held message. Both digests are of the message that the person looked at.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Decision")]
pub struct DecisionRequest {
    /// The digest of its canonical form.
    #[schemars(with = "schema::Digest")]
    pub digest: String,
    /// The digest of its text, byte for byte.
    #[schemars(with = "schema::Digest")]
    pub raw: String,
    /// The decision.
    #[schemars(extend("enum" = ["approve", "refuse"]))]
    pub decision: String,
    /// Why, in one line; a refusal needs one.
    pub reason: Option<String>,
}

/// A decision about a held message: the digests are those of the message that the person looked at.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalDecision<'v> {
    /// The digest of its canonical form.
    pub digest: Digest,
    /// The digest of its text, byte for byte.
    pub raw: Digest,
    /// Why it is rejected; without a reason, it is approved.
    pub refused: Option<&'v str>,
}

impl Client {
    /// Lists the held messages that the caller may decide about, the oldest first.
    pub async fn approvals(&self, limit: usize) -> Result<Vec<Approval>, ClientError> {
        let target = RequestTarget::of(&APPROVALS).query(&LIMIT, limit);
        Ok(self.get::<Approvals>(target).await?.approvals)
    }

    /// A message that waits, or what was decided about it.
    pub async fn approval(&self, id: &str) -> Result<Approval, ClientError> {
        self.get(RequestTarget::of(&APPROVAL).segment(id)).await
    }

    /// Approves or rejects a message.
    pub async fn decide(
        &self,
        id: &str,
        verdict: &ApprovalDecision<'_>,
    ) -> Result<Approval, ClientError> {
        let decision = match verdict.refused {
            None => "approve",
            Some(_) => "refuse",
        };
        let decision = DecisionRequest {
            digest: verdict.digest.to_string(),
            raw: verdict.raw.to_string(),
            decision: decision.to_owned(),
            reason: verdict.refused.map(str::to_owned),
        };
        self.put(RequestTarget::of(&DECIDE).segment(id), &decision)
            .await
    }
}
