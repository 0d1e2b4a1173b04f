//! The store of relays in PostgreSQL, on a real server.

use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, inbox, parcel, take, take_new};
use crate::suite::relay::{self, Relay};
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::relay::port::{
    Acceptance, DeliveryQueue as _, Intake as _, RegistryChange, StoreContext, StoreEvent,
    StoreEvents,
};
use crosstalk_protocol::relay::{AcceptOutcome, Admission, Handler, Recipient, Role, TokenRecord};
use crosstalk_protocol::store::{StoreError, StoreFault};
use crosstalk_store::{PostgresPlace, PostgresRelay};
use crosstalk_testing::postgres::{Database, Postgres};
use crosstalk_testing::wait::{LIMIT, wait_for, wait_for_ok, wait_until};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

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

fn open_store(url: &str) -> Result<Arc<PostgresRelay>, StoreError> {
    let context = StoreContext {
        events: Arc::new(Ignored),
        clock: Arc::new(|| at(0)),
    };
    PostgresRelay::open(PostgresPlace::parse(url).unwrap(), context)
}

/// Why a store can't be opened.
fn refused(url: &str) -> (StoreFault, String) {
    let error = open_store(url).unwrap_err();
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
        // It is due whenever the test comes to it.
        let mut message = parcel(letter(&format!("M{number}")).at(1));
        message.recipients = vec![Recipient {
            address: "CLAUDE".into(),
            by: Handler::Exec,
        }];
        take_new(&mut one, &[message]);
    }
    let first = one.due(at(100), at(160), 12);
    let second = two.due(at(100), at(160), 12);
    assert_eq!((first.len(), second.len()), (12, 8));
    let mut all: Vec<u64> = first.iter().chain(&second).map(|d| d.seq).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 20);
}

#[test]
fn relays_that_lease_at_once_get_different_deliveries() {
    const COUNT: usize = 300;
    let database = Database::new();
    let parcels: Vec<Admission> = (0..COUNT)
        .map(|number| {
            let letter = letter(&format!("M{number}")).at(1);
            parcel(letter).to(&[("CLAUDE", Handler::Exec)])
        })
        .collect();
    take_new(&mut open(&database.url()), &parcels);
    let stores = [(); 3].map(|()| open_store(&database.url()).unwrap());
    // Long enough that no lease ends before the test does.
    let lease = |store: &PostgresRelay| relay::wait_for(store.lease(2 * LIMIT, 3)).unwrap();
    let leased = AtomicUsize::new(0);
    let all: Vec<u64> = thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|number| {
                let (store, leased) = (&stores[number % stores.len()], &leased);
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    // Until all are leased; one that is leased twice ends the test as well.
                    wait_until("all deliveries", || {
                        let due = lease(store);
                        let before = leased.fetch_add(due.len(), Ordering::SeqCst);
                        let count = before + due.len();
                        mine.extend(due.into_iter().map(|d| d.seq));
                        count >= COUNT
                    });
                    mine
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect()
    });
    let distinct: BTreeSet<u64> = all.iter().copied().collect();
    assert_eq!((all.len(), distinct.len()), (COUNT, COUNT));
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

/// Cancels commits of a role that wait for a standby, as an operator or Patroni does. Whether there was one.
fn cancel_waits(server: &Postgres, name: &str, role: &str) -> bool {
    let cancelled = server.sql(
        name,
        &format!(
            "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = '{role}'"
        ),
    );
    cancelled != "0"
}

/// From now on, commits wait for a standby that is not there.
fn lose_standbys(server: &Postgres, name: &str) {
    server.sql(
        name,
        "ALTER SYSTEM SET synchronous_standby_names = 'nowhere'",
    );
    server.sql(name, "SELECT pg_reload_conf()");
    wait_until("a commit that waits", || {
        thread::scope(|scope| {
            let write = "SELECT pg_logical_emit_message(true, 'probe', '')";
            let commit = scope.spawn(|| server.sql(name, write));
            let mut has_waited = false;
            wait_until("the end of the commit", || {
                has_waited |= cancel_waits(server, name, "postgres");
                commit.is_finished()
            });
            has_waited
        })
    });
}

