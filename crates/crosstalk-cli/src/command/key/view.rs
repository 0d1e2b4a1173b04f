//! A key of one's own, for people and for programs. The private key is in neither.

use crate::console::{DIM, GREEN, RED, YELLOW, styled};
use crate::failure::Failure;
use crate::service::home::Rooms;
use crate::{json, schema};
use crosstalk_envelope::unicode::escape;
use crosstalk_store::{KeyFileError, StoredKey};
use serde_json::{Value, json};

/// The columns of a name, with the space behind it.
const NAMES: usize = 13;

/// Everything that is public about a key, one thing a line.
pub(super) fn text(rooms: &Rooms, key: &StoredKey) -> Result<String, KeyFileError> {
    let facts = &key.facts;
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let pad = " ".repeat(NAMES.saturating_sub(name.len()));
        out.push_str(&format!("{}{pad}{}\n", styled(DIM, name), escape(value)));
    };
    line("id", &facts.id);
    line("fingerprint", &facts.public.fingerprint().to_string());
    line("algorithm", facts.public.algorithm().as_str());
    line("record", &facts.public.record());
    line("did:key", &facts.public.to_did());
    line("created", &facts.created.to_string());
    if let Some(rotation) = &facts.rotation {
        let old = rotation.replaces_key.fingerprint();
        line("replaces", &format!("{} ({old})", rotation.replaces));
    }
    if let Some(retired) = &facts.retired {
        let text = format!(
            "on {} by {}; what it signs after {} does not count",
            retired.at, retired.by, retired.grace
        );
        line("replaced", &text);
    }
    if let Some(revoked) = &facts.revoked {
        let reason = revoked.reason.as_ref();
        let reason = reason.map_or(String::new(), |r| format!(": {r}"));
        line("revoked", &format!("on {}{reason}", revoked.at));
    }
    let passphrase = match rooms.keys.is_encrypted(key)? {
        true => "yes",
        false => "no: whoever reads the file can sign",
    };
    line("passphrase", passphrase);
    line("file", &key.path().display().to_string());
    Ok(out)
}

/// The state of a key in a word, with its style.
pub(super) fn state(key: &StoredKey) -> String {
    if key.facts.revoked.is_some() {
        styled(RED, "revoked")
    } else if key.facts.retired.is_some() {
        styled(YELLOW, "replaced")
    } else {
        styled(GREEN, "active")
    }
}

const fn state_word(key: &StoredKey) -> &'static str {
    if key.facts.revoked.is_some() {
        "revoked"
    } else if key.facts.retired.is_some() {
        "replaced"
    } else {
        "active"
    }
}

/// The JSON form of some keys.
pub(super) fn report<'k>(
    rooms: &Rooms,
    keys: impl IntoIterator<Item = &'k StoredKey>,
    problems: &[KeyFileError],
) -> Result<String, Failure> {
    let keys = keys.into_iter().map(|key| object(rooms, key));
    let keys = keys.collect::<Result<Vec<Value>, KeyFileError>>()?;
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    json::pretty(&json!({"schema": schema::KEYS, "keys": keys, "problems": problems}))
}

fn object(rooms: &Rooms, key: &StoredKey) -> Result<Value, KeyFileError> {
    let facts = &key.facts;
    let rotation = facts.rotation.as_ref().map(|r| {
        json!({
            "id": r.replaces, "public": r.replaces_key.record(), "grace_until": r.grace_until.to_string(),
        })
    });
    let retired = facts
        .retired
        .as_ref()
        .map(|r| json!({"at": r.at.to_string(), "by": r.by, "grace_until": r.grace.to_string()}));
    let revoked = facts.revoked.as_ref();
    let revoked = revoked.map(|r| json!({"at": r.at.to_string(), "reason": r.reason}));
    Ok(json!({
        "id": facts.id,
        "state": state_word(key),
        "algorithm": facts.public.algorithm().as_str(),
        "fingerprint": facts.public.fingerprint().to_string(),
        "public": facts.public.record(),
        "did": facts.public.to_did(),
        "created": facts.created.to_string(),
        "replaces": rotation,
        "replaced": retired,
        "revoked": revoked,
        "encrypted": rooms.keys.is_encrypted(key)?,
        "file": key.path().to_string_lossy(),
    }))
}
