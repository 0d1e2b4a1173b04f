//! Messages that wait for a person, as a client sees them.

use super::{Client, ClientError, Path};
use crosstalk_envelope::meta::Digest;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A message that waits for a person, or did.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Approval {
    /// The message.
    pub id: String,
    /// Its thread.
    pub thread: String,
    /// From whom.
    pub from: String,
    /// To whom it is addressed.
    pub to: String,
    /// Its intent.
    pub intent: Option<String>,
    /// When it came.
    pub received_at: String,
    /// What the relay found out about its signature.
    pub signature: String,
    /// The key id that signed it, where the signature holds.
    pub pkid: Option<String>,
    /// The credential that it was handed in with.
    pub handed_in_by: String,
    /// Who gets it, if it is approved.
    pub recipients: Vec<Goal>,
    /// Why it waits.
    pub why: String,
    /// Who decides, by address; any person, if there are none.
    pub deciders: Vec<String>,
    /// When it can't be approved any more.
    pub ends_at: Option<String>,
    /// The digest of its canonical form.
    pub digest: String,
    /// The digest of its text, byte for byte.
    pub raw: String,
    /// Exactly as it came, while it waits.
    pub envelope: Option<String>,
    /// What was decided.
    pub decided: Option<Made>,
}

/// Who gets a message, and how.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Goal {
    /// The address.
    pub to: String,
    /// How it gets there.
    pub by: String,
}

/// A decision.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Made {
    /// approved, refused or lapsed.
    pub decision: String,
    /// The credential of whoever decided.
    pub by: String,
    /// When.
    pub at: String,
    /// Why.
    pub reason: Option<String>,
}

#[derive(Deserialize)]
struct Approvals {
    approvals: Vec<Approval>,
}

/// What becomes of a message: the digests are those of the message that was looked at.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'v> {
    /// The digest of its canonical form.
    pub digest: Digest,
    /// The digest of its text, byte for byte.
    pub raw: Digest,
    /// Why it is refused; it is approved without a reason for that.
    pub refused: Option<&'v str>,
}

impl Client {
    /// What waits for whoever asks to decide, the oldest first.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn approvals(&self, limit: usize) -> Result<Vec<Approval>, ClientError> {
        let path = Path::new("crosstalk/approvals").query("limit", &limit.to_string());
        Ok(self.get::<Approvals>(path).await?.approvals)
    }

    /// A message that waits, or what was decided about it.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn approval(&self, id: &str) -> Result<Approval, ClientError> {
        self.get(Path::new("crosstalk/approvals").part(id)).await
    }

    /// Approves or refuses a message.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn decide(&self, id: &str, verdict: &Verdict<'_>) -> Result<Approval, ClientError> {
        let decision = match verdict.refused {
            None => "approve",
            Some(_) => "refuse",
        };
        let body = json!({
            "digest": verdict.digest.to_string(),
            "raw": verdict.raw.to_string(),
            "decision": decision,
            "reason": verdict.refused,
        });
        let path = Path::new("crosstalk/approvals").part(id);
        self.put(Method::POST, &path.text, &body).await
    }
}
