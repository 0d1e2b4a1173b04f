//! The forms of the answers for programs: the name of each and its JSON Schema, made from the type that the command prints.

mod audit;
mod poll;
mod settings;
mod signing;

use crate::report;
use clap::ValueEnum;
use crosstalk_relay::client::{Approval, ConsentRecord, MessageStatus, MessageView};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

/// An answer with the name of its form in front.
#[derive(Serialize)]
pub(crate) struct Named<'a, T> {
    schema: &'static str,
    #[serde(flatten)]
    answer: &'a T,
}

impl<'a, T: Serialize + JsonSchema> Named<'a, T> {
    pub(crate) const fn new(schema: &'static str, answer: &'a T) -> Self {
        Self { schema, answer }
    }
}

/// Defines the forms: what `crosstalk schema` says about one, the constant with its name, and how its schema is made.
macro_rules! forms {
    ($($(#[$about:meta])+ $form:ident($name:ident = $text:expr) => $schema:expr;)+) => {
        $(pub(crate) const $name: &str = $text;)+

        /// An answer that has a schema.
        #[derive(Clone, Copy, Debug, ValueEnum)]
        pub(crate) enum Form {
            $($(#[$about])+ $form,)+
        }

        impl Form {
            /// Its JSON Schema.
            pub(crate) fn schema(self) -> Value {
                let (name, schema): (&str, fn(&str) -> Value) = match self {
                    $(Self::$form => ($name, $schema),)+
                };
                schema(name)
            }
        }
    };
}

forms! {
    /// crosstalk.parse/1: of `parse --json`, and what `build` reads
    Parse(PARSE = "crosstalk.parse/1") => |_| crosstalk_envelope::json::schema();
    /// crosstalk.lint/1: of `lint --json`
    Lint(LINT = "crosstalk.lint/1") => |_| lint();
    /// crosstalk.address/1: of `address parse --json`
    Address(ADDRESS = "crosstalk.address/1") => |_| address();
    /// crosstalk.verify/1: of `verify --json`
    Verify(VERIFY = "crosstalk.verify/1") => |_| signing::verify();
    /// crosstalk.key-list/1: of `key list --json` and `key show --json`
    Key(KEYS = "crosstalk.key-list/1") => |_| signing::keys();
    /// crosstalk.trust-list/1: of `trust list --json` and `trust check --json`
    Trust(TRUST = "crosstalk.trust-list/1") => |_| signing::trust();
    /// crosstalk.sent/1: of `send`, `reply`, `forward`, `escalate`, `handoff`, `close`, `consent grant` and `consent revoke` with --json
    Sent(SENT = "crosstalk.sent/1") => of::<report::SentReport>;
    /// crosstalk.sent-many/1: of `send` and `forward` to several receivers with --json
    SentMany(SENT_MANY = "crosstalk.sent-many/1") => of::<report::SentManyReport>;
    /// crosstalk.paste/1: of `paste --json`
    Paste(PASTE = "crosstalk.paste/1") => of::<report::PasteReport>;
    /// crosstalk.move/1: of `move --json`
    Move(MOVE = "crosstalk.move/1") => of::<report::MoveReport>;
    /// crosstalk.threads/1: of `threads --json`
    Threads(THREADS = "crosstalk.threads/1") => of::<report::ThreadsReport>;
    /// crosstalk.show/1: of `show --json`
    Show(SHOW = "crosstalk.show/1") => of::<report::ShowReport>;
    /// crosstalk.inbox/1: of `inbox --json`
    Inbox(INBOX = "crosstalk.inbox/1") => of::<report::InboxReport>;
    /// crosstalk.waiting/1: of `waiting --json`
    Waiting(WAITING = "crosstalk.waiting/1") => of::<report::WaitingReport>;
    /// crosstalk.search/1: of `search --json`
    Search(SEARCH = "crosstalk.search/1") => of::<report::SearchReport>;
    /// crosstalk.import/1: of `import --json`
    Import(IMPORT = "crosstalk.import/1") => of::<report::ImportReport>;
    /// crosstalk.export/1: of `export --format json`
    Export(EXPORT = "crosstalk.export/1") => of::<report::ExportReport>;
    /// crosstalk.poll/1: of `poll status`, `poll collate` and `poll close` with --json
    Poll(POLL = crosstalk_protocol::poll::POLL_SCHEMA) => |_| poll::poll();
    /// crosstalk.config/1: of `config show --json`
    Config(CONFIG = "crosstalk.config/1") => |_| settings::config();
    /// crosstalk.names/1: of `name --json`
    Names(NAMES = "crosstalk.names/1") => |_| settings::names();
    /// crosstalk.resolve/1: of `address resolve --json`
    Resolve(RESOLVE = "crosstalk.resolve/1") => |_| settings::resolve();
    /// crosstalk.redact/1: of `redact --json`
    Redact(REDACT = "crosstalk.redact/1") => of::<report::RedactReport>;
    /// crosstalk.tokens/1: of `token list --json`
    Tokens(TOKENS = "crosstalk.tokens/1") => of::<report::TokensReport>;
    /// crosstalk.relays/1: of `relay list --json`
    Relays(RELAYS = "crosstalk.relays/1") => of::<report::RelaysReport>;
    /// crosstalk.relay-inbox/1: of `inbox --relay --json`
    RelayInbox(RELAY_INBOX = "crosstalk.relay-inbox/1") => of::<report::RelayInboxReport>;
    /// crosstalk.listen/1: of `listen --json`, a line for each message
    Listen(LISTEN = "crosstalk.listen/1") => of::<MessageView>;
    /// crosstalk.status/1: of `status --json`
    Status(STATUS = "crosstalk.status/1") => of::<MessageStatus>;
    /// crosstalk.approvals/1: of `approve --json`
    Approvals(APPROVALS = "crosstalk.approvals/1") => of::<report::ApprovalsReport>;
    /// crosstalk.approval/1: of `approve ID --json` and `refuse --json`
    Approval(APPROVAL = "crosstalk.approval/1") => of::<Approval>;
    /// crosstalk.dead/1: of `dead --json`
    Dead(DEAD = "crosstalk.dead/1") => of::<report::DeadReport>;
    /// crosstalk.consents/1: of `consent list --json`
    Consents(CONSENTS = "crosstalk.consents/1") => of::<report::ConsentsReport>;
    /// crosstalk.consent/1: of `consent show --json`
    Consent(CONSENT = "crosstalk.consent/1") => of::<ConsentRecord>;
    /// crosstalk.consent-check/1: of `consent check --json`
    ConsentCheck(CONSENT_CHECK = "crosstalk.consent-check/1") => of::<report::ConsentCheckReport>;
    /// crosstalk.fsck/1: of `fsck --json`
    Fsck(FSCK = "crosstalk.fsck/1") => of::<report::FsckReport>;
    /// crosstalk.serve-check/1: of `serve --check --json`
    ServeCheck(SERVE_CHECK = "crosstalk.serve-check/1") => of::<report::ServeCheckReport>;
    /// crosstalk.audit-trace/1: of `audit trace --json`
    AuditTrace(AUDIT_TRACE = "crosstalk.audit-trace/1") => |_| audit::trace();
    /// crosstalk.audit-log/1: of `audit log --json`, a line for each entry
    AuditLog(AUDIT_LOG = "crosstalk.audit-log/1") => |_| audit::log();
    /// crosstalk.audit-verify/1: of `audit verify --json`
    AuditVerify(AUDIT_VERIFY = "crosstalk.audit-verify/1") => |_| audit::verify();
    /// crosstalk.conform/1: of `conform URL --json`
    Conform(CONFORM = crosstalk_conform::relay::SCHEMA) => |_| conform();
    /// crosstalk.conform-program/1: of `conform --program CMD --json`
    ConformProgram(CONFORM_PROGRAM = crosstalk_conform::program::SCHEMA) => |_| conform_program();
    /// crosstalk.demo/1: of `demo --json`
    Demo(DEMO = "crosstalk.demo/1") => of::<report::DemoReport>;
}

/// The schema of a type whose values are printed under a name.
fn of<T: JsonSchema>(name: &str) -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(RecursiveTransform(join_lines));
    let mut schema = settings
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    schema.insert("title".into(), name.into());
    let mut schema = schema.to_value();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("schema".into(), json!({"const": name}));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut)
        && !required.contains(&"schema".into())
    {
        required.push("schema".into());
    }
    schema
}

/// Doc comments are wrapped for the source; a description is one line.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// A finding, as the schema of the library has it.
fn finding() -> Value {
    let parse = crosstalk_envelope::json::schema();
    parse.pointer("/$defs/finding").cloned().unwrap_or_default()
}

/// A list of findings.
pub(crate) fn findings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": finding()})
}

fn lint() -> Value {
    let number = json!({"type": "integer", "minimum": 0});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": LINT,
        "description": "What `crosstalk lint --json` prints. `file` is there if more than one file was read.",
        "type": "object",
        "required": ["schema", "envelopes", "counts", "diagnostics"],
        "properties": {
            "schema": {"const": LINT},
            "envelopes": number,
            "counts": {
                "type": "object",
                "required": ["error", "warning", "repair", "note"],
                "properties": {"error": number, "warning": number, "repair": number, "note": number}
            },
            "diagnostics": {"type": "array", "items": {"$ref": "#/$defs/finding"}}
        },
        "$defs": {"finding": finding()}
    })
}

