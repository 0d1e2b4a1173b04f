//! The JSON Schemas of the answers.

mod signing;

use clap::ValueEnum;
use crosstalk_envelope::registry::Pii;
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

/// The name and version of what `crosstalk redact --json` prints.
pub(crate) const REDACT: &str = "crosstalk.redact/1";

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
    /// crosstalk.redact/1: of `redact --json`
    Redact,
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
            Self::Redact => redact(),
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
    let kinds: Vec<&str> = Pii::ALL.iter().map(|kind| kind.as_str()).collect();
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
