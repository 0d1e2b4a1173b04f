//! The schemas of `crosstalk audit`.

use super::signing::{form, maybe, object, text};
use super::{AUDIT_LOG, AUDIT_TRACE, AUDIT_VERIFY};
use crosstalk_protocol::audit::EventKind;
use serde_json::{Value, json};

fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub(super) fn trace() -> Value {
    let hop = object(json!({
        "place": number(), "by": maybe(), "at": maybe(), "from": maybe(), "chain": maybe(),
        "since_ms": {"type": ["integer", "null"]},
        "signature": {"enum": ["verified", "unknown-key", "wrong", "unsigned"]},
        "faults": {"type": "array", "items": {
            "enum": ["incomplete", "number", "broken", "digest", "before", "time", "signature"]
        }},
    }));
    let mut form = form(
        AUDIT_TRACE,
        "What `crosstalk audit trace --json` prints for each envelope. `file` is there if more than one file was read.",
        json!({
            "schema": {"const": AUDIT_TRACE}, "message": maybe(), "sender": text(), "receiver": text(),
            "digest": maybe(), "checked_at": text(), "hops": {"type": "array", "items": hop},
        }),
    );
    if let Some(all) = form
        .pointer_mut("/properties")
        .and_then(Value::as_object_mut)
    {
        all.insert("file".into(), text());
    }
    form
}

pub(super) fn log() -> Value {
    let kinds = EventKind::ALL.map(EventKind::as_str);
    form(
        AUDIT_LOG,
        "What `crosstalk audit log --json` prints, a line for each entry. `detail` is null where there is none, or it was \
         erased; `from` and `to` are those of a message that was taken and is kept.",
        json!({
            "schema": {"const": AUDIT_LOG}, "index": number(), "at": text(), "kind": {"enum": kinds},
            "message": maybe(), "from": maybe(), "to": maybe(), "canonical": maybe(), "raw": maybe(),
            "detail": {"type": ["object", "null"], "additionalProperties": text()}, "leaf": text(),
        }),
    )
}

pub(super) fn verify() -> Value {
    let fork = json!({
        "type": ["object", "null"], "required": ["held", "shown"],
        "properties": {"held": text(), "shown": text()}, "additionalProperties": false
    });
    let wrong = json!({
        "type": ["object", "null"],
        "required": ["file", "line", "what", "help", "exit", "fork"],
        "properties": {
            "file": text(), "line": {"type": ["integer", "null"], "minimum": 1}, "what": text(), "help": text(),
            "exit": number(), "fork": fork
        },
        "additionalProperties": false
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": AUDIT_VERIFY,
        "description": "What `crosstalk audit verify --json` prints. `wrong` is the first thing that is wrong, and null if \
            everything holds. `index` and `leaf` are those of a receipt.",
        "type": "object",
        "required": ["schema", "holds", "wrong"],
        "properties": {
            "schema": {"const": AUDIT_VERIFY},
            "holds": {"type": "boolean"},
            "key_is_trusted": {"type": "boolean"},
            "key": text(), "origin": text(), "size": number(), "is_all": {"type": "boolean"},
            "kinds": {"type": "object", "additionalProperties": number()},
            "messages": number(), "erased": number(), "withheld": number(), "extended": number(),
            "index": number(), "leaf": text(),
            "wrong": wrong
        },
        "additionalProperties": false
    })
}
