//! Starts the server as a client would, and asks it for its tools.

use super::ServerCommand;
use crate::failure::Failure;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// How long the server may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The names of the tools that the server offers.
pub(crate) fn check(command: &ServerCommand) -> Result<Vec<String>, Failure> {
    let failed = |what: &str| {
        Failure::failed(format!("the server did not answer: {what}"))
            .help(format!("run `{} mcp` by hand to see why", command.program))
    };
    let mut child = Command::new(&command.program)
        .args(&command.arguments)
        .envs(command.environment.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| failed(&e.to_string()))?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("it has no streams"));
    };
    let (send, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "setup", "version": "1"}}});
    let tools = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let asked = writeln!(stdin, "{hello}\n{tools}").and_then(|()| stdin.flush());
    let end = Instant::now() + PATIENCE;
    let found = loop {
        let left = end.saturating_duration_since(Instant::now());
        let Ok(line) = lines.recv_timeout(left) else {
            break Err(failed("nothing came"));
        };
        let answer: Value = serde_json::from_str(&line).unwrap_or_default();
        if answer.get("id") == Some(&json!(2)) {
            let tools = answer.pointer("/result/tools").and_then(Value::as_array);
            let names = tools.into_iter().flatten().filter_map(|tool| {
                let name = tool.get("name")?.as_str()?;
                Some(name.to_owned())
            });
            break Ok(names.collect());
        }
    };
    // It ends when its client leaves.
    drop(stdin);
    let _ = child.kill();
    let _ = child.wait();
    asked.map_err(|e| failed(&e.to_string()))?;
    found
}
