//! Older, newer and foreign files.

use super::Sqlite;
use crate::letter::letter;
use crate::parcel::{Parcel as _, file_all, inbox, parcel, refused, take_and_file};
use crate::{Place, again};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::relay::{
    AcceptOutcome, DeliveryState, Handler, PollState, Role, TokenRecord,
};
use crosstalk_protocol::store::{Page, Side, StoreFault, ThreadFilter, Wait, Way};
use crosstalk_store::{Home, SqliteStore, StoreOpening};
use rusqlite::Connection;
use std::path::Path;

/// A store with some messages, taken back to version 1: the intake alone.
fn old(place: &Place, messages: usize) {
    let mut store = SqliteStore::open(place.home().store()).unwrap();
    let batch: Vec<_> = (0..messages)
        .map(|n| {
            let one = letter(&format!("M{n:04}")).thread(&format!("T{:03}", n / 4));
            let one = one.side(Side::ToMe);
            match n % 2 {
                0 => one.arrival(),
                _ => one
                    .parent(&format!("M{:04}", n - 1))
                    .intent("RESPOND")
                    .between("CLAUDE", "KALLE")
                    .arrival(),
            }
        })
        .collect();
    store.accept(&batch).unwrap();
    drop(store);
    let db = Connection::open(place.home().store()).unwrap();
    db.execute_batch(
        "DROP TABLE message; DROP TABLE answer; DROP TABLE thread; DROP TABLE party; PRAGMA user_version = 1;",
    )
    .unwrap();
    take_back_the_relay(&db);
    db.execute_batch("DROP TABLE words").unwrap();
}

/// What version 8 added.
fn take_back_the_watch(db: &Connection) {
    db.execute_batch("ALTER TABLE token DROP COLUMN last_used_at; DROP INDEX delivery_waiting")
        .unwrap();
}

/// What version 16 changed: SQLite counted the positions of messages. The highest that it gave is 7.
fn take_back_the_count(db: &Connection) {
    db.execute_batch(
        "DELETE FROM progress WHERE name = 'given'; PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = replace(sql, 'seq INTEGER PRIMARY KEY,', 'seq INTEGER PRIMARY KEY AUTOINCREMENT,') \
         WHERE name = 'intake'; PRAGMA writable_schema = RESET; \
         INSERT INTO sqlite_sequence (name, seq) SELECT 'intake', max(7, coalesce(max(seq), 0)) FROM intake",
    )
    .unwrap();
}

/// What version 14 added, and everything after it.
fn take_back_the_audit(db: &Connection) {
    take_back_the_count(db);
    db.execute_batch("DROP TABLE renewal; DROP INDEX intake_erased")
        .unwrap();
}

/// What version 13 added, and everything after it. Before it, the words were in the store.
fn take_back_the_search(db: &Connection) {
    take_back_the_audit(db);
    db.execute_batch(
        "DROP TABLE identity; CREATE VIRTUAL TABLE words USING fts5 (body, context, sender, receiver, intent, \
         content = '', columnsize = 0, prefix = '2 3', tokenize = 'unicode61 remove_diacritics 2')",
    )
    .unwrap();
}

/// What version 11 added, and everything after it.
fn take_back_the_leases(db: &Connection) {
    take_back_the_search(db);
    db.execute_batch("ALTER TABLE delivery DROP COLUMN leased_at")
        .unwrap();
}

/// What version 9 added, and everything after it.
fn take_back_the_moves(db: &Connection) {
    take_back_the_leases(db);
    db.execute_batch(
        "DROP TABLE moved; ALTER TABLE intake DROP COLUMN truncated; DROP INDEX IF EXISTS message_asked",
    )
    .unwrap();
}

