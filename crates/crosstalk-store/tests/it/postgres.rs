//! The store of relays in PostgreSQL, on a real server.

use crate::at;
use crate::letter::letter;
use crate::parcel::{inbox, parcel, take, take_new};
use crate::suite::relay::Relay;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::port::{RegistryChange, StoreContext, StoreEvent, StoreEvents};
use crosstalk_protocol::relay::{AcceptOutcome, Handler, Recipient, Role, TokenRecord};
use crosstalk_protocol::store::StoreFault;
use crosstalk_store::{PostgresPlace, PostgresRelay};
use crosstalk_testing::postgres::{Database, Postgres};
use crosstalk_testing::wait::wait_for_ok;
use std::sync::Arc;

fn open(url: &str) -> Relay {
    let place = PostgresPlace::parse(url).unwrap();
    Relay::new(|context| PostgresRelay::open_with_clock(place, context).unwrap())
}

fn make() -> Relay {
    let database = Database::new();
    open(&database.url()).on(database)
}

relay_suite!(super::make);

struct Ignored;

impl StoreEvents for Ignored {
    fn notify(&self, _: StoreEvent<'_>) {}
}

/// Why a store can't be opened.
fn refused(url: &str) -> (StoreFault, String) {
    let context = StoreContext {
        events: Arc::new(Ignored),
        clock: Arc::new(|| at(0)),
    };
    let place = PostgresPlace::parse(url).unwrap();
    let error = PostgresRelay::open(place, context).unwrap_err();
    assert!(!error.explanation.help.is_empty(), "{error:?}");
    (error.fault, error.explanation.what)
}

#[test]
fn relays_on_one_database_know_the_messages_of_each_other() {
    let database = Database::new();
    let mut one = open(&database.url());
    let mut two = open(&database.url());
    let message = parcel(letter("M1").thread("T1"));
    let AcceptOutcome::Accepted { seq, index, .. } = take(&mut one, &message) else {
        panic!("it is new");
    };
    assert_eq!(inbox(&two, "claude"), ["M1"]);
    let again = take(&mut two, &message);
    let AcceptOutcome::Known {
        seq: same,
        index: entry,
        ..
    } = again
    else {
        panic!("{again:?}");
    };
    assert_eq!((same, entry), (seq, index));
    let line = format!("arrived {seq}");
    wait_for_ok(|| match two.events().contains(&line) {
        true => Ok(()),
        false => Err(format!("{line} among {:?}", two.events())),
    });
    // They number on from each other.
    let next = take_new(&mut two, &[parcel(letter("M2"))]);
    let last = take_new(&mut one, &[parcel(letter("M3"))]);
    assert_eq!((next, last), (vec![seq + 1], vec![seq + 2]));
    assert_eq!(inbox(&two, "claude"), ["M1", "M2", "M3"]);
}

#[test]
fn a_token_counts_at_every_relay_at_once() {
    let database = Database::new();
    let (one, two) = (open(&database.url()), open(&database.url()));
    let token = TokenRecord {
        name: "ci".into(),
        hash: Digest::of(b"secret"),
        role: Role::Agent,
        addresses: vec!["CLAUDE".into()],
        courier: Vec::new(),
        created_at: at(0),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    let by = || "operator".to_owned();
    assert!(one.change_registry(RegistryChange::AddToken { token, by: by() }));
    assert_eq!(two.registry().tokens.len(), 1);
    let revoke = RegistryChange::RevokeToken {
        name: "ci".into(),
        by: by(),
        at: at(1),
    };
    assert!(one.change_registry(revoke));
    assert_eq!(two.registry().tokens[0].revoked_at, Some(at(1)));
}

#[test]
fn two_relays_lease_no_delivery_twice() {
    let database = Database::new();
    let mut one = open(&database.url());
    let two = open(&database.url());
    for number in 0..20 {
        let mut message = parcel(letter(&format!("M{number}")));
        message.recipients = vec![Recipient {
            address: "CLAUDE".into(),
            by: Handler::Exec,
        }];
        take_new(&mut one, &[message]);
    }
    let first = one.due(at(100), at(160), 12);
    let second = two.due(at(100), at(160), 12);
    assert_eq!((first.len(), second.len()), (12, 8));
    let mut all: Vec<u64> = first.iter().chain(&second).map(|d| d.record.seq).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 20);
}

#[test]
fn a_relay_goes_on_when_its_server_comes_back() {
    let mut server = Postgres::start("");
    let name = server.create_database();
    let mut relay = open(&server.url(&name));
    take_new(&mut relay, &[parcel(letter("M1"))]);
    server.kill();
    assert!(server.launch());
    take_new(&mut relay, &[parcel(letter("M2"))]);
    assert_eq!(inbox(&relay, "claude"), ["M1", "M2"]);
    assert!(
        relay
            .events()
            .iter()
            .all(|line| !line.starts_with("stopped"))
    );
}

#[test]
fn errors_say_why_a_database_can_not_be_used() {
    let database = Database::new();
    let (fault, what) = refused(&database.url().replace(database.name(), "nowhere"));
    assert_eq!(fault, StoreFault::Unavailable);
    assert!(what.contains("does not exist"), "{what}");

    database.sql("CREATE ROLE guest LOGIN PASSWORD 'right'");
    let wrong = database.url().replace("crosstalk@", "guest:wrong@");
    let (fault, what) = refused(&wrong);
    assert_eq!(fault, StoreFault::Unavailable);
    assert!(what.contains("does not let `guest` in"), "{what}");
    assert!(!what.contains("wrong"), "{what}");

    drop(open(&database.url()));
    database.sql("UPDATE crosstalk_version SET number = 99, oldest = 99");
    assert_eq!(refused(&database.url()).0, StoreFault::Newer);
    // Of the next version, which this program can use.
    database.sql("UPDATE crosstalk_version SET oldest = 1");
    drop(open(&database.url()));

    let name = database.name();
    database.sql(&format!(
        "ALTER DATABASE {name} SET default_transaction_read_only = on"
    ));
    let (fault, what) = refused(&database.url());
    assert_eq!(fault, StoreFault::Busy);
    assert!(what.contains("accepts changes"), "{what}");
}
