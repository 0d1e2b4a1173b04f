//! Level 2: signatures, keys and trust files. There is no network and no store: what they would say is in the case.

use super::{Implementation, Outcome, accepted, carries, equal, line, same_bytes, shown};
use crate::case::Case;
use crate::subset::subset;
use serde_json::Value;

/// Who signs, and how.
pub(crate) struct Signer<'c> {
    /// The private key: the seed of RFC 8032, or the scalar of secp256r1.
    pub(crate) seed: [u8; 32],
    pub(crate) algorithm: &'c str,
    pub(crate) pkid: &'c str,
    pub(crate) at: &'c str,
    /// `meta: key` is asked for.
    pub(crate) with_key: bool,
    /// A signature that is there may be replaced.
    pub(crate) replace: bool,
}

/// What came out of signing.
pub(crate) struct Signed {
    pub(crate) envelope: Vec<u8>,
    /// The bytes that the signature was made over.
    pub(crate) bytes: Vec<u8>,
}

/// What a verifier knows besides the text.
pub(crate) struct Asked<'c> {
    pub(crate) at: &'c str,
    /// The trust file; empty without one.
    pub(crate) trust: &'c str,
    /// The record of the key that the caller gives.
    pub(crate) key: Option<&'c str>,
    /// What the DNS said, if it was asked.
    pub(crate) dns: Option<Value>,
    pub(crate) requires_dnssec: bool,
}

/// What an implementation of level 2 offers. A refusal is a list of findings.
pub(crate) trait Keys {
    /// The envelope, signed.
    fn sign(&self, text: &[u8], signer: &Signer<'_>) -> Result<Signed, Value>;
    /// `crosstalk.verify/1` for each envelope of a paste.
    fn verify(&self, text: &[u8], asked: &Asked<'_>) -> Result<Vec<Value>, Value>;
    /// `{"algorithm", "fingerprint", "did", "record"}` of a record or a did:key id.
    fn key(&self, text: &str) -> Result<Value, Value>;
    /// The trust file after it took over what an envelope proves.
    fn learn(&self, text: &[u8], trust: &str, at: &str) -> Outcome;
    /// The trust file, read and written again.
    fn trust_file(&self, text: &str) -> Outcome;
    /// The verdict on the rc1 form.
    fn rc1(&self, text: &[u8], key: Option<&str>) -> String;
}

/// The time of a check that names none.
const NOW: &str = "2025-10-10T12:00:00Z";

pub(super) fn judge(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let input = case.section("input")?;
    match case.op() {
        "sign" => sign(case, tested),
        "verify" => verify(case, tested),
        "key" => match (tested.key(text(line(input)?)?), case.get("expect")) {
            (Err(findings), "reject") => carries(case, &findings, "error"),
            (Ok(key), "" | "accept") => subset(&case.json("json")?, &key),
            (Ok(came) | Err(came), _) => Err(format!("came {came}")),
        },
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
            let key = optional(case, "key")?.map(line).transpose()?;
            let verdict = tested.rc1(input, key.map(text).transpose()?);
            equal(case.get("verdict"), &verdict)
        }
        other => Err(format!("the op `{other}` is unknown")),
    }
}

fn at(case: &Case) -> &str {
    if case.has("at") { case.get("at") } else { NOW }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|e| e.to_string())
}

fn optional<'c>(case: &'c Case, title: &str) -> Result<Option<&'c [u8]>, String> {
    match case.all(title).next() {
        Some(_) => case.section(title).map(Some),
        None => Ok(None),
    }
}

/// It is refused, by the rule and with the code of the case.
fn refused(case: &Case, outcome: Outcome) -> Result<(), String> {
    match outcome {
        Err(findings) => carries(case, &findings, "error"),
        Ok(text) => Err(format!("expected a refusal\ncame\n{}", shown(&text))),
    }
}

