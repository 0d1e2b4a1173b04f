//! How much one hostile stranger slows everybody else down: another caller's look at an inbox, quiet and while a stranger
//! floods the relay with damaged signed messages. Both are measured in turns within one run.

use super::Bench;
use super::letter::{ONE, envelope, inbox, request};
use super::load::{Wire, percentile};
use super::report::median;
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{Algorithm, Document, PrivateKey, Reading, Timestamp, id};
use crosstalk_testing::relay::Relay;
use std::collections::BTreeMap;
use std::io::{Error, Result};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How many times as long as in quiet a look may take under a flood, at the 99th percentile.
const SLOWER: f64 = 5.0;
/// Connections of the stranger.
const CONNECTIONS: usize = 8;
/// Different messages of the stranger.
const MESSAGES: usize = 256;
/// Lines of the body of each: 12 KB in all.
const LINES: usize = 124;
/// Messages in the inbox that is looked at.
const WAITING: usize = 16;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a new token may take until it counts.
const PATIENCE: Duration = Duration::from_secs(30);

/// Prints how long a look takes, quiet and under a flood, with the limits of a new relay and without a limit of requests.
pub fn run(bench: &Bench) -> Result<()> {
    let requests = damaged_requests().ok_or_else(|| Error::other("no damaged messages"))?;
    let size = requests.first().map_or(0, Vec::len);
    println!(
        "\na look at an inbox of {WAITING} messages while a stranger sends damaged messages of {size} bytes"
    );
    for (name, config) in [
        ("default limits", ""),
        (
            "no limit of requests",
            "[limits]\nrequests_per_minute = 0\n",
        ),
    ] {
        println!(
            "\n{name}\n{:<10} {:>9} {:>9} {:>9}",
            "", "p50 µs", "p99 µs", "looks"
        );
        let mut ratios = Vec::new();
        for _ in 0..bench.scale.rounds {
            // The stranger begins with a full bucket in every round.
            let relay = Relay::of(&bench.program).within(bench.place.path());
            let relay = relay.config(config).start();
            fill(&relay)?;
            // Each turn has a token of its own, whose requests are counted apart.
            let quiet = looks(bench, &relay, &token(bench, &relay, "quiet")?, &[])?;
            let flooded = looks(bench, &relay, &token(bench, &relay, "flooded")?, &requests)?;
            quiet.print("quiet");
            flooded.print("flooded");
            println!("{:<10} {}", "", flooded.answers());
            ratios.push(flooded.slow() / quiet.slow());
        }
        let ratio = median(ratios);
        let what = format!("p99 of a look under a flood ÷ quiet, {name}");
        crate::goal(&what, ratio, "at most", SLOWER);
    }
    Ok(())
}

/// The measurements of one turn.
#[derive(Default)]
struct Seen {
    /// Microseconds of each look, the shortest first.
    waits: Vec<u32>,
    /// What the stranger got, by status, and for how long it tried.
    statuses: BTreeMap<u16, u64>,
    seconds: f64,
}

impl Seen {
    fn slow(&self) -> f64 {
        percentile(&self.waits, 99.0)
    }

    fn print(&self, name: &str) {
        let (half, slow) = (percentile(&self.waits, 50.0), self.slow());
        println!("{name:<10} {half:>9.0} {slow:>9.0} {:>9}", self.waits.len());
    }

    fn answers(&self) -> String {
        let all: u64 = self.statuses.values().sum();
        let each: Vec<String> = self
            .statuses
            .iter()
            .map(|(status, count)| format!("{count} × {status}"))
            .collect();
        let rate = all as f64 / self.seconds;
        format!(
            "the stranger was answered {rate:.0} times a second: {}",
            each.join(", ")
        )
    }
}

/// Fills the inbox that is looked at.
fn fill(relay: &Relay) -> Result<()> {
    let mut connection = relay.connect();
    for number in 0..WAITING {
        let (message, thread) = (id::new_ulid(), id::new_ulid());
        let answer = connection.receive(&envelope(&message, &thread, number, &inbox(0)))?;
        if answer.status != 200 {
            return Err(Error::other(answer.text()));
        }
    }
    Ok(())
}

