//! Relays behind the balancer as the service: senders hand in messages, readers follow the inboxes.

use super::history::{Entry, Event, Log};
use super::load::{Answer, Door, Load, Service};
use crate::durability::load::{INBOXES, inbox, letter};
use crate::durability::{inbox_page, listed};
use crosstalk_testing::cluster::{BALANCER, Cluster, RELAY_PORT, RELAYS};
use crosstalk_testing::http::Connection;
use crosstalk_testing::wait::wait_for_ok;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_crosstalk");
/// The pause of a reader after an answer that it could not use.
const PAUSE: Duration = Duration::from_millis(100);
/// After so many empty answers, each after a second, a reader of a load that has ended has read everything.
const EMPTY: usize = 5;

/// Relays of one store.
pub(super) struct Relays {
    token: String,
    address: SocketAddr,
    /// Arguments of `serve` that name the store.
    store: Vec<String>,
}

impl Relays {
    /// Makes a token and starts so many relays.
    pub(super) fn start(cluster: &mut Cluster, count: usize, store: &[&str]) -> Self {
        let mut relays = Self {
            token: String::new(),
            address: cluster.address(BALANCER, RELAY_PORT),
            store: store.iter().map(|word| (*word).to_owned()).collect(),
        };
        let data = cluster.home(RELAYS[0]).join("data");
        let made = Command::new(PROGRAM)
            .args(["token", "create", "load", "--role", "admin", "--for", "*"])
            .arg("--data")
            .arg(&data)
            .env("CROSSTALK_HOME", cluster.home(RELAYS[0]))
            .output()
            .unwrap();
        let talk = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{talk}");
        relays.token = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        relays.restart(cluster, 0);
        for number in 1..count {
            relays.restart(cluster, number);
        }
        wait_for_ok(|| {
            let answer = Connection::open(relays.address).and_then(|mut c| c.get("/readyz"));
            let is_ready = answer.is_ok_and(|answer| answer.status == 200);
            let wanted = || format!("a relay behind the balancer:\n{}", cluster.logs());
            is_ready.then_some(()).ok_or_else(wanted)
        });
        relays
    }

    fn connect(&self) -> io::Result<Connection> {
        let connection = Connection::open(self.address)?;
        Ok(connection.header("Authorization", &format!("Bearer {}", self.token)))
    }

    /// The next page of an inbox, and its cursor. What was read is acknowledged if `acknowledges`.
    fn page(
        connection: &mut Connection,
        address: &str,
        cursor: &mut Option<String>,
        acknowledges: bool,
        mut note: impl FnMut(&str, Event),
    ) -> io::Result<usize> {
        let after = cursor.as_ref().map(|c| format!("&after={c}"));
        let parameters = format!("&limit=100&wait=1{}", after.unwrap_or_default());
        let answer = inbox_page(connection, address, &parameters)?;
        if answer.status != 200 {
            return Err(io::Error::other(answer.text()));
        }
        let page: Value = serde_json::from_slice(&answer.body)?;
        let messages = page["messages"].as_array().unwrap();
        let ids: Vec<&str> = messages.iter().map(|m| m["id"].as_str().unwrap()).collect();
        for message in messages {
            let attempt = u32::try_from(message["attempt"].as_u64().unwrap()).unwrap();
            note(message["id"].as_str().unwrap(), Event::Delivered(attempt));
        }
        if let Some(next) = page["cursor"].as_str() {
            *cursor = Some(next.to_owned());
        }
        if acknowledges && !ids.is_empty() {
            let body = json!({"for": address, "ids": ids}).to_string();
            ids.iter().for_each(|id| note(id, Event::Acknowledging));
            let answer = connection.post_json("/crosstalk/ack", &body)?;
            if answer.status == 200 {
                ids.iter().for_each(|id| note(id, Event::Done));
            }
        }
        Ok(ids.len())
    }
}

/// The way of one sender.
struct Line<'r> {
    relays: &'r Relays,
    connection: Option<Connection>,
}

impl Door for Line<'_> {
    fn hand_in(&mut self, id: &str) -> io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.relays.connect()?,
        };
        let answer = connection.receive(&letter(id))?;
        self.connection = Some(connection);
        Ok(match answer.status {
            200 => Answer::Accepted(answer.text()),
            status @ (408 | 429 | 500..) => Answer::Later(format!("{status}: {}", answer.text())),
            status => Answer::Refused(status),
        })
    }
}

impl Service for Relays {
    const READERS: usize = INBOXES;

    fn door(&self) -> impl Door + Send {
        Line {
            relays: self,
            connection: None,
        }
    }

    /// The first reader acknowledges what it reads.
    fn read(&self, reader: usize, load: &Load) {
        let mut log = Log::default();
        let (mut connection, mut cursor, mut empty) = (None, None, 0);
        while !load.has_ended() || empty < EMPTY {
            let note = |id: &str, event| {
                log.entries.push(Entry {
                    at: load.now(),
                    id: id.to_owned(),
                    event,
                });
            };
            let open = connection.take().map_or_else(|| self.connect(), Ok);
            let read = open.and_then(|mut open| {
                let read = Self::page(&mut open, &inbox(reader), &mut cursor, reader == 0, note)?;
                connection = Some(open);
                Ok(read)
            });
            match read {
                Ok(0) => empty += 1,
                Ok(_) => empty = 0,
                Err(_) => thread::sleep(PAUSE),
            }
        }
        load.keep(log);
    }

    fn present(&self) -> Vec<String> {
        let mut connection = wait_for_ok(|| self.connect().map_err(|e| e.to_string()));
        let inboxes = 0..INBOXES;
        let held = inboxes.flat_map(|number| listed(&mut connection, &inbox(number), None).0);
        held.collect()
    }

    fn restart(&self, cluster: &mut Cluster, relay: usize) {
        let (host, home) = (RELAYS[relay], cluster.home(RELAYS[relay]));
        let hosts = cluster.network.address(BALANCER);
        let config = format!(
            "name = \"durable\"\nhosts = [\"{hosts}\"]\n[limits]\nrequests_per_minute = 0\n"
        );
        let file = home.join("relay.toml");
        fs::write(&file, config).unwrap();
        let mut command = cluster.network.command(host, PROGRAM);
        command
            .args([
                "serve",
                "--listen",
                &format!("0.0.0.0:{RELAY_PORT}"),
                "--log",
                "warn",
            ])
            .arg("--data")
            .arg(home.join("data"))
            .arg("--config")
            .arg(file)
            .args(&self.store)
            .env("CROSSTALK_HOME", home);
        let proxies = cluster.network.processes(host, Some("haproxy"));
        if proxies.is_empty() && !self.store.is_empty() {
            cluster.start_proxy(host, "database.cfg");
        }
        cluster.spawn(host, "relay", command);
        let address = cluster.address(host, RELAY_PORT);
        wait_for_ok(|| {
            let answer = Connection::open(address).and_then(|mut c| c.get("/readyz"));
            let is_ready = answer.is_ok_and(|answer| answer.status == 200);
            let wanted = || format!("{host} to be ready:\n{}", cluster.logs());
            is_ready.then_some(()).ok_or_else(wanted)
        });
    }
}
