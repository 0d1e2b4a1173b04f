//! Keys are stored, found, listed and loaded, whatever their ids look like.

use crate::{Place, at, never, new_key, says};
use crosstalk_envelope::{Algorithm, PrivateKey};
use crosstalk_store::KeyFileError;
use std::io;

#[test]
fn reading_makes_nothing() {
    let place = Place::new();
    let store = place.store();
    assert!(store.list().unwrap().keys.is_empty());
    let fault = store.find("alice").unwrap_err();
    assert!(matches!(fault, KeyFileError::NotFound { .. }));
    assert!(fault.to_string().contains("`alice`"));
    assert!(!place.home().keys().exists());
}

#[test]
fn keys_come_back_as_they_were() {
    let place = Place::new();
    let store = place.store();
    for (number, algorithm) in Algorithm::ALL.into_iter().enumerate() {
        let id = format!("key{number}");
        let key = PrivateKey::generate(algorithm).unwrap();
        let created = store.create(&id, &key, None, at(7)).unwrap();
        let found = store.find(&id).unwrap();
        assert_eq!(found, created);
        assert_eq!(found.facts.created, at(7));
        assert!(found.is_active() && !store.is_encrypted(&found).unwrap());
        assert_eq!(store.load(&found, never).unwrap().public(), key.public());
    }
    assert_eq!(
        place.names(),
        ["key0.pem", "key0.toml", "key1.pem", "key1.toml"]
    );
}

#[test]
fn an_id_has_one_key() {
    let place = Place::new();
    let store = place.store();
    let first = new_key();
    store.create("alice", &first, None, at(0)).unwrap();
    let fault = store.create("alice", &new_key(), None, at(1)).unwrap_err();
    assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
    assert_eq!(store.find("alice").unwrap().facts.public, first.public());
    let fault = store.create("a b", &first, None, at(1)).unwrap_err();
    assert!(matches!(fault, KeyFileError::NotAnId(_)), "{fault}");
}

#[test]
fn hostile_ids_stay_in_the_folder_and_apart() {
    let place = Place::new();
    let store = place.store();
    let long = "x/".repeat(127) + "x";
    let ids = [
        "../../x",
        "a/b",
        "a\\b",
        "%2e",
        ".",
        "..",
        "CON",
        "con",
        "nul.txt",
        "-rf",
        "~root",
        "a~b",
        "Alice",
        "alice",
        "ALICE",
        "%41lice",
        "keys",
        ".keys.lock",
        &long,
        &long[..254],
        "$x`'\"",
        "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp",
    ];
    let keys: Vec<PrivateKey> = ids.iter().map(|_| new_key()).collect();
    for (id, key) in ids.iter().zip(&keys) {
        store.create(id, key, None, at(0)).unwrap();
    }
    for (id, key) in ids.iter().zip(&keys) {
        assert_eq!(store.find(id).unwrap().facts.public, key.public(), "{id}");
    }
    let listing = store.list().unwrap();
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    assert_eq!(listing.keys.len(), ids.len());
    assert!(listing.keys.is_sorted_by_key(|key| &key.facts.id));
    // Two files for each, all in one folder, with names that differ where case does not count.
    let names = place.names();
    assert_eq!(names.len(), 2 * ids.len());
    assert!(names.iter().all(|name| *name == name.to_ascii_lowercase()));
    assert!(names.iter().all(|name| name.len() < 230));
    assert_eq!(crate::all_names(place.path()), ["keys"]);
}

