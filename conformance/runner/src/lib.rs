//! The Rust crates behind the interface of the conformance suite, and as a program that `crosstalk conform --program` can
//! run: one more implementation among others.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "it runs in tests alone; a case that is wrong ends it"
)]

mod audit;
mod consent;
mod keys;
mod names;
mod poll;
mod redact;
mod relay;
mod serve;

pub use serve::answer;

use crosstalk_conform::judge::{Implementation, Outcome, ResolveRequest};
use crosstalk_envelope::id::{IdForm, new_ulid, new_uuid_v7};
use crosstalk_envelope::json::{builders, finding, report};
use crosstalk_envelope::meta::Integrity;
use crosstalk_envelope::registry::{SchemeForm, SchemeKind};
use crosstalk_envelope::reply::{self, ReceivedIds, Refusal};
use crosstalk_envelope::{
    Address, Diagnosis, Diagnostic, Document, Edit, ErrorCode, LineIndex, Migrator, Reading, Scan,
    Schemes, decode, diagnose, fence, scan,
};
use serde_json::{Value, json};

/// This implementation.
pub struct Ours;

fn reading_of(word: &str) -> Reading {
    match word {
        "strict" => Reading::Strict,
        _ => Reading::Paste,
    }
}

fn findings(found: &[Diagnostic], text: &str) -> Value {
    let lines = LineIndex::new(text);
    let list: Vec<_> = found.iter().map(|d| finding(d, &lines)).collect();
    serde_json::to_value(list).unwrap()
}

/// The text, or what is wrong with the bytes.
fn decoded(bytes: &[u8]) -> Result<&str, Value> {
    decode(bytes).map_err(|fault| findings(&[fault], &String::from_utf8_lossy(bytes)))
}

/// One strict envelope that was accepted, the rules of its intent left aside.
fn strict(bytes: &[u8]) -> Result<Document<'_>, Value> {
    let text = decoded(bytes)?;
    let document = Document::parse(text, Reading::Strict);
    match document.is_accepted() {
        true => Ok(document),
        false => Err(findings(document.diagnostics(), text)),
    }
}

impl Implementation for Ours {
    fn parse(&self, text: &[u8], reading: &str, one: bool) -> Value {
        let text = match decoded(text) {
            Ok(text) => text,
            Err(errors) => {
                return json!({"schema": "crosstalk.parse/1", "envelopes": [], "errors": errors});
            }
        };
        let found = if one {
            let mut document = Document::parse(text, reading_of(reading));
            document.check();
            let mut found = Scan::default();
            match document.is_accepted() {
                true => found.documents.push(document),
                false => found.refused = document.diagnostics().to_vec(),
            }
            found
        } else {
            scan(text, reading_of(reading))
        };
        serde_json::to_value(report(text, &found)).unwrap()
    }

    fn canonical(&self, text: &[u8]) -> Outcome {
        let text = decoded(text)?;
        let form = Document::parse(text, Reading::Strict).canonical();
        form.map(String::into_bytes)
            .map_err(|fault| findings(&[fault], text))
    }

    fn fmt(&self, text: &[u8], fenced: bool) -> Outcome {
        let text = decoded(text)?;
        let document = Document::parse(text, Reading::Paste);
        if !document.is_accepted() {
            return Err(findings(document.diagnostics(), text));
        }
        let written = document.to_well_formed();
        Ok(if fenced { fence(&written) } else { written }.into_bytes())
    }

    fn build(&self, json: &[u8]) -> Outcome {
        let built =
            builders(decoded(json)?).map_err(|fault| json!([{"message": fault.message}]))?;
        let [builder] = built.as_slice() else {
            return Err(json!([{"message": "there is not one message"}]));
        };
        let built = builder.build().map(String::into_bytes);
        built.map_err(|fault| findings(&fault.diagnostics, &fault.text))
    }

