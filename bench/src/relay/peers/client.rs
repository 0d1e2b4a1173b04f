//! Clients of the other servers: every connection has one message on the way, as those of the relay have.
//!
//! Redis, NATS and Postfix are spoken to by the same loop that puts the load on the relay; PostgreSQL has pgbench.

use super::super::letter;
use super::super::load::{Measured, Plan, Wire};
use super::server::{Peer, Server, done, postgres_program};
use memchr::memmem;
use std::fs;
use std::io::{Error, Result};
use std::process::Command;
use std::time::Instant;

/// What is sent next, and how its answer is read: nothing before it is whole, then whether it is the one that is wanted.
struct Step {
    send: Vec<u8>,
    until: fn(&[u8]) -> Option<bool>,
}

fn step(send: impl Into<Vec<u8>>, until: fn(&[u8]) -> Option<bool>) -> Step {
    Step {
        send: send.into(),
        until,
    }
}

/// The text that every server gets: an envelope of the load.
fn text() -> String {
    let id = "01K00000000000000000000000";
    letter::envelope(id, id, 1, &letter::inbox(1))
}

/// Sends messages to a server for as long as the plan says.
pub fn run(peer: Peer, server: &Server, plan: Plan) -> Result<Measured> {
    if peer == Peer::Postgres {
        return pgbench(server, plan);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        if peer == Peer::Nats {
            let mut wire = Wire::open(server.address).await?;
            let steps = nats_greeting(plan.connections)
                .into_iter()
                .chain([nats_stream(plan.connections)]);
            for step in steps {
                exchange(&mut wire, &step).await?;
            }
        }
        let mut wires = Vec::with_capacity(plan.connections);
        for number in 0..plan.connections {
            let mut wire = Wire::open(server.address).await?;
            for step in greeting(peer, number) {
                exchange(&mut wire, &step).await?;
            }
            wires.push(wire);
        }
        let start = Instant::now();
        let (from, until) = (start + plan.warm_up, start + plan.warm_up + plan.time);
        let senders = wires.into_iter().enumerate().map(|(number, wire)| {
            let steps = message(peer, number);
            tokio::spawn(send(wire, steps, from, until))
        });
        let senders: Vec<_> = senders.collect();
        let mut measured = Measured::default();
        for sender in senders {
            measured.waits.extend(sender.await.map_err(Error::other)??);
        }
        measured.taken = measured.waits.len() as u64;
        measured.seconds = plan.time.as_secs_f64();
        measured.waits.sort_unstable();
        Ok(measured)
    })
}

async fn send(mut wire: Wire, steps: Vec<Step>, from: Instant, until: Instant) -> Result<Vec<u32>> {
    let mut waits = Vec::new();
    let mut now = Instant::now();
    while now < until {
        let began = now;
        for step in &steps {
            exchange(&mut wire, step).await?;
        }
        now = Instant::now();
        if began >= from && now <= until {
            let wait = now.duration_since(began).as_micros();
            waits.push(u32::try_from(wait).unwrap_or(u32::MAX));
        }
    }
    Ok(waits)
}

async fn exchange(wire: &mut Wire, step: &Step) -> Result<()> {
    if !step.send.is_empty() {
        wire.send(&step.send).await?;
    }
    if wire.reply(step.until).await? {
        return Ok(());
    }
    let said = String::from_utf8_lossy(wire.body()).into_owned();
    Err(Error::other(format!("the server said: {said}")))
}

/// What a connection says first.
fn greeting(peer: Peer, number: usize) -> Vec<Step> {
    match peer {
        Peer::Nats => nats_greeting(number),
        Peer::Postfix => vec![
            step("", smtp::<220>),
            step("EHLO bench.test\r\n", smtp::<250>),
        ],
        Peer::Redis | Peer::Postgres => Vec::new(),
    }
}

/// What it says for one message.
fn message(peer: Peer, number: usize) -> Vec<Step> {
    let text = text();
    match peer {
        Peer::Redis => {
            let command = ["XADD", "messages", "*", "text", &text];
            vec![step(resp(&command), redis)]
        }
        Peer::Nats => vec![step(
            nats_publish(&format!("bench.{number}"), number, &text),
            nats,
        )],
        Peer::Postfix => {
            let head = "MAIL FROM:<a@bench.test>\r\nRCPT TO:<b@bench.test>\r\nDATA\r\n";
            let mail = format!("Subject: bench\n\n{text}.\n").replace('\n', "\r\n");
            vec![step(head, smtp::<354>), step(mail, smtp::<250>)]
        }
        Peer::Postgres => Vec::new(),
    }
}

/// A command of Redis.
fn resp(words: &[&str]) -> String {
    let each = words.iter().map(|w| format!("${}\r\n{w}\r\n", w.len()));
    format!("*{}\r\n{}", words.len(), each.collect::<String>())
}

/// An answer of Redis: an id in two lines, or an error in one.
fn redis(said: &[u8]) -> Option<bool> {
    let lines = if said.starts_with(b"$") { 2 } else { 1 };
    let count = memmem::find_iter(said, b"\r\n").count();
    (count >= lines).then(|| said.starts_with(b"$"))
}

fn nats_greeting(number: usize) -> Vec<Step> {
    let hello = format!("CONNECT {{\"verbose\":false}}\r\nSUB _INBOX.{number} 1\r\nPING\r\n");
    vec![step(hello, |said| {
        memmem::find(said, b"PONG\r\n").map(|_| true)
    })]
}