/// Makes a token that reads the inbox: from then on, everybody without one is a stranger.
fn token(bench: &Bench, relay: &Relay, name: &str) -> Result<String> {
    let made = Command::new(&bench.program)
        .args(["token", "create", name, "--role", "agent"])
        .args(["--for", &inbox(0), "--data"])
        .arg(relay.data())
        .output()?;
    if !made.status.success() {
        let text = String::from_utf8_lossy(&made.stderr).into_owned();
        return Err(Error::other(text));
    }
    let token = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let began = Instant::now();
    let runtime = single()?;
    while runtime.block_on(look(relay.address(), &token))? != 200 {
        if began.elapsed() > PATIENCE {
            return Err(Error::other("the new token never counts"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(token)
}

fn single() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// The status of one look.
async fn look(address: SocketAddr, token: &str) -> Result<u16> {
    let mut wire = Wire::open(address).await?;
    wire.send(look_request(token).as_bytes()).await?;
    wire.answer().await
}

fn look_request(token: &str) -> String {
    let address = inbox(0).replace(':', "%3A").replace('/', "%2F");
    format!(
        "GET /crosstalk/inbox?for={address}&limit={WAITING} HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\
         Authorization: Bearer {token}\r\n\r\n"
    )
}

/// Looks again and again for the time of a turn, while a stranger sends these requests, if there are any.
fn looks(bench: &Bench, relay: &Relay, token: &str, flood: &[Vec<u8>]) -> Result<Seen> {
    let (address, is_over) = (relay.address(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let stranger = scope.spawn(|| strangers(address, flood, &is_over));
        let looked = read(bench, address, token);
        is_over.store(true, Ordering::Relaxed);
        let stranger = stranger.join();
        let (statuses, seconds) = stranger.map_err(|_| Error::other("the flood panicked"))??;
        Ok(Seen {
            waits: looked?,
            statuses,
            seconds,
        })
    })
}

fn read(bench: &Bench, address: SocketAddr, token: &str) -> Result<Vec<u32>> {
    let request = look_request(token);
    // Fewer than a token may make in a minute with the default limits.
    let most = 500;
    single()?.block_on(async {
        let mut wire = Wire::open(address).await?;
        let (mut waits, start) = (Vec::new(), Instant::now());
        let (from, until) = (bench.scale.warm_up, bench.scale.warm_up + bench.scale.time);
        let pause = (bench.scale.time / most).max(PAUSE);
        tokio::time::sleep(from).await;
        while start.elapsed() < until {
            let began = Instant::now();
            wire.send(request.as_bytes()).await?;
            let status = wire.answer().await?;
            let wait = began.elapsed().as_micros();
            if status != 200 {
                let text = String::from_utf8_lossy(wire.body()).into_owned();
                return Err(Error::other(format!("{status} {text}")));
            }
            waits.push(u32::try_from(wait).unwrap_or(u32::MAX));
            tokio::time::sleep(pause).await;
        }
        waits.sort_unstable();
        Ok(waits)
    })
}

/// What the stranger got, by status, and in how many seconds.
fn strangers(
    address: SocketAddr,
    flood: &[Vec<u8>],
    is_over: &AtomicBool,
) -> Result<(BTreeMap<u16, u64>, f64)> {
    let (mut statuses, start) = (BTreeMap::new(), Instant::now());
    if flood.is_empty() {
        return Ok((statuses, 0.0));
    }
    std::thread::scope(|scope| {
        let sender = |number: usize| {
            scope.spawn(move || -> Result<BTreeMap<u16, u64>> {
                single()?.block_on(async {
                    let mut wire = Wire::open(address).await?;
                    let mut statuses = BTreeMap::new();
                    for request in flood.iter().cycle().skip(number * MESSAGES / CONNECTIONS) {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        wire.send(request).await?;
                        *statuses.entry(wire.answer().await?).or_default() += 1;
                    }
                    Ok(statuses)
                })
            })
        };
        let senders: Vec<_> = (0..CONNECTIONS).map(sender).collect();
        for sender in senders {
            let sent = sender.join();
            let sent = sent.map_err(|_| Error::other("a sender panicked"))??;
            for (status, count) in sent {
                *statuses.entry(status).or_default() += count;
            }
        }
        Ok((statuses, start.elapsed().as_secs_f64()))
    })
}

/// Requests with messages that the stranger signed with a key of their own and then damaged: the lines of the body are
/// joined in pairs and a word is another one, so that every search for what was signed runs to its end.
fn damaged_requests() -> Option<Vec<Vec<u8>>> {
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[43; 32]).ok()?;
    let messages =
        (0..MESSAGES).map(|number| damaged(&key, number).map(|text| request(ONE, &text)));
    messages.collect()
}

fn damaged(key: &PrivateKey, number: usize) -> Option<String> {
    let whole = envelope(&id::new_ulid(), &id::new_ulid(), number, &inbox(1));
    let (head, _) = whole.split_once("body: |\n")?;
    let line = |n: usize| {
        format!(
            "  Line {n} of {number} says what the others say, in so many words that a terminal of eighty columns breaks it up.\n"
        )
    };
    let body: String = (0..LINES).map(line).collect();
    let text = format!("{head}body: |\n{body}sig: none\n[[END]]\n");
    let pkid = "stranger@example.org";
    let block = [
        ("Key-ID", pkid.to_owned()),
        ("Public-Key", key.public().record()),
    ];
    let signer = Signer {
        key,
        pkid,
        at: Timestamp::from_millis(1_790_000_000_000),
        key_block: &block,
    };
    let signed = signer.sign(&Document::parse(&text, Reading::Strict)).ok()?;
    let (head, rest) = signed.split_once("body: |\n")?;
    let (body, tail) = rest.split_once("sig: ")?;
    let lines: Vec<&str> = body.lines().collect();
    let joined = lines.chunks(2).map(|pair| {
        let words: Vec<&str> = pair.iter().map(|l| l.trim()).collect();
        format!("  {}\n", words.join(" "))
    });
    let body: String = joined.collect();
    let body = body.replacen("columns", "columms", 1);
    Some(format!("{head}body: |\n{body}sig: {tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_envelope::authenticate;

    #[test]
    fn the_messages_of_the_flood_are_signed_and_damaged() {
        let key = PrivateKey::from_seed(Algorithm::Ed25519, &[43; 32]).unwrap();
        let text = damaged(&key, 7).unwrap();
        assert!((12_000..14_500).contains(&text.len()), "{}", text.len());
        let document = Document::parse(&text, Reading::Strict);
        assert!(document.is_accepted(), "{:?}", document.diagnostics());
        let verified = authenticate(&document, &key.public()).map(|a| a.verified().is_some());
        assert_ne!(verified.ok(), Some(true));
    }
}
