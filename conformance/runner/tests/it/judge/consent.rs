//! What is demanded of consent. No store and no keys: what they would say is in the case.

use super::{Implementation, carries};
use crate::case::Case;
use crate::subset::subset;
use serde_json::Value;

/// What a message comes into.
pub(crate) struct Circumstances<'c> {
    /// Envelopes that were taken before, one after the other.
    pub(crate) before: &'c [u8],
    /// How sure it was who they are from.
    pub(crate) before_proof: &'c str,
    /// How sure it is who the message is from: `unsigned`, `first-contact`, `pinned`, `dns` or `firm`.
    pub(crate) proof: &'c str,
    pub(crate) at: &'c str,
    /// To whom it leaves the organisation, if it does.
    pub(crate) leaves: Option<&'c str>,
    /// Scopes for which a consent has to be signed.
    pub(crate) signed: Vec<&'c str>,
    /// Whether everything that leaves needs an explicit consent.
    pub(crate) border: bool,
    /// Who may withdraw what others granted.
    pub(crate) authority: Option<&'c str>,
}

/// What an implementation of consent offers.
pub(crate) trait Consents {
    /// `{"expires", "brief", "ledger": [{"id", "granter", "to", "scopes", "assurance", "standing"}]}` after the message, or
    /// the findings.
    fn consent(&self, text: &[u8], circumstances: &Circumstances<'_>) -> Result<Value, Value>;
}

pub(super) fn judge(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let or = |key, usual| match case.has(key) {
        true => case.get(key),
        false => usual,
    };
    let circumstances = Circumstances {
        before: case.all("before").next().unwrap_or_default(),
        before_proof: or("before-proof", "unsigned"),
        proof: or("proof", "unsigned"),
        at: or("at", "2026-01-01T00:00:00Z"),
        leaves: case.has("leaves").then(|| case.get("leaves")),
        signed: case.get("signed").split_whitespace().collect(),
        border: case.get("border") == "all",
        authority: case.has("authority").then(|| case.get("authority")),
    };
    let came = tested.consent(case.section("input")?, &circumstances);
    match (came, case.get("expect")) {
        (Err(findings), "reject") => carries(case, &findings, "error"),
        (Ok(came), "accept") => match case.all("json").next() {
            Some(_) => subset(&case.json("json")?, &came),
            None => Ok(()),
        },
        (Ok(came) | Err(came), wanted) => Err(format!("expected {wanted}\ncame {came}")),
    }
}
