//! The load: connections that are kept alive, each with one request on the way, all on one thread.
//!
//! It shares the machine with the server, so it does as little as it can: requests are written before, of an answer
//! only the first line and the length are read.

use super::letter::{Letters, now_millis};
use memchr::memmem;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Connections at once.
    pub connections: usize,
    /// Before anything counts.
    pub warm_up: Duration,
    /// While it counts.
    pub time: Duration,
    /// Envelopes of a request, each of which has to be taken.
    pub batch: usize,
    /// From one request of a connection to its next; nothing for as fast as it can.
    pub pace: Option<Duration>,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Messages that were taken while it counted.
    pub taken: u64,
    /// Messages that were taken in all.
    pub in_all: u64,
    /// Requests that got anything else than what they should.
    pub refused: u64,
    /// What the first of them got.
    pub refusal: Option<String>,
    /// For how long it counted.
    pub seconds: f64,
    /// Microseconds from the request to its answer, the shortest first.
    pub waits: Vec<u32>,
}

impl Measured {
    /// Messages a second.
    pub fn rate(&self) -> f64 {
        self.taken as f64 / self.seconds
    }

    /// Microseconds that so much of a hundred did not exceed.
    pub fn percentile(&self, percent: f64) -> f64 {
        percentile(&self.waits, percent)
    }

    fn add(&mut self, other: Self) {
        self.taken += other.taken;
        self.in_all += other.in_all;
        self.refused += other.refused;
        self.refusal = self.refusal.take().or(other.refusal);
        self.seconds = self.seconds.max(other.seconds);
        self.waits.extend(other.waits);
    }
}

/// Of sorted numbers, the one that so much of a hundred do not exceed.
pub fn percentile(sorted: &[u32], percent: f64) -> f64 {
    let place = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    let found = sorted.get(place.saturating_sub(1).min(sorted.len().saturating_sub(1)));
    found.map_or(f64::NAN, |us| f64::from(*us))
}

/// Puts the load on a server.
pub fn run(address: SocketAddr, plan: Plan, letters: &Letters) -> Result<Measured> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut wires = Vec::with_capacity(plan.connections);
        for _ in 0..plan.connections {
            wires.push(Wire::open(address).await?);
        }
        let start = Instant::now();
        let clock = Clock {
            start,
            millis: now_millis(),
            from: start + plan.warm_up,
            until: start + plan.warm_up + plan.time,
        };
        let senders = wires.into_iter().enumerate().map(|(number, wire)| {
            let letters = letters.clone();
            tokio::spawn(async move { send(wire, letters, number, clock, plan).await })
        });
        let senders: Vec<_> = senders.collect();
        let mut all = Measured::default();
        for sender in senders {
            all.add(sender.await.map_err(Error::other)??);
        }
        all.waits.sort_unstable();
        Ok(all)
    })
}

/// When things are.
#[derive(Clone, Copy)]
struct Clock {
    start: Instant,
    millis: u64,
    from: Instant,
    until: Instant,
}

async fn send(
    mut wire: Wire,
    letters: Letters,
    number: usize,
    clock: Clock,
    plan: Plan,
) -> Result<Measured> {
    let batch = plan.batch;
    let mut quill = letters.of(number);
    let mut measured = Measured::default();
    let mut now = Instant::now();
    let mut last = clock.from;
    // Connections take turns, so that requests are spread over the time of a pace.
    let mut due = plan
        .pace
        .map(|pace| clock.start + pace * number as u32 / plan.connections as u32);
    while now < clock.until {
        if let (Some(due), Some(pace)) = (&mut due, plan.pace) {
            if *due >= clock.until {
                break;
            }
            tokio::time::sleep_until((*due).into()).await;
            *due += pace;
            now = Instant::now();
        }
        let millis = clock.millis + now.duration_since(clock.start).as_millis() as u64;
        let Some(request) = quill.next(millis) else {
            break;
        };
        let began = now;
        wire.send(request).await?;
        let status = wire.answer().await?;
        now = Instant::now();
        let is_taken = status == 200
            && (batch == 1 || memmem::find_iter(wire.body(), b"\nintent: ACK\n").count() == batch);
        if !is_taken {
            measured.refused += 1;
            let text = String::from_utf8_lossy(wire.body());
            let said = || format!("{status} {}", text.chars().take(600).collect::<String>());
            measured.refusal.get_or_insert_with(said);
            continue;
        }
        measured.in_all += batch as u64;
        if began >= clock.from && now <= clock.until {
            measured.taken += batch as u64;
            let wait = now.duration_since(began).as_micros();
            measured.waits.push(u32::try_from(wait).unwrap_or(u32::MAX));
        }
        last = now.min(clock.until);
    }
    measured.seconds = last.saturating_duration_since(clock.from).as_secs_f64();
    Ok(measured)
}

