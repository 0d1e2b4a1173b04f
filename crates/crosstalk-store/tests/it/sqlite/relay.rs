//! What only a store in a file can show of a relay: kills, copies, locks, and what is left in the files.

use super::Sqlite;
use crate::again;
use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, file_all, inbox, parcel, take_and_file, take_new};
use crosstalk_protocol::relay::{DeliveryState, Handler, Retention};
use crosstalk_protocol::store::{Page, Search, StoreFault, ThreadFilter};
use crosstalk_store::{Home, SqliteStore};
use crosstalk_testing::tier;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::time::Duration;

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn killed() {
    if !again::is_begun() {
        return;
    }
    let round = std::env::var("WRITER").unwrap();
    let mut store = SqliteStore::open(Home::from_env().unwrap().store()).unwrap();
    for number in 0.. {
        let id = format!("R{round}-{number:05}");
        let thread = format!("T{round}-{}", number / 5);
        let one = letter(&id)
            .thread(&thread)
            .body(&"word ".repeat(number % 9 * 50));
        let two = letter(&format!("{id}-answer")).thread(&thread).parent(&id);
        let two = two.intent("RESPOND").between("CLAUDE", "KALLE");
        let ways = [
            ("ANN", Handler::Inbox),
            ("agent://a.example/x", Handler::Http),
        ];
        take_new(
            &mut store,
            &[parcel(one).to(&ways).answer_by(9), parcel(two)],
        );
        println!("taken {id}");
        match number % 4 {
            1 => drop(store.index(3).unwrap()),
            2 => {
                store
                    .mark(
                        "ANN",
                        std::slice::from_ref(&id),
                        DeliveryState::Acknowledged,
                        at(9),
                    )
                    .unwrap();
                println!("marked {id}");
            }
            3 => drop(store.due(at(1_000_000), at(2_000_000), 3).unwrap()),
            _ => {}
        }
    }
}

