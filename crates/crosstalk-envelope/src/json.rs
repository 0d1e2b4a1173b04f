//! The JSON form: what `crosstalk parse --json` prints and `crosstalk build` reads.

mod message;

pub use message::{Finding, KeyValue, MessageBlock, MessageField, MessageIntent, MessageJson};

use crate::builder::Builder;
use crate::diagnostic::{Diagnostic, LineIndex};
use crate::document::{Document, Reading};
use crate::envelope::IntentField;
use crate::grammar::{BodyKind, CoreHeader};
use crate::id;
use crate::lint::lint;
use crate::paste::Scan;
use crate::registry::{ErrorCode, Intent};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// The name and version of the form that [`report`] gives.
pub const PARSE_SCHEMA: &str = "crosstalk.parse/1";

/// The report on a text.
#[derive(Debug, Serialize)]
pub struct ParseReport {
    /// [`PARSE_SCHEMA`].
    pub schema: &'static str,
    /// The accepted envelopes.
    pub envelopes: Vec<MessageJson>,
    /// The findings that belong to no accepted envelope.
    pub errors: Vec<Finding>,
}

/// The report on a text: `text` is what was scanned. Lints are among the diagnostics.
///
/// ```
/// use crosstalk_envelope::{Reading, json, scan};
/// let text = "[[A→B v1]]\nuser: u\nsession: 2025-10-09T16Z s\ncontext: c\nintent: NOTE\nbody: |\n  x\nsig: none\n[[END]]\n";
/// let report = json::report(text, &scan(text, Reading::Paste));
/// assert_eq!(report.envelopes[0].body, "x");
/// assert!(report.errors.is_empty());
/// ```
pub fn report(text: &str, scan: &Scan<'_>) -> ParseReport {
    let lines = LineIndex::new(text);
    ParseReport {
        schema: PARSE_SCHEMA,
        envelopes: scan.documents.iter().map(|d| message(d, &lines)).collect(),
        errors: scan.rejected.iter().map(|d| finding(d, &lines)).collect(),
    }
}

/// A diagnostic with its line and column.
pub fn finding(diagnostic: &Diagnostic, lines: &LineIndex<'_>) -> Finding {
    let position = lines.position(diagnostic.span.start);
    Finding {
        rule: diagnostic.rule.id,
        severity: diagnostic.severity.as_str(),
        code: diagnostic.code().map(|c| c.as_str()),
        line: position.line,
        column: position.column,
        message: diagnostic.message.clone().into_owned(),
        help: diagnostic.help(),
    }
}

/// The JSON form of one strict envelope.
pub fn message_of(text: &str) -> MessageJson {
    message(
        &Document::parse(text, Reading::Strict),
        &LineIndex::new(text),
    )
}

fn message(document: &Document<'_>, lines: &LineIndex<'_>) -> MessageJson {
    let own = |core| document.header(core).map(str::to_owned);
    let envelope = document.envelope();
    let mut findings = document.diagnostics().to_vec();
    findings.extend(lint(document));
    crate::sort_by_number(&mut findings, |d| d.span.start);
    let diagnostics: Vec<Finding> = findings.iter().map(|d| finding(d, lines)).collect();
    MessageJson {
        sender: document.sender().to_owned(),
        receiver: document.receiver().to_owned(),
        version: document.version().to_owned(),
        user: own(CoreHeader::User),
        session: own(CoreHeader::Session),
        thread: own(CoreHeader::Thread),
        parent: own(CoreHeader::Parent),
        message: own(CoreHeader::Message),
        context: own(CoreHeader::Context),
        intent: envelope.intent.map(|i| MessageIntent::Both {
            written: i.written.to_owned(),
            meaning: i.meaning_str().to_owned(),
        }),
        headers: document
            .headers()
            .map(|(name, value)| MessageField {
                name: name.into(),
                value: value.into(),
            })
            .collect(),
        meta: document
            .blocks()
            .map(|b| MessageBlock {
                namespace: b.namespace().into(),
                fields: b
                    .fields()
                    .map(|(key, value)| KeyValue {
                        key: key.into(),
                        value: value.into(),
                    })
                    .collect(),
            })
            .collect(),
        body: document.body_text(),
        body_name: (document.body_kind() == Some(BodyKind::Response))
            .then(|| "response".to_owned()),
        sig: document.sig().map(str::to_owned),
        repairs: diagnostics
            .iter()
            .filter(|d| d.severity == "repair")
            .cloned()
            .collect(),
        diagnostics,
    }
}

