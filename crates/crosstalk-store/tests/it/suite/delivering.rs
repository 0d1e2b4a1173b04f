//! Inboxes and how far messages are on their way.

use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, file_all, inbox, parcel, take_and_file, take_new};
use crate::suite::relay::{Relay, wait_for};
use crosstalk_protocol::relay::port::{
    Cursor, HandedOut, InboxQuery, MailboxAction, MailboxChange, SettledNotice,
};
use crosstalk_protocol::relay::{Delivery, DeliveryState, Handler};

fn only(store: &Relay, id: &str) -> Delivery {
    let mut deliveries = store.deliveries(id);
    assert_eq!(deliveries.len(), 1, "{id}");
    deliveries.remove(0)
}

fn ids(of: &[&str]) -> Vec<String> {
    of.iter().map(|id| (*id).to_owned()).collect()
}

pub(crate) fn an_inbox_has_what_is_not_acknowledged(store: &mut Relay) {
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
        assert_eq!(store.mark("CLAUDE", &ids(&[id]), state, at(900)), [id]);
    }
    assert_eq!(inbox(store, "Claude"), ["M0", "M1", "M4", "M5"]);
    let entries = store.inbox(InboxQuery {
        address: "CLAUDE".to_owned(),
        after: None,
        limit: 9,
    });
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
    assert_eq!(entries[0].record, store.record("M0").unwrap());
    assert!(inbox(store, "KALLE").is_empty());
}

pub(crate) fn an_inbox_is_read_page_by_page(store: &mut Relay) {
    let one = |n: usize| parcel(letter(&format!("M{n}")).thread("T1"));
    take_and_file(store, &(0..10).map(one).collect::<Vec<_>>());
    store.mark(
        "CLAUDE",
        &ids(&["M1", "M5"]),
        DeliveryState::Acknowledged,
        at(900),
    );
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let entries = store.inbox(InboxQuery {
            address: "CLAUDE".to_owned(),
            after: after.clone(),
            limit: 3,
        });
        let Some(last) = entries.last() else { break };
        assert!(entries.len() <= 3);
        after = Some(last.cursor.clone());
        seen.extend(entries.into_iter().map(|e| e.record.id));
    }
    assert_eq!(seen, ["M0", "M2", "M3", "M4", "M6", "M7", "M8", "M9"]);
    // What comes later is found from there.
    take_new(store, &[parcel(letter("N1").thread("T1"))]);
    let entries = store.inbox(InboxQuery {
        address: "CLAUDE".to_owned(),
        after,
        limit: 3,
    });
    let ids: Vec<&str> = entries.iter().map(|e| e.record.id.as_str()).collect();
    assert_eq!(ids, ["N1"]);
}

pub(crate) fn only_cursors_that_were_given_out_are_known(store: &mut Relay) {
    let has = |store: &Relay, cursor: &Cursor| wait_for(store.port().has_cursor(cursor)).unwrap();
    assert!(has(store, &Cursor::default()));
    assert!(!has(store, &Cursor::new("1")));
    take_new(store, &[parcel(letter("M1").thread("T1"))]);
    let entries = store.inbox(InboxQuery {
        address: "CLAUDE".to_owned(),
        after: Some(Cursor::default()),
        limit: 3,
    });
    assert!(has(store, &entries[0].cursor));
    for text in ["", "x", "-1", "+1", "99", "99999999999999999999", "1 "] {
        assert!(!has(store, &Cursor::new(text)), "{text:?}");
    }
}

/// That messages were handed out is noted some time later, and before anything that comes after it.
pub(crate) fn messages_that_were_handed_out_are_delivered(store: &mut Relay) {
    let one = |id: &str| parcel(letter(id).thread("T1"));
    take_new(store, &[one("M1"), one("M2")]);
    store.port().hand_out(HandedOut {
        address: "claude".to_owned(),
        ids: ids(&["M1", "M9"]),
        at: at(900),
    });
    file_all(store);
    let delivery = only(store, "M1");
    assert_eq!(
        (delivery.state, delivery.delivered_at),
        (DeliveryState::Delivered, Some(at(900)))
    );
    assert_eq!(only(store, "M2").state, DeliveryState::Queued);
}

