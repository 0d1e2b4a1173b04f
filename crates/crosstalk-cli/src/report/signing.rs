//! What `verify`, `key` and `trust` print for programs.

use crate::service::home::KeysAndTrust;
use crosstalk_binding::form::FINGERPRINT;
use crosstalk_envelope::Algorithm;
use crosstalk_protocol::dns::Dnssec;
use crosstalk_protocol::{Domain, KeyStanding, KnownKey, Origin};
use crosstalk_store::{KeyFileError, StoredKey};
use schemars::JsonSchema;
use serde::Serialize;

/// What `crosstalk key list --json` and `crosstalk key show --json` print. There is no private key in it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KeysReport {
    keys: Vec<KeyReport>,
    problems: Vec<String>,
}

/// A key of one's own.
#[derive(Serialize, JsonSchema)]
struct KeyReport {
    id: String,
    #[schemars(extend("enum" = ["active", "replaced", "revoked"]))]
    state: &'static str,
    #[schemars(extend("enum" = Algorithm::ALL.map(Algorithm::as_str)))]
    algorithm: &'static str,
    #[schemars(extend("pattern" = FINGERPRINT))]
    fingerprint: String,
    public: String,
    did: String,
    created: String,
    replaces: Option<PredecessorReport>,
    replaced: Option<SuccessorReport>,
    revoked: Option<RevokedKeyReport>,
    encrypted: bool,
    file: String,
}

/// The key that a key replaced.
#[derive(Serialize, JsonSchema)]
struct PredecessorReport {
    id: String,
    public: String,
    grace_until: String,
}

/// The key that replaced a key.
#[derive(Serialize, JsonSchema)]
struct SuccessorReport {
    at: String,
    by: String,
    grace_until: String,
}

/// When a key was revoked, and why.
#[derive(Serialize, JsonSchema)]
struct RevokedKeyReport {
    at: String,
    reason: Option<String>,
}

impl KeysReport {
    pub(crate) fn new<'k>(
        rooms: &KeysAndTrust,
        keys: impl IntoIterator<Item = &'k StoredKey>,
        problems: &[KeyFileError],
    ) -> Result<Self, KeyFileError> {
        let keys = keys.into_iter().map(|key| KeyReport::new(rooms, key));
        Ok(Self {
            keys: keys.collect::<Result<_, _>>()?,
            problems: problems.iter().map(ToString::to_string).collect(),
        })
    }
}

impl KeyReport {
    fn new(rooms: &KeysAndTrust, key: &StoredKey) -> Result<Self, KeyFileError> {
        let facts = &key.facts;
        Ok(Self {
            id: facts.id.clone(),
            state: state_of(key),
            algorithm: facts.public.algorithm().as_str(),
            fingerprint: facts.public.fingerprint().to_string(),
            public: facts.public.record(),
            did: facts.public.to_did(),
            created: facts.created.to_string(),
            replaces: facts.rotation.as_ref().map(|old| PredecessorReport {
                id: old.replaces.clone(),
                public: old.replaces_key.record(),
                grace_until: old.grace_until.to_string(),
            }),
            replaced: facts.retired.as_ref().map(|new| SuccessorReport {
                at: new.at.to_string(),
                by: new.by.clone(),
                grace_until: new.grace.to_string(),
            }),
            revoked: facts.revoked.as_ref().map(|revoked| RevokedKeyReport {
                at: revoked.at.to_string(),
                reason: revoked.reason.clone(),
            }),
            encrypted: rooms.keys.is_encrypted(key)?,
            file: key.path().to_string_lossy().into_owned(),
        })
    }
}

/// The state of a key of one's own in a word.
pub(crate) const fn state_of(key: &StoredKey) -> &'static str {
    if key.facts.revoked.is_some() {
        "revoked"
    } else if key.facts.retired.is_some() {
        "replaced"
    } else {
        "active"
    }
}

