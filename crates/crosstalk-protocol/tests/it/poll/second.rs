//! A second implementation of the counting, written from the rules and slow: it shares nothing with the first.

use std::collections::BTreeMap;

/// What a voter put on the last ballot that counts.
#[derive(Clone, Debug)]
pub(super) enum Cast {
    Abstains,
    /// Options by name, with a number: 1 for a choice, the rank for a ranking, points for a score.
    Named(Vec<(String, i64)>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Result {
    pub(super) outcome: Option<String>,
    pub(super) tally: BTreeMap<String, u64>,
}

pub(super) fn count(kind: &str, options: &[&str], ballots: &[Cast], first_listed: bool) -> Result {
    let named: Vec<&Vec<(String, i64)>> = ballots
        .iter()
        .filter_map(|b| match b {
            Cast::Abstains => None,
            Cast::Named(all) => Some(all),
        })
        .collect();
    let mut tally = BTreeMap::new();
    for option in options {
        let mut sum = 0;
        for ballot in &named {
            for (name, number) in *ballot {
                if name == option {
                    sum += match kind {
                        "score" => *number,
                        "ranked" if *number == 1 => 1,
                        "ranked" => 0,
                        _ => 1,
                    };
                }
            }
        }
        tally.insert((*option).to_owned(), u64::try_from(sum).unwrap());
    }
    let best: Vec<&str> = match kind {
        _ if named.is_empty() => Vec::new(),
        "majority" => of(options, |o| tally[o] * 2 > named.len() as u64),
        "consensus" => of(options, |o| tally[o] == named.len() as u64),
        "ranked" => schulze(options, &named),
        _ => of(options, |o| {
            options.iter().all(|other| tally[*other] <= tally[o])
        }),
    };
    let outcome = match best.as_slice() {
        [one] => Some((*one).to_owned()),
        [first, ..] if first_listed => Some((*first).to_owned()),
        _ => None,
    };
    Result { outcome, tally }
}

fn of<'o>(options: &[&'o str], fits: impl Fn(&str) -> bool) -> Vec<&'o str> {
    options.iter().copied().filter(|o| fits(o)).collect()
}

fn schulze<'o>(options: &[&'o str], ballots: &[&Vec<(String, i64)>]) -> Vec<&'o str> {
    let rank = |ballot: &Vec<(String, i64)>, option: &str| {
        let found = ballot.iter().find(|(name, _)| name == option);
        found.map_or(i64::MAX, |(_, rank)| *rank)
    };
    let prefer = |a: &str, b: &str| ballots.iter().filter(|x| rank(x, a) < rank(x, b)).count();
    // Every path without a circle, its weakest link, and of those the strongest.
    fn strongest(
        options: &[&str],
        prefer: &dyn Fn(&str, &str) -> usize,
        path: &mut Vec<String>,
        to: &str,
        weakest: usize,
    ) -> usize {
        let here = path.last().unwrap().clone();
        if here == to {
            return weakest;
        }
        let mut best = 0;
        for next in options {
            if path.iter().any(|p| p == next) || prefer(&here, next) <= prefer(next, &here) {
                continue;
            }
            path.push((*next).to_owned());
            let link = prefer(&here, next).min(weakest);
            best = best.max(strongest(options, prefer, path, to, link));
            path.pop();
        }
        best
    }
    let path =
        |a: &str, b: &str| strongest(options, &prefer, &mut vec![a.to_owned()], b, usize::MAX);
    of(options, |a| {
        options.iter().all(|b| a == *b || path(a, b) >= path(b, a))
    })
}
