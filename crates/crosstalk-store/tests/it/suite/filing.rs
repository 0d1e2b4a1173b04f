//! Where a message goes: known, refused, filed, moved.

use super::{file, ids, put, thread_of};
use crate::at;
use crate::letter::{letter, nameless};
use crosstalk_protocol::Word;
use crosstalk_protocol::store::{Outcome, Page, Side, Store, ThreadFilter, Wait, Way};

pub(crate) fn a_message_is_kept_with_all_that_is_known(store: &mut dyn Store) {
    let message = letter("M1")
        .thread("T1")
        .session("S1")
        .parent("M0")
        .between("agent://ann", "BOB")
        .user("ann")
        .intent("QUESTION")
        .verdict(Word::Verified, Some("ann@example"))
        .side(Side::ToMe)
        .at(7);
    let mut arrival = message.arrival();
    arrival.received = Some("> as it came\n\u{0}".to_owned());
    let outcome = store.accept(&[arrival.clone()]).unwrap();
    let filed = Outcome::Filed {
        id: "M1".to_owned(),
        thread: "T1".to_owned(),
        settled: None,
        closed: None,
    };
    assert_eq!(outcome, [filed]);
    let record = store.message("M1").unwrap().unwrap();
    assert_eq!(record.text, message.text());
    assert_eq!(record.received, arrival.received);
    assert_eq!(record.digest, arrival.digest);
    assert_eq!(record.intent.as_deref(), Some("QUESTION"));
    assert_eq!(record.meaning, arrival.meaning);
    assert_eq!(record.parent.as_deref(), Some("M0"));
    assert_eq!(record.session.as_deref(), Some("S1"));
    assert_eq!(record.user.as_deref(), Some("ann"));
    assert_eq!(record.context.as_deref(), Some("auth"));
    let who = (record.sender.as_str(), record.receiver.as_str());
    assert_eq!(who, ("agent://ann", "BOB"));
    assert_eq!((record.verdict, record.at), (Word::Verified, at(7)));
    assert_eq!(record.pkid.as_deref(), Some("ann@example"));
    assert_eq!((record.side, record.way), (Side::ToMe, Way::Pasted));
    assert_eq!((record.wait, record.carries_id), (Wait::Me, true));
    assert_eq!(store.message("M0").unwrap(), None);
    assert_eq!(store.accept(&[]).unwrap(), []);
}

pub(crate) fn the_same_again_is_known(store: &mut dyn Store) {
    let first = letter("M1").thread("T1").at(1);
    file(store, &first);
    let known = Outcome::Known {
        id: "M1".to_owned(),
        thread: "T1".to_owned(),
        since: at(1),
        improved: false,
    };
    assert_eq!(put(store, &first.clone().at(9)), known);
    assert_eq!(store.thread("T1").unwrap().unwrap().messages, 1);
    assert_eq!(store.message("M1").unwrap().unwrap().at, at(1));
}

pub(crate) fn another_content_under_an_id_is_refused(store: &mut dyn Store) {
    let first = letter("M1").thread("T1");
    file(store, &first);
    let conflict = Outcome::Conflict {
        id: "M1".to_owned(),
        thread: "T1".to_owned(),
    };
    let other = first.clone().body("Which door?");
    assert_eq!(put(store, &other), conflict);
    assert_eq!(put(store, &first.clone().thread("T2")), conflict);
    assert_eq!(store.message("M1").unwrap().unwrap().text, first.text());
    assert_eq!(store.thread("T2").unwrap(), None);
}

pub(crate) fn a_copy_that_nobody_signed_is_in_nobodys_way(store: &mut dyn Store) {
    file(store, &letter("M1").thread("T1").body("forged"));
    let signed = letter("M1")
        .thread("T1")
        .verdict(Word::Verified, Some("ann"));
    file(store, &signed);
    assert_eq!(store.message("M1").unwrap().unwrap().text, signed.text());
    let copy = letter("M1").thread("T1");
    assert!(matches!(put(store, &copy), Outcome::Known { .. }));
    let other_signer = letter("M1")
        .thread("T1")
        .body("mine")
        .verdict(Word::FirstContact, Some("bob"));
    file(store, &other_signer);
    assert_eq!(store.thread("T1").unwrap().unwrap().messages, 3);
    assert_eq!(store.message("M1").unwrap().unwrap().text, signed.text());
}

