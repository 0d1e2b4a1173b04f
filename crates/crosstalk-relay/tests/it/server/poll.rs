//! Polls over HTTP: who sees what, live, and who ends one.

use crate::house::{House, Plan, START, key, letter, secret, signed};
use crate::http::{Ask, Line};
use crosstalk_envelope::Builder;
use crosstalk_envelope::id::ulid_of;
use crosstalk_protocol::relay::Role;
use serde_json::Value;

const POLL: &str = "01M4T8PA00S86Z5JATM52C3M7Z";

fn open() -> House {
    Plan::default()
        .token("ann", Role::Person, &["human://acme.example/ann"])
        .token("bo", Role::Person, &["human://acme.example/bo"])
        .token("claude", Role::Agent, &["claude://code/api"])
        .token("eve", Role::Agent, &["claude://code/eve"])
        .token("ops", Role::Admin, &["*"])
        .open()
}

fn poll(secret: bool) -> String {
    let mut builder = Builder::new("human://acme.example/ann", "TEAM")
        .user("ann")
        .thread("T1")
        .message(POLL)
        .context("design")
        .intent("POLL")
        .meta(
            "routing",
            "Targets",
            r#"["human://acme.example/bo", "claude://code/api", "GEMINI"]"#,
        )
        .meta("poll", "Type", "plurality")
        .meta("poll", "Options", "Monolith | Microservices");
    if secret {
        builder = builder.meta("poll", "Secrecy", "until close");
    }
    builder.body("What do we build?").build().unwrap()
}

fn vote(from: &str, number: u64, choice: &str) -> String {
    Builder::new(from, "human://acme.example/ann")
        .user("x")
        .thread("T1")
        .parent(POLL)
        .message(ulid_of(
            u64::try_from(START).unwrap() + number,
            number.into(),
        ))
        .context("design")
        .intent("RESPOND")
        .meta("vote", "Choice", choice)
        .body("Between you and me.")
        .build()
        .unwrap()
}

fn with(who: &str, ask: Ask) -> Ask {
    ask.header("Authorization", &format!("Bearer {}", secret(who)))
}

