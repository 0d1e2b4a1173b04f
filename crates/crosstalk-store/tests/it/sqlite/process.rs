//! Several processes at once, and processes that are killed.

use super::Sqlite;
use crate::again;
use crate::letter::letter;
use crosstalk_protocol::store::{Page, Search, StoreFault, StoreOutcome, Way};
use crosstalk_store::{Home, SqliteStore};
use crosstalk_testing::tier;
use std::io::{BufRead as _, BufReader};
use std::time::Duration;

const WRITERS: usize = 3;
const BATCHES: usize = 25;

/// Pages, indexes, the search file: all as they should be, and what is derived is what can be derived again.
fn is_sound(store: &SqliteStore) {
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let db = rusqlite::Connection::open(store.path()).unwrap();
    let orphans: i64 = db
        .query_row(
            "SELECT (SELECT count(*) FROM intake) - (SELECT count(*) FROM message) \
             + (SELECT count(*) FROM pragma_foreign_key_check)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(orphans, 0);
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn written() {
    if !again::is_begun() {
        return;
    }
    let name = std::env::var("WRITER").unwrap();
    let mut store = SqliteStore::open(Home::from_env().unwrap().store()).unwrap();
    for batch in 0..BATCHES {
        // One message that all of them have, one that only this one has, and an answer to another one's.
        let shared = letter(&format!("S{batch:03}")).thread("shared").at(0);
        let own = letter(&format!("W{name}-{batch:03}")).thread(&format!("T{name}"));
        let other = format!("S{:03}", batch.wrapping_sub(1));
        let answer = letter(&format!("A{name}-{batch:03}")).parent(&other);
        let answer = answer
            .intent("RESPOND")
            .thread("shared")
            .between("CLAUDE", "KALLE")
            // The first one answers nothing, whatever else waits then.
            .way(Way::Imported);
        let batch = [shared.arrival(), own.arrival(), answer.arrival()];
        let outcomes = store.accept(&batch).unwrap();
        assert!(
            !outcomes
                .iter()
                .any(|o| matches!(o, StoreOutcome::Conflict { .. }))
        );
        store.inbox(Page::first(3)).unwrap();
    }
}

#[test]
fn writers_lose_nothing_of_each_other() {
    let made = Sqlite::on_disk();
    let home = made.place.path().to_str();
    let begin = |number: usize| {
        let name = number.to_string();
        let set = [("CROSSTALK_HOME", home), ("WRITER", Some(name.as_str()))];
        again::begin("sqlite::process::written", None, &set)
    };
    let children: Vec<_> = (0..WRITERS).map(begin).collect();
    let search = Search::parse("port").unwrap();
    for _ in 0..50 {
        made.store.search(&search, Page::first(5)).unwrap();
    }
    for child in children {
        again::finish(child);
    }
    let shared = made.store.thread("shared").unwrap().unwrap();
    assert_eq!(shared.messages as usize, BATCHES + WRITERS * BATCHES);
    // All but the last one are answered.
    assert_eq!(shared.waiting, 1);
    for number in 0..WRITERS {
        let own = made.store.thread(&format!("T{number}")).unwrap().unwrap();
        assert_eq!(own.messages as usize, BATCHES);
    }
    is_sound(&made.store);
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn killed() {
    if !again::is_begun() {
        return;
    }
    let round = std::env::var("WRITER").unwrap();
    let mut store = SqliteStore::open(Home::from_env().unwrap().store()).unwrap();
    for number in 0.. {
        let thread = format!("T{}", number % 3);
        let id = format!("R{round}-{number:05}");
        let one = letter(&id)
            .thread(&thread)
            .body(&"word ".repeat(number % 9 * 50));
        let two = letter(&format!("{id}-answer"))
            .parent(&id)
            .intent("RESPOND");
        store.accept(&[one.arrival(), two.arrival()]).unwrap();
        println!("kept {id}");
        if number % 3 == 2 {
            let search = Search::parse("word").unwrap();
            store.search(&search, Page::first(1)).unwrap();
        }
        if number % 7 == 6 {
            store.forget("T2").unwrap();
            println!("gone T2");
        }
    }
}

/// When the writer is killed: after a number of lines, and then some more microseconds, so that every place is hit.
#[test]
fn acknowledged_messages_survive_a_kill() {
    let made = Sqlite::on_disk();
    let home = made.place.path().to_str();
    // The rounds of a sample are spread over the places where a writer can be killed.
    for round in (0..40).step_by(tier::size(5, 1)) {
        let name = round.to_string();
        let set = [("CROSSTALK_HOME", home), ("WRITER", Some(name.as_str()))];
        let mut child = again::begin("sqlite::process::killed", None, &set);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        let mut kept: Vec<String> = Vec::new();
        let mut take = |line: String| {
            // The first line of a test begins on the line of its name.
            if let Some((_, id)) = line.split_once("kept ") {
                kept.push(id.to_owned());
            }
        };
        lines.by_ref().take(4 + round % 23).for_each(&mut take);
        std::thread::sleep(Duration::from_micros((round as u64 * 397) % 4000));
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(&mut take);
        assert!(!kept.is_empty(), "round {round}");
        let mut alive = 0;
        for id in &kept {
            let number: usize = id.rsplit_once('-').unwrap().1.parse().unwrap();
            let found = made.store.message(id).unwrap();
            let answer = made.store.message(&format!("{id}-answer")).unwrap();
            // A batch is there or not, with its answer; those of the third thread may have been forgotten.
            assert_eq!(found.is_some(), answer.is_some(), "{id}");
            assert!(found.is_some() || number % 3 == 2, "{id} in round {round}");
            alive += usize::from(found.is_some());
        }
        assert!(alive > 0);
        assert_eq!(
            made.store.check().unwrap(),
            Vec::<String>::new(),
            "round {round}"
        );
    }
    is_sound(&made.store);
}

#[test]
fn a_writer_that_waits_too_long_says_so_and_wrote_nothing() {
    let mut made = Sqlite::on_disk();
    made.store.set_patience(Duration::from_millis(20)).unwrap();
    let other = rusqlite::Connection::open(made.store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let fault = made.store.accept(&[letter("M1").arrival()]).unwrap_err();
    assert_eq!(fault.fault, StoreFault::Busy);
    assert!(fault.explanation.what.contains("crosstalk.db"), "{fault}");
    // Who reads does not wait.
    assert_eq!(made.store.message("M1").unwrap(), None);
    other.execute_batch("ROLLBACK").unwrap();
    made.store.accept(&[letter("M1").arrival()]).unwrap();
}
