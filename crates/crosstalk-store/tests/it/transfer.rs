//! The store of a relay, copied from its file into PostgreSQL and back.

use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, file_all, inbox, parcel, take, take_new};
use crate::suite::relay::Relay;
use crate::trust::pin;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::KeyStanding;
use crosstalk_protocol::audit::{Event, EventKind, SignedCheckpoint};
use crosstalk_protocol::relay::port::{
    RegistryChange, Retention, StoreContext, StoreEvent, StoreEvents,
};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, DeliveryState, Handler, Role, TokenRecord,
};
use crosstalk_store::{
    CopyReport, Home, PostgresPlace, PostgresRelay, PostgresTrust, SqliteRelay, SqliteStore,
    StorePlace, TrustFile, TrustStoreError, copy_store,
};
use crosstalk_testing::postgres::Database;
use rusqlite::types::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// More than are copied in one transaction.
const MESSAGES: usize = 2_200;

/// The store of a relay with something of everything in it.
fn filled() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("relay.db");
    let relay = Relay::new(|context| SqliteRelay::open(&file, context).unwrap());
    for number in [1, 11, 21] {
        let (digest, bytes) = attachment(number);
        relay.upload(digest, bytes.len() as u64, "ci", at(1));
        let path = blob_path(folder.path(), &digest);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    drop(relay);
    let mut store = SqliteStore::open(&file).unwrap();
    let parcels: Vec<Admission> = (0..MESSAGES)
        .map(|number| {
            let thread = format!("T{}", number % 50);
            let letter = letter(&format!("M{number:05}")).thread(&thread).at(1);
            let parcel = parcel(letter);
            match number % 10 {
                0 => parcel.to(&[("CLAUDE", Handler::Exec), ("anna", Handler::Inbox)]),
                1 => parcel.blob(attachment(number).0),
                _ => parcel,
            }
        })
        .collect();
    for batch in parcels.chunks(500) {
        take_new(&mut store, batch);
    }
    file_all(&mut store);
    // Accepted and not indexed.
    take_new(&mut store, &[parcel(letter("late").thread("T1").at(2))]);
    let read: Vec<String> = (0..30).map(|number| format!("M{number:05}")).collect();
    store
        .mark("claude", &read, DeliveryState::Acknowledged, at(3))
        .unwrap();
    let token = TokenRecord {
        name: "ci".into(),
        hash: Digest::of(b"secret"),
        role: Role::Agent,
        addresses: vec!["CLAUDE".into()],
        courier: vec!["chatgpt://*".into()],
        created_at: at(0),
        expires_at: None,
        revoked_at: None,
        last_used_at: Some(at(4)),
    };
    store.add_token(&token, "operator").unwrap();
    let what = Retention {
        before: Some(at(2)),
        now: at(100),
        brief_before: None,
        limit: 7,
    };
    store.retire(&what).unwrap();
    store.log(&[Event::new(EventKind::Erased, at(5))]).unwrap();
    while store.store_hashes(1).unwrap() {}
    let size = store.log_size().unwrap() - 3;
    let sealed = SignedCheckpoint {
        size,
        at: at(6),
        root: store.log_root(size).unwrap().unwrap(),
        note: "relay.example\n…\n".into(),
    };
    store.keep_checkpoint(&sealed).unwrap();
    folder
}

/// An attachment of a message; one has more than one part.
fn attachment(number: usize) -> (Digest, Vec<u8>) {
    let bytes = number.to_string().into_bytes();
    let bytes = match number {
        11 => bytes.repeat(200_000),
        _ => bytes,
    };
    (Digest::of(&bytes), bytes)
}

fn blob_path(folder: &Path, digest: &Digest) -> PathBuf {
    let name = digest.to_string().replace("sha256:", "");
    folder.join("blobs").join(&name[..2]).join(name)
}

/// Every row of every table, but for the number of the file itself and of those that it will give.
fn rows(folder: &Path) -> Vec<(String, Vec<Value>)> {
    let db = rusqlite::Connection::open(folder.join("relay.db")).unwrap();
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('identity', 'sqlite_sequence') ORDER BY 1";
    let mut tables = db.prepare(names).unwrap();
    let tables = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut all = Vec::new();
    for table in tables.map(Result::unwrap) {
        let mut found = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = found.column_count();
        let mut found = found.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let row = (0..columns).map(|place| row.get(place).unwrap());
            all.push((table.clone(), row.collect()));
        }
    }
    all.sort_by_key(|row| format!("{row:?}"));
    all
}

struct Ignored;

