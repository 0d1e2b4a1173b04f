//! What a store knows about what came before, in what is filed and what is not.

use crate::at;
use crate::letter::{Letter, letter};
use crate::parcel::{Parcel as _, file_all, parcel, refused, take, take_and_file, take_new};
use crate::suite::relay::Relay;
use crosstalk_protocol::relay::{AcceptOutcome, Handler};
use crosstalk_protocol::store::{Side, Wait};

fn close(id: &str) -> Letter {
    letter(id).intent("CLOSE")
}

/// Looks at each thing twice: before and after it is filed.
fn twice(store: &mut Relay, look: impl Fn(&mut Relay)) {
    look(store);
    file_all(store);
    look(store);
}

pub(crate) fn nothing_comes_into_a_closed_thread(store: &mut Relay) {
    let one = letter("M1").thread("T1");
    let end = close("M2").thread("T1").at(500);
    take_new(store, &[parcel(one), parcel(end)]);
    twice(store, |store| {
        for (n, intent) in ["REQUEST", "RESPOND", "NACK", "CLOSE", "BROADCAST"]
            .iter()
            .enumerate()
        {
            let late = letter(&format!("N{n}")).thread("T1").intent(intent);
            let (code, detail) = refused(store, &parcel(late));
            assert_eq!(code, "E-PERM");
            let since = at(500).to_string();
            assert!(
                detail.contains(&since) && detail.contains("closed"),
                "{detail}"
            );
        }
        assert!(matches!(
            take(store, &parcel(letter("M9").thread("T2"))),
            AcceptOutcome::Accepted { .. } | AcceptOutcome::Known { .. }
        ));
    });
    let also = ["ACK", "ERROR", "REVOKE"];
    let also = also.map(|i| parcel(letter(&format!("A-{i}")).thread("T1").intent(i)));
    take_and_file(store, &also);
    assert_eq!(store.thread("T1").unwrap().messages, 5);
    assert_eq!(store.thread("T1").unwrap().closed_at, Some(at(500)));
}

pub(crate) fn nothing_comes_into_a_closed_session(store: &mut Relay) {
    let one = letter("M1").session("s").spare("T1");
    let end = close("M2").session("s");
    take_new(store, &[parcel(one), parcel(end)]);
    twice(store, |store| {
        assert_eq!(
            refused(store, &parcel(letter("M3").session("s"))).0,
            "E-PERM"
        );
    });
    // It is closed under the name of its thread as well, and others are open.
    assert_eq!(
        refused(store, &parcel(letter("M4").thread("T1"))).0,
        "E-PERM"
    );
    take_new(store, &[parcel(letter("M5").session("other"))]);
}

pub(crate) fn nobody_slips_in_by_the_parent(store: &mut Relay) {
    let end = close("M2").thread("T1");
    take_new(store, &[parcel(letter("M1").thread("T1")), parcel(end)]);
    twice(store, |store| {
        let late = letter("M3").thread("T2").parent("M1");
        assert_eq!(refused(store, &parcel(late)).0, "E-PERM");
    });
}

pub(crate) fn what_is_known_stays_known_after_the_end(store: &mut Relay) {
    let (one, end) = (
        parcel(letter("M1").thread("T1")),
        parcel(close("M2").thread("T1")),
    );
    take_new(store, &[one.clone(), end.clone()]);
    twice(store, |store| {
        for parcel in [&one, &end] {
            assert!(matches!(take(store, parcel), AcceptOutcome::Known { .. }));
        }
    });
}

pub(crate) fn only_a_party_closes(store: &mut Relay) {
    let first = letter("M1").thread("T1").between("ANN", "BOB");
    let session = letter("M2").session("s").between("ANN", "BOB");
    // Who writes into a thread of others is no party of it by that.
    let foreign = letter("M3").thread("T1").between("MALLORY", "BOB");
    take_new(store, &[first, session, foreign].map(parcel));
    twice(store, |store| {
        for (what, name) in [("thread", "T1"), ("session", "s")] {
            let end = close(&format!("C-{name}")).between("MALLORY", "BOB");
            let end = match what {
                "thread" => end.thread(name),
                _ => end.session(name),
            };
            let (code, detail) = refused(store, &parcel(end));
            assert!(
                code == "E-PERM" && detail.contains("MALLORY"),
                "{code} {detail}"
            );
        }
    });
    take_new(
        store,
        &[parcel(close("M4").thread("T1").between("bob", "ANN"))],
    );
    take_new(
        store,
        &[parcel(close("M5").session("s").between("bob", "ANN"))],
    );
    file_all(store);
    assert!(store.thread("T1").unwrap().closed_at.is_some());
}

