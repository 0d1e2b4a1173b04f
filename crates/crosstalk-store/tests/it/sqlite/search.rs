//! The search file: filled in batches, made again when it can't be used, and without a word of what was erased.

use super::Sqlite;
use super::forgotten::files_with;
use crate::letter::{Letter, letter};
use crate::parcel::{Parcel as _, file_all, parcel, take_and_file, take_new};
use crate::suite::consenting::{revoke, revoke_now, under};
use crate::{Place, again, at};
use crosstalk_protocol::relay::Retention;
use crosstalk_protocol::store::{Page, Search};
use crosstalk_store::SearchProgress;
use crosstalk_store::{Home, SqliteStore};
use crosstalk_testing::tier;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

const SOUND: [&str; 0] = [];

fn search(words: &str) -> Search {
    Search::parse(words).unwrap()
}

/// The ids of the messages that a search finds.
fn found(store: &SqliteStore, words: &str) -> Vec<String> {
    let found = store.search(&search(words), Page::first(1000)).unwrap();
    found.items.into_iter().map(|r| r.id).collect()
}

/// The same, of what is filled.
fn found_now(store: &SqliteStore, words: &str) -> (Vec<String>, u64) {
    let now = store.search_filled(&search(words), Page::first(1000));
    let now = now.unwrap();
    let ids = now.found.items.into_iter().map(|r| r.id);
    (ids.collect(), now.through)
}

fn file_of(store: &SqliteStore) -> PathBuf {
    store.path().with_extension("search.db")
}

fn plum(n: usize) -> Letter {
    letter(&format!("M{n:03}"))
        .thread(&format!("T{}", n % 4))
        .body(&format!("Plums are ripe, crate{n} too."))
}

/// A store with so many messages.
fn plums(count: usize) -> Sqlite {
    let mut made = Sqlite::new();
    let batch: Vec<_> = (1..=count).map(|n| plum(n).arrival()).collect();
    made.store.accept(&batch).unwrap();
    made
}

#[test]
fn search_index_is_filled_in_batches_and_says_how_far() {
    let mut made = plums(10);
    assert_eq!(found_now(&made.store, "plums"), (vec![], 0));
    let progress = made.store.fill_search(4).unwrap();
    let (through, left) = (4, 6);
    assert_eq!(progress, SearchProgress { through, left });
    let (ids, through) = found_now(&made.store, "plums");
    assert_eq!((ids.len(), through), (4, 4));
    assert_eq!(made.store.check().unwrap(), SOUND);
    // A person's search waits for the rest, and for what another process has accepted meanwhile.
    let mut other = SqliteStore::open(made.store.path()).unwrap();
    other.accept(&[plum(11).arrival()]).unwrap();
    assert_eq!(found(&made.store, "plums").len(), 11);
    assert_eq!(found_now(&other, "crate11").0, ["M011"]);
    assert_eq!(made.store.fill_search(4).unwrap().left, 0);
    assert_eq!(made.store.check().unwrap(), SOUND);
}

/// A relay makes messages searchable when they are indexed, and not before.
#[test]
fn messages_that_are_not_indexed_are_not_searched() {
    let mut made = Sqlite::new();
    let parcels: Vec<_> = (1..=3).map(|n| parcel(plum(n))).collect();
    take_new(&mut made.store, &parcels);
    assert_eq!(made.store.fill_search(9).unwrap().left, 0);
    assert_eq!(found(&made.store, "plums"), SOUND);
    file_all(&mut made.store);
    assert_eq!(made.store.fill_search(9).unwrap().through, 3);
    assert_eq!(found_now(&made.store, "plums").0.len(), 3);
}

/// Commits of the index are not synced: the search file may have words of messages that are not indexed after a power cut.
#[test]
fn relay_starts_without_words_of_messages_that_are_not_indexed() {
    let mut made = Sqlite::new();
    take_and_file(&mut made.store, &[parcel(plum(1).body("Zyzzyva."))]);
    assert_eq!(made.store.fill_search(9).unwrap().through, 1);
    let has_words = |store: &SqliteStore| {
        let files = files_with(store.path().parent().unwrap(), "zyzzyva");
        files.iter().any(|file| file.contains("search"))
    };
    assert!(has_words(&made.store));
    run(
        made.store.path(),
        "DELETE FROM message; DELETE FROM thread; DELETE FROM party; UPDATE progress SET seq = 0 WHERE name = 'filed'",
    );
    let owned = made.store.own().unwrap();
    assert_eq!(
        made.store
            .search_filled(&search("zyzzyva"), Page::first(9))
            .unwrap()
            .through,
        0
    );
    drop(owned);
    let path = made.store.path().to_owned();
    made.store = SqliteStore::open(&path).unwrap();
    assert!(!has_words(&made.store));
    file_all(&mut made.store);
    assert_eq!(found(&made.store, "zyzzyva"), ["M001"]);
    assert_eq!(made.store.check().unwrap(), SOUND);
}

