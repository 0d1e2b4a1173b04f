//! Which message it is: known, refused, or under an id of its own.

use super::{file, ids, put, thread_of};
use crate::at;
use crate::letter::{letter, nameless};
use crate::sqlite::Sqlite;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Side, StoreOutcome, Wait};

#[test]
fn the_same_again_is_known() {
    let store = &mut Sqlite::new().store;
    let first = letter("M1").thread("T1").at(1);
    file(store, &first);
    let known = StoreOutcome::Known {
        id: "M1".to_owned(),
        thread: "T1".to_owned(),
        since: at(1),
        improved: false,
    };
    assert_eq!(put(store, &first.clone().at(9)), known);
    assert_eq!(store.thread("T1").unwrap().unwrap().messages, 1);
    assert_eq!(store.message("M1").unwrap().unwrap().at, at(1));
}

#[test]
fn another_content_under_an_id_is_refused() {
    let store = &mut Sqlite::new().store;
    let first = letter("M1").thread("T1");
    file(store, &first);
    let conflict = StoreOutcome::Conflict {
        id: "M1".to_owned(),
        thread: "T1".to_owned(),
    };
    let other = first.clone().body("Which door?");
    assert_eq!(put(store, &other), conflict);
    assert_eq!(put(store, &first.clone().thread("T2")), conflict);
    assert_eq!(store.message("M1").unwrap().unwrap().text, first.text());
    assert_eq!(store.thread("T2").unwrap(), None);
}

#[test]
fn a_copy_that_nobody_signed_is_in_nobodys_way() {
    let store = &mut Sqlite::new().store;
    let forged = letter("M1").thread("T1").body("forged");
    let forged = forged.side(Side::ToMe).spare_message("own");
    file(store, &forged);
    file(store, &letter("A1").parent("M1").intent("NOTE"));
    let signed = letter("M1")
        .thread("T1")
        .side(Side::ToMe)
        .verdict(VerdictWord::Verified, Some("ann"));
    let filed = StoreOutcome::Filed {
        id: "M1".to_owned(),
        thread: "T1".to_owned(),
        settled: None,
        closed: None,
        displaced: Some("own".to_owned()),
        candidates: Vec::new(),
    };
    assert_eq!(put(store, &signed), filed);
    assert_eq!(store.message("M1").unwrap().unwrap().text, signed.text());
    let own = store.message("own").unwrap().unwrap();
    assert_eq!((own.text, own.carries_id), (forged.text(), false));
    assert_eq!(ids(store, "T1"), ["own", "A1", "M1"]);
    let copy = letter("M1").thread("T1");
    assert!(matches!(put(store, &copy), StoreOutcome::Known { .. }));
    // It is known where it is, and can't come back under that id.
    assert!(matches!(put(store, &forged), StoreOutcome::Conflict { .. }));
    let known = put(store, &forged.clone().own_id("other"));
    assert!(matches!(known, StoreOutcome::Known { id, .. } if id == "own"));
    for word in [VerdictWord::FirstContact, VerdictWord::Verified] {
        let other_signer = letter("M1").thread("T1").body("mine");
        let other_signer = other_signer.verdict(word, Some("bob"));
        assert!(matches!(
            put(store, &other_signer),
            StoreOutcome::Conflict { .. }
        ));
    }
    assert_eq!(store.thread("T1").unwrap().unwrap().messages, 3);
    // An answer is one to the message that has the id now.
    let mine = letter("A2").parent("M1").intent("RESPOND").side(Side::Mine);
    assert_eq!(super::settled(store, &mine).as_deref(), Some("M1"));
    assert_eq!(super::wait(store, "own"), Wait::Me);
}

#[test]
fn answers_stay_with_the_id() {
    let store = &mut Sqlite::new().store;
    let forged = letter("M1").thread("T1").body("forged");
    file(store, &forged.side(Side::ToMe).spare_message("own"));
    let mine = letter("A1").parent("M1").intent("RESPOND");
    file(store, &mine.side(Side::Mine));
    assert_eq!(super::wait(store, "M1"), Wait::Nobody);
    let real = letter("M1").thread("T2").side(Side::ToMe);
    file(store, &real.verdict(VerdictWord::Verified, Some("ann")));
    let waits = (super::wait(store, "own"), super::wait(store, "M1"));
    assert_eq!(waits, (Wait::Me, Wait::Nobody));
    assert_eq!(
        (ids(store, "T1"), thread_of(store, "A1")),
        (vec!["own".to_owned()], "T2".to_owned())
    );
}

#[test]
fn what_is_mine_keeps_its_id() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("M1").thread("T1").side(Side::Mine));
    let other = letter("M1").thread("T1").body("x");
    let other = other.verdict(VerdictWord::Verified, Some("ann"));
    assert!(matches!(put(store, &other), StoreOutcome::Conflict { .. }));
    // Nor does one move whose own id is taken.
    file(store, &letter("M2").thread("T1").spare_message("M1"));
    let other = letter("M2").thread("T1").body("x");
    let other = other.verdict(VerdictWord::Verified, Some("ann"));
    assert!(matches!(put(store, &other), StoreOutcome::Conflict { .. }));
    assert_eq!(store.thread("T1").unwrap().unwrap().messages, 2);
}

