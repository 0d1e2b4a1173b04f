//! What has to be done at which time, and what became of it.

use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, inbox, parcel, take_and_file, take_new};
use crate::suite::relay::{Relay, wait_for};
use crosstalk_protocol::relay::port::{AttemptResult, MailboxChange};
use crosstalk_protocol::relay::{Admission, Attempt, DeliveryState, Handler, Lease, Priority};

fn posted(id: &str, seconds: i64) -> Admission {
    parcel(letter(id).thread("T1").at(seconds)).to(&[("CLAUDE", Handler::Http)])
}

fn due(store: &mut Relay, now: i64, lease: i64, most: usize) -> Vec<String> {
    let due = store.due(at(now), at(lease), most);
    due.into_iter().map(|d| d.lease.id).collect()
}

/// Records an outcome under the lease that holds now.
fn attempted(store: &mut Relay, (id, to): (&str, &str), attempt: &Attempt, now: i64) -> bool {
    let leased_at = lease(store, id).map(|l| l.at);
    store.attempted(id, to, leased_at, attempt, at(now))
}

/// The lease of the only delivery of a message.
fn lease(store: &Relay, id: &str) -> Option<Lease> {
    let delivery = store.deliveries(id).into_iter().next()?;
    Some(Lease {
        id: id.to_owned(),
        to: delivery.to,
        at: delivery.leased_at?,
    })
}

fn later(seconds: i64) -> Attempt {
    Attempt::Later {
        at: at(seconds),
        reason: "connection refused".to_owned(),
    }
}

pub(crate) fn the_most_urgent_goes_first(store: &mut Relay) {
    assert_eq!(store.next_due(), None);
    let parcels = [
        posted("L1", 1).priority(Priority::Low),
        posted("N1", 2),
        posted("H1", 3).priority(Priority::High),
        posted("N2", 4),
        posted("H2", 5).priority(Priority::High),
        parcel(letter("I1").thread("T1").at(1)).priority(Priority::High),
        posted("later", 100).priority(Priority::High),
    ];
    take_and_file(store, &parcels);
    assert_eq!(store.next_due(), Some(at(1)));
    assert!(due(store, 0, 50, 9).is_empty());
    let first = store.due(at(10), at(50), 1).remove(0);
    assert_eq!(
        (first.lease.to.as_str(), first.by, first.attempts),
        ("CLAUDE", Handler::Http, 0)
    );
    assert_eq!(
        (first.priority, first.lease.id.as_str()),
        (Priority::High, "H1")
    );
    let leased = wait_for(store.port().leased(&first.lease)).unwrap();
    assert_eq!(leased.unwrap().record, store.record("H1"));
    assert_eq!(due(store, 10, 50, 2), ["H2", "N1"]);
    assert_eq!(due(store, 10, 50, 9), ["N2", "L1"]);
    assert!(due(store, 10, 50, 9).is_empty());
    assert_eq!(store.next_due(), Some(at(50)));
}

/// Who dies with a lease does not keep the message from its recipient.
pub(crate) fn what_is_leased_is_not_given_out(store: &mut Relay) {
    take_and_file(store, &[posted("M1", 1)]);
    assert_eq!(due(store, 10, 40, 9), ["M1"]);
    assert!(due(store, 39, 99, 9).is_empty());
    assert_eq!(due(store, 40, 70, 9), ["M1"]);
    // The lease says nothing about the state.
    assert_eq!(store.deliveries("M1")[0].state, DeliveryState::Queued);
    assert!(attempted(store, ("M1", "claude"), &Attempt::Delivered, 41));
    assert!(due(store, 1000, 1001, 9).is_empty());
    assert_eq!(store.next_due(), None);
    let delivery = store.deliveries("M1").remove(0);
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Delivered, 1)
    );
    assert_eq!(
        (delivery.delivered_at, delivery.next_at),
        (Some(at(41)), None)
    );
    // It is in the inbox until its recipient says that it has it.
    assert_eq!(inbox(store, "CLAUDE"), ["M1"]);
}

