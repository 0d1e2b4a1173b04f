//! Whether the relay keeps up with the messages that it accepts: a minute at full speed, then a steady pace.

use super::floor::Floor;
use super::letter::{Letters, envelope, inbox};
use super::load::{self, Plan, percentile};
use super::peers::{CONNECTIONS, Postgres};
use super::report::median;
use super::{Bench, PATIENCE, whole};
use crate::goal;
use crosstalk_envelope::id;
use crosstalk_testing::http::Connection;
use crosstalk_testing::relay::Relay;
use serde_json::Value;
use std::io::{Error, Result};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Inboxes of the load, as [`Letters::single`] has them.
const INBOXES: usize = 16;
/// Seconds after the load within which every view shows every message.
const SHOWN: f64 = 1.0;
/// The same for search.
const FOUND: f64 = 2.0;
/// What the relay says of itself.
const INDEXED: &str = "indexed";
/// Messages a second at the steady pace, and how many of them may wait to be indexed.
const PACE: u32 = 3000;
const WAITING: f64 = 500.0;
/// How soon after its ACK an inbox shows a message, in milliseconds, as the 99th percentile.
const SEEN: f64 = 20.0;
/// What is accepted and indexed beside the floor, and beside single inserts of PostgreSQL.
const OF_FLOOR: f64 = 0.25;
const OF_POSTGRES: f64 = 1.5;
/// Between two looks at the backlog, and between two messages whose way is followed.
const SAMPLE: Duration = Duration::from_millis(100);
const FOLLOW: Duration = Duration::from_millis(10);
/// Points of the printed line of backlogs.
const POINTS: usize = 12;
/// Messages of a page.
const PAGE: usize = 500;

/// Prints both tables.
pub fn run(bench: &Bench) -> Result<()> {
    full_speed(bench)?;
    paced(bench)
}

/// Senders at full speed, and how soon after their end everything is indexed.
fn full_speed(bench: &Bench) -> Result<()> {
    let short = bench.scale.plan(CONNECTIONS);
    let plan = Plan {
        time: bench.scale.sustained,
        ..short
    };
    let size = bench.answer_size()?;
    let (mut floors, mut inserts) = (Vec::new(), Vec::new());
    // Before and after, since the machine may have become slower meanwhile.
    let mut peers = || -> Result<()> {
        floors.push(bench.floor(short, size)?.rate);
        if let Some(postgres) = Postgres::start(bench)? {
            inserts.push(postgres.rate(short)?);
        }
        Ok(())
    };
    peers()?;
    let relay = bench.relay();
    let measured = whole(load::run(relay.address(), plan, &Letters::single())?)?;
    let end = Instant::now();
    let views = look_until_shown(&relay, end)?;
    peers()?;
    let indexed = views.iter().find(|v| v.name == INDEXED);
    let indexed = indexed.and_then(|v| v.shown).unwrap_or(f64::NAN);
    let seconds = (plan.warm_up + plan.time).as_secs_f64() + indexed;
    let sustained = measured.in_all as f64 / seconds;
    let (floor, insert) = (median(floors), median(inserts));
    println!(
        "\n{CONNECTIONS} connections at full speed for {:.0} s\n\n{:<26} {:>9} {:>9} {:>12}",
        plan.time.as_secs_f64(),
        "",
        "msg/s",
        "÷ floor",
        "÷ PostgreSQL"
    );
    for (name, rate) in [
        ("axum echo (floor)", floor),
        ("PostgreSQL, INSERT", insert),
        ("accepted", measured.rate()),
        ("accepted and indexed", sustained),
    ] {
        let (over_floor, over_insert) = (rate / floor, rate / insert);
        println!("{name:<26} {rate:>9.0} {over_floor:>9.2} {over_insert:>12.2}");
    }
    if insert.is_nan() {
        println!("PostgreSQL is not installed: `cargo xtask bench peers` installs it");
    }
    println!();
    // The probe was accepted after the load.
    count(&relay, measured.in_all + 1)?;
    for view in views {
        let what = format!("{} in s after the end of the load", view.name);
        goal(&what, view.shown.unwrap_or(f64::NAN), "at most", view.goal);
    }
    goal(
        "accepted and indexed ÷ floor",
        sustained / floor,
        "at least",
        OF_FLOOR,
    );
    if !insert.is_nan() {
        let (what, ratio) = ("accepted and indexed ÷ PostgreSQL", sustained / insert);
        goal(what, ratio, "at least", OF_POSTGRES);
    }
    goal(
        "accepted and indexed ÷ accepted",
        sustained / measured.rate(),
        "at least",
        0.95,
    );
    Ok(())
}

