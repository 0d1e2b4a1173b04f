//! The JSON forms of results. The command line prints the same types; the doc comments become the descriptions of the schemas.

use crosstalk_envelope::json::finding;
use crosstalk_envelope::registry::PiiKind;
#[cfg(feature = "schema")]
use crosstalk_envelope::registry::SchemeKind;
use crosstalk_envelope::{Diagnostic, LineIndex, Severity};
use crosstalk_protocol::{VerdictReport, VerdictWord};
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

pub use crosstalk_envelope::json::PARSE_SCHEMA as PARSE;

/// The name of the form of [`LintReport`].
pub const LINT: &str = "crosstalk.lint/1";
/// The name of the form of [`AddressReport`].
pub const ADDRESS: &str = "crosstalk.address/1";
/// The name of the form of [`VerifyReport`].
pub const VERIFY: &str = "crosstalk.verify/1";
/// The name of the form of [`RedactReport`].
pub const REDACT: &str = "crosstalk.redact/1";

/// The pattern of a rule id.
pub const RULE: &str = "^[A-Z]{3}-[0-9]{3}$";
/// The pattern of a fingerprint.
pub const FINGERPRINT: &str = "^([0-9]{5} ){7}[0-9]{5}$";

/// A result with the name of its form in front.
#[derive(Serialize)]
pub struct NamedForm<'a, T> {
    schema: &'static str,
    #[serde(flatten)]
    answer: &'a T,
}

impl<'a, T: Serialize> NamedForm<'a, T> {
    /// Puts the name of its form in front of a result.
    pub const fn new(schema: &'static str, answer: &'a T) -> Self {
        Self { schema, answer }
    }

    /// The result as a JSON text.
    pub(crate) fn to_json(&self) -> String {
        to_json(self)
    }
}

/// The JSON text of a form. The forms have texts as keys and no numbers that JSON lacks, so there is one.
pub(crate) fn to_json(form: &impl Serialize) -> String {
    serde_json::to_string(form).unwrap_or_default()
}

/// What `crosstalk lint --json` prints.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LintReport {
    /// How many envelopes were accepted.
    pub envelopes: usize,
    /// How many findings there are of each severity.
    pub counts: FindingCounts,
    /// The findings. `file` is there if more than one file was read.
    #[cfg_attr(feature = "schema", schemars(schema_with = "findings"))]
    pub diagnostics: Vec<Value>,
}

/// How many findings there are of each severity.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(missing_docs, reason = "the fields are the severities")]
pub struct FindingCounts {
    pub error: usize,
    pub warning: usize,
    pub repair: usize,
    pub note: usize,
}

impl FindingCounts {
    /// Counts a finding.
    pub fn add(&mut self, severity: Severity) {
        *match severity {
            Severity::Error => &mut self.error,
            Severity::Warning => &mut self.warning,
            Severity::Repair => &mut self.repair,
            Severity::Note => &mut self.note,
        } += 1;
    }
}

/// What `crosstalk address parse --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(missing_docs, reason = "the fields are the parts of a URL")]
pub struct AddressReport {
    pub address: String,
    pub valid: bool,
    /// `name` for a simple name.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = [&["name"][..], &SchemeKind::ALL.map(SchemeKind::as_str)].concat())))]
    pub kind: &'static str,
    /// Whether the scheme is in the registry.
    pub registered: bool,
    pub scheme: Option<String>,
    pub authority: Option<String>,
    pub user: Option<String>,
    pub host: Option<String>,
    pub query: Option<String>,
    pub fragment: Option<String>,
    pub path: String,
    pub diagnostics: Vec<AddressFindingReport>,
}

/// A finding about an address.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(missing_docs, reason = "the fields are those of every finding")]
pub struct AddressFindingReport {
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = RULE)))]
    pub rule: &'static str,
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["error", "warning", "note"])))]
    pub severity: &'static str,
    pub code: Option<&'static str>,
    pub message: String,
    pub help: &'static str,
}

/// What `crosstalk verify --json` prints, one object a line and an envelope.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(missing_docs, reason = "spec/trust.md describes the fields")]
pub struct VerifyReport {
    #[cfg_attr(feature = "schema", schemars(extend("enum" = VerdictWord::ALL.map(VerdictWord::as_str))))]
    pub verdict: &'static str,
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["intact", "reflowed", "truncated", "altered", null])))]
    pub body: Option<&'static str>,
    pub lines: Vec<usize>,
    pub after: Option<usize>,
    pub pkid: Option<String>,
    pub algorithm: Option<String>,
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = FINGERPRINT)))]
    pub fingerprint: Option<String>,
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["dns", "pinned", "did", "given", "first-contact", "unsigned", "unknown-key", "rc1", null])))]
    pub trust: Option<&'static str>,
    pub since: Option<String>,
    #[cfg_attr(feature = "schema", schemars(extend("enum" = dnssec_or_null())))]
    pub dnssec: Option<&'static str>,
    pub sender: Option<String>,
    pub receiver: Option<String>,
    pub message: Option<String>,
    pub signed_at: Option<String>,
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub sentence: String,
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub next: String,
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = RULE)))]
    pub rule: Option<&'static str>,
    pub code: Option<&'static str>,
    pub retry: bool,
    pub key_change: Option<KeyChangeReport>,
    pub envelope: Option<String>,
    pub restored: Option<String>,
    #[cfg_attr(feature = "schema", schemars(schema_with = "findings"))]
    pub repairs: Vec<Value>,
    /// There if more than one file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Option<String>,
}