fn nats_stream(number: usize) -> Step {
    let config = r#"{"name":"BENCH","subjects":["bench.*"],"storage":"file"}"#;
    step(
        nats_publish("$JS.API.STREAM.CREATE.BENCH", number, config),
        nats,
    )
}

fn nats_publish(subject: &str, number: usize, text: &str) -> String {
    format!("PUB {subject} _INBOX.{number} {}\r\n{text}\r\n", text.len())
}

/// The acknowledgement of a stream. The server may ask between messages whether the client is there.
fn nats(said: &[u8]) -> Option<bool> {
    if memmem::find(said, b"-ERR").is_some() {
        return Some(false);
    }
    let answer = said.get(memmem::find(said, b"MSG ")?..)?;
    let end = memmem::find(answer, b"\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    let length: usize = head.rsplit(' ').next()?.parse().ok()?;
    let text = answer.get(end + 2..end + 2 + length)?;
    answer.get(end + 2 + length + 1)?;
    Some(memmem::find(text, b"\"error\"").is_none())
}

/// An answer of a mail server: the last line with this code, or any line that refuses.
fn smtp<const CODE: u16>(said: &[u8]) -> Option<bool> {
    let text = std::str::from_utf8(said).ok()?;
    let (lines, _) = text.rsplit_once("\r\n")?;
    lines.split("\r\n").find_map(|line| {
        let (code, rest) = line.split_at_checked(3)?;
        let code: u16 = code.parse().ok()?;
        let is_wanted = code == CODE && !rest.starts_with('-');
        (is_wanted || code >= 400).then_some(is_wanted)
    })
}

/// PostgreSQL's own client: a transaction for each message, prepared once.
fn pgbench(server: &Server, plan: Plan) -> Result<Measured> {
    let port = server.address.port().to_string();
    let base = ["-h", "127.0.0.1", "-p", &port, "-U", "bench"];
    let table = "CREATE TABLE IF NOT EXISTS message (id bigserial PRIMARY KEY, text text NOT NULL)";
    done(
        Command::new("psql")
            .args(base)
            .args(["-d", "postgres", "-c", table]),
    )?;
    let script = server.folder().join("insert.sql");
    fs::write(&script, "INSERT INTO message (text) VALUES (:text);\n")?;
    let logs = server.folder().join("pgbench");
    fs::create_dir_all(&logs)?;
    let seconds = (plan.warm_up + plan.time).as_secs().max(1);
    let clients = plan.connections.to_string();
    let mut command = Command::new(postgres_program("pgbench"));
    command
        .args(base)
        .args(["-n", "-M", "prepared", "-c", &clients, "-j", "1"])
        .args(["-T", &seconds.to_string(), "-D"])
        .arg(format!("text={}", text()))
        .arg("-l")
        .arg(format!("--log-prefix={}", logs.join("log").display()))
        .arg("-f")
        .arg(script)
        .arg("postgres");
    let said = done(&mut command)?;
    let rate = said.lines().find_map(|l| l.strip_prefix("tps = "));
    let rate = rate.and_then(|r| r.split(' ').next()?.parse::<f64>().ok());
    let rate = rate.ok_or_else(|| Error::other(format!("pgbench said: {said}")))?;
    let mut measured = Measured {
        seconds: seconds as f64,
        taken: (rate * seconds as f64) as u64,
        ..Measured::default()
    };
    for file in fs::read_dir(&logs)? {
        let log = fs::read_to_string(file?.path())?;
        let waits = log
            .lines()
            .filter_map(|l| l.split(' ').nth(2)?.parse::<u32>().ok());
        measured.waits.extend(waits);
    }
    fs::remove_dir_all(&logs)?;
    measured.waits.sort_unstable();
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_when_it_is_whole() {
        assert_eq!(redis(b"$15\r\n1-0"), None);
        assert_eq!(redis(b"$3\r\n1-0\r\n"), Some(true));
        assert_eq!(redis(b"-MISCONF no\r\n"), Some(false));
        assert_eq!(nats(b"PING\r\nMSG _INBOX.1 1 9\r\n{\"seq\":1"), None);
        assert_eq!(
            nats(b"PING\r\nMSG _INBOX.1 1 9\r\n{\"seq\":1}\r\n"),
            Some(true)
        );
        assert_eq!(
            nats(b"MSG _INBOX.1 1 12\r\n{\"error\":{}}\r\n"),
            Some(false)
        );
        assert_eq!(nats(b"-ERR 'x'\r\n"), Some(false));
        assert_eq!(smtp::<354>(b"250 Ok\r\n250 Ok\r\n354 E"), None);
        assert_eq!(smtp::<354>(b"250 Ok\r\n250 Ok\r\n354 End\r\n"), Some(true));
        assert_eq!(smtp::<354>(b"250 Ok\r\n550 No\r\n"), Some(false));
        assert_eq!(smtp::<250>(b"250-bench.test\r\n"), None);
        assert_eq!(
            smtp::<250>(b"250-bench.test\r\n250 CHUNKING\r\n"),
            Some(true)
        );
    }

    #[test]
    fn messages_are_framed_by_their_length() {
        assert_eq!(resp(&["A", "bc"]), "*2\r\n$1\r\nA\r\n$2\r\nbc\r\n");
        assert_eq!(nats_publish("s.1", 7, "→"), "PUB s.1 _INBOX.7 3\r\n→\r\n");
        // No line of the text begins with a full stop, which would end the mail.
        assert!(!text().contains("\n."));
    }
}
