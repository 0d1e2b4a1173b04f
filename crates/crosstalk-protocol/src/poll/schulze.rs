//! The Schulze method: whoever beats everybody else by the strongest paths of pairwise wins (POL-032).

/// How many ballots prefer the first to the second.
pub(super) type Pairwise = Vec<Vec<u64>>;

/// How often each is preferred to each. A ballot has a rank for each option, the smallest first; equal ranks prefer
/// neither.
pub(super) fn pairwise(ballots: &[Vec<usize>], options: usize) -> Pairwise {
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
pub(super) fn winners(wins: &Pairwise) -> Vec<usize> {
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
