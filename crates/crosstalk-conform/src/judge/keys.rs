//! Level 2: signatures, keys and trust files. No network and no store: the case holds what they would say.

use super::{
    Implementation, Judged, Outcome, accepted, accepted_or_refused, carries, equal, line,
    rejection, same_bytes, shown, text,
};
use crate::case::CaseFile;
use crate::fault::Fault;
use crate::subset::subset;
use serde_json::Value;

/// Who signs, and how.
#[derive(Clone, Debug)]
pub struct SignRequest<'c> {
    /// The private key: the seed of RFC 8032, or the scalar of secp256r1.
    pub seed: [u8; 32],
    /// `ed25519` or `secp256r1`.
    pub algorithm: &'c str,
    /// The id of the key.
    pub pkid: &'c str,
    /// The value of `Signed-At`.
    pub at: &'c str,
    /// Whether `meta: key` is added.
    pub with_key: bool,
    /// Whether a signature that is there may be replaced.
    pub replace: bool,
}

/// A signed envelope.
#[derive(Clone, Debug)]
pub struct Signed {
    /// Its text.
    pub envelope: Vec<u8>,
    /// The bytes that the signature is made over.
    pub bytes: Vec<u8>,
}

/// What a verifier knows besides the text.
#[derive(Clone, Debug)]
pub struct VerifyRequest<'c> {
    /// The time of the check.
    pub at: &'c str,
    /// The trust file; empty without one.
    pub trust: &'c str,
    /// The record of the key that the caller gives.
    pub key: Option<&'c str>,
    /// What the DNS said, if it was asked.
    pub dns: Option<Value>,
    /// Whether only answers with DNSSEC count.
    pub requires_dnssec: bool,
}

/// What an implementation of level 2 offers. The error of a method is a rejection: the list of diagnostics.
#[allow(
    clippy::missing_errors_doc,
    reason = "they are all of one kind, which the trait describes"
)]
pub trait Keys {
    /// The envelope, signed.
    fn sign(&self, text: &[u8], request: &SignRequest<'_>) -> Result<Signed, Value>;
    /// `crosstalk.verify/1` for each envelope of a paste.
    fn verify(&self, text: &[u8], request: &VerifyRequest<'_>) -> Result<Vec<Value>, Value>;
    /// `{"algorithm", "fingerprint", "did", "record"}` of a record or a did:key id.
    fn key(&self, text: &str) -> Result<Value, Value>;
    /// The trust file after it took over what an envelope proves.
    fn learn(&self, text: &[u8], trust: &str, at: &str) -> Outcome;
    /// The trust file, read and written again.
    fn trust_file(&self, text: &str) -> Outcome;
    /// `verified` or `not-verified` for the rc1 form.
    fn rc1(&self, text: &[u8], key: Option<&str>) -> String;
}

/// The time of a check that names none.
const NOW: &str = "2025-10-10T12:00:00Z";

pub(super) fn judge(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let input = case.section("input")?;
    match case.op() {
        "sign" => sign(case, tested),
        "verify" => verify(case, tested),
        "key" => {
            let came = tested.key(text(line(input)?)?);
            accepted_or_refused(case, came, |key| subset(&case.json("json")?, key))
        }
        "learn" => {
            let trust = text(case.section("trust")?)?;
            let after = tested.learn(input, trust, at(case));
            match case.get("expect") {
                "reject" => refused(case, after),
                _ => same_trust(case.section("after")?, &accepted(after)?),
            }
        }
        "trust-file" => match (tested.trust_file(text(input)?), case.get("expect")) {
            (written, "reject") => refused(case, written),
            (written, _) => same_trust(input, &accepted(written)?),
        },
        "rc1" => {
            let key = case.optional("key").map(line).transpose()?;
            let verdict = tested.rc1(input, key.map(text).transpose()?);
            equal(case.get("verdict"), &verdict)
        }
        other => Err(Fault::Case(format!("the op `{other}` is unknown"))),
    }
}

fn at(case: &CaseFile) -> &str {
    if case.has("at") { case.get("at") } else { NOW }
}

/// It is rejected, by the rule and with the code of the case.
fn refused(case: &CaseFile, outcome: Outcome) -> Judged {
    match outcome {
        Err(findings) => carries(case, &findings),
        Ok(text) => Err(Fault::mismatch(rejection(case), shown(&text))),
    }
}

fn sign(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let request = SignRequest {
        seed: seed(case.get("seed"))?,
        algorithm: case.get("algorithm"),
        pkid: case.get("pkid"),
        at: case.get("at"),
        with_key: case.has("with-key"),
        replace: case.has("replace"),
    };
    let signed = tested.sign(case.section("input")?, &request);
    if case.get("expect") == "reject" {
        return super::refused(case, signed.map(|s| s.envelope));
    }
    let signed = signed.map_err(|findings| Fault::mismatch("a signed envelope", findings))?;
    if let Some(expected) = case.optional_json("json")? {
        let report = tested.parse(&signed.envelope, "strict", true);
        super::no_error(&report)?;
        return subset(&expected, &report);
    }
    if let Some(bytes) = case.optional("signed-bytes") {
        same_bytes(bytes, &signed.bytes)?;
    }
    same_bytes(case.section("output")?, &signed.envelope)
}

pub(super) fn seed(hex: &str) -> Result<[u8; 32], String> {
    let wrong = || format!("`{hex}` is not 64 hex digits");
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    bytes.and_then(|b| b.try_into().ok()).ok_or_else(wrong)
}

fn verify(case: &CaseFile, tested: &dyn Implementation) -> Judged {
    let key = case.optional("key").map(line).transpose()?;
    let request = VerifyRequest {
        at: at(case),
        trust: text(case.optional("trust").unwrap_or_default())?,
        key: key.map(text).transpose()?,
        dns: case.optional_json("dns")?,
        requires_dnssec: case.has("dnssec"),
    };
    let verdicts = tested.verify(case.section("input")?, &request);
    if case.get("expect") == "reject" {
        return match verdicts {
            Err(findings) => carries(case, &findings),
            Ok(came) => Err(Fault::mismatch(rejection(case), Value::from(came))),
        };
    }
    let verdicts = verdicts.map_err(|findings| Fault::mismatch("a verdict", findings))?;
    let came: Vec<&str> = verdicts.iter().map(|v| word(v, "verdict")).collect();
    let told = || Value::from(verdicts.clone());
    equal_word("verdict", case.get("verdict"), &came.join(" "), told)?;
    for verdict in &verdicts {
        well_formed(verdict)?;
        confirmed(verdict, tested, &request)?;
    }
    let [verdict] = verdicts.as_slice() else {
        return subset(&case.json("json")?, &verdicts.into());
    };
    for (key, field) in [
        ("body", "body"),
        ("trust", "trust"),
        ("by", "rule"),
        ("code", "code"),
    ] {
        if case.has(key) {
            equal_word(field, case.get(key), word(verdict, field), told)?;
        }
    }
    if case.has("after") {
        equal(case.get("after"), &verdict["after"].to_string())?;
    }
    if case.has("lines") {
        let lines: Vec<String> = verdict["lines"]
            .as_array()
            .map_or(Vec::new(), |l| l.iter().map(Value::to_string).collect());
        equal(case.get("lines"), &lines.join(" "))?;
    }
    if let Some(envelope) = case.optional("verified") {
        let came = without_blank_lines(word(verdict, "envelope"));
        same_bytes(
            without_blank_lines(text(envelope)?).as_bytes(),
            came.as_bytes(),
        )?;
    }
    if let Some(body) = case.optional("restored") {
        same_bytes(body, format!("{}\n", word(verdict, "restored")).as_bytes())?;
    }
    match case.optional_json("json")? {
        Some(expected) => subset(&expected, verdict),
        None => Ok(()),
    }
}

/// A word of a verdict is the expected one.
fn equal_word(field: &str, expected: &str, came: &str, told: impl Fn() -> Value) -> Judged {
    match expected == came {
        true => Ok(()),
        false => Err(Fault::mismatch(
            format_args!("`{field}`: {expected}"),
            format_args!("`{field}`: {came} in {}", told()),
        )),
    }
}

/// A text, or `none`.
fn word<'v>(verdict: &'v Value, field: &str) -> &'v str {
    verdict[field].as_str().unwrap_or("none")
}

