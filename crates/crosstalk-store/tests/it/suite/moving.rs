//! Answers with the wrong ids: which question they mean, and how a person moves them.

use super::{file, ids, put, settled, wait};
use crate::letter::{Letter, letter, nameless};
use crate::sqlite::Sqlite;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Moved, Page, Placement, Search, Side, StoreOutcome, Wait, Way};
use crosstalk_store::SqliteStore;

fn ask(id: &str, thread: &str) -> Letter {
    letter(id).thread(thread).side(Side::Mine)
}

fn answer(id: &str) -> Letter {
    letter(id).between("CLAUDE", "KALLE").intent("RESPOND")
}

fn parent(store: &SqliteStore, id: &str) -> Option<String> {
    store.message(id).unwrap().unwrap().parent
}

#[test]
fn unknown_ids_mean_the_only_open_question() {
    let store = &mut Sqlite::new().store;
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

#[test]
fn several_open_questions_are_told() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2"));
    let lost = answer("A1").thread("made-up").parent("nobody-knows");
    match put(store, &lost) {
        StoreOutcome::Filed {
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
    assert!(matches!(outcome, StoreOutcome::Filed { candidates, .. } if candidates.len() == 2));
    store.relocate("A2", Some("M2")).unwrap();
    let moved = store.relocate("A1", Some("M1")).unwrap();
    assert!(matches!(moved, Moved::Done { settled: Some(s), .. } if s == "M1"));
    assert_eq!(store.thread("made-up").unwrap(), None);
}

#[test]
fn ids_in_the_wrong_place_are_understood() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2"));
    file(store, &ask("M3", "T3"));
    let thread_as_parent = answer("A1").thread("made-up").parent("T1");
    assert_eq!(settled(store, &thread_as_parent).as_deref(), Some("M1"));
    let message_as_thread = answer("A2").thread("M2");
    assert_eq!(settled(store, &message_as_thread).as_deref(), Some("M2"));
    assert_eq!(ids(store, "T2"), ["M2", "A2"]);
}

#[test]
fn signed_ids_say_what_they_say() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1"));
    let signed = answer("A1").thread("T9").parent("M9");
    let signed = signed.verdict(crosstalk_protocol::VerdictWord::Verified, Some("claude"));
    assert_eq!(file(store, &signed), "T9");
    assert_eq!(wait(store, "M1"), Wait::Them);
}

