//! Messages that wait for a person.

use crate::at;
use crate::letter::{letter, nameless};
use crate::parcel::{Parcel as _, file_all, inbox, parcel, refused, take, take_and_file, take_new};
use crate::suite::relay::Relay;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::LogPlace;
use crosstalk_protocol::relay::port::{HeldQuery, InboxQuery};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, DeliveryState, Handler, HeldMessage, HoldChoice, HoldDecision,
    HoldReason, Retention, Ruling,
};

/// The same message, which waits.
fn held(mut parcel: Admission) -> Admission {
    parcel.held = Some(HoldReason {
        why: "by exec".to_owned(),
        deciders: vec!["human://acme.example/ann".to_owned()],
    });
    parcel
}

/// Takes a message in that waits.
fn wait(store: &mut Relay, parcel: Admission) {
    let taken = take(store, &held(parcel));
    assert!(
        matches!(taken, AcceptOutcome::Held { is_new: true, .. }),
        "{taken:?}"
    );
}

fn decision(store: &Relay, id: &str, choice: HoldChoice, seconds: i64) -> HoldDecision {
    let held = store.held(id).unwrap();
    HoldDecision {
        id: id.to_owned(),
        digest: held.record.digest,
        raw: held.raw,
        choice,
        reason: Some("because".to_owned()),
        by: "ann".to_owned(),
        at: at(seconds),
        report: None,
    }
}

fn lapsed(store: &Relay, seconds: i64) -> Vec<HeldMessage> {
    let now = at(seconds);
    store.all_held(HeldQuery::Lapsed { now, limit: 9 })
}

fn decide(store: &mut Relay, id: &str, choice: HoldChoice) -> Ruling {
    let decision = decision(store, id, choice, 50);
    store.decide(&decision)
}

/// Everything that a recipient, a handler or a person who looks around would find a message by.
fn is_seen(store: &Relay, id: &str, word: &str) -> bool {
    let (threads, found) = (store.threads(), store.search(word));
    let is_taken = store.record(id).is_some();
    let by_place = store.records_at(&(1..9).collect::<Vec<_>>());
    is_taken
        || inbox(store, "CLAUDE").iter().any(|i| i == id)
        || threads.iter().any(|t| t.id == "T1")
        || !found.is_empty()
        || by_place.iter().any(|r| r.id == id)
        || !store.courier(10).is_empty()
        || !store.deliveries(id).is_empty()
        || !store.dead_letters(10).is_empty()
        || store.next_due().is_some()
        || store.next_deadline().is_some()
}

pub(crate) fn what_waits_is_nowhere_else(store: &mut Relay) {
    let ways = [
        ("CLAUDE", Handler::Inbox),
        ("GPT", Handler::CopyPaste),
        ("agent://a.example/x", Handler::Exec),
    ];
    let one = || parcel(letter("M1").thread("T1").at(1).body("plums and pears")).to(&ways);
    wait(store, one().answer_by(900));
    assert!(!is_seen(store, "M1", "plums"));
    file_all(store);
    assert!(!is_seen(store, "M1", "plums"));
    assert_eq!(store.due(at(1000), at(2000), 9), []);
    assert_eq!(store.overdue(at(1000), 9), 0);
    for state in DeliveryState::ALL {
        let marked = store.mark("CLAUDE", &["M1".into()], state, at(9));
        assert!(marked.is_empty());
    }
    assert_eq!(store.requeue("M1", at(9)), 0);
    let waiting = store.waiting();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].raw, Digest::of(one().arrival.text.as_bytes()));
    assert_eq!(waiting[0].record.text, one().arrival.text);
    assert_eq!(waiting[0].recipients.len(), 3);
    let states: Vec<DeliveryState> = waiting[0].deliveries().iter().map(|d| d.state).collect();
    assert_eq!(states, [DeliveryState::Held; 3]);

    let ruling = decide(store, "M1", HoldChoice::Approve);
    assert!(
        matches!(&ruling, Ruling::Done(Some((_, a))) if a.recipients.len() == 3),
        "{ruling:?}"
    );
    file_all(store);
    assert!(is_seen(store, "M1", "plums"));
    assert_eq!(inbox(store, "CLAUDE"), ["M1"]);
    assert_eq!(store.courier(9).len(), 1);
    assert_eq!(store.due(at(60), at(90), 9).len(), 1);
    assert!(store.waiting().is_empty());
    assert_eq!(store.overdue(at(900), 9), 1);
}