/// What is in every table but the one of the words, and what counts positions.
fn contents(path: &Path) -> Vec<String> {
    let db = Connection::open(path).unwrap();
    let texts = |sql: &str| -> Vec<String> {
        let mut find = db.prepare(sql).unwrap();
        let columns = find.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            let values = (0..columns).map(|n| row.get_ref_unwrap(n));
            Ok(values.map(|v| format!("{v:?} ")).collect())
        };
        let rows = find.query_map([], row).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'words%' \
        AND name <> 'identity' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut find = db.prepare(tables).unwrap();
    let names = find.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let names: Vec<String> = names.map(Result::unwrap).collect();
    let rows = |name: &String| {
        let but = match name.as_str() {
            "progress" => "WHERE name <> 'given'",
            _ => "",
        };
        texts(&format!("SELECT '{name}', * FROM {name} {but}"))
    };
    names.iter().flat_map(rows).collect()
}

/// The texts of all tables and indexes.
fn schema(path: &Path) -> Vec<(String, Option<String>)> {
    let db = Connection::open(path).unwrap();
    let mut find = db
        .prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")
        .unwrap();
    let rows = find.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// A store of version 15 is brought up: its rows stay where they are, and no position is given twice.
#[test]
fn store_of_version_15_counts_its_positions_itself() {
    let (new, older) = (Place::new(), Place::new());
    for place in [&new, &older] {
        let mut store = SqliteStore::open(place.home().store()).unwrap();
        let one = letter("M1").side(Side::ToMe).arrival();
        store.accept(&[one]).unwrap();
    }
    let path = older.home().store();
    let db = Connection::open(&path).unwrap();
    take_back_the_count(&db);
    db.execute_batch("CREATE UNIQUE INDEX message_id ON message (id); PRAGMA user_version = 15")
        .unwrap();
    drop(db);
    assert_ne!(schema(&path), schema(&new.home().store()));
    let before = contents(&path);
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.opened().migrated_from, Some(15));
    assert_eq!(schema(&path), schema(&new.home().store()));
    assert_eq!(contents(&path), before);
    let seqs = |store: &SqliteStore, thread: &str| -> Vec<u64> {
        let listed = store.messages(thread, None, 9).unwrap();
        listed.items.into_iter().map(|r| r.seq).collect()
    };
    for (id, seq) in [("M2", 8), ("M3", 9), ("M4", 10)] {
        store.accept(&[letter(id).thread(id).arrival()]).unwrap();
        assert_eq!(seqs(&store, id), [seq]);
        assert!(store.forget_message(id).unwrap());
    }
    take_and_file(&mut store, &[parcel(letter("M5").thread("M5"))]);
    assert_eq!(seqs(&store, "M5"), [11]);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

/// A store that the program of version 11 made is brought up: the words leave it, and nothing else changes.
#[test]
fn words_of_version_11_move_into_a_file_of_their_own() {
    let place = Place::new();
    let path = place.home().store();
    std::fs::write(&path, include_bytes!("../fixture/words.v11.db")).unwrap();
    let number = |sql: &str| {
        let db = Connection::open(&path).unwrap();
        db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let pages = || number("PRAGMA page_count");
    let (before, pages_before) = (contents(&path), pages());
    let mut store = SqliteStore::open_existing(&path).unwrap().unwrap();
    assert_eq!(store.opened().migrated_from, Some(11));
    assert_eq!(contents(&path), before);
    assert_eq!(
        number("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'words%'"),
        0
    );
    assert!(pages() <= pages_before, "its room is used again");
    let found = |store: &SqliteStore, words: &str| {
        let search = crosstalk_protocol::store::Search::parse(words).unwrap();
        let found = store.search(&search, Page::first(9)).unwrap();
        let ids = found.items.into_iter().map(|r| r.id);
        ids.collect::<Vec<String>>()
    };
    assert_eq!(found(&store, "ripe"), ["M4", "M3", "M2", "M1"]);
    assert_eq!(found(&store, "persim*"), ["M4", "M3", "M2", "M1"]);
    assert_eq!(store.check().unwrap(), [""; 0]);
    // The words that were erased in the new version were in the table of the old one.
    assert!(store.forget_message("M3").unwrap());
    assert_eq!(found(&store, "number3"), [""; 0]);
    let backup = store.opened().backup.clone().unwrap();
    drop(store);
    std::fs::remove_file(backup).unwrap();
    for word in ["number3", "persimmon3"] {
        let files = super::forgotten::files_with(place.path(), word);
        assert_eq!(files, [""; 0], "{word}");
    }
}

/// A store of version 14 is brought up: it has the indexes of a new one.
#[test]
fn store_of_version_14_gets_the_indexes_of_a_new_one() {
    let (new, older) = (Place::new(), Place::new());
    for place in [&new, &older] {
        let mut store = SqliteStore::open(place.home().store()).unwrap();
        let one = letter("M1").session("s").side(Side::ToMe).arrival();
        store.accept(&[one]).unwrap();
    }
    let db = Connection::open(older.home().store()).unwrap();
    take_back_the_count(&db);
    db.execute_batch(
        "DROP INDEX message_session; \
         CREATE INDEX message_session ON message (session, counts, seq, thread) WHERE session IS NOT NULL; \
         CREATE INDEX message_answers ON message (parent) WHERE settles = 1; PRAGMA user_version = 14",
    )
    .unwrap();
    drop(db);
    let before = contents(&older.home().store());
    let store = SqliteStore::open(older.home().store()).unwrap();
    assert_eq!(store.opened().migrated_from, Some(14));
    assert_eq!(schema(&older.home().store()), schema(&new.home().store()));
    assert_eq!(contents(&older.home().store()), before);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

/// A store of version 8 is brought up: nothing in it was moved or cut off.
#[test]
fn a_store_of_version_8_takes_moves() {
    let place = Place::new();
    let path = place.home().store();
    let mut store = SqliteStore::open(&path).unwrap();
    let ask = |id: &str, thread: &str| letter(id).thread(thread).side(Side::Mine).arrival();
    let answer = letter("A1").thread("T1").parent("M1").intent("RESPOND");
    let answer = answer.between("CLAUDE", "KALLE").arrival();
    store
        .accept(&[ask("M1", "T1"), ask("M2", "T2"), answer])
        .unwrap();
    drop(store);
    let db = Connection::open(&path).unwrap();
    take_back_the_moves(&db);
    db.execute_batch("PRAGMA user_version = 8").unwrap();
    drop(db);
    let mut store = SqliteStore::open_existing(&path).unwrap().unwrap();
    assert_eq!(store.opened().migrated_from, Some(8));
    assert!(!store.message("A1").unwrap().unwrap().truncated);
    store.relocate("A1", Some("M2")).unwrap();
    assert_eq!(store.message("A1").unwrap().unwrap().thread, "T2");
    assert_eq!(store.check().unwrap(), [""; 0]);
}

/// A store of version 9 is brought up: what exported chats asked waits no more, nor does a poll whose result is here.
#[test]
fn a_store_of_version_9_stops_waiting_for_what_is_over() {
    let place = Place::new();
    let path = place.home().store();
    let mut store = SqliteStore::open(&path).unwrap();
    let mut chat = letter("M1").thread("T1").side(Side::Mine).arrival();
    chat.way = Way::Filed;
    let open = letter("M2").thread("T2").side(Side::Mine).arrival();
    store.accept(&[chat, open]).unwrap();
    drop(store);
    let db = Connection::open(&path).unwrap();
    take_back_the_leases(&db);
    // As the program of that version had it.
    db.execute_batch(
        "UPDATE message SET asks = 3, wait = 3 WHERE id = 'M1'; UPDATE thread SET asked = 1 WHERE id = 'T1'; \
         PRAGMA user_version = 9",
    )
    .unwrap();
    drop(db);
    let store = SqliteStore::open_existing(&path).unwrap().unwrap();
    assert_eq!(store.opened().migrated_from, Some(9));
    let asked = store.asked(Page::first(10)).unwrap().items;
    let asked: Vec<&str> = asked.iter().map(|a| a.record.id.as_str()).collect();
    assert_eq!(asked, ["M2"]);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

/// A relay of version 11 wrote deliveries when it indexed a message.
#[test]
fn messages_that_version_11_had_only_accepted_are_delivered() {
    let place = Place::new();
    let path = place.home().store();
    let mut store = SqliteStore::open(&path).unwrap();
    let indexed = parcel(letter("M1").thread("T1"));
    take_and_file(&mut store, &[indexed]);
    let ack = letter("M3").thread("T1").parent("M1").intent("ACK");
    let accepted = [
        parcel(letter("M2").thread("T1")),
        parcel(ack.between("CLAUDE", "KALLE")).to(&[("KALLE", Handler::Inbox)]),
    ];
    store.accept_batch(&accepted).unwrap();
    drop(store);
    let db = Connection::open(&path).unwrap();
    take_back_the_search(&db);
    db.execute_batch(
        "DELETE FROM delivery WHERE seq > 1; DELETE FROM expectation WHERE seq > 1; \
         UPDATE delivery SET state = 0, delivered_at = NULL, acknowledged_at = NULL; PRAGMA user_version = 11",
    )
    .unwrap();
    drop(db);
    let mut store = SqliteStore::open_existing(&path).unwrap().unwrap();
    assert_eq!(inbox(&store, "CLAUDE"), ["M2"]);
    assert_eq!(inbox(&store, "KALLE"), ["M3"]);
    let [acknowledged] = store.deliveries("M1").unwrap().try_into().unwrap();
    assert_eq!(acknowledged.state, DeliveryState::Acknowledged);
    file_all(&mut store);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

/// What version 7 added, and everything after it.
fn take_back_the_boundary(db: &Connection) {
    take_back_the_moves(db);
    take_back_the_watch(db);
    db.execute_batch(
        "DROP TABLE quarantine; DROP INDEX intake_session; ALTER TABLE token DROP COLUMN courier; DROP TABLE upload; \
         DROP TABLE poll; ALTER TABLE blob_use DROP COLUMN grants; ALTER TABLE held_blob DROP COLUMN grants; \
         DROP INDEX IF EXISTS message_handover",
    )
    .unwrap();
}

/// A relay of version 6 is brought up: its polls are counted once more, and its references grant access as they did.
#[test]
fn a_relay_keeps_its_polls_and_attachments() {
    let place = Place::new();
    let path = place.home().store();
    let mut store = SqliteStore::open(&path).unwrap();
    let digest = Digest::of(b"plum");
    let poll = parcel(letter("P1").thread("T1").intent("POLL"));
    let refers = parcel(letter("M1").thread("T2")).blob(digest);
    take_and_file(&mut store, &[poll, refers]);
    drop(store);
    let db = Connection::open(&path).unwrap();
    take_back_the_boundary(&db);
    db.execute_batch("PRAGMA user_version = 6").unwrap();
    drop(db);
    let mut store = SqliteStore::open_existing(&path).unwrap().unwrap();
    assert_eq!(store.opened().migrated_from, Some(6));
    let now = crate::at(100);
    let due = store.due_polls(now, None, 9).unwrap();
    let ids: Vec<&str> = due.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids, ["P1"]);
    store.count_poll(&due[0], PollState::Closed(now)).unwrap();
    assert_eq!(store.due_polls(now, None, 9).unwrap(), []);
    assert_eq!(store.referring(digest, 9).unwrap().len(), 1);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

/// What version 4 added, and everything after it.
fn take_back_the_log(db: &Connection) {
    take_back_the_boundary(db);
    db.execute_batch(
        "DROP TABLE held_consent; DROP TABLE held_blob; DROP TABLE held; DROP TABLE owed; DROP TABLE consent; DROP TABLE consent_origin; DROP TABLE consent_use; DROP INDEX intake_brief; \
         ALTER TABLE intake DROP COLUMN brief; DELETE FROM progress WHERE name = 'scrubbed';",
    )
    .unwrap();
    db.execute_batch(
        "DROP TABLE log; DROP TABLE tile; DROP TABLE checkpoint; \
         ALTER TABLE intake DROP COLUMN entry; ALTER TABLE intake DROP COLUMN renewed;",
    )
    .unwrap();
}

/// What version 3 added, and everything after it.
fn take_back_the_relay(db: &Connection) {
    take_back_the_log(db);
    let tables = [
        "progress",
        "closing",
        "steward",
        "delivery",
        "expectation",
        "token",
        "agent",
        "blob_use",
        "blob",
    ];
    for table in tables {
        db.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }
    db.execute_batch("DROP INDEX intake_expires").unwrap();
    let columns = [
        "peer",
        "routes",
        "priority",
        "answer_by",
        "expires",
        "meaning",
        "session",
    ];
    for column in columns {
        db.execute_batch(&format!("ALTER TABLE intake DROP COLUMN {column}"))
            .unwrap();
    }
}

/// The version of today.
fn current() -> u32 {
    version(Sqlite::new().store.path())
}

fn version(path: &Path) -> u32 {
    let db = Connection::open(path).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

#[test]
fn an_old_store_is_brought_up_with_a_backup_beside_it() {
    let place = Place::new();
    let path = place.home().store();
    old(&place, 40);
    std::fs::write(place.path().join("crosstalk.db.v1.backup"), "mine").unwrap();
    let store = SqliteStore::open_existing(&path).unwrap().unwrap();
    let backup = place.path().join("crosstalk.db.v1.backup.2");
    let opened = StoreOpening {
        migrated_from: Some(1),
        backup: Some(backup.clone()),
    };
    assert_eq!(*store.opened(), opened);
    let threads = store
        .threads(&ThreadFilter::default(), Page::first(99))
        .unwrap();
    assert_eq!(threads.items.len(), 10);
    assert_eq!(threads.items[0].messages, 4);
    assert!(store.inbox(Page::first(9)).unwrap().items.is_empty());
    assert_eq!(version(&path), current());
    assert_eq!(version(&backup), 1);
    assert_eq!(
        std::fs::read(place.path().join("crosstalk.db.v1.backup")).unwrap(),
        b"mine"
    );
    assert_eq!(store.backups().len(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&backup).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(*store.opened(), StoreOpening::default());
    // The backup is a store of its own, and can be opened as one.
    let store = SqliteStore::open(&backup).unwrap();
    assert_eq!(store.opened().migrated_from, Some(1));
    assert!(store.message("M0007").unwrap().is_some());
}

/// A store of a person becomes one that a relay can use: nothing that is there is filed or sent again, and what is closed
/// is closed.
#[test]
fn a_store_without_a_relay_gets_one() {
    let place = Place::new();
    let path = place.home().store();
    let mut store = SqliteStore::open(&path).unwrap();
    let one = letter("M1").thread("T1").side(Side::Mine);
    let end = letter("M2").thread("T1").side(Side::Mine).intent("CLOSE");
    store.accept(&[one.arrival(), end.arrival()]).unwrap();
    drop(store);
    let db = Connection::open(&path).unwrap();
    take_back_the_relay(&db);
    db.execute_batch("PRAGMA user_version = 2").unwrap();
    drop(db);
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.opened().migrated_from, Some(2));
    let filing = store.index_progress().unwrap();
    assert_eq!((filing.through, filing.left), (2, 0));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let late = parcel(letter("M3").thread("T1"));
    assert_eq!(refused(&mut store, &late).0, "E-PERM");
    take_and_file(&mut store, &[parcel(letter("M4").thread("T2"))]);
    assert_eq!(inbox(&store, "CLAUDE"), ["M4"]);
    assert_eq!(store.thread("T1").unwrap().unwrap().messages, 2);
}

/// What a relay took before there was a log has entries, in the order in which it came, and the same answer as before.
#[test]
fn a_relay_without_a_log_gets_one() {
    let place = Place::new();
    let path = place.home().store();
    let mut store = SqliteStore::open(&path).unwrap();
    let own = letter("M0").thread("T0").side(Side::Mine);
    store.accept(&[own.arrival()]).unwrap();
    let parcels = [
        parcel(letter("M1").thread("T1")),
        parcel(letter("M2").thread("T1")),
    ];
    take_and_file(&mut store, &parcels);
    drop(store);
    let db = Connection::open(&path).unwrap();
    take_back_the_log(&db);
    db.execute_batch("PRAGMA user_version = 3").unwrap();
    drop(db);
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.opened().migrated_from, Some(3));
    for (place, parcel) in (0..).zip(&parcels) {
        let taken = crate::parcel::take(&mut store, parcel);
        assert!(matches!(taken, AcceptOutcome::Known { entry, .. } if entry.index == place));
    }
    // What a person took in is the relay's when the relay takes it.
    let taken = crate::parcel::take(&mut store, &parcel(letter("M0").thread("T0")));
    assert!(
        matches!(taken, AcceptOutcome::Known { entry, .. } if entry.index == 2),
        "{taken:?}"
    );
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Tokens of a relay before there were couriers are kept, and carry for nobody.
#[test]
fn tokens_without_couriers_are_kept() {
    let place = Place::new();
    let path = place.home().store();
    let token = |name: &str, courier: &[&str]| TokenRecord {
        name: name.into(),
        hash: Digest::of(name.as_bytes()),
        role: Role::Person,
        addresses: vec!["ANN".into(), "human://acme.example/*".into()],
        courier: courier.iter().map(|a| (*a).to_owned()).collect(),
        created_at: Timestamp::from_millis(1),
        expires_at: Some(Timestamp::from_millis(9)),
        revoked_at: None,
        last_used_at: None,
    };
    let mut store = SqliteStore::open(&path).unwrap();
    assert!(
        store
            .add_token(&token("ann", &["CHATGPT"]), "operator")
            .unwrap()
    );
    let counts = |store: &SqliteStore| {
        let tokens = store.tokens().unwrap();
        let revoked = tokens.iter().filter(|t| t.revoked_at.is_some());
        (tokens.len(), revoked.count())
    };
    assert_eq!(counts(&store), (1, 0));
    take_and_file(&mut store, &[parcel(letter("M1").thread("T1"))]);
    drop(store);
    let db = Connection::open(&path).unwrap();
    take_back_the_boundary(&db);
    db.execute_batch("PRAGMA user_version = 6").unwrap();
    drop(db);
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.opened().migrated_from, Some(6));
    assert_eq!(store.tokens().unwrap(), [token("ann", &[])]);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    assert_eq!(inbox(&store, "CLAUDE"), ["M1"]);
    assert!(
        store
            .add_token(&token("bob", &["CHATGPT", "bot://*"]), "operator")
            .unwrap()
    );
    let end = Timestamp::from_millis(3);
    assert!(store.revoke_token("ann", "operator", end).unwrap());
    assert_eq!(counts(&store), (2, 1));
    let bob = store.tokens().unwrap().pop().unwrap();
    assert_eq!(bob, token("bob", &["CHATGPT", "bot://*"]));
}

#[test]
fn a_step_that_fails_leaves_the_old_version() {
    let place = Place::new();
    let path = place.home().store();
    old(&place, 8);
    let db = Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE delivery (x)").unwrap();
    let fault = SqliteStore::open(&path).unwrap_err();
    assert_eq!(fault.fault, StoreFault::Damaged);
    assert!(
        fault.explanation.what.contains("delivery already exists"),
        "{fault}"
    );
    assert_eq!(version(&path), 1);
    let tables: i64 = db
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'message'",
            [],
            |r| r.get(0),
        )
        .unwrap();
    assert_eq!(tables, 0);
    db.execute_batch("DROP TABLE delivery").unwrap();
    let store = SqliteStore::open(&path).unwrap();
    assert!(store.message("M0007").unwrap().is_some());
}

#[test]
fn message_that_cannot_be_read_stops_no_migration() {
    let place = Place::new();
    let path = place.home().store();
    old(&place, 8);
    let db = Connection::open(&path).unwrap();
    let set = |verdict: &str| {
        db.execute("UPDATE intake SET verdict = ?1 WHERE seq = 8", [verdict])
            .unwrap();
    };
    set("sure");
    let mut store = SqliteStore::open(&path).unwrap();
    let [one] = store.quarantine().unwrap().try_into().unwrap();
    assert_eq!((one.id.as_str(), one.seq), ("M0007", 8));
    assert!(
        one.reason.contains("`sure` is no verdict"),
        "{}",
        one.reason
    );
    assert!(store.message("M0006").unwrap().is_some());
    set("unsigned");
    store.rebuild().unwrap();
    assert!(store.quarantine().unwrap().is_empty());
    assert!(store.message("M0007").unwrap().is_some());
    assert_eq!(store.check().unwrap(), [""; 0]);
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn opened() {
    if !again::is_begun() {
        return;
    }
    let home = Home::from_env().unwrap();
    let mut store = SqliteStore::open(home.store()).unwrap();
    let name = std::env::var("WRITER").unwrap();
    store
        .accept(&[letter(&name).thread("new").arrival()])
        .unwrap();
    println!("migrated: {}", store.opened().migrated_from.is_some());
}

#[test]
fn one_of_several_processes_brings_it_up_and_the_others_wait() {
    for messages in [0, 400] {
        let place = Place::new();
        if messages > 0 {
            old(&place, messages);
        }
        let home = place.path().to_str();
        let begin = |n: usize| {
            let name = format!("N{n}");
            let set = [("CROSSTALK_HOME", home), ("WRITER", Some(name.as_str()))];
            again::begin("sqlite::version::opened", None, &set)
        };
        let children: Vec<_> = (0..4).map(begin).collect();
        let said: Vec<String> = children.into_iter().map(again::finish).collect();
        let migrated = said.iter().filter(|s| s.contains("migrated: true")).count();
        assert_eq!(migrated, usize::from(messages > 0), "{said:?}");
        let store = SqliteStore::open(place.home().store()).unwrap();
        assert_eq!(store.thread("new").unwrap().unwrap().messages, 4);
        assert_eq!(store.backups().len(), migrated);
        assert!(store.check().unwrap().is_empty());
    }
}

/// Every file of a folder with its bytes.
fn all(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = crate::all_names(folder);
    names.sort();
    let read = |name: String| (name.clone(), std::fs::read(folder.join(name)).unwrap());
    names.into_iter().map(read).collect()
}

#[test]
fn a_newer_store_is_left_as_it_is() {
    let mut made = Sqlite::new();
    made.store.accept(&[letter("M1").arrival()]).unwrap();
    let path = made.store.path().to_owned();
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    // One that has it open already notices, too.
    let fault = made.store.accept(&[letter("M2").arrival()]).unwrap_err();
    assert_eq!(fault.fault, StoreFault::Newer, "{fault}");
    drop(made.store);
    drop(newer);
    let before = all(made.place.path());
    for open in [
        SqliteStore::open(&path).map(Some),
        SqliteStore::open_existing(&path),
    ] {
        let fault = open.unwrap_err();
        assert_eq!(fault.fault, StoreFault::Newer);
        let said = fault.to_string();
        assert!(
            said.contains("version 99")
                && said.contains(&format!("up to {}", current()))
                && said.contains("update"),
            "{said}"
        );
    }
    assert_eq!(all(made.place.path()), before);
    // What a newer program has in its log stays there.
    let newer = Connection::open(&path).unwrap();
    newer
        .set_db_config(
            rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
            true,
        )
        .unwrap();
    newer.execute_batch("CREATE TABLE later (x)").unwrap();
    drop(newer);
    let before = std::fs::read(&path).unwrap();
    let log = std::fs::read(made.place.path().join("crosstalk.db-wal")).unwrap();
    assert!(!log.is_empty());
    assert_eq!(
        SqliteStore::open(&path).unwrap_err().fault,
        StoreFault::Newer
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(
        std::fs::read(made.place.path().join("crosstalk.db-wal")).unwrap(),
        log
    );
}

#[test]
fn a_database_of_another_program_is_refused() {
    for (application, version) in [(0, 0), (0, 2), (0x1234, 2)] {
        let place = Place::new();
        let path = place.home().store();
        let db = Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE theirs (x)").unwrap();
        db.pragma_update(None, "application_id", application)
            .unwrap();
        db.pragma_update(None, "user_version", version).unwrap();
        drop(db);
        let before = all(place.path());
        let fault = SqliteStore::open(&path).unwrap_err();
        assert_eq!(fault.fault, StoreFault::Damaged);
        assert!(
            fault.explanation.what.contains("another program"),
            "{fault}"
        );
        assert_eq!(all(place.path()), before);
    }
}

#[test]
fn an_empty_file_is_a_new_store_and_no_file_is_none() {
    let place = Place::new();
    let path = place.home().store();
    assert!(SqliteStore::open_existing(&path).unwrap().is_none());
    assert!(crate::all_names(place.path()).is_empty());
    std::fs::write(&path, "").unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(*store.opened(), StoreOpening::default());
    store.accept(&[letter("M1").arrival()]).unwrap();
}

/// A relay of version 6 accepted two messages whose ids became one when they were indexed as pastes, and never started again.
/// Others were indexed as something else than they were when they were accepted.
#[test]
fn relay_that_read_messages_twice_is_repaired() {
    let place = Place::new();
    let path = place.path().join("relay.db");
    let bytes = include_bytes!("../fixture/relay.v6.db");
    std::fs::write(&path, bytes).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.opened().migrated_from, Some(6));
    file_all(&mut store);
    assert_eq!(store.check().unwrap(), [""; 0]);
    assert!(store.quarantine().unwrap().is_empty());
    for id in ["A_B", "A\\_B", "M5"] {
        let record = store.message(id).unwrap().unwrap();
        assert!(record.text.contains(&format!("message: {id}\n")));
    }
    let close = store.message("M5").unwrap().unwrap();
    assert_eq!(
        (close.intent.as_deref(), close.meaning),
        (Some("close"), None)
    );
    assert_eq!(store.thread("T2").unwrap().unwrap().closed_at, None);
    let note = letter("M9").thread("T2").intent("NOTE");
    take_and_file(&mut store, &[parcel(note)]);
    assert_eq!(store.thread("T2").unwrap().unwrap().messages, 4);
    assert_eq!(store.check().unwrap(), [""; 0]);
}

/// A store of version 6: `jürgen` and `JÜRGEN`, `Straße` and `STRASSE`, and one address of a person with its host in two
/// spellings were different parties.
#[test]
fn names_that_are_the_same_by_case_folding_become_one_party() {
    let place = Place::new();
    let path = place.home().store();
    std::fs::write(&path, include_bytes!("../fixture/names.v6.db")).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.opened().migrated_from, Some(6));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    assert_eq!(file_all(&mut store).left, 0);
    // Each finds all that came for it, once, under every spelling.
    for ann in ["human://ACME.example/ann", "HUMAN://acme.EXAMPLE/ann"] {
        assert_eq!(inbox(&store, ann), ["M3", "M4", "M5"], "{ann}");
    }
    assert!(inbox(&store, "human://acme.example/ANN").is_empty());
    for jurgen in ["jürgen", "JÜRGEN", "Ju\u{308}rgen"] {
        assert_eq!(inbox(&store, jurgen), ["M1", "M10"], "{jurgen}");
    }
    let parties = |thread: &str| store.thread(thread).unwrap().unwrap().parties;
    assert_eq!(parties("T1"), ["KALLE", "jürgen"]);
    assert_eq!(parties("T2"), ["KALLE", "human://ACME.example/ann"]);
    assert_eq!(parties("T3"), ["KALLE", "Straße"]);
    // Who was asked as `Straße` has answered as `STRASSE`.
    for (id, wait) in [("M6", Wait::Nobody), ("M3", Wait::Carry)] {
        assert_eq!(store.message(id).unwrap().unwrap().wait, wait, "{id}");
    }
    for (id, verdict) in [
        ("M1", VerdictWord::Unsigned),
        ("M8", VerdictWord::UnknownKey),
        ("M9", VerdictWord::Verified),
    ] {
        assert_eq!(store.message(id).unwrap().unwrap().verdict, verdict, "{id}");
    }
    let agents: Vec<_> = store.agents().unwrap();
    let agents: Vec<&str> = agents.iter().map(|a| a.address.as_str()).collect();
    assert_eq!(agents, ["STRASSE", "human://ACME.example/ann"]);
    store.rebuild().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