/// Before a message is handed out, its lease is looked at again.
pub(crate) fn a_lease_is_looked_at_before_it_is_used(store: &mut Relay) {
    take_and_file(store, &[posted("M1", 1)]);
    let leased = |store: &Relay, lease: &Lease| wait_for(store.port().leased(lease)).unwrap();
    assert_eq!(due(store, 10, 40, 9), ["M1"]);
    let first = lease(store, "M1").unwrap();
    let found = leased(store, &first).unwrap();
    assert_eq!(found.delivery, store.deliveries("M1")[0]);
    assert_eq!(found.record, store.record("M1"));
    assert_eq!(due(store, 40, 70, 9), ["M1"]);
    assert_eq!(leased(store, &first), None, "somebody else leased it");
    let second = lease(store, "M1").unwrap();
    let lower = Lease {
        to: "claude".into(),
        ..second.clone()
    };
    assert!(leased(store, &lower).is_some());
    let other = Lease {
        to: "GEMINI".into(),
        ..second.clone()
    };
    assert_eq!(leased(store, &other), None);
    assert!(attempted(store, ("M1", "CLAUDE"), &Attempt::Delivered, 41));
    assert_eq!(leased(store, &second), None, "it is delivered");
}

/// Notices are enqueued with the result that they follow from, if it counts.
pub(crate) fn notices_come_with_results_that_count(store: &mut Relay) {
    take_and_file(store, &[posted("M1", 1)]);
    assert_eq!(due(store, 10, 40, 9), ["M1"]);
    let result = |leased_at, notice: &str| AttemptResult {
        id: "M1".into(),
        to: "CLAUDE".into(),
        leased_at,
        attempt: later(99),
        at: at(11),
        notices: vec![notice.to_owned()],
    };
    assert!(!store.finish(result(Some(at(9)), "lost")));
    assert!(store.finish(result(Some(at(10)), "later")));
    assert!(!store.finish(result(Some(at(10)), "again")));
    let owed: Vec<String> = store.notices().into_iter().map(|(_, text)| text).collect();
    assert_eq!(owed, ["later"]);
}

/// A lease that is given back is no attempt, and brings nothing back that is done.
pub(crate) fn what_is_given_back_is_given_out_again(store: &mut Relay) {
    take_and_file(
        store,
        &[posted("M1", 1), parcel(letter("I1").thread("T1").at(1))],
    );
    assert_eq!(due(store, 10, 400, 9), ["M1"]);
    let held = lease(store, "M1").unwrap();
    assert_eq!(store.release(std::slice::from_ref(&held), at(20)), 1);
    assert_eq!(store.next_due(), Some(at(20)));
    assert!(due(store, 19, 400, 9).is_empty());
    assert_eq!(due(store, 20, 400, 9), ["M1"]);
    assert_eq!(store.deliveries("M1")[0].attempts, 0);
    assert!(attempted(store, ("M1", "CLAUDE"), &Attempt::Delivered, 21));
    for (id, to) in [
        ("M1", "CLAUDE"),
        ("M1", "GEMINI"),
        ("I1", "CLAUDE"),
        ("no", "CLAUDE"),
    ] {
        let over = Lease {
            id: id.into(),
            to: to.into(),
            at: at(20),
        };
        assert_eq!(store.release(&[over], at(30)), 0, "{id} {to}");
    }
    assert_eq!(store.next_due(), None);
}

/// Whoever lost a lease can't change what the next one does, whatever became of the attempt.
pub(crate) fn only_the_holder_of_a_lease_changes_a_delivery(store: &mut Relay) {
    take_and_file(store, &[posted("M1", 1)]);
    assert_eq!(due(store, 10, 40, 9), ["M1"]);
    let lost = lease(store, "M1").unwrap();
    let lost = std::slice::from_ref(&lost);
    assert_eq!(store.renew(lost, at(60)), 1);
    assert!(due(store, 40, 70, 9).is_empty(), "it was renewed");
    assert_eq!(store.due(at(60), at(90), 9)[0].lease.at, at(60));
    let held = lease(store, "M1").unwrap();
    let before = store.deliveries("M1");
    for attempt in [
        Attempt::Delivered,
        later(99),
        Attempt::Failed { reason: "x".into() },
    ] {
        for leased_at in [Some(lost[0].at), None] {
            let counted = store.attempted("M1", "CLAUDE", leased_at, &attempt, at(61));
            assert!(!counted, "{attempt:?}");
        }
    }
    assert_eq!(store.renew(lost, at(999)), 0);
    assert_eq!(store.release(lost, at(61)), 0);
    assert_eq!(store.deliveries("M1"), before);
    let delivered = Attempt::Delivered;
    let counted = store.attempted("M1", "CLAUDE", Some(held.at), &delivered, at(62));
    assert!(counted);
}