#[test]
fn a_passphrase_is_needed_where_there_is_one() {
    let place = Place::new();
    let store = place.store();
    let private = new_key();
    let key = store
        .create("alice", &private, Some("geheim"), at(0))
        .unwrap();
    assert!(store.is_encrypted(&key).unwrap());
    let text = std::fs::read_to_string(key.path()).unwrap();
    assert!(text.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
    assert_eq!(
        store.load(&key, says("geheim")).unwrap().public(),
        private.public()
    );

    let fault = store.load(&key, says("falsch")).unwrap_err();
    assert!(matches!(fault, KeyFileError::WrongPassphrase { .. }));
    assert!(fault.to_string().contains("alice.pem"), "{fault}");
    let nobody = || Err(io::Error::other("there is no terminal"));
    let fault = store.load(&key, nobody).unwrap_err().to_string();
    assert!(
        fault.contains("alice.pem") && fault.contains("no terminal"),
        "{fault}"
    );

    store.set_passphrase(&key, &private, Some("neu")).unwrap();
    assert!(store.load(&key, says("geheim")).is_err());
    assert_eq!(
        store.load(&key, says("neu")).unwrap().public(),
        private.public()
    );
    store.set_passphrase(&key, &private, None).unwrap();
    assert_eq!(store.load(&key, never).unwrap().public(), private.public());
    let fault = store.set_passphrase(&key, &private, Some("")).unwrap_err();
    assert!(matches!(fault, KeyFileError::EmptyPassphrase));
    let fault = store.set_passphrase(&key, &new_key(), None).unwrap_err();
    assert!(matches!(fault, KeyFileError::Mismatch { .. }));
    assert_eq!(store.load(&key, never).unwrap().public(), private.public());
}

#[test]
fn a_private_key_that_was_exchanged_is_noticed() {
    let place = Place::new();
    let store = place.store();
    let alice = store.create("alice", &new_key(), None, at(0)).unwrap();
    let bob = store.create("bob", &new_key(), None, at(0)).unwrap();
    std::fs::copy(bob.path(), alice.path()).unwrap();
    let fault = store.load(&alice, never).unwrap_err();
    assert!(matches!(fault, KeyFileError::Mismatch { .. }), "{fault}");
    assert!(fault.to_string().contains("alice.pem"), "{fault}");
}

#[test]
fn broken_key_file_does_not_hide_the_others() {
    let place = Place::new();
    let store = place.store();
    for id in ["alice", "bob", "carol", "dan"] {
        store.create(id, &new_key(), None, at(0)).unwrap();
    }
    let file = |name: &str| place.home().keys().join(name);
    let text = std::fs::read_to_string(file("bob.toml")).unwrap();
    std::fs::write(file("bob.toml"), text.replace("created", "creatd")).unwrap();
    std::fs::remove_file(file("carol.pem")).unwrap();
    std::fs::rename(file("dan.toml"), file("dean.toml")).unwrap();
    std::fs::write(file("notes.txt"), "not a key").unwrap();
    let listing = store.list().unwrap();
    let ids: Vec<&str> = listing.keys.iter().map(|k| k.facts.id.as_str()).collect();
    assert_eq!(ids, ["alice"]);
    let problems: Vec<String> = listing.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 4, "{problems:#?}");
    assert!(problems[0].contains("bob.toml") && problems[0].contains("creatd"));
    assert!(problems[1].contains("carol.pem"));
    assert!(problems[2].contains("dean.toml") && problems[2].contains("`dan.toml`"));
    assert!(problems[3].contains("dan.pem"));
    // Who asks for one of them hears what is wrong with it, and nothing takes its place.
    let fault = store.find("bob").unwrap_err();
    assert!(matches!(fault, KeyFileError::WrongFacts { .. }), "{fault}");
    for id in ["bob", "carol", "dan"] {
        let fault = store.create(id, &new_key(), None, at(1)).unwrap_err();
        assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
    }
}

#[test]
fn keys_that_everybody_has_are_refused() {
    let place = Place::new();
    let (record, _) = crosstalk_envelope::registry::DENIED_KEYS[0];
    let mut facts = crosstalk_store::KeyFacts::new("alice", new_key().public(), at(0));
    facts.public = crosstalk_envelope::PublicKey::parse_record(record).unwrap();
    let fault = place.store().add(facts, &new_key(), None).unwrap_err();
    assert!(matches!(fault, KeyFileError::Denied(_)), "{fault}");
}
