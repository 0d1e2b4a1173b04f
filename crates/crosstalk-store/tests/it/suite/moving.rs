//! Answers with the wrong ids: which question they mean, and how a person moves them.

use super::{file, ids, put, settled, wait};
use crate::letter::{Letter, letter};
use crosstalk_protocol::Word;
use crosstalk_protocol::store::{Filing, Moved, Outcome, Side, Store, Wait};

fn ask(id: &str, thread: &str) -> Letter {
    letter(id).thread(thread).side(Side::Mine)
}

fn answer(id: &str) -> Letter {
    letter(id).between("CLAUDE", "KALLE").intent("RESPOND")
}

fn parent(store: &dyn Store, id: &str) -> Option<String> {
    store.message(id).unwrap().unwrap().parent
}

pub(crate) fn unknown_ids_mean_the_only_open_question(store: &mut dyn Store) {
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2").between("KALLE", "GEMINI"));
    let lost = answer("A1").thread("made-up").parent("nobody-knows");
    assert_eq!(settled(store, &lost).as_deref(), Some("M1"));
    assert_eq!(ids(store, "T1"), ["M1", "A1"]);
    assert_eq!(store.thread("made-up").unwrap(), None);
    // Nothing of CLAUDE's waits any more.
    let late = answer("A2").thread("late").parent("nobody-knows");
    assert_eq!(file(store, &late), "late");
    assert_eq!(wait(store, "M2"), Wait::Them);
}

