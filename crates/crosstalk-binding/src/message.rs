//! Messages: read, written, answered, formatted, migrated, linted, and their canonical form.

use crate::error::CrosstalkError;
use crate::form::{LINT, LintReport, NamedForm, finding_value, to_json};
use crosstalk_envelope::json::{NewThreads, builders_with_ids, report};
use crosstalk_envelope::reply::{ReceivedIds, answer};
use crosstalk_envelope::{
    Address, CoreHeader, Diagnostic, Document, ErrorCode, Intent, LineIndex, Migration, Migrator,
    Reading, Scan, id, lint as style_findings, scan, scan_bytes, sort_by_number,
};
use crosstalk_protocol::compose::infer_intent;
use crosstalk_protocol::{Assistant, agent_user, primer_of};

/// The reading that a word names.
///
/// # Errors
/// If the word is neither `strict` nor `paste`.
pub fn parse_reading(word: &str) -> Result<Reading, CrosstalkError> {
    match word {
        "strict" => Ok(Reading::Strict),
        "paste" => Ok(Reading::Paste),
        _ => Err(
            CrosstalkError::usage(format!("the reading `{word}` is unknown"))
                .help("use strict or paste"),
        ),
    }
}

/// Finds the envelopes in a text: the object of `crosstalk parse --json`. Bad text, and bytes that are no text, give a report
/// with errors.
pub fn parse(text: impl AsRef<[u8]>, reading: Reading) -> String {
    scan_bytes(text.as_ref(), reading, |text, scan| {
        to_json(&report(text, scan))
    })
}

/// Writes envelopes from JSON, as `crosstalk build` does: one message, a list, or the result of [`parse`]. Messages without
/// a thread or a message id get one.
///
/// # Errors
/// If the JSON is no message, or a message would break a rule.
pub fn build(json: &str) -> Result<String, CrosstalkError> {
    let builders = builders_with_ids(json, NewThreads::Always)?;
    let envelopes = builders.iter().map(|builder| Ok(builder.build()?));
    Ok(envelopes
        .collect::<Result<Vec<_>, CrosstalkError>>()?
        .join("\n"))
}

/// The parts of an answer that differ from the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyOptions<'o> {
    /// The sender; else the receiver of the message.
    pub from: Option<&'o str>,
    /// The `user` header; else it is derived from the sender.
    pub user: Option<&'o str>,
    /// The intent; else RESPOND to a message that asks, and what `crosstalk reply` infers for any other.
    pub intent: Option<&'o str>,
    /// The subject; else that of the message.
    pub context: Option<&'o str>,
}

/// Writes the answer to the one message in a text, which is read as a paste: with its thread, session and context, its id as
/// parent, and to the address that it names in `X-Reply-To`, else to its sender.
///
/// # Errors
/// If there is not exactly one message in the text, or the answer would break a rule.
///
/// ```
/// use crosstalk_binding::{ReplyOptions, reply};
/// let question = "[[CLAUDE→CHATGPT v1]]\nuser: kalle\nsession: s\nthread: T1\nmessage: M1\ncontext: auth\nintent: REQUEST\nbody: |\n  JWT?\nsig: none\n[[END]]\n";
/// let answer = reply(question, "Yes.", ReplyOptions::default()).unwrap();
/// assert!(answer.starts_with("[[CHATGPT→CLAUDE v1]]\n") && answer.contains("\nparent: M1\n"));
/// ```
pub fn reply(text: &str, body: &str, options: ReplyOptions<'_>) -> Result<String, CrosstalkError> {
    let scan = scan(text, Reading::Paste);
    let document = only_document(text, &scan)?;
    let mut original = document.envelope();
    let meaning = original.meaning();
    let reply_to = original.routing().reply_to;
    // Answers to a poll are for the sender who asks; the address is for the result.
    if let Some(address) = reply_to.filter(|_| meaning != Some(Intent::Poll)) {
        original.sender = address;
    }
    if let Some(from) = options.from {
        original.receiver = Address::split(from);
    }
    let user = options
        .user
        .map_or_else(|| agent_user(original.receiver.as_str()), str::to_owned);
    let intent = infer_intent(body, meaning);
    let builder = answer(&original, &ReceivedIds::of(&original), &user, intent)
        .core_if(CoreHeader::Intent, options.intent)
        .core_if(CoreHeader::Context, options.context)
        .body(body);
    Ok(builder.build()?)
}

/// The text that teaches the assistant of an address the format, with the name of the person whom it answers.
///
/// ```
/// use crosstalk_binding::primer;
/// assert!(primer("CLAUDE", "ANN").contains("[[CLAUDE→ANN v1]]"));
/// ```
pub fn primer(address: &str, me: &str) -> String {
    primer_of(Assistant::of_address(address), me)
}

