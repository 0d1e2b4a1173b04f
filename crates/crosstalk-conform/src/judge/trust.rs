//! Signatures and trust files. No network and no store: the case holds what they would say.

use super::{
    Judgement, accepted_or_rejected, equal, key_of, no_error, optional, parsed, same_bytes, shown,
    text, writes,
};
use crate::case::CaseFile;
use crate::question::{CaseFailure, CaseQuestion, Implementation, bytes_in, part};
use crate::subset::subset;
use serde_json::Value;

/// The time of a check that names none.
const NOW: &str = "2025-10-10T12:00:00Z";

/// The time of a check.
pub(super) fn time(case: &CaseFile) -> &str {
    optional(case, "at").unwrap_or(NOW)
}

pub(super) fn sign(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let question = CaseQuestion::new("sign")
        .with_bytes("input", case.section("input")?)
        .with("seed", case.get("seed"))
        .with("algorithm", case.get("algorithm"))
        .with("pkid", case.get("pkid"))
        .with("at", case.get("at"))
        .with("with_key", case.has("with-key"))
        .with("replace", case.has("replace"));
    let result = tested.answer(&question)?;
    accepted_or_rejected(case, None, &result, |signed| {
        if let Some(expected) = case.optional_json("json")? {
            let envelope = bytes_in(signed, "output")?;
            let report = parsed(tested, &envelope, "strict", true)?;
            no_error(&report)?;
            return subset(&expected, &report);
        }
        let signed_bytes = bytes_in(signed, "signed_bytes")?;
        if let Some(bytes) = case.optional("signed-bytes") {
            same_bytes(bytes, &signed_bytes)?;
        }
        writes(case, signed)
    })
}

pub(super) fn verify(case: &CaseFile, tested: &dyn Implementation) -> Judgement {
    let trust = text(case.optional("trust").unwrap_or_default())?;
    let key = case.optional("key").map(key_of).transpose()?;
    let dns = case.optional_json("dns")?;
    let ask = |input: &[u8]| {
        let question = CaseQuestion::new("verify")
            .with_bytes("input", input)
            .with("at", time(case))
            .with("trust", trust)
            .with_optional("key", key)
            .with_optional("dns", dns.clone())
            .with_optional("dnssec", optional(case, "dnssec"));
        tested.answer(&question)
    };
    let result = ask(case.section("input")?)?;
    accepted_or_rejected(case, Some(case.rule()), &result, |result| {
        let verdicts = verdicts(result)?;
        for verdict in verdicts {
            well_formed(verdict)?;
            if let Some(envelope) = verdict["envelope"].as_str() {
                confirmed(verdict, &ask(envelope.as_bytes())?)?;
            }
        }
        judge_verdicts(case, verdicts)
    })
}

fn verdicts(result: &Value) -> Result<&[Value], CaseFailure> {
    part(result, "`verdicts`, a list", |r| {
        Some(r.get("verdicts")?.as_array()?.as_slice())
    })
}

fn judge_verdicts(case: &CaseFile, verdicts: &[Value]) -> Judgement {
    let came: Vec<&str> = verdicts.iter().map(|v| word(v, "verdict")).collect();
    let told = || Value::from(verdicts.to_vec());
    equal_word("verdict", case.get("verdict"), &came.join(" "), told)?;
    let [verdict] = verdicts else {
        return subset(&case.json("json")?, &told());
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
fn equal_word(field: &str, expected: &str, came: &str, told: impl Fn() -> Value) -> Judgement {
    match expected == came {
        true => Ok(()),
        false => Err(CaseFailure::mismatch(
            format_args!("`{field}`: {expected}"),
            format_args!("`{field}`: {came} in {}", told()),
        )),
    }
}

/// A text, or `none`.
fn word<'v>(verdict: &'v Value, field: &str) -> &'v str {
    verdict[field].as_str().unwrap_or("none")
}

/// Checks conditions that hold for every verdict.
fn well_formed(verdict: &Value) -> Judgement {
    equal("crosstalk.verify/1", word(verdict, "schema"))?;
    let is_shown = matches!(
        word(verdict, "verdict"),
        "verified" | "first-contact" | "unbound"
    );
    if is_shown != verdict["envelope"].is_string() {
        return Err(CaseFailure::mismatch(
            "`envelope` with the verdicts verified, first-contact and unbound, and with no other",
            verdict,
        ));
    }
    let told = ["sentence", "next"]
        .iter()
        .all(|f| verdict[*f].is_string() && !word(verdict, "sentence").is_empty());
    told.then_some(())
        .ok_or_else(|| CaseFailure::mismatch("the texts `sentence` and `next`", verdict))
}

/// The envelope that a verdict shows gets the same verdict again.
fn confirmed(verdict: &Value, again: &Value) -> Judgement {
    let same =
        |v: &Value| v["verdict"] == verdict["verdict"] && v["envelope"] == verdict["envelope"];
    match verdicts(again)? {
        [v] if same(v) => Ok(()),
        _ => Err(CaseFailure::mismatch(
            format_args!("the same verdict for `envelope` of {verdict}"),
            again,
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
pub(super) fn same_file(expected: &[u8], came: &[u8]) -> Judgement {
    let wanted = data(text(expected)?)?;
    let got = text(came).and_then(data);
    let got = got.map_err(|fault| CaseFailure::mismatch("a trust file", fault))?;
    match wanted == got {
        true => Ok(()),
        false => Err(CaseFailure::mismatch(
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
