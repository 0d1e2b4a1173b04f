//! Who can reach the files, whatever the user's umask is.

use crate::{Place, again, at, never, new_key};
use crosstalk_protocol::{KeyStanding, KnownKey, Origin};
use crosstalk_store::{Home, KeyFileError, KeyStore, TrustFile, TrustStoreError};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn written() {
    if !again::is_begun() {
        return;
    }
    let home = Home::from_env().unwrap();
    let store = KeyStore::new(&home);
    let key = new_key();
    let stored = store.create("alice", &key, None, at(0)).unwrap();
    store.set_passphrase(&stored, &key, None).unwrap();
    let backup = AsRef::<Path>::as_ref(&home).join("backup.txt");
    store.backup(&stored, &key, &backup, "geheim").unwrap();
    let pin = KnownKey {
        id: "bob".to_owned(),
        key: key.public(),
        since: at(0),
        how: Origin::Manual,
        by: None,
        senders: Vec::new(),
        standing: KeyStanding::Active,
        credential: None,
    };
    let update = TrustFile::new(&home).update(|trust| {
        trust.pin(pin).unwrap();
        Ok::<_, TrustStoreError>(())
    });
    update.unwrap();
}

#[test]
fn files_are_for_their_owner_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let place = Place::new();
        let home = place.path().join("deep/home");
        let set = [("CROSSTALK_HOME", home.to_str())];
        again::finish(again::begin("permission::written", Some(umask), &set));
        for folder in ["", "keys", ".."] {
            assert_eq!(mode(&home.join(folder)), 0o700, "{umask} {folder}");
        }
        let mut count = 0;
        for folder in [home.clone(), home.join("keys")] {
            for name in crate::all_names(&folder).iter().filter(|n| *n != "keys") {
                assert_eq!(mode(&folder.join(name)), 0o600, "{umask} {name}");
                count += 1;
            }
        }
        // The two files of the key, the backup, the trust file and two locks.
        assert_eq!(count, 6, "{umask}");
    }
}

#[test]
fn a_private_key_that_others_can_read_is_refused() {
    let place = Place::new();
    let store = place.store();
    let key = store.create("alice", &new_key(), None, at(0)).unwrap();
    for wrong in [0o644, 0o640, 0o604, 0o660] {
        set_mode(key.path(), wrong);
        let fault = store.load(&key, never).unwrap_err();
        assert!(matches!(fault, KeyFileError::Exposed { .. }), "{fault}");
        let said = fault.to_string();
        let remedy = format!("chmod 600 '{}'", key.path().display());
        assert!(said.contains(&remedy), "{said}");
        assert!(said.contains(&format!("{wrong:04o}")), "{said}");
        assert!(store.is_encrypted(&key).is_err());
    }
    for right in [0o600, 0o400] {
        set_mode(key.path(), right);
        store.load(&key, never).unwrap();
    }
    // A link may lead elsewhere; what counts is the file at its end.
    let elsewhere = place.path().join("elsewhere.pem");
    std::fs::rename(key.path(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, key.path()).unwrap();
    store.load(&key, never).unwrap();
    set_mode(&elsewhere, 0o644);
    assert!(store.load(&key, never).is_err());
}

#[test]
fn files_that_others_can_write_are_rejected() {
    let place = Place::new();
    let store = place.store();
    store.create("alice", &new_key(), None, at(0)).unwrap();
    let facts = place.home().keys().join("alice.toml");
    set_mode(&facts, 0o664);
    let fault = store.find("alice").unwrap_err().to_string();
    assert!(
        fault.contains("chmod 600") && fault.contains("0664"),
        "{fault}"
    );
    set_mode(&facts, 0o644);
    store.find("alice").unwrap();

    let file = TrustFile::new(&place.home());
    std::fs::write(file.path(), "schema = \"crosstalk.trust/1\"\n").unwrap();
    set_mode(file.path(), 0o666);
    let fault = file.read().unwrap_err();
    assert!(matches!(fault, TrustStoreError::Exposed { .. }), "{fault}");
    assert!(fault.to_string().contains("chmod 600"), "{fault}");
    set_mode(file.path(), 0o644);
    file.read().unwrap();
}

#[test]
fn a_private_key_of_somebody_else_is_refused() {
    let place = Place::new();
    let store = place.store();
    let key = store.create("alice", &new_key(), None, at(0)).unwrap();
    // Only the superuser can give files away; how owners are compared is tested beside the code for everybody.
    if std::os::unix::fs::chown(key.path(), Some(12_345), None).is_ok() {
        let fault = store.load(&key, never).unwrap_err().to_string();
        assert!(
            fault.contains("12345") && fault.contains("chown"),
            "{fault}"
        );
    }
}
