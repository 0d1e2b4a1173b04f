//! Who has to act next, and what changes it.

use super::{file, put, settled, wait};
use crate::at;
use crate::letter::{Letter, letter, nameless};
use crate::sqlite::Sqlite;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Page, Side, StoreOutcome, Wait};
use crosstalk_store::SqliteStore;

fn answer(id: &str, to: &str) -> Letter {
    let from_other = letter(id).thread("T1").between("CLAUDE", "KALLE");
    from_other.parent(to).intent("RESPOND")
}

fn request(id: &str) -> Letter {
    letter(id).thread("T1").side(Side::ToMe)
}

#[test]
fn a_request_waits_by_its_side() {
    let store = &mut Sqlite::new().store;
    let sides = [
        ("M1", Side::ToMe, Wait::Me),
        ("M2", Side::Between, Wait::Carry),
        ("M3", Side::Mine, Wait::Them),
    ];
    for (id, side, who) in sides {
        file(store, &letter(id).thread("T1").side(side));
        assert_eq!(wait(store, id), who);
        let thanks = format!("{id}x");
        file(
            store,
            &letter(&thanks).thread("T1").side(side).intent("NOTE"),
        );
        assert_eq!(wait(store, &thanks), Wait::Nobody);
    }
    let thread = store.thread("T1").unwrap().unwrap();
    assert_eq!((thread.waiting, thread.asked), (2, 1));
}

#[test]
fn an_answer_settles() {
    let store = &mut Sqlite::new().store;
    for (n, intent) in ["RESPOND", "NACK", "ERROR", "ESCALATE", "HANDOFF", "ANSWER"]
        .into_iter()
        .enumerate()
    {
        let (asked, answered) = (format!("M{n}"), format!("N{n}"));
        file(store, &request(&asked));
        let by = answer(&answered, &asked).intent(intent).side(Side::Mine);
        assert_eq!(settled(store, &by), Some(asked.clone()), "{intent}");
        assert_eq!(wait(store, &asked), Wait::Nobody);
        // It is settled once.
        let again = answer(&format!("{answered}x"), &asked);
        assert_eq!(settled(store, &again), None);
    }
    let thread = store.thread("T1").unwrap().unwrap();
    // Whoever asks others to take over waits for them.
    assert_eq!((thread.waiting, thread.asked), (0, 2));
}

#[test]
fn an_answer_that_came_first_settles() {
    let store = &mut Sqlite::new().store;
    file(store, &answer("M2", "M1"));
    file(store, &request("M1"));
    assert_eq!(wait(store, "M1"), Wait::Nobody);
    assert_eq!(store.thread("T1").unwrap().unwrap().waiting, 0);
}

#[test]
fn what_must_not_be_acted_on_settles_nothing() {
    let store = &mut Sqlite::new().store;
    file(store, &request("M1"));
    for (n, word) in [
        VerdictWord::Damaged,
        VerdictWord::NotVerified,
        VerdictWord::Revoked,
    ]
    .into_iter()
    .enumerate()
    {
        let by = answer(&format!("N{n}"), "M1").verdict(word, None);
        assert_eq!(settled(store, &by), None);
        let end = letter(&format!("E{n}")).thread("T1").intent("CLOSE");
        file(store, &end.verdict(word, None));
        let asks = request(&format!("A{n}")).verdict(word, None);
        file(store, &asks);
        assert_eq!(wait(store, &format!("A{n}")), Wait::Nobody);
    }
    assert_eq!(wait(store, "M1"), Wait::Me);
    assert_eq!(store.thread("T1").unwrap().unwrap().closed_at, None);
}

#[test]
fn an_acknowledgement_settles_nothing() {
    let store = &mut Sqlite::new().store;
    file(store, &request("M1"));
    for intent in ["ACK", "BROADCAST", "REQUEST", "X-OWN"] {
        let by = answer(intent, "M1").intent(intent);
        assert_eq!(settled(store, &by), None, "{intent}");
    }
    assert_eq!(wait(store, "M1"), Wait::Me);
}

#[test]
fn a_poll_waits_for_all_whom_it_asks() {
    let store = &mut Sqlite::new().store;
    let poll = letter("M1").thread("T1").intent("POLL").side(Side::Mine);
    // The same one twice counts once, as do their answers.
    file(store, &poll.targets(&["ANN", "BOB", "ann"]));
    let by = |id, from| answer(id, "M1").between(from, "KALLE");
    assert_eq!(settled(store, &by("N1", "ANN")), None);
    assert_eq!(settled(store, &by("N2", "Ann")), None);
    assert_eq!(wait(store, "M1"), Wait::Them);
    assert_eq!(settled(store, &by("N3", "BOB")), Some("M1".to_owned()));
    assert_eq!(wait(store, "M1"), Wait::Nobody);
    // Only a poll does: a request with targets has its answer with the first.
    file(store, &letter("M2").thread("T1").targets(&["ANN", "BOB"]));
    assert_eq!(settled(store, &by("N5", "MALLORY").parent("M2")), None);
    assert_eq!(
        settled(store, &by("N4", "BOB").parent("M2")),
        Some("M2".to_owned())
    );
}