    fn address(&self, text: &[u8], schemes: &Value) -> Result<Value, Value> {
        let text = decoded(text)?;
        let mut known = Schemes::default();
        for scheme in schemes.as_array().unwrap() {
            let word = |key: &str| scheme[key].as_str().unwrap();
            let form = match word("form") {
                "authority" => SchemeForm::Authority,
                _ => SchemeForm::Opaque,
            };
            known.add(word("name"), form, SchemeKind::parse(word("kind")).unwrap());
        }
        let address: Address<'_> = known.parse(text).map_err(|fault| {
            json!([{"rule": fault.rule.id, "code": fault.rule.code.map(ErrorCode::as_str),
                "severity": "error", "message": fault.message}])
        })?;
        Ok(json!({
            "kind": known.kind(&address).map_or("name", SchemeKind::as_str),
            "scheme": address.scheme(),
            "authority": address.authority(),
            "user": address.user(),
            "host": address.host(),
            "path": address.path(),
            "query": address.query(),
            "fragment": address.fragment(),
            "text": address.to_string(),
        }))
    }

    fn resolve(&self, text: &[u8], known: &ResolveRequest<'_>) -> Value {
        names::resolve(decoded(text).unwrap(), known)
    }

    fn id_form(&self, id: &[u8]) -> String {
        match std::str::from_utf8(id).map(IdForm::of) {
            Ok(IdForm::Ulid) => "ulid",
            Ok(IdForm::UuidV7) => "uuidv7",
            _ => "opaque",
        }
        .into()
    }

    fn new_ids(&self, form: &str, count: usize) -> Vec<String> {
        let make = match form {
            "ulid" => new_ulid,
            _ => new_uuid_v7,
        };
        std::iter::repeat_with(make).take(count).collect()
    }

    fn diagnose(&self, text: &[u8]) -> Value {
        let Ok(text) = decoded(text) else {
            return Value::Null;
        };
        let document = Document::parse(text, Reading::Paste);
        match diagnose(&document) {
            Some(found) => {
                let after = match found {
                    Diagnosis::Truncated { after, .. } => Some(after),
                    _ => None,
                };
                json!({"diagnosis": found.as_str(), "after": after, "lines": found.lines()})
            }
            None => json!({"diagnosis": "none"}),
        }
    }

    fn integrity(&self, text: &[u8]) -> Value {
        let Ok(document) = strict(text) else {
            return Value::Null;
        };
        Integrity::measure(document.body_lines())
            .fields()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), Value::from(value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    fn migrate(&self, text: &[u8]) -> Outcome {
        let text = decoded(text)?;
        let found = scan(text, Reading::Strict);
        if !found.refused.is_empty() {
            return Err(findings(&found.refused, text));
        }
        let (mut migrator, mut out) = (Migrator::default(), Vec::new());
        for document in &found.documents {
            let migrated = migrator.migrate(document);
            let migrated = migrated.map_err(|fault| findings(&fault.diagnostics, &fault.text))?;
            out.extend_from_slice(migrated.text().as_bytes());
        }
        Ok(out)
    }

    fn edit(&self, text: &[u8], change: &str, block: &str, key: &str, value: &str) -> Outcome {
        let document = strict(text)?;
        let edit = Edit::new(&document);
        let edited = edit.and_then(|e| match change {
            "add" => e.add_block(block, &[(key, value)]),
            _ => e.set_key(block, key, value),
        });
        let edited = edited.map(|e| e.finish().into_bytes());
        edited.map_err(|fault| findings(&[fault], document.source()))
    }

    fn reply(&self, text: &[u8], kind: &str, code: &str) -> Outcome {
        let text = decoded(text)?;
        let mut document = Document::parse(text, Reading::Strict);
        document.check();
        let envelope = document.envelope();
        let ids = ReceivedIds::of(&envelope);
        let builder = match kind {
            "error" => {
                let code = ErrorCode::from_wire(code).unwrap();
                reply::error(&envelope, &ids, &Refusal::new(code, "It failed.", ""))
            }
            "ack" => reply::ack(&envelope, &ids, "brother"),
            "nack" => reply::nack(&envelope, &ids, "brother", "not now"),
            "respond" => reply::respond(&envelope, &ids, "brother", "Done."),
            "system" => {
                let refusal = Refusal::from_findings(document.diagnostics(), text).unwrap();
                reply::error_from_system(Some(&document), &refusal)
            }
            other => panic!("the reply `{other}` is unknown"),
        };
        let built = builder.build().map(String::into_bytes);
        built.map_err(|fault| findings(&fault.diagnostics, &fault.text))
    }

    fn taxonomy(&self) -> Value {
        let entry = |code: &ErrorCode| json!({"code": code.as_str(), "http": code.http_status(), "exit": code.exit_code()});
        ErrorCode::ALL.iter().map(entry).collect()
    }

    fn exit(&self, text: &[u8], reading: &str) -> u8 {
        let report = self.parse(text, reading, false);
        let errors = report["errors"].as_array().unwrap().iter();
        let codes = errors
            .filter(|f| f["severity"] == "error")
            .filter_map(|f| ErrorCode::from_wire(f["code"].as_str()?));
        codes.map(ErrorCode::exit_code).max().unwrap_or(0)
    }
}