#[test]
fn an_answer_moves_and_moves_back() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2"));
    file(store, &answer("A1").thread("T1").parent("M1"));
    assert_eq!(store.relocate("A1", None).unwrap(), Moved::Stays);
    let to = |thread: &str, answers: &str| Placement {
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
    assert!(matches!(again, StoreOutcome::Known { thread, .. } if thread == "T2"));
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

#[test]
fn what_answers_it_moves_along() {
    let store = &mut Sqlite::new().store;
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

#[test]
fn nothing_answers_itself() {
    let store = &mut Sqlite::new().store;
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

#[test]
fn a_moved_message_can_be_forgotten() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2"));
    file(store, &answer("A1").thread("T1").parent("M1"));
    store.relocate("A1", Some("M2")).unwrap();
    assert_eq!(store.forget("T2").unwrap(), 2);
    assert_eq!(store.message("A1").unwrap(), None);
    assert_eq!(wait(store, "M1"), Wait::Them);
}

/// The same envelope was pasted into two chats, and the second one answers with the id of the first one's copy.
#[test]
fn an_answer_to_the_copy_of_somebody_else_means_the_own_copy() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1").between("KALLE", "CHATGPT"));
    file(store, &ask("M2", "T1"));
    let answer = |id: &str| answer(id).thread("T1").parent("M1");
    assert_eq!(settled(store, &answer("A1")).as_deref(), Some("M2"));
    assert_eq!(parent(store, "A1").as_deref(), Some("M2"));
    assert_eq!(wait(store, "M1"), Wait::Them);
    // Nothing else waits for it: it stays where it says, and settles nothing.
    assert_eq!(settled(store, &answer("A2").body("Once more.")), None);
    assert_eq!(parent(store, "A2").as_deref(), Some("M1"));
}

#[test]
fn an_answer_without_a_known_intent_settles() {
    let store = &mut Sqlite::new().store;
    for (number, intent) in ["ANTWORT", "\u{201c}RESPOND\u{201d}"]
        .into_iter()
        .enumerate()
    {
        let (question, thread) = (format!("M{number}"), format!("T{number}"));
        file(store, &ask(&question, &thread));
        let said = answer(&format!("A{number}")).intent(intent);
        let said = said.thread(&thread).parent(&question);
        assert_eq!(settled(store, &said).as_deref(), Some(question.as_str()));
    }
    file(store, &ask("M9", "T9"));
    // Who was not asked answers nothing, and nobody guesses about what is signed.
    let eve = answer("A8").between("EVE", "KALLE").intent("ANTWORT");
    assert_eq!(settled(store, &eve.thread("T9").parent("M9")), None);
    let signed = answer("A9").intent("ANTWORT").thread("T9").parent("M9");
    let signed = signed.verdict(VerdictWord::Verified, Some("claude"));
    assert_eq!(settled(store, &signed), None);
    assert_eq!(wait(store, "M9"), Wait::Them);
}

/// A model copies the intent of the question. A person who files the message as the answer knows better.
#[test]
fn a_message_that_a_person_files_as_the_answer_is_the_answer() {
    let store = &mut Sqlite::new().store;
    let asked_back = |id: &str| {
        let letter = letter(id).between("CLAUDE", "KALLE").side(Side::ToMe);
        letter.thread("T1").parent("M1")
    };
    file(store, &ask("M1", "T1"));
    file(store, &asked_back("A1"));
    assert_eq!(
        (wait(store, "M1"), wait(store, "A1")),
        (Wait::Them, Wait::Me)
    );
    let moved = store.relocate("A1", Some("M1")).unwrap();
    assert!(matches!(moved, Moved::Done { settled: Some(id), .. } if id == "M1"));
    assert_eq!(
        (wait(store, "M1"), wait(store, "A1")),
        (Wait::Nobody, Wait::Nobody)
    );
    assert_eq!(store.relocate("A1", Some("M1")).unwrap(), Moved::Stays);
    store.relocate("A1", None).unwrap();
    assert_eq!(
        (wait(store, "M1"), wait(store, "A1")),
        (Wait::Them, Wait::Me)
    );
    // The same where it is filed so at once.
    assert_eq!(
        settled(store, &asked_back("A2").answers("M1")).as_deref(),
        Some("M1")
    );
    assert_eq!(wait(store, "A2"), Wait::Nobody);
    // A question that is put below another one of its sender asks on.
    file(store, &asked_back("A3"));
    store.relocate("A3", Some("A1")).unwrap();
    assert_eq!(wait(store, "A3"), Wait::Me);
}

/// Who asks an address whose inbox is their own has to answer.
#[test]
fn a_message_that_comes_back_from_an_inbox_waits_for_me() {
    let store = &mut Sqlite::new().store;
    let question = ask("M1", "T1").between("KALLE", "human://localhost/ops");
    file(store, &question);
    let fetched = question.clone().side(Side::ToMe).way(Way::Relayed);
    assert!(matches!(put(store, &fetched), StoreOutcome::Known { .. }));
    assert_eq!(wait(store, "M1"), Wait::Me);
    assert_eq!(store.inbox(Page::first(9)).unwrap().items.len(), 1);
    let reply = letter("A1").between("human://localhost/ops", "KALLE");
    let reply = reply
        .intent("RESPOND")
        .side(Side::Mine)
        .thread("T1")
        .parent("M1");
    assert_eq!(settled(store, &reply).as_deref(), Some("M1"));
}

/// A person says whose answer it is: it is there once, under the id that it had.
#[test]
fn a_corrected_message_takes_the_place_of_the_one_before() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1"));
    let said = |from: &str| {
        answer("A1")
            .between(from, "KALLE")
            .thread("T1")
            .parent("M1")
    };
    file(store, &said("YOU"));
    assert_eq!(wait(store, "M1"), Wait::Them);
    let mut corrected = said("CLAUDE").answers("M1").arrival();
    corrected.replaces = Some("A1".to_owned());
    store.accept(&[corrected]).unwrap();
    assert_eq!(ids(store, "T1"), ["M1", "A1"]);
    assert_eq!(store.message("A1").unwrap().unwrap().sender, "CLAUDE");
    assert_eq!(wait(store, "M1"), Wait::Nobody);
}