/// Reads the JSON form of one or several messages, as builders.
///
/// It takes one message, a list of messages, or a whole report. `intent` may be a word; `headers` and the
/// fields of `meta` may be objects; `meta` may be an object of objects.
///
/// ```
/// let json = r#"{"sender":"A","receiver":"B","user":"u","session":"s","context":"c","intent":"NOTE",
///     "meta":{"routing":{"X-Priority":"high","Targets":["a","b"]}},"body":"hi"}"#;
/// let text = crosstalk_envelope::json::builders(json).unwrap()[0].build().unwrap();
/// assert!(text.contains("X-Priority: high\nTargets: [\"a\",\"b\"]\n"));
/// ```
pub fn builders(json: &str) -> Result<Vec<Builder>, JsonError> {
    read_builders(parse_json(json)?)
}

/// Which messages get a generated thread id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewThreads {
    /// All that have none. Messages of one session get one thread.
    Always,
    /// Those without a session. The receiver of the others finds the thread by the session.
    WithoutSession,
}

/// Reads messages as [`builders`] does, and generates the thread and message ids that they lack.
pub fn builders_with_ids(json: &str, new: NewThreads) -> Result<Vec<Builder>, JsonError> {
    let mut value = parse_json(json)?;
    add_ids(&mut value, new);
    read_builders(value)
}

/// Why JSON is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    /// E-UNSUPPORTED for a version other than v1, else E-FORMAT.
    pub code: ErrorCode,
    /// The fault, in one sentence.
    pub message: String,
}

impl From<String> for JsonError {
    fn from(message: String) -> Self {
        Self {
            code: ErrorCode::Format,
            message,
        }
    }
}

