//! Ids, listings, pages, and what is gone.

use super::{file, ids, put, wait};
use crate::letter::letter;
use crate::sqlite::Sqlite;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{
    Page, ReferenceMatch, Side, StoreOutcome, ThreadFilter, ThreadState, Wait,
};
use crosstalk_store::SqliteStore;

fn found(store: &SqliteStore, reference: &str) -> ReferenceMatch {
    store.find(reference).unwrap()
}

#[test]
fn an_id_is_found_by_its_beginning() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("mess-one").thread("thread-x"));
    file(store, &letter("mess-two").thread("thread-x"));
    file(store, &letter("mess-two-more").thread("thread-x"));
    assert_eq!(
        found(store, "mess-o"),
        ReferenceMatch::Message("mess-one".to_owned())
    );
    assert_eq!(
        found(store, "mess-two"),
        ReferenceMatch::Message("mess-two".to_owned())
    );
    assert_eq!(
        found(store, "thre"),
        ReferenceMatch::Thread("thread-x".to_owned())
    );
    let both = vec!["mess-two".to_owned(), "mess-two-more".to_owned()];
    assert_eq!(found(store, "mess-tw"), ReferenceMatch::Several(both));
    for nothing in [
        "mess-x",
        "mess-one-",
        "%%%%",
        "mess_one",
        "",
        "mess\u{0}",
        "messé",
    ] {
        assert_eq!(
            found(store, nothing),
            ReferenceMatch::Nothing,
            "{nothing:?}"
        );
    }
}

#[test]
fn a_beginning_of_thread_and_its_messages_means_the_thread() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("01KA-0002").thread("01KA-0001"));
    file(store, &letter("01KA-0003").thread("01KA-0001"));
    assert_eq!(
        found(store, "01KA"),
        ReferenceMatch::Thread("01KA-0001".to_owned())
    );
    assert_eq!(
        found(store, "01KA-0003"),
        ReferenceMatch::Message("01KA-0003".to_owned())
    );
    file(store, &letter("01KA-0004").thread("other"));
    let several = ["01KA-0001", "01KA-0004"].map(str::to_owned).to_vec();
    assert_eq!(found(store, "01KA"), ReferenceMatch::Several(several));
    // A thread that is called like its first message.
    file(store, &letter("same-id").thread("same-id"));
    assert_eq!(
        found(store, "same-id"),
        ReferenceMatch::Thread("same-id".to_owned())
    );
    assert_eq!(
        found(store, "same"),
        ReferenceMatch::Thread("same-id".to_owned())
    );
}

