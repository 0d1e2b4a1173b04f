//! Messages that a person carries: whose they are, where they go, and what that person may say about them.

use crate::house::{House, Plan, ids, key, letter, secret, signed, text};
use crate::http::{Answer, Ask};
use crosstalk_envelope::Builder;
use crosstalk_protocol::relay::Role;
use serde_json::{Value, json};

const ANN: &str = "human://acme.example/ann";

/// Ann, Bob, the agent CLAUDE, and Carl, who also carries for others to CHATGPT and to people.
struct Office {
    house: House,
    carl: String,
}

impl Office {
    fn open() -> Self {
        let house = Plan::default()
            .token("ann", Role::Person, &[ANN, "ANN"])
            .token("bob", Role::Person, &["BOB"])
            .token("claude", Role::Agent, &["CLAUDE", "claude://code/*"])
            .token("ops", Role::Admin, &[])
            .open();
        let carl = json!({
            "name": "carl", "role": "person", "addresses": ["CARL"],
            "courier": ["CHATGPT", "human://*"],
        });
        let ops = secret("ops");
        let made = house.ask(&Ask::json("POST", "/crosstalk/tokens", &carl).token(&ops));
        assert_eq!(made.status, 201, "{}", made.text());
        let carl = made.json()["token"].as_str().unwrap().to_owned();
        Self { house, carl }
    }

    fn ask(&self, name: &str, ask: Ask) -> Answer {
        let own = secret(name);
        let token = if name == "carl" { &self.carl } else { &own };
        self.house.ask(&ask.token(token))
    }

    fn send(&self, name: &str, text: impl AsRef<[u8]>) -> Answer {
        self.ask(name, Ask::send(text))
    }