#[test]
fn a_poll_to_me_waits_for_me_alone() {
    let store = &mut Sqlite::new().store;
    let poll = request("M1").intent("POLL").targets(&["ANN", "ME", "BOB"]);
    file(store, &poll);
    let theirs = answer("N1", "M1").between("ANN", "KALLE");
    assert_eq!(settled(store, &theirs), None);
    let mine = answer("N2", "M1").between("ME", "KALLE").side(Side::Mine);
    assert_eq!(settled(store, &mine), Some("M1".to_owned()));
}

#[test]
fn an_answer_without_a_parent_settles_the_only_one() {
    let store = &mut Sqlite::new().store;
    let ask = nameless()
        .session("S1")
        .between("KALLE", "CLAUDE")
        .intent("QUESTION");
    let thread = file(store, &ask);
    let id = super::ids(store, &thread).remove(0);
    // Another one waits in the same thread, for somebody else.
    file(
        store,
        &nameless()
            .session("S1")
            .between("KALLE", "BOB")
            .intent("QUESTION"),
    );
    let reply = || {
        let from_other = nameless().session("S1").between("Claude", "KALLE");
        from_other.intent("ANSWER")
    };
    let forged = reply().verdict(VerdictWord::NotVerified, None).body("no");
    assert_eq!(settled(store, &forged), None);
    assert_eq!(settled(store, &reply()), Some(id.clone()));
    assert_eq!(wait(store, &id), Wait::Nobody);
    assert_eq!(store.thread(&thread).unwrap().unwrap().waiting, 1);
    let poll = nameless()
        .session("S1")
        .intent("POLL")
        .targets(&["ANN", "EVE"]);
    file(store, &poll);
    let by = |from| {
        nameless()
            .session("S1")
            .between(from, "KALLE")
            .intent("ANSWER")
    };
    assert_eq!(settled(store, &by("AN")), None);
    assert_eq!(settled(store, &by("ANN")), None);
    assert!(settled(store, &by("EVE")).is_some());
}

#[test]
fn an_answer_without_a_parent_settles_none_of_two() {
    let store = &mut Sqlite::new().store;
    for body in ["one", "two"] {
        file(store, &nameless().session("S1").body(body));
    }
    let reply = nameless()
        .session("S1")
        .between("CLAUDE", "KALLE")
        .intent("ANSWER");
    assert_eq!(settled(store, &reply), None);
    assert_eq!(store.inbox(Page::first(9)).unwrap().items.len(), 2);
}

#[test]
fn only_who_was_asked_settles() {
    let store = &mut Sqlite::new().store;
    let signed = |id: &str| request(id).verdict(VerdictWord::Verified, Some("kalle"));
    file(store, &signed("M1"));
    for (n, intent) in ["RESPOND", "NACK", "ERROR", "ESCALATE", "HANDOFF", "CLOSE"]
        .into_iter()
        .enumerate()
    {
        let stranger = answer(&format!("S{n}"), "M1").between("MALLORY", "ZED");
        assert_eq!(settled(store, &stranger.intent(intent)), None, "{intent}");
        // A copy that nobody signed says nothing about a question that somebody did.
        let copy = answer(&format!("C{n}"), "M1").intent(intent);
        assert_eq!(settled(store, &copy), None, "{intent}");
    }
    assert_eq!(wait(store, "M1"), Wait::Me);
    let copy = answer("A1", "M1").verdict(VerdictWord::Verified, Some("claude"));
    assert_eq!(settled(store, &copy).as_deref(), Some("M1"));
    file(store, &signed("M2"));
    let mine = answer("A2", "M2").side(Side::Mine);
    assert_eq!(settled(store, &mine).as_deref(), Some("M2"));
    // A model answers by its name.
    let ask = |id: &str, to: &str| letter(id).thread("T2").side(Side::Mine).between("ME", to);
    file(store, &ask("M3", "chatgpt://thread/x"));
    let by = |id: &str, from: &str| answer(id, "M3").thread("T2").between(from, "ME");
    assert_eq!(settled(store, &by("B1", "claude")), None);
    assert_eq!(settled(store, &by("B2", "ChatGPT")).as_deref(), Some("M3"));
    file(store, &ask("M4", "chatgpt://thread/x"));
    let unnamed = nameless().thread("T2").between("CHATGPT", "ME");
    let unnamed = unnamed.intent("RESPOND");
    assert_eq!(settled(store, &unnamed).as_deref(), Some("M4"));
}