/// What follows from a change is done with it.
pub(crate) fn a_change_of_a_mailbox_is_one(store: &mut Relay) {
    let one = |id: &str| parcel(letter(id).thread("T1"));
    let notice = parcel(letter("N1").thread("T1").between("RELAY", "KALLE"));
    take_and_file(store, &[one("M1"), notice]);
    let changed = store.change_mailbox(MailboxChange {
        action: MailboxAction::NoteFailure { is_final: true },
        notices: vec!["sorry".to_owned()],
        settled: vec![SettledNotice {
            address: "kalle".to_owned(),
            id: "N1".to_owned(),
        }],
        ..MailboxChange::reach("CLAUDE", ids(&["M1"]), DeliveryState::Failed, at(900))
    });
    assert_eq!(changed, ["M1"]);
    assert_eq!(only(store, "M1").state, DeliveryState::Failed);
    let texts: Vec<String> = store.notices().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["sorry"]);
    assert_eq!(only(store, "N1").state, DeliveryState::Acknowledged);
    assert!(inbox(store, "KALLE").is_empty());
}

/// Every state after every other one.
pub(crate) fn states_never_go_back(store: &mut Relay) {
    for (a, first) in DeliveryState::ALL.into_iter().enumerate() {
        for (b, then) in DeliveryState::ALL.into_iter().enumerate() {
            let id = format!("M{a}{b}");
            take_and_file(store, &[parcel(letter(&id).thread("T1").at(1))]);
            let mark = |store: &mut Relay, state, seconds| {
                let ids = [id.clone()];
                assert_eq!(store.mark("CLAUDE", &ids, state, at(seconds)), ids);
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
pub(crate) fn what_is_not_filed_can_be_marked(store: &mut Relay) {
    let one = |n: usize| parcel(letter(&format!("M{n}")).thread("T1"));
    take_new(store, &(0..5).map(one).collect::<Vec<_>>());
    let marked = store.mark(
        "claude",
        &ids(&["M1", "M3", "M9"]),
        DeliveryState::Acknowledged,
        at(9),
    );
    assert_eq!(marked, ["M1", "M3"]);
    assert_eq!(file_all(store).left, 0);
    assert_eq!(inbox(store, "CLAUDE"), ["M0", "M2", "M4"]);
    assert_eq!(store.thread("T1").unwrap().messages, 5);
}

pub(crate) fn a_mark_is_for_one_recipient(store: &mut Relay) {
    let poll = letter("M1")
        .thread("T1")
        .intent("POLL")
        .targets(&["ANN", "BOB"]);
    let both = [("ANN", Handler::Inbox), ("BOB", Handler::Inbox)];
    take_and_file(store, &[parcel(poll).to(&both)]);
    assert!(
        store
            .mark("CLAUDE", &ids(&["M1"]), DeliveryState::Read, at(9))
            .is_empty()
    );
    assert_eq!(
        store.mark("ann", &ids(&["M1"]), DeliveryState::Acknowledged, at(9)),
        ["M1"]
    );
    let states: Vec<DeliveryState> = store.deliveries("M1").iter().map(|d| d.state).collect();
    assert_eq!(states, [DeliveryState::Acknowledged, DeliveryState::Queued]);
    assert!(inbox(store, "ANN").is_empty());
    assert_eq!(inbox(store, "BOB"), ["M1"]);
}

pub(crate) fn acknowledgements_and_refusals_change_the_state(store: &mut Relay) {
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
    store.mark(
        "chatgpt://thread/x",
        &ids(&["M3"]),
        DeliveryState::Read,
        at(9),
    );
    take_and_file(store, &[word("A3", "M3", "NACK")]);
    // What was read did arrive.
    assert_eq!(only(store, "M3").state, DeliveryState::Read);
    assert_eq!(inbox(store, "ANN"), ["A1", "A2", "A3"]);
}

pub(crate) fn a_stranger_acknowledges_nothing(store: &mut Relay) {
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

pub(crate) fn every_target_has_a_delivery(store: &mut Relay) {
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
    let deliveries = store.deliveries("M1");
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

pub(crate) fn what_is_forgotten_is_in_no_inbox(store: &mut Relay) {
    take_and_file(store, &[parcel(letter("M1").thread("T1")).answer_by(5)]);
    take_new(store, &[parcel(letter("M2").thread("T1"))]);
    assert_eq!(store.person().forget("T1").unwrap(), 2);
    assert!(inbox(store, "CLAUDE").is_empty() && store.deliveries("M1").is_empty());
    assert_eq!(store.next_deadline(), None);
    assert_eq!(store.record("M2"), None);
    take_and_file(store, &[parcel(letter("M3").thread("T1"))]);
    assert_eq!(inbox(store, "CLAUDE"), ["M3"]);
}