impl StoreEvents for Ignored {
    fn notify(&self, _: StoreEvent<'_>) {}
}

fn silent() -> StoreContext {
    StoreContext {
        events: Arc::new(Ignored),
        clock: Arc::new(|| at(0)),
    }
}

fn place(folder: &TempDir) -> StorePlace {
    StorePlace::Folder(folder.path().to_owned())
}

fn database_at(database: &Database) -> StorePlace {
    StorePlace::Database(PostgresPlace::parse(&database.url()).unwrap())
}

fn copied(from: &StorePlace, to: &StorePlace) -> CopyReport {
    copy_store(from, to, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(from: &StorePlace, to: &StorePlace) -> String {
    let error = copy_store(from, to, &mut |_| {}).unwrap_err();
    assert!(!error.explanation.help.is_empty(), "{error:?}");
    error.explanation.what
}

fn open(database: &Database) -> Relay {
    let place = PostgresPlace::parse(&database.url()).unwrap();
    Relay::new(|context| PostgresRelay::open_with_clock(place, context).unwrap())
}

#[test]
fn a_store_comes_back_from_a_database_as_it_went() {
    let (first, database) = (filled(), Database::new());
    let before = rows(first.path());
    let report = copied(&place(&first), &database_at(&database));
    assert_eq!(report.messages(), MESSAGES as u64 + 1);
    assert_eq!((report.resumed, report.checkpoints), (0, 1));
    assert_eq!((report.attachments, report.missing), (3, 0));
    assert!(report.log_entries > MESSAGES as u64);
    let back = tempfile::tempdir().unwrap();
    let again = copied(&database_at(&database), &place(&back));
    assert_eq!(again.tables, report.tables);
    assert!(!back.path().join("copying").exists());
    for number in [1, 11, 21] {
        let (digest, bytes) = attachment(number);
        assert_eq!(
            std::fs::read(blob_path(back.path(), &digest)).unwrap(),
            bytes
        );
    }
    assert_eq!(rows(back.path()), before);
    let check = |folder: &TempDir| {
        let store = SqliteStore::open(folder.path().join("relay.db")).unwrap();
        store.check().unwrap()
    };
    // The note of the checkpoint is none: all else is sound.
    assert_eq!(check(&back), check(&first));
    assert_eq!(check(&back).len(), 1);

    // A relay on the database goes on where the file was.
    let mut relay = open(&database);
    let late = take(&mut relay, &parcel(letter("late").thread("T1").at(2)));
    assert!(matches!(late, AcceptOutcome::Known { .. }), "{late:?}");
    let seq = take_new(&mut relay, &[parcel(letter("new").at(9))]);
    assert_eq!(seq, [MESSAGES as u64 + 2]);
    file_all(&mut relay);
    let found = relay.search("port");
    assert!(!found.is_empty());
    assert_eq!(relay.registry().tokens.len(), 1);
    assert_eq!(inbox(&relay, "anna").len(), 100);
    let token = relay.registry().tokens.remove(0);
    let token = TokenRecord {
        name: "second".into(),
        hash: Digest::of(b"other"),
        ..token
    };
    let by = "operator".to_owned();
    assert!(relay.change_registry(RegistryChange::AddToken { token, by }));
}

/// A copy that is interrupted after any step goes on behind its last row.
#[test]
fn a_copy_goes_on_where_it_was_interrupted() {
    let (first, database) = (filled(), Database::new());
    let before = rows(first.path());
    let back = tempfile::tempdir().unwrap();
    let ways = [
        (place(&first), database_at(&database)),
        (database_at(&database), place(&back)),
    ];
    for (from, to) in &ways {
        let (mut wanted, mut attempts) = (3, 0);
        let report = loop {
            attempts += 1;
            let mut steps = 0;
            let done = catch_unwind(AssertUnwindSafe(|| {
                copy_store(from, to, &mut |_| {
                    steps += 1;
                    assert!(steps < wanted, "as if it was killed");
                })
            }));
            if let Ok(done) = done {
                break done.unwrap();
            }
            if let StorePlace::Database(place) = to {
                // No relay starts on a part of a store.
                let opened = PostgresRelay::open(place.clone(), silent());
                let error = opened.map(drop).unwrap_err();
                assert!(error.explanation.what.contains("being copied"), "{error}");
            } else {
                assert!(!back.path().join("relay.db").exists());
            }
            wanted += 7;
        };
        assert!(
            attempts > 5 && report.resumed > MESSAGES as u64,
            "{attempts} {report:?}"
        );
    }
    assert_eq!(rows(back.path()), before);
}

/// A key that was revoked at a database stays revoked in the data folder.
#[test]
fn trusted_keys_of_a_database_come_along() {
    let database = Database::new();
    let place_of = || PostgresPlace::parse(&database.url()).unwrap();
    drop(open(&database));
    let shared = PostgresTrust::open(place_of()).unwrap();
    let trust = shared.update(&mut |trust| {
        let revoked = KeyStanding::Revoked {
            at: at(5),
            reason: None,
            by: None,
        };
        trust.pin(pin("alice")).unwrap();
        trust.mark("bob", &pin("bob").key, at(5), revoked);
    });
    let trust = trust.unwrap();
    drop(shared);
    let folder = tempfile::tempdir().unwrap();
    copied(&database_at(&database), &place(&folder));
    let file = TrustFile::new(&Home::at(folder.path()));
    assert_eq!(file.read().unwrap(), trust);

    // What the folder says about a key already is not overruled.
    let other = tempfile::tempdir().unwrap();
    let file = TrustFile::new(&Home::at(other.path()));
    let added = file.update(|trust| {
        trust.pin(pin("alice")).unwrap();
        Ok::<_, TrustStoreError>(())
    });
    added.unwrap();
    let what = refused(&database_at(&database), &place(&other));
    assert!(what.contains("contradicts the trusted keys"), "{what}");
}

/// A data folder keeps the chain of one relay.
#[test]
fn chains_of_several_relays_stay_in_the_database() {
    let (first, database) = (filled(), Database::new());
    copied(&place(&first), &database_at(&database));
    database.sql("UPDATE chain_entry SET chain = 1 WHERE place = 3");
    let back = tempfile::tempdir().unwrap();
    let what = refused(&database_at(&database), &place(&back));
    assert!(what.contains("several relays have written"), "{what}");
}

#[test]
fn a_copy_says_why_it_can_not_be_made() {
    let (first, database) = (filled(), Database::new());
    let (from, to) = (place(&first), database_at(&database));
    let empty = tempfile::tempdir().unwrap();
    assert!(refused(&place(&empty), &to).contains("no store of a relay"));
    assert!(refused(&from, &place(&empty)).contains("has to be a data folder"));
    copied(&from, &to);
    assert!(refused(&from, &to).contains("has data of relays already"));
    assert!(refused(&to, &from).contains("there is a store"));
    let relay = open(&database);
    assert!(refused(&to, &place(&empty)).contains("relays use"));
    drop(relay);

    // Another source may not go on with a part of a copy.
    let (part, other) = (Database::new(), filled());
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        copy_store(&from, &database_at(&part), &mut |_| panic!("at once"))
    }));
    assert!(stopped.is_err());
    let what = refused(&place(&other), &database_at(&part));
    assert!(what.contains("has a part of a copy of"), "{what}");

