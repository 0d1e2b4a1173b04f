//! Numbers of payment cards: 13 to 19 digits with the check of Luhn and the prefix of an issuer (RED-012).

use super::number::{Run, runs};
use super::view::View;
use super::{Candidate, Pii};
use std::ops::RangeInclusive;

/// First digits, as a range of numbers of one length, and how many digits the card has.
type Issuer = (u32, u32, RangeInclusive<usize>);

const ISSUERS: &[Issuer] = &[
    (34, 34, 15..=15),     // American Express
    (37, 37, 15..=15),     // American Express
    (300, 305, 14..=19),   // Diners Club
    (36, 36, 14..=19),     // Diners Club
    (38, 39, 14..=19),     // Diners Club
    (3528, 3589, 16..=19), // JCB
    (4, 4, 13..=13),       // Visa
    (4, 4, 16..=16),       // Visa
    (4, 4, 19..=19),       // Visa
    (51, 55, 16..=16),     // Mastercard
    (2221, 2720, 16..=16), // Mastercard
    (2200, 2204, 16..=19), // Mir
    (50, 50, 13..=19),     // Maestro
    (56, 58, 13..=19),     // Maestro
    (60, 69, 13..=19),     // Discover, UnionPay, Maestro, RuPay
    (81, 82, 16..=16),     // RuPay
    (9792, 9792, 16..=16), // Troy
];

/// Finds the cards of a view.
pub(super) fn scan(view: &View, out: &mut Vec<Candidate>) {
    runs(view, |run| {
        let mut first = 0;
        while first < run.groups.len() {
            match last_group(view, run, first) {
                Some(last) => {
                    out.push(Candidate::new(Pii::Card, run.place(first, last)));
                    first = last + 1;
                }
                None => first += 1,
            }
        }
    });
}

/// The last group of the longest card that begins with a group.
fn last_group(view: &View, run: &Run, first: usize) -> Option<usize> {
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

/// Whether the groups look like those of a card: all that stands there, or groups as they are printed on cards.
fn is_grouped(view: &View, run: &Run, first: usize, last: usize) -> bool {
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
    ISSUERS.iter().any(|(low, high, lengths)| {
        let size = low.to_string().len();
        let prefix = digits.iter().take(size);
        let prefix = prefix.fold(0, |n, d| n * 10 + u32::from(*d));
        lengths.contains(&digits.len()) && (*low..=*high).contains(&prefix)
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