/// A view of the messages: its name, the seconds within which it should show everything, and what to look for where.
struct View {
    name: &'static str,
    goal: f64,
    path: String,
    sign: String,
    /// Seconds from the end of the load until the sign was there.
    shown: Option<f64>,
}

/// Sends one message after the load and looks until every view has it: messages are indexed in their order.
fn look_until_shown(relay: &Relay, end: Instant) -> Result<Vec<View>> {
    let mut connection = relay.connect();
    let probe = Probe::new();
    probe.send(&mut connection)?;
    let view = |name, goal, path: &str, sign: &str| View {
        name,
        goal,
        path: path.to_owned(),
        sign: sign.to_owned(),
        shown: None,
    };
    let status = format!("/crosstalk/messages/{}/status", probe.id);
    let search = format!("/crosstalk/search?q={}&limit=1", probe.word);
    let mut views = vec![
        view(INDEXED, SHOWN, "/metrics", "\ncrosstalk_index_backlog 0\n"),
        view("inbox", SHOWN, &inbox_path(&probe.inbox, None), &probe.id),
        view(
            "threads",
            SHOWN,
            "/crosstalk/threads?limit=20",
            &probe.thread,
        ),
        view("status", SHOWN, &status, "\"state\""),
        view("search", FOUND, &search, &probe.id),
    ];
    while views.iter().any(|v| v.shown.is_none()) {
        for view in views.iter_mut().filter(|v| v.shown.is_none()) {
            let answer = connection.get(&view.path)?;
            if answer.status == 200 && answer.text().contains(&view.sign) {
                view.shown = Some(end.elapsed().as_secs_f64());
            }
        }
        if end.elapsed() > PATIENCE {
            return Err(Error::other("a view never shows the last message"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(views)
}

/// A message that can be told from those of the load.
struct Probe {
    id: String,
    thread: String,
    word: String,
    inbox: String,
}

impl Probe {
    fn new() -> Self {
        let (id, thread) = (id::new_ulid(), id::new_ulid());
        Self {
            word: format!("probe{id}"),
            inbox: inbox(INBOXES),
            id,
            thread,
        }
    }

    fn send(&self, connection: &mut Connection) -> Result<()> {
        let text = envelope(&self.id, &self.thread, 0, &self.inbox);
        let text = text.replace("token-refresh", &self.word);
        let answer = connection.receive(&text)?;
        match answer.status {
            200 => Ok(()),
            _ => Err(Error::other(answer.text())),
        }
    }
}

/// Every accepted message is in one inbox and in one thread, and counted as indexed. That is no matter of time.
fn count(relay: &Relay, accepted: u64) -> Result<()> {
    let mut connection = relay.connect();
    let indexed = metric(&mut connection, "crosstalk_messages_indexed_total")?;
    let mut listed = 0;
    for number in 0..=INBOXES {
        let mut after = None;
        loop {
            let path = inbox_path(&inbox(number), after.as_deref());
            let page = json(&mut connection, &path)?;
            let messages = page.get("messages").and_then(Value::as_array);
            let messages = messages.map_or(0, Vec::len);
            listed += messages as u64;
            after = page
                .get("cursor")
                .and_then(Value::as_str)
                .map(str::to_owned);
            if messages == 0 {
                break;
            }
        }
    }
    let mut threaded = 0;
    for skip in (0..).step_by(PAGE) {
        let path = format!("/crosstalk/threads?limit={PAGE}&skip={skip}");
        let page = json(&mut connection, &path)?;
        let threads = page.get("threads").and_then(Value::as_array);
        let threads = threads.map_or(&[][..], Vec::as_slice);
        let each = threads.iter().filter_map(|t| t.get("messages")?.as_u64());
        threaded += each.sum::<u64>();
        if threads.is_empty() {
            break;
        }
    }
    println!("accepted {accepted}, indexed {indexed}, in inboxes {listed}, in threads {threaded}");
    if [indexed, listed, threaded].iter().any(|n| *n != accepted) {
        return Err(Error::other(
            "messages that were accepted are missing, or doubled",
        ));
    }
    Ok(())
}

/// Senders at a steady pace: the backlog over time, and how long after its ACK an inbox shows a message.
fn paced(bench: &Bench) -> Result<()> {
    let plan = Plan {
        time: bench.scale.sustained / 2,
        pace: Some(Duration::from_secs(CONNECTIONS as u64) / PACE),
        ..bench.scale.plan(CONNECTIONS)
    };
    let relay = bench.relay();
    let (address, is_over) = (relay.address(), AtomicBool::new(false));
    let (measured, backlog, waits) = std::thread::scope(|scope| {
        let backlog = scope.spawn(|| watch_backlog(address, &is_over));
        let follow = scope.spawn(|| follow(address, &is_over));
        let measured = load::run(address, plan, &Letters::single());
        is_over.store(true, Ordering::Relaxed);
        let gone = |_| Error::other("a thread panicked");
        let backlog = backlog.join().map_err(gone)??;
        Ok::<_, Error>((whole(measured?)?, backlog, follow.join().map_err(gone)??))
    })?;
    println!(
        "\n{CONNECTIONS} connections at {PACE} messages a second for {:.0} s: {:.0} msg/s accepted",
        plan.time.as_secs_f64(),
        measured.rate()
    );
    let step = backlog.len().div_ceil(POINTS).max(1);
    let points = backlog.iter().step_by(step).map(u64::to_string);
    let seconds = SAMPLE.as_secs_f64() * step as f64;
    println!(
        "backlog every {seconds:.1} s: {}",
        points.collect::<Vec<_>>().join(", ")
    );
    let (half, slow) = (percentile(&waits, 50.0), percentile(&waits, 99.0));
    println!(
        "an inbox shows a message after its ACK in {half:.0} µs (p50), {slow:.0} µs (p99), of {}\n",
        waits.len()
    );
    let most = backlog.iter().max().copied().unwrap_or(0) as f64;
    goal("largest backlog at this pace", most, "at most", WAITING);
    goal(
        "an inbox shows a message, p99 in ms",
        slow / 1000.0,
        "at most",
        SEEN,
    );
    let reached = measured.rate() / f64::from(PACE);
    goal("accepted ÷ pace", reached, "at least", 0.99);
    // The pace of the answers of one server that does nothing, for the time that a look takes at least.
    let floor = Floor::start(bench.answer_size()?)?;
    let looks = load::run(floor.address, plan, &Letters::single())?;
    println!(
        "at this pace the floor answers in {:.0} µs (p50), {:.0} µs (p99); the relay acknowledges in {:.0} µs, {:.0} µs",
        looks.percentile(50.0),
        looks.percentile(99.0),
        measured.percentile(50.0),
        measured.percentile(99.0)
    );
    Ok(())
}

/// The backlog, again and again.
fn watch_backlog(address: SocketAddr, is_over: &AtomicBool) -> Result<Vec<u64>> {
    let mut connection = Connection::open(address)?;
    let mut backlog = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        backlog.push(metric(&mut connection, "crosstalk_index_backlog")?);
        std::thread::sleep(SAMPLE);
    }
    Ok(backlog)
}

/// Sends messages and looks for each right after its ACK: microseconds until it was there, the shortest first.
fn follow(address: SocketAddr, is_over: &AtomicBool) -> Result<Vec<u32>> {
    let mut connection = Connection::open(address)?;
    let (mut waits, mut after) = (Vec::new(), None::<String>);
    while !is_over.load(Ordering::Relaxed) {
        let probe = Probe::new();
        probe.send(&mut connection)?;
        let acknowledged = Instant::now();
        loop {
            let page = json(&mut connection, &inbox_path(&probe.inbox, after.as_deref()))?;
            let messages = page.get("messages").and_then(Value::as_array);
            let mut ids = messages.into_iter().flatten().filter_map(|m| m.get("id"));
            let is_there = ids.any(|id| *id == probe.id.as_str());
            if let Some(cursor) = page.get("cursor").and_then(Value::as_str) {
                after = Some(cursor.to_owned());
            }
            if is_there {
                break;
            }
            if acknowledged.elapsed() > PATIENCE {
                return Err(Error::other("an inbox never shows an acknowledged message"));
            }
        }
        let wait = acknowledged.elapsed().as_micros();
        waits.push(u32::try_from(wait).unwrap_or(u32::MAX));
        std::thread::sleep(FOLLOW);
    }
    waits.sort_unstable();
    Ok(waits)
}

fn inbox_path(address: &str, after: Option<&str>) -> String {
    let address = address.replace(':', "%3A").replace('/', "%2F");
    let after = after.map_or(String::new(), |cursor| format!("&after={cursor}"));
    format!("/crosstalk/inbox?for={address}&limit={PAGE}{after}")
}

fn get(connection: &mut Connection, path: &str) -> Result<String> {
    let answer = connection.request("GET", path, "Accept: application/json\r\n", b"")?;
    match answer.status {
        200 => Ok(answer.text()),
        status => Err(Error::other(format!("{path}: {status} {}", answer.text()))),
    }
}

fn json(connection: &mut Connection, path: &str) -> Result<Value> {
    serde_json::from_str(&get(connection, path)?).map_err(Error::other)
}

/// A number of `/metrics`.
fn metric(connection: &mut Connection, name: &str) -> Result<u64> {
    let answer = connection.get("/metrics")?.text();
    let line = answer
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
    let number = line.and_then(|l| l.trim().parse().ok());
    number.ok_or_else(|| Error::other(format!("/metrics has no {name}")))
}
