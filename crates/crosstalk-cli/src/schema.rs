//! The JSON Schemas of the answers.

mod audit;
mod consent;
mod conversation;
mod poll;
mod relay;
mod settings;
mod signing;

use clap::ValueEnum;
use crosstalk_envelope::registry::PiiKind;
use serde_json::{Value, json};

/// The name and version of what `crosstalk lint --json` prints.
pub(crate) const LINT: &str = "crosstalk.lint/1";
/// The name and version of what `crosstalk address parse --json` prints.
pub(crate) const ADDRESS: &str = "crosstalk.address/1";

/// The name and version of what `crosstalk verify --json` prints.
pub(crate) const VERIFY: &str = "crosstalk.verify/1";
/// The name and version of what `crosstalk key list --json` prints.
pub(crate) const KEYS: &str = "crosstalk.key-list/1";
/// The name and version of what `crosstalk trust list --json` prints.
pub(crate) const TRUST: &str = "crosstalk.trust-list/1";

/// The name and version of what `crosstalk send --json` and the other commands that write a message print.
pub(crate) const SENT: &str = "crosstalk.sent/1";
/// The name and version of what `crosstalk send --json` and `crosstalk forward --json` print for several receivers.
pub(crate) const SENT_MANY: &str = "crosstalk.sent-many/1";
/// The name and version of what `crosstalk move --json` prints.
pub(crate) const MOVE: &str = "crosstalk.move/1";
/// The name and version of what `crosstalk paste --json` prints.
pub(crate) const PASTE: &str = "crosstalk.paste/1";
/// The name and version of what `crosstalk threads --json` prints.
pub(crate) const THREADS: &str = "crosstalk.threads/1";
/// The name and version of what `crosstalk show --json` prints.
pub(crate) const SHOW: &str = "crosstalk.show/1";
/// The name and version of what `crosstalk inbox --json` prints.
pub(crate) const INBOX: &str = "crosstalk.inbox/1";
/// The name and version of what `crosstalk waiting --json` prints.
pub(crate) const WAITING: &str = "crosstalk.waiting/1";
/// The name and version of what `crosstalk search --json` prints.
pub(crate) const SEARCH: &str = "crosstalk.search/1";
/// The name and version of what `crosstalk import --json` prints.
pub(crate) const IMPORT: &str = "crosstalk.import/1";

/// The name and version of what `crosstalk export --format json` prints.
pub(crate) const EXPORT: &str = "crosstalk.export/1";
/// The name and version of what `crosstalk config show --json` prints.
pub(crate) const CONFIG: &str = "crosstalk.config/1";
/// The name and version of what `crosstalk name --json` prints.
pub(crate) const NAMES: &str = "crosstalk.names/1";
/// The name and version of what `crosstalk address resolve --json` prints.
pub(crate) const RESOLVE: &str = "crosstalk.resolve/1";
/// The name and version of what `crosstalk redact --json` prints.
pub(crate) const REDACT: &str = "crosstalk.redact/1";

/// The name and version of what `crosstalk audit trace --json` prints.
pub(crate) const AUDIT_TRACE: &str = "crosstalk.audit-trace/1";
/// The name and version of what `crosstalk audit log --json` prints.
pub(crate) const AUDIT_LOG: &str = "crosstalk.audit-log/1";
/// The name and version of what `crosstalk audit verify --json` prints.
pub(crate) const AUDIT_VERIFY: &str = "crosstalk.audit-verify/1";

