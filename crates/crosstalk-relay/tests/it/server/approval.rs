//! Messages that wait for a person: nobody sees them before one decides, and nobody but a person does.

use crate::house::{House, Plan, START, key, letter, secret, signed, text};
use crate::http::{Answer, Ask};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Algorithm, PrivateKey, Timestamp};
use crosstalk_protocol::relay::Role;
use crosstalk_testing::wait::wait_until;
use serde_json::{Value, json};

const RULE: &str = "[[hold]]\nwhy = \"what code does\"\nfrom = [\"claude://*\"]\n";

fn office(rules: &str) -> Plan {
    Plan::default()
        .config(rules)
        .token("ci", Role::Agent, &["claude://code/*"])
        .token("all", Role::Agent, &["*"])
        .token("gpt", Role::Agent, &["chatgpt://thread/x"])
        .token("ann", Role::Person, &["human://acme.example/ann"])
        .token(
            "bob",
            Role::Person,
            &["human://acme.example/bob", "claude://code/*"],
        )
        .token("ops", Role::Admin, &[])
}

fn as_(name: &str, ask: Ask) -> Ask {
    ask.token(&secret(name))
}

/// Hands a message in, which has to wait.
fn wait(house: &House, id: &str) -> String {
    let sent = text("claude://code/api", "chatgpt://thread/x", id);
    let answer = house.ask(&as_("ci", Ask::send(&sent)));
    assert_eq!((answer.status, answer.intent().as_str()), (200, "ACK"));
    assert!(
        answer.text().contains("\nState: held\n"),
        "{}",
        answer.text()
    );
    sent
}

fn body(sent: &str, decision: &str) -> Value {
    let document = crate::http::strict(sent);
    json!({
        "digest": document.digest().unwrap().to_string(),
        "raw": Digest::of(sent.as_bytes()).to_string(),
        "decision": decision,
        "reason": (decision == "refuse").then_some("not today"),
    })
}

fn decide(house: &House, name: &str, id: &str, body: &Value) -> Answer {
    let path = format!("/crosstalk/approvals/{id}");
    house.ask(&as_(name, Ask::json("POST", &path, body)))
}

fn get(house: &House, name: &str, path: &str) -> Answer {
    house.ask(&as_(name, Ask::get(path).accept("application/json")))
}

/// The code of a refusal.
fn code(answer: &Answer) -> String {
    answer.code()
}

fn waiting(house: &House, name: &str) -> Vec<String> {
    let listed = get(house, name, "/crosstalk/approvals").json();
    crate::house::ids(&listed["approvals"])
}

/// Every way in which a recipient, a stranger to the message or an agent could find it.
fn is_seen(house: &House, id: &str) -> bool {
    let found = |path: &str, name: &str| {
        let answer = get(house, name, path);
        let id = format!("\"id\":\"{id}\"");
        answer.status == 200 && answer.text().contains(&id)
    };
    let recipient = [
        "/crosstalk/inbox?for=chatgpt://thread/x".to_owned(),
        format!("/crosstalk/messages/{id}"),
        format!("/crosstalk/messages/{id}/status"),
        "/crosstalk/threads".to_owned(),
        "/crosstalk/threads/T1".to_owned(),
        "/crosstalk/search?q=ripe".to_owned(),
    ];
    let admin = [
        "/crosstalk/inbox?for=chatgpt://thread/x",
        "/crosstalk/threads/T1",
        "/crosstalk/search?q=ripe",
        "/crosstalk/courier",
        "/crosstalk/dead",
    ];
    recipient.iter().any(|path| found(path, "gpt")) || admin.iter().any(|path| found(path, "ops"))
}