fn take(house: &House, who: &str, text: &str) {
    let answer = house.ask(&with(who, Ask::send(text)));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn get(house: &House, who: &str, path: &str) -> (u16, Value) {
    let ask = with(who, Ask::get(path)).accept("application/json");
    let answer = house.ask(&ask);
    (answer.status, answer.json())
}

fn close(house: &House, who: &str) -> (u16, Value) {
    let path = format!("/crosstalk/polls/{POLL}/close");
    let answer = house.ask(&with(who, Ask::new("POST", &path)).accept("application/json"));
    (answer.status, answer.json())
}

#[test]
fn parties_see_a_poll_and_who_asked_ends_it() {
    let house = open();
    let path = format!("/crosstalk/polls/{POLL}");
    take(&house, "ann", &poll(false));
    take(
        &house,
        "bo",
        &vote("human://acme.example/bo", 1, "Monolith"),
    );
    for who in ["ann", "bo", "claude", "ops"] {
        let (status, seen) = get(&house, who, &path);
        assert_eq!(status, 200, "{who}: {seen}");
        assert_eq!(seen["schema"], "crosstalk.poll/1");
        assert_eq!(
            (&seen["state"], &seen["tally"]["Monolith"]),
            (&"open".into(), &1.into())
        );
        assert_eq!(
            seen["missing"],
            serde_json::json!(["claude://code/api", "GEMINI"])
        );
        // What was written to who asked is for nobody else.
        let reads = matches!(who, "ann" | "ops");
        assert_eq!(
            seen.to_string().contains("Between you and me"),
            reads,
            "{who}"
        );
        let (_, list) = get(&house, who, "/crosstalk/polls");
        assert_eq!(list["polls"][0]["message"], POLL, "{who}");
    }
    assert_eq!(get(&house, "eve", &path).0, 404);
    assert_eq!(
        get(&house, "eve", "/crosstalk/polls").1["polls"],
        serde_json::json!([])
    );
    assert_eq!(get(&house, "ann", "/crosstalk/polls/nothing").0, 404);
    assert_eq!(house.get(&path).status, 401);
    assert_eq!(close(&house, "bo").0, 403);
    assert_eq!(close(&house, "eve").0, 404);
    let (status, closed) = close(&house, "ann");
    assert_eq!((status, &closed["state"]), (200, &"closed".into()));
    assert_eq!(closed["outcome"], "Monolith");
    // What comes later does not change it, and it is told once.
    house.later(1);
    take(
        &house,
        "claude",
        &vote("claude://code/api", 5000, "Microservices"),
    );
    assert_eq!(close(&house, "ops").1["counted"], closed["counted"]);
    assert_eq!(get(&house, "ann", &path).1["outcome"], "Monolith");
    let inbox = get(
        &house,
        "ann",
        "/crosstalk/inbox?for=human://acme.example/ann",
    )
    .1;
    let results = inbox["messages"].as_array().unwrap().iter();
    let results = results.filter(|m| m["envelope"].as_str().unwrap().contains("meta: collation"));
    assert_eq!(results.count(), 1);
}

#[test]
fn a_secret_poll_shows_nothing_before_its_end() {
    let house = open();
    take(&house, "ann", &poll(true));
    take(
        &house,
        "bo",
        &vote("human://acme.example/bo", 1, "Microservices"),
    );
    for who in ["ann", "bo", "ops"] {
        let seen = get(&house, who, &format!("/crosstalk/polls/{POLL}")).1;
        assert_eq!(
            (&seen["veiled"], &seen["outcome"]),
            (&true.into(), &Value::Null)
        );
        assert_eq!(seen["counted"][0]["from"], "human://acme.example/bo");
        assert_eq!(seen["counted"][0]["choice"], Value::Null, "{who}");
        assert_eq!(seen["tally"], serde_json::json!({}));
        let list = get(&house, who, "/crosstalk/polls").1;
        assert_eq!(list["polls"][0]["outcome"], Value::Null);
    }
    assert_eq!(close(&house, "ann").1["outcome"], "Microservices");
    let seen = get(&house, "bo", &format!("/crosstalk/polls/{POLL}")).1;
    assert_eq!(seen["counted"][0]["choice"], "Microservices");
}

#[test]
fn a_stream_tells_each_change_until_the_end() {
    let house = open();
    take(&house, "ann", &poll(false));
    let ask = with("claude", Ask::get(&format!("/crosstalk/polls/{POLL}")));
    let mut line = house.line();
    line.send(ask.accept("text/event-stream").bytes());
    let head = line.head().unwrap();
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, Some("text/event-stream"))
    );
    let next = |line: &mut Line| -> Value {
        let mut name = String::new();
        loop {
            let text = line.line();
            if let Some(n) = text.strip_prefix("event: ") {
                name = n.to_owned();
            } else if let Some(data) = text.strip_prefix("data: ") {
                assert_eq!(name, "tally");
                return serde_json::from_str(data).unwrap();
            }
        }
    };
    assert_eq!(next(&mut line)["quorum"]["counted"], 0);
    take(
        &house,
        "bo",
        &vote("human://acme.example/bo", 1, "Monolith"),
    );
    assert_eq!(next(&mut line)["tally"]["Monolith"], 1);
    take(&house, "claude", &vote("claude://code/api", 2, "Monolith"));
    assert_eq!(next(&mut line)["tally"]["Monolith"], 2);
    assert_eq!(close(&house, "ann").0, 200);
    let last = next(&mut line);
    assert_eq!(
        (&last["state"], &last["outcome"]),
        (&"closed".into(), &"Monolith".into())
    );
    while line.line() != "0" {}
}

