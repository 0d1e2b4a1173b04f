//! From choices to an outcome (POL-030 to POL-034), with the Schulze method: the option that beats every other one by the
//! strongest paths of pairwise wins (POL-032).

use super::call::{PollCall, PollKind, TieRule};
use super::choice::BallotChoice;

/// The result of a count.
pub(super) struct PollCount {
    /// For each option, in the order of the poll.
    pub(super) tally: Vec<u64>,
    /// For each option, how often it is preferred to each.
    pub(super) pairwise: Option<Pairwise>,
    /// The option, or why there is none.
    pub(super) outcome: Result<usize, String>,
}

/// Counts choices; nothing is said about a quorum.
pub(super) fn count(call: &PollCall, choices: &[&BallotChoice]) -> PollCount {
    let size = call.options.len();
    let mut tally = vec![0_u64; size];
    let mut add = |place: usize, votes: u64| {
        if let Some(slot) = tally.get_mut(place) {
            *slot = slot.saturating_add(votes);
        }
    };
    let (mut voices, mut ranks) = (0_u64, Vec::new());
    for choice in choices {
        voices += u64::from(**choice != BallotChoice::Abstain);
        match choice {
            BallotChoice::Abstain | BallotChoice::Text(_) => {}
            BallotChoice::One(place) => add(*place, 1),
            BallotChoice::Some(places) => places.iter().for_each(|place| add(*place, 1)),
            BallotChoice::Points(points) => points.iter().for_each(|(place, n)| add(*place, *n)),
            BallotChoice::Ranking(groups) => {
                groups
                    .iter()
                    .take(1)
                    .flatten()
                    .for_each(|place| add(*place, 1));
                ranks.push(rank(groups, size));
            }
        }
    }
    let is_ranked = call.kind == PollKind::Ranked && call.has_options();
    let pairwise = is_ranked.then(|| pairwise(&ranks, size));
    let outcome = match choices.len() {
        _ if !call.has_options() => Err(no_options(call)),
        0 => Err("no ballot counts".to_owned()),
        _ if voices == 0 => Err("every ballot that counts abstains".to_owned()),
        _ => decide(call, &tally, pairwise.as_ref(), voices),
    };
    PollCount {
        tally,
        pairwise,
        outcome,
    }
}

fn no_options(call: &PollCall) -> String {
    match &call.kind {
        PollKind::Open => "an open question has answers and no outcome".into(),
        PollKind::Other(word) => format!("`{word}` is no way of counting that is known here"),
        _ => "the poll names no options".into(),
    }
}

/// The rank of each option, from 0; those that are not named share the last one.
fn rank(groups: &[Vec<usize>], size: usize) -> Vec<usize> {
    let mut ranks = vec![groups.len(); size];
    for (rank, group) in groups.iter().enumerate() {
        for option in group {
            if let Some(slot) = ranks.get_mut(*option) {
                *slot = rank;
            }
        }
    }
    ranks
}

fn decide(
    call: &PollCall,
    tally: &[u64],
    pairwise: Option<&Pairwise>,
    voices: u64,
) -> Result<usize, String> {
    let best = tally.iter().copied().max().unwrap_or(0);
    let leading = || {
        let all = tally
            .iter()
            .enumerate()
            .filter(|(_, votes)| **votes == best);
        all.map(|(place, _)| place).collect::<Vec<usize>>()
    };
    let name = |place: usize| call.options.get(place).map_or("", String::as_str);
    match call.kind {
        PollKind::Majority => match leading().as_slice() {
            [one] if best * 2 > voices => Ok(*one),
            _ => Err(format!(
                "no option has more than half of the {voices} ballots that do not abstain"
            )),
        },
        PollKind::Consensus => match leading().as_slice() {
            [one] if best == voices => Ok(*one),
            _ => Err(format!(
                "the {voices} ballots that do not abstain do not agree"
            )),
        },
        _ => {
            let tied = pairwise.map_or_else(leading, winners);
            match (tied.as_slice(), &call.ties) {
                ([one], _) => Ok(*one),
                ([first, ..], TieRule::FirstListed) => Ok(*first),
                (all, ties) => {
                    let names: Vec<String> =
                        all.iter().map(|p| format!("`{}`", name(*p))).collect();
                    let mut why = format!("a tie between {}", names.join(", "));
                    if let TieRule::Other(rule) = ties {
                        why.push_str(&format!(
                            ", and `{rule}` is no rule for ties that is known here"
                        ));
                    }
                    Err(why)
                }
            }
        }
    }
}

