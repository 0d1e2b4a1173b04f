//! Where a message goes: known, refused, filed, moved.

use super::{file, ids, put, thread_of};
use crate::at;
use crate::letter::{Letter, letter, nameless};
use crate::sqlite::Sqlite;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Page, Side, StoreOutcome, ThreadFilter, Wait, Way};

#[test]
fn a_message_is_kept_with_all_that_is_known() {
    let store = &mut Sqlite::new().store;
    let message = letter("M1")
        .thread("T1")
        .session("S1")
        .parent("M0")
        .between("agent://ann", "BOB")
        .user("ann")
        .intent("QUESTION")
        .verdict(VerdictWord::Verified, Some("ann@example"))
        .side(Side::ToMe)
        .at(7);
    let mut arrival = message.arrival();
    arrival.received = Some("> as it came\n\u{0}".to_owned());
    let outcome = store.accept(&[arrival.clone()]).unwrap();
    let filed = StoreOutcome::Filed {
        id: "M1".to_owned(),
        thread: "T1".to_owned(),
        settled: None,
        closed: None,
        displaced: None,
        candidates: Vec::new(),
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
    assert_eq!((record.verdict, record.at), (VerdictWord::Verified, at(7)));
    assert_eq!(record.pkid.as_deref(), Some("ann@example"));
    assert_eq!((record.side, record.way), (Side::ToMe, Way::Pasted));
    assert_eq!((record.wait, record.carries_id), (Wait::Me, true));
    assert_eq!(store.message("M0").unwrap(), None);
    assert_eq!(store.accept(&[]).unwrap(), []);
}

#[test]
fn a_person_says_what_it_answers() {
    let store = &mut Sqlite::new().store;
    let ask = |id: &str, thread: &str| letter(id).thread(thread).side(Side::Mine);
    file(store, &ask("M1", "T1"));
    file(store, &ask("M2", "T2"));
    let reply = letter("A1").thread("T2").parent("M2").intent("RESPOND");
    let reply = reply.between("CLAUDE", "KALLE").answers("M1");
    assert_eq!(super::settled(store, &reply).as_deref(), Some("M1"));
    let record = store.message("A1").unwrap().unwrap();
    assert_eq!(
        (record.thread.as_str(), record.parent.as_deref()),
        ("T1", Some("M1"))
    );
    assert_eq!(super::wait(store, "M2"), Wait::Them);
    // Whatever is found out about it later.
    put(store, &reply.verdict(VerdictWord::Verified, Some("claude")));
    let record = store.message("A1").unwrap().unwrap();
    assert_eq!(record.parent.as_deref(), Some("M1"));
    assert_eq!(store.forget("T1").unwrap(), 2);
}

#[test]
fn made_up_threads_of_answers_give_way_to_the_session() {
    let store = &mut Sqlite::new().store;
    let made_up = "01J9J3D3M6A4M3WQX8G1ZQ0S7K";
    let first = file(store, &nameless().session("S1").side(Side::Mine));
    let by = |id: &str, intent: &str| {
        let one = letter(id)
            .session("S1")
            .thread(made_up)
            .parent("nobody-knows");
        one.between("BOB", "KALLE").intent(intent)
    };
    for (n, intent) in ["RESPOND", "ACK", "NACK", "ERROR"].into_iter().enumerate() {
        assert_eq!(
            file(store, &by(&format!("A{n}"), intent)),
            first,
            "{intent}"
        );
    }
    // What is signed means what it says, and in an archive its thread may come later.
    let imported = by("B1", "RESPOND").way(Way::Imported);
    for (one, thread) in [
        (
            by("B0", "RESPOND").verdict(VerdictWord::NotVerified, None),
            first.as_str(),
        ),
        (imported, made_up),
    ] {
        assert_eq!(file(store, &one), thread);
    }
    assert_eq!(store.forget(made_up).unwrap(), 1);
    let signed = by("B2", "RESPOND").verdict(VerdictWord::FirstContact, Some("bob"));
    assert_eq!(file(store, &signed), made_up);
    // Now that thread is known.
    assert_eq!(file(store, &by("B3", "RESPOND")), made_up);
    assert_eq!(store.forget(made_up).unwrap(), 2);
    // Other messages begin threads.
    assert_eq!(file(store, &by("B4", "REQUEST")), made_up);
}

#[test]
fn made_up_parents_are_none() {
    let store = &mut Sqlite::new().store;
    let ask = |id: &str| letter(id).thread("T1").side(Side::Mine);
    let by = |id: &str| {
        let one = letter(id).thread("T1").parent("nobody-knows");
        one.between("CLAUDE", "KALLE").intent("RESPOND")
    };
    file(store, &ask("M1"));
    file(store, &ask("O1").between("KALLE", "BOB"));
    let signed = by("A1").verdict(VerdictWord::Verified, Some("claude"));
    assert_eq!(super::settled(store, &signed), None);
    assert_eq!(super::settled(store, &by("A2").way(Way::Imported)), None);
    assert_eq!(super::settled(store, &by("A3").intent("NACK")), None);
    assert_eq!(super::settled(store, &by("A4")).as_deref(), Some("M1"));
    let parent = |id: &str| store.message(id).unwrap().unwrap().parent;
    assert_eq!(parent("A4").as_deref(), Some("M1"));
    assert_eq!(parent("A1").as_deref(), Some("nobody-knows"));
    // With two that wait, nobody can tell which one it means.
    file(store, &ask("M2"));
    file(store, &ask("M3"));
    assert_eq!(super::settled(store, &by("A5")), None);
    // A parent that is known is meant.
    assert_eq!(
        super::settled(store, &by("A6").parent("M3")).as_deref(),
        Some("M3")
    );
}

#[test]
fn a_message_belongs_to_the_thread_of_its_parent() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("M1").thread("T1"));
    assert_eq!(file(store, &letter("M2").thread("T9").parent("M1")), "T1");
    assert_eq!(file(store, &letter("M3").parent("M2")), "T1");
    assert_eq!(file(store, &letter("M4").spare("new")), "new");
    assert_eq!(ids(store, "T1"), ["M1", "M2", "M3"]);
    // The parent is the one that has the id.
    let signed = letter("M1").thread("T7").body("x");
    file(store, &signed.verdict(VerdictWord::Verified, Some("ann")));
    assert_eq!(file(store, &letter("M5").parent("M1")), "T7");
}

