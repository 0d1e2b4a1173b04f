//! Names, agents, what a person carries, and dead letters.

use crate::dns::Domains;
use crate::house::{House, Plan, ids, letter, secret, text};
use crate::http::Ask;
use crosstalk_protocol::relay::Role;
use serde_json::{Value, json};
use std::sync::Arc;

/// What an agent can do once it has declared something.
fn declare(house: &House, address: &str, capabilities: &[&str]) -> Value {
    let agent = json!({"address": address, "capabilities": capabilities});
    let answer = house.ask(&Ask::json("PUT", "/crosstalk/agents", &agent));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    assert_eq!(answer["address"], address);
    answer["capabilities"].clone()
}

fn handoff(id: &str, to: &str) -> Ask {
    let handoff = letter("claude://code/api", to, id)
        .thread(format!("T-{id}"))
        .intent("HANDOFF")
        .meta("routing", "X-Capabilities-Required", "[\"rust\"]");
    Ask::send(handoff.build().unwrap())
}

#[test]
fn a_name_leads_somewhere() {
    let house = Plan::default()
        .config("name = \"relay.example\"\n[federation]\nenabled = true\n[names]\nBROTHER = \"claude://session/abc\"")
        .config("[[agent]]\naddress = \"chatgpt://thread/x\"\ncapabilities = [\"x\"]")
        .config("[[agent]]\naddress = \"cursor://one\"\ncapabilities = []")
        .config("[[agent]]\naddress = \"cursor://two\"\ncapabilities = []")
        .resolver(Arc::new(
            Domains::default().address("GEMINI", "gemini://from/dns"),
        ))
        .open();
    // Nobody takes a name over by declaring an address that fits it.
    declare(&house, "chatgpt://thread/y", &["x"]);
    declare(&house, "copilot://mine", &["x"]);
    for (name, address, by) in [
        ("brother", json!("claude://session/abc"), "names"),
        ("GEMINI", json!("gemini://from/dns"), "dns"),
        ("ChatGPT", json!("chatgpt://thread/x"), "directory"),
        ("NOBODY", Value::Null, "nobody"),
        ("COPILOT", Value::Null, "nobody"),
        // Two agents of one name lead nowhere.
        ("CURSOR", Value::Null, "nobody"),
        ("mcp://already/there", json!("mcp://already/there"), "names"),
    ] {
        let found = house.get(&format!("/crosstalk/resolve?name={name}")).json();
        assert_eq!(
            (&found["name"], &found["address"], &found["by"]),
            (&json!(name), &address, &json!(by))
        );
        assert!(!found["steps"].as_array().unwrap().is_empty());
    }
    // What is sent to the name is in the inbox of both.
    house.take(&text("ANN", "BROTHER", "M1"));
    assert_eq!(house.inbox("brother"), ["M1"]);
    assert_eq!(house.inbox("claude://session/abc"), ["M1"]);
    let ack = json!({"for": "Brother", "ids": ["M1"]});
    assert_eq!(
        house.ask(&Ask::json("POST", "/crosstalk/ack", &ack)).json()["changed"],
        json!(["M1"])
    );
}

const ASSIGNED: &str = "[[agent]]\naddress = \"gemini://x/y\"\ncapabilities = [\"rust\", \"sql\"]";

/// Threat 49: an agent has the capabilities that the operator assigned to it, and can only give some up.
#[test]
fn agents_narrow_what_they_were_assigned_at_once_and_after_a_restart() {
    let plan = || Plan::default().config(ASSIGNED);
    let house = plan().open();
    assert_eq!(house.ask(&handoff("H1", "gemini://x/y")).status, 200);
    assert_eq!(house.ask(&handoff("H2", "ANY")).status, 200);
    assert_eq!(house.inbox("gemini://x/y"), ["H1", "H2"]);
    // It gives one up, and declares one more, which it does not get.
    let left = declare(&house, "gemini://x/y", &["SQL", "deploy"]);
    assert_eq!(left, json!(["sql"]));
    let refused = house.ask(&handoff("H3", "gemini://x/y"));
    let code = refused.code();
    assert_eq!((refused.status, code.as_str()), (422, "E-UNSUPPORTED"));
    let refused = house.ask(&handoff("H3", "ANY"));
    assert_eq!((refused.status, refused.code().as_str()), (404, "E-ROUTE"));
    let list = house.get("/crosstalk/agents").json();
    let expected = json!({"agents": [{"address": "gemini://x/y", "capabilities": ["sql"]}]});
    assert_eq!(list, expected);
    let house = House::open(plan(), house.close()).unwrap();
    assert_eq!(house.get("/crosstalk/agents").json(), list);
    assert_eq!(house.ask(&handoff("H3", "gemini://x/y")).status, 422);
    // It takes back what it gave up.
    let whole = declare(&house, "gemini://x/y", &["rust", "sql"]);
    assert_eq!(whole, json!(["rust", "sql"]));
    assert_eq!(house.ask(&handoff("H3", "gemini://x/y")).status, 200);
}

