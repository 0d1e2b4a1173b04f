//! Keys of others that a relay knows: the operator compares, pins and distrusts them.

use crate::client::{Client, ClientError, RequestTarget};
use crate::endpoint::endpoints;
use crate::schema::{self, MAX_ID_CHARS};
use crate::{BodyForm, RequestBody, SuccessResponse};
use crosstalk_protocol::{KeyStanding, KnownKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many senders one request binds to a key.
pub const MAX_PIN_SENDERS: usize = 64;

endpoints! {
    /// Known keys of others
    ///
    /// HTP-063. For the relay operator: pins, first contacts, and keys that count no more.
    TRUSTED_KEYS: TrustedKeys = Get "/crosstalk/trust" for Admin in Trust {
        response: SuccessResponse::ok("The keys, in the order in which they came.", &[BodyForm::json::<TrustedKeys>()]),
    }

    /// Pin a key
    ///
    /// HTP-063. From now on the id belongs to this key. A key that is known as a first contact becomes one that a person compared.
    PIN_KEY: PinKey = Post "/crosstalk/trust/pin" for Admin in Trust {
        request: Some(RequestBody {
            description: "The key.",
            content: &[BodyForm::json::<NewPin>()],
        }),
        response: SuccessResponse::ok("The key as it is known now.", &[BodyForm::json::<TrustedKeyView>()]),
        own_errors: &[409],
    }

    /// Distrust a key
    ///
    /// HTP-063. It counts no more, even if its domain or another key vouches for it.
    DISTRUST_KEY: DistrustKey = Post "/crosstalk/trust/distrust" for Admin in Trust {
        request: Some(RequestBody {
            description: "The key.",
            content: &[BodyForm::json::<Distrust>()],
        }),
        response: SuccessResponse::ok("The key as it is known now.", &[BodyForm::json::<TrustedKeyView>()]),
    }
}

/// A key that the relay knows.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "TrustedKey")]
pub struct TrustedKeyView {
    /// Its id.
    pub id: String,
    /// The key, as a record.
    pub key: String,
    /// The text that people compare.
    pub fingerprint: String,
    /// Since when it is known.
    #[schemars(with = "schema::Time")]
    pub since: String,
    /// How it came here.
    #[schemars(extend("enum" = ["first-contact", "manual", "dns", "revocation"]))]
    pub how: String,
    /// The senders that used it.
    pub senders: Vec<String>,
    /// Whether it still counts.
    #[schemars(extend("enum" = ["active", "replaced", "revoked", "distrusted"]))]
    pub standing: String,
    /// When that changed.
    #[schemars(with = "Option<schema::Time>")]
    pub changed_at: Option<String>,
    /// The id of the key that took its place.
    pub replaced_by: Option<String>,
    /// Why it counts no more.
    pub reason: Option<String>,
}

impl From<&KnownKey> for TrustedKeyView {
    fn from(known: &KnownKey) -> Self {
        let (standing, changed_at, replaced_by, reason) = match &known.standing {
            KeyStanding::Active => ("active", None, None, None),
            KeyStanding::Replaced { by, at, .. } => ("replaced", Some(at), Some(by), None),
            KeyStanding::Revoked { at, reason, .. } => ("revoked", Some(at), None, reason.as_ref()),
            KeyStanding::Distrusted { at, reason } => {
                ("distrusted", Some(at), None, reason.as_ref())
            }
        };
        Self {
            id: known.id.clone(),
            key: known.key.record(),
            fingerprint: known.key.fingerprint().to_string(),
            since: known.since.to_string(),
            how: known.how.as_str().to_owned(),
            senders: known.senders.clone(),
            standing: standing.to_owned(),
            changed_at: changed_at.map(ToString::to_string),
            replaced_by: replaced_by.cloned(),
            reason: reason.cloned(),
        }
    }
}

/// Keys that a relay knows.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct TrustedKeys {
    /// The keys.
    pub keys: Vec<TrustedKeyView>,
}

/// A key that a person compared with its owner, or got by hand.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct NewPin {
    /// Its id.
    #[schemars(length(min = 1, max = MAX_ID_CHARS))]
    pub id: String,
    /// The key, as a record.
    pub key: String,
    /// The senders that use it: of a key that nobody decided about yet, all that are known, so that none is bound unseen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Address>", length(max = MAX_PIN_SENDERS))]
    pub senders: Vec<String>,
    /// Whether it takes the place of another key of this id, or its senders are moved from another id.
    #[serde(default)]
    pub replace: bool,
}

/// A key that is not believed any more.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Distrust {
    /// Its id.
    #[schemars(length(min = 1, max = MAX_ID_CHARS))]
    pub id: String,
    /// The key, as a record.
    pub key: String,
    /// Why, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Client {
    /// Keys of others that the relay knows.
    pub async fn trusted_keys(&self) -> Result<Vec<TrustedKeyView>, ClientError> {
        let target = RequestTarget::of(&TRUSTED_KEYS);
        Ok(self.get::<TrustedKeys>(target).await?.keys)
    }

    /// Pins a key.
    pub async fn pin_key(&self, pin: &NewPin) -> Result<TrustedKeyView, ClientError> {
        self.put(RequestTarget::of(&PIN_KEY), pin).await
    }

    /// Distrusts a key.
    pub async fn distrust_key(&self, key: &Distrust) -> Result<TrustedKeyView, ClientError> {
        self.put(RequestTarget::of(&DISTRUST_KEY), key).await
    }
}
