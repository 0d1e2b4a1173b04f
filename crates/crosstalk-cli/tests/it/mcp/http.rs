//! Agents at a relay: over HTTP with their tokens, and over stdio with a relay in their settings.

use super::client::Client;
use super::real::{inspect, python, said};
use crate::run::Home;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Builder, Document, PrivateKey, Reading, Timestamp};
use crosstalk_testing::relay::Relay;
use crosstalk_testing::wait::LIMIT;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::SystemTime;

const API: &str = "claude://code/api";
const WEB: &str = "codex://code/web";
const PERSON: &str = "human://kalle";

/// A relay with a token for each address.
struct House {
    relay: Relay,
    url: String,
    api: String,
    web: String,
    person: String,
    any: String,
}

fn house(config: &str) -> House {
    let relay = Relay::of(env!("CARGO_BIN_EXE_crosstalk"))
        .config(config)
        .start();
    let mut admin: Option<String> = None;
    let mut token = |name: &str, role: &str, address: &str| {
        let mut connection = relay.connect();
        if let Some(admin) = &admin {
            connection = connection.header("Authorization", &format!("Bearer {admin}"));
        }
        let wish = json!({"name": name, "role": role, "addresses": [address]});
        let made = connection
            .post_json("/crosstalk/tokens", &wish.to_string())
            .unwrap();
        assert!(matches!(made.status, 200 | 201), "{}", made.text());
        let made: Value = serde_json::from_slice(&made.body).unwrap();
        let secret = made["token"].as_str().unwrap().to_owned();
        admin.get_or_insert_with(|| secret.clone());
        secret
    };
    // The first one is that of the operator.
    token("admin", "admin", "*");
    House {
        api: token("api", "agent", API),
        web: token("web", "agent", WEB),
        person: token("kalle", "person", PERSON),
        any: token("any", "agent", "gemini://*"),
        url: format!("http://{}/mcp", relay.address()),
        relay,
    }
}

impl House {
    /// Calls a tool over HTTP: the status, and the answer.
    fn request(&self, token: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        self.request_at("/mcp", token, headers, body)
    }

    fn request_at(
        &self,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, Value) {
        let mut connection = self
            .relay
            .connect()
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2025-11-25");
        if !token.is_empty() {
            connection = connection.header("Authorization", &format!("Bearer {token}"));
        }
        for (name, value) in headers {
            connection = connection.header(name, value);
        }
        let answer = connection.post_json(path, &body.to_string()).unwrap();
        let text = answer.text();
        let json = text
            .lines()
            .find_map(|l| l.strip_prefix("data: "))
            .unwrap_or(&text);
        (
            answer.status,
            serde_json::from_str(json).unwrap_or(Value::String(text.clone())),
        )
    }

    fn call(&self, token: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let (status, answer) = self.request(token, &[], &body);
        assert_eq!(status, 200, "{answer}");
        answer["result"].clone()
    }
}

#[test]
fn agents_exchange_messages_over_http() {
    let house = house("");
    let output = python()
        .args(["http", &house.url, &house.api, &house.web, API, WEB])
        .output()
        .unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}\n{}", house.relay.log());
    assert!(
        said.contains("legacy 2025-11-25") && said.contains("auto 2026-07-28"),
        "{said}"
    );
}

/// A client that asks for it hears within seconds that its call still waits, and gets the message afterwards. Each call over HTTP
/// stands for itself, and the relay knows what it has handed out: an unread message that was shown before does not end the wait.
#[test]
fn a_waiting_call_over_http_reports_progress() {
    let house = house("");
    house.call(
        &house.api,
        "send",
        json!({"to": WEB, "text": "Shown before."}),
    );
    crosstalk_testing::wait::wait_for("the relay to note what it has shown", || {
        let got = house.call(&house.web, "check", json!({}));
        got.to_string().contains("call read or reply").then_some(())
    });
    let arguments = json!({"name": "check", "arguments": {"wait_seconds": 300}, "_meta": {"progressToken": "p1"}});
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}).to_string();
    let mut stream = TcpStream::connect(house.relay.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2025-11-25\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        house.web,
        body.len()
    )
    .unwrap();
    let mut heard = String::new();
    let mut hear = |wanted: &[&str]| {
        while !wanted.iter().all(|text| heard.contains(text)) {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "the end of {heard}");
            heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    };
    hear(&["notifications/progress", "\"progressToken\":\"p1\""]);
    house.call(
        &house.api,
        "send",
        json!({"to": WEB, "text": "Still there?"}),
    );
    hear(&["structuredContent", "Still there?"]);
}

#[test]
fn the_inspector_uses_a_relay_without_tokens() {
    let relay = Relay::of(env!("CARGO_BIN_EXE_crosstalk")).start();
    let home = Home::new("mcp-http-inspector");
    let url = format!("http://{}/mcp?as={API}", relay.address());
    let server = [url.as_str(), "--transport", "http"];
    let listed = inspect(&home, &server, &["--method", "tools/list"]);
    assert_eq!(listed["tools"].as_array().unwrap().len(), 6, "{listed}");
    let call = ["--method", "tools/call", "--tool-name", "check"];
    let checked = inspect(&home, &server, &call);
    assert_eq!(checked["structuredContent"]["more"], false, "{checked}");
}

