//! `cargo xtask bench peers`: the relay beside servers that people know, each with every message on disk before it says so.
//!
//! All get the same text over 64 connections of the loopback address, one message on the way on each, in turns within one
//! run. They do different things with a message: the table says what a sender waits for, not which server is better.

mod client;
mod server;

use super::letter::Letters;
use super::load::{self, Plan};
use super::report::{Turn, median};
use super::{Bench, indexed, whole};
use crosstalk_testing::relay::file_system;
use server::{Peer, Server};
use std::fs;
use std::io::Result;
use std::process::Command;

/// Connections of each.
pub const CONNECTIONS: usize = 64;

/// PostgreSQL, if the machine has it: a peer of other parts of the bench, too.
pub struct Postgres(Server);

impl Postgres {
    /// Starts it.
    pub fn start(bench: &Bench) -> Result<Option<Self>> {
        Ok(Peer::Postgres.start(bench.place.path())?.map(Self))
    }

    /// Messages a second, each in a transaction of its own.
    pub fn rate(&self, plan: Plan) -> Result<f64> {
        Ok(client::run(Peer::Postgres, &self.0, plan)?.rate())
    }
}

/// A row of the table: a turn of each round.
struct Row {
    name: String,
    promise: &'static str,
    turns: Vec<Turn>,
}

impl Row {
    fn new(name: impl Into<String>, promise: &'static str) -> Self {
        Self {
            name: name.into(),
            promise,
            turns: Vec::new(),
        }
    }

    /// A line of the table. A server that is not there has no figures.
    fn line(&self, floor: &[Turn]) -> String {
        let (name, promise) = (&self.name, self.promise);
        if self.turns.is_empty() {
            return format!("| {name} | not installed | | | | {promise} |");
        }
        let of = |number: fn(&Turn) -> f64| median(self.turns.iter().map(number));
        let pairs = self.turns.iter().zip(floor);
        let ratio = median(pairs.map(|(turn, floor)| turn.rate / floor.rate));
        format!(
            "| {name} | {:.0} | {ratio:.2} | {:.0} | {:.0} | {promise} |",
            of(|t| t.rate),
            of(|t| t.half),
            of(|t| t.slow)
        )
    }
}

/// Prints the table, as Markdown for docs/performance.md.
pub fn run(bench: &Bench) -> Result<()> {
    let plan = bench.scale.plan(CONNECTIONS);
    let size = bench.answer_size()?;
    let mut floor = Row::new("bare axum (floor)", "nothing is kept");
    let mut accepted = Row::new("Crosstalk, accepted", "the log is synced before the ACK");
    let mut both = Row::new("Crosstalk, accepted and indexed", "and every view shows it");
    let mut peers = Peer::ALL.map(|peer| {
        let version = peer.version().map_or(String::new(), |v| format!(" ({v})"));
        Row::new(format!("{}{version}", peer.name()), peer.promise())
    });
    for _ in 0..bench.scale.rounds {
        floor.turns.push(bench.floor(plan, size)?);
        let relay = bench.relay();
        let measured = whole(load::run(relay.address(), plan, &Letters::single())?)?;
        let (_, more) = indexed(&relay)?;
        let turn = Turn::of(&measured);
        let seconds = (plan.warm_up + plan.time).as_secs_f64() + more;
        accepted.turns.push(turn);
        both.turns.push(Turn {
            rate: measured.in_all as f64 / seconds,
            ..turn
        });
        drop(relay);
        for (peer, row) in Peer::ALL.into_iter().zip(&mut peers) {
            if let Some(server) = peer.start(bench.place.path())? {
                row.turns.push(Turn::of(&client::run(peer, &server, plan)?));
            }
        }
    }
    println!("\n{}\n", machine(bench));
    println!("| server | msg/s | ÷ floor | p50 µs | p99 µs | durable because |");
    println!("|---|---:|---:|---:|---:|---|");
    for row in [&floor, &accepted, &both].into_iter().chain(&peers) {
        println!("{}", row.line(&floor.turns));
    }
    Ok(())
}

/// When and where this was measured.
fn machine(bench: &Bench) -> String {
    let first = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|l| l.starts_with(name));
        line.and_then(|l| l.split_once(':'))
            .map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    let memory = first("/proc/meminfo", "MemTotal");
    let memory: f64 = memory.trim_end_matches(" kB").parse().unwrap_or(f64::NAN);
    let date = Command::new("date").arg("+%F").output();
    let date = date.map_or(String::new(), |d| {
        String::from_utf8_lossy(&d.stdout).into_owned()
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "Measured on {} with {} rounds of {:.0} s on {cores} cores ({}), {:.0} GB of memory, {}.",
        date.trim(),
        bench.scale.rounds,
        bench.scale.time.as_secs_f64(),
        first("/proc/cpuinfo", "model name"),
        memory / 1e6,
        file_system(bench.place.path()).unwrap_or_default()
    )
}