#[test]
fn an_answer_counts_when_its_verdict_does() {
    let store = &mut Sqlite::new().store;
    // Signed by a key that somebody vouches for later.
    file(
        store,
        &request("M1").verdict(VerdictWord::Verified, Some("kalle")),
    );
    let copy = answer("A1", "M1").verdict(VerdictWord::FirstContact, Some("claude"));
    assert_eq!(settled(store, &copy), None);
    put(store, &copy.verdict(VerdictWord::Verified, Some("claude")));
    assert_eq!(wait(store, "M1"), Wait::Nobody);
    // A question that turns out to be signed waits again.
    file(store, &request("M2"));
    assert!(settled(store, &answer("A2", "M2")).is_some());
    put(
        store,
        &request("M2").verdict(VerdictWord::Verified, Some("kalle")),
    );
    assert_eq!(wait(store, "M2"), Wait::Me);
}

#[test]
fn only_a_party_closes_a_thread() {
    let store = &mut Sqlite::new().store;
    let end = |id: &str, from: &str| {
        let one = letter(id).thread("T1").between(from, "ZED");
        one.intent("CLOSE").at(50)
    };
    let closed = |store: &SqliteStore| store.thread("T1").unwrap().unwrap().closed_at;
    // Its own CLOSE makes nobody a party, and neither does what must not be acted on.
    file(store, &end("E0", "MALLORY"));
    assert_eq!(closed(store), None);
    file(
        store,
        &request("M1").verdict(VerdictWord::Verified, Some("kalle")),
    );
    file(store, &request("M2"));
    let forged = request("M3").between("EVE", "CLAUDE");
    file(store, &forged.verdict(VerdictWord::NotVerified, None));
    file(store, &end("E1", "EVE"));
    assert_eq!((closed(store), wait(store, "M2")), (None, Wait::Me));
    // A party's word that nobody signed does not speak for who signed.
    file(store, &end("E2", "Kalle"));
    assert_eq!(closed(store), Some(at(50)));
    assert_eq!(
        (wait(store, "M1"), wait(store, "M2")),
        (Wait::Me, Wait::Nobody)
    );
    // The same if the thread is gone through again.
    file(store, &letter("N2").parent("N1").spare("apart"));
    file(store, &letter("N1").thread("T1"));
    assert_eq!(
        (wait(store, "M1"), wait(store, "M2")),
        (Wait::Me, Wait::Nobody)
    );
    put(
        store,
        &end("E2", "Kalle").verdict(VerdictWord::Verified, Some("kalle")),
    );
    assert_eq!(wait(store, "M1"), Wait::Nobody);
}

#[test]
fn a_message_of_mine_opens_a_thread_again() {
    let store = &mut Sqlite::new().store;
    let open = |store: &SqliteStore| store.thread("T1").unwrap().unwrap().closed_at;
    file(store, &request("M1"));
    let end = |id: &str, at| letter(id).thread("T1").intent("CLOSE").at(at);
    file(store, &end("E1", 50));
    file(store, &request("M2").intent("NOTE"));
    assert_eq!(open(store), Some(at(50)));
    let mine = letter("M3").thread("T1").intent("NOTE").side(Side::Mine);
    match put(store, &mine) {
        StoreOutcome::Filed { closed, .. } => assert_eq!(closed, Some(at(50))),
        other => panic!("{other:?}"),
    }
    // What was settled stays so.
    assert_eq!((open(store), wait(store, "M1")), (None, Wait::Nobody));
    // The same if the thread is gone through again.
    file(store, &letter("N2").parent("N1").spare("apart"));
    file(store, &letter("N1").thread("T1"));
    assert_eq!(open(store), None);
    file(store, &end("E2", 70).side(Side::Mine));
    assert_eq!(open(store), Some(at(70)));
}

#[test]
fn a_close_settles_the_thread() {
    let store = &mut Sqlite::new().store;
    file(store, &request("M1"));
    file(store, &request("M2").side(Side::Mine));
    file(store, &letter("O1").thread("T2").side(Side::ToMe));
    file(store, &letter("M3").thread("T1").intent("CLOSE").at(77));
    let thread = store.thread("T1").unwrap().unwrap();
    assert_eq!(
        (thread.waiting, thread.asked, thread.closed_at),
        (0, 0, Some(at(77)))
    );
    assert_eq!(
        (wait(store, "M1"), wait(store, "M2")),
        (Wait::Nobody, Wait::Nobody)
    );
    assert_eq!(wait(store, "O1"), Wait::Me);
    // The first word counts.
    file(store, &letter("M4").thread("T1").intent("CLOSE").at(88));
    assert_eq!(store.thread("T1").unwrap().unwrap().closed_at, Some(at(77)));
}

