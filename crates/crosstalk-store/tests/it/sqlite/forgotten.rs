//! What is forgotten is in no file any more.

use super::Sqlite;
use crate::letter::letter;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Page, Search, StoreFault};
use crosstalk_store::SqliteStore;
use std::path::Path;
use std::time::Duration;

/// The files of a folder in which some bytes stand, in any case of the letters: the index of words has small ones.
pub(crate) fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let wanted = text.to_ascii_lowercase().into_bytes();
    let mut found = Vec::new();
    for name in crate::all_names(folder) {
        let bytes = std::fs::read(folder.join(&name))
            .unwrap()
            .to_ascii_lowercase();
        if bytes.windows(wanted.len()).any(|w| w == wanted) {
            found.push(name);
        }
    }
    found
}

const RARE: [&str; 6] = [
    "zanzibarqux",
    "kumquatvex",
    "01KAZZRAREID",
    "THREADRARE",
    "mallorcan",
    "xylosession",
];

fn rare(n: usize) -> crate::letter::Letter {
    let body = format!(
        "About zanzibarqux {n}.\n{}",
        "padding of many words ".repeat(n % 7 * 60)
    );
    let one = letter(&format!("01KAZZRAREID{n}"))
        .thread("THREADRARE")
        .body(&body);
    let one = one.context("kumquatvex").between("mallorcan", "BOB");
    one.session("xylosession")
}

#[test]
fn nothing_of_a_thread_is_left_in_the_files() {
    let mut made = Sqlite::new();
    let folder = made.place.path().to_owned();
    // Among others, in several transactions, so that the index is in many parts, some of them merged.
    for n in 0..60 {
        let other = letter(&format!("M{n:03}")).thread(&format!("T{}", n % 5));
        let other = other.body(&format!("zanzibar zan {n} quicksilver"));
        made.store
            .accept(&[other.arrival(), rare(n).arrival()])
            .unwrap();
        made.store.fill_search(100).unwrap();
    }
    // One that was kept twice, the better text over the other.
    made.store
        .accept(&[rare(3)
            .verdict(VerdictWord::Verified, Some("ann"))
            .arrival()])
        .unwrap();
    for word in RARE {
        assert!(!files_with(&folder, word).is_empty(), "{word}");
    }
    assert_eq!(made.store.forget("THREADRARE").unwrap(), 60);
    for word in RARE {
        assert_eq!(files_with(&folder, word), Vec::<String>::new(), "{word}");
    }
    let search = Search::parse("quicksilver zan*").unwrap();
    let found = made.store.search(&search, Page::first(100)).unwrap();
    assert_eq!(found.items.len(), 60);
    assert_eq!(made.store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn nothing_of_a_message_is_left_in_the_files() {
    let mut made = Sqlite::new();
    let folder = made.place.path().to_owned();
    for n in 0..40 {
        let other = letter(&format!("M{n:03}")).thread("THREADSTAYS");
        let other = other.body(&format!("zanzibar zan {n} quicksilver"));
        made.store.accept(&[other.arrival()]).unwrap();
        if n == 20 {
            let one = rare(1).thread("THREADSTAYS").arrival();
            made.store.accept(&[one]).unwrap();
        }
        made.store.fill_search(100).unwrap();
    }
    assert!(made.store.forget_message("01KAZZRAREID1").unwrap());
    for word in RARE.iter().filter(|w| **w != "THREADRARE") {
        assert_eq!(files_with(&folder, word), Vec::<String>::new(), "{word}");
    }
    let search = Search::parse("quicksilver zan*").unwrap();
    let found = made.store.search(&search, Page::first(100)).unwrap();
    assert_eq!(found.items.len(), 40);
    assert_eq!(made.store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn open_reader_keeps_the_log_and_is_named() {
    let mut made = Sqlite::new();
    made.store.set_patience(Duration::from_millis(10)).unwrap();
    made.store.accept(&[rare(1).arrival()]).unwrap();
    let reader = rusqlite::Connection::open(made.store.path()).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM intake")
        .unwrap();
    let fault = made.store.forget("THREADRARE").unwrap_err();
    assert_eq!(fault.fault, StoreFault::Busy, "{fault}");
    assert!(fault.explanation.help.contains("again"), "{fault}");
    assert_eq!(made.store.message("01KAZZRAREID1").unwrap(), None);
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(made.store.forget("THREADRARE").unwrap(), 0);
    for word in RARE {
        assert!(files_with(made.place.path(), word).is_empty(), "{word}");
    }
}

#[test]
fn a_store_that_is_closed_is_one_file() {
    let mut made = Sqlite::new();
    made.store.accept(&[rare(1).arrival()]).unwrap();
    let path = made.store.path().to_owned();
    drop(made.store);
    let mut names = crate::all_names(made.place.path());
    names.sort();
    assert_eq!(names, [".crosstalk.db.lock", "crosstalk.db"]);
    let store = SqliteStore::open_existing(path).unwrap().unwrap();
    assert_eq!(
        store.message("01KAZZRAREID1").unwrap().unwrap().thread,
        "THREADRARE"
    );
}

/// Words that begin a page of the index are written into the pages above it, too.
#[test]
fn the_keys_of_a_large_index_go_too() {
    let mut made = Sqlite::new();
    let folder = made.place.path().to_owned();
    let mut state = 1_u64;
    let mut word = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("w{:x}", state >> 40)
    };
    for batch in 0..8 {
        let letters: Vec<_> = (0..250)
            .map(|n| {
                let is_secret = n % 2 == 0;
                let (thread, begin) = match is_secret {
                    true => ("SECRET", "zebrasecret"),
                    false => ("OTHER", ""),
                };
                let words: Vec<String> = (0..20).map(|_| format!("{begin}{}", word())).collect();
                let one = letter(&format!("ID-{batch}-{n}")).thread(thread);
                one.body(&words.join(" ")).arrival()
            })
            .collect();
        made.store.accept(&letters).unwrap();
    }
    // At once, so that the index is in one part.
    made.store.fill_search(usize::MAX).unwrap();
    let folder_has = |word: &str| files_with(&folder, word);
    assert!(folder_has("zebrasecret").contains(&"crosstalk.search.db-wal".to_owned()));
    assert_eq!(made.store.forget("SECRET").unwrap(), 1000);
    assert_eq!(folder_has("zebrasecret"), Vec::<String>::new());
    // Nothing was added in between: it is in one part again.
    assert!(!folder_has("w1").is_empty());
    assert_eq!(made.store.forget("OTHER").unwrap(), 1000);
    assert_eq!(folder_has("w1"), Vec::<String>::new());
}