/// How many ballots prefer the first to the second.
type Pairwise = Vec<Vec<u64>>;

/// How often each is preferred to each. A ballot has a rank for each option, the smallest first; equal ranks prefer
/// neither.
fn pairwise(ballots: &[Vec<usize>], options: usize) -> Pairwise {
    let mut wins = vec![vec![0; options]; options];
    for ballot in ballots {
        for (row, mine) in wins.iter_mut().zip(ballot) {
            for (cell, other) in row.iter_mut().zip(ballot) {
                *cell += u64::from(mine < other);
            }
        }
    }
    wins
}

fn at(matrix: &Pairwise, from: usize, to: usize) -> u64 {
    matrix
        .get(from)
        .and_then(|row| row.get(to))
        .copied()
        .unwrap_or(0)
}

/// The strength of the strongest path from each to each: a link is as strong as the ballots for it, where they are more
/// than those against it; a path is as strong as its weakest link.
fn strongest(wins: &Pairwise) -> Pairwise {
    let count = wins.len();
    let link = |i, j| match at(wins, i, j) > at(wins, j, i) {
        true => at(wins, i, j),
        false => 0,
    };
    let mut paths: Pairwise = (0..count)
        .map(|i| (0..count).map(|j| link(i, j)).collect())
        .collect();
    for over in 0..count {
        let onward = paths.get(over).cloned().unwrap_or_default();
        for row in &mut paths {
            let first = row.get(over).copied().unwrap_or(0);
            for (cell, second) in row.iter_mut().zip(&onward) {
                *cell = (*cell).max(first.min(*second));
            }
        }
    }
    paths
}

/// The options that no other one beats. There is at least one if there are options; several are tied.
fn winners(wins: &Pairwise) -> Vec<usize> {
    let paths = strongest(wins);
    let all = 0..wins.len();
    all.clone()
        .filter(|i| {
            all.clone()
                .all(|j| at(&paths, *i, j) >= at(&paths, j, *i) || *i == j)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(how many, the options from first to last)`.
    fn election(ballots: &[(usize, &str)], options: usize) -> Vec<usize> {
        let mut ranks = Vec::new();
        for (number, order) in ballots {
            let mut rank = vec![0; options];
            for (place, letter) in order.bytes().enumerate() {
                rank[usize::from(letter - b'A')] = place;
            }
            ranks.extend(std::iter::repeat_n(rank, *number));
        }
        winners(&pairwise(&ranks, options))
    }

    #[test]
    fn the_worked_example_of_the_method_has_its_winner() {
        // Forty-five voters and five options, as the method is usually explained: E wins.
        let ballots = [
            (5, "ACBED"),
            (5, "ADECB"),
            (8, "BEDAC"),
            (3, "CABED"),
            (7, "CAEBD"),
            (2, "CBADE"),
            (7, "DCEBA"),
            (8, "EBADC"),
        ];
        assert_eq!(election(&ballots, 5), [4]);
    }

    #[test]
    fn a_circle_of_equals_is_a_tie() {
        assert_eq!(
            election(&[(1, "ABC"), (1, "BCA"), (1, "CAB")], 3),
            [0, 1, 2]
        );
        assert_eq!(election(&[(1, "AB"), (1, "BA")], 2), [0, 1]);
        assert_eq!(election(&[], 2), [0, 1]);
        assert_eq!(election(&[], 0), [] as [usize; 0]);
    }
}
