//! A log that somebody changes in the file: the check finds it, and so does whoever holds a checkpoint.

use super::Sqlite;
use crate::at;
use crate::letter::letter;
use crate::parcel::{parcel, take_and_file};
use crosstalk_envelope::{Algorithm, PrivateKey};
use crosstalk_protocol::audit::{
    Checkpoint, Event, EventKind, Hash, LogQuery, SignedCheckpoint, Tree, extends, is_included,
    leaf_hash,
};
use crosstalk_protocol::relay::DeliveryState;
use crosstalk_store::SqliteStore;
use crosstalk_testing::tier;
use rusqlite::{Connection, params};

/// So that there is a full tile.
const MESSAGES: usize = 150;

/// A log with deliveries, hashes and a checkpoint; its size and root.
fn made() -> (Sqlite, u64, Hash) {
    let mut made = Sqlite::new();
    let parcels: Vec<_> = (0..MESSAGES)
        .map(|n| parcel(letter(&format!("M{n:03}")).thread(&format!("T{}", n % 7))))
        .collect();
    take_and_file(&mut made.store, &parcels);
    let ids: Vec<String> = (0..MESSAGES).map(|n| format!("M{n:03}")).collect();
    made.store
        .mark("CLAUDE", &ids, DeliveryState::Read, at(9000))
        .unwrap();
    while made.store.store_hashes(8).unwrap() {}
    let size = made.store.log_size().unwrap();
    assert_eq!(size, 2 * MESSAGES as u64);
    let root = made.store.log_root(size).unwrap().unwrap();
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[1; 32]).unwrap();
    let origin = "relay.example".to_owned();
    let note = Checkpoint { origin, size, root }.sign(&key).unwrap();
    let at = at(9001);
    made.store
        .keep_checkpoint(&SignedCheckpoint {
            size,
            at,
            root,
            note,
        })
        .unwrap();
    assert_eq!(made.store.check().unwrap(), Vec::<String>::new());
    (made, size, root)
}

/// Threat 24: every record is changed in every column, and cut; what a witness holds does not fit any more.
#[test]
fn every_record_that_is_changed_or_cut_is_found() {
    let (made, size, root) = made();
    let path = made.store.path().to_owned();
    drop(made.store);
    let db = Connection::open(&path).unwrap();
    let copy = made.place.path().join("copy.db");
    db.execute("VACUUM INTO ?1", params![copy.to_str().unwrap()])
        .unwrap();
    let flips = [
        "UPDATE log SET kind = (kind + 1) % 12 WHERE place = ?1",
        "UPDATE log SET at = at + 1 WHERE place = ?1",
        "UPDATE log SET id = id || 'x' WHERE place = ?1",
        "UPDATE log SET canonical = zeroblob(32) WHERE place = ?1",
        "UPDATE log SET raw = zeroblob(32) WHERE place = ?1",
        "UPDATE log SET sealed = zeroblob(32) WHERE place = ?1",
        "UPDATE log SET detail = 'to=somebody' WHERE place = ?1 AND detail IS NOT NULL",
        "UPDATE log SET salt = zeroblob(16) WHERE place = ?1 AND salt IS NOT NULL",
        "DELETE FROM log WHERE place = ?1",
        "DELETE FROM log WHERE place >= ?1",
    ];
    let check = |what: &str, store: &SqliteStore| {
        assert!(!store.check().unwrap().is_empty(), "{what}");
    };
    for place in (0..i64::try_from(size).unwrap()).step_by(tier::size(115, 23)) {
        for sql in flips {
            let changed = db.execute(sql, params![place]).unwrap();
            if changed == 0 {
                continue;
            }
            let store = SqliteStore::open(&path).unwrap();
            check(&format!("{sql} of {place}"), &store);
            // Whoever rewrites the hashes as well meets who holds a checkpoint.
            let kept_beside = sql.contains("detail") || sql.contains("salt");
            if !kept_beside {
                drop(store);
                db.execute_batch("DELETE FROM tile; DELETE FROM checkpoint")
                    .unwrap();
                let mut store = SqliteStore::open(&path).unwrap();
                while store.store_hashes(8).unwrap_or(false) {}
                let now = store.log_size().unwrap();
                let new = store.log_root(now).ok().flatten();
                let path_to = store.log_consistency(size.min(now), now).ok().flatten();
                let proof = path_to.unwrap_or_default();
                let holds =
                    now >= size && new.is_some_and(|new| extends(size, &root, now, &new, &proof));
                assert!(!holds, "{sql} of {place}");
                drop(store);
            }
            restore(&db, &made.place);
        }
    }
    for sql in [
        "UPDATE tile SET hashes = zeroblob(8192)",
        "UPDATE tile SET root = zeroblob(32)",
        "INSERT INTO tile VALUES (3, 0, zeroblob(32), zeroblob(8192))",
        "UPDATE checkpoint SET root = zeroblob(32)",
        "UPDATE checkpoint SET note = replace(note, char(10) || size || char(10), char(10) || (size - 1) || char(10))",
        "UPDATE checkpoint SET size = size + 1",
        "UPDATE intake SET text = replace(text, 'port', 'Port') WHERE seq = 3",
        "UPDATE intake SET entry = entry + 1 WHERE seq = 3",
        "UPDATE intake SET entry = NULL WHERE seq = 3",
    ] {
        assert!(db.execute(sql, []).unwrap() > 0, "{sql}");
        check(sql, &SqliteStore::open(&path).unwrap());
        restore(&db, &made.place);
    }
}