/// Repairs the envelopes of a text and writes them well-formed, with a blank line between them, as `crosstalk fmt` does.
///
/// # Errors
/// If an envelope is rejected, or there is none.
pub fn format(text: &str) -> Result<String, CrosstalkError> {
    let scan = scan(text, Reading::Paste);
    require_accepted(text, &scan)?;
    let texts = scan.documents.iter().map(Document::to_well_formed);
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

/// Rewrites the v1.0 envelopes of a text as v1.1, as `crosstalk migrate` does. Signed envelopes and those of v1.1 stay.
///
/// # Errors
/// If an envelope is rejected or can't be migrated, or there is none.
pub fn migrate(text: &str) -> Result<String, CrosstalkError> {
    let scan = scan(text, Reading::Paste);
    require_accepted(text, &scan)?;
    let mut migrator = Migrator::default();
    let texts = scan.documents.iter().map(|document| {
        let migration = migrator.migrate(document)?;
        Ok(migrated_text(document, &migration))
    });
    let texts: Vec<String> = texts.collect::<Result<_, CrosstalkError>>()?;
    Ok(texts.join("\n"))
}

/// The text after a migration. An envelope that is left alone keeps its bytes, unless it had to be repaired to be read at all.
pub fn migrated_text(document: &Document<'_>, migration: &Migration) -> String {
    let is_migrated = matches!(migration, Migration::Migrated(_));
    if !is_migrated && Document::parse(document.source(), Reading::Strict).is_accepted() {
        let end = if document.source().ends_with('\n') {
            ""
        } else {
            "\n"
        };
        return format!("{}{end}", document.source());
    }
    migration.text().to_owned()
}

/// The findings about a text, which is read as a paste: the object of `crosstalk lint --json`.
pub fn lint(text: impl AsRef<[u8]>) -> String {
    scan_bytes(text.as_ref(), Reading::Paste, |text, scan| {
        let lines = LineIndex::new(text);
        let mut report = LintReport::default();
        for finding in report.add_scan(scan) {
            report.diagnostics.push(finding_value(&finding, &lines));
        }
        NamedForm::new(LINT, &report).to_json()
    })
}

impl LintReport {
    /// Counts the envelopes and findings of a text, and returns the findings in the order of the text.
    pub fn add_scan(&mut self, scan: &Scan<'_>) -> Vec<Diagnostic> {
        self.envelopes += scan.documents.len();
        let mut findings: Vec<Diagnostic> =
            scan.documents.iter().flat_map(document_findings).collect();
        findings.extend(scan.rejected.iter().cloned());
        sort_by_number(&mut findings, |d| d.span.start);
        for finding in &findings {
            self.counts.add(finding.severity);
        }
        findings
    }
}

/// The findings and lints of a document, in the order of the text.
pub fn document_findings(document: &Document<'_>) -> Vec<Diagnostic> {
    let mut findings = document.diagnostics().to_vec();
    findings.extend(style_findings(document));
    sort_by_number(&mut findings, |d| d.span.start);
    findings
}

/// The canonical form of a strict envelope (CAN-001 to CAN-007): its UTF-8 is the bytes that a signature covers.
///
/// # Errors
/// If the text is not one strict envelope.
pub fn canonical(text: &str) -> Result<String, CrosstalkError> {
    let document = strict_document(text)?;
    let form = document.canonical();
    form.map_err(|fault| CrosstalkError::of_finding(&fault, text))
}

/// The digest of the canonical form, `sha256:…`.
///
/// # Errors
/// If the text is not one strict envelope.
pub fn digest(text: &str) -> Result<String, CrosstalkError> {
    let document = strict_document(text)?;
    let digest = document.digest();
    let digest = digest.map_err(|fault| CrosstalkError::of_finding(&fault, text))?;
    Ok(digest.to_string())
}

/// A new message or thread id, a ULID.
pub fn new_id() -> String {
    id::new_ulid()
}

fn strict_document(text: &str) -> Result<Document<'_>, CrosstalkError> {
    let document = Document::parse(text, Reading::Strict);
    match CrosstalkError::of_findings(document.diagnostics(), text) {
        Some(error) => Err(error),
        None => Ok(document),
    }
}

/// Requires that no envelope is rejected, and that there is one.
pub(crate) fn require_accepted(text: &str, scan: &Scan<'_>) -> Result<(), CrosstalkError> {
    match CrosstalkError::of_findings(&scan.rejected, text) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The one envelope of a text.
pub(crate) fn only_document<'s, 't>(
    text: &str,
    scan: &'s Scan<'t>,
) -> Result<&'s Document<'t>, CrosstalkError> {
    require_accepted(text, scan)?;
    match scan.documents.as_slice() {
        [document] => Ok(document),
        documents => Err(not_one(documents.len())),
    }
}

/// Several messages where one is expected.
pub(crate) fn not_one(number: usize) -> CrosstalkError {
    let message = format!("there are {number} messages in the text");
    CrosstalkError::new(ErrorCode::Format, message).help("pass one message at a time")
}