#[test]
fn only_the_token_says_who_calls() {
    let house = house("");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(house.request(&house.api, &[], &list).0, 200);
    assert_eq!(house.request("", &[], &list).0, 401);
    assert_eq!(house.request("wrong", &[], &list).0, 401);
    // A token for many addresses, or for a person, is for no agent.
    assert_eq!(house.request(&house.any, &[], &list).0, 403);
    assert_eq!(house.request(&house.person, &[], &list).0, 403);
    for (token, address, status) in [
        (&house.any, "gemini://app/1", 200),
        (&house.any, "claude://code/api", 403),
        (&house.api, "codex://code/web", 403),
        (&house.person, "human://kalle", 403),
        (&house.any, "gemini://*", 403),
    ] {
        let path = format!("/mcp?as={address}");
        let (given, answer) = house.request_at(&path, token, &[], &list);
        assert_eq!(given, status, "{address}: {answer}");
    }
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        assert_eq!(
            house.request(&house.api, &[(name, value)], &list).0,
            403,
            "{name}"
        );
    }
    let mut raw = house.relay.connect();
    let text = list.to_string();
    raw.send(
        format!(
            "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
            house.api,
            text.len()
        )
        .as_bytes(),
    )
    .unwrap();
    assert_eq!(raw.answer().unwrap().status, 403);
    // A body larger than any message is not read.
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "x".repeat(3 << 20)}});
    assert_eq!(house.request(&house.api, &[], &large).0, 413);
    // One agent does not read the mail of another.
    let sent = house.call(
        &house.api,
        "send",
        json!({"to": "agent://other", "text": "For another one."}),
    );
    let id = &sent["structuredContent"]["id"];
    let denied = house.call(&house.web, "read", json!({"id": id}));
    assert_eq!(denied["isError"], true, "{denied}");
}

/// Row 44 of the threats: everybody can make a did:key, so that a signature with one says nothing about its holder. Over HTTP and
/// in the store of a machine, the label stays the same on the second message, when the key is known.
#[test]
fn a_key_that_everybody_can_make_is_first_contact() {
    let house = house("");
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[7; 32]).unwrap();
    let did = key.public().to_did();
    let mut rogue = house
        .relay
        .connect()
        .header("Authorization", &format!("Bearer {}", house.any));
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let now = Timestamp::from_millis(i64::try_from(now).unwrap());
    for number in 0..2 {
        let text = Builder::new("gemini://app/1", WEB)
            .user("gemini")
            .thread(format!("T{number}"))
            .message(format!("D{number}"))
            .context("keys")
            .intent("REQUEST")
            .body("Trust me.")
            .build()
            .unwrap();
        let signer = Signer {
            key: &key,
            pkid: &did,
            at: now,
            key_block: &[],
        };
        let signed = signer
            .sign(&Document::parse(&text, Reading::Strict))
            .unwrap();
        let answer = rogue.receive(&signed).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let labels = |got: &Value| {
        let messages = got["messages"].as_array().unwrap().iter();
        let labels = messages.map(|m| m["verification"].as_str().unwrap().to_owned());
        labels.collect::<Vec<_>>()
    };
    let got = house.call(&house.web, "check", json!({}));
    let two = ["first contact", "first contact"];
    assert_eq!(labels(&got["structuredContent"]), two, "{got}");

    let home = Home::new("mcp-did");
    let file = home.path("token");
    std::fs::write(&file, &house.web).unwrap();
    let url = format!("http://{}", house.relay.address());
    let file = file.to_str().unwrap();
    let ended = home.run(&["relay", "add", &url, "--token-file", file], "");
    assert_eq!(ended.code, 0, "{}", ended.err);
    let mut web = Client::new(&home, "codex", "web");
    let got = crosstalk_testing::wait::wait_for("both messages", || {
        let got = web.call("check", json!({"wait_seconds": 5}));
        (got["messages"].as_array().unwrap().len() == 2).then_some(got)
    });
    assert_eq!(labels(&got), two, "{got}");
}

