//! Level 2 of the crates under test.

use super::{Ours, decoded, findings, strict};
use crosstalk_conform::judge::{Keys, Outcome, SignRequest, Signed, VerifyRequest};
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::signing::{self, signed_bytes};
use crosstalk_envelope::{
    Algorithm, Document, ErrorCode, KeyError, PrivateKey, PublicKey, Reading, Timestamp, rc1, scan,
};
use crosstalk_protocol::dns::{DnsAnswer, Dnssec};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{Question, Trust, Unlearned, learn, verify};
use serde_json::{Value, json};

fn finding(rule: &Rule, message: impl ToString) -> Value {
    json!([{"rule": rule.id, "code": rule.code.map(ErrorCode::as_str), "severity": "error",
        "message": message.to_string()}])
}

fn of_key(fault: KeyError) -> Value {
    finding(fault.rule, fault)
}

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn trust_of(text: &str) -> Result<Trust, Value> {
    if text.is_empty() {
        return Ok(Trust::default());
    }
    Trust::parse(text).map_err(|fault| finding(&rule::TRUST_FILE, fault))
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

impl Keys for Ours {
    fn sign(&self, text: &[u8], signer: &SignRequest<'_>) -> Result<Signed, Value> {
        let document = strict(text)?;
        let algorithm = Algorithm::parse(signer.algorithm).unwrap();
        let key = PrivateKey::from_seed(algorithm, &signer.seed).map_err(of_key)?;
        let block = match signer.with_key {
            true => key_block(signer.pkid, &key.public(), None),
            false => Vec::new(),
        };
        let with = signing::Signer {
            key: &key,
            pkid: signer.pkid,
            at: time(signer.at),
            key_block: &block,
        };
        let signed = match signer.replace {
            true => with.sign_anew(&document),
            false => with.sign(&document),
        };
        let signed = signed.map_err(|fault| findings(&[fault], document.source()))?;
        let canonical = Document::parse(&signed, Reading::Strict).canonical();
        let canonical = canonical.map_err(|fault| findings(&[fault], &signed))?;
        Ok(Signed {
            bytes: signed_bytes(algorithm, signer.pkid, &canonical),
            envelope: signed.into_bytes(),
        })
    }

    fn verify(&self, text: &[u8], asked: &VerifyRequest<'_>) -> Result<Vec<Value>, Value> {
        let text = decoded(text)?;
        let trust = trust_of(asked.trust)?;
        let key = asked.key.map(PublicKey::parse_record).transpose();
        let key = key.map_err(of_key)?;
        let dns = asked.dns.as_ref().map(answer);
        let question = Question {
            key: key.as_ref(),
            dns: dns.as_ref(),
            require_dnssec: asked.requires_dnssec,
            restore: true,
            ..Question::at(time(asked.at))
        };
        let found = scan(text, Reading::Paste);
        if found.documents.is_empty() {
            return Err(findings(&found.refused, text));
        }
        let verdict = |document: &Document<'_>| {
            let report = verify(document, &trust, &question).report();
            let mut report = serde_json::to_value(report).unwrap();
            // What the reading found belongs to whoever read.
            report["repairs"] = findings(document.diagnostics(), text);
            report
        };
        Ok(found.documents.iter().map(verdict).collect())
    }

    fn key(&self, text: &str) -> Result<Value, Value> {
        let key = match PublicKey::from_did(text) {
            Some(key) => key,
            None => PublicKey::parse_record(text),
        };
        let key = key.map_err(of_key)?;
        Ok(
            json!({"algorithm": key.algorithm().as_str(), "record": key.record(),
            "fingerprint": key.fingerprint().to_string(), "did": key.to_did(),
            "denied": key.denied().is_some()}),
        )
    }

    fn learn(&self, text: &[u8], trust: &str, at: &str) -> Outcome {
        let text = decoded(text)?;
        let mut trust = trust_of(trust)?;
        let before = trust.clone();
        let document = Document::parse(text, Reading::Paste);
        match learn(&document, &mut trust, &Question::at(time(at))) {
            Ok(_) => Ok(trust.to_text().into_bytes()),
            Err(why) => {
                assert_eq!(before, trust, "what proves nothing changes nothing");
                Err(match why {
                    Unlearned::Unproven(rule, verdict) => finding(rule, verdict.sentence()),
                    other => json!([{"message": format!("{other:?}")}]),
                })
            }
        }
    }

    fn trust_file(&self, text: &str) -> Outcome {
        let trust = Trust::parse(text).map_err(|fault| finding(&rule::TRUST_FILE, fault))?;
        Ok(trust.to_text().into_bytes())
    }

    fn rc1(&self, text: &[u8], key: Option<&str>) -> String {
        let key = key.map(|record| PublicKey::parse_record(record).unwrap());
        let verified = match decoded(text) {
            Ok(text) => rc1::verify(text, key.as_ref()).is_ok(),
            Err(_) => false,
        };
        if verified { "verified" } else { "not-verified" }.into()
    }
}