/// The id of a truncated message goes to no other sender, and the id of a signed one to nobody.
#[test]
fn only_its_sender_completes_a_truncated_message() {
    let store = &mut Sqlite::new().store;
    let cut = |id: &str, verdict: VerdictWord| {
        let mut arrival = letter(id)
            .between("CLAUDE", "KALLE")
            .body("Which")
            .arrival();
        arrival.truncated = true;
        arrival.verdict = verdict;
        arrival
    };
    store.accept(&[cut("A1", VerdictWord::Unsigned)]).unwrap();
    let whole = letter("A1")
        .between("EVE", "KALLE")
        .body("Which one?")
        .arrival();
    let outcome = store.accept(std::slice::from_ref(&whole)).unwrap();
    assert!(
        matches!(outcome[..], [StoreOutcome::Conflict { .. }]),
        "{outcome:?}"
    );
    // The same text, whole and verified: it is cut off no more, and its id is not free.
    let mut verified = cut("A1", VerdictWord::Verified);
    verified.truncated = false;
    store.accept(&[verified]).unwrap();
    assert!(!store.message("A1").unwrap().unwrap().truncated);
    // Nor is that of a signed one that is cut off.
    store.accept(&[cut("A2", VerdictWord::Verified)]).unwrap();
    for id in ["A1", "A2"] {
        let again = letter(id)
            .between("CLAUDE", "KALLE")
            .body("Which one?")
            .arrival();
        let outcome = store.accept(std::slice::from_ref(&again)).unwrap();
        assert!(
            matches!(outcome[..], [StoreOutcome::Conflict { .. }]),
            "{id}: {outcome:?}"
        );
    }
}

#[test]
fn a_whole_message_takes_the_place_of_a_truncated_one() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1"));
    let cut = answer("A1").thread("T1").parent("M1").body("All went");
    let mut arrival = cut.arrival();
    arrival.truncated = true;
    arrival.generated.message = "own".to_owned();
    store.accept(&[arrival]).unwrap();
    assert!(store.message("A1").unwrap().unwrap().truncated);
    let whole = answer("A1")
        .thread("T1")
        .parent("M1")
        .body("All went well.");
    let outcome = put(store, &whole);
    assert!(matches!(outcome, StoreOutcome::Filed { displaced: Some(d), .. } if d == "own"));
    assert!(!store.message("A1").unwrap().unwrap().truncated);
    assert_eq!(store.message("own").unwrap(), None);
    assert_eq!(ids(store, "T1"), ["M1", "A1"]);
    let found = store
        .search(&Search::parse("went").unwrap(), Page::first(9))
        .unwrap();
    assert_eq!(found.items.len(), 1);
}