/// What `crosstalk trust list --json` and `crosstalk trust check --json` print. Remarks are those of `check`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TrustReport {
    pub(crate) keys: Vec<KnownKeyReport>,
    pub(crate) domains: Vec<DomainReport>,
    pub(crate) remarks: Vec<Remark>,
}

/// A remark on a key or a domain: whether something is wrong, and the sentence.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Remark {
    pub(crate) wrong: bool,
    pub(crate) text: String,
}

impl Remark {
    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self {
            wrong: false,
            text: text.into(),
        }
    }

    pub(crate) fn wrong(text: impl Into<String>) -> Self {
        Self {
            wrong: true,
            text: text.into(),
        }
    }
}

/// The key of somebody else.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KnownKeyReport {
    id: String,
    #[schemars(extend("enum" = ["pinned", "replaced", "revoked", "distrusted"]))]
    standing: &'static str,
    #[schemars(extend("enum" = Algorithm::ALL.map(Algorithm::as_str)))]
    algorithm: &'static str,
    #[schemars(extend("pattern" = FINGERPRINT))]
    fingerprint: String,
    public: String,
    since: String,
    #[schemars(extend("enum" = Origin::ALL.map(Origin::as_str)))]
    how: &'static str,
    by: Option<String>,
    senders: Vec<String>,
    replaced: Option<KnownSuccessorReport>,
    revoked: Option<KnownRevocationReport>,
    distrusted: Option<RevokedKeyReport>,
    remarks: Vec<Remark>,
}

/// The key that replaced the key of somebody else.
#[derive(Serialize, JsonSchema)]
struct KnownSuccessorReport {
    by: String,
    public: String,
    at: String,
    grace: String,
}

/// When the key of somebody else was revoked, why, and by which key.
#[derive(Serialize, JsonSchema)]
struct KnownRevocationReport {
    at: String,
    reason: Option<String>,
    by: Option<String>,
}

impl KnownKeyReport {
    pub(crate) fn new(known: &KnownKey, remarks: Vec<Remark>) -> Self {
        let mut report = Self {
            id: known.id.clone(),
            standing: standing_of(&known.standing),
            algorithm: known.key.algorithm().as_str(),
            fingerprint: known.key.fingerprint().to_string(),
            public: known.key.record(),
            since: known.since.to_string(),
            how: known.how.as_str(),
            by: known.by.clone(),
            senders: known.senders.clone(),
            replaced: None,
            revoked: None,
            distrusted: None,
            remarks,
        };
        match known.standing.clone() {
            KeyStanding::Active => {}
            KeyStanding::Replaced { by, key, at, grace } => {
                report.replaced = Some(KnownSuccessorReport {
                    by,
                    public: key.record(),
                    at: at.to_string(),
                    grace: grace.to_string(),
                });
            }
            KeyStanding::Revoked { at, reason, by } => {
                let at = at.to_string();
                report.revoked = Some(KnownRevocationReport { at, reason, by });
            }
            KeyStanding::Distrusted { at, reason } => {
                let at = at.to_string();
                report.distrusted = Some(RevokedKeyReport { at, reason });
            }
        }
        report
    }
}

/// The standing of a key of somebody else in a word.
pub(crate) const fn standing_of(standing: &KeyStanding) -> &'static str {
    match standing {
        KeyStanding::Active => "pinned",
        KeyStanding::Replaced { .. } => "replaced",
        KeyStanding::Revoked { .. } => "revoked",
        KeyStanding::Distrusted { .. } => "distrusted",
    }
}

/// The last answer of a domain.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DomainReport {
    domain: String,
    keys: Vec<String>,
    #[schemars(extend("enum" = Dnssec::ALL.map(Dnssec::as_str)))]
    dnssec: &'static str,
    asked: String,
    expires: String,
}

impl DomainReport {
    pub(crate) fn new(domain: &Domain) -> Self {
        Self {
            domain: domain.name.clone(),
            keys: domain.keys.iter().map(|key| key.record()).collect(),
            dnssec: domain.dnssec.as_str(),
            asked: domain.asked.to_string(),
            expires: domain.expires.to_string(),
        }
    }
}
