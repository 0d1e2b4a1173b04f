//! Personal data taken out of a text and of the envelopes in it.

use crate::error::CrosstalkError;
use crate::form::{FoundReport, NamedForm, REDACT, RedactReport, kinds_among};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{Diagnostic, Document, LineIndex, Reading, scan};
use crosstalk_protocol::redact as rules;
use crosstalk_protocol::redact::{FoundPii, Redacted, RedactionRules, redact_envelope};

/// Redacts a text by all rules, and returns it with the places as `crosstalk redact --json` prints them.
///
/// # Errors
/// If the text is too large, or a signed envelope contains personal data.
pub fn redact(text: &str) -> Result<String, CrosstalkError> {
    let scan = scan(text, Reading::Paste);
    let is_too_large = |finding: &&Diagnostic| *finding.rule == rule::PASTE_TOO_LARGE;
    if let Some(fault) = scan.rejected.iter().find(is_too_large) {
        return Err(CrosstalkError::of_finding(fault, text));
    }
    let redacted = redact_text(text, &scan.documents, &RedactionRules::default(), false);
    if let Some(error) = CrosstalkError::of_findings(&redacted.faults, text) {
        // The help of the rule names an option of the command line.
        return Err(match error.rule == Some(rule::REDACTION_SIGNED.id) {
            true => error.help("redact the message before you sign it"),
            false => error,
        });
    }
    let shown = redacted.text.clone();
    let report = redacted.report(&LineIndex::new(text), Some(shown), None);
    Ok(NamedForm::new(REDACT, &report).to_json())
}

/// A text without personal data, and the places where it was.
#[derive(Debug, Default)]
pub struct RedactedText {
    /// The text with placeholders.
    pub text: String,
    /// The places.
    pub found: Vec<FoundPii>,
    /// How many attachments were not looked into.
    pub attachments: usize,
    /// Why envelopes could not be redacted; they stay as they are.
    pub faults: Vec<Diagnostic>,
}

/// Redacts the envelopes of a text as envelopes, and the text around them as text.
pub fn redact_text(
    text: &str,
    documents: &[Document<'_>],
    rules: &RedactionRules,
    drops_signature: bool,
) -> RedactedText {
    let mut out = RedactedText {
        text: String::with_capacity(text.len()),
        ..RedactedText::default()
    };
    let mut at = 0;
    for document in documents {
        let span = document.span();
        out.add_prose(text, at..span.start, rules);
        match redact_envelope(document, rules, drops_signature) {
            Ok(redacted) => out.add_envelope(document, redacted),
            Err(fault) => {
                out.text.push_str(document.source());
                out.faults.push(fault);
            }
        }
        at = span.end;
    }
    out.add_prose(text, at..text.len(), rules);
    out
}

impl RedactedText {
    fn add_prose(&mut self, text: &str, span: std::ops::Range<usize>, rules: &RedactionRules) {
        let start = span.start;
        let redaction = rules::redact(text.get(span).unwrap_or(""), rules);
        self.text.push_str(&redaction.text);
        self.found
            .extend(redaction.found.into_iter().map(|found| FoundPii {
                span: found.span.start + start..found.span.end + start,
                ..found
            }));
    }

    fn add_envelope(&mut self, document: &Document<'_>, redacted: Redacted) {
        self.attachments += redacted.attachments;
        self.text.push_str(&redacted.text);
        // A repaired envelope ends with its line.
        let has_end = document.source().ends_with('\n');
        if !has_end && redacted.text.ends_with('\n') {
            self.text.pop();
        }
        self.found.extend(redacted.found);
    }

    /// The report for programs. `text` is the redacted text, if it is to be shown.
    pub fn report(
        &self,
        lines: &LineIndex<'_>,
        text: Option<String>,
        file: Option<String>,
    ) -> RedactReport {
        let found = self.found.iter().map(|found| {
            let place = lines.position(found.span.start);
            FoundReport {
                kind: found.kind.as_str(),
                line: place.line,
                column: place.column,
                placeholder: found.placeholder.clone(),
            }
        });
        RedactReport {
            text,
            found: found.collect(),
            fields: kinds_among(&self.found),
            file,
        }
    }
}