/// The name and version of what `crosstalk token list --json` prints.
pub(crate) const TOKENS: &str = "crosstalk.tokens/1";
/// The name and version of what `crosstalk relay list --json` prints.
pub(crate) const RELAYS: &str = "crosstalk.relays/1";
/// The name and version of what `crosstalk inbox --relay --json` prints.
pub(crate) const RELAY_INBOX: &str = "crosstalk.relay-inbox/1";
/// The name and version of what `crosstalk listen --json` prints.
pub(crate) const LISTEN: &str = "crosstalk.listen/1";
/// The name and version of what `crosstalk status --json` prints.
pub(crate) const STATUS: &str = "crosstalk.status/1";
/// The name and version of what `crosstalk approve --json` prints without an id.
pub(crate) const APPROVALS: &str = "crosstalk.approvals/1";
/// The name and version of what `crosstalk approve ID --json` and `crosstalk refuse --json` print.
pub(crate) const APPROVAL: &str = "crosstalk.approval/1";
/// The name and version of what `crosstalk dead --json` prints.
pub(crate) const DEAD: &str = "crosstalk.dead/1";
/// The name and version of what `crosstalk consent list --json` prints.
pub(crate) const CONSENTS: &str = "crosstalk.consents/1";
/// The name and version of what `crosstalk consent show --json` prints.
pub(crate) const CONSENT: &str = "crosstalk.consent/1";
/// The name and version of what `crosstalk consent check --json` prints.
pub(crate) const CONSENT_CHECK: &str = "crosstalk.consent-check/1";
/// The name and version of what `crosstalk fsck --json` prints.
pub(crate) const FSCK: &str = "crosstalk.fsck/1";
/// The name and version of what `crosstalk serve --check --json` prints.
pub(crate) const SERVE_CHECK: &str = "crosstalk.serve-check/1";
/// The name and version of what `crosstalk conform --format json` prints.
pub(crate) const CONFORM: &str = crosstalk_conform::relay::SCHEMA;
/// The name and version of what `crosstalk conform --program CMD --json` prints.
pub(crate) const CONFORM_PROGRAM: &str = crosstalk_conform::program::SCHEMA;

/// The name and version of what `crosstalk demo --json` prints.
pub(crate) const DEMO: &str = "crosstalk.demo/1";

/// An answer that has a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Form {
    /// crosstalk.parse/1: of `parse --json`, and what `build` reads
    Parse,
    /// crosstalk.lint/1: of `lint --json`
    Lint,
    /// crosstalk.address/1: of `address parse --json`
    Address,
    /// crosstalk.verify/1: of `verify --json`
    Verify,
    /// crosstalk.key-list/1: of `key list --json` and `key show --json`
    Key,
    /// crosstalk.trust-list/1: of `trust list --json` and `trust check --json`
    Trust,
    /// crosstalk.sent/1: of `send`, `reply`, `forward`, `escalate`, `handoff`, `close`, `consent grant` and `consent revoke` with --json
    Sent,
    /// crosstalk.sent-many/1: of `send` and `forward` to several receivers with --json
    SentMany,
    /// crosstalk.paste/1: of `paste --json`
    Paste,
    /// crosstalk.move/1: of `move --json`
    Move,
    /// crosstalk.threads/1: of `threads --json`
    Threads,
    /// crosstalk.show/1: of `show --json`
    Show,
    /// crosstalk.inbox/1: of `inbox --json`
    Inbox,
    /// crosstalk.waiting/1: of `waiting --json`
    Waiting,
    /// crosstalk.search/1: of `search --json`
    Search,
    /// crosstalk.import/1: of `import --json`
    Import,
    /// crosstalk.export/1: of `export --format json`
    Export,
    /// crosstalk.poll/1: of `poll status`, `poll collate` and `poll close` with --json
    Poll,
    /// crosstalk.config/1: of `config show --json`
    Config,
    /// crosstalk.names/1: of `name --json`
    Names,
    /// crosstalk.resolve/1: of `address resolve --json`
    Resolve,
    /// crosstalk.redact/1: of `redact --json`
    Redact,
    /// crosstalk.tokens/1: of `token list --json`
    Tokens,
    /// crosstalk.relays/1: of `relay list --json`
    Relays,
    /// crosstalk.relay-inbox/1: of `inbox --relay --json`
    RelayInbox,
    /// crosstalk.listen/1: of `listen --json`, a line for each message
    Listen,
    /// crosstalk.status/1: of `status --json`
    Status,
    /// crosstalk.approvals/1: of `approve --json`
    Approvals,
    /// crosstalk.approval/1: of `approve ID --json` and `refuse --json`
    Approval,
    /// crosstalk.dead/1: of `dead --json`
    Dead,
    /// crosstalk.consents/1: of `consent list --json`
    Consents,
    /// crosstalk.consent/1: of `consent show --json`
    Consent,
    /// crosstalk.consent-check/1: of `consent check --json`
    ConsentCheck,
    /// crosstalk.fsck/1: of `fsck --json`
    Fsck,
    /// crosstalk.serve-check/1: of `serve --check --json`
    ServeCheck,
    /// crosstalk.audit-trace/1: of `audit trace --json`
    AuditTrace,
    /// crosstalk.audit-log/1: of `audit log --json`, a line for each entry
    AuditLog,
    /// crosstalk.audit-verify/1: of `audit verify --json`
    AuditVerify,
    /// crosstalk.conform/1: of `conform URL --json`
    Conform,
    /// crosstalk.conform-program/1: of `conform --program CMD --json`
    ConformProgram,
    /// crosstalk.demo/1: of `demo --json`
    Demo,
}

