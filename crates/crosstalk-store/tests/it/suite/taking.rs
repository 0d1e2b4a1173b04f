//! Messages that a relay takes: on disk before they are filed, filed once, known when they come again.

use crate::letter::{letter, nameless};
use crate::parcel::{
    TakesParcels as _, file_all, inbox, parcel, refused, take, take_and_file, take_new,
};
use crate::suite::relay::Relay;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::relay::AcceptOutcome;
use crosstalk_protocol::store::{StoreOutcome, Wait, Way};

pub(crate) fn accepted_message_is_there_before_it_is_indexed(store: &mut Relay) {
    let one = parcel(letter("M1").thread("T1").body("A plum."));
    let places = take_new(store, std::slice::from_ref(&one));
    let unfiled = store.record("M1").unwrap();
    assert_eq!(store.records_at(&places), std::slice::from_ref(&unfiled));
    assert_eq!((unfiled.seq, unfiled.thread.as_str()), (places[0], "T1"));
    assert_eq!(unfiled.text, one.arrival.text);
    assert_eq!(inbox(store, "claude"), ["M1"]);
    assert_eq!(store.deliveries("M1").len(), 1);
    let filing = file_all(store);
    assert_eq!(
        (filing.through, filing.left, filing.filed),
        (places[0], 0, 1)
    );
    assert_eq!(store.ids("T1"), ["M1"]);
    assert_eq!(store.record("M1"), Some(unfiled.clone()));
    assert_eq!(store.records_at(&places), [unfiled]);
    assert_eq!(inbox(store, "claude"), ["M1"]);
    assert_eq!(store.deliveries("M1").len(), 1);
    assert_eq!(store.search("plum").len(), 1);
    // Places where nothing is are left out.
    assert_eq!(store.records_at(&[places[0] + 7]), []);
    assert_eq!(store.record("M2"), None);
}

/// Threads, questions and answers are the same, whichever way messages came.
pub(crate) fn what_is_filed_is_what_would_have_been_accepted(store: &mut Relay) {
    let question = letter("M1").session("s");
    let answer = nameless().session("s").intent("RESPOND");
    let answer = answer.between("CLAUDE", "KALLE").body("443").spare("T9");
    let early = letter("M3").parent("M4").intent("RESPOND");
    let early = early.between("CLAUDE", "KALLE").spare("T8");
    let late = letter("M4").thread("T4");
    take_and_file(
        store,
        &[
            parcel(question.spare("T7")),
            parcel(answer.spare_message("M2")),
            parcel(early),
            parcel(late),
        ],
    );
    let record = |id: &str| store.record(id).unwrap();
    assert_eq!(
        (record("M1").thread.as_str(), record("M1").wait),
        ("T7", Wait::Nobody)
    );
    // It names no question; there was one that it can mean.
    assert_eq!(
        (record("M2").thread.as_str(), record("M2").parent.as_deref()),
        ("T7", Some("M1"))
    );
    assert_eq!(
        (record("M4").wait, record("M3").thread),
        (Wait::Nobody, record("M4").thread)
    );
    assert_eq!(store.record("M2").unwrap(), record("M2"));
    assert_eq!(store.threads().len(), 2);
}

pub(crate) fn the_same_again_is_known(store: &mut Relay) {
    let first = parcel(letter("M1").thread("T1"));
    let places = take_new(store, std::slice::from_ref(&first));
    let known = AcceptOutcome::Known {
        seq: places[0],
        entry: LogPlace::first(0),
        since: first.arrival.at,
        ids: first.arrival.ids(),
    };
    // Later, by another peer, with other spare ids.
    let mut again = parcel(letter("M1").thread("T1"));
    again.peer = "other".to_owned();
    assert_eq!(take(store, &again), known);
    file_all(store);
    assert_eq!(take(store, &again), known);
    assert_eq!(file_all(store).filed, 0);
    assert_eq!(inbox(store, "CLAUDE"), ["M1"]);
}