#[test]
fn a_batch_settles_as_its_messages_would_one_by_one() {
    let store = &mut Sqlite::new().store;
    for (prefix, together) in [("A", true), ("B", false)] {
        let id = |name: &str| format!("{prefix}-{name}");
        let thread = id("T");
        let asked = letter(&id("Q")).thread(&thread).side(Side::Mine);
        file(store, &asked.between("KALLE", "CLAUDE"));
        // The end of the thread waits elsewhere until what it answers comes.
        let end = letter(&id("END")).parent(&id("N")).intent("CLOSE");
        file(store, &end.side(Side::Mine));
        let news = letter(&id("N")).thread(&thread).intent("NOTE");
        let reply = letter(&id("R")).thread(&thread).parent(&id("Q"));
        let reply = reply.between("CLAUDE", "KALLE").intent("RESPOND");
        let told = match together {
            true => store.accept(&[news.arrival(), reply.arrival()]).unwrap(),
            false => vec![put(store, &news), put(store, &reply)],
        };
        assert!(
            matches!(&told[1], StoreOutcome::Filed { settled: None, .. }),
            "{told:?}"
        );
        assert_eq!(wait(store, &id("Q")), Wait::Nobody);
    }
}

#[test]
fn what_comes_after_a_close_waits() {
    let store = &mut Sqlite::new().store;
    let end = letter("M1").thread("T1").intent("CLOSE").at(5);
    file(store, &end.side(Side::Mine));
    match put(store, &request("M2")) {
        StoreOutcome::Filed { closed, .. } => assert_eq!(closed, Some(at(5))),
        other => panic!("{other:?}"),
    }
    assert_eq!(wait(store, "M2"), Wait::Me);
    let thread = store.thread("T1").unwrap().unwrap();
    assert_eq!((thread.waiting, thread.closed_at), (1, Some(at(5))));
}

#[test]
fn a_better_verdict_takes_effect() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("M3").parent("N1").spare("apart"));
    file(store, &request("M1"));
    let by = answer("N1", "M1").verdict(VerdictWord::NotVerified, None);
    file(store, &by);
    let asks = request("M2").verdict(VerdictWord::NotVerified, None);
    file(store, &asks);
    assert_eq!(
        (wait(store, "M1"), wait(store, "M2")),
        (Wait::Me, Wait::Nobody)
    );
    for one in [by, asks] {
        let known = put(store, &one.verdict(VerdictWord::Verified, Some("ann")));
        assert!(matches!(known, StoreOutcome::Known { improved: true, .. }));
    }
    assert_eq!(
        (wait(store, "M1"), wait(store, "M2")),
        (Wait::Nobody, Wait::Me)
    );
    let thread = store.thread("T1").unwrap().unwrap();
    // What answers it came to it.
    assert_eq!((thread.messages, thread.waiting), (4, 2));
    assert_eq!(super::thread_of(store, "M3"), "T1");
}

#[test]
fn what_is_put_aside_stays_aside() {
    let store = &mut Sqlite::new().store;
    file(store, &request("M1"));
    file(store, &request("M2").side(Side::Mine));
    assert!(store.dismiss("M1").unwrap());
    assert!(!store.dismiss("M1").unwrap());
    assert!(!store.dismiss("M9").unwrap());
    assert_eq!(
        (wait(store, "M1"), wait(store, "M2")),
        (Wait::Nobody, Wait::Them)
    );
    // Nor does anybody wait for an answer that the person does not want any more.
    assert!(store.dismiss("M2").unwrap());
    assert_eq!(wait(store, "M2"), Wait::Nobody);
    assert_eq!(store.asked(Page::first(9)).unwrap().items, []);
    assert_eq!(store.thread("T1").unwrap().unwrap().waiting, 0);
    put(
        store,
        &request("M1").verdict(VerdictWord::Verified, Some("ann")),
    );
    assert_eq!(wait(store, "M1"), Wait::Nobody);
}

#[test]
fn what_is_forgotten_settles_nothing_any_more() {
    let store = &mut Sqlite::new().store;
    file(store, &answer("N1", "M1").thread("T2"));
    file(store, &request("M1"));
    assert_eq!(wait(store, "M1"), Wait::Nobody);
    assert_eq!(store.forget("T2").unwrap(), 1);
    assert_eq!(wait(store, "M1"), Wait::Me);
}
