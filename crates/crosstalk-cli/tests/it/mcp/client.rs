//! A client of MCP over stdio: it starts the server in a project, and speaks the protocol line by line.

use crate::run::{Home, binary};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// One client, and the server that it has started.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
    /// Messages that are no answer to a request.
    pub(crate) notes: Vec<Value>,
}

/// A folder of a project in the home of a test.
pub(crate) fn project(home: &Home, name: &str) -> PathBuf {
    let folder = home.path("code").join(name);
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    folder
}

fn start(home: &Home, folder: &str, arguments: &[&str]) -> Command {
    let mut command = binary();
    command.env("CROSSTALK_HOME", home.path("crosstalk"));
    command.arg("mcp").args(arguments);
    command.current_dir(project(home, folder));
    command
}

impl Client {
    /// A client that says its name, in a project.
    pub(crate) fn new(home: &Home, name: &str, folder: &str) -> Self {
        Self::with(home, name, folder, &[], json!({}))
    }

    pub(crate) fn with(
        home: &Home,
        name: &str,
        folder: &str,
        arguments: &[&str],
        capabilities: Value,
    ) -> Self {
        let mut client = Self::raw(home, folder, arguments);
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": name, "version": "1"},
        });
        let answer = client.request("initialize", hello);
        assert_eq!(
            answer["result"]["protocolVersion"], "2025-11-25",
            "{answer}"
        );
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// A client that has said nothing yet.
    pub(crate) fn raw(home: &Home, folder: &str, arguments: &[&str]) -> Self {
        let mut child = start(home, folder, arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().unwrap();
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.unwrap();
                let value = serde_json::from_str(&line)
                    .unwrap_or_else(|e| panic!("stdout has something else than MCP: {e}: {line}"));
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            next: 0,
            notes: Vec::new(),
        }
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request, and returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message of the server.
    pub(crate) fn message(&mut self) -> Value {
        self.lines
            .recv_timeout(crosstalk_testing::wait::LIMIT)
            .unwrap()
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notes.push(message);
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Begins to call a tool.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.ask(
            "tools/call",
            json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}}),
        )
    }

    /// Calls a tool, whether it fails or not.
    pub(crate) fn try_call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that succeeds: its structured content.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.try_call(tool, arguments);
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }

    /// Answers a request of the server.
    pub(crate) fn reply(&mut self, message: &Value) {
        self.write(message);
    }

    /// Leaves, and waits until the server has ended.
    pub(crate) fn leave(mut self) {
        self.stdin = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}