#[test]
fn sessions_join_a_thread() {
    let store = &mut Sqlite::new().store;
    let first = file(store, &nameless().session("2025-10-09T16Z abc"));
    let second = nameless().session("2025-10-09T16Z abc").body("2");
    assert_eq!(file(store, &second), first);
    let vague = letter("M3")
        .session("2025-10-09T16Z abc")
        .thread("<as above>");
    assert_eq!(file(store, &vague), first);
    let elsewhere = letter("M4")
        .session("2025-10-09T16Z abd")
        .thread("<as above>")
        .spare("new");
    assert_eq!(file(store, &elsewhere), "new");
    // The latest thread of a session is the one that goes on.
    let named = "01J9J3D3M6A4M3WQX8G1ZQ0S7K";
    file(
        store,
        &letter("M5").session("2025-10-09T16Z abc").thread(named),
    );
    let next = nameless().session("2025-10-09T16Z abc").body("3");
    assert_eq!(file(store, &next), named);
}

#[test]
fn a_message_that_does_not_count_leads_no_session_away() {
    let store = &mut Sqlite::new().store;
    let first = file(store, &nameless().session("S"));
    let forged = letter("M1")
        .session("S")
        .thread("01J9J3D3M6A4M3WQX8G1ZQ0S7K");
    file(store, &forged.verdict(VerdictWord::NotVerified, None));
    assert_eq!(file(store, &nameless().session("S").body("2")), first);
}

#[test]
fn within_a_batch_later_messages_see_earlier_ones() {
    let store = &mut Sqlite::new().store;
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
        matches!(&outcomes[1], StoreOutcome::Filed { thread, settled: Some(s), .. } if thread == "T1" && s == "M1")
    );
    assert!(matches!(outcomes[2], StoreOutcome::Known { .. }));
    assert!(matches!(outcomes[3], StoreOutcome::Conflict { .. }));
}

#[test]
fn a_batch_has_an_outcome_for_each() {
    let store = &mut Sqlite::new().store;
    let batch: Vec<_> = (0..300)
        .map(|n| letter(&format!("M{n:03}")).thread("T1").arrival())
        .collect();
    let outcomes = store.accept(&batch).unwrap();
    for (arrival, outcome) in batch.iter().zip(&outcomes) {
        assert!(matches!(outcome, StoreOutcome::Filed { id, .. } if id == arrival.id()));
    }
    assert_eq!((outcomes.len(), ids(store, "T1").len()), (300, 300));
}

