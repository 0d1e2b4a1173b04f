//! Names that agents call each other by, and messages for agents that are not there.

use super::client::{Client, text};
use crate::run::Home;
use serde_json::{Value, json};

fn send(client: &mut Client, to: &str) -> Value {
    client.try_call("send", json!({"to": to, "text": "Which port do you use?"}))
}

#[test]
fn a_message_to_an_agent_that_never_connected_says_so_and_waits_for_it() {
    let home = Home::new("mcp-nobody");
    let mut api = Client::new(&home, "claude-code", "api");
    let mut web = Client::new(&home, "codex-mcp-client", "web");
    web.call("check", json!({}));
    let sent = send(&mut api, "codex://code/wb");
    assert_ne!(sent["isError"], true, "{sent}");
    for part in [
        "No agent has connected as codex://code/wb",
        "codex://code/web (connected)",
    ] {
        assert!(text(&sent).contains(part), "{sent}");
    }
    // No agent ever gets a message under these names.
    for nobody in ["codx", "claude-2", "human", "human://anna"] {
        let failed = send(&mut api, nobody);
        assert_eq!(failed["isError"], true, "{failed}");
        assert!(
            text(&failed).contains("codex://code/web (connected)"),
            "{failed}"
        );
    }
    let poll = json!({"question": "When?", "to": ["codex", "codx"]});
    assert_eq!(api.try_call("poll", poll)["isError"], true);
    let mut late = Client::new(&home, "codex-mcp-client", "wb");
    let got = late.call("check", json!({}));
    assert_eq!(
        got["messages"][0]["id"], sent["structuredContent"]["id"],
        "{got}"
    );
}

#[test]
fn the_name_of_a_client_is_the_agent_that_runs() {
    let home = Home::new("mcp-short");
    let mut claude = Client::new(&home, "claude-code", "shop");
    // Codex has not started yet: the first one of this project gets the message.
    let early = send(&mut claude, "codex");
    assert!(text(&early).contains("as codex://code/shop yet"), "{early}");
    let mut codex = Client::new(&home, "codex-mcp-client", "shop");
    let got = codex.call("check", json!({}));
    assert_eq!(
        got["messages"][0]["id"], early["structuredContent"]["id"],
        "{got}"
    );
    codex.leave();
    // It ended, and another one runs elsewhere.
    let mut other = Client::new(&home, "codex-mcp-client", "web");
    other.call("check", json!({}));
    let sent = send(&mut claude, "Codex");
    let got = other.call("check", json!({"wait_seconds": 240}));
    assert_eq!(
        got["messages"][0]["id"], sent["structuredContent"]["id"],
        "{got}"
    );
    // Two run elsewhere: the agent chooses.
    let mut third = Client::new(&home, "codex-mcp-client", "app");
    third.call("check", json!({}));
    let failed = send(&mut claude, "codex");
    assert_eq!(failed["isError"], true, "{failed}");
    assert!(
        text(&failed).contains("codex://code/app, codex://code/web"),
        "{failed}"
    );
    // One of this project comes first.
    let mut here = Client::new(&home, "codex-mcp-client", "shop");
    here.call("check", json!({}));
    let sent = send(&mut claude, "codex");
    let got = here.call("check", json!({"wait_seconds": 240}));
    let found = got["messages"].as_array().unwrap();
    assert!(
        found
            .iter()
            .any(|m| m["id"] == sent["structuredContent"]["id"]),
        "{got}"
    );
}

#[test]
fn the_next_session_reads_the_mail_of_a_second_one_that_ended() {
    let home = Home::new("mcp-second");
    let mut web = Client::new(&home, "codex-mcp-client", "web");
    let mut first = Client::new(&home, "claude-code", "api");
    let mut second = Client::new(&home, "claude-code", "api");
    for client in [&mut web, &mut first, &mut second] {
        client.call("check", json!({}));
    }
    first.leave();
    second.leave();
    let sent = send(&mut web, "claude://code/api-2");
    assert!(text(&sent).contains("is not connected now"), "{sent}");
    let mut next = Client::new(&home, "claude-code", "api");
    let got = next.call("check", json!({}));
    assert_eq!(
        got["messages"][0]["id"], sent["structuredContent"]["id"],
        "{got}"
    );
}

#[test]
fn waiting_is_for_a_message_that_the_agent_has_not_seen() {
    let home = Home::new("mcp-unseen");
    let mut api = Client::new(&home, "claude-code", "api");
    let mut web = Client::new(&home, "codex-mcp-client", "web");
    web.call("check", json!({}));
    let one = send(&mut api, "codex");
    let got = web.call("check", json!({"wait_seconds": 240}));
    assert_eq!(
        got["messages"][0]["id"], one["structuredContent"]["id"],
        "{got}"
    );
    // It is still unread, and does not end the next wait.
    let waiting = web.begin("check", json!({"wait_seconds": 240}));
    let two = send(&mut api, "codex");
    let got = web.answer(waiting)["result"].clone();
    let messages = &got["structuredContent"]["messages"];
    assert_eq!(messages[0]["id"], two["structuredContent"]["id"], "{got}");
    assert_eq!(messages[1]["id"], one["structuredContent"]["id"], "{got}");
    assert!(got.to_string().contains("call read or reply"), "{got}");
}