pub(crate) fn several_open_questions_are_told(store: &mut dyn Store) {
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2"));
    let lost = answer("A1").thread("made-up").parent("nobody-knows");
    match put(store, &lost) {
        Outcome::Filed {
            thread, candidates, ..
        } => {
            assert_eq!(thread, "made-up");
            assert_eq!(candidates, ["M2", "M1"]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(wait(store, "M1"), Wait::Them);
    // A thread in which nothing was asked is not where the next one belongs, either.
    let again = answer("A2").thread("made-up").parent("nobody-knows");
    let outcome = put(store, &again.body("more"));
    assert!(matches!(outcome, Outcome::Filed { candidates, .. } if candidates.len() == 2));
    store.relocate("A2", Some("M2")).unwrap();
    let moved = store.relocate("A1", Some("M1")).unwrap();
    assert!(matches!(moved, Moved::Done { settled: Some(s), .. } if s == "M1"));
    assert_eq!(store.thread("made-up").unwrap(), None);
}

pub(crate) fn ids_in_the_wrong_place_are_understood(store: &mut dyn Store) {
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2"));
    file(store, &ask("M3", "T3"));
    let thread_as_parent = answer("A1").thread("made-up").parent("T1");
    assert_eq!(settled(store, &thread_as_parent).as_deref(), Some("M1"));
    let message_as_thread = answer("A2").thread("M2");
    assert_eq!(settled(store, &message_as_thread).as_deref(), Some("M2"));
    assert_eq!(ids(store, "T2"), ["M2", "A2"]);
}

pub(crate) fn signed_ids_say_what_they_say(store: &mut dyn Store) {
    file(store, &ask("M1", "T1"));
    let signed = answer("A1").thread("T9").parent("M9");
    let signed = signed.verdict(crosstalk_protocol::Word::Verified, Some("claude"));
    assert_eq!(file(store, &signed), "T9");
    assert_eq!(wait(store, "M1"), Wait::Them);
}

pub(crate) fn an_answer_moves_and_moves_back(store: &mut dyn Store) {
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2"));
    file(store, &answer("A1").thread("T1").parent("M1"));
    assert_eq!(store.relocate("A1", None).unwrap(), Moved::Stays);
    let to = |thread: &str, answers: &str| Filing {
        thread: thread.to_owned(),
        answers: Some(answers.to_owned()),
    };
    let there = Moved::Done {
        from: "T1".to_owned(),
        to: to("T2", "M2"),
        along: 0,
        settled: Some("M2".to_owned()),
        reopened: Some("M1".to_owned()),
    };
    assert_eq!(store.relocate("A1", Some("M2")).unwrap(), there);
    assert_eq!(parent(store, "A1").as_deref(), Some("M2"));
    assert_eq!(
        (ids(store, "T1"), ids(store, "T2")),
        (
            vec!["M1".to_owned()],
            vec!["M2".to_owned(), "A1".to_owned()]
        )
    );
    assert_eq!(
        (wait(store, "M1"), wait(store, "M2")),
        (Wait::Them, Wait::Nobody)
    );
    assert_eq!(store.relocate("A1", Some("M2")).unwrap(), Moved::Stays);
    // The same message again stays where the person put it.
    let again = put(store, &answer("A1").thread("T1").parent("M1"));
    assert!(matches!(again, Outcome::Known { thread, .. } if thread == "T2"));
    let back = Moved::Done {
        from: "T2".to_owned(),
        to: to("T1", "M1"),
        along: 0,
        settled: Some("M1".to_owned()),
        reopened: Some("M2".to_owned()),
    };
    assert_eq!(store.relocate("A1", None).unwrap(), back);
    assert_eq!(store.relocate("A1", None).unwrap(), Moved::Stays);
    assert_eq!(
        (wait(store, "M1"), wait(store, "M2")),
        (Wait::Nobody, Wait::Them)
    );
}

pub(crate) fn what_answers_it_moves_along(store: &mut dyn Store) {
    file(store, &answer("A1").thread("T9").parent("M9"));
    file(
        store,
        &ask("M2", "T9").parent("A1").between("KALLE", "CLAUDE"),
    );
    file(store, &answer("A2").thread("T9").parent("M2"));
    file(store, &ask("M1", "T1"));
    let moved = store.relocate("A1", Some("M1")).unwrap();
    assert!(matches!(moved, Moved::Done { along: 2, .. }), "{moved:?}");
    assert_eq!(ids(store, "T1"), ["A1", "M2", "A2", "M1"]);
    assert_eq!(store.thread("T9").unwrap(), None);
    // What comes later and answers it follows it.
    let late = ask("M3", "T9").parent("A1").between("KALLE", "CLAUDE");
    assert_eq!(file(store, &late), "T1");
}

pub(crate) fn nothing_answers_itself(store: &mut dyn Store) {
    file(store, &ask("M1", "T1"));
    file(store, &answer("A1").thread("T1").parent("M1"));
    for target in ["M1", "A1"] {
        let moved = store.relocate("M1", Some(target)).unwrap();
        assert_eq!(moved, Moved::AnswersItself, "{target}");
    }
    assert_eq!(store.relocate("M9", Some("M1")).unwrap(), Moved::Unknown);
    assert_eq!(store.relocate("A1", Some("M9")).unwrap(), Moved::Unknown);
    assert_eq!(ids(store, "T1"), ["M1", "A1"]);
}

pub(crate) fn a_moved_message_can_be_forgotten(store: &mut dyn Store) {
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2"));
    file(store, &answer("A1").thread("T1").parent("M1"));
    store.relocate("A1", Some("M2")).unwrap();
    assert_eq!(store.forget("T2").unwrap(), 2);
    assert_eq!(store.message("A1").unwrap(), None);
    assert_eq!(wait(store, "M1"), Wait::Them);
}

/// The id of a truncated message goes to no other sender, and the id of a signed one to nobody.
pub(crate) fn only_its_sender_completes_a_truncated_message(store: &mut dyn Store) {
    let cut = |verdict: Word| {
        let mut arrival = letter("A1")
            .between("CLAUDE", "KALLE")
            .body("Which")
            .arrival();
        arrival.truncated = true;
        arrival.verdict = verdict;
        arrival
    };
    store.accept(&[cut(Word::Unsigned)]).unwrap();
    let whole = letter("A1")
        .between("EVE", "KALLE")
        .body("Which one?")
        .arrival();
    let outcome = store.accept(std::slice::from_ref(&whole)).unwrap();
    assert!(
        matches!(outcome[..], [Outcome::Conflict { .. }]),
        "{outcome:?}"
    );
    // The same text, whole and verified: it is cut off no more, and its id is not free.
    let mut verified = cut(Word::Verified);
    verified.truncated = false;
    store.accept(&[verified]).unwrap();
    assert!(!store.message("A1").unwrap().unwrap().truncated);
    let again = letter("A1")
        .between("CLAUDE", "KALLE")
        .body("Which one?")
        .arrival();
    let outcome = store.accept(std::slice::from_ref(&again)).unwrap();
    assert!(
        matches!(outcome[..], [Outcome::Conflict { .. }]),
        "{outcome:?}"
    );
}

pub(crate) fn a_whole_message_takes_the_place_of_a_truncated_one(store: &mut dyn Store) {
    file(store, &ask("M1", "T1"));
    let cut = answer("A1").thread("T1").parent("M1").body("All went");
    let mut arrival = cut.arrival();
    arrival.truncated = true;
    arrival.spare.message = "own".to_owned();
    store.accept(&[arrival]).unwrap();
    assert!(store.message("A1").unwrap().unwrap().truncated);
    let whole = answer("A1")
        .thread("T1")
        .parent("M1")
        .body("All went well.");
    let outcome = put(store, &whole);
    assert!(matches!(outcome, Outcome::Filed { displaced: Some(d), .. } if d == "own"));
    assert!(!store.message("A1").unwrap().unwrap().truncated);
    assert!(store.message("own").unwrap().unwrap().truncated);
}