    fn taken(&self, name: &str, text: impl AsRef<[u8]>) {
        let answer = self.send(name, text);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    fn get(&self, name: &str, path: &str) -> Value {
        self.ask(name, Ask::get(path).accept("application/json"))
            .json()
    }

    fn queue(&self, name: &str) -> Vec<String> {
        ids(&self.get(name, "/crosstalk/courier")["messages"])
    }

    fn say(&self, name: &str, id: &str, to: &str, state: &str) -> Answer {
        let body = json!({"to": to, "state": state, "reason": "I owe you 500 €"});
        let path = format!("/crosstalk/courier/{id}");
        self.ask(name, Ask::json("POST", &path, &body))
    }

    fn state(&self, id: &str) -> Value {
        let status = self.get("ops", &format!("/crosstalk/messages/{id}/status"));
        status["deliveries"][0]["state"].clone()
    }
}

fn answer(from: &str, to: &str, id: &str, parent: &str) -> Builder {
    letter(from, to, id).intent("RESPOND").parent(parent)
}

/// A name that a token is bound to is an inbox: nobody carries what is for it.
#[test]
fn address_of_a_token_is_an_inbox_and_no_errand() {
    let office = Office::open();
    office.taken("claude", text("CLAUDE", "BOB", "M1"));
    office.taken("ann", text(ANN, "CLAUDE", "M2"));
    for name in ["ann", "bob", "carl", "ops"] {
        assert_eq!(office.queue(name), [""; 0], "{name}");
        for (id, to) in [("M1", "BOB"), ("M2", "CLAUDE")] {
            for state in ["carried", "failed"] {
                assert_eq!(office.say(name, id, to, state).status, 404, "{name} {id}");
            }
        }
    }
    assert_eq!(
        (office.state("M1"), office.state("M2")),
        (json!("queued"), json!("queued"))
    );
    let told = office.get("claude", "/crosstalk/inbox?for=CLAUDE");
    assert_eq!(ids(&told["messages"]), ["M2"]);
    let got = office.get("bob", "/crosstalk/inbox?for=BOB");
    assert_eq!(ids(&got["messages"]), ["M1"]);
    let status = office.get("claude", "/crosstalk/messages/M1/status");
    assert_eq!(status["deliveries"][0]["by"], "inbox");
    assert_eq!(status["deliveries"][0]["state"], "delivered");
    // Nobody may answer for Bob either.
    let forged = answer("BOB", "CLAUDE", "M3", "M1").build().unwrap();
    assert_eq!(office.send("ann", forged).status, 403);
    // What is asked for is not replaced by something else.
    let carried = letter("CLAUDE", "BOB", "M4").meta("routing", "X-Delivery", "copy_paste");
    let refused = office.send("claude", carried.build().unwrap());
    assert_eq!((refused.status, refused.code().as_str()), (404, "E-ROUTE"));
    // A token that is made later takes what waits out of the queue.
    office.taken("ann", text(ANN, "GEMINI", "M5"));
    assert_eq!(office.queue("ann"), ["M5"]);
    let late = json!({"name": "gemini", "role": "agent", "addresses": ["GEMINI"]});
    assert_eq!(
        office
            .ask("ops", Ask::json("POST", "/crosstalk/tokens", &late))
            .status,
        201
    );
    assert_eq!(office.queue("ann"), [""; 0]);
    assert_eq!(office.say("ann", "M5", "GEMINI", "failed").status, 404);
    assert_eq!(office.state("M5"), "queued");
}

/// Without tokens, everybody is offered what is to be carried: not an answer to somebody who asked here, which waits in the
/// inbox of that one. A chat that asked back has no inbox.
#[test]
fn answer_to_whoever_asked_here_is_no_errand() {
    let house = House::local();
    let queue = || {
        let listed = house.ask(&Ask::get("/crosstalk/courier").accept("application/json"));
        ids(&listed.json()["messages"])
    };
    house.take(&text("KALLE", "claude://code/api", "M1"));
    house.take(
        &answer("claude://code/api", "KALLE", "A1", "M1")
            .build()
            .unwrap(),
    );
    assert_eq!(queue(), [""; 0]);
    let inbox = house.ask(&Ask::get("/crosstalk/inbox?for=KALLE").accept("application/json"));
    assert_eq!(ids(&inbox.json()["messages"]), ["A1"]);
    house.take(&text("KALLE", "CHATGPT", "M2"));
    let back = letter("CHATGPT", "claude://code/api", "M3").parent("M2");
    house.take(&back.build().unwrap());
    house.take(
        &answer("claude://code/api", "CHATGPT", "A3", "M3")
            .build()
            .unwrap(),
    );
    assert_eq!(queue(), ["M2", "A3"]);
}

/// A correction of a ballot is addressed to the electorate, which is nobody to carry a message to.
#[test]
fn correction_of_a_ballot_is_no_errand() {
    let house = House::local();
    let correction = answer("KALLE", "VOTERS", "C1", "P1")
        .meta("vote", "Corrects", "A1")
        .meta("vote", "Choice", "Monday");
    house.take(&correction.build().unwrap());
    let queue = house.ask(&Ask::get("/crosstalk/courier").accept("application/json"));
    assert_eq!(ids(&queue.json()["messages"]), [""; 0]);
    let status = Ask::get("/crosstalk/messages/C1/status").accept("application/json");
    let delivery = house.ask(&status).json()["deliveries"][0].clone();
    assert_eq!(
        (&delivery["by"], &delivery["never_read"]),
        (&json!("inbox"), &json!(false)),
        "{delivery}"
    );
}

/// A person carries their own messages, and those of others where the operator said so.
#[test]
fn person_carries_only_own_messages_or_what_the_operator_assigned() {
    let office = Office::open();
    office.taken("ann", text(ANN, "CHATGPT", "M1"));
    office.taken("claude", text("CLAUDE", "CHATGPT", "M2"));
    office.taken("ann", text("ANN", "GEMINI", "M3"));
    office.taken("claude", text("CLAUDE", "GEMINI", "M4"));
    let none: [&str; 0] = [];
    for (name, wanted) in [
        ("ann", &["M1", "M3"][..]),
        ("bob", &none[..]),
        ("carl", &["M1", "M2"][..]),
        ("ops", &["M1", "M2", "M3", "M4"][..]),
    ] {
        assert_eq!(office.queue(name), wanted, "{name}");
    }
    // Access is checked before anything changes.
    for (name, id, to) in [
        ("bob", "M1", "CHATGPT"),
        ("ann", "M2", "CHATGPT"),
        ("carl", "M3", "GEMINI"),
        ("ann", "M4", "GEMINI"),
    ] {
        for state in ["carried", "failed"] {
            assert_eq!(office.say(name, id, to, state).status, 404, "{name} {id}");
            assert_eq!(office.state(id), "queued", "{name} {id}");
        }
    }
    // The answer says what happened, also where the courier has no part in the conversation.
    let carried = office.say("carl", "M2", "CHATGPT", "carried");
    assert_eq!(carried.status, 200, "{}", carried.text());
    let carried = carried.json();
    assert_eq!(
        (&carried["id"], &carried["deliveries"][0]["state"]),
        (&json!("M2"), &json!("delivered"))
    );
    assert_eq!(office.say("ann", "M1", "CHATGPT", "carried").status, 200);
    let agent = json!({"name": "x", "role": "agent", "addresses": ["X"], "courier": ["*"]});
    let refused = office.ask("ops", Ask::json("POST", "/crosstalk/tokens", &agent));
    assert_eq!((refused.status, refused.code().as_str()), (403, "E-PERM"));
}

/// Why something could not be carried are the words of the courier, and not of the one who should have got it.
#[test]
fn courier_puts_no_words_into_the_mouth_of_the_receiver() {
    let office = Office::open();
    office.taken("claude", text("CLAUDE", "CHATGPT", "M1"));
    let failed = office.say("carl", "M1", "CHATGPT", "failed");
    assert_eq!(failed.status, 200, "{}", failed.text());
    assert_eq!(failed.json()["deliveries"][0]["state"], "failed");
    let told = office.get("claude", "/crosstalk/inbox?for=CLAUDE");
    let error = &told["messages"][0];
    assert_eq!(
        (&error["intent"], &error["from"]),
        (&json!("ERROR"), &json!("CHATGPT"))
    );
    assert!(
        !error["envelope"].as_str().unwrap().contains("500"),
        "{error}"
    );
    // They are told as the courier's own.
    let status = office.get("claude", "/crosstalk/messages/M1/status");
    let reason = status["deliveries"][0]["reason"].as_str().unwrap();
    assert_eq!(reason, "the courier `carl` says: I owe you 500 €");
}

/// A courier hands in what a chat answered that they carried for, and nothing else in its name.
#[test]
fn courier_hands_in_the_answer_of_a_chat() {
    let office = Office::open();
    office.taken("claude", text("CLAUDE", "CHATGPT", "M1"));
    office.taken("claude", text("CLAUDE", "GEMINI", "M2"));
    office.taken("ann", text(ANN, "GEMINI", "M3"));
    let person = letter("CLAUDE", "human://else.example/eve", "M4");
    let person = person.meta("routing", "X-Delivery", "copy_paste");
    office.taken("claude", person.build().unwrap());
    assert_eq!(office.queue("carl"), ["M1", "M4"]);
    for (about, name, text) in [
        (
            "not a courier",
            "ann",
            answer("CHATGPT", "CLAUDE", "A1", "M1"),
        ),
        (
            "an agent",
            "claude",
            answer("CHATGPT", "CLAUDE", "A2", "M1"),
        ),
        (
            "to somebody else",
            "carl",
            answer("CHATGPT", "BOB", "A3", "M1"),
        ),
        (
            "by somebody else",
            "carl",
            answer("GEMINI", "CLAUDE", "A4", "M1"),
        ),
        (
            "not carried by them",
            "carl",
            answer("GEMINI", "CLAUDE", "A5", "M2"),
        ),
        (
            "no answer",
            "carl",
            answer("CHATGPT", "CLAUDE", "A6", "M1").intent("REQUEST"),
        ),
        (
            "to nothing",
            "carl",
            answer("CHATGPT", "CLAUDE", "A7", "M9"),
        ),
        (
            "for a person",
            "carl",
            answer("human://else.example/eve", "CLAUDE", "A8", "M4"),
        ),
    ] {
        let refused = office.send(name, text.build().unwrap());
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (403, "E-PERM"),
            "{about}"
        );
    }
    // A key of the courier does not become that of the chat.
    let text = answer("CHATGPT", "CLAUDE", "A9", "M1").build().unwrap();
    let signed = signed(&text, &key(), "chatgpt@keys");
    assert_eq!(office.send("carl", signed).status, 403);
    office.taken(
        "carl",
        answer("CHATGPT", "CLAUDE", "B1", "M1").build().unwrap(),
    );
    assert_eq!(office.say("carl", "M1", "CHATGPT", "carried").status, 200);
    // Also when it was carried before, and for a message of one's own.
    office.taken(
        "carl",
        answer("CHATGPT", "CLAUDE", "B2", "M1").build().unwrap(),
    );
    office.taken("ann", answer("GEMINI", ANN, "B3", "M3").build().unwrap());
    let got = office.get("claude", "/crosstalk/inbox?for=CLAUDE");
    assert_eq!(ids(&got["messages"]), ["B1", "B2"]);
}