#[test]
fn a_message_waits_until_a_person_lets_it_go_on() {
    let house = office(RULE).open();
    let sent = wait(&house, "M1");
    assert!(!is_seen(&house, "M1"));
    // Its sender and those who decide see that it waits; nobody who gets it does.
    for (name, path, status) in [
        ("ci", "/crosstalk/messages/M1", 200),
        ("ann", "/crosstalk/messages/M1", 200),
        ("ops", "/crosstalk/messages/M1", 200),
        ("gpt", "/crosstalk/messages/M1", 404),
        ("ci", "/crosstalk/messages/M1/status", 200),
        ("gpt", "/crosstalk/messages/M1/status", 404),
    ] {
        let answer = get(&house, name, path);
        assert_eq!(answer.status, status, "{name} {path}");
        assert_eq!(
            answer.text().contains("\"held\""),
            status == 200,
            "{name} {path}"
        );
    }
    let held = &get(&house, "ann", "/crosstalk/approvals").json()["approvals"][0];
    assert_eq!(held["envelope"], sent.as_str());
    assert_eq!(
        (&held["why"], &held["signature"]),
        (&json!("what code does"), &json!("unsigned"))
    );
    assert_eq!(
        held["recipients"],
        json!([{"to": "chatgpt://thread/x", "by": "inbox"}])
    );
    // A stream that was open before gets it when it is approved, and nothing earlier.
    let mut stream = house.line();
    let path = "/crosstalk/inbox?for=chatgpt://thread/x";
    stream.send(as_("gpt", Ask::get(path).accept("text/event-stream")).bytes());
    assert_eq!(stream.head().unwrap().status, 200);
    house.ask(&as_(
        "ann",
        Ask::send(text("human://acme.example/ann", "chatgpt://thread/x", "N1")),
    ));
    let mut events = String::new();
    while !events.contains("N1") {
        events.push_str(&stream.line());
    }
    assert!(!events.contains("M1"));
    let answer = decide(&house, "ann", "M1", &body(&sent, "approve"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["decided"]["by"], "ann");
    while !events.contains("M1") {
        events.push_str(&stream.line());
    }
    assert!(is_seen(&house, "M1"));
    assert!(waiting(&house, "ann").is_empty());
    let again = house.ask(&as_("ci", Ask::send(&sent)));
    assert!(
        again.text().contains("\nState: held\n"),
        "the first answer again"
    );
    let path = "/crosstalk/inbox?for=chatgpt://thread/x";
    assert_eq!(
        crate::house::ids(&get(&house, "gpt", path).json()["messages"]),
        ["N1", "M1"]
    );
}

#[test]
fn waiting_sender_gets_the_answer_after_approval_or_refusal() {
    for (decision, said) in [("approve", "RESPOND"), ("refuse", "ERROR")] {
        let house = office(RULE).open();
        let sent = text("claude://code/api", "chatgpt://thread/x", "M1");
        let mut line = house.line();
        line.send(as_("ci", Ask::send(&sent).header("Prefer", "wait=60")).bytes());
        wait_until("the question", || !waiting(&house, "ann").is_empty());
        assert_eq!(
            decide(&house, "ann", "M1", &body(&sent, decision)).status,
            200
        );
        if decision == "approve" {
            let answer = letter("chatgpt://thread/x", "claude://code/api", "R1");
            let answer = answer.parent("M1").intent("RESPOND").build().unwrap();
            assert_eq!(house.ask(&as_("gpt", Ask::send(answer))).status, 200);
        }
        let answer = line.answer();
        assert_eq!(answer.intent(), said);
        assert!(decision == "approve" || answer.text().contains("not today"));
    }
}

/// Threat 38: every kind of credential, for looking and for deciding.
#[test]
fn only_a_person_decides_and_nobody_about_their_own() {
    let rules = format!("{RULE}people = true\n[[hold]]\nto = [\"*\"]\npeople = true\n");
    let house = office(&rules).open();
    let sent = wait(&house, "M1");
    // Bob's credential handed this one in.
    let bobs = text("claude://code/api", "chatgpt://thread/x", "M2");
    assert!(
        house
            .ask(&as_("bob", Ask::send(&bobs)))
            .text()
            .contains("State: held")
    );
    // This one is from Ann.
    let anns = text("human://acme.example/ann", "chatgpt://thread/x", "M3");
    assert!(
        house
            .ask(&as_("ann", Ask::send(&anns)))
            .text()
            .contains("State: held")
    );
    for (name, status, list) in [
        ("ci", 403, None),
        ("all", 403, None),
        ("gpt", 403, None),
        ("nobody", 401, None),
        ("ann", 0, Some(vec!["M1", "M2"])),
        ("bob", 0, Some(vec!["M1", "M3"])),
        ("ops", 0, Some(vec!["M1", "M2", "M3"])),
    ] {
        let listing = get(&house, name, "/crosstalk/approvals");
        match list {
            None => {
                assert_eq!(listing.status, status, "{name}");
                for (id, sent) in [("M1", &sent), ("M2", &bobs), ("M3", &anns)] {
                    for decision in ["approve", "refuse"] {
                        let answer = decide(&house, name, id, &body(sent, decision));
                        assert_eq!(answer.status, status, "{name} {id} {decision}");
                    }
                }
            }
            Some(list) => assert_eq!(waiting(&house, name), list, "{name}"),
        }
    }
    // Without a credential at all, and with a signature, which is none.
    let path = "/crosstalk/approvals/M1";
    let stranger = Ask::json("POST", path, &body(&sent, "approve"));
    assert_eq!(house.ask(&stranger).status, 401);
    for (name, id, text) in [("bob", "M2", &bobs), ("ann", "M3", &anns)] {
        let own = decide(&house, name, id, &body(text, "approve"));
        assert_eq!(own.status, 404, "{name}: {}", own.text());
    }
    assert!(!is_seen(&house, "M1"));
    assert_eq!(
        decide(&house, "bob", "M1", &body(&sent, "approve")).status,
        200
    );
    assert_eq!(
        decide(&house, "ann", "M2", &body(&bobs, "approve")).status,
        200
    );
    assert_eq!(
        decide(&house, "ops", "M3", &body(&anns, "refuse")).status,
        200
    );
}

#[test]
fn the_person_at_a_machine_without_credentials_decides() {
    let house = Plan::default().config(RULE).open();
    let sent = text("claude://code/api", "chatgpt://thread/x", "M1");
    house.take(&sent);
    assert!(house.inbox("chatgpt://thread/x").is_empty());
    let ask = Ask::json("POST", "/crosstalk/approvals/M1", &body(&sent, "approve"));
    assert_eq!(house.ask(&ask).status, 200);
    assert_eq!(house.inbox("chatgpt://thread/x"), ["M1"]);
}

#[test]
fn a_rule_can_name_who_decides() {
    let rule = format!("{RULE}deciders = [\"human://acme.example/ann\"]\n");
    let house = office(&rule).open();
    let sent = wait(&house, "M1");
    assert!(waiting(&house, "bob").is_empty());
    assert_eq!(
        decide(&house, "bob", "M1", &body(&sent, "approve")).status,
        404
    );
    assert_eq!(waiting(&house, "ops"), ["M1"]);
    assert_eq!(
        decide(&house, "ann", "M1", &body(&sent, "approve")).status,
        200
    );
}

#[test]
fn a_decision_is_made_once_and_about_this_text() {
    let house = office(RULE).open();
    let sent = wait(&house, "M1");
    let right = body(&sent, "approve");
    for (key, value) in [
        ("digest", json!(Digest::of(b"x").to_string())),
        ("raw", right["digest"].clone()),
    ] {
        let mut wrong = right.clone();
        wrong[key] = value;
        let answer = decide(&house, "ann", "M1", &wrong);
        assert_eq!(
            (answer.status, code(&answer)),
            (409, "E-PERM".to_owned()),
            "{key}"
        );
    }
    for (key, value) in [
        ("decision", json!("maybe")),
        ("digest", json!("sha256:0")),
        ("raw", Value::Null),
        ("extra", json!(1)),
        ("reason", json!("two\nlines")),
    ] {
        let mut wrong = right.clone();
        wrong[key] = value;
        assert_eq!(decide(&house, "ann", "M1", &wrong).status, 400, "{key}");
    }
    let mut silent = body(&sent, "refuse");
    silent["reason"] = json!(" ");
    assert_eq!(decide(&house, "ann", "M1", &silent).status, 400);
    assert!(!is_seen(&house, "M1"));
    // Eight at once: one of them counts.
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let decide = |n: usize| {
            let name = ["ann", "bob", "ops"][n % 3];
            let wish = body(
                &sent,
                if n.is_multiple_of(2) {
                    "approve"
                } else {
                    "refuse"
                },
            );
            let house = &house;
            scope.spawn(move || decide(house, name, "M1", &wish).status)
        };
        let all: Vec<_> = (0..8).map(decide).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(
        statuses.iter().filter(|s| **s == 200).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|s| **s == 409).count(),
        7,
        "{statuses:?}"
    );
    let made = get(&house, "ann", "/crosstalk/approvals/M1").json();
    assert_eq!(made["envelope"], Value::Null);
    let is_approved = made["decided"]["decision"] == "approved";
    assert_eq!(is_seen(&house, "M1"), is_approved);
}

