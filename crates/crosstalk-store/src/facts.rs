//! Public facts about a key: the TOML file beside its private key, `crosstalk.key/1`.

use crosstalk_envelope::{PublicKey, Timestamp, base64, is_key_id};
use serde::{Deserialize, Serialize};

const SCHEMA: &str = "crosstalk.key/1";
const TITLE: &str = "# What is public about the private key beside this file. `crosstalk key` reads and writes it.\n\n";

/// The public facts of a private key in this store.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFacts {
    /// Its id.
    pub id: String,
    /// The key that verifies.
    pub public: PublicKey,
    /// When it was made, or came here.
    pub created: Timestamp,
    /// The key before it, if it took the place of one.
    pub rotation: Option<KeyRotation>,
    /// The key behind it, if one took its place.
    pub retired: Option<KeyRetirement>,
    /// Whether it was revoked.
    pub revoked: Option<KeyRevocation>,
}

/// The predecessor of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRotation {
    /// The id of the old key.
    pub replaces: String,
    /// The old key.
    pub replaces_key: PublicKey,
    /// Until when the old key may still sign.
    pub grace_until: Timestamp,
    /// The old key's signature over the change, in base64.
    pub proof: String,
}

/// The successor of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRetirement {
    /// Since when.
    pub at: Timestamp,
    /// The id of the new key.
    pub by: String,
    /// Until when it may still sign.
    pub grace: Timestamp,
}

/// That a key counts no more.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRevocation {
    /// From when on.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KeyFactsToml {
    schema: String,
    id: String,
    public: String,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotation: Option<RotationTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired: Option<RetiredTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<RevokedTable>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RotationTable {
    replaces: String,
    replaces_key: String,
    grace_until: String,
    proof: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RetiredTable {
    at: String,
    by: String,
    grace: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RevokedTable {
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl KeyFacts {
    /// The facts of a key that replaced none.
    pub fn new(id: impl Into<String>, public: PublicKey, created: Timestamp) -> Self {
        Self {
            id: id.into(),
            public,
            created,
            rotation: None,
            retired: None,
            revoked: None,
        }
    }

    /// Whether the key counts: it was neither replaced nor revoked.
    pub const fn is_active(&self) -> bool {
        self.retired.is_none() && self.revoked.is_none()
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct FactsHead {
            schema: String,
        }
        let fault = |e: toml::de::Error| e.to_string().trim_end().to_owned();
        let head: FactsHead = toml::from_str(text).map_err(fault)?;
        if head.schema != SCHEMA {
            return Err(format!(
                "the schema is `{}`, and not `{SCHEMA}`",
                head.schema
            ));
        }
        let file: KeyFactsToml = toml::from_str(text).map_err(fault)?;
        Ok(Self {
            id: id(file.id)?,
            public: public(&file.public)?,
            created: time(&file.created)?,
            rotation: file.rotation.map(rotation).transpose()?,
            retired: file.retired.map(retired).transpose()?,
            revoked: file.revoked.map(revoked).transpose()?,
        })
    }

    pub(crate) fn to_text(&self) -> Result<String, String> {
        let file = KeyFactsToml {
            schema: SCHEMA.to_owned(),
            id: self.id.clone(),
            public: self.public.record(),
            created: self.created.to_string(),
            rotation: self.rotation.as_ref().map(|r| RotationTable {
                replaces: r.replaces.clone(),
                replaces_key: r.replaces_key.record(),
                grace_until: r.grace_until.to_string(),
                proof: r.proof.clone(),
            }),
            retired: self.retired.as_ref().map(|r| RetiredTable {
                at: r.at.to_string(),
                by: r.by.clone(),
                grace: r.grace.to_string(),
            }),
            revoked: self.revoked.as_ref().map(|r| RevokedTable {
                at: r.at.to_string(),
                reason: r.reason.clone(),
            }),
        };
        let text = toml::to_string(&file).map_err(|e| e.to_string())?;
        let text = format!("{TITLE}{text}");
        // What could not be read again is not written.
        if Self::parse(&text)? == *self {
            Ok(text)
        } else {
            Err("the facts can't be written".to_owned())
        }
    }
}

pub(crate) fn id(text: String) -> Result<String, String> {
    if is_key_id(&text) {
        Ok(text)
    } else {
        Err(format!("`{}` is no key id", text.escape_debug()))
    }
}

pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| format!("`{text}` is no time"))
}

pub(crate) fn public(text: &str) -> Result<PublicKey, String> {
    PublicKey::parse_record(text).map_err(|e| format!("`{text}`: {e}"))
}

pub(crate) fn proof(text: String) -> Result<String, String> {
    match base64::decode(&text) {
        Some(bytes) if bytes.len() == 64 => Ok(text),
        _ => Err("the proof is not a signature in base64".to_owned()),
    }
}

fn rotation(table: RotationTable) -> Result<KeyRotation, String> {
    Ok(KeyRotation {
        replaces: id(table.replaces)?,
        replaces_key: public(&table.replaces_key)?,
        grace_until: time(&table.grace_until)?,
        proof: proof(table.proof)?,
    })
}

fn retired(table: RetiredTable) -> Result<KeyRetirement, String> {
    Ok(KeyRetirement {
        at: time(&table.at)?,
        by: id(table.by)?,
        grace: time(&table.grace)?,
    })
}

fn revoked(table: RevokedTable) -> Result<KeyRevocation, String> {
    Ok(KeyRevocation {
        at: time(&table.at)?,
        reason: table.reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> KeyFacts {
        let public =
            PublicKey::parse_record("ed25519:pk=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=");
        let at = Timestamp::from_millis(1_763_000_000_123);
        KeyFacts {
            rotation: Some(KeyRotation {
                replaces: "old".to_owned(),
                replaces_key: public.clone().unwrap(),
                grace_until: at,
                proof: base64::encode(&[7; 64]),
            }),
            retired: Some(KeyRetirement {
                at,
                by: "new".to_owned(),
                grace: at,
            }),
            revoked: Some(KeyRevocation {
                at,
                reason: Some("lost \"it\"\nyesterday".to_owned()),
            }),
            ..KeyFacts::new("a@example.com", public.unwrap(), at)
        }
    }

    #[test]
    fn facts_are_read_as_they_were_written() {
        let facts = facts();
        assert_eq!(KeyFacts::parse(&facts.to_text().unwrap()).unwrap(), facts);
    }

    #[test]
    fn unknown_entries_are_rejected() {
        let text = facts().to_text().unwrap();
        for (from, to) in [
            ("key/1", "key/2"),
            ("created", "creatd"),
            ("revoked]", "revokd]"),
            ("a@example.com", "a b"),
            ("pk=11", "pk=1"),
            ("proof = \"", "proof = \"BwcH"),
            ("2025-", "25-"),
        ] {
            assert!(text.contains(from), "{from}");
            assert!(
                KeyFacts::parse(&text.replacen(from, to, 1)).is_err(),
                "{from}"
            );
        }
        let unwritable = KeyFacts {
            id: "a b".to_owned(),
            ..facts()
        };
        assert!(unwritable.to_text().is_err());
    }
}
