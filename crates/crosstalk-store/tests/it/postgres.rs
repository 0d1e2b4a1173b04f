//! The store of relays in PostgreSQL, on a real server.

use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, inbox, parcel, take, take_and_file, take_new};
use crate::suite::relay::{self, Relay};
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::audit::{
    ChainId, EventKind, LogEntry, LogPlace, LogQuery, SignedCheckpoint, Tree, leaf_hash,
};
use crosstalk_protocol::relay::port::{
    Acceptance, DeliveryQueue as _, Intake as _, JoinedChain, LogProof, LogWriter, NewLogEntry,
    RegistryChange, Retention, StoreContext, StoreEvent, StoreEvents,
};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, DeliveryState, Handler, Recipient, Role, TokenRecord,
};
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
    let AcceptOutcome::Accepted { seq, entry, .. } = take(&mut one, &message) else {
        panic!("it is new");
    };
    assert_eq!(inbox(&two, "claude"), ["M1"]);
    let again = take(&mut two, &message);
    let AcceptOutcome::Known {
        seq: same,
        entry: place,
        ..
    } = again
    else {
        panic!("{again:?}");
    };
    assert_eq!((same, place), (seq, entry));
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

fn writer(name: &str, number: u8) -> LogWriter {
    LogWriter {
        name: name.into(),
        key: format!("{name}+{number:02}+key"),
        secret: Digest::of(&[number]),
        at: at(i64::from(number)),
    }
}

fn join(store: &Relay, number: u8) -> JoinedChain {
    relay::wait_for(store.port().join(writer("relay.example", number))).unwrap()
}

fn entries_of(store: &Relay, chain: u64) -> Vec<LogEntry> {
    store.log_entries(&LogQuery {
        chain: ChainId(chain),
        limit: usize::MAX,
        texts: Some(at(0)),
        ..LogQuery::default()
    })
}

/// The kinds, the messages, and whether there are texts, of the entries of a chain.
fn lines(store: &Relay, chain: u64) -> Vec<(&'static str, String, bool)> {
    let entries = entries_of(store, chain).into_iter();
    let line = |e: LogEntry| {
        let id = e.leaf.id.unwrap_or_default();
        (e.leaf.kind.as_str(), id, e.text.is_some())
    };
    entries.map(line).collect()
}

#[test]
fn each_relay_writes_the_chain_of_its_key() {
    let database = Database::new();
    let (mut one, mut two) = (open(&database.url()), open(&database.url()));
    let (first, second) = (join(&one, 1), join(&two, 2));
    assert_eq!((first.chain, second.chain), (ChainId(0), ChainId(1)));
    // The relays take the secret of the first one.
    assert_eq!(second.secret, first.secret);
    let message = parcel(letter("M1"));
    take(&mut one, &message);
    take(&mut two, &parcel(letter("M2")));
    take(&mut two, &parcel(letter("M3")));
    // Whichever relay is asked again, the place is the one that was given first.
    let place = |id: u64, index| LogPlace {
        chain: ChainId(id),
        index,
    };
    let known = |store: &mut Relay, id: &str| match take(store, &parcel(letter(id))) {
        AcceptOutcome::Known { entry, .. } => entry,
        other => panic!("{other:?}"),
    };
    for (id, at) in [
        ("M1", place(0, 0)),
        ("M2", place(1, 0)),
        ("M3", place(1, 1)),
    ] {
        assert_eq!((known(&mut one, id), known(&mut two, id)), (at, at));
        assert_eq!(two.record(id).unwrap().entry, Some(at));
    }
    // Both serve all chains.
    for store in [&one, &two] {
        let chains = relay::wait_for(store.port().chains()).unwrap();
        let keys: Vec<&str> = chains.iter().map(|c| c.key.as_str()).collect();
        assert_eq!(keys, ["relay.example+01+key", "relay.example+02+key"]);
        assert_eq!(lines(store, 0), [("accepted", "M1".to_owned(), true)]);
        let of_two = ["M2", "M3"].map(|id| ("accepted", id.to_owned(), true));
        assert_eq!(lines(store, 1), of_two);
        let head = relay::wait_for(store.port().log_head(ChainId(1))).unwrap();
        assert_eq!((head.size, head.checkpoint), (2, None));
    }
    // The same key gets its chain back.
    drop(two);
    let mut three = open(&database.url());
    assert_eq!(join(&three, 2), second);
    take(&mut three, &parcel(letter("M4")));
    assert_eq!(entries_of(&one, 1).len(), 3);
}

