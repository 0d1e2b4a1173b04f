//! The trust file: nothing is lost, whoever writes at the same time, and nothing is overwritten that is not understood.

use crate::{Place, again, all_names, at, new_key};
use crosstalk_protocol::{KeyStanding, KnownKey, Origin, Trust};
use crosstalk_store::{Home, TrustFile, TrustStoreError};

const PROCESSES: usize = 4;
const PINS: usize = 12;

pub fn pin(id: &str) -> KnownKey {
    KnownKey {
        id: id.to_owned(),
        key: new_key().public(),
        since: at(0),
        how: Origin::Manual,
        by: None,
        senders: Vec::new(),
        standing: KeyStanding::Active,
        credential: None,
    }
}

fn add(file: &TrustFile, id: &str) {
    let added = file.update(|trust| {
        trust.pin(pin(id)).unwrap();
        Ok::<_, TrustStoreError>(())
    });
    added.unwrap();
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn written() {
    if !again::is_begun() {
        return;
    }
    let file = TrustFile::new(&Home::from_env().unwrap());
    let name = std::env::var("WRITER").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (file, name) = (&file, &name);
            scope.spawn(move || {
                for number in 0..PINS {
                    add(file, &format!("{name}.{thread}.{number}"));
                }
            });
        }
    });
}

#[test]
fn processes_and_threads_lose_nothing_of_each_other() {
    let place = Place::on_disk();
    let home = place.path().to_str();
    let begin = |number: usize| {
        let name = number.to_string();
        let set = [("CROSSTALK_HOME", home), ("WRITER", Some(name.as_str()))];
        again::begin("trust::written", None, &set)
    };
    let children: Vec<_> = (0..PROCESSES).map(begin).collect();
    let file = TrustFile::new(&place.home());
    // Who reads meanwhile sees a whole file each time.
    for _ in 0..200 {
        file.read().unwrap();
    }
    for child in children {
        again::finish(child);
    }
    let trust = file.read().unwrap();
    assert_eq!(trust.keys().len(), PROCESSES * 2 * PINS);
    let mut names = all_names(place.path());
    names.sort();
    assert_eq!(names, [".trust.toml.lock", "trust.toml"]);
}

#[test]
fn no_file_is_an_empty_one_and_stays_away_until_something_is_known() {
    let place = Place::new();
    let file = TrustFile::new(&place.home());
    assert_eq!(file.read().unwrap(), Trust::default());
    let count = file.update(|trust| Ok::<_, TrustStoreError>(trust.keys().len()));
    assert_eq!(count.unwrap(), 0);
    assert!(!file.path().exists());
    add(&file, "alice");
    assert_eq!(file.read().unwrap().keys().len(), 1);
}

#[derive(Debug)]
struct Mine(String);

impl From<TrustStoreError> for Mine {
    fn from(error: TrustStoreError) -> Self {
        Self(error.to_string())
    }
}

#[test]
fn a_change_that_fails_or_changes_nothing_writes_nothing() {
    let place = Place::new();
    let file = TrustFile::new(&place.home());
    add(&file, "alice");
    // A comment of a person is gone after a write, and shows that there was none.
    let text = std::fs::read_to_string(file.path()).unwrap() + "# mine\n";
    std::fs::write(file.path(), &text).unwrap();
    let failed = file.update(|trust| {
        trust.remove("alice", None);
        Err::<(), _>(Mine("no".to_owned()))
    });
    assert_eq!(failed.unwrap_err().0, "no");
    file.update(|trust| Ok::<_, Mine>(trust.remove("bob", None)))
        .unwrap();
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), text);
    add(&file, "bob");
    assert_ne!(std::fs::read_to_string(file.path()).unwrap(), text);
}

#[test]
fn unreadable_trust_file_is_not_changed() {
    let place = Place::new();
    let file = TrustFile::new(&place.home());
    for broken in [
        "schema = \"crosstalk.trust/2\"\n",
        "schema = \"crosstalk.trust/1\"\nkeys = 1\n",
        "half a fi",
        "",
    ] {
        std::fs::write(file.path(), broken).unwrap();
        let fault = file.read().unwrap_err();
        assert!(
            matches!(fault, TrustStoreError::Malformed { .. }),
            "{fault}"
        );
        assert!(fault.to_string().contains("trust.toml"), "{fault}");
        let mut asked = false;
        let update = file.update(|trust| {
            asked = true;
            trust.pin(pin("alice")).unwrap();
            Ok::<_, TrustStoreError>(())
        });
        assert!(update.is_err() && !asked);
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), broken);
    }
    std::fs::write(file.path(), [0xff, 0xfe]).unwrap();
    assert!(matches!(file.read(), Err(TrustStoreError::Disk(_))));
}

#[test]
fn unreadable_trust_is_not_written() {
    let place = Place::new();
    let file = TrustFile::new(&place.home());
    add(&file, "alice");
    let before = std::fs::read_to_string(file.path()).unwrap();
    let update = file.update(|trust| {
        trust.pin(pin("not an id")).unwrap();
        Ok::<_, TrustStoreError>(())
    });
    let fault = update.unwrap_err();
    assert!(
        matches!(fault, TrustStoreError::Unwritable { .. }),
        "{fault}"
    );
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), before);
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let place = Place::new();
    let file = TrustFile::new(&place.home());
    let comment = "#".repeat(16 * 1024 * 1024);
    std::fs::write(
        file.path(),
        format!("schema = \"crosstalk.trust/1\"\n{comment}"),
    )
    .unwrap();
    let fault = file.read().unwrap_err();
    assert!(matches!(fault, TrustStoreError::TooLarge { .. }), "{fault}");
    assert!(fault.to_string().contains("16 MiB"), "{fault}");
}