/// What is approved is found by those who have read everything that came before it.
pub(crate) fn what_is_approved_comes_last(store: &mut Relay) {
    wait(store, parcel(letter("M1").thread("T1")));
    let places = take_new(store, &[parcel(letter("M2").thread("T2"))]);
    let Ruling::Done(Some((place, _))) = decide(store, "M1", HoldChoice::Approve) else {
        panic!("not taken");
    };
    assert!(place > places[0]);
}

pub(crate) fn what_is_approved_says_so_in_the_inbox(store: &mut Relay) {
    let approved = parcel(letter("M1").thread("T1"));
    let to = approved.arrival.receiver.to_owned();
    wait(store, approved);
    decide(store, "M1", HoldChoice::Approve);
    take_new(store, &[parcel(letter("M2").thread("T2"))]);
    let approvals = |store: &Relay| {
        let entries = store.inbox(InboxQuery {
            address: to.clone(),
            after: None,
            limit: 9,
        });
        let entries = entries.into_iter().map(|e| (e.record.id, e.is_approved));
        entries.collect::<Vec<_>>()
    };
    let wanted = [("M1".to_owned(), true), ("M2".to_owned(), false)];
    assert_eq!(approvals(store), wanted);
    file_all(store);
    assert_eq!(approvals(store), wanted);
}

pub(crate) fn a_decision_is_made_once(store: &mut Relay) {
    let choices = [HoldChoice::Approve, HoldChoice::Refuse];
    for (number, (first, second)) in choices
        .into_iter()
        .flat_map(|a| choices.map(|b| (a, b)))
        .enumerate()
    {
        let id = format!("M{number}");
        wait(store, parcel(letter(&id).thread("T1")));
        // Both have looked before either decided.
        let late = decision(store, &id, second, 60);
        let ruling = decide(store, &id, first);
        assert!(matches!(ruling, Ruling::Done(_)), "{ruling:?}");
        let Ruling::AlreadyDecided(decided) = store.decide(&late) else {
            panic!("{first:?}, {second:?}");
        };
        assert_eq!((decided.choice, decided.at), (first, at(50)));
        assert_eq!(
            (decided.by.as_str(), decided.reason.as_deref()),
            ("ann", Some("because"))
        );
        let kept = store.held(&id).unwrap();
        assert_eq!(kept.decided, Some(decided));
        assert_eq!(kept.record.text, "");
        let is_there = store.record(&id).is_some();
        assert_eq!(is_there, first == HoldChoice::Approve);
    }
}

pub(crate) fn a_decision_is_about_this_text(store: &mut Relay) {
    wait(store, parcel(letter("M1").thread("T1")));
    let right = decision(store, "M1", HoldChoice::Approve, 50);
    for wrong in [
        HoldDecision {
            digest: Digest::of(b"x"),
            ..right.clone()
        },
        HoldDecision {
            raw: Digest::of(b"x"),
            ..right.clone()
        },
        HoldDecision {
            choice: HoldChoice::Refuse,
            raw: right.digest,
            ..right.clone()
        },
    ] {
        assert_eq!(store.decide(&wrong), Ruling::DigestMismatch);
    }
    let unknown = HoldDecision {
        id: "M2".to_owned(),
        ..right.clone()
    };
    assert_eq!(store.decide(&unknown), Ruling::Unknown);
    assert_eq!(store.waiting().len(), 1);
    assert!(matches!(store.decide(&right), Ruling::Done(Some(_))));
}

pub(crate) fn what_has_ended_is_not_approved(store: &mut Relay) {
    wait(store, parcel(letter("M1").thread("T1")).expires(100));
    wait(store, parcel(letter("M2").thread("T1")).answer_by(200));
    wait(store, parcel(letter("M3").thread("T1")));
    assert_eq!(store.next().lapse, Some(at(100)));
    assert_eq!(lapsed(store, 99), []);
    for (id, end, code) in [("M1", 100, "E-CONSENT"), ("M2", 200, "E-TIMEOUT")] {
        let early = decision(store, id, HoldChoice::Lapse, end - 1);
        assert!(matches!(store.decide(&early), Ruling::NotAllowed(_)));
        let late = decision(store, id, HoldChoice::Approve, end);
        let ruling = store.decide(&late);
        assert!(
            matches!(&ruling, Ruling::NotAllowed(r) if r.code.as_str() == code),
            "{ruling:?}"
        );
        let lapsed = lapsed(store, end);
        assert_eq!(lapsed.len(), 1);
        let lapse = decision(store, &lapsed[0].record.id, HoldChoice::Lapse, end);
        assert_eq!(store.decide(&lapse), Ruling::Done(None));
        assert!(store.record(id).is_none());
    }
    assert_eq!(store.next().lapse, None);
    assert_eq!(store.waiting().len(), 1);
}