#[test]
fn several_are_at_most_ten() {
    let store = &mut Sqlite::new().store;
    for n in 0..30 {
        file(
            store,
            &letter(&format!("mess-{n:02}")).thread(&format!("thread-{n:02}")),
        );
    }
    for prefix in ["mess-", "thread-"] {
        match found(store, prefix) {
            ReferenceMatch::Several(some) => assert_eq!(some.len(), 10),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn short_beginnings_find_nothing() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("M1x").thread("abcdef"));
    assert_eq!(found(store, "abc"), ReferenceMatch::Nothing);
    assert_eq!(
        found(store, "abcd"),
        ReferenceMatch::Thread("abcdef".to_owned())
    );
    assert_eq!(found(store, "M1"), ReferenceMatch::Nothing);
    assert_eq!(
        found(store, "M1x"),
        ReferenceMatch::Message("M1x".to_owned())
    );
}

#[test]
fn lower_case_finds_capitals() {
    let store = &mut Sqlite::new().store;
    let ulid = "01J9J3D3M6A4M3WQX8G1ZQ0S7K";
    file(store, &letter("M1").thread(ulid));
    assert_eq!(
        found(store, "01j9j3d3"),
        ReferenceMatch::Thread(ulid.to_owned())
    );
    assert_eq!(
        found(store, &ulid.to_lowercase()),
        ReferenceMatch::Thread(ulid.to_owned())
    );
    // What is there as it was typed comes first.
    file(store, &letter("01j9j3d3-x").thread("T1"));
    assert_eq!(
        found(store, "01j9j3d3"),
        ReferenceMatch::Message("01j9j3d3-x".to_owned())
    );
}

#[test]
fn the_shortest_beginning_tells_neighbours_apart() {
    let store = &mut Sqlite::new().store;
    let all = [
        "x123456789AB",
        "x123456789AC",
        "x1234567",
        "x12345678",
        "ä123456789ä",
        "ä123456789ö",
        "short",
    ];
    for (n, id) in all.iter().enumerate() {
        file(store, &letter(id).thread(&format!("thread {n}")));
    }
    let needed = [12, 12, 8, 9, 11, 11, 5];
    for (id, needed) in all.iter().zip(needed) {
        assert_eq!(store.shortest(id).unwrap(), needed, "{id}");
        let start: String = id.chars().take(needed).collect();
        assert_eq!(
            found(store, &start),
            ReferenceMatch::Message((*id).to_owned()),
            "{id}"
        );
    }
    file(store, &letter("M1").thread("short-but-not-so"));
    assert_eq!(store.shortest("short-but-not-so").unwrap(), 8);
    file(store, &letter("short-but-also").thread("T1"));
    assert_eq!(store.shortest("short-but-not-so").unwrap(), 11);
}

#[test]
fn an_id_is_there_once() {
    let store = &mut Sqlite::new().store;
    let words = [
        (VerdictWord::FirstContact, "b", "b", true),
        (VerdictWord::Verified, "c", "c", true),
        (VerdictWord::Verified, "d", "d", false),
    ];
    for (word, key, own, is_kept) in words {
        let one = letter("M1").thread("T1").body(key).spare_message(own);
        let outcome = put(store, &one.verdict(word, Some(key)));
        assert_eq!(
            matches!(outcome, StoreOutcome::Filed { .. }),
            is_kept,
            "{key}"
        );
    }
    let first = store.message("M1").unwrap().unwrap();
    assert_eq!(first.pkid.as_deref(), Some("c"));
    assert_eq!(ids(store, "T1"), ["b", "M1"]);
    assert_eq!(
        store.find("M1").unwrap(),
        ReferenceMatch::Message("M1".to_owned())
    );
}

fn listed(store: &SqliteStore, filter: &ThreadFilter) -> Vec<String> {
    let listing = store.threads(filter, Page::first(100)).unwrap();
    listing.items.into_iter().map(|t| t.id).collect()
}

#[test]
fn threads_are_listed_latest_first() {
    let store = &mut Sqlite::new().store;
    for (id, thread, at) in [
        ("M1", "T1", 10),
        ("M2", "T2", 20),
        ("M3", "T3", 20),
        ("M4", "T1", 15),
    ] {
        file(store, &letter(id).thread(thread).at(at));
    }
    assert_eq!(listed(store, &ThreadFilter::default()), ["T3", "T2", "T1"]);
    file(store, &letter("M5").thread("T1").at(30));
    assert_eq!(listed(store, &ThreadFilter::default()), ["T1", "T3", "T2"]);
    // A page goes on after the same thread, whatever came to others, also between two of the same time.
    let mut filter = ThreadFilter::default();
    for id in ["T1", "T3", "T2"] {
        let part = store.threads(&filter, Page::first(1)).unwrap();
        assert_eq!((part.items[0].id.as_str(), part.more), (id, id != "T2"));
        filter.after = Some(part.items[0].position());
        if id == "T3" {
            file(store, &letter("M6").thread("T1").at(40));
        }
    }
}

#[test]
fn threads_are_filtered() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("M1").thread("T1").at(1));
    file(
        store,
        &letter("M2")
            .thread("T2")
            .at(2)
            .between("ANN", "agent://x/Bob"),
    );
    file(store, &letter("M3").thread("T3").at(3).intent("NOTE"));
    file(
        store,
        &letter("M4")
            .thread("T4")
            .at(4)
            .intent("CLOSE")
            .between("ANN", "KALLE")
            .side(Side::Mine),
    );
    file(store, &letter("M5").thread("T5").at(5).side(Side::Mine));
    file(
        store,
        &letter("M6").thread("T4").at(6).between("EVE", "ANN"),
    );
    let filter = |open, waiting, with: Option<&str>| ThreadFilter {
        open,
        waiting,
        with: with.map(str::to_owned),
        after: None,
    };
    let cases = [
        (
            filter(false, false, None),
            vec!["T4", "T5", "T3", "T2", "T1"],
        ),
        (filter(true, false, None), vec!["T5", "T3", "T2", "T1"]),
        (filter(false, true, None), vec!["T4", "T2", "T1"]),
        (filter(true, true, None), vec!["T2", "T1"]),
        (filter(false, false, Some("ann")), vec!["T4", "T2"]),
        (filter(true, false, Some("ann")), vec!["T2"]),
        (filter(true, true, Some("KALLE")), vec!["T1"]),
        (filter(false, false, Some("agent://x/Bob")), vec!["T2"]),
        (filter(false, false, Some("AGENT://X/Bob")), vec!["T2"]),
        (filter(false, false, Some("agent://x/bob")), vec![]),
    ];
    for (mut filter, wanted) in cases {
        assert_eq!(listed(store, &filter), wanted, "{filter:?}");
        // Page by page, each after the last thread of the one before.
        let mut seen = Vec::new();
        loop {
            let part = store.threads(&filter, Page::first(2)).unwrap();
            filter.after = part
                .items
                .last()
                .map(crosstalk_protocol::store::Thread::position);
            seen.extend(part.items.into_iter().map(|t| t.id));
            if !part.more {
                break;
            }
        }
        assert_eq!(seen, wanted, "{filter:?}");
    }
}

