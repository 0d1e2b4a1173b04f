//! Consent. No store and no keys: the case holds what they would say.

use super::{Implementation, Judged, accepted_or_refused};
use crate::case::CaseFile;
use crate::subset::subset;
use serde_json::Value;

/// The state that a message arrives in.
#[derive(Clone, Debug)]
pub struct ConsentSetting<'c> {
    /// Envelopes that were accepted before, in this order.
    pub before: &'c [u8],
    /// The proof of the sender of all these envelopes.
    pub before_proof: &'c str,
    /// The proof of the sender of the message: `unsigned`, `first-contact`, `pinned`, `dns` or `firm`.
    pub proof: &'c str,
    /// Whether the sender of the message is an agent, which proves no more than that.
    pub is_agent: bool,
    /// The time.
    pub at: &'c str,
    /// The address outside of the organisation that it goes to, if it leaves.
    pub leaves: Option<&'c str>,
    /// Scopes for which the policy demands a signed consent.
    pub signed: Vec<&'c str>,
    /// Whether everything that leaves needs an explicit consent.
    pub border: bool,
    /// A pattern of the addresses that may revoke what others granted.
    pub authority: Option<&'c str>,
}

/// What an implementation of consent offers.
pub trait Consents {
    /// `{"expires", "brief", "ledger": [{"id", "granter", "to", "scopes", "assurance", "standing"}]}` after the message.
    ///
    /// # Errors
    /// The diagnostics of a rejection.
    fn consent(&self, text: &[u8], setting: &ConsentSetting<'_>) -> Result<Value, Value>;
}

pub(super) fn judge(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let or = |key, usual| match case.has(key) {
        true => case.get(key),
        false => usual,
    };
    let setting = ConsentSetting {
        before: case.optional("before").unwrap_or_default(),
        before_proof: or("before-proof", "unsigned"),
        proof: or("proof", "unsigned"),
        is_agent: case.get("by") == "agent",
        at: or("at", "2026-01-01T00:00:00Z"),
        leaves: case.has("leaves").then(|| case.get("leaves")),
        signed: case.get("signed").split_whitespace().collect(),
        border: case.get("border") == "all",
        authority: case.has("authority").then(|| case.get("authority")),
    };
    let came = tested.consent(case.section("input")?, &setting);
    accepted_or_refused(case, came, |came| match case.optional_json("json")? {
        Some(expected) => subset(&expected, came),
        None => Ok(()),
    })
}
