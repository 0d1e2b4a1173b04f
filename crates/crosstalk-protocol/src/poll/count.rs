//! From choices to an outcome (POL-030 to POL-034).

use super::call::{Call, Kind, Ties};
use super::choice::Choice;
use super::schulze::{self, Pairwise};

/// What came out.
pub(super) struct Count {
    /// For each option, in the order of the poll.
    pub(super) tally: Vec<u64>,
    /// For each option, how often it is preferred to each.
    pub(super) pairwise: Option<Pairwise>,
    /// The option, or why there is none.
    pub(super) outcome: Result<usize, String>,
}

/// Counts choices; nothing is said about a quorum.
pub(super) fn count(call: &Call, choices: &[&Choice]) -> Count {
    let size = call.options.len();
    let mut tally = vec![0_u64; size];
    let mut add = |place: usize, votes: u64| {
        if let Some(slot) = tally.get_mut(place) {
            *slot = slot.saturating_add(votes);
        }
    };
    let (mut voices, mut ranks) = (0_u64, Vec::new());
    for choice in choices {
        voices += u64::from(**choice != Choice::Abstain);
        match choice {
            Choice::Abstain | Choice::Text(_) => {}
            Choice::One(place) => add(*place, 1),
            Choice::Some(places) => places.iter().for_each(|place| add(*place, 1)),
            Choice::Points(points) => points.iter().for_each(|(place, n)| add(*place, *n)),
            Choice::Ranking(groups) => {
                groups
                    .iter()
                    .take(1)
                    .flatten()
                    .for_each(|place| add(*place, 1));
                ranks.push(rank(groups, size));
            }
        }
    }
    let is_ranked = call.kind == Kind::Ranked && call.has_options();
    let pairwise = is_ranked.then(|| schulze::pairwise(&ranks, size));
    let outcome = match choices.len() {
        _ if !call.has_options() => Err(no_options(call)),
        0 => Err("no ballot counts".to_owned()),
        _ if voices == 0 => Err("every ballot that counts abstains".to_owned()),
        _ => decide(call, &tally, pairwise.as_ref(), voices),
    };
    Count {
        tally,
        pairwise,
        outcome,
    }
}

fn no_options(call: &Call) -> String {
    match &call.kind {
        Kind::Open => "an open question has answers and no outcome".into(),
        Kind::Other(word) => format!("`{word}` is no way of counting that is known here"),
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
    call: &Call,
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
        Kind::Majority => match leading().as_slice() {
            [one] if best * 2 > voices => Ok(*one),
            _ => Err(format!(
                "no option has more than half of the {voices} ballots that do not abstain"
            )),
        },
        Kind::Consensus => match leading().as_slice() {
            [one] if best == voices => Ok(*one),
            _ => Err(format!(
                "the {voices} ballots that do not abstain do not agree"
            )),
        },
        _ => {
            let tied = pairwise.map_or_else(leading, schulze::winners);
            match (tied.as_slice(), &call.ties) {
                ([one], _) => Ok(*one),
                ([first, ..], Ties::FirstListed) => Ok(*first),
                (all, ties) => {
                    let names: Vec<String> =
                        all.iter().map(|p| format!("`{}`", name(*p))).collect();
                    let mut why = format!("a tie between {}", names.join(", "));
                    if let Ties::Other(rule) = ties {
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
