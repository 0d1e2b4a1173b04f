//! The schemas of `config`, `name` and `address resolve`.

use super::signing::{form, maybe, object, text};
use super::{CONFIG, NAMES, RESOLVE};
use serde_json::{Value, json};

/// Where a value comes from, beside these fields.
fn sourced(mut fields: Value) -> Value {
    let source = json!({
        "source": {"enum": ["default", "file", "profile", "variable", "flag"]},
        "line": {"type": ["integer", "null"], "minimum": 1},
        "profile": maybe(),
        "variable": maybe(),
    });
    if let (Some(fields), Value::Object(source)) = (fields.as_object_mut(), source) {
        fields.extend(source);
    }
    object(fields)
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn name() -> Value {
    sourced(json!({"name": text(), "address": text()}))
}

pub(super) fn config() -> Value {
    let value = json!({"type": ["string", "boolean", "array", "null"], "items": text()});
    form(
        CONFIG,
        "What `crosstalk config show --json` prints. A setting without a value has null.",
        json!({
            "schema": {"const": CONFIG},
            "file": text(),
            "exists": {"type": "boolean"},
            "profile": maybe(),
            "profiles": list(text()),
            "settings": list(sourced(json!({"key": text(), "value": value, "about": text()}))),
            "names": list(name()),
            "warnings": list(text()),
        }),
    )
}

pub(super) fn names() -> Value {
    form(
        NAMES,
        "What `crosstalk name --json` prints: what each simple name stands for.",
        json!({"schema": {"const": NAMES}, "names": list(name())}),
    )
}

pub(super) fn resolve() -> Value {
    let steps = [
        "url",
        "table",
        "not-in-table",
        "table-loop",
        "table-too-long",
        "dns",
        "not-in-dns",
        "dns-wrong",
        "dns-unavailable",
        "dns-unasked",
        "person",
    ];
    let step = object(json!({
        "step": {"enum": steps},
        "sentence": text(),
        "name": maybe(),
        "address": maybe(),
        "at": maybe(),
        "others": list(text()),
        "wrong": list(text()),
        "dnssec": {"enum": ["secure", "insecure", "indeterminate", null]},
    }));
    form(
        RESOLVE,
        "What `crosstalk address resolve --json` prints. `result` is a URL if it is resolved, else the name.",
        json!({
            "schema": {"const": RESOLVE},
            "name": text(),
            "resolved": {"type": "boolean"},
            "result": text(),
            "retry": {"type": "boolean"},
            "steps": list(step),
        }),
    )
}