pub(crate) fn more_is_known_when_the_signature_comes(store: &mut dyn Store) {
    let bare = letter("M1").thread("T1").at(1);
    file(store, &bare);
    for (word, improves) in [
        (Word::NotVerified, false),
        (Word::FirstContact, true),
        (Word::FirstContact, false),
        (Word::Verified, true),
        (Word::Verified, false),
        (Word::Unsigned, false),
    ] {
        let holds = word < Word::Unsigned;
        let again = bare.clone().verdict(word, holds.then_some("ann")).at(2);
        let known = Outcome::Known {
            id: "M1".to_owned(),
            thread: "T1".to_owned(),
            since: at(1),
            improved: improves,
        };
        assert_eq!(put(store, &again), known, "{word:?}");
    }
    let record = store.message("M1").unwrap().unwrap();
    assert_eq!(record.verdict, Word::Verified);
    assert_eq!(record.pkid.as_deref(), Some("ann"));
    assert!(record.text.contains("pkid=ann"));
    assert_eq!(
        (record.at, store.thread("T1").unwrap().unwrap().messages),
        (at(1), 1)
    );
}

pub(crate) fn a_stripped_copy_does_not_replace_a_signed_one(store: &mut dyn Store) {
    let bare = letter("M1").thread("T1");
    let mut unknown = bare
        .clone()
        .verdict(Word::UnknownKey, Some("ann"))
        .arrival();
    unknown.pkid = None;
    store.accept(&[unknown.clone()]).unwrap();
    assert!(matches!(
        put(store, &bare),
        Outcome::Known {
            improved: false,
            ..
        }
    ));
    assert_eq!(store.message("M1").unwrap().unwrap().text, unknown.text);
}

pub(crate) fn one_key_signs_one_message_under_an_id(store: &mut dyn Store) {
    let one = letter("M1").thread("T1");
    let two = one.clone().body("Which door?");
    file(store, &one);
    file(store, &two.verdict(Word::Verified, Some("ann")));
    let also = one.clone().verdict(Word::Verified, Some("ann"));
    assert!(matches!(put(store, &also), Outcome::Conflict { .. }));
    assert!(matches!(put(store, &one), Outcome::Known { .. }));
}

