//! Redaction: a text or an envelope without personal data.

use super::{Implementation, Judged, carries, equal, rejection, same_bytes, shown, text};
use crate::case::CaseFile;
use crate::fault::Fault;
use serde_json::Value;

/// What to redact, and in what.
#[derive(Clone, Debug)]
pub struct RedactRequest<'c> {
    /// Whether the input is an envelope.
    pub envelope: bool,
    /// The words of the kinds; all of them if there are none.
    pub only: Vec<&'c str>,
    /// Names of persons that are redacted.
    pub names: Vec<&'c str>,
    /// Whether a signature may be dropped.
    pub drop_signature: bool,
}

/// A redacted text.
#[derive(Clone, Debug)]
pub struct RedactedText {
    /// The text.
    pub text: Vec<u8>,
    /// The words of the kinds, one for each find, in the order of the text.
    pub found: Vec<String>,
}

/// What an implementation that redacts offers.
pub trait Redact {
    /// The text or the strict envelope, redacted.
    ///
    /// # Errors
    /// The diagnostics of a rejection.
    fn redact(&self, text: &[u8], request: &RedactRequest<'_>) -> Result<RedactedText, Value>;
}

pub(super) fn judge(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let names = text(case.optional("names").unwrap_or_default())?;
    let request = RedactRequest {
        envelope: case.has("as"),
        only: case.words("only").collect(),
        names: names.lines().collect(),
        drop_signature: case.has("drop-signature"),
    };
    let redacted = tested.redact(case.section("input")?, &request);
    let redacted = match (redacted, case.get("expect")) {
        (Err(findings), "reject") => return carries(case, &findings),
        (Ok(redacted), "reject") => {
            return Err(Fault::mismatch(rejection(case), shown(&redacted.text)));
        }
        (Err(findings), _) => return Err(Fault::mismatch("a text", findings)),
        (Ok(redacted), _) => redacted,
    };
    same_bytes(case.section("output")?, &redacted.text)?;
    equal(case.get("found"), &redacted.found.join(" "))?;
    // RED-002: a second redaction changes nothing.
    let again = tested
        .redact(&redacted.text, &request)
        .map_err(|findings| Fault::mismatch("the same text the second time", findings))?;
    same_bytes(&redacted.text, &again.text)
}
