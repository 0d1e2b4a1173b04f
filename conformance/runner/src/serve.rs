//! Questions and answers as lines of JSON: the other end of `crosstalk conform --program`, written from the section
//! "Running a program against it" of `conformance/README.md`.

use crate::Ours;
use crosstalk_conform::judge::{
    Audits as _, CollateRequest, ConsentSetting, Consents as _, HopRequest, Implementation as _,
    Keys as _, Outcome, Polls as _, Redact as _, RedactRequest, Relays as _, ResolveRequest,
    SignRequest, VerifyRequest,
};
use crosstalk_envelope::base64;
use serde_json::{Value, json};
use std::panic::catch_unwind;

/// The answer to a question.
pub fn answer(line: &str) -> String {
    let question: Value = match serde_json::from_str(line) {
        Ok(question) => question,
        Err(fault) => return json!({"id": null, "error": fault.to_string()}).to_string(),
    };
    let id = &question["id"];
    let answer = match catch_unwind(|| result(&question)) {
        Ok(Some(result)) => json!({"id": id, "result": result}),
        Ok(None) => json!({"id": id, "unsupported": true}),
        Err(_) => json!({"id": id, "error": "it panicked"}),
    };
    answer.to_string()
}

/// `key`, or the bytes of `key_base64`.
fn bytes(question: &Value, key: &str) -> Vec<u8> {
    match question[key].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => base64::decode(question[format!("{key}_base64")].as_str().unwrap()).unwrap(),
    }
}

fn put(result: &mut Value, key: &str, bytes: Vec<u8>) {
    match String::from_utf8(bytes) {
        Ok(text) => result[key] = text.into(),
        Err(fault) => result[format!("{key}_base64")] = base64::encode(fault.as_bytes()).into(),
    }
}

fn output(outcome: Outcome) -> Value {
    let mut result = json!({});
    match outcome {
        Ok(text) => put(&mut result, "output", text),
        Err(errors) => result["errors"] = errors,
    }
    result
}

fn or_errors(outcome: Result<Value, Value>) -> Value {
    outcome.unwrap_or_else(|errors| json!({"errors": errors}))
}

fn words<'q>(question: &'q Value, key: &str) -> Vec<&'q str> {
    let words = question[key].as_array().into_iter().flatten();
    words.filter_map(Value::as_str).collect()
}

fn seed(hex: &str) -> [u8; 32] {
    let byte = |at: usize| u8::from_str_radix(hex.get(2 * at..2 * at + 2).unwrap(), 16).unwrap();
    std::array::from_fn(byte)
}

fn result(question: &Value) -> Option<Value> {
    let input = || bytes(question, "input");
    let get = |key: &str| question[key].as_str();
    let need = |key: &str| get(key).unwrap();
    let is = |key: &str| question[key] == true;
    let json_of = |key: &str| question.get(key).cloned();
    Some(match need("op") {
        "parse" => Ours.parse(&input(), need("reading"), get("binding") == Some("one")),
        "canonical" => output(Ours.canonical(&input())),
        "fmt" => output(Ours.fmt(&input(), is("fence"))),
        "build" => output(Ours.build(&input())),
        "address" => or_errors(Ours.address(&input(), &question["schemes"])),
        "resolve" => {
            let request = ResolveRequest {
                names: question["names"].clone(),
                domain: get("domain"),
                dns: json_of("dns"),
                requires_dnssec: get("dnssec") == Some("required"),
            };
            Ours.resolve(&input(), &request)
        }
        "id" => json!({"form": Ours.id_form(&input())}),
        "ids" => {
            let count = question["count"].as_u64().and_then(|c| c.try_into().ok());
            json!({"ids": Ours.new_ids(need("form"), count.unwrap())})
        }
        "diagnose" => Ours.diagnose(&input()),
        "integrity" => json!({"fields": Ours.integrity(&input())}),
        "migrate" => output(Ours.migrate(&input())),
        "edit" => {
            let (namespace, key) = (need("namespace"), need("key"));
            output(Ours.edit(&input(), need("change"), namespace, key, need("value")))
        }
        "reply" => {
            let code = get("code").unwrap_or_default();
            output(Ours.reply(&input(), need("reply"), code))
        }
        "taxonomy" => json!({"codes": Ours.taxonomy()}),
        "exit" => json!({"exit": Ours.exit(&input(), need("reading"))}),
        "redact" => {
            let request = RedactRequest {
                envelope: get("as") == Some("envelope"),
                only: words(question, "only"),
                names: words(question, "names"),
                drop_signature: is("drop_signature"),
            };
            match Ours.redact(&input(), &request) {
                Ok(redacted) => {
                    let mut result = json!({"found": redacted.found});
                    put(&mut result, "output", redacted.text);
                    result
                }
                Err(errors) => json!({"errors": errors}),
            }
        }
        "sign" => {
            let request = SignRequest {
                seed: seed(need("seed")),
                algorithm: need("algorithm"),
                pkid: need("pkid"),
                at: need("at"),
                with_key: is("with_key"),
                replace: is("replace"),
            };
            match Ours.sign(&input(), &request) {
                Ok(signed) => {
                    let mut result = json!({});
                    put(&mut result, "output", signed.envelope);
                    put(&mut result, "signed_bytes", signed.bytes);
                    result
                }
                Err(errors) => json!({"errors": errors}),
            }
        }
        "verify" => {
            let request = VerifyRequest {
                at: need("at"),
                trust: get("trust").unwrap_or_default(),
                key: get("key"),
                dns: json_of("dns"),
                requires_dnssec: get("dnssec") == Some("required"),
            };
            let verdicts = Ours.verify(&input(), &request);
            or_errors(verdicts.map(|verdicts| json!({"verdicts": verdicts})))
        }
        "key" => or_errors(Ours.key(need("input"))),
        "learn" => output(Ours.learn(&input(), need("trust"), need("at"))),
        "trust-file" => output(Ours.trust_file(need("input"))),
        "rc1" => json!({"verdict": Ours.rc1(&input(), get("key"))}),
        "collate" => {
            let request = CollateRequest {
                poll: get("poll"),
                at: get("at"),
            };
            match Ours.collate(&input(), &request) {
                Ok((collation, envelopes)) => {
                    let mut result = json!({"collation": collation});
                    put(&mut result, "output", envelopes);
                    result
                }
                Err(errors) => json!({"errors": errors}),
            }
        }
        "consent" => {
            let before = bytes(question, "before");
            let setting = ConsentSetting {
                before: &before,
                before_proof: need("before_proof"),
                proof: need("proof"),
                is_agent: get("by") == Some("agent"),
                at: need("at"),
                leaves: get("leaves"),
                signed: words(question, "signed"),
                border: get("border") == Some("all"),
                authority: get("authority"),
            };
            or_errors(Ours.consent(&input(), &setting))
        }
        "hop" => {
            let request = HopRequest {
                at: need("at"),
                by: need("by"),
                key: get("seed").map(|hex| (seed(hex), need("algorithm"), need("pkid"))),
            };
            output(Ours.hop(&input(), &request))
        }
        "check-hop" => or_errors(Ours.check_hop(&input(), need("key"))),
        "relays" => Ours.relays(need("input"), &question["dns"], is("private")),
        "audit" => match Ours.audit(need("what"), &question["input"]) {
            Ok(found) => json!({"holds": true, "found": found}),
            Err(found) => json!({"holds": false, "found": found}),
        },
        "trace" => Ours.trace(&input(), get("key")),
        _ => return None,
    })
}
