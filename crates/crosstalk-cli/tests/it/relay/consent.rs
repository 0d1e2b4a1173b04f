//! Consents at a relay: granted, listed, shown and withdrawn over the network.

use super::{Person, Relay, header};
use crate::schema::{assert_valid, validator};
use serde_json::Value;

const ANN: &str = "human://acme.example/ann";
const BOT: &str = "claude://code/api";

/// A relay that knows Ann's key.
fn setting(test: &str) -> (Person, Relay) {
    let ann = Person::new(test, "ann");
    ann.does(&["config", "set", "sender", ANN]);
    ann.does(&["key", "new", "--id", "ann@acme.example"]);
    let pem = ann.home.path("ann.pem");
    let key = ann.does(&["key", "export", "ann@acme.example"]);
    std::fs::write(&pem, key.out).unwrap();
    let data = ann.home.path("relay");
    let pin = ["trust", "pin", "ann@acme.example", "--sender", ANN, "--key"];
    let pin = [&pin[..], &[pem.to_str().unwrap()]].concat();
    let home = [("CROSSTALK_HOME", data.to_str().unwrap())];
    let pinned = ann.home.run_with(&home, &pin, "");
    assert_eq!(pinned.code, 0, "{}{}", pinned.out, pinned.err);
    let relay = Relay::start_at(&data, &[]);
    ann.does(&["relay", "add", &relay.url]);
    (ann, relay)
}

fn list(ann: &Person, more: &[&str]) -> Vec<Value> {
    let words = ["consent", "list", "--relay", "--json"];
    let listed = ann.does(&[&words[..], more].concat());
    let value = assert_valid(&validator("consents"), &listed.out, &listed.err);
    value["consents"].as_array().unwrap().clone()
}

fn show(ann: &Person, id: &str) -> Value {
    let shown = ann.does(&["consent", "show", id, "--relay", "--json"]);
    assert_valid(&validator("consent"), &shown.out, &shown.err)
}

#[test]
fn a_consent_is_granted_listed_shown_and_withdrawn_at_a_relay() {
    let (ann, relay) = setting("consent");
    assert_eq!(list(&ann, &[]), Vec::<Value>::new());
    let grant = ["consent", "grant", BOT, "--scope", "medical", "--id"];
    let granted = ann.does(&[&grant[..], &["health-2026", "--expires", "30d"]].concat());
    assert!(granted.out.contains("at any time"), "{}", granted.out);
    let all = list(&ann, &[]);
    assert_eq!(all.len(), 1);
    assert_eq!(
        (&all[0]["id"], &all[0]["granter"], &all[0]["assurance"]),
        (&"health-2026".into(), &ANN.into(), &"pinned".into())
    );
    assert_ne!(all[0]["expires"], Value::Null);
    // Its data folder says the same, without the network.
    let data = ann.home.path("relay");
    let data = ["--data", data.to_str().unwrap()];
    let listed = ann.does(&[&["consent", "list"], &data[..]].concat());
    assert!(listed.out.contains("health-2026"), "{}", listed.out);
    let shown = ann.does(&[&["consent", "show", "health-2026"], &data[..]].concat());
    assert!(shown.out.contains(ANN), "{}", shown.out);

    let send = ["send", BOT, "--sign", "--scope", "medical", "--consent"];
    let under = ["explicit_yes", "--consent-id", "health-2026"];
    let sent = ann.does(&[&send[..], &under, &["My blood pressure is 140 to 90."]].concat());
    assert!(!sent.err.contains("is new"), "{}", sent.err);
    let id = header(&sent.out, "message");
    // By the beginning of its name as well; of what is not there, the relay says so.
    for name in ["health-2026", "heal"] {
        let record = show(&ann, name);
        assert_eq!(record["standing"], "holds", "{record}");
        let messages = record["messages"].as_array().unwrap();
        assert!(
            messages
                .iter()
                .any(|m| m["id"] == id.as_str() && m["has_text"] == true)
        );
    }
    let unknown = ann.run(&["consent", "show", "wealth", "--relay"]);
    assert_eq!(unknown.code, 10, "{}", unknown.err);

    let revoked = ann.does(&["consent", "revoke", "health-2026", "--reason", "it is over"]);
    assert!(revoked.err.contains("2 messages erased"), "{}", revoked.err);
    let record = show(&ann, "health-2026");
    assert_eq!(record["standing"], "revoked", "{record}");
    assert_eq!(record["revoked"]["reason"], "it is over");
    let messages = record["messages"].as_array().unwrap();
    assert!(messages.iter().all(|m| m["has_text"] == false), "{record}");
    let held = ann.does(&["inbox", "--relay", "--for", BOT, "--json"]);
    assert!(!held.out.contains("140 to 90"), "{}", held.out);
    assert_eq!(list(&ann, &[]), Vec::<Value>::new());
    assert_eq!(list(&ann, &["--all"]).len(), 1);
    // The second time nothing is left to do, and that is said; the store stays sound on both sides.
    let again = ann.does(&["consent", "revoke", "health-2026"]);
    assert!(again.err.contains("already revoked"), "{}", again.err);
    assert!(again.err.contains("nothing to erase"), "{}", again.err);
    let data = relay.data().to_owned();
    relay.stop();
    ann.does(&["fsck", "--data", &data]);
    ann.does(&["fsck"]);
}