#[cfg(unix)]
#[test]
fn a_link_to_the_file_stays_a_link() {
    let place = Place::new();
    let file = TrustFile::new(&place.home());
    let elsewhere = place.path().join("dotfiles");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("t.toml"), Trust::default().to_text()).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("t.toml"), file.path()).unwrap();
    add(&file, "alice");
    assert!(file.path().is_symlink());
    let text = std::fs::read_to_string(elsewhere.join("t.toml")).unwrap();
    assert!(text.contains("alice"));
}

fn contact(id: &str, sender: &str) -> KnownKey {
    KnownKey {
        senders: vec![sender.to_owned()],
        how: Origin::FirstContact,
        ..pin(id)
    }
}

#[test]
fn contacts_are_kept_apart_from_decisions() {
    let place = Place::new();
    let file = TrustFile::new(&place.home());
    let beside = file.path().with_file_name("contacts.toml");
    add(&file, "alice");
    let decided = std::fs::read_to_string(file.path()).unwrap();
    assert!(!beside.exists());
    file.update(|trust| {
        let met = trust.pin_contact(contact("hr", "bot://x"), "token:x");
        met.unwrap();
        Ok::<_, TrustStoreError>(())
    })
    .unwrap();
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), decided);
    let met = std::fs::read_to_string(&beside).unwrap();
    assert!(
        met.contains("crosstalk.contacts/1") && met.contains("bot://x"),
        "{met}"
    );
    let trust = file.read().unwrap();
    assert_eq!(trust.keys().len(), 2);
    assert_eq!(trust.keys()[1].credential.as_deref(), Some("token:x"));
    // A decision about it moves it.
    let key = trust.keys()[1].key;
    file.update(|trust| {
        let standing = KeyStanding::Distrusted {
            at: at(1),
            reason: None,
        };
        trust.mark("hr", &key, at(1), standing);
        Ok::<_, TrustStoreError>(())
    })
    .unwrap();
    assert!(
        std::fs::read_to_string(file.path())
            .unwrap()
            .contains("bot://x")
    );
    assert!(
        !std::fs::read_to_string(&beside)
            .unwrap()
            .contains("bot://x")
    );
    // What is not understood stays as it is.
    for broken in [
        "schema = \"crosstalk.trust/1\"\n",
        "schema = \"crosstalk.contacts/1\"\nkeys = 1\n",
    ] {
        std::fs::write(&beside, broken).unwrap();
        let fault = file.read().unwrap_err();
        assert!(fault.to_string().contains("contacts.toml"), "{fault}");
    }
}

#[test]
fn revocation_finds_room_where_a_pin_does_not() {
    const MIB: usize = 1024 * 1024;
    let place = Place::new();
    let file = TrustFile::new(&place.home());
    let large = |id: &str| KnownKey {
        senders: vec!["x".repeat(MIB)],
        ..pin(id)
    };
    let try_pin = |pin: KnownKey| {
        file.update(|trust| {
            trust.pin_anyway(pin).unwrap();
            Ok::<_, TrustStoreError>(())
        })
    };
    // The room is for revocations alone, also in a file that was filled before there was any.
    let mut trust = Trust::default();
    for number in 0..13 {
        trust.pin_anyway(large(&format!("k{number}"))).unwrap();
    }
    std::fs::write(file.path(), trust.to_text()).unwrap();
    let full = try_pin(pin("small")).unwrap_err();
    assert!(matches!(full, TrustStoreError::TooLarge { .. }), "{full}");
    let key = trust.keys()[3].key;
    file.update(|trust| {
        let standing = KeyStanding::Revoked {
            at: at(1),
            reason: Some("it was stolen".into()),
            by: None,
        };
        trust.mark("k3", &key, at(1), standing);
        Ok::<_, TrustStoreError>(())
    })
    .unwrap();
    let standing = file.read().unwrap().keys()[3].standing.clone();
    assert!(matches!(standing, KeyStanding::Revoked { .. }));
}

/// Written by a relay of the time when everything was in one file.
const BEFORE: &str = include_str!("../data/trust-before-contacts.toml");

#[test]
fn trust_file_of_before_opens_as_it_is() {
    let place = Place::new();
    let file = TrustFile::new(&place.home());
    std::fs::write(file.path(), BEFORE).unwrap();
    let trust = file.read().unwrap();
    assert_eq!(trust.to_text(), BEFORE);
    assert_eq!((trust.keys().len(), trust.domains().len()), (5, 1));
    // A change keeps every entry, and a pin of a first contact is still one for its senders.
    add(&file, "new");
    let after = file.read().unwrap();
    assert_eq!(&after.keys()[..5], trust.keys());
    assert_eq!(
        after
            .keys_for("hr-department", "bot://here.example/hr")
            .len(),
        1
    );
    assert!(
        after
            .keys_for("hr-department", "bot://here.example/x")
            .is_empty()
    );
    assert!(!file.path().with_file_name("contacts.toml").exists());
}