/// Models leave ids out. The whole answer has the head of the one that was cut off, and begins with its text.
#[test]
fn a_whole_message_without_an_id_takes_the_place_of_a_truncated_one() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1").session("s1"));
    let said = |body: &str| {
        let answer = nameless().between("CLAUDE", "KALLE").intent("RESPOND");
        answer.session("s1").body(body)
    };
    let mut cut = said("All went").spare_message("cut").arrival();
    cut.truncated = true;
    store.accept(&[cut]).unwrap();
    assert_eq!(parent(store, "cut").as_deref(), Some("M1"));
    // Another text is another answer.
    let other = put(store, &said("Nothing went well.").spare_message("other"));
    assert!(matches!(
        other,
        StoreOutcome::Filed {
            displaced: None,
            ..
        }
    ));
    let whole = said("All went well.").spare_message("whole");
    let outcome = put(store, &whole);
    assert!(
        matches!(outcome, StoreOutcome::Filed { id, displaced: Some(d), .. } if id == "cut" && d == "whole")
    );
    let record = store.message("cut").unwrap().unwrap();
    assert!(!record.truncated);
    assert_eq!(
        (record.parent.as_deref(), record.thread.as_str()),
        (Some("M1"), "T1")
    );
    assert_eq!(store.message("whole").unwrap(), None);
    assert!(matches!(put(store, &whole), StoreOutcome::Known { id, .. } if id == "cut"));
}

/// A text that carries nothing but the ids of the primer may answer two questions.
#[test]
fn the_same_words_with_the_ids_of_the_example_answer_the_next_question() {
    let store = &mut Sqlite::new().store;
    let said = |id: &str| {
        let answer = nameless().between("CLAUDE", "KALLE").intent("RESPOND");
        let answer = answer
            .session("2025-10-09T16Z abc123")
            .thread("01K74V6VX0S86Z5JATM52C3M7Z");
        answer
            .parent("01K74V70T0C4NWGX9QSZPNV2PB")
            .body("Yes.")
            .spare_message(id)
    };
    file(store, &ask("M1", "T1"));
    assert_eq!(settled(store, &said("A1")).as_deref(), Some("M1"));
    assert!(matches!(put(store, &said("A2")), StoreOutcome::Known { id, .. } if id == "A1"));
    file(store, &ask("M2", "T2"));
    // A chat that was copied as a whole has it again.
    let chat = [
        said("A3").arrival(),
        answer("A4").thread("T2").parent("M2").arrival(),
    ];
    let outcomes = store.accept(&chat[..]).unwrap();
    assert!(matches!(&outcomes[0], StoreOutcome::Known { id, .. } if id == "A1"));
    file(store, &ask("M3", "T3"));
    assert_eq!(settled(store, &said("A5")).as_deref(), Some("M3"));
    assert_eq!(ids(store, "T3"), ["M3", "A5"]);
}

/// Who has voted means something else by an answer with unknown ids.
#[test]
fn a_poll_waits_no_more_for_those_who_have_answered() {
    let store = &mut Sqlite::new().store;
    let poll = ask("P1", "T1").between("KALLE", "VOTERS").intent("POLL");
    file(store, &poll.targets(&["CLAUDE", "GEMINI"]));
    file(store, &answer("V1").thread("T1").parent("P1"));
    let lost = answer("A1").thread("lost").parent("nobody-knows");
    assert_eq!(file(store, &lost), "lost");
    let stranger = answer("A2")
        .between("CHATGPT", "KALLE")
        .thread("far")
        .parent("nobody-knows");
    assert_eq!(file(store, &stranger), "far");
    let voter = answer("A3")
        .between("GEMINI", "KALLE")
        .thread("off")
        .parent("nobody-knows");
    assert_eq!(file(store, &voter), "T1");
}

#[test]
fn an_empty_answer_settles_nothing() {
    let store = &mut Sqlite::new().store;
    file(store, &ask("M1", "T1"));
    let empty = answer("A1").thread("T1").parent("M1").body("");
    assert_eq!(settled(store, &empty), None);
    assert_eq!(wait(store, "M1"), Wait::Them);
    // What says something takes its id.
    let full = answer("A1").thread("T1").parent("M1").body("Yes.");
    assert!(matches!(
        put(store, &full),
        StoreOutcome::Filed {
            displaced: Some(_),
            ..
        }
    ));
    assert_eq!(wait(store, "M1"), Wait::Nobody);
}