#[test]
fn a_message_stays_under_an_id_of_its_own() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("M1").thread("T1").body("first"));
    let second = letter("M1").thread("T1").body("second");
    assert!(matches!(put(store, &second), StoreOutcome::Conflict { .. }));
    file(store, &second.clone().own_id("own-1"));
    let record = store.message("own-1").unwrap().unwrap();
    assert_eq!((record.text, record.carries_id), (second.text(), false));
    // A better verdict leaves it there.
    let better = second.clone().own_id("own-2");
    let better = better.verdict(VerdictWord::FirstContact, Some("ann"));
    let known = put(store, &better);
    assert!(matches!(known, StoreOutcome::Known { id, improved: true, .. } if id == "own-1"));
    assert_eq!(ids(store, "T1"), ["M1", "own-1"]);
    assert!(!store.message("own-1").unwrap().unwrap().carries_id);
    // It is known by its content where nothing has the id that it carries.
    let third = letter("M3").thread("T1");
    file(store, &third.clone().own_id("own-3"));
    assert!(matches!(put(store, &third), StoreOutcome::Known { id, .. } if id == "own-3"));
}

#[test]
fn placeholders_are_no_ids() {
    let store = &mut Sqlite::new().store;
    let one = letter("<message id>").thread("<as above>").parent("...");
    let one = one.spare("new").spare_message("own");
    assert_eq!(file(store, &one), "new");
    let record = store.message("own").unwrap().unwrap();
    assert_eq!((record.parent, record.carries_id), (None, false));
    assert!(matches!(put(store, &one), StoreOutcome::Known { .. }));
    // Another one with the same words in the place of an id is another message.
    let two = letter("<message id>").body("two").spare("newer");
    assert_eq!(file(store, &two), "newer");
    // What is no ULID and no UUID may still be an id.
    assert_eq!(
        file(store, &letter("ticket-7").thread("T 7").spare("x")),
        "x"
    );
    assert_eq!(file(store, &letter("ticket-8").parent("ticket-7")), "x");
}

#[test]
fn more_is_known_when_the_signature_comes() {
    let store = &mut Sqlite::new().store;
    let bare = letter("M1").thread("T1").at(1);
    file(store, &bare);
    for (word, improves) in [
        (VerdictWord::NotVerified, false),
        (VerdictWord::FirstContact, true),
        (VerdictWord::FirstContact, false),
        (VerdictWord::Verified, true),
        (VerdictWord::Verified, false),
        (VerdictWord::Unsigned, false),
    ] {
        let holds = word < VerdictWord::Unsigned;
        let again = bare.clone().verdict(word, holds.then_some("ann")).at(2);
        let known = StoreOutcome::Known {
            id: "M1".to_owned(),
            thread: "T1".to_owned(),
            since: at(1),
            improved: improves,
        };
        assert_eq!(put(store, &again), known, "{word:?}");
    }
    let record = store.message("M1").unwrap().unwrap();
    assert_eq!(record.verdict, VerdictWord::Verified);
    assert_eq!(record.pkid.as_deref(), Some("ann"));
    assert!(record.text.contains("pkid=ann"));
    assert_eq!(
        (record.at, store.thread("T1").unwrap().unwrap().messages),
        (at(1), 1)
    );
}

#[test]
fn a_stripped_copy_does_not_replace_a_signed_one() {
    let store = &mut Sqlite::new().store;
    let bare = letter("M1").thread("T1");
    let mut unknown = bare
        .clone()
        .verdict(VerdictWord::UnknownKey, Some("ann"))
        .arrival();
    unknown.pkid = None;
    store.accept(&[unknown.clone()]).unwrap();
    assert!(matches!(
        put(store, &bare),
        StoreOutcome::Known {
            improved: false,
            ..
        }
    ));
    assert_eq!(store.message("M1").unwrap().unwrap().text, unknown.text);
}

#[test]
fn one_key_signs_one_message_under_an_id() {
    let store = &mut Sqlite::new().store;
    let one = letter("M1").thread("T1");
    let two = one.clone().body("Which door?");
    file(store, &two.verdict(VerdictWord::Verified, Some("ann")));
    let also = one.clone().verdict(VerdictWord::Verified, Some("ann"));
    assert!(matches!(put(store, &also), StoreOutcome::Conflict { .. }));
    assert!(matches!(put(store, &one), StoreOutcome::Conflict { .. }));
}

#[test]
fn messages_without_an_id_are_known_by_their_content() {
    let store = &mut Sqlite::new().store;
    let one = nameless().session("S1").at(1);
    let thread = file(store, &one);
    let record = store.messages(&thread, None, 9).unwrap().items.remove(0);
    assert!(!record.carries_id);
    // The same text gets other spare ids when it comes again.
    let again = nameless().session("S1").at(2);
    match put(store, &again) {
        StoreOutcome::Known {
            id,
            thread: t,
            since,
            improved,
        } => {
            assert_eq!((id, t, since, improved), (record.id, thread, at(1), false));
        }
        other => panic!("{other:?}"),
    }
    file(store, &again.body("Another one"));
}
