//! Redaction by the crates under test.

use super::{Ours, decoded, findings, strict};
use crosstalk_conform::judge::{Redact, RedactRequest, RedactedText};
use crosstalk_protocol::redact::{Found, PiiKind, Rules, redact, redact_envelope};
use serde_json::Value;

impl Redact for Ours {
    fn redact(&self, text: &[u8], wanted: &RedactRequest<'_>) -> Result<RedactedText, Value> {
        let rules = Rules::default().with_names(wanted.names.iter().copied());
        let kinds = wanted
            .only
            .iter()
            .map(|word| PiiKind::from_wire(word).unwrap());
        let rules = match wanted.only.is_empty() {
            true => rules,
            false => rules.only(&kinds.collect::<Vec<_>>()),
        };
        let words = |found: &[Found]| found.iter().map(|f| f.kind.to_string()).collect();
        if !wanted.envelope {
            let redaction = redact(decoded(text)?, &rules);
            let found = words(&redaction.found);
            let text = redaction.text.into_bytes();
            return Ok(RedactedText { text, found });
        }
        let document = strict(text)?;
        let redacted = redact_envelope(&document, &rules, wanted.drop_signature)
            .map_err(|fault| findings(&[fault], document.source()))?;
        Ok(RedactedText {
            found: words(&redacted.found),
            text: redacted.text.into_bytes(),
        })
    }
}
