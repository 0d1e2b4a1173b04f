//! An index of words that is damaged is noticed, and made again.

use super::Sqlite;
use crate::letter::letter;
use crate::parcel::take_and_file;
use crate::suite::consenting::{revoke, revoke_now, under};
use crosstalk_protocol::store::{Page, Search};
use crosstalk_store::SqliteStore;
use rusqlite::Connection;

const SOUND: Vec<String> = Vec::new();

/// A store with messages, and what is done to its search file.
fn damaged(sql: &str) -> (Sqlite, SqliteStore) {
    let mut made = Sqlite::new();
    let letters: Vec<_> = (0..300)
        .map(|n| letter(&format!("M{n:03}")).body(&format!("plums {n} and pears")))
        .map(|l| l.arrival())
        .collect();
    made.store.accept(&letters).unwrap();
    assert_eq!(made.store.fill_search(1000).unwrap().through, 300);
    assert_eq!(made.store.check().unwrap(), SOUND);
    let path = made.store.path().to_owned();
    let db = Connection::open(path.with_extension("search.db")).unwrap();
    assert!(db.execute(sql, []).unwrap() > 0, "{sql}");
    drop(db);
    let store = SqliteStore::open(path).unwrap();
    (made, store)
}

#[test]
fn a_damaged_index_is_noticed_and_made_again() {
    for sql in [
        // A message that is taken out twice, or with words that are not its own.
        "INSERT INTO words (words, rowid, body, context, sender, receiver, intent) \
         VALUES ('delete', 301, 'plums', '', 'kalle', 'claude', 'request')",
        "INSERT INTO words (words, rowid, body) VALUES ('delete', 7, 'apples')",
        "INSERT INTO words (words, rowid, body) VALUES ('delete', 7, 'plums')",
        // One too many, one in another's place.
        "INSERT INTO words (rowid, body) VALUES (301, 'plums')",
        "INSERT INTO words (rowid, body) VALUES (7, 'apples')",
        "INSERT INTO words (words) VALUES ('delete-all')",
        // Its own pages: totals, and the words.
        "UPDATE words_data SET block = x'000000000000' WHERE id = 1",
        "UPDATE words_data SET block = zeroblob(length(block)) WHERE id > 10",
        "DELETE FROM words_data WHERE id > 10",
    ] {
        let (_place, mut store) = damaged(sql);
        let found = store.check();
        assert!(found.is_err() || found != Ok(SOUND), "{sql}");
        store.rebuild().unwrap();
        assert_eq!(store.check(), Ok(SOUND), "{sql}");
        let search = Search::parse("plums").unwrap();
        let found = store.search(&search, Page::first(500)).unwrap();
        assert_eq!(found.items.len(), 300, "{sql}");
    }
}

/// However often a consent is revoked, its messages are taken out of the index once.
#[test]
fn repeated_revocations_leave_the_index_whole() {
    let mut made = Sqlite::new();
    let body = "My blood pressure is 140 to 90.";
    let messages: Vec<_> = (0..5)
        .map(|n| under(letter(&format!("M{n}")).body(body), "C1"))
        .chain([under(letter("M9").body(body), "C9")])
        .collect();
    take_and_file(&mut made.store, &messages);
    made.store.fill_search(3).unwrap();
    for n in 0..4 {
        revoke_now(&mut made.store, &revoke(&format!("R{n}"), &["C1"]));
        crate::parcel::file_all(&mut made.store);
        while !made.store.scrub().unwrap() {}
        made.store.fill_search(2).unwrap();
        assert_eq!(made.store.check().unwrap(), SOUND, "{n}");
    }
    let search = Search::parse("pressure").unwrap();
    let found = made.store.search(&search, Page::first(9)).unwrap();
    assert_eq!(found.items.len(), 1);
    revoke_now(&mut made.store, &revoke("R9", &["C9"]));
    assert_eq!(made.store.check().unwrap(), SOUND);
}