/// Accepts a message, and cancels every wait for a standby meanwhile.
fn accept_cancelled(
    server: &Postgres,
    name: &str,
    store: &PostgresRelay,
    message: &Admission,
) -> Result<Acceptance, StoreError> {
    thread::scope(|scope| {
        let accept = || relay::wait_for(store.accept(Box::new(message.clone())));
        let answer = scope.spawn(accept);
        wait_until("an answer", || {
            cancel_waits(server, name, "crosstalk");
            answer.is_finished()
        });
        answer.join().unwrap()
    })
}

#[test]
fn nothing_is_acknowledged_that_no_standby_confirmed() {
    let server = Postgres::start("");
    let name = server.create_database();
    // A role that would not wait does all the same.
    server.sql(
        &name,
        "ALTER ROLE crosstalk SET synchronous_commit = 'local'",
    );
    let store = open_store(&server.url(&name)).unwrap();
    let message = parcel(letter("M1"));
    lose_standbys(&server, &name);
    let error = accept_cancelled(&server, &name, &store, &message).unwrap_err();
    assert_eq!(error.fault, StoreFault::Busy);
    let what = &error.explanation.what;
    assert!(what.contains("no standby"), "{what}");
    // It is there, for as long as this server lives: what is known only here is no answer either.
    assert_eq!(server.sql(&name, "SELECT id FROM intake"), "M1");
    let again = accept_cancelled(&server, &name, &store, &message);
    assert_eq!(again.unwrap_err().fault, StoreFault::Busy);
    // Nor at a relay that comes later, for which the message was always there.
    server.sql(&name, "ALTER SYSTEM RESET synchronous_standby_names");
    server.sql(&name, "SELECT pg_reload_conf()");
    let other = wait_for("the other relay", || open_store(&server.url(&name)).ok());
    lose_standbys(&server, &name);
    let again = accept_cancelled(&server, &name, &other, &message);
    assert_eq!(again.unwrap_err().fault, StoreFault::Busy);
    // With its standbys, the database answers.
    server.sql(&name, "ALTER SYSTEM RESET synchronous_standby_names");
    server.sql(&name, "SELECT pg_reload_conf()");
    let known = wait_for_ok(|| {
        let answer = relay::wait_for(other.accept(Box::new(message.clone())));
        answer.map_err(|error| error.to_string())
    });
    let outcome = &known.outcome;
    assert!(
        matches!(outcome, AcceptOutcome::Known { .. }),
        "{outcome:?}"
    );
}

#[test]
fn a_store_says_whether_its_server_answers() {
    let mut server = Postgres::start("");
    let name = server.create_database();
    let relay = open(&server.url(&name));
    assert!(relay.port().is_reachable());
    server.stop();
    wait_until("the loss of the server", || !relay.port().is_reachable());
    assert!(server.launch());
    wait_until("the server", || relay.port().is_reachable());
}

#[test]
fn relays_of_a_database_sign_its_log_with_one_key() {
    let database = Database::new();
    let (one, two) = (open_store(&database.url()), open_store(&database.url()));
    let (one, two) = (one.unwrap(), two.unwrap());
    let require = |store: &PostgresRelay, key: &str| relay::wait_for(store.require_log_key(key));
    require(&one, "relay.example+01+first").unwrap();
    require(&two, "relay.example+01+first").unwrap();
    let error = require(&two, "relay.example+02+second").unwrap_err();
    assert_eq!(error.fault, StoreFault::Unavailable);
    let (what, help) = (&error.explanation.what, &error.explanation.help);
    assert!(
        what.contains("relay.example+01+first") && what.contains("relay.example+02+second"),
        "{what}"
    );
    assert!(
        help.contains("replace the folder `keys`") && help.contains("docs/high-availability.md"),
        "{help}"
    );
    // It stays the key of the first relay.
    drop((one, two));
    let three = open_store(&database.url()).unwrap();
    assert!(require(&three, "relay.example+02+second").is_err());
    require(&three, "relay.example+01+first").unwrap();
}