/// What is true of every verdict.
fn well_formed(verdict: &Value) -> Judged {
    equal("crosstalk.verify/1", word(verdict, "schema"))?;
    let is_shown = matches!(
        word(verdict, "verdict"),
        "verified" | "first-contact" | "unbound"
    );
    if is_shown != verdict["envelope"].is_string() {
        return Err(Fault::mismatch(
            "`envelope` with the verdicts verified, first-contact and unbound, and with no other",
            verdict,
        ));
    }
    let told = ["sentence", "next"]
        .iter()
        .all(|f| verdict[*f].is_string() && !word(verdict, "sentence").is_empty());
    told.then_some(())
        .ok_or_else(|| Fault::mismatch("the texts `sentence` and `next`", verdict))
}

/// The envelope that a verdict shows gets the same verdict again.
fn confirmed(verdict: &Value, tested: &dyn Implementation, request: &VerifyRequest<'_>) -> Judged {
    let Some(envelope) = verdict["envelope"].as_str() else {
        return Ok(());
    };
    let again = tested.verify(envelope.as_bytes(), request);
    let expected = || format!("the same verdict for `envelope` of {verdict}");
    let again = again.map_err(|findings| Fault::mismatch(expected(), findings))?;
    let same = |v: &Value| v["verdict"] == verdict["verdict"] && v["envelope"] == *envelope;
    match again.as_slice() {
        [v] if same(v) => Ok(()),
        _ => Err(Fault::mismatch(expected(), Value::from(again))),
    }
}

/// An envelope without the blank lines above its body, which a verifier may put there.
fn without_blank_lines(envelope: &str) -> String {
    let (mut out, mut in_head) = (String::new(), true);
    for line in envelope.split_inclusive('\n') {
        in_head &= !line.starts_with("body:") && !line.starts_with("response:");
        if !in_head || line != "\n" {
            out.push_str(line);
        }
    }
    out
}

/// Two trust files say the same, in any order.
fn same_trust(expected: &[u8], came: &[u8]) -> Judged {
    let wanted = data(text(expected)?)?;
    let got = text(came).and_then(data);
    let got = got.map_err(|fault| Fault::mismatch("a trust file", fault))?;
    match wanted == got {
        true => Ok(()),
        false => Err(Fault::mismatch(
            format_args!("the entries of\n{}", shown(expected)),
            format_args!("the entries of\n{}", shown(came)),
        )),
    }
}

/// The entries of a trust file, in an order of their own; no senders are the same as an empty list of them.
fn data(file: &str) -> Result<Value, String> {
    let value: toml::Value = toml::from_str(file).map_err(|e| e.to_string())?;
    let mut value = serde_json::to_value(value).map_err(|e| e.to_string())?;
    for table in ["key", "dns"] {
        if let Some(entries) = value.get_mut(table).and_then(Value::as_array_mut) {
            for entry in &mut *entries {
                let fields = entry.as_object_mut().ok_or("an entry is no table")?;
                fields.retain(|name, v| {
                    name != "senders" || v.as_array().is_none_or(|l| !l.is_empty())
                });
                fields.sort_keys();
            }
            entries.sort_by_key(Value::to_string);
        }
    }
    Ok(value)
}
