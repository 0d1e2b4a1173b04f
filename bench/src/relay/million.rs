//! A million messages in the store: how fast more are accepted, how long each read takes, memory and disk.

use super::letter::{Letters, envelope, inbox};
use super::load::{self, Plan};
use super::report::median;
use super::{Bench, indexed, megabytes, whole};
use crate::goal;
use crosstalk_envelope::id;
use crosstalk_testing::http::Connection;
use crosstalk_testing::relay::Relay;
use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::time::{Duration, Instant};

/// Envelopes of a request that fills the store.
const BATCH: usize = 500;
/// Inboxes of the stored messages: with few messages, each still has more than a page.
const INBOXES: usize = 16;
/// Messages of the store that reads are compared with.
const FEW: usize = 1000;
/// Memory with a million messages, in MB.
const FULL: f64 = 60.0;
/// How fast a full store accepts messages beside an empty one.
const SHARE: f64 = 0.95;
/// How many times as long as with few messages a read may take.
const SLOWER: f64 = 1.5;
/// Bytes on disk for each byte of an envelope.
const DISK: f64 = 2.5;
/// With so many connections.
const CONNECTIONS: usize = 64;

/// Fills a store, then measures it beside others that are empty or small.
pub(super) fn run(bench: &Bench) -> Result<()> {
    let mut full = bench.relay();
    let began = Instant::now();
    let stored = fill(&full, bench.scale.million)?;
    let taken = began.elapsed().as_secs_f64();
    let (left, filing) = indexed(&full)?;
    println!(
        "\n{stored} messages accepted in {taken:.1} s; then {left} were not indexed yet, which took {filing:.1} s more"
    );
    let used = megabytes(&full);
    let marked = Marked::send(&full)?;
    full.stop();
    let each = bytes_of(&full.data())? as f64 / stored as f64;
    full.start();
    let anew = megabytes(&full);
    println!(
        "memory after that: {used:.1} MB; started anew: {anew:.1} MB; {each:.0} bytes on disk a message"
    );
    goal("memory in MB", used, "at most", FULL);
    let size = envelope(&marked.id, &marked.thread, 0, &inbox(0)).len() as f64;
    goal(
        "bytes on disk ÷ bytes of the envelope",
        each / size,
        "at most",
        DISK,
    );
    reads(bench, &full, &marked)?;
    accepts(bench, &full)
}

/// Stores so many messages, or a few more: what a request carries is stored as a whole.
fn fill(relay: &Relay, count: usize) -> Result<u64> {
    let batch = BATCH.min(count);
    let letters = Letters::Fresh {
        batch,
        receivers: INBOXES,
    };
    let mut stored = 0;
    while stored < count as u64 {
        let plan = Plan {
            connections: if count > FEW { 2 } else { 1 },
            warm_up: Duration::ZERO,
            time: Duration::from_millis(if count > FEW { 500 } else { 1 }),
            batch,
            pace: None,
        };
        stored += whole(load::run(relay.address(), plan, &letters)?)?.in_all;
    }
    Ok(stored)
}

/// The bytes of all files in a folder.
pub fn bytes_of(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += if about.is_dir() {
            bytes_of(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(sum)
}

/// A message that reads name, with a word that no other has.
struct Marked {
    id: String,
    thread: String,
    word: String,
}

impl Marked {
    fn send(relay: &Relay) -> Result<Self> {
        let (id, thread) = (id::new_ulid(), id::new_ulid());
        let word = format!("rare{id}");
        let text = envelope(&id, &thread, 0, &inbox(0)).replace("token-refresh", &word);
        let answer = relay.connect().receive(&text)?;
        if answer.status != 200 {
            return Err(Error::other(answer.text()));
        }
        indexed(relay)?;
        Ok(Self { id, thread, word })
    }

    /// Every read, by its name and its path.
    fn reads(&self) -> Vec<(&'static str, String)> {
        let Self { id, thread, word } = self;
        let address = inbox(1).replace(':', "%3A").replace('/', "%2F");
        vec![
            ("inbox", format!("/crosstalk/inbox?for={address}&limit=20")),
            ("thread", format!("/crosstalk/threads/{thread}")),
            ("threads", "/crosstalk/threads?limit=20".into()),
            ("message", format!("/crosstalk/messages/{id}")),
            ("status", format!("/crosstalk/messages/{id}/status")),
            (
                "search, rare word",
                format!("/crosstalk/search?q={word}&limit=20"),
            ),
            (
                "search, every message",
                "/crosstalk/search?q=cookie&limit=20".into(),
            ),
            ("audit entries", "/crosstalk/audit/entries?limit=20".into()),
            (
                "audit entries, newest",
                "/crosstalk/audit/entries?limit=20&newest=true".into(),
            ),
            ("metrics", "/metrics".into()),
        ]
    }
}

/// Prints how long each read takes, beside the same one of a small store.
fn reads(bench: &Bench, full: &Relay, marked: &Marked) -> Result<()> {
    let small = bench.relay();
    let few = fill(&small, FEW)?;
    let other = Marked::send(&small)?;
    println!(
        "\n{:<24} {:>12} {:>12} {:>9}",
        "read, p50 in µs",
        format!("of {few}"),
        "of all",
        "ratio"
    );
    let (mut one, mut two) = (small.connect(), full.connect());
    let mut ratios = Vec::new();
    for ((name, short), (_, long)) in other.reads().into_iter().zip(marked.reads()) {
        let (mut shorts, mut longs) = (Vec::new(), Vec::new());
        for _ in 0..bench.scale.reads {
            shorts.push(time(&mut one, &short)?);
            longs.push(time(&mut two, &long)?);
        }
        let (short, long) = (median(shorts), median(longs));
        println!(
            "{name:<24} {short:>12.0} {long:>12.0} {:>9.2}",
            long / short
        );
        ratios.push((name, long / short));
    }
    println!();
    for (name, ratio) in ratios {
        let what = format!("{name}: full store ÷ small store");
        goal(&what, ratio, "at most", SLOWER);
    }
    Ok(())
}

/// Microseconds of one read.
fn time(connection: &mut Connection, path: &str) -> Result<f64> {
    let began = Instant::now();
    let answer = connection.get(path)?;
    let spent = began.elapsed().as_secs_f64() * 1e6;
    match answer.status {
        200 => Ok(spent),
        status => Err(Error::other(format!("{path}: {status} {}", answer.text()))),
    }
}

/// Prints how fast a full store accepts messages, beside an empty one.
fn accepts(bench: &Bench, full: &Relay) -> Result<()> {
    let plan = bench.scale.plan(CONNECTIONS);
    let (mut ratios, mut empties, mut fulls) = (vec![], vec![], vec![]);
    for _ in 0..bench.scale.rounds {
        let empty = bench.relay();
        let one = whole(load::run(empty.address(), plan, &Letters::single())?)?.rate();
        drop(empty);
        let other = whole(load::run(full.address(), plan, &Letters::single())?)?.rate();
        indexed(full)?;
        ratios.push(other / one);
        empties.push(one);
        fulls.push(other);
    }
    println!(
        "\n{CONNECTIONS} connections: empty {:.0} msg/s, full {:.0} msg/s; memory now {:.1} MB\n",
        median(empties),
        median(fulls),
        megabytes(full)
    );
    goal(
        "accepted by a full store ÷ by an empty one",
        median(ratios),
        "at least",
        SHARE,
    );
    Ok(())
}
