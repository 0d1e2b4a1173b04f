//! Keys of others, for people and for programs.

use crate::console::{BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::{json, schema};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::{Domain, KnownKey, Origin, PinError, Standing};
use serde_json::{Value, json};

/// A remark on a key or a domain: whether something is wrong, and the sentence.
#[derive(Clone, Debug)]
pub(super) struct Remark {
    pub(super) wrong: bool,
    pub(super) text: String,
}

impl Remark {
    pub(super) fn note(text: impl Into<String>) -> Self {
        Self {
            wrong: false,
            text: text.into(),
        }
    }

    pub(super) fn wrong(text: impl Into<String>) -> Self {
        Self {
            wrong: true,
            text: text.into(),
        }
    }
}

/// The standing of a key in a word.
pub(super) const fn word(standing: &Standing) -> &'static str {
    match standing {
        Standing::Active => "pinned",
        Standing::Replaced { .. } => "replaced",
        Standing::Revoked { .. } => "revoked",
        Standing::Distrusted { .. } => "distrusted",
    }
}

/// A key for people: its id and standing, the fingerprint, where it comes from, and what is to say about it.
pub(super) fn key(known: &KnownKey, remarks: &[Remark]) -> String {
    let style = match known.standing {
        Standing::Active => GREEN,
        Standing::Replaced { .. } => YELLOW,
        Standing::Revoked { .. } | Standing::Distrusted { .. } => RED,
    };
    let mut out = format!(
        "{}  {}\n  {}\n",
        styled(BOLD, &escape(&known.id)),
        styled(style, word(&known.standing)),
        known.key.fingerprint()
    );
    let mut line = |text: &str| {
        out.push_str(&format!("  {}\n", styled(DIM, &wrap(&escape(text), 2, 2))));
    };
    line(&format!("since {}, {}", known.since, origin(known.how)));
    if !known.senders.is_empty() {
        line(&format!("used by {}", known.senders.join(", ")));
    }
    match &known.standing {
        Standing::Active => {}
        Standing::Replaced { by, at, grace, .. } => {
            line(&format!(
                "replaced by {by} on {at}; what it signs after {grace} does not count"
            ));
        }
        Standing::Revoked { at, reason, .. } | Standing::Distrusted { at, reason } => {
            let reason = reason.as_ref().map_or(String::new(), |r| format!(": {r}"));
            line(&format!("{} on {at}{reason}", word(&known.standing)));
        }
    }
    out.push_str(&told(remarks));
    out
}

/// Remarks, one a line.
pub(super) fn told(remarks: &[Remark]) -> String {
    let mut out = String::new();
    for remark in remarks {
        let (style, word) = match remark.wrong {
            true => (RED, "wrong"),
            false => (DIM, "note"),
        };
        let text = wrap(&escape(&remark.text), word.len() + 4, word.len() + 4);
        out.push_str(&format!("  {}: {text}\n", styled(style, word)));
    }
    out
}

/// How a key came here, in words.
const fn origin(how: Origin) -> &'static str {
    match how {
        Origin::FirstContact => "from a message",
        Origin::Manual => "by hand",
        Origin::Dns => "by its domain",
        Origin::Revocation => "by its revocation",
    }
}

/// The JSON form of what is known.
pub(super) fn report(
    keys: &[(&KnownKey, Vec<Remark>)],
    domains: &[&Domain],
    unknown: &[Remark],
) -> Result<String, Failure> {
    let keys: Vec<Value> = keys.iter().map(|(k, r)| key_object(k, r)).collect();
    let domains: Vec<Value> = domains.iter().map(|d| domain_object(d)).collect();
    let remarks: Vec<Value> = unknown.iter().map(remark_object).collect();
    json::pretty(&json!({
        "schema": schema::TRUST, "keys": keys, "domains": domains, "remarks": remarks,
    }))
}

fn key_object(known: &KnownKey, remarks: &[Remark]) -> Value {
    let (replaced, revoked, distrusted) = match &known.standing {
        Standing::Active => (None, None, None),
        Standing::Replaced { by, key, at, grace } => (
            Some(json!({
                "by": by, "public": key.record(), "at": at.to_string(), "grace": grace.to_string(),
            })),
            None,
            None,
        ),
        Standing::Revoked { at, reason, by } => (
            None,
            Some(json!({"at": at.to_string(), "reason": reason, "by": by})),
            None,
        ),
        Standing::Distrusted { at, reason } => (
            None,
            None,
            Some(json!({"at": at.to_string(), "reason": reason})),
        ),
    };
    json!({
        "id": known.id,
        "standing": word(&known.standing),
        "algorithm": known.key.algorithm().as_str(),
        "fingerprint": known.key.fingerprint().to_string(),
        "public": known.key.record(),
        "since": known.since.to_string(),
        "how": known.how.as_str(),
        "by": known.by,
        "senders": known.senders,
        "replaced": replaced,
        "revoked": revoked,
        "distrusted": distrusted,
        "remarks": remarks.iter().map(remark_object).collect::<Vec<Value>>(),
    })
}

fn domain_object(domain: &Domain) -> Value {
    json!({
        "domain": domain.name,
        "keys": domain.keys.iter().map(|k| k.record()).collect::<Vec<String>>(),
        "dnssec": domain.dnssec.as_str(),
        "asked": domain.asked.to_string(),
        "expires": domain.expires.to_string(),
    })
}

fn remark_object(remark: &Remark) -> Value {
    json!({"wrong": remark.wrong, "text": remark.text})
}

/// Why a key is not pinned, with both fingerprints if there are two.
/// `replace` is how to pin it all the same.
pub(super) fn refusal(pin: &KnownKey, fault: &PinError, replace: &str) -> String {
    let id = &pin.id;
    match fault {
        PinError::NoRoom => format!("there is no room for another first contact like {id}"),
        PinError::Denied(reason) => format!("the key of {id} counts for nobody: it was {reason}"),
        PinError::Changed(known) => format!(
            "{id} has another key already\n  known key  {}\n  other key  {}\n\
             compare both with the sender by voice; if the other one is theirs, {replace}",
            known.fingerprint(),
            pin.key.fingerprint()
        ),
        PinError::SenderChanged(ids) => format!(
            "{} has signed as {} so far, and not as {id}\n  other key  {}\n\
             ask the sender by another way; if {id} is theirs, {replace}",
            pin.senders.join(", "),
            ids.join(" or "),
            pin.key.fingerprint()
        ),
        PinError::LooksLike(name, like) => format!(
            "{name} looks like {like}, who signs with another key\n  other key  {}\n\
             compare the names letter by letter; if {name} is somebody else, {replace}",
            pin.key.fingerprint()
        ),
        PinError::Refused(standing) => format!(
            "this key of {id} is {}{}",
            word(standing),
            match **standing {
                Standing::Distrusted { .. } =>
                    ": take that back with `crosstalk trust remove ID` first",
                Standing::Replaced { .. } => " by another one: --replace takes it back",
                _ => ", and nothing takes that back",
            }
        ),
    }
}