#[test]
fn a_message_may_have_entries_in_several_chains() {
    let database = Database::new();
    let (mut one, mut two) = (open(&database.url()), open(&database.url()));
    join(&one, 1);
    join(&two, 2);
    let plain = letter("M1").thread("T1").at(10);
    take_and_file(
        &mut one,
        &[parcel(plain), parcel(letter("M2").at(10)).expires(50)],
    );
    // The other relay learns better, delivers and erases.
    let mut signed = parcel(
        letter("M1")
            .thread("T1")
            .at(10)
            .verdict(VerdictWord::Verified, Some("k")),
    );
    let arrival = Arc::make_mut(&mut signed.arrival);
    arrival.text = arrival.text.replace("body: |\n", "\nbody: |\n");
    take(&mut two, &signed);
    two.mark("CLAUDE", &["M1".into()], DeliveryState::Read, at(20));
    let what = Retention {
        before: None,
        now: at(60),
        brief_before: None,
        limit: 9,
    };
    assert_eq!(two.erase(what).0, 1);
    assert_eq!(
        lines(&one, 0),
        [
            ("accepted", "M1".to_owned(), false),
            ("accepted", "M2".to_owned(), false)
        ]
    );
    let expected = [
        ("accepted", "M1", true),
        ("delivered", "M1", false),
        ("erased", "M2", false),
    ];
    assert_eq!(
        lines(&one, 1),
        expected.map(|(kind, id, is)| (kind, id.to_owned(), is))
    );
    assert_eq!(
        entries_of(&one, 1)[0].text.as_ref(),
        Some(&signed.arrival.text)
    );
    // The place of a message stays the first one.
    assert_eq!(one.record("M1").unwrap().entry, Some(LogPlace::first(0)));
    // What is asked about a message or a thread is found in each chain.
    let found = |chain, id: Option<&str>, thread: Option<&str>| {
        let query = LogQuery {
            chain: ChainId(chain),
            id: id.map(str::to_owned),
            thread: thread.map(str::to_owned),
            limit: 9,
            ..LogQuery::default()
        };
        let found = one.log_entries(&query).into_iter().map(|e| e.index);
        found.collect::<Vec<u64>>()
    };
    assert_eq!(
        (found(0, Some("M1"), None), found(1, Some("M1"), None)),
        (vec![0], vec![0, 1])
    );
    assert_eq!(
        (found(0, None, Some("T1")), found(1, None, Some("T1"))),
        (vec![0], vec![0, 1])
    );
    assert_eq!(
        (found(0, Some("M2"), None), found(1, Some("M2"), None)),
        (vec![1], vec![2])
    );
}

#[test]
fn each_chain_has_its_tree_and_its_checkpoints() {
    let database = Database::new();
    let (one, two) = (open(&database.url()), open(&database.url()));
    join(&one, 1);
    join(&two, 2);
    let refused = |n: u64| NewLogEntry {
        kind: EventKind::Refused,
        at: at(i64::try_from(n).unwrap()),
        id: None,
        canonical: None,
        raw: None,
        detail: None,
    };
    let sizes = [300_u64, 520];
    for (store, size) in [&one, &two].into_iter().zip(sizes) {
        let new = (0..size).map(|n| refused(n + size));
        relay::wait_for(store.port().log(new.collect())).unwrap();
    }
    for (number, (store, size)) in (0_u64..).zip([&one, &two].into_iter().zip(sizes)) {
        let hashed = relay::wait_for(store.port().hash_log()).unwrap();
        let leaves = entries_of(store, number).into_iter();
        let leaves = leaves.map(|e| leaf_hash(e.leaf.to_string().as_bytes()));
        let tree = Tree::of(leaves);
        assert_eq!((hashed.size, Some(hashed.root)), (size, tree.root(size)));
        let signed = SignedCheckpoint {
            size,
            at: at(1),
            root: hashed.root,
            note: format!("note of {number}"),
        };
        assert_eq!(
            relay::wait_for(store.port().keep_checkpoint(signed.clone())).unwrap(),
            signed
        );
        // The other relay proves it, too.
        for prover in [&one, &two] {
            let chain = ChainId(number);
            let head = relay::wait_for(prover.port().log_head(chain)).unwrap();
            assert_eq!((head.size, head.checkpoint.as_ref()), (size, Some(&signed)));
            let proof = LogProof::Inclusion { index: 257, size };
            let path = relay::wait_for(prover.port().log_proof(chain, proof)).unwrap();
            assert_eq!(path, Some(tree.inclusion(257, size)));
            let proof = LogProof::Consistency {
                from: 256,
                to: size,
            };
            let path = relay::wait_for(prover.port().log_proof(chain, proof)).unwrap();
            assert_eq!(path, Some(tree.consistency(256, size)));
        }
    }
}

