//! A verifier that is lax in one way: it looks again at what ours does not verify.

use super::trust::accept;
use super::{input, ours};
use crosstalk_conform::CaseQuestion;
use crosstalk_envelope::{Document, Reading, base64, scan};
use ed25519_dalek::Verifier as _;
use serde_json::{Value, json};

/// The part of a signature that it does not check.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Laxness {
    /// Points of small order and their encodings.
    Ed25519,
    /// Which key id the bytes name.
    KeyId,
    /// Whether they name one.
    NoKeyId,
    /// Whether they begin with the preamble.
    NoPreamble,
    /// Unused bits of base64.
    Base64,
    /// Whether a signature is r and s.
    Der,
    /// Which algorithm the record has.
    Algorithm,
}

/// The verdicts of ours, but `verified` where a lax look at the signature finds that it fits.
pub(super) fn verify(q: &CaseQuestion, laxness: Laxness) -> Value {
    let ours = ours(q);
    let text = input(q);
    let found = scan(&text, Reading::Paste);
    let [document] = found.documents.as_slice() else {
        return ours;
    };
    let verdicts = ours["verdicts"].as_array();
    let is_verified = verdicts.is_some_and(|v| v.iter().all(|v| v["envelope"].is_string()));
    if is_verified || !fits(document, &records(&text, q), laxness) {
        return ours;
    }
    let mut verdict = json!({"schema": "crosstalk.verify/1", "sentence": "x", "next": "x"});
    accept(&mut verdict, q);
    json!({"verdicts": [verdict]})
}

/// Every record in the text and in what is known besides.
fn records(text: &str, q: &CaseQuestion) -> Vec<String> {
    let get = |key| q.get(key).unwrap_or_default();
    let known = [text, get("trust"), get("key"), &q.value("dns").to_string()].join("\n");
    known
        .split(|c: char| c.is_whitespace() || c == '"')
        .filter(|word| word.contains(":pk="))
        .map(str::to_owned)
        .collect()
}

fn fits(document: &Document<'_>, records: &[String], laxness: Laxness) -> bool {
    let Some((algorithm, rest)) = document.sig().and_then(|s| s.split_once(":pkid=")) else {
        return false;
    };
    let Some((id, signature)) = rest.split_once(";sig=") else {
        return false;
    };
    let signature = match laxness {
        Laxness::Base64 => tight(signature),
        _ => signature.to_owned(),
    };
    let Some(mut signature) = base64::decode(&signature) else {
        return false;
    };
    if laxness == Laxness::Der {
        signature = plain(&signature).unwrap_or(signature);
    }
    let written = document.to_well_formed();
    let Ok(canonical) = Document::parse(&written, Reading::Strict).canonical() else {
        return false;
    };
    let canonical = declared(document, canonical);
    let preamble = "ai-crosstalk-sig-v1.1";
    let message = match laxness {
        Laxness::KeyId => format!("{preamble}\n{algorithm}\nalice@example.com\n{canonical}"),
        Laxness::NoKeyId => format!("{preamble}\n{algorithm}\n{canonical}"),
        Laxness::NoPreamble => format!("{algorithm}\n{id}\n{canonical}"),
        _ => format!("{preamble}\n{algorithm}\n{id}\n{canonical}"),
    };
    records
        .iter()
        .any(|record| verifies(record, message.as_bytes(), &signature, laxness))
}

/// The canonical form that ends in the declared digest.
fn declared(document: &Document<'_>, canonical: String) -> String {
    match (
        document.meta("integrity", "Digest"),
        canonical.rsplit_once("sha256:"),
    ) {
        (Some(digest), Some((head, _))) => format!("{head}{digest}\n"),
        _ => canonical,
    }
}

fn verifies(record: &str, message: &[u8], signature: &[u8], laxness: Laxness) -> bool {
    if laxness != Laxness::Ed25519 {
        let key = crosstalk_envelope::PublicKey::parse_record(record);
        return key.is_ok_and(|key| key.verifies(message, signature));
    }
    let key = record
        .strip_prefix("ed25519:pk=")
        .and_then(base64::decode)
        .and_then(|bytes| bytes.try_into().ok())
        .and_then(|bytes| ed25519_dalek::VerifyingKey::from_bytes(&bytes).ok());
    let signature = ed25519_dalek::Signature::from_slice(signature);
    match (key, signature) {
        (Some(key), Ok(signature)) => key.verify(message, &signature).is_ok(),
        _ => false,
    }
}

/// Base64 whose unused bits are made zero.
pub(super) fn tight(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let body = text.trim_end_matches('=');
    let unused = match text.len() - body.len() {
        1 => 0b11,
        2 => 0b1111,
        _ => return text.to_owned(),
    };
    let Some(last) = body.bytes().next_back() else {
        return text.to_owned();
    };
    match LETTERS.iter().position(|l| *l == last) {
        Some(at) => {
            let letter = char::from(LETTERS[at & !unused]);
            format!("{}{letter}{}", &body[..body.len() - 1], &text[body.len()..])
        }
        None => text.to_owned(),
    }
}

/// r and s of a DER signature.
fn plain(der: &[u8]) -> Option<Vec<u8>> {
    let mut rest = der.strip_prefix(&[0x30])?.get(1..)?;
    let mut out = Vec::new();
    for _ in 0..2 {
        let (length, number) = rest.strip_prefix(&[0x02])?.split_first()?;
        let (number, behind) = number.split_at_checked(usize::from(*length))?;
        let number = number.strip_prefix(&[0]).unwrap_or(number);
        out.extend(vec![0; 32_usize.checked_sub(number.len())?]);
        out.extend_from_slice(number);
        rest = behind;
    }
    Some(out)
}

/// Refuses every secp256r1 signature with an s of the upper half.
pub(super) fn low_s_only(q: &CaseQuestion) -> Value {
    let mut result = ours(q);
    for verdict in result["verdicts"].as_array_mut().into_iter().flatten() {
        let envelope = verdict["envelope"].as_str().unwrap_or_default();
        let signature = envelope
            .split_once("secp256r1:pkid=")
            .and_then(|(_, rest)| rest.split_once(";sig="))
            .and_then(|(_, rest)| base64::decode(rest.lines().next()?));
        if signature.is_some_and(|s| s[32] >= 0x80) {
            verdict["verdict"] = "not-verified".into();
            verdict["envelope"] = Value::Null;
        }
    }
    result
}
