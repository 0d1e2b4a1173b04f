//! What `verify`, `key` and `trust` print for programs.

use super::{RULE, or_null};
use crate::service::home::KeysAndTrust;
use crosstalk_envelope::Algorithm;
use crosstalk_protocol::dns::Dnssec;
use crosstalk_protocol::{Domain, KeyStanding, KnownKey, Origin, VerdictWord};
use crosstalk_store::{KeyFileError, StoredKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const FINGERPRINT: &str = "^([0-9]{5} ){7}[0-9]{5}$";
const BODIES: [&str; 4] = ["intact", "reflowed", "truncated", "altered"];
const VOUCHERS: [&str; 8] = [
    "dns",
    "pinned",
    "did",
    "given",
    "first-contact",
    "unsigned",
    "unknown-key",
    "rc1",
];

/// What `crosstalk verify --json` prints, one object a line and an envelope.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
pub(crate) struct VerifyReport {
    #[schemars(extend("enum" = VerdictWord::ALL.map(VerdictWord::as_str)))]
    pub(crate) verdict: String,
    #[schemars(extend("enum" = or_null(&BODIES, |word| word)))]
    pub(crate) body: Option<String>,
    pub(crate) lines: Vec<usize>,
    pub(crate) after: Option<usize>,
    pub(crate) pkid: Option<String>,
    pub(crate) algorithm: Option<String>,
    #[schemars(extend("pattern" = FINGERPRINT))]
    pub(crate) fingerprint: Option<String>,
    #[schemars(extend("enum" = or_null(&VOUCHERS, |word| word)))]
    pub(crate) trust: Option<String>,
    pub(crate) since: Option<String>,
    #[schemars(extend("enum" = or_null(&Dnssec::ALL, Dnssec::as_str)))]
    pub(crate) dnssec: Option<String>,
    pub(crate) sender: Option<String>,
    pub(crate) receiver: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) signed_at: Option<String>,
    #[schemars(length(min = 1))]
    pub(crate) sentence: String,
    #[schemars(length(min = 1))]
    pub(crate) next: String,
    #[schemars(extend("pattern" = RULE))]
    pub(crate) rule: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) retry: bool,
    pub(crate) key_change: Option<KeyChangeReport>,
    pub(crate) envelope: Option<String>,
    pub(crate) restored: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::findings")]
    pub(crate) repairs: Vec<Value>,
    /// There if more than one file was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) file: Option<String>,
}

/// The fingerprints of two keys for one id.
#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct KeyChangeReport {
    #[schemars(extend("pattern" = FINGERPRINT))]
    pub(crate) known: String,
    #[schemars(extend("pattern" = FINGERPRINT))]
    pub(crate) offered: String,
}

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
