//! The schemas of the commands of a relay.

use super::signing::{form, maybe, maybe_object, object, text};
use super::{APPROVAL, APPROVALS, DEAD, DEMO, FSCK, LISTEN, RELAYS, SERVE_CHECK, STATUS, TOKENS};
use serde_json::{Value, json};

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn states() -> Value {
    json!({"enum": ["queued", "delivered", "read", "acknowledged", "failed", "held", "quarantined"]})
}

pub(super) fn tokens() -> Value {
    let token = object(json!({
        "name": text(),
        "role": {"enum": ["agent", "person", "admin", "monitor"]},
        "for": list(text()),
        "courier": list(text()),
        "state": {"enum": ["active", "expired", "revoked"]},
        "created_at": text(), "expires_at": maybe(), "revoked_at": maybe(), "last_used_at": maybe(),
    }));
    form(
        TOKENS,
        "What `crosstalk token list --json` prints: never a secret.",
        json!({"schema": {"const": TOKENS}, "tokens": list(token)}),
    )
}

pub(super) fn serve_check() -> Value {
    let check = object(json!({
        "what": {"enum": [
            "configuration", "data folder", "log level", "store", "listen address", "certificate and key", "key",
            "name servers", "trust file", "routes",
        ]},
        "file": maybe(), "good": {"type": "boolean"}, "needed": {"type": "boolean"}, "message": text(),
    }));
    form(
        SERVE_CHECK,
        "What `crosstalk serve --check --json` prints. `ready` is true if the relay would start: everything that is `needed` \
         is good.",
        json!({"schema": {"const": SERVE_CHECK}, "ready": {"type": "boolean"}, "checks": list(check)}),
    )
}

pub(super) fn relays() -> Value {
    let relay = object(json!({
        "url": text(), "for": list(text()), "token_file": maybe(), "profile": maybe(),
        "line": {"type": "integer", "minimum": 1},
    }));
    form(
        RELAYS,
        "What `crosstalk relay list --json` prints, in the order of the settings, those of the profile first.",
        json!({"schema": {"const": RELAYS}, "relays": list(relay)}),
    )
}

/// A message at a relay; `history` is there with an ESCALATE and a HANDOFF.
fn message(further: Value) -> Value {
    let mut properties = json!({
        "id": text(), "thread": text(), "from": text(), "to": text(), "intent": maybe(),
        "state": states(), "received_at": text(), "envelope": text(),
    });
    if let (Some(all), Value::Object(more)) = (properties.as_object_mut(), further) {
        all.extend(more);
    }
    let mut message = object(properties);
    if let Some(properties) = message
        .pointer_mut("/properties")
        .and_then(Value::as_object_mut)
    {
        properties.insert("history".into(), list(text()));
        properties.insert("withheld".into(), json!({"type": "integer", "minimum": 1}));
    }
    message
}

pub(super) fn listen() -> Value {
    let mut schema = message(json!({"schema": {"const": LISTEN}}));
    if let Some(map) = schema.as_object_mut() {
        map.insert(
            "$schema".into(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        map.insert("title".into(), LISTEN.into());
        map.insert(
            "description".into(),
            "What `crosstalk listen --json` prints, a line for each message.".into(),
        );
    }
    schema
}

/// How far a message is on its way to one recipient.
pub(super) fn delivery() -> Value {
    object(json!({
        "to": text(), "by": text(), "state": states(), "attempts": number(), "queued_at": text(),
        "delivered_at": maybe(), "read_at": maybe(), "acknowledged_at": maybe(), "failed_at": maybe(),
        "reason": maybe(), "next_at": maybe(), "running_since": maybe(), "never_read": {"type": "boolean"},
        "did_you_mean": maybe(),
    }))
}

pub(super) fn status() -> Value {
    let delivery = delivery();
    form(
        STATUS,
        "What `crosstalk status --json` prints: how far a message is on its way to each recipient.",
        json!({
            "schema": {"const": STATUS},
            "id": text(), "thread": text(), "sender": text(), "deliveries": list(delivery),
        }),
    )
}

/// A message that waits for a person, or did.
fn waiting() -> Value {
    let goal = object(json!({"to": text(), "by": text()}));
    let made = maybe_object(json!({
        "decision": {"enum": ["approved", "refused", "lapsed"]}, "by": text(), "at": text(), "reason": maybe(),
    }));
    json!({
        "id": text(), "thread": text(), "from": text(), "to": text(), "intent": maybe(), "received_at": text(),
        "signature": text(), "pkid": maybe(), "handed_in_by": text(), "recipients": list(goal), "why": text(),
        "deciders": list(text()), "ends_at": maybe(), "digest": text(), "raw": text(), "envelope": maybe(),
        "decided": made,
    })
}

pub(super) fn approvals() -> Value {
    form(
        APPROVALS,
        "What `crosstalk approve --json` prints: what waits for a person, the oldest first.",
        json!({"schema": {"const": APPROVALS}, "approvals": list(object(waiting()))}),
    )
}

pub(super) fn approval() -> Value {
    let mut all = waiting();
    if let Some(map) = all.as_object_mut() {
        map.insert("schema".into(), json!({"const": APPROVAL}));
    }
    form(
        APPROVAL,
        "What `crosstalk approve ID --json` and `crosstalk refuse --json` print: the message, and what was decided.",
        all,
    )
}

pub(super) fn dead() -> Value {
    let delivery = object(json!({
        "id": text(), "from": text(), "to": text(), "by": text(), "attempts": number(),
        "reason": maybe(), "failed_at": maybe(),
    }));
    form(
        DEAD,
        "What `crosstalk dead --json` prints, the latest first.",
        json!({"schema": {"const": DEAD}, "deliveries": list(delivery)}),
    )
}

pub(super) fn fsck() -> Value {
    let place = object(json!({
        "place": text(), "attachments": number(), "findings": list(text()), "repaired": list(text()),
        "unchecked": list(text()),
    }));
    let quarantined = object(json!({"id": text(), "seq": number(), "reason": text()}));
    form(
        FSCK,
        "What `crosstalk fsck --json` prints: what is damaged in each place, what was repaired, what could not be checked, and \
         which messages could not be indexed.",
        json!({
            "schema": {"const": FSCK}, "sound": {"type": "boolean"}, "quarantine": list(quarantined),
            "places": list(place),
        }),
    )
}

pub(super) fn demo() -> Value {
    let chapter = object(json!({
        "title": text(),
        "ok": {"type": "boolean"},
        "facts": {"type": "object"},
        "error": maybe(),
    }));
    form(
        DEMO,
        "What `crosstalk demo --json` prints: the chapters up to the last, or to the first that did not come out as it \
         should.",
        json!({"schema": {"const": DEMO}, "chapters": list(chapter)}),
    )
}