fn conform() -> Value {
    let number = json!({"type": "integer", "minimum": 0});
    let seconds = json!({"type": "number", "minimum": 0});
    let rule = json!({"type": "string", "pattern": "^[A-Z]{3}-[0-9]{3}$"});
    let text = json!({"type": ["string", "null"]});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": CONFORM,
        "description": "What `crosstalk conform --format json` prints. `expected` and `got` are there if a case failed, \
            `reason` if it was skipped.",
        "type": "object",
        "required": ["schema", "relay", "passed", "failed", "skipped", "seconds", "broken_rules", "cases"],
        "properties": {
            "schema": {"const": CONFORM},
            "relay": {"type": "string"},
            "passed": number, "failed": number, "skipped": number,
            "seconds": seconds,
            "broken_rules": {"type": "array", "items": rule, "uniqueItems": true},
            "cases": {"type": "array", "items": {
                "type": "object",
                "required": ["id", "rule", "title", "outcome", "expected", "got", "reason", "seconds"],
                "properties": {
                    "id": {"type": "string"},
                    "rule": rule,
                    "title": {"type": "string"},
                    "outcome": {"enum": ["passed", "failed", "skipped"]},
                    "expected": text, "got": text, "reason": text,
                    "seconds": seconds
                },
                "additionalProperties": false
            }}
        }
    })
}