#[test]
fn relays_of_a_database_have_one_name() {
    let database = Database::new();
    let (one, two) = (open(&database.url()), open(&database.url()));
    join(&one, 1);
    let error = relay::wait_for(two.port().join(writer("other.example", 2))).unwrap_err();
    assert_eq!(error.fault, StoreFault::Unavailable);
    let (what, help) = (&error.explanation.what, &error.explanation.help);
    for text in ["`relay.example`", "`other.example`"] {
        assert!(what.contains(text), "{what}");
    }
    assert!(
        help.contains("--name") && help.contains("docs/high-availability.md"),
        "{help}"
    );
    // Nothing was registered for it.
    assert_eq!(relay::wait_for(two.port().chains()).unwrap().len(), 1);
}

/// Takes the chains out of a database, as a program of the version before had made it.
const BEFORE_CHAINS: &str = "DROP VIEW log, tile, checkpoint; \
    ALTER TABLE chain_entry DROP COLUMN chain; ALTER TABLE chain_entry RENAME TO log; \
    ALTER TABLE log ADD CONSTRAINT log_pkey PRIMARY KEY (place); \
    ALTER TABLE chain_tile DROP COLUMN chain; ALTER TABLE chain_tile RENAME TO tile; \
    ALTER TABLE tile ADD CONSTRAINT tile_pkey PRIMARY KEY (level, place); \
    ALTER TABLE chain_checkpoint DROP COLUMN chain; ALTER TABLE chain_checkpoint RENAME TO checkpoint; \
    ALTER TABLE checkpoint ADD CONSTRAINT checkpoint_pkey PRIMARY KEY (size); \
    ALTER TABLE intake DROP COLUMN chain, DROP COLUMN renewed_chain; \
    ALTER TABLE held DROP COLUMN chain; ALTER TABLE renewal DROP COLUMN chain; \
    ALTER TABLE renewal ADD CONSTRAINT renewal_pkey PRIMARY KEY (seq, place); \
    DROP TABLE chain, relay_identity, trust, trust_source, blob_part; ALTER TABLE blob DROP COLUMN parts; \
    UPDATE crosstalk_version SET number = 1, oldest = 1; \
    DELETE FROM log_key; INSERT INTO log_key (one, key) VALUES (TRUE, 'relay.example+01+key')";

#[test]
fn the_log_of_the_version_before_is_the_first_chain() {
    let database = Database::new();
    let mut old = open(&database.url());
    take_and_file(&mut old, &[parcel(letter("M1")), parcel(letter("M2"))]);
    let before = entries_of(&old, 0);
    drop(old);
    database.sql(BEFORE_CHAINS);
    let mut one = open(&database.url());
    assert_eq!(entries_of(&one, 0), before);
    // A relay of the version before goes on beside this one, with the key that all had.
    let oldest = || database.sql("SELECT oldest FROM crosstalk_version");
    assert_eq!(oldest().trim(), "1");
    assert_eq!(join(&one, 1).chain, ChainId::FIRST);
    database.sql(
        "INSERT INTO log (place, kind, at) SELECT coalesce(max(place) + 1, 0), 1, 7 FROM log; \
         INSERT INTO tile (level, place, root, hashes) VALUES (0, 0, '', ''); \
         INSERT INTO checkpoint (size, at, root, note) VALUES (1, 1, '', 'old'); \
         DELETE FROM checkpoint WHERE size = 1; DELETE FROM tile; \
         INSERT INTO log_key (one, key) VALUES (TRUE, 'relay.example+01+key') ON CONFLICT DO NOTHING",
    );
    take_new(&mut one, &[parcel(letter("M3"))]);
    let kinds: Vec<&str> = entries_of(&one, 0)
        .iter()
        .map(|e| e.leaf.kind.as_str())
        .collect();
    assert_eq!(kinds, ["accepted", "accepted", "refused", "accepted"]);
    // Relays of other names do not come in.
    let two = open(&database.url());
    assert!(relay::wait_for(two.port().join(writer("other.example", 2))).is_err());
    assert_eq!(oldest().trim(), "1");
    // A second chain is more than that version knows.
    assert_eq!(join(&two, 2).chain, ChainId(1));
    assert_ne!(oldest().trim(), "1");
}
