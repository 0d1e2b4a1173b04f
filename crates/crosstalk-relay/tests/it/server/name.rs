//! Names in another case, and names that look like those that the relay knows (threat 45).

use crate::house::{Plan, ids, key, letter, secret, signed, text};
use crate::http::{Ask, strict};
use crosstalk_envelope::{Algorithm, PrivateKey};
use crosstalk_protocol::relay::Role;
use crosstalk_testing::wait::wait_until;
use serde_json::json;

fn office() -> Plan {
    Plan::default()
        .config("[names]\nBOSS = \"human://acme.example/boss\"\n")
        .token("any", Role::Agent, &["*"])
        .token("ops", Role::Admin, &[])
        .token("ann", Role::Person, &["human://acme.example/ann", "Änn"])
        .pin("claude@keys", &key(), "CLAUDE")
}

#[test]
fn look_alikes_of_system_and_of_listed_names_are_rejected() {
    let house = office().open();
    let mut count = 0;
    let mut send = |from: &str, to: &str| {
        count += 1;
        // The builder does not write some of these names.
        let sent = text("SENDER", "RECEIVER", &format!("M{count}"));
        let sent = sent.replace("[[SENDER→RECEIVER", &format!("[[{from}→{to}"));
        let answer = house.ask(&Ask::send(sent).token(&secret("any")));
        let code = match answer.status {
            200 => String::new(),
            _ => answer.code(),
        };
        (answer.status, code)
    };
    let refused = |status: u16, code: &str| (status, code.to_owned());
    for name in [
        "System",
        "ſYSTEM",
        "ЅYSTEM",
        "𝐒YSTEM",
        "SY\u{ad}STEM",
        "S\u{200b}YSTEM",
    ] {
        assert_eq!(send(name, "BOB"), refused(403, "E-PERM"), "{name:?}");
    }
    // Of a name of the configuration, of the address that it stands for, of those of a token, and of a pinned sender.
    for name in [
        "B0SS",
        "ВOSS",
        "human://acme.example/b0ss",
        "human://acme.example/ANN",
        "human://аcme.example/ann",
        "C1AUDE",
        "Cıaude",
        "𝐂LAUDE",
    ] {
        assert_eq!(send(name, "BOB"), refused(403, "E-PERM"), "{name:?}");
        assert_eq!(send("BOB", name), refused(403, "E-PERM"), "{name:?}");
    }
    assert_eq!(send("Äηn", "BOB").0, 200);
    for name in ["CLAUDE\u{fe0f}", "CLAUDE\u{3000}", "BO\u{2003}SS"] {
        assert_eq!(send(name, "BOB"), refused(400, "E-FORMAT"), "{name:?}");
        assert_eq!(send("BOB", name), refused(400, "E-FORMAT"), "{name:?}");
    }
    assert_eq!(send("BOB", "ANNE").0, 200);
    // What a new token is bound to is known at once, and no more when the token is revoked.
    assert_eq!(send("CAR0L", "BOB").0, 200);
    let ops = secret("ops");
    let token = json!({"name": "carol", "role": "agent", "addresses": ["CAROL"]});
    let made = house.ask(&Ask::json("POST", "/crosstalk/tokens", &token).token(&ops));
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(send("CAR0L", "BOB"), refused(403, "E-PERM"));
    assert_eq!(send("Carol", "BOB").0, 200);
    let gone = house.ask(&Ask::new("DELETE", "/crosstalk/tokens/carol").token(&ops));
    assert_eq!(gone.status, 204, "{}", gone.text());
    assert_eq!(send("CAR0L", "BOB").0, 200);
}

#[test]
fn one_party_has_one_inbox_in_every_spelling() {
    let house = office().open();
    for (n, to) in [
        "human://acme.example/ann",
        "Human://ACME.example/ann",
        "HUMAN://acme.EXAMPLE/ann",
    ]
    .into_iter()
    .enumerate()
    {
        let answer = house.ask(&Ask::send(text("BOB", to, &format!("M{n}"))).token(&secret("any")));
        assert_eq!(answer.status, 200, "{to}");
    }
    for (n, to) in ["änn", "ÄNN", "A\u{308}nn"].into_iter().enumerate() {
        let answer = house.ask(&Ask::send(text("BOB", to, &format!("N{n}"))).token(&secret("any")));
        assert_eq!(answer.status, 200, "{to}");
    }
    for (address, count) in [
        ("human://acme.example/ann", 3),
        ("human://ACME.example/ann", 3),
        ("%C3%84nn", 3),
        ("%C3%A4nn", 3),
    ] {
        let path = format!("/crosstalk/inbox?for={address}");
        let ask = Ask::get(&path)
            .token(&secret("ann"))
            .accept("application/json");
        let answer = house.ask(&ask);
        assert_eq!(answer.status, 200, "{address}");
        let listed = answer.json();
        assert_eq!(
            listed["messages"].as_array().unwrap().len(),
            count,
            "{address} {listed}"
        );
    }
    // The boss is known by a name in any case.
    let answer = house.ask(&Ask::send(text("BOB", "Boss", "B1")).token(&secret("any")));
    assert_eq!(answer.status, 200);
    let path = "/crosstalk/inbox?for=human://acme.example/boss";
    let listed = house.ask(
        &Ask::get(path)
            .token(&secret("ops"))
            .accept("application/json"),
    );
    assert_eq!(ids(&listed.json()["messages"]), ["B1"]);
}