fn conform_program() -> Value {
    let number = json!({"type": "integer", "minimum": 0});
    let seconds = json!({"type": "number", "minimum": 0});
    let text = json!({"type": ["string", "null"]});
    let level =
        json!({"enum": crosstalk_conform::Level::ALL.map(crosstalk_conform::Level::as_str)});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": CONFORM_PROGRAM,
        "description": "What `crosstalk conform --program CMD --json` prints. `expected` and `received` are there if a case \
            failed; without `expected`, `received` says why there is no answer to compare. `stopped` says why the run \
            stopped before its end.",
        "type": "object",
        "required": ["schema", "program", "level", "conforms", "passed", "failed", "unsupported", "left_out", "not_run",
            "stopped", "stderr", "seconds", "areas", "cases"],
        "properties": {
            "schema": {"const": CONFORM_PROGRAM},
            "program": {"type": "string"},
            "level": level,
            "conforms": {"type": "boolean"},
            "passed": number, "failed": number, "unsupported": number, "left_out": number, "not_run": number,
            "stopped": text,
            "stderr": {"type": "string"},
            "seconds": seconds,
            "areas": {"type": "array", "items": {
                "type": "object",
                "required": ["area", "passed", "failed", "unsupported", "left_out", "not_run"],
                "properties": {
                    "area": {"type": "string"},
                    "passed": number, "failed": number, "unsupported": number, "left_out": number, "not_run": number
                },
                "additionalProperties": false
            }},
            "cases": {"type": "array", "items": {
                "type": "object",
                "required": ["id", "rule", "about", "level", "outcome", "expected", "received", "seconds"],
                "properties": {
                    "id": {"type": "string"},
                    "rule": {"type": "string"},
                    "about": {"type": "string"},
                    "level": level,
                    "outcome": {"enum": ["passed", "failed", "unsupported", "left-out", "not-run"]},
                    "expected": text, "received": text,
                    "seconds": seconds
                },
                "additionalProperties": false
            }}
        }
    })
}

fn address() -> Value {
    let part = json!({"type": ["string", "null"]});
    let kinds = [
        "name",
        "person",
        "assistant",
        "mail",
        "phone",
        "tool",
        "room",
        "custom",
    ];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": ADDRESS,
        "description": "What `crosstalk address parse --json` prints. The kind of a simple name is `name`.",
        "type": "object",
        "required": ["schema", "address", "valid", "kind", "registered", "scheme", "authority", "user", "host",
            "path", "query", "fragment", "diagnostics"],
        "properties": {
            "schema": {"const": ADDRESS},
            "address": {"type": "string"},
            "valid": {"type": "boolean"},
            "kind": {"enum": kinds},
            "registered": {"type": "boolean"},
            "scheme": part, "authority": part, "user": part, "host": part,
            "path": {"type": "string"},
            "query": part, "fragment": part,
            "diagnostics": {"type": "array", "items": {"$ref": "#/$defs/remark"}}
        },
        "$defs": {"remark": {
            "type": "object",
            "required": ["rule", "severity", "code", "message", "help"],
            "properties": {
                "rule": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{3}$"},
                "severity": {"enum": ["error", "warning", "note"]},
                "code": part,
                "message": {"type": "string"},
                "help": {"type": "string"}
            }
        }}
    })
}
