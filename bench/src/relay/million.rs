//! A million messages in the store: memory, and how fast more are taken.

use super::letter::Letters;
use super::load::{self, Plan};
use super::report::median;
use super::{Bench, indexed, megabytes, whole};
use crate::goal;
use std::io::Result;
use std::time::{Duration, Instant};

/// Envelopes of a request that fills the store.
const BATCH: usize = 500;
/// Memory with a million messages, in MB.
const FULL: f64 = 100.0;
/// How fast a full store takes messages beside an empty one.
const SHARE: f64 = 0.8;
/// With so many connections.
const CONNECTIONS: usize = 64;

/// Fills a store, then measures it beside an empty one.
pub fn run(bench: &Bench) -> Result<()> {
    let mut full = bench.relay();
    let letters = Letters::Fresh {
        batch: BATCH,
        receivers: 1000,
    };
    let began = Instant::now();
    let mut stored = 0;
    while stored < bench.scale.million as u64 {
        let plan = Plan {
            connections: 2,
            warm_up: Duration::ZERO,
            time: Duration::from_millis(500),
            batch: BATCH,
            pace: None,
        };
        stored += whole(load::run(full.address(), plan, &letters)?)?.in_all;
    }
    let taken = began.elapsed().as_secs_f64();
    let (left, filing) = indexed(&full)?;
    println!(
        "\n{stored} messages taken in {taken:.1} s; then {left} were not filed yet, which took {filing:.1} s more"
    );
    let used = megabytes(&full);
    full.stop();
    full.start();
    println!(
        "memory after that: {used:.1} MB; started anew: {:.1} MB",
        megabytes(&full)
    );
    goal("memory in MB", used, "at most", FULL);
    let plan = bench.scale.plan(CONNECTIONS);
    let (mut ratios, mut empties, mut fulls) = (vec![], vec![], vec![]);
    for _ in 0..bench.scale.rounds {
        let empty = bench.relay();
        let one = whole(load::run(empty.address(), plan, &Letters::single())?)?.rate();
        drop(empty);
        let other = whole(load::run(full.address(), plan, &Letters::single())?)?.rate();
        indexed(&full)?;
        ratios.push(other / one);
        empties.push(one);
        fulls.push(other);
    }
    println!(
        "\n{CONNECTIONS} connections: empty {:.0} msg/s, full {:.0} msg/s; memory now {:.1} MB\n",
        median(empties),
        median(fulls),
        megabytes(&full)
    );
    goal(
        "full store ÷ empty store",
        median(ratios),
        "at least",
        SHARE,
    );
    Ok(())
}