/// In a question of their own, a courier could name anybody as the one who gets the answer.
#[test]
fn courier_brings_the_answer_to_an_own_question_to_nobody_else() {
    let office = Office::open();
    let asks = |from: &str, to: &str, id: &str| {
        let question = letter(from, to, id).meta("routing", "X-Reply-To", "BOB");
        question.build().unwrap()
    };
    office.taken("ann", asks("ANN", "HR", "M1"));
    let forged = answer("HR", "BOB", "A1", "M1").build().unwrap();
    assert_eq!(office.send("ann", forged).status, 403);
    office.taken("ann", answer("HR", "ANN", "A2", "M1").build().unwrap());
    // Where somebody else asked, it was not the courier who named Bob.
    office.taken("claude", asks("CLAUDE", "CHATGPT", "M2"));
    let brought = answer("CHATGPT", "BOB", "A3", "M2").build().unwrap();
    office.taken("carl", brought);
    let got = office.get("bob", "/crosstalk/inbox?for=BOB");
    assert_eq!(ids(&got["messages"]), ["A3"]);
}

/// A sender whose key the operator pinned signs its answers.
#[test]
fn courier_does_not_answer_for_a_sender_with_a_pinned_key() {
    let house = Plan::default()
        .config("[names]\nGPT = \"chatgpt://thread/x\"\n")
        .token("eve", Role::Person, &["EVE"])
        .pin("claude@keys", &key(), "CLAUDE")
        .pin("gpt@keys", &key(), "GPT")
        .open();
    let send = |text: String| house.ask(&Ask::send(text).token(&secret("eve"))).status;
    for (name, id, status) in [("Claude", "M1", 403), ("GPT", "M2", 403), ("HR", "M3", 200)] {
        let carried = letter("EVE", name, id).meta("routing", "X-Delivery", "copy_paste");
        assert_eq!(send(carried.build().unwrap()), 200, "{name}");
        let brought = answer(name, "EVE", &format!("A-{id}"), id);
        assert_eq!(send(brought.build().unwrap()), status, "{name}");
    }
}
