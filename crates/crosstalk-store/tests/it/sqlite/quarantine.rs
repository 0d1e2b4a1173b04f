//! One message that can't be indexed, and the others.

use super::Sqlite;
use crate::at;
use crate::letter::letter;
use crate::parcel::{file_all, inbox, parcel, take_new};
use crosstalk_protocol::relay::{DeliveryState, Retention};
use crosstalk_store::SqliteStore;
use rusqlite::Connection;

/// An indexed message and three accepted ones; the second of these can't be read.
fn spoilt() -> Sqlite {
    let mut made = Sqlite::new();
    let first = parcel(letter("M0").thread("T0"));
    take_new(&mut made.store, &[first]);
    file_all(&mut made.store);
    let later = ["M1", "M2", "M3"].map(|id| parcel(letter(id).thread("T1")));
    take_new(&mut made.store, &later);
    set_verdict(&made, "sure");
    made
}

/// Gives M2 a verdict behind the back of the store. There is no verdict `sure`.
fn set_verdict(made: &Sqlite, word: &str) {
    let db = Connection::open(made.store.path()).unwrap();
    let sql = "UPDATE intake SET verdict = ?1 WHERE id = 'M2'";
    assert_eq!(db.execute(sql, [word]).unwrap(), 1);
}

fn quarantined(store: &SqliteStore) -> Vec<String> {
    let all = store.quarantine().unwrap();
    all.into_iter().map(|q| q.id).collect()
}

#[test]
fn message_that_cannot_be_indexed_is_quarantined_and_the_others_go_on() {
    let mut made = spoilt();
    let filing = file_all(&mut made.store);
    assert_eq!((filing.left, filing.quarantined), (0, 1));
    assert_eq!(inbox(&made.store, "CLAUDE"), ["M0", "M1", "M3"]);
    let [one] = made.store.quarantine().unwrap().try_into().unwrap();
    assert_eq!((one.id.as_str(), one.seq), ("M2", 3));
    assert!(one.reason.contains("`sure`"), "{}", one.reason);
    let deliveries = made.store.deliveries("M2").unwrap();
    let states: Vec<DeliveryState> = deliveries.iter().map(|d| d.state).collect();
    assert_eq!(states, [DeliveryState::Quarantined]);
    // Its text is kept, and the message is found by its id.
    set_verdict(&made, "unsigned");
    let kept = made.store.record("M2").unwrap().unwrap();
    assert_eq!((kept.id.as_str(), kept.seq), ("M2", 3));
}

#[test]
fn repair_indexes_a_quarantined_message_and_delivers_it() {
    let mut made = spoilt();
    file_all(&mut made.store);
    set_verdict(&made, "unsigned");
    made.store.rebuild().unwrap();
    assert_eq!(quarantined(&made.store), [""; 0]);
    assert_eq!(made.store.check().unwrap(), [""; 0]);
    assert_eq!(inbox(&made.store, "CLAUDE"), ["M0", "M1", "M2", "M3"]);
    assert_eq!(made.store.thread("T1").unwrap().unwrap().messages, 3);
}

#[test]
fn erasing_a_quarantined_message_leaves_a_sound_store() {
    let mut made = spoilt();
    file_all(&mut made.store);
    set_verdict(&made, "unsigned");
    assert_eq!(made.store.check().unwrap(), [""; 0]);
    let what = Retention {
        before: Some(at(1_000_000)),
        now: at(1_000_000),
        brief_before: None,
        limit: 9,
    };
    assert_eq!(made.store.retire(&what).unwrap().count, 4);
    assert_eq!(quarantined(&made.store), [""; 0]);
    assert_eq!(made.store.check().unwrap(), [""; 0]);
}

#[test]
fn forgetting_a_thread_takes_its_quarantined_messages_along() {
    let mut made = spoilt();
    file_all(&mut made.store);
    set_verdict(&made, "unsigned");
    assert_eq!(made.store.forget("T1").unwrap(), 3);
    assert_eq!(quarantined(&made.store), [""; 0]);
    assert!(made.store.record("M2").unwrap().is_none());
    assert_eq!(made.store.check().unwrap(), [""; 0]);
}