#[test]
fn pages_go_through_everything_once() {
    let store = &mut Sqlite::new().store;
    let batch = (0..25).map(|n| {
        let thread = if n < 12 {
            "T00".to_owned()
        } else {
            format!("T{n:02}")
        };
        letter(&format!("M{n:02}")).thread(&thread).at(n).arrival()
    });
    store.accept(&batch.collect::<Vec<_>>()).unwrap();
    let (mut seen, mut after, mut more) = (Vec::new(), None, true);
    while more {
        let part = store.messages("T00", after, 5).unwrap();
        after = part.items.last().map(|r| r.seq);
        more = part.more;
        seen.extend(part.items.into_iter().map(|r| r.id));
    }
    let wanted: Vec<String> = (0..12).map(|n| format!("M{n:02}")).collect();
    assert_eq!(seen, wanted);
    let (mut inbox, mut threads, mut found) = (Vec::new(), Vec::new(), Vec::new());
    let search = crosstalk_protocol::store::Search::parse("port").unwrap();
    for skip in (0..30).step_by(5) {
        let page = Page { limit: 5, skip };
        let part = store.inbox(page).unwrap();
        assert_eq!(part.more, skip < 20);
        inbox.extend(part.items.into_iter().map(|r| r.id));
        let part = store.search(&search, page).unwrap();
        assert_eq!(part.more, skip < 20);
        found.extend(part.items.into_iter().map(|r| r.id));
        let part = store.threads(&ThreadFilter::default(), page).unwrap();
        assert_eq!(part.more, skip < 10);
        threads.extend(part.items.into_iter().map(|t| t.id));
    }
    let wanted: Vec<String> = (0..25).rev().map(|n| format!("M{n:02}")).collect();
    assert_eq!((&inbox, &found), (&wanted, &wanted));
    let mut once = threads.clone();
    once.dedup();
    assert_eq!((threads.len(), once.len()), (14, 14));
    let none = store.inbox(Page::first(0)).unwrap();
    assert!(none.items.is_empty() && none.more);
    let all = store.inbox(Page::first(usize::MAX)).unwrap();
    assert!(all.items.len() == 25 && !all.more);
    assert!(
        store
            .messages("T00", Some(u64::MAX), 5)
            .unwrap()
            .items
            .is_empty()
    );
}

#[test]
fn the_inbox_has_what_waits_here() {
    let store = &mut Sqlite::new().store;
    for (id, side) in [
        ("M1", Side::ToMe),
        ("M2", Side::Mine),
        ("M3", Side::Between),
    ] {
        file(store, &letter(id).thread("T1").side(side));
    }
    let inbox = store.inbox(Page::first(9)).unwrap();
    let inbox: Vec<String> = inbox.items.into_iter().map(|r| r.id).collect();
    assert_eq!(inbox, ["M3", "M1"]);
}