    // A row that changed after it was copied is noticed.
    let changed = Database::new();
    let mut steps = 0;
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        copy_store(&from, &database_at(&changed), &mut |step| {
            steps += usize::from(step.table == "token");
            assert!(steps == 0, "behind the deliveries");
        })
    }));
    assert!(stopped.is_err());
    changed.sql("UPDATE delivery SET attempts = 99 WHERE seq = 70");
    let what = refused(&from, &database_at(&changed));
    assert!(
        what.contains("table `delivery` is not what was copied"),
        "{what}"
    );

    // An audit log that does not fit its checkpoint is no log.
    let forged = filled();
    let db = rusqlite::Connection::open(forged.path().join("relay.db")).unwrap();
    db.execute("UPDATE log SET at = at + 1 WHERE place = 5", [])
        .unwrap();
    drop(db);
    let what = refused(&place(&forged), &database_at(&Database::new()));
    assert!(what.contains("the audit log is damaged"), "{what}");

    // Nor is an attachment with other bytes than its digest says.
    let damaged = filled();
    let path = blob_path(damaged.path(), &attachment(21).0);
    std::fs::write(path, "another one").unwrap();
    let what = refused(&place(&damaged), &database_at(&Database::new()));
    assert!(what.contains("is damaged"), "{what}");

    // What a person filed is no store of a relay.
    let mine = tempfile::tempdir().unwrap();
    let db = mine.path().join("relay.db");
    drop(SqliteStore::open(&db).unwrap());
    let db = rusqlite::Connection::open(&db).unwrap();
    let sql = "INSERT INTO intake (id, carried, pkid, digest, at, way, side, verdict, spare_thread, spare_message, thread, text) \
        VALUES ('x', 1, '', x'00', 0, 'pasted', 'mine', 'unsigned', 'a', 'b', 'c', 'd')";
    db.execute(sql, []).unwrap();
    drop(db);
    let what = refused(&place(&mine), &database_at(&Database::new()));
    assert!(what.contains("that a person filed"), "{what}");
}