#[test]
fn answers_that_came_first_join_their_message() {
    let store = &mut Sqlite::new().store;
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

#[test]
fn answers_that_came_first_bring_their_own_answers() {
    let store = &mut Sqlite::new().store;
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

#[test]
fn answers_stay_in_the_thread_that_they_name() {
    let store = &mut Sqlite::new().store;
    file(
        store,
        &letter("M2")
            .parent("M1")
            .thread("T2")
            .intent("RESPOND")
            .between("CLAUDE", "KALLE"),
    );
    file(store, &letter("M1").thread("T1"));
    assert_eq!(thread_of(store, "M2"), "T2");
    assert_eq!(super::wait(store, "M1"), Wait::Nobody);
}

#[test]
fn nobody_moves_answers_who_must_not() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("M1").thread("T1"));
    file(store, &letter("M2").parent("M1"));
    let second = letter("M1").thread("T2").body("mine");
    let second = put(
        store,
        &second.verdict(VerdictWord::FirstContact, Some("eve")),
    );
    assert!(matches!(second, StoreOutcome::Conflict { .. }));
    assert_eq!(thread_of(store, "M2"), "T1");
    // Nor does one that must not be acted on.
    file(store, &letter("N2").parent("N1").spare("apart"));
    let forged = letter("N1")
        .thread("T3")
        .verdict(VerdictWord::NotVerified, None);
    file(store, &forged);
    assert_eq!(thread_of(store, "N2"), "apart");
    let real = letter("N1")
        .thread("T4")
        .verdict(VerdictWord::Verified, Some("ann"));
    file(store, &real.body("real"));
    assert_eq!(thread_of(store, "N2"), "T4");
}

#[test]
fn what_nobody_signed_moves_nothing_that_is_verified() {
    let store = &mut Sqlite::new().store;
    let signed = |one: Letter| one.verdict(VerdictWord::Verified, Some("ann"));
    file(store, &signed(letter("M2").parent("M1").spare("apart")));
    file(store, &signed(letter("M3").parent("M2")));
    file(store, &letter("M4").parent("M1").spare("loose"));
    file(store, &signed(letter("M5").parent("M4")));
    let root = letter("M1").thread("T1");
    file(store, &root);
    assert_eq!(ids(store, "T1"), ["M4", "M1"]);
    assert_eq!(
        (ids(store, "apart"), ids(store, "loose")),
        (
            vec!["M2".to_owned(), "M3".to_owned()],
            vec!["M5".to_owned()]
        )
    );
    // When it is verified, they come; what answers something that nobody signed stays.
    put(store, &signed(root));
    assert_eq!(ids(store, "T1"), ["M2", "M3", "M4", "M1"]);
    assert_eq!(ids(store, "loose"), ["M5"]);
    // An answer that nobody signed leads no verified message into its thread either.
    file(store, &letter("N2").parent("N1").spare("lure"));
    assert_eq!(file(store, &signed(letter("N1").spare("new"))), "new");
    assert_eq!(thread_of(store, "N2"), "new");
}

#[test]
fn a_thread_is_counted_and_dated() {
    let store = &mut Sqlite::new().store;
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

#[test]
fn parties_are_named_once_and_sixteen_at_most() {
    let store = &mut Sqlite::new().store;
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

#[test]
fn a_thread_with_many_parties_keeps_the_first() {
    let store = &mut Sqlite::new().store;
    let ask = letter("M0").thread("T1").intent("POLL").side(Side::Mine);
    let many: Vec<String> = (0..100).map(|n| format!("P{n:04}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    file(store, &ask.targets(&many));
    // Senders, answers to one message and words of strangers: each is one step.
    let by = |n: usize| {
        let from = format!("P{n:04}");
        let one = letter(&format!("N{n}"))
            .thread("T1")
            .between(&from, "KALLE");
        one.parent("M0")
            .intent(["RESPOND", "REQUEST", "CLOSE", "NACK"][n % 4])
    };
    let batch: Vec<_> = (0..4000).map(|n| by(n).arrival()).collect();
    assert_eq!(store.accept(&batch).unwrap().len(), 4000);
    let thread = store.thread("T1").unwrap().unwrap();
    assert_eq!((thread.messages, thread.parties.len()), (4001, 16));
    let met = |name: &str| store.knows(name).unwrap();
    assert!(met("KALLE") && met("CLAUDE") && met("P0061"));
    assert!(!met("P0062") && !met("P3999"));
    let filter = ThreadFilter {
        with: Some("P0061".to_owned()),
        ..ThreadFilter::default()
    };
    let found = store.threads(&filter, Page::first(9)).unwrap().items;
    assert_eq!(found, [thread]);
}

#[test]
fn ids_are_bytes() {
    let store = &mut Sqlite::new().store;
    for id in ["abcd", "ABCD", "äbcd"] {
        file(store, &letter(id).thread("T1"));
    }
    assert_eq!(store.message("abcd").unwrap().unwrap().id, "abcd");
    assert_eq!(store.message("Abcd").unwrap(), None);
    assert_eq!(ids(store, "T1"), ["abcd", "ABCD", "äbcd"]);
    assert!(ids(store, "t1").is_empty());
}