#[test]
fn decided_message_is_found_by_the_beginning_of_its_id() {
    let house = office(RULE).open();
    let sent = wait(&house, "LETTER-1");
    let right = body(&sent, "approve");
    assert_eq!(decide(&house, "ann", "LETTER-1", &right).status, 200);
    let made = get(&house, "ann", "/crosstalk/approvals/LETT").json();
    assert_eq!(
        (&made["id"], &made["decided"]["decision"]),
        (&json!("LETTER-1"), &json!("approved"))
    );
    // Nothing is decided about a message that is named by a part of its id.
    assert_eq!(decide(&house, "ann", "LETT", &right).status, 404);
    assert_eq!(get(&house, "ann", "/crosstalk/approvals/LET").status, 404);
    wait(&house, "LETTER-2");
    assert_eq!(get(&house, "ann", "/crosstalk/approvals/LETT").status, 404);
    let other = get(&house, "ann", "/crosstalk/approvals/LETTER-2").json();
    assert_eq!(other["decided"], Value::Null);
}

#[test]
fn a_refusal_is_told_and_final() {
    let house = office(RULE).open();
    let sent = wait(&house, "M1");
    assert_eq!(
        decide(&house, "ann", "M1", &body(&sent, "refuse")).status,
        200
    );
    assert!(!is_seen(&house, "M1"));
    let inbox = get(&house, "ci", "/crosstalk/inbox?for=claude://code/api").json();
    let error = inbox["messages"][0]["envelope"].as_str().unwrap();
    assert!(
        error.contains("E-PERM") && error.contains("not today"),
        "{error}"
    );
    assert!(
        error.starts_with("[[chatgpt://thread/x→claude://code/api v1]]"),
        "{error}"
    );
    assert!(!error.contains("`ann`"), "who decided is not told");
    let status = get(&house, "ci", "/crosstalk/messages/M1/status").json();
    assert_eq!(status["deliveries"][0]["state"], "failed");
    assert_eq!(status["deliveries"][0]["reason"], "refused: not today");
    // No way round: not by sending it again, not by the dead letters.
    assert_eq!(house.ask(&as_("ci", Ask::send(&sent))).status, 200);
    let requeue = Ask::json("POST", "/crosstalk/dead/M1/requeue", &json!({}));
    assert_eq!(house.ask(&as_("ops", requeue)).status, 404);
    let again = decide(&house, "bob", "M1", &body(&sent, "approve"));
    assert_eq!((again.status, code(&again)), (409, "E-PERM".to_owned()));
    assert!(!is_seen(&house, "M1"));
}