#[test]
fn who_was_met_is_known() {
    let store = &mut Sqlite::new().store;
    let poll = letter("M1")
        .thread("T1")
        .between("Ann", "agent://x/Bob")
        .intent("POLL");
    file(store, &poll.targets(&["EVE"]));
    for (who, known) in [
        ("ANN", true),
        ("agent://x/Bob", true),
        ("AGENT://X/Bob", true),
        ("eve", true),
        ("agent://x/bob", false),
        ("DAN", false),
        ("", false),
    ] {
        assert_eq!(store.knows(who).unwrap(), known, "{who}");
    }
    store.forget("T1").unwrap();
    assert!(!store.knows("ANN").unwrap());
}

#[test]
fn what_is_forgotten_is_gone() {
    let store = &mut Sqlite::new().store;
    file(store, &letter("M1").thread("T1").session("S"));
    file(store, &letter("M2").thread("T1"));
    file(store, &letter("M3").thread("T2"));
    assert_eq!(store.forget("T1").unwrap(), 2);
    assert_eq!(store.forget("T1").unwrap(), 0);
    assert_eq!(store.message("M1").unwrap(), None);
    assert_eq!(store.thread("T1").unwrap(), None);
    assert!(ids(store, "T1").is_empty());
    assert_eq!(store.inbox(Page::first(9)).unwrap().items.len(), 1);
    assert_eq!(listed(store, &ThreadFilter::default()), ["T2"]);
    let last = store.message("M3").unwrap().unwrap().seq;
    // It may come again, and its place in the order is a new one.
    file(store, &letter("M1").spare("new").session("S"));
    let again = store.message("M1").unwrap().unwrap();
    assert_eq!(again.thread, "new");
    assert!(again.seq > last);
    store.forget("new").unwrap();
    file(store, &letter("M4").thread("T2"));
    assert!(store.message("M4").unwrap().unwrap().seq > again.seq);
}

#[test]
fn one_message_is_forgotten_alone() {
    let store = &mut Sqlite::new().store;
    let ask = |id: &str| letter(id).thread("T1").side(Side::Mine);
    file(store, &ask("M1"));
    file(store, &ask("M2"));
    let answer = |id: &str, of: &str| {
        let one = letter(id).thread("T1").parent(of).intent("RESPOND");
        one.between("CLAUDE", "KALLE").side(Side::ToMe)
    };
    file(store, &answer("M3", "M1"));
    file(store, &answer("M4", "M2"));
    let thread = |store: &SqliteStore| store.thread("T1").unwrap().unwrap();
    assert_eq!(thread(store).state(), ThreadState::Answered);
    // The answer is gone, and the question is open again.
    assert!(store.forget_message("M3").unwrap());
    assert!(!store.forget_message("M3").unwrap());
    assert_eq!(store.message("M3").unwrap(), None);
    assert_eq!(
        (wait(store, "M1"), wait(store, "M2")),
        (Wait::Them, Wait::Nobody)
    );
    let waiting = ThreadState::WaitingFor(vec!["CLAUDE".to_owned()]);
    assert_eq!(thread(store).state(), waiting);
    let asked = store.asked(Page::first(9)).unwrap().items;
    let asked: Vec<_> = asked
        .iter()
        .map(|a| (a.record.id.as_str(), &a.of))
        .collect();
    assert_eq!(asked, [("M1", &vec!["CLAUDE".to_owned()])]);
    // A question is gone, and its answer stays.
    assert!(store.forget_message("M2").unwrap());
    assert_eq!(ids(store, "T1"), ["M1", "M4"]);
    assert_eq!(thread(store).messages, 2);
    // It may come again, in a place of its own.
    file(store, &answer("M3", "M1"));
    assert_eq!(ids(store, "T1"), ["M1", "M4", "M3"]);
    assert_eq!(wait(store, "M1"), Wait::Nobody);
    // With its last message, the thread is gone.
    for id in ["M1", "M4", "M3"] {
        assert!(store.forget_message(id).unwrap());
    }
    assert_eq!(store.thread("T1").unwrap(), None);
    assert!(!store.knows("CLAUDE").unwrap());
}
