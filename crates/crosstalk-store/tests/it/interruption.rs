//! A command that was interrupted leaves the old state or the new one, and the next command goes on from there.

use crate::rotation::handover;
use crate::{Place, all_names, at, never, new_key};
use crosstalk_store::{KeyFileError, KeyRetirement, StoredKey, TrustFile, TrustStoreError};

#[test]
fn leftovers_of_a_writer_are_removed() {
    let place = Place::on_disk();
    let store = place.store();
    store.create("alice", &new_key(), None, at(0)).unwrap();
    let rest = place.home().keys().join(".keys.tmp-0123456789abcdef");
    std::fs::write(&rest, "-----BEGIN PRIV").unwrap();
    let listing = store.list().unwrap();
    assert_eq!((listing.keys.len(), listing.problems.len()), (1, 0));
    assert!(rest.exists(), "reading changes nothing");
    store.create("bob", &new_key(), None, at(0)).unwrap();
    assert!(!rest.exists());

    let rest = place.path().join(".trust.toml.tmp-0123456789abcdef");
    std::fs::write(&rest, "schema = \"cross").unwrap();
    let file = TrustFile::new(&place.home());
    file.read().unwrap();
    file.update(|_| Ok::<_, TrustStoreError>(())).unwrap();
    assert!(!rest.exists());
    assert_eq!(all_names(&place.home().keys()).len(), 5);
}

#[test]
fn a_private_key_without_its_facts_is_kept_and_named() {
    let place = Place::on_disk();
    let store = place.store();
    let key = store.create("alice", &new_key(), None, at(0)).unwrap();
    let text = std::fs::read_to_string(key.path()).unwrap();
    std::fs::remove_file(place.home().keys().join("alice.toml")).unwrap();
    let listing = store.list().unwrap();
    assert!(listing.keys.is_empty());
    assert!(listing.problems[0].to_string().contains("alice.pem"));
    let fault = store.find("alice").unwrap_err();
    assert!(matches!(fault, KeyFileError::Incomplete { .. }), "{fault}");
    let fault = store.create("alice", &new_key(), None, at(1)).unwrap_err();
    assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
    assert_eq!(std::fs::read_to_string(key.path()).unwrap(), text);
}

/// The files of a rotation as they are after each of its steps, from the names that they have at its end.
#[test]
fn a_rotation_can_stop_anywhere() {
    for stop in 0..=5 {
        let place = Place::on_disk();
        let store = place.store();
        let (old_private, new_private) = (new_key(), new_key());
        let old = store.create("alice", &old_private, None, at(0)).unwrap();
        let file = |name: &str| place.home().keys().join(name);
        let unmarked = std::fs::read_to_string(file("alice.toml")).unwrap();
        store
            .rotate(&old, "alice", &new_private, None, handover(10))
            .unwrap();
        let names = place.names();
        let aside = names[3].strip_suffix(".toml").unwrap();
        let rename = |from: &str, to: &str| std::fs::rename(file(from), file(to)).unwrap();
        // Backwards from the end, the last step first.
        let steps: [&dyn Fn(); 5] = [
            &|| rename("alice.pem", "alice~new.pem"),
            &|| rename("alice.toml", "alice~new.toml"),
            &|| rename(&format!("{aside}.toml"), "alice.toml"),
            &|| rename(&format!("{aside}.pem"), "alice.pem"),
            &|| std::fs::write(file("alice.toml"), &unmarked).unwrap(),
        ];
        steps.iter().take(stop).for_each(|step| step());
        let digest = name_of(&new_private.public().record());
        for ending in ["pem", "toml"] {
            if file(&format!("alice~new.{ending}")).exists() {
                rename(
                    &format!("alice~new.{ending}"),
                    &format!("alice~{digest}.{ending}"),
                );
            }
        }

        let listing = store.list().unwrap();
        assert!(
            listing.problems.is_empty(),
            "{stop}: {:?}",
            listing.problems
        );
        let history: Vec<&StoredKey> = listing.of_id("alice").collect();
        assert_eq!(history.len(), 2, "{stop}");
        let found = store.find("alice").unwrap();
        assert_eq!(found.facts.public, new_private.public(), "{stop}");
        assert!(found.is_active(), "{stop}");
        assert_eq!(
            store.load(&found, never).unwrap().public(),
            new_private.public()
        );
        assert_eq!(
            history[0].facts.retired.as_ref().unwrap().at,
            at(10),
            "{stop}"
        );
        let opened = store.load(history[0], never).unwrap();
        assert_eq!(opened.public(), old_private.public(), "{stop}");

        let third = store
            .rotate(&found, "alice", &new_key(), None, handover(20))
            .unwrap();
        assert_eq!(third.path(), file("alice.pem"), "{stop}");
        let listing = store.list().unwrap();
        assert!(
            listing.problems.is_empty(),
            "{stop}: {:?}",
            listing.problems
        );
        assert_eq!(listing.keys.len(), 3, "{stop}");
        let active: Vec<&StoredKey> = listing.keys.iter().filter(|k| k.is_active()).collect();
        assert_eq!(active, [&third], "{stop}");
        for key in &listing.keys {
            store.load(key, never).unwrap();
        }
        assert_eq!(place.names().len(), 6, "{stop}");
    }
}