/// What waits is as it was after a restart, whenever that is.
#[test]
fn a_restart_changes_nothing() {
    let house = office(RULE).open();
    let (one, two) = (wait(&house, "M1"), wait(&house, "M2"));
    let again = |data| House::open(Plan::default().config(RULE), data).unwrap();
    let house = again(house.close());
    assert!(!is_seen(&house, "M1"));
    assert_eq!(waiting(&house, "ann"), ["M1", "M2"]);
    assert_eq!(
        decide(&house, "ann", "M1", &body(&one, "approve")).status,
        200
    );
    assert_eq!(
        decide(&house, "ann", "M2", &body(&two, "refuse")).status,
        200
    );
    let house = again(house.close());
    assert!(is_seen(&house, "M1") && !is_seen(&house, "M2"));
    for (id, sent) in [("M1", &one), ("M2", &two)] {
        assert_eq!(
            decide(&house, "bob", id, &body(sent, "approve")).status,
            409,
            "{id}"
        );
    }
    // What a relay without the rule takes in is what was decided, too.
    let house = House::open(Plan::default(), house.close()).unwrap();
    assert!(
        house
            .ask(&as_("ci", Ask::send(&two)))
            .text()
            .contains("State: held")
    );
    assert!(!is_seen(&house, "M2"));
}

#[test]
fn message_that_expires_while_held_is_not_approved() {
    let house = office(RULE).open();
    let end = Timestamp::from_millis(START + 60_000).to_string();
    for (id, block, key, wanted) in [
        ("M1", "privacy", "Expires", "E-CONSENT"),
        ("M2", "routing", "X-Deadline", "E-TIMEOUT"),
    ] {
        let sent = letter("claude://code/api", "chatgpt://thread/x", id);
        let sent = sent.meta(block, key, &end).build().unwrap();
        assert_eq!(house.ask(&as_("ci", Ask::send(&sent))).status, 200);
        house.later(60);
        let late = decide(&house, "ann", id, &body(&sent, "approve"));
        let came = code(&late);
        // The relay may have given it up already.
        assert!(came == wanted || came == "E-PERM", "{}", late.text());
        assert_eq!(late.status, 409, "{}", late.text());
        assert!(!is_seen(&house, id));
        house.later(-60);
    }
}