pub(crate) fn messages_without_an_id_are_known_by_their_content(store: &mut dyn Store) {
    let one = nameless().session("S1").at(1);
    let thread = file(store, &one);
    let record = store.messages(&thread, None, 9).unwrap().items.remove(0);
    assert!(!record.carries_id);
    // The same text gets other spare ids when it comes again.
    let again = nameless().session("S1").at(2);
    match put(store, &again) {
        Outcome::Known {
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

pub(crate) fn a_message_belongs_to_the_thread_of_its_parent(store: &mut dyn Store) {
    file(store, &letter("M1").thread("T1"));
    assert_eq!(file(store, &letter("M2").thread("T9").parent("M1")), "T1");
    assert_eq!(file(store, &letter("M3").parent("M2")), "T1");
    assert_eq!(file(store, &letter("M4").spare("new")), "new");
    assert_eq!(ids(store, "T1"), ["M1", "M2", "M3"]);
    // Of two messages with the id of the parent, the one that can be trusted.
    let signed = letter("M1").thread("T7").body("x");
    file(store, &signed.verdict(Word::Verified, Some("ann")));
    assert_eq!(file(store, &letter("M5").parent("M1")), "T7");
}

pub(crate) fn sessions_join_a_thread(store: &mut dyn Store) {
    let first = file(store, &nameless().session("2025-10-09T16Z abc"));
    let second = nameless().session("2025-10-09T16Z abc").body("2");
    assert_eq!(file(store, &second), first);
    let vague = letter("M3")
        .session("2025-10-09T16Z abc")
        .thread("<as above>");
    assert_eq!(file(store, &vague), first);
    let elsewhere = letter("M4")
        .session("2025-10-09T16Z abd")
        .thread("<as above>");
    assert_eq!(file(store, &elsewhere), "<as above>");
    // The latest thread of a session is the one that goes on.
    let named = "01J9J3D3M6A4M3WQX8G1ZQ0S7K";
    file(
        store,
        &letter("M5").session("2025-10-09T16Z abc").thread(named),
    );
    let next = nameless().session("2025-10-09T16Z abc").body("3");
    assert_eq!(file(store, &next), named);
}

pub(crate) fn a_message_that_does_not_count_leads_no_session_away(store: &mut dyn Store) {
    let first = file(store, &nameless().session("S"));
    let forged = letter("M1")
        .session("S")
        .thread("01J9J3D3M6A4M3WQX8G1ZQ0S7K");
    file(store, &forged.verdict(Word::NotVerified, None));
    assert_eq!(file(store, &nameless().session("S").body("2")), first);
}

pub(crate) fn within_a_batch_later_messages_see_earlier_ones(store: &mut dyn Store) {
    let one = letter("M1").thread("T1").side(Side::Mine);
    let two = letter("M2")
        .parent("M1")
        .intent("RESPOND")
        .between("CLAUDE", "KALLE");
    let batch = [
        one.arrival(),
        two.arrival(),
        one.arrival(),
        two.body("x").arrival(),
    ];
    let outcomes = store.accept(&batch).unwrap();
    assert!(
        matches!(&outcomes[1], Outcome::Filed { thread, settled: Some(s), .. } if thread == "T1" && s == "M1")
    );
    assert!(matches!(outcomes[2], Outcome::Known { .. }));
    assert!(matches!(outcomes[3], Outcome::Conflict { .. }));
}

pub(crate) fn a_batch_has_an_outcome_for_each(store: &mut dyn Store) {
    let batch: Vec<_> = (0..300)
        .map(|n| letter(&format!("M{n:03}")).thread("T1").arrival())
        .collect();
    let outcomes = store.accept(&batch).unwrap();
    for (arrival, outcome) in batch.iter().zip(&outcomes) {
        assert!(matches!(outcome, Outcome::Filed { id, .. } if id == arrival.id()));
    }
    assert_eq!((outcomes.len(), ids(store, "T1").len()), (300, 300));
}

pub(crate) fn answers_that_came_first_join_their_message(store: &mut dyn Store) {
    let answer = letter("M2").parent("M1").intent("RESPOND").spare("made-up");
    assert_eq!(file(store, &answer), "made-up");
    assert_eq!(file(store, &letter("M1").thread("T1")), "T1");
    assert_eq!(thread_of(store, "M2"), "T1");
    assert_eq!(store.thread("made-up").unwrap(), None);
    assert_eq!(store.thread("T1").unwrap().unwrap().messages, 2);
    // A message without a thread takes that of its answer.
    file(store, &letter("N2").parent("N1").spare("kept"));
    assert_eq!(file(store, &letter("N1")), "kept");
    let threads = store
        .threads(&ThreadFilter::default(), Page::first(9))
        .unwrap();
    assert_eq!(threads.items.len(), 2);
}

pub(crate) fn answers_that_came_first_bring_their_own_answers(store: &mut dyn Store) {
    let made_up = file(store, &letter("M3").parent("M2").between("EVE", "DAN"));
    file(store, &letter("M4").parent("M3").thread(&made_up));
    // Not an answer to any of them, but of the same thread.
    file(store, &letter("X1").thread(&made_up).between("FAY", "GUS"));
    file(store, &letter("M2").thread("T1"));
    assert_eq!(ids(store, "T1"), ["M3", "M4", "M2"]);
    assert_eq!(ids(store, &made_up), ["X1"]);
    let left = store.thread(&made_up).unwrap().unwrap();
    assert_eq!(
        (left.messages, left.parties),
        (1, vec!["FAY".to_owned(), "GUS".to_owned()])
    );
    let joined = store.thread("T1").unwrap().unwrap();
    assert_eq!((joined.messages, joined.waiting), (3, 3));
    assert_eq!(joined.parties, ["EVE", "DAN", "KALLE", "CLAUDE"]);
}

pub(crate) fn answers_stay_in_the_thread_that_they_name(store: &mut dyn Store) {
    file(
        store,
        &letter("M2").parent("M1").thread("T2").intent("RESPOND"),
    );
    file(store, &letter("M1").thread("T1"));
    assert_eq!(thread_of(store, "M2"), "T2");
    assert_eq!(super::wait(store, "M1"), Wait::Nobody);
}

pub(crate) fn nobody_moves_answers_with_a_second_message_of_that_id(store: &mut dyn Store) {
    file(store, &letter("M1").thread("T1"));
    file(store, &letter("M2").parent("M1"));
    let second = letter("M1").thread("T2").body("mine");
    file(store, &second.verdict(Word::FirstContact, Some("eve")));
    assert_eq!(thread_of(store, "M2"), "T1");
    // Nor does one that must not be acted on.
    file(store, &letter("N2").parent("N1").spare("apart"));
    let forged = letter("N1").thread("T3").verdict(Word::NotVerified, None);
    file(store, &forged);
    assert_eq!(thread_of(store, "N2"), "apart");
    let real = letter("N1")
        .thread("T4")
        .verdict(Word::Verified, Some("ann"));
    file(store, &real.body("real"));
    assert_eq!(thread_of(store, "N2"), "T4");
}

pub(crate) fn a_thread_is_counted_and_dated(store: &mut dyn Store) {
    file(
        store,
        &letter("M1")
            .thread("T1")
            .context("first")
            .session("S")
            .at(50),
    );
    file(
        store,
        &letter("M2")
            .thread("T1")
            .context("second")
            .at(90)
            .side(Side::Mine),
    );
    // One that was older, out of an archive.
    file(
        store,
        &letter("M0")
            .thread("T1")
            .context("before")
            .at(10)
            .intent("STATUS"),
    );
    let thread = store.thread("T1").unwrap().unwrap();
    assert_eq!((thread.messages, thread.waiting, thread.asked), (3, 1, 1));
    assert_eq!((thread.first_at, thread.last_at), (at(10), at(90)));
    assert_eq!((thread.last.as_str(), thread.closed_at), ("M2", None));
    assert_eq!(thread.context.as_deref(), Some("before"));
    assert_eq!(thread.session, None);
    assert_eq!(ids(store, "T1"), ["M1", "M2", "M0"]);
    assert_eq!(store.thread("T2").unwrap(), None);
}

pub(crate) fn parties_are_named_once_and_sixteen_at_most(store: &mut dyn Store) {
    file(store, &letter("M1").thread("T1"));
    file(store, &letter("M2").thread("T1").between("claude", "Kalle"));
    file(
        store,
        &letter("M3")
            .thread("T1")
            .between("CLAUDE", "agent://x/Claude"),
    );
    file(
        store,
        &letter("M4")
            .thread("T1")
            .between("CLAUDE", "agent://x/claude"),
    );
    let parties = store.thread("T1").unwrap().unwrap().parties;
    assert_eq!(
        parties,
        ["KALLE", "CLAUDE", "agent://x/Claude", "agent://x/claude"]
    );
    let many: Vec<String> = (0..20).map(|n| format!("P{n:02}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    file(
        store,
        &letter("M5").thread("T1").intent("POLL").targets(&many),
    );
    let parties = store.thread("T1").unwrap().unwrap().parties;
    assert_eq!(
        (parties.len(), parties[4].as_str(), parties[15].as_str()),
        (16, "P00", "P11")
    );
}

pub(crate) fn ids_are_bytes(store: &mut dyn Store) {
    for id in ["abcd", "ABCD", "äbcd"] {
        file(store, &letter(id).thread("T1"));
    }
    assert_eq!(store.message("abcd").unwrap().unwrap().id, "abcd");
    assert_eq!(store.message("Abcd").unwrap(), None);
    assert_eq!(ids(store, "T1"), ["abcd", "ABCD", "äbcd"]);
    assert!(ids(store, "t1").is_empty());
}
