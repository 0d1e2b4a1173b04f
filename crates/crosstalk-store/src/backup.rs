//! Backups of keys: one text with what is public about a key, and the key itself, encrypted. And what others wrote.

use crosstalk_envelope::{PrivateKey, is_key_id};
use std::fmt::Write as _;
use std::io;
use zeroize::Zeroizing;

use crate::facts::{self, KeyFacts, KeyRetirement, KeyRevocation, KeyRotation};
use crate::fault::KeyFileError;
use crate::pem;

const TITLE: &str = "Backup of a key of Crosstalk. Anyone with this file and its passphrase can sign in the name below.
To restore it: crosstalk key import FILE
Nothing opens it without the passphrase: keep that one in another place.
";

/// A key that came from outside.
#[derive(Debug)]
pub struct Imported {
    /// What a backup says about it; nothing, if another program wrote it.
    pub facts: Option<KeyFacts>,
    /// The key.
    pub key: PrivateKey,
}

/// Reads a key out of a text: a backup of ours, or PKCS#8 in PEM of any other program, encrypted or not. The passphrase
/// is asked for only if the key is encrypted.
///
/// # Errors
/// If there is no such key in the text, or the passphrase does not open it, or a backup contradicts itself.
///
/// ```
/// use crosstalk_envelope::{Algorithm, PrivateKey};
/// let key = PrivateKey::generate(Algorithm::Ed25519)?;
/// let imported = crosstalk_store::import(&key.to_pem()?, || unreachable!("it is not encrypted"))?;
/// assert_eq!(imported.key.public(), key.public());
/// assert_eq!(imported.facts, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn import(
    text: &str,
    ask: impl FnOnce() -> io::Result<Zeroizing<String>>,
) -> Result<Imported, KeyFileError> {
    let facts = read(text).map_err(|what| KeyFileError::not_a_key(what, ""))?;
    let key = pem::open(text, ask)?;
    match &facts {
        Some(facts) if facts.public != key.public() => Err(KeyFileError::Mismatch { file: None }),
        _ => Ok(Imported { facts, key }),
    }
}

/// The text of a backup.
pub(crate) fn text(
    facts: &KeyFacts,
    key: &PrivateKey,
    passphrase: &str,
) -> Result<Zeroizing<String>, KeyFileError> {
    let block = pem::seal(key, Some(passphrase))?;
    let mut text = Zeroizing::new(TITLE.to_owned());
    let mut line = |name: &str, value: &str| {
        // A value has one line, whatever a person wrote as a reason.
        let value: String = value.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "{name}: {value}");
    };
    line("\nKey-ID", &facts.id);
    line("Public-Key", &facts.public.record());
    line("Fingerprint", &facts.public.fingerprint().to_string());
    line("Created", &facts.created.to_string());
    if let Some(rotation) = &facts.rotation {
        line("Replaces", &rotation.replaces);
        line("Replaces-Key", &rotation.replaces_key.record());
        line("Grace-Until", &rotation.grace_until.to_string());
        line("Proof", &rotation.proof);
    }
    if let Some(retired) = &facts.retired {
        line("Replaced-At", &retired.at.to_string());
        line("Replaced-By", &retired.by);
        line("Replaced-Grace", &retired.grace.to_string());
    }
    if let Some(revoked) = &facts.revoked {
        line("Revoked-At", &revoked.at.to_string());
        if let Some(reason) = &revoked.reason {
            line("Revoked-Reason", reason);
        }
    }
    let _ = write!(text, "\n{}", *block);
    Ok(text)
}

