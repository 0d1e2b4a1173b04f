//! A disk that fills up: senders are told to come again, nothing is half-written, and it goes on when there is room.

use super::{comes_again, listed, relay, skip};
use crosstalk_store::SqliteStore;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::relay::envelope;
use crosstalk_testing::wait::{wait_for_ok, wait_until};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

const INBOX: &str = "claude://full/inbox";

#[test]
#[ignore = "run by the other test, on a disk of its own"]
fn filled() {
    let Some(place) = std::env::var_os("CROSSTALK_FULL_DISK") else {
        return;
    };
    let place = Path::new(&place);
    let ballast = place.join("ballast");
    std::fs::write(&ballast, vec![7; 24 << 20]).unwrap();
    let mut relay = relay().data(place.join("data")).start();
    let mut connection = relay.connect();
    let letter = |id: &str| envelope(id, &format!("T{id}"), "chatgpt://full/s", INBOX);
    let mut taken = BTreeSet::new();
    let mut refused = BTreeSet::new();
    // Until the disk has been full for a while.
    for number in 0..100_000 {
        let id = format!("FULL-{number:06}");
        let answer = connection.receive(&letter(&id)).unwrap();
        match answer.status {
            200 => assert!(taken.insert(id)),
            503 => {
                let (code, wait) = comes_again(&answer);
                assert_eq!(code, "E-RATE", "{}", answer.text());
                assert!(wait > 0);
                refused.insert(id);
            }
            other => panic!("{other}: {}\n{}", answer.text(), relay.log()),
        }
        if refused.len() >= 20 {
            break;
        }
    }
    assert!(
        taken.len() > 100 && refused.len() >= 20,
        "{} {}",
        taken.len(),
        refused.len()
    );
    // It can be asked, and has what it answered for and nothing else.
    let there = |relay: &crosstalk_testing::relay::Relay| {
        let (ids, _) = listed(&mut relay.connect(), INBOX, None);
        let set: BTreeSet<String> = ids.iter().cloned().collect();
        assert_eq!(ids.len(), set.len(), "something is there twice");
        set
    };
    assert_eq!(there(&relay), taken);
    assert_eq!(connection.get("/healthz").unwrap().status, 200);
    assert!(relay.has_ended().is_none());
    // There is room again, and nobody has to tell it.
    std::fs::remove_file(&ballast).unwrap();
    // First of all, what it has accepted is indexed: that must not take the room for good.
    wait_until("everything to be indexed", || {
        let metrics = connection.get("/metrics").unwrap().text();
        metrics
            .lines()
            .any(|line| line == "crosstalk_index_backlog 0")
    });
    for id in &refused {
        wait_for_ok(|| {
            let answer = connection.receive(&letter(id)).unwrap();
            assert!(matches!(answer.status, 200 | 503), "{}", answer.text());
            let is_taken = answer.status == 200;
            is_taken
                .then_some(())
                .ok_or_else(|| format!("its recovery:\n{}", relay.log()))
        });
    }
    taken.extend(refused);
    assert_eq!(there(&relay), taken);
    assert!(relay.stop().success(), "{}", relay.log());
    let store = SqliteStore::open_existing(relay.store());
    assert_eq!(
        store.unwrap().unwrap().check().unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn a_full_disk_is_told_and_nothing_is_half_written() {
    const TEST: &str = "a_full_disk_is_told_and_nothing_is_half_written";
    let place = Folder::within(Path::new(env!("CARGO_TARGET_TMPDIR")), "full");
    let can = |flags: &str| {
        let words = [flags, "mount", "-t", "tmpfs", "tmpfs"];
        let mut command = Command::new("unshare");
        command.args(words).arg(place.path()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let Some(flags) = ["-m", "-Urm"].into_iter().find(|flags| can(flags)) else {
        return skip(
            TEST,
            "no file system can be mounted: neither root nor user namespaces",
        );
    };
    let script = "mount -t tmpfs -o size=34m,mode=700 tmpfs \"$CROSSTALK_FULL_DISK\"\n\
                  exec \"$0\" --exact pressure::disk::filled --ignored --nocapture";
    let output = Command::new("unshare")
        .args([flags, "sh", "-euc", script])
        .arg(std::env::current_exe().unwrap())
        .env("CROSSTALK_FULL_DISK", place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{complained}"
    );
}
