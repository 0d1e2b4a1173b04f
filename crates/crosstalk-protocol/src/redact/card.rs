//! Numbers of payment cards: 13 to 19 digits with the check of Luhn and the prefix of an issuer (RED-012).

use super::number::{DigitRun, runs};
use super::view::View;
use super::{PiiKind, PiiMatch};
use crosstalk_envelope::registry::CARD_ISSUERS;

/// Finds the cards of a view.
pub(super) fn scan(view: &View, out: &mut Vec<PiiMatch>) {
    runs(view, |run| {
        let mut first = 0;
        while first < run.groups.len() {
            match last_group(view, run, first) {
                Some(last) => {
                    out.push(PiiMatch::new(PiiKind::Card, run.place(first, last)));
                    first = last + 1;
                }
                None => first += 1,
            }
        }
    });
}

/// The last group of the longest card that begins with a group.
fn last_group(view: &View, run: &DigitRun, first: usize) -> Option<usize> {
    let mut best = None;
    for last in first..run.groups.len() {
        let digits = run.digits(first, last);
        if digits.len() > 19 {
            break;
        }
        if is_card(digits) && is_grouped(view, run, first, last) {
            best = Some(last);
        }
    }
    best
}

/// Whether the groups look like those of a card: all groups of the run, or groups as they are printed on cards.
fn is_grouped(view: &View, run: &DigitRun, first: usize, last: usize) -> bool {
    if first == 0 && last + 1 == run.groups.len() {
        return true;
    }
    let sizes = || (first..=last).filter_map(|i| run.groups.get(i).map(|g| g.len()));
    let printed = first == last
        || sizes().take(last - first).all(|n| (3..=7).contains(&n))
            && run.groups.get(last).is_some_and(|g| g.len() <= 7);
    printed && run.stands_apart(view, first, last)
}

fn is_card(digits: &[u8]) -> bool {
    (13..=19).contains(&digits.len()) && has_issuer(digits) && is_luhn(digits)
}

fn has_issuer(digits: &[u8]) -> bool {
    CARD_ISSUERS.iter().any(|issuer| {
        let size = issuer.first.to_string().len();
        let prefix = digits.iter().take(size);
        let prefix = prefix.fold(0, |n, d| n * 10 + u32::from(*d));
        let is_issued = (issuer.first..=issuer.last).contains(&prefix);
        is_issued && issuer.lengths.contains(&digits.len())
    })
}

/// Whether the last digit is the check of Luhn over the others.
pub(super) fn is_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| match (i % 2, u32::from(*d)) {
            (0, d) => d,
            (_, d) if d > 4 => d * 2 - 9,
            (_, d) => d * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}
