//! Changes of a key: a new passphrase, rotation, revocation. The store never deletes a key.

use crosstalk_envelope::Explanation;
use crosstalk_envelope::{PrivateKey, Timestamp};

use super::{
    KeyListing, KeyStore, LABEL, PRIVATE, PUBLIC, StoredKey, describe, require_pair, sealed,
};
use crate::disk::{self, Lock};
use crate::facts::{KeyFacts, KeyRetirement, KeyRevocation, KeyRotation};
use crate::fault::KeyFileError;
use crate::{name, pem};

/// How a key takes the place of another.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyHandover {
    /// When.
    pub at: Timestamp,
    /// Until when the old key may still sign.
    pub grace_until: Timestamp,
    /// The old key's signature over the change, in base64.
    pub proof: String,
}

impl KeyStore {
    /// Stores a key anew, encrypted with another passphrase, or without one.
    ///
    /// # Errors
    /// If the passphrase is empty, the private key is another one, or the disk says no. The old file is then as it was.
    pub fn set_passphrase(
        &self,
        key: &StoredKey,
        private: &PrivateKey,
        passphrase: Option<&str>,
    ) -> Result<(), KeyFileError> {
        require_pair(&key.facts, private)?;
        let text = pem::seal(private, passphrase)?;
        let _lock = Lock::wait(&self.folder, LABEL)?;
        let current = self.current(&self.scan()?, key)?;
        Ok(disk::replace(&current.private, &text, LABEL)?)
    }

    /// Stores a new key in the place of an old one, whose files stay under a longer name. The new key may have the id of
    /// the old one.
    ///
    /// # Errors
    /// If the old key was replaced or revoked before, or the new one can't be stored. The old key then still counts.
    pub fn rotate(
        &self,
        old: &StoredKey,
        new_id: &str,
        key: &PrivateKey,
        passphrase: Option<&str>,
        handover: KeyHandover,
    ) -> Result<StoredKey, KeyFileError> {
        let mut facts = KeyFacts::new(new_id, key.public(), handover.at);
        facts.rotation = Some(KeyRotation {
            replaces: old.facts.id.clone(),
            replaces_key: old.facts.public,
            grace_until: handover.grace_until,
            proof: handover.proof,
        });
        let text = sealed(&facts, key, passphrase)?;
        let _lock = Lock::wait(&self.folder, LABEL)?;
        let listing = self.scan()?;
        require_in_force(&self.current(&listing, old)?)?;
        let same_id = old.facts.id == new_id;
        let mut others = listing.of_id(new_id);
        if let Some(other) = others.find(|k| !same_id || k.facts.public == facts.public) {
            return Err(KeyFileError::Exists {
                id: facts.id,
                file: other.private.clone(),
            });
        }
        let stem = if same_id {
            name::of_key(new_id, &facts.public)
        } else {
            name::of_id(new_id)
        };
        let new = self.put(stem, facts, &text)?;
        // From here on the old key counts as replaced. Names are made tidy now or by the next command.
        let _ = self.tidy(self.scan()?);
        self.current(&self.scan()?, &new)
    }

    /// Gives each key that was replaced its mark and the longer name, and then each one that counts the short name.
    fn tidy(&self, listing: KeyListing) -> Result<(), KeyFileError> {
        let (active, retired): (Vec<_>, Vec<_>) = listing
            .keys
            .into_iter()
            .partition(|key| key.facts.retired.is_none());
        for key in retired {
            self.set_aside(key)?;
        }
        for key in active {
            self.settle(key)?;
        }
        Ok(())
    }

    /// Marks a key as replaced by one that is elsewhere, and gives its files the longer name.
    ///
    /// # Errors
    /// If it was replaced or revoked before, or the disk says no.
    pub fn retire(
        &self,
        key: &StoredKey,
        retired: KeyRetirement,
    ) -> Result<StoredKey, KeyFileError> {
        let _lock = Lock::wait(&self.folder, LABEL)?;
        let mut current = self.current(&self.scan()?, key)?;
        require_in_force(&current)?;
        current.facts.retired = Some(retired);
        self.set_aside(current)
    }

    /// Marks a key that was replaced, and gives its files the longer name. At each step, the facts lead to the private
    /// key.
    fn set_aside(&self, mut key: StoredKey) -> Result<StoredKey, KeyFileError> {
        let longer = name::of_key(&key.facts.id, &key.facts.public);
        if key.stem != longer {
            self.describe_anew(&key)?;
            let (private, public) = (self.file(&longer, PRIVATE), self.file(&longer, PUBLIC));
            if key.private != private {
                disk::rename(&key.private, &private)?;
                key.private = private;
            }
            disk::rename(&self.file(&key.stem, PUBLIC), &public)?;
            key.stem = longer;
        }
        Ok(key)
    }

    /// Gives the files of a key that counts the short name: the facts first, which find a private key of the longer
    /// name, too.
    fn settle(&self, key: StoredKey) -> Result<(), KeyFileError> {
        let short = name::of_id(&key.facts.id);
        let (private, public) = (self.file(&short, PRIVATE), self.file(&short, PUBLIC));
        if key.stem != short {
            disk::rename(&self.file(&key.stem, PUBLIC), &public)?;
        }
        if key.private != private {
            disk::rename(&key.private, &private)?;
        }
        Ok(())
    }

    /// Marks a key as revoked. The private key stays, so that the revocation can be told again. The first mark counts.
    ///
    /// # Errors
    /// If the key is not there, or the disk says no.
    pub fn revoke(
        &self,
        key: &StoredKey,
        at: Timestamp,
        reason: Option<&str>,
    ) -> Result<StoredKey, KeyFileError> {
        let _lock = Lock::wait(&self.folder, LABEL)?;
        let mut current = self.current(&self.scan()?, key)?;
        if current.facts.revoked.is_none() {
            current.facts.revoked = Some(KeyRevocation {
                at,
                reason: reason.map(str::to_owned),
            });
            self.describe_anew(&current)?;
        }
        Ok(current)
    }

    fn describe_anew(&self, key: &StoredKey) -> Result<(), KeyFileError> {
        let file = self.file(&key.stem, PUBLIC);
        let text = describe(&key.facts, &file)?;
        Ok(disk::replace(&file, &text, LABEL)?)
    }

    /// The key as it is now: others may have changed it since it was found.
    pub(super) fn current(
        &self,
        listing: &KeyListing,
        key: &StoredKey,
    ) -> Result<StoredKey, KeyFileError> {
        let mut found = listing.of_id(&key.facts.id);
        let found = found.find(|k| k.facts.public == key.facts.public).cloned();
        found.ok_or_else(|| KeyFileError::NotFound {
            id: key.facts.id.clone(),
            folder: self.folder.clone(),
        })
    }
}

fn require_in_force(key: &StoredKey) -> Result<(), KeyFileError> {
    let (what, help) = match (&key.facts.retired, &key.facts.revoked) {
        (None, None) => return Ok(()),
        (_, Some(revoked)) => (
            format!(
                "it was revoked at {}, and nobody trusts its signatures",
                revoked.at
            ),
            "make a new key with `crosstalk key new --id ID`",
        ),
        (Some(retired), None) => (
            format!("the key `{}` took its place at {}", retired.by, retired.at),
            "replace that one",
        ),
    };
    Err(KeyFileError::NotInForce {
        id: key.facts.id.clone(),
        explanation: Explanation::new(what, help),
    })
}
