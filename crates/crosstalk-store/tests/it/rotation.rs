//! A key takes the place of another; nothing of the old one is lost.

use crate::{Place, at, never, new_key, says};
use crosstalk_envelope::base64;
use crosstalk_store::{KeyFileError, KeyHandover, KeyRetirement, KeyStore, StoredKey};

pub(crate) fn handover(seconds: i64) -> KeyHandover {
    KeyHandover {
        at: at(seconds),
        grace_until: at(seconds + 1000),
        proof: base64::encode(&[9; 64]),
    }
}

fn first(store: &KeyStore) -> (StoredKey, crosstalk_envelope::PrivateKey) {
    let private = new_key();
    let key = store.create("alice", &private, Some("alt"), at(0)).unwrap();
    (key, private)
}

#[test]
fn the_same_id_keeps_its_name_and_its_history() {
    let place = Place::new();
    let store = place.store();
    let (old, old_private) = first(&store);
    let new_private = new_key();
    let new = store
        .rotate(&old, "alice", &new_private, Some("neu"), handover(10))
        .unwrap();
    assert_eq!(store.find("alice").unwrap(), new);
    assert_eq!(new.path().file_name().unwrap(), "alice.pem");
    let rotation = new.facts.rotation.clone().unwrap();
    assert_eq!(rotation.replaces, "alice");
    assert_eq!(rotation.replaces_key, old.facts.public);
    assert_eq!(rotation.grace_until, at(1010));

    let listing = store.list().unwrap();
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    let history: Vec<&StoredKey> = listing.of_id("alice").collect();
    assert_eq!(history.len(), 2);
    let retired = history[0];
    assert_eq!(retired.facts.public, old.facts.public);
    let wanted = KeyRetirement {
        at: at(10),
        by: "alice".to_owned(),
        grace: at(1010),
    };
    assert_eq!(retired.facts.retired, Some(wanted));
    // Both still open, each with its passphrase.
    let opened = store.load(retired, says("alt")).unwrap();
    assert_eq!(opened.public(), old_private.public());
    let opened = store.load(&new, says("neu")).unwrap();
    assert_eq!(opened.public(), new_private.public());

    let names = place.names();
    assert_eq!(names.len(), 4);
    assert_eq!(names[..2], ["alice.pem", "alice.toml"]);
    let tail = names[2].strip_prefix("alice~").unwrap();
    let digits = tail.strip_suffix(".pem").unwrap();
    assert!(digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    assert_eq!(names[3], format!("alice~{digits}.toml"));
    // Whoever found the old key before still gets it, and not the one that has its name now.
    let opened = store.load(&old, says("alt")).unwrap();
    assert_eq!(opened.public(), old_private.public());
    // And once more.
    let third = store
        .rotate(&new, "alice", &new_key(), None, handover(20))
        .unwrap();
    assert_eq!(store.find("alice").unwrap(), third);
    assert_eq!(place.names().len(), 6);
}

#[test]
fn another_id_leaves_the_old_one_marked() {
    let place = Place::new();
    let store = place.store();
    let (old, _) = first(&store);
    store.create("bob", &new_key(), None, at(0)).unwrap();
    let fault = store
        .rotate(&old, "bob", &new_key(), None, handover(5))
        .unwrap_err();
    assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
    assert!(store.find("alice").unwrap().is_active());

    let new = store
        .rotate(&old, "alice2", &new_key(), None, handover(10))
        .unwrap();
    let found = store.find("alice").unwrap();
    assert_eq!(found.facts.public, old.facts.public);
    assert_eq!(found.facts.retired.as_ref().unwrap().by, "alice2");
    assert_eq!(store.find("alice2").unwrap(), new);
    assert!(!place.names().contains(&"alice.pem".to_owned()));
    // Nor does an id come back that had another key.
    let fault = store
        .rotate(&new, "alice", &new_key(), None, handover(15))
        .unwrap_err();
    assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
    // What was replaced is not replaced again, and its id is not given to another key.
    let fault = store
        .rotate(&found, "alice3", &new_key(), None, handover(20))
        .unwrap_err();
    assert!(fault.to_string().contains("`alice2`"), "{fault}");
    let fault = store
        .rotate(&old, "alice3", &new_key(), None, handover(20))
        .unwrap_err();
    assert!(matches!(fault, KeyFileError::NotInForce { .. }), "{fault}");
    let fault = store.create("alice", &new_key(), None, at(30)).unwrap_err();
    assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
}

#[test]
fn a_key_does_not_replace_itself() {
    let place = Place::new();
    let store = place.store();
    let (old, private) = first(&store);
    let before = place.names();
    let fault = store
        .rotate(&old, "alice", &private, None, handover(10))
        .unwrap_err();
    assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
    let mut wrong = handover(10);
    wrong.proof = "no proof".to_owned();
    let fault = store
        .rotate(&old, "alice", &new_key(), None, wrong)
        .unwrap_err();
    assert!(matches!(fault, KeyFileError::WrongFacts { .. }), "{fault}");
    assert_eq!(place.names(), before);
    assert_eq!(store.find("alice").unwrap(), old);
}

#[test]
fn a_key_can_be_retired_for_one_that_is_elsewhere() {
    let place = Place::new();
    let store = place.store();
    let (old, private) = first(&store);
    let retired = KeyRetirement {
        at: at(5),
        by: "alice@phone".to_owned(),
        grace: at(6),
    };
    let marked = store.retire(&old, retired.clone()).unwrap();
    assert_eq!(marked.facts.retired, Some(retired.clone()));
    assert_eq!(store.find("alice").unwrap(), marked);
    assert_eq!(
        store.load(&marked, says("alt")).unwrap().public(),
        private.public()
    );
    assert!(store.retire(&marked, retired).is_err());
    assert!(place.names().iter().all(|name| name.starts_with("alice~")));
}

#[test]
fn a_revocation_is_kept_and_the_key_stays() {
    let place = Place::new();
    let store = place.store();
    let private = new_key();
    let key = store.create("alice", &private, None, at(0)).unwrap();
    let revoked = store
        .revoke(&key, at(5), Some("the laptop was stolen"))
        .unwrap();
    assert!(!revoked.is_active());
    let found = store.find("alice").unwrap();
    assert_eq!(found, revoked);
    assert_eq!(
        store.load(&found, never).unwrap().public(),
        private.public()
    );
    // The first mark counts, also for who has an older view of the key.
    let again = store.revoke(&key, at(99), None).unwrap();
    assert_eq!(again.facts.revoked, revoked.facts.revoked);
    assert_eq!(store.find("alice").unwrap(), revoked);
    let fault = store
        .rotate(&key, "alice", &new_key(), None, handover(9))
        .unwrap_err();
    assert!(fault.to_string().contains("revoked"), "{fault}");
    let fault = store.create("alice", &new_key(), None, at(9)).unwrap_err();
    assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
}
