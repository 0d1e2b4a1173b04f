//! Stored answers: a caller gets the answer to a message only if the caller may read for its sender.

use crate::house::{House, Plan, key, letter, secret, signed, text};
use crate::http::Ask;
use crosstalk_protocol::relay::Role;
use serde_json::Value;

const ANN: &str = "human://acme.example/ann";

fn open() -> House {
    Plan::default()
        .token("ann", Role::Person, &[ANN])
        .token("bot", Role::Agent, &["bot://port"])
        .token("mallory", Role::Agent, &["mallory://x"])
        .token("ops", Role::Admin, &[])
        .pin("ann@keys", &key(), ANN)
        .open()
}

fn send(house: &House, name: &str, text: &str) {
    let answer = house.ask(&Ask::send(text).token(&secret(name)));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn state(house: &House, id: &str) -> Value {
    let path = format!("/crosstalk/messages/{id}/status");
    let status = house.ask(&Ask::get(&path).token(&secret("ops"))).json();
    status["deliveries"][0]["state"].clone()
}

#[test]
fn replayed_request_gets_no_answer() {
    let house = open();
    let question = signed(&text(ANN, "bot://port", "M1"), &key(), "ann@keys");
    send(&house, "ann", &question);
    let copy = Ask::send(&question);
    let copies = [copy.clone(), copy.clone().token(&secret("mallory"))];
    let answer = letter("bot://port", ANN, "M2").intent("RESPOND");
    let answer = answer.parent("M1").body("The PIN is 4711.");
    send(&house, "bot", &answer.build().unwrap());
    for copy in &copies {
        let answer = house.ask(&copy.clone().header("Prefer", "wait=60"));
        assert!(!answer.text().contains("4711"), "{}", answer.text());
        assert_eq!((answer.status, answer.intent().as_str()), (200, "ACK"));
        assert_eq!(state(&house, "M2"), "queued");
    }
    // An administrator may read it, and nothing counts as handed out because of that.
    let answer = house.ask(
        &copy
            .clone()
            .token(&secret("ops"))
            .header("Prefer", "wait=60"),
    );
    assert_eq!(answer.intent(), "RESPOND");
    assert_eq!(state(&house, "M2"), "queued");
    let answer = house.ask(&copy.token(&secret("ann")).header("Prefer", "wait=60"));
    assert_eq!(answer.intent(), "RESPOND");
    assert_eq!(state(&house, "M2"), "delivered");
}

/// Whoever may not read for the sender does not wait for the answer either.
#[test]
fn replayed_request_is_not_waited_for() {
    let house = open();
    let question = signed(&text(ANN, "bot://port", "M1"), &key(), "ann@keys");
    let copy = Ask::send(&question).header("Prefer", "wait=1");
    for copy in [copy.clone(), copy.clone().token(&secret("mallory"))] {
        let answer = house.ask(&copy);
        assert_eq!((answer.status, answer.intent().as_str()), (200, "ACK"));
        assert_eq!(answer.header("preference-applied"), None);
    }
    let answer = house.ask(&copy.token(&secret("ann")));
    assert_eq!(answer.header("preference-applied"), Some("wait=1"));
}

#[test]
fn ballot_of_a_secret_poll_is_never_the_answer() {
    let house = open();
    let poll = |id: &str, secrecy: &str| {
        let poll = letter(ANN, "bot://port", id).thread(format!("T-{id}"));
        let poll = poll.intent("POLL").meta("poll", "Options", "Yes | No");
        let poll = poll.meta("routing", "Targets", "[\"bot://port\"]");
        signed(
            &poll.meta("poll", "Secrecy", secrecy).build().unwrap(),
            &key(),
            "ann@keys",
        )
    };
    for (id, secrecy, intent) in [("P1", "until close", "ACK"), ("P2", "none", "RESPOND")] {
        let poll = poll(id, secrecy);
        send(&house, "ann", &poll);
        let vote = letter("bot://port", ANN, &format!("V-{id}")).thread(format!("T-{id}"));
        let vote = vote.intent("RESPOND").parent(id);
        let vote = vote.meta("vote", "Choice", "No").body("Between us.");
        send(&house, "bot", &vote.build().unwrap());
        let waits = Ask::send(&poll).header("Prefer", "wait=1");
        for name in [None, Some("mallory")] {
            let waits = name.map_or(waits.clone(), |n| waits.clone().token(&secret(n)));
            assert_eq!(house.ask(&waits).intent(), "ACK", "{id} {name:?}");
        }
        let answer = house.ask(&waits.token(&secret("ann")));
        assert_eq!(answer.intent(), intent, "{id}");
    }
}
