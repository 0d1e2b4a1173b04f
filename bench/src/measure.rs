//! Times several subjects against each other: rounds are interleaved, and of each subject the best round counts,
//! because other work on the machine only ever adds to a time.

use std::time::{Duration, Instant};

/// Something to time: a name and one run of it.
pub struct Subject<'a> {
    /// The text to print.
    pub name: &'static str,
    /// One run.
    pub run: Box<dyn FnMut() + 'a>,
}

impl<'a> Subject<'a> {
    /// A subject.
    pub fn new(name: &'static str, run: impl FnMut() + 'a) -> Self {
        Self {
            name,
            run: Box::new(run),
        }
    }
}

/// Nanoseconds for one run of each subject, in their order.
pub fn measure(subjects: &mut [Subject<'_>], rounds: usize, per_round: Duration) -> Vec<f64> {
    let counts: Vec<u32> = subjects
        .iter_mut()
        .map(|s| runs_within(s, per_round))
        .collect();
    let mut times: Vec<Vec<f64>> = subjects
        .iter()
        .map(|_| Vec::with_capacity(rounds))
        .collect();
    for _ in 0..rounds {
        for ((subject, count), times) in subjects.iter_mut().zip(&counts).zip(&mut times) {
            let start = Instant::now();
            for _ in 0..*count {
                (subject.run)();
            }
            times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(*count));
        }
    }
    times
        .iter()
        .map(|t| t.iter().copied().fold(f64::NAN, f64::min))
        .collect()
}

/// How many runs fill the time, at least one.
fn runs_within(subject: &mut Subject<'_>, time: Duration) -> u32 {
    let mut count = 1_u32;
    loop {
        let start = Instant::now();
        for _ in 0..count {
            (subject.run)();
        }
        if start.elapsed() >= time || count > 1 << 24 {
            return count;
        }
        count *= 2;
    }
}
