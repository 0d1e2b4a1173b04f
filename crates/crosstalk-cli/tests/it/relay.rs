//! Real relays on free ports: messages that go out by them, are carried, listened for, backed up and restored.

mod agent;
mod answer;
mod approve;
mod audit;
mod ballot;
mod carry;
mod client;
mod consent;
mod email;
mod form;
mod mail_loop;
mod monitor;
mod operate;
mod outbox;
mod poll;
mod reload;
mod restore;
mod sms;
mod waiting;
mod witness;

use crate::run::{Ended, Home, binary};
use crosstalk_testing::wait::{LIMIT, wait_for};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A relay that runs.
struct Relay {
    process: Child,
    url: String,
    data: PathBuf,
    log: Option<JoinHandle<String>>,
}

impl Relay {
    /// Starts a relay on a free port, and waits until it listens.
    fn start(home: &Home, options: &[&str]) -> Self {
        let data = home.path("relay");
        Self::start_at(&data, options)
    }

    fn start_at(data: &Path, options: &[&str]) -> Self {
        let mut command = binary();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(options);
        Self::of(command, data)
    }

    fn of(mut command: Command, data: &Path) -> Self {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = process.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).unwrap();
            text
        });
        let (tell, told) = mpsc::channel();
        let out = process.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut line = String::new();
            BufReader::new(out).read_line(&mut line).unwrap();
            let _ = tell.send(line);
        });
        let url = told.recv_timeout(LIMIT).unwrap().trim().to_owned();
        let mut relay = Self {
            process,
            url,
            data: data.to_owned(),
            log: Some(log),
        };
        if relay.url.is_empty() {
            panic!("the relay did not start: {}", relay.ended().1);
        }
        relay
    }

    /// Sends a signal.
    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.process.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Waits for its end: the exit code, and everything that it logged.
    fn ended(&mut self) -> (Option<i32>, String) {
        let status = wait_for("the end of the relay", || self.process.try_wait().unwrap());
        (status.code(), self.log.take().unwrap().join().unwrap())
    }

    /// Stops it, and gives its log.
    fn stop(mut self) -> String {
        self.signal("TERM");
        let (code, log) = self.ended();
        assert_eq!(code, Some(0), "{log}");
        log
    }

    fn data(&self) -> &str {
        self.data.to_str().unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A test that failed leaves no relay behind.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A person with a home of their own.
struct Person {
    home: Home,
    name: &'static str,
}

impl Person {
    fn new(test: &str, name: &'static str) -> Self {
        Self {
            home: Home::new(&format!("relay-{test}-{name}")),
            name,
        }
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        self.say(arguments, "")
    }

    fn say(&self, arguments: &[&str], stdin: &str) -> Ended {
        let me = [
            ("CROSSTALK_USER", self.name),
            ("CROSSTALK_CLIPBOARD", "none"),
        ];
        self.home.run_with(&me, arguments, stdin)
    }

    /// Runs something that has to go well.
    fn does(&self, arguments: &[&str]) -> Ended {
        self.does_with(arguments, "")
    }

    fn does_with(&self, arguments: &[&str], stdin: &str) -> Ended {
        let ended = self.say(arguments, stdin);
        assert_eq!(ended.code, 0, "{arguments:?}: {}{}", ended.out, ended.err);
        ended
    }

    /// Starts something that goes on.
    fn starts(&self, arguments: &[&str]) -> Child {
        let mut command = binary();
        command
            .env("CROSSTALK_HOME", self.home.path("crosstalk"))
            .env("CROSSTALK_USER", self.name)
            .env("CROSSTALK_CLIPBOARD", "none")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

/// Waits until so many lines on stderr have a text.
fn wait_for_lines(child: &mut Child, text: &'static str, count: usize) {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok).filter(|l| l.contains(text)) {
            // The test may have seen enough.
            let _ = tell.send(line);
        }
    });
    for _ in 0..count {
        told.recv_timeout(LIMIT).unwrap();
    }
}

/// What a process printed, both streams, when it has ended.
fn output(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// The value of a header of an envelope.
fn header(envelope: &str, name: &str) -> String {
    let line = envelope
        .lines()
        .find_map(|l| l.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {envelope}"))
        .to_owned()
}
