//! What another relay may say as SYSTEM.

use super::{as_token, new_key};
use crate::dns::Domains;
use crate::house::{House, Plan, START, letter, secret, text};
use crate::http::Ask;
use crosstalk_envelope::{PrivateKey, Timestamp};
use crosstalk_protocol::relay::{HopKey, Role, add_hop};
use crosstalk_testing::wait::wait_until;
use std::sync::Arc;

const ANN: &str = "human://here.example/ann";
const BOB: &str = "bot://b.test/bob";

/// A text as the relay of a domain passes it on.
pub fn passed_on(text: &str, domain: &str, key: &PrivateKey) -> String {
    let hop = HopKey { key, pkid: domain };
    add_hop(text, Timestamp::from_millis(START), domain, Some(hop)).unwrap()
}

/// Ann asks Bob, who is elsewhere: the question waits to be passed on.
pub fn ask_bob(house: &House) {
    let asked = as_token(house, "ann", &text(ANN, BOB, "Q1"));
    assert_eq!(asked.status, 200, "{}", asked.text());
    let store = house.store();
    wait_until("the question is indexed", || {
        !store.deliveries("Q1").unwrap().is_empty()
    });
}

struct Scene {
    house: House,
    b: PrivateKey,
    c: PrivateKey,
}

impl Scene {
    /// Ann has sent a question to b.test, and nothing to c.test.
    fn open() -> Self {
        let (b, c) = (new_key(), new_key());
        let names = Domains::default().list("b.test", &b).list("c.test", &c);
        let house = Plan::default()
            .config("name = \"here.example\"\n[federation]\nenabled = true\naccept = true\n")
            .resolver(Arc::new(names))
            .token("ann", Role::Person, &[ANN])
            .open();
        ask_bob(&house);
        Self { house, b, c }
    }

    fn b_says(&self, text: &str) -> u16 {
        let text = passed_on(text, "b.test", &self.b);
        self.house.ask(&Ask::send(text)).status
    }

    fn inbox(&self) -> serde_json::Value {
        let path = format!("/crosstalk/inbox?for={ANN}");
        let ask = Ask::get(&path).token(&secret("ann"));
        self.house.ask(&ask.accept("application/json")).json()
    }
}

fn error(to: &str, id: &str, parent: &str) -> String {
    let error = letter("SYSTEM", to, id).parent(parent).intent("ERROR");
    let error = error.meta("error", "Code", "E-ROUTE");
    error.meta("error", "Reason", "Gone").build().unwrap()
}

#[test]
fn foreign_system_forges_no_revocation_and_no_notice() {
    let scene = Scene::open();
    let forged = letter("SYSTEM", ANN, "W1")
        .parent("Q1")
        .intent("BROADCAST")
        .meta("withdrawal", "Consents", "C1")
        .meta("withdrawal", "Erased", "12");
    assert_eq!(scene.b_says(&forged.build().unwrap()), 403);
    let note = letter("SYSTEM", ANN, "W2").parent("Q1").intent("NOTE");
    assert_eq!(scene.b_says(&note.build().unwrap()), 403);
    let request = letter("SYSTEM", ANN, "W3").build().unwrap();
    assert_eq!(scene.b_says(&request), 403);
    let shown = letter("SYSTEM@b.test", ANN, "W4").build().unwrap();
    assert_eq!(scene.b_says(&shown), 403);
    assert_eq!(scene.inbox()["messages"].as_array().unwrap().len(), 0);
}

#[test]
fn foreign_system_reports_about_what_was_sent_there_and_is_shown_with_its_domain() {
    let scene = Scene::open();
    // Nothing like it was sent, or not by the one who is told, or not there.
    assert_eq!(scene.b_says(&error(ANN, "E1", "Q9")), 403);
    assert_eq!(
        scene.b_says(&error("bot://here.example/x", "E2", "Q1")),
        403
    );
    let elsewhere = passed_on(&error(ANN, "E3", "Q1"), "c.test", &scene.c);
    assert_eq!(scene.house.ask(&Ask::send(elsewhere)).status, 403);
    // A hop that its domain did not sign proves nothing.
    let forged = passed_on(&error(ANN, "E4", "Q1"), "b.test", &scene.c);
    assert_ne!(scene.house.ask(&Ask::send(forged)).status, 200);
    assert_eq!(scene.b_says(&error(ANN, "E5", "Q1")), 200);
    let inbox = scene.inbox();
    assert_eq!(crate::house::ids(&inbox["messages"]), ["E5"]);
    assert_eq!(inbox["messages"][0]["from"], "SYSTEM@b.test");
}
