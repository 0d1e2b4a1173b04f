//! What only the store of a relay in a file shows: starts and ends, its threads and queues, and people who use the file.

use crate::letter::letter;
use crate::parcel::{Parcel as _, TakesParcels as _, file_all, inbox, parcel, take_new};
use crate::suite::relay::{Relay, wait_for};
use crate::{Place, at};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::port::{
    AttemptResult, ConsentLedger as _, GrantQuery, HandedOut, Intake as _, Mailbox as _,
    MailboxChange, Maintenance as _, MessageViews as _, RecordQuery, Registry as _, Retention,
    StoreContext, StoreEvent, StoreEvents, StoreFuture, StoreStop,
};
use crosstalk_protocol::relay::{
    AcceptOutcome, Attempt, DeliveryState, Handler, Role, TokenRecord,
};
use crosstalk_protocol::store::{StoreError, StoreFault};
use crosstalk_store::{SqliteRelay, SqliteStore};
use crosstalk_testing::wait::wait_until;
use rusqlite::Connection;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

fn open(place: &Place) -> Relay {
    Relay::new(|context| SqliteRelay::open(place.home().store(), context).unwrap())
}

fn open_lazy(place: &Place) -> Relay {
    Relay::new(|context| SqliteRelay::open_lazy(place.home().store(), context).unwrap())
}

/// Polls a command once: it is in the queue of the writer after that.
fn begin<T>(command: &mut StoreFuture<'_, T>) -> Poll<Result<T, StoreError>> {
    Pin::new(command).poll(&mut Context::from_waker(Waker::noop()))
}