/// What somebody wrote under a consent is in no copy after it was revoked, and what came out stays what it was.
#[test]
fn a_closed_poll_says_what_was_sent_after_a_ballot_was_erased() {
    let ann = "human://acme.example/ann";
    let house = Plan::default()
        .pin("bo@acme.example", &key(), "human://acme.example/bo")
        .token("ann", Role::Person, &[ann])
        .token("bo", Role::Person, &["human://acme.example/bo"])
        .open();
    let path = format!("/crosstalk/polls/{POLL}");
    take(&house, "ann", &poll(false));
    let vote = vote("human://acme.example/bo", 1, "Monolith").replace(
        "\nbody: |",
        "\nmeta: privacy\nConsent: explicit_yes_2025-10-09T16:00:00Z\nScope: medical\nConsent-ID: c1\n\nbody: |",
    );
    take(&house, "bo", &signed(&vote, &key(), "bo@acme.example"));
    let (_, closed) = close(&house, "ann");
    assert_eq!(closed["outcome"], "Monolith", "{closed:#}");
    assert!(!closed.to_string().contains("Between you and me"));
    let revoke = letter("human://acme.example/bo", ann, "R1")
        .thread("T-R1")
        .meta("revocation", "Consent-ID", "c1")
        .intent("BROADCAST")
        .build()
        .unwrap()
        .replace("intent: BROADCAST", "intent: REVOKE");
    take(&house, "bo", &signed(&revoke, &key(), "bo@acme.example"));
    let (_, after) = get(&house, "ann", &path);
    assert_eq!(
        (&after["outcome"], &after["state"], &after["past"]),
        (&"Monolith".into(), &"closed".into(), &true.into()),
        "{after:#}"
    );
    let (_, list) = get(&house, "ann", "/crosstalk/polls");
    assert_eq!(list["polls"][0]["outcome"], "Monolith");
    let inbox = with(
        "ann",
        Ask::get("/crosstalk/inbox?for=human://acme.example/ann"),
    );
    let inbox = house.ask(&inbox.accept("application/json"));
    let inbox = inbox.text();
    assert!(!inbox.contains("Between you and me"), "{inbox}");
    assert_eq!(inbox.matches("meta: collation").count(), 1, "{inbox}");
}

/// A list counts a poll once, and again when something came to it: not once per look.
#[test]
fn a_list_counts_a_poll_only_when_its_thread_has_changed() {
    let house = open();
    let list = || house.ask(&with("ann", Ask::get("/crosstalk/polls")));
    let has = |n: u64| {
        let answer = list().json();
        assert_eq!(answer["polls"][0]["quorum"]["counted"], n, "{answer}");
    };
    take(&house, "ann", &poll(false));
    has(0);
    take(
        &house,
        "bo",
        &vote("human://acme.example/bo", 1, "Monolith"),
    );
    has(1);
    // Whoever counted it again would come across this.
    let break_vote = "UPDATE intake SET verdict = 'broken' WHERE meaning = 'RESPOND'";
    assert_eq!(house.execute(break_vote), 1);
    has(1);
    take(&house, "claude", &vote("claude://code/api", 2, "Monolith"));
    assert_eq!(list().status, 503, "it is counted again");
}

/// Whoever has a copy of a signed poll could write a hop into it, and nobody would count it.
#[test]
fn hop_that_nobody_proves_does_not_keep_a_poll_from_being_counted() {
    let house = Plan::default()
        .token("ann", Role::Person, &["human://acme.example/ann"])
        .pin("ann@keys", &key(), "human://acme.example/ann")
        .open();
    let sent = signed(&poll(false), &key(), "ann@keys");
    let at = crosstalk_envelope::Timestamp::from_millis(START);
    let copy = crosstalk_protocol::relay::add_hop(&sent, at, "evil.example", None).unwrap();
    let refused = house.ask(&Ask::send(copy));
    assert_eq!((refused.status, refused.code().as_str()), (403, "E-PERM"));
    assert_eq!(house.ask(&with("ann", Ask::send(sent))).status, 200);
    let path = format!("/crosstalk/polls/{POLL}");
    assert_eq!(house.ask(&with("ann", Ask::get(&path))).status, 200);
}
