//! Relays that share a PostgreSQL database, as processes of their own.

use crosstalk_testing::folder::Folder;
use crosstalk_testing::http::Connection;
use crosstalk_testing::postgres::{Database, Postgres};
use crosstalk_testing::relay::{Relay, Setup};
use crosstalk_testing::wait::wait_for_ok;
use std::fs;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_crosstalk");

fn relay_on(url: &str, data: &Path) -> Setup {
    Relay::of(PROGRAM)
        .data(data)
        .argument("--store")
        .argument(url)
        .argument("--name")
        .argument("relay.example")
}

fn readiness(relay: &Relay) -> (u16, String) {
    let answer = Connection::open(relay.address()).and_then(|mut c| c.get("/readyz"));
    let answer = answer.unwrap();
    (answer.status, answer.text())
}

#[test]
fn a_relay_with_another_key_does_not_start_on_the_database() {
    let database = Database::new();
    let (one, two) = (Folder::new("one"), Folder::new("two"));
    let first = relay_on(&database.url(), one.path()).start();
    let other = relay_on(&database.url(), two.path()).try_start();
    let reason = other.map(drop).unwrap_err();
    for text in [
        "is signed as `relay.example+",
        "replace the folder `keys`",
        "docs/high-availability.md",
    ] {
        assert!(reason.contains(text), "{text} in {reason}");
    }
    let keys = two.path().join("keys");
    fs::remove_dir_all(&keys).unwrap();
    copy_files(&one.path().join("keys"), &keys);
    let second = relay_on(&database.url(), two.path()).start();
    assert_eq!(readiness(&first).0, 200);
    assert_eq!(readiness(&second).0, 200);
}

fn copy_files(from: &Path, to: &Path) {
    let mut copy = std::process::Command::new("cp");
    assert!(copy.arg("-a").arg(from).arg(to).status().unwrap().success());
}

#[test]
fn a_relay_is_not_ready_while_it_does_not_reach_its_database() {
    let mut server = Postgres::start("");
    let name = server.create_database();
    let data = Folder::new("data");
    let relay = relay_on(&server.url(&name), data.path()).start();
    server.stop();
    let until = |status: u16| {
        wait_for_ok(|| match readiness(&relay) {
            (found, text) if found == status => Ok(text),
            other => Err(format!("{status} and not {other:?}")),
        })
    };
    let text = until(503);
    assert!(text.contains("does not reach its database"), "{text}");
    assert!(server.launch());
    until(200);
}
