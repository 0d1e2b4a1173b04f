//! A verdict for programs: `crosstalk.verify/1`.

use crate::failure::Failure;
use crate::json;
use crate::schema::VERIFY;
use crosstalk_envelope::json::finding;
use crosstalk_envelope::{Diagnostic, Document, LineIndex};
use crosstalk_protocol::{Verdict, Word};
use serde_json::{Value, json};

/// The report on an envelope.
pub(super) fn verdict(
    verdict: &Verdict,
    document: &Document<'_>,
    lines: &LineIndex<'_>,
    file: Option<&str>,
) -> Result<Value, Failure> {
    let report = json::value(&verdict.report())?;
    finished(report, document.diagnostics(), lines, file)
}

/// The report on envelopes that can't be read: no signature was looked at.
pub(super) fn refused(
    findings: &[Diagnostic],
    lines: &LineIndex<'_>,
    file: Option<&str>,
) -> Result<Value, Failure> {
    let worst = findings.iter().filter(|d| d.is_error());
    let worst = worst.max_by_key(|d| d.code().map(|c| c.exit_code()));
    let mut report = empty(Word::NotVerified);
    let (sentence, next) = match worst {
        Some(fault) => (
            format!("The message can't be read: {}.", fault.message),
            match fault.help() {
                "" => "Copy the message again.".to_owned(),
                help => format!("{}.", upper(help)),
            },
        ),
        None => (
            "There is no message.".to_owned(),
            "Copy it again.".to_owned(),
        ),
    };
    set(&mut report, "sentence", sentence.into());
    set(&mut report, "next", next.into());
    set(&mut report, "rule", worst.map(|d| d.rule.id).into());
    let code = worst.and_then(Diagnostic::code).map(|c| c.as_str());
    set(&mut report, "code", code.into());
    finished(report, findings, lines, file)
}

fn upper(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

/// A report in which nothing applies.
pub(super) fn empty(word: Word) -> Value {
    json!({
        "schema": VERIFY, "verdict": word.as_str(), "body": null, "lines": [], "after": null, "pkid": null,
        "algorithm": null, "fingerprint": null, "trust": null, "since": null, "dnssec": null, "sender": null,
        "receiver": null, "message": null, "signed_at": null, "sentence": "", "next": "", "rule": null, "code": null,
        "retry": false, "key_change": null, "envelope": null, "restored": null,
    })
}

/// Sets a field of a report.
pub(super) fn set(report: &mut Value, name: &str, value: Value) {
    if let Some(fields) = report.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

/// The report with the findings of the reading, and with its file if there are several.
pub(super) fn finished(
    mut report: Value,
    findings: &[Diagnostic],
    lines: &LineIndex<'_>,
    file: Option<&str>,
) -> Result<Value, Failure> {
    let findings = findings.iter().map(|d| json::value(&finding(d, lines)));
    let findings = findings.collect::<Result<Vec<Value>, Failure>>()?;
    set(&mut report, "repairs", findings.into());
    if let Some(file) = file {
        json::tag(&mut report, file);
    }
    Ok(report)
}
