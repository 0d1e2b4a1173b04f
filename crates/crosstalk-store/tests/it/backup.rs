//! Backups are written once, and restore what was there.

use crate::rotation::handover;
use crate::{Place, at, never, new_key, says};
use crosstalk_store::{KeyFileError, import};

#[test]
fn a_backup_restores_the_key_and_what_was_known_about_it() {
    let (here, there) = (Place::new(), Place::new());
    let store = here.store();
    let (old_private, private) = (new_key(), new_key());
    let old = store
        .create("alice", &old_private, Some("alt"), at(0))
        .unwrap();
    let new = store
        .rotate(&old, "alice", &private, None, handover(10))
        .unwrap();
    let old = store.list().unwrap().of_id("alice").next().unwrap().clone();
    let files = [here.path().join("new.txt"), here.path().join("old.txt")];
    store.backup(&new, &private, &files[0], "geheim").unwrap();
    let opened = store.load(&old, says("alt")).unwrap();
    store.backup(&old, &opened, &files[1], "geheim").unwrap();

    let text = std::fs::read_to_string(&files[0]).unwrap();
    for line in [
        "Key-ID: alice".to_owned(),
        format!("Public-Key: {}", private.public().record()),
        format!("Fingerprint: {}", private.public().fingerprint()),
        format!("Created: {}", at(10)),
        "-----BEGIN ENCRYPTED PRIVATE KEY-----".to_owned(),
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    assert!(text.contains("crosstalk key import FILE"));

    // In whichever order they come back, the one that counts counts.
    for order in [[0, 1], [1, 0]] {
        let there = Place::new();
        for file in order {
            let text = std::fs::read_to_string(&files[file]).unwrap();
            let imported = import(&text, says("geheim")).unwrap();
            let facts = imported.facts.unwrap();
            there
                .store()
                .add(facts, &imported.key, Some("dort"))
                .unwrap();
        }
        let restored = there.store().find("alice").unwrap();
        assert_eq!(restored.facts, new.facts);
        let opened = there.store().load(&restored, says("dort")).unwrap();
        assert_eq!(opened.public(), private.public());
        let listing = there.store().list().unwrap();
        assert_eq!((listing.keys.len(), listing.problems.len()), (2, 0));
        assert_eq!(listing.keys[0].facts, old.facts);
        assert_eq!(there.names(), here.names());
    }

    // What is there already is not brought in again.
    let imported = import(&text, says("geheim")).unwrap();
    let facts = imported.facts.unwrap();
    let fault = store.add(facts.clone(), &imported.key, None).unwrap_err();
    assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
    let fault = there.store().add(facts, &new_key(), None).unwrap_err();
    assert!(matches!(fault, KeyFileError::Mismatch { .. }), "{fault}");
}

#[test]
fn a_backup_overwrites_nothing_and_is_always_encrypted() {
    let place = Place::new();
    let store = place.store();
    let private = new_key();
    let key = store.create("alice", &private, None, at(0)).unwrap();
    let to = place.path().join("backup.txt");
    let fault = store.backup(&key, &private, &to, "").unwrap_err();
    assert!(matches!(fault, KeyFileError::EmptyPassphrase), "{fault}");
    let fault = store.backup(&key, &new_key(), &to, "geheim").unwrap_err();
    assert!(matches!(fault, KeyFileError::Mismatch { .. }), "{fault}");
    assert!(!to.exists());

    std::fs::write(&to, "precious").unwrap();
    let fault = store.backup(&key, &private, &to, "geheim").unwrap_err();
    assert!(fault.to_string().contains("backup.txt"), "{fault}");
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "precious");
    let fault = store.backup(&key, &private, &place.path().join("no/where"), "geheim");
    assert!(fault.unwrap_err().to_string().contains("no/where"));

    std::fs::remove_file(&to).unwrap();
    store.backup(&key, &private, &to, "geheim").unwrap();
    let text = std::fs::read_to_string(&to).unwrap();
    let secret = std::fs::read_to_string(key.path()).unwrap();
    assert!(!text.contains(secret.lines().nth(1).unwrap()));
    let fault = import(&text, says("falsch")).unwrap_err();
    assert!(
        matches!(fault, KeyFileError::WrongPassphrase { .. }),
        "{fault}"
    );
    let imported = import(&text, says("geheim")).unwrap();
    assert_eq!(imported.facts, Some(key.facts));
}

#[test]
fn a_text_without_a_key_is_refused_with_a_reason() {
    let fault = import("Dear all,\nno key here.\n", never)
        .unwrap_err()
        .to_string();
    assert!(fault.contains("BEGIN PRIVATE KEY"), "{fault}");
}
