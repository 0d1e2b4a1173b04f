//! The schemas of `verify`, `key` and `trust`.

use super::{KEYS, TRUST, VERIFY, finding};
use crosstalk_protocol::VerdictWord;
use serde_json::{Value, json};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(super) fn maybe() -> Value {
    json!({"type": ["string", "null"]})
}

fn fingerprint() -> Value {
    json!({"type": ["string", "null"], "pattern": "^([0-9]{5} ){7}[0-9]{5}$"})
}

/// An object that may be missing, with these fields, all of them required.
pub(super) fn maybe_object(fields: Value) -> Value {
    let mut object = object(fields);
    if let Some(map) = object.as_object_mut() {
        map.insert("type".to_owned(), json!(["object", "null"]));
    }
    object
}

/// An object with these fields, all of them required.
pub(super) fn object(fields: Value) -> Value {
    let names = fields.as_object().map(|map| map.keys().cloned());
    let names: Vec<String> = names.into_iter().flatten().collect();
    json!({"type": "object", "required": names, "properties": fields})
}

/// A form: its name, what it is, and its fields.
pub(super) fn form(name: &str, description: &str, fields: Value) -> Value {
    let mut form = json!({"$schema": DRAFT, "title": name, "description": description});
    if let (Some(form), Value::Object(object)) = (form.as_object_mut(), object(fields)) {
        form.extend(object);
    }
    form
}

pub(super) fn verify() -> Value {
    let words = VerdictWord::ALL.map(VerdictWord::as_str);
    let number = json!({"type": "integer", "minimum": 0});
    let trust = [
        "dns",
        "pinned",
        "did",
        "given",
        "first-contact",
        "unsigned",
        "unknown-key",
        "rc1",
    ];
    let trust: Vec<Value> = trust
        .into_iter()
        .map(Value::from)
        .chain([Value::Null])
        .collect();
    let mut form = form(
        VERIFY,
        "What `crosstalk verify --json` prints, one object a line and an envelope. `file` is there if more than one file was read.",
        json!({
            "schema": {"const": VERIFY},
            "verdict": {"enum": words},
            "body": {"enum": ["intact", "reflowed", "truncated", "altered", null]},
            "lines": {"type": "array", "items": number},
            "after": {"type": ["integer", "null"], "minimum": 0},
            "pkid": maybe(),
            "algorithm": maybe(),
            "fingerprint": fingerprint(),
            "trust": {"enum": trust},
            "since": maybe(),
            "dnssec": {"enum": ["secure", "insecure", "indeterminate", null]},
            "sender": maybe(),
            "receiver": maybe(),
            "message": maybe(),
            "signed_at": maybe(),
            "sentence": {"type": "string", "minLength": 1},
            "next": {"type": "string", "minLength": 1},
            "rule": {"type": ["string", "null"], "pattern": "^[A-Z]{3}-[0-9]{3}$"},
            "code": maybe(),
            "retry": {"type": "boolean"},
            "key_change": maybe_object(json!({"known": fingerprint(), "offered": fingerprint()})),
            "envelope": maybe(),
            "restored": maybe(),
            "repairs": {"type": "array", "items": {"$ref": "#/$defs/finding"}},
        }),
    );
    if let Some(form) = form.as_object_mut() {
        form.insert("$defs".to_owned(), json!({"finding": finding()}));
    }
    form
}

pub(super) fn keys() -> Value {
    let key = object(json!({
        "id": text(),
        "state": {"enum": ["active", "replaced", "revoked"]},
        "algorithm": {"enum": ["ed25519", "secp256r1"]},
        "fingerprint": fingerprint(),
        "public": text(),
        "did": text(),
        "created": text(),
        "replaces": maybe_object(json!({"id": text(), "public": text(), "grace_until": text()})),
        "replaced": maybe_object(json!({"at": text(), "by": text(), "grace_until": text()})),
        "revoked": maybe_object(json!({"at": text(), "reason": maybe()})),
        "encrypted": {"type": "boolean"},
        "file": text(),
    }));
    form(
        KEYS,
        "What `crosstalk key list --json` and `crosstalk key show --json` print. There is no private key in it.",
        json!({
            "schema": {"const": KEYS},
            "keys": {"type": "array", "items": key},
            "problems": {"type": "array", "items": text()},
        }),
    )
}

pub(super) fn trust() -> Value {
    let remarks = json!({"type": "array", "items": object(json!({
        "wrong": {"type": "boolean"}, "text": text(),
    }))});
    let key = object(json!({
        "id": text(),
        "standing": {"enum": ["pinned", "replaced", "revoked", "distrusted"]},
        "algorithm": {"enum": ["ed25519", "secp256r1"]},
        "fingerprint": fingerprint(),
        "public": text(),
        "since": text(),
        "how": text(),
        "by": maybe(),
        "senders": {"type": "array", "items": text()},
        "replaced": maybe_object(json!({"by": text(), "public": text(), "at": text(), "grace": text()})),
        "revoked": maybe_object(json!({"at": text(), "reason": maybe(), "by": maybe()})),
        "distrusted": maybe_object(json!({"at": text(), "reason": maybe()})),
        "remarks": remarks,
    }));
    let domain = object(json!({
        "domain": text(),
        "keys": {"type": "array", "items": text()},
        "dnssec": {"enum": ["secure", "insecure", "indeterminate"]},
        "asked": text(),
        "expires": text(),
    }));
    form(
        TRUST,
        "What `crosstalk trust list --json` and `crosstalk trust check --json` print. Remarks are those of `check`.",
        json!({
            "schema": {"const": TRUST},
            "keys": {"type": "array", "items": key},
            "domains": {"type": "array", "items": domain},
            "remarks": remarks,
        }),
    )
}
