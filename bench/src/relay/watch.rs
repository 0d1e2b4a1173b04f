//! Readers that wait: the time from sending a message to having it, for those who ask with a long poll.

use super::letter::{Letters, Quill, inbox, now_millis, origin};
use super::load::{Measured, Plan, Wire};
use memchr::memmem;
use std::cell::RefCell;
use std::io::{Error, Result};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// Readers, each of an inbox of its own.
pub const READERS: usize = 16;
/// How long a reader waits for what is still missing at the end.
const PATIENCE: Duration = Duration::from_secs(30);

/// The observations.
#[derive(Default)]
struct Seen {
    /// When each message was sent: by connection, then by number, in microseconds since the start.
    sent: Vec<Vec<u64>>,
    /// Whether it came.
    came: Vec<Vec<bool>>,
    /// Messages that came a second time.
    twice: u64,
    /// Messages that are on their way.
    missing: u64,
    done: bool,
    measured: Measured,
}

/// Sends from all connections and reads with [`READERS`]. What counts is what readers got.
pub fn run(address: SocketAddr, plan: Plan) -> Result<Measured> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let seen = Rc::new(RefCell::new(Seen {
        sent: vec![Vec::new(); plan.connections],
        came: vec![Vec::new(); plan.connections],
        ..Seen::default()
    }));
    LocalSet::new().block_on(&runtime, async {
        let start = Instant::now();
        let (from, until) = (start + plan.warm_up, start + plan.warm_up + plan.time);
        let readers: Vec<_> = (0..READERS)
            .map(|number| {
                let seen = Rc::clone(&seen);
                tokio::task::spawn_local(read(address, number, seen, start, from, until))
            })
            .collect();
        let letters = Letters::Fresh {
            batch: 1,
            receivers: READERS,
        };
        let senders: Vec<_> = (0..plan.connections)
            .map(|number| {
                let (quill, seen) = (letters.of(number), Rc::clone(&seen));
                tokio::task::spawn_local(send(address, number, quill, seen, start, until))
            })
            .collect();
        for sender in senders {
            sender.await.map_err(Error::other)??;
        }
        let end = Instant::now() + PATIENCE;
        while seen.borrow().missing > 0 && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        seen.borrow_mut().done = true;
        for reader in readers {
            reader.abort();
        }
        let mut seen = seen.borrow_mut();
        if seen.missing > 0 || seen.twice > 0 {
            let text = format!("{} did not come, {} came twice", seen.missing, seen.twice);
            return Err(Error::other(text));
        }
        seen.measured.seconds = plan.time.as_secs_f64();
        seen.measured.waits.sort_unstable();
        Ok(std::mem::take(&mut seen.measured))
    })
}

async fn send(
    address: SocketAddr,
    number: usize,
    mut quill: Quill,
    seen: Rc<RefCell<Seen>>,
    start: Instant,
    until: Instant,
) -> Result<()> {
    let mut wire = Wire::open(address).await?;
    let mut now = Instant::now();
    while now < until {
        let request = quill.next(now_millis()).unwrap_or_default();
        {
            let mut seen = seen.borrow_mut();
            let at = now.duration_since(start).as_micros() as u64;
            if let Some(sent) = seen.sent.get_mut(number) {
                sent.push(at);
            }
            if let Some(came) = seen.came.get_mut(number) {
                came.push(false);
            }
            seen.missing += 1;
        }
        wire.send(request).await?;
        let status = wire.answer().await?;
        now = Instant::now();
        if status != 200 {
            let text = String::from_utf8_lossy(wire.body()).into_owned();
            return Err(Error::other(format!("{status} {text}")));
        }
    }
    Ok(())
}

async fn read(
    address: SocketAddr,
    number: usize,
    seen: Rc<RefCell<Seen>>,
    start: Instant,
    from: Instant,
    until: Instant,
) -> Result<()> {
    let mut wire = Wire::open(address).await?;
    let address = inbox(number).replace(':', "%3A").replace('/', "%2F");
    let mut cursor = String::new();
    while !seen.borrow().done {
        let after = match cursor.as_str() {
            "" => String::new(),
            cursor => format!("&after={cursor}"),
        };
        let request = format!(
            "GET /crosstalk/inbox?for={address}&limit=500&wait=10{after} HTTP/1.1\r\nHost: localhost\r\nAccept: \
             text/plain\r\n\r\n"
        );
        wire.send(request.as_bytes()).await?;
        let status = wire.answer().await?;
        let now = Instant::now();
        if status != 200 {
            let text = String::from_utf8_lossy(wire.body()).into_owned();
            return Err(Error::other(format!("{status} {text}")));
        }
        if let Some(next) = wire.header(wire.head(), b"crosstalk-cursor: ") {
            cursor = String::from_utf8_lossy(next).into_owned();
        }
        let mut seen = seen.borrow_mut();
        let at = now.duration_since(start).as_micros() as u64;
        let counts = now >= from && now <= until;
        for place in memmem::find_iter(wire.body(), b"\nmessage: ") {
            let id = wire.body().get(place + 10..).unwrap_or_default();
            if let Some((connection, count)) = origin(id) {
                seen.arrived(connection as usize, count as usize, at, counts);
            }
        }
    }
    Ok(())
}

impl Seen {
    fn arrived(&mut self, connection: usize, count: usize, at: u64, counts: bool) {
        let came = self.came.get_mut(connection).and_then(|c| c.get_mut(count));
        match came {
            Some(came) if !*came => *came = true,
            _ => {
                self.twice += 1;
                return;
            }
        }
        self.missing -= 1;
        self.measured.in_all += 1;
        let sent = self.sent.get(connection).and_then(|s| s.get(count));
        if let (Some(sent), true) = (sent, counts) {
            self.measured.taken += 1;
            let wait = u32::try_from(at.saturating_sub(*sent)).unwrap_or(u32::MAX);
            self.measured.waits.push(wait);
        }
    }
}