/// After a number of lines, and then some more microseconds, so that every place is hit.
#[test]
fn accepted_messages_are_indexed_once_after_a_kill() {
    let mut made = Sqlite::on_disk();
    let home = made.place.path().to_owned();
    let mut all = BTreeSet::new();
    // The rounds of a sample are spread over the places where a writer can be killed.
    for round in (0..30).step_by(tier::size(5, 1)) {
        let name = round.to_string();
        let set = [
            ("CROSSTALK_HOME", home.to_str()),
            ("WRITER", Some(name.as_str())),
        ];
        let mut child = again::begin("sqlite::relay::killed", None, &set);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        let (mut taken, mut marked) = (Vec::new(), Vec::new());
        let mut note = |line: String| {
            // The first line of a test begins on the line of its name.
            if let Some((_, id)) = line.split_once("taken ") {
                taken.push(id.to_owned());
            }
            if let Some((_, id)) = line.split_once("marked ") {
                marked.push(id.to_owned());
            }
        };
        lines.by_ref().take(4 + round % 23).for_each(&mut note);
        std::thread::sleep(Duration::from_micros((round as u64 * 397) % 4000));
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(&mut note);
        assert!(!taken.is_empty(), "round {round}");
        let store = &mut made.store;
        let unfiled = store.index_progress().unwrap().left;
        for id in &taken {
            assert!(store.record(id).unwrap().is_some(), "{id}, {unfiled} left");
        }
        file_all(store);
        for id in &taken {
            for (id, count) in [(id.clone(), 2), (format!("{id}-answer"), 1)] {
                assert!(store.message(&id).unwrap().is_some(), "{id}");
                assert_eq!(store.deliveries(&id).unwrap().len(), count, "{id}");
            }
        }
        for id in &marked {
            let deliveries = store.deliveries(id).unwrap();
            assert!(
                deliveries
                    .iter()
                    .any(|d| d.state == DeliveryState::Acknowledged),
                "{id}"
            );
        }
        assert_eq!(
            store.check().unwrap(),
            Vec::<String>::new(),
            "round {round}"
        );
        all.extend(taken);
    }
    // Nothing was filed twice: threads have as many messages as were taken.
    let threads = made
        .store
        .threads(&ThreadFilter::default(), Page::first(100_000))
        .unwrap();
    let messages: u64 = threads.items.iter().map(|t| t.messages).sum();
    let db = Connection::open(made.store.path()).unwrap();
    let rows: i64 = db
        .query_row("SELECT count(*) FROM intake", [], |row| row.get(0))
        .unwrap();
    assert_eq!(messages, rows.unsigned_abs());
    assert!(rows as usize >= all.len() * 2);
    // What is derived again is the same, and what is not derived stays.
    let states = || -> Vec<(i64, String, i64)> {
        let mut all = db
            .prepare("SELECT seq, party, state FROM delivery ORDER BY seq, party")
            .unwrap();
        let rows = all
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap();
        rows.map(Result::unwrap).collect()
    };
    let before = states();
    made.store.rebuild().unwrap();
    assert_eq!(states(), before);
    let again = made
        .store
        .threads(&ThreadFilter::default(), Page::first(100_000))
        .unwrap();
    assert_eq!(again, threads);
    assert_eq!(made.store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_store_has_one_relay() {
    let mut made = Sqlite::new();
    let mut other = SqliteStore::open(made.store.path()).unwrap();
    let owned = made.store.own().unwrap();
    let fault = other.own().unwrap_err();
    assert_eq!(fault.fault, StoreFault::Busy);
    let said = fault.to_string();
    assert!(
        said.contains("another relay") && said.contains("crosstalk.db"),
        "{said}"
    );
    drop(owned);
    other.own().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let lock = made.place.path().join(".crosstalk.db.relay.lock");
        let mode = std::fs::metadata(lock).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }
}

/// The copy is one state, although somebody writes while it is made.
#[test]
fn a_copy_is_made_while_others_write() {
    let mut made = Sqlite::new();
    let one = |n: usize| {
        parcel(
            letter(&format!("M{n:05}"))
                .thread("T1")
                .body(&"x".repeat(3000)),
        )
    };
    take_and_file(&mut made.store, &(0..2000).map(one).collect::<Vec<_>>());
    take_new(&mut made.store, &[one(2000)]);
    let mut writer = SqliteStore::open(made.store.path()).unwrap();
    let copy = made.place.path().join("copy.db");
    let (mut steps, mut last) = (0, (0, 0));
    let mut number = 3000;
    made.store
        .backup_to(&copy, &mut |done, all| {
            (steps, last) = (steps + 1, (done, all));
            number += 1;
            take_new(&mut writer, &[one(number)]);
        })
        .unwrap();
    assert!(steps > 2 && last.0 == last.1, "{steps} {last:?}");
    let mut copied = SqliteStore::open_existing(&copy).unwrap().unwrap();
    assert_eq!(copied.check().unwrap(), Vec::<String>::new());
    assert_eq!(file_all(&mut copied).left, 0);
    assert_eq!(copied.thread("T1").unwrap().unwrap().messages, 2001);
    assert_eq!(
        made.store.index_progress().unwrap().left as usize,
        1 + steps
    );
    let names = crate::all_names(made.place.path());
    assert!(!names.iter().any(|n| n.contains("tmp")), "{names:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&copy).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }
    // Nobody's file is replaced.
    let fault = made.store.backup_to(&copy, &mut |_, _| {}).unwrap_err();
    assert!(fault.explanation.what.contains("copy.db"), "{fault}");
    let nowhere = made.place.path().join("no/such/folder/copy.db");
    let fault = made.store.backup_to(&nowhere, &mut |_, _| {}).unwrap_err();
    assert!(fault.explanation.what.contains("copy.db"), "{fault}");
}

/// Each thing that can be wrong, one at a time.
#[test]
fn inconsistent_tables_are_found() {
    for (change, sentence) in [
        (
            "UPDATE progress SET seq = 99 WHERE name = 'filed'",
            "never came",
        ),
        ("DELETE FROM progress WHERE name = 'filed'", "is unknown"),
        (
            "UPDATE progress SET seq = 1 WHERE name = 'filed'",
            "not marked as such: `M2`",
        ),
        (
            "UPDATE progress SET seq = 3 WHERE name = 'filed'",
            "marked as filed and is not: `M3`",
        ),
        (
            "UPDATE message SET thread = 'T2' WHERE id = 'M1'",
            "in another thread",
        ),
        ("DELETE FROM delivery WHERE seq = 1", "to nobody: `M1`"),
        (
            "UPDATE intake SET text = '' WHERE seq = 2",
            "erased is still filed or on its way: `M2`",
        ),
        (
            "INSERT INTO expectation VALUES (77, 1)",
            "belongs to no message: `77`",
        ),
        (
            "UPDATE delivery SET state = 5 WHERE seq = 1",
            "that there is not: `1`",
        ),
        (
            "UPDATE delivery SET state = 2 WHERE seq = 1",
            "do not fit its state: `1`",
        ),
        (
            "UPDATE delivery SET failed_at = 2 WHERE seq = 1",
            "do not fit its state: `1`",
        ),
        (
            "UPDATE delivery SET next_at = 2 WHERE seq = 1",
            "has no time for it, or the other way round: `1`",
        ),
        (
            "INSERT INTO blob VALUES (x'00', 1, 1, 3)",
            "counted wrongly: `00`",
        ),
        (
            "UPDATE thread SET messages = 9",
            "another number of messages",
        ),
    ] {
        let mut made = Sqlite::new();
        let one = |id: &str| parcel(letter(id).thread("T1"));
        take_and_file(&mut made.store, &[one("M1"), one("M2")]);
        take_new(&mut made.store, &[one("M3")]);
        assert_eq!(made.store.check().unwrap(), Vec::<String>::new());
        let db = Connection::open(made.store.path()).unwrap();
        db.execute_batch(&format!("PRAGMA foreign_keys = OFF; {change}"))
            .unwrap();
        let found = made.store.check().unwrap();
        assert!(
            found.iter().any(|f| f.contains(sentence)),
            "{change}: {found:?}"
        );
    }
}

#[test]
fn nothing_of_an_erased_message_is_left_in_the_files() {
    let mut made = Sqlite::new();
    let folder = made.place.path().to_owned();
    let rare = ["zanzibarqux", "kumquatvex", "mallorcan", "xylosession"];
    for n in 0..60 {
        let body = format!(
            "About zanzibarqux {n}.\n{}",
            "padding of many words ".repeat(n % 7 * 60)
        );
        let old = letter(&format!("R{n:03}"))
            .session("xylosession")
            .body(&body)
            .at(1);
        let old = old.context("kumquatvex").between("mallorcan", "BOB");
        let other = letter(&format!("M{n:03}")).thread("T1").at(100);
        let other = other.body(&format!("zanzibar zan {n} quicksilver"));
        take_and_file(&mut made.store, &[parcel(old).expires(20)]);
        take_and_file(&mut made.store, &[parcel(other)]);
        made.store.fill_search(100).unwrap();
    }
    for word in rare {
        assert!(
            !super::forgotten::files_with(&folder, word).is_empty(),
            "{word}"
        );
    }
    let what = Retention {
        before: None,
        now: at(50),
        brief_before: None,
        limit: 100,
    };
    assert_eq!(made.store.retire(&what).unwrap().count, 60);
    for word in rare {
        assert_eq!(
            super::forgotten::files_with(&folder, word),
            Vec::<String>::new(),
            "{word}"
        );
    }
    let search = Search::parse("quicksilver zan*").unwrap();
    let found = made.store.search(&search, Page::first(100)).unwrap();
    assert_eq!(found.items.len(), 60);
    assert_eq!(made.store.check().unwrap(), Vec::<String>::new());
    assert_eq!(inbox(&made.store, "CLAUDE").len(), 60);
    // What is gone stays gone when everything is derived again.
    made.store.rebuild().unwrap();
    assert_eq!(made.store.check().unwrap(), Vec::<String>::new());
    assert!(inbox(&made.store, "BOB").is_empty());
}

#[test]
fn triggers_in_the_store_are_found() {
    let made = Sqlite::new();
    let db = Connection::open(made.store.path()).unwrap();
    db.execute_batch("CREATE TRIGGER t AFTER INSERT ON intake BEGIN DELETE FROM token; END")
        .unwrap();
    let found = made.store.check().unwrap();
    assert!(
        found.len() == 1 && found[0].contains("by itself"),
        "{found:?}"
    );
}

/// While one writes, its log is moved into the file by another thread, and begins anew.
#[test]
fn the_log_of_a_relay_stays_short() {
    let mut made = Sqlite::new();
    let owned = made.store.own().unwrap();
    let body = "word ".repeat(2000);
    let log = made.store.path().with_extension("db-wal");
    let mut most = 0;
    for batch in 0..60 {
        let parcels: Vec<_> = (0..64)
            .map(|n| parcel(letter(&format!("M{batch}-{n}")).body(&body)))
            .collect();
        made.store.accept_batch(&parcels).unwrap();
        most = most.max(std::fs::metadata(&log).unwrap().len());
    }
    // About 40 MB were written.
    assert!(most < 30 << 20, "{most}");
    drop(owned);
    assert_eq!(made.store.check().unwrap(), Vec::<String>::new());
}