/// What is held, by each condition alone.
#[test]
fn each_condition_holds_what_it_says() {
    let key = key();
    let plain = |from: &str, to: &str| letter(from, to, "M1");
    let code = || plain("claude://code/api", "chatgpt://thread/x");
    let attached = || {
        let blob = format!("a.txt;text/plain;sha256:{}", "0".repeat(64));
        code().meta("attachments", "File1", blob)
    };
    let pii = || {
        let scoped = code().meta("privacy", "Scope", "pii, location");
        scoped.meta("privacy", "Consent", "explicit_yes")
    };
    for (rule, held, free) in [
        (
            "intents = [\"request\"]",
            code(),
            code().intent("BROADCAST"),
        ),
        (
            "from = [\"claude://*\"]",
            code(),
            plain("chatgpt://thread/x", "claude://code/api"),
        ),
        (
            "to = [\"chatgpt://*\"]",
            code(),
            plain("claude://code/api", "gemini://x"),
        ),
        (
            "by = [\"copy_paste\"]",
            plain("claude://code/api", "GPT"),
            code(),
        ),
        ("scopes = [\"PII\"]", pii(), code()),
        ("attachments = true", attached(), code()),
        (
            "signature = [\"unsigned\"]\nto = [\"chatgpt://*\"]",
            code(),
            plain("human://acme.example/ann", "chatgpt://thread/x"),
        ),
        ("to = [\"*\"]\nattachments = true", attached(), code()),
    ] {
        let house = Plan::default().config(&format!("[[hold]]\n{rule}")).open();
        let held = house.take(&held.build().unwrap());
        assert!(held.text().contains("State: held"), "{rule}");
        let free = house.take(&free.message("M2").build().unwrap());
        assert!(!free.text().contains("State: held"), "{rule}");
    }
    let first = Plan::default()
        .config("[[hold]]\nsignature = [\"unsigned\", \"unknown-key\", \"first-contact\"]");
    let house = first.pin("k1", &key, "claude://code/api").open();
    let sent = text("claude://code/api", "chatgpt://thread/x", "S1");
    let known = house.take(&signed(&sent, &key, "k1"));
    assert!(!known.text().contains("State: held"));
    let sent = text("claude://code/api", "chatgpt://thread/x", "S2");
    let unknown = house.take(&signed(&sent, &key, "k2"));
    assert!(unknown.text().contains("State: held"));
}

/// Who wrote a message, signed it or handed it in does not decide about it, under no name and with no other token.
#[test]
fn authors_signers_and_senders_do_not_decide_about_their_message() {
    const ANN: &str = "human://acme.example/ann";
    const AGENT: &str = "claude://own/agent";
    let (own, agent) = (
        key(),
        PrivateKey::from_seed(Algorithm::Ed25519, &[8; 32]).unwrap(),
    );
    let house = office(
        "[[hold]]\nto = [\"*\"]\npeople = true\n[names]\nANNIE = \"human://acme.example/ann\"\n",
    )
    .token("phone", Role::Person, &[ANN])
    .token("alias", Role::Person, &["ANNIE"])
    .token("named", Role::Agent, &["ANNIE"])
    .pin("ann@acme.example", &own, ANN)
    .pin("agent@acme.example", &agent, AGENT)
    .open();
    let may = |name: &str, sent: &str, id: &str| {
        let decided = decide(&house, name, id, &body(sent, "approve"));
        assert_eq!(
            get(&house, name, &format!("/crosstalk/approvals/{id}")).status,
            decided.status
        );
        decided.status == 200
    };
    let hand_in = |name: &str, sent: &str| {
        let answer = house.ask(&as_(name, Ask::send(sent)));
        assert!(
            answer.text().contains("\nState: held\n"),
            "{}",
            answer.text()
        );
    };
    let handed_in_by = |id: &str| {
        let shown = get(&house, "ops", &format!("/crosstalk/approvals/{id}")).json();
        shown["handed_in_by"].as_str().unwrap().to_owned()
    };
    let to = "chatgpt://thread/x";
    // Signed by an agent whose key is pinned, handed in by Ann.
    let first = signed(&text(AGENT, to, "M1"), &agent, "agent@acme.example");
    hand_in("ann", &first);
    assert_eq!(handed_in_by("M1"), "ann");
    // Written by an agent and handed in with its token, signed by Ann.
    let second = signed(
        &text("claude://code/api", to, "M2"),
        &own,
        "ann@acme.example",
    );
    hand_in("ci", &second);
    // Written by Ann under a name that stands for her, and by her address.
    let third = text("ANNIE", to, "M3");
    hand_in("alias", &third);
    let fourth = text(ANN, to, "M4");
    hand_in("phone", &fourth);
    for (sent, id) in [
        (&first, "M1"),
        (&second, "M2"),
        (&third, "M3"),
        (&fourth, "M4"),
    ] {
        for name in ["ann", "phone", "alias"] {
            assert!(!may(name, sent, id), "{name} {id}");
        }
        assert!(may("bob", sent, id), "{id}");
    }
}
