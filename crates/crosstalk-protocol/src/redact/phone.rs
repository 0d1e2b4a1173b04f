//! Phone numbers: international ones, the common national forms, and what a label calls one (RED-011).

use super::label;
use super::number::{DigitRun, runs};
use super::view::View;
use super::{PiiKind, PiiMatch};
use crosstalk_envelope::registry::PHONE_LABELS;
use std::ops::Range;

/// Finds the phone numbers of a view.
pub(super) fn scan(view: &View, out: &mut Vec<PiiMatch>) {
    runs(view, |run| {
        let mut group = 0;
        while group < run.groups.len() {
            let found = (group == 0)
                .then(|| international(view, run).or_else(|| labelled(view, run)))
                .flatten()
                .or_else(|| american(view, run, group))
                .or_else(|| trunk(view, run, group));
            match found {
                Some((place, last)) => {
                    out.push(PiiMatch::new(PiiKind::Phone, place));
                    group = last + 1;
                }
                None => group += 1,
            }
        }
    });
}

/// Where a number stands, and its last group.
type Match = (Range<usize>, usize);

/// The last group up to which there are at most `most` digits.
fn within(run: &DigitRun, first: usize, most: usize) -> Option<usize> {
    let last = (first..run.groups.len()).take_while(|last| run.digits(first, *last).len() <= most);
    last.last()
}

/// Whether nothing is written right behind a group.
fn ends_at(view: &View, run: &DigitRun, last: usize) -> bool {
    let is_last = last + 1 == run.groups.len();
    let is_tied = run.is_tight(view, last) || is_last && run.tied_behind;
    !is_tied
}

/// `+49 30 901820`, `+1 (555) 010-0199`: a plus, a country, 7 to 15 digits in all.
fn international(view: &View, run: &DigitRun) -> Option<Match> {
    let first = run.groups.first()?.place.start;
    let mut plus = first.checked_sub(1)?;
    if matches!(view.at(plus), '(' | ' ') {
        plus = plus.checked_sub(1)?;
    }
    if view.at(plus) != '+' || view.follows_word(plus) {
        return None;
    }
    let last = within(run, 0, 15)?;
    let digits = run.digits(0, last);
    let least = if last == 0 { 8 } else { 7 };
    let is_number = digits.len() >= least && digits.first() != Some(&0) && ends_at(view, run, last);
    is_number.then(|| (plus..run.place(0, last).end, last))
}

/// `tel:5550100199`, `Phone: 0171 1234567`: 5 to 15 digits that a word calls a phone number.
fn labelled(view: &View, run: &DigitRun) -> Option<Match> {
    let place = run.place(0, 0);
    if !label::right_before(view, place.start, PHONE_LABELS) {
        return None;
    }
    let last = within(run, 0, 15)?;
    let is_number = run.digits(0, last).len() >= 5 && ends_at(view, run, last);
    is_number.then(|| (opened(view, place.start)..run.place(0, last).end, last))
}

/// The bracket before a number belongs to it.
fn opened(view: &View, start: usize) -> usize {
    start - usize::from(view.before(start) == '(')
}

/// `(555) 010-0199`, `555-010-0199`, `1-555-010-0199`.
fn american(view: &View, run: &DigitRun, group: usize) -> Option<Match> {
    let size = |i: usize| run.groups.get(i).map(|g| g.len());
    let has_country = size(group) == Some(1) && run.digits(group, group) == [1];
    let first = group + usize::from(has_country);
    let last = first + 2;
    if [size(first), size(first + 1), size(last)] != [Some(3), Some(3), Some(4)] {
        return None;
    }
    if !matches!(run.digits(first, first), [2..=9, ..]) || !ends_at(view, run, last) {
        return None;
    }
    let start = run.place(first, first).start;
    let has_bracket = view.before(start) == '(';
    let area = run.between(view, first);
    let is_area = match has_bracket {
        true => matches!(area.as_str(), ")" | ") " | ")-" | ")."),
        false => matches!(area.as_str(), "-" | "." | " " | " - " | "/"),
    };
    let line = run.between(view, first + 1);
    let is_line = matches!(line.as_str(), "-" | "." | " " | " - ");
    let is_country = !has_country
        || matches!(
            run.between(view, group).as_str(),
            "-" | "." | " " | " (" | "(" | "-("
        );
    let is_free = match group.checked_sub(1) {
        Some(before) => !run.is_tight(view, before),
        None => !run.tied_before,
    };
    // Three numbers with spaces between them may be anything, if other numbers are beside them.
    let is_loose = area == " " && line == " ";
    let is_alone = group == 0 && last + 1 == run.groups.len();
    let sound =
        is_area && is_line && is_country && is_free && (!is_loose || is_alone || has_country);
    let from = opened(view, run.place(group, group).start);
    sound.then(|| (from..run.place(first, last).end, last))
}

/// `020 7946 0018`, `0171/1234567`, `(030) 901820`, `01 23 45 67 89`, `0049 30 901820`: a zero, then the area.
fn trunk(view: &View, run: &DigitRun, group: usize) -> Option<Match> {
    let is_free = match group.checked_sub(1) {
        Some(before) => !run.is_tight(view, before),
        None => !run.tied_before,
    };
    let first = run.groups.get(group)?.len();
    let abroad = matches!(run.digits(group, group), [0, 0, 1..=9, ..] | [0, 0]);
    let inland = matches!(run.digits(group, group), [0, 1..=9, ..]);
    let most = if run.between(view, group) == "-" {
        5
    } else {
        6
    };
    if !is_free || !(inland || abroad) || first > most {
        return None;
    }
    let last = within(run, group, if abroad { 17 } else { 12 })?;
    let digits = run.digits(group, last);
    let groups = last - group + 1;
    let least = match (abroad, first) {
        (true, _) => 11,
        (false, 2) => 10,
        (false, _) => 9,
    };
    let sizes = || (group..=last).filter_map(|i| run.groups.get(i).map(|g| g.len()));
    let in_pairs = sizes().all(|n| n == 2);
    let pairs_fit = !in_pairs || groups == 5 && last + 1 == run.groups.len();
    let has_dots = (group..last).any(|i| run.between(view, i).contains('.'));
    // In a row of numbers it may be anything.
    let is_loose = (group..last).all(|i| run.between(view, i) == " ");
    let is_binary = digits.iter().all(|d| *d < 2);
    let sound = groups > 1
        && groups <= 7
        && digits.len() >= least
        && sizes().skip(1).all(|n| n >= 2)
        && pairs_fit
        && (!has_dots || in_pairs)
        && !is_binary
        && (!is_loose || group == 0)
        && ends_at(view, run, last);
    let start = run.place(group, group).start;
    sound.then(|| (opened(view, start)..run.place(group, last).end, last))
}