/// The facts of a backup. A text without a `Key-ID` is none.
fn read(text: &str) -> Result<Option<KeyFacts>, String> {
    let value = |name: &str| {
        pem::around(text).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    let needed = |name: &str| value(name).ok_or_else(|| format!("its `{name}` line is missing"));
    let Some(id) = value("Key-ID") else {
        return Ok(None);
    };
    if !is_key_id(&id) {
        return Err(format!("its `Key-ID` `{}` is no key id", id.escape_debug()));
    }
    let public = facts::public(&needed("Public-Key")?)?;
    let mut found = KeyFacts::new(id, public, facts::time(&needed("Created")?)?);
    if let Some(replaces) = value("Replaces") {
        found.rotation = Some(KeyRotation {
            replaces: facts::id(replaces)?,
            replaces_key: facts::public(&needed("Replaces-Key")?)?,
            grace_until: facts::time(&needed("Grace-Until")?)?,
            proof: facts::proof(needed("Proof")?)?,
        });
    }
    if let Some(at) = value("Replaced-At") {
        found.retired = Some(KeyRetirement {
            at: facts::time(&at)?,
            by: facts::id(needed("Replaced-By")?)?,
            grace: facts::time(&needed("Replaced-Grace")?)?,
        });
    }
    if let Some(at) = value("Revoked-At") {
        found.revoked = Some(KeyRevocation {
            at: facts::time(&at)?,
            reason: value("Revoked-Reason"),
        });
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_envelope::{Algorithm, Timestamp, base64};

    fn pass() -> io::Result<Zeroizing<String>> {
        Ok(Zeroizing::new("geheim".to_owned()))
    }

    #[test]
    fn a_backup_says_everything_that_the_store_knew() {
        let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
        let at = Timestamp::from_millis(1_763_000_000_000);
        let plain = KeyFacts::new("alice@example.com", key.public(), at);
        let full = KeyFacts {
            rotation: Some(KeyRotation {
                replaces: "alice".to_owned(),
                replaces_key: key.public(),
                grace_until: at,
                proof: base64::encode(&[1; 64]),
            }),
            retired: Some(KeyRetirement {
                at,
                by: "alice2".to_owned(),
                grace: at,
            }),
            revoked: Some(KeyRevocation {
                at,
                reason: Some("lost: a laptop".to_owned()),
            }),
            ..plain.clone()
        };
        for facts in [plain, full] {
            let text = text(&facts, &key, "geheim").unwrap();
            let imported = import(&text, pass).unwrap();
            assert_eq!(imported.facts.as_ref(), Some(&facts));
            assert_eq!(imported.key.public(), key.public());
            let crlf = text.replace('\n', "\r\n");
            assert_eq!(import(&crlf, pass).unwrap().facts, Some(facts));
        }
    }

    #[test]
    fn a_reason_can_not_add_a_line() {
        let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
        let at = Timestamp::from_millis(0);
        let mut facts = KeyFacts::new("alice", key.public(), at);
        facts.revoked = Some(KeyRevocation {
            at,
            reason: Some("x\nReplaces: mallory".to_owned()),
        });
        let text = text(&facts, &key, "geheim").unwrap();
        let read = import(&text, pass).unwrap().facts.unwrap();
        assert_eq!(read.rotation, None);
    }

    #[test]
    fn a_backup_that_contradicts_itself_is_refused() {
        let key = PrivateKey::generate(Algorithm::Ed25519).unwrap();
        let other = PrivateKey::generate(Algorithm::Ed25519).unwrap().public();
        let facts = KeyFacts::new("alice", key.public(), Timestamp::from_millis(0));
        let text = text(&facts, &key, "geheim").unwrap();
        let swapped = text.replace(&key.public().record(), &other.record());
        let fault = import(&swapped, pass).unwrap_err();
        assert!(matches!(fault, KeyFileError::Mismatch { .. }), "{fault}");
        for (from, to) in [
            ("Public-Key:", "X:"),
            ("Created:", "X:"),
            ("Key-ID: a", "Key-ID: a "),
            ("1970", "70"),
        ] {
            let fault = import(&text.replace(from, to), pass).unwrap_err();
            assert!(matches!(fault, KeyFileError::NotAKey { .. }), "{fault}");
        }
    }
}