impl From<&str> for JsonError {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

fn parse_json(json: &str) -> Result<Value, JsonError> {
    serde_json::from_str(json).map_err(|e| format!("this is not JSON: {e}").into())
}

/// The messages of any of the forms that [`builders`] reads.
fn messages(value: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let messages = if value.get("envelopes").is_some() {
        value.get_mut("envelopes")
    } else {
        Some(value)
    };
    let list = match messages {
        Some(Value::Array(items)) => items.as_mut_slice(),
        Some(one) => std::slice::from_mut(one),
        None => &mut [],
    };
    list.iter_mut().filter_map(Value::as_object_mut)
}

fn add_ids(value: &mut Value, new: NewThreads) {
    let mut threads: HashMap<String, String> = HashMap::new();
    for message in messages(value) {
        let has = |name: &str| message.get(name).is_some_and(|v| !v.is_null());
        let (has_thread, has_message, has_parent) = (has("thread"), has("message"), has("parent"));
        let keeps_session = new == NewThreads::WithoutSession && has("session");
        if !has_thread && !keeps_session {
            let session = message.get("session").and_then(Value::as_str);
            let thread = match session {
                Some(session) => threads
                    .entry(session.to_owned())
                    .or_insert_with(id::new_ulid)
                    .clone(),
                None => id::new_ulid(),
            };
            message.insert("thread".into(), thread.into());
        }
        // An answer with an id has to name its parent (INT-010); without a parent, it gets none.
        if !has_message && (has_parent || !needs_parent(message)) {
            message.insert("message".into(), id::new_ulid().into());
        }
    }
}

fn needs_parent(message: &Map<String, Value>) -> bool {
    let intent = message.get("intent");
    let written = intent.and_then(|i| i.as_str().or_else(|| i.get("written")?.as_str()));
    let response = message.get("body_name").and_then(Value::as_str) == Some("response");
    match written {
        Some(written) => {
            let meaning = IntentField::parse(written).meaning;
            meaning.is_some_and(Intent::needs_parent)
        }
        None => response,
    }
}

fn read_builders(value: Value) -> Result<Vec<Builder>, JsonError> {
    let messages = match value {
        Value::Array(items) => items,
        Value::Object(mut map) => match map.remove("envelopes") {
            Some(Value::Array(items)) => items,
            Some(_) => return Err("`envelopes` is not a list".into()),
            None => vec![Value::Object(map)],
        },
        _ => return Err("a message is a JSON object".into()),
    };
    if messages.is_empty() {
        return Err("there is no message in the JSON".into());
    }
    messages.into_iter().map(|m| builder(plain(m)?)).collect()
}

/// The keys of a message; `file` stands where there are several.
const KNOWN: [&str; 18] = [
    "sender",
    "receiver",
    "version",
    "user",
    "session",
    "thread",
    "parent",
    "message",
    "context",
    "intent",
    "headers",
    "meta",
    "body",
    "body_name",
    "sig",
    "repairs",
    "diagnostics",
    "file",
];

/// Objects for headers, META and fields become lists.
fn plain(mut message: Value) -> Result<MessageJson, JsonError> {
    let Some(map) = message.as_object_mut() else {
        return Err("a message is a JSON object".into());
    };
    if let Some(unknown) = map.keys().find(|k| !KNOWN.contains(&k.as_str())) {
        return Err(format!("the message has a key `{unknown}` that means nothing here").into());
    }
    for name in ["sender", "receiver"] {
        if !map.contains_key(name) {
            return Err(format!("the message has no `{name}`").into());
        }
    }
    if let Some(headers) = map.get_mut("headers") {
        listed(headers, "name");
    }
    if let Some(meta) = map.get_mut("meta") {
        if let Value::Object(blocks) = meta {
            let blocks = std::mem::take(blocks).into_iter();
            *meta = blocks.map(|(namespace, fields)| serde_json::json!({"namespace": namespace, "fields": fields})).collect();
        }
        for block in meta.as_array_mut().into_iter().flatten() {
            if let Some(fields) = block.get_mut("fields") {
                listed(fields, "key");
            }
        }
    }
    serde_json::from_value(message)
        .map_err(|e| format!("the message does not have the form of the schema: {e}").into())
}

/// `{"a": 1}` becomes `[{"key": "a", "value": "1"}]`; values become texts.
fn listed(fields: &mut Value, key: &str) {
    if let Value::Object(map) = fields {
        let map = std::mem::take(map).into_iter();
        *fields = map
            .map(|(name, value)| Value::from_iter([(key, Value::from(name)), ("value", value)]))
            .collect();
    }
    for field in fields.as_array_mut().into_iter().flatten() {
        if let Some(value) = field.get_mut("value").filter(|v| !v.is_string()) {
            *value = Value::from(value.to_string());
        }
    }
}

fn builder(message: MessageJson) -> Result<Builder, JsonError> {
    if !message.version.is_empty() && message.version != "v1" {
        return Err(JsonError {
            code: ErrorCode::Unsupported,
            message: format!(
                "the version {} is not supported: this program writes v1",
                message.version
            ),
        });
    }
    let mut builder = Builder::new(message.sender, message.receiver)
        .core_if(CoreHeader::User, message.user.as_deref())
        .core_if(CoreHeader::Session, message.session.as_deref())
        .core_if(CoreHeader::Thread, message.thread.as_deref())
        .core_if(CoreHeader::Parent, message.parent.as_deref())
        .core_if(CoreHeader::Message, message.message.as_deref())
        .core_if(CoreHeader::Context, message.context.as_deref())
        .body(message.body);
    builder = match message.intent {
        Some(MessageIntent::Word(written) | MessageIntent::Both { written, .. }) => {
            builder.intent(written)
        }
        None => builder,
    };
    // The list holds the core headers, too, as they were received: they must say the same.
    for field in message.headers {
        match CoreHeader::from_name(&field.name) {
            None => builder = builder.header(field.name, field.value),
            Some(core) if builder.core_value(core) == Some(&field.value) => {}
            Some(_) => {
                return Err(format!("`headers` and `{}` do not say the same", field.name).into());
            }
        }
    }
    for block in message.meta {
        builder = builder.block(&block.namespace);
        for field in block.fields {
            builder = builder.meta(&block.namespace, field.key, field.value);
        }
    }
    if message.body_name.as_deref() == Some("response") {
        builder = builder.response();
    }
    Ok(match message.sig {
        Some(sig) => builder.sig(sig),
        None => builder,
    })
}

/// The JSON Schema of the form.
pub fn schema() -> Value {
    let text = serde_json::json!({"type": ["string", "null"]});
    let finding = serde_json::json!({
        "type": "object",
        "required": ["rule", "severity", "code", "line", "column", "message", "help"],
        "properties": {
            "rule": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{3}$"},
            "severity": {"enum": ["error", "warning", "repair", "note"]},
            "code": {"enum": std::iter::once(Value::Null).chain(crate::ErrorCode::ALL.iter().map(|c| c.as_str().into())).collect::<Vec<_>>()},
            "line": {"type": "integer", "minimum": 1},
            "column": {"type": "integer", "minimum": 1},
            "message": {"type": "string"},
            "help": {"type": "string"}
        }
    });
    let findings = serde_json::json!({"type": "array", "items": {"$ref": "#/$defs/finding"}});
    let core: BTreeMap<&str, Value> = [
        "user", "session", "thread", "parent", "message", "context", "sig",
    ]
    .into_iter()
    .map(|n| (n, text.clone()))
    .collect();
    let mut properties = serde_json::json!({
        "sender": {"type": "string", "minLength": 1},
        "receiver": {"type": "string", "minLength": 1},
        "version": {"const": "v1"},
        "intent": {"oneOf": [
            {"type": ["string", "null"]},
            {"type": "object", "required": ["written", "meaning"],
             "properties": {"written": {"type": "string"}, "meaning": {"type": "string"}}}
        ]},
        "headers": {"oneOf": [
            {"type": "array", "items": {"type": "object", "required": ["name", "value"],
                "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}},
            {"type": "object"}
        ]},
        "meta": {"oneOf": [
            {"type": "array", "items": {"type": "object", "required": ["namespace", "fields"],
                "properties": {"namespace": {"type": "string"}, "fields": {"oneOf": [
                    {"type": "array", "items": {"type": "object", "required": ["key", "value"],
                        "properties": {"key": {"type": "string"}, "value": {}}}},
                    {"type": "object"}
                ]}}}},
            {"type": "object"}
        ]},
        "body": {"type": "string"},
        "body_name": {"const": "response"},
        "repairs": findings,
        "diagnostics": findings
    });
    if let Some(map) = properties.as_object_mut() {
        map.extend(
            core.into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
    }
    serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": PARSE_SCHEMA,
        "description": "What `crosstalk parse --json` prints. `crosstalk build` reads the same, a message alone, or a list of messages.",
        "anyOf": [
            {"$ref": "#/$defs/report"},
            {"$ref": "#/$defs/message"},
            {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/message"}}
        ],
        "$defs": {
            "report": {
                "type": "object",
                "required": ["schema", "envelopes", "errors"],
                "properties": {
                    "schema": {"const": PARSE_SCHEMA},
                    "envelopes": {"type": "array", "items": {"$ref": "#/$defs/message"}},
                    "errors": findings
                }
            },
            "message": {"type": "object", "required": ["sender", "receiver"], "properties": properties},
            "finding": finding
        }
    })
}
