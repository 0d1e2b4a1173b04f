//! Consents on record over HTTP.

use crate::house::{House, Plan, letter, secret};
use crate::http::Ask;
use crosstalk_protocol::relay::Role;
use serde_json::Value;

fn office() -> House {
    Plan::default()
        .token("ci", Role::Agent, &["claude://code/*"])
        .token("gpt", Role::Agent, &["chatgpt://thread/x"])
        .token("ann", Role::Person, &["human://acme.example/ann"])
        .token("ops", Role::Admin, &[])
        .open()
}

fn get(house: &House, path: &str, name: &str) -> (u16, Value) {
    let ask = Ask::get(path).token(&secret(name));
    let answer = house.ask(&ask.accept("application/json"));
    match answer.status {
        200 => (200, answer.json()),
        other => (other, Value::Null),
    }
}

fn grant(house: &House, id: &str, consent: &str, more: &[(&str, &str)]) {
    let (from, to) = ("human://acme.example/ann", "claude://code/api");
    let mut message = letter(from, to, id)
        .meta("privacy", "Consent", "explicit_yes")
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Consent-ID", consent);
    for (key, value) in more {
        message = message.meta("privacy", *key, *value);
    }
    let sent = Ask::send(message.build().unwrap()).token(&secret("ann"));
    let answer = house.ask(&sent);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Threat 38: who has no part in a consent does not learn that it is there.
#[test]
fn a_consent_is_seen_by_who_gave_and_got_it() {
    let house = office();
    grant(&house, "M1", "health", &[]);
    for (name, sees) in [("ann", true), ("ci", true), ("ops", true), ("gpt", false)] {
        let (status, list) = get(&house, "/crosstalk/consents", name);
        assert_eq!(status, 200, "{name}");
        let all = list["consents"].as_array().unwrap();
        assert_eq!(all.len(), usize::from(sees), "{name}: {list}");
        let (status, one) = get(&house, "/crosstalk/consents/health", name);
        assert_eq!(status, if sees { 200 } else { 404 }, "{name}");
        if sees {
            assert_eq!(one["granter"], "human://acme.example/ann");
            assert_eq!(one["standing"], "holds");
            assert_eq!(one["messages"][0]["id"], "M1", "{name}: {one}");
            assert_eq!(one["messages"][0]["has_text"], true);
            assert_eq!(one["told"], Value::Array(Vec::new()));
        }
    }
    let (unknown, _) = get(&house, "/crosstalk/consents/nothing", "ops");
    assert_eq!(unknown, 404);
    let nobody = house.ask(&Ask::get("/crosstalk/consents"));
    assert_eq!(nobody.status, 401);
}

#[test]
fn consents_are_listed_by_who_gave_them_and_whether_they_hold() {
    let house = office();
    grant(&house, "M1", "one", &[]);
    grant(&house, "M2", "two", &[("Expires", "2090-01-01T00:00:00Z")]);
    let ids = |path: &str| -> Vec<String> {
        let (status, list) = get(&house, path, "ops");
        assert_eq!(status, 200, "{path}: {list}");
        let all = list["consents"].as_array().unwrap().iter();
        let mut ids: Vec<String> = all.map(|c| c["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids("/crosstalk/consents"), ["one", "two"]);
    assert_eq!(ids("/crosstalk/consents?limit=1").len(), 1);
    assert_eq!(
        ids("/crosstalk/consents?by=human%3A%2F%2Facme.example%2Fann"),
        ["one", "two"]
    );
    assert_eq!(ids("/crosstalk/consents?by=BOB"), Vec::<String>::new());
    assert_eq!(ids("/crosstalk/consents?holding=true"), ["one", "two"]);
    let (wrong, _) = get(&house, "/crosstalk/consents?holding=perhaps", "ops");
    assert_eq!(wrong, 400);
}