/// A clock that was set back does not give two leases the same time.
pub(crate) fn each_lease_has_a_time_of_its_own(store: &mut Relay) {
    take_and_file(store, &[posted("M1", 1)]);
    let first = store.due(at(10), at(10), 9).remove(0).lease.at;
    let second = store.due(at(10), at(10), 9).remove(0).lease.at;
    assert!(first < second, "{first:?} {second:?}");
    let counted = store.attempted("M1", "CLAUDE", Some(first), &Attempt::Delivered, at(11));
    assert!(!counted);
}

pub(crate) fn attempts_are_counted(store: &mut Relay) {
    take_and_file(store, &[posted("M1", 1)]);
    for attempt in 1..=3_u32 {
        let now = i64::from(attempt) * 100;
        let given = store.due(at(now), at(now + 30), 9);
        assert_eq!(given[0].attempts, attempt - 1);
        assert!(attempted(
            store,
            ("M1", "CLAUDE"),
            &later(now + 100),
            now + 1
        ));
        let delivery = store.deliveries("M1").remove(0);
        assert_eq!(
            (delivery.attempts, delivery.state),
            (attempt, DeliveryState::Queued)
        );
        assert_eq!(delivery.next_at, Some(at(now + 100)));
        assert_eq!(delivery.reason.as_deref(), Some("connection refused"));
        assert!(due(store, now + 99, now + 199, 9).is_empty());
    }
    let reason = "no such place".to_owned();
    let failed = Attempt::Failed { reason };
    assert!(attempted(store, ("M1", "CLAUDE"), &failed, 500));
    let delivery = store.deliveries("M1").remove(0);
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Failed, 4)
    );
    assert_eq!(
        (delivery.failed_at, delivery.next_at),
        (Some(at(500)), None)
    );
    assert_eq!(delivery.reason.as_deref(), Some("no such place"));
    assert_eq!(store.next_due(), None);
}

pub(crate) fn a_delivery_that_is_over_is_not_attempted(store: &mut Relay) {
    take_and_file(store, &[posted("M1", 1)]);
    assert_eq!(due(store, 10, 40, 9), ["M1"]);
    // Meanwhile, the recipient has looked for it.
    store.mark("CLAUDE", &["M1".to_owned()], DeliveryState::Read, at(20));
    let before = store.deliveries("M1");
    for attempt in [
        Attempt::Delivered,
        later(99),
        Attempt::Failed { reason: "x".into() },
    ] {
        assert!(!attempted(store, ("M1", "CLAUDE"), &attempt, 21));
    }
    assert_eq!(store.deliveries("M1"), before);
    assert!(!attempted(store, ("M1", "EVE"), &Attempt::Delivered, 21));
    assert!(!attempted(store, ("M9", "CLAUDE"), &Attempt::Delivered, 21));
    assert!(due(store, 1000, 1001, 9).is_empty());
}

pub(crate) fn dead_letters_are_queued_again(store: &mut Relay) {
    for (n, id) in ["M1", "M2", "M3"].into_iter().enumerate() {
        take_and_file(store, &[posted(id, 1)]);
        let failed = Attempt::Failed {
            reason: format!("reason {n}"),
        };
        assert!(attempted(store, (id, "CLAUDE"), &failed, 100 - n as i64));
    }
    let dead = store.dead_letters(9);
    let ids: Vec<&str> = dead.iter().map(|d| d.id.as_str()).collect();
    assert_eq!(ids, ["M1", "M2", "M3"]);
    assert_eq!(
        (dead[1].from.as_str(), dead[1].delivery.reason.as_deref()),
        ("KALLE", Some("reason 1"))
    );
    assert_eq!(dead[1].delivery, store.deliveries("M2")[0]);
    assert_eq!(store.dead_letters(2).len(), 2);
    assert_eq!(store.requeue("M2", at(200)), 1);
    assert_eq!(store.requeue("M2", at(200)), 0);
    assert_eq!(store.requeue("M9", at(200)), 0);
    assert_eq!(store.dead_letters(9).len(), 2);
    let again = store.deliveries("M2").remove(0);
    assert_eq!(
        (again.state, again.attempts, again.failed_at),
        (DeliveryState::Queued, 0, None)
    );
    assert_eq!(due(store, 200, 230, 9), ["M2"]);
}

