//! `cargo xtask bench relay`: the relay under load, beside a server that does nothing.
//!
//! Server and load share the machine, and the machine has other work: so the floor and the relay take turns, and what
//! counts is the median of their ratios. Each turn has a relay of its own, with an empty store.

pub mod batch;
mod cost;
mod cpu;
pub mod disk;
mod flood;
pub mod floor;
pub mod letter;
mod load;
pub mod million;
mod peers;
mod proof;
pub mod report;
mod sustained;
mod watch;

use cpu::CpuWatch;
use crosstalk_store::SqliteStore;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::relay::Relay;
use floor::Floor;
use letter::{Hand, Letters};
use load::{Measured, Plan, percentile};
use report::{Kind, Round, Turn};
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Connections at once, with the goal for what is durable.
const CONNECTIONS: [(usize, f64); 2] = [(64, 0.5), (256, 0.6)];
/// The goal for what is signed.
const SIGNED: f64 = 0.25;
/// How many signed messages a second the bench has ready: more than the goal, on a machine whose floor is 160,000.
const SIGNED_A_SECOND: f64 = 40_000.0;
/// How much longer than the floor's the 99th percentile may be.
const SLOWEST: f64 = 3.0;
/// Idle memory, in MB.
const IDLE: f64 = 15.0;
/// The variable that names another program to compare with.
pub const OTHER: &str = "CROSSTALK_BENCH_OTHER";
/// How long indexing may take before the bench fails.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often each part is repeated, unless the variable says otherwise.
const ROUNDS: usize = 5;
const ROUNDS_VARIABLE: &str = "CROSSTALK_BENCH_ROUNDS";

fn rounds() -> usize {
    let given = std::env::var(ROUNDS_VARIABLE).ok();
    given
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(ROUNDS)
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Scale {
    rounds: usize,
    warm_up: Duration,
    time: Duration,
    sustained: Duration,
    million: usize,
    reads: usize,
}

impl Scale {
    fn of(quick: bool) -> Self {
        if quick {
            Self {
                rounds: 1,
                warm_up: Duration::from_millis(200),
                time: Duration::from_millis(800),
                sustained: Duration::from_secs(4),
                million: 20_000,
                reads: 20,
            }
        } else {
            Self {
                rounds: rounds(),
                warm_up: Duration::from_secs(1),
                time: Duration::from_secs(5),
                sustained: Duration::from_secs(60),
                million: 1_000_000,
                reads: 200,
            }
        }
    }

    fn plan(self, connections: usize) -> Plan {
        Plan {
            connections,
            warm_up: self.warm_up,
            time: self.time,
            batch: 1,
            pace: None,
        }
    }
}

/// The parts that can be named.
const PARTS: [&str; 7] = [
    "load",
    "sustained",
    "cost",
    "batch",
    "proof",
    "flood",
    "million",
];

/// Measures, or says what is missing. A part of it can be named.
pub fn run(quick: bool, part: Option<&str>) -> Result<()> {
    let bench = Bench::new(quick)?;
    let wants = |name: &str| part.is_none_or(|p| p == name);
    if part.is_some_and(|p| !PARTS.contains(&p)) {
        let parts = format!("the parts are {}", PARTS.join(", "));
        return Err(Error::other(parts));
    }
    bench.disk()?;
    if wants("load") {
        bench.load()?;
    }
    if wants("sustained") {
        sustained::run(&bench)?;
    }
    if wants("cost") {
        cost::run(&bench)?;
    }
    if wants("proof") {
        proof::run(&bench)?;
    }
    if wants("batch") {
        batch::run(&bench)?;
    }
    if wants("flood") {
        flood::run(&bench)?;
    }
    if wants("million") {
        bench.idle()?;
        million::run(&bench)?;
    }
    Ok(())
}

/// Measures the relay beside other servers.
pub fn beside_peers(quick: bool) -> Result<()> {
    let bench = Bench::new(quick)?;
    bench.disk()?;
    peers::run(&bench)
}

/// Puts a load on a server that runs already, and prints what came of it.
pub fn aim(address: &str, connections: &str, seconds: &str) -> Result<()> {
    let plan = Plan {
        connections: connections.parse().map_err(Error::other)?,
        warm_up: Duration::ZERO,
        time: Duration::from_secs(seconds.parse().map_err(Error::other)?),
        batch: 1,
        pace: None,
    };
    let address = address.parse().map_err(Error::other)?;
    let turn = Turn::of(&whole(load::run(address, plan, &Letters::single())?)?);
    println!(
        "{:.0} msg/s, p50 {:.0} µs, p99 {:.0} µs",
        turn.rate, turn.half, turn.slow
    );
    Ok(())
}

/// The program that is measured: the one that was built with this bench.
pub fn own_program() -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("crosstalk");
    if program.is_file() {
        return Ok(program);
    }
    let text = "build the program first: `cargo xtask bench` does";
    Err(Error::other(text))
}

/// The program to compare with, if one is named.
pub fn other_program() -> Result<Option<PathBuf>> {
    match std::env::var_os(OTHER).map(PathBuf::from) {
        Some(other) if !other.is_file() => {
            Err(Error::other(format!("{} is no program", other.display())))
        }
        other => Ok(other),
    }
}

/// What every part needs.
struct Bench {
    scale: Scale,
    program: PathBuf,
    place: Folder,
    hand: Hand,
}

impl Bench {
    fn new(quick: bool) -> Result<Self> {
        let program = own_program()?;
        let folder = program.parent().ok_or_else(|| Error::other("no folder"))?;
        if let Some(refusal) = disk::refusal(folder) {
            return Err(Error::other(refusal));
        }
        Ok(Self {
            scale: Scale::of(quick),
            place: Folder::within(folder, "bench"),
            program,
            hand: Hand::new().ok_or_else(|| Error::other("no key"))?,
        })
    }