/// Threat 49: an agent that declares a capability does not get the HANDOFFs to ANY that need it.
#[test]
fn a_handoff_to_any_goes_to_no_agent_that_appointed_itself() {
    let house = Plan::default()
        .config(ASSIGNED)
        .token("good", Role::Agent, &["claude://code/api"])
        .token("able", Role::Agent, &["gemini://x/y"])
        .token("evil", Role::Agent, &["aaa://evil"])
        .open();
    let agent = json!({"address": "aaa://evil", "capabilities": ["rust", "letters"]});
    let declare = Ask::json("PUT", "/crosstalk/agents", &agent).token(&secret("evil"));
    let answer = house.ask(&declare);
    assert_eq!(answer.json()["capabilities"], json!([]));
    let list = house.ask(&Ask::get("/crosstalk/agents").token(&secret("evil")));
    assert!(!list.text().contains("evil"), "{}", list.text());
    let send = |ask: Ask| house.ask(&ask.token(&secret("good")));
    assert_eq!(send(handoff("H1", "ANY")).status, 200);
    assert_eq!(send(handoff("H2", "aaa://evil")).status, 422);
    // Without any requirement, it is nobody's either.
    let open = letter("claude://code/api", "ANY", "H3")
        .thread("T-H3")
        .intent("HANDOFF");
    assert_eq!(send(Ask::send(open.build().unwrap())).status, 200);
    let inbox = |name: &str, address: &str| {
        let path = format!("/crosstalk/inbox?for={address}");
        let ask = Ask::get(&path).accept("application/json");
        ids(&house.ask(&ask.token(&secret(name))).json()["messages"])
    };
    assert_eq!(inbox("evil", "aaa://evil"), [""; 0]);
    assert_eq!(inbox("able", "gemini://x/y"), ["H1", "H3"]);
}

/// Threat 37: the list of the agents is bounded.
#[test]
fn a_credential_declares_so_many_agents_and_no_more() {
    let house = Plan::default()
        .config("[limits]\nrequests_per_minute = 0")
        .token("many", Role::Agent, &["claude://code/*"])
        .token("one", Role::Agent, &["chatgpt://x/y"])
        .open();
    let mut line = house.line();
    let mut declare = |address: &str, name: &str| {
        let agent = json!({"address": address, "capabilities": ["plums"]});
        let ask = Ask::json("PUT", "/crosstalk/agents", &agent);
        ask.token(&secret(name)).on(&mut line)
    };
    for n in 0..512 {
        assert_eq!(declare(&format!("claude://code/{n}"), "many").status, 200);
    }
    let answer = declare("claude://code/more", "many");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "E-TOO-LARGE")
    );
    assert_eq!(declare("claude://code/7", "many").status, 200);
    assert_eq!(declare("chatgpt://x/y", "one").status, 200);
}

fn carry(house: &House, id: &str, to: &str, state: &str) -> crate::http::Answer {
    let body = json!({"to": to, "state": state, "reason": "the chat is gone"});
    house.ask(&Ask::json(
        "POST",
        &format!("/crosstalk/courier/{id}"),
        &body,
    ))
}

