//! What consent, the log and receipts cost on the way in: this program beside another one, such as an older build.

use super::letter::Letters;
use super::load;
use super::report::median;
use super::{Bench, OTHER, Relay, other_program, whole};
use crate::goal;
use std::io::Result;

/// The goal: what is left of the rate.
const LEFT: f64 = 0.85;
const CONNECTIONS: usize = 64;

/// Prints the ratio of the rates. Both take turns, each with an empty store.
pub fn run(bench: &Bench) -> Result<()> {
    let Some(other) = other_program()? else {
        println!("\ncost: set {OTHER} to another `crosstalk` to compare with");
        return Ok(());
    };
    let plan = bench.scale.plan(CONNECTIONS);
    let rate = |relay: Relay| -> Result<f64> {
        let measured = whole(load::run(relay.address(), plan, &Letters::single())?)?;
        Ok(measured.rate())
    };
    let (mut own, mut before) = (Vec::new(), Vec::new());
    for _ in 0..bench.scale.rounds.max(3) {
        own.push(rate(bench.relay())?);
        before.push(rate(bench.relay_of(&other))?);
    }
    println!("\ncost on the way in, {CONNECTIONS} connections, unsigned\n");
    for (name, rates) in [("the other program", &before), ("this one", &own)] {
        println!("{name:<24} {:>9.0} msg/s", median(rates.iter().copied()));
    }
    let ratio = median(own.iter().zip(&before).map(|(own, before)| own / before));
    goal("this ÷ the other", ratio, "at least", LEFT);
    Ok(())
}