/// What the sender is told is owed in the same transaction.
pub(crate) fn a_refusal_is_told(store: &mut Relay) {
    wait(store, parcel(letter("M1").thread("T1")));
    let mut refusal = decision(store, "M1", HoldChoice::Refuse, 50);
    refusal.report = Some("no".into());
    assert_eq!(store.decide(&refusal), Ruling::Done(None));
    assert!(matches!(store.decide(&refusal), Ruling::AlreadyDecided(_)));
    assert_eq!(store.notices(), [(1, "no".to_owned())]);
    store.drop_notices(&[1]);
    assert_eq!(store.notices(), []);
    // A decided message is still found by the beginning of its id.
    wait(store, parcel(letter("N1").thread("T2")));
    for (prefix, count) in [("M", 1), ("M1", 1), ("M2", 0), ("", 2)] {
        let prefix = prefix.to_owned();
        let found = store.all_held(HeldQuery::Prefix { prefix, limit: 9 });
        assert_eq!(found.len(), count);
    }
    let kept = store.held("M1").unwrap();
    let delivery = kept.deliveries().remove(0);
    assert_eq!(
        (delivery.state, delivery.failed_at),
        (DeliveryState::Failed, Some(at(50)))
    );
    assert_eq!(delivery.reason.as_deref(), Some("refused: because"));
}

pub(crate) fn what_waits_is_known(store: &mut Relay) {
    let since = at(3);
    let again = |index, ids| AcceptOutcome::Held {
        entry: LogPlace::first(index),
        since,
        is_new: false,
        ids,
    };
    let one = || parcel(letter("M1").thread("T1").at(3));
    let first = one();
    let ids = [first.arrival.ids()];
    wait(store, first);
    let bare = parcel(nameless().thread("T1").at(3));
    wait(store, bare.clone());
    let ids = [ids[0].clone(), bare.arrival.ids()];
    for (parcel, index) in [
        (held(one()), 0),
        (one(), 0),
        (held(bare.clone()), 1),
        (bare, 1),
    ] {
        let ids = ids[usize::try_from(index).unwrap()].clone();
        assert_eq!(take(store, &parcel), again(index, ids));
    }
    assert_eq!(store.waiting().len(), 2);
    // Another content under its id, whether that would wait or not.
    let other = parcel(letter("M1").thread("T1").body("Other."));
    for parcel in [other.clone(), held(other)] {
        assert_eq!(refused(store, &parcel).0, "E-PERM");
    }
    // The answer stays the first one, whatever is decided.
    decide(store, "M1", HoldChoice::Approve);
    file_all(store);
    assert_eq!(take(store, &one()), again(0, ids[0].clone()));
    assert_eq!(inbox(store, "CLAUDE"), ["M1"]);
    let bare = store.waiting().remove(0);
    decide(store, &bare.record.id, HoldChoice::Refuse);
    assert_eq!(
        take(store, &parcel(letter("M1").thread("T1").at(3))),
        again(0, ids[0].clone())
    );
    // What was taken before is not held after.
    take_and_file(store, &[parcel(letter("M5").thread("T5"))]);
    assert!(matches!(
        take(store, &held(parcel(letter("M5").thread("T5")))),
        AcceptOutcome::Known { .. }
    ));
    assert!(store.waiting().is_empty());
}

