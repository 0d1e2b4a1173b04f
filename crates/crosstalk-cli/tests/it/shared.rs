//! Relays that share a PostgreSQL database, as processes of their own, and copies of their store.

use crosstalk_testing::folder::Folder;
use crosstalk_testing::http::Connection;
use crosstalk_testing::postgres::{Database, Postgres};
use crosstalk_testing::relay::{Relay, Setup};
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_for_ok;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_crosstalk");

fn relay_on(url: &str, data: &Path) -> Setup {
    Relay::of(PROGRAM)
        .data(data)
        .argument("--store")
        .argument(url)
        .argument("--name")
        .argument("relay.example")
}

fn copy_files(from: &Path, to: &Path) {
    let mut copy = Command::new("cp");
    assert!(copy.arg("-a").arg(from).arg(to).status().unwrap().success());
}

fn readiness(relay: &Relay) -> (u16, String) {
    let answer = Connection::open(relay.address()).and_then(|mut c| c.get("/readyz"));
    let answer = answer.unwrap();
    (answer.status, answer.text())
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

/// What others get of a relay: the conversations with their texts, an inbox, and the audit log with its proofs.
fn exported(relay: &Relay, threads: usize) -> Vec<String> {
    let mut paths = vec![
        "/crosstalk/inbox?for=CLAUDE&limit=500".to_owned(),
        "/crosstalk/audit/entries?texts=true&limit=500".to_owned(),
        "/crosstalk/audit/checkpoint".to_owned(),
    ];
    paths.extend((0..threads).map(|number| format!("/crosstalk/threads/T{number}")));
    let mut all = Vec::new();
    for path in paths {
        let answer = relay.connect().get(&path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        all.push(answer.text());
    }
    all
}

fn copy_command(from: &str, to: &str) -> Command {
    let mut copy = Command::new(PROGRAM);
    copy.args(["store", "copy", "--from", from, "--to", to]);
    copy.stdin(Stdio::null());
    copy
}

/// Copies a store, and kills the command again and again before it is done. How often it was killed.
fn copy_with_kills(from: &str, to: &str) -> u64 {
    let mut kills = 0;
    loop {
        let mut copy = copy_command(from, to);
        let mut copy = copy
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Each attempt gets further than the one before.
        std::thread::sleep(std::time::Duration::from_millis(60 * (kills + 1)));
        let _ = copy.kill();
        let ended = copy.wait_with_output().unwrap();
        if ended.status.success() {
            return kills;
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        if said.contains("has data of relays already") || said.contains("there is a store") {
            // The one before was killed when it had done everything.
            return kills;
        }
        assert!(ended.status.code().is_none(), "{said}");
        kills += 1;
    }
}

#[test]
fn a_relay_moves_into_a_database_and_back() {
    const THREADS: usize = 20;
    let (first, back, database) = (Folder::new("first"), Folder::new("back"), Database::new());
    let messages = tier::size(1_500, 20_000);
    let start = |data: &Path| {
        Relay::of(PROGRAM)
            .data(data)
            .argument("--name")
            .argument("relay.example")
            .start()
    };
    let mut relay = start(first.path());
    for part in 0..messages / 500 {
        let batch: String = (0..500)
            .map(|number| {
                let number = part * 500 + number;
                format!(
                    "[[ANN→CLAUDE v1]]\nuser: ann\nsession: s\nthread: T{}\nmessage: M{number}\ncontext: plums\nintent: NOTE\n\
                     body: |\n  Number {number}, \u{fc}n\u{ef}code.\nsig: none\n[[END]]\n",
                    number % THREADS
                )
            })
            .collect();
        let kind = "Content-Type: application/vnd.crosstalk.batch\r\n";
        let mut connection = relay.connect();
        let taken = connection.request("POST", "/crosstalk/receive", kind, batch.as_bytes());
        let taken = taken.unwrap();
        assert_eq!(taken.status, 200, "{}", taken.text());
    }
    relay.stop();
    let mut relay = start(first.path());
    let before = exported(&relay, THREADS);
    relay.stop();

    let (from, to) = (
        first.path().to_str().unwrap(),
        back.path().to_str().unwrap(),
    );
    let kills = copy_with_kills(from, &database.url());
    assert!(kills > 0);
    // The relay goes on with the database, with the same key.
    let mut shared = relay_on(&database.url(), first.path()).start();
    assert_eq!(exported(&shared, THREADS), before);
    let running = copy_command(&database.url(), to).output().unwrap();
    assert_eq!(running.status.code(), Some(1));
    let said = String::from_utf8_lossy(&running.stderr).into_owned();
    assert!(
        said.contains("relays use the database") && said.contains("stop all relays"),
        "{said}"
    );
    shared.stop();

    copy_with_kills(&database.url(), to);
    copy_files(&first.path().join("keys"), &back.path().join("keys"));
    let relay = start(back.path());
    assert_eq!(exported(&relay, THREADS), before);
    let checked = Command::new(PROGRAM)
        .args(["fsck", "--data", to])
        .output()
        .unwrap();
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
}

/// No command takes a half copy for a store, or makes an empty one beside it.
#[test]
fn a_folder_with_a_half_copy_is_no_data_folder() {
    let data = Folder::new("half");
    std::fs::create_dir_all(data.path().join("copying")).unwrap();
    let words = ["serve", "--listen", "127.0.0.1:0", "--data"];
    let mut serve = Command::new(PROGRAM);
    let ended = serve.args(words).arg(data.path()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("start the same copy again"), "{said}");
    assert!(!data.path().join("relay.db").exists());
}
