//! Many clients that never come to the end of a request: others are served, memory is bounded, and the slow ones are
//! let go when their time is up.

use super::{relay, skip};
use crosstalk_testing::relay::{Relay, envelope};
use crosstalk_testing::tier;
use crosstalk_testing::wait::{wait_for, wait_for_ok};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

/// Slow clients in a run of all tests and in a full one.
const CLIENTS: usize = 300;
const FULL_CLIENTS: usize = 2_000;
/// Files that this process and the relay may have open, likewise.
const FILES: u64 = 1_000;
const FULL_FILES: u64 = 6_000;
/// Messages of the client that is not slow.
const MESSAGES: usize = 300;
/// Bytes that a waiting client may cost.
const COST: u64 = 64 * 1024;

/// The deadlines are short so that the test is, and usually long enough that all clients are there at once.
fn config() -> String {
    let (head, body) = tier::size((2, 3), (6, 8));
    format!(
        "[limits]\nconnections = 5000\nconnections_per_peer = 5000\nhead_seconds = {head}\nbody_seconds = {body}\n\
         idle_seconds = {head}\n"
    )
}

/// How a client is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slow {
    /// It says nothing.
    Silent,
    /// Its head never ends.
    Head,
    /// Its body never ends.
    Body,
}

struct Client {
    stream: TcpStream,
    how: Slow,
    /// What the relay has said.
    said: Vec<u8>,
    is_gone: bool,
}

impl Client {
    /// Sends one byte more, and looks whether it is over.
    fn trickle(&mut self) {
        let byte: &[u8] = match self.how {
            Slow::Silent => b"",
            Slow::Head | Slow::Body => b"a",
        };
        if self.stream.write_all(byte).is_err() {
            self.is_gone = true;
        }
        let mut buffer = [0; 2048];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.is_gone = true,
            Ok(read) => self.said.extend(&buffer[..read]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.is_gone = true,
        }
    }
}

/// Sends a message as a client that is not slow. Where this test itself was not scheduled for too long, the relay takes it
/// for a slow one, too: it sends again.
fn send(relay: &Relay, id: &str) {
    let letter = envelope(id, "T-QUICK", "chatgpt://slow/s", "claude://slow/r");
    wait_for("the answer to a client that is not slow", || {
        let answer = relay.connect().receive(&letter).ok()?;
        assert!(matches!(answer.status, 200 | 408), "{}", answer.text());
        (answer.status == 200).then_some(())
    });
}

#[test]
fn slow_clients_are_in_nobodys_way() {
    let number_of_clients = tier::size(CLIENTS, FULL_CLIENTS);
    let files = tier::size(FILES, FULL_FILES);
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit
            .maximum
            .map_or(Some(files), |most| Some(most.min(files))),
        ..limit
    };
    if limit.current.is_some_and(|now| now < files) && setrlimit(Resource::Nofile, raised).is_err()
        || raised.current.is_some_and(|now| now < files)
    {
        let reason = "not enough files can be open (ulimit -Hn)";
        return skip("slow_clients_are_in_nobodys_way", reason);
    }
    let mut relay = relay().config(config()).start();
    let before = relay.memory().unwrap();
    let mut clients: Vec<Client> = (0..number_of_clients)
        .map(|number| {
            let mut stream = TcpStream::connect(relay.address()).unwrap();
            let (how, begin) = match number % 3 {
                0 => (Slow::Silent, ""),
                1 => (Slow::Head, "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\nX-Slow: "),
                _ => (
                    Slow::Body,
                    "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\
                     Content-Length: 5000\r\n\r\n[[",
                ),
            };
            stream.write_all(begin.as_bytes()).unwrap();
            stream.set_nonblocking(true).unwrap();
            Client {
                stream,
                how,
                said: Vec::new(),
                is_gone: false,
            }
        })
        .collect();
    let mut most = 0;
    for number in 0..MESSAGES {
        send(&relay, &format!("QUICK-{number:04}"));
        most = most.max(relay.memory().unwrap());
        // They are slow, and there.
        for client in clients.iter_mut().skip(number % 10).step_by(10) {
            client.trickle();
        }
    }
    let cost = most.saturating_sub(before) / number_of_clients as u64;
    assert!(cost <= COST, "a slow client costs {cost} bytes");
    wait_for_ok(|| {
        for client in clients.iter_mut().filter(|c| !c.is_gone) {
            client.trickle();
        }
        let left = clients.iter().filter(|c| !c.is_gone).count();
        match left {
            0 => Ok(()),
            _ => Err(format!("{left} slow clients to be let go")),
        }
    });
    // Whoever had begun to say something is told why, where it can be told.
    let told = clients
        .iter()
        .filter(|c| c.said.starts_with(b"HTTP/1.1 408"))
        .count();
    assert!(told > 0, "nobody was told");
    let other = clients
        .iter()
        .find(|c| !c.said.is_empty() && !c.said.starts_with(b"HTTP/1.1 408"));
    assert!(
        other.is_none(),
        "{:?}",
        other.map(|c| String::from_utf8_lossy(&c.said).into_owned())
    );
    // The one that was not slow is served as before.
    send(&relay, "QUICK-END");
    assert!(relay.has_ended().is_none());
}
