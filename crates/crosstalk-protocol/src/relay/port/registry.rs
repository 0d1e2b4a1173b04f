//! Tokens, declared agents, and attachments.

use super::StoreFuture;
use crate::audit::{Event, EventDetail, EventKind};
use crate::relay::capability::Agent;
use crate::relay::peer::Role;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use std::collections::BTreeSet;

/// The tokens and the agents that a relay knows.
pub trait Registry {
    /// All tokens and agents; nothing if they are those of a version that the caller knows. A change counts from the moment
    /// that [`change_registry`](Self::change_registry), or another process, has answered for it. When tokens were last used
    /// makes no new version.
    fn registry(&self, known: Option<RegistryVersion>)
    -> StoreFuture<'_, Option<RegistrySnapshot>>;

    /// Changes something. False if there is nothing to change.
    fn change_registry(&self, change: RegistryChange) -> StoreFuture<'_, bool>;
}

/// A version of the registry, for this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistryVersion(pub u64);

/// The registry in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrySnapshot {
    /// The version.
    pub version: RegistryVersion,
    /// All tokens, by name.
    pub tokens: Vec<TokenRecord>,
    /// The capabilities that agents declared, by address.
    pub agents: Vec<Agent>,
}

/// A change of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryChange {
    /// Keeps a token, and writes it into the log (AUD-003), unless there is one of this name, even a revoked one, or with this
    /// secret.
    AddToken {
        /// The token.
        token: TokenRecord,
        /// The caller that created it.
        by: String,
    },
    /// Gives the token that waits under the hash of a pairing code its secret, without an end, and writes it into the log
    /// (HTP-069), unless there is none, or it was revoked or has expired.
    Pair {
        /// The hash of the code.
        code: Digest,
        /// The hash of the secret.
        secret: Digest,
        /// When.
        at: Timestamp,
    },
    /// Revokes a token, and writes it into the log (AUD-003), unless there is none of this name, or it was revoked before.
    RevokeToken {
        /// Its name.
        name: String,
        /// The caller that revoked it.
        by: String,
        /// When.
        at: Timestamp,
    },
    /// Notes when tokens were last used, by the hash of their secret. An earlier time changes nothing.
    NoteUses(Vec<(Digest, Timestamp)>),
    /// Keeps what an agent says it can do, in place of what it said before.
    Declare {
        /// The agent.
        agent: Agent,
        /// When.
        at: Timestamp,
    },
}

/// Which attachments are here, who uploaded them, and who may read them. Their bytes are files of the relay, unless several relays
/// share the store: then it keeps them in parts, which go with the attachment.
pub trait BlobIndex {
    /// Notes that a credential uploaded an attachment, or did again. References in messages that the same credential
    /// handed in before grant access to it from now on.
    fn add_blob(&self, upload: Upload, at: Timestamp) -> StoreFuture<'_, ()>;

    /// How many bytes of attachments a credential has at the relay, besides one: each counts at least
    /// [`BLOB_BYTES_LEAST`].
    fn uploaded_bytes(&self, by: &str, besides: Digest) -> StoreFuture<'_, u64>;

    /// Looks up the use of an attachment.
    fn blob_use(&self, query: BlobQuery) -> StoreFuture<'_, BlobUse>;

    /// Whether the store keeps the bytes of attachments.
    fn keeps_bytes(&self) -> bool {
        false
    }

    /// Keeps a part of an attachment that [`add_blob`](Self::add_blob) adds when all parts are here.
    fn add_part(&self, part: BlobPart, at: Timestamp) -> StoreFuture<'_, ()> {
        let _ = (part, at);
        Box::pin(async { Ok(()) })
    }

    /// A part of an attachment; nothing behind the last one, or if the store has none of its bytes.
    fn read_part(&self, digest: Digest, number: u64) -> StoreFuture<'_, Option<StoredPart>> {
        let _ = (digest, number);
        Box::pin(async { Ok(None) })
    }
}

/// How long the parts of an attachment are, but for the last one.
pub const BLOB_PART_BYTES: usize = 256 << 10;

/// A part of the bytes of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPart {
    /// The id of the upload, which no other one has.
    pub upload: String,
    /// The number of the part, from 0 on.
    pub number: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A part of an attachment that a store keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPart {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How many bytes the whole attachment has.
    pub size: u64,
}

/// An attachment that a credential uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many they are.
    pub size: u64,
    /// The name of the credential.
    pub by: String,
    /// The id of the upload whose parts the store keeps; nothing if the bytes are a file of the relay.
    pub parts: Option<String>,
}

/// A question about an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobQuery {
    /// The attachment.
    pub digest: Digest,
    /// The credential that asks; any, if none is named.
    pub by: Option<String>,
    /// The time.
    pub now: Timestamp,
    /// How many of the latest messages that refer to it are looked at.
    pub limit: usize,
}

/// The use of an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobUse {
    /// Whether the credential uploaded it and has not referred to it in a message.
    pub is_unused: bool,
    /// Senders and recipients of the latest messages whose reference grants access, of those that are indexed and have not
    /// expired.
    pub parties: BTreeSet<String>,
}

/// What an attachment counts at least, in bytes: a file takes up a block of the disk.
pub const BLOB_BYTES_LEAST: u64 = 4096;

/// Who created a token, in the log, if that was the owner of a pairing code.
pub const PAIRED: &str = "pairing";

/// A token as it is kept: not the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its name.
    pub name: String,
    /// The SHA-256 of the secret.
    pub hash: Digest,
    /// What it is for.
    pub role: Role,
    /// For which addresses, as patterns.
    pub addresses: Vec<String>,
    /// To whom it may carry messages of others, as patterns.
    pub courier: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl TokenRecord {
    /// What the log says about its creation (AUD-003): its name and what it is good for, never the secret or its hash.
    pub fn created(&self, by: &str) -> Event<'static> {
        let mut detail = EventDetail::default()
            .with("token", &self.name)
            .with("by", by)
            .with("role", self.role.as_str());
        for (name, addresses) in [("for", &self.addresses), ("courier", &self.courier)] {
            if !addresses.is_empty() {
                detail = detail.with(name, &addresses.join(","));
            }
        }
        if let Some(end) = self.expires_at {
            detail = detail.with("expires", &end.to_string());
        }
        Event {
            detail: Some(detail),
            ..Event::new(EventKind::Granted, self.created_at)
        }
    }

    /// The same token once its pairing code was used: with its secret, and without an end.
    #[must_use]
    pub fn paired(self, secret: Digest, at: Timestamp) -> Self {
        Self {
            hash: secret,
            created_at: at,
            expires_at: None,
            ..self
        }
    }

    /// Whether its pairing code can be used now.
    pub fn can_pair(&self, at: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_some_and(|end| end > at)
    }

    /// What the log says about the revocation of a token that no REVOKE asked for (AUD-003).
    pub fn revoked(name: &str, by: &str, at: Timestamp) -> Event<'static> {
        Event {
            detail: Some(EventDetail::default().with("token", name).with("by", by)),
            ..Event::new(EventKind::Revoked, at)
        }
    }
}
