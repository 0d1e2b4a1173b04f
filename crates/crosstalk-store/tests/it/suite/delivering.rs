//! Inboxes and how far messages are on their way.

use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, file_all, inbox, parcel, take_and_file, take_new};
use crosstalk_protocol::relay::{Delivery, DeliveryState, Handler, InboxQuery, RelayStore};

fn only(store: &dyn RelayStore, id: &str) -> Delivery {
    let mut deliveries = store.deliveries(id).unwrap();
    assert_eq!(deliveries.len(), 1, "{id}");
    deliveries.remove(0)
}

fn ids(of: &[&str]) -> Vec<String> {
    of.iter().map(|id| (*id).to_owned()).collect()
}

pub(crate) fn an_inbox_has_what_is_not_acknowledged(store: &mut dyn RelayStore) {
    let one = |n: usize| parcel(letter(&format!("M{n}")).thread("T1"));
    take_and_file(store, &(0..5).map(one).collect::<Vec<_>>());
    let posted = parcel(letter("M5").thread("T1")).to(&[("CLAUDE", Handler::Http)]);
    take_and_file(store, &[posted]);
    assert_eq!(inbox(store, "Claude"), ["M0", "M1", "M2", "M3", "M4", "M5"]);
    for (id, state) in [
        ("M0", DeliveryState::Delivered),
        ("M1", DeliveryState::Read),
        ("M2", DeliveryState::Acknowledged),
        ("M3", DeliveryState::Failed),
    ] {
        assert_eq!(
            store.mark("CLAUDE", &ids(&[id]), state, at(900)).unwrap(),
            [id]
        );
    }
    assert_eq!(inbox(store, "Claude"), ["M0", "M1", "M4", "M5"]);
    let asked = InboxQuery {
        address: "CLAUDE",
        after: None,
        limit: 9,
    };
    let entries = store.inbox_of(&asked).unwrap();
    let states: Vec<DeliveryState> = entries.iter().map(|e| e.state).collect();
    assert_eq!(
        states,
        [
            DeliveryState::Delivered,
            DeliveryState::Read,
            DeliveryState::Queued,
            DeliveryState::Queued
        ]
    );
    assert_eq!(
        (entries[3].by, entries[3].to.as_str()),
        (Handler::Http, "CLAUDE")
    );
    assert_eq!(entries[0].record, store.message("M0").unwrap().unwrap());
    assert!(inbox(store, "KALLE").is_empty());
}

pub(crate) fn an_inbox_is_read_page_by_page(store: &mut dyn RelayStore) {
    let one = |n: usize| parcel(letter(&format!("M{n}")).thread("T1"));
    take_and_file(store, &(0..10).map(one).collect::<Vec<_>>());
    store
        .mark(
            "CLAUDE",
            &ids(&["M1", "M5"]),
            DeliveryState::Acknowledged,
            at(900),
        )
        .unwrap();
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let asked = InboxQuery {
            address: "CLAUDE",
            after,
            limit: 3,
        };
        let entries = store.inbox_of(&asked).unwrap();
        let Some(last) = entries.last() else { break };
        assert!(entries.len() <= 3);
        after = Some(last.record.seq);
        seen.extend(entries.into_iter().map(|e| e.record.id));
    }
    assert_eq!(seen, ["M0", "M2", "M3", "M4", "M6", "M7", "M8", "M9"]);
}

/// Every state after every other one.
pub(crate) fn states_never_go_back(store: &mut dyn RelayStore) {
    for (a, first) in DeliveryState::ALL.into_iter().enumerate() {
        for (b, then) in DeliveryState::ALL.into_iter().enumerate() {
            let id = format!("M{a}{b}");
            take_and_file(store, &[parcel(letter(&id).thread("T1").at(1))]);
            let mark = |store: &mut dyn RelayStore, state, seconds| {
                let ids = [id.clone()];
                assert_eq!(store.mark("CLAUDE", &ids, state, at(seconds)).unwrap(), ids);
                only(store, &id)
            };
            let before = mark(store, first, 10);
            assert_eq!(before.state, first);
            let after = mark(store, then, 20);
            if then.follows(first) {
                assert_eq!(after.state, then);
            } else {
                assert_eq!(after, before);
            }
            let times = [
                (DeliveryState::Read, after.read_at),
                (DeliveryState::Acknowledged, after.acknowledged_at),
                (DeliveryState::Failed, after.failed_at),
            ];
            for (state, time) in times {
                let expected = match state {
                    _ if state == first => Some(at(10)),
                    _ if state == then && then.follows(first) => Some(at(20)),
                    _ => None,
                };
                assert_eq!(time, expected, "{state:?} of {first:?}, {then:?}");
            }
            assert_eq!(after.queued_at, at(1));
            let is_out = |s: DeliveryState| {
                matches!(
                    s,
                    DeliveryState::Delivered | DeliveryState::Read | DeliveryState::Acknowledged
                )
            };
            assert_eq!(
                after.delivered_at.is_some(),
                is_out(first) || is_out(after.state)
            );
        }
    }
}

/// Who sees a message before it is filed can say so at once.
pub(crate) fn what_is_not_filed_can_be_marked(store: &mut dyn RelayStore) {
    let one = |n: usize| parcel(letter(&format!("M{n}")).thread("T1"));
    take_new(store, &(0..5).map(one).collect::<Vec<_>>());
    let marked = store
        .mark(
            "claude",
            &ids(&["M1", "M3", "M9"]),
            DeliveryState::Acknowledged,
            at(9),
        )
        .unwrap();
    assert_eq!(marked, ["M1", "M3"]);
    assert_eq!(file_all(store).left, 0);
    assert_eq!(inbox(store, "CLAUDE"), ["M0", "M2", "M4"]);
    assert_eq!(store.thread("T1").unwrap().unwrap().messages, 5);
}

