//! `cargo xtask bench mcp`: how long it takes from the `send` of one agent until the `check` of another returns, which waits.
//!
//! Two processes over stdio share a store; two clients over HTTP share a relay, beside the least that is needed: a round trip on
//! loopback and one sync of the disk.

use crate::relay::disk;
use crate::relay::floor::Floor;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::http::Connection;
use crosstalk_testing::relay::Relay;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Error, Result, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

const A: &str = "claude://code/a";
const B: &str = "codex://code/b";
/// The waiting agent has begun to wait after this time.
const SETTLE: Duration = Duration::from_millis(30);

/// Something that calls a tool and returns its structured content.
trait Agent: Send {
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value>;
}

/// A process over stdio.
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Process {
    fn start(program: &Path, home: &Path, address: &str) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["mcp", "--as", address])
            .env("CROSSTALK_HOME", home)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::other("the server has no streams"));
        };
        let mut process = Self {
            child,
            stdin,
            stdout: BufReader::new(stdout),
            next: 0,
        };
        process.request(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}),
        )?;
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(process.stdin, "{done}")?;
        Ok(process)
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.stdin, "{request}")?;
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err(Error::other("the server has ended"));
            }
            let answer: Value = serde_json::from_str(&line).map_err(Error::other)?;
            if answer.get("id") == Some(&json!(id)) {
                return Ok(answer);
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent for Process {
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}))?;
        content(&answer)
    }
}

/// A client over HTTP, on one connection.
struct Http(Connection);

impl Agent for Http {
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let text = self.0.post_json("/mcp", &body.to_string())?.text();
        content(&serde_json::from_str(&text).map_err(Error::other)?)
    }
}

fn content(answer: &Value) -> Result<Value> {
    let found = answer.pointer("/result/structuredContent").cloned();
    found.ok_or_else(|| Error::other(answer.to_string()))
}

/// Times from `send` to the return of the waiting `check`, in microseconds, the shortest first.
fn exchanges(mut a: Box<dyn Agent>, mut b: Box<dyn Agent>, rounds: usize) -> Result<Vec<u32>> {
    let (begin, begun) = channel::<()>();
    let (end, ended) = channel::<Result<Instant>>();
    let waiting = thread::spawn(move || {
        while begun.recv().is_ok() {
            let got = b.call("check", json!({"wait_seconds": 60}));
            let at = Instant::now();
            let read = got.and_then(|got| {
                let id = got.pointer("/messages/0/id").cloned().unwrap_or_default();
                b.call("read", json!({"id": id}))
            });
            if end.send(read.map(|_| at)).is_err() {
                return;
            }
        }
    });
    let mut times = Vec::with_capacity(rounds);
    let closed = || Error::other("the waiting agent has ended");
    for _ in 0..rounds {
        begin.send(()).map_err(|_| closed())?;
        thread::sleep(SETTLE);
        let began = Instant::now();
        a.call(
            "send",
            json!({"to": B, "text": "Which port?", "context": "ports"}),
        )?;
        let at = ended.recv().map_err(|_| closed())??;
        let time = at.saturating_duration_since(began).as_micros();
        times.push(u32::try_from(time).unwrap_or(u32::MAX));
    }
    drop(begin);
    let _ = waiting.join();
    times.sort_unstable();
    Ok(times)
}

fn at(times: &[u32], percent: usize) -> f64 {
    let place = (times.len().saturating_sub(1)) * percent / 100;
    f64::from(times.get(place).copied().unwrap_or_default())
}

/// A relay, and a client for each of two addresses.
fn agents_of(relay: &Relay) -> Result<[Box<dyn Agent>; 2]> {
    let token = |wish: Value, admin: Option<&str>| -> Result<String> {
        let mut connection = Connection::open(relay.address())?;
        if let Some(admin) = admin {
            connection = connection.header("Authorization", &format!("Bearer {admin}"));
        }
        let made = connection.post_json("/crosstalk/tokens", &wish.to_string())?;
        let made: Value = serde_json::from_slice(&made.body).map_err(Error::other)?;
        let secret = made.get("token").and_then(Value::as_str);
        secret
            .map(str::to_owned)
            .ok_or_else(|| Error::other(made.to_string()))
    };
    let admin = token(
        json!({"name": "admin", "role": "admin", "addresses": ["*"]}),
        None,
    )?;
    let client = |name: &str, address: &str| -> Result<Box<dyn Agent>> {
        let wish = json!({"name": name, "role": "agent", "addresses": [address]});
        let secret = token(wish, Some(&admin))?;
        let connection = Connection::open(relay.address())?
            .header("Authorization", &format!("Bearer {secret}"))
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2025-11-25");
        Ok(Box::new(Http(connection)))
    };
    Ok([client("a", A)?, client("b", B)?])
}

/// Prints the times, and how they stand to their goals.
pub fn run(quick: bool) -> Result<()> {
    let rounds = if quick { 100 } else { 500 };
    let program: PathBuf = std::env::current_exe()?.with_file_name("crosstalk");
    let place = program.parent().unwrap_or(Path::new("."));
    let folder = Folder::within(place, "bench-mcp");
    if let Some(refusal) = disk::refusal(folder.path()) {
        return Err(Error::other(refusal));
    }
    let home = folder.path().join("home");
    std::fs::create_dir_all(&home)?;
    let a = Process::start(&program, &home, A)?;
    let b = Process::start(&program, &home, B)?;
    let local = exchanges(Box::new(a), Box::new(b), rounds)?;
    println!(
        "two processes on one store: p50 {:.1} ms, p99 {:.1} ms",
        at(&local, 50) / 1e3,
        at(&local, 99) / 1e3
    );
    crate::goal(
        "p99 on one store, ms",
        at(&local, 99) / 1e3,
        "at most",
        50.0,
    );

    let relay = Relay::of(&program)
        .within(folder.path())
        .config("[limits]\nrequests_per_minute = 0\n")
        .start();
    let [a, b] = agents_of(&relay)?;
    let through = exchanges(a, b, rounds)?;
    let floor = Floor::start(400)?;
    let mut connection = Connection::open(floor.address)?;
    let mut trips = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        connection.post_json("/crosstalk/receive", "{}")?;
        trips.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    trips.sort_unstable();
    let syncs = disk::sync_times(folder.path())?;
    let least = at(&trips, 50) + at(&syncs, 50);
    println!(
        "through a relay: p50 {:.2} ms, p99 {:.2} ms; a round trip {:.2} ms and a sync {:.2} ms",
        at(&through, 50) / 1e3,
        at(&through, 99) / 1e3,
        at(&trips, 50) / 1e3,
        at(&syncs, 50) / 1e3
    );
    crate::goal(
        "p50 through a relay ÷ (round trip + sync)",
        at(&through, 50) / least,
        "at most",
        3.0,
    );
    Ok(())
}
