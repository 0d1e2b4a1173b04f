//! The schema of the result of a poll.

use super::signing::{form, maybe, object, text};
use crosstalk_protocol::poll::POLL_SCHEMA;
use serde_json::{Value, json};

pub(super) fn poll() -> Value {
    let list = |items: Value| json!({"type": "array", "items": items});
    let flag = || json!({"type": "boolean"});
    let number = json!({"type": "integer", "minimum": 0});
    let numbers = json!({"type": "object", "additionalProperties": number});
    let digest = text();
    let asked = object(json!({
        "message": text(), "digest": digest, "from": text(), "question": text(), "type": text(),
        "options": list(text()), "invited": list(text()), "deadline": maybe(), "ties": text(), "secret": flag(),
    }));
    let counted = json!({
        "type": "object",
        "required": ["from", "choice", "abstains", "read_from", "message", "digest", "signature", "answer"],
        "properties": {
            "from": text(), "choice": maybe(), "abstains": flag(), "confidence": text(),
            "read_from": {"enum": ["vote", "first-line", "correction"]},
            "corrected": object(json!({"by": text(), "message": maybe(), "read_as": maybe()})),
            "sender": text(), "message": maybe(), "digest": digest,
            "signature": {"enum": ["holds", "unchecked", "none"]},
            "pkid": text(), "verdict": text(), "undated": flag(), "answer": text(),
        },
        "additionalProperties": false
    });
    let not_counted = object(json!({
        "from": text(), "message": maybe(), "digest": digest,
        "why": {"enum": ["uninvited", "late", "superseded", "unreadable", "unclear-sender", "not-believed", "unsigned",
            "several-keys", "same-id", "other-parent", "declined", "correction"]},
        "detail": text(), "answer": text(),
    }));
    let mut schema = form(
        POLL_SCHEMA,
        "What `crosstalk poll status`, `collate` and `close` print with --json. `pairwise` is there if it is ranked, \
         `state` and what follows it if it comes from a store or a relay.",
        json!({
            "schema": {"const": POLL_SCHEMA},
            "poll": asked, "at": maybe(), "veiled": flag(), "outcome": maybe(), "reason": maybe(), "tally": numbers,
            "quorum": object(json!({"required": {"type": ["integer", "null"]}, "counted": number, "reached": flag()})),
            "counted": list(counted), "not_counted": list(not_counted), "missing": list(text()),
            "agreement": list(object(json!({"choice": maybe(), "voters": list(text())}))),
        }),
    );
    let further = [
        (
            "pairwise",
            json!({"type": "object", "additionalProperties": numbers}),
        ),
        ("state", json!({"enum": ["open", "closed"]})),
        ("thread", text()),
        ("ends_at", maybe()),
        ("closed_at", maybe()),
        ("past", flag()),
    ];
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.extend(further.map(|(key, value)| (key.to_owned(), value)));
    }
    schema
}
