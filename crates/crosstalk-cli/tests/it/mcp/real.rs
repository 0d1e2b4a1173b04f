//! Real clients: the official Python SDK, the MCP Inspector, and the coding agents themselves.

use super::client::{Client, project};
use crate::run::Home;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn tools() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("tools")
}

/// A program that `cargo xtask test` installs.
pub(crate) fn installed(path: &str) -> PathBuf {
    let program = tools().join(path);
    let hint = "`cargo xtask test` installs it (PyPI, npm)";
    assert!(program.exists(), "{} is missing: {hint}", program.display());
    program
}

pub(crate) fn npm(name: &str) -> PathBuf {
    installed(&format!("mcp-clients/node_modules/.bin/{name}"))
}

pub(crate) fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy;
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

pub(crate) fn python() -> Command {
    let mut command = Command::new(installed("mcp/bin/python"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/sdk.py"));
    command
}

#[test]
fn the_python_sdk_speaks_both_revisions() {
    let home = Home::new("mcp-sdk");
    let output = python()
        .env("CROSSTALK_HOME", home.path("crosstalk"))
        .args(["stdio", env!("CARGO_BIN_EXE_crosstalk")])
        .arg(home.path("code"))
        .output()
        .unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("legacy 2025-11-25") && said.contains("auto 2026-07-28"),
        "{said}"
    );
}

pub(crate) fn inspect(home: &Home, server: &[&str], arguments: &[&str]) -> Value {
    let output = Command::new(npm("mcp-inspector"))
        .env("CROSSTALK_HOME", home.path("crosstalk"))
        .arg("--cli")
        .args(server)
        .args(arguments)
        .current_dir(project(home, "inspected"))
        .output()
        .unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"))
}

#[test]
fn the_inspector_lists_and_calls_the_tools() {
    let home = Home::new("mcp-inspector");
    let server = [env!("CARGO_BIN_EXE_crosstalk"), "mcp"];
    let listed = inspect(&home, &server, &["--method", "tools/list"]);
    assert_eq!(listed["tools"].as_array().unwrap().len(), 6, "{listed}");
    let call = ["--method", "tools/call", "--tool-name"];
    let send = ["send", "--tool-arg", "to=codex://code/web", "text=Hello"];
    let sent = inspect(&home, &server, &[&call[..], &send].concat());
    let id = sent["structuredContent"]["id"].as_str().unwrap();
    let read = inspect(
        &home,
        &server,
        &[&call[..], &["read", "--tool-arg", &format!("id={id}")]].concat(),
    );
    assert!(read.to_string().contains("Hello"), "{read}");
}

#[test]
fn the_tools_cost_a_model_little() {
    let home = Home::new("mcp-tokens");
    let mut client = Client::new(&home, "claude-code", "shop");
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let empty = client.try_call("check", json!({}));
    let texts = json!([list.to_string(), empty.to_string()]);
    let mut node = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/tokens.mjs"))
        .arg(installed("mcp-clients"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    node.stdin
        .take()
        .unwrap()
        .write_all(texts.to_string().as_bytes())
        .unwrap();
    let output = node.wait_with_output().unwrap();
    let counts: Vec<usize> = serde_json::from_slice(&output.stdout).unwrap();
    println!("tokens of the list of tools and of an empty check: {counts:?}");
    assert!(counts[0] <= 1_500, "the list of tools: {counts:?}");
    assert!(counts[1] <= 40, "an empty check: {counts:?}: {empty}");
}

/// A home with nothing but settings that `crosstalk setup` writes.
fn client(home: &Home, name: &str) -> Command {
    let mut command = Command::new(npm(name));
    command.env_clear();
    for name in ["PATH", "LANG", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.env("HOME", home.path("."));
    command.stdin(Stdio::null());
    command
}

/// Lets Gemini CLI connect servers in a folder.
fn trust(home: &Home, folder: &Path) {
    let trusted = json!({folder.to_str().unwrap(): "TRUST_FOLDER"});
    let file = home.path(".gemini/trustedFolders.json");
    std::fs::write(file, trusted.to_string()).unwrap();
}

#[test]
fn coding_agents_connect_after_the_setup() {
    let home = Home::new("mcp-agents");
    let folder = project(&home, "shop");
    let scratch = home.path(".");
    let scratch = scratch.to_str().unwrap();
    let ended = home.run_with(
        &[("HOME", scratch)],
        &["setup", "claude", "codex", "gemini", "--yes"],
        "",
    );
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(
        ended
            .err
            .contains("send, check, read, reply, poll and ask_human"),
        "{}",
        ended.err
    );
    assert!(
        ended.err.contains("folders that you trust"),
        "{}",
        ended.err
    );
    let list = |name: &str| {
        let output = client(&home, name)
            .args(["mcp", "list"])
            .current_dir(&folder)
            .output()
            .unwrap();
        said(&output)
    };
    let claude = list("claude");
    assert!(
        claude.contains("crosstalk") && claude.contains("Connected"),
        "{claude}"
    );
    let codex = list("codex");
    let line = codex
        .lines()
        .find(|l| l.starts_with("crosstalk"))
        .unwrap_or_default();
    assert!(line.contains("enabled"), "{codex}");
    // Only in a folder that the person trusts.
    let gemini = list("gemini");
    assert!(!gemini.contains("- Connected"), "{gemini}");
    trust(&home, &folder);
    let gemini = list("gemini");
    assert!(
        gemini.contains("crosstalk") && gemini.contains("- Connected"),
        "{gemini}"
    );
}

#[test]
fn clients_accept_what_the_setup_generates() {
    let home = Home::new("mcp-plugins");
    let scratch = home.path(".");
    let environment = [("HOME", scratch.to_str().unwrap())];
    let generate = |client: &str, folder: &Path| {
        let arguments = ["setup", client, "--plugin", folder.to_str().unwrap()];
        let ended = home.run_with(&environment, &arguments, "");
        assert_eq!(ended.code, 0, "{}", ended.err);
        // Again over what is there, and never over something else.
        assert_eq!(home.run_with(&environment, &arguments, "").code, 0);
    };
    let (plugin, extension) = (home.path("plugin"), home.path("extension"));
    generate("claude", &plugin);
    let output = client(&home, "claude")
        .args(["plugin", "validate", "--strict"])
        .arg(&plugin)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    generate("gemini", &extension);
    let output = client(&home, "gemini")
        .args(["extensions", "validate"])
        .arg(&extension)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let foreign = home.path("code");
    project(&home, "x");
    let refused = home.run(
        &["setup", "claude", "--plugin", foreign.to_str().unwrap()],
        "",
    );
    assert_ne!(refused.code, 0);
    // The hook of the plugin says what waits.
    let mut agent = Client::new(&home, "claude-code", "shop");
    agent.call("check", json!({}));
    home.run(
        &["send", "claude://code/shop", "Please look at the plan."],
        "",
    );
    let hooks = std::fs::read_to_string(plugin.join("hooks/hooks.json")).unwrap();
    let hooks: Value = serde_json::from_str(&hooks).unwrap();
    let hook = hooks["hooks"]["SessionStart"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap();
    let output = Command::new("sh")
        .args(["-c", hook])
        .env("CROSSTALK_HOME", home.path("crosstalk"))
        .current_dir(project(&home, "shop"))
        .output()
        .unwrap();
    assert!(
        said(&output).contains("1 new message for claude://code/shop"),
        "{}",
        said(&output)
    );
}

/// A scripted model on loopback; it ends with the value.
struct Model {
    child: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Model {
    fn start(script: &Value) -> (Self, u16) {
        use std::io::BufRead as _;
        let mut child = Command::new(installed("mcp/bin/python"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/model.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{script}").unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        (Self { child, lines }, port)
    }

    /// The next result of a tool that the client showed the model.
    fn result(&mut self) -> Value {
        let line = self.lines.next().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A coding agent does what its model says: it sends a message, waits for one, and ends. `start` makes the client use the model
/// at a port.
fn converses(name: &str, start: impl FnOnce(&Home, u16) -> Command) {
    let home = Home::new(&format!("mcp-model-{name}"));
    let folder = project(&home, "shop");
    let scratch = home.path(".");
    let environment = [("HOME", scratch.to_str().unwrap())];
    let ended = home.run_with(&environment, &["setup", name, "--yes"], "");
    assert_eq!(ended.code, 0, "{}", ended.err);
    home.run(&["config", "set", "sender", "KALLE"], "");
    let script = json!([
        ["send", {"to": "agent://code/web", "text": "Which port?"}],
        ["check", {"wait_seconds": 60}],
        "All done."
    ]);
    let (mut model, port) = Model::start(&script);
    let agent = start(&home, port)
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let sent = model.result().to_string();
    assert!(sent.contains("thread"), "{sent}");
    // The agent waits now, and the person answers in the place of the other one.
    let address = format!("{name}://code/shop");
    let ended = home.run(&["send", &address, "Port 8080."], "");
    assert_eq!(ended.code, 0, "{}", ended.err);
    let got = model.result().to_string();
    assert!(
        got.contains("Port 8080.") && got.contains("~~~~") && got.contains("unsigned"),
        "{got}"
    );
    let output = agent.wait_with_output().unwrap();
    assert!(said(&output).contains("All done."), "{}", said(&output));
    // What it sent is there, under its own address.
    let threads = home.run(&["threads", "--json"], "").out;
    assert!(threads.contains(&address), "{threads}");
}

#[test]
fn claude_code_sends_and_checks_as_its_model_says() {
    converses("claude", |home, port| {
        let mut agent = client(home, "claude");
        agent
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .args(["-p", "Ask the other agent which port it uses."])
            .args([
                "--allowedTools",
                "mcp__crosstalk__send,mcp__crosstalk__check",
            ]);
        agent
    });
}

#[test]
fn codex_sends_and_checks_as_its_model_says() {
    converses("codex", |home, port| {
        let provider = format!(
            "model_providers.local={{name=\"local\", base_url=\"http://127.0.0.1:{port}/v1\", wire_api=\"responses\"}}"
        );
        let mut agent = client(home, "codex");
        agent.args(["exec", "--skip-git-repo-check"]);
        for setting in [
            "model=\"scripted\"",
            "model_provider=\"local\"",
            &provider,
            // `codex exec` has nobody to ask.
            "mcp_servers.crosstalk.default_tools_approval_mode=\"approve\"",
        ] {
            agent.args(["-c", setting]);
        }
        agent.arg("Ask the other agent which port it uses.");
        agent
    });
}

#[test]
fn gemini_cli_sends_and_checks_as_its_model_says() {
    converses("gemini", |home, port| {
        let settings = home.path(".gemini/settings.json");
        let text = std::fs::read_to_string(&settings).unwrap();
        let mut all: Value = serde_json::from_str(&text).unwrap();
        all["security"] = json!({"auth": {"selectedType": "gemini-api-key"}});
        std::fs::write(&settings, all.to_string()).unwrap();
        trust(home, &home.path("code/shop"));
        let mut agent = client(home, "gemini");
        agent
            .env("GOOGLE_GEMINI_BASE_URL", format!("http://127.0.0.1:{port}"))
            .env("GEMINI_API_KEY", "none")
            .args(["--yolo", "-m", "gemini-2.5-flash"])
            .args(["-p", "Ask the other agent which port it uses."]);
        agent
    });
}