impl Form {
    /// Its JSON Schema.
    pub(crate) fn schema(self) -> Value {
        match self {
            Self::Parse => crosstalk_envelope::json::schema(),
            Self::Lint => lint(),
            Self::Address => address(),
            Self::Verify => signing::verify(),
            Self::Key => signing::keys(),
            Self::Trust => signing::trust(),
            Self::Sent => conversation::sent(),
            Self::SentMany => conversation::sent_many(),
            Self::Paste => conversation::paste(),
            Self::Move => conversation::moved(),
            Self::Threads => conversation::threads(),
            Self::Show => conversation::show(),
            Self::Inbox => conversation::inbox(),
            Self::Waiting => conversation::waiting(),
            Self::Search => conversation::search(),
            Self::Import => conversation::import(),
            Self::Export => conversation::export(),
            Self::Poll => poll::poll(),
            Self::Config => settings::config(),
            Self::Names => settings::names(),
            Self::Resolve => settings::resolve(),
            Self::Redact => redact(),
            Self::Tokens => relay::tokens(),
            Self::Relays => relay::relays(),
            Self::RelayInbox => relay::inbox(),
            Self::Listen => relay::listen(),
            Self::Status => relay::status(),
            Self::Approvals => relay::approvals(),
            Self::Approval => relay::approval(),
            Self::Dead => relay::dead(),
            Self::Consents => consent::consents(),
            Self::Consent => consent::consent(),
            Self::ConsentCheck => consent::check(),
            Self::Fsck => relay::fsck(),
            Self::ServeCheck => relay::serve_check(),
            Self::AuditTrace => audit::trace(),
            Self::AuditLog => audit::log(),
            Self::AuditVerify => audit::verify(),
            Self::Conform => conform(),
            Self::ConformProgram => conform_program(),
            Self::Demo => relay::demo(),
        }
    }
}

/// A finding, as the schema of the library has it.
fn finding() -> Value {
    let parse = crosstalk_envelope::json::schema();
    parse.pointer("/$defs/finding").cloned().unwrap_or_default()
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

fn redact() -> Value {
    let kinds: Vec<&str> = PiiKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let place = json!({"type": "integer", "minimum": 1});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": REDACT,
        "description": "What `crosstalk redact --json` prints, for each file. Places are those of the text that was read. \
            `text` is null with --check. `file` is there if more than one file was read.",
        "type": "object",
        "required": ["schema", "text", "found", "fields"],
        "properties": {
            "schema": {"const": REDACT},
            "text": {"type": ["string", "null"]},
            "found": {"type": "array", "items": {
                "type": "object",
                "required": ["kind", "line", "column", "placeholder"],
                "properties": {
                    "kind": {"enum": kinds},
                    "line": place,
                    "column": place,
                    "placeholder": {"type": "string", "pattern": "^\\[[A-Z0-9-]+\\]$"}
                },
                "additionalProperties": false
            }},
            "fields": {"type": "array", "items": {"enum": kinds}, "uniqueItems": true},
            "file": {"type": "string"}
        }
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