pub(crate) fn a_mark_is_for_one_recipient(store: &mut dyn RelayStore) {
    let poll = letter("M1")
        .thread("T1")
        .intent("POLL")
        .targets(&["ANN", "BOB"]);
    let both = [("ANN", Handler::Inbox), ("BOB", Handler::Inbox)];
    take_and_file(store, &[parcel(poll).to(&both)]);
    assert!(
        store
            .mark("CLAUDE", &ids(&["M1"]), DeliveryState::Read, at(9))
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        store
            .mark("ann", &ids(&["M1"]), DeliveryState::Acknowledged, at(9))
            .unwrap(),
        ["M1"]
    );
    let states: Vec<DeliveryState> = store
        .deliveries("M1")
        .unwrap()
        .iter()
        .map(|d| d.state)
        .collect();
    assert_eq!(states, [DeliveryState::Acknowledged, DeliveryState::Queued]);
    assert!(inbox(store, "ANN").is_empty());
    assert_eq!(inbox(store, "BOB"), ["M1"]);
}

pub(crate) fn acknowledgements_and_refusals_change_the_state(store: &mut dyn RelayStore) {
    let one = |id: &str| letter(id).thread("T1").between("ANN", "chatgpt://thread/x");
    take_new(store, &["M1", "M2", "M3"].map(|id| parcel(one(id))));
    let word = |id: &str, to: &str, intent: &str| {
        let word = letter(id).thread("T1").parent(to).intent(intent);
        parcel(
            word.between("chatgpt://thread/x", "ANN")
                .body("\nNot my table.\nReally."),
        )
    };
    // In the same batch as the messages, and later.
    take_and_file(store, &[word("A1", "M1", "ACK"), word("A2", "M2", "NACK")]);
    let first = only(store, "M1");
    assert_eq!(first.state, DeliveryState::Acknowledged);
    assert!(first.acknowledged_at.is_some() && first.reason.is_none());
    let second = only(store, "M2");
    assert_eq!(second.state, DeliveryState::Failed);
    assert_eq!(second.reason.as_deref(), Some("NACK: Not my table."));
    assert_eq!(inbox(store, "chatgpt://thread/x"), ["M3"]);
    store
        .mark(
            "chatgpt://thread/x",
            &ids(&["M3"]),
            DeliveryState::Read,
            at(9),
        )
        .unwrap();
    take_and_file(store, &[word("A3", "M3", "NACK")]);
    // What was read did arrive.
    assert_eq!(only(store, "M3").state, DeliveryState::Read);
    assert_eq!(inbox(store, "ANN"), ["A1", "A2", "A3"]);
}

pub(crate) fn a_stranger_acknowledges_nothing(store: &mut dyn RelayStore) {
    take_and_file(
        store,
        &[parcel(letter("M1").thread("T1").between("ANN", "BOB"))],
    );
    // Not even one whose scheme is the name.
    for (n, from) in ["ANN", "MALLORY", "bob://x/y"].iter().enumerate() {
        for intent in ["ACK", "NACK"] {
            let word = letter(&format!("A{n}{intent}")).thread("T1").parent("M1");
            take_and_file(store, &[parcel(word.intent(intent).between(from, "BOB"))]);
        }
    }
    assert_eq!(only(store, "M1").state, DeliveryState::Queued);
}

pub(crate) fn every_target_has_a_delivery(store: &mut dyn RelayStore) {
    let poll = letter("M1")
        .thread("T1")
        .intent("POLL")
        .targets(&["ANN", "BOB", "EVE"]);
    let ways = [
        ("ANN", Handler::Inbox),
        ("BOB", Handler::CopyPaste),
        ("agent://eve.example/x", Handler::Relay),
    ];
    let poll = parcel(poll).to(&ways);
    take_and_file(store, std::slice::from_ref(&poll));
    let deliveries = store.deliveries("M1").unwrap();
    let mut seen: Vec<(&str, Handler)> = deliveries.iter().map(|d| (d.to.as_str(), d.by)).collect();
    seen.sort_unstable();
    assert_eq!(seen, ways);
    for delivery in &deliveries {
        assert_eq!(delivery.next_at.is_some(), delivery.by.is_active());
        assert_eq!(
            (delivery.state, delivery.attempts),
            (DeliveryState::Queued, 0)
        );
        assert_eq!(delivery.queued_at, poll.arrival.at);
    }
    for (address, _) in ways {
        assert_eq!(inbox(store, address), ["M1"]);
    }
}

pub(crate) fn what_is_forgotten_is_in_no_inbox(store: &mut dyn RelayStore) {
    take_and_file(store, &[parcel(letter("M1").thread("T1")).answer_by(5)]);
    take_new(store, &[parcel(letter("M2").thread("T1"))]);
    assert_eq!(store.forget("T1").unwrap(), 2);
    assert!(inbox(store, "CLAUDE").is_empty() && store.deliveries("M1").unwrap().is_empty());
    assert_eq!(store.next_deadline().unwrap(), None);
    assert_eq!(store.record("M2").unwrap(), None);
    take_and_file(store, &[parcel(letter("M3").thread("T1"))]);
    assert_eq!(inbox(store, "CLAUDE"), ["M3"]);
}
