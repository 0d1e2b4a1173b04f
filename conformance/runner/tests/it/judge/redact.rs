//! Redaction: a text or an envelope without personal data.

use super::{Implementation, carries, equal, same_bytes, shown};
use crate::case::Case;
use serde_json::Value;

/// What is looked for, and where.
pub(crate) struct Wanted<'c> {
    /// The input is an envelope.
    pub(crate) envelope: bool,
    /// The words of the kinds; all of them if there are none.
    pub(crate) only: Vec<&'c str>,
    pub(crate) names: Vec<&'c str>,
    /// A signature may be dropped.
    pub(crate) drop_signature: bool,
}

/// What came out of a redaction.
pub(crate) struct Cleaned {
    pub(crate) text: Vec<u8>,
    /// The words of the kinds, one for each find, in the order of the text.
    pub(crate) found: Vec<String>,
}

/// What an implementation that redacts offers.
pub(crate) trait Redact {
    /// The text or the strict envelope, redacted.
    fn redact(&self, text: &[u8], wanted: &Wanted<'_>) -> Result<Cleaned, Value>;
}

pub(super) fn judge(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let names = case.all("names").next().unwrap_or_default();
    let names = std::str::from_utf8(names).map_err(|e| e.to_string())?;
    let wanted = Wanted {
        envelope: case.has("as"),
        only: case.words("only").collect(),
        names: names.lines().collect(),
        drop_signature: case.has("drop-signature"),
    };
    let cleaned = tested.redact(case.section("input")?, &wanted);
    let cleaned = match (cleaned, case.get("expect")) {
        (Err(findings), "reject") => return carries(case, &findings, "error"),
        (Err(findings), _) => return Err(format!("came {findings}")),
        (Ok(cleaned), "reject") => {
            return Err(format!(
                "expected a refusal\ncame\n{}",
                shown(&cleaned.text)
            ));
        }
        (Ok(cleaned), _) => cleaned,
    };
    same_bytes(case.section("output")?, &cleaned.text)?;
    equal(case.get("found"), &cleaned.found.join(" "))?;
    // RED-002: once more, and nothing changes.
    let again = tested
        .redact(&cleaned.text, &wanted)
        .map_err(|findings| format!("the second time came {findings}"))?;
    same_bytes(&cleaned.text, &again.text)
}