#[cfg(feature = "schema")]
fn dnssec_or_null() -> Vec<Option<&'static str>> {
    use crosstalk_protocol::dns::Dnssec;
    let words = Dnssec::ALL.map(|dnssec| Some(dnssec.as_str()));
    words.into_iter().chain([None]).collect()
}

/// The fingerprints of two keys for one id.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct KeyChangeReport {
    /// Of the known key.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = FINGERPRINT)))]
    pub known: String,
    /// Of the key that was used.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = FINGERPRINT)))]
    pub offered: String,
}

impl From<VerdictReport> for VerifyReport {
    fn from(verdict: VerdictReport) -> Self {
        Self {
            verdict: verdict.verdict,
            body: verdict.body,
            lines: verdict.lines,
            after: verdict.after,
            pkid: verdict.pkid,
            algorithm: verdict.algorithm,
            fingerprint: verdict.fingerprint,
            trust: verdict.trust,
            since: verdict.since,
            dnssec: verdict.dnssec,
            sender: Some(verdict.sender),
            receiver: Some(verdict.receiver),
            message: verdict.message,
            signed_at: verdict.signed_at,
            sentence: verdict.sentence,
            next: verdict.next,
            rule: verdict.rule,
            code: verdict.code,
            retry: verdict.retry,
            key_change: verdict.key_change.map(|change| KeyChangeReport {
                known: change.known,
                offered: change.offered,
            }),
            envelope: verdict.envelope,
            restored: verdict.restored,
            repairs: Vec::new(),
            file: None,
        }
    }
}

impl VerifyReport {
    /// The report on envelopes that can't be read: no signature was looked at.
    pub fn unreadable(findings: &[Diagnostic]) -> Self {
        let worst = findings.iter().filter(|d| d.is_error());
        let worst = worst.max_by_key(|d| d.code().map(|c| c.exit_code()));
        let (sentence, next) = match worst {
            Some(fault) => (
                format!("The message can't be read: {}.", fault.message),
                match fault.help() {
                    "" => "Copy the message again.".to_owned(),
                    help => format!("{}.", capitalize(help)),
                },
            ),
            None => (
                "There is no message.".to_owned(),
                "Copy it again.".to_owned(),
            ),
        };
        Self {
            verdict: VerdictWord::NotVerified.as_str(),
            sentence,
            next,
            rule: worst.map(|d| d.rule.id),
            code: worst.and_then(Diagnostic::code).map(|c| c.as_str()),
            ..Self::default()
        }
    }

    /// The same report, with the findings of the reading.
    #[must_use]
    pub fn with_findings(mut self, findings: &[Diagnostic], lines: &LineIndex<'_>) -> Self {
        self.repairs = findings.iter().map(|d| finding_value(d, lines)).collect();
        self
    }
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

/// What `crosstalk redact --json` prints, for each file. Places are those of the text that was read.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RedactReport {
    /// The text without the personal data. Null with --check.
    pub text: Option<String>,
    /// The places in the order of the text.
    pub found: Vec<FoundReport>,
    /// The kinds of personal data that were found.
    #[cfg_attr(feature = "schema", schemars(extend("uniqueItems" = true, "items" = serde_json::json!({"enum": pii_kinds()}))))]
    pub fields: Vec<&'static str>,
    /// There if more than one file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Option<String>,
}

/// A place where personal data was found.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
#[allow(missing_docs, reason = "the fields are those of every finding")]
pub struct FoundReport {
    #[cfg_attr(feature = "schema", schemars(extend("enum" = pii_kinds())))]
    pub kind: &'static str,
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub line: usize,
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub column: usize,
    /// Its replacement.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^\[[A-Z0-9-]+\]$")))]
    pub placeholder: String,
}

/// The kinds of personal data.
#[cfg(feature = "schema")]
fn pii_kinds() -> Vec<&'static str> {
    PiiKind::ALL.iter().map(|kind| kind.as_str()).collect()
}

/// The kinds that are among some places, each once.
pub(crate) fn kinds_among(found: &[crosstalk_protocol::redact::FoundPii]) -> Vec<&'static str> {
    let is_found = |kind: &&PiiKind| found.iter().any(|f| f.kind == **kind);
    let kinds = PiiKind::ALL.iter().filter(is_found);
    kinds.map(|kind| kind.as_str()).collect()
}

/// A finding as JSON.
pub fn finding_value(diagnostic: &Diagnostic, lines: &LineIndex<'_>) -> Value {
    // A finding is texts and numbers, which are always JSON.
    serde_json::to_value(finding(diagnostic, lines)).unwrap_or_default()
}

/// The schema of a list of findings.
#[cfg(feature = "schema")]
pub fn findings(_: &mut SchemaGenerator) -> Schema {
    let parse = crosstalk_envelope::json::schema();
    let finding = parse.pointer("/$defs/finding").cloned().unwrap_or_default();
    json_schema!({"type": "array", "items": finding})
}