#[test]
fn a_person_carries_what_has_no_way() {
    let house = House::local();
    house.take(&text("claude://code/api", "CHATGPT", "M1"));
    let high = letter("claude://code/api", "gemini://x/y", "M2").meta(
        "routing",
        "X-Delivery",
        "copy_paste",
    );
    house.take(&high.meta("routing", "X-Priority", "high").build().unwrap());
    house.take(&text("claude://code/api", "cursor://x/y", "M3"));
    let waiting = || house.get("/crosstalk/courier").json();
    let first = waiting();
    assert_eq!(ids(&first["messages"]), ["M2", "M1"]);
    assert_eq!(first["messages"][1]["to"], "CHATGPT");
    // To look at it is not to carry it.
    assert_eq!(house.inbox("CHATGPT"), ["M1"]);
    assert_eq!(ids(&waiting()["messages"]), ["M2", "M1"]);
    assert_eq!(carry(&house, "M1", "elsewhere", "carried").status, 404);
    let status = carry(&house, "M1", "chatgpt", "carried");
    assert_eq!(status.json()["deliveries"][0]["state"], "delivered");
    assert_eq!(ids(&waiting()["messages"]), ["M2"]);
    assert_eq!(carry(&house, "M1", "CHATGPT", "carried").status, 404);
    // A message that can't be carried becomes a dead letter, and its sender is told.
    let status = carry(&house, "M2", "gemini://x/y", "failed").json();
    let delivery = &status["deliveries"][0];
    assert_eq!(
        (&delivery["state"], &delivery["reason"]),
        (
            &json!("failed"),
            &json!("the courier `local` says: the chat is gone")
        )
    );
    let told = house
        .ask(&Ask::get("/crosstalk/inbox?for=claude://code/api").accept("application/json"))
        .json();
    assert_eq!(told["messages"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&told["messages"][0]["intent"], &told["messages"][0]["from"]),
        (&json!("ERROR"), &json!("gemini://x/y"))
    );
    let told = told["messages"][0]["envelope"].as_str().unwrap();
    assert!(told.contains("could not bring it there"), "{told}");
    let dead = house.get("/crosstalk/dead").json();
    let letter = &dead["letters"][0];
    assert_eq!(
        (&letter["id"], &letter["from"], &letter["to"]),
        (
            &json!("M2"),
            &json!("claude://code/api"),
            &json!("gemini://x/y")
        )
    );
    assert_eq!(
        (&letter["by"], &letter["reason"]),
        (
            &json!("copy_paste"),
            &json!("the courier `local` says: the chat is gone")
        )
    );
    assert!(letter["failed_at"].is_string());
    let again = house.ask(&Ask::new("POST", "/crosstalk/dead/M2/requeue").body(""));
    assert_eq!(again.json(), json!({"requeued": 1}));
    assert_eq!(ids(&waiting()["messages"]), ["M2"]);
    assert!(
        house.get("/crosstalk/dead").json()["letters"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        house
            .ask(&Ask::new("POST", "/crosstalk/dead/M2/requeue").body(""))
            .status,
        404
    );
}

/// Threat 20: ERROR, ACK, NACK and BROADCAST are never answered, so that no two programs answer each other for ever.
#[test]
fn message_that_takes_no_answer_gets_none() {
    let house = House::local();
    let me = "claude://code/api";
    let of = |id: &str, intent: &str| {
        let letter = letter(me, "CHATGPT", id).intent(intent);
        match intent {
            "ERROR" => letter
                .parent("M0")
                .meta("error", "Code", "E-ROUTE")
                .meta("error", "Reason", "no"),
            "NACK" => letter.parent("M0").meta("refusal", "Reason", "no"),
            "ACK" => letter.parent("M0"),
            _ => letter,
        }
    };
    for (place, intent) in ["ERROR", "ACK", "NACK", "BROADCAST", "REQUEST"]
        .into_iter()
        .enumerate()
    {
        let id = format!("M{place}");
        house.take(&of(&id, intent).build().unwrap());
        assert_eq!(carry(&house, &id, "CHATGPT", "failed").status, 200);
        // Only the question was worth a word.
        assert_eq!(
            house.inbox(me).len(),
            usize::from(intent == "REQUEST"),
            "{intent}"
        );
    }
    let loud = letter("CHATGPT", me, "R1")
        .parent("M3")
        .intent("RESPOND")
        .build()
        .unwrap();
    let refused = house.ask(&Ask::send(loud));
    assert_eq!((refused.status, refused.code().as_str()), (403, "E-PERM"));
    assert_eq!(house.inbox(me).len(), 1);
}
