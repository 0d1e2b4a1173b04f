//! The schemas of `crosstalk consent`.

use super::conversation::{digest, list, refusal};
use super::relay::delivery;
use super::signing::{form, maybe, maybe_object, object, text};
use super::{CONSENT, CONSENT_CHECK, CONSENTS};
use crosstalk_protocol::consent::Assurance;
use serde_json::{Value, json};

fn assurance() -> Value {
    json!({"enum": Assurance::ALL.map(Assurance::as_str)})
}

fn fields() -> Value {
    json!({
        "id": text(), "granter": text(), "pkid": maybe(),
        "assurance": assurance(),
        "consent": maybe(),
        "scopes": list(text()), "to": list(text()), "jurisdictions": list(text()),
        "since": text(), "expires": maybe(),
        "standing": {"enum": ["holds", "expired", "revoked"]},
        "message": text(), "digest": digest(), "originals": list(text()),
        "revoked": maybe_object(json!({"at": text(), "by": text(), "message": text(), "reason": maybe()})),
    })
}

pub(super) fn consents() -> Value {
    form(
        CONSENTS,
        "What `crosstalk consent list --json` prints, the latest first. `consent` is null if it was withdrawn before it was \
         seen.",
        json!({"schema": {"const": CONSENTS}, "consents": list(object(fields()))}),
    )
}

pub(super) fn consent() -> Value {
    let mut all = fields();
    if let Some(map) = all.as_object_mut() {
        let message = object(json!({"id": text(), "has_text": {"type": "boolean"}}));
        map.insert("schema".into(), json!({"const": CONSENT}));
        map.insert("messages".into(), list(message));
        map.insert("told".into(), list(delivery()));
    }
    form(
        CONSENT,
        "What `crosstalk consent show --json` prints. `messages` are kept under it, `told` are the deliveries of the REVOKE \
         at a relay.",
        all,
    )
}

pub(super) fn check() -> Value {
    let one = object(json!({
        "from": text(), "to": text(),
        "enough": {"type": "boolean"},
        "needs": list(text()),
        "consent": maybe(), "scopes": list(text()),
        "assurance": assurance(),
        "expires": maybe(),
        "under": list(text()),
        "refusal": refusal(),
    }));
    form(
        CONSENT_CHECK,
        "What `crosstalk consent check --json` prints: for each envelope whether its consent is enough, what for, until when \
         it would be kept and under which consents; else why not.",
        json!({"schema": {"const": CONSENT_CHECK}, "envelopes": list(one)}),
    )
}