pub(crate) fn nobody_closes_what_has_not_begun(store: &mut Relay) {
    let closes = parcel(close("M1").thread("T1"));
    assert_eq!(refused(store, &closes).0, "E-PERM");
    take_new(store, &[parcel(letter("M2").thread("T1"))]);
    take_new(store, &[closes]);
}

pub(crate) fn a_thread_that_a_person_closed_is_closed(store: &mut Relay) {
    let mine = |l: Letter| l.thread("T1").side(Side::Mine).arrival();
    store
        .person()
        .accept(&[mine(letter("M1")), mine(close("M2"))])
        .unwrap();
    assert_eq!(
        refused(store, &parcel(letter("M3").thread("T1"))).0,
        "E-PERM"
    );
    // And open again when they go on.
    store.person().accept(&[mine(letter("M4"))]).unwrap();
    take_new(store, &[parcel(letter("M3").thread("T1"))]);
}

pub(crate) fn a_broadcast_takes_no_answers(store: &mut Relay) {
    let news = letter("M1").thread("T1").intent("STATUS");
    let other = letter("M3").thread("T2").intent("BROADCAST");
    let asks = letter("M2").thread("T1");
    take_new(store, &[news, asks, other].map(parcel));
    twice(store, |store| {
        for parent in ["M1", "M3"] {
            let answer = letter(&format!("A-{parent}"))
                .thread("T1")
                .parent(parent)
                .intent("RESPOND");
            let (code, detail) = refused(store, &parcel(answer));
            assert!(code == "E-PERM" && detail.contains("BROADCAST"), "{detail}");
        }
    });
    let ack = letter("A1").thread("T1").parent("M1").intent("ACK");
    let answer = letter("A2").thread("T1").parent("M2").intent("RESPOND");
    take_new(store, &[parcel(ack), parcel(answer)]);
}

pub(crate) fn a_broadcast_of_a_person_takes_no_answers(store: &mut Relay) {
    let own = letter("P1").thread("T1").intent("BROADCAST").arrival();
    store.person().accept(&[own]).unwrap();
    let answer = letter("A1").thread("T1").parent("P1").intent("RESPOND");
    let (code, detail) = refused(store, &parcel(answer));
    assert!(code == "E-PERM" && detail.contains("BROADCAST"), "{detail}");
}

pub(crate) fn only_the_steward_hands_on(store: &mut Relay) {
    let hand = |id: &str, from: &str, to: &str| {
        letter(id).thread("T1").intent("HANDOFF").between(from, to)
    };
    let first = parcel(hand("M1", "ANN", "ANY")).to(&[("BOB", Handler::Inbox)]);
    take_new(
        store,
        &[
            parcel(letter("M0").thread("T1").between("ANN", "EVE")),
            parcel(
                letter("P0")
                    .thread("T1")
                    .between("ANN", "human://acme.example/ann"),
            ),
            first,
        ],
    );
    twice(store, |store| {
        let (code, detail) = refused(store, &parcel(hand("M2", "ANN", "EVE")));
        assert!(code == "E-PERM" && detail.contains("BOB"), "{detail}");
    });
    take_new(store, &[parcel(hand("M3", "bob", "EVE"))]);
    assert_eq!(
        refused(store, &parcel(hand("M4", "BOB", "ANN"))).0,
        "E-PERM"
    );
    take_new(
        store,
        &[parcel(hand("M5", "human://acme.example/ann", "BOB"))],
    );
    // Whoever takes no part hands nothing over, not even a person.
    for stranger in ["MALLORY", "human://evil.example/h"] {
        let (code, detail) = refused(store, &parcel(hand("M7", stranger, "MALLORY")));
        assert!(
            code == "E-PERM" && detail.contains("takes no part"),
            "{detail}"
        );
    }
    let other = letter("M6")
        .thread("T2")
        .intent("HANDOFF")
        .between("ANN", "EVE");
    take_new(store, &[parcel(other)]);
}

/// Who was chosen by the relay can answer, acknowledge and close like one whom the message names.
pub(crate) fn who_got_it_instead_is_a_party(store: &mut Relay) {
    let person = "human://acme.example/ann";
    let asked = letter("M1")
        .thread("T1")
        .intent("ESCALATE")
        .between("BOT", "SUPPORT");
    take_new(store, &[parcel(asked).to(&[(person, Handler::Inbox)])]);
    let answer = letter("M2").thread("T1").parent("M1").intent("RESPOND");
    take_and_file(store, &[parcel(answer.between(person, "BOT"))]);
    assert_eq!(store.record("M1").unwrap().wait, Wait::Nobody);
    take_and_file(
        store,
        &[parcel(close("M3").thread("T1").between(person, "BOT"))],
    );
    assert!(store.thread("T1").unwrap().closed_at.is_some());
}
