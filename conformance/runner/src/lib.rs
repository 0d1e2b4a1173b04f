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
mod name;
mod package;
mod relay;
mod trust;

pub use package::{case_head, case_section, judge_case};

use crosstalk_conform::{CaseFailure, CaseQuestion, Implementation};
use crosstalk_envelope::id::{IdForm, new_ulid, new_uuid_v7};
use crosstalk_envelope::json::{builders, finding, report};
use crosstalk_envelope::meta::Integrity;
use crosstalk_envelope::registry::{Rule, SchemeForm, SchemeKind, rule};
use crosstalk_envelope::reply::{self, ReceivedIds, Rejection};
use crosstalk_envelope::{
    Address, Diagnosis, Diagnostic, Document, Edit, ErrorCode, LineIndex, Migrator, Reading, Scan,
    Schemes, Timestamp, decode, diagnose, fence, scan,
};
use crosstalk_protocol::poll::{Paper, collate};
use crosstalk_protocol::redact::{FoundPii, PiiKind, RedactionRules, redact, redact_envelope};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::panic::catch_unwind;

/// The Rust crates of this repository.
pub struct Ours;

/// The result of a question, or the diagnostics of a rejection.
type Reply = Result<Value, Value>;

impl Implementation for Ours {
    fn answer(&self, question: &CaseQuestion) -> Result<Value, CaseFailure> {
        let reply = reply_to(question).ok_or(CaseFailure::Unsupported)?;
        Ok(reply.unwrap_or_else(|errors| json!({"errors": errors})))
    }
}

/// The answer to a question of `crosstalk conform --program`: a line of JSON for a line of JSON.
pub fn answer(line: &str) -> String {
    let question: Map<String, Value> = match serde_json::from_str(line) {
        Ok(question) => question,
        Err(fault) => return json!({"id": null, "error": fault.to_string()}).to_string(),
    };
    let id = question.get("id").cloned();
    let answer = match catch_unwind(|| Ours.answer(&question.into())) {
        Ok(Ok(result)) => json!({"id": id, "result": result}),
        Ok(Err(_)) => json!({"id": id, "unsupported": true}),
        Err(_) => json!({"id": id, "error": "it panicked"}),
    };
    answer.to_string()
}

fn reply_to(q: &CaseQuestion) -> Option<Reply> {
    Some(match q.op() {
        "parse" => Ok(parse(q)),
        "canonical" => canonical(q),
        "fmt" => well_formed(q),
        "build" => build(q),
        "address" => address(q),
        "resolve" => input(q).map(|text| name::resolve(&text, q)),
        "id" => Ok(json!({"form": id_form(q.get("input"))})),
        "ids" => Ok(json!({"ids": new_ids(q)})),
        "diagnose" => diagnosis(q),
        "integrity" => integrity(q),
        "migrate" => migrate(q),
        "edit" => edit(q),
        "reply" => answer_envelope(q),
        "taxonomy" => Ok(json!({"codes": taxonomy()})),
        "exit" => Ok(json!({"exit": exit(q)})),
        "redact" => redacted(q),
        "collate" => collated(q),
        "sign" => trust::sign(q),
        "verify" => trust::verify(q),
        "key" => trust::key(need(q, "input")),
        "learn" => trust::learn(q),
        "trust-file" => trust::file(need(q, "input")),
        "rc1" => Ok(json!({"verdict": trust::rc1(q)})),
        "consent" => consent::consent(q),
        "hop" => relay::hop(q),
        "check-hop" => relay::check_hop(q),
        "relays" => Ok(relay::relays(q)),
        "audit" => Ok(match audit::audit(need(q, "what"), q.value("input")) {
            Ok(found) => json!({"holds": true, "found": found}),
            Err(found) => json!({"holds": false, "found": found}),
        }),
        "trace" => audit::trace(q),
        _ => return None,
    })
}

fn need<'q>(q: &'q CaseQuestion, key: &str) -> &'q str {
    q.get(key).unwrap()
}

fn words<'q>(q: &'q CaseQuestion, key: &str) -> Vec<&'q str> {
    let words = q.value(key).as_array().into_iter().flatten();
    words.filter_map(Value::as_str).collect()
}

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn findings(found: &[Diagnostic], text: &str) -> Value {
    let lines = LineIndex::new(text);
    let list: Vec<_> = found.iter().map(|d| finding(d, &lines)).collect();
    serde_json::to_value(list).unwrap()
}

