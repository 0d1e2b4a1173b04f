//! A message is read once: what was accepted is what is verified, stored, indexed and delivered.

use crate::house::{House, Plan, key, letter, secret, signed, text};
use crate::http::{Ask, strict};
use crosstalk_protocol::relay::Role;

/// An envelope with these lines between `user:` and `context:`.
fn envelope(lines: &str, context: &str, intent: &str) -> String {
    format!(
        "[[ANN→CLAUDE v1]]\nuser: ann\n{lines}context: {context}\nintent: {intent}\nbody: |\n  Go.\nsig: none\n[[END]]\n"
    )
}

/// Threat 42: ids that one repair makes the same, then and after a restart.
#[test]
fn ids_that_a_paste_would_merge_stay_two() {
    let house = House::local();
    let twins = [
        envelope("thread: T1\nmessage: A_B\n", "plums", "NOTE"),
        envelope("thread: T1\nmessage: A\\_B\n", "with a\u{a0}blank", "NOTE"),
        envelope("thread: T1\nmessage: M3\n", "plums", "NOTE"),
    ];
    for twin in &twins {
        house.take(twin);
    }
    house.settle();
    assert_eq!(house.inbox("CLAUDE"), ["A_B", "A\\_B", "M3"]);
    let data = house.close();
    let house = House::open(Plan::default(), data).unwrap();
    assert_eq!(house.inbox("CLAUDE"), ["A_B", "A\\_B", "M3"]);
    assert_eq!(house.store().check().unwrap(), [""; 0]);
}

#[test]
fn intent_means_after_indexing_what_it_meant_before() {
    let house = House::local();
    house.take(&text("ANN", "CLAUDE", "M1"));
    let lines = "thread: T1\nmessage: M2\n";
    house.take(&envelope(lines, "with a\u{a0}blank", "close"));
    house.settle();
    let view = house.ask(&Ask::get("/crosstalk/messages/M2").accept("application/json"));
    assert_eq!(view.json()["intent"], "close");
    // It closed nothing.
    house.take(&text("ANN", "CLAUDE", "M3"));
    assert_eq!(house.inbox("CLAUDE"), ["M1", "M2", "M3"]);
}

/// One bad message does not stop the relay, and its sender can see where it is.
#[test]
fn quarantined_message_has_a_state_and_is_counted() {
    let house = House::local();
    house.take(&text("ANN", "CLAUDE", "M1"));
    house.settle();
    // It is where the next message belongs.
    let sql = "UPDATE message SET seq = 2 WHERE seq = 1";
    assert_eq!(house.execute(sql), 1);
    for id in ["M2", "M3"] {
        house.take(&text("ANN", "CLAUDE", id));
    }
    house.settle();
    let status = house.get("/crosstalk/messages/M2/status").json();
    assert_eq!(status["deliveries"][0]["state"], "quarantined");
    assert!(house.inbox("CLAUDE").contains(&"M3".to_owned()));
    let metrics = house.get("/metrics");
    let line = "crosstalk_quarantined_messages 1\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
}

/// A relay with a key that is pinned for ANN, and a token for CLAUDE.
fn guarded() -> House {
    Plan::default()
        .token("claude", Role::Agent, &["CLAUDE"])
        .pin("ann", &key(), "ANN")
        .open()
}

fn original(id: &str, intent: &str) -> String {
    let letter = letter("ANN", "CLAUDE", id).intent(intent);
    signed(
        &letter.body("It's 9 - fine.").build().unwrap(),
        &key(),
        "ann",
    )
}

/// Threat 41: forms of a signed message that a paste repairs.
#[test]
fn repaired_form_of_a_signed_message_is_not_accepted() {
    let house = guarded();
    let genuine = original("01M7D00000000000000000000A", "REQUEST");
    let variants = [
        ("numeric entity in the id", "message: 01", "message: &#48;1"),
        ("entity in the intent", "intent: R", "intent: &#82;"),
        (
            "zero-width character in the id",
            "message: 01",
            "message: 0\u{200b}1",
        ),
        ("no-break space", "context: plums", "context:\u{a0}plums"),
        ("curly quote", "It's", "It’s"),
        ("dash", "9 - fine", "9 – fine"),
        ("shifted body", "  It's", "    It's"),
        ("soft hyphen", "fine", "fi\u{ad}ne"),
    ];
    for (what, from, to) in variants {
        let variant = genuine.replacen(from, to, 1);
        assert_ne!(variant, genuine, "{what}");
        let answer = house.ask(&Ask::send(&variant));
        assert!(
            (400..500).contains(&answer.status),
            "{what}: {}",
            answer.text()
        );
    }
    house.take(&genuine);
    let inbox = Ask::get("/crosstalk/inbox?for=CLAUDE").token(&secret("claude"));
    let inbox = house.ask(&inbox.accept("application/json")).json();
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 1);
    let envelope = inbox["messages"][0]["envelope"].as_str().unwrap();
    assert_eq!(
        strict(envelope).canonical().unwrap(),
        strict(&genuine).canonical().unwrap()
    );
}