pub(crate) fn a_verified_one_takes_the_id_of_one_that_waits(store: &mut Relay) {
    wait(store, parcel(letter("M1").thread("T1").body("Unsigned.")));
    let signed = letter("M1")
        .thread("T1")
        .verdict(VerdictWord::Verified, Some("k"));
    take_and_file(store, &[parcel(signed)]);
    assert_eq!(inbox(store, "CLAUDE"), ["M1"]);
    let waiting = store.waiting();
    assert_eq!(waiting.len(), 1);
    assert_ne!(waiting[0].record.id, "M1");
    let id = waiting[0].record.id.clone();
    assert!(matches!(
        decide(store, &id, HoldChoice::Approve),
        Ruling::Done(Some(_))
    ));
    // Nobody else takes it.
    wait(store, parcel(letter("M2").thread("T1")));
    let thief = letter("M2")
        .thread("T1")
        .between("EVE", "CLAUDE")
        .verdict(VerdictWord::Verified, Some("e"));
    assert_eq!(refused(store, &parcel(thief)).0, "E-PERM");
}

/// What a message does, it does when it is approved.
pub(crate) fn what_waits_does_nothing(store: &mut Relay) {
    take_and_file(store, &[parcel(letter("M1").thread("T1"))]);
    let note = |id: &str| parcel(letter(id).thread("T1").intent("BROADCAST"));
    wait(store, parcel(letter("C1").thread("T1").intent("CLOSE")));
    wait(store, note("N0"));
    wait(
        store,
        parcel(
            letter("H1")
                .thread("T9")
                .intent("HANDOFF")
                .between("BOB", "GPT"),
        ),
    );
    let end = || {
        parcel(
            letter("C9")
                .thread("T9")
                .intent("CLOSE")
                .between("BOB", "GPT"),
        )
    };
    assert_eq!(refused(store, &end()).0, "E-PERM");
    take_new(store, &[note("N1")]);
    assert!(matches!(
        decide(store, "C1", HoldChoice::Approve),
        Ruling::Done(Some(_))
    ));
    assert_eq!(refused(store, &note("N2")).0, "E-PERM");
    // What came before the end and waits comes too late as well.
    let ruling = decide(store, "N0", HoldChoice::Approve);
    assert!(
        matches!(&ruling, Ruling::NotAllowed(r) if r.code.as_str() == "E-PERM"),
        "{ruling:?}"
    );
    assert!(matches!(
        decide(store, "N0", HoldChoice::Refuse),
        Ruling::Done(None)
    ));
    assert!(matches!(
        decide(store, "H1", HoldChoice::Approve),
        Ruling::Done(Some(_))
    ));
    file_all(store);
    take_new(store, &[end()]);
}

pub(crate) fn attachments_wait_with_their_message(store: &mut Relay) {
    let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
    let upload = |store: &mut Relay, digest, size| {
        store.upload(digest, size, &parcel(letter("X")).peer, at(1));
    };
    upload(store, one, 3);
    wait(store, parcel(letter("M1").thread("T1")).blob(one).blob(two));
    upload(store, two, 3);
    assert_eq!(store.drop_blobs(at(9999), 9), []);
    decide(store, "M1", HoldChoice::Approve);
    assert_eq!(store.drop_blobs(at(9999), 9), []);
    // What it referred to is what it refers to once it is taken.
    assert_eq!(store.referring(one, 9).len(), 1);
    wait(
        store,
        parcel(letter("M2").thread("T1")).blob(Digest::of(b"three")),
    );
    upload(store, Digest::of(b"three"), 5);
    decide(store, "M2", HoldChoice::Refuse);
    assert_eq!(store.drop_blobs(at(9999), 9), [Digest::of(b"three")]);
}

pub(crate) fn what_waits_too_long_is_erased(store: &mut Relay) {
    wait(store, parcel(letter("M1").thread("T1").at(10)));
    wait(store, parcel(letter("M2").thread("T1").at(20)));
    let what = Retention {
        before: Some(at(20)),
        now: at(99),
        brief_before: None,
        limit: 9,
    };
    store.erase(what);
    let gone = store.held("M1").unwrap();
    assert_eq!(gone.record.text, "");
    assert_eq!(gone.decided.unwrap().choice, HoldChoice::Lapse);
    assert_eq!(store.waiting()[0].record.id, "M2");
    assert!(matches!(
        decide(store, "M1", HoldChoice::Approve),
        Ruling::AlreadyDecided(_)
    ));
    take_and_file(store, &[parcel(letter("M3").thread("T1").at(30))]);
    assert_eq!(store.person().forget("T1").unwrap(), 2);
    assert!(store.waiting().is_empty() && store.held("M2").is_none());
}