/// The diagnostics of a rejection by one rule.
fn broken(rule: &Rule, message: impl ToString) -> Value {
    json!([{"rule": rule.id, "code": rule.code.map(ErrorCode::as_str), "severity": "error",
        "message": message.to_string()}])
}

/// The text of some bytes, or the diagnostics of a rejection.
fn decoded(bytes: &[u8]) -> Result<&str, Value> {
    decode(bytes).map_err(|fault| findings(&[fault], &String::from_utf8_lossy(bytes)))
}

/// The text that a question is about.
fn input(q: &CaseQuestion) -> Result<Cow<'_, str>, Value> {
    match q.get("input") {
        Some(text) => decoded(text.as_bytes()).map(Cow::Borrowed),
        None => decoded(&q.bytes("input").unwrap()).map(|text| text.to_owned().into()),
    }
}

/// One strict envelope that was accepted, the rules of its intent left aside.
fn strict(text: &str) -> Result<Document<'_>, Value> {
    let document = Document::parse(text, Reading::Strict);
    match document.is_accepted() {
        true => Ok(document),
        false => Err(findings(document.diagnostics(), text)),
    }
}

fn written(text: impl Into<String>) -> Reply {
    Ok(json!({"output": text.into()}))
}

fn parse(q: &CaseQuestion) -> Value {
    let text = match input(q) {
        Ok(text) => text,
        Err(errors) => {
            return json!({"schema": "crosstalk.parse/1", "envelopes": [], "errors": errors});
        }
    };
    let reading = match need(q, "reading") {
        "strict" => Reading::Strict,
        _ => Reading::Paste,
    };
    let found = if q.get("binding") == Some("one") {
        let mut document = Document::parse(&text, reading);
        document.check();
        let mut found = Scan::default();
        match document.is_accepted() {
            true => found.documents.push(document),
            false => found.rejected = document.diagnostics().to_vec(),
        }
        found
    } else {
        scan(&text, reading)
    };
    serde_json::to_value(report(&text, &found)).unwrap()
}

fn canonical(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let form = Document::parse(&text, Reading::Strict).canonical();
    written(form.map_err(|fault| findings(&[fault], &text))?)
}

fn well_formed(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let document = Document::parse(&text, Reading::Paste);
    if !document.is_accepted() {
        return Err(findings(document.diagnostics(), &text));
    }
    let envelope = document.to_well_formed();
    written(match q.value("fence") == true {
        true => fence(&envelope),
        false => envelope,
    })
}

fn build(q: &CaseQuestion) -> Reply {
    let built = builders(&input(q)?).map_err(|fault| json!([{"message": fault.message}]))?;
    let [builder] = built.as_slice() else {
        return Err(json!([{"message": "there is not one message"}]));
    };
    let built = builder.build();
    written(built.map_err(|fault| findings(&fault.diagnostics, &fault.text))?)
}

fn address(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let mut known = Schemes::default();
    for scheme in q.value("schemes").as_array().unwrap() {
        let word = |key: &str| scheme[key].as_str().unwrap();
        let form = match word("form") {
            "authority" => SchemeForm::Authority,
            _ => SchemeForm::Opaque,
        };
        known.add(word("name"), form, SchemeKind::parse(word("kind")).unwrap());
    }
    let address: Address<'_> = known
        .parse(&text)
        .map_err(|fault| broken(fault.rule, fault.message))?;
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

fn id_form(id: Option<&str>) -> &'static str {
    match id.map(IdForm::of) {
        Some(IdForm::Ulid) => "ulid",
        Some(IdForm::UuidV7) => "uuidv7",
        _ => "opaque",
    }
}

fn new_ids(q: &CaseQuestion) -> Vec<String> {
    let make = match need(q, "form") {
        "ulid" => new_ulid,
        _ => new_uuid_v7,
    };
    let count = q.value("count").as_u64().and_then(|c| c.try_into().ok());
    std::iter::repeat_with(make).take(count.unwrap()).collect()
}

fn diagnosis(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let document = Document::parse(&text, Reading::Paste);
    Ok(match diagnose(&document) {
        Some(found) => {
            let after = match found {
                Diagnosis::Truncated { after, .. } => Some(after),
                _ => None,
            };
            json!({"diagnosis": found.as_str(), "after": after, "lines": found.lines()})
        }
        None => json!({"diagnosis": "none"}),
    })
}