/// A stranger who cannot be anybody costs no signature check.
#[test]
fn stranger_without_evidence_is_refused_before_the_signature_is_checked() {
    let house = guarded();
    let did = key().public().to_did();
    for sender in ["ANN", "BOB"] {
        let stranger = letter(sender, "CLAUDE", "M1").build().unwrap();
        let forged = signed(&stranger, &key(), &did).replace("ripe", "rotten");
        let answer = house.ask(&Ask::send(&forged));
        assert!(matches!(answer.status, 401 | 403), "{}", answer.text());
        // Nobody looked at the body: what is wrong is who sends it.
        assert_eq!(strict(answer.text()).meta("error", "Rule"), None);
    }
}

const V1_0: &str = "[[ANN→CLAUDE v1]]\nuser: ann\nsession: 2025-10-09T16Z abc123\ncontext: plums\n\
                    intent: QUESTION\nbody: |\n  Are they ripe?\nsig: none\n[[END]]\n";

/// A message without an id, and one without a thread, again and again.
#[test]
fn repeated_message_without_an_id_gets_the_same_ack() {
    let house = House::local();
    let first = house.take(V1_0);
    let ack = strict(first.text());
    let id = ack.envelope().parent.unwrap().to_owned();
    let thread = ack.envelope().thread.unwrap().to_owned();
    for _ in 0..3 {
        house.later(60);
        assert_eq!(house.take(V1_0).text(), first.text());
    }
    house.settle();
    assert_eq!(house.get(&format!("/crosstalk/messages/{id}")).status, 200);
    let path = format!("/crosstalk/threads/{thread}");
    assert_eq!(house.get(&path).status, 200);
    // The next message of the session is in the thread that its ACK names, indexed or not.
    for body in ["One more.", "And one more."] {
        let next = V1_0.replace("Are they ripe?", body);
        let ack = house.take(&next);
        assert_eq!(strict(ack.text()).envelope().thread, Some(thread.as_str()));
    }
    house.settle();
    let view = house
        .ask(&Ask::get(&path).accept("application/json"))
        .json();
    assert_eq!(view["messages"].as_array().unwrap().len(), 3, "{view}");
}

#[test]
fn sender_of_a_message_without_an_id_can_wait_for_the_answer() {
    let house = House::local();
    let mut line = house.line();
    line.send(Ask::send(V1_0).header("Prefer", "wait=60").bytes());
    let path = "/crosstalk/inbox?for=CLAUDE&wait=60";
    let got = house.ask(&Ask::get(path).accept("application/json")).json();
    let id = got["messages"][0]["id"].as_str().unwrap().to_owned();
    let answer = letter("CLAUDE", "ANN", "M2").intent("RESPOND").parent(&id);
    house.take(&answer.build().unwrap());
    let answer = line.answer();
    assert_eq!((answer.status, answer.intent().as_str()), (200, "RESPOND"));
    assert_eq!(strict(answer.text()).envelope().message, Some("M2"));
    // And so gets it the one who asks again.
    house.later(60);
    let again = house.ask(&Ask::send(V1_0).header("Prefer", "wait=1"));
    assert_eq!(again.intent(), "RESPOND");
}