    fn disk(&self) -> Result<()> {
        let folder = self.place.path();
        let kind = crosstalk_testing::relay::file_system(folder).unwrap_or_default();
        let times = disk::sync_times(folder)?;
        println!(
            "data on {kind}: a page is on disk in {:.0} µs (p50), {:.0} µs (p99)",
            percentile(&times, 50.0),
            percentile(&times, 99.0)
        );
        Ok(())
    }

    /// A relay with an empty store.
    fn relay(&self) -> Relay {
        self.relay_of(&self.program)
    }

    /// Another program with an empty store.
    fn relay_of(&self, program: &Path) -> Relay {
        // All of the load comes from one address.
        let config = "[limits]\nconnections_per_peer = 1024\n";
        let relay = Relay::of(program).within(self.place.path());
        relay.config(config).start()
    }

    /// The bytes of the answer to one envelope.
    fn answer_size(&self) -> Result<usize> {
        let answer = self.relay().connect().receive(&letter::envelope(
            "01K00000000000000000000000",
            "01K00000000000000000000001",
            1,
            &letter::inbox(1),
        ))?;
        if answer.status != 200 {
            return Err(Error::other(answer.text()));
        }
        Ok(answer.body.len())
    }

    /// A turn of the floor.
    fn floor(&self, plan: Plan, size: usize) -> Result<Turn> {
        let floor = Floor::start(size)?;
        let watch = CpuWatch::start(floor.id());
        let measured = whole(load::run(floor.address, plan, &Letters::single())?)?;
        Ok(Turn {
            cost: watch.cost(measured.in_all),
            ..Turn::of(&measured)
        })
    }

    fn load(&self) -> Result<()> {
        let size = self.answer_size()?;
        println!("answers have {size} bytes");
        let mut rounds: [Vec<Round>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..self.scale.rounds {
            for ((connections, _), rounds) in CONNECTIONS.into_iter().zip(&mut rounds) {
                let plan = self.scale.plan(connections);
                let mut round = Vec::new();
                for kind in Kind::ALL {
                    round.push(self.turn(kind, plan, size)?);
                }
                rounds.extend(Round::try_from(round));
            }
        }
        for ((connections, _), rounds) in CONNECTIONS.into_iter().zip(&rounds) {
            report::table(connections, rounds);
        }
        for ((connections, durable), rounds) in CONNECTIONS.into_iter().zip(&rounds) {
            report::goals(connections, rounds, durable, SIGNED, SLOWEST);
        }
        Ok(())
    }

    fn turn(&self, kind: Kind, plan: Plan, size: usize) -> Result<Turn> {
        if kind == Kind::Floor {
            return self.floor(plan, size);
        }
        let relay = self.relay();
        let mut letters = Letters::single();
        if kind == Kind::Signed {
            let mut connection = relay.connect();
            for text in self.hand.introductions() {
                let answer = connection.receive(&text)?;
                if answer.status != 200 {
                    return Err(Error::other(answer.text()));
                }
            }
            // More than can be accepted in the time.
            let seconds = (plan.warm_up + plan.time).as_secs_f64();
            letters = self.hand.ready((seconds * SIGNED_A_SECOND) as usize);
        }
        let watch = CpuWatch::start(relay.id());
        let measured = match kind {
            Kind::Delivered => watch::run(relay.address(), plan)?,
            Kind::Floor | Kind::Durable | Kind::Signed => {
                load::run(relay.address(), plan, &letters)?
            }
        };
        let measured = whole(measured)?;
        let cost = watch.cost(measured.in_all);
        let (left, filing) = indexed(&relay)?;
        let seconds = (plan.warm_up + plan.time).as_secs_f64();
        Ok(Turn {
            left: left as f64,
            filing,
            sustained: measured.in_all as f64 / (seconds + filing),
            cost,
            ..Turn::of(&measured)
        })
    }

    fn idle(&self) -> Result<()> {
        let relay = self.relay();
        let answer = relay.connect().get("/healthz")?;
        if answer.status != 200 {
            return Err(Error::other(answer.text()));
        }
        let memory = megabytes(&relay);
        println!("\nidle: {memory:.1} MB");
        crate::goal("idle memory in MB", memory, "at most", IDLE);
        Ok(())
    }
}

/// A measurement counts if everything was taken.
fn whole(measured: Measured) -> Result<Measured> {
    match &measured.refusal {
        None => Ok(measured),
        Some(first) => Err(Error::other(format!(
            "{} of {} requests were refused, the first with {first}",
            measured.refused,
            measured.in_all + measured.refused
        ))),
    }
}

/// Waits until everything that was accepted is indexed: how much was left, and how many seconds it took.
fn indexed(relay: &Relay) -> Result<(u64, f64)> {
    let began = Instant::now();
    let store = SqliteStore::open_existing(relay.store())
        .map_err(Error::other)?
        .ok_or_else(|| Error::other("the relay has no store"))?;
    let left = || store.index_progress().map(|f| f.left).map_err(Error::other);
    let first = left()?;
    while left()? > 0 {
        if began.elapsed() > PATIENCE {
            return Err(Error::other(format!("{} are never indexed", left()?)));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((first, began.elapsed().as_secs_f64()))
}

/// The memory of a relay in MB.
fn megabytes(relay: &Relay) -> f64 {
    relay.memory().map_or(f64::NAN, |bytes| bytes as f64 / 1e6)
}
