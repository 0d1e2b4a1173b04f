//! Tokens that were made or revoked count at once, however that was done; without one, a message has to prove itself.

use crate::dns::Domains;
use crate::house::{House, Plan, START, key, letter, secret, signed, text, token};
use crate::http::{Ask, strict};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Algorithm, PrivateKey, Timestamp};
use crosstalk_protocol::relay::{HopKey, Role, add_hop};
use crosstalk_testing::tier;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const BOT: &str = "bot://port";

fn office() -> Plan {
    Plan::default()
        .token("ci", Role::Agent, &["claude://code/*"])
        .token("bot", Role::Agent, &[BOT])
        .token("bob", Role::Person, &["human://acme.example/bob"])
        .token("ops", Role::Admin, &[])
}

fn end(house: &House, name: &str) {
    let path = format!("/crosstalk/tokens/{name}");
    let ended = house.ask(&Ask::new("DELETE", &path).token(&secret("ops")));
    assert_eq!(ended.status, 204);
}

fn look() -> Ask {
    Ask::get("/crosstalk/agents").token(&secret("ci"))
}

#[test]
fn message_without_a_token_has_to_prove_itself() {
    let (bob, mallory) = (
        key(),
        PrivateKey::from_seed(Algorithm::Ed25519, &[9; 32]).unwrap(),
    );
    let house = office().pin("bob@keys/1", &bob, "claude://bob/1").open();
    let sent = |id: &str| text("claude://bob/1", BOT, id);
    let good = signed(&sent("M1"), &bob, "bob@keys/1");
    for (about, refused) in [
        ("unsigned", sent("M2")),
        ("as SYSTEM", text("SYSTEM", BOT, "M3")),
        ("as a person", text("human://acme.example/bob", BOT, "M4")),
        ("an unknown key", signed(&sent("M5"), &mallory, "who@knows")),
        ("a wrong key", signed(&sent("M6"), &mallory, "bob@keys/1")),
        (
            "the key of somebody else",
            signed(&text("claude://code/api", BOT, "M7"), &bob, "bob@keys/1"),
        ),
        ("a changed text", good.replace("ripe", "rotten")),
    ] {
        for accept in ["text/plain", "application/json"] {
            let answer = house.ask(&Ask::send(&refused).accept(accept));
            assert_eq!(answer.status, 401, "{about}: {}", answer.text());
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{about}");
            assert!(answer.text().contains("E-PERM"), "{about}");
        }
    }
    assert_eq!(house.ask(&Ask::send(&good)).status, 200);
    // With a token, it is a matter of what that may do.
    let other = Ask::send(sent("M8")).token(&secret("ci"));
    let answer = house.ask(&other);
    assert_eq!((answer.status, answer.code().as_str()), (403, "E-PERM"));
}

/// What the domain of a sender proves counts without a token: a key that it lists, or its relay.
#[test]
fn domain_of_the_sender_proves_a_message() {
    let config = "name = \"here.example\"\n[federation]\nenabled = true\naccept = true";
    let house = office()
        .config(config)
        .resolver(Arc::new(Domains::default().list("there.example", &key())))
        .open();
    let sent = |id: &str| text("claude://there.example/bot", BOT, id);
    let good = signed(&sent("M1"), &key(), "bot@there.example");
    assert_eq!(house.ask(&Ask::send(good)).status, 200);
    let passed_on = |text: &str, key: &PrivateKey| {
        let key = HopKey {
            key,
            pkid: "there.example",
        };
        let at = Timestamp::from_millis(START);
        add_hop(text, at, "there.example", Some(key)).unwrap()
    };
    let hop = passed_on(&sent("M2"), &key());
    let answer = house.ask(&Ask::send(hop));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let other = PrivateKey::from_seed(Algorithm::Ed25519, &[9; 32]).unwrap();
    for (about, refused) in [
        ("the hop of another key", passed_on(&sent("M3"), &other)),
        (
            "a sender of another domain",
            passed_on(&text("claude://else.example/bot", BOT, "M4"), &key()),
        ),
        (
            "a person of the domain",
            passed_on(&text("human://there.example/eve", BOT, "M5"), &key()),
        ),
        ("no proof", sent("M6")),
    ] {
        let answer = house.ask(&Ask::send(refused));
        assert!([401, 403].contains(&answer.status), "{about}");
        assert_eq!(answer.code(), "E-PERM", "{about}");
    }
}

/// What another process does to the tokens counts when that process says so.
#[test]
fn token_of_another_process_counts_at_once() {
    let house = House::local();
    let ask = Ask::get("/crosstalk/agents");
    assert_eq!(house.ask(&ask).status, 200);
    let mut store = house.store();
    for number in 0..20 {
        let name = format!("late{number}");
        let made = token(&name, Role::Person, &["ANN"]);
        assert!(store.add_token(&made, "operator").unwrap());
        // Nobody is the person at this machine any more.
        assert_eq!(house.ask(&ask).status, 401);
        let with = ask.clone().token(&secret(&name));
        assert_eq!(house.ask(&with).status, 200);
        let at = Timestamp::from_millis(START);
        assert!(store.revoke_token(&name, "operator", at).unwrap());
        assert_eq!(house.ask(&with).status, 401);
    }
}