/// Keeps the writer from committing until the connection is dropped.
fn blocked(place: &Place) -> Connection {
    let other = Connection::open(place.home().store()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

/// A lease is told apart from a wait: a start ends leases, and leaves alone what waits for its next attempt.
#[test]
fn leases_of_a_killed_relay_end_at_its_start() {
    let place = Place::new();
    let mut store = open(&place);
    let one = |id: &str| parcel(letter(id).thread("T1").at(1)).to(&[("CLAUDE", Handler::Http)]);
    take_new(&mut store, &[one("M1"), one("M2")]);
    let leased = store.due(at(10), at(400), 9);
    assert_eq!(leased.len(), 2);
    let later = Attempt::Later {
        at: at(300),
        reason: "busy".into(),
    };
    assert!(store.attempted("M2", "CLAUDE", Some(at(10)), &later, at(11)));
    drop(store);

    let store = open(&place);
    assert_eq!(store.events(), ["interrupted 1"]);
    let delivery = store.deliveries("M1").remove(0);
    assert_eq!(delivery.leased_at, None);
    assert!(delivery.public_reason().unwrap().starts_with("interrupted"));
    let ids = |now, end| {
        let due = store.due(at(now), at(end), 9).into_iter();
        due.map(|d| d.lease.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(20, 400), ["M1"]);
    assert_eq!(ids(300, 500), ["M2"]);
    store.release(&[], at(300));
    drop(store);
    assert_eq!(open(&place).events(), ["interrupted 2"]);
    assert!(open(&place).events().is_empty());
}

/// One process is the relay, until its store is closed.
#[test]
fn a_store_has_one_relay_at_a_time() {
    let place = Place::new();
    let path = place.home().store();
    let relay = open(&place);
    let context = StoreContext {
        events: Arc::new(Silent),
        clock: Arc::new(|| at(0)),
    };
    let busy = SqliteRelay::open(&path, context.clone()).unwrap_err();
    assert_eq!(busy.fault, StoreFault::Busy);
    wait_for(relay.port().stop()).unwrap();
    // The handle is still there, and nothing of the store is.
    let next = SqliteRelay::open(&path, context).unwrap();
    let of_id = RecordQuery::Ids(vec!["M1".to_owned()]);
    for error in [
        wait_for(relay.port().caught_up()).unwrap_err(),
        wait_for(relay.port().records(of_id)).unwrap_err(),
        wait_for(relay.port().registry(None)).unwrap_err(),
    ] {
        assert_eq!(error.fault, StoreFault::Busy, "{error}");
    }
    wait_for(relay.port().stop()).unwrap();
    assert_eq!(relay.events(), ["stopped Told"]);
    drop(relay);
    wait_for(next.caught_up()).unwrap();
}

struct Silent;

impl StoreEvents for Silent {
    fn notify(&self, _: StoreEvent<'_>) {}
}

/// What was accepted is indexed before a store stops, and at its next start if there was no time.
#[test]
fn accepted_messages_are_indexed_after_a_restart() {
    let one = |id: &str| parcel(letter(id).thread("T1"));
    let place = Place::new();
    let filed = || {
        let store = SqliteStore::open(place.home().store()).unwrap();
        store.index_progress().unwrap()
    };
    let mut store = open_lazy(&place);
    take_new(&mut store, &[one("M1"), one("M2")]);
    assert_eq!(filed().left, 2);
    drop(store);
    assert_eq!(filed().left, 2);
    let mut store = open_lazy(&place);
    take_new(&mut store, &[one("M3")]);
    assert_eq!(filed().left, 3);
    wait_for(store.port().stop()).unwrap();
    assert_eq!((filed().left, filed().through), (0, 3));
    let mut store = open(&place);
    assert_eq!(file_all(&mut store).filed, 0);
    assert_eq!(store.ids("T1"), ["M1", "M2", "M3"]);
}

#[test]
fn a_command_that_is_not_polled_does_nothing() {
    let place = Place::new();
    let mut store = open(&place);
    drop(store.port().accept(Box::new(parcel(letter("M1")))));
    assert_eq!(file_all(&mut store).filed, 0);
    assert_eq!(store.record("M1"), None);
    // One that was begun is carried out, though its caller is gone.
    let other = blocked(&place);
    let mut begun = store.port().accept(Box::new(parcel(letter("M2"))));
    assert!(begin(&mut begun).is_pending());
    drop(begun);
    drop(other);
    file_all(&mut store);
    assert!(store.record("M2").is_some());
}

/// Messages that come while the writer is busy are in one transaction.
#[test]
fn messages_that_come_together_are_written_together() {
    let place = Place::new();
    let store = open(&place);
    let other = blocked(&place);
    let mut commands: Vec<_> = (0..200)
        .map(|n| {
            let one = parcel(letter(&format!("M{n}")).thread("T1"));
            store.port().accept(Box::new(one))
        })
        .collect();
    assert!(commands.iter_mut().all(|c| begin(c).is_pending()));
    assert!(
        store.events().is_empty(),
        "nothing is answered before it is durable"
    );
    drop(other);
    for command in commands {
        wait_for(command).unwrap();
    }
    let events = store.events();
    let batches = events.iter().filter(|e| *e == "batch").count();
    assert!((1..=2).contains(&batches), "{batches}");
    assert_eq!(events.len(), 200 + batches);
}

/// Results of deliveries and acknowledgements that come while the writer is busy are in one transaction, and each gets its own
/// answer.
#[test]
fn changes_that_come_together_are_written_together() {
    let place = Place::new();
    let mut store = open(&place);
    let ids: Vec<String> = (0..60).map(|n| format!("M{n}")).collect();
    let one = |id: &String| parcel(letter(id).thread("T1").at(1)).to(&[("CLAUDE", Handler::Http)]);
    let all: Vec<_> = ids.iter().map(one).collect();
    take_new(&mut store, &all);
    take_new(&mut store, &[parcel(letter("A1").thread("T1"))]);
    file_all(&mut store);
    let leased = store.due(at(10), at(400), 50);
    assert_eq!(leased.len(), 50);
    let lease_of = |id: &String| leased.iter().find(|d| d.lease.id == *id);
    let before = commits(&place);
    let other = blocked(&place);
    let mut finished: Vec<_> = ids
        .iter()
        .map(|id| {
            store.port().finish(AttemptResult {
                id: id.clone(),
                to: "CLAUDE".to_owned(),
                // Ten of them under no lease that holds.
                leased_at: lease_of(id).map(|d| d.lease.at).or(Some(at(9))),
                attempt: Attempt::Delivered,
                at: at(11),
                notices: Vec::new(),
            })
        })
        .collect();
    assert!(finished.iter_mut().all(|c| begin(c).is_pending()));
    let acknowledged = DeliveryState::Acknowledged;
    let changes = ["A1", "nothing"]
        .map(|id| MailboxChange::reach("CLAUDE", vec![id.to_owned()], acknowledged, at(12)));
    let mut marked = changes.map(|change| store.port().change_mailbox(change));
    assert!(marked.iter_mut().all(|c| begin(c).is_pending()));
    drop(other);
    let counts = finished.into_iter().map(|c| wait_for(c).unwrap());
    assert_eq!(counts.filter(|counts| *counts).count(), 50);
    assert_eq!(
        marked.map(|change| wait_for(change).unwrap()),
        [vec!["A1".to_owned()], vec![]]
    );
    let (delivered, made) = (DeliveryState::Delivered, commits(&place) - before);
    assert_eq!(store.deliveries("M0").remove(0).state, delivered);
    assert_eq!(store.deliveries("A1").remove(0).state, acknowledged);
    assert!((1..=3).contains(&made), "{made}");
}

/// How many commits the log of the store has.
fn commits(place: &Place) -> usize {
    let mut log = place.home().store().into_os_string();
    log.push("-wal");
    let log = std::fs::read(log).unwrap();
    let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let page = word(&log[8..12]) as usize;
    let (salts, frames) = (&log[16..24], log[32..].chunks_exact(24 + page));
    // A frame that ends a transaction has the size of the file.
    let is_commit = |frame: &&[u8]| &frame[8..16] == salts && word(&frame[4..8]) != 0;
    frames.filter(is_commit).count()
}

/// What a relay accepted before its end counts for what comes after it, also if it is not indexed: the sender of an unindexed
/// message is a party of its thread.
#[test]
fn unindexed_messages_of_an_earlier_process_have_parties() {
    let place = Place::new();
    let one = |id: &str, from: &str| letter(id).thread("T1").between(from, "CLAUDE");
    let close = |id: &str, from: &str| parcel(one(id, from).intent("CLOSE"));
    let mut store = open_lazy(&place);
    take_new(&mut store, &[parcel(one("M1", "ANN"))]);
    drop(store);
    let mut store = open_lazy(&place);
    take_new(&mut store, &[parcel(one("M2", "ANN"))]);
    let outcomes = store.take_all(&[close("C1", "EVE"), close("C2", "ANN")]);
    let rejected = matches!(outcomes[0], AcceptOutcome::Rejected(_));
    let accepted = matches!(outcomes[1], AcceptOutcome::Accepted { .. });
    assert!(rejected && accepted, "{outcomes:?}");
}

/// A writer that is too far behind gets nothing more, and does what it has got.
#[test]
fn a_full_queue_is_refused() {
    let place = Place::new();
    let store = open(&place);
    let other = blocked(&place);
    let mut first = store.port().accept(Box::new(parcel(letter("M1"))));
    assert!(begin(&mut first).is_pending());
    let mut waiting = Vec::new();
    let refused = loop {
        let mut command = store.port().caught_up();
        match begin(&mut command) {
            Poll::Pending => waiting.push(command),
            Poll::Ready(answer) => break answer.unwrap_err(),
        }
        assert!(waiting.len() < 100_000);
    };
    assert_eq!(refused.fault, StoreFault::Busy);
    drop(other);
    wait_for(first).unwrap();
    for command in waiting {
        wait_for(command).unwrap();
    }
    wait_for(store.port().caught_up()).unwrap();
}

/// Panics when a message arrives, and notes why the store stopped.
#[derive(Default)]
struct Panics(Mutex<Option<StoreStop>>);

impl StoreEvents for Panics {
    fn notify(&self, event: StoreEvent<'_>) {
        match event {
            StoreEvent::Arrived(_) => panic!("a defect"),
            StoreEvent::Stopped(why) => *self.0.lock().unwrap() = Some(why),
            _ => {}
        }
    }
}

#[test]
fn a_writer_that_panics_says_so() {
    let place = Place::new();
    let events = Arc::new(Panics::default());
    let context = StoreContext {
        events: Arc::clone(&events) as Arc<dyn StoreEvents>,
        clock: Arc::new(|| at(0)),
    };
    let store = SqliteRelay::open(place.home().store(), context).unwrap();
    let accept = || store.accept(Box::new(parcel(letter("M1"))));
    for _ in 0..2 {
        let error = wait_for(accept()).unwrap_err();
        assert_eq!(error.fault, StoreFault::Unavailable);
        assert!(error.to_string().contains("panicked"), "{error}");
    }
    let why = events.0.lock().unwrap().clone();
    assert!(matches!(why, Some(StoreStop::Failed(_))), "{why:?}");
    // What is there can still be read.
    let of_id = RecordQuery::Ids(vec!["M1".to_owned()]);
    assert_eq!(wait_for(store.records(of_id)).unwrap().len(), 1);
    wait_for(store.stop()).unwrap();
}

/// Nothing is accepted any more after a query, a command or a look at the tokens has found that the store is broken.
#[test]
fn a_store_that_is_found_damaged_stops() {
    type Ask = fn(&SqliteRelay) -> Result<(), StoreError>;
    let asks: [(&str, Ask); 3] = [
        ("token", |store| wait_for(store.registry(None)).map(drop)),
        ("consent", |store| {
            wait_for(store.grants(GrantQuery::Named(vec!["G".to_owned()]))).map(drop)
        }),
        ("owed", |store| {
            wait_for(store.drop_notices(vec![1])).map(drop)
        }),
    ];
    for (table, ask) in asks {
        let place = Place::new();
        let events = Arc::new(Panics::default());
        let context = StoreContext {
            events: Arc::clone(&events) as Arc<dyn StoreEvents>,
            clock: Arc::new(|| at(0)),
        };
        let store = SqliteRelay::open(place.home().store(), context).unwrap();
        ask(&store).unwrap();
        let other = Connection::open(place.home().store()).unwrap();
        other
            .execute_batch(&format!(
                "PRAGMA foreign_keys = OFF; DROP TABLE \"{table}\""
            ))
            .unwrap();
        assert_eq!(ask(&store).unwrap_err().fault, StoreFault::Damaged);
        wait_until("the store stops", || events.0.lock().unwrap().is_some());
        let why = events.0.lock().unwrap().clone();
        assert!(
            matches!(why, Some(StoreStop::Failed(_))),
            "{table}: {why:?}"
        );
    }
}

/// Notes why the store stopped.
#[derive(Default)]
struct NotesStop(Mutex<Option<StoreStop>>);

impl StoreEvents for NotesStop {
    fn notify(&self, event: StoreEvent<'_>) {
        if let StoreEvent::Stopped(why) = event {
            *self.0.lock().unwrap() = Some(why);
        }
    }
}

/// A change that fails stops the store, though its caller is gone or never waited for it.
#[test]
fn a_change_that_nobody_waits_for_stops_a_damaged_store() {
    type Begin = fn(&SqliteRelay);
    let changes: [(&str, Begin); 2] = [
        ("owed", |store| {
            assert!(begin(&mut store.drop_notices(vec![1])).is_pending());
        }),
        ("delivery", |store| {
            store.hand_out(HandedOut {
                address: "CLAUDE".to_owned(),
                ids: vec!["M1".to_owned()],
                at: at(1),
            });
        }),
    ];
    for (table, change) in changes {
        let place = Place::new();
        let events = Arc::new(NotesStop::default());
        let context = StoreContext {
            events: Arc::clone(&events) as Arc<dyn StoreEvents>,
            clock: Arc::new(|| at(0)),
        };
        let store = SqliteRelay::open(place.home().store(), context).unwrap();
        wait_for(store.accept(Box::new(parcel(letter("M1"))))).unwrap();
        wait_for(store.caught_up()).unwrap();
        let other = Connection::open(place.home().store()).unwrap();
        other
            .execute_batch(&format!(
                "PRAGMA foreign_keys = OFF; DROP TABLE \"{table}\"; BEGIN IMMEDIATE"
            ))
            .unwrap();
        change(&store);
        drop(other);
        wait_until("the store stops", || events.0.lock().unwrap().is_some());
        let why = events.0.lock().unwrap().clone();
        assert!(
            matches!(why, Some(StoreStop::Failed(_))),
            "{table}: {why:?}"
        );
    }
}

/// Messages that are handed out while the writer is busy take room in its queue, and no more than that.
#[test]
fn notes_of_handed_out_messages_are_bounded() {
    let place = Place::new();
    let mut store = open(&place);
    take_new(&mut store, &[parcel(letter("M1"))]);
    let other = blocked(&place);
    let mut first = store.port().accept(Box::new(parcel(letter("M2"))));
    assert!(begin(&mut first).is_pending());
    let handed = HandedOut {
        address: "CLAUDE".to_owned(),
        ids: vec!["M1".to_owned()],
        at: at(1),
    };
    for _ in 0..100_000 {
        store.port().hand_out(handed.clone());
    }
    let refused = wait_for(store.port().caught_up()).unwrap_err();
    assert_eq!(refused.fault, StoreFault::Busy);
    drop(other);
    wait_for(first).unwrap();
    wait_until("the queue has room", || {
        wait_for(store.port().caught_up()).is_ok()
    });
    let state = store.deliveries("M1").remove(0).state;
    assert_eq!(state, DeliveryState::Delivered);
}

/// Tokens that a person makes in another process count at once.
#[test]
fn tokens_of_other_processes_are_seen() {
    let place = Place::new();
    let store = open(&place);
    let known = store.registry();
    assert_eq!(known.tokens, []);
    let token = TokenRecord {
        name: "ann".to_owned(),
        hash: Digest::of(b"ann"),
        role: Role::Person,
        addresses: Vec::new(),
        created_at: at(1),
        expires_at: None,
        courier: Vec::new(),
        revoked_at: None,
        last_used_at: None,
    };
    let mut other = SqliteStore::open(place.home().store()).unwrap();
    assert!(other.add_token(&token, "ops").unwrap());
    let ask = |version| wait_for(store.port().registry(Some(version))).unwrap();
    let news = ask(known.version).unwrap();
    assert_eq!(news.tokens, [token]);
    assert_eq!(ask(news.version), None);
    assert!(other.revoke_token("ann", "ops", at(2)).unwrap());
    assert!(ask(news.version).unwrap().tokens[0].revoked_at.is_some());
}

/// What is not indexed yet is erased when it is.
#[test]
fn only_indexed_messages_are_erased() {
    let place = Place::new();
    let mut store = open_lazy(&place);
    take_new(&mut store, &[parcel(letter("M1").thread("T1")).expires(50)]);
    let erase = |now: Timestamp| Retention {
        before: None,
        now,
        brief_before: None,
        limit: 9,
    };
    assert_eq!(store.erase(erase(at(50))), (0, false));
    assert_eq!(inbox(&store, "CLAUDE"), ["M1"]);
    store.file_all();
    assert_eq!(store.erase(erase(at(49))), (0, false));
    assert_eq!(store.erase(erase(at(50))), (1, false));
}
