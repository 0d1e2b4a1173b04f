//! Nothing that a store does day by day looks at a whole table.

use super::SqliteStore;
use super::relay::close;
use super::relay::unindexed::UnindexedMessages;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::LogQuery;
use crosstalk_protocol::consent::Proof;
use crosstalk_protocol::relay::port::{BlobQuery, Cursor, InboxQuery, RecordQuery, Upload};
use crosstalk_protocol::relay::{
    Admission, Attempt, ConversationId, DeliveryState, Handler, HoldChoice, HoldDecision,
    HoldReason, Lease, PollState, Priority, Recipient, Retention, Ruling,
};
use crosstalk_protocol::store::{
    Arrival, Moved, Page, Search, Side, StoredMessage, ThreadFilter, ThreadPosition, Way,
};
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

thread_local! {
    static SEEN: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

fn note(event: TraceEvent<'_>) {
    if let TraceEvent::Stmt(_, sql) = event {
        SEEN.with_borrow_mut(|seen| seen.insert(sql.to_owned()));
    }
}

fn arrival(id: &str, lines: &str, verdict: VerdictWord) -> Arrival {
    let text =
        format!("[[KALLE→CLAUDE v1]]\nuser: kalle\n{lines}body: |\n  words\nsig: none\n[[END]]\n");
    Arrival::recall(StoredMessage {
        text,
        received: None,
        truncated: false,
        verdict,
        pkid: (verdict == VerdictWord::Verified).then(|| "ann".to_owned()),
        side: Side::ToMe,
        way: Way::Pasted,
        at: Timestamp::from_millis(1),
        message: lines
            .lines()
            .find_map(|line| line.strip_prefix("message: "))
            .map(str::to_owned),
        answers: None,
        generated: ReceivedIds {
            thread: format!("thread {id}"),
            message: id.to_owned(),
        },
    })
}

/// Everything that the port can be asked for, at least once.
fn use_all(store: &mut SqliteStore) {
    let head = |message: &str, rest: &str, intent: &str| {
        format!("{rest}message: {message}\ncontext: c\nintent: {intent}\n")
    };
    let poll = "POLL\nmeta: routing\nTargets: [ANN, BOB]";
    let batch = [
        arrival(
            "a",
            "session: s\ncontext: c\nintent: QUESTION\n",
            VerdictWord::Unsigned,
        ),
        arrival(
            "b",
            "session: s\ncontext: c\nintent: ANSWER\n",
            VerdictWord::Unsigned,
        ),
        arrival(
            "c",
            &head("M2", "parent: M1\n", "RESPOND"),
            VerdictWord::Unsigned,
        ),
        arrival(
            "d",
            &head("M1", "thread: T1\n", "REQUEST"),
            VerdictWord::Unsigned,
        ),
        arrival(
            "d",
            &head("M1", "thread: T1\n", "REQUEST"),
            VerdictWord::Verified,
        ),
        arrival(
            "e",
            &head("M3", "thread: T1\n", poll),
            VerdictWord::Unsigned,
        ),
        arrival(
            "f",
            &head("M4", "thread: T1\nparent: M3\n", "RESPOND"),
            VerdictWord::Unsigned,
        ),
        arrival(
            "g",
            &head("M5", "thread: T1\n", "CLOSE"),
            VerdictWord::Unsigned,
        ),
        arrival(
            "h",
            &head("M6", "thread: T1\n", "REQUEST"),
            VerdictWord::Unsigned,
        ),
    ];
    store.accept(&batch).unwrap();
    for reference in ["M1", "T1", "thre", "mmmm"] {
        store.find(reference).unwrap();
        store.shortest(reference).unwrap();
    }
    let page = Page::first(5);
    for (open, waiting, with) in [
        (false, false, None),
        (true, false, None),
        (true, true, None),
        (true, true, Some("BOB")),
    ] {
        let with = with.map(str::to_owned);
        let first = ThreadPosition {
            at: Timestamp::from_millis(9),
            seq: 9,
        };
        for after in [None, Some(first)] {
            let filter = ThreadFilter {
                open,
                waiting,
                with: with.clone(),
                after,
            };
            store.threads(&filter, page).unwrap();
        }
    }
    store.message("M1").unwrap().unwrap();
    store.thread("T1").unwrap().unwrap();
    store.messages("T1", Some(1), 5).unwrap();
    store.inbox(page).unwrap();
    store.asked(page).unwrap();
    store
        .search(&Search::parse("words to:claude").unwrap(), page)
        .unwrap();
    store.knows("ANN").unwrap();
    use_relay(store);
    let moved = store.relocate("M2", Some("M3")).unwrap();
    assert!(matches!(moved, Moved::Done { .. }));
    assert!(matches!(
        store.relocate("M2", None).unwrap(),
        Moved::Done { .. }
    ));
    assert!(store.dismiss("M6").unwrap());
    assert!(store.forget_message("M6").unwrap());
    assert!(store.forget("T1").unwrap() > 0);
}

fn parcel(id: &str, rest: &str, intent: &str, by: Handler) -> Admission {
    let now = Timestamp::from_millis(10);
    let digest = Digest::of(b"blob");
    Admission {
        raw: digest,
        arrival: Arc::new(arrival(
            id,
            &format!("{rest}message: {id}\ncontext: c\nintent: {intent}\n"),
            VerdictWord::Unsigned,
        )),
        peer: "ci".to_owned(),
        speaker: "ANN".to_owned(),
        recipients: vec![Recipient {
            address: "CLAUDE".to_owned(),
            by,
        }],
        priority: Priority::Normal,
        claim: None,
        proof: Proof::default(),
        is_authority: false,
        backing: None,
        is_brief: true,
        answer_by: Some(now),
        expires: Some(now),
        blobs: vec![digest],
        readable: Vec::new(),
        held: None,
    }
}

/// Everything that a relay asks for, at least once.
fn use_relay(store: &mut SqliteStore) {
    let now = Timestamp::from_millis(10);
    let digest = Digest::of(b"blob");
    let batch = [
        parcel("R1", "thread: U1\n", "REQUEST", Handler::Http),
        parcel("R2", "thread: U1\nparent: R1\n", "ACK", Handler::Inbox),
        parcel("R3", "thread: U1\n", "HANDOFF", Handler::CopyPaste),
        parcel("R6", "session: t\n", "NOTE", Handler::Inbox),
        parcel("R4", "session: t\n", "CLOSE", Handler::Inbox),
        parcel("R5", "thread: U1\n", "REQUEST", Handler::Http),
        parcel("R1", "thread: U1\n", "REQUEST", Handler::Http),
    ];
    store.accept_batch(&batch).unwrap();
    hold(
        store,
        parcel("H1", "thread: U1\n", "REQUEST", Handler::Inbox),
    );
    for what in [
        ConversationId::Thread("U1".into()),
        ConversationId::Session("t".into()),
    ] {
        for unindexed in [&store.unindexed, &UnindexedMessages::default()] {
            store
                .read(|db| close::parties(db, &what, unindexed))
                .unwrap();
        }
    }
    store.index(9).unwrap();
    let inbox = InboxQuery {
        address: "CLAUDE".to_owned(),
        after: Some(Cursor::new("1")),
        limit: 5,
    };
    assert!(!store.inbox_of(&inbox).unwrap().is_empty());
    store.records(&RecordQuery::Seqs(vec![1, 2])).unwrap();
    store.record("R1").unwrap().unwrap();
    let due = store.due(now, now, 5).unwrap();
    assert_eq!(due.len(), 2);
    let leases: Vec<Lease> = due.into_iter().map(|due| due.lease).collect();
    assert_eq!(store.renew(&leases, now).unwrap(), 2);
    assert_eq!(store.release(&leases, now).unwrap(), 2);
    store.courier(&|_| true, 5).unwrap();
    for (id, thread) in [(Some("R1"), None), (None, Some("U1"))] {
        let asked = LogQuery {
            id: id.map(str::to_owned),
            thread: thread.map(str::to_owned),
            limit: 5,
            ..LogQuery::default()
        };
        store.log_entries(&asked).unwrap();
    }
    for (id, attempt) in [
        (
            "R1",
            Attempt::Failed {
                reason: String::new(),
            },
        ),
        (
            "R5",
            Attempt::Later {
                at: now,
                reason: String::new(),
            },
        ),
    ] {
        assert!(store.attempted(id, "CLAUDE", None, &attempt, now).unwrap());
    }
    assert_eq!(store.dead_letters(5).unwrap().len(), 1);
    assert_eq!(store.gauges().unwrap().dead_letters, 1);
    assert_eq!(store.requeue("R1", now).unwrap(), 1);
    store
        .note_token_uses(&[(Digest::of(b"secret"), now)])
        .unwrap();
    for state in DeliveryState::ALL {
        store
            .mark("CLAUDE", &["R1".to_owned()], state, now)
            .unwrap();
    }
    store.deliveries("R1").unwrap();
    store.overdue(now, 5).unwrap();
    let upload = Upload {
        digest,
        size: 1,
        by: "ci".to_owned(),
        parts: None,
    };
    store.add_blob(&upload, now).unwrap();
    store.uploaded_bytes("ci", digest).unwrap();
    store.handovers("T1", 0, 5).unwrap();
    for poll in store.due_polls(now, Some(1), 5).unwrap() {
        let states = [PollState::Open(Some(now)), PollState::Closed(now)];
        for state in states {
            store.count_poll(&poll, state).unwrap();
        }
    }
    store.next_times(Some(1)).unwrap();
    store.held_referring(digest, 5).unwrap();
    assert!(!store.referring(digest, 5).unwrap().is_empty());
    let asked = BlobQuery {
        digest,
        by: Some("ci".to_owned()),
        now,
        limit: 5,
    };
    store.blob_use(&asked).unwrap();
    store.drop_blobs(now, 5).unwrap();
    let what = Retention {
        before: Some(now),
        now,
        brief_before: Some(now),
        limit: 9,
    };
    assert!(
        !store
            .search_filled(&Search::parse("words").unwrap(), Page::first(5))
            .unwrap()
            .found
            .items
            .is_empty()
    );
    assert_eq!(store.retire(&what).unwrap().count, 7);
}

/// Everything about messages that wait for a person.
fn hold(store: &mut SqliteStore, mut parcel: Admission) {
    let now = Timestamp::from_millis(5);
    parcel.held = Some(HoldReason::default());
    store.accept_batch(&[parcel.clone()]).unwrap();
    store.accept_batch(&[parcel]).unwrap();
    let held = store.waiting(5).unwrap().remove(0);
    assert_eq!(store.held("H1").unwrap().unwrap(), held);
    assert_eq!(
        store.lapsed(Timestamp::from_millis(10), 5).unwrap().len(),
        1
    );
    let decision = HoldDecision {
        id: held.record.id,
        digest: held.record.digest,
        raw: held.raw,
        choice: HoldChoice::Approve,
        reason: None,
        by: "ann".to_owned(),
        at: now,
        report: None,
    };
    assert!(matches!(
        store.decide(&decision).unwrap(),
        Ruling::Done(Some(_))
    ));
}

/// Whether a line of a plan is about as many rows as were asked for: a search in an index, an index in the order that is
/// wanted and left after the last row of the page, or what a query has made itself.
fn is_bounded(line: &str, sql: &str) -> bool {
    let pages = [
        "thread_last",
        "thread_open",
        "thread_waiting",
        "message_inbox",
        "message_asked",
        "delivery_courier",
        "delivery_dead",
        "expectation_due",
        "held_waiting",
    ];
    let in_order = pages
        .iter()
        .any(|index| line.contains(&format!("INDEX {index}")));
    // There are few quarantined messages, if any.
    let made = [
        "SCAN words VIRTUAL",
        "SCAN temp.touched",
        "SCAN temp.rewriting",
        "SCAN search.removed",
        // These have a row or two.
        "SCAN search.state",
        "SCAN identity",
        "SCAN moved",
        "SCAN CONSTANT",
        "SCAN quarantine",
        "SCAN (subquery",
    ]
    .iter()
    .any(|start| line.starts_with(start));
    // Within one thread.
    let sorted = [
        "FROM party WHERE thread",
        "FROM message WHERE thread",
        "SELECT DISTINCT",
    ];
    // A later page costs as much as the first.
    let is_scan = line.starts_with("SCAN");
    let is_of_log = sql.contains("WITH wanted");
    let is_later_page = sql.contains("last_seq) < (");
    match line {
        _ if is_later_page && is_scan => false,
        _ if is_of_log && is_scan => {
            line.starts_with("SCAN wanted") || line.starts_with("SCAN quarantine")
        }
        _ if line.starts_with("SCAN") => (in_order && sql.contains("LIMIT")) || made,
        _ if line.contains("TEMP B-TREE") => {
            sorted.iter().any(|part| sql.contains(part)) || line.contains("count(DISTINCT")
        }
        _ => true,
    }
}

#[test]
fn no_query_looks_at_a_whole_table() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(folder.path().join("crosstalk.db")).unwrap();
    store.fill_words(1).unwrap();
    let statements = TraceEventCodes::SQLITE_TRACE_STMT;
    let mut index = store.search.take().unwrap();
    for db in [&mut store.db, &mut index.db] {
        db.trace_v2(statements, Some(note)).unwrap();
    }
    store.search.replace(Some(index));
    use_all(&mut store);
    // Both files are open there.
    let mut index = store.search.take().unwrap();
    for db in [&mut store.db, &mut index.db] {
        let nothing = None::<fn(TraceEvent<'_>)>;
        db.trace_v2(TraceEventCodes::empty(), nothing).unwrap();
    }
    let seen = SEEN.take();
    let own = |sql: &&String| {
        let begins = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"];
        let inner = ["'search'.'words", "\"search\".\"words", "sqlite_schema"];
        begins.iter().any(|b| sql.starts_with(b)) && !inner.iter().any(|i| sql.contains(i))
    };
    let own: Vec<&String> = seen.iter().filter(own).collect();
    assert!(own.len() > 90, "{}", own.len());
    for sql in own {
        let mut explain = index
            .db
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let nothing = vec![rusqlite::types::Null; explain.parameter_count()];
        let nothing = rusqlite::params_from_iter(nothing);
        let rows = explain
            .query_map(nothing, |row| row.get::<_, String>(3))
            .unwrap();
        for line in rows.map(Result::unwrap) {
            assert!(is_bounded(&line, sql), "{line}\n{sql}");
        }
    }
}

#[test]
fn parties_are_not_looked_for_among_all_messages_that_wait() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(folder.path().join("crosstalk.db")).unwrap();
    let statements = TraceEventCodes::SQLITE_TRACE_STMT;
    store.db.trace_v2(statements, Some(note)).unwrap();
    let messages = [
        parcel("R1", "thread: U1\n", "REQUEST", Handler::Http),
        parcel("R2", "thread: U2\n", "REQUEST", Handler::Http),
        parcel("R3", "session: t\n", "REQUEST", Handler::Http),
        parcel("R4", "thread: U1\n", "HANDOFF", Handler::Http),
        parcel("R5", "parent: R2\n", "RESPOND", Handler::Http),
        parcel("R6", "session: t\n", "CLOSE", Handler::Inbox),
        parcel("R7", "thread: U2\n", "CLOSE", Handler::Inbox),
    ];
    for message in messages {
        store.accept_batch(&[message]).unwrap();
    }
    let seen = SEEN.take();
    let has = |part: &str| seen.iter().any(|sql| sql.contains(part));
    for column in ["thread", "session"] {
        assert!(has(&format!("seq = ?1 AND {column} = ?2")));
        assert!(!has(&format!("seq > ?1 AND {column} = ?2")));
    }
}
