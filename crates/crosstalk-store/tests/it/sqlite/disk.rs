//! Disks that are full, closed or broken.

use super::Sqlite;
use crate::letter::letter;
use crate::parcel::parcel;
use crate::{Place, again, at};
use crosstalk_protocol::store::{Page, Search, StoreFault, ThreadFilter};
use crosstalk_store::{Home, SqliteStore};
use crosstalk_testing::tier;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a test of this binary where it may mount file systems, after some lines of shell.
#[cfg(target_os = "linux")]
fn mounted(script: &str, test: &str, home: &Path) {
    let program = std::env::current_exe().unwrap();
    let can = |flags: &str| {
        let tried = Command::new("unshare")
            .args([flags, "true"])
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    };
    let flags = ["-m", "-Urm"].into_iter().find(|flags| can(flags)).expect(
        "neither root nor user namespaces: a file system of its own can't be mounted, and this can't be tested here",
    );
    let output = Command::new("unshare")
        .args([
            flags,
            "sh",
            "-euc",
            &format!("{script}\nexec \"$0\" --exact {test} --ignored --nocapture"),
        ])
        .arg(program)
        .env("CROSSTALK_HOME", home)
        .env("CROSSTALK_STORE_TEST", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{complained}"
    );
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn filled() {
    if !again::is_begun() {
        return;
    }
    let home = Home::from_env().unwrap();
    let folder: &Path = home.as_ref();
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![7; 1 << 20]).unwrap();
    let mut store = SqliteStore::open(home.store()).unwrap();
    let batch = |n: usize| {
        let one = |k: usize| {
            letter(&format!("M{n:04}-{k}"))
                .thread("T1")
                .body(&"some words ".repeat(60))
                .arrival()
        };
        (0..5).map(one).collect::<Vec<_>>()
    };
    let mut kept = 0;
    let fault = loop {
        match store.accept(&batch(kept)) {
            Ok(outcomes) => assert_eq!(outcomes.len(), 5),
            Err(fault) => break fault,
        }
        kept += 1;
        assert!(kept < 100_000, "the disk never fills");
    };
    assert_eq!(fault.fault, StoreFault::Full, "{fault}");
    assert!(
        fault.explanation.what.contains("disk is full")
            && fault.explanation.help.contains("try again"),
        "{fault}"
    );
    assert!(kept > 3, "{kept}");
    // What was answered for is there, what was not is not, and it can be asked.
    let count = |store: &SqliteStore| store.thread("T1").unwrap().unwrap().messages;
    assert_eq!(count(&store), kept as u64 * 5);
    assert_eq!(store.message(&format!("M{kept:04}-0")).unwrap(), None);
    let search = Search::parse("words").unwrap();
    let found = store.search(&search, Page::first(usize::MAX)).unwrap();
    assert_eq!(found.items.len(), kept * 5);
    assert_eq!(
        store.accept(&batch(kept)).unwrap_err().fault,
        StoreFault::Full
    );
    // Another process sees the same.
    drop(store);
    let mut store = SqliteStore::open_existing(home.store()).unwrap().unwrap();
    assert_eq!(count(&store), kept as u64 * 5);
    std::fs::remove_file(&ballast).unwrap();
    store.accept(&batch(kept)).unwrap();
    assert_eq!(count(&store), (kept as u64 + 1) * 5);
    let found = store.search(&search, Page::first(usize::MAX)).unwrap();
    assert_eq!(found.items.len(), (kept + 1) * 5);
    assert!(store.check().unwrap().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_and_nothing_is_half_written() {
    let place = Place::on_disk();
    let home = place.path().to_str().unwrap();
    let script = format!("mount -t tmpfs -o size=3m,mode=700 tmpfs '{home}'");
    mounted(&script, "sqlite::disk::filled", place.path());
}

/// The handle of a relay leaves the log alone for long. Each message is a change of its own here, which writes many pages
/// again: in the log alone, a few hundred messages would take all of the disk.
#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn filled_as_a_relay() {
    if !again::is_begun() {
        return;
    }
    let home = Home::from_env().unwrap();
    let folder: &Path = home.as_ref();
    let mut store = SqliteStore::open(home.store()).unwrap();
    let owned = store.own().unwrap();
    let one = |number: usize| parcel(letter(&format!("M{number:05}")).thread("T1"));
    let fill = |store: &mut SqliteStore, from: usize| {
        let taken = (from..).take_while(|number| match store.accept_batch(&[one(*number)]) {
            Ok(_) => true,
            Err(fault) => {
                assert_eq!(fault.fault, StoreFault::Full, "{fault}");
                false
            }
        });
        taken.count()
    };
    let ballast: Vec<_> = (0..32)
        .map(|n| folder.join(format!("ballast-{n}")))
        .collect();
    for piece in &ballast {
        std::fs::write(piece, vec![7; 64 << 10]).unwrap();
    }
    let first = fill(&mut store, 0);
    assert!(first > 600, "{first}");
    // Room that comes in small pieces is not lost: in the end there are as many messages as if it had come at once.
    let mut all = first;
    for piece in &ballast {
        std::fs::remove_file(piece).unwrap();
        all += fill(&mut store, all);
    }
    assert!(all > first + 200, "{first} {all}");
    // On a full disk, access ends and messages are erased.
    assert!(!store.revoke_token("nobody", "ops", at(1)).unwrap());
    assert!(store.dismiss("M00001").is_ok());
    drop(owned);
    assert!(store.check().unwrap().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn the_log_leaves_room_for_the_file() {
    let place = Place::on_disk();
    let home = place.path().to_str().unwrap();
    let script = format!("mount -t tmpfs -o size=8m,mode=700 tmpfs '{home}'");
    mounted(&script, "sqlite::disk::filled_as_a_relay", place.path());
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn no_room_at_all() {
    if !again::is_begun() {
        return;
    }
    let home = Home::from_env().unwrap();
    let folder: &Path = home.as_ref();
    let ballast = folder.join("ballast");
    // Until nothing fits any more.
    let filled = std::fs::write(&ballast, vec![7; 8 << 20]);
    assert!(filled.is_err());
    let fault = SqliteStore::open(home.store()).unwrap_err();
    assert_eq!(fault.fault, StoreFault::Full, "{fault}");
    std::fs::remove_file(&ballast).unwrap();
    let mut store = SqliteStore::open(home.store()).unwrap();
    store.accept(&[letter("M1").arrival()]).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_could_not_be_made_is_made_when_there_is_room() {
    let place = Place::on_disk();
    let home = place.path().to_str().unwrap();
    let script = format!("mount -t tmpfs -o size=1m,mode=700 tmpfs '{home}'");
    mounted(&script, "sqlite::disk::no_room_at_all", place.path());
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn read_only() {
    if !again::is_begun() {
        return;
    }
    let home = Home::from_env().unwrap();
    let mut store = SqliteStore::open_existing(home.store()).unwrap().unwrap();
    assert_eq!(store.message("M1").unwrap().unwrap().thread, "T1");
    assert_eq!(
        store
            .threads(&ThreadFilter::default(), Page::first(9))
            .unwrap()
            .items
            .len(),
        1
    );
    let search = Search::parse("to:claude").unwrap();
    let found = store.search(&search, Page::first(9)).unwrap();
    assert_eq!(found.items.len(), 1);
    let fault = store.accept(&[letter("M2").arrival()]).unwrap_err();
    assert_eq!(fault.fault, StoreFault::Unavailable, "{fault}");
    assert!(fault.explanation.what.contains("crosstalk.db"), "{fault}");
    let folder: &Path = home.as_ref();
    assert!(
        SqliteStore::open_existing(folder.join("other.db"))
            .unwrap()
            .is_none()
    );
    let fault = SqliteStore::open(folder.join("other.db")).unwrap_err();
    assert_eq!(fault.fault, StoreFault::Unavailable, "{fault}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_can_not_be_written_can_be_read() {
    // The characters are there for the URI that SQLite is given then.
    let place = Place::on_disk();
    let home = place.path().join("a b?c#d%e");
    let mut store = SqliteStore::open(Home::at(&home).store()).unwrap();
    store
        .accept(&[letter("M1").thread("T1").arrival()])
        .unwrap();
    drop(store);
    let folder = home.to_str().unwrap();
    let script =
        format!("mount --bind '{folder}' '{folder}' && mount -o remount,bind,ro '{folder}'");
    mounted(&script, "sqlite::disk::read_only", &home);
}

/// Whatever is broken where: an answer or a fault that says what to do, and no panic.
#[test]
fn a_damaged_file_is_named() {
    let mut made = Sqlite::on_disk();
    for n in 0..60 {
        let one = letter(&format!("M{n:03}"))
            .thread(&format!("T{}", n % 7))
            .body(&format!("words {n} ").repeat(40));
        made.store.accept(&[one.arrival()]).unwrap();
    }
    let path = made.store.path().to_owned();
    drop(made.store);
    let whole = std::fs::read(&path).unwrap();
    let (mut named, mut tried) = (0, 0);
    let pages = whole.len() / 4096;
    for round in 0..pages * 2 {
        // The first rounds are one kind of damage each, the others many of the same.
        if round > 5 && round % tier::size(4, 1) != 0 {
            continue;
        }
        tried += 1;
        let mut broken = whole.clone();
        match round {
            0 => broken.truncate(4096 * 3),
            1 => broken.truncate(50),
            2 => broken.truncate(100),
            3 => broken[..16].copy_from_slice(b"Something else\0\0"),
            4 => broken = b"[[A->B v1]]".repeat(500),
            // Whole pages, then bytes here and there.
            n if n < pages => broken[n * 4096..][..4096].fill(0xa5),
            n => {
                let mut place = n * 7919;
                for _ in 0..200 {
                    place = (place * 1_103_515_245 + 12_345) % broken.len();
                    broken[place] ^= 1 << (place % 8);
                }
            }
        }
        std::fs::write(&path, &broken).unwrap();
        for ending in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
        }
        let mut faults = Vec::new();
        match SqliteStore::open_existing(&path) {
            Err(fault) => faults.push(fault),
            Ok(store) => {
                let mut store = store.unwrap();
                let search = Search::parse("words 3*").unwrap();
                faults.extend(
                    store
                        .threads(&ThreadFilter::default(), Page::first(99))
                        .err(),
                );
                faults.extend(store.inbox(Page::first(99)).err());
                faults.extend(store.search(&search, Page::first(99)).err());
                faults.extend(store.find("M00").err());
                for n in 0..7 {
                    faults.extend(store.messages(&format!("T{n}"), None, 99).err());
                }
                faults.extend(store.accept(&[letter("N1").thread("T1").arrival()]).err());
                faults.extend(store.forget("T2").err());
                faults.extend(store.check().err());
            }
        }
        for fault in &faults {
            let said = fault.to_string();
            assert!(said.contains("crosstalk.db"), "{said}");
            assert!(
                matches!(fault.fault, StoreFault::Damaged | StoreFault::Newer),
                "{fault:?}"
            );
        }
        named += usize::from(!faults.is_empty());
        assert!(round > 5 || !faults.is_empty(), "round {round}");
    }
    assert!(named * 2 > tried, "{named} of {tried}");
}

#[test]
fn a_folder_in_its_place_is_named() {
    let place = Place::on_disk();
    std::fs::create_dir(place.home().store()).unwrap();
    for open in [
        SqliteStore::open(place.home().store()).map(Some),
        SqliteStore::open_existing(place.home().store()),
    ] {
        let fault = open.unwrap_err();
        assert_eq!(fault.fault, StoreFault::Unavailable);
        assert!(fault.explanation.what.contains("crosstalk.db"), "{fault}");
    }
}

#[cfg(unix)]
#[test]
fn the_files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::on_disk();
    let home = place.path().join("deep/home");
    let mut store = SqliteStore::open(Home::at(&home).store()).unwrap();
    store.accept(&[letter("M1").arrival()]).unwrap();
    let search = Search::parse("anything").unwrap();
    store.search(&search, Page::first(1)).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&home), mode(home.parent().unwrap())), (0o700, 0o700));
    let names = crate::all_names(&home);
    assert_eq!(names.len(), 7, "{names:?}");
    for name in names {
        assert_eq!(mode(&home.join(&name)), 0o600, "{name}");
    }
}