/// A name that somebody used first keeps nobody out who looks like it: only the operator lists names.
#[test]
fn contact_that_looks_like_another_keeps_nobody_out() {
    let house = Plan::default()
        .token("mal", Role::Agent, &["claude://acme.examp1e/*"])
        .token("vic", Role::Agent, &["claude://acme.example/*"])
        .open();
    for (name, sender, seed) in [
        ("mal", "claude://acme.examp1e/sales", 1),
        ("vic", "claude://acme.example/sales", 2),
    ] {
        let key = PrivateKey::from_seed(Algorithm::Ed25519, &[seed; 32]).unwrap();
        let did = key.public().to_did();
        for number in 0..2 {
            let sent = text(sender, "BOB", &format!("{name}-{number}"));
            let sent = signed(&sent, &key, &did);
            let answer = house.ask(&Ask::send(sent).token(&secret(name)));
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        }
    }
}

/// An address under `claude://` is not the agent that is called CLAUDE: a consent, a conversation and an answer of that one
/// are not for it.
#[test]
fn address_with_the_name_as_its_scheme_does_not_act_for_the_name() {
    let (ann, other) = ("human://acme.example/ann", "claude://mal/x");
    let house = Plan::default()
        .config("[names]\nGPT = \"chatgpt://thread/x\"\n")
        .token("ann", Role::Person, &[ann])
        .token("bob", Role::Agent, &["BOB"])
        .token("claude", Role::Agent, &["CLAUDE"])
        .token("gpt", Role::Agent, &["GPT", "chatgpt://thread/x"])
        .token("mal", Role::Agent, &["claude://mal/*"])
        .open();
    let send = |name: &str, text: String| {
        let answer = house.ask(&Ask::send(text).token(&secret(name)));
        (answer.status, answer.text().to_owned())
    };
    let rule = |name: &str, text: String| {
        let (_, answer) = send(name, text);
        let rule = strict(&answer).meta("error", "Rule").map(str::to_owned);
        rule.unwrap_or_else(|| "accepted".to_owned())
    };
    let private = |from: &str, to: &str, id: &str| {
        let text = letter(from, to, id).thread(format!("T-{id}"));
        let text = text.meta("privacy", "Consent", "explicit_yes");
        let text = text.meta("privacy", "Scope", "medical");
        text.meta("privacy", "Consent-ID", "C1").build().unwrap()
    };
    let handoff = |from: &str, to: &str, id: &str| {
        let text = letter(from, to, id).thread("T2").intent("HANDOFF");
        text.build().unwrap()
    };
    // A consent. A name and the address that it stands for are one.
    assert_eq!(send("ann", private(ann, "CLAUDE", "M1")).0, 200);
    assert_eq!(send("ann", private(ann, "GPT", "M2")).0, 200);
    assert_eq!(rule("mal", private(other, ann, "M3")), "CON-024");
    let gpt = "chatgpt://thread/x";
    for (number, (name, from, to, wanted)) in [
        ("claude", "CLAUDE", ann, "accepted"),
        ("claude", "CLAUDE", "GPT", "accepted"),
        ("claude", "CLAUDE", gpt, "accepted"),
        ("claude", "CLAUDE", other, "CON-025"),
        ("claude", "CLAUDE", "BOB", "CON-025"),
        ("gpt", "GPT", "CLAUDE", "accepted"),
        ("gpt", "GPT", other, "CON-025"),
        ("gpt", gpt, "CLAUDE", "accepted"),
        ("gpt", gpt, other, "CON-025"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = private(from, to, &format!("P{number}"));
        assert_eq!(rule(name, text), wanted, "{from} to {to}");
    }
    // A conversation that was handed over, in which it takes part as well.
    let known = letter("BOB", other, "M7").thread("T2").build().unwrap();
    assert_eq!(send("bob", known).0, 200);
    assert_eq!(send("bob", handoff("BOB", "CLAUDE", "M8")).0, 200);
    assert_eq!(send("mal", handoff(other, other, "M9")).0, 403);
    assert_eq!(send("claude", handoff("CLAUDE", "GPT", "M10")).0, 200);
    let (status, told) = send("gpt", handoff("GPT", "BOB", "M11"));
    assert_eq!(status, 200, "{told}");
    // An answer that somebody waits for.
    let mut line = house.line();
    let question = Ask::send(text("BOB", "CLAUDE", "Q1")).token(&secret("bob"));
    line.send(question.header("Prefer", "wait=60").bytes());
    let is_there = || {
        let asked = Ask::get("/crosstalk/messages/Q1").token(&secret("bob"));
        house.ask(&asked).status == 200
    };
    wait_until("the question", is_there);
    for (name, from, id) in [("mal", other, "A1"), ("claude", "CLAUDE", "A2")] {
        let answer = letter(from, "BOB", id).intent("RESPOND").parent("Q1");
        assert_eq!(send(name, answer.build().unwrap()).0, 200);
    }
    assert!(line.answer().text().contains("message: A2"));
}