pub(crate) fn ten_thousand_replays_are_one_message(store: &mut Relay) {
    let one = parcel(letter("M1").thread("T1"));
    take_and_file(store, std::slice::from_ref(&one));
    let many = vec![one; 1000];
    for _ in 0..10 {
        let taken = store.take_all(&many);
        assert!(
            taken
                .iter()
                .all(|t| matches!(t, AcceptOutcome::Known { .. }))
        );
    }
    assert_eq!(file_all(store).filed, 0);
    assert_eq!(store.thread("T1").unwrap().messages, 1);
    // What comes next has its place, and is filed.
    take_new(store, &[parcel(letter("M2").thread("T1"))]);
    let filing = file_all(store);
    assert_eq!((filing.filed, filing.left), (1, 0));
}

pub(crate) fn without_an_id_the_content_tells(store: &mut Relay) {
    let one = || nameless().session("s").body("The same words.");
    let first = parcel(one());
    let place = take_new(store, std::slice::from_ref(&first))[0];
    for _ in 0..2 {
        let again = parcel(one());
        assert_ne!(again.arrival.generated, first.arrival.generated);
        let taken = take(store, &again);
        assert!(
            matches!(taken, AcceptOutcome::Known { seq, .. } if seq == place),
            "{taken:?}"
        );
        file_all(store);
    }
    take_and_file(store, &[parcel(one().body("Other words."))]);
    assert_eq!(inbox(store, "CLAUDE").len(), 2);
}

pub(crate) fn another_content_under_an_id_is_refused(store: &mut Relay) {
    take_new(store, &[parcel(letter("M1").thread("T1").body("One."))]);
    let other = parcel(letter("M1").thread("T1").body("Other."));
    for _ in 0..2 {
        let (code, detail) = refused(store, &other);
        assert_eq!(code, "E-PERM");
        assert!(
            detail.contains("M1") && detail.contains("What to do"),
            "{detail}"
        );
        file_all(store);
    }
    assert!(store.record("M1").unwrap().text.contains("One."));
    assert_eq!(store.thread("T1").unwrap().messages, 1);
}

pub(crate) fn a_verified_one_takes_the_id(store: &mut Relay) {
    for (id, is_filed) in [("M1", true), ("M2", false)] {
        let plain = letter(id).thread("T1").body("Mallory was here.");
        let spare = format!("own {id}");
        take_new(store, &[parcel(plain.clone().spare_message(&spare))]);
        if is_filed {
            file_all(store);
        }
        let signed = plain
            .body("I am Kalle.")
            .verdict(VerdictWord::Verified, Some("kalle"));
        take_new(store, &[parcel(signed.clone())]);
        // The other one is refused from now on; the verified one is known.
        let unsigned = letter(id).thread("T1").body("Mallory was here.");
        assert_eq!(refused(store, &parcel(unsigned)).0, "E-PERM");
        assert!(matches!(
            take(store, &parcel(signed)),
            AcceptOutcome::Known { .. }
        ));
        file_all(store);
        let record = store.record(id).unwrap();
        assert!(record.text.contains("I am Kalle.") && record.carries_id);
        let displaced = store.record(&spare).unwrap();
        assert!(displaced.text.contains("Mallory") && !displaced.carries_id);
    }
    assert_eq!(inbox(store, "CLAUDE").len(), 4);
}

pub(crate) fn nobody_takes_the_id_of_somebody_else(store: &mut Relay) {
    for (id, is_filed) in [("M1", true), ("M2", false)] {
        let plain = parcel(letter(id).thread("T1").body("From me."));
        take_new(store, std::slice::from_ref(&plain));
        if is_filed {
            file_all(store);
        }
        let other = letter(id).thread("T2").between("mal://x", "mal://x");
        let signed = other
            .body("Mine.")
            .verdict(VerdictWord::Verified, Some("mal"));
        assert_eq!(refused(store, &parcel(signed)).0, "E-PERM");
        assert!(matches!(take(store, &plain), AcceptOutcome::Known { .. }));
    }
}

