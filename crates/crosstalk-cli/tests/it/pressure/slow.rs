//! Two thousand clients that never come to the end of a request: others are served, memory is bounded, and the slow
//! ones are let go when their time is up.

use super::{relay, skip};
use crosstalk_testing::relay::envelope;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const CLIENTS: usize = 2_000;
/// Files that this process and the relay may have open.
const FILES: u64 = 6_000;
/// Messages of the client that is not slow.
const MESSAGES: usize = 300;
/// Bytes that a waiting client may cost.
const COST: u64 = 64 * 1024;
/// How long slow clients may stay beyond their deadlines, on a machine that has other work.
const PATIENCE: Duration = Duration::from_secs(90);

/// The deadlines are short so that the test is.
const CONFIG: &str = "\
[limits]
connections = 5000
connections_per_peer = 5000
head_seconds = 6
body_seconds = 8
idle_seconds = 6
";

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

#[test]
fn two_thousand_slow_clients_are_in_nobodys_way() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit
            .maximum
            .map_or(Some(FILES), |most| Some(most.min(FILES))),
        ..limit
    };
    if limit.current.is_some_and(|now| now < FILES) && setrlimit(Resource::Nofile, raised).is_err()
        || raised.current.is_some_and(|now| now < FILES)
    {
        let reason = "not enough files can be open (ulimit -Hn)";
        return skip("two_thousand_slow_clients_are_in_nobodys_way", reason);
    }
    let mut relay = relay().config(CONFIG).start();
    let before = relay.memory().unwrap();
    let mut clients: Vec<Client> = (0..CLIENTS)
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
    let mut connection = relay.connect();
    for number in 0..MESSAGES {
        let id = format!("QUICK-{number:04}");
        let letter = envelope(&id, "T-QUICK", "chatgpt://slow/s", "claude://slow/r");
        let answer = connection.receive(&letter).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        most = most.max(relay.memory().unwrap());
        // They are slow, and there.
        for client in clients.iter_mut().skip(number % 10).step_by(10) {
            client.trickle();
        }
    }
    let cost = most.saturating_sub(before) / CLIENTS as u64;
    assert!(cost <= COST, "a slow client costs {cost} bytes");
    let end = Instant::now() + PATIENCE;
    while clients.iter().any(|c| !c.is_gone) {
        for client in clients.iter_mut().filter(|c| !c.is_gone) {
            client.trickle();
        }
        let left = clients.iter().filter(|c| !c.is_gone).count();
        assert!(Instant::now() < end, "{left} slow clients are still there");
        std::thread::sleep(Duration::from_millis(100));
    }
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
    let letter = envelope(
        "QUICK-END",
        "T-QUICK",
        "chatgpt://slow/s",
        "claude://slow/r",
    );
    assert_eq!(relay.connect().receive(&letter).unwrap().status, 200);
    assert!(relay.has_ended().is_none());
}
