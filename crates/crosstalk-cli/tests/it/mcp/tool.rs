//! Tools of real MCP servers as destinations of a relay: the official Python SDK over stdio and HTTP, and `crosstalk mcp` itself.

use super::client::{Client, project};
use super::real::{installed, said};
use crate::run::Home;
use crosstalk_testing::relay::Relay;
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn server() -> (PathBuf, PathBuf) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/server.py");
    (installed("mcp/bin/python"), script)
}

/// A server over HTTP; it ends with the value.
struct HttpServer {
    child: Child,
    port: u16,
}

impl HttpServer {
    fn start(kind: &str) -> Self {
        let (python, script) = server();
        let mut child = Command::new(python)
            .arg(script)
            .arg(kind)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        Self { child, port }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a relay with these routes answers to a question: the exit code, and everything that is printed.
fn ask(routes: &str, to: &str, body: &str) -> (i32, String) {
    let retry = "[retry]\nfirst_seconds = 0\nlongest_seconds = 0\nattempts = 2\n";
    let relay = Relay::of(env!("CARGO_BIN_EXE_crosstalk"))
        .config(format!("{retry}{routes}"))
        .start();
    let home = Home::new("mcp-tool");
    home.run(&["config", "set", "sender", "KALLE"], "");
    let url = format!("http://{}", relay.address());
    assert_eq!(home.run(&["relay", "add", &url], "").code, 0);
    let ended = home.run(&["send", to, body, "--wait", "300"], "");
    (ended.code, format!("{}{}", ended.out, ended.err))
}

#[test]
fn tools_of_the_python_sdk_answer_over_stdio_and_http() {
    let (python, script) = server();
    let command = json!([python, script, "stdio"]);
    let (json, events) = (HttpServer::start("json"), HttpServer::start("events"));
    let url = |server: &HttpServer| {
        format!(
            "url = \"http://127.0.0.1:{}/mcp\"\nallow_private = true\n",
            server.port
        )
    };
    for (name, place) in [
        ("stdio", format!("command = {command}\n")),
        ("json", url(&json)),
        ("events", url(&events)),
    ] {
        let all = format!(
            "[[route]]\nto = \"mcp://about@weather\"\nby = \"mcp\"\nargument = \"text\"\n{place}\
             [[route]]\nto = \"mcp://*\"\nby = \"mcp\"\ntools = [\"forecast\", \"coast\"]\n{place}"
        );
        let ask = |to: &str, body: &str| ask(&all, to, body);
        let (code, said) = ask(
            "mcp://forecast@weather",
            "{\"city\": \"Kiel\", \"days\": 3}",
        );
        assert!(
            code == 0 && said.contains("Kiel: rain for 3 days"),
            "{name}: {said}"
        );
        let (code, said) = ask("mcp://coast@weather", "{\"city\": \"Kiel\"}");
        assert!(
            code == 0 && said.contains("\"kilometres\": 0.5"),
            "{name}: {said}"
        );
        let (code, said) = ask("mcp://about@weather", "{Kiel}");
        assert_eq!(code, 0, "{name}: {said}");
        for part in ["crosstalk/attempt=1", "crosstalk/from=KALLE", "{Kiel}"] {
            assert!(said.contains(part), "{name}: {said}");
        }
        // The tool's own error, in its words, once.
        let (code, said) = ask("mcp://forecast@weather", "{\"city\": \"Atlantis\"}");
        assert!(
            code == 10 && said.contains("no such city"),
            "{name}: {code} {said}"
        );
        let (code, said) = ask("mcp://forecast@weather", "What about Kiel?");
        assert!(
            code == 12 && said.contains("JSON object"),
            "{name}: {code} {said}"
        );
    }
}

#[test]
fn a_message_to_crosstalk_as_a_tool_reaches_an_agent() {
    let home = Home::new("mcp-tool-self");
    let command = json!([
        env!("CARGO_BIN_EXE_crosstalk"),
        "mcp",
        "--as",
        "agent://code/gate"
    ]);
    let environment = json!(home.path("crosstalk")).to_string();
    let folder = json!(project(&home, "gate")).to_string();
    let route = format!(
        "[[route]]\nto = \"mcp://send@gate\"\nby = \"mcp\"\ncommand = {command}\ndirectory = {folder}\nenvironment = {{ CROSSTALK_HOME = {environment} }}\n"
    );
    let mut web = Client::new(&home, "codex", "web");
    web.call("check", json!({}));
    let body = json!({"to": "codex://code/web", "text": "Which port?"}).to_string();
    let (code, said) = ask(&route, "mcp://send@gate", &body);
    assert!(code == 0 && said.contains("Sent:"), "{code} {said}");
    let got = web.call("check", json!({"wait_seconds": 300}));
    assert_eq!(got["messages"][0]["from"], "agent://code/gate", "{got}");
}

/// The check of the configuration names what a route to a tool lacks before a message needs it.
#[test]
fn a_missing_server_is_named_before_the_start() {
    let home = Home::new("mcp-tool-check");
    let file = home.path("relay.toml");
    let route =
        "[[route]]\nto = \"mcp://look@docs\"\nby = \"mcp\"\ncommand = [\"no-such-server-here\"]\n";
    std::fs::write(&file, route).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_crosstalk"))
        .args(["serve", "--check", "--config"])
        .arg(&file)
        .env("CROSSTALK_HOME", home.path("crosstalk"))
        .output()
        .unwrap();
    let said = said(&output);
    assert!(
        said.contains("no-such-server-here") && said.contains("mcp://look@docs"),
        "{said}"
    );
}