pub(crate) fn a_better_verdict_is_kept(store: &mut Relay) {
    for (id, is_filed) in [("M1", true), ("M2", false)] {
        let signed = letter(id).thread("T1");
        let met = signed
            .clone()
            .verdict(VerdictWord::FirstContact, Some("kalle"));
        take_new(store, &[parcel(met)]);
        if is_filed {
            file_all(store);
        }
        let verified = signed.verdict(VerdictWord::Verified, Some("kalle"));
        assert!(matches!(
            take(store, &parcel(verified)),
            AcceptOutcome::Known { .. }
        ));
        assert_eq!(store.record(id).unwrap().verdict, VerdictWord::Verified);
        file_all(store);
        assert_eq!(store.record(id).unwrap().verdict, VerdictWord::Verified);
    }
    assert_eq!(store.thread("T1").unwrap().messages, 2);
}

pub(crate) fn within_a_batch_later_messages_see_earlier_ones(store: &mut Relay) {
    let one = parcel(letter("M1").thread("T1"));
    let other = parcel(letter("M1").thread("T1").body("Other."));
    let close = parcel(letter("M2").thread("T1").intent("CLOSE"));
    let late = parcel(letter("M3").thread("T1"));
    let taken = store.take_all(&[one.clone(), one, other, close, late]);
    let shapes: Vec<&str> = taken
        .iter()
        .map(|t| match t {
            AcceptOutcome::Accepted { .. } => "new",
            AcceptOutcome::Known { .. } => "known",
            AcceptOutcome::Held { .. } => "held",
            AcceptOutcome::Rejected(_) => "refused",
        })
        .collect();
    assert_eq!(shapes, ["new", "known", "refused", "new", "refused"]);
    assert_eq!(file_all(store).left, 0);
    assert_eq!(store.thread("T1").unwrap().messages, 2);
}

/// An id that looks like the beginning of another one, or like a thread, is what the sender was told.
pub(crate) fn ids_never_change_when_they_are_filed(store: &mut Relay) {
    let ulid = "01J9J3D3M6A4M3WQX8G1ZQ0S7K";
    let parcels = [ulid, &ulid[..10], "T1"].map(|id| parcel(letter(id).thread("T1")));
    take_and_file(store, &parcels);
    for parcel in &parcels {
        let id = parcel.arrival.id();
        let record = store.record(id).unwrap();
        assert!(
            record.carries_id && record.text == parcel.arrival.text,
            "{id}"
        );
    }
}

pub(crate) fn a_person_and_a_relay_share_a_store(store: &mut Relay) {
    take_new(store, &[parcel(letter("M1").thread("T1"))]);
    // The answer of a person sees the question that is not filed.
    let answer = letter("M2").parent("M1").intent("RESPOND");
    let answer = answer.between("CLAUDE", "KALLE").way(Way::Pasted);
    let outcome = store.person().accept(&[answer.arrival()]);
    let outcome = outcome.unwrap().remove(0);
    match outcome {
        StoreOutcome::Filed {
            thread, settled, ..
        } => {
            assert_eq!((thread.as_str(), settled.as_deref()), ("T1", Some("M1")));
        }
        other => panic!("{other:?}"),
    }
    file_all(store);
    // What the person took in is on its way to nobody.
    assert!(inbox(store, "KALLE").is_empty());
    assert_eq!(inbox(store, "CLAUDE"), ["M1"]);
    take_and_file(store, &[parcel(letter("M3").thread("T1"))]);
    assert_eq!(store.thread("T1").unwrap().messages, 3);
    let again = parcel(
        letter("M2")
            .parent("M1")
            .intent("RESPOND")
            .between("CLAUDE", "KALLE"),
    );
    assert!(matches!(take(store, &again), AcceptOutcome::Known { .. }));
    let outcome = store
        .person()
        .accept(&[letter("M3").thread("T1").arrival()])
        .unwrap();
    assert!(matches!(outcome[0], StoreOutcome::Known { .. }));
}