/// One connection.
pub struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Where the body of the last answer is.
    body: std::ops::Range<usize>,
    /// How much of the buffer came.
    filled: usize,
}

impl Wire {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; 8 * 1024],
            body: 0..0,
            filled: 0,
        })
    }

    /// Sends a request.
    pub async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await
    }

    /// Reads an answer of another protocol: what `until` says of it, once that says something.
    pub async fn reply(&mut self, until: fn(&[u8]) -> Option<bool>) -> Result<bool> {
        self.filled = 0;
        loop {
            self.more().await?;
            if let Some(is_good) = until(self.got()) {
                self.body = 0..self.filled;
                return Ok(is_good);
            }
        }
    }

    /// Reads an answer: its status.
    pub async fn answer(&mut self) -> Result<u16> {
        self.filled = 0;
        let head = loop {
            if let Some(end) = memmem::find(self.got(), b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let length = self.header(head, b"content-length: ");
        let length = length.and_then(|l| std::str::from_utf8(l).ok()?.parse::<usize>().ok());
        match length {
            Some(length) => {
                while self.filled < head + length {
                    self.more().await?;
                }
            }
            // In chunks: the last one is empty.
            None => {
                while !self.got().ends_with(b"\r\n0\r\n\r\n") {
                    self.more().await?;
                }
            }
        }
        self.body = head..self.filled;
        let status = self
            .got()
            .get(9..12)
            .and_then(|s| std::str::from_utf8(s).ok());
        let status = status.and_then(|s| s.parse().ok());
        status.ok_or_else(|| Error::new(ErrorKind::InvalidData, "no status"))
    }

    /// The body of the last answer.
    pub fn body(&self) -> &[u8] {
        self.buffer.get(self.body.clone()).unwrap_or_default()
    }

    /// A header of the last answer, by its name in lower case with the colon and the space after it.
    pub fn header(&self, head: usize, name: &[u8]) -> Option<&[u8]> {
        let head = self.buffer.get(..head)?;
        let start = memmem::find(head, name)? + name.len();
        let value = head.get(start..)?;
        value.get(..memchr::memchr(b'\r', value)?)
    }

    /// Where the head of the last answer ended.
    pub fn head(&self) -> usize {
        self.body.start
    }

    fn got(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    async fn more(&mut self) -> Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
        match self.stream.read(room).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            read => {
                self.filled += read;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::floor;

    #[test]
    fn percentiles_are_those_of_the_sorted_numbers() {
        let numbers: Vec<u32> = (1..=200).collect();
        assert_eq!(percentile(&numbers, 50.0), 100.0);
        assert_eq!(percentile(&numbers, 99.0), 198.0);
        assert_eq!(percentile(&[7], 99.0), 7.0);
        assert!(percentile(&[], 50.0).is_nan());
    }

    /// The floor answers everything, and with what it got: a batch of it is no batch of acknowledgements.
    #[test]
    fn unexpected_answers_are_counted_apart() {
        let address = floor::here(40).unwrap();
        let plan = Plan {
            connections: 3,
            warm_up: Duration::ZERO,
            time: Duration::from_millis(50),
            batch: 1,
            pace: None,
        };
        let good = run(address, plan, &Letters::single()).unwrap();
        assert!(good.taken > 0 && good.refused == 0, "{good:?}");
        assert_eq!(good.waits.len() as u64, good.taken);
        assert!(good.rate() > 0.0 && good.seconds <= 0.051);
        let paced = Plan {
            pace: Some(Duration::from_secs(3600)),
            ..plan
        };
        let slow = run(address, paced, &Letters::single()).unwrap();
        assert_eq!(
            slow.in_all, 1,
            "only the first connection is due within the time"
        );
        let letters = Letters::Fresh {
            batch: 2,
            receivers: 1,
        };
        let plan = Plan { batch: 2, ..plan };
        let bad = run(address, plan, &letters).unwrap();
        assert!(bad.taken == 0 && bad.refused > 0, "{bad:?}");
        assert!(bad.refusal.unwrap().starts_with("200 [[claude://bench/"));
    }
}