pub(crate) fn a_person_carries_the_most_urgent_first(store: &mut Relay) {
    let one = |id: &str| parcel(letter(id).thread("T1")).to(&[("CLAUDE", Handler::CopyPaste)]);
    take_and_file(
        store,
        &[
            one("M1"),
            one("M2"),
            one("M3").priority(Priority::High),
            posted("M4", 1),
        ],
    );
    let ids = |store: &Relay, most| {
        let waiting = store.courier(most);
        assert!(waiting.iter().all(|c| c.to == "CLAUDE"));
        waiting.into_iter().map(|c| c.record.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(store, 9), ["M3", "M1", "M2"]);
    assert_eq!(ids(store, 2), ["M3", "M1"]);
    assert!(attempted(store, ("M3", "CLAUDE"), &Attempt::Delivered, 9));
    let failed = Attempt::Failed {
        reason: "the chat is gone".into(),
    };
    assert!(attempted(store, ("M1", "CLAUDE"), &failed, 9));
    assert_eq!(ids(store, 9), ["M2"]);
    assert_eq!(store.requeue("M1", at(10)), 1);
    assert_eq!(ids(store, 9), ["M1", "M2"]);
    // Nobody else is told to bring it.
    assert_eq!(due(store, 1000, 1001, 9), ["M4"]);
}

pub(crate) fn questions_expire_once(store: &mut Relay) {
    assert_eq!(store.next_deadline(), None);
    let ask = |id: &str, by: i64| parcel(letter(id).thread("T1")).answer_by(by);
    take_and_file(
        store,
        &[ask("M1", 50), ask("M2", 30), ask("M3", 90), ask("M4", 40)],
    );
    assert_eq!(store.next_deadline(), Some(at(30)));
    assert_eq!(store.overdue(at(29), 9), 0);
    assert_eq!(store.overdue(at(60), 1), 1);
    assert_eq!(store.overdue(at(60), 9), 2);
    assert_eq!(store.overdue(at(60), 9), 0);
    assert_eq!(store.next_deadline(), Some(at(90)));

    let owed = store.notices();
    let of = |id: &str| format!("parent: {id}\n");
    assert_eq!(owed.len(), 3);
    for ((_, text), id) in owed.iter().zip(["M2", "M4", "M1"]) {
        assert!(
            text.contains(&of(id)) && text.contains("E-TIMEOUT"),
            "{text}"
        );
    }
    let places: Vec<u64> = owed.iter().map(|(place, _)| *place).collect();
    store.drop_notices(&places[..2]);
    assert_eq!(store.notices(), owed[2..]);
}

pub(crate) fn an_answer_in_time_ends_the_wait(store: &mut Relay) {
    let ask = |id: &str| parcel(letter(id).thread(&format!("T-{id}"))).answer_by(50);
    take_new(store, &[ask("M1"), ask("M2"), ask("M3")]);
    let answer = letter("A1").thread("T-M1").parent("M1").intent("RESPOND");
    let nobody = letter("A2").thread("T-M2").parent("M2").intent("RESPOND");
    let closed = letter("A3").thread("T-M3").intent("CLOSE");
    take_and_file(
        store,
        &[
            parcel(answer.between("CLAUDE", "KALLE")),
            parcel(nobody.between("MALLORY", "KALLE")),
            parcel(closed),
        ],
    );
    assert_eq!(store.overdue(at(60), 9), 1);
    let owed = store.notices();
    assert!(owed[0].1.contains("parent: M2\n"), "{owed:?}");
    assert_eq!(store.next_deadline(), None);
}

/// What the relay has to say is kept until it was said.
pub(crate) fn notices_are_owed_until_they_are_said(store: &mut Relay) {
    store.change_mailbox(MailboxChange {
        notices: ["one", "two"].map(str::to_owned).to_vec(),
        ..MailboxChange::reach("CLAUDE", Vec::new(), DeliveryState::Read, at(1))
    });
    let owed = store.notices();
    let said: Vec<&str> = owed.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(said, ["one", "two"]);
    store.drop_notices(&[owed[0].0]);
    assert_eq!(store.notices(), owed[1..]);
}

/// An answer to somebody who asked themselves waits in their inbox, and one to a chat that a person carries for is brought.
pub(crate) fn answers_are_carried_to_chats_that_asked_back(store: &mut Relay) {
    let carried = |id: &str, from: &str, to: &str, parent: Option<&str>| {
        let mut one = letter(id).thread("T1").at(1).between(from, to);
        if let Some(parent) = parent {
            one = one.parent(parent);
        }
        parcel(one).to(&[(to, Handler::CopyPaste)])
    };
    take_and_file(
        store,
        &[
            carried("M1", "KALLE", "CHATGPT", None),
            carried("M2", "CHATGPT", "KALLE", Some("M1")),
            carried("M3", "KALLE", "CHATGPT", Some("M2")),
        ],
    );
    let listed = store.courier(9);
    let ids: Vec<&str> = listed.iter().map(|c| c.record.id.as_str()).collect();
    assert_eq!(ids, ["M1", "M3"]);
}

/// Only what a recipient fetched from its inbox and has not done with.
pub(crate) fn failures_of_a_recipient_are_counted(store: &mut Relay) {
    let waits = |id: &str| parcel(letter(id).thread("T1").at(1));
    take_and_file(
        store,
        &[waits("M1"), waits("M2"), waits("M3"), posted("H1", 1)],
    );
    let ids = ["M1", "M2", "M3", "H1", "X"].map(str::to_owned);
    store.mark("CLAUDE", &ids[2..3], DeliveryState::Acknowledged, at(2));
    let changed = store.note_failure("claude", &ids, false, at(3));
    assert_eq!(changed, ["M1", "M2"]);
    let way = |store: &Relay, id: &str| store.deliveries(id).remove(0);
    let delivery = way(store, "M1");
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Delivered, 1)
    );
    assert!(delivery.reason.unwrap().contains("retried"));
    assert_eq!(way(store, "M3").attempts, 0);
    assert_eq!(way(store, "H1").state, DeliveryState::Queued);
    assert!(store.note_failure("BOB", &ids, true, at(4)).is_empty());
    let dead = store.note_failure("CLAUDE", &ids[..1], true, at(5));
    assert_eq!(dead, ["M1"]);
    let delivery = way(store, "M1");
    assert_eq!(
        (delivery.state, delivery.attempts),
        (DeliveryState::Failed, 2)
    );
    assert!(delivery.reason.unwrap().starts_with("E-ROUTE: "));
    assert_eq!(store.dead_letters(9)[0].id, "M1");
    assert!(
        store
            .note_failure("CLAUDE", &ids[..1], true, at(6))
            .is_empty()
    );
    // It worked in the end.
    store.mark("CLAUDE", &ids[1..2], DeliveryState::Acknowledged, at(7));
    let delivery = way(store, "M2");
    assert_eq!(
        (delivery.state, delivery.reason),
        (DeliveryState::Acknowledged, None)
    );
}

pub(crate) fn an_inbox_that_was_read_is_known(store: &mut Relay) {
    let waits = |id: &str| parcel(letter(id).thread("T1").at(1));
    take_and_file(store, &[waits("M1"), waits("M2")]);
    assert!(!store.was_handed_out("CLAUDE", "CLAUDE"));
    store.mark(
        "CLAUDE",
        &["M1".to_owned()],
        DeliveryState::Acknowledged,
        at(2),
    );
    assert!(store.was_handed_out("claude", "Claude"));
    assert!(!store.was_handed_out("BOB", "BOB"));
    assert!(!store.was_handed_out("BOB", "CLAUDE"));
}
