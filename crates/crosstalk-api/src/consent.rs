//! Consents on record.

use crate::client::{Client, ClientError, RequestTarget};
use crate::endpoint::{endpoints, parameters};
use crate::inbox::LIMIT;
use crate::message::{DeliveryStatus, ID};
use crate::schema::{self, MAX_TEXT_CHARS};
use crate::{BodyForm, ParameterKind, SuccessResponse};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::consent::Grant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

parameters! {
    /// Only those that this address gave.
    BY = query "by", ParameterKind::text::<schema::Address>(MAX_TEXT_CHARS);
    /// Only those that hold now.
    HOLDING = query "holding", ParameterKind::Flag { default: Some(false) };
}

endpoints! {
    /// Consents on record
    ///
    /// The relay operator sees all of them, others those that they gave or got.
    CONSENTS: Consents = Get "/crosstalk/consents" for Known in Consents {
        parameters: &[&BY, &HOLDING, &LIMIT],
        response: SuccessResponse::ok("The latest first.", &[BodyForm::json::<ConsentList>()]),
    }

    /// A consent, and what depends on it
    ///
    /// One of them, with the messages under it.
    CONSENT: Consent = Get "/crosstalk/consents/{}" for Known in Consents {
        parameters: &[&ID],
        response: SuccessResponse::ok(
            "The consent, the messages under it, and who was told that it was revoked.",
            &[BodyForm::json::<ConsentRecord>()],
        ),
    }
}

/// A consent that is on record.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Consent")]
pub struct ConsentView {
    /// Its name.
    pub id: String,
    /// The person or agent that granted it.
    #[schemars(with = "schema::Address")]
    pub granter: String,
    /// With which key.
    pub pkid: Option<String>,
    /// How well that was verified: `unsigned`, `first-contact`, `pinned` or `dns`.
    #[schemars(with = "schema::Assurance")]
    pub assurance: String,
    /// `Consent`, as it was written; nothing if it was revoked before it was seen.
    pub consent: Option<String>,
    /// The scopes that it covers.
    pub scopes: Vec<String>,
    /// To whom it was given.
    #[schemars(with = "Vec<schema::Address>")]
    pub to: Vec<String>,
    /// The laws that it names.
    pub jurisdictions: Vec<String>,
    /// Since when.
    #[schemars(with = "schema::Time")]
    pub since: String,
    /// When it ends.
    #[schemars(with = "Option<schema::Time>")]
    pub expires: Option<String>,
    /// Its standing: `holds`, `expired` or `revoked`.
    #[schemars(extend("enum" = ["holds", "expired", "revoked"]))]
    pub standing: String,
    /// The message that gave it.
    pub message: String,
    /// The digest of that message.
    #[schemars(with = "schema::Digest")]
    pub digest: String,
    /// The consents that it goes back to.
    pub originals: Vec<String>,
    /// The revocation that ended it.
    pub revoked: Option<ConsentEnd>,
}

/// The end of a consent.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct ConsentEnd {
    /// When.
    #[schemars(with = "schema::Time")]
    pub at: String,
    /// The party that revoked it.
    #[schemars(with = "schema::Address")]
    pub by: String,
    /// The REVOKE.
    pub message: String,
    /// Why.
    pub reason: Option<String>,
}

/// A message that is or was kept under a consent.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct UnderConsent {
    /// Its id.
    pub id: String,
    /// Whether its text is still there.
    pub has_text: bool,
}

/// A consent with what depends on it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct ConsentRecord {
    /// The consent.
    #[serde(flatten)]
    pub consent: ConsentView,
    /// The messages under it, the oldest first.
    pub messages: Vec<UnderConsent>,
    /// The parties that were told of the revocation, and the state of each notice.
    pub told: Vec<DeliveryStatus>,
}

/// Consents, the latest first.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Consents")]
pub struct ConsentList {
    /// The consents.
    pub consents: Vec<ConsentView>,
}

impl ConsentView {
    /// The state of a grant at a time.
    pub fn of(grant: &Grant, at: Timestamp) -> Self {
        Self {
            id: grant.id.clone(),
            granter: grant.granter.clone(),
            pkid: grant.pkid.clone(),
            assurance: grant.assurance.as_str().to_owned(),
            consent: grant.text.clone(),
            scopes: grant.scopes.clone(),
            to: grant.to.clone(),
            jurisdictions: grant.jurisdictions.clone(),
            since: grant.since.to_string(),
            expires: grant.expires.map(|t| t.to_string()),
            standing: grant.standing(at).to_owned(),
            message: grant.message.clone(),
            digest: grant.digest.to_string(),
            originals: grant.originals.clone(),
            revoked: grant.revoked.as_ref().map(|r| ConsentEnd {
                at: r.at.to_string(),
                by: r.by.clone(),
                message: r.message.clone(),
                reason: r.reason.clone(),
            }),
        }
    }
}

impl Client {
    /// Consents on record, the latest first: those that were given by somebody, those that hold.
    pub async fn consents(
        &self,
        by: Option<&str>,
        holding: bool,
        limit: usize,
    ) -> Result<Vec<ConsentView>, ClientError> {
        let target = RequestTarget::of(&CONSENTS)
            .query_if(&BY, by)
            .query_if(&HOLDING, holding.then_some(true))
            .query(&LIMIT, limit);
        Ok(self.get::<ConsentList>(target).await?.consents)
    }

    /// A consent, the messages under it, and who was told that it was revoked.
    pub async fn consent(&self, id: &str) -> Result<ConsentRecord, ClientError> {
        self.get(RequestTarget::of(&CONSENT).segment(id)).await
    }
}
