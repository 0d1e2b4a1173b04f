//! Signatures: signed and verified.

use crate::error::CrosstalkError;
use crate::form::{NamedForm, VERIFY, VerifyReport};
use crate::key::public_key;
use crate::message::{not_one, require_accepted};
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{
    Diagnostic, Document, LineIndex, PrivateKey, PublicKey, Reading, Severity, Signature,
    Timestamp, authenticate, is_key_id, scan, scan_bytes,
};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{Trust, Verdict, VerifyContext};

/// How envelopes are signed.
#[derive(Clone, Copy, Debug)]
pub struct SignOptions<'o> {
    /// The id of the key, by which a receiver finds the public key.
    pub key_id: &'o str,
    /// Whether the public key goes along, for receivers who don't have it yet.
    pub with_key: bool,
    /// Whether signatures that are there already are replaced.
    pub replace: bool,
    /// The time to write as Signed-At.
    pub at: Timestamp,
}

/// Signs the envelopes of a text, which is read as a paste, as `crosstalk sign` does. If one can't be signed, none is.
///
/// # Errors
/// If the key can't be read, an envelope is rejected or signed already, or a repair would leave text out.
pub fn sign(
    text: &str,
    private_key_pem: &str,
    options: SignOptions<'_>,
) -> Result<String, CrosstalkError> {
    if !is_key_id(options.key_id) {
        let message = format!("`{}` is no key id", options.key_id);
        return Err(CrosstalkError::of_rule(&rule::SIG_MALFORMED, message)
            .help("use an id such as alice@example.com, or the did of the key"));
    }
    let key = PrivateKey::from_pem(private_key_pem.trim()).map_err(|fault| {
        // The help of the rule is about public keys.
        let help = "pass the private key as PKCS#8 in PEM, not encrypted";
        CrosstalkError::from(fault).help(help)
    })?;
    let scan = scan(text, Reading::Paste);
    require_accepted(text, &scan)?;
    let block = match options.with_key {
        true => key_block(options.key_id, &key.public(), None),
        false => Vec::new(),
    };
    let signer = Signer {
        key: &key,
        pkid: options.key_id,
        at: options.at,
        key_block: &block,
    };
    let mut signed = Vec::with_capacity(scan.documents.len());
    for document in &scan.documents {
        let faults = signing_faults(document, options.replace);
        if let Some(error) = CrosstalkError::of_findings(&faults, text) {
            return Err(error);
        }
        let one = match options.replace {
            true => signer.sign_anew(document),
            false => signer.sign(document),
        };
        let one = one.map_err(|fault| CrosstalkError::of_finding(&fault, text))?;
        require_verified(&one, &signer)?;
        signed.push(one);
    }
    Ok(signed.join("\n"))
}

/// Why a document that was read as a paste is not signed: a repair would leave text out, a relay would reject the message, or it
/// is signed already.
pub fn signing_faults(document: &Document<'_>, replaces: bool) -> Vec<Diagnostic> {
    let is_fault = |d: &&Diagnostic| {
        d.rule.drops
            || *d.rule == rule::HEADERS_LACKING
            || (is_of_intent(d) && !is_repaired_by_signing(d))
    };
    let faults = document.diagnostics().iter().filter(is_fault);
    let mut faults: Vec<Diagnostic> = faults
        .map(|found| Diagnostic {
            severity: Severity::Error,
            ..found.clone()
        })
        .collect();
    let is_signed = document.sig().is_some_and(|sig| sig != "none");
    if is_signed && !replaces {
        let start = document.span().start;
        faults.push(Diagnostic::error(
            &rule::SIGNED_ALREADY,
            start..start,
            "the message is signed already",
        ));
    }
    faults
}

/// Whether it is about the rules of the intents, for which a relay rejects a message.
fn is_of_intent(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Warning && finding.rule.id.starts_with("INT-")
}

/// Whether signing repairs the finding: a missing or unreadable signature.
pub fn is_repaired_by_signing(finding: &Diagnostic) -> bool {
    *finding.rule == rule::REVOKE_UNSIGNED || *finding.rule == rule::SIG_MALFORMED
}

/// Requires that a signed text passes the strict reading and verifies.
///
/// # Errors
/// The rule that a relay would reject it for.
pub fn require_verified(text: &str, signer: &Signer<'_>) -> Result<(), CrosstalkError> {
    let mut document = Document::parse(text, Reading::Strict);
    document.check();
    if let Some(fault) = document.diagnostics().iter().find(|d| d.is_error()) {
        let what = format!("the signed message would be rejected: {}", fault.message);
        return Err(CrosstalkError::of_rule(fault.rule, what));
    }
    let authentic = authenticate(&document, &signer.key.public()).ok();
    match authentic.is_some_and(|a| a.verified().is_some()) {
        true => Ok(()),
        false => Err(CrosstalkError::usage(
            "the signed message does not verify: this is a fault of the program",
        )),
    }
}

/// Verifies the one message in a text, which is read as a paste: the object of `crosstalk verify --json`. A message that
/// can't be read gets a report, too.
///
/// `keys` are pairs of a key id and a public key ([`public_key`]). The keys of the id that signed are the only ones that count
/// for it; with several of one id, the best verdict counts. For any other id, the key is known only if the id is the key
/// (`did:key:…`) or the message brings it (`first-contact`).
///
/// # Errors
/// If a key can't be read, or there are several messages in the text.
pub fn verify(
    text: impl AsRef<[u8]>,
    keys: &[(String, String)],
    at: Timestamp,
) -> Result<String, CrosstalkError> {
    let read = |(id, key): &(String, String)| Ok((id.clone(), public_key(key)?));
    let keys: Result<Vec<(String, PublicKey)>, CrosstalkError> = keys.iter().map(read).collect();
    let keys = keys?;
    scan_bytes(text.as_ref(), Reading::Paste, |text, scan| {
        let is_rejected = scan.rejected.iter().any(|finding| finding.is_error());
        let lines = LineIndex::new(text);
        let report = match (scan.documents.as_slice(), is_rejected) {
            ([document], false) => {
                VerifyReport::from(verify_document(document, &keys, at).report())
                    .with_findings(document.diagnostics(), &lines)
            }
            ([], _) => {
                VerifyReport::unreadable(&scan.rejected).with_findings(&scan.rejected, &lines)
            }
            (documents, rejected) => {
                return Err(not_one(documents.len() + usize::from(rejected)));
            }
        };
        Ok(NamedForm::new(VERIFY, &report).to_json())
    })
}

/// The verdict on one envelope, with keys that a caller gives.
fn verify_document(
    document: &Document<'_>,
    keys: &[(String, PublicKey)],
    at: Timestamp,
) -> Verdict {
    let context = VerifyContext {
        restore: true,
        ..VerifyContext::at(at)
    };
    let trust = Trust::default();
    let pkid = match document.sig().map(Signature::parse) {
        Some(Ok(Signature::Signed { pkid, .. })) => Some(pkid),
        _ => None,
    };
    let given = keys.iter().filter(|(id, _)| Some(id.as_str()) == pkid);
    let verdicts = given.map(|(_, key)| {
        let context = VerifyContext {
            key: Some(key),
            ..context
        };
        crosstalk_protocol::verify(document, &trust, &context)
    });
    verdicts
        .min_by_key(Verdict::word)
        .unwrap_or_else(|| crosstalk_protocol::verify(document, &trust, &context))
}
