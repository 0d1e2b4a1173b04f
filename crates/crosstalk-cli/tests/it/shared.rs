//! Relays that share a PostgreSQL database, as processes of their own.

use crosstalk_testing::folder::Folder;
use crosstalk_testing::http::Connection;
use crosstalk_testing::postgres::Postgres;
use crosstalk_testing::relay::{Relay, Setup};
use crosstalk_testing::wait::wait_for_ok;
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