/// Between the new key's arrival and the mark on the old one, with two ids.
#[test]
fn a_new_key_says_whom_it_replaced() {
    let place = Place::on_disk();
    let store = place.store();
    let old = store.create("alice", &new_key(), None, at(0)).unwrap();
    let file = |name: &str| place.home().keys().join(name);
    let unmarked = std::fs::read_to_string(file("alice.toml")).unwrap();
    store
        .rotate(&old, "alice2", &new_key(), None, handover(10))
        .unwrap();
    for name in place
        .names()
        .iter()
        .filter(|name| name.starts_with("alice~"))
    {
        let ending = name.rsplit_once('.').unwrap().1;
        std::fs::rename(file(name), file(&format!("alice.{ending}"))).unwrap();
    }
    std::fs::write(file("alice.toml"), unmarked).unwrap();
    let found = store.find("alice").unwrap();
    assert_eq!(found.facts.retired.as_ref().unwrap().by, "alice2");
    let fault = store
        .rotate(&found, "alice3", &new_key(), None, handover(20))
        .unwrap_err();
    assert!(matches!(fault, KeyFileError::NotInForce { .. }), "{fault}");
}

#[test]
fn an_id_has_one_key_that_counts_whatever_its_files_are_called() {
    let place = Place::on_disk();
    let store = place.store();
    let (first, second) = (new_key(), new_key());
    let old = store.create("alice", &first, None, at(0)).unwrap();
    let new = store
        .rotate(&old, "alice", &second, None, handover(10))
        .unwrap();
    let digest = name_of(&second.public().record());
    for ending in ["pem", "toml"] {
        let file = |stem: &str| place.home().keys().join(format!("{stem}.{ending}"));
        std::fs::rename(file("alice"), file(&format!("alice~{digest}"))).unwrap();
    }
    // Neither another one that says it is the successor, nor the same one as if it were replaced.
    let third = new_key();
    let mut successor = new.facts.clone();
    successor.public = third.public();
    let mut replaced = old.facts.clone();
    replaced.retired = Some(KeyRetirement {
        at: at(10),
        by: "bob".to_owned(),
        grace: at(10),
    });
    let other = Place::on_disk();
    other.store().create("alice", &first, None, at(0)).unwrap();
    for (store, facts, key) in [
        (&store, successor, &third),
        (&other.store(), replaced, &first),
    ] {
        let fault = store.add(facts, key, None).unwrap_err();
        assert!(matches!(fault, KeyFileError::Exists { .. }), "{fault}");
    }
}

#[test]
fn reader_sees_the_old_or_the_new_key_during_a_replacement() {
    let place = Place::on_disk();
    let store = place.store();
    let mut key = store.create("alice", &new_key(), None, at(0)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..30 {
                key = store
                    .rotate(&key, "alice", &new_key(), None, handover(number))
                    .unwrap();
            }
        });
        while !writer.is_finished() {
            let listing = store.list().unwrap();
            assert!(listing.problems.is_empty(), "{:?}", listing.problems);
            let active = listing.keys.iter().filter(|k| k.is_active()).count();
            assert_eq!(active, 1);
            store.load(&store.find("alice").unwrap(), never).unwrap();
        }
    });
}

fn name_of(record: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(record.as_bytes());
    digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
