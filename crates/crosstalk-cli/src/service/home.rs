//! The private keys and the trusted keys on this machine, as the commands use them.

use crate::failure::Failure;
use crate::service::passphrase::Passphrase;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::{PrivateKey, PublicKey, base64};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{Rotation, Trust};
use crosstalk_store::{Home, KeyStore, StoredKey, TrustFile};
use std::path::Path;
use zeroize::Zeroizing;

/// The key files and the trust file.
#[derive(Debug)]
pub(crate) struct KeysAndTrust {
    pub(crate) keys: KeyStore,
    pub(crate) trust: TrustFile,
}

/// A private key, and the passphrase that it was opened with.
pub(crate) struct Opened {
    pub(crate) key: PrivateKey,
    pub(crate) passphrase: Option<Zeroizing<String>>,
}

impl KeysAndTrust {
    /// Those of `CROSSTALK_HOME`, or of the platform.
    pub(crate) fn open() -> Result<Self, Failure> {
        let home = Home::from_env()?;
        Ok(Self {
            keys: KeyStore::new(&home),
            trust: TrustFile::new(&home),
        })
    }

    /// The trust file.
    pub(crate) fn trust(&self) -> Result<Trust, Failure> {
        Ok(self.trust.read()?)
    }

    /// Changes the trust file.
    pub(crate) fn change_trust<T>(
        &self,
        change: impl FnOnce(&mut Trust) -> T,
    ) -> Result<T, Failure> {
        self.trust.update(|trust| Ok(change(trust)))
    }

    /// The key with this id, or the only one that may sign.
    pub(crate) fn signing_key(&self, id: Option<&str>) -> Result<StoredKey, Failure> {
        let Some(id) = id else {
            return self.only_key();
        };
        let key = self.keys.find(id)?;
        require_active(&key)?;
        Ok(key)
    }

    fn only_key(&self) -> Result<StoredKey, Failure> {
        let listing = self.keys.list()?;
        let mut active = listing.keys.into_iter().filter(StoredKey::is_active);
        match (active.next(), active.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(Failure::failed("there is no key to sign with")
                .help("create one with `crosstalk key new --id you@example.com`")),
            (Some(first), Some(second)) => {
                let ids = [first, second].into_iter().chain(active);
                let ids: Vec<String> = ids.map(|k| k.facts.id).collect();
                Err(Failure::usage("there are several keys")
                    .help(format!("choose one with --key: {}", ids.join(", "))))
            }
        }
    }

    /// Opens a private key; asks for its passphrase if it has one.
    pub(crate) fn unlock(&self, key: &StoredKey, ask: &Passphrase) -> Result<Opened, Failure> {
        let mut passphrase = None;
        let private = self.keys.load(key, || {
            let answer = ask.ask(&key.facts.id)?;
            passphrase = Some(answer.clone());
            Ok(answer)
        })?;
        Ok(Opened {
            key: private,
            passphrase,
        })
    }
}

/// A key that was replaced or revoked signs nothing any more.
pub(crate) fn require_active(key: &StoredKey) -> Result<(), Failure> {
    let id = &key.facts.id;
    let (what, help) = if let Some(revoked) = &key.facts.revoked {
        (
            format!("the key {id} was revoked on {}", revoked.at),
            "create a new one with `crosstalk key new --id ID`, under another id".to_owned(),
        )
    } else if let Some(retired) = &key.facts.retired {
        (
            format!("the key {id} was replaced on {}", retired.at),
            format!("sign with {}", retired.by),
        )
    } else {
        return Ok(());
    };
    Err(Failure::denied(what).help(help))
}

/// The `meta: key` block of one's own key; after a rotation with the proof of the old key.
pub(crate) fn block_of(key: &StoredKey) -> Vec<(&'static str, String)> {
    let rotation = rotation_of(key);
    let rotation = rotation.as_ref().map(|(r, proof)| (r, proof.as_slice()));
    key_block(&key.facts.id, &key.facts.public, rotation)
}

/// The rotation that brought a key, and the proof of the old one.
pub(crate) fn rotation_of(key: &StoredKey) -> Option<(Rotation, Vec<u8>)> {
    let rotation = key.facts.rotation.as_ref()?;
    let proof = base64::decode(&rotation.proof)?;
    let rotation = Rotation {
        old_id: rotation.replaces.clone(),
        old: rotation.replaces_key,
        new_id: key.facts.id.clone(),
        new: key.facts.public,
        grace: rotation.grace_until,
    };
    Some((rotation, proof))
}

/// A public key of the command line: its record, or a file with the record or in PEM.
pub(crate) fn public_key(text: &str) -> Result<PublicKey, Failure> {
    if text.contains(":pk=") {
        return PublicKey::parse_record(text).map_err(|e| Failure::of_key("the key", &e));
    }
    let content = std::fs::read_to_string(Path::new(text)).map_err(|e| Failure::io(text, e))?;
    crosstalk_binding::public_key(&content).map_err(|e| Failure::from(e).about(text))
}

/// A key of the deny list is good for nothing.
pub(crate) fn require_allowed(key: &PublicKey) -> Result<(), Failure> {
    match key.denied() {
        Some(reason) => Err(Failure::of_rule(
            &rule::KEY_DENIED,
            &format!("nobody may trust the key: it was {reason}"),
        )),
        None => Ok(()),
    }
}
