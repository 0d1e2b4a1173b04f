//! Keys that a domain lists, asked of a real name server.

use crate::run::Home;
use crosstalk_testing::knot::{Knot, Signing, Zone};
use serde_json::Value;

/// The sender has an address of the domain that vouches for the key.
const MESSAGE: &str = "[[human://alice@example.test/inbox→CHATGPT v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\ncontext: tests\n\
    intent: REQUEST\nbody: |\n  Did they pass?\nsig: none\n[[END]]\n";

fn made(home: &Home, arguments: &[&str], stdin: &str) -> String {
    let ended = home.run(arguments, stdin);
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
    ended.out
}

fn record(home: &Home, id: &str) -> String {
    let out = made(home, &["key", "show", id, "--json"], "");
    let value: Value = serde_json::from_str(&out).unwrap();
    value["keys"][0]["public"].as_str().unwrap().to_owned()
}

struct Asked<'a>(&'a Home, String);

impl Asked<'_> {
    fn verdict(&self, text: &str, more: &[&str]) -> Value {
        let server = ["verify", "--json", "--dns", "--dns-server", &self.1];
        let ended = self.0.run(&[&server[..], more].concat(), text);
        let value: Value = serde_json::from_str(&ended.out).unwrap();
        let word = crosstalk_protocol::VerdictWord::ALL
            .into_iter()
            .find(|w| value["verdict"] == w.as_str())
            .unwrap();
        assert_eq!(ended.code, i32::from(word.exit_code()));
        value
    }
}

#[test]
fn a_domain_vouches_for_its_keys() {
    let (alice, bob) = (Home::new("dns-alice"), Home::new("dns-bob"));
    for id in ["alice@example.test", "alice@other.test", "alice@none.test"] {
        made(&alice, &["key", "new", "--id", id], "");
    }
    let sign = |id: &str| made(&alice, &["sign", "--with-key", "--key", id], MESSAGE);
    let listed = record(&alice, "alice@example.test");
    let knot = Knot::start([
        Zone::new("example.test").txt("_crosstalk-key", &[&listed]),
        Zone::new("other.test").txt("_crosstalk-key", &[&listed]),
        Zone::new("none.test"),
    ]);
    let asked = Asked(&bob, knot.address().to_string());
    let message = sign("alice@example.test");

    // Nobody is asked unless it was said.
    let unasked = bob.run(&["verify", "--json"], &message).out;
    assert!(unasked.contains("\"first-contact\""), "{unasked}");

    let verdict = asked.verdict(&message, &[]);
    assert_eq!(
        (&verdict["verdict"], &verdict["trust"]),
        (&"verified".into(), &"dns".into()),
        "{verdict}"
    );
    // The domain says nothing about senders elsewhere, nor about a simple name.
    for sender in ["human://ann@acme.test/inbox", "CLAUDE"] {
        let text = MESSAGE.replace("human://alice@example.test/inbox", sender);
        let arguments = ["sign", "--with-key", "--key", "alice@example.test"];
        let text = made(&alice, &arguments, &text);
        let verdict = asked.verdict(&text, &[]);
        assert_eq!(
            (&verdict["verdict"], &verdict["trust"], &verdict["rule"]),
            (&"unbound".into(), &"dns".into(), &"TRU-026".into()),
            "{verdict}"
        );
        let shown = bob.run(&["verify", "--dns", "--dns-server", &asked.1], &text);
        assert_eq!(shown.code, 26, "{}", shown.out);
        assert!(!shown.out.contains("VERIFIED"), "{}", shown.out);
        let flat = shown.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let warning = format!("neither this domain nor a pin binds the key to the sender {sender}");
        assert!(
            flat.starts_with("UNBOUND") && flat.contains(&warning),
            "{flat}"
        );
    }
    let other = asked.verdict(&sign("alice@other.test"), &[]);
    assert_eq!(other["rule"], "TRU-023", "{other}");
    let none = asked.verdict(&sign("alice@none.test"), &[]);
    assert_eq!(none["rule"], "TRU-021", "{none}");
    let strict = asked.verdict(&message, &["--require-dnssec"]);
    assert_eq!(strict["rule"], "TRU-024", "{strict}");

    let refused = asked.verdict(&sign_as(&alice, "alice@elsewhere.test"), &[]);
    assert_eq!(
        (&refused["verdict"], &refused["retry"]),
        (&"unknown-key".into(), &true.into()),
        "{refused}"
    );

    // The answer is kept, and nobody needs to be asked again.
    drop(knot);
    let kept = asked.verdict(&message, &[]);
    assert_eq!(kept["trust"], "dns", "{kept}");
    let checked = bob.run(&["trust", "list"], "").out;
    assert!(checked.contains("example.test  1 key in DNS"), "{checked}");
}

fn sign_as(home: &Home, id: &str) -> String {
    made(home, &["key", "new", "--id", id], "");
    made(home, &["sign", "--with-key", "--key", id], MESSAGE)
}

#[test]
fn pinned_keys_are_checked_against_their_domain() {
    let (alice, bob) = (Home::new("dns-check-alice"), Home::new("dns-check-bob"));
    made(&alice, &["key", "new", "--id", "alice@example.test"], "");
    made(&alice, &["key", "new", "--id", "alice@other.test"], "");
    let listed = record(&alice, "alice@example.test");
    let knot = Knot::start([
        Zone::new("example.test").txt("_crosstalk-key", &[&listed]),
        Zone::new("other.test").txt("_crosstalk-key", &[&listed]),
    ]);
    let server = knot.address().to_string();
    for (id, code, says) in [
        ("alice@example.test", 0, "lists this key"),
        ("alice@other.test", 1, "lists other keys"),
    ] {
        let key = record(&alice, id);
        made(&bob, &["trust", "pin", id, "--key", &key], "");
        let check = ["trust", "check", id, "--dns", "--dns-server", &server];
        let ended = bob.run(&check, "");
        assert_eq!(ended.code, code, "{}", ended.out);
        assert!(ended.out.contains(says), "{}", ended.out);
    }
}

#[test]
fn dnssec_is_checked_against_the_given_keys_and_a_changed_zone_is_asked_again() {
    let (alice, bob) = (Home::new("dnssec-alice"), Home::new("dnssec-bob"));
    made(&alice, &["key", "new", "--id", "alice@example.test"], "");
    let old = made(&alice, &["sign"], MESSAGE);
    let zone = |home: &Home| {
        Zone::new("example.test")
            .signed(Signing::Nsec)
            .txt("_crosstalk-key", &[&record(home, "alice@example.test")])
    };
    let signed = zone(&alice);
    let knot = Knot::start([signed.clone()]);
    let anchor = bob.path("anchor");
    std::fs::write(&anchor, knot.anchor(&signed)).unwrap();
    let asked = Asked(&bob, knot.address().to_string());
    let strict = ["--require-dnssec", "--dns-anchor", anchor.to_str().unwrap()];
    let verdict = asked.verdict(&old, &strict);
    assert_eq!(verdict["dnssec"], "secure", "{verdict}");

    // The answer is kept, and lists the old key: the new one is no reason to refuse before asking again.
    made(&alice, &["key", "rotate", "alice@example.test"], "");
    let new = made(&alice, &["sign"], MESSAGE);
    let refused = asked.verdict(&new, &strict);
    assert_eq!(refused["verdict"], "not-verified", "{refused}");
    knot.set(&zone(&alice));
    let verdict = asked.verdict(&new, &strict);
    assert_eq!(verdict["dnssec"], "secure", "{verdict}");
    assert_eq!(asked.verdict(&old, &strict)["verdict"], "not-verified");
}
