//! The text of a trust store: TOML, `crosstalk.trust/1` (TRU-030), and of what a relay keeps beside it without anybody's
//! decision, `crosstalk.contacts/1` (TRU-004).

use super::{Domain, KeyStanding, KnownKey, Origin, Trust};
use crate::dns::{Dnssec, is_host};
use crosstalk_envelope::{PublicKey, Timestamp, is_key_id};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

const SCHEMA: &str = "crosstalk.trust/1";
const TITLE: &str = "# Whom this Crosstalk believes. `crosstalk trust` reads and writes it.\n\n";
const CONTACTS_SCHEMA: &str = "crosstalk.contacts/1";
const CONTACTS_TITLE: &str =
    "# Keys that this relay saw at first contact. `crosstalk trust` reads and writes it.\n\n";

/// Why a text is no trust store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TrustFileError(String);

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TrustToml {
    schema: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    key: Vec<KeyToml>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dns: Vec<DnsToml>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ContactsFile {
    schema: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contact: Vec<Contact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dns: Vec<DnsToml>,
}

/// What one credential brought.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Contact {
    credential: String,
    key: Vec<KeyToml>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KeyToml {
    id: String,
    public: String,
    since: String,
    how: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    senders: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<Replaced>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<RevokedToml>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distrusted: Option<Distrusted>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Replaced {
    by: String,
    public: String,
    at: String,
    grace: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RevokedToml {
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Distrusted {
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct DnsToml {
    domain: String,
    keys: Vec<String>,
    dnssec: String,
    asked: String,
    expires: String,
}

impl Trust {
    /// Reads the text of a trust store. It rejects unknown entries: a typo must not weaken trust.
    ///
    /// ```
    /// use crosstalk_protocol::Trust;
    /// let text = "schema = \"crosstalk.trust/1\"\n[[key]]\nid = \"a@example.com\"\nhow = \"manual\"\n\
    ///     since = \"2026-11-15T12:00:00Z\"\npublic = \"ed25519:pk=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"\n";
    /// let trust = Trust::parse(text).unwrap();
    /// assert_eq!(Trust::parse(&trust.to_text()).unwrap(), trust);
    /// assert!(Trust::parse(&text.replace("since", "sinse")).is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, TrustFileError> {
        let file: TrustToml = parse(text, SCHEMA)?;
        let trust = Self {
            keys: file.key.iter().map(known).collect::<Result<_, _>>()?,
            domains: file.dns.iter().map(domain).collect::<Result<_, _>>()?,
        };
        trust.checked()
    }

    /// Adds what a relay keeps in a file of contacts. A decision about the same key or domain counts instead of it.
    pub fn add_contacts(self, text: &str) -> Result<Self, TrustFileError> {
        let file: ContactsFile = parse(text, CONTACTS_SCHEMA)?;
        let mut trust = self;
        for Contact { credential, key } in file.contact {
            if credential.contains(char::is_control) {
                return fault("a `credential` has a control character".to_owned());
            }
            for key in &key {
                let key = known(key)?;
                if key.is_decided() {
                    return fault(format!("`{}` is no contact: it came by a decision", key.id));
                }
                if trust.entry(&key.id, &key.key).is_none() {
                    let credential = Some(credential.clone());
                    trust.keys.push(KnownKey { credential, ..key });
                }
            }
        }
        for dns in &file.dns {
            let domain = domain(dns)?;
            if !trust.domains.iter().any(|d| d.name == domain.name) {
                let is_contact = true;
                trust.domains.push(Domain {
                    is_contact,
                    ..domain
                });
            }
        }
        trust.checked()
    }

    /// No sender may have two keys that both count under one id.
    fn checked(self) -> Result<Self, TrustFileError> {
        let mut active = HashSet::new();
        for key in self
            .keys
            .iter()
            .filter(|k| k.standing == KeyStanding::Active)
        {
            let is_new = match key.how {
                Origin::FirstContact if !key.senders.is_empty() => {
                    let mut senders = key.senders.iter();
                    senders.all(|s| active.insert((key.id.as_str(), Some(s.as_str()))))
                }
                _ => active.insert((key.id.as_str(), None)),
            };
            if !is_new {
                return fault(format!("`{}` has two keys that both count", key.id));
            }
        }
        Ok(self)
    }

    /// The text of the trust store, without contacts.
    pub fn to_text(&self) -> String {
        let keys = self.keys.iter().filter(|k| k.credential.is_none());
        let domains = self.domains.iter().filter(|d| !d.is_contact);
        let file = TrustToml {
            schema: SCHEMA.to_owned(),
            key: keys.map(written).collect(),
            dns: domains.map(written_domain).collect(),
        };
        let text = toml::to_string(&file).unwrap_or_default();
        format!("{TITLE}{text}")
    }

    /// The text of the contacts.
    pub fn contacts_to_text(&self) -> String {
        let mut contacts: Vec<Contact> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for key in self.keys.iter() {
            let Some(credential) = &key.credential else {
                continue;
            };
            let place = *places.entry(credential).or_insert(contacts.len());
            match contacts.get_mut(place) {
                Some(contact) => contact.key.push(written(key)),
                None => contacts.push(Contact {
                    credential: credential.clone(),
                    key: vec![written(key)],
                }),
            }
        }
        let domains = self.domains.iter().filter(|d| d.is_contact);
        let file = ContactsFile {
            schema: CONTACTS_SCHEMA.to_owned(),
            contact: contacts,
            dns: domains.map(written_domain).collect(),
        };
        let text = toml::to_string(&file).unwrap_or_default();
        format!("{CONTACTS_TITLE}{text}")
    }

    /// The text without contacts and answers of domains: what is worth giving to others.
    pub fn to_export(&self) -> String {
        let keys = self.keys.clone();
        let domains = Vec::new();
        Self { keys, domains }.to_text()
    }
}

/// Reads a text of a schema.
fn parse<T: DeserializeOwned>(text: &str, schema: &str) -> Result<T, TrustFileError> {
    #[derive(Deserialize)]
    struct SchemaHead {
        schema: String,
    }
    let head: SchemaHead = toml::from_str(text).map_err(|e| TrustFileError(e.to_string()))?;
    if head.schema != schema {
        let message = format!("the schema is `{}`, and not `{schema}`", head.schema);
        return Err(TrustFileError(message));
    }
    toml::from_str(text).map_err(|e| TrustFileError(e.to_string()))
}

fn fault<T>(message: String) -> Result<T, TrustFileError> {
    Err(TrustFileError(message))
}

fn time(text: &str) -> Result<Timestamp, TrustFileError> {
    Timestamp::parse(text).ok_or_else(|| TrustFileError(format!("`{text}` is no time")))
}

fn public(text: &str) -> Result<PublicKey, TrustFileError> {
    PublicKey::parse_record(text).map_err(|e| TrustFileError(format!("`{text}`: {e}")))
}

fn known(key: &KeyToml) -> Result<KnownKey, TrustFileError> {
    if !is_key_id(&key.id) {
        return fault(format!("`{}` is no key id", key.id));
    }
    let reasons = [
        key.by.as_ref(),
        key.revoked.as_ref().and_then(|r| r.reason.as_ref()),
        key.revoked.as_ref().and_then(|r| r.by.as_ref()),
        key.distrusted.as_ref().and_then(|d| d.reason.as_ref()),
    ];
    let mut texts = reasons.into_iter().flatten().chain(&key.senders);
    if texts.any(|t| t.contains(char::is_control)) {
        return fault(format!("a text of `{}` has a control character", key.id));
    }
    let how = Origin::ALL.into_iter().find(|o| o.as_str() == key.how);
    let Some(how) = how else {
        return fault(format!("`{}` is no way for a key to come here", key.how));
    };
    let standing = match (&key.revoked, &key.distrusted, &key.replaced) {
        (None, None, None) => KeyStanding::Active,
        (Some(revoked), None, None) => KeyStanding::Revoked {
            at: time(&revoked.at)?,
            reason: revoked.reason.clone(),
            by: revoked.by.clone(),
        },
        (None, Some(distrusted), None) => KeyStanding::Distrusted {
            at: time(&distrusted.at)?,
            reason: distrusted.reason.clone(),
        },
        (None, None, Some(replaced)) if !is_key_id(&replaced.by) => {
            return fault(format!("`{}` is no key id", replaced.by));
        }
        (None, None, Some(replaced)) => KeyStanding::Replaced {
            by: replaced.by.clone(),
            key: public(&replaced.public)?,
            at: time(&replaced.at)?,
            grace: time(&replaced.grace)?,
        },
        _ => return fault(format!("`{}` is marked in more than one way", key.id)),
    };
    Ok(KnownKey {
        id: key.id.clone(),
        key: public(&key.public)?,
        since: time(&key.since)?,
        how,
        by: key.by.clone(),
        senders: key.senders.clone(),
        standing,
        credential: None,
    })
}

fn written(known: &KnownKey) -> KeyToml {
    let (mut replaced, mut revoked, mut distrusted) = (None, None, None);
    match &known.standing {
        KeyStanding::Active => {}
        KeyStanding::Replaced { by, key, at, grace } => {
            replaced = Some(Replaced {
                by: by.clone(),
                public: key.record(),
                at: at.to_string(),
                grace: grace.to_string(),
            });
        }
        KeyStanding::Revoked { at, reason, by } => {
            revoked = Some(RevokedToml {
                at: at.to_string(),
                reason: reason.clone(),
                by: by.clone(),
            });
        }
        KeyStanding::Distrusted { at, reason } => {
            distrusted = Some(Distrusted {
                at: at.to_string(),
                reason: reason.clone(),
            });
        }
    }
    KeyToml {
        id: known.id.clone(),
        public: known.key.record(),
        since: known.since.to_string(),
        how: known.how.as_str().to_owned(),
        by: known.by.clone(),
        senders: known.senders.clone(),
        replaced,
        revoked,
        distrusted,
    }
}

fn domain(dns: &DnsToml) -> Result<Domain, TrustFileError> {
    let Some(dnssec) = Dnssec::parse(&dns.dnssec) else {
        return fault(format!("`{}` is no status of DNSSEC", dns.dnssec));
    };
    if !is_host(&dns.domain) || dns.domain.bytes().any(|b| b.is_ascii_uppercase()) {
        return fault(format!("`{}` is no domain in lower case", dns.domain));
    }
    Ok(Domain {
        name: dns.domain.clone(),
        keys: dns
            .keys
            .iter()
            .map(|k| public(k))
            .collect::<Result<_, _>>()?,
        dnssec,
        asked: time(&dns.asked)?,
        expires: time(&dns.expires)?,
        is_contact: false,
    })
}

fn written_domain(domain: &Domain) -> DnsToml {
    DnsToml {
        domain: domain.name.clone(),
        keys: domain.keys.iter().map(PublicKey::record).collect(),
        dnssec: domain.dnssec.as_str().to_owned(),
        asked: domain.asked.to_string(),
        expires: domain.expires.to_string(),
    }
}