fn sign(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let signer = Signer {
        seed: seed(case.get("seed"))?,
        algorithm: case.get("algorithm"),
        pkid: case.get("pkid"),
        at: case.get("at"),
        with_key: case.has("with-key"),
        replace: case.has("replace"),
    };
    let signed = tested.sign(case.section("input")?, &signer);
    if case.get("expect") == "reject" {
        return super::refused(case, signed.map(|s| s.envelope));
    }
    let signed = signed.map_err(|findings| format!("expected a text\ncame {findings}"))?;
    if optional(case, "json")?.is_some() {
        let report = tested.parse(&signed.envelope, "strict", true);
        super::no_error(&report)?;
        return subset(&case.json("json")?, &report);
    }
    if let Some(bytes) = optional(case, "signed-bytes")? {
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

fn verify(case: &Case, tested: &dyn Implementation) -> Result<(), String> {
    let key = optional(case, "key")?.map(line).transpose()?;
    let asked = Asked {
        at: at(case),
        trust: text(optional(case, "trust")?.unwrap_or_default())?,
        key: key.map(text).transpose()?,
        dns: optional(case, "dns")?
            .map(|_| case.json("dns"))
            .transpose()?,
        requires_dnssec: case.has("dnssec"),
    };
    let verdicts = tested.verify(case.section("input")?, &asked);
    if case.get("expect") == "reject" {
        return match verdicts {
            Err(findings) => carries(case, &findings, "error"),
            Ok(came) => Err(format!("expected a refusal\ncame {}", Value::from(came))),
        };
    }
    let verdicts = verdicts.map_err(|findings| format!("expected a verdict\ncame {findings}"))?;
    let came: Vec<&str> = verdicts.iter().map(|v| word(v, "verdict")).collect();
    let told = || Value::from(verdicts.clone()).to_string();
    equal(case.get("verdict"), &came.join(" ")).map_err(|fault| format!("{fault}\n{}", told()))?;
    for verdict in &verdicts {
        well_formed(verdict)?;
        confirmed(verdict, tested, &asked)?;
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
            equal(case.get(key), word(verdict, field))
                .map_err(|fault| format!("`{key}`: {fault}\n{}", told()))?;
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
    if let Some(envelope) = optional(case, "verified")? {
        let came = without_blank_lines(word(verdict, "envelope"));
        same_bytes(
            without_blank_lines(text(envelope)?).as_bytes(),
            came.as_bytes(),
        )?;
    }
    if let Some(body) = optional(case, "restored")? {
        same_bytes(body, format!("{}\n", word(verdict, "restored")).as_bytes())?;
    }
    match optional(case, "json")? {
        Some(_) => subset(&case.json("json")?, verdict),
        None => Ok(()),
    }
}

/// A text, or `none`.
fn word<'v>(verdict: &'v Value, field: &str) -> &'v str {
    verdict[field].as_str().unwrap_or("none")
}

/// What is true of every verdict.
fn well_formed(verdict: &Value) -> Result<(), String> {
    equal("crosstalk.verify/1", word(verdict, "schema"))?;
    let is_shown = matches!(
        word(verdict, "verdict"),
        "verified" | "first-contact" | "unbound"
    );
    if is_shown != verdict["envelope"].is_string() {
        return Err(format!(
            "expected a rebuilt envelope with `verified`, `first-contact` and `unbound` alone\ncame {verdict}"
        ));
    }
    let told = ["sentence", "next"]
        .iter()
        .all(|f| verdict[*f].is_string() && !word(verdict, "sentence").is_empty());
    told.then_some(()).ok_or(format!(
        "expected a sentence and what to do\ncame {verdict}"
    ))
}

/// What is shown as verified gets the same verdict again.
fn confirmed(
    verdict: &Value,
    tested: &dyn Implementation,
    asked: &Asked<'_>,
) -> Result<(), String> {
    let Some(envelope) = verdict["envelope"].as_str() else {
        return Ok(());
    };
    let again = tested.verify(envelope.as_bytes(), asked);
    let again = again.map_err(|findings| format!("the rebuilt envelope is refused: {findings}"))?;
    let same = |v: &Value| v["verdict"] == verdict["verdict"] && v["envelope"] == *envelope;
    match again.as_slice() {
        [v] if same(v) => Ok(()),
        _ => Err(format!(
            "the rebuilt envelope gets another verdict\n{}",
            Value::from(again)
        )),
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
fn same_trust(expected: &[u8], came: &[u8]) -> Result<(), String> {
    let (wanted, got) = (data(text(expected)?)?, data(text(came)?)?);
    match wanted == got {
        true => Ok(()),
        false => Err(format!(
            "expected\n{}came\n{}",
            shown(expected),
            shown(came)
        )),
    }
}

/// The entries of a trust file, in an order of their own; no senders are the same as an empty list of them.
fn data(file: &str) -> Result<Value, String> {
    let value: toml::Value = toml::from_str(file).map_err(|e| e.to_string())?;
    let mut value = serde_json::to_value(value).map_err(|e| e.to_string())?;
    for table in ["key", "dns"] {
        if let Some(entries) = value[table].as_array_mut() {
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