#[test]
fn revoked_token_gets_no_answer_that_it_waited_for() {
    let house = office().open();
    let mut line = house.line();
    let question = Ask::send(text("claude://code/api", BOT, "M1")).token(&secret("ci"));
    line.send(question.header("Prefer", "wait=60").bytes());
    // The question is there when its recipient is told so.
    let inbox = format!("/crosstalk/inbox?for={BOT}&wait=60");
    let got = house.ask(&Ask::get(&inbox).token(&secret("bot")));
    assert!(got.text().contains("M1"));
    end(&house, "ci");
    let answer = letter(BOT, "claude://code/api", "M2").intent("RESPOND");
    let answer = answer.parent("M1").body("The PIN is 4711.");
    let sent = Ask::send(answer.build().unwrap()).token(&secret("bot"));
    assert_eq!(house.ask(&sent).status, 200);
    let answer = line.answer();
    assert!(!answer.text().contains("4711"), "{}", answer.text());
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    let status = Ask::get("/crosstalk/messages/M2/status").token(&secret("ops"));
    let status = house.ask(&status).json();
    assert_eq!(status["deliveries"][0]["state"], "queued");
}

#[test]
fn message_that_a_revoked_token_was_still_sending_is_refused() {
    let house = office().open();
    let sent = text("claude://code/api", BOT, "M1");
    for kind in ["text/plain", "application/vnd.crosstalk.batch"] {
        let ask = Ask::send(&sent).header("Content-Type", kind);
        let bytes = ask.token(&secret("ci")).bytes();
        let (first, rest) = bytes.split_at(bytes.len() - 20);
        let mut line = house.line();
        line.send(first);
        // Another request on the same machine: the relay has seen the head of the first one by then.
        assert!([200, 401].contains(&house.ask(&look()).status));
        if kind == "text/plain" {
            end(&house, "ci");
        }
        line.send(rest);
        let answer = line.answer();
        assert_eq!(answer.status, 401, "{kind}: {}", answer.text());
        assert!(house.store().record("M1").unwrap().is_none());
    }
}

const AUTHORITY: &str = "claude://boss/1";

/// An office in which an agent may revoke tokens.
fn with_authority(more: &str) -> House {
    let config = format!("[consent]\nauthorities = [\"{AUTHORITY}\"]\n{more}");
    office()
        .config(&config)
        .token("boss", Role::Agent, &[AUTHORITY])
        .pin("boss@keys", &key(), AUTHORITY)
        .open()
}

/// The message that revokes a token.
fn revoke(name: &str) -> String {
    let revoke = letter(AUTHORITY, BOT, "R1").intent("BROADCAST");
    let revoke = revoke.meta("revocation", "Permission", format!("token:{name}"));
    let text = revoke.build().unwrap();
    let text = text.replace("intent: BROADCAST", "intent: REVOKE");
    signed(&text, &key(), "boss@keys")
}

#[test]
fn revoke_that_asks_to_wait_ends_a_token_before_its_answer() {
    for name in ["ci", "boss"] {
        let house = with_authority("");
        let look = Ask::get("/crosstalk/agents").token(&secret(name));
        assert_eq!(house.ask(&look).status, 200);
        let sent = Ask::send(revoke(name)).token(&secret("boss"));
        let answer = house.ask(&sent.header("Prefer", "wait=60"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(house.ask(&look).status, 401);
    }
}

#[test]
fn approved_revoke_ends_a_token_before_its_answer() {
    let house = with_authority("[[hold]]\nintents = [\"REVOKE\"]\n");
    let revoke = revoke("ci");
    let answer = house.ask(&Ask::send(&revoke).token(&secret("boss")));
    assert!(answer.text().contains("State: held"), "{}", answer.text());
    assert_eq!(house.ask(&look()).status, 200);
    let decision = json!({
        "digest": strict(&revoke).digest().unwrap().to_string(),
        "raw": Digest::of(revoke.as_bytes()).to_string(),
        "decision": "approve",
    });
    let decision = Ask::json("POST", "/crosstalk/approvals/R1", &decision);
    let decided = house.ask(&decision.token(&secret("bob")));
    assert_eq!(decided.status, 200, "{}", decided.text());
    assert_eq!(house.ask(&look()).status, 401);
}

/// While others make tokens, one that was revoked never comes back.
#[test]
fn revoked_token_stays_revoked_while_others_are_made() {
    let limits = "[limits]\nrequests_per_minute = 0";
    let house = office().config(limits).open();
    let (ops, done) = (secret("ops"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for maker in 0..4 {
            let (house, ops, done) = (&house, &ops, &done);
            scope.spawn(move || {
                for number in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let name = format!("made-{maker}-{number}");
                    let wanted = json!({"name": name, "role": "agent", "addresses": ["x://y"]});
                    let made = Ask::json("POST", "/crosstalk/tokens", &wanted).token(ops);
                    assert_eq!(house.ask(&made).status, 201);
                }
            });
        }
        let check = || {
            for number in 0..tier::size(15, 60) {
                let name = format!("gone{number}");
                let wanted = json!({"name": name, "role": "agent", "addresses": ["x://y"]});
                let made = Ask::json("POST", "/crosstalk/tokens", &wanted).token(&ops);
                let made = house.ask(&made).json();
                let ask = Ask::get("/crosstalk/agents").token(made["token"].as_str()?);
                if house.ask(&ask).status != 200 {
                    return Some(format!("{name} does not work"));
                }
                end(&house, &name);
                if (0..10).any(|_| house.ask(&ask).status != 401) {
                    return Some(format!("{name} still works"));
                }
            }
            None
        };
        let fault = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        done.store(true, Ordering::Relaxed);
        assert_eq!(fault.unwrap(), None);
    });
}