fn integrity(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let fields = Integrity::measure(strict(&text)?.body_lines()).fields();
    let fields = fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()));
    Ok(json!({"fields": fields.collect::<Map<String, Value>>()}))
}

fn migrate(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let found = scan(&text, Reading::Strict);
    if !found.rejected.is_empty() {
        return Err(findings(&found.rejected, &text));
    }
    let (mut migrator, mut out) = (Migrator::default(), String::new());
    for document in &found.documents {
        let migrated = migrator.migrate(document);
        let migrated = migrated.map_err(|fault| findings(&fault.diagnostics, &fault.text))?;
        out.push_str(migrated.text());
    }
    written(out)
}

fn edit(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let document = strict(&text)?;
    let (namespace, key, value) = (need(q, "namespace"), need(q, "key"), need(q, "value"));
    let edited = Edit::new(&document).and_then(|edit| match need(q, "change") {
        "add" => edit.add_block(namespace, &[(key, value)]),
        _ => edit.set_key(namespace, key, value),
    });
    written(edited.map_err(|fault| findings(&[fault], &text))?.finish())
}

fn answer_envelope(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let mut document = Document::parse(&text, Reading::Strict);
    document.check();
    let envelope = document.envelope();
    let ids = ReceivedIds::of(&envelope);
    let builder = match need(q, "reply") {
        "error" => {
            let code = ErrorCode::from_wire(need(q, "code")).unwrap();
            reply::error(&envelope, &ids, &Rejection::new(code, "It failed.", ""))
        }
        "ack" => reply::ack(&envelope, &ids, "brother"),
        "nack" => reply::nack(&envelope, &ids, "brother", "not now"),
        "respond" => reply::respond(&envelope, &ids, "brother", "Done."),
        "system" => {
            let refusal = Rejection::from_findings(document.diagnostics(), &text).unwrap();
            reply::error_from_system(Some(&document), &refusal)
        }
        other => panic!("the reply `{other}` is unknown"),
    };
    let built = builder.build();
    written(built.map_err(|fault| findings(&fault.diagnostics, &fault.text))?)
}

fn taxonomy() -> Value {
    let entry = |code: &ErrorCode| json!({"code": code.as_str(), "http": code.http_status(), "exit": code.exit_code()});
    ErrorCode::ALL.iter().map(entry).collect()
}

fn exit(q: &CaseQuestion) -> u8 {
    let report = parse(q);
    let errors = report["errors"].as_array().unwrap().iter();
    let codes = errors
        .filter(|f| f["severity"] == "error")
        .filter_map(|f| ErrorCode::from_wire(f["code"].as_str()?));
    codes.map(ErrorCode::exit_code).max().unwrap_or(0)
}

fn redacted(q: &CaseQuestion) -> Reply {
    let (text, only) = (input(q)?, words(q, "only"));
    let rules = RedactionRules::default().with_names(words(q, "names"));
    let kinds = only.iter().map(|word| PiiKind::from_wire(word).unwrap());
    let rules = match only.is_empty() {
        true => rules,
        false => rules.only(&kinds.collect::<Vec<_>>()),
    };
    let reply = |text: String, found: &[FoundPii]| {
        let found: Vec<String> = found.iter().map(|f| f.kind.to_string()).collect();
        Ok(json!({"output": text, "found": found}))
    };
    if q.get("as") != Some("envelope") {
        let redaction = redact(&text, &rules);
        return reply(redaction.text, &redaction.found);
    }
    let drops_signature = q.value("drop_signature") == true;
    let redacted = redact_envelope(&strict(&text)?, &rules, drops_signature)
        .map_err(|fault| findings(&[fault], &text))?;
    reply(redacted.text, &redacted.found)
}

fn collated(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let found = scan(&text, Reading::Strict);
    let papers: Vec<Paper<'_>> = found.documents.iter().map(Paper::of).collect();
    let collation = collate(&papers, q.get("poll"), q.get("at").map(time)).map_err(|fault| {
        json!([{"rule": rule::POLL_KEYS.id, "code": "E-FORMAT", "severity": "error",
            "message": fault.to_string()}])
    })?;
    let envelopes = collation.to_envelopes(None).unwrap().join("\n");
    Ok(json!({"collation": collation, "output": envelopes}))
}