/// The same, where the message is erased before a relay starts.
#[test]
fn erasure_takes_words_out_that_a_power_cut_left() {
    let mut made = Sqlite::new();
    take_and_file(&mut made.store, &[parcel(plum(1).body("Zyzzyva."))]);
    assert_eq!(made.store.fill_search(9).unwrap().through, 1);
    run(
        made.store.path(),
        "DELETE FROM message; DELETE FROM thread; DELETE FROM party; UPDATE progress SET seq = 0 WHERE name = 'filed'",
    );
    assert!(made.store.forget_message("M001").unwrap());
    let path = made.store.path().to_owned();
    made.store = SqliteStore::open(&path).unwrap();
    assert_eq!(files_with(path.parent().unwrap(), "zyzzyva"), SOUND);
}

/// What is done to a file, and whether others still have it open.
type Damage = (&'static str, fn(&Path), bool);

fn write_over(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(file).unwrap();
    change(&mut bytes);
    std::fs::write(file, bytes).unwrap();
}

fn run(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

const DAMAGES: [Damage; 11] = [
    ("missing", |f| std::fs::remove_file(f).unwrap(), false),
    ("empty", |f| std::fs::write(f, "").unwrap(), false),
    (
        "no database",
        |f| std::fs::write(f, b"[[A->B v1]]".repeat(900)).unwrap(),
        false,
    ),
    ("cut", |f| write_over(f, |b| b.truncate(4096 * 3)), false),
    ("header", |f| write_over(f, |b| b[..100].fill(0xa5)), false),
    ("pages", |f| write_over(f, |b| b[4096..].fill(0xa5)), false),
    ("schema", |f| write_over(f, |b| b[100..4096].fill(0)), false),
    ("older", |f| run(f, "UPDATE state SET version = 0"), true),
    (
        "other columns",
        |f| run(f, "DROP TABLE state; CREATE TABLE state (x)"),
        true,
    ),
    (
        "another store",
        |f| run(f, "UPDATE state SET store = store + 1"),
        true,
    ),
    ("no words", |f| run(f, "DROP TABLE words"), true),
];

/// Whatever is in its place: a search finds everything, an erasure erases, and nobody sees an error.
#[test]
fn search_file_that_cannot_be_used_is_made_again() {
    for (name, damage, is_shared) in DAMAGES {
        for erase_first in [false, true] {
            let made = plums(50);
            assert_eq!(found(&made.store, "plums").len(), 50);
            let (path, file) = (made.store.path().to_owned(), file_of(&made.store));
            let place = made.place;
            let open = is_shared.then_some(made.store);
            assert!(file.is_file(), "{name}");
            damage(&file);
            let mut store = SqliteStore::open(&path).unwrap();
            if erase_first {
                assert!(store.forget_message("M007").unwrap(), "{name}");
                assert_eq!(files_with(place.path(), "crate7"), SOUND, "{name}");
            }
            let left = if erase_first { 49 } else { 50 };
            assert_eq!(found(&store, "plums").len(), left, "{name}");
            assert_eq!(found(&store, "crate7").len(), left - 49, "{name}");
            assert_eq!(store.check().unwrap(), SOUND, "{name}");
            assert!(store.forget_message("M008").unwrap(), "{name}");
            assert_eq!(files_with(place.path(), "crate8"), SOUND, "{name}");
            assert_eq!(store.check().unwrap(), SOUND, "{name}");
            // One that had it open all the time.
            if let Some(open) = open {
                assert_eq!(found(&open, "plums").len(), left - 1, "{name}");
            }
        }
    }
}

/// Somebody removes the file while it is open: nobody goes on with the one that is gone.
#[cfg(unix)]
#[test]
fn search_file_that_is_removed_while_it_is_used_is_made_again() {
    let mut made = plums(20);
    assert_eq!(found(&made.store, "plums").len(), 20);
    for ending in ["", "-wal", "-shm"] {
        let name = format!("{}{ending}", file_of(&made.store).display());
        std::fs::remove_file(name).unwrap();
    }
    let other = SqliteStore::open(made.store.path()).unwrap();
    assert_eq!(found(&other, "plums").len(), 20);
    assert!(made.store.forget_message("M007").unwrap());
    assert_eq!(found_now(&other, "crate7").0, SOUND);
    assert_eq!(files_with(made.place.path(), "crate7"), SOUND);
    assert_eq!(found(&made.store, "plums").len(), 19);
    drop(other);
    assert_eq!(made.store.check().unwrap(), SOUND);
}

#[test]
fn damaged_search_file_is_reported_by_a_check_and_repaired() {
    let made = plums(200);
    assert_eq!(found(&made.store, "plums").len(), 200);
    let (path, file, _place) = (
        made.store.path().to_owned(),
        file_of(&made.store),
        made.place,
    );
    drop(made.store);
    write_over(&file, |bytes| bytes[4096 * 3..4096 * 5].fill(0xa5));
    let mut store = SqliteStore::open(path).unwrap();
    let said = store.check().unwrap();
    assert!(!said.is_empty());
    store.rebuild().unwrap();
    assert_eq!(store.check().unwrap(), SOUND);
    assert_eq!(found_now(&store, "plums").0.len(), 200);
}

/// An older copy of the store comes back, and goes on otherwise than before: the words of what is not in it are gone.
#[test]
fn words_that_a_restored_store_does_not_have_are_gone() {
    for by_backup in [true, false] {
        let mut made = plums(5);
        let path = made.store.path().to_owned();
        let copy = made.place.path().join("copy");
        match by_backup {
            true => made.store.backup_to(&copy, &mut |_, _| {}).unwrap(),
            false => {
                made.store.check().unwrap();
                let db = Connection::open(&path).unwrap();
                let name = copy.to_str().unwrap();
                db.execute("VACUUM INTO ?1", [name]).unwrap();
            }
        }
        let later: Vec<_> = (6..=9).map(|n| plum(n).at(n as i64).arrival()).collect();
        made.store.accept(&later).unwrap();
        assert_eq!(found(&made.store, "plums").len(), 9);
        drop(made.store);
        std::fs::rename(&copy, &path).unwrap();
        let mut store = SqliteStore::open(&path).unwrap();
        // The place and the time of the last message tell them apart; those of a backup need not.
        let time = |n: usize| if by_backup { n - 10 } else { n } as i64;
        let other = (16..=20).map(|n| plum(n).at(time(n)).arrival());
        let other: Vec<_> = other.collect();
        store.accept(&other).unwrap();
        assert_eq!(found(&store, "crate9"), SOUND, "{by_backup}");
        assert_eq!(found(&store, "plums").len(), 10, "{by_backup}");
        assert_eq!(found(&store, "crate18"), ["M018"], "{by_backup}");
        assert_eq!(store.check().unwrap(), SOUND, "{by_backup}");
        drop(store);
        for word in ["crate6", "crate7", "crate8", "crate9"] {
            let left = files_with(made.place.path(), word);
            assert_eq!(left, SOUND, "{by_backup} {word}");
        }
    }
}

/// How much of it is in the search file when it is erased.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Nothing,
    Half,
    All,
}

const ERASED: usize = 40;

fn secret(n: usize) -> Letter {
    let body = format!(
        "About zanzibarqux {n}, kumquatvex{n} and {}.",
        "more ".repeat(n % 7 * 40)
    );
    letter(&format!("S{n:03}"))
        .thread("SECRETS")
        .body(&body)
        .context("xylocontext")
        .at(1)
}

/// A way to erase messages.
type Erasure = (&'static str, fn(&mut SqliteStore));

/// Ways to erase the same messages.
const ERASURES: [Erasure; 6] = [
    ("forget", |store| {
        assert_eq!(store.forget("SECRETS").unwrap(), ERASED as u64);
    }),
    ("forget one by one", |store| {
        for n in 0..ERASED {
            assert!(store.forget_message(&format!("S{n:03}")).unwrap());
        }
    }),
    ("erase", |store| {
        let ids: Vec<String> = (0..ERASED).map(|n| format!("S{n:03}")).collect();
        assert_eq!(store.erase_messages(&ids, at(60)).unwrap(), ERASED as u64);
    }),
    ("expire", |store| {
        let what = Retention {
            before: None,
            now: at(60),
            brief_before: None,
            limit: 15,
        };
        while store.retire(&what).unwrap().more {}
    }),
    ("retention", |store| {
        let what = Retention {
            before: Some(at(60)),
            now: at(30),
            brief_before: None,
            limit: 15,
        };
        while store.retire(&what).unwrap().more {}
    }),
    ("revoke", |store| {
        revoke_now(store, &revoke("R1", &["C1"]));
        file_all(store);
        while !store.scrub().unwrap() {}
    }),
];

#[test]
fn erased_words_are_in_no_file_whether_they_were_filled_or_not() {
    for (name, erase) in ERASURES {
        for state in [State::Nothing, State::Half, State::All] {
            let mut made = Sqlite::new();
            let folder = made.place.path().to_owned();
            let secrets = (0..ERASED).map(|n| under(secret(n), "C1").expires(50));
            let others = (0..ERASED).map(|n| parcel(plum(n).at(100)));
            let pairs: Vec<_> = match name {
                // What is too old ends with the first message that is not.
                "retention" => secrets.chain(others).map(|one| vec![one]).collect(),
                _ => secrets.zip(others).map(|(a, b)| vec![a, b]).collect(),
            };
            for (n, batch) in pairs.iter().enumerate() {
                take_and_file(&mut made.store, batch);
                if state == State::All || (state == State::Half && n < ERASED / 2) {
                    made.store.fill_search(10).unwrap();
                }
            }
            let is_filled = state != State::Nothing;
            let files = files_with(&folder, "zanzibarqux");
            let has = files.iter().any(|f| f.contains("search"));
            assert_eq!(has, is_filled, "{name} {state:?} {files:?}");
            erase(&mut made.store);
            for word in ["zanzibarqux", "kumquatvex", "xylocontext"] {
                assert_eq!(files_with(&folder, word), SOUND, "{name} {state:?} {word}");
            }
            assert_eq!(found_now(&made.store, "zanzibarqux").0, SOUND, "{name}");
            assert_eq!(made.store.check().unwrap(), SOUND, "{name} {state:?}");
            // The rest is filled, and nothing of it comes back.
            assert_eq!(found(&made.store, "plums").len(), ERASED, "{name}");
            assert_eq!(found(&made.store, "zanzibarqux"), SOUND, "{name}");
            assert_eq!(
                files_with(&folder, "zanzibarqux"),
                SOUND,
                "{name} {state:?}"
            );
            assert_eq!(made.store.check().unwrap(), SOUND, "{name} {state:?}");
        }
    }
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn forgets_and_dies() {
    if again::is_begun() {
        let mut store = SqliteStore::open(Home::from_env().unwrap().store()).unwrap();
        println!("begun");
        store.forget("SECRETS").unwrap();
        println!("ended");
    }
}

/// A process that forgets messages is killed between the two files, or after both.
#[cfg(debug_assertions)]
#[test]
fn erasure_that_is_killed_is_undone_or_done() {
    for (place, is_erased) in [("words", false), ("store", true)] {
        let mut made = Sqlite::on_disk();
        for n in 0..20 {
            let batch = [plum(n).arrival(), secret(n).arrival()];
            made.store.accept(&batch).unwrap();
            if n % 5 == 0 {
                made.store.fill_search(100).unwrap();
            }
        }
        let home = made.place.path().to_str();
        let set = [
            ("CROSSTALK_HOME", home),
            ("CROSSTALK_TEST_ERASURE", Some(place)),
        ];
        let child = again::begin("sqlite::search::forgets_and_dies", None, &set);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("begun") && !said.contains("ended"), "{said}");
        // A fill that does not come to the end leaves the notes alone, and adds nothing that is noted.
        assert!(made.store.fill_search(2).unwrap().left > 0);
        assert_eq!(found_now(&made.store, "zanzibarqux").0, SOUND, "{place}");
        assert_eq!(made.store.check().unwrap(), SOUND, "{place}");
        // In the end, both files agree.
        let left = if is_erased { 0 } else { 20 };
        assert_eq!(found(&made.store, "plums").len(), 20, "{place}");
        assert_eq!(found(&made.store, "zanzibarqux").len(), left, "{place}");
        assert_eq!(made.store.check().unwrap(), SOUND, "{place}");
        assert_eq!(made.store.forget("SECRETS").unwrap(), left as u64);
        for word in ["zanzibarqux", "kumquatvex", "xylocontext"] {
            assert_eq!(files_with(made.place.path(), word), SOUND, "{place} {word}");
        }
        assert_eq!(made.store.check().unwrap(), SOUND, "{place}");
    }
}

/// Fillers, searchers and erasers at the same time, each with a handle of its own.
#[test]
fn fill_never_brings_back_what_is_erased_meanwhile() {
    let rounds = tier::size(40, 400);
    let mut made = Sqlite::new();
    let path = made.store.path().to_owned();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let is_over = &is_over;
    let path = &path;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let mut store = SqliteStore::open(path).unwrap();
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    store.fill_search(3).unwrap();
                }
            });
        }
        for round in 0..rounds {
            let batch: Vec<_> = (0..8)
                .map(|n| letter(&format!("E{round}-{n}")).thread(&format!("E{round}")))
                .map(|l| l.body("zanzibarqux and others").arrival())
                .chain([letter(&format!("K{round}")).body("plums").arrival()])
                .collect();
            made.store.accept(&batch).unwrap();
            let id = format!("E{round}-{}", round % 8);
            made.store.forget_message(&id).unwrap();
            // A reader of an older state may keep the log for some time.
            let _ = made.store.forget(&format!("E{round}"));
            assert_eq!(found_now(&made.store, "zanzibarqux").0, SOUND);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    made.store.forget("nothing").unwrap();
    assert_eq!(files_with(made.place.path(), "zanzibarqux"), SOUND);
    assert_eq!(found(&made.store, "plums").len(), rounds);
    assert_eq!(made.store.check().unwrap(), SOUND);
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn searches() {
    if again::is_begun() {
        let store = SqliteStore::open(Home::from_env().unwrap().store()).unwrap();
        println!("found {}", found(&store, "lorem").len());
    }
}

/// Many messages were never searched. Several processes search at once, and another one erases meanwhile.
#[test]
fn many_messages_are_filled_by_several_processes_and_nobody_times_out() {
    let count = tier::size(4_000, 100_000);
    let mut made = Sqlite::on_disk();
    let text = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do ";
    for begin in (0..count).step_by(500) {
        let batch: Vec<_> = (begin..count.min(begin + 500))
            .map(|n| letter(&format!("L{n}")).thread(&format!("T{}", n / 10)))
            .map(|l| l.body(text).arrival())
            .collect();
        made.store.accept(&batch).unwrap();
    }
    let home = made.place.path().to_str();
    let set = [("CROSSTALK_HOME", home)];
    let begin = || again::begin("sqlite::search::searches", None, &set);
    let children: Vec<_> = (0..3).map(|_| begin()).collect();
    for n in 0..20 {
        let id = format!("L{}", n * count / 20);
        assert!(made.store.forget_message(&id).is_ok());
    }
    for child in children {
        let said = again::finish(child);
        assert!(said.contains("found 1000"), "{said}");
    }
    let page = Page::first(count);
    let all = made.store.search(&search("lorem"), page).unwrap();
    assert_eq!(all.items.len(), count - 20);
    assert_eq!(made.store.check().unwrap(), SOUND);
}

#[test]
fn size_of_the_store_counts_the_search_file() {
    let made = plums(200);
    let before = made.store.gauges().unwrap().bytes;
    assert_eq!(found(&made.store, "plums").len(), 200);
    let after = made.store.gauges().unwrap().bytes;
    let path = file_of(&made.store);
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let files = [path, log].map(|f| f.metadata().unwrap().len());
    assert_eq!(after - before, files.iter().sum::<u64>());
}

/// A backup of a store is one file, and makes its own search file.
#[test]
fn backup_has_no_search_file_and_can_be_searched() {
    let made = plums(5);
    assert_eq!(found(&made.store, "plums").len(), 5);
    let other = Place::new();
    let copy = other.path().join("copy.db");
    made.store.backup_to(&copy, &mut |_, _| {}).unwrap();
    assert_eq!(crate::all_names(other.path()), ["copy.db"]);
    // The words of the original are not taken for those of the copy.
    std::fs::copy(file_of(&made.store), other.path().join("copy.search.db")).unwrap();
    let mut store = SqliteStore::open(&copy).unwrap();
    assert_eq!(found(&store, "plums").len(), 5);
    assert!(store.forget_message("M003").unwrap());
    assert_eq!(files_with(other.path(), "crate3"), SOUND);
}

/// A quarantined message is searchable once it is repaired, though later ones are filled already.
#[test]
fn message_that_is_indexed_late_is_found() {
    let mut made = Sqlite::new();
    let set_verdict = |word: &str| {
        let db = Connection::open(made.place.home().store()).unwrap();
        let sql = "UPDATE intake SET verdict = ?1 WHERE id = 'M002'";
        assert_eq!(db.execute(sql, [word]).unwrap(), 1);
    };
    let parcels = [parcel(plum(1)), parcel(plum(2)), parcel(plum(3))];
    take_new(&mut made.store, &parcels);
    set_verdict("sure");
    file_all(&mut made.store);
    assert_eq!(found(&made.store, "plums"), ["M003", "M001"]);
    set_verdict("unsigned");
    made.store.rebuild().unwrap();
    assert_eq!(found_now(&made.store, "plums").0, ["M003", "M002", "M001"]);
    assert_eq!(made.store.check().unwrap(), SOUND);
}
