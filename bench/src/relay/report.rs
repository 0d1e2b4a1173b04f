//! The report: medians over the rounds, and ratios against the floor of the same round.

use super::cpu::CpuCost;
use super::load::Measured;
use crate::goal;

/// The measurements, in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The server that does nothing.
    Floor,
    /// On disk, not signed.
    Durable,
    /// On disk, signature verified.
    Signed,
    /// With a reader.
    Delivered,
}

impl Kind {
    /// All of them, in the order of their turns.
    pub const ALL: [Self; 4] = [Self::Floor, Self::Durable, Self::Signed, Self::Delivered];

    fn name(self) -> &'static str {
        match self {
            Self::Floor => "axum echo (floor)",
            Self::Durable => "durable, unsigned",
            Self::Signed => "durable, signed",
            Self::Delivered => "delivered to a reader",
        }
    }
}

/// A turn, in numbers.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Messages a second.
    pub rate: f64,
    /// The median of the waits, in microseconds.
    pub half: f64,
    /// The 99th percentile.
    pub slow: f64,
    /// Messages that were not filed yet at the end.
    pub left: f64,
    /// Seconds until they were.
    pub filing: f64,
    /// Messages a second, with the time that filing took after the load.
    pub sustained: f64,
    /// The processor time of a message.
    pub cost: CpuCost,
}

impl Turn {
    /// A turn of a server that has nothing to do afterwards.
    pub fn of(measured: &Measured) -> Self {
        Self {
            rate: measured.rate(),
            half: measured.percentile(50.0),
            slow: measured.percentile(99.0),
            left: 0.0,
            filing: 0.0,
            sustained: measured.rate(),
            cost: CpuCost::default(),
        }
    }
}

/// One round: a turn of each.
pub type Round = [Turn; 4];

/// The middle of some numbers.
pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    if sorted.len() % 2 == 1 {
        at(half)
    } else {
        f64::midpoint(at(half.wrapping_sub(1)), at(half))
    }
}

/// The table of one number of connections.
pub fn table(connections: usize, rounds: &[Round]) {
    println!(
        "\n{connections} connections; the last columns are processor time of a message in µs\n"
    );
    println!(
        "{:<24} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8} {:>8} {:>8}",
        "",
        "msg/s",
        "× floor",
        "p50 µs",
        "p99 µs",
        "left",
        "filed in",
        "sustained",
        "serving",
        "server",
        "load"
    );
    for (place, kind) in Kind::ALL.into_iter().enumerate() {
        let of = |number: fn(&Turn) -> f64| {
            median(rounds.iter().filter_map(|r| r.get(place)).map(number))
        };
        println!(
            "{:<24} {:>9.0} {:>8.2} {:>9.0} {:>9.0} {:>9.0} {:>7.2} s {:>10.0} {:>8.1} {:>8.1} {:>8.1}",
            kind.name(),
            of(|t| t.rate),
            ratio(rounds, place, |t| t.rate),
            of(|t| t.half),
            of(|t| t.slow),
            of(|t| t.left),
            of(|t| t.filing),
            of(|t| t.sustained),
            of(|t| t.cost.serving),
            of(|t| t.cost.server),
            of(|t| t.cost.load),
        );
    }
    println!();
}

/// The goals of one number of connections.
pub fn goals(connections: usize, rounds: &[Round], durable: f64, signed: f64, slowest: f64) {
    let rate = |turn: &Turn| turn.rate;
    let name = |what: &str| format!("{connections} connections: {what}");
    goal(
        &name("durable ÷ floor"),
        ratio(rounds, 1, rate),
        "at least",
        durable,
    );
    goal(
        &name("signed ÷ floor"),
        ratio(rounds, 2, rate),
        "at least",
        signed,
    );
    let slow = ratio(rounds, 1, |t| t.slow);
    goal(&name("p99 durable ÷ p99 floor"), slow, "at most", slowest);
}

/// The median of the ratios to the floor of the same round.
fn ratio(rounds: &[Round], place: usize, number: fn(&Turn) -> f64) -> f64 {
    median(rounds.iter().filter_map(|round| {
        let (floor, turn) = (round.first()?, round.get(place)?);
        Some(number(turn) / number(floor))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
        let turn = |rate| Turn {
            rate,
            half: 0.0,
            slow: 0.0,
            left: 0.0,
            filing: 0.0,
            sustained: rate,
            cost: CpuCost::default(),
        };
        let rounds = [
            [10.0, 5.0, 2.0, 1.0],
            [20.0, 4.0, 1.0, 1.0],
            [10.0, 9.0, 1.0, 1.0],
        ];
        let rounds = rounds.map(|round| round.map(turn));
        assert_eq!(ratio(&rounds, 1, |t| t.rate), 0.5);
        assert_eq!(ratio(&rounds, 0, |t| t.rate), 1.0);
    }
}