/// The ids of the draft's own examples, and names that people give to threads.
#[test]
fn ids_are_kept_and_found_under_their_spelling() {
    let house = House::local();
    house.take(V1_0);
    let odd = ["01J9J3DBC4N7P2...", "last", "<id>", "a b", "\"x\""];
    for id in odd {
        let lines = format!("session: 2025-10-09T16Z abc123\nthread: t of {id}\nmessage: {id}\n");
        let ack = house.take(&envelope(&lines, "plums", "NOTE"));
        let ack = strict(ack.text());
        assert_eq!(ack.envelope().parent, Some(id));
        assert_eq!(ack.envelope().thread, Some(format!("t of {id}").as_str()));
    }
    house.settle();
    for id in odd {
        let path: String = id.bytes().map(|b| format!("%{b:02X}")).collect();
        let ask = Ask::get(&format!("/crosstalk/messages/{path}")).accept("application/json");
        let view = house.ask(&ask);
        assert_eq!(view.status, 200, "{id}");
        assert_eq!(view.json()["thread"], format!("t of {id}"));
    }
    let ask = Ask::get("/crosstalk/threads/t%20of%20last").accept("application/json");
    assert_eq!(
        house.ask(&ask).json()["messages"].as_array().unwrap().len(),
        1
    );
}

/// Anybody can name a message as the one that theirs answers. Its thread is for those who have a part in it.
#[test]
fn thread_of_a_parent_is_told_to_its_parties_only() {
    let house = Plan::default()
        .config("[names]\nDAN = \"agent://here.example/dan\"\n")
        .token("bob", Role::Agent, &["BOB"])
        .token("carol", Role::Agent, &["CAROL"])
        .token("dan", Role::Agent, &["agent://here.example/dan"])
        .token("mal", Role::Agent, &["MAL"])
        .open();
    let send = |name: &str, text: &str| {
        let answer = house.ask(&Ask::send(text).token(&secret(name)));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let ack = strict(answer.text());
        ack.envelope().thread.unwrap().to_owned()
    };
    let secret_one = text("BOB", "CAROL", "S1").replace("thread: T1", "thread: payroll");
    let handed = text("CAROL", "DAN", "S2").replace("thread: T1", "thread: payroll");
    send("bob", &secret_one);
    send("carol", &handed);
    for (name, from, id, parent, is_party) in [
        ("mal", "MAL", "A1", "S1", false),
        ("carol", "CAROL", "A2", "S1", true),
        ("bob", "BOB", "A3", "S1", true),
        // Under the address that a name stands for, and as one who came to the conversation later.
        ("dan", "agent://here.example/dan", "A4", "S2", true),
        ("dan", "agent://here.example/dan", "A5", "S1", true),
    ] {
        let sent = letter(from, "MAL", id).intent("NOTE").parent(parent);
        let sent = sent.build().unwrap().replace("thread: T1", "session: zz");
        let acked = send(name, &sent);
        assert_eq!(acked == "payroll", is_party, "{id}");
        house.settle();
        let ask = Ask::get(&format!("/crosstalk/messages/{id}")).accept("application/json");
        let view = house.ask(&ask.token(&secret(name))).json();
        assert_eq!(view["thread"] == "payroll", is_party, "{view}");
    }
}

/// A key that somebody made themselves tells who they are, and not that they belong to a conversation.
#[test]
fn signature_alone_makes_nobody_a_party() {
    let house = Plan::default()
        .token("bob", Role::Agent, &["BOB"])
        .token("mal", Role::Agent, &["MAL"])
        .open();
    let did = key().public().to_did();
    let bob = |id: &str| {
        let sent = letter("BOB", "CAROL", id).thread("ticket-7");
        let ask = Ask::send(sent.build().unwrap()).token(&secret("bob"));
        house.ask(&ask).status
    };
    let mal = |id: &str, thread: &str, intent: &str| {
        let sent = letter("MAL", "MAL", id).thread(thread).intent(intent);
        let sent = signed(&sent.build().unwrap(), &key(), &did);
        house.ask(&Ask::send(sent).token(&secret("mal"))).status
    };
    assert_eq!(bob("B1"), 200);
    // The key is pinned at first contact, and verified from then on.
    assert_eq!(mal("M1", "own", "NOTE"), 200);
    assert_eq!(mal("M2", "ticket-7", "NOTE"), 200);
    for is_indexed in [false, true] {
        if is_indexed {
            house.settle();
        }
        assert_eq!(mal("M3", "ticket-7", "CLOSE"), 403, "{is_indexed}");
        assert_eq!(mal("M4", "ticket-7", "HANDOFF"), 403, "{is_indexed}");
    }
    assert_eq!(bob("B2"), 200);
    assert_eq!(house.store().check().unwrap(), [""; 0]);
}
