//! Consents on record.

use super::{Client, ClientError, DeliveryStatus, Path};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::consent::Grant;
use serde::{Deserialize, Serialize};

impl Client {
    /// Consents on record, the latest first: those that were given by somebody, those that hold.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn consents(
        &self,
        by: Option<&str>,
        holding: bool,
        limit: usize,
    ) -> Result<Vec<Consent>, ClientError> {
        let path = Path::new("crosstalk/consents")
            .query_if("by", by)
            .query_if("holding", holding.then_some("true"))
            .query("limit", &limit.to_string());
        Ok(self.get::<Consents>(path).await?.consents)
    }

    /// A consent, the messages under it, and who was told that it was withdrawn.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn consent(&self, id: &str) -> Result<ConsentRecord, ClientError> {
        self.get(Path::new("crosstalk/consents").part(id)).await
    }
}

/// A consent that is on record.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Consent {
    /// Its name.
    pub id: String,
    /// Who gave it.
    pub granter: String,
    /// With which key.
    pub pkid: Option<String>,
    /// How well that was verified: `unsigned`, `first-contact`, `pinned` or `dns`.
    pub assurance: String,
    /// `Consent`, as it was written; nothing if it was withdrawn before it was seen.
    pub consent: Option<String>,
    /// What it covers.
    pub scopes: Vec<String>,
    /// To whom it was given.
    pub to: Vec<String>,
    /// The laws that it names.
    pub jurisdictions: Vec<String>,
    /// Since when.
    pub since: String,
    /// When it ends.
    pub expires: Option<String>,
    /// What holds of it now: `holds`, `expired` or `revoked`.
    pub standing: String,
    /// The message that gave it.
    pub message: String,
    /// The digest of that message.
    pub digest: String,
    /// The consents that it goes back to.
    pub originals: Vec<String>,
    /// What ended it.
    pub revoked: Option<ConsentEnd>,
}

/// What ended a consent.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct ConsentEnd {
    /// When.
    pub at: String,
    /// Who withdrew it.
    pub by: String,
    /// The REVOKE.
    pub message: String,
    /// Why.
    pub reason: Option<String>,
}

/// A message that is or was kept under a consent.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct UnderConsent {
    /// Its id.
    pub id: String,
    /// Whether its text is still there.
    pub has_text: bool,
}

/// A consent with what depends on it.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct ConsentRecord {
    /// The consent.
    #[serde(flatten)]
    pub consent: Consent,
    /// The messages under it, the oldest first.
    pub messages: Vec<UnderConsent>,
    /// Who was told that it was withdrawn, and how far that is.
    pub told: Vec<DeliveryStatus>,
}

/// Consents.
#[derive(Clone, Debug, Deserialize)]
struct Consents {
    consents: Vec<Consent>,
}

impl Consent {
    /// A grant, as it stands at a time.
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