/// What a person types is taken as they mean it, or they are told.
#[test]
fn what_is_typed_about_a_consent_is_looked_at() {
    let kalle = Person::new("consent-typed", "kalle");
    let grant = ["consent", "grant", BOT, "--scope"];
    let empty = kalle.run(&[&grant[..], &[" "]].concat());
    assert_eq!(empty.code, 2, "{}", empty.err);
    // Without a key it can't be revoked, and does not say so.
    let granted = kalle.does(&[&grant[..], &["medical", "--id", "health"]].concat());
    assert!(!granted.out.contains("revoke it"), "{}", granted.out);
    let send = [
        "send",
        BOT,
        "--scope",
        "medical",
        "--consent",
        "explicit_yes",
    ];
    let typo = kalle.does(&[&send[..], &["--consent-id", "helth", "140 to 90."]].concat());
    assert!(typo.err.contains("helth is new"), "{}", typo.err);
    let known = kalle.does(&[&send[..], &["--consent-id", "health", "140 to 90."]].concat());
    assert!(!known.err.contains("is new"), "{}", known.err);
}

/// What was granted under another name of one's own is revoked under it, here and at the relay of this machine.
#[test]
fn a_consent_that_was_granted_under_another_name_is_revoked_under_it() {
    let ann = Person::new("consent-from", "ann");
    ann.does(&["key", "new", "--id", "ann@acme.example"]);
    let grant = [
        "consent", "grant", BOT, "--scope", "medical", "--from", ANN, "--id",
    ];
    let revoke = ["consent", "revoke"];
    // Here alone: with the name, and without it.
    for (id, more) in [("here", &["--from", ANN][..]), ("here-too", &[])] {
        ann.does(&[&grant[..], &[id]].concat());
        let revoked = ann.does(&[&revoke[..], &[id], more].concat());
        assert!(revoked.err.contains("Revoked"), "{}", revoked.err);
        assert!(
            revoked.out.starts_with(&format!("[[{ANN}→")),
            "{}",
            revoked.out
        );
    }
    // By a relay, after the same key has signed under another name.
    let relay = Relay::start(&ann.home, &[]);
    ann.does(&["relay", "add", &relay.url]);
    ann.does(&["send", BOT, "Hello.", "--sign", "--with-key"]);
    ann.does(&[&grant[..], &["there"]].concat());
    assert_eq!(show(&ann, "there")["standing"], "holds");
    ann.does(&[&revoke[..], &["there", "--from", ANN]].concat());
    assert_eq!(show(&ann, "there")["standing"], "revoked");
    // A consent of somebody else stays.
    let other = ann.run(&[
        "consent",
        "revoke",
        "there",
        "--from",
        "human://acme.example/bob",
    ]);
    assert_eq!(other.code, 14, "{}", other.err);
    relay.stop();
}
