//! Signatures, keys and trust files, by the crates under test.

use super::{Reply, broken, findings, input, need, strict, time, written};
use crosstalk_conform::CaseQuestion;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::signing::{self, signed_bytes};
use crosstalk_envelope::{
    Algorithm, Document, KeyError, PrivateKey, PublicKey, Reading, rc1 as rc1_form, scan,
};
use crosstalk_protocol::dns::{DnsAnswer, Dnssec};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{
    Trust, Unlearned, VerifyContext as Check, learn as learn_from, verify as verify_with,
};
use serde_json::{Value, json};

fn of_key(fault: KeyError) -> Value {
    broken(fault.rule, fault)
}

fn trust_of(text: &str) -> Result<Trust, Value> {
    if text.is_empty() {
        return Ok(Trust::default());
    }
    Trust::parse(text).map_err(|fault| broken(&rule::TRUST_FILE, fault))
}

fn answer(dns: &Value) -> DnsAnswer {
    let dnssec = || Dnssec::parse(dns["dnssec"].as_str().unwrap_or("indeterminate")).unwrap();
    let reason = |key: &str| dns[key].as_str().unwrap().to_owned();
    if let Some(keys) = dns["keys"].as_array() {
        let read = |key: &Value| PublicKey::parse_record(key.as_str().unwrap()).unwrap();
        return DnsAnswer::Keys {
            keys: keys.iter().map(read).collect(),
            ttl: u32::try_from(dns["ttl"].as_u64().unwrap()).unwrap(),
            dnssec: dnssec(),
        };
    }
    if !dns["absent"].is_null() {
        DnsAnswer::Absent { dnssec: dnssec() }
    } else if !dns["wrong"].is_null() {
        let reason = reason("wrong");
        DnsAnswer::Wrong { reason }
    } else {
        let reason = reason("unavailable");
        DnsAnswer::Unavailable { reason }
    }
}

/// The private key of a question.
pub(super) fn private_key(q: &CaseQuestion) -> Result<PrivateKey, Value> {
    let hex = need(q, "seed");
    let byte = |at: usize| u8::from_str_radix(hex.get(2 * at..2 * at + 2).unwrap(), 16).unwrap();
    let algorithm = Algorithm::parse(need(q, "algorithm")).unwrap();
    PrivateKey::from_seed(algorithm, &std::array::from_fn(byte)).map_err(of_key)
}

pub(super) fn sign(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let document = strict(&text)?;
    let (key, pkid) = (private_key(q)?, need(q, "pkid"));
    let block = match q.value("with_key") == true {
        true => key_block(pkid, &key.public(), None),
        false => Vec::new(),
    };
    let signer = signing::Signer {
        key: &key,
        pkid,
        at: time(need(q, "at")),
        key_block: &block,
    };
    let signed = match q.value("replace") == true {
        true => signer.sign_anew(&document),
        false => signer.sign(&document),
    };
    let signed = signed.map_err(|fault| findings(&[fault], &text))?;
    let canonical = Document::parse(&signed, Reading::Strict).canonical();
    let canonical = canonical.map_err(|fault| findings(&[fault], &signed))?;
    let bytes = signed_bytes(key.algorithm(), pkid, &canonical);
    Ok(json!({"output": signed, "signed_bytes": String::from_utf8(bytes).unwrap()}))
}

pub(super) fn verify(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let trust = trust_of(q.get("trust").unwrap_or_default())?;
    let key = q.get("key").map(PublicKey::parse_record).transpose();
    let key = key.map_err(of_key)?;
    let dns = Some(q.value("dns"))
        .filter(|dns| !dns.is_null())
        .map(answer);
    let check = Check {
        key: key.as_ref(),
        dns: dns.as_ref(),
        require_dnssec: q.get("dnssec") == Some("required"),
        restore: true,
        ..Check::at(time(need(q, "at")))
    };
    let found = scan(&text, Reading::Paste);
    if found.documents.is_empty() {
        return Err(findings(&found.rejected, &text));
    }
    let verdict = |document: &Document<'_>| {
        let report = verify_with(document, &trust, &check).report();
        let mut report = serde_json::to_value(report).unwrap();
        // The verdict does not have the findings of the reading.
        report["repairs"] = findings(document.diagnostics(), &text);
        report
    };
    let verdicts: Vec<Value> = found.documents.iter().map(verdict).collect();
    Ok(json!({"verdicts": verdicts}))
}

pub(super) fn key(text: &str) -> Reply {
    let key = PublicKey::from_did(text).unwrap_or_else(|| PublicKey::parse_record(text));
    let key = key.map_err(of_key)?;
    Ok(
        json!({"algorithm": key.algorithm().as_str(), "record": key.record(),
        "fingerprint": key.fingerprint().to_string(), "did": key.to_did(),
        "denied": key.denied().is_some()}),
    )
}

pub(super) fn learn(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let mut trust = trust_of(need(q, "trust"))?;
    let before = trust.clone();
    let document = Document::parse(&text, Reading::Paste);
    match learn_from(&document, &mut trust, &Check::at(time(need(q, "at")))) {
        Ok(_) => written(trust.to_text()),
        Err(why) => {
            assert_eq!(before, trust, "what proves nothing changes nothing");
            Err(match why {
                Unlearned::Unproven(rule, verdict) => broken(rule, verdict.sentence()),
                other => json!([{"message": format!("{other:?}")}]),
            })
        }
    }
}

pub(super) fn file(text: &str) -> Reply {
    let trust = Trust::parse(text).map_err(|fault| broken(&rule::TRUST_FILE, fault))?;
    written(trust.to_text())
}

pub(super) fn rc1(q: &CaseQuestion) -> &'static str {
    let key = q
        .get("key")
        .map(|record| PublicKey::parse_record(record).unwrap());
    match input(q).is_ok_and(|text| rc1_form::verify(&text, key.as_ref()).is_ok()) {
        true => "verified",
        false => "not-verified",
    }
}