#[test]
fn the_label_says_what_a_person_approved() {
    let house = house(
        "[[hold]]\nwhy = \"agents ask agents\"\nfrom = [\"claude://*\"]\ndeciders = [\"human://kalle\"]\n",
    );
    let sent = house.call(&house.api, "send", json!({"to": WEB, "text": "Deploy?"}));
    assert!(
        sent["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("approve"),
        "{sent}"
    );
    let id = sent["structuredContent"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        house.call(&house.web, "check", json!({}))["structuredContent"]["messages"],
        json!([])
    );
    let mut person = house
        .relay
        .connect()
        .header("Authorization", &format!("Bearer {}", house.person));
    let held = person.get(&format!("/crosstalk/approvals/{id}")).unwrap();
    let held: Value = serde_json::from_slice(&held.body).unwrap();
    let decision = json!({"decision": "approve", "digest": held["digest"], "raw": held["raw"]});
    let decided = person
        .post_json(&format!("/crosstalk/approvals/{id}"), &decision.to_string())
        .unwrap();
    assert_eq!(decided.status, 200, "{}", decided.text());
    let got = house.call(&house.web, "check", json!({"wait_seconds": 60}));
    let message = &got["structuredContent"]["messages"][0];
    assert_eq!(message["verification"], "unsigned, approved", "{got}");
    // What the person is asked waits in the inbox of the person at the relay.
    let asked = house.call(
        &house.web,
        "ask_human",
        json!({"question": "Really?", "wait_seconds": 0}),
    );
    assert_eq!(asked["structuredContent"]["answer"], Value::Null, "{asked}");
    let inbox = person.get("/crosstalk/inbox?for=human://kalle").unwrap();
    assert!(inbox.text().contains("Really?"), "{}", inbox.text());
}

#[test]
fn agents_of_two_machines_meet_at_a_relay() {
    let house = house("");
    let url = format!("http://{}", house.relay.address());
    let machine = |name: &str, token: &str| {
        let home = Home::new(name);
        let file = home.path("token");
        std::fs::write(&file, token).unwrap();
        let file = file.to_str().unwrap();
        let ended = home.run(&["relay", "add", &url, "--token-file", file], "");
        assert_eq!(ended.code, 0, "{}", ended.err);
        home
    };
    let (one, other) = (
        machine("mcp-relay-api", &house.api),
        machine("mcp-relay-web", &house.web),
    );
    let mut api = Client::new(&one, "claude-code", "api");
    let mut web = Client::new(&other, "codex", "web");
    let waiting = web.begin("check", json!({"wait_seconds": 300}));
    let sent = api.call("send", json!({"to": WEB, "text": "Which port?"}));
    let got = web.answer(waiting)["result"]["structuredContent"].clone();
    assert_eq!(got["messages"][0]["id"], sent["id"], "{got}");
    web.call("reply", json!({"id": sent["id"], "text": "8080"}));
    let got = api.call("check", json!({"wait_seconds": 300}));
    assert_eq!(got["messages"][0]["intent"], "RESPOND", "{got}");
    // The person of the other machine has nothing to carry.
    let inbox: Value = serde_json::from_str(&other.run(&["inbox", "--json"], "").out).unwrap();
    assert_eq!(inbox["messages"], json!([]), "{inbox}");
    // An agent that the token is not for is told so.
    let mut stranger = Client::new(&one, "gemini", "api");
    let refused = stranger.try_call("send", json!({"to": WEB, "text": "Hi"}));
    assert_eq!(refused["isError"], true, "{refused}");
}

#[test]
fn a_message_that_waits_at_a_relay_for_an_agent_says_so() {
    let house = house("");
    let said = |to: &str| {
        let sent = house.call(&house.api, "send", json!({"to": to, "text": "Which port?"}));
        sent["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert!(said(WEB).contains("No agent has connected as codex://code/web yet"));
    let early = said("Codex");
    assert!(early.contains("as codex://code/api yet"), "{early}");
    let nobody = said("codx");
    assert!(nobody.contains("no agent and no address"), "{nobody}");
    house.call(&house.web, "check", json!({}));
    let sent = said(WEB);
    assert!(!sent.contains("No agent"), "{sent}");
}

#[test]
fn check_says_that_the_relay_refuses_or_is_gone() {
    let house = house("");
    let url = format!("http://{}", house.relay.address());
    let home = Home::new("mcp-trouble");
    let file = home.path("token");
    std::fs::write(&file, &house.api).unwrap();
    let file = file.to_str().unwrap();
    let ended = home.run(&["relay", "add", &url, "--token-file", file], "");
    assert_eq!(ended.code, 0, "{}", ended.err);
    // The token is for another address.
    let mut gemini = Client::new(&home, "gemini", "api");
    let refused = gemini.try_call("check", json!({"wait_seconds": 240}));
    let said = super::client::text(&refused).to_owned();
    assert!(said.contains("No new messages."), "{said}");
    let all = refused["content"][0]["text"].as_str().unwrap();
    assert!(all.contains("Messages may be missing"), "{refused}");
    assert!(all.contains("crosstalk mcp --as"), "{refused}");
    let mut api = Client::new(&home, "claude-code", "api");
    let fine = api.try_call("check", json!({}));
    assert_eq!(super::client::text(&fine), "No new messages.", "{fine}");
    // Both agents are on this machine, and the relay is gone.
    drop(house);
    let mut late = Client::new(&home, "codex", "web");
    let gone = late.try_call("check", json!({}));
    assert!(
        gone.to_string().contains("Messages may be missing"),
        "{gone}"
    );
    let sent = api.try_call("send", json!({"to": WEB, "text": "Which port?"}));
    assert_ne!(sent["isError"], true, "{sent}");
    let text = super::client::text(&sent);
    assert!(
        text.contains("gets it on this machine; do not send it again"),
        "{text}"
    );
    let got = late.call("check", json!({"wait_seconds": 240}));
    assert_eq!(
        got["messages"][0]["id"], sent["structuredContent"]["id"],
        "{got}"
    );
}