/// Puts the tables back as they were, out of a copy.
fn restore(db: &Connection, place: &crate::Place) {
    let copy = place.path().join("copy.db");
    db.execute("ATTACH ?1 AS was", params![copy.to_str().unwrap()])
        .unwrap();
    for table in ["log", "tile", "checkpoint"] {
        db.execute_batch(&format!(
            "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM was.{table};"
        ))
        .unwrap();
    }
    db.execute_batch(
        "UPDATE main.intake SET (text, entry) = (SELECT text, entry FROM was.intake w WHERE w.seq = main.intake.seq) \
         WHERE seq = 3; DETACH was",
    )
    .unwrap();
}

/// Around every edge of a tile, stored or not, the hashes are those of the tree.
#[test]
fn proofs_come_from_stored_hashes() {
    let mut made = Sqlite::new();
    let store = &mut made.store;
    const LARGE: u64 = 65_536 + 300;
    let one = |n: u64| Event::new(EventKind::Refused, at(i64::try_from(n).unwrap()));
    let events: Vec<Event<'_>> = (0..LARGE).map(one).collect();
    let mut written = 0;
    for upto in [1, 255, 256, 257, 600, LARGE] {
        store
            .log(&events[written..usize::try_from(upto).unwrap()])
            .unwrap();
        written = usize::try_from(upto).unwrap();
        let asked = LogQuery {
            limit: usize::MAX,
            ..LogQuery::default()
        };
        let leaves = store.log_entries(&asked).unwrap().into_iter();
        let tree = Tree::of(leaves.map(|e| leaf_hash(e.leaf.to_string().as_bytes())));
        let indices = [
            0,
            1,
            254,
            255,
            256,
            511,
            512,
            599,
            65_535,
            65_536,
            LARGE - 1,
        ];
        let sizes = [1, 2, 255, 256, 257, 512, 513, 600, 65_536, 65_537, LARGE];
        for step in ["before", "in between", "after"] {
            // Without stored hashes, each answer goes through all entries: once is enough.
            let least = if upto == LARGE && step != "after" {
                LARGE
            } else {
                0
            };
            for size in sizes.iter().copied().filter(|s| *s <= upto && *s >= least) {
                let root = tree.root(size);
                assert_eq!(
                    store.log_root(size).unwrap(),
                    root,
                    "{step}: {size} of {upto}"
                );
                if least > 0 {
                    continue;
                }
                for index in indices.iter().copied().filter(|i| *i < size) {
                    let path = store.log_inclusion(index, size).unwrap().unwrap();
                    assert_eq!(
                        path,
                        tree.inclusion(index, size),
                        "{step}: {index} in {size}"
                    );
                }
                for from in sizes.iter().copied().filter(|s| *s <= size) {
                    let path = store.log_consistency(from, size).unwrap().unwrap();
                    assert_eq!(
                        path,
                        tree.consistency(from, size),
                        "{step}: {from} to {size}"
                    );
                }
            }
            let more = store.store_hashes(if step == "before" { 1 } else { usize::MAX });
            assert!(!more.unwrap() || step == "before");
        }
        assert_eq!(store.log_root(upto + 1).unwrap(), None);
        assert_eq!(store.log_inclusion(upto, upto).unwrap(), None);
        assert_eq!(store.log_consistency(1, upto + 1).unwrap(), None);
    }
    let (old, new) = (store.log_root(600).unwrap(), store.log_root(LARGE).unwrap());
    let path = store.log_consistency(600, LARGE).unwrap().unwrap();
    assert!(extends(600, &old.unwrap(), LARGE, &new.unwrap(), &path));
    let leaf = leaf_hash(one(70).leaf(&[]).to_string().as_bytes());
    let path = store.log_inclusion(70, LARGE).unwrap().unwrap();
    assert!(is_included(&leaf, 70, LARGE, &path, &new.unwrap()));
}

#[test]
fn the_latest_checkpoint_is_kept_and_one_an_hour() {
    let mut made = Sqlite::new();
    let store = &mut made.store;
    assert_eq!(store.checkpoint().unwrap(), None);
    let sealed = |size: u64| SignedCheckpoint {
        size,
        at: at(i64::try_from(size).unwrap() * 600),
        root: [7; 32],
        note: format!("note {size}"),
    };
    // Six an hour.
    for size in 1..=13 {
        store.keep_checkpoint(&sealed(size)).unwrap();
        assert_eq!(store.checkpoint().unwrap(), Some(sealed(size)));
    }
    // One that comes late removes none.
    store.keep_checkpoint(&sealed(5)).unwrap();
    assert_eq!(store.checkpoint().unwrap(), Some(sealed(13)));
    let kept: Vec<u64> = store
        .checkpoints()
        .unwrap()
        .iter()
        .map(|s| s.size)
        .collect();
    assert!(kept.len() <= 5, "{kept:?}");
    assert!(kept.contains(&1) && kept.contains(&13), "{kept:?}");
}
